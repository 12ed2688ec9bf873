"""How long a guard takes to decide: the first table of docs/guard.md (tools/guard_errors.py has the second).

python bench/guard.py
"""

from __future__ import annotations

import random

from lexical_speed import cases

from evalstone.live.guard import guard

SIZES = ((40, 240, 500), (150, 1_000, 300), (400, 4_000, 200), (1_000, 20_000, 100))
"""Words of the answer and of its passages, and how many answers."""
PASSAGE = 80


def main() -> None:
    """Print milliseconds by size."""
    check = guard(min={"faithfulness": 0.5})
    pool = [word for answer, _ in cases(50) for word in f"{answer}.".split()]
    draw = random.Random(0)
    print("| answer, passages (words) | p50 | p95 | p99 |\n|---|---|---|---|")
    for answer_words, context_words, count in SIZES:
        took: list[float] = []
        for _ in range(count):
            passages = [" ".join(draw.choices(pool, k=PASSAGE)) for _ in range(context_words // PASSAGE)]
            took.append(check(output=" ".join(draw.choices(pool, k=answer_words)), context=passages).seconds * 1000)
        took.sort()
        p50, p95, p99 = (took[min(count - 1, int(share * count))] for share in (0.5, 0.95, 0.99))
        print(f"| {answer_words:,}, {context_words:,} | {p50:.1f} ms | {p95:.1f} ms | {p99:.1f} ms |")


if __name__ == "__main__":
    main()

"""How often answers fail because claims that language models wrote are refused as invented, and what is accepted.

    python bench/claims.py ../shared/data/claims [--show]

The folder has `*.jsonl.gz` files with lines `{"question": …, "response": …, "claims": […]}`. An answer fails if its
claims are never corrected and can't be dropped either. In files without questions, claims that complete the answer with
words of the question are refused. Three kinds of inventions are checked against the answer: claims of another answer in
the same file, and the answer's own claims with a name or a number that it doesn't have. --show prints the refused
claims, and the inventions that were accepted.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from evalstone._core.grounding import not_grounded
from evalstone.errors import ReplyError
from evalstone.questions import ListClaims

FEWEST_WORDS = 20
PER_ANSWER = 6
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}")
_NUMBER = re.compile(r"(?<![\d.,])\d{2,}(?![\d.,]?\d)")
Row = dict[str, Any]


def rows_of(file: Path) -> list[Row]:
    """The answers that are long enough to have several claims. Chinese has no spaces between words."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows: list[Row] = [json.loads(line) for line in lines]
    return [row for row in rows if not row["response"].isascii() or len(row["response"].split()) >= FEWEST_WORDS]


def with_foreign_name(claim: str, text: str, names: list[str], rng: random.Random) -> str | None:
    """The claim with a name that its text doesn't have; None if the claim has no name."""
    own = _NAME.findall(claim)
    others = [name for name in rng.sample(names, min(20, len(names))) if name.lower() not in text.lower()]
    return claim.replace(rng.choice(own), others[0], 1) if own and others else None


def with_foreign_number(claim: str, text: str, rng: random.Random) -> str | None:
    """The claim with a number that its text doesn't have; None if the claim has no number."""
    if not (own := _NUMBER.findall(claim)):
        return None
    number = rng.choice(own)
    others = [str(max(2, int(number) + step)) for step in rng.sample([-7, -5, -3, -2, 2, 3, 5, 7, 11], 9)]
    return next((claim.replace(number, other, 1) for other in others if other not in text), None)


def measure(file: Path, show: bool) -> Counter[str]:
    """The counts of one file."""
    rng, counts = random.Random(7), Counter[str]()
    rows = rows_of(file)
    names = [name for row in rows for claim in row["claims"][:3] for name in _NAME.findall(claim)]
    for row, other in zip(rows, rows[len(rows) // 2 :] + rows[: len(rows) // 2], strict=True):
        question = ListClaims.of(row["response"], row["question"])
        text = f"{question.question}\n{question.text}"
        refused = [claim for claim in row["claims"] if not_grounded(claim, question.text, (question.question,))]
        counts.update(answers=1, claims=len(row["claims"]), refused=len(refused))
        try:
            question.parse_grounded(json.dumps({"claims": row["claims"]}))
        except ReplyError:
            counts["failed"] += 1
        own = row["claims"][:PER_ANSWER]
        foreign: list[str] = other["claims"][:PER_ANSWER] if other["question"] != row["question"] else []
        inventions = {
            "claims": foreign,
            "names": [swapped for claim in own if (swapped := with_foreign_name(claim, text, names, rng))],
            "numbers": [swapped for claim in own if (swapped := with_foreign_number(claim, text, rng))],
        }
        for kind, invented in inventions.items():
            taken = [claim for claim in invented if not not_grounded(claim, question.text, (question.question,))]
            counts.update({f"{kind} invented": len(invented), f"{kind} taken": len(taken)})
            for claim in taken if show else ():
                print(f"  accepted ({kind}): {claim}")
        for claim in refused if show else ():
            print(f"  refused: {claim}  {not_grounded(claim, question.text, (question.question,))}")
    return counts


def line(name: str, counts: Counter[str]) -> str:
    """The rates of one file, or of all."""
    shares = [("failed", "answers"), ("refused", "claims")]
    shares += [(f"{kind} taken", f"{kind} invented") for kind in ("claims", "names", "numbers")]
    rates = "".join(f"{counts[part] / max(1, counts[whole]):10.2%}" for part, whole in shares)
    return f"{name:30}{counts['answers']:8,}{counts['claims']:8,}{rates}"


def main(folder: Path, *, show: bool) -> None:
    """Print the rates of each file, and of all."""
    total, asked = Counter[str](), Counter[str]()
    print(f"{'':56}{'claims':>10}{'accepted inventions:':>30}")
    print(
        f"{'file':30}{'answers':>8}{'claims':>8}{'failed':>10}{'refused':>10}{'claims':>10}{'names':>10}{'numbers':>10}"
    )
    for file in sorted(folder.glob("*.jsonl.gz")):
        counts = measure(file, show)
        total.update(counts)
        asked.update(counts if any(row["question"] for row in rows_of(file)) else ())
        print(line(file.name.partition(".")[0], counts), flush=True)
    print(line("files with questions", asked))
    print(line("all", total))


if __name__ == "__main__":
    main(Path(sys.argv[1]), show="--show" in sys.argv[2:])

"""A run over very many samples with a code scorer: memory in use, and the rate of the first and of the last tenth.

    python bench/many.py [--samples 1000000] [--ledger]

Writes a JSON Lines file of its own, evaluates it, and prints peak resident memory, the rates and their ratio.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from evalstone import Record, Score, Scorer, evaluate


@dataclass(frozen=True, kw_only=True)
class Overlap(Scorer):
    """The share of the question's words that the answer has."""

    name = "overlap"

    def score(self, *, input: str, output: str) -> Score:
        asked = set(input.split())
        return Score(len(asked & set(output.split())) / len(asked))


def write(path: Path, samples: int) -> None:
    """Samples of about 250 characters."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(samples):
            question = f"what is known of number {n} and of its neighbours"
            answer = f"of number {n} it is known that it follows {n - 1}; " + "and so on " * 12
            file.write(json.dumps({"id": str(n), "question": question, "answer": answer}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--ledger", action="store_true", help="keep a ledger too")
    options = parser.parse_args()
    marks: list[float] = []
    tenth = options.samples // 10
    counter = itertools.count(1)
    marked = {1, tenth, options.samples - tenth, options.samples}

    def tell(_: Record) -> None:
        if next(counter) in marked:
            marks.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.jsonl"
        write(data, options.samples)
        began = time.perf_counter()
        run = evaluate(data, [Overlap()], ledger=Path(folder) / "l.db" if options.ledger else None, on_record=tell)
        whole = time.perf_counter() - began
    first, last = tenth / (marks[1] - marks[0]), tenth / (marks[3] - marks[2])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.samples:,} samples in {whole:.0f} s, mean {run['overlap'].mean:.4f}, peak {peak:.0f} MB resident")
    print(f"first tenth {first:,.0f}/s, last tenth {last:,.0f}/s, ratio {last / first:.2f}")


if __name__ == "__main__":
    main()

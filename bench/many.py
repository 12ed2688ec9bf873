"""What the commands cost with very many samples: processor time, wall time and memory of each process.

    python bench/many.py [--samples 1000000] [--format jsonl] [--only WORD] [--source PATH]

Writes a JSON Lines file of its own (192 bytes a sample), or the same rows as Parquet, scores it twice by a code scorer,
with a ledger and a results folder, then reports, compares and gates what it saved. Printed are the seconds of the
processor and of the clock, and the peak of resident memory. --only measures the commands with a word in them, such as
"csv", after the runs that they need. --source runs the code of another checkout (its src/).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from processes import Started

WORDS = ("river", "bridge", "city", "engine", "report", "council", "winter", "garden", "market", "signal", "paper")
RUN = "run DATA --scorer exact_match --quiet"
COMMANDS = (
    f"{RUN} --ledger ledger.db --out first",
    f"{RUN} --ledger other.db --out second",
    "report first",
    "report first --html first.html",
    "report first --csv first.csv",
    "report first --junit first.xml",
    "compare first second",
    "gate first --min exact_match=0.5",
)


def write(path: Path, samples: int) -> None:
    """Samples, seven tenths of which have the answer that is expected."""
    drawn = random.Random(3)
    with path.open("w", encoding="utf-8") as file:
        for number in range(samples):
            answer, other = (" ".join(drawn.choices(WORDS, k=3)) for _ in range(2))
            row = {
                "id": f"s{number}",
                "input": f"what is known of number {number} and its {' '.join(drawn.choices(WORDS, k=8))}",
                "output": answer,
                "reference": answer if drawn.random() < 0.7 else other,
            }
            file.write(json.dumps(row) + "\n")


def as_parquet(path: Path) -> Path:
    """The rows of a JSON Lines file in a Parquet file next to it."""
    arrow, parquet = import_module("pyarrow.json"), import_module("pyarrow.parquet")
    table = arrow.read_json(path, read_options=arrow.ReadOptions(block_size=1 << 26))
    parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--format", choices=("jsonl", "parquet"), default="jsonl")
    parser.add_argument("--only", default="", help="a word in the commands to measure")
    parser.add_argument("--source", type=Path, help="another checkout")
    options = parser.parse_args()
    environment = dict(os.environ)
    if options.source is not None:
        environment["PYTHONPATH"] = str((options.source / "src").resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(data := folder / "data.jsonl", options.samples)
        if options.format == "parquet":
            data = as_parquet(data)
        print(f"{options.samples:,} samples\n{'':62} {'CPU s':>7} {'wall s':>7} {'MB':>6}")
        for line in COMMANDS:
            if not (line.startswith("run ") or options.only in line):
                continue
            command = line.replace("DATA", data.name)
            took = Started([sys.executable, "-m", "evalstone", *command.split()], folder, environment).wait()
            failed = "" if took.status == 0 else f"  exit code {took.status}"
            print(f"{command:62} {took.cpu:7.1f} {took.seconds:7.1f} {took.megabytes:6.0f}{failed}", flush=True)
        ledger = (folder / "ledger.db").stat().st_size / 1e6
        print(f"data {data.stat().st_size / 1e6:.0f} MB, ledger {ledger:.0f} MB")


if __name__ == "__main__":
    main()

"""How long short commands take, from the start of the process to its end.

    python bench/startup.py [--rounds 10]

One sample with a code scorer and a SQLite ledger; a comparison of two saved runs; one score. The commands are run in
turns with bytecode in its cache, and the least time of each is printed, beside that of Python alone and of the limit in
decision 042.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RUN = ("run", "data.jsonl", "--scorer", "exact_match", "--ledger", "ledger.db", "--out")
COMMANDS = {
    "run of one sample": (*RUN, "after"),
    "compare of two runs": ("compare", "before", "after"),
    "score with a code scorer": ("score", "--scorer", "exact_match", "--output", "Oslo", "--reference", "Oslo"),
}
LIMITS = {"run of one sample": 0.45, "compare of two runs": 0.35, "score with a code scorer": 0.25}


def seconds(arguments: Sequence[str], folder: Path) -> float:
    """The wall time of a Python process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.jsonl").write_text('{"input": "capital?", "output": "Oslo", "reference": "Oslo"}\n', "utf-8")
        python = ("-m", "evalstone")
        for first in ((*RUN, "before"), *COMMANDS.values()):
            seconds((*python, *first), folder)
        cases = {"python -c pass": ("-c", "pass")} | {title: (*python, *line) for title, line in COMMANDS.items()}
        best = dict.fromkeys(cases, float("inf"))
        for _ in range(options.rounds):
            for title, arguments in cases.items():
                best[title] = min(best[title], seconds(arguments, folder))
    print(f"seconds, best of {options.rounds}")
    for title, least in best.items():
        limit = f"  (limit {LIMITS[title]:.2f})" if title in LIMITS else ""
        print(f"{title:26} {least:.3f}{limit}")


if __name__ == "__main__":
    main()

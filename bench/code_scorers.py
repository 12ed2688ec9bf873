"""How many pairs of texts the scorers in code take in a second, on one core: `python bench/code_scorers.py`.

20,000 pairs of 40 words, the second with about a third of the words changed. Each line is one scorer over both columns
by `score_columns`, outcomes with reasons and evidence included: the best of three rounds, in processor time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from evalstone import (
    Completeness,
    ContentSimilarity,
    KeywordCoverage,
    RougeL,
    Score,
    TextualDifference,
    ToneConsistency,
    checks,
)
from evalstone.scorers import CodeScorer

VOCABULARY = (
    "the river bridge city engine report council winter garden market signal paper winter coast museum harbor "
    "method value result sample change period system water energy school record north south people century "
    "built opened measured increased moved found described included produced designed supported stored during "
    "between after before near under with from large small first second early modern public local annual"
)
WORDS = VOCABULARY.split()

SCORERS: tuple[CodeScorer, ...] = (
    ContentSimilarity(method="edits"),
    TextualDifference(),
    KeywordCoverage(),
    RougeL(against="input"),
    ContentSimilarity(),
    Completeness(),
    ToneConsistency(),
    checks.includes("river"),
    TextualDifference(method="blocks"),
)
SLOW = {"textual_difference(method=blocks)@1"}


def pairs(count: int, size: int = 40) -> tuple[list[str], list[str]]:
    """Two columns of sentences; those of the second are those of the first with about a third of the words changed."""
    rng = random.Random(7)
    left: list[str] = []
    right: list[str] = []
    for _ in range(count):
        one = [rng.choice(WORDS) for _ in range(size)]
        other = [word if rng.random() > 0.33 else rng.choice(WORDS) for word in one]
        left.append(" ".join(one).capitalize() + ".")
        right.append(" ".join(other).capitalize() + ".")
    return left, right


def best(work: Callable[[], Sequence[Any]], rounds: int = 3) -> tuple[float, Sequence[Any]]:
    """The shortest processor time of some rounds, and what the last gave."""
    shortest, made = float("inf"), ()
    for _ in range(rounds):
        started = time.process_time()
        made = work()
        shortest = min(shortest, time.process_time() - started)
    return shortest, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    options = parser.parse_args()
    left, right = pairs(options.pairs)
    for scorer in SCORERS:
        share = 20 if scorer.signature in SLOW else 1
        columns: dict[str, Sequence[str]] = {"input": left[::share], "output": right[::share]}
        given = {name: columns[name] for name in scorer.needs}
        seconds, made = best(lambda s=scorer, g=given: s.score_columns(**g))
        values = [outcome.value for outcome in made if isinstance(outcome, Score)]
        mean = sum(values) / len(values)
        print(f"{scorer.signature:42} {len(made) / seconds:>9,.0f} pairs/s   {len(values):,} scored, mean {mean:.4f}")


if __name__ == "__main__":
    main()

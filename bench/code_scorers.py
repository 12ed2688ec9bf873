"""How many pairs of texts the scorers in code take in a second, on one core: `python bench/code_scorers.py`.

20,000 pairs of 40 words, the second with about a third of the words changed: once out of a small vocabulary, and for
the quick ones once more out of 20,000 words, where nothing that is remembered of a word helps. Each line is one scorer
over both columns by `score_columns`, outcomes with reasons and evidence included: the best of three rounds, in
processor time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from evalstone import Score, checks
from evalstone.scorers import (
    CodeScorer,
    Completeness,
    ContentSimilarity,
    KeywordCoverage,
    Levenshtein,
    RougeL,
    TextualDifference,
    ToneConsistency,
)

VOCABULARY = (
    "the river bridge city engine report council winter garden market signal paper winter coast museum harbor "
    "method value result sample change period system water energy school record north south people century "
    "built opened measured increased moved found described included produced designed supported stored during "
    "between after before near under with from large small first second early modern public local annual"
)
WORDS = VOCABULARY.split()

SCORERS: tuple[CodeScorer, ...] = (
    Levenshtein(ignore_case=True, ignore_whitespace=True),
    TextualDifference(),
    KeywordCoverage(),
    RougeL(compare_to="input"),
    ContentSimilarity(),
    Completeness(),
    ToneConsistency(),
    checks.contains("river"),
    TextualDifference(definition="mastra_0_13"),
)
MANY_WORDS: tuple[CodeScorer, ...] = (
    Levenshtein(ignore_case=True, ignore_whitespace=True),
    TextualDifference(),
    KeywordCoverage(),
    RougeL(compare_to="input"),
)
SLOW = {"textual_difference(definition=mastra_0_13)@1"}


def vocabulary(count: int) -> list[str]:
    """So many made-up words of 3 to 10 letters."""
    rng = random.Random(2)
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 10)))] = None
    return list(made)


def pairs(count: int, vocabulary: Sequence[str], size: int = 40) -> tuple[list[str], list[str]]:
    """Two columns of sentences; those of the second are those of the first with about a third of the words changed."""
    rng = random.Random(7)
    left: list[str] = []
    right: list[str] = []
    for _ in range(count):
        one = [rng.choice(vocabulary) for _ in range(size)]
        other = [word if rng.random() > 0.33 else rng.choice(vocabulary) for word in one]
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


def measure(scorers: Sequence[CodeScorer], left: Sequence[str], right: Sequence[str]) -> None:
    """Print a line for each scorer."""
    for scorer in scorers:
        share = 20 if scorer.signature in SLOW else 1
        texts = left[::share]
        columns: dict[str, Sequence[str]] = {"input": texts, "reference": texts, "output": right[::share]}
        given = {name: columns[name] for name in scorer.required_fields}
        seconds, made = best(lambda s=scorer, g=given: s.score_columns(**g))
        values = [outcome.value for outcome in made if isinstance(outcome, Score)]
        mean = sum(values) / len(values)
        print(f"{scorer.signature:42} {len(made) / seconds:>9,.0f} pairs/s   {len(values):,} scored, mean {mean:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=20_000, help="words of the large vocabulary")
    options = parser.parse_args()
    measure(SCORERS, *pairs(options.pairs, WORDS))
    print(f"\nout of {options.words:,} words")
    measure(MANY_WORDS, *pairs(options.pairs, vocabulary(options.words)))


if __name__ == "__main__":
    main()

"""How often a guard decides wrongly: the second table of docs/guard.md (bench/guard.py has the first).

    python tools/guard_errors.py DIR

DIR holds the grounding data, as for train_lexical.py.

The answers are those that the lexical judge was trained on. Each is therefore decided about by a model that was trained
without its dataset (RAGTruth's three are left out together). Only how rare a stem is was counted over all of them,
which takes no label. Takes about a minute on one core.

- False blocks: supported answers whose score is below the threshold. Missed blocks: unsupported ones that reach it.
- Answers without a score are in neither; "undefined" is their share.
- Intervals are 95% confidence intervals, clustered by source.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexical_data import DATA_SETS, RAGTRUTH, counted, measured, read, words_of
from lexical_fit import table
from train_lexical import FORMAT, NAMES, STEMMER, curve_data, fitted_to

from evalstone import LexicalJudge, Sample
from evalstone._core.display import percent
from evalstone.api import open_session
from evalstone.judges.lexical import answers
from evalstone.judges.lexical.model import from_data, shipped
from evalstone.run.scoring import score_sample
from evalstone.scorers import parse_scorers
from evalstone.stats.intervals import mean_interval
from evalstone.types import reaches

SCORERS = ("faithfulness", "fact_check")
THRESHOLDS = (0.3, 0.5, 0.8)


@dataclass(frozen=True)
class Scored:
    """One labeled answer and its scores; None without one."""

    data_set: str
    group: str
    supported: bool
    scores: dict[str, float | None]


def main(folder: Path) -> None:
    """Print a table for each scorer."""
    scored = list(all_scored(folder))
    for scorer in SCORERS:
        print(f"\n{scorer}\n{errors(scored, scorer)}")


def all_scored(folder: Path) -> Iterator[Scored]:
    """Every answer with its scores by a model that has not seen its dataset."""
    data = {name: read(folder, name) for name in DATA_SETS}
    documents, counts = counted([row for rows in data.values() for row in rows])
    words = words_of(documents, counts)
    rows = {name: list(measured(name, data[name], words)) for name in DATA_SETS}
    ours = shipped()
    kept = {name: curve_data(*_parts(getattr(ours, name))) for name in ("passage", "statement")}
    for left_out in (RAGTRUTH, *((name,) for name in DATA_SETS if name not in RAGTRUTH)):
        training = [row for name in DATA_SETS if name not in left_out for row in rows[name]]
        fitted, curves, _ = fitted_to(training, table(training))
        model = from_data(
            {
                "format": FORMAT,
                "measures": list(NAMES),
                "stemmer": STEMMER,
                "weights": fitted.weights.tolist(),
                "intercept": fitted.intercept,
                "curves": curves | kept,
                "documents": documents,
                "counts": counts,
            }
        )
        answers.shipped = lambda model=model: model
        for name in left_out:
            yield from asyncio.run(_scored(name, data[name]))


def _parts(curve: Any) -> tuple[Any, float]:
    return curve.weights, curve.offset


async def _scored(name: str, rows: Sequence[dict[str, Any]]) -> list[Scored]:
    scorers, found = parse_scorers(SCORERS), list[Scored]()
    for row in rows:
        async with open_session(LexicalJudge()) as session:
            sample = Sample(input=row["query"] or None, output=row["response"], context=[row["context"]])
            records = [await score_sample(scorer, sample, session) for scorer in scorers]
            scores = {scorer.name: record.value for scorer, record in zip(scorers, records, strict=True)}
            found.append(Scored(name, str(row["group"]), row["label"] == 0, scores))
    return found


def errors(scored: Sequence[Scored], scorer: str) -> str:
    """False and missed blocks of a guard with one scorer, by dataset and threshold."""
    head = ["dataset", "answers (unsupported)", "undefined"]
    head += [f"{what} at {threshold}" for threshold in THRESHOLDS for what in ("false blocks", "missed blocks")]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in dict.fromkeys(one.data_set for one in scored):
        rows = [one for one in scored if one.data_set == name]
        there = [one for one in rows if one.scores[scorer] is not None]
        wrong = sum(not one.supported for one in rows)
        cells = [name, f"{len(rows):,} ({wrong:,})", percent(1 - len(there) / len(rows))]
        for threshold in THRESHOLDS:
            for supported in (True, False):
                those = [one for one in there if one.supported == supported]
                hits = [reaches(one.scores[scorer] or 0.0, threshold) != supported for one in those]
                found = mean_interval(list(map(float, hits)), low=0, high=1, groups=[one.group for one in those])
                assert found is not None
                cells.append(f"{found.estimate:.0%} [{found.low or 0:.0%}, {found.high or 0:.0%}]")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    started = time.perf_counter()
    main(Path(sys.argv[1]))
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)

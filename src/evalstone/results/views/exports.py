"""Results with rows of data as CSV: one row per scorer and slice of a comparison, per run and scorer of several runs.
`sample_rows` has the rows of a run. Other results are written as their tables are: `report.csv`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone.report.csv import Value, csv_rows
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.types import RunMetadata

if TYPE_CHECKING:
    from evalstone.results.compare import Comparison, ScorerComparison
    from evalstone.results.run import Run
    from evalstone.results.several_runs import Experiment, SavedRuns
    from evalstone.results.summary import ScorerSummary

COMPARISON_HEADER = (
    "scorer", "a", "b", "field", "slice", "n", "mean a", "mean b", "difference", "low", "high", "p", "adjusted p",
    "wins", "ties", "losses", "verdict", "signature", "test", "missing", "max change", "margin", "equivalence p",
    "unpaired", "unscored", "of both",
)  # fmt: skip


def comparison_csv(comparison: Comparison) -> Iterator[str]:
    """A comparison as lines of CSV: one row per scorer, pair of runs and slice."""
    return csv_rows(COMPARISON_HEADER, map(_comparison_row, (*comparison.scorers, *comparison.slices)))


def _comparison_row(line: ScorerComparison) -> Sequence[Value]:
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    result = line.result
    difference, paired = result.difference, None if isinstance(result, UnpairedComparison) else result
    return (
        line.title, line.a, line.b, line.field, line.key, difference.n, result.mean_a, result.mean_b,
        difference.estimate, difference.low, difference.high, result.p_value, line.adjusted_p_value,
        *((None,) * 3 if paired is None else (paired.wins, paired.ties, paired.losses)),
        line.verdict, line.info.signature, result.test.name, result.missing,
        *((None,) * 2 if paired is None else (paired.max_change, paired.margin)),
        line.adjusted_equivalence, line.unpaired, line.unscored, line.of_both,
    )  # fmt: skip


SAVED_RUNS_HEADER = (
    "run", "folder", "started", "name", "tags", "dataset", "samples", "target", "trials", "judge", "scorer", "mean",
    "scale", "signature", "cost", "stop reason",
)  # fmt: skip


def saved_runs_csv(saved: SavedRuns) -> Iterator[str]:
    """Saved runs as lines of CSV: one row per run and scorer."""
    return csv_rows(SAVED_RUNS_HEADER, itertools.chain.from_iterable(map(_saved_run_rows, saved.rows)))


def _saved_run_rows(row: Mapping[str, Any]) -> Iterator[Sequence[Value]]:
    run = RunMetadata.of(row, str(row.get("id")))
    titles = scorer_titles([*map(ScorerInfo.of, run.scorers)])
    target, trials = (None, None) if run.target is None else (run.target.identity, run.target.trials)
    for scorer in run.scorers:
        yield (
            run.id, row.get("folder"), run.started, run.name, ", ".join(run.tags), run.dataset.name,
            run.dataset.samples, target, trials, run.judge.identity, titles[scorer.signature], scorer.mean,
            scorer.scale, scorer.signature, row.get("cost"), run.stop_reason,
        )  # fmt: skip


EXPERIMENT_HEADER = (
    "cell", "run", "dataset", "target", "scorer", "mean", "low", "high", "scale", "n_score", "n_skipped", "n_failed",
    "signature", "cost", "stop reason",
)  # fmt: skip


def experiment_csv(experiment: Experiment) -> Iterator[str]:
    """An experiment as lines of CSV: one row per cell and scorer."""
    rows = (_experiment_row(cell, run, line) for cell, run in experiment.runs.items() for line in run.summary)
    return csv_rows(EXPERIMENT_HEADER, rows)


def _experiment_row(cell: str, run: Run, line: ScorerSummary) -> Sequence[Value]:
    low, high = (None, None) if line.interval is None else (line.interval.low, line.interval.high)
    return (
        cell, run.id, run.dataset_name, None if run.target is None else run.target.identity,
        run.titles[line.info.signature], line.mean, low, high, line.info.scale, line.n_score, line.n_skipped,
        line.n_failed, line.info.signature, run.cost, run.stop_reason,
    )  # fmt: skip

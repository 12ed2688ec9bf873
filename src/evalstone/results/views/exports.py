"""Results with rows of data as CSV: one row per sample and scorer of a run, per scorer and slice of a comparison, per
run and scorer of several runs. Other results are written as their tables are: `report.csv`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone.report.csv import Value, csv_rows
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.results.views.samples import scored_answer, with_texts
from evalstone.types import OUTCOME_NAMES, Record, RunMetadata, Sample, Score

if TYPE_CHECKING:
    from evalstone.results.compare import Comparison, ScorerComparison
    from evalstone.results.run import Run
    from evalstone.results.several_runs import Experiment, SavedRuns
    from evalstone.results.summary import ScorerSummary

RUN_HEADER = (
    "sample_id", "scorer", "outcome", "value", "scale", "reason", "question", "answer", "group", "seconds", "cost",
    "signature", "weight", "trial",
)  # fmt: skip


def run_csv(run: Run) -> Iterator[str]:
    """A run as lines of CSV, in the order of the dataset if it is available."""
    keeps = bool(run.keeps_reasoning)
    rows = (
        _run_row(run.records[place], sample, keeps_reasoning=keeps)
        for places, sample in cases_of(run)
        for place in places
    )
    return csv_rows(RUN_HEADER, rows)


def cases_of(run: Run) -> Iterator[tuple[Sequence[int], Sample | None]]:
    """The places of the records of each sample and trial, with the sample if its texts are available."""
    cases = run.columns.by_case()
    case = next(cases, None)
    for sample in run.samples or ():
        if case is None:
            return
        name, places = case
        if (sample.id, sample.trial) == name:
            yield places, sample
            case = next(cases, None)
    # What is left is in another order than the data, or has no texts.
    left = dict(itertools.chain([case] if case else [], cases))
    for name, sample in with_texts(run.samples, left, key=lambda sample: (sample.id, sample.trial)):
        yield left[name], sample


def record_csv(record: Record) -> Iterator[str]:
    """A record as lines of CSV, with the columns of a run."""
    return csv_rows(RUN_HEADER, [_run_row(record, None)])


def _run_row(record: Record, sample: Sample | None, *, keeps_reasoning: bool = False) -> Sequence[Value]:
    outcome, answer = record.outcome, None
    if sample is not None and sample.output is not None:
        answer = scored_answer(sample, keeps_reasoning=keeps_reasoning).answer
    return (
        record.sample_id,
        record.scorer,
        OUTCOME_NAMES[type(outcome)],
        record.value,
        outcome.scale if isinstance(outcome, Score) else None,
        outcome.reason,
        None if sample is None else sample.input,
        answer,
        record.group,
        record.seconds,
        record.cost,
        record.signature,
        record.weight,
        record.trial,
    )


COMPARISON_HEADER = (
    "scorer", "a", "b", "field", "slice", "n", "mean a", "mean b", "difference", "low", "high", "p", "adjusted p",
    "wins", "ties", "losses", "verdict", "signature", "test", "missing", "max change", "margin", "equivalence p",
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
        line.adjusted_equivalence,
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

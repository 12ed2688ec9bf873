"""Saved runs and experiments as views: a row for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core.display import digits_for, limits, listed, money, number
from evalstone.report.view import FOOTER, Cell, Column, Section, View, bare_judges, table, words
from evalstone.results.summary import ScorerInfo, ScorerSummary, scorer_titles
from evalstone.types import Failed, RunMetadata, StoredScorer, StoredTarget

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.several_runs import Experiment, SavedRuns

RUNS = ("run", "started (UTC)", "name", "tags", "dataset", "target", "judge", "means")


def saved_runs_view(saved: SavedRuns) -> View:
    """Runs with the means of their scorers."""
    where = listed(saved.locations)
    if not saved.rows:
        return View(name=f"No runs found in {where}.", lead="", sections=())
    runs = table("Saved runs, latest first", [*map(words, RUNS)], _run_rows(saved))
    return View(name="Runs", lead=where, sections=(Section("", tables=(runs,)),), footer=FOOTER)


def _run_rows(saved: SavedRuns) -> Iterator[Sequence[Cell | str]]:
    runs = [RunMetadata.of(row, str(row.get("id"))) for row in saved.rows]
    judges = bare_judges(run.judge.identity for run in runs)
    for row, run in zip(saved.rows, runs, strict=True):
        yield _run_row(row, run, judges[run.judge.identity])


def _run_row(row: Mapping[str, Any], run: RunMetadata, judge: str) -> Sequence[Cell | str]:
    titles = scorer_titles([*map(ScorerInfo.of, run.scorers)])
    means = listed(f"{titles[scorer.signature]} {_mean(scorer)}" for scorer in run.scorers)
    return (
        row.get("folder") or run.id,
        run.started[:16].replace("T", " "),
        run.name,
        listed(run.tags),
        f"{run.dataset.name} ({run.dataset.samples:,})",
        "" if run.target is None else _target(run.target),
        judge,
        means + " (incomplete)" * bool(run.stop_reason or "cost" not in row),
    )


def _target(target: StoredTarget) -> str:
    """A target, and the number of trials."""
    return target.identity + (f" × {target.trials:,}" if target.trials > 1 else "")


def _mean(scorer: StoredScorer) -> str:
    """The mean of a scorer's summary, with its scale if that isn't 1."""
    scale = f" of {scorer.scale:g}" if scorer.scale != 1 and scorer.mean is not None else ""
    return number(scorer.mean, digits_for(scorer.scale)) + scale


def experiment_view(experiment: Experiment) -> View:
    """A row for each cell, and what went wrong in it."""
    runs = experiment.runs
    titles = list(dict.fromkeys(title for run in runs.values() for title in run.titles.values()))
    columns = (words("cell"), *map(words, titles), Column("failed", csv="n_failed"), Column("cost"))
    cells = table("Runs of the experiment", columns, (_cell_row(name, run, titles) for name, run in runs.items()))
    troubles = tuple(text for name, run in runs.items() for text in _troubles(name, run))
    return View(
        name="Experiment",
        lead=listed(dict.fromkeys(run.dataset_name for run in runs.values())),
        sections=(Section("", tables=(cells,), warnings=troubles),),
        footer=FOOTER,
    )


def _cell_row(name: str, run: Run, titles: Sequence[str]) -> Sequence[Cell | str]:
    means = {run.titles[line.info.signature]: _with_interval(line) for line in run.summary}
    return (name, *(means.get(title, "-") for title in titles), f"{run.n_failed:,}", money(run.cost))


def _with_interval(line: ScorerSummary) -> str:
    digits, interval = digits_for(line.info.scale), line.interval
    spread = "" if interval is None else f" ({limits(interval.low, interval.high, digits)})"
    return number(line.mean, digits) + spread


def _troubles(name: str, run: Run) -> Iterator[str]:
    """Why a cell ended early, and its most frequent error."""
    if run.stop_reason:
        yield f"{name} ended early: {run.stop_reason}"
    errors = Counter(record.outcome.error for record in run.records if isinstance(record.outcome, Failed))
    for error, times in errors.most_common(1):
        yield f"{name}: {times:,} × {error}"

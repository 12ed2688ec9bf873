"""The trials of a run as a section of its view: how often samples pass in one of k trials, and in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstone._core.display import count, digits_for, limits, listed, number
from evalstone.report.notes import clause_of
from evalstone.report.view import Column, Section, table, words

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.results.trials import Reliability

FLAKIEST = 5
"""The number of flakiest samples to name."""
TRIAL_INTERVALS = ("95% CI", "95% CI of pass^k")
"""The columns of `trial_table` with the interval of the one before."""


def trials_section(run: Run) -> Iterator[Section]:
    if results := trial_results(run):
        header, *rows = trial_table(results)
        columns = [words("scorer"), *map(_column, header[1:])]
        scores = table("Trials of each scorer", columns, rows)
        yield Section("Trials", tuple(trial_lead(results)), (scores,), notes=tuple(trial_notes(run, results)))


def _column(title: str) -> Column:
    interval = title in TRIAL_INTERVALS
    return Column(title, numeric=not interval, key=title == "k", interval=interval)


def trial_results(run: Run) -> list[Reliability]:
    """The results over several trials of each scorer; empty if there is one trial, or none has a score. Without scorers
    of which nobody knows which scores pass."""
    if run.trials < 2 or not run.records:
        return []
    unknown = {info.signature for info in _without_threshold(run)}
    return [result for result in run.reliability() if result.passes and result.info.signature not in unknown]


def _without_threshold(run: Run) -> list[ScorerInfo]:
    """The imported metrics without a threshold, of which even the scale is assumed."""
    assumed = {note.scorer for note in run.cautions if note.kind == "scale_assumed"}
    return [info for info in run.scorers if info.name in assumed and info.tool_threshold is None]


def trial_table(results: Sequence[Reliability]) -> list[tuple[str, ...]]:
    """The header, and a row for each scorer and k."""
    columns = (
        "scorer",
        "a trial passes at",
        "k",
        "pass@k",
        "95% CI",
        "pass^k",
        "95% CI of pass^k",
        "SD between samples",
        "SD between trials",
    )
    columns += ("SD of the judge",) * any(map(_is_repeated, results))
    return [columns, *(row[: len(columns)] for result in results for row in _rows(result))]


def _is_repeated(result: Reliability) -> bool:
    """Whether the judge's share is known, because its judgments were repeated."""
    return result.variance is not None and "trials" in result.variance.variances


def _rows(result: Reliability) -> Iterator[tuple[str, ...]]:
    digits = digits_for(result.info.scale)
    better = "at most" if result.info.lower_is_better else "at least"
    for index, one in enumerate(result.passes):
        spread: tuple[str, ...] = ("", "", "")
        if index == 0 and result.variance is not None:
            variances = result.variance.variances
            names = ("samples", "trials", "noise") if "trials" in variances else ("samples", "noise")
            spread = (*(number(variances[name].estimate ** 0.5, digits) for name in names), "")[:3]
        yield (
            result.title if index == 0 else "",
            f"{better} {number(result.threshold, digits)}" if index == 0 else "",
            f"{one.k}",
            number(one.at_least_one.estimate, 3),
            limits(one.at_least_one.low, one.at_least_one.high, 3),
            number(one.all.estimate, 3),
            limits(one.all.low, one.all.high, 3),
            *spread,
        )


def trial_lead(results: Sequence[Reliability]) -> Iterator[str]:
    """How many samples passed in every trial, in none, and in some."""
    for result in results:
        yield (
            f"{result.title}: {result.always:,} of {count(result.passes[0].all.n, 'sample')} passed in every trial, "
            f"{result.never:,} in none, {len(result.flaky):,} in some"
            + f"; {result.undecided:,} can't be told without the missing scores" * bool(result.undecided)
            + "."
        )


def trial_notes(run: Run, results: Sequence[Reliability]) -> Iterator[str]:
    """The flakiest samples, what the columns mean, and how trials without a score count."""
    for result in results:
        if result.flaky:
            flakiest = (f"{one.sample_id} ({one.passed} of {one.trials} passed)" for one in result.flaky[:FLAKIEST])
            yield f"{result.title}: flakiest: {listed(flakiest)}"
    for result in results:
        first, *others = result.passes
        for one in others:
            if one.all.n < first.all.n:
                of = f"k = {one.k} is over {one.all.n:,} of {first.all.n:,} samples"
                yield f"{result.title}: {of}; the rest have fewer trials"
    known = [result for result in results if result.variance is not None]
    repeated = any(map(_is_repeated, known))
    judged = run.judge != "none" and not all(map(_is_repeated, known))
    both = " where the scorer is not repeated" * repeated
    yield (
        "pass@k: at least one of k trials passes; pass^k: all k trials pass. A trial whose target failed counts as not "
        "passed."
        + f" The SD between trials includes the judge's own{both}." * judged
        + " The SD of the judge is that of a single judgment." * repeated
    )
    for result in results:
        if result.missing:
            counted = "count as not passed, and in the upper limits as passed"
            yield f"{result.title}: {count(result.missing, 'trial')} without a score {counted}"
    if unknown := _without_threshold(run):
        titles = listed(run.titles[info.signature] for info in unknown)
        yield f"{titles}: which scores pass isn't known, so that trials aren't counted"
    for result in known:
        if repeated and result.variance is not None:
            yield from (f"{result.title}: {clause_of(note)}" for note in result.variance.notes)

"""Sentences about a run that several reports share. Plain text: each report escapes it in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from evalstone.report.judging import judging_told
from evalstone.results.run import Run
from evalstone.results.summary import ScorerSummary


def heading(run: Run) -> str:
    """How many samples were judged, and by whom."""
    judged = f"{len({record.sample for record in run.records}):,} of " if run.stop_reason else ""
    return f"{judged}{run.samples:,} samples, judged by {run.judge}"


def ending(run: Run) -> str:
    """Why a run ended before its end, and what its numbers are then; empty where it did not."""
    told = f"The run ended before its end: {run.stop_reason}. The numbers are those of the samples that were judged."
    return told if run.stop_reason else ""


def notes(run: Run) -> list[str]:
    """What to keep in mind: what is missing and what it could change, that samples hang together, that they are few,
    and what judges made of judges did."""
    by_text: dict[str, list[str]] = {}
    for line in run.summary:
        for told in (*_missing(line), *_cautions(line)):
            by_text.setdefault(told, []).append(run.titles[line.info.signature])
    everyone = len(run.scorers) > 1
    told_of = [
        f"all scorers: {told}" if everyone and len(titles) == len(run.scorers) else f"{', '.join(titles)}: {told}"
        for told, titles in by_text.items()
    ]
    return [*told_of, *judging_told(run.judge_stats)]


def _missing(line: ScorerSummary) -> Iterator[str]:
    """What the mean would be if all the missing were worst or best."""
    if line.bounds is not None:
        missing = line.skipped + line.failed
        low, high = line.bounds
        digits = 3 if line.info.scale <= 1 else 2
        yield (
            f"{missing} of {line.scored + missing} have no score; with them the mean would lie between "
            f"{low:.{digits}f} and {high:.{digits}f}, whatever they are"
        )


def _cautions(line: ScorerSummary) -> Iterator[str]:
    interval = line.interval
    if interval is not None and interval.groups is not None:
        yield f"samples of one group hang together; the interval reckons with {interval.groups} groups"
    if interval is not None and interval.caution:
        yield interval.caution


def absences(line: ScorerSummary) -> Iterator[tuple[str, int]]:
    """The most frequent reasons of skips and failures, and how many outcomes other reasons have."""
    yield from line.reasons
    told = sum(count for _, count in line.reasons)
    if (rest := line.skipped + line.failed - told) > 0 and line.reasons:
        yield "other reasons", rest


def footing(run: Run) -> str:
    """Where the numbers come from."""
    return f"Made by evalstone from run {run.id}. Everything behind these numbers is in its records."

"""What a run says besides its numbers: what they leave out, what they rest on, and why to doubt them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evalstone._core.redaction import REPEATED_SECRETS
from evalstone.types import Note, note, of_scorer

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerSummary
    from evalstone.stats.intervals import Interval

DROPPED_ITEMS = "ungrounded items dropped"
LEFT_OUT_REASONING, KEPT_REASONING = "reasoning left out of outputs", "reasoning kept in outputs"
"""The warnings about outputs that begin with a model's reasoning."""
DOUBTFUL_CITATIONS = "doubtful citations"
"""The warning about results with a citation that doesn't fit its claim."""
REFUSED, MALFORMED, TIMEOUTS = " refused", "malformed replies", "timeouts"
"""The warnings about settings that endpoints refused end in the first."""
NOTED = (LEFT_OUT_REASONING, KEPT_REASONING, DROPPED_ITEMS, DOUBTFUL_CITATIONS, REPEATED_SECRETS, REFUSED)
"""The ends of warnings that have a note."""
MOST_ESCALATED = 0.95
"""The share of escalated questions up to which a cascade saves something."""
FEWEST_QUESTIONS = 20
"""The smallest number of questions in which a share above MOST_ESCALATED is not by chance."""


def reasoning_kept(warnings: Mapping[str, int]) -> bool | None:
    """Whether the reasoning in front of outputs was scored, by a run's warnings; None if no output begins with any."""
    return True if KEPT_REASONING in warnings else False if LEFT_OUT_REASONING in warnings else None


def doubts_of(run: Run) -> Iterator[Note]:
    """Why its numbers are doubtful or incomplete, for the whole run."""
    if run.stop_reason:
        yield note("run_ended_early", "warning", reason=run.stop_reason)
    if run.n_failed:
        yield note("results_failed", "warning", results=run.n_failed)
    if run.target is not None and run.target.note:
        yield note("of_target", "warning", text=run.target.note)
    if run.target is not None and run.target.replaced:
        yield note("outputs_replaced", samples=run.target.replaced)
    yield from run.cautions
    for warning, times in run.warnings.items():
        if warning.endswith(REFUSED):
            yield note("setting_refused", "warning", setting=warning.removesuffix(REFUSED), answers=times)
    for judge, counts in run.judge_stats.items():
        if counts["kind"] == "cascade" and counts["questions"] >= FEWEST_QUESTIONS and counts["share"] > MOST_ESCALATED:
            yield note(
                "escalates_nearly_all", "warning", judge=judge, share=counts["share"], questions=counts["questions"]
            )
    for warning, kept in ((LEFT_OUT_REASONING, False), (KEPT_REASONING, True)):
        if times := run.warnings.get(warning):
            yield reasoning_note(times, kept=kept)
    for kind, warning in (
        ("items_dropped", DROPPED_ITEMS),
        ("citations_doubtful", DOUBTFUL_CITATIONS),
        ("secrets_repeated", REPEATED_SECRETS),
    ):
        if times := run.warnings.get(warning):
            yield note(kind, "warning", times=times)


def reasoning_note(outputs: int | None, *, kept: bool) -> Note:
    """That outputs begin with a model's reasoning, and whether it is scored. outputs: their number; None if unknown."""
    return note("reasoning_kept" if kept else "reasoning_left_out", "warning", outputs=outputs)


def scores_note(line: ScorerSummary, title: str, trials: int) -> Iterator[Note]:
    """What a mean would be with the missing scores, clusters and weights, and why to doubt the interval."""
    if line.bounds is not None:
        missing = line.n_skipped + line.n_failed
        yield note(
            "scores_missing",
            "caution",
            title,
            missing=missing,
            of=line.n_score + missing,
            noun="sample" if trials == 1 else "trial",
            bounds=line.bounds,
            scale=line.info.scale,
        )
    if line.interval is not None:
        yield from sample_notes(line.interval, title, trials)
        yield from of_scorer(line.interval.notes, title)


def sample_notes(interval: Interval, title: str = "", trials: int = 1) -> Iterator[Note]:
    """Whether samples are clustered or weighted. trials: the number of trials of each sample."""
    if interval.groups is not None:
        yield note("clustered", "fact", title, clusters=interval.groups, trials=trials)
    if interval.effective is not None:
        yield note("weighted", "fact", title, samples=interval.n, effective=interval.effective)

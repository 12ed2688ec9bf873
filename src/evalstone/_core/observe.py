"""Hooks through which the engine reports its operations to an observer: `evalstone.otel`, by default none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from evalstone.judges.base import Judge
    from evalstone.questions.answers import JudgeAnswer
    from evalstone.questions.base import Question
    from evalstone.results.run import Run
    from evalstone.run.plan import Plan
    from evalstone.scorers import Scorer
    from evalstone.targets import Answer, Target
    from evalstone.types import JudgeCall, Record, Sample, Usage

R = TypeVar("R")


class Observed(Generic[R]):
    """An observed operation: a context manager, entered at its start and exited when it ends, fails or is canceled."""

    trace: Mapping[str, str] | None = None
    """The trace that records it, in the form of `sample.metadata["trace"]`; None if it isn't recorded."""

    def __enter__(self) -> Observed[R]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        """The operation has ended, or failed with this error."""

    def result(self, result: R) -> None:
        """Report the result. Without this call, the operation failed or was canceled."""


class Observer:
    """Observes runs, scores and calls. This base class ignores them."""

    def run(self, run: str, plan: Plan) -> Observed[Run]:
        """A run of a plan. run: the run's ID."""
        return _UNOBSERVED

    def score(self, scorer: Scorer, sample: Sample) -> Observed[Record]:
        """The scoring of a sample."""
        return _UNOBSERVED

    def judge_call(self, judge: Judge, question: Question[Any], repeat: int) -> Observed[JudgeAnswer[Any]]:
        """A judge call: a paid call, or a call to a composite judge, which calls its members."""
        return _UNOBSERVED

    def reused_call(self, call: JudgeCall) -> None:
        """A judge call that wasn't made, because its answer was shared or cached."""

    def batched_call(self, judge: Judge, usage: Usage, cost: float | None) -> None:
        """A judge call completed by a provider batch, with an answer or a final failure, and its usage and cost."""

    def target_call(self, target: Target, sample: Sample, *, conversation: bool = False) -> Observed[Answer]:
        """A call to a target. conversation: the operation spans a conversation, whose turns are separate calls."""
        return _UNOBSERVED

    def headers(self) -> Mapping[str, str]:
        """HTTP headers that propagate the current trace to another process."""
        return {}


_UNOBSERVED: Observed[Any] = Observed()
NOBODY = Observer()
_current = NOBODY


def observer() -> Observer:
    """The observer of this process."""
    return _current


def observe(by: Observer) -> Observer:
    """Set the observer of this process, and return the previous one."""
    global _current
    previous, _current = _current, by
    return previous

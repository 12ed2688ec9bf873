"""Where the engine says what goes on, for whoever observes it: `evalstone.otel`. By default nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from evalstone.judges.base import Judge
    from evalstone.questions.base import JudgeAnswer, Question
    from evalstone.results.run import Run
    from evalstone.run.plan import Plan
    from evalstone.scorers import Scorer
    from evalstone.targets import Answer, Target
    from evalstone.types import JudgeCall, Record, Sample, Usage

R = TypeVar("R")


class Observed(Generic[R]):
    """Something that goes on, as a context: entered where it begins, left where it ends, fails or is canceled."""

    trace: Mapping[str, str] | None = None
    """Where it is recorded, as `sample.metadata["trace"]` says it; None if it is not."""

    def __enter__(self) -> Observed[R]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        """It has ended, or is broken off by this error."""

    def result(self, result: R) -> None:
        """What came of it. Without this, it has failed or was canceled."""


class Observer:
    """Observes runs, scores and calls. This one doesn't."""

    def run(self, run: str, plan: Plan) -> Observed[Run]:
        """A plan being run. run: its ID."""
        return _UNOBSERVED

    def score(self, scorer: Scorer, sample: Sample) -> Observed[Record]:
        """One sample being scored."""
        return _UNOBSERVED

    def judge_call(self, judge: Judge, question: Question[Any], repeat: int) -> Observed[JudgeAnswer[Any]]:
        """A judge being asked: a call that is paid for, or a composite judge that asks its members."""
        return _UNOBSERVED

    def cached_call(self, call: JudgeCall) -> None:
        """A question whose answer had been paid for before, or is paid for by another call."""

    def batched_call(self, judge: Judge, usage: Usage, cost: float | None) -> None:
        """A question to which a batch has brought the answer, or its last failure, and what that took."""

    def target_call(self, target: Target, sample: Sample, *, conversation: bool = False) -> Observed[Answer]:
        """A target being asked. conversation: for all turns of a conversation, each of which is a call of its own."""
        return _UNOBSERVED

    def headers(self) -> Mapping[str, str]:
        """What tells another process the trace that it is part of: HTTP headers."""
        return {}


_UNOBSERVED: Observed[Any] = Observed()
NOBODY = Observer()
_current = NOBODY


def observer() -> Observer:
    """Who observes this process."""
    return _current


def observe(by: Observer) -> Observer:
    """Have this process observed by somebody else; by whom it was until now."""
    global _current
    before, _current = _current, by
    return before

"""A cascade: a cheap judge answers, and an expensive one where the cheap one is unsure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from evalstone._core.sync import blocking
from evalstone.errors import ConfigError, JudgeError
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite
from evalstone.judges.fitting import CascadeFit, LabelledQuestion, fit_threshold, judged_cases
from evalstone.judges.settings import Range, check_settings, require_judge
from evalstone.questions.base import Answer, Question, item_confidences

A = TypeVar("A")


@dataclass(frozen=True)
class Cascade(Composite):
    """Asks `primary`, and `fallback` if the primary's confidence is below `threshold`.

    An answer without confidence, and a question that the primary can't answer, go to the fallback; an error that ends a
    run is raised. If a question has several items and the primary is confident in some, only the others go to the
    fallback, in a question of their own. What the fallback answers stands, and its error is the cascade's.

    Confidence: the primary's if its answer was kept, else the fallback's; the lower of both if items were divided.
    `Answer.detail` has `escalated`, the share of the question that went to the fallback, in [0, 1], `items`, their
    numbers from 1 if they were divided, the primary's `confidence`, and `why`.

    Raises ConfigError for two equal judges, or a threshold outside [0, 1].
    """

    primary: Judge
    fallback: Judge
    threshold: Annotated[float, Range(0, 1)] = 0.9

    def __post_init__(self) -> None:
        require_judge("a cascade's primary", self.primary)
        require_judge("a cascade's fallback", self.fallback)
        if self.primary.identity == self.fallback.identity:
            raise ConfigError(f"{self.primary.identity} is twice in the cascade")
        check_settings(self)
        object.__setattr__(self, "threshold", float(self.threshold))
        self.derive()

    @property
    def members(self) -> tuple[Judge, ...]:
        return (self.primary, self.fallback)

    @property
    def identity(self) -> str:
        """Both judges' identities and the threshold."""
        return f"cascade({self.primary.identity}, {self.fallback.identity}, threshold={self.threshold!r})"

    @property
    def description(self) -> str:
        return (
            f"a cascade: {self.fallback.identity} is asked where {self.primary.identity} is less than "
            f"{self.threshold:g} sure"
        )

    async def decide(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        try:
            first = await ask(self.primary, question)
        except JudgeError as error:
            return await self._escalated(question, ask, None, f"it gave no answer: {error}")
        confidence = first.confidence
        if confidence is not None and confidence >= self.threshold:
            return self.combined(ask, first.value, confidence, self._detail(0.0, confidence, "it was sure enough"))
        unsure = self._unsure_items(question, first)
        if unsure is None:
            why = "it gave no confidence" if confidence is None else "it was not sure enough"
            return await self._escalated(question, ask, confidence, why)
        return await self._divided(question, ask, first, unsure)

    async def _escalated(self, question: Question[A], ask: AskJudge, confidence: float | None, why: str) -> Answer[A]:
        second = await self._fall_back(question, ask)
        return self.combined(ask, second.value, second.confidence, self._detail(1.0, confidence, why))

    async def _fall_back(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        try:
            return await ask(self.fallback, question)
        except JudgeError as error:
            raise self.failure(ask, str(error), [error]) from None

    def _unsure_items(self, question: Question[Any], first: Answer[Any]) -> list[int] | None:
        """The positions of the items for the fallback; None to ask it the whole question."""
        confidences = item_confidences(question, first)
        if confidences is None:
            return None
        unsure = [place for place, each in enumerate(confidences) if each is None or each < self.threshold]
        return unsure if 0 < len(unsure) < len(confidences) else None

    async def _divided(
        self, question: Question[A], ask: AskJudge, first: Answer[A], unsure: Sequence[int]
    ) -> Answer[A]:
        name = cast(str, question.divisible_by)
        items: Sequence[str] = getattr(question, name)
        rest: Question[Any] = dataclasses.replace(question, **{name: tuple(items[place] for place in unsure)})
        second = await self._fall_back(rest, ask)
        verdicts = list(cast("tuple[Any, ...]", first.value))
        for place, verdict in zip(unsure, cast("tuple[Any, ...]", second.value), strict=True):
            verdicts[place] = verdict
        sure = [each for place, each in enumerate(item_confidences(question, first) or ()) if place not in unsure]
        confidences = [each for each in (*sure, second.confidence) if each is not None]
        detail = self._detail(len(unsure) / len(items), first.confidence, "it was not sure enough of these items")
        return self.combined(
            ask,
            cast(A, tuple(verdicts)),
            None if second.confidence is None else min(confidences),
            {**detail, "items": [place + 1 for place in unsure]},
        )

    def _detail(self, escalated: float, confidence: float | None, why: str) -> Mapping[str, Any]:
        return {
            "kind": "cascade",
            "escalated": escalated,
            "below": self.threshold,
            "confidence": confidence,
            "why": why,
            "first": self.primary.identity,
            "then": self.fallback.identity,
        }

    async def afit(
        self,
        labels: Iterable[LabelledQuestion],
        *,
        accuracy: float | None = None,
        escalated: float | None = None,
        ask: AskJudge | None = None,
    ) -> CascadeFit:
        """Choose the threshold on labeled questions: `dataclasses.replace(cascade, threshold=fit.threshold)`.

        Args:
            labels: questions with the right verdicts. Both judges are asked all of them.
            accuracy: the share of right verdicts to reach, in [0, 1]; the threshold that reaches it and escalates least
                is chosen.
            escalated: the share of verdicts that may be escalated; the most accurate threshold within it is chosen.
                Without either, the most accurate one; of equals the one that escalates least.
            ask: how the judges are asked, such as through a run's ledger (`fit_cascade`); None asks them directly.

        Raises:
            ConfigError: no threshold reaches what is asked for; the message says how far it goes.
            DataError: a label doesn't fit its question.
        """
        async with self.opened():
            cases, unanswered = await judged_cases(self.primary, self.fallback, labels, ask)
        return fit_threshold(cases, accuracy=accuracy, escalated=escalated, unanswered=unanswered)

    fit = blocking(afit)

"""A cascade: a cheap judge answers, and a dear one where the cheap one is unsure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from evalstone._core.sync import blocking
from evalstone.errors import ConfigError, JudgeError
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite, Hearing
from evalstone.judges.fitting import CascadeFit, LabelledQuestion, fit_threshold, judged_cases
from evalstone.judges.providers.settings import is_number
from evalstone.questions.base import Answer, Question, item_confidences

A = TypeVar("A")


@dataclass(frozen=True)
class Cascade(Composite):
    """Asks `first`, and `then` where the first one's confidence is below `below`, in [0, 1].

    No confidence is below every threshold, and so is an answer that the first could not give; an error that ends a run
    is raised. Where a question has several items and the first says how sure it is of each, only the
    unsure items are put to `then`, in a question of their own. What `then` answers stands, and its error is the
    cascade's.

    Confidence: the first's where it was kept, else that of `then`; the lower of both where items were divided.
    `Answer.detail` has `escalated`, the share of the question that went to `then`, in [0, 1], `items`, their numbers
    from 1 where they were divided, the first's `confidence`, and `why`. A run's summary says what share was escalated
    and what it saved. Raises ConfigError for two equal judges, or a threshold outside [0, 1].
    """

    first: Judge
    then: Judge
    below: float = 0.9

    def __post_init__(self) -> None:
        for name, judge in (("first", self.first), ("then", self.then)):
            if not isinstance(judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"a cascade's {name} must be a Judge, not {type(judge).__name__}")
        if self.first.identity == self.then.identity:
            raise ConfigError(f"{self.first.identity} is twice in the cascade")
        if not is_number(self.below) or not 0 <= self.below <= 1:
            raise ConfigError(f"below must be a number from 0 to 1, not {self.below!r}")
        object.__setattr__(self, "below", float(self.below))
        self.settled()

    @property
    def members(self) -> tuple[Judge, ...]:
        return (self.first, self.then)

    @property
    def identity(self) -> str:
        """Both judges' identities and the threshold."""
        return f"cascade({self.first.identity}, {self.then.identity}, below={self.below!r})"

    @property
    def manner(self) -> str:
        return f"a cascade: {self.then.identity} is asked where {self.first.identity} is less than {self.below:g} sure"

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        hearing = Hearing(self, ask)
        try:
            early = await hearing.ask(self.first, question)
        except JudgeError as error:
            return await self._whole(hearing, question, None, f"it gave no answer: {error}")
        confidence = early.confidence
        if confidence is not None and confidence >= self.below:
            detail = self._detail(0.0, confidence, "it was sure enough")
            return hearing.answered(early.value, confidence=confidence, detail=detail)
        unsure = self._unsure(question, early)
        if unsure is None:
            why = "it gave no confidence" if confidence is None else "it was not sure enough"
            return await self._whole(hearing, question, confidence, why)
        return await self._divided(hearing, question, early, unsure)

    async def _whole(self, hearing: Hearing, question: Question[A], confidence: float | None, why: str) -> Answer[A]:
        late = await self._then(hearing, question)
        return hearing.answered(late.value, confidence=late.confidence, detail=self._detail(1.0, confidence, why))

    async def _then(self, hearing: Hearing, question: Question[A]) -> Answer[A]:
        try:
            return await hearing.ask(self.then, question)
        except JudgeError as error:
            raise hearing.failure(str(error), [error]) from None

    def _unsure(self, question: Question[Any], early: Answer[Any]) -> list[int] | None:
        """The places of the items to ask `then`; None where the question cannot be divided, or all of it is unsure."""
        known = item_confidences(question, early)
        if known is None:
            return None
        unsure = [place for place, one in enumerate(known) if one is None or one < self.below]
        return unsure if 0 < len(unsure) < len(known) else None

    async def _divided(
        self, hearing: Hearing, question: Question[A], early: Answer[A], unsure: Sequence[int]
    ) -> Answer[A]:
        material = cast(str, question.divisible_by)
        items: Sequence[str] = getattr(question, material)
        asked: Question[Any] = dataclasses.replace(question, **{material: tuple(items[place] for place in unsure)})
        late = await self._then(hearing, asked)
        merged = list(cast("tuple[Any, ...]", early.value))
        for place, verdict in zip(unsure, cast("tuple[Any, ...]", late.value), strict=True):
            merged[place] = verdict
        detail = self._detail(len(unsure) / len(items), early.confidence, "it was not sure enough of these items")
        kept = [one for place, one in enumerate(item_confidences(question, early) or ()) if place not in unsure]
        known = [one for one in (*kept, late.confidence) if one is not None]
        confidence = None if late.confidence is None else min(known)
        detail = {**detail, "items": [place + 1 for place in unsure]}
        return hearing.answered(cast(A, tuple(merged)), confidence=confidence, detail=detail)

    def _detail(self, escalated: float, confidence: float | None, why: str) -> Mapping[str, Any]:
        told = {"kind": "cascade", "escalated": escalated, "below": self.below, "confidence": confidence, "why": why}
        return {**told, "first": self.first.identity, "then": self.then.identity}

    async def afit(
        self,
        labels: Iterable[LabelledQuestion],
        *,
        accuracy: float | None = None,
        escalated: float | None = None,
        ask: AskJudge | None = None,
    ) -> CascadeFit:
        """Choose the threshold on labelled questions: `CascadeFit.below`, with what it comes to on these labels.

        labels: questions with the right verdicts. Both judges are asked all of them, by `ask` (a run's ledger:
        `fit_cascade`). accuracy: the share of right verdicts that is wanted, in [0, 1]; the threshold that escalates
        least and reaches it is taken. escalated: the share of verdicts that may be escalated at most; the most accurate
        threshold within is taken. Without either: the most accurate one; of equals the one that escalates least.
        Raises ConfigError when nothing reaches what is wanted, saying how far it goes, and DataError for labels that do
        not fit their questions.
        """
        async with self.opened():
            cases, unanswered = await judged_cases(self.first, self.then, labels, ask)
        return fit_threshold(cases, accuracy=accuracy, escalated=escalated, unanswered=unanswered)

    fit = blocking(afit)

    def at(self, below: float) -> Cascade:
        """The same two judges with another threshold."""
        return dataclasses.replace(self, below=below)

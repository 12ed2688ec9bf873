"""Cascade: an expensive judge answers what a cheap judge is unsure about. How to fit the confidence threshold.

    accuracy(t)  = share of verdicts that are right, the primary judge's where its confidence is at least t, else the
                   fallback's                                 range [0, 1], higher is better
    escalated(t) = share of verdicts whose confidence is below t, or that have none        range [0, 1]

On the labels that were used to choose the threshold, these numbers are slightly optimistic. Ten-fold cross-validation
therefore estimates them as well: the threshold is chosen on nine tenths of the questions and measured on the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import reprlib
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from evalstone._core.sync import blocking
from evalstone.errors import ConfigError, DataError, JudgeError
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite
from evalstone.judges.settings import Range, check_settings, is_number, require_judge
from evalstone.questions.base import JudgeAnswer, Question, answer_type, item_confidences
from evalstone.questions.reply import LabelOrder, label_orders

A = TypeVar("A")

AT_ONCE = 16
FOLDS = 10


@dataclass(frozen=True)
class Cascade(Composite):
    """Asks `primary`, and `fallback` if the primary's confidence is below `threshold`.

    An answer without confidence, and a question that the primary can't answer, go to the fallback. An error that ends a
    run is raised. If a question has several items and the primary is confident in some, only the others go to the
    fallback, in a separate question. The fallback's answer is final, and its error is the cascade's error.

    Confidence: the primary's if its answer was used, otherwise the fallback's; the lower of both if items were split.
    `JudgeAnswer.detail` has `escalated`, the share of the question that went to the fallback, in [0, 1], `items`, their
    numbers from 1 if they were split, the primary's `confidence`, and `why`.

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
        self.derive(self.primary, self.fallback)

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

    async def decide(self, question: Question[A], ask: AskJudge) -> JudgeAnswer[A]:
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

    async def _escalated(
        self, question: Question[A], ask: AskJudge, confidence: float | None, why: str
    ) -> JudgeAnswer[A]:
        second = await self._fall_back(question, ask)
        return self.combined(ask, second.value, second.confidence, self._detail(1.0, confidence, why))

    async def _fall_back(self, question: Question[A], ask: AskJudge) -> JudgeAnswer[A]:
        try:
            return await ask(self.fallback, question)
        except JudgeError as error:
            raise self.failure(ask, str(error), [error]) from None

    def _unsure_items(self, question: Question[Any], first: JudgeAnswer[Any]) -> list[int] | None:
        """The positions of the items for the fallback; None to ask it the whole question."""
        confidences = item_confidences(question, first)
        if confidences is None:
            return None
        unsure = [place for place, each in enumerate(confidences) if each is None or each < self.threshold]
        return unsure if 0 < len(unsure) < len(confidences) else None

    async def _divided(
        self, question: Question[A], ask: AskJudge, first: JudgeAnswer[A], unsure: Sequence[int]
    ) -> JudgeAnswer[A]:
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
            "threshold": self.threshold,
            "confidence": confidence,
            "why": why,
            "primary": self.primary.identity,
            "fallback": self.fallback.identity,
        }

    async def afit(
        self,
        labels: Iterable[LabeledQuestion],
        *,
        accuracy: float | None = None,
        escalated: float | None = None,
        ask: AskJudge | None = None,
    ) -> CascadeFit:
        """Choose the threshold on labeled questions: `dataclasses.replace(cascade, threshold=fit.threshold)`.

        Without `accuracy` and `escalated`, the most accurate threshold is chosen. Ties go to the one that escalates
        least.

        Args:
            labels: questions with the right verdicts. Both judges answer all of them.
            accuracy: the required share of right verdicts, in [0, 1]. Of the thresholds that reach it, the one that
                escalates least is chosen.
            escalated: the maximum share of escalated verdicts, in [0, 1]. Of the thresholds within it, the most
                accurate one is chosen.
            ask: how the judges are called, such as through a run's ledger (`fit_cascade`); None calls them directly.

        Raises:
            ConfigError: no threshold meets the requirement; the message gives the best possible value.
            DataError: a label doesn't fit its question.
        """
        async with self.opened():
            cases, unanswered = await judged_cases(self.primary, self.fallback, labels, ask)
        return fit_threshold(cases, accuracy=accuracy, escalated=escalated, unanswered=unanswered)

    fit = blocking(afit)


@dataclass(frozen=True)
class LabeledQuestion:
    """A question and its right verdicts.

    verdicts: one verdict, such as "yes"; True stands for the most favorable verdict and False for any other. For a
    question about several items (claims, criteria), a list with one verdict for each.
    """

    question: Question[Any]
    verdicts: Any

    @property
    def expected(self) -> tuple[Any, ...]:
        """The right verdict on each item, or the single verdict."""
        verdicts = self.verdicts
        return tuple(cast("Sequence[Any]", verdicts)) if isinstance(verdicts, list | tuple) else (verdicts,)


@dataclass(frozen=True)
class Case:
    """One labeled verdict: the primary's confidence in it (None without one), and which judge was right.

    question: whose it is, by fingerprint; verdicts of one question are held out together. Blank for one by itself.
    """

    confidence: float | None
    primary: bool
    fallback: bool
    question: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """The results with one threshold: shares in [0, 1] of the labeled verdicts."""

    threshold: float
    accuracy: float
    escalated: float


@dataclass(frozen=True)
class CascadeFit:
    """A threshold, and what it was chosen from.

    accuracy, escalated: with the threshold, on the labels it was chosen on. primary, fallback: the accuracy of each
    judge alone. verdicts: how many labeled ones were judged. unanswered: how many more the fallback didn't answer; they
    count nowhere. curve: every threshold that makes a difference, in rising order. held_out, held_out_escalated:
    accuracy and share escalated on labels that had no part in the choice (cross-validated), what to expect of others
    like them; None for a single question.
    """

    threshold: float
    accuracy: float
    escalated: float
    primary: float
    fallback: float
    verdicts: int
    curve: tuple[CurvePoint, ...]
    unanswered: int = 0
    held_out: float | None = None
    held_out_escalated: float | None = None

    def __str__(self) -> str:
        message = f"threshold={self.threshold!r}: accuracy {self.accuracy:.3f} with {self.escalated:.1%} escalated"
        if self.held_out is not None and self.held_out_escalated is not None:
            message += f" ({self.held_out:.3f} with {self.held_out_escalated:.1%} on held-out labels)"
        counts = f"{self.verdicts} labeled verdicts" + (f", {self.unanswered} unanswered" if self.unanswered else "")
        return f"{message}; primary alone {self.primary:.3f}, fallback alone {self.fallback:.3f} ({counts})"


def fit_threshold(
    cases: Sequence[Case], *, accuracy: float | None = None, escalated: float | None = None, unanswered: int = 0
) -> CascadeFit:
    """The threshold for a wanted accuracy, or for a share that may be escalated at most, or the most accurate one.

    Raises ConfigError without cases, for a wish outside [0, 1], and when no threshold meets it.
    """
    for name, wish in (("accuracy", accuracy), ("escalated", escalated)):
        if wish is not None and (not is_number(wish) or not 0 <= wish <= 1):
            raise ConfigError(f"{name} must be a number from 0 to 1, not {wish!r}")
    if not cases:
        raise ConfigError("a threshold needs labeled verdicts that both judges answered, and there is none")
    curve = thresholds(cases)
    within = [one for one in curve if escalated is None or one.escalated <= escalated]
    if not within:
        least = min(one.escalated for one in curve)
        raise ConfigError(f"no threshold escalates {escalated:.1%} or less; {least:.1%} have no confidence at all")
    best = max(within, key=lambda one: one.accuracy)
    if accuracy is not None and best.accuracy < accuracy:
        raise ConfigError(
            f"no threshold reaches an accuracy of {accuracy:g}; the best is {best.accuracy:.3f} at "
            f"threshold={best.threshold:g}"
        )
    chosen = _chosen(curve, accuracy, escalated)
    held_out = _held_out(cases, accuracy, escalated)
    return CascadeFit(
        threshold=chosen.threshold,
        accuracy=chosen.accuracy,
        escalated=chosen.escalated,
        primary=sum(case.primary for case in cases) / len(cases),
        fallback=sum(case.fallback for case in cases) / len(cases),
        verdicts=len(cases),
        curve=curve,
        unanswered=unanswered,
        held_out=None if held_out is None else held_out.accuracy,
        held_out_escalated=None if held_out is None else held_out.escalated,
    )


def _chosen(curve: Sequence[CurvePoint], accuracy: float | None, escalated: float | None) -> CurvePoint:
    """The threshold that a wish asks for; the nearest to it where none meets it."""
    within = [one for one in curve if escalated is None or one.escalated <= escalated] or curve[:1]
    reaching = [one for one in within if accuracy is None or one.accuracy >= accuracy]
    reaching = reaching or [max(within, key=lambda one: one.accuracy)]
    return min(reaching, key=lambda one: (-one.accuracy if accuracy is None else 0, one.escalated, -one.accuracy))


def _held_out(cases: Sequence[Case], accuracy: float | None, escalated: float | None) -> CurvePoint | None:
    """What thresholds come to that are chosen without the cases they are held against; None with one question only."""
    names = [case.question or str(place) for place, case in enumerate(cases)]
    # By their fingerprints, so that the order of the labels makes no difference.
    order = {name: place for place, name in enumerate(sorted(set(names)))}
    folds = min(FOLDS, len(order))
    if folds < 2:
        return None
    right = moved = 0
    for fold in range(folds):
        out = [order[name] % folds == fold for name in names]
        kept = [case for case, is_out in zip(cases, out, strict=True) if not is_out]
        threshold = _chosen(thresholds(kept), accuracy, escalated).threshold
        for case in (case for case, is_out in zip(cases, out, strict=True) if is_out):
            on = case.confidence is None or case.confidence < threshold
            moved += on
            right += case.fallback if on else case.primary
    return CurvePoint(0.0, right / len(cases), moved / len(cases))


def thresholds(cases: Sequence[Case]) -> tuple[CurvePoint, ...]:
    """Every threshold that divides the cases in another way, from 0 up, with what it comes to; at least one case.

    They are 0, each confidence that was given (which keeps the cases that have it), and 1, which escalates all that is
    not certain.
    """
    count = len(cases)
    right = sum(case.fallback if case.confidence is None else case.primary for case in cases)
    moved = sum(case.confidence is None for case in cases)
    gains = [(case.confidence, case.fallback - case.primary) for case in cases if case.confidence is not None]
    gains.sort(reverse=True)
    results = [CurvePoint(0.0, right / count, moved / count)]
    for threshold in sorted({*(confidence for confidence, _ in gains), 1.0} - {0.0}):
        while gains and gains[-1][0] < threshold:
            right += gains.pop()[1]
            moved += 1
        results.append(CurvePoint(threshold, right / count, moved / count))
    return tuple(results)


async def judged_cases(
    primary: Judge, fallback: Judge, labels: Iterable[LabeledQuestion], ask: AskJudge | None
) -> tuple[list[Case], int]:
    """Both judges' answers to labeled questions, a case a verdict, and how many verdicts the fallback didn't give.

    What the primary can't answer is a case without confidence. Raises DataError for labels that do not fit.
    """
    # A run's own way to the judges has its own bound.
    gate = asyncio.Semaphore(AT_ONCE) if ask is None else contextlib.nullcontext()
    put = AskJudge() if ask is None else ask

    async def tried(judge: Judge, question: Question[Any]) -> JudgeAnswer[Any] | None:
        async with gate:
            try:
                return await put(judge, question)
            except JudgeError:
                return None

    async def both(label: LabeledQuestion) -> tuple[list[Case], int]:
        early, late = await asyncio.gather(tried(primary, label.question), tried(fallback, label.question))
        return ([], len(label.expected)) if late is None else (cases_of(label, early, late), 0)

    listed = list(labels)
    for number, label in enumerate(listed, start=1):
        _check(label, number)
    results = await asyncio.gather(*map(both, listed))
    return [case for cases, _ in results for case in cases], sum(missing for _, missing in results)


def cases_of(label: LabeledQuestion, early: JudgeAnswer[Any] | None, late: JudgeAnswer[Any]) -> list[Case]:
    """The cases in two answers to one labeled question. Raises DataError when the label does not fit the question."""
    fallback, name = _right(label, late.value), label.question.fingerprint
    if early is None:
        return [Case(None, False, right, name) for right in fallback]
    sure = item_confidences(label.question, early) or (early.confidence,) * len(fallback)
    return [Case(*case, name) for case in zip(sure, _right(label, early.value), fallback, strict=True)]


def _check(label: object, number: int) -> None:
    """Raise DataError for a label that can be seen not to fit before anything is asked."""
    if not isinstance(label, LabeledQuestion):
        raise DataError(f"labels must be LabeledQuestion values, not {type(label).__name__}")
    question = label.question
    items = len(getattr(question, question.divisible_by)) if question.divisible_by else 1
    if items != len(label.expected):
        message = f"{items} verdicts, {len(label.expected)} labels: {reprlib.repr(label.verdicts)}"
        raise DataError(f"label {number}: {question.kind}: {message}")
    answers = answer_type(type(question))
    kind = typing.get_args(answers)[0] if question.divisible_by else answers
    for truth in label.expected:
        _is_right(None, kind, truth, question, f"label {number}: ")


def _right(label: LabeledQuestion, value: Any) -> list[bool]:
    """Whether each verdict in an answer is the one that the label has."""
    items = cast("Sequence[Any]", value) if label.question.divisible_by else [value]
    if len(items) != len(label.expected):
        message = f"{len(items)} verdicts, {len(label.expected)} labels: {reprlib.repr(label.verdicts)}"
        raise DataError(f"{label.question.kind}: {message}")
    pairs = zip(items, label.expected, strict=True)
    return [_is_right(item, cast("type[Any]", type(item)), truth, label.question) for item, truth in pairs]


def _is_right(item: Any, kind: type[Any], truth: Any, question: Question[Any], at: str = "") -> bool:
    """Whether a verdict is the right one; without an item, whether the label can be held against one of its kind."""
    scales: Mapping[str, LabelOrder] = label_orders(kind) if dataclasses.is_dataclass(kind) else {}
    name, scale = next(iter(scales.items()), ("", LabelOrder()))
    asked = f"{at}{question.kind}"
    if scale.number or not scales:
        raise DataError(f"{asked} questions have no verdict that is right or wrong, so no label can be held against it")
    words: tuple[Any, ...] = scale.worst_first or getattr(question, "choices", ())
    verdict = getattr(item, name, None)
    if scale.ordered and isinstance(truth, bool) and words and not isinstance(words[0], bool):
        return (verdict == words[-1]) == truth
    if words and truth not in words:
        message = ", ".join(str(word) for word in words) + (", or true or false" if scale.ordered else "")
        raise DataError(f"{asked}: a label must be one of {message}, not {reprlib.repr(truth)}")
    return verdict == truth

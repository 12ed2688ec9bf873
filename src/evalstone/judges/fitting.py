"""The threshold of a cascade, chosen on labelled verdicts: pure arithmetic, and the asking before it.

    accuracy(t)  = share of verdicts that are right, the first judge's where its confidence is at least t, else the
                   second's                                   range [0, 1], higher is better
    escalated(t) = share of verdicts whose confidence is below t, or that have none        range [0, 1]

The figures are those on the labels that the threshold was chosen on, and so a little too good: measure on others.
"""

from __future__ import annotations

import asyncio
import dataclasses
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.errors import DataError, JudgeError, UsageError
from evalstone.judges.base import Judge, Put
from evalstone.judges.items import ITEMS, item_confidences
from evalstone.judges.settings import is_number
from evalstone.judges.verdicts import Scale, verdict_of
from evalstone.question import Answer, Question

AT_ONCE = 16


@dataclass(frozen=True)
class LabelledQuestion:
    """A question and its right verdicts.

    verdicts: for a question with one verdict, that one: "yes", or True for the most favourable verdict and False for
    any other. For a question about several items (claims, criteria), a list with one for each.
    """

    question: Question[Any]
    verdicts: Any

    @property
    def wanted(self) -> tuple[Any, ...]:
        """The right verdict on each item, or the one there is."""
        given = self.verdicts
        return tuple(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else (given,)


@dataclass(frozen=True)
class Case:
    """One labelled verdict: the first judge's confidence in it (None without one), and which judge was right."""

    confidence: float | None
    first: bool
    then: bool


@dataclass(frozen=True)
class Threshold:
    """What a cascade would come to with one threshold: shares in [0, 1] of the labelled verdicts."""

    below: float
    accuracy: float
    escalated: float


@dataclass(frozen=True)
class CascadeFit:
    """A threshold, and what it was chosen from.

    below: the threshold. accuracy, escalated: with it. first, then: the accuracy of each judge alone. verdicts: how
    many labelled ones were judged. unanswered: how many more `then` gave no answer to; they count nowhere. curve: every
    threshold that makes a difference, in rising order.
    """

    below: float
    accuracy: float
    escalated: float
    first: float
    then: float
    verdicts: int
    curve: tuple[Threshold, ...]
    unanswered: int = 0

    def __str__(self) -> str:
        return (
            f"below={self.below!r}: accuracy {self.accuracy:.3f} with {self.escalated:.1%} escalated; "
            f"first alone {self.first:.3f}, then alone {self.then:.3f} ({self.verdicts} labelled verdicts)"
        )


def fit_threshold(
    cases: Sequence[Case], *, accuracy: float | None = None, escalated: float | None = None, unanswered: int = 0
) -> CascadeFit:
    """The threshold for a wanted accuracy, or for a share that may be escalated at most, or the most accurate one.

    Raises UsageError without cases, for a wish outside [0, 1], and when no threshold meets it.
    """
    for name, wish in (("accuracy", accuracy), ("escalated", escalated)):
        if wish is not None and (not is_number(wish) or not 0 <= wish <= 1):
            raise UsageError(f"{name} must be a number from 0 to 1, not {wish!r}")
    if not cases:
        raise UsageError("a threshold needs labelled verdicts that both judges answered, and there is none")
    curve = thresholds(cases)
    within = [one for one in curve if escalated is None or one.escalated <= escalated]
    if not within:
        least = min(one.escalated for one in curve)
        raise UsageError(f"no threshold escalates {escalated:.1%} or less; {least:.1%} have no confidence at all")
    reaching = [one for one in within if accuracy is None or one.accuracy >= accuracy]
    if not reaching:
        best = max(within, key=lambda one: one.accuracy)
        raise UsageError(
            f"no threshold reaches an accuracy of {accuracy:g}; the best is {best.accuracy:.3f} at below={best.below:g}"
        )
    chosen = min(reaching, key=lambda one: (-one.accuracy if accuracy is None else 0, one.escalated, -one.accuracy))
    return CascadeFit(
        below=chosen.below,
        accuracy=chosen.accuracy,
        escalated=chosen.escalated,
        first=sum(case.first for case in cases) / len(cases),
        then=sum(case.then for case in cases) / len(cases),
        verdicts=len(cases),
        curve=curve,
        unanswered=unanswered,
    )


def thresholds(cases: Sequence[Case]) -> tuple[Threshold, ...]:
    """Every threshold that divides the cases in another way, from 0 up, with what it comes to; at least one case.

    They are 0, each confidence that was given (which keeps the cases that have it), and 1, which escalates all that is
    not certain.
    """
    count = len(cases)
    right = sum(case.then if case.confidence is None else case.first for case in cases)
    moved = sum(case.confidence is None for case in cases)
    rising = sorted((case for case in cases if case.confidence is not None), key=_confidence)
    found = [Threshold(0.0, right / count, moved / count)]
    place = 0
    for below in sorted({*(_confidence(case) for case in rising), 1.0} - {0.0}):
        while place < len(rising) and _confidence(rising[place]) < below:
            right += rising[place].then - rising[place].first
            moved += 1
            place += 1
        found.append(Threshold(below, right / count, moved / count))
    return tuple(found)


def _confidence(case: Case) -> float:
    return 0.0 if case.confidence is None else case.confidence


async def judged_cases(
    first: Judge, then: Judge, labels: Iterable[LabelledQuestion], put: Put
) -> tuple[list[Case], int]:
    """Both judges' answers to labelled questions, a case a verdict, and how many verdicts `then` gave no answer to.

    What the first cannot answer is a case without confidence. Raises DataError for labels that do not fit.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(judge: Judge, question: Question[Any]) -> Answer[Any] | None:
        async with gate:
            try:
                return await put(judge, question)
            except JudgeError:
                return None

    async def both(label: LabelledQuestion) -> tuple[list[Case], int]:
        early, late = await asyncio.gather(ask(first, label.question), ask(then, label.question))
        return ([], len(label.wanted)) if late is None else (cases_of(label, early, late), 0)

    listed = list(labels)
    for label in listed:
        if not isinstance(label, LabelledQuestion):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"labels must be LabelledQuestion values, not {type(label).__name__}")
    found = await asyncio.gather(*map(both, listed))
    return [case for cases, _ in found for case in cases], sum(missing for _, missing in found)


def cases_of(label: LabelledQuestion, early: Answer[Any] | None, late: Answer[Any]) -> list[Case]:
    """The cases in two answers to one labelled question. Raises DataError when the label does not fit the question."""
    then = _right(label, late.value)
    if early is None:
        return [Case(None, False, right) for right in then]
    sure = item_confidences(label.question, early) or (early.confidence,) * len(then)
    return [Case(*case) for case in zip(sure, _right(label, early.value), then, strict=True)]


def _right(label: LabelledQuestion, value: Any) -> list[bool]:
    """Whether each verdict in an answer is the one that the label has."""
    items = cast("Sequence[Any]", value) if label.question.kind in ITEMS else [value]
    if len(items) != len(label.wanted):
        told = f"{len(items)} verdicts, {len(label.wanted)} labels: {reprlib.repr(label.verdicts)}"
        raise DataError(f"{label.question.kind}: {told}")
    return [_is_right(item, truth, label.question.kind) for item, truth in zip(items, label.wanted, strict=True)]


def _is_right(item: Any, truth: Any, kind: str) -> bool:
    scales: Mapping[str, Scale] = (
        verdict_of(cast("type[Any]", type(item))).scales if dataclasses.is_dataclass(item) else {}
    )
    name, scale = next(iter(scales.items()), ("", Scale()))
    if scale.number or not scales:
        raise DataError(f"{kind} questions have no verdict that is right or wrong, so no label can be held against it")
    words, said = scale.worst_first, getattr(item, name)
    if isinstance(truth, bool) and words and not isinstance(words[0], bool):
        return (said == words[-1]) == truth
    if words and truth not in words:
        told = ", ".join(str(word) for word in words)
        raise DataError(f"{kind}: a label must be one of {told}, or true or false, not {reprlib.repr(truth)}")
    return said == truth

"""A judge's answer to a question, and the record of the call that gave it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Generic, TypeVar

from evalstone._core.declarations import check_settings
from evalstone._core.display import excerpt, is_line
from evalstone._core.guards import class_of
from evalstone._core.json import strict_jsonable, to_jsonable
from evalstone._core.truth import NoTruthValue
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, JudgeError, OutcomeError, invalid
from evalstone.questions.base import Question
from evalstone.questions.reply import has_probability
from evalstone.questions.verdict import YesNoVerdict
from evalstone.types import NO_USAGE, CallSource, JudgeCall, Usage

A = TypeVar("A")
C = TypeVar("C", bound="JudgeAnswer[Any] | JudgeCall")

MOST_COUNTED = 2**31 - 1
"""The maximum token or request count of an answer: the limit of the ledger's columns."""


@dataclass(frozen=True)
class JudgeAnswer(NoTruthValue, Generic[A], metaclass=NamesArguments):
    """A judge's answer with its usage, cost and time.

    Raises:
        OutcomeError: The judge is not one line of visible text. Another field but the value has the wrong type. A cost,
            a count, a time or a probability is NaN, infinite, or not an `int` or `float`. A count is not a whole number
            up to 2,147,483,647. The cost is below 0. JSON can't represent the value or the detail.
    """

    _tested_by = ".value"

    value: A
    """The typed answer."""
    _: KW_ONLY
    judge: str
    """The identity of the judge."""
    reply: str | None = None
    """The raw reply; None if the judge isn't a language model."""
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; None if the price is unknown."""
    seconds: float = 0.0
    """Wall time, including waits between retries."""
    probability: float | None = None
    """The probability in [0, 1] that the answer is right, if the judge returns one."""
    alternatives: Mapping[str, float] | None = None
    """The probabilities of the question's labels, if it requests them and the judge returns them."""
    refused_settings: tuple[str, ...] = ()
    """The judge's settings that its endpoint refused. This answer was given without them."""
    source: CallSource = "asked"
    """The source of the answer."""
    members: tuple[JudgeCall, ...] = ()
    """For a composite judge: its members' calls."""
    detail: Mapping[str, Any] | None = None
    """For a composite judge: how the members' answers were combined. For a model: the `temperature` and `seed` of a
    correction that started over, the replies before it and their errors (`corrections`), the remaining `doubt` about
    the reply, and the list items that were `dropped` because they are not from the judged text."""
    response_model: str = ""
    """The model that replied, as named by its provider; "" if unknown, or if the answer is from the ledger."""

    def __post_init__(self) -> None:
        judge: object = self.judge
        if not isinstance(judge, str) or not is_line(judge):  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = f"{excerpt(judge)} ({type(judge).__name__})"
            raise OutcomeError(invalid("the judge of an answer", "one line of visible text", judge, shown))
        named = f"the answer of {judge}"
        try:
            check_settings(self, named)
        except ConfigError as error:
            raise OutcomeError(error) from None
        usage = self.usage
        counts: tuple[Any, ...] = (usage.input, usage.output, usage.cached, usage.requests)
        for number in counts if self.alternatives is None else (*counts, *self.alternatives.values()):
            if number is not None and not (isinstance(number, int | float) and math.isfinite(number)):
                raise OutcomeError(f"{named}: a count or a probability is {number}")
        for count in counts:
            if not isinstance(count, int) or abs(count) > MOST_COUNTED:
                expected = f"expected a whole number up to {MOST_COUNTED:,}"
                raise OutcomeError(f"{named}: a count is {count!r:.60}; {expected}")
        if self.cost is not None and self.cost < 0:
            raise OutcomeError(f"{named}: the cost is {self.cost}, below 0")
        if self.reply is None or self.detail is not None:  # a value parsed from a reply is always JSON
            try:
                strict_jsonable([self.value, self.detail])
            except ValueError as error:
                raise OutcomeError(f"{named} cannot be written as JSON: ", error) from None


def own_probability(verdict: Any) -> float | None:
    """The probability that a verdict is right, if it has a `probability` that is no part of the reply."""
    return verdict.probability if has_probability(class_of(verdict)) and not isinstance(verdict, YesNoVerdict) else None


def item_probabilities(question: Question[Any], answer: JudgeAnswer[Any]) -> tuple[float | None, ...] | None:
    """The probability that each item of an answer is right; None if it is unknown, or the question can't be split.

    The probabilities come from the votes of a panel or of repetitions, or from the verdicts themselves. The same stored
    answer gives the same probabilities, so a resumed run splits its questions as before.
    """
    if question.divisible_by is None:
        return None
    verdicts: Sequence[Any] = answer.value
    votes: Sequence[Mapping[str, Any]] = (answer.detail or {}).get("verdicts", ())
    if votes:
        by_item: dict[str, list[float]] = {}
        for vote in votes:
            if (share := vote.get("probability", vote.get("agreement"))) is not None:
                by_item.setdefault(str(vote["at"]).partition(".")[0], []).append(share)
        return tuple(min(by_item.get(str(number), ()), default=None) for number in range(1, len(verdicts) + 1))
    own = tuple(map(own_probability, verdicts))
    return None if all(probability is None for probability in own) else own


def judge_call(question: Question[A], answer: JudgeAnswer[A], repeat_index: int = 0) -> JudgeCall:
    """The record of a question and its answer."""
    note = question.citation_note(answer.value)
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=answer.judge,
        answer=to_jsonable(answer.value),
        usage=answer.usage,
        cost=answer.cost,
        seconds=answer.seconds,
        probability=answer.probability,
        source=answer.source,
        reply=answer.reply,
        alternatives=answer.alternatives,
        refused_settings=answer.refused_settings,
        repeat_index=repeat_index,
        members=answer.members,
        detail={**(answer.detail or {}), "citations": note} if note else answer.detail,
    )


def failed_call(question: Question[Any], error: JudgeError, judge: str, repeat_index: int = 0) -> JudgeCall:
    """The record of a question without an answer, with its usage and cost."""
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=judge,
        answer=None,
        usage=error.usage or NO_USAGE,
        cost=error.cost,
        seconds=error.seconds,
        source=error.source,
        reply=error.reply,
        repeat_index=repeat_index,
        members=tuple(error.members),
        detail={"error": str(error), **({"corrections": list(error.corrections)} if error.corrections else {})},
    )


def reused(call: C, source: CallSource) -> C:
    """An answer or a call that was shared or cached, without usage and cost; its members too."""
    members = tuple(reused(member, source) for member in call.members)
    return replace(call, usage=NO_USAGE, cost=0.0, seconds=0.0, source=source, members=members)

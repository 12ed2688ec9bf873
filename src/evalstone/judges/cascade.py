"""Cascade: an expensive judge answers what a cheap judge is unsure about. The threshold can be fitted to labels.

    accuracy(t)  = share of correct verdicts: the primary judge's if its probability is at least t, otherwise the
                   fallback's                                 range [0, 1], higher is better
    escalated(t) = share of verdicts with a probability below t, or without one        range [0, 1], lower is cheaper

Measured on the labels that the threshold was chosen on, both are slightly optimistic. Ten-fold cross-validation
estimates them for new data: the threshold is chosen on nine tenths of the questions and evaluated on the rest.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import dataclasses
import itertools
import math
import reprlib
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, TypeVar, cast

from evalstone._core.declarations import Range, check_settings
from evalstone._core.guards import class_of, is_list, is_number
from evalstone._core.json import content_hash
from evalstone._core.sync import blocking
from evalstone.errors import ConfigError, DataError, JudgeError, invalid, repeated
from evalstone.judges.base import Judge, JudgeSpec, MemberCalls
from evalstone.judges.composite import Composite
from evalstone.judges.parse import parse_member
from evalstone.models.limits import NO_LIMITS, Limits
from evalstone.questions.answers import JudgeAnswer, item_probabilities
from evalstone.questions.base import Question, QuestionSpec, answer_type, is_votable
from evalstone.questions.reply import LabelOrder, label_orders
from evalstone.stats.selective_risk import SelectiveRisk, certified_threshold, short_threshold, why_not_certified
from evalstone.types import JudgeCall, total_cost

A = TypeVar("A")

QuestionPrices: TypeAlias = Mapping[str, tuple[float | None, ...]]
"""By a question's fingerprint, what the primary's and the fallback's answer cost in US dollars; None if unknown."""

MAX_CONCURRENCY = 16
FOLDS = 10


class Cascade(Composite, init=False):
    """Asks `primary`, and `fallback` if the probability of the primary's answer is below `threshold`.

    The fallback also gets answers without a probability, and questions that the primary fails to answer; an error that
    ends the run is raised instead. If a question has several items and some of them are probable enough, only
    the others go to the fallback, as a separate question. The fallback's answer is final, and its error is the
    cascade's error. Lists of claims are kept from judges that split texts into sentences, which have the probability 1;
    those of other judges have none.

    The probability is the primary's if its answer was used, otherwise the fallback's; the lower of the two if the items
    were split. `JudgeAnswer.detail` contains:

    - `kind`: "cascade", for a question about verdicts
    - `escalated`: the share of the question that went to the fallback, in [0, 1]
    - `items`: if the items were split, the numbers of those that went to the fallback, from 1
    - `probability`: that of the primary's answer
    - `why`: why the answer was or wasn't escalated

    Raises ConfigError for two equal judges, or a threshold outside [0, 1].
    """

    primary: Judge
    fallback: Judge
    threshold: Annotated[float, Range(0, 1)] = 0.9

    def __init__(
        self, primary: JudgeSpec, fallback: JudgeSpec, threshold: float = 0.9, *, limits: Limits = NO_LIMITS
    ) -> None:
        vars(self).update(primary=primary, fallback=fallback, threshold=threshold, limits=limits)
        object.__setattr__(self, "primary", parse_member("primary", primary))
        object.__setattr__(self, "fallback", parse_member("fallback", fallback))
        if self.primary.identity == self.fallback.identity:
            raise ConfigError(
                repeated("judges", self.primary.identity, f"{self.primary.identity} appears twice in the cascade")
            )
        check_settings(self)
        object.__setattr__(self, "threshold", float(self.threshold))
        self.derive(self.primary, self.fallback)

    @property
    def identity(self) -> str:
        """Both judges' identities and the threshold."""
        return f"cascade({self.primary.identity}, {self.fallback.identity}, threshold={self.threshold!r})"

    @property
    def description(self) -> str:
        return f"a cascade: its second judge answers if the probability of the first is below {self.threshold:g}"

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        self.fallback.check_questions(scorer, asked)

    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        try:
            first = await ask(self.primary, question)
        except JudgeError as error:
            return await self._escalated(question, ask, None, f"no answer: {error}")
        probability = first.probability
        if probability is not None and probability >= self.threshold:
            detail = self._detail(question, 0.0, probability, "probable enough")
            return self.combined(ask, first.value, probability, detail, [first])
        unsure = self._unsure_items(question, first)
        if unsure is None:
            why = "no probability" if probability is None else "not probable enough"
            return await self._escalated(question, ask, probability, why)
        return await self._split(question, ask, first, unsure)

    async def _escalated(
        self, question: Question[A], ask: MemberCalls, probability: float | None, why: str
    ) -> JudgeAnswer[A]:
        second = await self._fall_back(question, ask)
        return self.combined(
            ask, second.value, second.probability, self._detail(question, 1.0, probability, why), [second]
        )

    async def _fall_back(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        try:
            return await ask(self.fallback, question)
        except JudgeError as error:
            raise self.failure(ask, str(error), [error]) from None

    def _unsure_items(self, question: Question[Any], first: JudgeAnswer[Any]) -> list[int] | None:
        """The positions of the items that go to the fallback; None if the whole question does."""
        probabilities = item_probabilities(question, first)
        if probabilities is None:
            return None
        unsure = [
            index
            for index, probability in enumerate(probabilities)
            if probability is None or probability < self.threshold
        ]
        return unsure if 0 < len(unsure) < len(probabilities) else None

    async def _split(
        self, question: Question[A], ask: MemberCalls, first: JudgeAnswer[A], unsure: Sequence[int]
    ) -> JudgeAnswer[A]:
        name = cast(str, question.divisible_by)
        items: Sequence[str] = getattr(question, name)
        rest: Question[Any] = dataclasses.replace(question, **{name: tuple(items[index] for index in unsure)})
        second = await self._fall_back(rest, ask)
        verdicts = list(cast("tuple[Any, ...]", first.value))
        for index, verdict in zip(unsure, cast("tuple[Any, ...]", second.value), strict=True):
            verdicts[index] = verdict
        own = [value for index, value in enumerate(item_probabilities(question, first) or ()) if index not in unsure]
        probabilities = [value for value in (*own, second.probability) if value is not None]
        why = "these items are not probable enough"
        detail = self._detail(question, len(unsure) / len(items), first.probability, why)
        return self.combined(
            ask,
            cast(A, tuple(verdicts)),
            None if second.probability is None else min(probabilities),
            {**detail, "items": [index + 1 for index in unsure]},
        )

    def _detail(
        self, question: Question[Any], escalated: float, probability: float | None, why: str
    ) -> Mapping[str, Any]:
        return {
            # Statistics are of verdicts: no list or text escalates because it is unlikely to be right.
            **({"kind": "cascade"} if is_votable(question) else {}),
            "escalated": escalated,
            "threshold": self.threshold,
            "probability": probability,
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
        risk: float | None = None,
        ask: MemberCalls | None = None,
        price: Callable[[Sequence[JudgeCall]], Awaitable[Sequence[float | None]]] | None = None,
    ) -> CascadeFit:
        """Choose the threshold on labeled questions: `dataclasses.replace(cascade, threshold=fit.threshold)`.

        Without `accuracy` and `escalated`, the most accurate threshold is chosen. Ties go to the one that escalates
        least.

        Args:
            labels: Questions with the correct verdicts. Both judges answer all of them.
            accuracy: The required share of correct verdicts, in [0, 1]. Of the thresholds that reach it, the one that
                escalates least is chosen.
            escalated: The maximum share of escalated verdicts, in [0, 1]. Of the thresholds that respect it, the most
                accurate one is chosen.
            risk: The maximum share of wrong verdicts among those that the primary keeps, in (0, 1). The lowest
                threshold that is shown to keep to it is chosen, with 95% confidence (`stats.certified_threshold`).
                Of several verdicts of one question, one counts. Not together with the other two.
            ask: How the judges are called, such as through a run's ledger (`fit_cascade`). None calls them directly.
            price: What calls cost in US dollars if they are made anew, each None if unknown. None is their cost here.

        Raises:
            ConfigError: A requirement is outside [0, 1], no threshold meets it (the message gives the best possible
                value), or no labeled question was answered.
            DataError: A label doesn't match its question.
        """
        asked = MemberCalls() if ask is None else ask
        # A run limits its own concurrency.
        slots = asyncio.Semaphore(MAX_CONCURRENCY) if ask is None else contextlib.nullcontext()
        async with self.opened():
            cases, unanswered = await judged_cases(self.primary, self.fallback, labels, asked, slots)
        calls = [*asked.calls]
        costs = [call.cost for call in calls] if price is None else await price(calls)
        prices = {(call.fingerprint, call.judge): cost for call, cost in zip(calls, costs, strict=True)}
        names = self.primary.identity, self.fallback.identity
        of_questions = {case.question: tuple(prices.get((case.question, name)) for name in names) for case in cases}
        requirements = {"accuracy": accuracy, "escalated": escalated, "risk": risk}
        return fit_threshold(cases, **requirements, unanswered=unanswered, prices=of_questions)

    fit = blocking(afit)


@dataclass(frozen=True)
class LabeledQuestion:
    """A question and its correct verdicts.

    verdicts: one verdict, such as "yes". True means the most favorable verdict, and False any other. For a question
    about several items (claims, criteria), a list with one verdict per item.
    """

    question: Question[Any]
    verdicts: Any

    @property
    def expected(self) -> tuple[Any, ...]:
        """The correct verdict on each item, or the single verdict."""
        verdicts = self.verdicts
        return tuple(verdicts) if is_list(verdicts) else (verdicts,)


@dataclass(frozen=True)
class Case:
    """One labeled verdict: the probability of the primary's (None if unknown), and whether each judge was right.

    question: the question's fingerprint. Cross-validation holds out all verdicts of one question together. Empty for a
    verdict that stands alone.
    """

    probability: float | None
    primary: bool
    fallback: bool
    question: str = ""


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Accuracy and share escalated at one threshold, both in [0, 1]."""

    threshold: float
    accuracy: float
    escalated: float
    cost: float | None = None
    """US dollars per 1,000 questions, at most: a question of which some verdicts escalate counts with the fallback's
    whole price. None if a price is unknown."""


@dataclass(frozen=True, kw_only=True)
class CascadeFit:
    """A fitted threshold, and its accuracy and cost. All shares are in [0, 1]."""

    threshold: float
    accuracy: float
    """The accuracy of the cascade with this threshold, on the labels it was chosen on."""
    escalated: float
    """The share of verdicts that the threshold escalates, on the same labels."""
    primary: float
    """The accuracy of the primary judge alone."""
    fallback: float
    """The accuracy of the fallback judge alone."""
    verdicts: int
    """The number of labeled verdicts that were judged."""
    curve: tuple[CurvePoint, ...]
    """Every threshold that makes a difference, in ascending order."""
    unanswered: int = 0
    """The number of labeled verdicts that the fallback didn't answer. They are left out of all other numbers."""
    held_out: float | None = None
    """The cross-validated accuracy, an estimate for new data; None if there is only one question."""
    held_out_escalated: float | None = None
    """The cross-validated share escalated; None if there is only one question."""
    risk: SelectiveRisk | None = None
    """How often the verdicts that the primary keeps are wrong, if a limit of that was required."""
    cost: float | None = None
    """US dollars per 1,000 questions like the labeled ones, at most; None if a price is unknown."""
    fallback_cost: float | None = None
    """The same for the fallback alone."""

    @property
    def cost_share(self) -> float | None:
        """The cost as a share of that of the fallback alone; None if a price is unknown, or if the fallback is free."""
        return self.cost / self.fallback_cost if self.cost is not None and self.fallback_cost else None

    def __str__(self) -> str:
        message = f"threshold={self.threshold!r}: accuracy {self.accuracy:.3f} with {self.escalated:.1%} escalated"
        if self.held_out is not None and self.held_out_escalated is not None:
            message += f" ({self.held_out:.3f} with {self.held_out_escalated:.1%} on held-out labels)"
        counts = f"{self.verdicts} labeled verdicts" + (f", {self.unanswered} unanswered" if self.unanswered else "")
        message = f"{message}; primary alone {self.primary:.3f}, fallback alone {self.fallback:.3f} ({counts})"
        if self.cost is not None and (share := self.cost_share) is not None:
            message += f"; ${self.cost:.4g} per 1,000 questions, {share:.1%} of the fallback's price alone"
        if (risk := self.risk) is None:
            return message
        return (
            f"{message}; of the questions that the primary keeps, at most {risk.limit:.1%} are answered wrongly, with "
            f"{risk.confidence:.0%} confidence ({risk.wrong} of {risk.kept} labeled, one verdict each)"
        )


def fit_threshold(
    cases: Sequence[Case],
    *,
    accuracy: float | None = None,
    escalated: float | None = None,
    risk: float | None = None,
    unanswered: int = 0,
    prices: QuestionPrices = MappingProxyType({}),
) -> CascadeFit:
    """The threshold for a required accuracy, a maximum share escalated, or a maximum risk; without any of these, the
    most accurate one. Arguments are those of `Cascade.afit`.

    prices: what the answers to the questions of all cases cost; without those, no cost is known.

    Raises ConfigError if there are no cases, if a requirement is outside [0, 1], or if no threshold meets it.
    """
    for name, value in (("accuracy", accuracy), ("escalated", escalated)):
        if value is not None and (not is_number(value) or not 0 <= value <= 1):
            raise ConfigError(invalid(name, "a number from 0 to 1", value))
    if not cases:
        raise ConfigError("fitting a threshold needs labeled verdicts that the fallback answered; there are none")
    curve = thresholds(cases, prices)
    certified = None if risk is None else _certified(cases, risk, accuracy, escalated)
    within = [point for point in curve if escalated is None or point.escalated <= escalated]
    if not within:
        least = min(point.escalated for point in curve)
        raise ConfigError(f"no threshold escalates {escalated:.1%} or less; {least:.1%} have no probability at all")
    best = max(within, key=lambda point: point.accuracy)
    if accuracy is not None and best.accuracy < accuracy:
        raise ConfigError(
            f"no threshold reaches an accuracy of {accuracy:g}; the best is {best.accuracy:.3f} at "
            f"threshold={best.threshold:g}"
        )
    if certified is None:
        chosen = _chosen(curve, accuracy, escalated)
        threshold = _short(curve, chosen)
    else:
        chosen, threshold = _at(curve, certified.threshold), certified.threshold
    held_out = _held_out(cases, accuracy, escalated) if certified is None else None
    return CascadeFit(
        threshold=threshold,
        accuracy=chosen.accuracy,
        escalated=chosen.escalated,
        primary=sum(case.primary for case in cases) / len(cases),
        fallback=sum(case.fallback for case in cases) / len(cases),
        verdicts=len(cases),
        curve=curve,
        unanswered=unanswered,
        held_out=None if held_out is None else held_out.accuracy,
        held_out_escalated=None if held_out is None else held_out.escalated,
        risk=certified,
        cost=chosen.cost,
        fallback_cost=_per_1000([price[1] for price in prices.values()]),
    )


def _certified(cases: Sequence[Case], risk: object, accuracy: float | None, escalated: float | None) -> SelectiveRisk:
    """The lowest threshold that is shown to keep to a risk.

    Raises ConfigError for an invalid risk, for one together with another requirement, and if no threshold is shown to.
    """
    if not is_number(risk) or not 0 < risk < 1:
        raise ConfigError(invalid("risk", "a number between 0 and 1", risk))
    if accuracy is not None or escalated is not None:
        raise ConfigError("risk chooses the threshold; leave out accuracy and escalated")
    by_question: dict[str, list[Case]] = {}
    for number, case in enumerate(cases):
        by_question.setdefault(case.question or f"#{number}", []).append(case)
    # The choice must not depend on who was right.
    alone = [listed[int(content_hash(name)[:8], 16) % len(listed)] for name, listed in by_question.items()]
    probabilities, wrong = [case.probability for case in alone], [not case.primary for case in alone]
    if (found := certified_threshold(probabilities, wrong, risk)) is not None:
        return found
    raise ConfigError(
        f"the labels don't show for any threshold that at most {risk:.1%} of the verdicts that the primary keeps are "
        f"wrong: {why_not_certified(probabilities, wrong, risk)}"
    )


def _at(curve: Sequence[CurvePoint], threshold: float) -> CurvePoint:
    """The point of a curve that keeps the same as a threshold."""
    return next(point for point in curve if point.threshold >= threshold)


def _short(curve: Sequence[CurvePoint], chosen: CurvePoint) -> float:
    """A short threshold that keeps the same as a point of a curve."""
    below = [point.threshold for point in curve if point.threshold < chosen.threshold]
    return short_threshold(chosen.threshold, below[-1] if below else None)


def _chosen(curve: Sequence[CurvePoint], accuracy: float | None, escalated: float | None) -> CurvePoint:
    """The threshold that meets the requirements best; the closest one if none meets them."""
    within = [point for point in curve if escalated is None or point.escalated <= escalated] or curve[:1]
    reaching = [point for point in within if accuracy is None or point.accuracy >= accuracy]
    reaching = reaching or [max(within, key=lambda point: point.accuracy)]
    return min(reaching, key=lambda it: (-it.accuracy if accuracy is None else 0, it.escalated, -it.accuracy))


def _held_out(cases: Sequence[Case], accuracy: float | None, escalated: float | None) -> CurvePoint | None:
    """Cross-validated accuracy and share escalated; None if there is only one question."""
    names = [case.question or str(index) for index, case in enumerate(cases)]
    # Assign folds by fingerprint, so that the order of the labels makes no difference.
    order = {name: index for index, name in enumerate(sorted(set(names)))}
    folds = min(FOLDS, len(order))
    if folds < 2:
        return None
    correct = to_fallback = 0
    for fold in range(folds):
        held_out = [order[name] % folds == fold for name in names]
        training = [case for case, is_out in zip(cases, held_out, strict=True) if not is_out]
        threshold = _chosen(thresholds(training), accuracy, escalated).threshold
        for case in (case for case, is_out in zip(cases, held_out, strict=True) if is_out):
            escalates = case.probability is None or case.probability < threshold
            to_fallback += escalates
            correct += case.fallback if escalates else case.primary
    return CurvePoint(threshold=0.0, accuracy=correct / len(cases), escalated=to_fallback / len(cases))


def thresholds(cases: Sequence[Case], prices: QuestionPrices = MappingProxyType({})) -> tuple[CurvePoint, ...]:
    """Every threshold that makes a difference, in ascending order, for at least one case.

    The thresholds are 0, each probability that occurs (a case with that probability isn't escalated), and 1, which
    escalates everything with a probability below 1.
    """
    count = len(cases)
    correct = sum(case.fallback if case.probability is None else case.primary for case in cases)
    escalated = sum(case.probability is None for case in cases)
    gains = [(case.probability, case.fallback - case.primary) for case in cases if case.probability is not None]
    gains.sort(reverse=True)
    costs = _costs(cases, prices)
    first = CurvePoint(threshold=0.0, accuracy=correct / count, escalated=escalated / count, cost=costs(0.0))
    curve = [first]
    for threshold in sorted({*(probability for probability, _ in gains), 1.0} - {0.0}):
        while gains and gains[-1][0] < threshold:
            correct += gains.pop()[1]
            escalated += 1
        shares = {"accuracy": correct / count, "escalated": escalated / count}
        curve.append(CurvePoint(threshold=threshold, **shares, cost=costs(threshold)))
    return tuple(curve)


def _costs(cases: Sequence[Case], prices: QuestionPrices) -> Callable[[float], float | None]:
    """The cost of 1,000 questions by the threshold: that of all primary answers, and of the fallback's answers to the
    questions with a verdict below the threshold."""
    own = _per_1000([price[0] for price in prices.values()])
    if own is None or _per_1000([price[1] for price in prices.values()]) is None:
        return lambda _: None
    lowest: dict[str, float] = {}
    for case in cases:
        probability = -math.inf if case.probability is None else case.probability
        lowest[case.question] = min(probability, lowest.get(case.question, math.inf))
    order = sorted(prices, key=lambda question: lowest[question])
    sums = [0.0, *itertools.accumulate(prices[question][1] or 0.0 for question in order)]
    known = [lowest[question] for question in order]
    return lambda threshold: own + 1000 * sums[bisect.bisect_left(known, threshold)] / len(order)


def _per_1000(costs: Sequence[float | None]) -> float | None:
    """The mean cost of a question, times 1,000; None if one is unknown, or there is none."""
    total = total_cost(costs)
    return None if total is None or not costs else 1000 * total / len(costs)


async def judged_cases(
    primary: Judge,
    fallback: Judge,
    labels: Iterable[LabeledQuestion],
    ask: MemberCalls,
    slots: contextlib.AbstractAsyncContextManager[Any],
) -> tuple[list[Case], int]:
    """Ask both judges the labeled questions: one case per verdict, and the number that the fallback didn't answer.

    Cases that the primary didn't answer have no probability. Raises DataError for labels that don't match their
    questions.
    """

    async def answer_of(judge: Judge, question: Question[Any]) -> JudgeAnswer[Any] | None:
        async with slots:
            try:
                return await ask(judge, question)
            except JudgeError:
                return None

    async def judged(label: LabeledQuestion) -> tuple[list[Case], int]:
        first, second = await asyncio.gather(answer_of(primary, label.question), answer_of(fallback, label.question))
        return ([], len(label.expected)) if second is None else (_cases_of(label, first, second), 0)

    labels = list(labels)
    for number, label in enumerate(labels, start=1):
        _check(label, number)
    results = await asyncio.gather(*map(judged, labels))
    return [case for cases, _ in results for case in cases], sum(missing for _, missing in results)


def _cases_of(label: LabeledQuestion, first: JudgeAnswer[Any] | None, second: JudgeAnswer[Any]) -> list[Case]:
    """The cases in both judges' answers to a labeled question. Raises DataError if the label doesn't match it."""
    fallback, name = _correct(label, second.value), label.question.fingerprint
    if first is None:
        return [Case(None, False, is_correct, name) for is_correct in fallback]
    probabilities = item_probabilities(label.question, first) or (first.probability,) * len(fallback)
    return [Case(*case, name) for case in zip(probabilities, _correct(label, first.value), fallback, strict=True)]


def _check(label: object, number: int) -> None:
    """Raise DataError for a label that doesn't match its question, as far as that shows before any call."""
    if not isinstance(label, LabeledQuestion):
        raise DataError(invalid("labels", "LabeledQuestion values", label, type(label).__name__))
    question = label.question
    items = len(getattr(question, question.divisible_by)) if question.divisible_by else 1
    if items != len(label.expected):
        message = f"{items} verdicts, {len(label.expected)} labels: {reprlib.repr(label.verdicts)}"
        raise DataError(f"label {number}: {question.kind}: {message}")
    answers = answer_type(type(question))
    kind = typing.get_args(answers)[0] if question.divisible_by else answers
    for expected in label.expected:
        _is_correct(None, kind, expected, question, f"label {number}: ")


def _correct(label: LabeledQuestion, value: Any) -> list[bool]:
    """Whether each verdict in an answer agrees with its label."""
    items: Sequence[Any] = value if label.question.divisible_by else [value]
    if len(items) != len(label.expected):
        message = f"{len(items)} verdicts, {len(label.expected)} labels: {reprlib.repr(label.verdicts)}"
        raise DataError(f"{label.question.kind}: {message}")
    pairs = zip(items, label.expected, strict=True)
    return [_is_correct(item, class_of(item), expected, label.question) for item, expected in pairs]


def _is_correct(item: Any, kind: type[Any], expected: Any, question: Question[Any], prefix: str = "") -> bool:
    """Whether a verdict is the expected one. Raises DataError for a label that verdicts of this kind can't have.

    item: the verdict, or None to check only the label. prefix: what the error's message starts with.
    """
    orders: Mapping[str, LabelOrder] = label_orders(kind) if dataclasses.is_dataclass(kind) else {}
    name, order = next(iter(orders.items()), ("", LabelOrder()))
    where = f"{prefix}{question.kind}"
    if order.number or not orders:
        raise DataError(f"{where}: answers to this kind of question have no verdict, so they can't be labeled")
    words: tuple[Any, ...] = order.worst_first or getattr(question, "choices", ())
    verdict = getattr(item, name, None)
    if order.ordered and isinstance(expected, bool) and words and not isinstance(words[0], bool):
        return (verdict == words[-1]) == expected
    if words and expected not in words:
        message = ", ".join(str(word) for word in words) + (", or true or false" if order.ordered else "")
        raise DataError(f"{where}: ", invalid("a label", f"one of {message}", expected, reprlib.repr(expected)))
    return verdict == expected

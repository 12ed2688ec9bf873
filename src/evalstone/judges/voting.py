"""Votes: combine several answers to one question into one, verdict by verdict. Arithmetic only, no calls.

    majority    the most frequent verdict; of tied ones the middle one, or the less favorable of two
                (if no order is known: the one that came first). Numbers: the median
    mean        the verdict with the highest mean probability; ties as above. Numbers: the mean
    unanimous   the least favorable verdict. Numbers: the lowest

The probability of a judge's own verdict is the one it reports, or 1. The rest is spread evenly over the other
verdicts. Everything that isn't a verdict (reasons, citations, lists) comes from the answer that agrees with most of the
result, the first one in a tie. A reason therefore belongs to the winning verdict, if any judge gave that verdict.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from evalstone._core.guards import class_of, is_array, is_object
from evalstone._core.json import to_jsonable
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.questions.answers import JudgeAnswer, own_probability
from evalstone.questions.base import Question
from evalstone.questions.custom import AnswerAs
from evalstone.questions.reply import LabelOrder, has_probability, label_orders, subject_of
from evalstone.questions.schemas import resolved
from evalstone.questions.verdict import YesNoVerdict

A = TypeVar("A")

Vote: TypeAlias = Literal["majority", "mean", "unanimous"]


@dataclass(frozen=True)
class VerdictVote:
    """The votes on one verdict."""

    at: str
    """The place of the verdict in the answer, with items numbered from 1: "2.verdict"."""
    votes: Mapping[str, int]
    """The number of votes for each value."""
    agreement: float | None
    """The share of votes for the result, in [0, 1]; None for numbers."""
    entropy: float | None
    """The entropy of the votes in bits, 0 if all agree; None for numbers."""
    deviation: float | None = None
    """For numbers: the standard deviation of the votes."""
    probability: float | None = None
    """The mean probability of the result, if the vote uses probabilities."""

    @property
    def sureness(self) -> float | None:
        """The probability of the result: its mean probability, or the agreement; None for numbers."""
        return self.agreement if self.probability is None else self.probability


@dataclass(frozen=True)
class VoteResult(Generic[A]):
    """The result of a vote.

    verdicts: the votes on each verdict in it. agreeing: for each answer, how much it agrees with the result.
    """

    value: A
    verdicts: tuple[VerdictVote, ...]
    agreeing: tuple[float, ...]


@dataclass(frozen=True)
class VoteConfig:
    """The voting rule, and the probability of each judge's whole answer; None if unknown."""

    vote: Vote
    sure: tuple[float | None, ...]


def settle(values: Sequence[A], config: VoteConfig, question: Question[A] | None = None) -> VoteResult[A]:
    """Combine one or more answers to the same question.

    The vote is on the labels of the answer type. For a type of the caller's (AnswerAs), it is on every enum value,
    boolean and number in its schema, including those in nested objects.

    Raises JudgeDeclined if a unanimous vote is split and no order says which value is less favorable.
    """
    return _settle_form(question, values, config) if isinstance(question, AnswerAs) else _settled(values, config, "")


def _settled(values: Sequence[Any], config: VoteConfig, at: str) -> VoteResult[Any]:
    kind = class_of(values[0])
    if dataclasses.is_dataclass(kind) and all(type(value) is kind for value in values):
        return _object(values, config, at)
    if is_aligned(values):
        items = [
            _settled(column, config, _join(at, str(number)))
            for number, column in enumerate(zip(*values, strict=True), start=1)
        ]
        return replace(_joined(items, values), value=tuple(item.value for item in items))
    # An answer without verdicts is used as it is.
    return VoteResult(values[0], (), tuple(0.0 for _ in values))


def _joined(parts: Collection[VoteResult[Any]], values: Sequence[A]) -> VoteResult[A]:
    """The results for the parts of an answer as one. Its value is the answer that agrees with most of them, the first
    one in a tie."""
    agreeing = tuple(sum(part.agreeing[index] for part in parts) for index in range(len(values)))
    closest = values[agreeing.index(max(agreeing))]
    return VoteResult(closest, tuple(vote for part in parts for vote in part.verdicts), agreeing)


def is_aligned(values: Sequence[Any]) -> bool:
    """Whether these are lists of verdicts on the same items in the same order."""
    lists = [cast("tuple[Any, ...]", value) for value in values if isinstance(value, tuple) and value]
    if len(lists) < len(values) or len(set(map(len, lists))) > 1:
        return False
    return all(_same_item(column) for column in zip(*lists, strict=True))


def _same_item(column: Sequence[Any]) -> bool:
    kind = class_of(column[0])
    if not dataclasses.is_dataclass(kind) or any(type(item) is not kind for item in column):
        return False
    if not label_orders(kind):
        return False
    subject = subject_of(kind)
    return subject is None or len({getattr(item, subject.name) for item in column}) == 1


def _object(values: Sequence[Any], config: VoteConfig, at: str) -> VoteResult[Any]:
    kind = class_of(values[0])
    orders = label_orders(kind)
    results: dict[str, VoteResult[Any]] = {}
    for name in (field.name for field in dataclasses.fields(kind)):
        choices = [getattr(value, name) for value in values]
        if name in orders:
            results[name] = decided(choices, orders[name], config, _join(at, name), _probabilities(values, config))
        elif is_aligned(choices) or all(map(dataclasses.is_dataclass, choices)):
            results[name] = _settled(choices, config, _join(at, name))
    result = _joined(results.values(), values)
    combined = {name: field.value for name, field in results.items()}
    if any(hasattr(value, "probabilities") for value in values):
        combined["probabilities"] = weighted_together([value.probabilities for value in values])
    if kind is YesNoVerdict:
        combined["probability"] = _of_yes(values, config.vote)
    elif has_probability(kind):
        combined["probability"] = _probability(values, combined, orders)
    return replace(result, value=replace(result.value, **combined))


def _probability(values: Sequence[Any], combined: Mapping[str, Any], orders: Mapping[str, LabelOrder]) -> float | None:
    """The mean probability of the winning verdict, over the judges that return one; None if none does."""
    known = [value for value in values if value.probability is not None]
    if not known or len(orders) != 1:
        return None
    ((name, order),) = orders.items()
    choices = [getattr(value, name) for value in known]
    labels = tuple(dict.fromkeys((combined[name], *choices)))
    return _mean_probabilities(choices, labels, order, [value.probability for value in known])[combined[name]]


def _of_yes(choices: Sequence[YesNoVerdict], vote: Vote) -> float | None:
    """The probability of a yes: the lower median, mean or minimum over the judges, so that it agrees with the verdict.

    A yes or no without a probability counts as certain. Undecided judges are ignored unless all are undecided. None if
    no judge gave a probability.
    """
    decided = [choice for choice in choices if choice.verdict != "undecided"] or choices
    if all(choice.probability is None for choice in decided):
        return None
    known = [choice for choice in decided if choice.probability is not None or choice.verdict != "undecided"]
    probabilities = [
        float(choice.verdict == "yes") if choice.probability is None else choice.probability for choice in known
    ]
    match vote:
        case "mean":
            return statistics.fmean(probabilities)
        case "unanimous":
            return min(probabilities)
        case "majority":
            return statistics.median_low(probabilities)


Probabilities: TypeAlias = "float | Mapping[Any, float] | None"
"""The probability of a judge's verdict, or of each possible one; None if unknown."""


def _probabilities(values: Sequence[Any], config: VoteConfig) -> tuple[Probabilities, ...]:
    """The probability of each judge's verdict on one item: its own if it has one, else that of the whole answer."""
    own = [_own_probability(value) for value in values]
    return tuple(whole if item is None else item for item, whole in zip(own, config.sure, strict=True))


def _own_probability(value: Any) -> Probabilities:
    if isinstance(value, YesNoVerdict) and value.probability is not None and value.verdict != "undecided":
        return {"yes": value.probability, "no": 1 - value.probability}
    return own_probability(value)


def decided(
    choices: Sequence[Any], order: LabelOrder, config: VoteConfig, at: str, probabilities: Sequence[Probabilities]
) -> VoteResult[Any]:
    """The result of a vote on one verdict. Raises JudgeDeclined as `settle` does."""
    if order.number and all(isinstance(choice, int | float) for choice in choices):
        return _number(choices, order, config.vote, at)
    ranks = {label: rank for rank, label in enumerate(order.worst_first)}
    labels = sorted(dict.fromkeys(choices), key=lambda label: ranks.get(label, 0))
    counts = {label: sum(choice == label for choice in choices) for label in labels}
    probability: float | None = None
    if config.vote == "unanimous":
        result = _least(labels, order, at)
    elif config.vote == "mean":
        weights = _mean_probabilities(choices, labels, order, probabilities)
        result = _highest(weights, order, choices)
        probability = weights[result]
    else:
        result = _highest(dict(counts), order, choices)
    votes = {str(label): count for label, count in counts.items()}
    vote = VerdictVote(at, votes, counts[result] / len(choices), entropy(counts), probability=probability)
    return VoteResult(result, (vote,), tuple(float(choice == result) for choice in choices))


def _number(choices: Sequence[float], order: LabelOrder, vote: Vote, at: str) -> VoteResult[float]:
    if vote == "unanimous":
        result: float = _least(sorted(set(choices)), order, at)
    elif vote == "mean":
        mean = statistics.fmean(choices)
        # Whole numbers are rounded, and halves are rounded down.
        result = math.ceil(mean - 0.5) if order.whole else min(max(choices), max(min(choices), mean))
    else:
        result = statistics.median_low(choices) if order.whole else statistics.median(choices)
    counts = Counter(f"{choice:g}" for choice in choices)
    verdict = VerdictVote(at, dict(counts), None, None, statistics.pstdev(choices))
    # Numbers agree by degrees: the closest answer counts most, and no number outweighs a verdict.
    return VoteResult(result, (verdict,), tuple(1 / (1 + abs(choice - result)) for choice in choices))


def _least(labels: Sequence[Any], order: LabelOrder, at: str) -> Any:
    if len(labels) > 1 and not order.ordered:
        names = ", ".join(str(label)[:40] for label in labels)
        raise JudgeDeclined(f"the judges are not unanimous on {at or 'the answer'}: {names}")
    return labels[0]


def _mean_probabilities(
    choices: Sequence[Any], labels: Sequence[Any], order: LabelOrder, probabilities: Sequence[Probabilities]
) -> dict[Any, float]:
    """The mean probability over the judges of each verdict that at least one of them gave."""
    possible = order.worst_first or tuple(labels)
    totals = dict.fromkeys(labels, 0.0)
    for choice, probability in zip(choices, probabilities, strict=True):
        if isinstance(probability, Mapping):
            for label in labels:
                totals[label] += probability.get(label, 0.0)
            continue
        own = 1.0 if probability is None else probability
        rest = (1 - own) / (len(possible) - 1) if len(possible) > 1 else 0.0
        for label in labels:
            totals[label] += own if label == choice else rest
    return {label: total / len(choices) for label, total in totals.items()}


def _highest(weights: Mapping[Any, float], order: LabelOrder, choices: Sequence[Any]) -> Any:
    highest = max(weights.values())
    tied = [label for label, weight in weights.items() if math.isclose(weight, highest, rel_tol=1e-9)]
    if not order.ordered:
        return next(choice for choice in choices if choice in tied)
    return tied[(len(tied) - 1) // 2]  # sorted, worst first


def entropy(counts: Mapping[Any, float]) -> float:
    """The entropy of the shares in bits: -Σ p · log2 p. 0 if there is only one label."""
    total = math.fsum(counts.values())
    return max(0.0, -math.fsum(n / total * math.log2(n / total) for n in counts.values() if n))


def weighted_together(choices: Sequence[Mapping[str, float] | None]) -> Mapping[str, float] | None:
    """The mean probabilities over the judges that return any; None if none does."""
    known = [probabilities for probabilities in choices if probabilities]
    if not known:
        return None
    words = dict.fromkeys(word for probabilities in known for word in probabilities)
    return {word: math.fsum(values.get(word, 0.0) for values in known) / len(known) for word in words}


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def elect(question: Question[A], answers: Sequence[JudgeAnswer[A]], vote: Vote) -> VoteResult[A]:
    """The result of a vote on one or more judges' answers. Raises JudgeDeclined as `settle` does."""
    config = VoteConfig(vote, tuple(answer.probability for answer in answers))
    return settle([answer.value for answer in answers], config, question)


def answer_probability(verdicts: Sequence[VerdictVote]) -> float | None:
    """The probability of the least certain verdict; None if there are only numbers. Not calibrated."""
    return min((vote.sureness for vote in verdicts if vote.sureness is not None), default=None)


def vote_detail(verdicts: Sequence[VerdictVote]) -> dict[str, Any]:
    """The votes as data: mean agreement, mean entropy, and the votes on each verdict."""
    agreement = _mean_of(verdicts, "agreement")
    return {
        "agreement": agreement,
        "entropy": _mean_of(verdicts, "entropy"),
        "verdicts": [{k: v for k, v in dataclasses.asdict(vote).items() if v is not None} for vote in verdicts],
    }


def _mean_of(verdicts: Sequence[VerdictVote], name: str) -> float | None:
    known = [value for vote in verdicts if (value := getattr(vote, name)) is not None]
    return statistics.fmean(known) if known else None


_CHOICE = LabelOrder(ordered=False)


def _settle_form(question: AnswerAs, values: Sequence[Any], config: VoteConfig) -> VoteResult[Any]:
    """The result of a vote on values of the caller's type.

    Everything that isn't voted on, such as lists, comes from the answer that agrees with most of the result. If the
    combined parts are no valid value of the type, because it has rules across its fields, that whole answer is used.
    """
    data = [to_jsonable(value) for value in values]
    schema = question.json_schema
    has_fields = is_object(data[0]) and set(data[0]) == set(schema["properties"])
    node = schema if has_fields else schema["properties"]["answer"]
    result = _along(data, node, schema.get("$defs", {}), config, "")
    try:
        value = question.from_json(result.value if has_fields else {"reason": "", "answer": result.value})
    except ReplyError:
        value = values[result.agreeing.index(max(result.agreeing))]
    return replace(result, value=value)


def _along(
    data: Sequence[Any], node: Mapping[str, Any], defined: Mapping[str, Any], config: VoteConfig, at: str
) -> VoteResult[Any]:
    """The result of a vote on data that fits a node of a JSON schema."""
    node = resolved(node, defined)
    if "anyOf" in node:
        return _either(data, [resolved(option, defined) for option in node["anyOf"]], defined, config, at)
    if "properties" in node and all(is_object(value) for value in data):
        members = {
            name: _along([value[name] for value in data], inner, defined, config, _join(at, name))
            for name, inner in node["properties"].items()
            if all(name in value for value in data)
        }
        voted = {name: member for name, member in members.items() if member.verdicts}
        result = _joined(voted.values(), data)
        return replace(result, value={**result.value, **{name: member.value for name, member in voted.items()}})
    if "enum" in node or node.get("type") == "boolean":
        return decided(data, _CHOICE, config, at, config.sure)
    if node.get("type") in ("integer", "number"):
        order = LabelOrder(number=True, whole=node["type"] == "integer", ordered=False)
        return decided(data, order, config, at, config.sure)
    return VoteResult(data[0], (), tuple(0.0 for _ in data))


def _either(
    data: Sequence[Any],
    options: Sequence[Mapping[str, Any]],
    defined: Mapping[str, Any],
    config: VoteConfig,
    at: str,
) -> VoteResult[Any]:
    """The result of a vote on a union: first on the option, such as null or not, then on the values of that option."""
    common = next((option for option in options if all(_fits(value, option) for value in data)), None)
    forms = [common or next((option for option in options if _fits(value, option)), options[-1]) for value in data]
    names = [_form_of(form, options) for form in forms]
    vote = decided(names, _CHOICE, config, at, config.sure)
    chosen = [index for index, name in enumerate(names) if name == vote.value]
    voters = VoteConfig(config.vote, tuple(config.sure[index] for index in chosen))
    result = _along([data[index] for index in chosen], forms[chosen[0]], defined, voters, at)
    agreeing = dict(zip(chosen, result.agreeing, strict=True))
    # If all values have the same option, that is no verdict, unless the option is null.
    counts = len(set(names)) > 1 or data[chosen[0]] is None
    return VoteResult(
        result.value,
        (*(vote.verdicts if counts else ()), *result.verdicts),
        tuple(counts * vote.agreeing[index] + agreeing.get(index, 0.0) for index in range(len(data))),
    )


def _fits(value: Any, node: Mapping[str, Any]) -> bool:
    """Whether a value has the type of a schema node. Only the top level is compared."""
    if "enum" in node:
        return value in node["enum"]
    match node.get("type"):
        case "object":
            return is_object(value) and set(value) == set(node.get("properties", ()))
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
        case "array":
            return is_array(value)
        case "null":
            return value is None
        case _:
            return isinstance(value, str)


def _form_of(node: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> str:
    """The name of a union's option in the votes: its type, or its number if several options have that type."""
    kind = node.get("type", "words")
    alike = sum(option.get("type", "words") == kind for option in options)
    return "none" if kind == "null" else str(kind) if alike < 2 else f"form {options.index(node) + 1}"

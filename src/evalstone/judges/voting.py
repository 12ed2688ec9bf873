"""Many answers to one question made one: verdict by verdict, and pure arithmetic.

    majority    the verdict that most gave; of equally many the middle one, or the less favorable of two
                (without a known order: the one that was given first). Numbers: the median
    mean        the verdict with the highest mean probability; ties as above. Numbers: the mean
    unanimous   the least favorable verdict that anybody gave. Numbers: the lowest

A judge's probability for its own verdict is the confidence that it gave, 1 without one, and what is left is spread
over the other verdicts. What is no verdict (reasons, citations, lists that a judge makes) comes from one judge, the one
that agrees with most of the result, the first of equals; so a reason is never one for another verdict, as long as
anybody gave the verdict that came out.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from evalstone._core.json import to_jsonable
from evalstone.errors import JudgeDeclined, ReplyError
from evalstone.questions.base import JudgeAnswer, Question
from evalstone.questions.custom import AnswerAs
from evalstone.questions.reply import LabelOrder, label_orders, subject_of
from evalstone.questions.schemas import resolved
from evalstone.questions.verdict import Choice

A = TypeVar("A")

Vote: TypeAlias = Literal["majority", "mean", "unanimous"]
VOTES: tuple[Vote, ...] = get_args(Vote)


@dataclass(frozen=True)
class VerdictVote:
    """How one verdict came about.

    at: where it stands in the answer, items numbered from 1: "2.verdict". votes: how many gave what. agreement: the
    share that gave the verdict that came out, in [0, 1]. entropy: of the shares, in bits, 0 when all agree. Both are
    None for numbers, which have a deviation (the standard deviation of all that were given) in their place.
    probability: the mean probability of the verdict that came out, where the vote is by it.
    """

    at: str
    votes: Mapping[str, int]
    agreement: float | None
    entropy: float | None
    deviation: float | None = None
    probability: float | None = None

    @property
    def sureness(self) -> float | None:
        """How sure the vote is: the mean probability, or the share that agrees; None for numbers."""
        return self.agreement if self.probability is None else self.probability


@dataclass(frozen=True)
class VoteResult(Generic[A]):
    """One answer out of many, how each verdict in it came about, and how much of it each judge had said."""

    value: A
    verdicts: tuple[VerdictVote, ...]
    agreeing: tuple[float, ...]


@dataclass(frozen=True)
class VoteConfig:
    """How is voted, and how sure each judge was of its answer as a whole; None where it did not say."""

    vote: Vote
    sure: tuple[float | None, ...]


def settle(values: Sequence[A], config: VoteConfig, question: Question[A] | None = None) -> VoteResult[A]:
    """One answer out of one or more to the same question.

    Voted on are the labels of the answers' type; in values of a type of the caller's (AnswerAs), what its schema says
    are words out of a list, truth values and numbers, in objects within objects too.

    Raises JudgeDeclined when the vote is unanimous, the judges differ, and no order says what is less favorable.
    """
    return _settle_form(question, values, config) if isinstance(question, AnswerAs) else _settled(values, config, "")


def _settled(values: Sequence[Any], config: VoteConfig, at: str) -> VoteResult[Any]:
    kind = cast("type[Any]", type(values[0]))
    if dataclasses.is_dataclass(kind) and all(type(value) is kind for value in values):
        return _object(values, config, at)
    if is_aligned(values):
        items = [
            _settled(column, config, _join(at, str(number)))
            for number, column in enumerate(zip(*values, strict=True), start=1)
        ]
        return replace(_joined(items, values), value=tuple(item.value for item in items))
    # Without a verdict in it, an answer can only be taken whole.
    return VoteResult(values[0], (), tuple(0.0 for _ in values))


def _joined(parts: Collection[VoteResult[Any]], values: Sequence[A]) -> VoteResult[A]:
    """The results for the parts of answers as one. Its value is the answer that agrees with most of them, the first of
    equals."""
    agreeing = tuple(sum(part.agreeing[place] for part in parts) for place in range(len(values)))
    speaker = values[agreeing.index(max(agreeing))]
    return VoteResult(speaker, tuple(vote for part in parts for vote in part.verdicts), agreeing)


def is_aligned(values: Sequence[Any]) -> bool:
    """Whether these are lists of verdicts on the same items in the same order."""
    lists = [cast("tuple[Any, ...]", value) for value in values if isinstance(value, tuple) and value]
    if len(lists) < len(values) or len({len(one) for one in lists}) > 1:
        return False
    return all(_same_item(column) for column in zip(*lists, strict=True))


def _same_item(column: Sequence[Any]) -> bool:
    kind = cast("type[Any]", type(column[0]))
    if not dataclasses.is_dataclass(kind) or any(type(one) is not kind for one in column):
        return False
    if not label_orders(kind):
        return False
    subject = subject_of(kind)
    return subject is None or len({getattr(one, subject.name) for one in column}) == 1


def _object(values: Sequence[Any], config: VoteConfig, at: str) -> VoteResult[Any]:
    kind = cast("type[Any]", type(values[0]))
    scales = label_orders(kind)
    outcome: dict[str, VoteResult[Any]] = {}
    for name in (field.name for field in dataclasses.fields(kind)):
        choices = [getattr(value, name) for value in values]
        if name in scales:
            outcome[name] = decided(choices, scales[name], config, _join(at, name), sure_of(values, config))
        elif is_aligned(choices) or all(dataclasses.is_dataclass(one) for one in choices):
            outcome[name] = _settled(choices, config, _join(at, name))
    result = _joined(outcome.values(), values)
    speaker = result.value
    combined = {name: one.value for name, one in outcome.items()}
    if any(hasattr(value, "probabilities") for value in values):
        combined["probabilities"] = weighted_together([value.probabilities for value in values])
    if kind is Choice:
        combined["probability"] = _of_yes(values, config.vote)
    if hasattr(speaker, "confidence"):
        combined["confidence"] = _confidence(values, combined, scales)
    return replace(result, value=replace(speaker, **combined))


def _confidence(values: Sequence[Any], combined: Mapping[str, Any], scales: Mapping[str, LabelOrder]) -> float | None:
    """The mean probability that the judges which say how sure they are give to the verdict that came out; None where
    none says so."""
    known = [value for value in values if value.confidence is not None]
    if not known or len(scales) != 1:
        return None
    ((name, scale),) = scales.items()
    choices = [getattr(value, name) for value in known]
    labels = tuple(dict.fromkeys((combined[name], *choices)))
    return _mean_probabilities(choices, labels, scale, [value.confidence for value in known])[combined[name]]


def _of_yes(choices: Sequence[Choice], vote: Vote) -> float | None:
    """The probability of a yes: of the judges' own the lower median, the mean or the lowest, so that it is on the side
    of the verdict. A judge without one counts as sure of its yes or no, and one that is undecided has no say where
    another is not; None where all are without."""
    decided = [choice for choice in choices if choice.verdict != "undecided"] or choices
    if all(choice.probability is None for choice in decided):
        return None
    known = [choice for choice in decided if choice.probability is not None or choice.verdict != "undecided"]
    each = [float(one.verdict == "yes") if one.probability is None else one.probability for one in known]
    match vote:
        case "mean":
            return statistics.fmean(each)
        case "unanimous":
            return min(each)
        case "majority":
            return statistics.median_low(each)


Sure: TypeAlias = "float | Mapping[Any, float] | None"
"""How sure a judge is of its verdict, or the probability that it gives to each; None where it does not say."""


def sure_of(values: Sequence[Any], config: VoteConfig) -> tuple[Sure, ...]:
    """How sure each judge was of one item: as the item says, else as the judge said of its whole answer."""
    own = [_said_of(value) for value in values]
    return tuple(whole if item is None else item for item, whole in zip(own, config.sure, strict=True))


def _said_of(value: Any) -> Sure:
    if isinstance(value, Choice) and value.probability is not None and value.verdict != "undecided":
        return {"yes": value.probability, "no": 1 - value.probability}
    return getattr(value, "confidence", None)


def decided(
    choices: Sequence[Any], scale: LabelOrder, config: VoteConfig, at: str, sure: Sequence[Sure]
) -> VoteResult[Any]:
    """One verdict out of many. Raises JudgeDeclined as `settle` does."""
    if scale.number and all(isinstance(one, int | float) for one in choices):
        return _number(choices, scale, config.vote, at)
    ranks = {label: rank for rank, label in enumerate(scale.worst_first)}
    labels = sorted(dict.fromkeys(choices), key=lambda label: ranks.get(label, 0))
    counts = {label: sum(one == label for one in choices) for label in labels}
    probability: float | None = None
    if config.vote == "unanimous":
        result = _least(labels, scale, at)
    elif config.vote == "mean":
        weights = _mean_probabilities(choices, labels, scale, sure)
        result = _highest(weights, scale, choices)
        probability = weights[result]
    else:
        result = _highest(dict(counts), scale, choices)
    votes = {str(label): count for label, count in counts.items()}
    vote = VerdictVote(at, votes, counts[result] / len(choices), entropy(counts), probability=probability)
    return VoteResult(result, (vote,), tuple(float(one == result) for one in choices))


def _number(choices: Sequence[float], scale: LabelOrder, vote: Vote, at: str) -> VoteResult[float]:
    if vote == "unanimous":
        result: float = _least(sorted(set(choices)), scale, at)
    elif vote == "mean":
        mean = statistics.fmean(choices)
        # A whole number stays one: half-way between two, the lower.
        result = math.ceil(mean - 0.5) if scale.whole else min(max(choices), max(min(choices), mean))
    else:
        result = statistics.median_low(choices) if scale.whole else statistics.median(choices)
    counts: dict[str, int] = {}
    for one in choices:
        counts[f"{one:g}"] = counts.get(f"{one:g}", 0) + 1
    outcome = VerdictVote(at, counts, None, None, statistics.pstdev(choices))
    # Numbers do not agree or differ: the nearest speaks, and no number outweighs a verdict.
    return VoteResult(result, (outcome,), tuple(1 / (1 + abs(one - result)) for one in choices))


def _least(labels: Sequence[Any], scale: LabelOrder, at: str) -> Any:
    if len(labels) > 1 and not scale.ordered:
        names = ", ".join(str(label)[:40] for label in labels)
        raise JudgeDeclined(f"the judges are not unanimous on {at or 'the answer'}: {names}")
    return labels[0]


def _mean_probabilities(
    choices: Sequence[Any], labels: Sequence[Any], scale: LabelOrder, sure: Sequence[Sure]
) -> dict[Any, float]:
    """The mean, over judges, of the probability that each gives to each verdict that anybody gave."""
    everything = scale.worst_first or tuple(labels)
    totals = dict.fromkeys(labels, 0.0)
    for choice, confidence in zip(choices, sure, strict=True):
        if isinstance(confidence, Mapping):
            for label in labels:
                totals[label] += confidence.get(label, 0.0)
            continue
        own = 1.0 if confidence is None else confidence
        rest = (1 - own) / (len(everything) - 1) if len(everything) > 1 else 0.0
        for label in labels:
            totals[label] += own if label == choice else rest
    return {label: total / len(choices) for label, total in totals.items()}


def _highest(weights: Mapping[Any, float], scale: LabelOrder, choices: Sequence[Any]) -> Any:
    most = max(weights.values())
    tied = [label for label, weight in weights.items() if math.isclose(weight, most, rel_tol=1e-9)]
    if not scale.ordered:
        return next(one for one in choices if one in tied)
    return tied[(len(tied) - 1) // 2]  # they stand in order, the worst first


def entropy(counts: Mapping[Any, float]) -> float:
    """The entropy of shares in bits: -Σ p · log2 p; 0 when all are the same."""
    total = math.fsum(counts.values())
    return max(0.0, -math.fsum(n / total * math.log2(n / total) for n in counts.values() if n))


def weighted_together(choices: Sequence[Mapping[str, float] | None]) -> Mapping[str, float] | None:
    """The mean of probabilities over the judges that gave any; None when nobody did."""
    known = [one for one in choices if one]
    if not known:
        return None
    words = dict.fromkeys(word for one in known for word in one)
    return {word: math.fsum(one.get(word, 0.0) for one in known) / len(known) for word in words}


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def elect(question: Question[A], answers: Sequence[JudgeAnswer[A]], vote: Vote) -> VoteResult[A]:
    """One answer out of one or more to a question. Raises JudgeDeclined as `settle` does."""
    config = VoteConfig(vote, tuple(answer.confidence for answer in answers))
    values = [answer.value for answer in answers]
    return settle(values, config, question)


def answer_confidence(verdicts: Sequence[VerdictVote]) -> float | None:
    """How sure the least certain verdict is; None if there are only numbers. Not calibrated."""
    return min((vote.sureness for vote in verdicts if vote.sureness is not None), default=None)


def vote_detail(verdicts: Sequence[VerdictVote]) -> dict[str, Any]:
    """How the verdicts came about, as data: the means of agreement and entropy, and each verdict's own figures."""
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
    """One value of the question's type. What isn't voted on, lists among it, comes from the answer that agrees with
    most of the result. Where the parts that won do not make a value of the type (a model may have rules across its
    members), that answer is taken whole."""
    data = [to_jsonable(value) for value in values]
    schema = question.json_schema
    within = isinstance(data[0], dict) and set(cast("dict[str, Any]", data[0])) == set(schema["properties"])
    node = schema if within else schema["properties"]["answer"]
    outcome = _along(data, node, schema.get("$defs", {}), config, "")
    try:
        value = question.from_json(outcome.value if within else {"reason": "", "answer": outcome.value})
    except ReplyError:
        value = values[outcome.agreeing.index(max(outcome.agreeing))]
    return replace(outcome, value=value)


def _along(
    data: Sequence[Any], node: Mapping[str, Any], defined: Mapping[str, Any], config: VoteConfig, at: str
) -> VoteResult[Any]:
    """A vote along a node of a JSON schema."""
    node = resolved(node, defined)
    if "anyOf" in node:
        return _either(data, [resolved(option, defined) for option in node["anyOf"]], defined, config, at)
    if "properties" in node and all(isinstance(one, dict) for one in data):
        outcomes = {
            name: _along([one[name] for one in data], inner, defined, config, _join(at, name))
            for name, inner in node["properties"].items()
            if all(name in one for one in data)
        }
        won = {name: outcome for name, outcome in outcomes.items() if outcome.verdicts}
        result = _joined(won.values(), data)
        return replace(result, value={**result.value, **{name: outcome.value for name, outcome in won.items()}})
    if "enum" in node or node.get("type") == "boolean":
        return decided(data, _CHOICE, config, at, config.sure)
    if node.get("type") in ("integer", "number"):
        scale = LabelOrder(number=True, whole=node["type"] == "integer", ordered=False)
        return decided(data, scale, config, at, config.sure)
    return VoteResult(data[0], (), tuple(0.0 for _ in data))


def _either(
    data: Sequence[Any],
    options: Sequence[Mapping[str, Any]],
    defined: Mapping[str, Any],
    config: VoteConfig,
    at: str,
) -> VoteResult[Any]:
    """One value of several forms: a vote on the form, such as whether there is a value at all, then one among the
    values of that form."""
    common = next((option for option in options if all(_fits(one, option) for one in data)), None)
    forms = [common or next((option for option in options if _fits(one, option)), options[-1]) for one in data]
    names = [_form_of(form, options) for form in forms]
    vote = decided(names, _CHOICE, config, at, config.sure)
    chosen = [place for place, name in enumerate(names) if name == vote.value]
    among = VoteConfig(config.vote, tuple(config.sure[place] for place in chosen))
    outcome = _along([data[place] for place in chosen], forms[chosen[0]], defined, among, at)
    agreeing = dict(zip(chosen, outcome.agreeing, strict=True))
    # That all have one form is no verdict, but that there is no value is one.
    counts = len(set(names)) > 1 or data[chosen[0]] is None
    return VoteResult(
        outcome.value,
        (*(vote.verdicts if counts else ()), *outcome.verdicts),
        tuple(counts * vote.agreeing[place] + agreeing.get(place, 0.0) for place in range(len(data))),
    )


def _fits(value: Any, node: Mapping[str, Any]) -> bool:
    """Whether a value has the form of one of several nodes of a schema; told by its kind alone."""
    if "enum" in node:
        return value in node["enum"]
    match node.get("type"):
        case "object":
            return isinstance(value, dict) and set(cast("dict[str, Any]", value)) == set(node.get("properties", ()))
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "null":
            return value is None
        case _:
            return isinstance(value, str)


def _form_of(node: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> str:
    """What one of several forms is called in the votes: its type, or its place where another has that as well."""
    kind = node.get("type", "words")
    alike = sum(option.get("type", "words") == kind for option in options)
    return "none" if kind == "null" else str(kind) if alike < 2 else f"form {options.index(node) + 1}"

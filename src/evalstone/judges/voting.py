"""Many answers to one question made one: verdict by verdict, and pure arithmetic.

    majority    the verdict that most gave; of equally many the middle one, or the less favourable of two
                (without a known order: the one that was given first). Numbers: the median
    mean        the verdict with the highest mean probability; ties as above. Numbers: the mean
    unanimous   the least favourable verdict that anybody gave. Numbers: the lowest

A judge's probability for its own verdict is the confidence that it gave, 1 without one, and what is left is spread
over the other verdicts. What is no verdict (reasons, citations, lists that a judge makes) comes from one judge, the one
that agrees with most of the result, the first of equals; so a reason is never one for another verdict, as long as
anybody gave the verdict that came out.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from evalstone.errors import JudgeDeclined
from evalstone.questions.reply import LabelOrder, label_orders, subject_of
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


def settle(values: Sequence[A], ballot: VoteConfig) -> VoteResult[A]:
    """One answer out of one or more to the same question.

    Raises JudgeDeclined when the vote is unanimous, the judges differ, and no order says what is less favourable.
    """
    return _settled(values, ballot, "")


def _settled(values: Sequence[Any], ballot: VoteConfig, at: str) -> VoteResult[Any]:
    kind = cast("type[Any]", type(values[0]))
    if dataclasses.is_dataclass(kind) and all(type(value) is kind for value in values):
        return _object(values, ballot, at)
    if is_aligned(values):
        items = [
            _settled(column, ballot, _join(at, str(number)))
            for number, column in enumerate(zip(*values, strict=True), start=1)
        ]
        agreeing = tuple(map(sum, zip(*(item.agreeing for item in items), strict=True)))
        verdicts = tuple(vote for item in items for vote in item.verdicts)
        return VoteResult(tuple(item.value for item in items), verdicts, agreeing)
    # Without a verdict in it, an answer can only be taken whole.
    return VoteResult(values[0], (), tuple(0.0 for _ in values))


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


def _object(values: Sequence[Any], ballot: VoteConfig, at: str) -> VoteResult[Any]:
    kind = cast("type[Any]", type(values[0]))
    scales = label_orders(kind)
    found: dict[str, VoteResult[Any]] = {}
    for name in (field.name for field in dataclasses.fields(kind)):
        given = [getattr(value, name) for value in values]
        if name in scales:
            found[name] = decided(given, scales[name], ballot, _join(at, name), sure_of(values, ballot))
        elif is_aligned(given) or all(dataclasses.is_dataclass(one) for one in given):
            found[name] = _settled(given, ballot, _join(at, name))
    agreeing = tuple(sum(one.agreeing[place] for one in found.values()) for place in range(len(values)))
    speaker = values[agreeing.index(max(agreeing))]
    verdicts = tuple(vote for one in found.values() for vote in one.verdicts)
    made = {name: one.value for name, one in found.items()}
    if any(hasattr(value, "probabilities") for value in values):
        made["probabilities"] = weighted_together([value.probabilities for value in values])
    if kind is Choice:
        made["probability"] = _of_yes(values, ballot.vote)
    if hasattr(speaker, "confidence"):
        made["confidence"] = _confidence(values, made, scales)
    return VoteResult(replace(speaker, **made), verdicts, agreeing)


def _confidence(values: Sequence[Any], made: Mapping[str, Any], scales: Mapping[str, LabelOrder]) -> float | None:
    """The mean probability that the judges which say how sure they are give to the verdict that came out; None where
    none says so."""
    known = [value for value in values if value.confidence is not None]
    if not known or len(scales) != 1:
        return None
    ((name, scale),) = scales.items()
    given = [getattr(value, name) for value in known]
    labels = tuple(dict.fromkeys((made[name], *given)))
    return _mean_probabilities(given, labels, scale, [value.confidence for value in known])[made[name]]


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


def sure_of(values: Sequence[Any], ballot: VoteConfig) -> tuple[Sure, ...]:
    """How sure each judge was of one item: as the item says, else as the judge said of its whole answer."""
    own = [_said_of(value) for value in values]
    return tuple(whole if item is None else item for item, whole in zip(own, ballot.sure, strict=True))


def _said_of(value: Any) -> Sure:
    if isinstance(value, Choice) and value.probability is not None and value.verdict != "undecided":
        return {"yes": value.probability, "no": 1 - value.probability}
    return getattr(value, "confidence", None)


def decided(
    given: Sequence[Any], scale: LabelOrder, ballot: VoteConfig, at: str, sure: Sequence[Sure]
) -> VoteResult[Any]:
    """One verdict out of many. Raises JudgeDeclined as `settle` does."""
    if scale.number and all(isinstance(one, int | float) for one in given):
        return _number(given, scale, ballot.vote, at)
    labels = sorted(dict.fromkeys(given), key=lambda label: _rank(label, scale))
    counts = {label: sum(one == label for one in given) for label in labels}
    probability: float | None = None
    if ballot.vote == "unanimous":
        result = _least(labels, scale, at)
    elif ballot.vote == "mean":
        weights = _mean_probabilities(given, labels, scale, sure)
        result = _highest(weights, scale, given)
        probability = weights[result]
    else:
        result = _highest(dict(counts), scale, given)
    votes = {str(label): count for label, count in counts.items()}
    vote = VerdictVote(at, votes, counts[result] / len(given), entropy(counts), probability=probability)
    return VoteResult(result, (vote,), tuple(float(one == result) for one in given))


def _number(given: Sequence[float], scale: LabelOrder, vote: Vote, at: str) -> VoteResult[float]:
    if vote == "unanimous":
        result: float = _least(sorted(set(given)), scale, at)
    elif vote == "mean":
        mean = statistics.fmean(given)
        # A whole number stays one: half-way between two, the lower.
        result = math.ceil(mean - 0.5) if scale.whole else min(max(given), max(min(given), mean))
    else:
        result = statistics.median_low(given) if scale.whole else statistics.median(given)
    counts: dict[str, int] = {}
    for one in given:
        counts[f"{one:g}"] = counts.get(f"{one:g}", 0) + 1
    found = VerdictVote(at, counts, None, None, statistics.pstdev(given))
    # Numbers do not agree or differ: the nearest speaks, and no number outweighs a verdict.
    return VoteResult(result, (found,), tuple(1 / (1 + abs(one - result)) for one in given))


def _least(labels: Sequence[Any], scale: LabelOrder, at: str) -> Any:
    if len(labels) > 1 and not scale.ordered:
        told = ", ".join(str(label)[:40] for label in labels)
        raise JudgeDeclined(f"the judges are not unanimous on {at or 'the answer'}: {told}")
    return labels[0]


def _rank(label: Any, scale: LabelOrder) -> int:
    return scale.worst_first.index(label) if label in scale.worst_first else 0


def _mean_probabilities(
    given: Sequence[Any], labels: Sequence[Any], scale: LabelOrder, sure: Sequence[Sure]
) -> dict[Any, float]:
    """The mean, over judges, of the probability that each gives to each verdict that anybody gave."""
    everything = scale.worst_first or tuple(labels)
    totals = dict.fromkeys(labels, 0.0)
    for said, confidence in zip(given, sure, strict=True):
        if isinstance(confidence, Mapping):
            for label in labels:
                totals[label] += confidence.get(label, 0.0)
            continue
        own = 1.0 if confidence is None else confidence
        rest = (1 - own) / (len(everything) - 1) if len(everything) > 1 else 0.0
        for label in labels:
            totals[label] += own if label == said else rest
    return {label: total / len(given) for label, total in totals.items()}


def _highest(weights: Mapping[Any, float], scale: LabelOrder, given: Sequence[Any]) -> Any:
    most = max(weights.values())
    tied = [label for label, weight in weights.items() if math.isclose(weight, most, rel_tol=1e-9)]
    if not scale.ordered:
        return next(one for one in given if one in tied)
    return tied[(len(tied) - 1) // 2]  # they stand in order, the worst first


def entropy(counts: Mapping[Any, float]) -> float:
    """The entropy of shares in bits: -Σ p · log2 p; 0 when all are the same."""
    total = math.fsum(counts.values())
    return max(0.0, -math.fsum(n / total * math.log2(n / total) for n in counts.values() if n))


def weighted_together(given: Sequence[Mapping[str, float] | None]) -> Mapping[str, float] | None:
    """The mean of probabilities over the judges that gave any; None when nobody did."""
    known = [one for one in given if one]
    if not known:
        return None
    words = dict.fromkeys(word for one in known for word in one)
    return {word: math.fsum(one.get(word, 0.0) for one in known) / len(known) for word in words}


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name

"""Outcomes of scoring, the judge calls behind them, and records, which combine both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from evalstone._core.display import excerpt
from evalstone._core.file_format import RECORD_FORMAT
from evalstone._core.guards import is_object, python_value
from evalstone._core.json import to_jsonable
from evalstone._core.sizes import MOST_SCALE
from evalstone._core.truth import NoTruthValue
from evalstone._core.validation import read_data
from evalstone._core.values import NamesArguments
from evalstone.errors import DataError, OutcomeError, absent, invalid
from evalstone.types.messages import NO_USAGE, Usage
from evalstone.types.samples import case_key, read_weight

_RECORD = str(RECORD_FORMAT)  # an exact text is written and compared faster


def _as_float(name: str, value: object) -> float:
    """A number as a float. Raises OutcomeError for other types."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise OutcomeError(invalid(name, "a number", value, f"{type(value).__name__}: {excerpt(value)}"))
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Score(NoTruthValue, metaclass=NamesArguments):
    """A score. Whether higher or lower is better depends on the scorer.

        Score(0.5, "one of two claims")          Score(True) is the scale, Score(False) is 0

    Raises:
        OutcomeError: The value is not a finite number, it or the scale is out of range, or the reason is not text.
    """

    _tested_by = ".value, against a threshold"

    value: float
    """Between 0 and `scale`. True is the scale, and False is 0."""
    reason: str = ""
    """A readable explanation, as a sentence."""
    _: KW_ONLY
    scale: float | None = None
    """The highest possible value. None is the scale of the scorer that returns it. In a record, it is always a number:
    1 if a record is made without a scorer."""
    evidence: Any = ()
    """The explanation as data, such as claims with their verdicts. Records contain it as JSON data: dataclasses and
    pydantic models become objects, tuples lists, sets sorted lists, and anything else its text."""

    def __post_init__(self) -> None:
        value = self.value
        if type(value) is not float:
            truth = python_value(value)
            if isinstance(truth, bool):
                self._set_truth(truth)
                return
            value = _as_float("a score", truth)
            object.__setattr__(self, "value", value)
        if not -math.inf < value < math.inf:
            raise OutcomeError(invalid("a score", "finite", value))
        self._check_rest()
        if self.scale is None:
            if not 0 <= value <= MOST_SCALE:
                limit = "0 or more" if value < 0 else f"{MOST_SCALE:g} at most"
                raise OutcomeError(invalid("a score", limit, value))
            return
        if not 0 <= value <= self.scale:
            raise OutcomeError(invalid("a score", f"in [0, {self.scale:g}]", value))

    def _set_truth(self, value: bool) -> None:
        """Set the value to the scale or 0. Without a scale, it stays a bool until the scorer's scale is known."""
        self._check_rest()
        object.__setattr__(self, "value", value if self.scale is None else self.scale * value)

    def _check_rest(self) -> None:
        """Check the reason and the scale. Raises OutcomeError."""
        _check_reason(self.reason)
        if self.scale is None:
            return
        scale = _as_float("a score's scale", self.scale)
        object.__setattr__(self, "scale", scale)
        if not 0 < scale <= MOST_SCALE:
            limit = f"{MOST_SCALE:g} at most" if 0 < scale < math.inf else "a positive number"
            raise OutcomeError(invalid("a score's scale", limit, scale))

    @property
    def fraction(self) -> float:
        """The value divided by the scale; by 1 if that is None."""
        return self.value if self.scale is None else self.value / self.scale


@dataclass(frozen=True)
class Skipped(NoTruthValue, metaclass=NamesArguments):
    """The score is undefined for this sample. The sample isn't part of the mean.

    Raises:
        OutcomeError: The reason is not text.
    """

    _tested_by = "isinstance(outcome, Score)"

    reason: str
    """The reason, without a period at the end, because reports put words before it."""

    def __post_init__(self) -> None:
        _check_reason(self.reason)


TARGET_FAILED = "the target failed: "
"""The prefix of errors in records whose target gave no answer."""


@dataclass(frozen=True)
class Failed(NoTruthValue, metaclass=NamesArguments):
    """An error. The sample isn't part of the mean."""

    _tested_by = Skipped._tested_by

    error: str
    reply: str | None = None
    """The judge's raw reply, if there was one."""
    exception: str | None = field(default=None, compare=False)
    """The type of the exception that a scorer's code raised, such as KeyError; of an imported result, what failed, such
    as JudgeFailed (docs/import.md)."""
    traceback: str | None = field(default=None, compare=False)
    """Its traceback, starting at the scorer's code."""

    def __post_init__(self) -> None:
        _check_reason(self.error, "an error")

    @property
    def reason(self) -> str:
        """The error on one line, so that every outcome has a reason."""
        return " ".join(self.error.split())

    @property
    def stored_error(self) -> dict[str, Any]:
        """The error as data, as a line of `records.jsonl` has it."""
        error: dict[str, Any] = {"message": self.error, "reply": self.reply}
        if self.exception is not None:
            error |= {"exception": self.exception, "traceback": self.traceback}
        return error

    @property
    def by_target(self) -> bool:
        """Whether the target failed, rather than the judge, the user or the scorer."""
        return self.error.startswith(TARGET_FAILED)


Outcome: TypeAlias = Score | Skipped | Failed


CallSource: TypeAlias = Literal["asked", "shared", "cached"]
"""Where an answer is from: a call that was made for it (asked), an equal call of the same run (shared), or the ledger
(cached). Only a call that was asked costs anything."""


@dataclass(frozen=True, kw_only=True)
class JudgeCall:
    """One question to a judge, with its answer."""

    question: str
    """The kind of the question."""
    fingerprint: str
    """A hash of the question."""
    judge: str
    """The identity of the judge."""
    answer: Any
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; 0 for a shared or cached answer, None if the price is unknown."""
    seconds: float = 0.0
    probability: float | None = None
    """The probability that the answer is right, if the judge returned one."""
    source: CallSource = "asked"
    """Where the answer, or the failure, is from."""
    reply: str | None = None
    """The judge's raw reply."""
    alternatives: Mapping[str, float] | None = None
    """The probability of each possible verdict, if the provider returned it."""
    refused_settings: tuple[str, ...] = ()
    """The judge's settings that its endpoint refused. This answer was given without them."""
    repeat_index: int = 0
    """The number of this answer among several to the same question, from 0."""
    members: tuple[JudgeCall, ...] = ()
    """The calls of a composite judge's members; their usage and cost are included in this call's."""
    detail: Mapping[str, Any] | None = None
    """For a composite judge, how it combined the answers. For a model, the replies that were corrected, with their
    errors (`corrections`), the `temperature` and `seed` of a correction that started afresh, a `doubt` about the reply,
    or why there is no answer (`error`). For any judge, which `citations` hardly fit their claims."""

    def leaves(self) -> Iterator[JudgeCall]:
        """The calls to single judges: this one, or those of the members."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()

    def sources(self) -> Iterator[CallSource]:
        """The sources of the single judges' calls, to be counted. Calls that ended before a request was sent aren't
        counted, nor are shared failures."""
        return (leaf.source for leaf in self.leaves() if leaf.answer is not None or leaf.usage.requests > 0)


def total_cost(costs: Any) -> float | None:
    """The sum of costs in US dollars; None if any of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


TOLERANCE = 1e-9
"""The rounding tolerance of thresholds, as a share of the scale."""


def reaches(value: float, threshold: float, scale: float = 1.0, *, lower_is_better: bool = False) -> bool:
    """Whether a value reaches a threshold: it is at least the threshold, or at most the threshold if lower is better.

        value >= threshold - 1e-9 · scale,   or value <= threshold + 1e-9 · scale

    The tolerance allows for floating-point rounding: eight times 0.1 adds up to 0.7999999999999999, which reaches 0.8.

    Args:
        value: The score, label or mean.
        threshold: The threshold, in the unit of the value.
        scale: The upper end of the range of scores.
        lower_is_better: Whether the value must be at most the threshold.
    """
    missing = value - threshold if lower_is_better else threshold - value
    return missing <= TOLERANCE * scale


@dataclass(frozen=True, kw_only=True)
class Record(NoTruthValue):
    """The outcome of one scorer on one sample, with the judge calls behind it."""

    _tested_by = ".value, against a threshold; it is None without a score"

    sample_id: str
    """The sample's id."""
    scorer: str
    """The scorer's name, with its parameters if another scorer of the run has the same name: `run[record.scorer]` is
    its summary."""
    signature: str
    """The scorer's signature: its name, its parameters, what it asks and its version."""
    outcome: Outcome
    calls: tuple[JudgeCall, ...] = ()
    seconds: float = 0.0
    group: str | None = None
    """The sample's `group`; without one, for a trial, the sample's id."""
    trial: int | None = None
    """The sample's `trial`."""
    weight: float | None = None
    """The sample's `weight`."""
    left_out_cost: float | None = 0.0
    """US dollars of judge calls that aren't in `calls`, because the run didn't keep them; None if a price is
    unknown."""

    def __post_init__(self) -> None:
        if isinstance(self.outcome, Score) and self.outcome.scale is None:
            object.__setattr__(self, "outcome", replace(self.outcome, scale=1.0))
        if self.weight is not None:
            read_weight(self.weight)

    @property
    def key(self) -> str:
        """The sample's `key`."""
        return case_key(self.sample_id, self.trial)

    @property
    def cost(self) -> float | None:
        """US dollars paid for this record; None if the price of a call is unknown."""
        return total_cost(call.cost for call in self.calls) if self.calls else self.left_out_cost

    @property
    def value(self) -> float | None:
        """The score's value; None if there is no score."""
        return self.outcome.value if isinstance(self.outcome, Score) else None

    @property
    def reason(self) -> str:
        """The outcome's reason: an explanation of the score, why it was skipped, or the error."""
        return self.outcome.reason

    @property
    def evidence(self) -> Any:
        """The score's explanation as data; None if there is no score."""
        return self.outcome.evidence if isinstance(self.outcome, Score) else None

    def to_dict(self) -> dict[str, Any]:
        """The record as a line of `records.jsonl`; docs/results.md describes the format."""
        outcome = self.outcome
        return {
            "format": _RECORD,
            "sample_id": self.sample_id,
            "scorer": self.scorer,
            "signature": self.signature,
            "outcome": OUTCOME_NAMES[type(outcome)],
            "value": outcome.value if isinstance(outcome, Score) else None,
            "scale": outcome.scale if isinstance(outcome, Score) else None,
            "reason": outcome.reason,
            "evidence": to_jsonable(self.evidence),
            "calls": [to_jsonable(call) for call in self.calls],
            "seconds": self.seconds,
            "cost": self.cost,
            "error": outcome.stored_error if isinstance(outcome, Failed) else None,
            **({} if self.group is None else {"group": self.group}),
            **({} if self.trial is None else {"trial": self.trial}),
            **({} if self.weight is None else {"weight": self.weight}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """Create a record from a line of `records.jsonl`. Evidence and answers stay plain data.

        Unknown fields are ignored. An outcome of an unknown kind has no score: it is `Skipped`, with the kind in its
        reason.

        Raises:
            DataError: It has another format, a field is missing, or has a value of the wrong type.
            OutcomeError: The score is out of range.
        """
        if (usual := _usual(data)) is not None:
            return usual
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(invalid("a record", "an object", data, type(data).__name__))
        RECORD_FORMAT.check(data)
        match data.get("outcome"):
            case "score":
                outcome: Outcome = read_data(Score, data)
            case "skipped":
                outcome = read_data(Skipped, data)
            case "failed":
                error = read_data(_StoredError, data.get("error"))
                outcome = Failed(error.message, error.reply, error.exception, error.traceback)
            case str() as other:
                outcome = Skipped(f"{other}: {read_data(Skipped, data).reason}")
            case other:
                raise DataError(invalid("outcome", "score, skipped or failed", other))
        if "calls" not in data:
            raise DataError(absent("calls", "calls is missing"))
        return read_data(cls, {**data, "outcome": outcome})


_USUAL_FIELDS = (
    *("format", "outcome", "calls", "sample_id", "scorer", "signature", "reason", "value", "scale", "seconds"),
    *("evidence", "cost", "error"),
)
_USUAL = itemgetter(*_USUAL_FIELDS)


def _usual(data: object) -> Record | None:
    """The record of a score that no judge was asked for, like most records of large runs, in a quarter of the time;
    None for any other record, and for invalid data."""
    if not is_object(data) or len(data) != len(_USUAL_FIELDS):
        return None
    try:
        number, outcome, calls, sample, scorer, signature, reason, value, scale, seconds, evidence, _, _ = _USUAL(data)
    except KeyError:
        return None
    if number != _RECORD or outcome != "score" or calls != []:
        return None
    return scored_record(sample, scorer, signature, value, scale, reason, evidence, seconds)


def scored_record(
    sample: Any,
    scorer: Any,
    signature: Any,
    value: Any,
    scale: Any,
    reason: Any,
    evidence: Any,
    seconds: Any,
    left_out_cost: Any = 0.0,
) -> Record | None:
    """The record of a score without judge calls, group, trial and weight, in a quarter of the time that the
    constructors take; None for invalid values."""
    if (
        type(sample) is type(scorer) is type(signature) is type(reason) is str
        and type(value) is type(scale) is type(seconds) is float
        and 0 <= value <= scale
        and 0 < scale <= MOST_SCALE
        and -math.inf < seconds < math.inf
        and (left_out_cost is None or (type(left_out_cost) is float and -math.inf < left_out_cost < math.inf))
    ):
        # What their constructors check is checked.
        score, record = object.__new__(Score), object.__new__(Record)
        fields = vars(score)
        fields["value"], fields["scale"], fields["reason"], fields["evidence"] = value, scale, reason, evidence
        fields = vars(record)
        fields["sample_id"], fields["scorer"], fields["signature"] = sample, scorer, signature
        fields["outcome"], fields["calls"], fields["seconds"] = score, (), seconds
        fields["group"] = fields["trial"] = fields["weight"] = None
        fields["left_out_cost"] = left_out_cost
        return record
    return None


@dataclass(frozen=True)
class _StoredError:
    """`error` in a line of `records.jsonl`."""

    message: str
    reply: str | None = None
    exception: str | None = None
    traceback: str | None = None


def _check_reason(text: object, name: str = "a reason") -> None:
    if not isinstance(text, str):
        raise OutcomeError(invalid(name, "text", text, f"{type(text).__name__}: {excerpt(text)}"))


OUTCOME_NAMES: Mapping[type[Outcome], str] = {Score: "score", Skipped: "skipped", Failed: "failed"}

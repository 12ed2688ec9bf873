"""Samples: the cases to score."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, TypedDict, cast

from evalstone._core.display import excerpt
from evalstone._core.guards import is_mapping, is_texts
from evalstone._core.json import content_hash
from evalstone._core.read_as import EMPTY, NOTHING, ReadAs
from evalstone._core.text import is_blank
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, DataError, invalid, unknown
from evalstone.types.agreement import agreed
from evalstone.types.documents import Passages, read_passages
from evalstone.types.messages import Message
from evalstone.types.trajectories import (
    ExpectationData,
    Trajectory,
    TrajectoryData,
    TrajectoryExpectation,
    entries_of,
    items_of,
)

SAMPLE_FIELDS = (
    "input",
    "output",
    "context",
    "reference",
    "messages",
    "instructions",
    "metadata",
    "group",
    "weight",
    "trajectory",
    "expected_trajectory",
    "state",
    "turns",
)
LISTS = ("messages", "turns")
"""The sample fields that are empty instead of None if absent."""
_HASHED_IF_PRESENT = ("group", "weight", "trajectory", "expected_trajectory", "state", "turns")
_LAST_TRIAL = 2**63 - 1
_DEFAULT_ID = "hash-"
_IS_DEFAULT_ID = re.compile(_DEFAULT_ID + "[0-9a-f]{16}(?![0-9a-f])")
USER_METADATA = ("goal", "persona", "facts")
"""The entries of the metadata that describe a simulated user."""
TEXTS = ("id", "input", "output", "reference", "instructions")
"""The fields of a sample that are texts."""


def check_text(name: str, value: object) -> None:
    """Raise ConfigError if a field has a value that isn't text."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(invalid(name, "text", value, f"{type(value).__name__}: {excerpt(value)}"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample(metaclass=NamesArguments):
    """One case to score. A field that is None is absent, and scorers that require it skip the sample.

    Raises:
        ConfigError: A field has the wrong type.
    """

    _usual: ClassVar[tuple[str, ...]] = ("input", "output")

    id: str = ""
    """Your own ID. By default, a hash of the content: "hash-" and 16 hexadecimal digits."""
    input: str | None = None
    """The user's question or request."""
    output: str | None = None
    """The answer to score."""
    context: ReadAs[Passages | None, Sequence[str] | None] = NOTHING
    """The retrieved passages, in the order of retrieval. A single text is one passage, unless it is a list in JSON or
    Python."""
    reference: str | None = None
    """The expected answer."""
    messages: Sequence[Message] = ()
    """The whole conversation, with its tool calls. If there is a trajectory too, the tool calls of either are merged
    into both: field by field, and a call that only one of them has is added to the other, with a note."""
    instructions: str | None = None
    """The system prompt."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Any other data. Some scorers, targets and simulated users read entries of it (docs/data.md)."""
    group: ReadAs[str | float | None, str | None] = NOTHING
    """The cluster of the sample. Samples of one group, such as questions about one document, are not independent, and
    confidence intervals account for it. A number is taken as text."""
    weight: float | None = None
    """How many samples of the population this one represents: a finite number above 0. Means are weighted by it. Only
    ratios of weights matter; None counts as 1."""
    trajectory: ReadAs[TrajectoryData | None, Trajectory | None] = NOTHING
    """The steps that the agent took; plain data is accepted too."""
    expected_trajectory: ReadAs[ExpectationData | None, TrajectoryExpectation | None] = NOTHING
    """The expected trajectory; plain data is accepted too."""
    state: Any = None
    """The final state that a target left, as JSON data: files, database rows, a shopping cart."""
    turns: ReadAs[Sequence[Sample | Mapping[str, Any] | str], Sequence[Sample]] = EMPTY
    """The turns of a conversation. Each turn is a sample: what the user says (`input`), the expected answer, and, after
    a target has answered, its answer and the messages of this turn only. A text is taken as the input; plain data is
    accepted too. The default IDs are "1", "2", … The input of the conversation is that of the first turn."""
    trial: int | None = None
    """The number of this trial of a target, from 1; None if there is only one trial."""

    def __post_init__(self) -> None:
        for name in TEXTS:
            value = getattr(self, name)
            if value is not None and type(value) is not str:
                check_text(name, value)
        if self.context is not None:
            object.__setattr__(self, "context", passages(self.context))
        if self.turns != ():
            object.__setattr__(self, "turns", _turns(self.turns))
            if self.input is None and self.turns:
                object.__setattr__(self, "input", self.turns[0].input)
        if self.trajectory is not None:
            object.__setattr__(self, "trajectory", Trajectory.read(self.trajectory))
        if self.expected_trajectory is not None:
            object.__setattr__(self, "expected_trajectory", TrajectoryExpectation.read(self.expected_trajectory))
        for name, kind, usual in (("messages", Sequence, tuple), ("metadata", Mapping, dict)):
            if type(value := getattr(self, name)) is usual:
                continue
            if isinstance(value, str) or not isinstance(value, kind):
                expected = "a list of Message values" if name == "messages" else "a mapping"
                raise ConfigError(invalid(name, expected, value, f"{type(value).__name__}: {excerpt(value)}"))
        if self.messages != ():
            object.__setattr__(self, "messages", tuple(self.messages))
        for message in self.messages:
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(invalid("messages", "Message values", message, type(message).__name__))
        if self.trajectory is not None and self.messages:
            messages, trajectory = agreed(self.messages, self.trajectory)
            object.__setattr__(self, "messages", messages)
            object.__setattr__(self, "trajectory", trajectory)
        if self.trial is not None and not (type(self.trial) is int and 1 <= self.trial <= _LAST_TRIAL):
            raise ConfigError(invalid("trial", f"a whole number from 1 to {_LAST_TRIAL}", self.trial))
        if self.group is not None:
            object.__setattr__(self, "group", read_group(self.group))
        if self.weight is not None:
            object.__setattr__(self, "weight", read_weight(self.weight))
        if not self.id:
            object.__setattr__(self, "id", self.default_id)

    @property
    def cluster(self) -> str | None:
        """The samples that this one depends on: those of its group. Without one, the trials of a sample are a group."""
        return self.id if self.group is None and self.trial is not None else self.group

    @property
    def default_id(self) -> str:
        """The ID that the sample has without one of its own: a hash of the content."""
        return default_id(self.content_hash)

    @property
    def has_own_id(self) -> bool:
        """Whether the ID is your own, not a default ID."""
        return is_own_id(self.id)

    @property
    def key(self) -> str:
        """The ID; for a trial, the ID with its number: "q1 #2"."""
        return case_key(self.id, self.trial)

    @functools.cached_property
    def content_hash(self) -> str:
        """A hash of all fields except the ID and the notes on messages. Raises DataError for a field that JSON can't
        represent, such as NaN."""
        values = vars(self)
        hashed = {n: v for n in SAMPLE_FIELDS if (v := values[n]) is not None or n not in _HASHED_IF_PRESENT}
        hashed["messages"] = [replace(message, notes=()) if message.notes else message for message in self.messages]
        hashed["turns"] = [(turn.id, turn.content_hash) for turn in self.turns]
        if not hashed["turns"]:
            del hashed["turns"]
        try:
            return content_hash(hashed, strict=True)
        except ValueError:
            for name, value in hashed.items():
                try:
                    content_hash(value, strict=True)
                except ValueError as error:
                    of = f"sample {self.id!r}" if self.id else "a sample"
                    raise DataError(f"{of}: {name} cannot be written as JSON: ", error) from None
            raise

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return self.id == other.id and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash((self.id, self.content_hash))


def changed(sample: Sample, **values: Any) -> Sample:
    """The sample with other values of some fields, as by `replace`, but in a fifth of the time: each must be one that a
    sample or an answer has, which is not checked again."""
    trajectory, messages = (values.get(name, getattr(sample, name)) for name in ("trajectory", "messages"))
    if trajectory is not None and messages:
        return replace(sample, **values)  # the tool calls of both are merged
    new: Sample = object.__new__(type(sample))
    entries = vars(new)
    entries.update(vars(sample))
    entries.update(values)
    entries.pop("content_hash", None)
    return new


class ExchangeFields(TypedDict, total=False):
    """The fields of a sample beside its input, output and messages, as keyword arguments."""

    id: str
    context: Passages | None
    reference: str | None
    instructions: str | None
    metadata: Mapping[str, Any]
    group: str | float | None
    weight: float | None
    trajectory: TrajectoryData | None
    expected_trajectory: ExpectationData | None
    state: Any
    turns: Sequence[Sample | Mapping[str, Any] | str]


class SampleFields(ExchangeFields, total=False):
    """The fields of a sample as keyword arguments: what a call that scores one sample takes instead of a Sample."""

    input: str | None
    output: str | None
    messages: Sequence[Message | Mapping[str, Any]]


def _turns(value: object) -> tuple[Sample, ...]:
    """Turns from samples, texts or plain data. Raises ConfigError that names the turn."""
    turns: list[Sample] = []
    for number, item in enumerate(items_of(value, "turns"), start=1):
        try:
            turn = item if isinstance(item, Sample) else _turn(item, str(number))
        except ConfigError as error:
            raise ConfigError(f"turn {number}: ", error) from None
        if turn.input is None or not turn.input.strip():
            raise ConfigError(f"turn {number} must have an input: what the user says")
        if turn.turns:
            raise ConfigError(f"turn {number} must not have turns of its own")
        turns.append(turn)
    return tuple(turns)


def _turn(item: object, id: str) -> Sample:
    if isinstance(item, str):
        return Sample(id=id, input=item)
    entries = entries_of(item, "a turn", snake=False)
    for name in entries:
        if name not in ("id", *SAMPLE_FIELDS):
            raise ConfigError(unknown("sample field", name, ("id", *SAMPLE_FIELDS)))
    fields: dict[str, Any] = {"id": id, **entries}
    return Sample(**fields)


LARGEST = sys.float_info.max


def read_group(value: object, name: str = "group") -> str | None:
    """A group as text; None for a blank one. Raises DataError for anything but text or a finite number."""
    if isinstance(value, str):
        return None if is_blank(value) else value
    if isinstance(value, bool) or not isinstance(value, Real) or not abs(number := float(value)) <= LARGEST:
        raise DataError(invalid(name, "a text or a number", value, f"{type(value).__name__}: {excerpt(value)}"))
    return str(int(number) if number.is_integer() else number)


def read_weight(value: object, name: str = "weight") -> float:
    """A weight as a number. Raises DataError for anything but a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < cast("float", value) <= LARGEST:
        raise DataError(invalid(name, "a finite number above 0", value))
    return float(value)


def is_own_id(id: str) -> bool:
    """Whether an ID is a user's own. A default ID shows that by its form, so that it is still known as one when it was
    stored and read again, and after a target has changed the content."""
    return _IS_DEFAULT_ID.match(id) is None


def default_id(content_hash: str) -> str:
    """The ID of a sample without one of its own."""
    return _DEFAULT_ID + content_hash[:16]


def default_id_note(id: str) -> str:
    """Why a sample with this ID can be missing elsewhere, for messages; "" for an ID of the user's own."""
    return "" if is_own_id(id) else " (it has no ID of its own, and its default ID changes with its content)"


def case_key(sample: str, trial: int | None) -> str:
    """The key of a sample or of one of its trials: "q1", "q1 #2"."""
    return sample if trial is None else f"{sample} #{trial}"


def metadata_at(metadata: Mapping[str, Any], path: str) -> Any:
    """An entry of the metadata, by its name or a path of names (`doc.title`) in its objects; None if it is absent."""
    value: Any = metadata
    for name in (path,) if path in metadata else path.split("."):
        value = value.get(name) if is_mapping(value) else None
    return value


def trace_metadata(sample: Sample) -> Mapping[str, Any]:
    """The trace that a sample comes from: `metadata["trace"]`, or empty if that isn't a mapping."""
    trace: object = sample.metadata.get("trace")
    return trace if is_mapping(trace) else {}


def passages(value: object) -> tuple[str, ...] | None:
    """Passages as a tuple, as by `read_passages`. Raises ConfigError for anything else, and for a missing passage."""
    if value is None:
        return None
    if is_texts(value):
        return tuple(value)
    try:
        read = read_passages(value)
    except DataError as error:
        raise DataError("context ", error) from None
    if None in read:
        raise ConfigError(invalid(f"context passage {read.index(None) + 1}", "text", None, "NoneType: None"))
    return tuple(cast("list[str]", read))

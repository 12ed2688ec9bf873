"""Answers of targets: the fields of an answer, how they are read from what a target returned, and put into a sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone._core.display import excerpt, joined, shortlist
from evalstone._core.guards import is_mapping, is_sequence
from evalstone._core.json import encoder, strict_jsonable, to_jsonable
from evalstone._core.read_as import EMPTY, NOTHING, ReadAs
from evalstone._core.validation import read_data
from evalstone._core.values import NamesArguments
from evalstone.agents.formats.messages import conversation_in
from evalstone.agents.formats.values import plain
from evalstone.agents.from_traces import extract_trajectory_from_trace, spans_in
from evalstone.agents.messages import answer_text, answer_usage, system_prompt, usage_of
from evalstone.agents.transcripts import Transcript, read_transcript
from evalstone.datasets.columns import field_of
from evalstone.datasets.stored import NESTED, sample_row
from evalstone.errors import ConfigError, DataError, TargetError, invalid, unknown
from evalstone.targets.base import conversation
from evalstone.types import NO_USAGE, Message, Sample, Trajectory, TrajectoryData, Usage, passages
from evalstone.types.documents import Passages
from evalstone.types.samples import changed, check_text

_NO_USAGE: Any = NO_USAGE
_OF_THE_CALL = "target"
"""The entry of the metadata that an answer may not have: it describes the call."""


@dataclass(frozen=True, kw_only=True)
class Answer(metaclass=NamesArguments):
    """A target's answer to a sample. A target that returns only text can return the text itself.

    Raises:
        ConfigError: A field has the wrong type, or the state or the trace is not JSON data.
        TargetError: There is neither an output nor a message, and the spans in `trace` are of a run that failed.
    """

    output: str | None = None
    """The answer; by default, the assistant's last message after the last user message, else that of the spans in
    `trace`."""
    messages: ReadAs[Sequence[Message | Mapping[str, Any]], Sequence[Message]] = EMPTY
    """The conversation with its tool calls: Message values, or messages of a known format. By default, those of the
    spans in `trace`."""
    context: ReadAs[Passages | None, Sequence[str] | None] = NOTHING
    """The retrieved passages, in order of retrieval; by default those in the messages, if they are of a format that has
    some, else those of the spans in `trace`."""
    trajectory: ReadAs[TrajectoryData | None, Trajectory | None] = NOTHING
    """The steps that the agent or workflow took; plain data is accepted too. By default, those of the spans in
    `trace`."""
    state: Any = None
    """The final state, for scorers of the outcome: JSON data."""
    instructions: str | None = None
    """The system prompt, if it isn't that of the sample; by default, the system messages."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Any other data for scorers, added to the sample's: JSON data. It can't have `target`."""
    usage: ReadAs[Usage | Mapping[str, int], Usage] = _NO_USAGE
    """Tokens, if known; by default those of the messages after the user's last one, if they have counts, else those of
    the spans in `trace`."""
    cost: float | None = None
    """US dollars; by default that of the spans in `trace`; None if unknown."""
    trace: Any = None
    """Anything to keep with the answer, such as its spans or the id of its trace: JSON data, or objects of
    OpenTelemetry's SDK. Spans of one request fill the fields that aren't given, as `read_transcript` reads them."""
    turns: ReadAs[Sequence[Sample | Mapping[str, Any] | str], Sequence[Sample]] = EMPTY
    """The turns of a conversation that the target held on its own, with their answers."""

    def __post_init__(self) -> None:
        check_text("output", self.output)
        check_text("instructions", self.instructions)
        if not is_sequence(self.messages):
            raise ConfigError(
                invalid(
                    "messages", "a list", self.messages, f"{type(self.messages).__name__}: {excerpt(self.messages)}"
                )
            )
        if not all(isinstance(message, Message) for message in self.messages):
            read = conversation_in(to_jsonable(list(self.messages)))
            object.__setattr__(self, "messages", read.messages)
            if self.context is None and read.passages:
                object.__setattr__(self, "context", [*read.passages])
        object.__setattr__(self, "messages", tuple(self.messages))
        if self.context is not None:
            object.__setattr__(self, "context", passages(self.context))
        usage = cast(object, self.usage)
        if is_mapping(usage):
            names = [each.name for each in dataclasses.fields(Usage)]
            for name in usage:
                if name not in names:
                    raise ConfigError("usage has an ", unknown("field", str(name), names))
            object.__setattr__(self, "usage", read_data(Usage, cast(object, usage)))
        elif not isinstance(usage, Usage):
            raise ConfigError(invalid("usage", "a Usage", usage, f"{type(usage).__name__}: {excerpt(usage)}"))
        for name, tokens in () if self.usage is NO_USAGE else vars(self.usage).items():
            if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
                raise ConfigError(invalid(f"{name} of usage", "a whole number, 0 or more", tokens))
        cost = cast(object, self.cost)
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e9):
            raise ConfigError(invalid("cost", "US dollars, 0 or more", cost))
        if self.messages and self.usage == NO_USAGE:
            object.__setattr__(self, "usage", answer_usage(self.messages))
        if self.output is None:
            object.__setattr__(self, "output", answer_text(self.messages))
        if isinstance(self.trace, Trajectory):
            raise ConfigError("trace is a Trajectory; pass it as trajectory")
        if self.trace is not None:
            object.__setattr__(self, "trace", plain(self.trace))
            self._read_trace()
        if self.trajectory is not None:
            steps = Trajectory.read(self.trajectory)
            object.__setattr__(self, "trajectory", Trajectory.read(_json("trajectory", steps)))
        self._check_metadata()
        for name in ("state", "trace", "metadata"):
            if (value := getattr(self, name)) is not None and not (name == "metadata" and value == {}):
                object.__setattr__(self, name, _json(name, value))
        if self.turns != ():
            sample = Sample(id="-", turns=self.turns)  # without an id, it would hash the whole conversation
            object.__setattr__(self, "turns", sample.turns)

    def _read_trace(self) -> None:
        """Fill the fields that were not given with what the spans of the trace say."""
        said, failure = _said_in(self.trace)
        if failure and self.output is None and not self.messages:
            raise TargetError(failure)
        for name, value in said.items():
            if getattr(self, name) == getattr(_EMPTY, name):
                object.__setattr__(self, name, value)

    def _check_metadata(self) -> None:
        metadata = cast(object, self.metadata)
        if not isinstance(metadata, Mapping):
            raise ConfigError(
                invalid("metadata", "a mapping", metadata, f"{type(metadata).__name__}: {excerpt(metadata)}")
            )
        if _OF_THE_CALL in metadata:
            raise ConfigError(f"metadata of an answer can't have {_OF_THE_CALL}, which describes the call")

    @classmethod
    def of(cls, value: object, *, by: str = "the target") -> Answer:
        """An Answer from what a target returned: text, an Answer, a mapping of its fields, or the result of a known
        framework or API. by: the name of the target in errors.

        Raises:
            DataError: It is none of these, or no answer: it has neither an output nor another field to score. A blank
                output, such as "" or that of a message without text, is an answer.
            ConfigError: A field has the wrong type.
            TargetError: It is the result of a workflow that failed or was suspended.
        """
        match value:
            case Answer():
                answer = value
            case str():
                answer = cls(output=value)
            case Mapping() if _is_answer(fields := cast("Mapping[str, Any]", value)):
                answer = cls(**fields)
            case None:
                raise DataError(f"{by} returned None; return text or an Answer")
            case _:
                answer = answer_of(value, by)
        own = any(message.role not in ("user", "system") for message in answer.messages)
        scored = (answer.output, answer.context, answer.state, answer.trajectory, answer.metadata or None)
        if not own and not answer.turns and all(value is None for value in scored):
            raise NoAnswer(f"{by} returned no answer: it has nothing to score", answer)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON data; fields without a value are left out."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields["turns"] = tuple(map(sample_row, self.turns))
        return {name: to_jsonable(value) for name, value in fields.items() if value != getattr(_EMPTY, name)}

    def to_json(self, known: Mapping[str, str] | None = None) -> str:
        """The answer as `to_dict` has it, as JSON in ASCII. known: The JSON of some fields."""
        texts: Mapping[str, str] = {} if known is None else known
        values = vars(self)
        parts = [
            f'"{name}": {texts[name] if name in texts else _text_of(name, value)}'
            for name, default in _DEFAULTS.items()
            if (value := values[name]) is not default and value != default
        ]
        return f"{{{', '.join(parts)}}}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Answer:
        """An answer from `to_dict`. Fields that it doesn't know are ignored."""
        fields = {name: value for name, value in data.items() if name in _FIELDS}
        for name, read in NESTED.items():
            if name in fields:
                fields[name] = read(fields[name])
        if "usage" in fields:
            fields["usage"] = read_data(Usage, fields["usage"])
        return cls(**fields)

    def fill(self, sample: Sample, *, seconds: float) -> Sample:
        """The sample with this answer. `metadata["target"]` has the seconds, tokens and cost of the call, and the names
        of the answer's own metadata.

        Messages without a user message continue those of the sample. Without messages, the sample keeps its own, except
        for a recorded answer after the last user message, which this answer replaces.

        Raises:
            DataError: The sample has other values of the answer's metadata.
        """
        if differing := [n for n, value in self.metadata.items() if sample.metadata.get(n, value) != value]:
            raise DataError(f"metadata of the answer and of the sample have different values of {joined(differing)}")
        messages = tuple(self.messages)
        if not messages and any(message.role == "user" for message in sample.messages):
            messages = conversation(sample)
        elif messages and all(message.role != "user" for message in messages):
            messages = (*conversation(sample), *messages)
        call: dict[str, Any] = {"seconds": seconds}
        if self.usage != NO_USAGE:
            call["usage"] = to_jsonable(self.usage)
        if self.cost is not None:
            call["cost"] = self.cost
        if self.trace is not None:
            call["trace"] = self.trace
        if self.metadata:
            call["metadata"] = sorted(self.metadata)
        instructions = sample.instructions if self.instructions is None else self.instructions
        return changed(
            sample,
            input=self.turns[0].input if self.turns else sample.input,
            output=self.output,
            messages=messages or sample.messages,
            context=sample.context if self.context is None else self.context,
            instructions=system_prompt(messages) if instructions is None else instructions,
            state=self.state,
            trajectory=self.trajectory,
            turns=self.turns or sample.turns,
            metadata={**sample.metadata, **self.metadata, "target": call},
        )


def _json(name: str, value: Any) -> Any:
    """The value of a field as JSON data. Raises ConfigError if it isn't."""
    try:
        return strict_jsonable(value)
    except ValueError as error:
        raise ConfigError(f"{name} cannot be written as JSON: ", error) from None


def _text_of(name: str, value: Any) -> str:
    """The value of a field of an answer as JSON."""
    return _JSON([*map(sample_row, value)] if name == "turns" else to_jsonable(value))


_JSON = encoder()
_EMPTY = Answer()
_DEFAULTS = vars(_EMPTY)


class NoAnswer(DataError):
    """An answer with nothing to score, which may have cost something."""

    def __init__(self, text: str, answer: Answer) -> None:
        super().__init__(text)
        self.answer = answer


_FIELDS = frozenset(_DEFAULTS)
_NAMES = ", ".join(sorted(_FIELDS))
_ANSWERS = f"return text, an Answer, or a mapping of its fields ({_NAMES})"


def _is_answer(fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of an Answer. In an OpenAI response, `output` is a list, so it isn't one."""
    return bool(fields) and _FIELDS.issuperset(fields) and not isinstance(fields.get("output"), list)


def answer_of(value: object, by: str = "the target") -> Answer:
    """The answer in the result of a framework or an API. by: the name of the target in errors.

    Raises:
        DataError: The result has no known form.
        TargetError: It is the result of a run that failed.
    """
    entries: Mapping[str, Any] = value if is_mapping(value) else {}
    try:
        transcript = read_transcript(value)
    except DataError as error:
        raise DataError(f"{by} returned what is no answer: {_expected(entries) or _ANSWERS}; ", error) from None
    said, cost = entries.get("output"), entries.get("cost")
    lost = (isinstance(said, str) and said != transcript.output) or (cost is not None and transcript.cost is None)
    if lost and "messages" in entries:  # read as a graph's state, which has neither
        raise DataError(f"{by} returned what is no answer: {_expected(entries) or 'output must be text'}")
    if transcript.error:
        raise TargetError(transcript.error)
    return Answer(**_fields_of(transcript))


def _fields_of(transcript: Transcript) -> dict[str, Any]:
    """The fields of an answer that a transcript has."""
    counted = transcript.usage == usage_of(transcript.messages)
    return {
        "output": transcript.output,
        "messages": transcript.messages,
        "context": transcript.context,
        "trajectory": transcript.trajectory,
        "usage": answer_usage(transcript.messages) if counted else transcript.usage,
        "cost": transcript.cost,
    }


def _said_in(trace: object) -> tuple[dict[str, Any], str]:
    """The fields of an answer that the spans in a trace have, and why the run failed; none for another trace, and for
    spans of several requests."""
    from evalstone.agents.traces import spans_of  # noqa: PLC0415 - most commands read no trace

    if (spans := spans_of(trace)) is not None:
        with suppress(DataError, ConfigError, RecursionError):
            transcript = read_transcript(spans)
            return _fields_of(transcript), transcript.error
    try:
        rows = spans_in(trace)
        return {} if rows is None else {"trajectory": extract_trajectory_from_trace(rows)}, ""
    except DataError as error:
        raise ConfigError("the spans of the trace can't be read: ", error) from None


def _expected(entries: Mapping[str, Any]) -> str:
    """The problem with an object that has some fields of an answer, or other names for them; "" for other objects."""
    others = [str(name) for name in entries if name not in _FIELDS]
    meant = {name: known for name in others if (known := field_of(name)) in _FIELDS}
    if not others or (not meant and len(others) == len(entries)):
        return ""
    hint = f" (did you mean {joined([f'{known} for {name}' for name, known in meant.items()])}?)" if meant else ""
    return f"{shortlist(others)}: no field of an Answer, which has {_NAMES}{hint}"


def own_metadata(sample: Sample) -> dict[str, Any]:
    """The metadata of an answered sample that are the answer's own."""
    call = cast("Mapping[str, Any]", sample.metadata.get("target") or {})
    return {name: sample.metadata[name] for name in call.get("metadata", ())}

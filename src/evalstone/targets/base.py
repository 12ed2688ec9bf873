"""Targets: systems that answer samples, with one call per sample and trial."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, cast

from evalstone._core import sync
from evalstone._core.declarations import Range, check_settings
from evalstone._core.display import excerpt, joined, shortlist
from evalstone._core.guards import is_mapping, is_sequence
from evalstone._core.json import strict_jsonable, to_jsonable
from evalstone._core.text import is_blank
from evalstone._core.validation import read_data
from evalstone.agents.formats.messages import conversation_in
from evalstone.agents.formats.values import plain
from evalstone.agents.from_traces import extract_trajectory_from_trace, spans_in
from evalstone.agents.messages import answer_text, answer_usage, system_prompt, usage_of
from evalstone.agents.reasoning import answered_messages
from evalstone.agents.traces import spans_of
from evalstone.agents.transcripts import Transcript, read_transcript
from evalstone.datasets.columns import field_of
from evalstone.datasets.stored import message_of, sample_of, sample_row
from evalstone.errors import ConfigError, DataError, TargetError, invalid, unknown
from evalstone.models.limits import Limits
from evalstone.targets.tool_calls import Source, outside_answer, tool_calls
from evalstone.targets.tools import Tools, parse_tools, uses_tools
from evalstone.types import NO_USAGE, Message, Sample, ToolCall, Trajectory, Usage, passages
from evalstone.types.samples import check_text

INPUTS = ("input", "messages", "context", "instructions", "metadata")
"""The sample fields that a target can get. Fields about the expected answer are not among them."""
PARAMETERS = (*INPUTS, "trial", "thread")
_OF_THE_SAMPLE = ("group", "weight", "target")
"""The metadata that an answer may not have: they say what the sample stands for."""
CONCURRENCY = 8
"""The default limit on concurrent calls of a target."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A target's answer to a sample. A target that returns only text can return the text itself.

    Raises:
        ConfigError: A field has the wrong type, or the state or the trace is not JSON data.
        TargetError: There is neither an output nor a message, and the spans in `trace` are of a run that failed.
    """

    output: str | None = None
    """The answer; by default, the assistant's last message after the last user message, else that of the spans in
    `trace`."""
    messages: Sequence[Message | Mapping[str, Any]] = ()
    """The conversation with its tool calls: Message values, or messages of a known format. By default, those of the
    spans in `trace`."""
    context: Sequence[str] | None = None
    """The retrieved passages, in order of retrieval; by default those in the messages, if they are of a format that has
    some, else those of the spans in `trace`."""
    trajectory: Trajectory | None = None
    """The steps that the agent or workflow took; plain data is accepted too. By default, those of the spans in
    `trace`."""
    state: Any = None
    """The final state, for scorers of the outcome: JSON data."""
    instructions: str | None = None
    """The system prompt, if it isn't that of the sample; by default, the system messages."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Any other data for scorers, added to the sample's: JSON data. It can't have `group`, `weight` and `target`."""
    usage: Usage = NO_USAGE
    """Tokens, if known; by default those of the messages after the user's last one, if they have counts, else those of
    the spans in `trace`."""
    cost: float | None = None
    """US dollars; by default that of the spans in `trace`; None if unknown."""
    trace: Any = None
    """Anything to keep with the answer, such as its spans or the id of its trace: JSON data, or objects of
    OpenTelemetry's SDK. Spans of one request fill the fields that aren't given, as `read_transcript` reads them."""
    turns: Sequence[Sample] = ()
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
        for name, tokens in () if self.usage is NO_USAGE else dataclasses.asdict(self.usage).items():
            if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
                raise ConfigError(invalid(f"{name} of usage", "a whole number, 0 or more", tokens))
        cost = cast(object, self.cost)
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e9):
            raise ConfigError(invalid("cost", "US dollars, 0 or more", cost))
        if self.usage == NO_USAGE:
            object.__setattr__(self, "usage", answer_usage(cast("Sequence[Message]", self.messages)))
        if self.output is None:
            object.__setattr__(self, "output", answer_text(cast("Sequence[Message]", self.messages)))
        if isinstance(self.trace, Trajectory):
            raise ConfigError("trace is a Trajectory; pass it as trajectory")
        if self.trace is not None:
            object.__setattr__(self, "trace", plain(self.trace))
            self._read_trace()
        if self.trajectory is not None:
            steps = Trajectory.read(cast(object, self.trajectory))
            object.__setattr__(self, "trajectory", Trajectory.read(_json("trajectory", steps)))
        self._check_metadata()
        for name in ("state", "trace", "metadata"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _json(name, getattr(self, name)))
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
        if refused := [name for name in _OF_THE_SAMPLE if name in metadata]:
            verb = "is" if len(refused) == 1 else "are"
            raise ConfigError(f"metadata of an answer can't have {joined(refused)}, which {verb} the sample's")

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
        own = any(message.role not in ("user", "system") for message in cast("Sequence[Message]", answer.messages))
        scored = (answer.output, answer.context, answer.state, answer.trajectory, answer.metadata or None)
        if not own and not answer.turns and all(value is None for value in scored):
            raise NoAnswer(f"{by} returned no answer: it has nothing to score", answer)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON data; fields without a value are left out."""
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields["turns"] = tuple(map(sample_row, self.turns))
        return {name: to_jsonable(value) for name, value in fields.items() if value != getattr(_EMPTY, name)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Answer:
        """An answer from `to_dict`."""
        fields: dict[str, Any] = {
            **data,
            "messages": tuple(map(message_of, data.get("messages", ()))),
            "turns": tuple(map(sample_of, data.get("turns", ()))),
        }
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
        messages = cast("tuple[Message, ...]", tuple(self.messages))
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
        return replace(
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


_EMPTY = Answer()


def own_metadata(sample: Sample) -> dict[str, Any]:
    """The metadata of an answered sample that are the answer's own."""
    call = cast("Mapping[str, Any]", sample.metadata.get("target") or {})
    return {name: sample.metadata[name] for name in call.get("metadata", ())}


class NoAnswer(DataError):
    """An answer with nothing to score, which may have cost something."""

    def __init__(self, text: str, answer: Answer) -> None:
        super().__init__(text)
        self.answer = answer


@dataclass
class Prepared:
    """A target that is set up for one trial or conversation."""

    call: Callable[..., Awaitable[object]]
    """`Target.call`, once everything is set up."""
    sample: Sample
    """The sample as the target gets it."""
    state: Any = None
    """The final state, once the conversation has ended."""


_FIELDS = frozenset(each.name for each in dataclasses.fields(Answer))
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
    """What is wrong with an object with some fields of an answer, or other names for them; "" for other objects."""
    others = [str(name) for name in entries if name not in _FIELDS]
    meant = {name: known for name in others if (known := field_of(name)) in _FIELDS}
    if not others or (not meant and len(others) == len(entries)):
        return ""
    hint = f" (did you mean {joined([f'{known} for {name}' for name, known in meant.items()])}?)" if meant else ""
    return f"{shortlist(others)}: no field of an Answer, which has {_NAMES}{hint}"


def conversation(sample: Sample) -> tuple[Message, ...]:
    """The conversation that a target continues: the sample's messages up to the last user message, since the rest is a
    recorded answer. Without a user message, the input is appended as one."""
    last = max((index for index, message in enumerate(sample.messages) if message.role == "user"), default=None)
    if last is not None:
        return tuple(sample.messages[: last + 1])
    own = () if sample.input is None else (Message(role="user", content=sample.input),)
    return (*sample.messages, *own)


def parameter_values(sample: Sample, *, trial: int, thread: str) -> dict[str, Any]:
    """The value of each parameter of a target. Earlier answers have no reasoning in front, as clients of models send
    them."""
    values = {name: getattr(sample, name) for name in INPUTS}
    return {**values, "messages": answered_messages(conversation(sample)), "trial": trial, "thread": thread}


@dataclass(frozen=True, kw_only=True)
class Target(ABC):
    """A system that answers samples.

    Raises:
        ConfigError: A setting is out of range.
    """

    version: str = ""
    """The version of the system. With a version, later runs reuse its answers. Without one, only a resumed run does,
    because changes of the system can't be detected."""
    timeout: Annotated[float, Range(0, exclusive=True)] = 120.0
    """Maximum seconds for one answer."""
    limits: Limits = field(default_factory=lambda: Limits(max_concurrency=CONCURRENCY))
    """Limits on concurrent calls and on calls per minute."""
    files_per_call: ClassVar[int] = 1
    """How many files a call opens, such as connections. The limit on open files lowers the concurrency."""

    def __post_init__(self) -> None:
        check_settings(self)

    def __repr__(self) -> str:
        # Without the settings: a command or a URL may hold a secret, which the name masks.
        return f"<{type(self).__name__} {self.identity}>"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the target in results."""

    @property
    def identity(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The sample fields that it gets."""
        return INPUTS

    @property
    def required(self) -> tuple[str, ...]:
        """The sample fields that it requires."""
        return ()

    def lacking(self, sample: Sample) -> list[str]:
        """The fields that the target requires and the sample lacks."""
        values = {name: getattr(sample, name) for name in self.required if name != "messages"}
        absent = [name for name, value in values.items() if value is None]
        return [*absent, "messages"] if "messages" in self.required and not conversation(sample) else absent

    def check(self, trials: int = 1) -> None:  # noqa: B027 - most targets have nothing to check
        """Raise ConfigError for problems that would make every call fail, before the first call. trials: the number of
        trials."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Keep connections open for a run."""
        yield

    @property
    def holds_conversations(self) -> bool:
        """Whether one call returns a whole conversation, with any number of turns."""
        return False

    @property
    def follows_conversations(self) -> bool:
        """Whether it can follow a conversation: it gets the messages or a thread."""
        return True

    @property
    def keeps_threads(self) -> bool:
        """Whether it may remember a conversation on its own. After a crash, such a conversation starts over."""
        return True

    @asynccontextmanager
    async def conversation(self, sample: Sample) -> AsyncGenerator[Prepared]:
        """Around the calls for the turns of a conversation."""
        yield Prepared(self.call, sample)

    @abstractmethod
    async def call(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Ask the system once, and return what it returned.

        Args:
            sample: What to answer.
            trial: Which of several trials this is, from 1.
            thread: The id of a conversation that nobody has used before.

        Raises:
            TargetUnreachable: It can't be reached, which says nothing about how it answers.
            TargetRefused: It refuses access, or doesn't exist. This ends the run unless it has answered before.
                Anything else that is raised fails this sample and trial.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class FunctionTarget(Target):
    """A Python function as a target; a plain one runs in a thread.

    Args:
        function: Its parameters name what it gets: input, messages, context, instructions, metadata, trial, thread. It
            returns text, an `Answer`, or what a known framework returns.
        prepare: Called with the sample before each trial, to set up what the function works on.
        finish: Called with the sample after each trial, also after a failed one; what it returns, unless None, is the
            answer's `state`.
        tools: What answers its tools, in place of what they were wrapped with: `Tools`, or record:FILE or replay:FILE.

    Raises:
        ConfigError: A parameter is none of these; or the tools can't be used, as `Tools.record` and `.replay` say.
    """

    function: Callable[..., Any]
    prepare: Callable[[Sample], Any] | None = None
    finish: Callable[[Sample], Any] | None = None
    tools: Tools | str | None = None
    label: str = ""
    """The target's name; by default that of the function with its module."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", parse_tools(self.tools))
        super().__post_init__()
        for name in ("function", "prepare", "finish"):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name == "function"):
                raise ConfigError(invalid(name, "a function", value, f"{type(value).__name__}: {excerpt(value)}"))
        if inspect.isclass(self.function):
            raise ConfigError(f"the target {self.name} is a class; give an instance that can be called, or a function")
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ConfigError(f"the target {self.name} yields; return one answer instead")
        for parameter in self._parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or (
                parameter.name not in PARAMETERS and parameter.default is not parameter.empty
            ):
                continue
            if parameter.name not in PARAMETERS or parameter.kind is parameter.POSITIONAL_ONLY:
                problem = unknown("parameter", parameter.name, PARAMETERS)
                raise ConfigError(f"the target {self.name} has an ", problem)

    @functools.cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return parameters_of(self.function)

    @property
    def name(self) -> str:
        """The label, or the function's module and name."""
        return self.label or function_name(self.function)

    @property
    def identity(self) -> str:
        """Name, version and tools."""
        source = self._source
        return super().identity + (f" with tools {source.identity}" if source is not None and source.identity else "")

    @property
    def _source(self) -> Source | None:
        """The source that answers its tool calls; None for the sources that the tools were wrapped with."""
        tools = parse_tools(self.tools)
        return None if tools is None else tools.source

    @functools.cached_property
    def _accepted(self) -> tuple[str, ...]:
        parameters = self._parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            return PARAMETERS
        return tuple(name for name in PARAMETERS if name in parameters)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The sample fields among the function's parameters. With the messages, also the input, their substitute."""
        accepted = {*self._accepted, "input"} if "messages" in self._accepted else self._accepted
        return tuple(name for name in INPUTS if name in accepted)

    @property
    def required(self) -> tuple[str, ...]:
        """Its parameters without a default."""
        parameters = self._parameters
        return tuple(n for n in self.inputs if n in parameters and parameters[n].default is inspect.Parameter.empty)

    @property
    def follows_conversations(self) -> bool:
        """Whether it takes the messages or the thread."""
        return any(name in self._accepted for name in ("messages", "thread"))

    @property
    def keeps_threads(self) -> bool:
        """Whether it takes the thread, or something is set up for it."""
        return "thread" in self._accepted or self.prepare is not None or self.finish is not None

    async def call(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Set up, call the function, and clean up."""
        async with self.conversation(sample) as prepared:
            result = await prepared.call(prepared.sample, trial=trial, thread=thread)
        return result if prepared.state is None else replace(Answer.of(result), state=prepared.state)

    @asynccontextmanager
    async def conversation(self, sample: Sample) -> AsyncGenerator[Prepared]:
        """Set up before the first turn, and clean up after the last."""
        sample = replace(sample, metadata=copy.deepcopy(sample.metadata))  # it may be changed by the function
        prepared = Prepared(self._invoke, sample)
        try:
            if self.prepare is not None:
                with outside_answer(self._source):
                    await sync.call_at_once(self.prepare, sample)
            yield prepared
        except BaseException:
            if self.finish is not None:
                with suppress(Exception), outside_answer(self._source):  # the first error is the cause
                    await sync.call_at_once(self.finish, sample)
            raise
        with outside_answer(self._source):
            prepared.state = None if self.finish is None else await sync.call_at_once(self.finish, sample)

    async def _invoke(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Call the function alone."""
        values = parameter_values(sample, trial=trial, thread=thread)
        arguments = {name: values[name] for name in self._accepted if name in self.required or values[name] is not None}
        async with tool_calls(sample, trial=trial, thread=thread, source=self._source) as calls:
            result: object = await sync.call_at_once(self.function, **arguments)
        return _with_tool_calls(result, calls.transcript) if calls.transcript or self._uses_tools else result

    @functools.cached_property
    def _uses_tools(self) -> bool:
        """Whether an answer without calls means that no tool was called."""
        return self._source is not None or uses_tools(self.function)


def _with_tool_calls(result: object, calls: Sequence[ToolCall]) -> object:
    """A function's result, with its tool calls added if it has no messages."""
    try:
        answer = Answer.of(result)
    except DataError as problem:
        if not calls:
            return result  # rejected later, like any other
        if not isinstance(problem, NoAnswer):
            raise
        answer = problem.answer
    if answer.messages:
        return answer
    called = [Message(role="assistant", tool_calls=calls)] if calls else []
    said = [] if is_blank(answer.output or "") else [Message(role="assistant", content=answer.output or "")]
    return replace(answer, messages=[*called, *said])


def function_name(function: Any) -> str:
    """The module and name of a function, or of the class of a callable object."""
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    kind = function if hasattr(function, "__qualname__") else cast(Any, type(function))
    return f"{kind.__module__}:{kind.__qualname__}"


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function. Raises ConfigError if they can't be read."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ConfigError(f"the parameters of {function!r} can't be read; wrap it in a function") from None


def absent(target: Target, sample: Sample) -> str:
    """A reason why a target can't answer a sample, which lacks a field; "" if it can."""
    lacking = target.lacking(sample)
    return f"the target needs {joined(lacking)}, which the sample lacks" if lacking else ""

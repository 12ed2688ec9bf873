"""The plain values of an evaluation: samples, messages, trajectories, outcomes and records. All are frozen."""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from numbers import Real
from typing import Any, Literal, TypeAlias, cast, get_args

from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, OutcomeError, unknown

RunKind: TypeAlias = Literal["evaluation", "calibration", "audit"]
"""What a run was made for. Calibrations and audits keep runs in the ledger that are no evaluations of outputs."""
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
FIELD_ROLES: Mapping[str, Role] = {"input": "user", "output": "assistant", "instructions": "system"}
"""Whose messages have the text of a sample field."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call of an agent, with its result."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: Any = None
    id: str = ""
    state: Literal["result", "call", "error", "partial"] = "result"
    """"result": the call returned; "call": it has no result; "error": it failed; "partial": its arguments are
    incomplete, so it was never executed."""
    error: str | None = None


@dataclass(frozen=True)
class Usage:
    """The tokens of one message or answer, retries after malformed replies included."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """The part of `input` that the provider read from its prompt cache."""
    requests: int = 0
    """The number of replies."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.requests + other.requests,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a conversation, with the tool calls in it.

    Raises:
        ConfigError: The role is unknown, or the content is not text.
    """

    role: Role
    content: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str | None = None
    attachments: Sequence[str] = ()
    """What the message contains beside its text and is not part of it: "image", "audio", "video", "file"."""
    usage: Usage | None = None
    """The tokens of the message, if its source says so."""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ConfigError(f"message role must be one of {', '.join(ROLES)}, not {self.role!r}")
        if not isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"message content must be text, not {type(self.content).__name__}: {_short(self.content)}"
            )
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        object.__setattr__(self, "attachments", tuple(self.attachments))


StepType: TypeAlias = Literal[
    "tool_call",
    "mcp_tool_call",
    "provider_tool_call",
    "model_generation",
    "agent_run",
    "workflow_step",
    "workflow_run",
    "workflow_conditional",
    "workflow_parallel",
    "workflow_loop",
    "workflow_sleep",
    "workflow_wait_event",
    "processor_run",
]
Ordering: TypeAlias = Literal["strict", "relaxed", "unordered"]

STEP_DATA: Mapping[StepType, tuple[str, ...]] = {
    "tool_call": ("tool_args", "tool_result", "success"),
    "mcp_tool_call": ("tool_args", "tool_result", "success", "mcp_server"),
    "provider_tool_call": ("tool_args", "tool_result", "success"),
    "model_generation": ("model_id", "prompt_tokens", "completion_tokens", "finish_reason"),
    "agent_run": ("agent_id",),
    "workflow_step": ("step_id", "status", "output"),
    "workflow_run": ("workflow_id", "status"),
    "workflow_conditional": ("condition_count", "selected_steps"),
    "workflow_parallel": ("branch_count", "parallel_steps"),
    "workflow_loop": ("loop_type", "total_iterations"),
    "workflow_sleep": ("sleep_duration_ms", "sleep_type"),
    "workflow_wait_event": ("event_name", "event_received"),
    "processor_run": ("processor_id",),
}
"""The attributes that a step of each type may have in its `data`."""

TOOL_STEPS: tuple[StepType, ...] = ("tool_call", "mcp_tool_call", "provider_tool_call")
_OF_A_TRAJECTORY = ("total_duration_ms", "raw_output", "raw_workflow_result")


@dataclass(frozen=True, kw_only=True)
class TrajectoryStep:
    """One step of an agent or a workflow, with the steps inside it.

    Raises:
        ConfigError: The type is unknown, or `data` has an attribute that steps of this type don't have.
    """

    step_type: StepType
    name: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """The attributes of the step; STEP_DATA lists those of each type."""
    duration_ms: float | None = None
    """None if it was not measured."""
    children: Sequence[TrajectoryStep] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        _check_step(self.step_type, self.name, self.data)
        object.__setattr__(self, "children", _steps(self.children, f"the children of step {self.name!r}"))

    def walk(self) -> Iterator[TrajectoryStep]:
        """This step and all steps inside it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @classmethod
    def read(cls, data: Any) -> TrajectoryStep:
        """A step from plain data. Entries that its type doesn't have go to the metadata. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        entries = _entries(data, "a step")
        known = _check_step(kind := entries.pop("step_type", None), name := entries.pop("name", None), {})
        attributes = {**_pop_data(entries, known), **{key: entries.pop(key) for key in known if key in entries}}
        duration, inner, metadata = (entries.pop(key, None) for key in ("duration_ms", "children", "metadata"))
        return cls(
            step_type=kind,
            name=name,
            data=attributes,
            duration_ms=duration,
            children=tuple(map(cls.read, _items(inner or (), f"children of step {name!r}"))),
            metadata={**entries, **_entries(metadata or {}, f"metadata of step {name!r}", snake=False)},
        )


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The steps of one agent or workflow run, in order."""

    steps: Sequence[TrajectoryStep] = ()
    total_duration_ms: float | None = None
    """None if it was not measured."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps, "the steps of a trajectory"))

    def walk(self) -> Iterator[TrajectoryStep]:
        """All steps and the steps inside them, parents first."""
        for step in self.steps:
            yield from step.walk()

    @classmethod
    def read(cls, data: Any) -> Trajectory:
        """A trajectory from a list of steps, or from an object with this list under `steps`. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        entries = _entries(cast(object, data), "a trajectory") if isinstance(data, Mapping) else {"steps": data}
        if "steps" not in entries:
            raise ConfigError(f"a trajectory must have steps; it has {', '.join(entries) or 'nothing'}")
        steps = tuple(map(TrajectoryStep.read, _items(entries["steps"], "the steps of a trajectory")))
        return cls(steps=steps, total_duration_ms=entries.get("total_duration_ms"))


@dataclass(frozen=True, kw_only=True)
class ExpectedStep:
    """A step that is expected in a trajectory.

    Raises:
        ConfigError: The name is missing, the type is unknown, or `data` has an attribute that its type doesn't have.
    """

    name: str
    step_type: StepType | None = None
    """None accepts any type."""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """The attributes to compare; requires `step_type`."""
    children: TrajectoryExpectation | None = None
    """What is expected of the steps inside; None accepts any."""

    def __post_init__(self) -> None:
        if self.step_type is not None:
            _check_step(self.step_type, self.name, self.data)
            return
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"an expected step must have a name, not {_short(self.name)}")
        if self.data:
            raise ConfigError(f"expected step {self.name!r} has {', '.join(self.data)} and no step_type; give it one")

    @classmethod
    def read(cls, data: Any) -> ExpectedStep:
        """An expected step from its name, from plain data, or from a TrajectoryStep (without duration and metadata).

        A list under `children` contains the steps of a nested expectation. Raises ConfigError.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, str):
            return cls(name=data)
        if isinstance(data, TrajectoryStep):
            inside = TrajectoryExpectation.read(data.children) if data.children else None
            return cls(name=data.name, step_type=data.step_type, data=data.data, children=inside)
        entries = _entries(data, "an expected step")
        entries = {key: value for key, value in entries.items() if key not in ("duration_ms", "metadata")}
        name, step_type, inner = (entries.pop(key, None) for key in ("name", "step_type", "children"))
        children = None if inner is None else TrajectoryExpectation.read(inner)
        known = STEP_DATA.get(cast("StepType", step_type), ())
        attributes = _pop_data(entries, known)
        attributes |= {key: value for key, value in entries.items() if value is not None}
        return cls(name=cast(str, name), step_type=step_type, data=attributes, children=children)


@dataclass(frozen=True, kw_only=True)
class TrajectoryExpectation:
    """What is expected of a trajectory, or of the steps inside a step. None leaves a criterion out.

    Raises:
        ConfigError: A limit is not a number from 0, or another value has the wrong type.
    """

    steps: Sequence[ExpectedStep] | None = None
    ordering: Ordering | None = None
    """"strict": exactly these steps in this order; "relaxed": in this order, others may come between; "unordered"."""
    allow_repeated_steps: bool | None = None
    """Whether a name may occur more than once."""
    max_steps: float | None = None
    max_total_tokens: float | None = None
    max_total_duration_ms: float | None = None
    no_redundant_calls: bool | None = None
    """Whether the same call twice in a row counts as a fault."""
    blacklisted_tools: Sequence[str] | None = None
    """Names of steps that must not occur; an empty list forbids nothing."""
    blacklisted_sequences: Sequence[Sequence[str]] | None = None
    """Names that must not follow each other directly."""
    max_retries_per_tool: float | None = None
    """How often a failed call may be retried."""

    def __post_init__(self) -> None:
        if self.ordering not in (None, *get_args(Ordering)):
            raise ConfigError(f"ordering must be strict, relaxed or unordered, not {self.ordering!r}")
        for name in (f.name for f in fields(self) if f.name.startswith("max_")):
            check_limit(name, getattr(self, name))
        for name in ("allow_repeated_steps", "no_redundant_calls"):
            if getattr(self, name) not in (None, True, False):
                raise ConfigError(f"{name} must be true or false, not {_short(getattr(self, name))}")
        if self.steps is not None:
            object.__setattr__(self, "steps", tuple(self.steps))
        if self.blacklisted_tools is not None:
            object.__setattr__(self, "blacklisted_tools", _names(self.blacklisted_tools))
        if self.blacklisted_sequences is not None:
            sequences = map(_names, _items(self.blacklisted_sequences, "blacklisted_sequences"))
            object.__setattr__(self, "blacklisted_sequences", tuple(sequences))

    def over(self, defaults: TrajectoryExpectation) -> TrajectoryExpectation:
        """This expectation, with the criteria that it leaves out taken from `defaults`."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(defaults, **own)

    @classmethod
    def read(cls, data: Any) -> TrajectoryExpectation:
        """An expectation from plain data; a list, or a Trajectory, stands for its steps. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Trajectory):
            return cls(steps=tuple(map(ExpectedStep.read, data.steps)))
        entries = _entries(cast(object, data), "an expectation") if isinstance(data, Mapping) else {"steps": data}
        entries = {key: value for key, value in entries.items() if key not in _OF_A_TRAJECTORY and value is not None}
        known = [f.name for f in fields(cls)]
        if odd := [key for key in entries if key not in known]:
            raise ConfigError(f"an expectation: {unknown('entry', odd[0], known)}")
        if "steps" in entries:
            entries["steps"] = tuple(map(ExpectedStep.read, _items(entries["steps"], "expected steps")))
        return cls(**entries)


def check_limit(name: str, value: Any) -> None:
    """Raise ConfigError for a limit that is neither None nor a finite number from 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < math.inf):
        raise ConfigError(f"{name} must be a number from 0, not {_short(value)}")


def _check_step(step_type: object, name: Any, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The attributes that a step of this type may have. Raises ConfigError for a bad name, type or attribute."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a step must have a name, not {_short(name)}")
    if not isinstance(step_type, str) or step_type not in STEP_DATA:
        problem = unknown("step_type", step_type, STEP_DATA) if isinstance(step_type, str) else "it has no step_type"
        raise ConfigError(f"step {name!r}: {problem}")
    known = STEP_DATA[cast("StepType", step_type)]
    for key in data:
        if key not in known:
            raise ConfigError(f"step {name!r}: {unknown(f'entry of {step_type}', str(key), known)}")
    return known


@functools.lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0].lower(), name)


def _entries(data: object, what: str, *, snake: bool = True) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ConfigError(f"{what} must be an object, not {type(data).__name__}: {_short(data)}")
    entries = cast("Mapping[Any, Any]", data)
    return {_snake(str(key)) if snake else str(key): value for key, value in entries.items()}


def _steps(data: object, what: str) -> tuple[TrajectoryStep, ...]:
    for step in (steps := _items(data, what)):
        if not isinstance(step, TrajectoryStep):
            raise ConfigError(f"{what} must be TrajectoryStep values, not {_short(step)}")
    return tuple(steps)


def _pop_data(step: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The attributes under `data`, removed from the step; none if it has others than the known ones there."""
    data = step.get("data")
    if not isinstance(data, Mapping):
        return {}
    entries = _entries(cast("Mapping[Any, Any]", data), "data")
    if not entries.keys() <= set(known):
        return {}
    del step["data"]
    return entries


def _items(data: object, what: str) -> Sequence[Any]:
    if isinstance(data, str) or not isinstance(data, Sequence):
        raise ConfigError(f"{what} must be a list, not {type(data).__name__}: {_short(data)}")
    return cast("Sequence[Any]", data)


def _names(data: object) -> tuple[str, ...]:
    for name in (names := _items(data, "what is blacklisted")):
        if not isinstance(name, str):
            raise ConfigError(f"what is blacklisted must be names of steps, not {_short(name)}")
    return tuple(names)


SAMPLE_FIELDS = (
    "input",
    "output",
    "context",
    "reference",
    "messages",
    "instructions",
    "metadata",
    "trajectory",
    "expected_trajectory",
    "state",
)
_HASHED_IF_PRESENT = ("trajectory", "expected_trajectory", "state")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One case to score. A field that is None is absent: scorers that need it skip the sample.

    Raises:
        ConfigError: A field has the wrong type.
    """

    id: str = ""
    """Your own id; by default a hash of the content."""
    input: str | None = None
    """The user's question or request."""
    output: str | None = None
    """The answer to score."""
    context: Sequence[str] | None = None
    """The retrieved passages, in the order of retrieval. A single text is one passage."""
    reference: str | None = None
    """The expected answer."""
    messages: Sequence[Message] = ()
    """The whole conversation, with its tool calls."""
    instructions: str | None = None
    """The system prompt."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Anything else. `group` names the cluster that the sample belongs to, `weight` how many samples it stands for."""
    trajectory: Trajectory | None = None
    """The steps that the agent took; plain data is accepted too."""
    expected_trajectory: TrajectoryExpectation | None = None
    """What is expected of the trajectory; plain data is accepted too."""
    state: Any = None
    """What a target left behind, as JSON data: files, rows of a database, a basket."""
    trial: int | None = None
    """Which of several trials of a target this is, from 1; None where there is one."""

    def __post_init__(self) -> None:
        for name in ("id", "input", "output", "reference", "instructions"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"{name} must be text, not {type(value).__name__}: {_short(value)}")
        object.__setattr__(self, "context", passages(self.context))
        if self.trajectory is not None:
            object.__setattr__(self, "trajectory", Trajectory.read(self.trajectory))
        if self.expected_trajectory is not None:
            object.__setattr__(self, "expected_trajectory", TrajectoryExpectation.read(self.expected_trajectory))
        for name, kind in (("messages", Sequence), ("metadata", Mapping)):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, kind):
                expected = "a list of Message values" if name == "messages" else "a mapping"
                raise ConfigError(f"{name} must be {expected}, not {type(value).__name__}: {_short(value)}")
        object.__setattr__(self, "messages", tuple(self.messages))
        for message in self.messages:
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"messages must be Message values, not {type(message).__name__}")
        if "weight" in self.metadata:
            _check_weight(self.metadata["weight"], f"sample {self.id!r:.80}: " if self.id else "")
        if not self.id:
            object.__setattr__(self, "id", self.content_hash[:16])

    @property
    def group(self) -> str | None:
        """`group` in the metadata; without one, the trials of a sample are a group. Samples of one group, such as the
        turns of a conversation, are not independent."""
        group = self.metadata.get("group")
        if group is None or group == "":
            return None if self.trial is None else self.id
        return str(group)

    @property
    def key(self) -> str:
        """The id; of a trial, with its number: "q1 #2"."""
        return case_key(self.id, self.trial)

    @property
    def weight(self) -> float | None:
        """`weight` in the metadata: how many samples of the population this one stands for, a finite number above 0.

        Only the ratios of weights count. None counts as 1.
        """
        return float(self.metadata["weight"]) if "weight" in self.metadata else None

    @functools.cached_property
    def content_hash(self) -> str:
        """A hash of all fields but the id. Raises DataError for a field without a form as JSON, such as NaN."""
        content = {name: getattr(self, name) for name in SAMPLE_FIELDS}
        hashed = {name: v for name, v in content.items() if v is not None or name not in _HASHED_IF_PRESENT}
        try:
            return content_hash(hashed, strict=True)
        except ValueError:
            for name, value in hashed.items():
                try:
                    content_hash(value, strict=True)
                except ValueError as error:
                    of = f"sample {self.id!r}" if self.id else "a sample"
                    raise DataError(f"{of}: {name} cannot be written as JSON: {error}") from None
            raise

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return self.id == other.id and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash((self.id, self.content_hash))


LARGEST = sys.float_info.max


def _check_weight(weight: object, where: str = "") -> None:
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < cast("float", weight) <= LARGEST:
        found = "missing" if weight is None else f"{weight!r:.60}"
        raise DataError(
            f"{where}weight must be a finite number above 0, not {found} (a `weight` in the metadata weights means; "
            "give anything else another name)"
        )


def case_key(sample: str, trial: int | None) -> str:
    """What a sample, or one of its trials, is called: "q1", "q1 #2"."""
    return sample if trial is None else f"{sample} #{trial}"


def passages(value: object) -> tuple[str, ...] | None:
    """Passages as a tuple; one string is one passage. Raises ConfigError for anything but text or a list of texts."""
    if value is None or (isinstance(value, tuple) and all(isinstance(p, str) for p in cast(Any, value))):
        return cast("tuple[str, ...] | None", value)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        items = tuple(cast("Sequence[object]", value))
        for number, item in enumerate(items, start=1):
            if not isinstance(item, str):
                raise ConfigError(f"context passage {number} must be text, not {type(item).__name__}: {_short(item)}")
        return cast("tuple[str, ...]", items)
    raise ConfigError(f"context must be a list of passages, not {type(value).__name__}: {_short(value)}")


@dataclass(frozen=True)
class Score:
    """A score. Whether higher or lower is better depends on the scorer.

    Raises:
        OutcomeError: The value is NaN, infinite or outside [0, scale], so that no such number ever reaches a mean; or
            the reason is not text.
    """

    value: float
    """Between 0 and `scale`."""
    scale: float = 1.0
    """The highest possible value."""
    reason: str = ""
    """An explanation for people, as a sentence."""
    evidence: Any = ()
    """The explanation as data, such as claims with their verdicts. A record has it as JSON data: dataclasses and
    pydantic models as objects, tuples as lists, sets as sorted lists, anything else as its text."""

    def __post_init__(self) -> None:
        value = cast(object, self.value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise OutcomeError(f"a score must be a number, not {type(value).__name__}: {_short(value)}")
        if not -math.inf < self.value < math.inf:
            raise OutcomeError(f"a score must be finite, not {self.value}")
        if not 0 < self.scale < math.inf:
            raise OutcomeError(f"a score's scale must be a positive number, not {self.scale}")
        if not 0 <= self.value <= self.scale:
            raise OutcomeError(f"a score must be in [0, {self.scale:g}], not {self.value}")
        _check_reason(self.reason)

    @property
    def fraction(self) -> float:
        """The value divided by the scale."""
        return self.value / self.scale


@dataclass(frozen=True)
class Skipped:
    """The score is undefined for this sample. It is in no mean.

    Raises:
        OutcomeError: The reason is not text.
    """

    reason: str
    """Why, without a period at the end: reports put words before it."""

    def __post_init__(self) -> None:
        _check_reason(self.reason)


@dataclass(frozen=True)
class Failed:
    """An error. It is in no mean."""

    error: str
    reply: str | None = None
    """The judge's raw reply, if there was one."""
    exception: str | None = field(default=None, compare=False)
    """The type of the exception that a scorer's own code raised, such as KeyError."""
    traceback: str | None = field(default=None, compare=False)
    """Its traceback, from the scorer's code on."""


Outcome: TypeAlias = Score | Skipped | Failed


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
    """US dollars; 0 for a cached answer, None if the price is unknown."""
    seconds: float = 0.0
    confidence: float | None = None
    cached: bool = False
    """Whether the answer came from the ledger or from an equal question of this run, so that it cost nothing."""
    reply: str | None = None
    """The judge's raw reply."""
    alternatives: Mapping[str, float] | None = None
    """The probability of each possible verdict, if the provider returned it."""
    refused_settings: tuple[str, ...] = ()
    """The judge's settings that its endpoint refused, so that this answer was given without them."""
    repeat_index: int = 0
    """Which of several answers to the same question this is, from 0."""
    members: tuple[JudgeCall, ...] = ()
    """The calls of a composite judge's members; their usage and cost are included in this call's."""
    detail: Mapping[str, Any] | None = None
    """How a composite judge combined the answers, or what is special about a model's: the `temperature` and `seed` of
    a correction that started afresh, a `doubt` about its form, or why there is none (`error`)."""

    def leaves(self) -> Iterator[JudgeCall]:
        """The calls that a single judge answered: this one, or those of the members."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()


def total_cost(costs: Any) -> float | None:
    """The sum of costs in US dollars; None if any of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


TOLERANCE = 1e-9
"""The share of the scale by which a score may miss a threshold and still reach it."""


def reaches(value: float, threshold: float, scale: float = 1.0, *, lower_is_better: bool = False) -> bool:
    """Whether a value reaches a threshold: is at least that, or at most where lower is better.

        value >= threshold - 1e-9 · scale,   or value <= threshold + 1e-9 · scale

    A score that misses the threshold by the rounding of floating-point numbers reaches it: 8 · 0.1 adds up to
    0.7999999999999999, which is 0.8.

    Args:
        value: The score, label or mean.
        threshold: In the unit of the value.
        scale: The upper end of the range of scores.
        lower_is_better: Whether the value must be at most the threshold.
    """
    missing = value - threshold if lower_is_better else threshold - value
    return missing <= TOLERANCE * scale


@dataclass(frozen=True, kw_only=True)
class Record:
    """The outcome of one scorer on one sample, with the judge calls behind it."""

    sample: str
    """The sample's id."""
    scorer: str
    """The scorer's signature."""
    outcome: Outcome
    steps: tuple[JudgeCall, ...] = ()
    seconds: float = 0.0
    group: str | None = None
    """The sample's `group`."""
    trial: int | None = None
    """The sample's `trial`."""
    weight: float | None = None
    """The sample's `weight`."""

    def __post_init__(self) -> None:
        if self.weight is not None:
            _check_weight(self.weight)

    @property
    def key(self) -> str:
        """The sample's `key`."""
        return case_key(self.sample, self.trial)

    @property
    def cost(self) -> float | None:
        """US dollars paid for this record; None if the price of a call is unknown."""
        return total_cost(step.cost for step in self.steps)

    @property
    def value(self) -> float | None:
        """The score's value; None if there is no score."""
        return self.outcome.value if isinstance(self.outcome, Score) else None

    def to_dict(self) -> dict[str, Any]:
        """The record as a line of `records.jsonl`; docs/results.md describes the format."""
        outcome = self.outcome
        return {
            "format": RECORD_FORMAT,
            "sample": self.sample,
            "scorer": self.scorer,
            "outcome": OUTCOME_NAMES[type(outcome)],
            "value": outcome.value if isinstance(outcome, Score) else None,
            "scale": outcome.scale if isinstance(outcome, Score) else None,
            "reason": outcome.error if isinstance(outcome, Failed) else outcome.reason,
            "evidence": to_jsonable(outcome.evidence) if isinstance(outcome, Score) else None,
            "steps": [to_jsonable(step) for step in self.steps],
            "seconds": self.seconds,
            "cost": self.cost,
            "error": _error(outcome) if isinstance(outcome, Failed) else None,
            **({} if self.group is None else {"group": self.group}),
            **({} if self.trial is None else {"trial": self.trial}),
            **({} if self.weight is None else {"weight": self.weight}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """A record from a line of `records.jsonl`; evidence and answers stay plain data.

        Raises:
            DataError: A field is missing, or has a value of another kind.
            ConfigError: It has another format.
            OutcomeError: The score is out of range.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"a record must be an object, not {type(data).__name__}")
        if data.get("format") != RECORD_FORMAT:
            raise ConfigError(f"record format {_short(data.get('format'))} is not {RECORD_FORMAT}")
        match data.get("outcome"):
            case "score":
                outcome: Outcome = read_data(Score, data)
            case "skipped":
                outcome = read_data(Skipped, data)
            case "failed":
                error = read_data(_StoredError, data.get("error"))
                outcome = Failed(error.message, error.reply, error.exception, error.traceback)
            case other:
                raise DataError(f"outcome must be score, skipped or failed, not {_short(other)}")
        if "steps" not in data:
            raise DataError("steps is missing")
        return read_data(cls, {**data, "outcome": outcome})


@dataclass(frozen=True)
class _StoredError:
    """`error` in a line of `records.jsonl`."""

    message: str
    reply: str | None = None
    exception: str | None = None
    traceback: str | None = None


@dataclass(frozen=True)
class StoredDataset:
    """A dataset in `summary.json`."""

    name: str
    version: str
    samples: int


@dataclass(frozen=True)
class StoredJudge:
    """A judge in `summary.json`."""

    identity: str
    note: str


@dataclass(frozen=True)
class StoredScorer:
    """A scorer in `summary.json`, with the mean of its scores."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool
    mean: float | None = None


@dataclass(frozen=True, kw_only=True)
class StoredCascade:
    """What a cascade did, in `summary.json`."""

    questions: int
    escalated: float
    share: float
    share_interval: tuple[float, float] | None = None
    fallback: str
    saved_calls: int
    saved_cost: float | None


@dataclass(frozen=True, kw_only=True)
class StoredVote:
    """How far a panel, or a judge asked repeatedly, agreed, in `summary.json`."""

    questions: int
    verdicts: int
    agreement: float | None = None
    agreement_interval: tuple[float, float] | None = None
    flip_rate: float | None = None
    no_answer: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.verdicts and (self.agreement is None or self.agreement_interval is None):
            raise DataError("agreement and agreement_interval must be there with verdicts")


@dataclass(frozen=True)
class Drawn:
    """The random order in which a run that its gate stopped drew its samples."""

    seed: str
    """What the order is derived from, together with the samples' ids."""
    tested: Mapping[str, int]
    """By scorer's signature: how many samples come before the first, in this order, that the scorer has not seen."""


@dataclass(frozen=True, kw_only=True)
class StoredTarget:
    """The target in `summary.json`: what answered, and what its answers took."""

    identity: str
    trials: int
    scope: str = ""
    """What its answers have in the ledger in place of a judge."""
    inputs: tuple[str, ...] = ()
    """The sample fields that it was given."""
    answers: int = 0
    """How many of its calls gave an answer."""
    failed: int = 0
    """How many gave none."""
    cached: int = 0
    """How many of both an earlier run paid for."""
    cost: float | None = None
    """US dollars paid in this run, as far as answers report it; None where none does."""
    note: str = ""
    """What to know about its cost, or ""."""
    usage: Usage = NO_USAGE
    """Tokens paid in this run, as far as answers report them."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """The `mean`, `p50` and `p95` of the seconds that an answer took; empty without answers."""

    def __post_init__(self) -> None:
        if self.trials < 1 or min(self.answers, self.failed, self.cached) < 0:
            raise DataError("the target's trials must be 1 or more, its answers, failed and cached 0 or more")


@dataclass(frozen=True, kw_only=True)
class RunMetadata:
    """What `summary.json`, or a run's row in the ledger, says of a run; cost is absent until the run has ended."""

    run: str
    dataset: StoredDataset
    judge: StoredJudge
    scorers: tuple[StoredScorer, ...]
    started: str
    seconds: float
    resumed: int
    stop_reason: str = ""
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    judge_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By judge: a `StoredCascade` or a `StoredVote`, as data."""
    name: str = ""
    tags: tuple[str, ...] = ()
    kind: RunKind = "evaluation"
    drawn: Drawn | None = None
    target: StoredTarget | None = None

    def __post_init__(self) -> None:
        check_time(self.started, "started")
        if any(one.scale <= 0 for one in self.scorers):
            raise DataError("the scale of a scorer must be above 0")
        if min(self.seconds, self.resumed, self.dataset.samples) < 0:
            raise DataError("seconds, resumed and the dataset's samples must be 0 or more")
        for judge, stats in self.judge_stats.items():
            try:
                read_data(StoredCascade if stats.get("kind") == "cascade" else StoredVote, stats)
            except DataError as error:
                raise DataError(f"judge_stats.{judge}.{error}") from None

    @classmethod
    def of(cls, data: Mapping[str, Any], source: str) -> RunMetadata:
        """The metadata in the data of a file or row. source: what to call it in errors.

        Raises:
            ConfigError: it was written in another format; the text has the versions of evalstone at both ends.
            DataError: a field is missing, or has a value of another kind.
        """
        if (found := data.get("format")) != SUMMARY_FORMAT:
            writer = data.get("evalstone")
            by = f"evalstone {writer}" if isinstance(writer, str) else "another version of evalstone or another program"
            reads = f"this is evalstone {installed_version()}, which reads format {SUMMARY_FORMAT}"
            raise ConfigError(f"{source} was written by {by}, in format {found!r:.40}; {reads}")
        try:
            return read_data(cls, data)
        except DataError as error:
            raise DataError(f"{source} cannot be read as a run: {error}") from None


@functools.cache
def installed_version() -> str:
    """The version of evalstone that is running."""
    from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

    return version("evalstone")


def check_time(value: object, name: str) -> None:
    """Raise DataError for what is not a time in ISO 8601. name: of the field."""
    try:
        datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a time, such as 2026-01-31T12:00:00+00:00, not {value!r:.60}") from None


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str):
        raise OutcomeError(f"a reason must be text, not {type(reason).__name__}: {_short(reason)}")


RECORD_FORMAT = SUMMARY_FORMAT = 1
OUTCOME_NAMES: Mapping[type[Outcome], str] = {Score: "score", Skipped: "skipped", Failed: "failed"}


def _error(outcome: Failed) -> dict[str, Any]:
    error: dict[str, Any] = {"message": outcome.error, "reply": outcome.reply}
    if outcome.exception is not None:
        error |= {"exception": outcome.exception, "traceback": outcome.traceback}
    return error


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

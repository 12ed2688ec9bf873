"""Trajectories: the steps of an agent, and the expected steps."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeAlias, cast

from evalstone._core.declarations import Range, check_settings
from evalstone._core.display import excerpt
from evalstone._core.guards import is_mapping, is_number, is_sequence
from evalstone._core.literals import written_value
from evalstone._core.validation import UnknownKind
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, DataError, absent, invalid, unknown

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
    "workflow_sleep": ("sleep_seconds", "sleep_type"),
    "workflow_wait_event": ("event_name", "event_received"),
    "processor_run": ("processor_id",),
}
"""The attributes that a step of each type may have in its `data`."""

TOOL_STEPS: tuple[StepType, ...] = ("tool_call", "mcp_tool_call", "provider_tool_call")
_CALL_TYPES = ("function", "function_call", "tool_call", "tool_use")
_CALL_ARGUMENTS = ("arguments", "args", "input_parameters", "input")
_OF_ONE_CALL = ("type", "id", "call_id", "index", "status")
"""What describes the one call that a model made, and not what is expected of another."""
_OF_MASTRA = {"blacklistedTools": "forbidden_tools", "blacklistedSequences": "forbidden_sequences"}
_MILLISECONDS = {
    "durationMs": "seconds",
    "totalDurationMs": "total_seconds",
    "maxTotalDurationMs": "max_total_seconds",
    "sleepDurationMs": "sleep_seconds",
}
"""Mastra's durations, which are in milliseconds, and ours."""
_OF_A_TRAJECTORY = ("total_seconds", "raw_output", "raw_workflow_result")


@dataclass(frozen=True, kw_only=True)
class TrajectoryStep(metaclass=NamesArguments):
    """One step of an agent or a workflow, with the steps inside it.

    Raises:
        ConfigError: The type is unknown, or `data` has an attribute that steps of this type don't have.
    """

    step_type: StepType
    name: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """The attributes of the step; STEP_DATA lists those of each type."""
    seconds: float | None = None
    """None if it was not measured."""
    children: Sequence[TrajectoryStep] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        _check_step(self.step_type, self.name, self.data)
        object.__setattr__(self, "children", _steps(self.children, f"the children of step {self.name!r}"))

    @classmethod
    def __evalstone_stored__(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return _with_known_data(data)

    def walk(self) -> Iterator[TrajectoryStep]:
        """This step and all steps inside it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @classmethod
    def read(cls, data: TrajectoryStep | Mapping[str, Any] | str) -> TrajectoryStep:
        """A step from plain data, or a tool call from the tool's name. Entries that its type doesn't have go to the
        metadata. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        if isinstance(data, str):
            return cls(step_type="tool_call", name=data)
        entries = _given(entries_of(data, "a step"))
        known = _check_step(kind := entries.pop("step_type", None), name := entries.pop("name", None), {})
        attributes = {**_pop_data(entries, known), **{key: entries.pop(key) for key in known if key in entries}}
        seconds, inner, metadata = (entries.pop(key, None) for key in ("seconds", "children", "metadata"))
        return cls(
            step_type=kind,
            name=name,
            data=attributes,
            seconds=seconds,
            children=tuple(map(cls.read, items_of(inner or (), f"children of step {name!r}"))),
            metadata={**entries, **entries_of(metadata or {}, f"metadata of step {name!r}", snake=False)},
        )


@dataclass(frozen=True, kw_only=True)
class Trajectory(metaclass=NamesArguments):
    """The steps of one agent or workflow run, in order."""

    steps: Sequence[TrajectoryStep] = ()
    total_seconds: float | None = None
    """None if it was not measured."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps, "the steps of a trajectory"))

    def walk(self) -> Iterator[TrajectoryStep]:
        """All steps and the steps inside them, parents first."""
        for step in self.steps:
            yield from step.walk()

    @classmethod
    def read(cls, data: TrajectoryData) -> Trajectory:
        """A trajectory from a list of steps, or from an object with this list under `steps`. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        entries: dict[str, Any] = entries_of(data, "a trajectory") if is_mapping(data) else {"steps": data}
        if "steps" not in entries:
            raise ConfigError(f"a trajectory must have steps; it has {', '.join(entries) or 'nothing'}")
        steps = tuple(map(TrajectoryStep.read, items_of(entries["steps"], "the steps of a trajectory")))
        return cls(steps=steps, total_seconds=entries.get("total_seconds"))


@dataclass(frozen=True, kw_only=True)
class ExpectedStep(metaclass=NamesArguments):
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
            raise ConfigError(f"an expected step must have a name, not {excerpt(self.name)}")
        if self.data:
            fitting = (kind for kind, names in STEP_DATA.items() if self.data.keys() <= set(names))
            raise ConfigError(
                f"expected step {self.name!r} has {', '.join(self.data)} and no step_type; give it one, such as "
                f"{next(fitting, 'tool_call')!r}"
            )

    @classmethod
    def __evalstone_stored__(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return _with_known_data(data)

    @classmethod
    def read(cls, data: ExpectedStep | TrajectoryStep | Mapping[str, Any] | str) -> ExpectedStep:
        """An expected step from its name, from plain data, or from a TrajectoryStep (without duration and metadata).

        A list under `children` contains the steps of a nested expectation. A tool call as models write it, with a
        `name` and its `arguments` (an object or the JSON text of one; also under `function`), is a step of type
        "tool_call" with these `tool_args`. Raises ConfigError.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, str):
            return cls(name=data)
        if isinstance(data, TrajectoryStep):
            inside = TrajectoryExpectation.read(data.children) if data.children else None
            return cls(name=data.name, step_type=data.step_type, data=data.data, children=inside)
        entries = _with_tool_args(_given(entries_of(data, "an expected step")))
        entries = {key: value for key, value in entries.items() if key not in ("seconds", "metadata")}
        name, step_type, inner = (entries.pop(key, None) for key in ("name", "step_type", "children"))
        children = None if inner is None else TrajectoryExpectation.read(inner)
        known = STEP_DATA.get(cast("StepType", step_type), ())
        attributes = {**_pop_data(entries, known), **entries}
        return cls(name=cast(str, name), step_type=step_type, data=attributes, children=children)


@dataclass(frozen=True, kw_only=True)
class TrajectoryExpectation(metaclass=NamesArguments):
    """What is expected of a trajectory, or of the steps inside a step. None leaves a criterion out.

    Raises:
        ConfigError: A limit is not a number from 0, or another value has the wrong type.
    """

    steps: Sequence[ExpectedStep] | None = None
    ordering: Ordering | None = None
    """"strict": exactly these steps in this order; "relaxed": in this order, others may come between; "unordered"."""
    allow_repeated_steps: bool | None = None
    """Whether a name may occur more than once."""
    max_steps: Annotated[float | None, Range(0)] = None
    max_total_tokens: Annotated[float | None, Range(0)] = None
    max_total_seconds: Annotated[float | None, Range(0)] = None
    no_redundant_calls: bool | None = None
    """Whether the same call twice in a row counts as a fault."""
    forbidden_tools: Sequence[str] | None = None
    """Names of steps that must not occur; an empty list forbids nothing."""
    forbidden_sequences: Sequence[Sequence[str]] | None = None
    """Names that must not follow each other directly."""
    max_retries_per_tool: Annotated[float | None, Range(0)] = None
    """The number of times that a failed call may be retried."""

    def __post_init__(self) -> None:
        check_settings(self)

    def over(self, defaults: TrajectoryExpectation) -> TrajectoryExpectation:
        """This expectation, with the criteria that it leaves out taken from `defaults`."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(defaults, **own)

    @classmethod
    def read(cls, data: ExpectationData) -> TrajectoryExpectation:
        """An expectation from plain data; a list, or a Trajectory, stands for its steps. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Trajectory):
            return cls(steps=tuple(map(ExpectedStep.read, data.steps)))
        entries: dict[str, Any] = {"steps": data}
        if is_mapping(data):
            own = {_OF_MASTRA.get(str(key), str(key)): value for key, value in data.items()}
            entries = entries_of(own, "an expectation")
        entries = {key: value for key, value in entries.items() if key not in _OF_A_TRAJECTORY and value is not None}
        known = [f.name for f in fields(cls)]
        if odd := [key for key in entries if key not in known]:
            raise ConfigError("an expectation: ", unknown("entry", odd[0], known))
        if "steps" in entries:
            entries["steps"] = tuple(map(ExpectedStep.read, items_of(entries["steps"], "expected steps")))
        return cls(**entries)


TrajectoryData: TypeAlias = Trajectory | Mapping[str, Any] | Sequence[TrajectoryStep | Mapping[str, Any] | str]
"""A trajectory, its data, or its steps; a text is the name of a tool that was called."""
ExpectationData: TypeAlias = (
    TrajectoryExpectation
    | Trajectory
    | Mapping[str, Any]
    | Sequence[ExpectedStep | TrajectoryStep | Mapping[str, Any] | str]
)
"""What is expected of a trajectory, its data, a trajectory to follow, or the expected steps."""


def _check_step(step_type: object, name: Any, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The attributes that a step of this type may have. Raises ConfigError for a bad name, type or attribute."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a step must have a name, not {excerpt(name)}")
    if isinstance(step_type, UnknownKind):
        return tuple(data)
    if not isinstance(step_type, str) or step_type not in STEP_DATA:
        if isinstance(step_type, str):
            raise ConfigError(f"step {name!r}: ", unknown("step_type", step_type, STEP_DATA))
        raise ConfigError(f"step {name!r}: ", absent("step_type", "it has no step_type"))
    known = STEP_DATA[cast("StepType", step_type)]
    for key in data:
        if key not in known:
            raise ConfigError(f"step {name!r}: ", unknown(f"entry of {step_type}", str(key), known))
    return known


def _with_known_data(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """A stored step without the attributes that its type doesn't have."""
    kind, data = step.get("step_type"), step.get("data")
    known = STEP_DATA.get(cast("StepType", kind)) if isinstance(kind, str) else None
    if known is None or not is_mapping(data) or data.keys() <= set(known):
        return step
    return {**step, "data": {name: value for name, value in data.items() if name in known}}


@functools.lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0].lower(), name)


def entries_of(data: object, what: str, *, snake: bool = True) -> dict[str, Any]:
    if not is_mapping(data):
        raise ConfigError(invalid(what, "an object", data, f"{type(data).__name__}: {excerpt(data)}"))
    if not snake:
        return {str(key): value for key, value in data.items()}
    return {
        _MILLISECONDS.get(str(key)) or _snake(str(key)): value / 1000
        if key in _MILLISECONDS and is_number(value)
        else value
        for key, value in data.items()
    }


def _given(entries: dict[str, Any]) -> dict[str, Any]:
    """The entries without null ones: tables give all objects in a column the same keys, and fill them up."""
    return {key: value for key, value in entries.items() if value is not None}


def _with_tool_args(entries: dict[str, Any]) -> dict[str, Any]:
    """An expected tool call in the notation of a model, as the entries of a step; anything else unchanged."""
    inner = entries.get("function")
    if is_mapping(inner):
        entries = {**entries, **_given(entries_of(inner, "function of an expected step"))}
        del entries["function"]
    given = [key for key in _CALL_ARGUMENTS if key in entries]
    if not given and not is_mapping(inner) and entries.get("type") not in _CALL_TYPES:
        return entries
    entries = {key: value for key, value in entries.items() if key not in _OF_ONE_CALL}
    kind, name = entries.setdefault("step_type", "tool_call"), entries.get("name")
    if not given or kind not in TOOL_STEPS:
        return entries
    if len(given) > 1 or "tool_args" in entries:
        names = ", ".join([*given, *(["tool_args"] if "tool_args" in entries else [])])
        raise ConfigError(f"expected step {name!r} has its arguments more than once: {names}")
    entries["tool_args"] = _arguments(name, given[0], entries.pop(given[0]))
    return entries


def _arguments(name: object, key: str, value: object) -> Mapping[str, Any]:
    """The arguments that are expected, from an object or the JSON text of one."""
    what = f"{key} of expected step {name!r}"
    read: object = value
    if isinstance(value, str):
        try:
            read = written_value(value) if value.strip() else dict[str, Any]()
        except DataError as error:
            raise ConfigError(f"{what}: ", error) from None
    if not is_mapping(read):
        raise ConfigError(invalid(what, "an object or the JSON text of one", value))
    return cast("Mapping[str, Any]", read)


def _steps(data: object, what: str) -> tuple[TrajectoryStep, ...]:
    for step in (steps := items_of(data, what)):
        if not isinstance(step, TrajectoryStep):
            raise ConfigError(invalid(what, "TrajectoryStep values", step))
    return tuple(steps)


def _pop_data(step: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The attributes under `data`, removed from the step; none if it has others than the known ones there."""
    data = step.get("data")
    if not is_mapping(data):
        return {}
    entries = _given(entries_of(data, "data"))
    if not entries.keys() <= set(known):
        return {}
    del step["data"]
    return entries


def items_of(data: object, what: str) -> Sequence[Any]:
    if not is_sequence(data):
        raise ConfigError(invalid(what, "a list", data, f"{type(data).__name__}: {excerpt(data)}"))
    return data

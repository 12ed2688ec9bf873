"""Trajectories: the steps that an agent or a workflow took, and the steps that were expected of it.

Both are read from plain data with `read`, in snake_case or in Mastra's camelCase:

    Trajectory.read([{"step_type": "tool_call", "name": "search", "tool_args": {"q": "Ada"}, "success": True}])
    TrajectoryExpectation.read({"steps": [{"name": "search"}], "maxSteps": 4})
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from evalstone.errors import UsageError, unknown

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
"""What a step of each type says of itself, beside its name, duration, metadata and children."""

TOOL_STEPS: tuple[StepType, ...] = ("tool_call", "mcp_tool_call", "provider_tool_call")
_OF_A_TRAJECTORY = ("total_duration_ms", "raw_output", "raw_workflow_result")


@dataclass(frozen=True, kw_only=True)
class TrajectoryStep:
    """One step: what kind of thing was done, its name, and the steps taken inside it.

    data: what a step of its type says of itself, by the names in STEP_DATA. duration_ms: None when it was not measured.
    Raises UsageError for an unknown type or a name in `data` that its type has not.
    """

    step_type: StepType
    name: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    duration_ms: float | None = None
    children: Sequence[TrajectoryStep] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        _check_step(self.step_type, self.name, self.data)
        object.__setattr__(self, "children", _steps(self.children, f"the children of step {self.name!r}"))

    def walk(self) -> Iterator[TrajectoryStep]:
        """This step and every step below it, from the top down."""
        yield self
        for child in self.children:
            yield from child.walk()

    @classmethod
    def read(cls, data: Any) -> TrajectoryStep:
        """A step from plain data. What its type does not know is kept in the metadata. Raises UsageError."""
        if isinstance(data, cls):
            return data
        given = _entries(data, "a step")
        known = _check_step(kind := given.pop("step_type", None), name := given.pop("name", None), {})
        told = {**_packed(given, known), **{key: given.pop(key) for key in known if key in given}}
        duration, below, noted = (given.pop(key, None) for key in ("duration_ms", "children", "metadata"))
        metadata = {**given, **_entries(noted or {}, f"metadata of step {name!r}", snake=False)}
        children = tuple(map(cls.read, _items(below or (), f"children of step {name!r}")))
        return cls(step_type=kind, name=name, data=told, duration_ms=duration, children=children, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """The steps of one run in their order. total_duration_ms: None when it was not measured."""

    steps: Sequence[TrajectoryStep] = ()
    total_duration_ms: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _steps(self.steps, "the steps of a trajectory"))

    def walk(self) -> Iterator[TrajectoryStep]:
        """Every step, with those below it, from the top down."""
        for step in self.steps:
            yield from step.walk()

    @classmethod
    def read(cls, data: Any) -> Trajectory:
        """A trajectory from a list of steps, or from an object that holds them under `steps`. Raises UsageError."""
        if isinstance(data, cls):
            return data
        given = _entries(cast(object, data), "a trajectory") if isinstance(data, Mapping) else {"steps": data}
        if "steps" not in given:
            raise UsageError(f"a trajectory must have steps; it has {', '.join(given) or 'nothing'}")
        steps = tuple(map(TrajectoryStep.read, _items(given["steps"], "the steps of a trajectory")))
        return cls(steps=steps, total_duration_ms=given.get("total_duration_ms"))


@dataclass(frozen=True, kw_only=True)
class ExpectedStep:
    """A step that should be taken: its name, and if they matter its type, its data, and what is expected inside it.

    Only the data that are given are compared. Raises UsageError for data without a type: which names a step's data
    may have, the type decides.
    """

    name: str
    step_type: StepType | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    children: TrajectoryExpectation | None = None

    def __post_init__(self) -> None:
        if self.step_type is not None:
            _check_step(self.step_type, self.name, self.data)
            return
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"an expected step must have a name, not {_short(self.name)}")
        if self.data:
            raise UsageError(f"expected step {self.name!r} has {', '.join(self.data)} and no step_type; give it one")

    @classmethod
    def read(cls, data: Any) -> ExpectedStep:
        """An expected step from plain data, or from a step that was taken, whose duration and metadata do not count.

        A list under `children` is the steps of a nested expectation; a null expects nothing. Raises UsageError.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, str):
            return cls(name=data)
        if isinstance(data, TrajectoryStep):
            inside = TrajectoryExpectation.read(data.children) if data.children else None
            return cls(name=data.name, step_type=data.step_type, data=data.data, children=inside)
        given = _entries(data, "an expected step")
        given = {key: value for key, value in given.items() if key not in ("duration_ms", "metadata")}
        name, step_type, inside = given.pop("name", None), given.pop("step_type", None), given.pop("children", None)
        children = None if inside is None else TrajectoryExpectation.read(inside)
        known = STEP_DATA.get(cast("StepType", step_type), ())
        told = {**_packed(given, known), **{key: value for key, value in given.items() if value is not None}}
        return cls(name=name, step_type=step_type, data=told, children=children)


@dataclass(frozen=True, kw_only=True)
class TrajectoryExpectation:
    """What is expected of a trajectory, or of the steps inside one step. None stands for "not said".

    steps: the steps that should be taken. ordering: "strict", place by place; "relaxed", in this order with others
    between; "unordered". allow_repeated_steps: whether a name may come twice. max_steps, max_total_tokens,
    max_total_duration_ms: budgets. no_redundant_calls: whether the same call twice in a row counts against it.
    blacklisted_tools, blacklisted_sequences: steps, and sequences of steps, that must not be taken.
    max_retries_per_tool: how often a failed call may be tried again. An empty sequence forbids nothing. Raises
    UsageError for a limit that is no number from 0, and an unknown ordering.
    """

    steps: Sequence[ExpectedStep] | None = None
    ordering: Ordering | None = None
    allow_repeated_steps: bool | None = None
    max_steps: float | None = None
    max_total_tokens: float | None = None
    max_total_duration_ms: float | None = None
    no_redundant_calls: bool | None = None
    blacklisted_tools: Sequence[str] | None = None
    blacklisted_sequences: Sequence[Sequence[str]] | None = None
    max_retries_per_tool: float | None = None

    def __post_init__(self) -> None:
        if self.ordering not in (None, *get_args(Ordering)):
            raise UsageError(f"ordering must be strict, relaxed or unordered, not {self.ordering!r}")
        for name in (f.name for f in fields(self) if f.name.startswith("max_")):
            check_limit(name, getattr(self, name))
        for name in ("allow_repeated_steps", "no_redundant_calls"):
            if getattr(self, name) not in (None, True, False):
                raise UsageError(f"{name} must be true or false, not {_short(getattr(self, name))}")
        if self.steps is not None:
            object.__setattr__(self, "steps", tuple(self.steps))
        if self.blacklisted_tools is not None:
            object.__setattr__(self, "blacklisted_tools", _names(self.blacklisted_tools))
        if self.blacklisted_sequences is not None:
            sequences = map(_names, _items(self.blacklisted_sequences, "blacklisted_sequences"))
            object.__setattr__(self, "blacklisted_sequences", tuple(sequences))

    def over(self, defaults: TrajectoryExpectation) -> TrajectoryExpectation:
        """This expectation, with what it does not say taken from `defaults`."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(defaults, **said)

    @classmethod
    def read(cls, data: Any) -> TrajectoryExpectation:
        """An expectation from plain data; a list, or a trajectory, is the steps expected. Raises UsageError."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Trajectory):
            return cls(steps=tuple(map(ExpectedStep.read, data.steps)))
        given = _entries(cast(object, data), "an expectation") if isinstance(data, Mapping) else {"steps": data}
        given = {key: value for key, value in given.items() if key not in _OF_A_TRAJECTORY and value is not None}
        known = [f.name for f in fields(cls)]
        if odd := [key for key in given if key not in known]:
            raise UsageError(f"an expectation: {unknown('entry', odd[0], known)}")
        if "steps" in given:
            given["steps"] = tuple(map(ExpectedStep.read, _items(given["steps"], "expected steps")))
        return cls(**given)


def check_limit(name: str, value: Any) -> None:
    """Raise UsageError for a limit that is neither None nor a finite number from 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < math.inf):
        raise UsageError(f"{name} must be a number from 0, not {_short(value)}")


def _check_step(step_type: object, name: Any, data: Mapping[str, Any]) -> tuple[str, ...]:
    """What a step of this type may say of itself."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"a step must have a name, not {_short(name)}")
    if not isinstance(step_type, str) or step_type not in STEP_DATA:
        told = unknown("step_type", step_type, STEP_DATA) if isinstance(step_type, str) else "it has no step_type"
        raise UsageError(f"step {name!r}: {told}")
    known = STEP_DATA[cast("StepType", step_type)]
    for key in data:
        if key not in known:
            raise UsageError(f"step {name!r}: {unknown(f'entry of {step_type}', str(key), known)}")
    return known


@functools.lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0].lower(), name)


def _entries(data: object, what: str, *, snake: bool = True) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise UsageError(f"{what} must be an object, not {type(data).__name__}: {_short(data)}")
    entries = cast("Mapping[Any, Any]", data)
    return {_snake(str(key)) if snake else str(key): value for key, value in entries.items()}


def _steps(data: object, what: str) -> tuple[TrajectoryStep, ...]:
    for step in (steps := _items(data, what)):
        if not isinstance(step, TrajectoryStep):
            raise UsageError(f"{what} must be TrajectoryStep values, not {_short(step)}")
    return tuple(steps)


def _packed(given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The entries under `data`, where a step of ours that was written as JSON has them; taken out of `given`."""
    data = given.get("data")
    if not isinstance(data, Mapping):
        return {}
    entries = _entries(cast("Mapping[Any, Any]", data), "data")
    if not entries.keys() <= set(known):
        return {}
    del given["data"]
    return entries


def _items(data: object, what: str) -> Sequence[Any]:
    if isinstance(data, str) or not isinstance(data, Sequence):
        raise UsageError(f"{what} must be a list, not {type(data).__name__}: {_short(data)}")
    return cast("Sequence[Any]", data)


def _names(data: object) -> tuple[str, ...]:
    for name in (names := _items(data, "what is blacklisted")):
        if not isinstance(name, str):
            raise UsageError(f"what is blacklisted must be names of steps, not {_short(name)}")
    return tuple(names)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

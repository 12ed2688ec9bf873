"""The plain values of an evaluation: samples, messages, trajectories, outcomes, judge calls and records.

All are frozen. They know nothing of judges, files or networks.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from evalstone._core.json import content_hash, to_jsonable
from evalstone.errors import ConfigError, OutcomeError, unknown

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call of a tool by an agent, with what came back.

    `state` is "result" when the call returned, "call" when it was made and did not return, "error" when it failed, and
    "partial" when its arguments were still being written, so that it was not made.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: Any = None
    id: str = ""
    state: Literal["result", "call", "error", "partial"] = "result"
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation: who spoke, what was said, and the tools called while saying it."""

    role: Role
    content: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ConfigError(f"message role must be one of {', '.join(ROLES)}, not {self.role!r}")
        if not isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"message content must be text, not {type(self.content).__name__}: {_short(self.content)}"
            )
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))


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
    Raises ConfigError for an unknown type or a name in `data` that its type has not.
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
        """A step from plain data. What its type does not know is kept in the metadata. Raises ConfigError."""
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
        """A trajectory from a list of steps, or from an object that holds them under `steps`. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        given = _entries(cast(object, data), "a trajectory") if isinstance(data, Mapping) else {"steps": data}
        if "steps" not in given:
            raise ConfigError(f"a trajectory must have steps; it has {', '.join(given) or 'nothing'}")
        steps = tuple(map(TrajectoryStep.read, _items(given["steps"], "the steps of a trajectory")))
        return cls(steps=steps, total_duration_ms=given.get("total_duration_ms"))


@dataclass(frozen=True, kw_only=True)
class ExpectedStep:
    """A step that should be taken: its name, and if they matter its type, its data, and what is expected inside it.

    Only the data that are given are compared. Raises ConfigError for data without a type: which names a step's data
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
            raise ConfigError(f"an expected step must have a name, not {_short(self.name)}")
        if self.data:
            raise ConfigError(f"expected step {self.name!r} has {', '.join(self.data)} and no step_type; give it one")

    @classmethod
    def read(cls, data: Any) -> ExpectedStep:
        """An expected step from plain data, or from a step that was taken, whose duration and metadata do not count.

        A list under `children` is the steps of a nested expectation; a null expects nothing. Raises ConfigError.
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
    ConfigError for a limit that is no number from 0, and an unknown ordering.
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
        """This expectation, with what it does not say taken from `defaults`."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(defaults, **said)

    @classmethod
    def read(cls, data: Any) -> TrajectoryExpectation:
        """An expectation from plain data; a list, or a trajectory, is the steps expected. Raises ConfigError."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Trajectory):
            return cls(steps=tuple(map(ExpectedStep.read, data.steps)))
        given = _entries(cast(object, data), "an expectation") if isinstance(data, Mapping) else {"steps": data}
        given = {key: value for key, value in given.items() if key not in _OF_A_TRAJECTORY and value is not None}
        known = [f.name for f in fields(cls)]
        if odd := [key for key in given if key not in known]:
            raise ConfigError(f"an expectation: {unknown('entry', odd[0], known)}")
        if "steps" in given:
            given["steps"] = tuple(map(ExpectedStep.read, _items(given["steps"], "expected steps")))
        return cls(**given)


def check_limit(name: str, value: Any) -> None:
    """Raise ConfigError for a limit that is neither None nor a finite number from 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < math.inf):
        raise ConfigError(f"{name} must be a number from 0, not {_short(value)}")


def _check_step(step_type: object, name: Any, data: Mapping[str, Any]) -> tuple[str, ...]:
    """What a step of this type may say of itself."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a step must have a name, not {_short(name)}")
    if not isinstance(step_type, str) or step_type not in STEP_DATA:
        told = unknown("step_type", step_type, STEP_DATA) if isinstance(step_type, str) else "it has no step_type"
        raise ConfigError(f"step {name!r}: {told}")
    known = STEP_DATA[cast("StepType", step_type)]
    for key in data:
        if key not in known:
            raise ConfigError(f"step {name!r}: {unknown(f'entry of {step_type}', str(key), known)}")
    return known


@functools.lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0].lower(), name)


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
)
LATER_FIELDS = ("trajectory", "expected_trajectory")
"""Fields that are no part of the content hash when they are absent, so that older samples keep theirs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One case to be judged.

    input: what the user asked. output: the answer that is judged. context: the retrieved passages in retrieval
    order (one string counts as one passage). reference: the known good answer. messages: the whole conversation,
    tool calls included. instructions: the system prompt. metadata: anything else; never judged. trajectory: the steps
    that were taken. expected_trajectory: what is expected of them. Both may be given as plain data.
    id: your own, or the hash of the content. A field that is None is absent: a scorer that needs it skips the sample.
    An empty string or an empty list is present. Raises ConfigError when a field has the wrong type.
    """

    id: str = ""
    input: str | None = None
    output: str | None = None
    context: Sequence[str] | None = None
    reference: str | None = None
    messages: Sequence[Message] = ()
    instructions: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trajectory: Trajectory | None = None
    expected_trajectory: TrajectoryExpectation | None = None

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
                wanted = "a list of Message values" if name == "messages" else "a mapping"
                raise ConfigError(f"{name} must be {wanted}, not {type(value).__name__}: {_short(value)}")
        object.__setattr__(self, "messages", tuple(self.messages))
        for message in self.messages:
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"messages must be Message values, not {type(message).__name__}")
        if not self.id:
            object.__setattr__(self, "id", self.content_hash[:16])

    @property
    def group(self) -> str | None:
        """What the metadata names as `group`: samples that share it, such as turns of one talk, are not independent."""
        named = self.metadata.get("group")
        return None if named is None or named == "" else str(named)

    @functools.cached_property
    def content_hash(self) -> str:
        """The hash of everything a scorer may see; two samples with equal content share it, whatever their ids."""
        content = {name: getattr(self, name) for name in SAMPLE_FIELDS}
        return content_hash({name: v for name, v in content.items() if v is not None or name not in LATER_FIELDS})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return self.id == other.id and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash((self.id, self.content_hash))


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
    """A number that was measured.

    value: in [0, scale]; which direction is better is the scorer's to say. scale: a positive number. reason: why, for
    people. evidence: why, as data (claims with verdicts, passages with levels). Raises OutcomeError for a value that
    is NaN, infinite or out of range, so that no such number ever reaches a mean.
    """

    value: float
    scale: float = 1.0
    reason: str = ""
    evidence: Any = ()

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

    @property
    def fraction(self) -> float:
        """The value on the scale from 0 to 1."""
        return self.value / self.scale


@dataclass(frozen=True)
class Skipped:
    """The score is undefined for this sample, and why. Never counted in a mean."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """Something broke, and what. `reply` is the judge's raw reply when there was one. Never counted in a mean."""

    error: str
    reply: str | None = None


Outcome: TypeAlias = Score | Skipped | Failed


@dataclass(frozen=True)
class Usage:
    """Tokens that one judge answer took, corrective retries included. `cached` is the part of `input` that the
    provider read from its prompt cache. `requests` counts the replies that were read."""

    input: int = 0
    output: int = 0
    cached: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.requests + other.requests,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True)
class JudgeCall:
    """One question behind a score and the answer it got.

    `cached` says that nothing was asked: the answer came from the ledger, or from another scorer in the same run.
    `cost` is in US dollars, 0 for a cached answer, None when the price is unknown. `repeat_index` says which of several
    answers to the same question it is. Where the judge is made of judges, `members` are their own steps, whose usage
    and cost are part of this step's, and `detail` says how their answers became one.
    """

    question: str
    fingerprint: str
    judge: str
    answer: Any
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    seconds: float = 0.0
    confidence: float | None = None
    cached: bool = False
    reply: str | None = None
    alternatives: Mapping[str, float] | None = None
    repeat_index: int = 0
    members: tuple[JudgeCall, ...] = ()
    detail: Mapping[str, Any] | None = None

    def leaves(self) -> Iterator[JudgeCall]:
        """The steps in which a judge answered by itself: this one, or those of the members."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()


def judge_call_from(data: Mapping[str, Any]) -> JudgeCall:
    """A step read back from its plain data; steps of format 1 that are older have no members."""
    fields = dict(data)
    fields["usage"] = Usage(**fields["usage"])
    fields["members"] = tuple(judge_call_from(member) for member in fields.get("members", ()))
    return JudgeCall(**fields)


def total_cost(costs: Any) -> float | None:
    """The sum of costs in US dollars; None as soon as one of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one scorer made of one sample: the outcome, and every step behind it.

    group: the `group` in the sample's metadata, which samples that are not independent share; None without one.
    """

    sample: str
    scorer: str
    outcome: Outcome
    steps: tuple[JudgeCall, ...] = ()
    seconds: float = 0.0
    group: str | None = None

    @property
    def cost(self) -> float | None:
        """US dollars paid for this record; None when the price of a step is unknown."""
        return total_cost(step.cost for step in self.steps)

    @property
    def value(self) -> float | None:
        """The score's value, or None when there is no score."""
        return self.outcome.value if isinstance(self.outcome, Score) else None

    def to_dict(self) -> dict[str, Any]:
        """The record as one line of `records.jsonl`; the format is described in docs/results.md."""
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
            "error": {"message": outcome.error, "reply": outcome.reply} if isinstance(outcome, Failed) else None,
            **({} if self.group is None else {"group": self.group}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """A record read back from one line of `records.jsonl`; steps and evidence come back as plain data."""
        if data.get("format") != RECORD_FORMAT:
            raise ConfigError(f"record format {data.get('format')!r} is not {RECORD_FORMAT}")
        match data["outcome"]:
            case "score":
                outcome: Outcome = Score(data["value"], data["scale"], data["reason"], data["evidence"])
            case "skipped":
                outcome = Skipped(data["reason"])
            case "failed":
                outcome = Failed(data["error"]["message"], data["error"]["reply"])
            case other:
                raise ConfigError(f"outcome must be score, skipped or failed, not {other!r}")
        steps = tuple(judge_call_from(step) for step in data["steps"])
        return cls(
            sample=data["sample"],
            scorer=data["scorer"],
            outcome=outcome,
            steps=steps,
            seconds=data["seconds"],
            group=data.get("group"),
        )


RECORD_FORMAT = 1
OUTCOME_NAMES: Mapping[type[Outcome], str] = {Score: "score", Skipped: "skipped", Failed: "failed"}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

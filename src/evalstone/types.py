"""The values that everything else speaks of: samples, outcomes, and the records of a run.

All are frozen. They import nothing of evalstone but its errors and its trajectories, and know nothing of judges, files
or networks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import OutcomeError, UsageError
from evalstone.plain import digest, plain
from evalstone.steps import NO_USAGE as NO_USAGE
from evalstone.steps import Step, step_from, total_cost
from evalstone.steps import Usage as Usage
from evalstone.trajectory import Trajectory, TrajectoryExpectation

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
            raise UsageError(f"message role must be one of {', '.join(ROLES)}, not {self.role!r}")
        if not isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"message content must be text, not {type(self.content).__name__}: {_short(self.content)}")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))


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
    An empty string or an empty list is present. Raises UsageError when a field has the wrong type.
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
                raise UsageError(f"{name} must be text, not {type(value).__name__}: {_short(value)}")
        object.__setattr__(self, "context", passages(self.context))
        if self.trajectory is not None:
            object.__setattr__(self, "trajectory", Trajectory.read(self.trajectory))
        if self.expected_trajectory is not None:
            object.__setattr__(self, "expected_trajectory", TrajectoryExpectation.read(self.expected_trajectory))
        for name, kind in (("messages", Sequence), ("metadata", Mapping)):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, kind):
                wanted = "a list of Message values" if name == "messages" else "a mapping"
                raise UsageError(f"{name} must be {wanted}, not {type(value).__name__}: {_short(value)}")
        object.__setattr__(self, "messages", tuple(self.messages))
        for message in self.messages:
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"messages must be Message values, not {type(message).__name__}")
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
        return digest({name: v for name, v in content.items() if v is not None or name not in LATER_FIELDS})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return self.id == other.id and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash((self.id, self.content_hash))


def passages(value: object) -> tuple[str, ...] | None:
    """Passages as a tuple; one string is one passage. Raises UsageError for anything but text or a list of texts."""
    if value is None or (isinstance(value, tuple) and all(isinstance(p, str) for p in cast(Any, value))):
        return cast("tuple[str, ...] | None", value)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        items = tuple(cast("Sequence[object]", value))
        for number, item in enumerate(items, start=1):
            if not isinstance(item, str):
                raise UsageError(f"context passage {number} must be text, not {type(item).__name__}: {_short(item)}")
        return cast("tuple[str, ...]", items)
    raise UsageError(f"context must be a list of passages, not {type(value).__name__}: {_short(value)}")


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
        if not (math.isfinite(self.scale) and self.scale > 0):
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


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one scorer made of one sample: the outcome, and every step behind it.

    group: the `group` in the sample's metadata, which samples that are not independent share; None without one.
    """

    sample: str
    scorer: str
    outcome: Outcome
    steps: tuple[Step, ...] = ()
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
            "evidence": plain(outcome.evidence) if isinstance(outcome, Score) else None,
            "steps": [plain(step) for step in self.steps],
            "seconds": self.seconds,
            "cost": self.cost,
            "error": {"message": outcome.error, "reply": outcome.reply} if isinstance(outcome, Failed) else None,
            **({} if self.group is None else {"group": self.group}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """A record read back from one line of `records.jsonl`; steps and evidence come back as plain data."""
        if data.get("format") != RECORD_FORMAT:
            raise UsageError(f"record format {data.get('format')!r} is not {RECORD_FORMAT}")
        match data["outcome"]:
            case "score":
                outcome: Outcome = Score(data["value"], data["scale"], data["reason"], data["evidence"])
            case "skipped":
                outcome = Skipped(data["reason"])
            case "failed":
                outcome = Failed(data["error"]["message"], data["error"]["reply"])
            case other:
                raise UsageError(f"outcome must be score, skipped or failed, not {other!r}")
        steps = tuple(step_from(step) for step in data["steps"])
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

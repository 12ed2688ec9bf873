"""What the scorers of agents share: the trajectory of a sample, both sides of its conversation, steps in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.agents.from_traces import extract_trajectory
from evalstone.errors import ConfigError, OutcomeError
from evalstone.scorers.base import Scorer, shortened
from evalstone.types import ExpectedStep, Message, Sample, ToolCall, TrajectoryExpectation, TrajectoryStep


@dataclass(frozen=True, kw_only=True)
class TrajectorySource(Scorer):
    """A scorer that looks at the steps of a sample: its trajectory, else the tool calls in its messages."""

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        if values["trajectory"] is None and sample.messages:
            values["trajectory"] = extract_trajectory(sample.messages)
        return values


@dataclass(frozen=True, kw_only=True)
class TrajectoryScorer(TrajectorySource):
    """A scorer that compares the steps of a sample with what is expected of them.

    without_expectation: the share of `scale` that a sample gets for which nothing is expected; None skips it.
    """

    without_expectation: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.without_expectation
        if share is not None and (isinstance(share, bool) or not 0 <= share <= 1):
            raise ConfigError(f"{self.name}: without_expectation must be a number in [0, 1] or None, not {share!r}")


def expectation_of(scorer: Scorer, field: str) -> TrajectoryExpectation | None:
    """A scorer's parameter that says what is expected, read from plain data where it is that."""
    value = getattr(scorer, field)
    try:
        return None if value is None else TrajectoryExpectation.read(value)
    except ConfigError as error:
        raise ConfigError(f"{scorer.name}: {field}: {error}") from None


def require_both_sides(scorer: Scorer, messages: Sequence[Message], input: str | None) -> None:
    """Raise OutcomeError for a conversation in which nobody asked, or nobody answered: it was not recorded whole."""
    if input is None and not any(message.role == "user" for message in messages):
        raise OutcomeError(f"{scorer.name}: the conversation has no user's message, and the sample no input")
    if not any(message.role == "assistant" for message in messages):
        raise OutcomeError(f"{scorer.name}: the conversation has no message of the assistant")


def call_line(call: ToolCall) -> str:
    """A tool call on one line: `search({"q": "Ada"}) returned {…}`."""
    ended = {"result": f"returned {_brief(call.result)}", "error": f"failed: {_brief(call.error)}"}
    return f"{call.name}({_brief(call.arguments)}) {ended.get(call.state, 'did not return')}"


def step_line(step: TrajectoryStep) -> str:
    """A step on one line, with those inside it in brackets."""
    said = [f"{key}={_brief(value)}" for key, value in step.data.items()]
    line = " ".join([step.step_type, step.name, *said])
    return f"{line} [{'; '.join(map(step_line, step.children))}]" if step.children else line


def expected_line(step: ExpectedStep) -> str:
    """An expected step on one line, with those expected inside it in brackets."""
    said = [f"{key}={_brief(value)}" for key, value in step.data.items()]
    line = " ".join([*filter(None, [step.step_type]), step.name, *said])
    inside = step.children.steps if step.children is not None else None
    return f"{line} [{'; '.join(map(expected_line, inside))}]" if inside else line


def _brief(value: object) -> str:
    if isinstance(value, str):
        return shortened(value, 300)
    data = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
    return shortened(json.dumps(to_jsonable(data), ensure_ascii=False), 300)

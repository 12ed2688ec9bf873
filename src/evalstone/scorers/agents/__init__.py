"""Scorers of agents, and what they share: a sample's trajectory, both sides of its conversation, steps as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.agents.from_traces import extract_trajectory
from evalstone.errors import ConfigError, OutcomeError
from evalstone.scorers.base import Scorer, require_number, shortened
from evalstone.types import ExpectedStep, Message, Sample, ToolCall, TrajectoryExpectation, TrajectoryStep


@dataclass(frozen=True, kw_only=True)
class TrajectorySource(Scorer):
    """A scorer of a sample's steps: its trajectory, else the tool calls in its messages."""

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        if values["trajectory"] is None and sample.messages:
            values["trajectory"] = extract_trajectory(sample.messages)
        return values


@dataclass(frozen=True, kw_only=True)
class TrajectoryScorer(TrajectorySource):
    """A scorer that compares the steps of a sample with the expected ones.

    Attributes:
        without_expectation: The share of the scale for a sample without an expectation; None skips such a sample.
    """

    without_expectation: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.without_expectation is not None:
            require_number(self, "without_expectation", high=1)


def expectation_of(scorer: Scorer, field: str) -> TrajectoryExpectation | None:
    """A scorer's parameter that holds an expectation, read from plain data if it is not one yet."""
    value = getattr(scorer, field)
    try:
        return None if value is None else TrajectoryExpectation.read(value)
    except ConfigError as error:
        raise ConfigError(f"{scorer.name}: {field}: {error}") from None


def require_both_sides(scorer: Scorer, messages: Sequence[Message], input: str | None) -> None:
    """Raise OutcomeError for a conversation without a user's or an assistant's message: it is incomplete."""
    if input is None and not any(message.role == "user" for message in messages):
        raise OutcomeError(f"{scorer.name}: the conversation has no user message, and the sample no input")
    if not any(message.role == "assistant" for message in messages):
        raise OutcomeError(f"{scorer.name}: the conversation has no assistant message")


def call_line(call: ToolCall) -> str:
    """A tool call on one line: `search({"q": "Ada"}) returned {…}`."""
    outcomes = {"result": f"returned {_brief(call.result)}", "error": f"failed: {_brief(call.error)}"}
    return f"{call.name}({_brief(call.arguments)}) {outcomes.get(call.state, 'did not return')}"


def step_line(step: TrajectoryStep | ExpectedStep) -> str:
    """A step, or an expected one, on one line, with those inside it in brackets."""
    data = [f"{key}={_brief(value)}" for key, value in step.data.items()]
    line = " ".join([*filter(None, [step.step_type]), step.name, *data])
    inner = step.children.steps if isinstance(step.children, TrajectoryExpectation) else step.children
    return f"{line} [{'; '.join(map(step_line, inner))}]" if inner else line


def _brief(value: object) -> str:
    if isinstance(value, str):
        return shortened(value, 300)
    data = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
    return shortened(json.dumps(to_jsonable(data), ensure_ascii=False), 300)

"""What a quick check is: a scorer in code whose score is all or nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalstone.errors import ConfigError
from evalstone.scorers.text.code import CodeScorer
from evalstone.types import Message, Score, Skipped, ToolCall


@dataclass(frozen=True, kw_only=True)
class Check(CodeScorer, ABC):
    """A scorer in code that gives the full scale when a condition holds and 0 when it does not."""

    bands = ((1.0, "it holds"), (0.0, "it does not hold"))
    advice = "Read the answer, or the calls, of the samples where it does not hold."

    def told(self, holds: bool, reason: str) -> Score:
        """The score of a condition, with the reason."""
        return Score(self.scale if holds else 0.0, self.scale, reason)


@dataclass(frozen=True, kw_only=True)
class ToolCheck(Check, ABC):
    """A check of the tool calls in a sample's messages. Without messages nothing is known of calls: it is Skipped.

    half_made: calls whose arguments were still being written are looked at too.
    """

    half_made: ClassVar[bool] = False

    @abstractmethod
    def judge(self, calls: Sequence[ToolCall]) -> Score:
        """The score of an agent's tool calls."""

    def score(self, *, messages: Sequence[Message]) -> Score | Skipped:
        if not messages:
            return Skipped(f"{self.name} needs messages")
        return self.judge(calls_of(messages, half_made=self.half_made))


def calls_of(messages: Sequence[Message], *, half_made: bool = False) -> tuple[ToolCall, ...]:
    """The tool calls that the assistant made, in order, whatever became of them; half-made ones only when wanted."""
    calls = (call for message in messages if message.role == "assistant" for call in message.tool_calls)
    return tuple(call for call in calls if half_made or call.state != "partial")


def text_fields(check: Check, *names: str) -> None:
    """Raise ConfigError for a field that is not text."""
    for name in names:
        value: object = getattr(check, name)
        if not isinstance(value, str):
            raise ConfigError(f"{check.name}: {name} must be text, not {value!r}")


def count_field(check: Check, name: str) -> None:
    """Raise ConfigError for a field that is no whole number from 0."""
    value: object = getattr(check, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"{check.name}: {name} must be a whole number from 0, not {value!r}")

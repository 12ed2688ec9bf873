"""Samples and messages without the reasoning that a model wrote in front of its answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evalstone._core.reasoning import begins_with_reasoning, split_reasoning
from evalstone.types import Message, Sample


def answered(sample: Sample) -> Sample:
    """The sample as scorers read it: without reasoning in front of its output, its reference and the assistant's
    messages, also in its turns. Messages keep theirs as `reasoning`."""
    changed: dict[str, Any] = {}
    for name in ("output", "reference"):
        text: str | None = getattr(sample, name)
        if text is not None and (answer := split_reasoning(text).answer) is not text:
            changed[name] = answer
    messages = answered_messages(sample.messages)
    if any(new is not old for new, old in zip(messages, sample.messages, strict=True)):
        changed["messages"] = messages
    turns = tuple(map(answered, sample.turns))
    if any(new is not old for new, old in zip(turns, sample.turns, strict=True)):
        changed["turns"] = turns
    return replace(sample, **changed) if changed else sample


def has_reasoning(sample: Sample) -> bool:
    """Whether the output begins with reasoning."""
    return sample.output is not None and begins_with_reasoning(sample.output)


def answered_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, those of the assistant without the reasoning in front of them, which they keep as `reasoning`."""
    return tuple(map(_without, messages))


def _without(message: Message) -> Message:
    if message.role != "assistant":
        return message
    reasoning, answer = split_reasoning(message.content)
    if answer is message.content:
        return message
    return replace(message, content=answer, reasoning=message.reasoning or reasoning or None)

"""Samples without the reasoning that a model wrote in front of its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalstone._core.reasoning import begins_with_reasoning, split_reasoning
from evalstone.types import Message, Sample


def answered(sample: Sample) -> Sample:
    """The sample as scorers read it: without reasoning in front of its output and the assistant's messages, also in its
    turns. Messages keep theirs as `reasoning`."""
    changed: dict[str, Any] = {}
    if has_reasoning(sample):
        changed["output"] = split_reasoning(sample.output or "").answer
    if any(map(_reasons, sample.messages)):
        changed["messages"] = tuple(map(_without, sample.messages))
    turns = tuple(map(answered, sample.turns))
    if any(new is not old for new, old in zip(turns, sample.turns, strict=True)):
        changed["turns"] = turns
    return replace(sample, **changed) if changed else sample


def has_reasoning(sample: Sample) -> bool:
    """Whether the output begins with reasoning."""
    return sample.output is not None and begins_with_reasoning(sample.output)


def _reasons(message: Message) -> bool:
    return message.role == "assistant" and begins_with_reasoning(message.content)


def _without(message: Message) -> Message:
    if not _reasons(message):
        return message
    reasoning, answer = split_reasoning(message.content)
    return replace(message, content=answer, reasoning=message.reasoning or reasoning or None)

"""The two sides of a sample: which of its messages are its input, and which its output."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from evalstone._core.text import is_blank, unspaced
from evalstone.types import FIELD_ROLES, Message, Sample

Text: TypeAlias = Literal["last", "all", "first"]
TEXTS: tuple[Text, ...] = ("last", "all", "first")
SEPARATOR = "\n\n"
"""The separator of the texts of a side: a paragraph break, so that no phrase is found across two messages."""


def whole_conversation(sample: Sample) -> tuple[Message, ...]:
    """The messages of a sample and of its turns, with its input and output where no message has their text.

    Such an output comes last. Such an input comes before it, or after the last message of the user if the messages have
    the output; without a message of the user, it comes first.
    """
    messages = list(sample.messages)
    of_turns = [message for turn in sample.turns for message in whole_conversation(turn)]
    if not has_all(messages, of_turns):
        messages += of_turns
    adds_output = _is_missing(messages, "output", sample.output)
    if adds_output:
        messages.append(Message(role="assistant", content=sample.output or ""))
    if _is_missing(messages, "input", sample.input):
        messages.insert(_place_of_input(messages, adds_output), Message(role="user", content=sample.input or ""))
    return tuple(messages)


def _place_of_input(messages: Sequence[Message], adds_output: bool) -> int:
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    if not users:
        return next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    return len(messages) - 1 if adds_output else users[-1] + 1


def _is_missing(messages: Iterable[Message], field: str, text: str | None) -> bool:
    spoken = (FIELD_ROLES[field], unspaced(text or ""))
    return text is not None and not is_blank(text) and spoken not in map(_spoken, messages)


def has_all(messages: Iterable[Message], others: Iterable[Message]) -> bool:
    """Whether the texts of the other messages are among these, in their order."""
    rest = map(_spoken, messages)
    return all(spoken in rest for spoken in map(_spoken, others))


def _spoken(message: Message) -> tuple[str, str]:
    return message.role, unspaced(message.content)


def side(sample: Sample, field: str, text: Text) -> tuple[Message, ...] | None:
    """The messages that are the input or the output; None for the sample's own text, its "last" one.

    Messages without text and attachments are left out.
    """
    if text == "last":
        return None
    role = FIELD_ROLES[field]
    said = [m for m in whole_conversation(sample) if m.role == role and (m.attachments or not is_blank(m.content))]
    return tuple(said[:1] if text == "first" else said)


def run_side(sample: Sample, field: str) -> tuple[Message, ...]:
    """All messages of the user and the assistant on one side of a run as @mastra/evals has it.

    If it is known which messages the agent was given, the input side has the messages of its request, and the output
    side has those that it wrote. Otherwise, they are all messages of the user, or of the first turn in a conversation
    with turns, and all messages of the assistant. Remembered messages are on neither side. The text of a message with
    several steps is that of its last step with text.
    """
    messages = [m for m in _unsplit(whole_conversation(sample)) if m.origin != "memory"]
    if field == "output":
        return tuple(m for m in messages if m.role == "assistant" and m.origin is None)
    if given := tuple(m for m in messages if m.origin == "request"):
        return given
    asked = [m for m in messages if m.role == "user"]
    first = (m for m in asked if sample.turns and m.content == sample.turns[0].input)
    return tuple(itertools.islice(first, 1)) or tuple(asked)


def _unsplit(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages of the user and the assistant, with one step for each message that was read as several."""
    steps: list[Message] = []
    for message in messages:
        if message.role not in ("user", "assistant"):
            continue
        if steps and steps[-1].role != message.role:
            yield _main_step(steps)
            steps = []
        steps.append(message)
        if not message.continued:
            yield _main_step(steps)
            steps = []
    if steps:
        yield _main_step(steps)


def _main_step(steps: Sequence[Message]) -> Message:
    return next((step for step in reversed(steps) if not is_blank(step.content)), steps[-1])


def run_request(sample: Sample, field: str) -> tuple[Message, ...] | None:
    """The first message of the user on the input side of such a run; None for the sample's own text, its output too."""
    if field != "input":
        return None
    asked = (m for m in run_side(sample, field) if m.role == "user" and (m.attachments or not is_blank(m.content)))
    return tuple(asked)[:1] or None

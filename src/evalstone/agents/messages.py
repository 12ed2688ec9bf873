"""Conversations: what was said last, by whom, with which tools, and samples made of them.

All functions look at Message values; the data set reader makes these of what other tools write. Tool calls are found
wherever they stand in a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.types import Message, Role, Sample, ToolCall


def texts(messages: Iterable[Message], role: Role) -> tuple[str, ...]:
    """What one role said, turn by turn; turns without text are left out."""
    return tuple(message.content for message in messages if message.role == role and message.content.strip())


def last_text(messages: Iterable[Message], role: Role) -> str | None:
    """The last message of a role that has text; of the system, all messages together. None when there is none."""
    turns = texts(messages, role)
    if role == "system":
        return "\n\n".join(turns) or None
    return turns[-1] if turns else None


def last_user_text(messages: Iterable[Message]) -> str | None:
    """What the user said last; None when the user said nothing."""
    return last_text(messages, "user")


def answer_text(messages: Sequence[Message]) -> str | None:
    """What the assistant said last after the last message of the user, tool calls without words passed over; None when
    it said nothing since."""
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    return last_text(messages[last + 1 :], "assistant")


def system_prompt(messages: Iterable[Message]) -> str | None:
    """All system messages, with a blank line between; None when there is none."""
    return last_text(messages, "system")


def conversation_history(messages: Sequence[Message], *, limit: int = 10) -> str | None:
    """What came before the last user message, as lines `role: text`: the newest `limit` of them.

    System messages and turns without text are left out. None when nothing is left.
    """
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    turns = [m for m in messages[:last] if m.role != "system" and m.content.strip()]
    lines = [f"{turn.role}: {turn.content}" for turn in turns]
    return "\n".join(lines[-limit:]) or None if limit > 0 else None


def reasoning(messages: Iterable[Message]) -> str | None:
    """The reasoning of the first assistant message that has one; None when none has."""
    return next((m.reasoning for m in messages if m.role == "assistant" and m.reasoning), None)


@dataclass(frozen=True, kw_only=True)
class PlacedCall:
    """A tool call and where it stands: the number of its message and its number there, both from 0."""

    call: ToolCall
    message: int
    place: int


def tool_calls(messages: Iterable[Message]) -> tuple[PlacedCall, ...]:
    """The tool calls that were made, in their order; not those whose arguments were still being written."""
    return tuple(
        PlacedCall(call=call, message=number, place=place)
        for number, message in enumerate(messages)
        for place, call in enumerate(message.tool_calls)
        if call.state != "partial"
    )


def called_tools(messages: Iterable[Message]) -> tuple[str, ...]:
    """The names of the tools that were called, in the order of the calls."""
    return tuple(placed.call.name for placed in tool_calls(messages))


def tool_results(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The tool calls that returned something, in their order; failed calls are left out."""
    calls = (placed.call for placed in tool_calls(messages))
    return tuple(call for call in calls if call.state == "result" and call.result is not None)


def merge_tool_calls(first: Sequence[ToolCall], second: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Two accounts of one message's calls as one. Of a call that both have, told by its id, the first account counts.

    A call that only the second has comes after the call that it follows there.
    """
    merged = list(first)
    known = {call.id for call in first if call.id}
    at = 0
    for call in second:
        if call.id in known:
            at = next(place for place, other in enumerate(merged) if other.id == call.id) + 1
        else:
            merged.insert(at, call)
            at += 1
    return tuple(merged)


def agent_sample(
    input: str,
    output: str,
    *,
    tool_calls: Sequence[ToolCall] = (),
    history: Sequence[Message] = (),
    reasoning: str | None = None,
    **fields: Any,
) -> Sample:
    """A sample of one exchange: what the user asked, the tools that were called, what the assistant said.

    history: earlier turns. fields: further fields of the sample, such as `reference` or `instructions`, of which the
    latter also becomes the system message.
    """
    instructions = fields.get("instructions")
    system = (Message(role="system", content=instructions),) if isinstance(instructions, str) else ()
    question = Message(role="user", content=input)
    answer = Message(role="assistant", content=output, tool_calls=tool_calls, reasoning=reasoning)
    return Sample(input=input, output=output, messages=(*system, *history, question, answer), **fields)


def trajectory_sample(steps: Sequence[Any], *, expected: Any = None, **fields: Any) -> Sample:
    """A sample of one trajectory. steps: TrajectoryStep values or plain data. expected: what is expected of them.

    fields: further fields of the sample, such as `input`.
    """
    return Sample(trajectory=cast(Any, list(steps)), expected_trajectory=expected, **fields)

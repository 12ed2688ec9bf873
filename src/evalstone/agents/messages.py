"""Access to conversations: texts by role, tool calls, reasoning, and samples built from them.

All functions take Message values. The dataset reader converts the formats of other tools to these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Unpack, cast

from evalstone._core.json import to_jsonable
from evalstone._core.reasoning import split_reasoning
from evalstone._core.text import is_blank
from evalstone.types import (
    ExchangeFields,
    ExpectationData,
    Message,
    Role,
    Sample,
    SampleFields,
    ToolCall,
    TrajectoryStep,
    Usage,
)

_TAKEN = re.compile(r"Final result processed\.$|Returning structured response: ")
"""The result of a call whose arguments are the structured answer, in pydantic-ai and LangChain."""


def texts(messages: Iterable[Message], role: Role) -> tuple[str, ...]:
    """The texts of a role's messages, in order, without blank ones."""
    return tuple(message.content for message in messages if message.role == role and not is_blank(message.content))


def last_text(messages: Iterable[Message], role: Role) -> str | None:
    """The last text of a role; for the system, all its texts joined. None if there is none."""
    turns = texts(messages, role)
    if role == "system":
        return "\n\n".join(turns) or None
    return turns[-1] if turns else None


def last_user_text(messages: Iterable[Message]) -> str | None:
    """The user's last text; None if there is none."""
    return last_text(messages, "user")


def answer_text(messages: Sequence[Message]) -> str | None:
    """The assistant's last text after the last user message, skipping messages without text, or with reasoning alone.

    If its last message there has a call that pydantic-ai or LangChain took for the structured answer, it is the call's
    arguments as JSON, whatever is said beside it. "" if all its messages there are blank: it answered nothing. None if
    it has no message there, or if its answer is an attachment.
    """
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    answers = [message for message in messages[last + 1 :] if message.role == "assistant"]
    spoken = [message for message in answers if not is_blank(split_reasoning(message.content).answer)]
    calls = answers[-1].tool_calls if answers else ()
    if (structured := next(filter(_is_answer, calls), None)) is not None:
        return json.dumps(to_jsonable(dict(structured.arguments)), ensure_ascii=False)
    text = last_text(spoken or answers, "assistant")
    return "" if text is None and answers and not any(message.attachments for message in answers) else text


def usage_of(messages: Iterable[Message]) -> Usage:
    """The tokens of messages that have counts: a request each, if they don't count these."""
    counted = [message.usage for message in messages if message.usage is not None]
    return sum(counted, start=Usage(requests=sum(not usage.requests for usage in counted)))


def answer_usage(messages: Sequence[Message]) -> Usage:
    """The tokens of the replies after the user's last message: those of earlier turns were spent on other answers."""
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    return usage_of(messages[last + 1 :])


def structured_text(answer: object, messages: Sequence[Message]) -> str:
    """A structured answer as text: as the last message has it, if that says the same, else as JSON."""
    said, value = answer_text(messages), to_jsonable(answer)
    with suppress(ValueError, RecursionError):
        if said is not None and json.loads(said) == value:
            return said
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_answer(call: ToolCall) -> bool:
    return isinstance(call.result, str) and _TAKEN.match(call.result) is not None


def system_prompt(messages: Iterable[Message]) -> str | None:
    """The texts of all system messages, separated by blank lines; None if there are none."""
    return last_text(messages, "system")


def conversation_history(messages: Sequence[Message], *, limit: int = 10) -> str | None:
    """The messages before the last user message, as lines `role: text`; only the last `limit` of them.

    System messages and messages without text are left out. None if nothing remains.
    """
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    turns = [m for m in messages[:last] if m.role != "system" and not is_blank(m.content)]
    lines = [f"{turn.role}: {turn.content}" for turn in turns]
    return "\n".join(lines[-limit:]) or None if limit > 0 else None


def reasoning(messages: Iterable[Message]) -> str | None:
    """The reasoning of the first assistant message that has any; None if none has."""
    return next((m.reasoning for m in messages if m.role == "assistant" and m.reasoning), None)


@dataclass(frozen=True, kw_only=True)
class PlacedCall:
    """A tool call with its position in the conversation."""

    call: ToolCall
    message: int
    """The index of its message, from 0."""
    place: int
    """Its index within the message, from 0."""


def tool_calls(messages: Iterable[Message]) -> tuple[PlacedCall, ...]:
    """The executed tool calls, in order. Calls with incomplete arguments are left out."""
    return tuple(
        PlacedCall(call=call, message=number, place=place)
        for number, message in enumerate(messages)
        for place, call in enumerate(message.tool_calls)
        if call.state != "partial"
    )


def called_tools(messages: Iterable[Message]) -> tuple[str, ...]:
    """The names of the tools called, in the order of the calls."""
    return tuple(placed.call.name for placed in tool_calls(messages))


def tool_results(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The tool calls with a result, in order. Failed calls are left out."""
    calls = (placed.call for placed in tool_calls(messages))
    return tuple(call for call in calls if call.state == "result" and call.result is not None)


def agent_sample(
    input: str,
    output: str,
    *,
    tool_calls: Sequence[ToolCall] = (),
    history: Sequence[Message] = (),
    reasoning: str | None = None,
    **fields: Unpack[ExchangeFields],
) -> Sample:
    """A sample of one exchange between a user and an agent.

    Args:
        input: The user's message.
        output: The assistant's answer.
        tool_calls: The tool calls of the answer.
        history: Earlier messages.
        reasoning: The reasoning of the answer.
        fields: Other fields of the sample, such as `reference`. `instructions` also becomes the system message.
    """
    instructions = fields.get("instructions")
    system = (Message(role="system", content=instructions),) if isinstance(instructions, str) else ()
    question = Message(role="user", content=input)
    answer = Message(role="assistant", content=output, tool_calls=tool_calls, reasoning=reasoning)
    return Sample(input=input, output=output, messages=(*system, *history, question, answer), **fields)


def trajectory_sample(
    steps: Sequence[TrajectoryStep | Mapping[str, Any] | str],
    *,
    expected: ExpectationData | None = None,
    **fields: Unpack[SampleFields],
) -> Sample:
    """A sample of one trajectory.

    Args:
        steps: TrajectoryStep values, plain data, or names of tools that were called.
        expected: The expected trajectory.
        fields: Other fields of the sample, such as `input`.
    """
    return Sample(trajectory=list(steps), expected_trajectory=expected, **cast("dict[str, Any]", fields))

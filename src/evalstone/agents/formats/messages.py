"""Messages and tool calls as other tools write them, read as Message and ToolCall values.

Supported are OpenAI's messages (content as text or parts, `tool_calls`, role `tool`) and the items of its Responses
API, Anthropic's blocks and Bedrock's, Gemini's contents, OpenTelemetry's (`parts`), Mastra's messages and the AI SDK's,
pydantic-ai's requests and responses, LangChain's (`type: human`, `messages_to_dict`, `dumpd`, `content_blocks`), ragas'
and ShareGPT's (`from`, `value`), and plain Message values. The reply of a tool is the result of the call that it
answers; a call without an answer stays in state "call". Images, audio, files and parts of unknown types are named in
`Message.attachments`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

from evalstone._core.display import excerpt, shortlist
from evalstone.agents.formats import pydantic_ai
from evalstone.agents.formats.parts import (
    CALL_NAMES,
    CONTENT_KEYS,
    ITEM_ROLES,
    Content,
    ToolResult,
    part_text,
    says_failed,
    text_of,
)
from evalstone.agents.formats.parts import read_call as read_call
from evalstone.agents.formats.values import Entries, PlacedError, by_normal_name, entries_of, normal, placed, read_usage
from evalstone.errors import DataError
from evalstone.types import Trajectory
from evalstone.types.accounts import first_shown
from evalstone.types.messages import ORIGINS, ROLES, Message, Origin, Role, ToolCall, Usage

_ROLE_NAMES: Mapping[str, Role] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "developer": "system",
    "function": "tool",
}
_ROLE_KEYS = ("role", "from", "type")
_ROLE_TYPES: Mapping[str, str] = {
    **{name: name for name in ("human", "ai", "system", "tool")},
    **{f"{name}messagechunk": name for name in ("human", "ai", "system", "tool")},
}
_PART = re.compile(r"^((?:\.content)?\.parts)\[(\d+)\]")
_NOTHING = Message(role="assistant", content="")


class MessageError(PlacedError):
    """What cannot be read in a list of messages, and the number of the message, from 1.

    whole: whether the message itself is at fault, so that the problem continues its name. step: as in _each.
    """

    def __init__(self, error: DataError, number: int, where: str, step: str | int | None) -> None:
        place: str = getattr(error, "place", "")
        if step is None:
            place = place.removeprefix(".content[0]")
        elif isinstance(step, int):
            place = _PART.sub(lambda match: f"{match[1]}[{int(match[2]) + step}]", place, count=1)
        else:
            place = step + place
        super().__init__(str(error), where + place)
        self.number = number
        self.whole = isinstance(error, _NoMessageError)


class _NoMessageError(DataError):
    """An item of a list of messages that is none."""


@dataclass
class Conversation:
    """Messages in their order, and the passages in them that were retrieved."""

    messages: list[Message] = field(default_factory=list[Message])
    passages: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, item: Any) -> None:
        """Read one message and append it, or attach the tool results in it to the calls that they answer."""
        if isinstance(item, Message):
            self.messages.append(item)
            return
        entries = cast("Entries", item)
        role = _role(entries)
        if role is None:
            name = next((entries[key] for key in _ROLE_KEYS if key in entries), None)
            known, has = f"expected {', '.join(ROLES)}", shortlist(entries) or "no entries"
            raise _NoMessageError(
                f"has no role ({known}); it has {has}" if name is None else f"has role {excerpt(name)}, {known}"
            )
        content = Content(role=role)
        content.read_message(entries)
        self.passages |= dict.fromkeys(passage for passage in content.passages if passage.strip())
        text, calls = content.text, [call for call in content.calls if not self._repeats(call, content)]
        if role == "user" and not content.attachments and (feedback := pydantic_ai.feedback_in(text)) is not None:
            self.messages.append(feedback)
            return
        if role == "tool" and not content.results:
            if content.is_approval and not text:
                return
            if not content.is_approval and self._answer(entries, text, content):
                return
        unanswered: list[ToolResult] = []
        for result in content.results:
            if not self.attach(result, own=calls):
                if result.otherwise is None:
                    unanswered.append(result)
                else:
                    calls.append(result.otherwise)
        if text or calls or content.thoughts or content.attachments or content.notes or not content.results:
            self.messages.append(
                Message(
                    role=role,
                    content=text,
                    tool_calls=calls,
                    reasoning="\n".join(content.thoughts) or None,
                    attachments=tuple(dict.fromkeys(content.attachments)),
                    usage=_usage(entries),
                    origin=cast("Origin", entries["origin"]) if entries.get("origin") in ORIGINS else None,
                    continued=entries.get("continued") is True,
                    notes=tuple(dict.fromkeys(content.notes)),
                )
            )
        self.messages.extend(Message(role="tool", content=text_of(result.result)) for result in unanswered)

    def _repeats(self, call: ToolCall, content: Content) -> bool:
        """Whether a call that was approved is in an earlier message already."""
        return (
            call.id != ""
            and call.id in content.approved
            and any(call in message.tool_calls for message in self.messages)
        )

    def read(self, item: Any, place: str) -> None:
        """Add one message. Raises PlacedError that names the place."""
        try:
            self.add(item)
        except DataError as error:
            raise placed(error, place) from None

    def _answer(self, item: Entries, text: str, content: Content) -> bool:
        """Attach a tool's message to the call that it answers; one with more than text as it is."""
        call_id = next((item[key] for key in ("tool_call_id", "toolCallId") if isinstance(item.get(key), str)), "")
        name = item.get("name") if not call_id and isinstance(item.get("name"), str) else ""
        returned = item.get("content")
        result: Any = returned if content.attachments or returned == [] else text  # an empty list has no text
        failed = says_failed(by_normal_name(item))
        return self.attach(ToolResult(call_id, result, failed, name or ""), notes=content.notes)

    def attach(self, result: ToolResult, own: list[ToolCall] | None = None, *, notes: Sequence[str] = ()) -> bool:
        """Give a result to the open call it answers, the latest with that id, or to the answered one with that id whose
        result it repeats; False when there is none.

        own: calls of the message that is being read, searched first. notes: those on the result.
        """
        for answers in (result.answers, result.repeats):
            for calls, at in self._calls(own):
                for place, call in enumerate(calls):
                    if answers(call):
                        calls[place] = result.of(call)
                        if at is not None:
                            known = self.messages[at]
                            self.messages[at] = replace(known, tool_calls=calls, notes=(*known.notes, *notes))
                        return True
        return False

    def _calls(self, own: list[ToolCall] | None) -> Iterator[tuple[list[ToolCall], int | None]]:
        """The calls of each message, the latest first, and its position."""
        if own:
            yield own, None
        for at in range(len(self.messages) - 1, -1, -1):
            if self.messages[at].tool_calls:
                yield list(self.messages[at].tool_calls), at


@dataclass(frozen=True)
class Reading:
    """What a whole transcript has.

    output: the answer, where it is said apart from the messages. usage: the tokens of everything, likewise. cost: US
    dollars. trajectory: the steps, where they are no tool calls in the messages. error: why the run failed. retrieved:
    whether the passages are known, be there none.
    """

    conversation: Conversation
    usage: Usage | None = None
    cost: float | None = None
    output: Any = None
    trajectory: Trajectory | None = None
    error: str = ""
    retrieved: bool = False


def read_conversation(items: Iterable[Any], where: str = "", into: Conversation | None = None) -> Conversation:
    """A list of messages. Raises MessageError that names the place.

    where: the place of the list. into: the conversation that they are added to.
    """
    conversation = Conversation() if into is None else into
    for number, step, item in _each(items, where):
        try:
            if not isinstance(item, Message | dict):
                raise _NoMessageError(f"must be an object, not {excerpt(item)}")
            conversation.add(item)
        except DataError as error:
            raise MessageError(error, number, f"{where}[{number - 1}]", step) from None
        if step is None and conversation.messages[-1:] == [_NOTHING]:
            conversation.messages.pop()  # reasoning that the API keeps to itself
    return conversation


def read_messages(items: Iterable[Any]) -> tuple[Message, ...]:
    """Messages in their order. Raises DataError for an item that is not a message or has an unknown role."""
    return tuple(conversation_in(items).messages)


def conversation_in(items: Iterable[Any]) -> Conversation:
    """Messages in their order, with the passages in them. Raises DataError as `read_messages` does."""
    try:
        return read_conversation(items)
    except MessageError as error:
        at = f"message {error.number} " if error.whole else f"in message {error.number}, "
        raise DataError(f"must be a list of messages; {at}", error) from None


def read_parts(parts: list[Any], role: Role) -> tuple[Message, ...]:
    """The parts of one message, as that message."""
    return read_messages([{"role": role, "content": parts}])


def is_conversation(items: list[Any]) -> bool:
    """Whether a list has messages: the first item that may not be a part of one is a message, or has a role."""
    for item in items:
        if not isinstance(item, dict):
            return isinstance(item, Message)
        entries = unwrapped(cast("Entries", item))
        role = _role(entries)
        if role is not None or _item_role(entries) != "assistant":
            return (role or _item_role(entries)) is not None or pydantic_ai.is_message(entries)
    return False


def is_parts(items: list[Any]) -> bool:
    """Whether a list has the parts of one message: objects with a `type`, at least one of them with a text."""
    parts = [cast("Entries", item) for item in items if isinstance(item, dict) and "type" in item]
    return len(parts) == len(items) and any(part_text(part) is not None for part in parts)


def is_calls(items: list[Any]) -> bool:
    """Whether a list has tool calls and not messages: its first item names a tool and has no role."""
    opening = items[0] if items else None
    if not isinstance(opening, dict):
        return isinstance(opening, ToolCall)
    keys = {normal(key) for key in cast("Entries", opening)}
    return "role" not in keys and not keys.isdisjoint((*CALL_NAMES, "function"))


def unwrapped(item: Entries) -> Entries:
    """The message inside LangChain's `{"type": "human", "data": {…}}` or `{"lc": 1, "kwargs": {…}}`, or the item."""
    inner: Any = item.get("kwargs") if "lc" in item else item.get("data")
    if isinstance(inner, dict) and item.keys().isdisjoint(CONTENT_KEYS):
        item = {**({"type": item["type"]} if "lc" not in item and "type" in item else {}), **cast("Entries", inner)}
    if isinstance(item.get("content_blocks"), list) and not item.get("content"):
        return {**item, "content": item["content_blocks"]}
    return item


def _each(items: Iterable[Any], where: str) -> Iterator[tuple[int, str | int | None, Any]]:
    """The messages in a list of items: the item's number, from 1, the place of the message in it, and the message.

    The place is the number of the first part for a step of an agent, and None for an item that stands between messages.
    """
    instructions: Any = None
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            yield number, "", item
            continue
        entries = unwrapped(cast("Entries", item))
        role = _item_role(entries) or ("assistant" if _is_unknown_item(entries) else None)
        if role is not None:
            yield number, None, {"role": role, "content": [entries]}
        elif pydantic_ai.is_message(entries):
            if entries.get("instructions") not in (None, instructions):
                instructions = entries["instructions"]
                yield number, ".instructions", {"role": "system", "content": instructions}
            try:
                for step, message in pydantic_ai.messages(entries):
                    for _, piece in [(0, message)] if isinstance(message, Message) else _in_steps(message):
                        yield number, step, piece
            except DataError as error:
                raise MessageError(error, number, f"{where}[{number - 1}]", "") from None
        else:
            for start, message in _in_steps(entries):
                yield number, start, message


def _in_steps(item: Entries) -> list[tuple[int, Entries]]:
    """A message of the AI SDK or of Mastra as one for each step of the agent; any other message as it is.

    Each with the number of its first part in the whole message.

    Mastra repeats the last text beside the parts; what was said before it is a message of its own. For pydantic-ai,
    what was said before the last call of a provider's own tool is no part of the answer.
    """
    content = item.get("content")
    in_content = isinstance(content, dict)
    body = cast("Entries", content) if in_content else item
    if _role(item) != "assistant" or not isinstance(body.get("parts"), list):
        return [(0, item)]
    parts = cast("list[Any]", body["parts"])
    types = [str(entries_of(part).get("type")) for part in parts]
    said = body.get("content")
    texts = [at for at, part in enumerate(parts) if types[at] == "text" and part_text(entries_of(part))]
    starts = {at for at, kind in enumerate(types) if kind == "step-start"}
    starts |= {at + more for at, kind in enumerate(types) if kind == "steering-message" for more in (0, 1)}
    last_start = max((at for at in starts if at <= texts[-1]), default=0) if texts else 0
    if said and any(last_start <= at for at in texts[:-1]) and part_text(entries_of(parts[texts[-1]])) == said:
        starts.add(texts[-1])
    own_calls = [at for at, part in enumerate(parts) if entries_of(part).get("builtin") is True]
    if own_calls and any(at < own_calls[-1] for at in texts) and any(at > own_calls[-1] for at in texts):
        starts.add(own_calls[-1] + 1)
    edges = [0, *sorted(starts - {0, len(parts)}), len(parts)]
    spans = [(start, end) for start, end in pairwise(edges) if set(types[start:end]) != {"step-start"}]
    if len(spans) < 2:
        return [(0, item)]
    beside = [*cast("list[Any]", body["toolInvocations"])] if isinstance(body.get("toolInvocations"), list) else []
    every = [str(part_text(entries_of(parts[at]))) for at in texts]
    if len(texts) > 1 and said in ("".join(every), "\n".join(every)):
        body = {**body, "content": None}
    steps: list[tuple[int, Entries]] = []
    marks = {"origin": item["origin"]} if "origin" in item else {}
    for start, end in spans:
        if types[start] == "steering-message":
            steps.append((start, {"role": "user", "parts": entries_of(parts[start]).get("parts"), **marks}))
            continue
        last = (start, end) == spans[-1]
        own = beside if last else [call for call in beside if any(_is_call(part, call) for part in parts[start:end])]
        beside = [call for call in beside if not any(call is each for each in own)]
        step = {
            **(body if last else {}),
            "parts": parts[start:end],
            "toolInvocations": own,
        }
        if in_content:
            step = {**(item if last else {}), "content": step}
        steps.append((start, {"role": item.get("role"), "continued": not last, **marks, **step}))
    return steps


def _is_call(part: Any, call: Any) -> bool:
    """Whether a part is of a call beside the parts: by their IDs if both have one, else by name and arguments."""
    item = entries_of(part)
    one, other = entries_of(item.get("toolInvocation")) or item, entries_of(call)
    if one.get("toolCallId") and other.get("toolCallId"):
        return one["toolCallId"] == other["toolCallId"]
    name = one.get("toolName") or str(item.get("type")).removeprefix("tool-")
    return name == other.get("toolName") and first_shown(one.get("args"), one.get("input")) == other.get("args")


def _role(item: Mapping[str, Any]) -> Role | None:
    for key in _ROLE_KEYS:
        name = item.get(key) if item.get(key) != "signal" else _signal_role(item)
        if isinstance(name, str):
            known = _ROLE_TYPES.get(name.lower()) if key == "type" else name.lower()
            if known is not None and known in _ROLE_NAMES:
                return _ROLE_NAMES[known]
    return None


def _item_role(item: Mapping[str, Any]) -> Role | None:
    """The role that stands for an item of OpenAI's Responses API that has none; None for messages."""
    kind = normal(str(item.get("type", "")))
    return None if _role(item) and kind != "additionaltools" else ITEM_ROLES.get(kind)


def _is_unknown_item(item: Mapping[str, Any]) -> bool:
    """Whether this is an item of a type of its own between messages, which says neither who speaks nor what is said."""
    named = isinstance(item.get("type"), str) and item["type"] != "message" and item.keys().isdisjoint(("role", "from"))
    return named and item.keys().isdisjoint(CONTENT_KEYS) and _role(item) is None


def _signal_role(item: Mapping[str, Any]) -> Any:
    """The role of a message with Mastra's role `signal`: its tag, else its type."""
    in_content: Any = entries_of(item.get("content")).get("metadata")
    tags = entries_of(entries_of(item.get("metadata") or in_content).get("signal"))
    return tags.get("tagName") or tags.get("type") or item.get("type")


def _usage(item: Mapping[str, Any]) -> Any:
    """The tokens in a message's `usage` or `usage_metadata`; None without any."""
    by_name = by_normal_name(item)
    return read_usage(by_name.get("usagemetadata") or by_name.get("usage"))

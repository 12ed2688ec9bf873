"""Lists of messages, and transcripts that have them, read as Message and ToolCall values.

A list may have messages of any format in the registry, and plain Message values. The reply of a tool is the result of
the call that it answers; a call without an answer stays in state "call". Images, audio, files and parts of unknown
types are named in `Message.attachments`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array, is_object
from evalstone._core.names import normal
from evalstone.agents.formats import pydantic_ai
from evalstone.agents.formats.calls import CALL_NAMES
from evalstone.agents.formats.conversation import Conversation, NoMessageError, Reading
from evalstone.agents.formats.format import Layout, Place, Placed
from evalstone.agents.formats.parts import CONTENT_KEYS
from evalstone.agents.formats.registry import translated
from evalstone.agents.formats.roles import item_role, role_of
from evalstone.agents.formats.steps import in_steps
from evalstone.agents.formats.values import Entries, PlacedError, entries_of, objects_in, part_text
from evalstone.errors import DataError
from evalstone.types.messages import Message, Role, ToolCall

_PART = re.compile(r"^((?:\.content)?\.parts)\[(\d+)\]")
_PLAIN = frozenset(("role", "content"))
_SPEAKERS: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_NOTHING = Message(role="assistant", content="")


class MessageError(PlacedError):
    """A problem in a list of messages, and the number of the message, from 1.

    whole: whether the message itself is at fault, so that the problem continues its name. step: its place in the item.
    """

    def __init__(self, error: DataError, number: int, where: str, step: Place) -> None:
        place: str = getattr(error, "place", "")
        if step is None:
            place = place.removeprefix(".content[0]")
        elif isinstance(step, int):
            place = _PART.sub(lambda match: f"{match[1]}[{int(match[2]) + step}]", place, count=1)
        else:
            place = step + place
        super().__init__(error, where + place)
        self.number = number
        self.whole = isinstance(error, NoMessageError)


def read_conversation(items: Iterable[Any], where: str = "", into: Conversation | None = None) -> Conversation:
    """A list of messages. Raises MessageError that names the place.

    where: the place of the list. into: the conversation that they are added to.
    """
    conversation = Conversation() if into is None else into
    items = [*items]
    if plain := _plain_messages(items):
        conversation.messages += plain
        return conversation
    for number, step, item in _each(items, where):
        try:
            if not isinstance(item, Message | dict):
                raise NoMessageError(f"must be an object, not {excerpt(item)}")
            conversation.add(item)
        except DataError as error:
            raise MessageError(error, number, f"{where}[{number - 1}]", step) from None
        if step is None and conversation.messages[-1:] == [_NOTHING]:
            conversation.messages.pop()  # reasoning that the API keeps to itself
    return conversation


def _plain_messages(items: Sequence[Any]) -> list[Message]:
    """The messages of a list in which each has a role and a text and nothing else, as most have, in a fifth of the
    time; empty for any other list."""
    messages: list[Message] = []
    for item in items:
        if not is_object(item) or item.keys() != _PLAIN:
            return []
        role, text = item["role"], item["content"]
        if type(text) is not str or type(role) is not str or role not in _SPEAKERS:
            return []
        if role == "user" and pydantic_ai.feedback_in(text) is not None:
            return []
        messages.append(Message(role=_SPEAKERS[role], content=text))
    return messages


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
        if not is_object(item):
            return isinstance(item, Message)
        if role_of(item) is not None or translated(item) is not None:
            return True
        if item_role(item) != "assistant":
            return item_role(item) is not None
    return False


def is_parts(items: list[Any]) -> bool:
    """Whether a list has the parts of one message: objects with a `type`, at least one of them with a text."""
    parts = [item for item in items if is_object(item) and "type" in item]
    return len(parts) == len(items) and any(part_text(part) is not None for part in parts)


def is_calls(items: list[Any]) -> bool:
    """Whether a list has tool calls and not messages: its first item names a tool and has no role."""
    opening = items[0] if items else None
    if not is_object(opening):
        return isinstance(opening, ToolCall)
    keys = {normal(key) for key in opening}
    return "role" not in keys and not keys.isdisjoint((*CALL_NAMES, "function"))


def _each(items: Iterable[Any], where: str) -> Iterator[tuple[int, Place, Any]]:
    """The messages in a list of items: the number of the item, from 1, and the message with its place in the item."""
    for translate, run in groupby(enumerate(items), key=lambda each: _translator(each[1])):
        listed = [*run]
        if translate is None:
            yield from ((at + 1, place, message) for at, item in listed for place, message in _as_it_is(item))
            continue
        objects = [item for _, item in listed]
        for index, (at, _) in enumerate(listed):
            try:
                for place, message in translate(objects, index):
                    yield at + 1, place, message
            except DataError as error:
                raise MessageError(error, at + 1, f"{where}[{at}]", "") from None


def _translator(item: Any) -> Callable[[Sequence[Entries], int], Iterable[Placed]] | None:
    """The function that translates an item of a list to the common form; None for one that needs no translation."""
    known = translated(item) if is_object(item) else None
    return None if known is None else known.messages


def _as_it_is(item: Any) -> Iterable[tuple[Place, Any]]:
    if not is_object(item):
        return [("", item)]
    role = item_role(item) or ("assistant" if _is_unknown_item(item) else None)
    return in_steps(item) if role is None else [(None, {"role": role, "content": [item]})]


def _is_unknown_item(item: Mapping[str, Any]) -> bool:
    """Whether this is an item between messages with a type of its own, without a speaker and a text."""
    named = isinstance(item.get("type"), str) and item["type"] != "message" and item.keys().isdisjoint(("role", "from"))
    return named and item.keys().isdisjoint(CONTENT_KEYS) and role_of(item) is None


def read_layout(layout: Layout) -> Reading:
    """Read the messages of a transcript. Raises PlacedError for those that can't be read."""
    conversation = Conversation()
    for place, said in layout.messages:
        if is_array(said):
            read_conversation(said, place, conversation)
        else:
            conversation.read(said, place)
    conversation.passages |= dict.fromkeys(layout.passages)
    return Reading(conversation, layout.usage, layout.cost, layout.output, layout.trajectory, layout.error)


def message_list(value: Any) -> list[Any] | None:
    """The messages in a value: a list (also under `messages`), a single message, or a message's parts; else None."""
    inner = entries_of(value).get("messages", [value]) if is_object(value) else value
    items = inner if is_array(inner) else []
    if is_conversation(items):
        return items
    if items and is_parts(items):
        return [{"role": "assistant", "content": items}]
    return items if any(item_role(item) is not None for item in objects_in(items)) else None

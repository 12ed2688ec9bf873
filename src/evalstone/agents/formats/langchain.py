"""LangChain's messages, as objects or by `messages_to_dict` or `dumpd`, and the states of LangGraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.calls import passages_in
from evalstone.agents.formats.format import Layout, Placed
from evalstone.agents.formats.parts import CONTENT_KEYS
from evalstone.agents.formats.roles import role_of
from evalstone.agents.formats.values import Entries, entries_of, objects_in

_TYPES = ("human", "ai", "system", "tool")


def is_message(item: Entries) -> bool:
    """Whether this is a message of LangChain's, which has a type instead of a role, or is wrapped."""
    inner = _unwrapped(item)
    if inner is not item:
        return "content" in inner or role_of(inner) is not None
    typed = "role" not in item and str(item.get("type")).lower().removesuffix("messagechunk") in _TYPES
    return typed or ("content_blocks" in item and role_of(item) is not None)


def messages(items: Sequence[Entries], at: int) -> Iterator[Placed]:
    """The message, which needs no more than unwrapping."""
    yield "", _unwrapped(items[at])


def is_state(value: Any) -> bool:
    """Whether this is an object with a list of LangChain's messages, such as the state of a graph."""
    return has_messages(value) and any(map(is_message, objects_in(value["messages"])[:1]))


def has_messages(value: Any) -> bool:
    """Whether this is an object with a list of messages in any format, as the state of a graph is."""
    return isinstance(entries_of(value).get("messages"), list)


def read_state(value: Any) -> Layout:
    """The messages; the documents in other entries, as passages; a structured response, as the output."""
    state = entries_of(value)
    passages = [text for key, documents in state.items() if key != "messages" for text in passages_in(documents)]
    layout = Layout(passages=passages, output=state.get("structured_response"))
    layout.extend(state["messages"], "messages")
    return layout


def _unwrapped(item: Entries) -> Entries:
    """The message inside LangChain's `{"type": "human", "data": {…}}` or `{"lc": 1, "kwargs": {…}}`, or the item."""
    inner: Any = item.get("kwargs") if "lc" in item else item.get("data")
    if is_object(inner) and item.keys().isdisjoint(CONTENT_KEYS):
        item = {**({"type": item["type"]} if "lc" not in item and "type" in item else {}), **inner}
    if is_array(item.get("content_blocks")) and not item.get("content"):
        return {**item, "content": item["content_blocks"]}
    return item

"""The messages read from a trace so far, with lookups in about constant time: a trace can have ten thousand."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from evalstone._core.reasoning import split_reasoning
from evalstone._core.text import unspaced
from evalstone.types import Message, ToolCall
from evalstone.types.accounts import is_hidden


class KnownMessages:
    """The places of the messages in a list. Results that their calls get later don't change them."""

    def __init__(self) -> None:
        self._places: dict[Hashable, list[int]] = {}
        self.call_ids: Counter[str] = Counter()
        """The number of calls with each ID."""

    def add(self, message: Message, place: int) -> None:
        """Note that a message is at a place."""
        for key in {key for call in message.tool_calls or (None,) for key in _keys(message, call)}:
            insort(self._places.setdefault(key, []), place)
        self._count(message)

    def replace(self, known: Message, message: Message, place: int) -> None:
        """Note that a message replaced another version of it."""
        if (known.content, known.tool_calls) != (message.content, message.tool_calls):
            self._count(known, -1)
            self.add(message, place)  # where the other one was stays: what is found there is compared

    def find(self, message: Message, messages: Sequence[Message], start: int) -> int | None:
        """The place of the first message from a place on that is the same; None if there is none."""
        return next((place for place in self._candidates(message, start) if _same(messages[place], message)), None)

    def find_calls(self, message: Message, messages: Sequence[Message], start: int) -> int | None:
        """The place of the next message from a place on with the first call's ID, if it has all calls, and one of the
        two accounts only lacks text: frameworks such as CrewAI leave out what a model said beside its calls when they
        send these again."""
        if not message.tool_calls or not all(call.id for call in message.tool_calls):
            return None
        places = self._places.get(_without_text(message, message.tool_calls[0]), [])
        place = next(_from(places, bisect_left(places, start)), None)
        return place if place is not None and _same_but_for_text(messages[place], message) else None

    def _candidates(self, message: Message, start: int) -> Iterator[int]:
        """The places from this one on of messages that may be the same, by their first call."""
        base, call = _base(message), next(iter(message.tool_calls), None)
        keys: list[Hashable] = [base]
        if call is not None and call.id:
            keys = [(*base, "id", call.id), (*base, "without", call.name)]
        elif call is not None:
            keys = [(*base, "name", call.name)]
        lists = (self._places.get(key, []) for key in keys)
        return heapq.merge(*(_from(places, bisect_left(places, start)) for places in lists))

    def _count(self, message: Message, sign: int = 1) -> None:
        for call in message.tool_calls:
            if call.id:
                self.call_ids[call.id] += sign


def _from(places: list[int], at: int) -> Iterator[int]:
    """The places from this one on, without a copy of the list: usually the first one matches."""
    return (places[number] for number in range(at, len(places)))


def _base(message: Message) -> tuple[Hashable, ...]:
    # The next request, and the span of an agent, may have an answer without the reasoning in front of it.
    text = split_reasoning(message.content).answer if message.role == "assistant" else message.content
    return message.role, unspaced(text), frozenset(message.attachments)


def _keys(message: Message, call: ToolCall | None) -> list[Hashable]:
    """The keys of a message for one of its calls: the call's name, and its ID or that it has none."""
    base = _base(message)
    if call is None:
        return [base]
    if not call.id:
        return [(*base, "name", call.name), (*base, "without", call.name)]
    return [(*base, "name", call.name), (*base, "id", call.id), _without_text(message, call)]


def _without_text(message: Message, call: ToolCall) -> Hashable:
    """The key of a message without its text."""
    return message.role, "call", call.id


def _same(one: Message, other: Message) -> bool:
    """Whether two messages are the same, apart from results of tools and from details that not every span has."""
    return _base(one) == _base(other) and _same_calls(one, other)


def _same_but_for_text(one: Message, other: Message) -> bool:
    """Whether two messages are the same, and one version has more text than the other."""
    texts = ["" if is_hidden(each.content) else each.content.strip() for each in (one, other)]
    return one.role == other.role and (texts[0] in texts[1] or texts[1] in texts[0]) and _same_calls(one, other)


def _same_calls(one: Message, other: Message) -> bool:
    """Whether two messages have the same calls, or the second one some of those of the first."""
    if bool(one.tool_calls) != bool(other.tool_calls):
        return False
    if len(one.tool_calls) == len(other.tool_calls) and all(map(same_call, one.tool_calls, other.tool_calls)):
        return True
    return all(any(same_call(call, known) for known in one.tool_calls) for call in other.tool_calls)


def same_call(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls are the same: by their IDs if both have one, otherwise by name and arguments."""
    if one.id and other.id:
        return one.id == other.id
    return (one.name, one.arguments) == (other.name, other.arguments)

"""Agents and model calls that a tool asked although no span says so: they are part of the tool call, and no request.

Some instrumentations put the agent that a tool runs beside the agent that called the tool, and a filter may drop the
tool's span or those around it. What ran during a tool call is part of it if it was asked what the call passed on, or
answered what the call returned. Time alone proves nothing, since requests may run side by side in one trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from evalstone._core.guards import is_list, is_mapping
from evalstone._core.json import to_jsonable
from evalstone._core.text import is_blank
from evalstone.agents.conversations import Unit, conversations, messages_of
from evalstone.agents.formats.calls import text_of
from evalstone.agents.formats.dialects import OPERATION, answered, asked
from evalstone.agents.messages import answer_text, last_user_text
from evalstone.agents.span_tree import Node, start_of, walk
from evalstone.errors import DataError
from evalstone.types import ToolCall
from evalstone.types.accounts import call_key, is_hidden, same_value


@dataclass
class _Call:
    """A tool call and its time."""

    call: ToolCall
    start: float
    end: float
    span: Node | None = None
    """None if it is missing."""
    maker: Node | None = None
    """The model call that made it, if its time is that until the model call that got its result."""

    def contains(self, nodes: Iterable[Node]) -> bool:
        """Whether spans began and ended in its time."""
        return _are_within(self.start, self.end, nodes)


def _are_within(first: float, last: float, nodes: Iterable[Node]) -> bool:
    """Whether spans began and ended between two times."""
    times = [(node.record.start, node.record.end) for node in nodes]
    return all(start is not None and end is not None and first <= start and end <= last for start, end in times)


def nest_units(units: Sequence[Unit]) -> list[Unit]:
    """The units that are requests. The others are put below the tool calls of these that they are part of."""
    standing = {id(unit): unit for unit in units}
    calls: dict[int, list[_Call]] = {}
    for unit in sorted(units, key=lambda unit: unit.seconds or 0.0) if len(units) > 1 else ():
        for other in [each for each in standing.values() if each is not unit and _is_during(unit, each)]:
            if id(other) not in calls:
                calls[id(other)] = _calls_in((*other.nodes, *other.beside))
            if (call := _call_of(unit, calls[id(other)])) is not None:
                _put([*unit.nodes, *unit.beside], call, other.beside)
                del standing[id(unit)]
                break
    return [*standing.values()]


def nest_orphans(roots: Sequence[Node]) -> None:
    """Put the orphans that other spans were given below the tool calls that they are part of."""
    waiting = [(root, list[Node]()) for root in roots]
    while waiting:
        node, callers = waiting.pop()
        if node.kind == "agent" or (node.kind == "chain" and not callers):
            callers = [node, *callers]
        elif node.kind == "tool":
            callers = []
        orphans = [child for child in node.children if child.is_orphan]
        if orphans and callers:
            _nest(node, orphans, callers)
        waiting += [(child, callers) for child in node.children]


def _nest(holder: Node, orphans: Sequence[Node], callers: Sequence[Node]) -> None:
    units = [
        *(Unit([node]) for node in orphans if node.kind in ("agent", "chain")),
        *conversations([node for node in orphans if node.kind == "model" and node.has_messages]),
    ]
    by_caller = [(caller, _calls_in([caller])) for caller in callers] if units else []
    calls = [call for _, made in by_caller for call in made]
    for unit in sorted(units, key=lambda unit: unit.seconds or 0.0):
        if (call := _call_of(unit, calls)) is not None:
            inside = [*unit.nodes, *_with(unit, call, orphans)]
            moved = {id(node) for node in inside}
            holder.children[:] = [child for child in holder.children if id(child) not in moved]
            orphans = [each for each in orphans if id(each) not in moved]
            caller = next(caller for caller, made in by_caller if any(each is call for each in made))
            _put(inside, call, caller.children)


def _is_during(unit: Unit, other: Unit) -> bool:
    """Whether a unit ran while another one did."""
    start, end = other.nodes[0].record.start, other.main.record.end
    return start is not None and end is not None and _are_within(start, end, unit.nodes)


def _calls_in(nodes: Sequence[Node]) -> list[_Call]:
    """The tool calls of spans and of all below them, and those in their messages."""
    found: list[_Call] = []
    for node in walk(nodes):
        start, end = node.record.start, node.record.end
        if (run := _run_of(node)) is not None and start is not None and end is not None:
            found.append(_Call(run, start, end, node))
    models = [node for node in walk(nodes, nested=False) if node.kind == "model" and node.has_messages]
    for unit in conversations(sorted(models, key=start_of)):
        for before, after in pairwise(unit.nodes):
            known = _returned(before)
            start = before.record.start if before.record.end is None else before.record.end
            if start is not None and after.record.start is not None:
                calls = (call for key, call in _returned(after).items() if key not in known)
                found += [_Call(call, start, after.record.start, maker=before) for call in calls]
    return found


def _run_of(node: Node) -> ToolCall | None:
    """The content of a tool's span; None for another span, or if it can't be read, which is reported later."""
    try:
        return node.tool_run if node.kind == "tool" else None
    except DataError:
        return None


def _is_account(run: ToolCall | None, call: ToolCall) -> bool:
    """Whether the span of a tool may be of a call: by their IDs if both have one, else by name and arguments."""
    if run is None or run.name != call.name:
        return False
    if run.id and call.id:
        return run.id == call.id
    return is_hidden(run.arguments) or same_value(dict(run.arguments), dict(call.arguments))


def _returned(node: Node) -> dict[object, ToolCall]:
    """The calls in the messages of a model call that have a result."""
    calls = [call for message in messages_of(node) for call in message.tool_calls]
    return {call_key(call): call for call in calls if call.state in ("result", "error")}


def _call_of(unit: Unit, calls: Sequence[_Call]) -> _Call | None:
    """The call that a unit is part of: the shortest one in whose time it lies, and that passed its question on or
    returned its answer."""
    own = {id(node) for node in walk((*unit.nodes, *unit.beside))}
    around = [each for each in calls if not own & {id(each.span), id(each.maker)} and each.contains(unit.nodes)]
    if not around:
        return None
    messages = [message for node in unit.nodes for message in messages_of(node)]
    question = last_user_text(messages) or asked(unit.nodes[0].attributes) or ""
    answer = answer_text(messages) or answered(unit.main.attributes) or ""
    found = min(
        (each for each in around if _is_below(unit, each.span) or _passes(each.call, question, answer)),
        key=lambda each: each.end - each.start,
        default=None,
    )
    if found is None or found.span is not None:
        return found
    spans = (each for each in around if each.span is not None and _is_account(each.call, found.call))
    return next(spans, found)


def _is_below(unit: Unit, span: Node | None) -> bool:
    return span is not None and any(node is unit.main for node in walk(span.children))


def _passes(call: ToolCall, question: str, answer: str) -> bool:
    """Whether a call passed a question on, or returned an answer."""
    if not is_blank(question) and question.strip() in _texts(call.arguments):
        return True
    result: Any = call.error if call.result is None else call.result
    if is_blank(answer) or result is None:
        return False
    return same_value(result, answer) or answer.strip() in text_of(to_jsonable(result))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif is_mapping(value):
        for each in value.values():
            yield from _texts(each)
    elif is_list(value):
        for each in value:
            yield from _texts(each)


def _with(unit: Unit, call: _Call, orphans: Sequence[Node]) -> list[Node]:
    """The other orphans that are part of the call with a unit: those of its missing parents, and the spans of its tool
    calls."""
    made = [each for node in unit.nodes for message in messages_of(node) for each in message.tool_calls]
    parents = {node.record.parent for node in unit.nodes} - {""}
    others = {id(node) for node in (*unit.nodes, call.span, call.maker)}
    found: list[Node] = []
    for node in orphans:
        if id(node) in others or not call.contains([node]):
            continue
        if node.record.parent in parents or any(map(partial(_is_account, _run_of(node)), made)):
            found.append(node)
    return found


def _put(nodes: Sequence[Node], call: _Call, holder: list[Node]) -> None:
    """Put spans below that of a call; if it is missing, below one that stands for it."""
    if call.span is None and call.maker is not None:
        values = {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": call.call.name,
            "gen_ai.tool.call.id": call.call.id,
            "gen_ai.tool.call.arguments": json.dumps(to_jsonable(dict(call.call.arguments))),
        }
        made = replace(
            call.maker.record, name="", attributes=values, source={}, span="", parent="", start=call.start, end=None
        )
        call.span = Node(made, "tool", values)
        holder.append(call.span)
        holder.sort(key=start_of)
    if call.span is not None:
        inside = {id(node) for node in walk(call.span.children)}
        call.span.children += [node for node in nodes if id(node) not in inside]
        call.span.children.sort(key=start_of)

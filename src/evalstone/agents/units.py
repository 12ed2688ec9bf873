"""The units of a trace, each of which becomes a sample: an agent, or a conversation of model calls."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from evalstone.agents.conversations import Unit, conversations, messages_of
from evalstone.agents.formats.unread import CAPTURE
from evalstone.agents.nested_requests import nest_orphans, nest_units
from evalstone.agents.notes import Notes
from evalstone.agents.span_tree import Node, start_of, walk


def units_of(roots: Sequence[Node], trace: str, notes: Notes) -> list[Unit]:
    """The units, in the order of their start."""
    nest_orphans(roots)
    saying: set[int] = set()
    for node in reversed([*walk(roots)]):
        inside = (id(child) in saying for child in node.children if child.kind != "agent")
        if node.says or any(inside):
            saying.add(id(node))
    agents, calls, outside, silent = list[Node](), list[Node](), list[Node](), list[Node]()
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
        if node.kind == "embedding":
            continue  # the tasks of Traceloop inside of it have the embedded texts as questions
        if node.kind in ("agent", "chain") and id(node) in saying:
            agents.append(node)
        elif node.kind == "model" and node.says:
            calls.append(node)
        else:
            if node.kind in ("tool", "retrieval"):
                outside.append(node)
            elif node.kind == "model":
                silent.append(node)
            waiting += reversed(node.children)
    units = [*conversations(sorted(agents, key=start_of)), *conversations(sorted(calls, key=start_of))]
    units.sort(key=lambda unit: start_of(unit.nodes[0]))
    for node in silent if units else ():
        notes.add(f"a model call without content beside others; {CAPTURE}", trace, node.record.name)
    begun = sorted((start_of(each), number) for number, unit in enumerate(units) for each in unit.nodes)
    called = _called(units) if len(units) > 1 and any(map(_call_id, outside)) else {}
    for node in outside:
        if (unit := called.get(_call_id(node)) or _unit_of(node, units, begun)) is not None:
            unit.beside.append(node)
        elif units:
            notes.add(
                "a tool or a retrieval after the last answer, which belongs to no sample", trace, node.record.name
            )
    return nest_units(units)


def _call_id(node: Node) -> str:
    return str(node.attributes.get("gen_ai.tool.call.id") or "")


def _called(units: Sequence[Unit]) -> dict[str, Unit]:
    """The units by the IDs of the tool calls that only their messages have."""
    made: dict[str, dict[int, Unit]] = {}
    for unit in units:
        for message in (message for node in unit.nodes for message in messages_of(node)):
            for call in message.tool_calls:
                made.setdefault(call.id, {})[id(unit)] = unit
    return {name: unit for name, (unit, *others) in ((n, u.values()) for n, u in made.items()) if name and not others}


def _unit_of(node: Node, units: Sequence[Unit], begun: Sequence[tuple[float, int]]) -> Unit | None:
    """The sample to which a tool or a retrieval outside of all belongs: the only one, else that of the first model call
    or agent that began after it had ended.

    begun: when each of these began, and the number of its unit, in order.
    """
    if len(units) == 1:
        return units[0]
    if node.record.end is None:
        return None
    place = bisect_left(begun, (node.record.end, -1))
    return units[begun[place][1]] if place < len(begun) else None

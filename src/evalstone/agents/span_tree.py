"""The spans of a trace as a forest, each with its events and log records.

A span whose parent is missing, for example because a filter dropped it, becomes a child of the agent that was running
at the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from evalstone._core.display import excerpt
from evalstone.agents.formats.cut import REMEDY, cut_attributes, cut_error, has_messages, has_question, without
from evalstone.agents.formats.dialects import (
    INPUT,
    OUTPUT,
    SpanKind,
    asked,
    event_message,
    is_repeated,
    kind_of,
    translated,
)
from evalstone.agents.formats.records import TelemetryRecord
from evalstone.agents.formats.spans import cost_of, has_content
from evalstone.agents.formats.tool_runs import tool_run
from evalstone.agents.formats.values import Entries, PlacedError, objects_in, parsed
from evalstone.agents.notes import Notes
from evalstone.types import ToolCall
from evalstone.types.accounts import is_redacted

ADOPTED = "a span whose parent is missing, which is read as part of the agent in whose time it lies"
UNSURE = "a span whose parent is missing and that may be part of any of several agents, which is read apart from them"
CUT = f"an attribute that was cut in the middle of its JSON, and is not read; {REMEDY}"
_WITHOUT_CONTENT = {"type", "id", "name", "modality", "mime_type", "media_type"}
_TOKENS = ("gen_ai.usage.", "llm.token_count", "llm.usage.")


@dataclass
class Node:
    """A span with its events, log records and children."""

    record: TelemetryRecord
    kind: SpanKind | None
    attributes: Entries
    beside: list[TelemetryRecord] = field(default_factory=list[TelemetryRecord])
    """Its events and log records."""
    children: list[Node] = field(default_factory=list["Node"])
    is_orphan: bool = False
    """Whether its parent is missing from the trace."""
    unreadable: PlacedError | None = None
    """The reason if its messages can't be read because they were cut."""
    question: PlacedError | None = None
    """The reason if its question can't be read because it was cut."""

    @cached_property
    def tool_run(self) -> ToolCall:
        """The tool call that the span describes. Raises DataError if it doesn't name the tool."""
        return tool_run(self.attributes, self.record.error)

    @property
    def reports(self) -> list[Entries]:
        """The attributes that may have its tokens and its cost: the span's own or, if the span is missing, those of its
        events and log records."""
        return [self.attributes] if self.attributes else [*map(translated, self.beside)]

    @property
    def has_tokens(self) -> bool:
        """Whether it may report the tokens of a model call. If the span is missing, its log records may."""
        return not self.attributes or any(key.startswith(_TOKENS) for key in self.attributes)

    @property
    def has_cost(self) -> bool:
        """Whether it reports the cost of a model call."""
        return any(cost_of(each) is not None for each in self.reports)

    @property
    def says(self) -> bool:
        """Whether it has a message or a question of its own."""
        has_question = self.question is not None or asked(self.attributes) is not None
        return self.has_messages or (self.kind in ("agent", "chain") and has_question)

    @property
    def has_messages(self) -> bool:
        """Whether it has a message of its own, readable or not."""
        if self.unreadable is not None:
            return True
        said = filter(None, map(event_message, self.beside))
        return any(map(_has_messages, (self.attributes, *map(translated, self.beside)))) or any(map(has_content, said))


def tree_of(records: Sequence[TelemetryRecord], trace: str, notes: Notes) -> list[Node]:
    """The spans as a forest, each with its events and log records; siblings in the order in which they began."""
    nodes: dict[str, Node] = {}
    events: dict[int, list[TelemetryRecord]] = {}
    # By content and place, which are the same in a batch that an exporter has repeated: log records have no ids.
    logged: dict[str, TelemetryRecord] = {}
    unreadable: dict[int, PlacedError] = {}
    questions: dict[int, PlacedError] = {}  # both by the sources of spans and log records
    for number, whole in enumerate(records):
        record = _readable(whole, trace, notes, unreadable, questions)
        if record.kind == "event":
            events.setdefault(id(record.source), []).append(record)
        elif record.kind == "log":
            place = record.place if record.trace or record.span else ""  # such a one is whole, in any request
            content = json.dumps([record.source, record.resource], sort_keys=True, default=str)
            if logged.setdefault(f"{place} {content}", record) is not record:
                notes.add("a log record equal to another one, time included, which counts once", trace, record.name)
        else:
            key = record.span or f"without id {number}"
            known = nodes.get(key)
            if known is not None and known.record.source != record.source:
                notes.add("a span with the id of another one, of which the one that ended later is read", trace)
            if known is None or (record.end or 0) >= (known.record.end or 0):
                nodes[key] = Node(record, kind_of(record), translated(record))
    for node in nodes.values():
        own = events.get(id(node.record.source), [])
        node.beside = [each for each in own if not (is_repeated(each) or (node.kind == "tool" and event_message(each)))]
        node.unreadable = unreadable.get(id(node.record.source))
        node.question = questions.get(id(node.record.source))
    lone: dict[str, Node] = {}
    for number, record in enumerate(logged.values()):
        node = nodes.get(record.span) if record.span else None
        if node is None and not record.span and not _has_messages(translated(record)):
            if event_message(record) is not None:
                notes.add("a message in a log record without a span id, which belongs to no sample", trace)
            continue
        if node is None:
            made = replace(record, name="", attributes={}, source={}, kind="span")
            node = lone.setdefault(record.span or f"without id {number}", Node(made, "model", {}))
        node.beside.append(record)
        node.unreadable = node.unreadable or unreadable.get(id(record.source))
    calls = {f"logs of {key}": node for key, node in lone.items() if node.says or any(map(event_message, node.beside))}
    return _adopted(_linked({**nodes, **calls}), trace, notes)


def _readable(
    record: TelemetryRecord,
    trace: str,
    notes: Notes,
    unreadable: dict[int, PlacedError],
    questions: dict[int, PlacedError],
) -> TelemetryRecord:
    """A record without its cut attributes. Those with messages and questions are noted."""
    cut = cut_attributes(record)
    if not cut:
        return record
    for name in cut:
        error = cut_error(record, name)
        if has_messages(name):
            unreadable.setdefault(id(record.source), error)
            continue
        if has_question(name):
            questions.setdefault(id(record.source), error)
        if record.kind != "span" or kind_of(record) is not None:
            notes.add(CUT, trace, f"span {excerpt(record.name)}{error.place}")
    return without(record, cut)


def _linked(nodes: Mapping[str, Node]) -> list[Node]:
    """The roots, with the others below their parents. If spans form a cycle, one of them becomes a root."""
    roots: list[Node] = []
    settled, cut = set[str](), set[str]()
    for key in nodes:
        path, at = set[str](), key
        while at in nodes and at not in settled:
            if at in path:
                cut.add(at)
                break
            path.add(at)
            at = nodes[at].record.parent
        settled |= path
    for key, node in nodes.items():
        is_root = node.record.parent not in nodes or key in cut
        # A node without a source stands for a missing span, whose log records it has.
        node.is_orphan = is_root and key not in cut and bool(node.record.parent or not node.record.source)
        (roots if is_root else nodes[node.record.parent].children).append(node)
    for node in nodes.values():
        node.children.sort(key=start_of)
        node.beside.sort(key=lambda record: record.start or 0.0)
    return sorted(roots, key=start_of)


@dataclass
class _Place:
    """The position of an agent in the forest, while orphans are placed."""

    node: Node
    root: Node
    inside: range
    """The numbers of the spans below it and its own, in the order of `walk`."""

    def contains(self, node: Node) -> bool:
        """Whether a span began and ended while the agent ran."""
        start, end = self.node.record.start, self.node.record.end
        began, ended = node.record.start, node.record.end
        return (
            start is not None
            and end is not None
            and began is not None
            and start <= began
            and (began if ended is None else ended) <= end
        )


def _adopted(roots: Sequence[Node], trace: str, notes: Notes) -> list[Node]:
    """The roots, without the orphans that are put below the agent in whose time they lie: of agents inside of each
    other, the innermost.

    Spans whose missing parent is the same one are siblings. An agent is part of another only if that one has no missing
    parent itself: two requests at a time look the same.
    """
    orphans = [node for node in roots if node.is_orphan and any(each.kind or each.says for each in walk([node]))]
    places = _places(roots) if orphans else []
    below: dict[int, _Place] = {}
    """The agents below which orphans were put, by the orphans."""
    for orphan in orphans:
        found: _Place | None = None
        for place in places:
            if not place.contains(orphan) or _is_sibling(orphan, place.root) or _top(place, below) is orphan:
                continue
            if found is None or _is_inside(place, found, below):
                found = place
            elif not _is_inside(found, place, below):
                notes.add(UNSURE, trace, orphan.record.name)
                break
        else:
            if found is not None and orphan.kind in ("agent", "chain") and _top(found, below).is_orphan:
                notes.add(UNSURE, trace, orphan.record.name)
            elif found is not None:
                found.node.children.append(orphan)
                found.node.children.sort(key=start_of)
                below[id(orphan)] = found
                notes.add(ADOPTED, trace, orphan.record.name)
    return [node for node in roots if id(node) not in below]


def _places(roots: Sequence[Node]) -> list[_Place]:
    """The agents and chains."""
    places: list[_Place] = []
    for root in roots:
        nodes = [*walk([root])]
        sizes: dict[int, int] = {}
        for number, node in reversed([*enumerate(nodes)]):
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.children)
            if node.kind in ("agent", "chain"):
                places.append(_Place(node, root, range(number, number + sizes[id(node)])))
    return places


def _is_sibling(orphan: Node, root: Node) -> bool:
    return root.is_orphan and bool(root.record.parent) and root.record.parent == orphan.record.parent


def _top(place: _Place, below: Mapping[int, _Place]) -> Node:
    while id(place.root) in below:
        place = below[id(place.root)]
    return place.root


def _is_inside(inner: _Place, outer: _Place, below: Mapping[int, _Place]) -> bool:
    at: _Place | None = inner
    while at is not None and at.root is not outer.root:
        at = below.get(id(at.root))
    return at is not None and at.inside.start in outer.inside


def start_of(node: Node) -> float:
    """The start time of a span; 0 if unknown."""
    return node.record.start or 0.0


def walk(nodes: Iterable[Node], *, nested: bool = True) -> Iterator[Node]:
    """These spans and all below them, parents first. Without nested, those of agents inside are left out, and what is
    below tools: model calls of a tool's own, and the agent that it asks."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if nested:
            waiting += reversed(node.children)
        elif node.kind != "tool":
            waiting += (child for child in reversed(node.children) if child.kind != "agent")


def _has_messages(attributes: Entries) -> bool:
    keys = (INPUT, OUTPUT, "pydantic_ai.all_messages")
    return any(map(_has_content, (parsed(attributes.get(key)) for key in keys))) or any(
        key.startswith(("llm.input_messages", "llm.output_messages"))
        and not (is_redacted(value) or key.endswith((".role", ".name", ".id", ".type", "_id")))
        for key, value in attributes.items()
    )


def _has_content(messages: Any) -> bool:
    """Whether messages have more than the types of their parts and the names of tools. Without captured content,
    pydantic-ai's messages have only these, and of images their types."""
    parts = [part for each in objects_in(messages) for part in objects_in(each.get("parts"))]
    bare = all(part.keys() <= _WITHOUT_CONTENT for part in parts)
    return bool(messages) and not (parts and bare)

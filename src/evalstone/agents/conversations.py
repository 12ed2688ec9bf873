"""Groups the model calls of a trace by conversation, and the agents that answer one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evalstone.agents.formats.spans import SpanReader
from evalstone.agents.reasoning import answered_messages
from evalstone.agents.span_tree import Node, start_of, walk
from evalstone.errors import DataError
from evalstone.types import Message
from evalstone.types.accounts import call_key


@dataclass
class Unit:
    """The spans of one sample. The last node is the evaluated span."""

    nodes: list[Node]
    beside: list[Node] = field(default_factory=list[Node])
    """Spans of tools and retrievals outside of these."""

    @property
    def main(self) -> Node:
        return self.nodes[-1]

    @property
    def seconds(self) -> float | None:
        start, end = self.nodes[0].record.start, self.main.record.end
        return None if start is None or end is None else max(0.0, end - start)


def conversations(nodes: Sequence[Node]) -> list[Unit]:
    """Group model calls by conversation: a call that repeats the messages of another one and continues them belongs to
    its conversation. So does an agent that continues after another agent that handed over without an answer."""
    units: list[Unit] = []
    ending: dict[tuple[int, int], Unit] = {}
    for node in nodes:
        messages = messages_of(node) if len(nodes) > 1 else []
        ends = _ends(messages)
        unit = next((ending.pop(end) for end in ends[-2:0:-1] if end in ending), None)
        if unit is None:
            unit = Unit([])
            units.append(unit)
        unit.nodes.append(node)
        if messages and (node.kind == "model" or messages[-1].tool_calls):
            ending[ends[-1]] = unit
    return units


def messages_of(node: Node) -> list[Message]:
    """The messages of a model call, or of an agent's calls apart from its instructions, without reasoning in front of
    answers."""
    reader, alone = SpanReader(), node.kind == "model"
    try:
        for each in [node] if alone else sorted(walk([node], nested=False), key=start_of):
            read_node(reader, each, main=alone, counted=False)
        messages = reader.reading().conversation.messages
    except DataError:
        return []  # it becomes a separate unit, and reading that reports the error
    return [message for message in answered_messages(messages) if alone or message.role != "system"]


def _ends(messages: Iterable[Message]) -> list[tuple[int, int]]:
    """The conversation up to the end of each message: the number of texts and calls, and a hash of them. A text beside
    calls with IDs is left out, as frameworks may leave it out of later requests. A later request may also have the text
    and each of the calls as separate messages."""
    ends = [(0, 0)]
    here = without_text = ends[0]
    for message in messages:
        said: list[tuple[object, bool]] = []  # and whether it is a call with an ID
        if message.content or not message.tool_calls:
            said.append((message.content, False))
        for call in message.tool_calls:
            said.append((call_key(call), bool(call.id)))
        for item, has_id in said:
            count, before = without_text if has_id else here
            after = count + 1, hash((before, message.role, item))
            without_text = here if isinstance(item, str) and not has_id and message.role == "assistant" else after
            here = after
        ends.append(here)
    return ends


def read_node(reader: SpanReader, node: Node, *, main: bool, counted: bool) -> None:
    """Read a span, its events and its log records. If the span is missing, the tokens of its log records count.

    main, counted: as for `SpanReader.read`.
    """
    for number, record in enumerate((node.record, *node.beside)):
        reader.read(record, main=main and number == 0, counted=counted and (number == 0 or not node.attributes))
    reader.end_call()

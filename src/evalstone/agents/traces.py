"""Samples from traces: each request that spans and log records describe becomes one sample.

The evaluated span is the outermost span of an agent, a chain or a model call that has content. Agents inside it are
its steps. Model calls outside of any agent are one sample each, unless one continues the messages of another: then
they are one conversation, and the last call is the evaluated span. The same holds for agents that hand over to each
other.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.json import to_jsonable
from evalstone.agents.formats.dialects import (
    DOCUMENTS,
    INPUT,
    OUTPUT,
    QUESTION,
    Kind,
    asked,
    event_message,
    is_of_tool,
    kind_of,
    translated,
)
from evalstone.agents.formats.parts import text_of
from evalstone.agents.formats.records import Record
from evalstone.agents.formats.spans import SpanReader, cost_of, has_content, is_part
from evalstone.agents.formats.tool_runs import tool_run
from evalstone.agents.formats.values import Entries, first, objects_in, parsed
from evalstone.agents.messages import answer_text, last_user_text, message_notes, system_prompt
from evalstone.errors import ConfigError, DataError
from evalstone.types import NO_USAGE, Message, Sample, ToolCall, Trajectory, TrajectoryStep
from evalstone.types.agreement import step_of

CAPTURE = "turn on the capture of message content where the spans are recorded"
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "spring.ai.chat.client.conversation.id")
_ENTITIES = ("gen_ai.agent.name", "traceloop.entity.name", "ai.telemetry.functionId")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_WITHOUT_CONTENT = {"type", "id", "name"}
_DOCUMENTS = ("retrieval.documents", "reranker.output_documents")
_TOKENS = ("gen_ai.usage.", "llm.token_count", "llm.usage.")
_RESPONSE = "gen_ai.response.id"


@dataclass
class Notes:
    """What is to be said of traces, such as parts that are in no sample: how many for each reason, and the first
    example."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    examples: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, reason: str, trace: str, example: str = "") -> None:
        """Count one more."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        parts = (f"in trace {excerpt(trace)}" if trace else "", example)
        self.examples.setdefault(reason, ", ".join(filter(None, parts)))

    def lines(self) -> tuple[str, ...]:
        """One line for each reason."""
        examples = {reason: f"; first {example}" if example else "" for reason, example in self.examples.items()}
        return tuple(f"{count} × {reason}{examples[reason]}" for reason, count in self.counts.items())


@dataclass
class _Node:
    """A span with its events, log records and children."""

    record: Record
    kind: Kind | None
    attributes: Entries
    beside: list[Record] = field(default_factory=list[Record])
    """Its events and log records."""
    children: list[_Node] = field(default_factory=list["_Node"])

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
        return self.has_messages or (self.kind in ("agent", "chain") and asked(self.attributes) is not None)

    @property
    def has_messages(self) -> bool:
        """Whether it has a message of its own."""
        said = filter(None, map(event_message, self.beside))
        return any(map(_has_messages, (self.attributes, *map(translated, self.beside)))) or any(map(has_content, said))


@dataclass
class _Unit:
    """The spans of one sample. The last node is the evaluated span."""

    nodes: list[_Node]
    beside: list[_Node] = field(default_factory=list[_Node])
    """Spans of tools and retrievals outside of these."""

    @property
    def main(self) -> _Node:
        return self.nodes[-1]

    @property
    def seconds(self) -> float | None:
        start, end = self.nodes[0].record.start, self.main.record.end
        return None if start is None or end is None else max(0.0, end - start)


def _has_messages(attributes: Entries) -> bool:
    keys = (INPUT, OUTPUT, "pydantic_ai.all_messages")
    return any(map(_has_content, (parsed(attributes.get(key)) for key in keys))) or any(
        key.startswith(("llm.input_messages", "llm.output_messages")) for key in attributes
    )


def _has_content(messages: Any) -> bool:
    """Whether messages have more than the types of their parts and the names of tools. Without captured content,
    pydantic-ai's messages have only these."""
    parts = [part for each in objects_in(messages) for part in objects_in(each.get("parts"))]
    bare = all(part.keys() <= _WITHOUT_CONTENT for part in parts)
    return bool(messages) and not (parts and bare)


def samples_of(records: Iterable[Record], notes: Notes) -> list[Sample]:
    """The samples of one trace, in the order of their answers.

    Args:
        records: Its spans, their events and log records, in any order. A span that came twice counts once.
        notes: Gets what could not be read, and what belongs to no sample.
    """
    listed = list(records)
    trace = next((record.trace for record in listed if record.trace), "")
    try:
        roots = _tree(listed, trace, notes)
        units = _units(roots, trace, notes)
    except (DataError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        notes.add("a trace that cannot be read", trace, said)
        return []
    if not units:
        kinds = {node.kind for node in _walk(roots)}
        if kinds & {"agent", "chain", "model"}:
            notes.add(f"a trace without content; {CAPTURE}", trace)
        elif roots:
            notes.add("a trace without a span of a model, a chain or an agent", trace)
        return []
    samples: list[Sample] = []
    for unit in units:
        try:
            sample = _sample(unit, trace, notes, alone=len(units) == 1)
            _ = sample.content_hash  # which has to be, in a dataset and in a ledger
            samples.append(sample)
            for reason, detail in message_notes(sample.messages):
                notes.add(reason, trace, detail)
        except (DataError, ConfigError, RecursionError) as error:
            said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            place = getattr(error, "place", "")
            message = f"span {excerpt(unit.main.record.name)}{place}: {said}"
            notes.add("an answer that cannot be read and is left out", trace, message)
    return samples


def _tree(records: Sequence[Record], trace: str, notes: Notes) -> list[_Node]:
    """The spans as a forest, each with its events and log records; siblings in the order in which they began."""
    nodes: dict[str, _Node] = {}
    events: dict[int, list[Record]] = {}
    # By content and place, which are the same in a batch that an exporter has repeated: log records have no ids.
    logged: dict[str, Record] = {}
    for number, record in enumerate(records):
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
                nodes[key] = _Node(record, kind_of(record), translated(record))
    for node in nodes.values():
        own = events.get(id(node.record.source), [])
        node.beside = [each for each in own if not (is_of_tool(each) or (node.kind == "tool" and event_message(each)))]
    lone: dict[str, _Node] = {}
    for number, record in enumerate(logged.values()):
        node = nodes.get(record.span) if record.span else None
        if node is None and not record.span and not _has_messages(translated(record)):
            if event_message(record) is not None:
                notes.add("a message in a log record without a span id, which belongs to no sample", trace)
            continue
        if node is None:
            made = replace(record, name="", attributes={}, source={}, kind="span")
            node = lone.setdefault(record.span or f"without id {number}", _Node(made, "model", {}))
        node.beside.append(record)
    calls = {f"logs of {key}": node for key, node in lone.items() if node.says or any(map(event_message, node.beside))}
    return _linked({**nodes, **calls})


def _linked(nodes: Mapping[str, _Node]) -> list[_Node]:
    """The roots, with the others below their parents. Where spans lie inside each other in a circle, one is a root."""
    roots: list[_Node] = []
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
        (roots if is_root else nodes[node.record.parent].children).append(node)
    for node in nodes.values():
        node.children.sort(key=_start)
        node.beside.sort(key=lambda record: record.start or 0.0)
    return sorted(roots, key=_start)


def _start(node: _Node) -> float:
    return node.record.start or 0.0


def _walk(nodes: Iterable[_Node], *, into_agents: bool = True) -> Iterator[_Node]:
    """These spans and all below them, parents first; without into_agents, those of agents inside are left out."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        inside = node.children if into_agents else [child for child in node.children if child.kind != "agent"]
        waiting += reversed(inside)


def _units(roots: Sequence[_Node], trace: str, notes: Notes) -> list[_Unit]:
    """The units that become a sample each, in the order in which they began."""
    saying: set[int] = set()
    for node in reversed([*_walk(roots)]):
        inside = (id(child) in saying for child in node.children if child.kind != "agent")
        if node.says or any(inside):
            saying.add(id(node))
    agents, calls, outside, silent = list[_Node](), list[_Node](), list[_Node](), list[_Node]()
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
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
    units = [*_conversations(sorted(agents, key=_start)), *_conversations(sorted(calls, key=_start))]
    units.sort(key=lambda unit: _start(unit.nodes[0]))
    for node in silent if units else ():
        notes.add(f"a model call without content beside others; {CAPTURE}", trace, node.record.name)
    begun = sorted((_start(each), number) for number, unit in enumerate(units) for each in unit.nodes)
    called = _called(units) if len(units) > 1 and any(map(_call_id, outside)) else {}
    for node in outside:
        if (unit := called.get(_call_id(node)) or _unit_of(node, units, begun)) is not None:
            unit.beside.append(node)
        elif units:
            notes.add(
                "a tool or a retrieval after the last answer, which belongs to no sample", trace, node.record.name
            )
    return units


def _conversations(nodes: Sequence[_Node]) -> list[_Unit]:
    """Group model calls by conversation: a call that repeats the messages of another one and continues them belongs to
    it. Likewise an agent that continues after another one, which handed over without an answer."""
    units: list[_Unit] = []
    ending: dict[tuple[int, int], _Unit] = {}
    for node in nodes:
        messages = _messages_of(node) if len(nodes) > 1 else []
        ends = [(0, 0)]
        for message in messages:
            ends.append((ends[-1][0] + 1, hash((ends[-1][1], _said(message)))))
        unit = next((ending.pop(end) for end in ends[-2:0:-1] if end in ending), None)
        if unit is None:
            unit = _Unit([])
            units.append(unit)
        unit.nodes.append(node)
        if messages and (node.kind == "model" or messages[-1].tool_calls):
            ending[ends[-1]] = unit
    return units


def _messages_of(node: _Node) -> list[Message]:
    """The messages of a model call, or of an agent's calls apart from its instructions."""
    reader, alone = SpanReader(), node.kind == "model"
    try:
        for each in [node] if alone else sorted(_walk([node], into_agents=False), key=_start):
            _read_node(reader, each, main=alone, counted=False)
        messages = reader.reading().conversation.messages
    except DataError:
        return []  # it becomes a separate unit, and reading that reports the error
    return [message for message in messages if alone or message.role != "system"]


def _said(message: Message) -> tuple[object, ...]:
    calls = tuple(call.id or (call.name, text_of(to_jsonable(dict(call.arguments)))) for call in message.tool_calls)
    return message.role, message.content, calls


def _call_id(node: _Node) -> str:
    return str(node.attributes.get("gen_ai.tool.call.id") or "")


def _called(units: Sequence[_Unit]) -> dict[str, _Unit]:
    """In which unit the messages have a tool call with an ID, if they do in one alone."""
    made: dict[str, dict[int, _Unit]] = {}
    for unit in units:
        for message in (message for node in unit.nodes for message in _messages_of(node)):
            for call in message.tool_calls:
                made.setdefault(call.id, {})[id(unit)] = unit
    return {name: unit for name, (unit, *others) in ((n, u.values()) for n, u in made.items()) if name and not others}


def _unit_of(node: _Node, units: Sequence[_Unit], begun: Sequence[tuple[float, int]]) -> _Unit | None:
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


def _read_node(reader: SpanReader, node: _Node, *, main: bool, counted: bool) -> None:
    for number, record in enumerate((node.record, *node.beside)):
        reader.read(record, main=main and number == 0, counted=counted and (number == 0 or not node.attributes))
    reader.end_call()


def _sample(unit: _Unit, trace: str, notes: Notes, *, alone: bool) -> Sample:
    """The sample of a unit. Raises DataError, ConfigError or RecursionError when something in it can't be read."""
    main = unit.main
    whole = sorted(_walk((*unit.nodes, *unit.beside)), key=_start)
    inside = [*_walk((*unit.nodes, *unit.beside), into_agents=False)]
    # What only passes a question on to an agent has the messages of that agent.
    calls = [node for node in inside if node.has_messages and not is_part(node.attributes)]
    own = {id(node) for node in (inside if calls else whole)}
    reader, alone_reader = SpanReader(), SpanReader()
    tools: list[_Node] = []
    # The evaluated span comes last: it has the first and the last message, between which its calls have the others. If
    # these have none, it comes first, before its tools.
    alone_in_words = main.has_messages and not any(node.has_messages for node in whole if node is not main)
    for node in sorted(
        (each for each in whole if id(each) in own),
        key=lambda each: ((each is main) != alone_in_words, is_part(each.attributes)),
    ):
        tools += [node] if node.kind == "tool" else []
        _read_node(reader, node, main=node is main, counted=False)
        if alone_in_words and node is main:
            reader.close()
    if not (is_part(main.attributes) and any(node.kind == "model" and node.has_messages for node in whole)):
        _read_node(alone_reader, main, main=False, counted=False)
    reading = reader.reading()
    messages = tuple(reading.conversation.messages)
    of_main = tuple(alone_reader.messages)
    question = last_user_text(of_main) or reader.asked
    if main.kind != "model":
        question = reader.asked or question
    output = reading.output
    ends = [each[-1] for each in (of_main, messages) if each]
    if output is None and not (main.record.error is not None and ends and all(map(_goes_on, ends))):
        # What is said beside calls is no answer where none came after them.
        said = [answer_text(of_main), answer_text(messages)]
        output = next(filter(None, said), "" if "" in said else None)
    metadata = {**_measured(unit, whole), **_described(main, whole, trace)}
    if "group" not in metadata and not alone and trace:
        metadata["group"] = trace
    return Sample(
        id="-".join(filter(None, (trace, main.record.span))),
        input=last_user_text(messages) if question is None else question,
        output=output,
        context=_context(whole, reading.conversation.passages, trace, notes),
        messages=messages,
        instructions=system_prompt(messages),
        trajectory=_trajectory(unit, messages, {id(n): call for n, call in zip(tools, reader.runs, strict=True)}),
        metadata=metadata,
    )


def _goes_on(message: Message) -> bool:
    return message.role != "assistant" or bool(message.tool_calls)


def _context(whole: Sequence[_Node], said: dict[str, None], trace: str, notes: Notes) -> tuple[str, ...] | None:
    """The retrieved passages, then those in the messages. None without a retrieval whose documents are known."""
    reader = SpanReader()
    for node in whole:
        if node.kind == "retrieval" or _documented(node):
            _read_node(reader, node, main=False, counted=False)
    if reader.without_text:
        notes.add("a retrieval whose documents have no text, so that the sample has no context", trace)
        return None
    passages = tuple(reader.reranked | reader.passages | said)
    return passages if reader.retrieved or passages else None


def _documented(node: _Node) -> bool:
    """Whether a span has documents."""
    records = (node.attributes, *map(translated, node.beside))
    return any(DOCUMENTS in each or any(key.startswith(_DOCUMENTS) for key in each) for each in records)


def _measured(unit: _Unit, whole: Sequence[_Node]) -> dict[str, Any]:
    """The start, duration, usage, cost and error of the request, as metadata."""
    start, seconds = unit.nodes[0].record.start, unit.seconds
    counting = SpanReader()
    for node in _outermost_calls(unit.nodes, lambda call: call.has_tokens) or unit.nodes:
        _read_node(counting, node, main=False, counted=True)
    usage = counting.usage if counting.usage != NO_USAGE else counting.total
    paid = _outermost_calls(unit.nodes, lambda call: call.has_cost) or unit.nodes
    costs = [cost for node in paid for each in node.reports if (cost := cost_of(each)) is not None]
    took: dict[str, Any] = {}
    if seconds is not None:
        took["seconds"] = seconds
    if usage != NO_USAGE:
        took["usage"] = to_jsonable(usage if usage.requests else replace(usage, requests=1))
    if costs:
        took["cost"] = sum(costs)
    found: dict[str, Any] = {"target": took} if took else {}
    if start is not None:
        found["started"] = datetime.fromtimestamp(start, UTC).isoformat()
    if (error := unit.main.record.error) is not None:
        found["error"] = error
    return found


def _outermost_calls(nodes: Sequence[_Node], reports: Callable[[_Node], bool]) -> list[_Node]:
    """The model calls that report something, without those inside of one that does."""
    calls, waiting = list[_Node](), list(nodes)
    while waiting:
        node = waiting.pop()
        if node.kind == "model" and reports(node):
            calls.append(node)
        else:
            waiting += node.children
    return calls


def _described(main: _Node, whole: Sequence[_Node], trace: str) -> dict[str, Any]:
    """The origin of the sample, the model that answered, and the conversation that it is part of, as metadata."""
    last = next((node for node in reversed(whole) if node.kind == "model"), main)
    beside = last.beside[-1].attributes if last.beside else {}
    response = next(
        (each.get(_RESPONSE) for each in (main.attributes, last.attributes, beside) if _RESPONSE in each), ""
    )
    source = {
        "trace_id": trace if len(trace) == 32 else "",
        "span_id": main.record.span if len(main.record.span) == 16 else "",
        "response_id": response,
        "entity": first(main.attributes, _ENTITIES) or main.record.name,
        "service": main.record.resource.get("service.name"),
    }
    found: dict[str, Any] = {"trace": {key: str(value) for key, value in source.items() if value}}
    models = (str(each.attributes[key]) for each in (last, main) for key in _MODELS if each.attributes.get(key))
    if model := next((model for model in models if model != "unknown"), None):  # which is what Traceloop writes
        found["model"] = model
    conversations = (node.attributes.get(key) for key in _CONVERSATIONS for node in (main, *whole))
    if (conversation := next(filter(None, conversations), None)) is not None:
        found["group"] = str(conversation)
    return found


def _trajectory(unit: _Unit, messages: Sequence[Message], made: Mapping[int, ToolCall]) -> Trajectory | None:
    """The tools, agents and retrievals as steps, with the calls in the messages that have no span in their positions.

    made: the calls in the messages that have a span of a tool, by that span.
    """
    handed_over = len(unit.nodes) > 1 and unit.main.kind != "model"
    below = unit.nodes if handed_over else [child for node in unit.nodes for child in node.children]
    nodes = sorted((*below, *unit.beside), key=_start)
    calls = [call for message in messages for call in message.tool_calls]
    steps = _steps(nodes, {**_made_inside(nodes, made), **made})
    spanned, at = {id(call) for call in made.values()}, 0
    for call in calls:
        if id(call) in spanned:
            at = next((after + 1 for after in range(at, len(steps)) if steps[after].name == call.name), at)
        elif call.state != "partial":
            steps.insert(at, step_of(call))
            at += 1
    total = None if unit.seconds is None else unit.seconds * 1000
    return Trajectory(steps=steps, total_duration_ms=total) if steps else None


def _made_inside(nodes: Iterable[_Node], made: Mapping[int, ToolCall]) -> dict[int, ToolCall]:
    """The calls of nested agents, as their own messages and the spans of their tools have them."""
    found: dict[int, ToolCall] = {}
    for agent in (node for node in _walk(nodes) if node.kind == "agent"):
        inside = sorted(_walk([agent], into_agents=False), key=_start)
        tools = [node for node in inside if node.kind == "tool"]
        if not tools or all(id(node) in made for node in tools):
            continue
        reader = SpanReader()
        try:
            for node in inside:
                _read_node(reader, node, main=False, counted=False)
            reader.reading()
        except DataError:
            continue  # the spans alone say what their tools did
        found |= {id(node): call for node, call in zip(tools, reader.runs, strict=True)}
    return found


def _steps(nodes: Iterable[_Node], made: Mapping[int, ToolCall]) -> list[TrajectoryStep]:
    return [step for node in nodes for step in _step(node, made)]


def _without_repeating(node: _Node, parent: _Node) -> list[_Node]:
    """A span, or those below it if it only repeats its parent: the method with which a retriever of LlamaIndex's does
    its work has a span too, without documents."""
    if parent.kind == node.kind == "retrieval" and _documented(parent) and not _documented(node):
        return [child for each in node.children for child in _without_repeating(each, parent)]
    return [node]


def _step(node: _Node, made: Mapping[int, ToolCall]) -> list[TrajectoryStep]:
    """The steps of a span and of those below it; made: the calls in the messages, by the spans that they have."""
    inside = _steps((child for each in node.children for child in _without_repeating(each, node)), made)
    record = node.record
    duration = None if record.start is None or record.end is None else max(0.0, record.end - record.start) * 1000
    failed: dict[str, Any] = {} if record.error is None else {"error": record.error}
    if node.kind == "tool":
        call = made.get(id(node)) or node.tool_run
        step = step_of(call)
    elif node.kind == "agent":
        agent = node.attributes.get("gen_ai.agent.id")
        data = {} if agent is None else {"agent_id": str(agent)}
        name = str(first(node.attributes, _ENTITIES) or record.name or "agent")
        step = TrajectoryStep(step_type="agent_run", name=name, data=data)
    elif node.kind == "retrieval":
        reader = SpanReader()
        _read_node(reader, node, main=False, counted=False)
        known = reader.retrieved and not reader.without_text
        data = {"status": "failed" if failed else "success"}
        data |= {"output": list(reader.reranked | reader.passages)} if known else {}
        query = first(node.attributes, ("gen_ai.retrieval.query.text", "db.vector.query.content", QUESTION))
        failed |= {} if query is None else {"input": query}
        step = TrajectoryStep(step_type="workflow_step", name=record.name or "retrieval", data=data)
    else:
        return inside
    return [replace(step, duration_ms=duration, children=inside, metadata=failed)]

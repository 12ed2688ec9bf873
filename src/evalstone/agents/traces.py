"""Samples from traces: each request that spans and log records describe becomes one sample.

The evaluated span is the outermost span of an agent, a chain or a model call that has content. Agents inside it are
its steps. Model calls outside of any agent are one sample each, unless one continues the messages of another: then
they are one conversation, and the last call is the evaluated span. The same holds for agents that hand over to each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, TypeAlias

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array, is_mapping
from evalstone._core.json import to_jsonable
from evalstone._core.text import is_blank, unspaced
from evalstone._core.times import utc_time
from evalstone.agents.conversations import Unit, messages_of, read_node
from evalstone.agents.formats.calls import text_of
from evalstone.agents.formats.conversation import Conversation, Reading
from evalstone.agents.formats.dialects import DOCUMENTS, OPERATION, QUESTION, answers_for_others, translated
from evalstone.agents.formats.graph_states import answer_in, has_answer, state_in
from evalstone.agents.formats.mastra_spans import without_summaries, workflow_step
from evalstone.agents.formats.records import TelemetryRecord, is_telemetry, records_in
from evalstone.agents.formats.spans import SpanReader, cost_of, is_part, read_spans
from evalstone.agents.formats.tool_runs import said_beside
from evalstone.agents.formats.unread import CAPTURE, is_known, without_content
from evalstone.agents.formats.values import first, parsed
from evalstone.agents.messages import answer_text, last_user_text, system_prompt
from evalstone.agents.notes import Notes
from evalstone.agents.sides import has_all
from evalstone.agents.span_tree import Node, start_of, tree_of, walk
from evalstone.agents.units import units_of
from evalstone.errors import ConfigError, DataError
from evalstone.types import NO_USAGE, Message, Role, Sample, ToolCall, Trajectory, TrajectoryStep, Usage
from evalstone.types.accounts import is_redacted
from evalstone.types.agreement import step_of

_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "spring.ai.chat.client.conversation.id")
_ENTITIES = ("gen_ai.agent.name", "gen_ai.workflow.name", "traceloop.entity.name", "ai.telemetry.functionId")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_DOCUMENTS = ("retrieval.documents", "reranker.output_documents")
_RESPONSE = "gen_ai.response.id"
_ASKED = ("agent", "chain", "model")
_Places: TypeAlias = dict[int, tuple[tuple[int, int], int]]
"""The message with the call of each tool's span, and the place of the call in it."""
REDACTED = "a question or an answer that was redacted and counts as absent"
UNRECORDED = f"a retrieval whose documents aren't recorded, so that the sample has no context; {CAPTURE}"
UNANSWERED = "an agent whose answer is in no span, since those of its model calls are missing"


def samples_of(records: Iterable[TelemetryRecord], notes: Notes) -> list[Sample]:
    """The samples of one trace, in the order of their answers.

    Args:
        records: Its spans, their events and log records, in any order. A span that came twice counts once.
        notes: Gets what could not be read, and what belongs to no sample.
    """
    listed = without_summaries(records)
    trace = next((record.trace for record in listed if record.trace), "")
    try:
        roots = tree_of(listed, trace, notes)
        units = units_of(roots, trace, notes)
    except (DataError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        notes.add("a trace that cannot be read", trace, said)
        return []
    if not units:
        if any(node.kind in _ASKED for node in walk(roots)) or (roots and is_known(listed)):
            notes.add(without_content(listed), trace)
        elif any(node.attributes.get(OPERATION) != "create_agent" for node in walk(roots)):
            notes.add("a trace without a span of a model, a chain or an agent", trace)
        return []
    samples: list[Sample] = []
    for unit in units:
        try:
            sample = _sample(unit, trace, notes, alone=len(units) == 1)
            _ = sample.content_hash  # which has to be, in a dataset and in a ledger
            samples.append(sample)
            notes.add_messages(sample.messages, trace)
        except (DataError, ConfigError, RecursionError) as error:
            said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            place = getattr(error, "place", "")
            message = f"span {excerpt(unit.main.record.name)}{place}: {said}"
            notes.add("an answer that cannot be read and is left out", trace, message)
    return samples


def read_trace(value: Any) -> Reading:
    """A transcript of the spans or the log records of a trace: its only request, as `samples_of` reads it. Several
    requests are one conversation if the last one has the messages of all others, and spans without IDs always are:
    nothing says which of them belong together.

    Raises:
        PlacedError: They have no messages, or some that cannot be read.
        DataError: They have several requests that are no conversation.
    """
    listed, notes = without_summaries(records_in(value)), Notes()
    traces: dict[str, list[TelemetryRecord]] = {}
    for record in listed:
        traces.setdefault(record.trace, []).append(record)
    roots = {trace: tree_of(records, trace, notes) for trace, records in traces.items()}
    units = [(unit, trace) for trace, nodes in roots.items() for unit in units_of(nodes, trace, notes)]
    if not units or (len(units) > 1 and not all(node.record.span for unit, _ in units for node in unit.nodes)):
        reading = read_spans(value)
        if not units and any(node.kind in _ASKED for nodes in roots.values() for node in walk(nodes)):
            raise DataError(without_content(listed))
        return reading
    try:
        samples = [_sample(unit, trace, notes, alone=True) for unit, trace in units]
    except DataError:
        read_spans(value)  # which names the place of what can't be read
        raise
    *others, last = sorted(samples, key=lambda sample: str(sample.metadata.get("started", "")))
    apart = next((each for each in others if not _continues(last, each)), None)
    if apart is not None:
        asked = f"one asks {excerpt(apart.input or '')}, the last one {excerpt(last.input or '')}"
        raise DataError(f"the spans are of {len(samples)} requests, and not of one: {asked}; pass the spans of one")
    return _transcript_of(last, [each.metadata.get("target", {}) for each in samples], notes)


def _continues(later: Sample, earlier: Sample) -> bool:
    """Whether a request contains the messages of another one and continues them."""
    return len(later.messages) > len(earlier.messages) and has_all(later.messages, earlier.messages)


def _transcript_of(sample: Sample, took: Sequence[Mapping[str, Any]], notes: Notes) -> Reading:
    """took: the usage and cost of each request."""
    messages = [*sample.messages]
    usages = [Usage(**each["usage"]) for each in took if "usage" in each]
    costs = [each["cost"] for each in took if "cost" in each]
    if messages:
        said = (": ".join(filter(None, (reason, notes.examples[reason]))) for reason in notes.counts)
        messages[-1] = replace(messages[-1], notes=(*messages[-1].notes, *said))
    passages = None if sample.context is None else dict.fromkeys(sample.context)
    unanswered = sample.output is None and answer_text(messages) is not None
    return Reading(
        Conversation(messages, passages or {}),
        sum(usages, start=NO_USAGE) if usages else None,
        sum(costs) if costs else None,
        sample.output,
        sample.trajectory,
        error=sample.metadata.get("error", UNANSWERED) if unanswered else "",
        retrieved=passages is not None,
    )


def spans_of(value: object) -> list[Any] | None:
    """The spans in a list, in an object with them, or in an export request; None for anything else."""
    listed = value.get("spans", [value]) if is_mapping(value) else value
    spans = listed if is_array(listed) else []
    return spans if spans and all(map(is_telemetry, spans)) else None


def _sample(unit: Unit, trace: str, notes: Notes, *, alone: bool) -> Sample:
    """The sample of a unit. Raises DataError, ConfigError or RecursionError when something in it can't be read."""
    main = unit.main
    whole = sorted(walk((*unit.nodes, *unit.beside)), key=start_of)
    inside = [*walk((*unit.nodes, *unit.beside), nested=False)]
    graph, state = _state(unit.nodes, trace, notes)
    joined = [] if state is None else _joined(inside, state.conversation.messages)
    inside += walk(joined, nested=False)
    # What only passes a question on to an agent has the messages of that agent.
    calls = [node for node in inside if node.has_messages and not is_part(node.attributes)]
    read = inside if calls or state is not None else whole
    if (unreadable := next(filter(None, (node.unreadable for node in read)), None)) is not None:
        raise unreadable
    if not calls and main.question is not None:
        raise main.question
    own = {id(node) for node in read}
    times = _read_times((*unit.nodes, *unit.beside))
    beside = frozenset(filter(None, (said_beside(node.attributes) for node in whole if node.kind == "tool")))
    reader, alone_reader = SpanReader(beside=beside), SpanReader(beside=beside)
    tools: list[Node] = []
    if state is not None:
        in_graph = {id(node) for node in walk(graph)}
        beside_it = any(node.kind == "model" and id(node) not in in_graph for node in calls)
        reader.read_state(state.conversation, whole=not calls or (has_answer(state) and not beside_it))
    # The evaluated span comes last: it has the first and the last message, between which its calls have the others. If
    # these have none, it comes first, before its tools.
    alone_in_words = main.has_messages and not any(node.has_messages for node in read if node is not main)
    for node in sorted(
        (each for each in whole if id(each) in own),
        key=lambda each: ((each is main) != alone_in_words, is_part(each.attributes), times[id(each)]),
    ):
        tools += [node] if node.kind == "tool" else []
        read_node(reader, node, main=node is main, counted=False)
        if alone_in_words and node is main:
            reader.close()
    if not (is_part(main.attributes) and any(node.kind == "model" and node.has_messages for node in whole)):
        read_node(alone_reader, main, main=False, counted=False)
    reading = reader.reading()
    messages = tuple(reading.conversation.messages)
    of_main = tuple(alone_reader.messages)
    question = last_user_text(of_main) or reader.asked
    if main.kind != "model":
        question = reader.asked or question
    output = answer_in(state) if reading.output is None and state is not None else reading.output
    ends = [each[-1] for each in (of_main, messages) if each]
    failed = main.record.error is not None and ends and all(map(_goes_on, ends))
    if output is None and not failed and not answers_for_others(main.attributes):
        # What is said beside calls is no answer where none came after them.
        said = [answer_text(of_main), answer_text(messages)]
        # Without a message of a model, calls are all that is known of it, and no blank answer.
        silent = said[0] == "" or any(node.kind in ("model", None) and node.has_messages for node in read)
        output = next(filter(None, said), "" if silent and "" in said else None)
        if output is None and said[1] == "":
            notes.add(UNANSWERED, trace)
    output = _as_said(output, messages, "assistant")
    asked = last_user_text(messages) if question is None else _as_said(question, messages, "user")
    if is_redacted(asked) or is_redacted(output):
        notes.add(REDACTED, trace)
        asked, output = (None if is_redacted(each) else each for each in (asked, output))
    metadata = {**_measured(unit, whole), **_described(main, whole, trace)}
    group = _conversation(main, whole)
    if group is None and not alone:
        group = trace or None
    return Sample(
        id="-".join(filter(None, (trace, main.record.span))),
        input=asked,
        output=output,
        context=_context(whole, reading.conversation.passages, trace, notes),
        messages=messages,
        instructions=system_prompt(messages),
        trajectory=_trajectory(
            unit, messages, {id(n): call for n, call in zip(tools, reader.calls, strict=True)}, {id(n) for n in joined}
        ),
        metadata=metadata,
        group=group,
    )


def _state(nodes: Sequence[Node], trace: str, notes: Notes) -> tuple[list[Node], Reading | None]:
    """The graph of a unit and the state that it returned, of its outermost span with one. None if several have one."""
    found, waiting = list[tuple[list[Node], Reading]](), list(nodes)
    while waiting:
        node = waiting.pop()
        state = None
        if node.kind in ("agent", "chain"):
            try:
                state = state_in(node.attributes)
            except DataError as error:
                notes.add(
                    "the state of a graph that cannot be read", trace, f"span {excerpt(node.record.name)}: {error}"
                )
        if state is not None:
            found.append(([node], state))
        elif node.kind != "tool":
            waiting += (child for child in node.children if child.kind != "agent")
    return found[0] if len(found) == 1 else ([], None)


def _joined(nodes: Iterable[Node], said: Sequence[Message]) -> list[Node]:
    """The agents below these spans, but not below tools, that took part in a conversation: the nodes of a graph whose
    messages are all in its state. Traceloop writes an empty span for the name of such an agent, beside its work."""
    joined = list[Node]()
    for node in nodes:
        if node.kind == "tool":
            continue
        for agent in (child for child in node.children if child.kind == "agent"):
            inside = _joined(walk([agent], nested=False), said)
            own = messages_of(agent)
            if has_all(said, own) if own else inside or not agent.children:
                joined += [agent, *inside]
    return joined


def _read_times(nodes: Iterable[Node]) -> dict[int, tuple[float, int]]:
    """By which spans are ordered to be read: when they began, but agents after all messages inside of them. These have
    what was said between an agent's first and last message.

    The second number orders agents inside of each other.
    """
    times: dict[int, tuple[float, int]] = {}
    said: dict[int, tuple[float, int]] = {}  # by the spans that have messages inside, the last of these
    for node in reversed([*walk(nodes)]):
        inside = max((said[id(child)] for child in node.children if id(child) in said), default=None)
        times[id(node)] = (start_of(node), 0)
        if node.kind == "agent" and inside is not None:
            times[id(node)] = inside[0], inside[1] + 1
        last = max(filter(None, (inside, times[id(node)] if node.has_messages else None)), default=None)
        if last is not None:
            said[id(node)] = last
    return times


def _as_said(text: str | None, messages: Sequence[Message], role: Role) -> str | None:
    """A text as its message has it, if they differ only in white space: the span of an agent may show its answer as
    a terminal would, with a newline after each text. An answer in JSON that no message has is written as every
    structured answer is."""
    if text is None:
        return None
    said, target = (message.content for message in reversed(messages) if message.role == role), unspaced(text)
    spoken = next((each for each in said if unspaced(each) == target), None)
    if spoken is None:
        return text_of(parsed(text)) if role == "assistant" else text
    return spoken


def _goes_on(message: Message) -> bool:
    return message.role != "assistant" or bool(message.tool_calls) or is_blank(message.content)


def _context(whole: Sequence[Node], said: dict[str, None], trace: str, notes: Notes) -> tuple[str, ...] | None:
    """The retrieved passages, then those in the messages. None without a retrieval whose documents are known."""
    reader = SpanReader()
    for node in whole:
        if node.kind == "retrieval" or _documented(node):
            read_node(reader, node, main=False, counted=False)
    if reader.without_text:
        notes.add("a retrieval whose documents have no text, so that the sample has no context", trace)
        return None
    passages = tuple(reader.reranked | reader.passages | said)
    if not reader.retrieved and not passages:
        if any(node.kind == "retrieval" for node in whole):
            notes.add(UNRECORDED, trace)
        return None
    return passages


def _documented(node: Node) -> bool:
    """Whether a span has documents."""
    records = (node.attributes, *map(translated, node.beside))
    return any(DOCUMENTS in each or any(key.startswith(_DOCUMENTS) for key in each) for each in records)


def _measured(unit: Unit, whole: Sequence[Node]) -> dict[str, Any]:
    """The start, duration, usage, cost and error of the request, as metadata."""
    start, seconds = unit.nodes[0].record.start, unit.seconds
    counting, spans = SpanReader(), (*unit.nodes, *unit.beside)
    for node in _outermost_calls(spans, lambda call: call.has_tokens) or unit.nodes:
        read_node(counting, node, main=False, counted=True)
    usage = counting.usage if counting.usage != NO_USAGE else counting.total
    paid = _outermost_calls(spans, lambda call: call.has_cost) or unit.nodes
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
        found["started"] = utc_time(start).isoformat()
    if (error := unit.main.record.error) is not None:
        found["error"] = error
    return found


def _outermost_calls(nodes: Sequence[Node], reports: Callable[[Node], bool]) -> list[Node]:
    """The model calls that report something, except those inside another one that does."""
    calls, waiting = list[Node](), list(nodes)
    while waiting:
        node = waiting.pop()
        if node.kind == "model" and reports(node):
            calls.append(node)
        else:
            waiting += node.children
    return calls


def _described(main: Node, whole: Sequence[Node], trace: str) -> dict[str, Any]:
    """The origin of the sample, and the model that answered, as metadata."""
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
    return found


def _conversation(main: Node, whole: Sequence[Node]) -> str | None:
    """The conversation that the sample is part of."""
    conversations = (node.attributes.get(key) for key in _CONVERSATIONS for node in (main, *whole))
    conversation = next(filter(None, conversations), None)
    return None if conversation is None else str(conversation)


def _trajectory(
    unit: Unit, messages: Sequence[Message], made: Mapping[int, ToolCall | None], joined: Set[int]
) -> Trajectory | None:
    """The tools, agents and retrievals as steps, with the calls in the messages that have no span in their positions.

    made: the calls in the messages that have a span of a tool, by that span; None for an attempt that was repeated,
    which is no step. joined: the agents inside that took part in the conversation, which are no steps.
    """
    below = [child for node in unit.nodes for child in _below(node, joined)]
    nodes = sorted((*below, *unit.beside), key=start_of)
    calls = [call for message in messages for call in message.tool_calls]
    inside, places = _made_inside(nodes, made)
    steps = _steps(nodes, {**inside, **made}, {**places, **_places_of(messages, made)})
    spanned, at = {id(call) for call in made.values()}, 0
    for call in calls:
        if id(call) in spanned:
            at = next((after + 1 for after in range(at, len(steps)) if steps[after].name == call.name), at)
        elif call.state != "partial":
            steps.insert(at, step_of(call))
            at += 1
    return Trajectory(steps=steps, total_seconds=unit.seconds) if steps else None


def _below(node: Node, joined: Set[int]) -> Iterator[Node]:
    """The spans below one, and those below the agents there that took part in the conversation instead of these."""
    for child in node.children:
        if id(child) in joined or (joined and child.kind in ("chain", None)):
            yield from _below(child, joined)
        else:
            yield child


def _places_of(messages: Sequence[Message], made: Mapping[int, ToolCall | None], holder: int = 0) -> _Places:
    """The places of calls with a tool's span in the messages of an agent or a tool, by that span."""
    places = {
        id(call): ((holder, number), place)
        for number, message in enumerate(messages)
        for place, call in enumerate(message.tool_calls)
    }
    return {node: places[id(call)] for node, call in made.items() if call is not None and id(call) in places}


def _made_inside(
    nodes: Iterable[Node], made: Mapping[int, ToolCall | None]
) -> tuple[dict[int, ToolCall | None], _Places]:
    """The calls inside of agents and of tools, as the messages there and the spans of their tools have them, and where
    they are in these messages."""
    found: dict[int, ToolCall | None] = {}
    places: _Places = {}
    for holder in (node for node in walk(nodes) if node.kind in ("agent", "tool")):
        own = [holder] if holder.kind == "agent" else [child for child in holder.children if child.kind != "agent"]
        inside = sorted(walk(own, nested=False), key=start_of)
        tools = [node for node in inside if node.kind == "tool"]
        if not tools or all(id(node) in made for node in tools):
            continue
        reader = SpanReader()
        try:
            for node in inside:
                read_node(reader, node, main=False, counted=False)
            messages = reader.reading().conversation.messages
        except DataError:
            continue  # the spans alone say what their tools did
        calls = {id(node): call for node, call in zip(tools, reader.calls, strict=True)}
        found |= calls
        places |= _places_of(messages, calls, id(holder))
    return found, places


def _as_called(nodes: Sequence[Node], places: _Places) -> list[Node]:
    """Spans by the times when they began, but the tools that one message calls as they are there: tools that run at
    the same time begin in any order, or within one millisecond."""
    ordered, called = list(nodes), dict[tuple[int, int], list[tuple[int, int]]]()
    for at, node in enumerate(nodes):
        if (place := places.get(id(_only_tool(node)))) is not None:
            called.setdefault(place[0], []).append((place[1], at))
    for by_message in called.values():
        for (_, at), (_, source) in zip(by_message, sorted(by_message), strict=True):
            ordered[at] = nodes[source]
    return ordered


def _only_tool(node: Node) -> Node:
    """The tool around a span, such as the node of a graph."""
    while node.kind not in ("tool", "agent") and len(node.children) == 1:
        node = node.children[0]
    return node


def _steps(nodes: Sequence[Node], made: Mapping[int, ToolCall | None], places: _Places) -> list[TrajectoryStep]:
    return [step for node in _as_called(nodes, places) for step in _step(node, made, places)]


def _without_repeating(node: Node, parent: Node) -> list[Node]:
    """A span, or those below it if it only repeats its parent: the method with which a retriever of LlamaIndex's does
    its work has a span too, without documents."""
    if parent.kind == node.kind == "retrieval" and _documented(parent) and not _documented(node):
        return [child for each in node.children for child in _without_repeating(each, parent)]
    return [node]


def _step(node: Node, made: Mapping[int, ToolCall | None], places: _Places) -> list[TrajectoryStep]:
    """The steps of a span and of those below it; made: the calls in the messages, by the spans that they have, and
    places: where in the messages they are."""
    if id(node) in made and made[id(node)] is None:
        return []
    inside = _steps([child for each in node.children for child in _without_repeating(each, node)], made, places)
    record = node.record
    seconds = None if record.start is None or record.end is None else max(0.0, record.end - record.start)
    failed: dict[str, Any] = {} if record.error is None else {"error": record.error}
    if node.kind == "tool":
        step = step_of(made.get(id(node)) or node.tool_run)
    elif node.kind == "agent":
        agent = node.attributes.get("gen_ai.agent.id")
        data = {} if agent is None else {"agent_id": str(agent)}
        name = str(first(node.attributes, _ENTITIES) or record.name or "agent")
        step = TrajectoryStep(step_type="agent_run", name=name, data=data)
        if node.attributes.get(OPERATION) == "invoke_workflow":
            step = TrajectoryStep(step_type="workflow_run", name=name)
    elif node.kind == "step":
        step = workflow_step(record)
    elif node.kind == "retrieval":
        reader = SpanReader()
        read_node(reader, node, main=False, counted=False)
        known = reader.retrieved and not reader.without_text
        data = {"status": "failed" if failed else "success"}
        data |= {"output": list(reader.reranked | reader.passages)} if known else {}
        query = first(node.attributes, ("gen_ai.retrieval.query.text", "db.vector.query.content", QUESTION))
        failed |= {} if query is None else {"input": query}
        step = TrajectoryStep(step_type="workflow_step", name=record.name or "retrieval", data=data)
    else:
        return inside
    return [replace(step, seconds=seconds, children=inside, metadata={**step.metadata, **failed})]

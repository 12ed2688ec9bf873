"""Spans and log records of a trace: OpenTelemetry's conventions for generative AI, and OpenInference's.

The messages of a trace are those of its model calls, in the order in which these began. Each call repeats what came
before it; what is repeated counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone.agents.formats.messages import Conversation, Reading, read_conversation
from evalstone.agents.formats.parts import ToolResult
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    checked_list,
    entries_of,
    first,
    normal,
    objects_in,
    parsed,
    placed,
    read_cost,
    read_usage,
)
from evalstone.errors import DataError
from evalstone.types import NO_USAGE, Message, ToolCall, Usage

_CONTAINERS = ("resourcespans", "scopespans", "spans", "resourcelogs", "scopelogs", "logrecords")
_STARTS = ("starttime", "starttimeunixnano", "timeunixnano", "timestamp", "startedat", "time")
_PARENTS = ("parentid", "parentspanid")
_NESTED = ("llm", "retrieval", "reranker")
_COSTS = ("llm.cost.total", "operation.cost")
_DOCUMENT_TEXTS = ("document.content", "content", "text", "page_content")


@dataclass
class _Record:
    """A span, a log record, or the event of a span."""

    place: str
    name: str
    attributes: Entries
    source: Entries = field(default_factory=dict[str, Any])

    @property
    def is_root(self) -> bool:
        return not any(value for key, value in self.source.items() if normal(key) in _PARENTS)


def is_openinference(value: Any) -> bool:
    """Whether these are spans with attributes of OpenInference."""
    return _has(value, ("llm.", "openinference.", "retrieval.documents"), {"llm", "openinference"})


def is_opentelemetry(value: Any) -> bool:
    """Whether these are spans or log records with attributes of OpenTelemetry's conventions for generative AI."""
    return _has(value, ("gen_ai.",), set())


def _has(value: Any, prefixes: tuple[str, ...], names: set[str]) -> bool:
    if any("role" in item for item in objects_in(value)):
        return False  # messages, which are looked at in less time
    try:
        records = [*_records(value, "")]
    except DataError:
        return False
    return any(
        key.startswith(prefixes) or key in names for record in records for key in (record.name, *record.attributes)
    )


def read_spans(value: Any) -> Reading:
    """The conversation in the spans or the log records of one trace.

    Raises PlacedError when they have no messages, or some that cannot be read.
    """
    trace = _Trace()
    for record in _in_order([*_records(value, "")]):
        try:
            trace.read(record)
        except DataError as error:
            raise placed(error, record.place) from None
    return trace.reading()


def _records(value: Any, place: str) -> Iterator[_Record]:
    if isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _records(item, f"{place}[{number}]")
        return
    if not isinstance(value, dict):
        raise PlacedError(f"a span must be an object, not {excerpt(value)}", place)
    item = cast("Entries", value)
    containers = [key for key in item if normal(key) in _CONTAINERS and isinstance(item[key], list)]
    for key in containers:
        yield from _records(item[key], f"{place}.{key}" if place else key)
    if containers:
        return
    attributes = _decoded(item["attributes"]) if "attributes" in item else _inline_attributes(item)
    if not isinstance(attributes, dict):
        raise PlacedError("attributes must be an object or a list of keys and values", f"{place}.attributes")
    body = _decoded(item.get("body"))
    if isinstance(body, dict):
        attributes = {**cast("Entries", body), **cast("Entries", attributes)}
    attributes = cast("Entries", attributes)
    named = first(item, ("event_name", "eventName")) or attributes.get("event.name") or item.get("name")
    yield _Record(place, str(named or ""), attributes, item)
    events = item.get("events")
    for number, event in enumerate(objects_in(events)):
        inner = _decoded(event.get("attributes"))
        yield _Record(f"{place}.events[{number}]", str(event.get("name")), entries_of(inner), item)


def _inline_attributes(item: Entries) -> Entries:
    """Attributes that stand beside the span's own entries, as data frames have them, or alone."""
    prefix = "attributes."
    return {key.removeprefix(prefix): value for key, value in item.items()}


def _decoded(value: Any) -> Any:
    """A value of OTLP's JSON, `{"stringValue": …}` or a list of keys and values, as the value itself."""
    if isinstance(value, list):
        items = objects_in(value)
        if (
            items
            and len(items) == len(cast("list[Any]", value))
            and all({"key", "value"} == item.keys() for item in items)
        ):
            return {str(item["key"]): _decoded(item["value"]) for item in items}
        return [_decoded(item) for item in cast("list[Any]", value)]
    entries = entries_of(value)
    if len(entries) != 1:
        return value
    ((kind, inner),) = entries.items()
    if kind == "intValue":
        return int(inner) if str(inner).lstrip("-").isdigit() else inner
    if kind == "arrayValue":
        return [_decoded(item) for item in checked_list(entries_of(inner).get("values"), "")]
    if kind == "kvlistValue":
        return _decoded(entries_of(inner).get("values") or [])
    return inner if kind in ("stringValue", "doubleValue", "boolValue", "bytesValue") else value


def _in_order(records: list[_Record]) -> list[_Record]:
    """The records by the times when they began; as they come, if some have none."""
    starts = [first({normal(key): value for key, value in record.source.items()}, _STARTS) for record in records]
    if any(start is None for start in starts):
        return records
    numbers = [_number(start) for start in starts]
    keys: list[Any] = [str(start) for start in starts] if None in numbers else numbers
    order = sorted(range(len(records)), key=lambda at: keys[at])
    return [records[at] for at in order]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


@dataclass
class _Trace:
    """What has been read of a trace."""

    messages: list[Message] = field(default_factory=list[Message])
    passages: dict[str, None] = field(default_factory=dict[str, None])
    reranked: dict[str, None] = field(default_factory=dict[str, None])
    pending: list[Entries] = field(default_factory=list[Entries])
    """The messages of a model call that come in log records of their own, until its answer."""
    usage: Usage = NO_USAGE
    total: Usage = NO_USAGE
    cost: float | None = None
    tools_run: dict[str, int] = field(default_factory=dict[str, int])
    asked: str | None = None
    answered: str | None = None

    def read(self, record: _Record) -> None:
        attributes = record.attributes
        operation = attributes.get("gen_ai.operation.name")
        if record.name.startswith("gen_ai.") and record.name.endswith((".message", ".choice")):
            self._read_event(record)
        elif operation == "execute_tool":
            self._read_tool(
                attributes.get("gen_ai.tool.name"),
                attributes.get("gen_ai.tool.call.id"),
                attributes.get("gen_ai.tool.call.arguments"),
                attributes.get("gen_ai.tool.call.result"),
                failed="error.type" in attributes,
            )
        else:
            self._read_model_call(attributes)
        documents = parsed(attributes.get("gen_ai.retrieval.documents"))
        self._keep(self.passages, objects_in(documents))
        self._count(attributes, operation)
        self._read_openinference(record)

    def _read_model_call(self, attributes: Entries) -> None:
        conversation = Conversation()
        system: Any = parsed(attributes.get("gen_ai.system_instructions"))
        if system:
            parts: list[Any] = cast("list[Any]", system) if isinstance(system, list) else [str(system)]
            place = ".attributes['gen_ai.system_instructions']"
            conversation.read({"role": "system", "parts": parts}, place)
        given = False
        for key in ("gen_ai.input.messages", "pydantic_ai.all_messages", "gen_ai.output.messages"):
            if attributes.get(key) is None:
                continue
            value: Any = parsed(attributes[key])
            if not isinstance(value, list):
                raise PlacedError(f"must be a list of messages, not {excerpt(value)}", f".attributes[{key!r}]")
            read_conversation(cast("list[Any]", value), f".attributes[{key!r}]", conversation)
            given = True
        if given:
            self._merge(conversation)

    def _read_event(self, record: _Record) -> None:
        """One message of a model call, as OpenTelemetry had them before version 1.37."""
        body = record.attributes
        if record.name == "gen_ai.choice":
            message = {"role": "assistant", "content": None, **entries_of(body.get("message") or body)}
            self._merge(read_conversation([*self.pending, message]))
            self.pending = []
            return
        role = record.name.removeprefix("gen_ai.").removesuffix(".message")
        message = {"role": role, "content": None, **body}
        if role == "tool":
            message = {"tool_call_id": body.get("id"), **message}
        self.pending.append(message)

    def _read_openinference(self, record: _Record) -> None:
        nested = _nested(record.attributes)
        llm = entries_of(nested.get("llm"))
        kind = record.attributes.get("openinference.span.kind")
        items = [
            _openinference_message(each) for key in ("input", "output") for each in _list(llm.get(f"{key}_messages"))
        ]
        if items:
            self._merge(read_conversation(items, ".llm"))
        tokens = entries_of(llm.get("token_count"))
        if tokens:
            counts = {"input": tokens.get("prompt"), "output": tokens.get("completion")}
            cached = entries_of(tokens.get("prompt_details")).get("cache_read")
            usage = read_usage({**counts, "cached": cached})
            self.usage += replace(usage, requests=1) if usage is not None else NO_USAGE
        documents = [
            entries_of(each.get("document")) for each in _list(entries_of(nested.get("retrieval")).get("documents"))
        ]
        self._keep(self.passages, documents)
        outputs = _list(entries_of(nested.get("reranker")).get("output_documents"))
        self._keep(self.reranked, [entries_of(each.get("document")) for each in outputs])
        asked, answered = record.attributes.get("input.value"), record.attributes.get("output.value")
        if kind == "TOOL":
            name = record.attributes.get("tool.name") or record.name
            given = asked if asked is not None else record.attributes.get("tool.parameters")
            status = entries_of(record.source.get("status"))
            failed = str(status.get("status_code") or status.get("code")) in ("ERROR", "2", "STATUS_CODE_ERROR")
            self._read_tool(name, record.attributes.get("tool.id"), given, answered, failed=failed)
        elif kind is not None and record.is_root:
            self.asked = asked if isinstance(asked, str) else None
            self.answered = answered if isinstance(answered, str) and parsed(answered) is answered else None

    def _count(self, attributes: Entries, operation: Any) -> None:
        usage = read_usage(
            {
                "input_tokens": attributes.get(
                    "gen_ai.usage.input_tokens", attributes.get("gen_ai.usage.prompt_tokens")
                ),
                "output_tokens": attributes.get(
                    "gen_ai.usage.output_tokens", attributes.get("gen_ai.usage.completion_tokens")
                ),
                "cached_tokens": attributes.get("gen_ai.usage.cache_read.input_tokens"),
            }
        )
        if usage is not None and operation in ("invoke_agent", "create_agent", "invoke_workflow"):
            self.total += usage
        elif usage is not None and operation != "embeddings":
            self.usage += replace(usage, requests=1)
        spent = read_cost(next((attributes[key] for key in _COSTS if attributes.get(key) is not None), None))
        self.cost = self.cost if spent is None else (self.cost or 0.0) + spent

    def _read_tool(self, name: Any, call_id: Any, arguments: Any, result: Any, *, failed: bool) -> None:
        """The span of a tool: the result of its call, or the call itself where no message has it."""
        if not isinstance(name, str) or not name:
            raise DataError("the span of a tool must have its name")
        result, call_id = parsed(result), str(call_id or "")
        calls = [call for message in self.messages for call in message.tool_calls]
        self.tools_run[name] = self.tools_run.get(name, 0) + 1
        if call_id and any(call.id == call_id for call in calls):
            known = True
        else:
            known = not call_id and sum(call.name == name for call in calls) >= self.tools_run[name]
        if not known:
            given = parsed(arguments)
            given = cast("Entries", given) if isinstance(given, dict) else {} if given is None else {"raw": given}
            state = "error" if failed else "result"
            error = str(result if result is not None else "the call failed") if failed else None
            call = ToolCall(name=name, arguments=given, result=result, id=call_id, state=state, error=error)
            self.messages.append(Message(role="assistant", tool_calls=[call]))
        elif result is not None:
            conversation = Conversation(self.messages)
            conversation.attach(ToolResult(call_id, result, failed, name))

    def _keep(self, passages: dict[str, None], documents: list[Entries]) -> None:
        texts = [first(document, _DOCUMENT_TEXTS) for document in documents]
        passages |= dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip())

    def _merge(self, read: Conversation) -> None:
        """Add the messages that are not there yet. What a later call repeats may have the results of tools."""
        self.passages |= read.passages
        at = 0
        for message in read.messages:
            known = next((n for n in range(at, len(self.messages)) if _same(self.messages[n], message)), None)
            if known is None:
                self.messages.append(message)
                at = len(self.messages)
            else:
                self.messages[known] = _richer(self.messages[known], message)
                at = known + 1

    def reading(self) -> Reading:
        """All of it. Raises DataError when there was nothing to read."""
        if self.pending:
            self._merge(read_conversation(self.pending))
        passages = self.reranked | self.passages
        if not self.messages and self.asked is not None:
            self.messages.append(Message(role="user", content=self.asked))
            if self.answered is not None:
                self.messages.append(Message(role="assistant", content=self.answered))
        if not self.messages and not passages:
            raise DataError(
                "the spans have no messages; turn on the capture of message content where they are recorded"
            )
        usage = self.usage if self.usage != NO_USAGE else self.total
        tokens = usage if usage != NO_USAGE else None
        return Reading(Conversation(self.messages, passages), tokens, self.cost, self.answered)


def _same(one: Message, other: Message) -> bool:
    """Whether two messages are one, apart from the results of tools and from what not every span has."""
    if (one.role, one.content, set(one.attachments)) != (other.role, other.content, set(other.attachments)):
        return False
    if bool(one.tool_calls) != bool(other.tool_calls):
        return False
    return all(any(_same_call(call, known) for known in one.tool_calls) for call in other.tool_calls)


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    if one.id and other.id:
        return one.id == other.id
    return (one.name, one.arguments) == (other.name, other.arguments)


def _richer(one: Message, other: Message) -> Message:
    """A message with the results that another account of it has."""
    calls = [
        call if call.state in ("result", "error") else next((c for c in other.tool_calls if _same_call(c, call)), call)
        for call in one.tool_calls
    ]
    return replace(one, tool_calls=calls, reasoning=one.reasoning or other.reasoning)


def _openinference_message(item: Entries) -> Entries:
    """A message of OpenInference as OpenAI would write it."""
    message = entries_of(item.get("message"))
    read: Entries = {key: message[key] for key in ("role", "content", "tool_call_id", "name") if key in message}
    contents = _list(message.get("contents"))
    if contents:
        parts = [entries_of(part.get("message_content")) for part in contents]
        texts = [message["content"]] if isinstance(message.get("content"), str) and message["content"] else []
        read["content"] = [*(text for text in texts if all(part.get("text") != text for part in parts)), *parts]
    calls = [entries_of(call.get("tool_call")) for call in _list(message.get("tool_calls"))]
    if message.get("function_call_name"):
        arguments = message.get("function_call_arguments_json")
        calls.append({"function": {"name": message["function_call_name"], "arguments": arguments}})
    return {"content": None, **read, "tool_calls": calls}


def _list(value: Any) -> list[Entries]:
    """The objects in a list, or in the object with the list's indices that flat attributes make of it."""
    if isinstance(value, dict):
        entries = cast("Entries", value)
        keys = sorted((key for key in entries if key.isdigit()), key=int)
        return [entries_of(entries[key]) for key in keys]
    return objects_in(value)


def _nested(attributes: Entries) -> Entries:
    """OpenInference's attributes as the tree that their dotted names say: `llm.input_messages.0.message.role`."""
    tree: Entries = {}
    for key, value in attributes.items():
        if key.partition(".")[0] in _NESTED:
            _plant(tree, key.split("."), value)
    return tree


def _plant(tree: Entries, path: list[str], value: Any) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = cast("Entries", inner)
    tree[path[-1]] = _replanted(value) if isinstance(value, dict | list) else value


def _replanted(value: Any) -> Any:
    if isinstance(value, list):
        return [_replanted(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    tree: Entries = {}
    for key, item in cast("Entries", value).items():
        _plant(tree, key.split("."), item)
    return tree

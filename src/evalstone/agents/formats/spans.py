"""Spans and log records of a trace: OpenTelemetry's conventions for generative AI, and OpenInference's.

The messages of a trace are those of its model calls, in the order in which these began. Each call repeats what came
before it; what is repeated counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array
from evalstone.agents.formats.conversation import Conversation, Reading
from evalstone.agents.formats.cut import cut_attributes, cut_error
from evalstone.agents.formats.dialects import (
    DOCUMENTS,
    INPUT,
    OUTPUT,
    SYSTEM,
    answered,
    asked,
    event_message,
    is_interrupted,
    is_repeated,
    kind_of,
    translated,
)
from evalstone.agents.formats.graph_states import BesideState
from evalstone.agents.formats.known_messages import KnownMessages, same_call
from evalstone.agents.formats.mastra_spans import without_summaries
from evalstone.agents.formats.messages import read_conversation
from evalstone.agents.formats.openinference import (
    document_text,
    is_silent_result,
    items_in,
    listed_objects,
    message_in,
    nested,
)
from evalstone.agents.formats.parts import CONTENT_KEYS
from evalstone.agents.formats.records import TelemetryRecord, records_in
from evalstone.agents.formats.tool_runs import attempts_in, tool_run
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    entries_of,
    objects_in,
    parsed,
    placed,
    read_cost,
    read_usage,
)
from evalstone.errors import DataError
from evalstone.types import NO_USAGE, Message, ToolCall, Usage
from evalstone.types.accounts import first_shown, is_hidden, merged_call, paired

_COSTS = ("gen_ai.usage.cost", "llm.cost.total", "operation.cost")


def is_part(attributes: Entries) -> bool:
    """Whether a span may have only a part of its messages. LangChain's chains, for example, have only the first message
    of their input."""
    return str(attributes.get("openinference.span.kind")).upper() in ("CHAIN", "AGENT")


def has_content(message: Entries) -> bool:
    """Whether the message of an event has more than its role and the names of tools."""
    calls = objects_in(message.get("tool_calls"))
    return any(message.get(key) is not None for key in (*CONTENT_KEYS, "refusal")) or any(
        "arguments" in {**call, **entries_of(call.get("function"))} for call in calls
    )


def cost_of(attributes: Entries) -> float | None:
    """The cost of a call in US dollars, from the attributes of its span; None if they don't have it."""
    return read_cost(next((attributes[key] for key in _COSTS if attributes.get(key) is not None), None))


def read_spans(value: Any) -> Reading:
    """The conversation in spans or log records without a known hierarchy. Raises PlacedError if they have no messages,
    or some that can't be read."""
    trace = SpanReader()
    for record in _in_order(without_summaries(records_in(value))):
        try:
            for name in cut_attributes(record):
                raise cut_error(record, name)
            if record.kind == "span":
                trace.end_call()  # of the span before it, if no answer ended it
            trace.read(record, main=record.is_root)
        except DataError as error:
            raise placed(error, record.place) from None
    return trace.reading()


def _in_order(records: list[TelemetryRecord]) -> list[TelemetryRecord]:
    """The records by start time, or in the given order if some have none. Those with only a part of their messages come
    last."""
    if any(record.start is None for record in records):
        return records
    return sorted(records, key=lambda record: (is_part(record.attributes), record.start or 0.0))


@dataclass
class SpanReader:
    """The content of the spans and log records of a trace that were read so far."""

    messages: list[Message] = field(default_factory=list[Message])
    passages: dict[str, None] = field(default_factory=dict[str, None])
    reranked: dict[str, None] = field(default_factory=dict[str, None])
    pending: list[Entries] = field(default_factory=list[Entries])
    """The messages of a model call that arrived as separate events, until its answer."""
    usage: Usage = NO_USAGE
    total: Usage = NO_USAGE
    cost: float | None = None
    runs: list[ToolCall] = field(default_factory=list[ToolCall])
    """The tool calls in the spans of tools. Once all messages are known, each is matched with the call in the messages,
    and merged with it."""
    asked: str | None = None
    answered: str | None = None
    beside: frozenset[str] = frozenset()
    """Texts that tools sent to the model in the user's name, which aren't questions of the user."""
    closed: int | None = None
    """The place for tool calls that are in no message, if the answer was read before them."""
    retrieved: bool = False
    """Whether a retrieval has a result, even an empty one."""
    without_text: int = 0
    """How many retrieved documents have no text."""
    _instructions: list[Message] = field(default_factory=list[Message])
    """The instructions of a model call that arrived in a separate event, until its messages."""
    _asked_until: int = 0
    """The first possible place of the answer of a model call whose messages arrived without it."""
    _returned: list[ToolCall] = field(default_factory=list[ToolCall])
    """The tool calls in the state of a graph. A call in a message with the same ID is the same call."""
    _beside_state: BesideState | None = None
    """Messages of model calls that a graph's state lacks, if the state has the conversation."""
    _ends: dict[str, int] = field(default_factory=dict[str, int])
    """The places after the last messages of spans, by their IDs."""
    _attempts: set[int] = field(default_factory=set[int])
    """The numbers of failed runs that were repeated, and aren't calls."""
    _run_places: list[int] = field(default_factory=list[int])
    """The message before which each of them belongs, if no message has its call."""
    _known: KnownMessages = field(default_factory=KnownMessages)
    _systems: dict[str | None, int] = field(default_factory=dict[str | None, int])
    """The message before which each system message in `_inserted` belongs."""
    _inserted: dict[int, list[Message]] = field(default_factory=dict[int, list[Message]])
    """By the place before which they belong. They are inserted at the end, because an insertion moves all others."""

    def read(self, record: TelemetryRecord, *, main: bool, counted: bool = True) -> None:
        """Read one more record.

        Args:
            record: The next one, in the order of time.
            main: Whether it is the span whose input and output are the question and the answer.
            counted: Whether its tokens count, and are no part of those of another span.

        Raises:
            DataError: What it has cannot be read; the place follows that of the record.
        """
        attributes, kind = translated(record), kind_of(record) if record.kind == "span" else None
        operation = attributes.get("gen_ai.operation.name")
        if is_repeated(record):
            return
        if (message := event_message(record)) is not None:
            self._read_event(message, last=record.name.endswith(".choice"))
        elif kind == "tool":
            self.runs.append(tool_run(attributes, record.error))
            self._run_places.append(len(self.messages) if self.closed is None else self.closed)
        else:
            self._read_model_call(record, attributes, summary=kind == "agent" and bool(self.messages))
        self._read_documents(attributes.get(DOCUMENTS), self.passages)
        if counted:
            self._count(attributes, operation)
        self._read_openinference(record, attributes, main=main, counted=counted)

    def end_call(self) -> None:
        """Add the messages that arrived as separate events, even if no answer followed."""
        self._instructions, self._asked_until = [], 0
        if self.pending:
            self._merge(read_conversation(self.pending))
            self.pending = []

    def close(self) -> None:
        """All messages have been read: tool calls that they don't have came before the answer."""
        answered = bool(self.messages) and self.messages[-1].role == "assistant" and not self.messages[-1].tool_calls
        self.closed = len(self.messages) - answered

    def read_state(self, state: Conversation, *, whole: bool) -> None:
        """Read what a graph returned.

        Args:
            state: Its messages.
            whole: Whether they are the conversation. Otherwise, model calls have it, and they say only what became of
                its tool calls.
        """
        if whole:
            self._merge(state)
            self.close()
            self._beside_state = BesideState()
        else:
            self.passages |= state.passages
            self._returned += [call for message in state.messages for call in message.tool_calls if call.id]

    def _read_model_call(self, record: TelemetryRecord, attributes: Entries, *, summary: bool) -> None:
        conversation = Conversation()
        system: Any = parsed(attributes.get(SYSTEM))
        if system:
            parts: list[Any] = system if is_array(system) else [str(system)]
            place = f".attributes[{SYSTEM!r}]"
            conversation.read({"role": "system", "parts": parts}, place)
        else:
            conversation.messages += self._instructions
        self._instructions = []
        given, asks = False, any(attributes.get(key) is not None for key in (INPUT, "pydantic_ai.all_messages"))
        for key in (INPUT, "pydantic_ai.all_messages", OUTPUT):
            if attributes.get(key) is None:
                continue
            value: Any = parsed(attributes[key])
            if not is_array(value):
                raise PlacedError(f"must be a list of messages, not {excerpt(value)}", f".attributes[{key!r}]")
            items = [
                {"role": "assistant", "content": ""} if is_interrupted(entries_of(each)) else each for each in value
            ]
            read_conversation(items, f".attributes[{key!r}]", conversation)
            self._give_to_tools(conversation)
            given = True
        # An answer alone continues the messages of the span above it, as those of a generation's steps do.
        start = 0 if asks else max(self._asked_until, self._ends.get(record.parent, 0))
        if given:
            end = self._merge(conversation, summary=summary, start=start)
            self._asked_until = end if attributes.get(OUTPUT) is None else 0
        else:
            end, self._instructions = start, conversation.messages
        if record.kind == "span" and record.span:
            self._ends[record.span] = end
            if not asks and record.parent in self._ends:
                self._ends[record.parent] = end

    def _read_event(self, message: Entries, *, last: bool) -> None:
        """One message of a model call; the answer is the last. Without captured content, there is nothing to read."""
        if has_content(message):
            self.pending.append(message)
        if last:
            self.end_call()

    def _read_openinference(self, record: TelemetryRecord, attributes: Entries, *, main: bool, counted: bool) -> None:
        tree = nested(attributes)
        llm = entries_of(tree.get("llm"))
        kind = attributes.get("openinference.span.kind")
        given = [each for key in ("input", "output") for each in listed_objects(llm.get(f"{key}_messages"))]
        items = [message for message in map(message_in, given) if not is_silent_result(message)]
        if items and not (self.messages and is_part(attributes)):
            self._merge(read_conversation(items, ".llm"))
        tokens = entries_of(llm.get("token_count"))
        if tokens and counted:
            counts = {"input": tokens.get("prompt"), "output": tokens.get("completion")}
            cached = entries_of(tokens.get("prompt_details")).get("cache_read")
            usage = read_usage({**counts, "cached": cached})
            self.usage += replace(usage, requests=1) if usage is not None else NO_USAGE
        self._read_documents(entries_of(tree.get("retrieval")).get("documents"), self.passages)
        self._read_documents(entries_of(tree.get("reranker")).get("output_documents"), self.reranked)
        nothing = kind == "RETRIEVER" and parsed(attributes.get("output.value")) in ([], {"documents": []})
        self.retrieved = self.retrieved or nothing
        if main and kind != "TOOL":
            self.asked, self.answered = asked(attributes), answered(attributes)

    def _give_to_tools(self, conversation: Conversation) -> None:
        """Turn texts that tools sent to the model, after a call of theirs, into messages of a tool."""
        called = False
        for at, message in enumerate(conversation.messages):
            if called and message.role == "user" and message.content in self.beside:
                conversation.messages[at] = replace(message, role="tool")
            called = message.role == "tool" or bool(message.tool_calls)

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
        spent = cost_of(attributes)
        self.cost = self.cost if spent is None else (self.cost or 0.0) + spent

    def _read_documents(self, value: Any, passages: dict[str, None]) -> None:
        """The result of a retrieval, if its span has it: documents or texts."""
        if value is None:
            return
        documents = items_in(value)
        if documents is None:
            self.without_text += 1
            return
        texts = [None if text and text.strip() and is_hidden(text) else text for text in map(document_text, documents)]
        found = dict.fromkeys(text for text in texts if text and text.strip())
        unknown = texts.count(None)
        self.without_text += unknown or bool(texts and not found)
        self.retrieved = self.retrieved or bool(found) or not texts
        passages |= found

    def _merge(self, read: Conversation, *, summary: bool = False, start: int = 0) -> int:
        """Add the messages that are not there yet. What a later call repeats may have the results of tools.

        Args:
            read: They and their passages.
            summary: Whether they may have in one message what the agent's model calls have in several.
            start: Before which place none of them is.

        Returns:
            The place after the last of them.
        """
        self.passages |= read.passages
        if self._beside_state is not None:
            for place, message in self._beside_state.read(read.messages, self._known, self.messages):
                stated = self.messages[place]
                merged = _with_pieces(stated, message, _places_of(message.tool_calls, stated.tool_calls))
                self._replace(place, replace(merged, content=stated.content))
            return len(self.messages)
        at, open_calls = start, list[int]()
        joined = 0
        for number, message in enumerate(read.messages):
            if joined:
                self._inserted.setdefault(at, []).append(message)
                joined -= 1
                continue
            if joined := self._joined_after(read.messages, number, at):
                self._replace(at, message)
                at += 1
                continue
            if (pieces := self._pieces_of(message, at - 1, open_calls)) is not None:
                self._replace(at - 1, _with_pieces(self.messages[at - 1], message, pieces))
                open_calls = [place for place in open_calls if place not in pieces]
                continue
            known, open_calls = self._known.find(message, self.messages, at), []
            if known is None and summary and self._has_calls(message):
                message = replace(message, tool_calls=[])
                known = self._known.find(message, self.messages, at)
            if known is None:
                known = self._known.find_calls(message, self.messages, at)
            if known is None and message.role == "system" and self._is_joined(message.content):
                continue
            if known is None and message.role == "system" and at < len(self.messages):
                at = self._before(message, at)
            elif known is None:
                self._append(message)
                at = len(self.messages)
            else:
                pieces = _places_of(message.tool_calls, self.messages[known].tool_calls)
                self._replace(known, _with_pieces(self.messages[known], message, pieces))
                open_calls = [n for n in range(len(self.messages[known].tool_calls)) if n not in pieces]
                at = known + 1
        return at

    def _pieces_of(self, message: Message, known: int, open_calls: Sequence[int]) -> dict[int, ToolCall] | None:
        """The calls of a message by their places in a known message that it continues; None if it doesn't continue one.
        OpenAI's items have parallel calls one by one when they are sent again.

        open_calls: the places of the calls that the previous pieces lacked.
        """
        if not open_calls or not message.tool_calls or message.role != self.messages[known].role or message.content:
            return None
        calls = self.messages[known].tool_calls
        pieces = _places_of(message.tool_calls, calls, open_calls)
        return pieces if len(pieces) == len(message.tool_calls) else None

    def _joined_after(self, said: Sequence[Message], number: int, at: int) -> int:
        """The number of further user messages that the message at a place combines. pydantic-ai's models combine
        messages that its agent keeps separate."""
        known = self.messages[at] if at < len(self.messages) else None
        if known is None or known.role != "user" or not known.content.startswith(f"{said[number].content}\n"):
            return 0
        text, attachments = "", tuple[str, ...]()
        for count, message in enumerate(takewhile(lambda each: each.role == "user", islice(said, number, None))):
            text = f"{text}\n{message.content}" if count else message.content
            attachments = (*attachments, *message.attachments)
            if (text, tuple(dict.fromkeys(attachments))) == (known.content, known.attachments):
                return count
            if not known.content.startswith(text):
                break
        return 0

    def _is_joined(self, instructions: str) -> bool:
        """Whether instructions combine those of several messages, as in the span of an agent."""
        known = [message.content for message in self.messages if message.role == "system"]
        for start in range(len(known)):
            rest = instructions
            for text in known[start:]:
                if not text or not rest.startswith(text):
                    break
                rest = rest[len(text) :].lstrip("\n")
                if not rest:
                    return True
        return False

    def _replace(self, place: int, message: Message) -> None:
        before, self.messages[place] = self.messages[place], message
        self._known.replace(before, message, place)

    def _append(self, message: Message) -> None:
        self._known.add(message, len(self.messages))
        self.messages.append(message)

    def _before(self, message: Message, at: int) -> int:
        """The place of a system message that another agent has before the same messages. It is noted until all are
        read, because an insertion would move the others."""
        place = self._systems.get(message.content, -1)
        if place < at:
            place = next((n for n in range(at, len(self.messages)) if self.messages[n].role != "system"), at)
            self._systems[message.content] = place
            self._inserted.setdefault(place, []).append(message)
        return place

    def _has_calls(self, message: Message) -> bool:
        """Whether other messages have all tool calls of a message."""
        return bool(message.tool_calls) and all(self._known.call_ids[call.id] > 0 for call in message.tool_calls)

    def _answer_calls(self) -> None:
        """Merge the calls with the spans of tools and the state of a graph. A span whose call is in no message becomes
        a call."""
        places = [(at, n) for at, message in enumerate(self.messages) for n in range(len(message.tool_calls))]
        calls = [self.messages[at].tool_calls[n] for at, n in places]
        self._attempts = attempts_in(self.runs, self._run_places, self.messages)
        numbers = [number for number in range(len(self.runs)) if number not in self._attempts]
        pairs = {numbers[n]: place for n, place in paired([self.runs[n] for n in numbers], calls).items()}
        last = {call.id: place for place, call in enumerate(calls) if call.id}
        returned = [(last[call.id], call) for call in self._returned if call.id in last]
        changed = {places[place][0]: (list[ToolCall](), list[str]()) for place in (*pairs.values(), *dict(returned))}
        for number, place in pairs.items():
            run = self.runs[number]
            calls[place], notes = merged_call(calls[place], run, ran=bool(run.id))
            changed[places[place][0]][1].extend(notes)
        for place, call in returned:
            calls[place], notes = merged_call(calls[place], call)
            changed[places[place][0]][1].extend(notes)
        for number, place in pairs.items():
            self.runs[number] = calls[place]
        for (at, _), call in zip(places, calls, strict=True):
            if at in changed:
                changed[at][0].append(call)
        for at, (calls_of_one, notes) in changed.items():
            known = self.messages[at]
            self.messages[at] = replace(known, tool_calls=calls_of_one, notes=(*known.notes, *notes))
        left = [number for number in numbers if number not in pairs]
        said = self._call_beside(left)
        for number in left:
            message = Message(role="assistant", tool_calls=[self.runs[number]], notes=said.get(number, ()))
            self._inserted.setdefault(self._run_places[number], []).append(message)

    def _call_beside(self, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Merge the runs with these numbers with the calls that the state of a graph lacks, and return notes on their
        contradictions. Runs with a known result but without a call become calls."""
        calls, notes = [] if self._beside_state is None else self._beside_state.calls, dict[int, tuple[str, ...]]()
        pairs = {numbers[n]: place for n, place in paired([self.runs[n] for n in numbers], calls).items()}
        for number, place in pairs.items():
            run = self.runs[number]
            self.runs[number], notes[number] = merged_call(calls[place], run, ran=bool(run.id))
        ran = set(pairs.values())
        for call in (call for place, call in enumerate(calls) if place not in ran and call.state != "call"):
            self._inserted.setdefault(self.closed or 0, []).append(Message(role="assistant", tool_calls=[call]))
        return notes

    @property
    def calls(self) -> list[ToolCall | None]:
        """The calls of the spans of tools, once everything has been read; None for an attempt that was repeated."""
        return [None if number in self._attempts else run for number, run in enumerate(self.runs)]

    def reading(self) -> Reading:
        """The whole content. Raises DataError if there was nothing to read."""
        self.end_call()
        if self._beside_state is not None:
            for message in self._beside_state.instructions:
                self._before(message, 0)
        if self.runs or self._returned or self._beside_state is not None:
            self._answer_calls()
        for place in sorted(self._inserted, reverse=True):
            self.messages[place:place] = self._inserted.pop(place)
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


def _places_of(
    others: Sequence[ToolCall], calls: Sequence[ToolCall], places: Iterable[int] | None = None
) -> dict[int, ToolCall]:
    """The calls that two versions of a message have in common, by their places in the first one. Equal calls are
    matched one to one, in order."""
    left, found = list(others), dict[int, ToolCall]()
    for place in range(len(calls)) if places is None else places:
        at = next((at for at, each in enumerate(left) if same_call(each, calls[place])), None)
        if at is not None:
            found[place] = left.pop(at)
    return found


def _with_pieces(one: Message, other: Message, pieces: Mapping[int, ToolCall]) -> Message:
    """A message with the additional content of another version of it. pieces: the calls that both have, by their
    places."""
    calls, notes = list[ToolCall](), list[str]()
    for place, call in enumerate(one.tool_calls):
        merged, said = merged_call(call, pieces[place]) if place in pieces else (call, ())
        calls.append(merged)
        notes += said
    return replace(
        one,
        content=str(first_shown(one.content, other.content)),
        tool_calls=calls,
        reasoning=first_shown(one.reasoning, other.reasoning),
        usage=one.usage or other.usage,
        notes=tuple(dict.fromkeys((*one.notes, *other.notes, *notes))),
    )

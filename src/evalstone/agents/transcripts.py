"""Transcripts of models and agents, in the formats of their libraries, tools and traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from evalstone._core.display import excerpt, shortlist
from evalstone._core.files import json_or_lines
from evalstone.agents.formats import pydantic_ai, results, sessions, spans
from evalstone.agents.formats.messages import Reading, is_conversation, is_parts, read_conversation, unwrapped
from evalstone.agents.formats.parts import ITEM_ROLES
from evalstone.agents.formats.values import Entries, entries_of, normal, objects_in, plain
from evalstone.agents.messages import answer_text, structured_text, usage_of
from evalstone.agents.traces import read_trace
from evalstone.errors import DataError
from evalstone.types import Message, Trajectory, Usage


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A transcript of a model, an agent or a workflow: its messages or steps, its answer, and the cost."""

    messages: tuple[Message, ...]
    """The conversation. A tool's reply is the result of the call that it answers."""
    output: str | None
    """The answer, as text or JSON: the one that the format marks as the answer, else the assistant's last text after
    the last user message. None if there is none, as in a run that failed."""
    context: tuple[str, ...] | None
    """The retrieved passages, without duplicates. Empty if a trace says that nothing was found; None if there are none
    known."""
    usage: Usage
    """The tokens of all replies, if the format has them."""
    cost: float | None
    """US dollars. None if the format doesn't have it."""
    format: str
    """The name of the format."""
    trajectory: Trajectory | None = None
    """The steps of a workflow, or of the spans of a trace. None for other formats; `extract_trajectory` reads the tool
    calls in the messages."""
    error: str = ""
    """Why the run failed, if the format has it."""


class Format(NamedTuple):
    """A format: its name, a function that recognizes it, and one that reads it."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any], Reading]


def _list_of(matches: Callable[[Entries], bool]) -> Callable[[Any], bool]:
    """A function that recognizes lists of messages in which at least one matches."""

    def check(value: Any) -> bool:
        messages = _message_list(value)
        return messages is not None and any(matches(item) for item in objects_in(messages))

    return check


def _message_list(value: Any) -> list[Any] | None:
    """The messages in a value: a list (also under `messages`), a single message, or a message's parts; else None."""
    inner = entries_of(value).get("messages", [value]) if isinstance(value, dict) else value
    items = cast("list[Any]", inner) if isinstance(inner, list) else []
    if is_conversation(items):
        return items
    if items and is_parts(items):
        return [{"role": "assistant", "content": items}]
    return items if any(normal(str(item.get("type"))) in ITEM_ROLES for item in objects_in(items)) else None


def _read_list(value: Any) -> Reading:
    if isinstance(value, dict) and results.is_state(value):
        return results.read_state(value)
    return Reading(read_conversation(_message_list(value) or [], "messages"))


def _types(item: Entries) -> set[str]:
    """The types of a message's parts."""
    body = entries_of(item.get("content")) or item
    parts = body.get("parts") if "parts" in body else item.get("content")
    return {str(part.get("type")) for part in objects_in(parts)}


def _is_langchain(item: Entries) -> bool:
    inner = unwrapped(item)
    named = str(inner.get("type")).lower().removesuffix("messagechunk") in ("human", "ai", "system", "tool", "function")
    return "lc" in item or "content_blocks" in item or (named and "role" not in inner)


def _is_graph_state(value: Any) -> bool:
    return results.is_state(value) and any(map(_is_langchain, objects_in(_message_list(value))))


def _is_message_list(value: Any) -> bool:
    return _message_list(value) is not None


def _is_gemini(item: Entries) -> bool:
    parts = item.get("parts")
    return isinstance(parts, list) and "kind" not in item and all("type" not in part for part in objects_in(parts))


def _is_opentelemetry(item: Entries) -> bool:
    parts = objects_in(item.get("parts"))
    return any("content" in part or str(part.get("type")).startswith("tool_call") for part in parts)


def _is_mastra(item: Entries) -> bool:
    return "parts" in entries_of(item.get("content")) or entries_of(item.get("content")).get("format") == 2


def _is_ai_sdk(item: Entries) -> bool:
    types = _types(item)
    own = {"tool-call", "tool-result", "step-start", "dynamic-tool", "source-url", "source-document"}
    return "parts" in item or not types.isdisjoint(own) or any(kind.startswith("tool-") for kind in types)


def _is_responses_item(item: Entries) -> bool:
    kinds = {"input_text", "output_text", "input_image", "input_file"}
    known = normal(str(item.get("type"))) in ITEM_ROLES or item.get("type") == "message"
    return known or not _types(item).isdisjoint(kinds)


def _is_anthropic(item: Entries) -> bool:
    own = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"}
    return not _types(item).isdisjoint(own)


def _is_sharegpt(item: Entries) -> bool:
    return "from" in item and "value" in item


FORMATS: tuple[Format, ...] = (
    Format("Claude Code", sessions.is_claude_code, sessions.read_claude_code),
    Format("ATIF", sessions.is_atif, sessions.read_atif),
    Format("OpenInference", spans.is_openinference, read_trace),
    Format("OpenTelemetry", spans.is_opentelemetry, read_trace),
    Format("OpenAI Responses", results.is_response, results.read_response),
    Format("OpenAI chat", results.is_chat_completion, results.read_chat_completion),
    Format("Anthropic", results.is_anthropic_message, results.read_anthropic_message),
    Format("Bedrock Converse", results.is_converse, results.read_converse),
    Format("Gemini", results.is_gemini, results.read_gemini),
    Format("Mastra", partial(results.is_agent_result, mastra=True), results.read_agent_result),
    Format("AI SDK", partial(results.is_agent_result, mastra=False), results.read_agent_result),
    Format("Mastra", results.is_workflow, results.read_workflow),
    Format("LangGraph", _is_graph_state, _read_list),
    Format("LangChain", _list_of(_is_langchain), _read_list),
    Format("pydantic-ai", _list_of(pydantic_ai.is_message), _read_list),
    Format("OpenAI Responses", _list_of(_is_responses_item), _read_list),
    Format("Gemini", _list_of(_is_gemini), _read_list),
    Format("Mastra", _list_of(_is_mastra), _read_list),
    Format("OpenTelemetry", _list_of(_is_opentelemetry), _read_list),
    Format("AI SDK", _list_of(_is_ai_sdk), _read_list),
    Format("Anthropic", _list_of(_is_anthropic), _read_list),
    Format("Bedrock Converse", _list_of(results.is_converse_message), _read_list),
    Format("ShareGPT", _list_of(_is_sharegpt), _read_list),
    Format("OpenAI chat", _is_message_list, _read_list),
)
"""The known formats. The first one that matches is used."""


def format_of(data: Any, *, of_lists: bool = True) -> Format | None:
    """The format of a transcript as data; None if none matches. of_lists: whether a list of messages is one."""
    known = (each for each in FORMATS if of_lists or each.read is not _read_list)
    return next((each for each in known if each.matches(data)), None)


class _Run(NamedTuple):
    """How to read the run objects of a framework."""

    name: str
    method: str
    """The method that run objects have."""
    data: Callable[[Any], Any]
    """Returns the messages of a run as data."""
    read: Callable[[Any, Any], Reading]
    """Reads a run and its messages."""


def _pydantic_ai_messages(run: Any) -> Any:
    return json.loads(run.all_messages_json())


def _agents_items(run: Any) -> Any:
    return plain(run.to_input_list())


def _strands_messages(run: Any) -> Any:
    """The messages of the last call of the agent, which the traces of its cycles have. A call that goes on after an
    interrupt has the results of the call before it, and so needs its messages."""
    metrics = getattr(run, "metrics", None)
    calls = getattr(metrics, "agent_invocations", None)
    if metrics is None or not calls or not metrics.traces:
        name = type(run).__name__
        raise DataError(f"{name} doesn't have the messages of the agent; pass agent.messages, or its spans")
    messages, end = list[Any](), len(metrics.traces)
    for call in reversed(calls):
        cycles = metrics.traces[max(0, end - len(call.cycles)) : end]
        messages[:0] = plain([each.message for cycle in cycles for each in cycle.children if each.message])
        end -= len(cycles)
        opening = entries_of(messages[0]) if messages else {}
        if not any("toolResult" in part for part in objects_in(opening.get("content"))):
            break
    return messages


_RUNS: Mapping[str, _Run] = {
    "pydantic_ai": _Run(
        "pydantic-ai",
        "all_messages_json",
        _pydantic_ai_messages,
        results.of_pydantic_ai_run,
    ),
    "agents": _Run("OpenAI Agents", "to_input_list", _agents_items, results.of_agents_run),
    "strands": _Run("Strands", "to_dict", _strands_messages, results.of_strands_run),
}


_PARTIAL: Mapping[str, str] = {
    "agent_result": ", which has only the last message of a Strands agent: pass agent.messages, or its spans"
}
"""What to pass instead of data that has a part of a transcript, by the `type` of the data."""


def read_transcript(value: object) -> Transcript:
    """Read the messages, answer, passages and cost from the output of a model, an agent or a tool.

    Args:
        value: Messages, a provider's response, a framework's result, the spans of a trace, or the lines of a session:
            as data, as text (JSON or JSON Lines), or as objects of the library, which isn't imported.
            docs/transcripts.md lists the formats.

    Raises:
        DataError: The format is unknown, or part of the value is invalid; the message names its position.
    """
    if isinstance(value, Transcript):
        return value
    try:
        return _read(value)
    except RecursionError:
        raise DataError("the transcript is nested too deeply") from None


def _read(value: object) -> Transcript:
    run = _RUNS.get(type(value).__module__.partition(".")[0])
    if run is not None and callable(getattr(value, run.method, None)):
        return _transcript(run.name, partial(_read_run, run, value))
    data = plain(_parsed(value) if isinstance(value, str | bytes | bytearray) else value)
    if isinstance(data, list) and data and all(isinstance(item, Message) for item in cast("list[Any]", data)):
        return _transcript("evalstone", partial(_read_list, data))
    match = format_of(data)
    if match is not None:
        return _transcript(match.name, partial(match.read, data))
    names = ", ".join(dict.fromkeys(known.name for known in (*FORMATS, *_RUNS.values())))
    hint = _PARTIAL.get(str(entries_of(data).get("type")), "")
    raise DataError(f"unknown transcript format: {_described(value, data)}{hint}; the known formats are {names}")


def _read_run(run: _Run, value: object) -> Reading:
    return run.read(value, run.data(value))


def _transcript(name: str, read: Callable[[], Reading]) -> Transcript:
    try:
        reading = read()
    except DataError as error:
        place = getattr(error, "place", "").removeprefix(".")
        raise DataError(f"{name}: {place}: {error}" if place else f"{name}: {error}") from None
    messages = tuple(reading.conversation.messages)
    counted = [message.usage for message in messages if message.usage is not None]
    usage = reading.usage or usage_of(messages)
    if reading.usage is not None and not usage.requests:
        usage += Usage(requests=len(counted) or 1)
    output = reading.output
    if output is None and not reading.error:  # the text beside the calls of a run that failed is no answer
        output = answer_text(messages)
    if output is not None and not isinstance(output, str):
        output = structured_text(output, messages)
    return Transcript(
        messages=messages,
        output=output,
        context=tuple(reading.conversation.passages) if reading.retrieved or reading.conversation.passages else None,
        usage=usage,
        cost=reading.cost,
        format=name,
        trajectory=reading.trajectory,
        error=reading.error,
    )


def _parsed(text: str | bytes | bytearray) -> Any:
    """The value of a JSON or JSON Lines text."""
    try:
        return json_or_lines(text)
    except ValueError:
        raise DataError(f"a transcript as text must be JSON or JSON Lines, not {excerpt(text)}") from None


def _described(value: object, data: Any) -> str:
    """A description of the value: its type, and the names of its entries."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if isinstance(data, list):
        items = cast("list[Any]", data)
        if not items:
            return f"{name}, empty"
        return f"{name} of {_described(items[0], items[0])}"
    keys = shortlist(cast("Entries", data)) if isinstance(data, dict) else ""
    return f"{name} with {keys}" if keys else name

"""One fixture per format, as its library writes it: what is read of it, and that nothing in it is lost.

NAME.json has the transcript and where it comes from; NAME.txt what is to be read of it. tools/make_transcripts.py and
tools/make_transcripts.mjs write those that come from a library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone.agents.formats.registry import FORMATS
from evalstone.agents.transcripts import Transcript, read_transcript
from evalstone.types import Message

FOLDER = Path(__file__).parent / "transcripts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
FIXTURES: dict[str, dict[str, Any]] = {
    name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES
}

# What describes a transcript and is no part of what was said or done, by format: names of entries, or dotted paths.
METADATA: dict[str, set[str]] = {
    "AI SDK": {"toolCallId", "callId", "response.id", "timestamp", "providerMetadata", "filename", "model", "sources"}
    | {"url", "title", "performance", "_output", "finishReason"}
    | {"modelId", "type", "state"},
    "ATIF": {
        "schema_version",
        "session_id",
        "timestamp",
        "agent",
        "path",
        "notes",
        "subagent_trajectories",
        "model_name",
    },
    "Anthropic": {"signature", "stop_reason", "model", "cited_text", "url", "document_title", "title"}
    | {"encrypted_content", "type"},
    "Bedrock Converse": {
        "bytes",
        "uri",
        "signature",
        "redactedContent",
        "title",
        "source.source",
        "stopReason",
        "modelId",
    }
    | {"toolUseId", "name", "format"},
    "Claude Code": {"sessionId", "session_id", "cwd", "uuid", "timestamp", "signature", "leafUuid", "summary", "model"}
    | {"subtype", "toolUseResult", "service_tier", "type", "apiKeySource", "isSidechain"},
    "Gemini": {"uri", "title", "file_uri", "modelVersion", "retrievalQueries"},
    "LangChain": {"id", "mime_type", "type"},
    "LangGraph": {"id", "mime_type", "type", "lc"},
    "Mastra": {"id", "runId", "createdAt", "modelId", "url", "title", "provider", "modelProvider", "timestamp", "from"}
    | {"type", "format", "modelMetadata", "state"},
    "OpenAI Responses": {"id", "call_id", "encrypted_content", "annotations", "url", "image_url", "file_url", "model"}
    | {"type", "tools", "filename", "status"},
    "OpenAI chat": {"id", "object", "url", "finish_reason"},
    "OpenInference": {
        "context",
        "parent_id",
        "start_time",
        "end_time",
        "resource",
        "metadata",
        "llm.invocation_parameters",
    }
    | {"llm.provider", "openinference.span.kind", "name", "output.mime_type", "input.mime_type", "kind", "type", "id"}
    | {"llm.input_messages.0.message.contents.1.message_content.audio.audio.url", "links", "status", "_type"},
    "OpenTelemetry": {
        "context",
        "parent_id",
        "start_time",
        "end_time",
        "resource",
        "traceId",
        "spanId",
        "scope",
        "eventName",
    }
    | {"gen_ai.operation.name", "gen_ai.agent.call.id", "gen_ai.conversation.id", "gen_ai.request.model", "key", "name"}
    | {"gen_ai.response.model", "gen_ai.tool.definitions", "model_request_parameters", "logfire.json_schema", "kind"}
    | {
        "model_name",
        "logfire.msg",
        "gen_ai.retrieval.query.text",
        "uri",
        "file_id",
        "type",
        "finish_reason",
        "timeUnixNano",
    },
    "ShareGPT": set(),
    "pydantic-ai": {"timestamp", "url", "identifier", "provider_url", "part_kind", "kind", "run_id", "scope"},
}
OBJECTS = {known.name for known in FORMATS if known.run and not (known.is_message or known.whole or known.is_trace)}
"""Formats whose data is another's: only the objects are their own."""
LONG = 12
"""Strings of this many characters are content, unless their entry is metadata; shorter ones may be anything."""


def rendered(transcript: Transcript) -> str:
    """All of a transcript as text, a line for each thing in it."""
    lines = [f"format: {transcript.format}", f"output: {json.dumps(transcript.output)}"]
    lines += [f"passage: {passage}" for passage in transcript.context or ()]
    usage = transcript.usage
    lines.append(f"usage: {usage.input} in, {usage.output} out, {usage.cached} cached, {usage.requests} requests")
    lines.append(f"cost: {transcript.cost}")
    for message in transcript.messages:
        lines.append("")
        lines.append(f"{message.role}: {message.content}".rstrip())
        lines += [f"    thinks: {message.reasoning}"] if message.reasoning else []
        lines += [f"    attached: {kind}" for kind in message.attachments]
        for call in message.tool_calls:
            lines.append(f"    calls: {call.name}({json.dumps(call.arguments)}) {call.id}".rstrip())
            lines.append(f"        {call.state}: {json.dumps(call.result)}")
            lines += [f"        error: {call.error}"] if call.error is not None else []
    return "\n".join(lines) + "\n"


def strings(value: Any) -> Iterator[str]:
    """All strings in a value, entries' names left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from strings(item)


def content(value: Any, metadata: set[str], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The long strings in a transcript that are no metadata. A text that is JSON is looked into."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        if entries.get("type") in ("redacted_thinking", "compaction"):
            return
        for key, item in entries.items():
            if key in ("data", "base64", "result", "content", "url", "image_url") and _is_encoded(item):
                continue
            if key not in metadata and ".".join((*path, key)[-2:]) not in metadata and key != "key":
                name = entries["key"] if key == "value" and isinstance(entries.get("key"), str) else key
                if name not in metadata:
                    yield from content(item, metadata, (*path, name))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from content(item, metadata, path)
    elif isinstance(value, str) and len(value) >= LONG and not _is_encoded(value):
        inner = None
        if value[:1] in "[{":
            try:
                inner = json.loads(value)
            except ValueError:
                inner = None
        if isinstance(inner, dict | list):
            yield from content(inner, metadata, path)
        else:
            yield value


def _is_encoded(value: Any) -> bool:
    return isinstance(value, str) and (
        value.startswith("data:") or re.fullmatch(r"[A-Za-z0-9+/]+=*", value) is not None
    )


def lost(value: Any, transcript: Transcript, metadata: set[str]) -> list[str]:
    """The content of a fixture that its transcript doesn't have."""
    kept = [transcript.output or "", *(transcript.context or ())]
    for message in transcript.messages:
        kept += [message.content, message.reasoning or ""]
        for call in message.tool_calls:
            kept += [call.name, call.error or "", *strings(dict(call.arguments)), *strings(call.result)]
    whole = _squeezed("".join(message.content for message in transcript.messages)) + "".join(map(_squeezed, kept))
    return [text for text in content(value, metadata) if _squeezed(text) not in whole]


def _squeezed(text: str) -> str:
    return "".join(text.split())


def test_every_format_has_a_fixture() -> None:
    assert {fixture["format"] for fixture in FIXTURES.values()} == {known.name for known in FORMATS} - OBJECTS


def test_the_page_lists_every_format_with_the_source_of_its_fixtures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "transcripts.md").read_text(encoding="utf-8")
    table = page.partition("## Formats")[2].partition("\n\n## ")[0]
    rows = dict(re.findall(r"^\| (.+?) \| .* \| (.+?) \|$", table, flags=re.MULTILINE))
    for name in {known.name for known in FORMATS} - OBJECTS:
        sources = {fixture["source"] for fixture in FIXTURES.values() if fixture["format"] == name}
        assert set(rows[name].split(", ")) == sources, name
    assert rows.keys() == {"format"} | {known.name for known in FORMATS}


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_is_read_as_expected(name: str) -> None:
    transcript = read_transcript(FIXTURES[name]["transcript"])
    assert transcript.format == FIXTURES[name]["format"]
    assert rendered(transcript) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_transcript_is_lost(name: str) -> None:
    fixture = FIXTURES[name]
    assert lost(fixture["transcript"], read_transcript(fixture["transcript"]), METADATA[fixture["format"]]) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_any_part_would_be_seen(name: str) -> None:
    fixture = FIXTURES[name]
    transcript = read_transcript(fixture["transcript"])
    metadata = METADATA[fixture["format"]]
    texts = {
        text
        for message in transcript.messages
        for text in (message.content, message.reasoning)
        if text and len(text) > LONG
    }
    for text in texts:
        cut = replace(transcript, output=None, context=None, messages=tuple(_without(text, transcript)))
        assert lost(fixture["transcript"], cut, metadata) != [], text
    for message in transcript.messages:
        for call in message.tool_calls:
            arguments = [text for text in strings(dict(call.arguments)) if len(text) >= LONG]
            if arguments:
                others = [replace(each, tool_calls=()) if each is message else each for each in transcript.messages]
                cut = replace(transcript, context=None, messages=tuple(others))
                assert lost(fixture["transcript"], cut, metadata) != [], call.name


def _without(text: str, transcript: Transcript) -> Iterator[Message]:
    for message in transcript.messages:
        said = "" if message.content == text else message.content
        yield replace(message, content=said, reasoning=None if message.reasoning == text else message.reasoning)


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_a_transcript_is_read_like_its_data(name: str) -> None:
    transcript: Any = FIXTURES[name]["transcript"]
    assert read_transcript(json.dumps(transcript)) == read_transcript(transcript)
    if isinstance(transcript, list):
        items = cast("list[Any]", transcript)
        assert read_transcript("\n".join(map(json.dumps, items)).encode()) == read_transcript(items)

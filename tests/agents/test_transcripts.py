"""One fixture per format, as its library writes it: what is read of it, and that nothing in it is lost.

NAME.json has the transcript and where it comes from, the names of entries that are no content (`metadata`), and what
the format puts before texts (`prefixes`). NAME.txt has what is to be read of it. tools/make_transcripts.py and
tools/make_transcripts.mjs write most of those that come from a library.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone.agents.formats.messages import message_list
from evalstone.agents.formats.registry import FORMATS
from evalstone.agents.transcripts import Transcript, format_of, read_transcript
from evalstone.datasets import sample_from
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import Message
from tests import contributing_page

FOLDER = Path(__file__).parent / "transcripts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
FIXTURES: dict[str, dict[str, Any]] = {
    name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES
}

LISTS = [
    name
    for name, fixture in FIXTURES.items()
    if format_of(fixture["transcript"], of_lists=False) is None and message_list(fixture["transcript"]) is not None
]
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


def content_of(fixture: dict[str, Any]) -> Iterator[str]:
    """The long strings in a fixture that are no metadata, without prefixes."""
    yield from content(fixture["transcript"], set(fixture.get("metadata", ())), fixture.get("prefixes", ()))


def content(value: Any, metadata: set[str], prefixes: Sequence[str] = (), path: tuple[str, ...] = ()) -> Iterator[str]:
    """The long strings in a transcript that are no metadata. A text that is JSON is looked into, and a list in Python's
    notation after a prefix."""
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
                    yield from content(item, metadata, prefixes, (*path, name))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from content(item, metadata, prefixes, path)
    elif isinstance(value, str) and (prefix := next(filter(value.startswith, prefixes), "")):
        text = value.removeprefix(prefix)
        yield from content(ast.literal_eval(text) if text.startswith("[") else text, metadata, (), path)
    elif isinstance(value, str) and len(value) >= LONG and not _is_encoded(value):
        inner = None
        if value[:1] in "[{":
            try:
                inner = json.loads(value)
            except ValueError:
                inner = None
        if isinstance(inner, dict | list):
            yield from content(inner, metadata, prefixes, path)
        else:
            yield value


def _is_encoded(value: Any) -> bool:
    return isinstance(value, str) and (
        value.startswith("data:") or re.fullmatch(r"[A-Za-z0-9+/]+=*", value) is not None
    )


def lost(fixture: dict[str, Any], transcript: Transcript) -> list[str]:
    """The content of a fixture that its transcript doesn't have."""
    kept = [transcript.output or "", *(transcript.context or ())]
    for message in transcript.messages:
        kept += [message.content, message.reasoning or ""]
        for call in message.tool_calls:
            kept += [call.name, call.error or "", *strings(dict(call.arguments)), *strings(call.result)]
    whole = _squeezed("".join(message.content for message in transcript.messages)) + "".join(map(_squeezed, kept))
    return [text for text in content_of(fixture) if _squeezed(text) not in whole]


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
    assert lost(fixture, read_transcript(fixture["transcript"])) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_any_part_would_be_seen(name: str) -> None:
    fixture = FIXTURES[name]
    transcript = read_transcript(fixture["transcript"])
    texts = {
        text
        for message in transcript.messages
        for text in (message.content, message.reasoning)
        if text and len(text) > LONG
    }
    for text in texts:
        cut = replace(transcript, output=None, context=None, messages=tuple(_without(text, transcript)))
        assert lost(fixture, cut) != [], text
    for message in transcript.messages:
        for call in message.tool_calls:
            arguments = [text for text in strings(dict(call.arguments)) if len(text) >= LONG]
            if arguments:
                others = [replace(each, tool_calls=()) if each is message else each for each in transcript.messages]
                cut = replace(transcript, context=None, messages=tuple(others))
                assert lost(fixture, cut) != [], call.name


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


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_reads_a_transcript_alike(name: str) -> None:
    data: Any = FIXTURES[name]["transcript"]
    transcript = read_transcript(data)
    answer = Answer.of(data)
    assert (answer.messages, answer.output, answer.context) == (
        transcript.messages,
        transcript.output,
        transcript.context,
    )
    if any(message.role != "assistant" for message in transcript.messages):
        for column in ("messages", "output"):
            sample = sample_from({column: data, "id": "1"})
            assert (sample.messages, sample.output) == (transcript.messages, transcript.output), column


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_messages_is_read_alike_as_text_and_in_a_span(name: str) -> None:
    items = message_list(FIXTURES[name]["transcript"])
    read = read_transcript(items).messages
    written = json.dumps(items)
    assert sample_from({"output": written, "id": "1"}).messages == read
    assert sample_from({"messages": written, "id": "1"}).messages == read
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "chat", "startTimeUnixNano": "1714000000000000000"}
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": written}
    assert read_transcript([{**span, "attributes": attributes}]).messages == read


def test_the_error_of_a_call_in_a_transcript_keeps_what_is_wrong() -> None:
    with pytest.raises(DataError) as raised:
        read_transcript([{"role": "assistant", "content": "x", "tool_calls": [5]}])
    assert (raised.value.kind, raised.value.field, raised.value.value) == ("invalid", "a tool call", 5)
    assert "messages[0].tool_calls[0]" in str(raised.value)


def test_the_format_of_the_contributing_page_is_the_one_of_the_code() -> None:
    paths = contributing_page.paths("Add a transcript format")
    whole = [path for path in paths if not path.endswith("registry.py")]
    assert [Path(path).suffix for path in whole] == [".py", ".json", ".txt"]
    for path in whole:
        assert contributing_page.added(path) + "\n" == (contributing_page.ROOT / path).read_text("utf-8"), path
    (row,) = set(paths) - set(whole)
    pieces = "\n".join(line[1:] for line in contributing_page.hunk(row)).split("\n@ @@\n")
    registry = (contributing_page.ROOT / row).read_text("utf-8")
    assert [piece for piece in pieces if piece not in registry] == []


if __name__ == "__main__":
    sys.stdout.write(rendered(read_transcript(FIXTURES[sys.argv[1]]["transcript"])))

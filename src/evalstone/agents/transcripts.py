"""Transcripts of models and agents, in the formats of their libraries, tools and traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from evalstone._core.display import shortlist
from evalstone._core.files import json_or_lines
from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.conversation import Reading
from evalstone.agents.formats.format import Run, Whole
from evalstone.agents.formats.langchain import has_messages, read_state
from evalstone.agents.formats.messages import message_list, read_conversation, read_layout
from evalstone.agents.formats.registry import FORMATS
from evalstone.agents.formats.values import entries_of, objects_in, plain
from evalstone.agents.messages import answer_text, structured_text, usage_of
from evalstone.errors import DataError, invalid
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


class Match(NamedTuple):
    """The format that a value has, and how it is read."""

    name: str
    read: Callable[[Any], Reading]


def format_of(data: Any, *, of_lists: bool = True) -> Match | None:
    """The format of a transcript as data; None if none matches. of_lists: whether a list of messages is one."""
    for known in FORMATS:
        if known.whole is not None and known.whole.matches(data):
            return Match(known.name, partial(_read_whole, known.whole))
        if known.is_trace is not None and known.is_trace(data):
            from evalstone.agents.traces import read_trace  # noqa: PLC0415 - most commands read no trace

            return Match(known.name, read_trace)
    messages = message_list(data) if of_lists else None
    if messages is None:
        return None
    objects = objects_in(messages)
    names = (known.name for known in FORMATS if known.is_message and any(map(known.is_message, objects)))
    return Match(next(names, FORMATS[-1].name), _read_list)


def _read_whole(whole: Whole, value: Any) -> Reading:
    return read_layout(whole.read(value))


def _read_list(value: Any) -> Reading:
    if isinstance(value, dict) and has_messages(value):
        return read_layout(read_state(value))
    return Reading(read_conversation(message_list(value) or [], "messages"))


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
    library = type(value).__module__.partition(".")[0]
    for known in FORMATS:
        if (run := known.run) and run.library == library and callable(getattr(value, run.method, None)):
            return _transcript(known.name, partial(_read_run, run, value))
    data = plain(_parsed(value) if isinstance(value, str | bytes | bytearray) else value)
    if is_array(data) and data and all(isinstance(item, Message) for item in data):
        return _transcript("evalstone", partial(_read_list, data))
    match = format_of(data)
    if match is not None:
        return _transcript(match.name, partial(match.read, data))
    names = ", ".join(known.name for known in FORMATS)
    kind = entries_of(data).get("type")
    hint = next((f", {known.part[1]}" for known in FORMATS if known.part and known.part[0] == kind), "")
    raise DataError(f"unknown transcript format: {_described(value, data)}{hint}; the known formats are {names}")


def _read_run(run: Run, value: object) -> Reading:
    return read_layout(run.read(value))


def _transcript(name: str, read: Callable[[], Reading]) -> Transcript:
    try:
        reading = read()
    except DataError as error:
        place = getattr(error, "place", "").removeprefix(".")
        raise DataError(f"{name}: {place}: " if place else f"{name}: ", error) from None
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
    except DataError:
        raise
    except ValueError:
        raise DataError(invalid("a transcript as text", "JSON or JSON Lines", text)) from None


def _described(value: object, data: Any) -> str:
    """A description of the value: its type, and the names of its entries."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if is_array(data):
        if not data:
            return f"{name}, empty"
        return f"{name} of {_described(data[0], data[0])}"
    keys = shortlist(data) if is_object(data) else ""
    return f"{name} with {keys}" if keys else name

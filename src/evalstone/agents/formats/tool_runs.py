"""Tool calls from the spans of tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from evalstone._core.guards import is_array
from evalstone.agents.formats.calls import arguments_of, error_text, plain_result
from evalstone.agents.formats.values import Entries, entries_of, json_text, parsed
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall
from evalstone.types.accounts import is_hidden, is_redacted, tool_and_arguments
from evalstone.types.tool_results import is_only_error

_STATUS = ("gen_ai.tool.status", "tool.status")
"""Strands' attributes for the end of a tool. A tool that waits for an answer to its interrupt hasn't ended."""


def tool_run(attributes: Entries, error: str | None) -> ToolCall:
    """The call that the span of a tool is the run of.

    Args:
        attributes: Those of the span, under the names of OpenTelemetry's conventions.
        error: What the span failed with; None if it did not, where the result may still say that the tool failed.

    Raises:
        DataError: The attributes don't name the tool.
    """
    name = attributes.get("gen_ai.tool.name")
    if not isinstance(name, str) or not name:
        raise DataError("the span of a tool must have its name")
    returned: Any = attributes.get("gen_ai.tool.call.result")  # JSON; where it is the text, the messages have it too
    unknown = returned == "null" or is_redacted(returned)
    result, says_failed = plain_result(None if unknown else parsed(json_text(returned)))
    arguments = arguments_of(parsed(attributes.get("gen_ai.tool.call.arguments")))
    failed = error is not None or says_failed or is_only_error(result) or attributes.get("error.type") is not None
    said: Any = (error or "error") if result is None else result
    system = attributes.get("gen_ai.provider.name", attributes.get("gen_ai.system"))
    waits = system == "strands-agents" and attributes.keys().isdisjoint(_STATUS)
    return ToolCall(
        name=name,
        arguments={} if is_redacted(arguments.get("raw")) else arguments,
        result=result,
        id=str(attributes.get("gen_ai.tool.call.id") or ""),
        state="error" if failed else "call" if waits and result is None else "result",
        error=error_text(said) if failed else None,
    )


def said_beside(attributes: Entries) -> str | None:
    """The text that a tool of pydantic-ai sends to the model as a message of the user, beside its result; None without
    one."""
    returned = entries_of(parsed(attributes.get("gen_ai.tool.call.result")))
    content: Any = returned.get("content") if returned.get("kind") == "tool-return" else None
    items = content if is_array(content) else [content]
    return "\n".join(text for text in items if isinstance(text, str)) or None


def attempts_in(runs: Sequence[ToolCall], places: Sequence[int], messages: Sequence[Message]) -> set[int]:
    """The numbers of failed runs that were repeated before the model got a result, as by a middleware: they are
    attempts of a later run's call, not calls. The messages of such a turn have fewer calls than runs. places: the
    message before which each run belongs."""
    if not any(run.state == "error" for run in runs):
        return set()
    turns = [0]
    for message in messages:
        turns.append(turns[-1] + (message.role == "user"))
    called = Counter[Hashable]()
    for turn, message in zip(turns[1:], messages, strict=True):
        called.update((turn, key) for call in message.tool_calls for key in _keys(call))
    same: dict[tuple[int, Hashable], list[int]] = {}
    for number, (run, place) in enumerate(zip(runs, places, strict=True)):
        same.setdefault((turns[place], _keys(run)[0]), []).append(number)
    found: set[int] = set()
    for key, numbers in same.items():
        spare = len(numbers) - called[key] if called[key] else 0
        repeated, later = list[int](), dict[int, set[str]]()
        for number in reversed(numbers):
            run, ids = runs[number], later.setdefault(places[number], set())
            if run.state == "error" and ids and (not run.id or ids & {"", run.id}):
                repeated.append(number)
            ids.add(run.id)
        found.update(repeated[::-1][: max(0, spare)])
    return found


def _keys(call: ToolCall) -> list[Hashable]:
    """The keys of a call: its tool and its arguments, and its tool and its ID; for a run without arguments, its ID."""
    by_id = (call.name, "id", call.id)
    return [by_id] if is_hidden(call.arguments) and call.id else [tool_and_arguments(call), by_id]

"""The AI SDK, and the results of Mastra's agents, which are built on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.parts import types_in
from evalstone.agents.formats.values import Entries, checked_objects, entries_of, objects_in, read_usage

_MASTRA = ("runId", "traceId", "rememberedMessages", "usedFallbackValue", "scoringData", "tripwire")


def _is_result(value: Any, *, mastra: bool) -> bool:
    """Whether this is what `generateText` of the AI SDK or `generate` of Mastra returns, as JSON."""
    entries = entries_of(value)
    steps = objects_in(entries.get("steps"))
    known = any(not {"content", "toolCalls", "text"}.isdisjoint(step) for step in steps)
    return known and (not entries.keys().isdisjoint(_MASTRA)) == mastra


def is_result(value: Any) -> bool:
    """Whether this is what `generateText` returns, as JSON."""
    return _is_result(value, mastra=False)


def is_mastra_result(value: Any) -> bool:
    """Whether this is what `generate` of Mastra returns, as JSON."""
    return _is_result(value, mastra=True)


def read_result(value: Any) -> Layout:
    """The messages of all steps.

    Mastra's steps leave some parts out, so that its messages are read instead: all of them, or those of the response.
    """
    result = entries_of(value)
    response = entries_of(result.get("response"))
    usage = read_usage(result.get("totalUsage") or result.get("usage"))
    steps = checked_objects(result["steps"], "steps")
    usage = None if usage is None else replace(usage, requests=len(steps))
    text, structured = result.get("text"), result.get("object")
    output = structured if structured is not None and not text else None
    if output is None and text == "" and result.get("finishReason") == "stop":
        output = text  # of which no message says anything
    choices: list[tuple[str, Any]] = [
        ("messages", result.get("messages")),
        ("response.dbMessages", response.get("dbMessages")),
        ("responseMessages", result.get("responseMessages")),
    ]
    whole = all(isinstance(step.get("content"), list) for step in steps)
    if not whole or not result.keys().isdisjoint(_MASTRA):
        choices.append(("response.messages", response.get("messages")))
        last = f"steps[{len(steps) - 1}].response.messages"
        choices.append((last, entries_of(steps[-1].get("response")).get("messages")))
    place, messages = next(((at, items) for at, items in choices if items), ("", None))
    layout = Layout(usage=usage, output=output)
    if messages is not None:
        layout.extend(messages, place)
        return layout
    for number, step in enumerate(steps):
        layout.add(_step(step), f"steps[{number}]")
    return layout


def _step(step: Entries) -> Entries:
    """One step of an agent as a message: its content, or the text, the calls and the results that it has instead."""
    if isinstance(step.get("content"), list):
        content = [_with_error(part, step) for part in step["content"]]
        return {"role": "assistant", "content": content, "usage": step.get("usage")}
    keys = ("toolCalls", "toolResults")
    inner = [{**each, **entries_of(each.get("payload"))} for key in keys for each in objects_in(step.get(key))]
    thought = step.get("reasoningText") or step.get("reasoning")
    parts = [{"type": "text", "text": step["text"]}] if step.get("text") else []
    files = [{"type": "file", **each} for each in objects_in(step.get("files"))]
    return {
        "role": "assistant",
        "content": [*parts, *files, *inner],
        "reasoning": thought if isinstance(thought, str) else None,
        "usage": step.get("usage"),
    }


def _with_error(part: Any, step: Entries) -> Any:
    """A part of a step. In JSON, a JavaScript Error is empty; its message is in the step's response."""
    call = entries_of(part)
    if call.get("type") != "tool-error" or call.get("error"):
        return part
    replies = objects_in(entries_of(step.get("response")).get("messages"))
    results = [
        each for reply in replies for each in objects_in(reply.get("content")) if each.get("type") == "tool-result"
    ]
    said = next((each.get("output") for each in results if each.get("toolCallId") == call.get("toolCallId")), None)
    return {**call, "error": said}


def is_message(item: Entries) -> bool:
    """Whether this is a UI message, or a model message with the AI SDK's parts."""
    types = types_in(item)
    own = {"tool-call", "tool-result", "step-start", "dynamic-tool", "source-url", "source-document"}
    return "parts" in item or not types.isdisjoint(own) or any(kind.startswith("tool-") for kind in types)

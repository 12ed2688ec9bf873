"""Sessions of Claude Code, and the messages of its Agent SDK."""

from __future__ import annotations

from typing import Any

from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_array
from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    checked_entries,
    checked_objects,
    entries_of,
    objects_in,
    part_text,
    read_cost,
    read_usage,
)

_LINES = ("user", "assistant", "system", "result")


def is_session(value: Any) -> bool:
    """Whether these are lines of a session or of `--output-format stream-json`, or the result of `--output-format
    json`."""
    items = value if is_array(value) else [value]
    lines = [line for line in objects_in(items) if not {"sessionId", "session_id", "parentUuid"}.isdisjoint(line)]
    return any(line.get("type") in _LINES and ("message" in line or "subtype" in line) for line in lines)


def read_session(value: Any) -> Layout:
    """A session: the messages of its lines, in their order.

    Lines without a message are bookkeeping. Several lines can form one reply. The lines of a subagent are a separate
    transcript; its prompt and its answer are those of the call that started it. Text that Claude Code added in the
    user's name is a system message.
    """
    items = value if is_array(value) else [value]
    lines = [*enumerate(checked_objects(items, "lines"))]
    own = [(number, line) for number, line in lines if not _of_subagent(line)]
    if not any("message" in line or line.get("type") == "result" for _, line in own):
        own = lines
    messages: list[tuple[int, Entries]] = []
    replies: dict[str, Entries] = {}
    output, cost, total, error = None, None, None, ""
    for number, line in own:
        kind = line.get("type")
        if kind == "result":
            said = line.get("structured_output")
            output, error = (line.get("result", output) if said is None else said), _failure(line)
            cost, total = read_cost(line.get("total_cost_usd")), read_usage(line.get("usage"))
        elif kind == "assistant" and (line.get("isApiErrorMessage") or line.get("error")):
            error = _text(line)
        elif kind in ("user", "assistant"):
            error = "" if kind == "assistant" else error
            message = _line_message(line, number)
            reply = replies.get(str(message.get("id"))) if message.get("id") else None
            if reply is not None and is_array(reply["content"]) and is_array(message.get("content")):
                reply["content"] += message["content"]
                reply["usage"] = message.get("usage") or reply.get("usage")
                continue
            if message.get("id"):
                replies[str(message["id"])] = message
            messages.append((number, message))
        elif "message" in line and kind not in ("progress", "queue-operation", "attachment"):
            raise PlacedError(
                f"a line of type {excerpt(kind)} is not understood; it has {shortlist(line)}", f"lines[{number}].type"
            )
    layout = Layout(usage=total, cost=cost, output=None if error else output, error=error)
    for number, message in messages:
        layout.add(message, f"lines[{number}].message")
    return layout


def _failure(result: Entries) -> str:
    """The reason why a run failed, from its last line: a failed API call, or a limit (`error_max_turns`)."""
    if result.get("is_error") is not True:
        return ""
    errors = [each for each in result.get("errors") or () if isinstance(each, str)]
    return "; ".join(errors) or str(result.get("result") or result.get("subtype") or "error")


def _text(line: Entries) -> str:
    """The text that Claude Code writes in the assistant's name after a failed API call."""
    content = entries_of(line.get("message")).get("content")
    texts = [part_text(part) for part in objects_in(content)] if is_array(content) else [content]
    return "\n".join(str(text) for text in texts if text) or "an API call failed"


def _of_subagent(line: Entries) -> bool:
    return bool(line.get("isSidechain") or line.get("parent_tool_use_id"))


def _line_message(line: Entries, number: int) -> Entries:
    entries = checked_entries(line.get("message"), f"lines[{number}].message")
    content = entries.get("content")
    role = entries.get("role") or line["type"]
    if role == "user" and (line.get("isMeta") or line.get("isCompactSummary")):
        role = "system"
    return {**entries, "role": role, "content": [*content] if is_array(content) else content}

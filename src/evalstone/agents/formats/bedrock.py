"""Bedrock's Converse API, and the log of its invocations."""

from __future__ import annotations

from typing import Any

from evalstone._core.names import normal
from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.parts import BLOCKS
from evalstone.agents.formats.values import Entries, checked_entries, entries_of, objects_in, read_usage


def is_converse(value: Any) -> bool:
    """Whether this is a request or a response of Bedrock's Converse API, or a record of both in its invocation log."""
    entries = entries_of(value)
    logged = entries_of(entries.get("input")).get("inputBodyJson") if "schemaType" in entries else None
    body = entries_of(logged) or entries
    answered = "stopReason" in entries and "message" in entries_of(entries.get("output"))
    asked = not body.keys().isdisjoint(("system", "inferenceConfig", "toolConfig", "additionalModelRequestFields"))
    return answered or ((asked or logged is not None) and any(map(is_message, objects_in(body.get("messages")))))


def is_message(item: Entries) -> bool:
    """Whether this is a message of Bedrock: its content blocks have no type, and a single entry that names it."""
    blocks = objects_in(item.get("content"))
    if item.get("role") not in ("user", "assistant") or not blocks or any("type" in block for block in blocks):
        return False
    return any(normal(key) in BLOCKS or key == "text" for block in blocks for key in block)


def read_converse(value: Any) -> Layout:
    """The system's blocks, the messages, the message of the response, the tokens."""
    record = entries_of(value)
    request, response, logged = record, record, "schemaType" in record
    if logged:
        request = entries_of(entries_of(record.get("input")).get("inputBodyJson"))
        response = entries_of(entries_of(record.get("output")).get("outputBodyJson"))
    at = "input.inputBodyJson." if logged else ""
    layout = Layout(usage=read_usage(response.get("usage")))
    if request.get("system"):
        layout.add({"role": "system", "content": request["system"]}, f"{at}system")
    layout.extend(request.get("messages"), f"{at}messages")
    if message := entries_of(response.get("output")).get("message"):
        place = "output.outputBodyJson.output.message" if logged else "output.message"
        layout.add(checked_entries(message, place), place)
    return layout

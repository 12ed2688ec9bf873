"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.parts import types_in
from evalstone.agents.formats.values import Entries, entries_of


def is_response(value: Any) -> bool:
    """Whether this is a message that Anthropic's API returned."""
    entries = entries_of(value)
    return entries.get("type") == "message" and "stop_reason" in entries and isinstance(entries.get("content"), list)


def read_response(value: Any) -> Layout:
    """The one message."""
    layout = Layout()
    layout.add({"role": "assistant", **entries_of(value)}, "")
    return layout


def is_message(item: Entries) -> bool:
    """Whether this is a message with blocks of Anthropic's."""
    own = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"}
    return not types_in(item).isdisjoint(own)

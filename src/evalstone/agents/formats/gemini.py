"""Gemini's API."""

from __future__ import annotations

from typing import Any

from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.values import (
    Entries,
    by_normal_name,
    checked_entries,
    entries_of,
    objects_in,
    only,
    read_usage,
)


def is_exchange(value: Any) -> bool:
    """Whether this is a request or a response of Gemini's API."""
    entries = by_normal_name(entries_of(value))
    candidates = map(by_normal_name, objects_in(entries.get("candidates")))
    answered = any(not {"content", "finishreason"}.isdisjoint(candidate) for candidate in candidates)
    blocked = "promptfeedback" in entries and not {"usagemetadata", "modelversion"}.isdisjoint(entries)
    return isinstance(entries.get("contents"), list) or answered or blocked


def read_exchange(value: Any) -> Layout:
    """The system instruction, the contents, the history of automatic calls, and the content of the only candidate."""
    entries = by_normal_name(entries_of(value))
    layout = Layout(usage=read_usage(entries.get("usagemetadata")))
    system = entries.get("systeminstruction")
    if system:
        inner = (
            {"parts": [{"text": system}]} if isinstance(system, str) else checked_entries(system, "system_instruction")
        )
        layout.add({**inner, "role": "system"}, "system_instruction")
    for key in ("contents", "automaticfunctioncallinghistory"):
        layout.extend(entries.get(key) or [], key)
    if entries.get("candidates"):
        candidate = by_normal_name(only(entries["candidates"], "candidates"))
        place = "candidates[0].content"
        content = checked_entries(candidate.get("content") or {"parts": []}, place)
        layout.add({"parts": [], **content, "role": "model"}, place)
        grounding = by_normal_name(entries_of(candidate.get("groundingmetadata")))
        for chunk in map(by_normal_name, objects_in(grounding.get("groundingchunks"))):
            text = entries_of(chunk.get("retrievedcontext")).get("text")
            if isinstance(text, str) and text.strip():
                layout.passages.append(text)
    return layout


def is_message(item: Entries) -> bool:
    """Whether this is a content of Gemini's, whose parts have no types."""
    parts = item.get("parts")
    return isinstance(parts, list) and "kind" not in item and all("type" not in part for part in objects_in(parts))

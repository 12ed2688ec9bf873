"""Which instrumentation wrote spans, by the names of their attributes."""

from __future__ import annotations

from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.mastra_rows import may_be_mastra_row
from evalstone.agents.formats.records import records_in
from evalstone.agents.formats.values import Entries, objects_in
from evalstone.errors import DataError


def is_openinference(value: Any) -> bool:
    """Whether these are spans with attributes of OpenInference."""
    return _has(value, ("llm.", "openinference.", "retrieval.documents"), {"llm", "openinference"})


def is_opentelemetry(value: Any) -> bool:
    """Whether these are spans or log records with attributes of OpenTelemetry's conventions for generative AI."""
    return _has(value, ("gen_ai.",), set())


def is_opentelemetry_message(item: Entries) -> bool:
    """Whether this is a message in the conventions' notation."""
    parts = objects_in(item.get("parts"))
    return any("content" in part or str(part.get("type")).startswith("tool_call") for part in parts)


def _has(value: Any, prefixes: tuple[str, ...], names: set[str]) -> bool:
    if any("role" in item for item in objects_in(value)):
        return False  # messages, which are looked at in less time
    if not _mentions(value, (*prefixes, *names)):
        return False
    try:
        records = [*records_in(value)]
    except DataError:
        return False
    return any(
        key.startswith(prefixes) or key in names for record in records for key in (record.name, *record.attributes)
    )


def _mentions(value: Any, words: tuple[str, ...]) -> bool:
    """Whether a text or a key in a value has one of these words, or a key is one of Mastra's rows, whose attributes are
    not in them. A search for them takes a fraction of the time of reading all records."""
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if is_object(item):
            if any(word in key for key in item for word in words) or may_be_mastra_row(item):
                return True
            pending += item.values()
        elif is_array(item):
            pending += item
        elif isinstance(item, str) and any(word in item for word in words):
            return True
    return False

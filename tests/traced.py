"""Traces for tests, in OTLP's JSON."""

from __future__ import annotations

import json
from typing import Any, cast

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BEGAN = 1_795_000_000


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as a list of keys and values."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in cast("list[Any]", value)]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(cast("dict[str, Any]", value))}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue" if isinstance(value, float) else "stringValue": value}


def number(name: str | int) -> str:
    """A span id."""
    return f"{name:016x}" if isinstance(name, int) else name


def span(
    id: int,
    name: str,
    values: dict[str, Any],
    *,
    parent: int = 0,
    start: float = 0,
    end: float | None = None,
    trace: str = TRACE,
    **more: Any,
) -> dict[str, Any]:
    """A span that began so many seconds after a fixed time."""
    made = {
        "traceId": trace,
        "spanId": number(id),
        "name": name,
        "startTimeUnixNano": str(int((BEGAN + start) * 1e9)),
        "endTimeUnixNano": str(int((BEGAN + (start + 1 if end is None else end)) * 1e9)),
        "attributes": attributes(values),
        **more,
    }
    return {**made, "parentSpanId": number(parent)} if parent else made


def log(id: str | int, body: Any, values: dict[str, Any], *, time: float = 0, name: str = "") -> dict[str, Any]:
    """A log record of a span."""
    made = {
        "traceId": TRACE,
        "spanId": number(id),
        "timeUnixNano": str(int((BEGAN + time) * 1e9)),
        "attributes": attributes(values),
        **({} if body is None else {"body": _value(body)}),
    }
    return {**made, "eventName": name} if name else made


def spans(*made: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """An export request."""
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(made)}]}]}


def logs(*made: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    """An export request of logs."""
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": list(made)}]}]}


def message(role: str, *parts: Any) -> dict[str, Any]:
    """A message of the current conventions, of texts and parts."""
    made = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": made}


def chat(given: list[Any], answer: Any, **more: Any) -> dict[str, Any]:
    """The attributes of a model call."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.1",
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps([answer if isinstance(answer, dict) else message("assistant", answer)]),
        **more,
    }

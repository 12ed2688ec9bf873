"""Spans and log records as exporters write them: OTLP's JSON, the JSON of the SDKs, rows of data frames.

Nothing here knows what the attributes mean.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.mastra_rows import is_mastra_row, span_of_row
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    by_normal_name,
    checked_list,
    entries_of,
    first,
    normal,
    objects_in,
)
from evalstone.errors import DataError

_CONTAINERS = ("resourcespans", "scopespans", "spans", "resourcelogs", "scopelogs", "logrecords")
_LOG_CONTAINERS = ("scopelogs", "logrecords")
_LEVELS = 8
"""How many lists and objects may be around a span, and itself: one more than in OTLP."""
_STARTS = ("starttimeunixnano", "starttime", "timeunixnano", "timestamp", "startedat", "time", "observedtimeunixnano")
_ENDS = ("endtimeunixnano", "endtime", "endedat")
_PARENTS = ("parentspanid", "parentid")
_HEX = re.compile(r"(?:0x)?([0-9a-f]{16}(?:[0-9a-f]{16})?)", re.IGNORECASE)
_ENCODED = {24: 16, 12: 8}
_LAST_SECOND = 253_402_300_799
"""Of the year 9999: a fraction of a second more may be rounded to the next year, which no date has."""
_TRACEBACK = "Traceback (most recent call last)"
_FAILED = ("2", "ERROR", "STATUS_CODE_ERROR")


@dataclass
class TelemetryRecord:
    """A span, a log record, or the event of a span."""

    place: str
    name: str
    attributes: Entries
    source: Entries = field(default_factory=dict[str, Any])
    """The span or log record; of an event, its span."""
    resource: Entries = field(default_factory=dict[str, Any])
    kind: Literal["span", "log", "event"] = "span"
    trace: str = ""
    """In hexadecimal digits if it is an ID of OpenTelemetry; "" if unknown, like the others."""
    span: str = ""
    parent: str = ""
    start: float | None = None
    """Seconds since 1970."""
    end: float | None = None

    @property
    def is_root(self) -> bool:
        """Whether its span has no parent."""
        return not self.parent

    @property
    def error(self) -> str | None:
        """The error of its span; None if the span didn't fail."""
        status: Any = self.source.get("status")
        entries = entries_of(status)
        code = first(entries, ("status_code", "statusCode", "code")) if entries else status
        code = self.source.get("status_code") if code is None else code
        if str(code).rpartition(".")[2].upper() not in _FAILED and "error.type" not in self.attributes:
            return None
        said = str(first(entries, ("message", "description")) or self.source.get("status_message") or "")
        said = said.partition(_TRACEBACK)[0].strip() or said  # OpenInference's goes on with the code that was run
        return said or self._raised or str(self.attributes.get("error.type") or "error")

    @property
    def _raised(self) -> str:
        """The message of the exception that its span recorded last."""
        raised = [event for event in objects_in(self.source.get("events")) if event.get("name") == "exception"]
        attributes = entries_of(decoded(raised[-1].get("attributes"))) if raised else {}
        return str(first(attributes, ("exception.message", "exception.type")) or "")


def is_telemetry(row: Any) -> bool:
    """Whether an object is an export request of OTLP's, a span or log record with its ids, or a trace of Mastra's."""
    entries = by_normal_name(entries_of(row))
    if any(isinstance(entries.get(name), list) for name in ("resourcespans", "resourcelogs")):
        return True
    if is_mastra_row(entries) or (
        "traceid" in entries and any(map(is_telemetry, objects_in(entries.get("spans"))[:1]))
    ):
        return True
    context = by_normal_name(entries_of(entries.get("context")))
    ids = all(first(entries, (name, f"context.{name}")) or context.get(name) for name in ("traceid", "spanid"))
    starts = any(name in entries for name in (*_STARTS, *_PARENTS))
    return ids and starts and any(key == "attributes" or key.startswith("attributes.") for key in entries)


def records_in(
    value: Any, place: str = "", resource: Entries | None = None, *, log: bool = False
) -> Iterator[TelemetryRecord]:
    """The records in an export request, in a span or log record, or in a list of these.

    Raises PlacedError for what is no object.
    """
    if is_array(value):
        for number, item in enumerate(value):
            yield from records_in(item, f"{place}[{number}]", resource, log=log)
        return
    if not is_object(value):
        raise PlacedError(f"a {'log record' if log else 'span'} must be an object, not {excerpt(value)}", place)
    item = value
    if containers := _containers(item):
        described = entries_of(item.get("resource"))
        attributes = entries_of(decoded(described.get("attributes"))) or resource
        for key in containers:
            of_logs = normal(key) in _LOG_CONTAINERS
            yield from records_in(item[key], f"{place}.{key}" if place else key, attributes, log=of_logs)
        return
    by_name = by_normal_name(item)
    if is_mastra_row(by_name):
        item = span_of_row(item)
        by_name = by_normal_name(item)
    attributes = (decoded(item["attributes"]) or {}) if "attributes" in item else _inline_attributes(item)
    if not is_object(attributes):
        raise PlacedError("attributes must be an object or a list of keys and values", f"{place}.attributes")
    attributes = {key: value for key, value in attributes.items() if value is not None}
    body = decoded(item.get("body"))
    if is_object(body):
        attributes = {**body, **attributes}
    elif isinstance(body, str):
        attributes = {"body": body, **attributes}
    if resource is None:
        described = item.get("resource")
        resource = entries_of(decoded(entries_of(described).get("attributes"))) or entries_of(described)
    named = first(item, ("event_name", "eventName")) or attributes.get("event.name") or item.get("name")
    context = by_normal_name(entries_of(item.get("context")))
    known = TelemetryRecord(
        place,
        str(named or ""),
        attributes,
        item,
        resource,
        kind="log" if log or "body" in item else "span",
        trace=identifier(first(by_name, ("traceid", "context.traceid")) or context.get("traceid")),
        span=identifier(first(by_name, ("spanid", "context.spanid")) or context.get("spanid")),
        parent=identifier(first(by_name, _PARENTS)),
        start=seconds(first(by_name, _STARTS)),
        end=seconds(first(by_name, _ENDS)),
    )
    yield known
    for number, event in enumerate(objects_in(item.get("events"))):
        yield TelemetryRecord(
            f"{place}.events[{number}]",
            str(event.get("name")),
            entries_of(decoded(event.get("attributes"))),
            item,
            resource,
            kind="event",
            trace=known.trace,
            span=known.span,
            parent=known.parent,
            start=known.start,
        )


def _containers(item: Entries) -> list[str]:
    return [key for key in item if normal(key) in _CONTAINERS and is_array(item[key])]


def by_trace(value: Any, records: Iterable[TelemetryRecord]) -> dict[str, Any]:
    """What an export request says of each trace, in the form of the request.

    value: The request.
    records: Its records, in their order.

    Raises DataError where lists of spans are nested more deeply than in OTLP: what is around them is repeated.
    """
    return _by_trace(value, (record.trace for record in records if record.kind != "event"), _LEVELS)


def _by_trace(value: Any, traces: Iterator[str], levels: int) -> dict[str, Any]:
    if not levels:
        raise DataError("nested too deeply")
    parts: dict[str, Any] = {}
    if is_array(value):
        for item in value:
            for trace, part in _by_trace(item, traces, levels - 1).items():
                parts.setdefault(trace, []).append(part)
        return parts
    containers = _containers(value)
    if not containers:
        return {next(traces): value}
    around = {key: inner for key, inner in value.items() if key not in containers}
    for key in containers:
        for trace, part in _by_trace(value[key], traces, levels - 1).items():
            parts.setdefault(trace, dict(around))[key] = part
    return parts


def _inline_attributes(item: Entries) -> Entries:
    """Attributes beside the span's own entries, as in data frames, or alone."""
    prefix = "attributes."
    return {key.removeprefix(prefix): value for key, value in item.items()}


def decoded(value: Any) -> Any:
    """A value of OTLP's JSON, `{"stringValue": …}` or a list of keys and values, as the value itself."""
    if is_array(value):
        items = objects_in(value)
        if items and len(items) == len(value) and all({"key"} <= item.keys() <= {"key", "value"} for item in items):
            return {str(item["key"]): _any_value(item.get("value")) for item in items}
        return [decoded(item) for item in value]
    if not is_object(value) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "intValue":
        return int(inner) if re.fullmatch(r"-?\d{1,20}", str(inner)) else inner
    if kind == "arrayValue":
        return [_any_value(item) for item in checked_list(entries_of(inner).get("values"), "")]
    if kind == "kvlistValue":
        return decoded(entries_of(inner).get("values") or []) or {}
    return inner if kind in ("stringValue", "doubleValue", "boolValue", "bytesValue") else value


def _any_value(value: Any) -> Any:
    """OTLP's AnyValue; null if none of its fields is set."""
    return None if value == {} else decoded(value)


def identifier(value: Any) -> str:
    """An ID in hexadecimal digits, converted from the base64 of protobuf's own JSON; any other text unchanged."""
    if value is None or isinstance(value, bool | float | list | dict):
        return ""
    text = str(value)
    if match := _HEX.fullmatch(text.replace("-", "") if len(text) == 36 else text):
        digits = match[1].lower()
        return digits if digits.strip("0") else ""
    if (size := _ENCODED.get(len(text))) is not None:
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            return text
        if len(data) == size:
            return data.hex() if any(data) else ""
    return text[:200]


def seconds(value: Any) -> float | None:
    """A time from 1970 until the year 9999 as seconds since 1970: a number of seconds, or of milli-, micro- or
    nanoseconds; ISO 8601; JavaScript's pair of seconds and nanoseconds. None for anything else."""
    try:
        number = _seconds(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if number is not None and 0 < number < _LAST_SECOND else None


def _seconds(value: Any) -> float | None:
    if is_array(value):
        whole, nanoseconds = value
        return float(whole) + float(nanoseconds) / 1e9
    if isinstance(value, str) and not value.isdecimal() and not re.fullmatch(r"[\d.]{1,30}", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if value is None or isinstance(value, bool | Mapping):
        return None
    number = float(value)
    return next((number / scale for scale, least in ((1e9, 1e17), (1e6, 1e14), (1e3, 1e11)) if number >= least), number)

"""OTLP in protobuf: export requests as OTLP's JSON, their limits, and the replies."""

from __future__ import annotations

import base64
import re
from typing import Any, Literal, TypeAlias

from evalstone.agents.formats.values import Entries, objects_in
from evalstone.errors import DataError, MissingDependency

Signal: TypeAlias = Literal["traces", "logs"]

MOST_MESSAGES = 600_000
_TEXT_OR_OBJECT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*(?:"|\\?\Z)|\{', re.DOTALL)
"""Matches unterminated strings too: otherwise, the search would retry at each quotation mark inside one."""
_IDS = ("traceId", "spanId", "parentSpanId")


def check_installed() -> None:
    """Raise MissingDependency without opentelemetry-proto."""
    _messages("traces")


def request_data(body: bytes, signal: Signal) -> Entries:
    """An export request in protobuf as OTLP's JSON, whose ids are hexadecimal.

    Raises:
        DataError: It is not an export request.
        MissingDependency: Without opentelemetry-proto.
    """
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - optional
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - optional

    message = _messages(signal)[0]()
    try:
        message.ParseFromString(body)
        if len(body) > 2 * MOST_MESSAGES:  # each takes at least two bytes
            _check_size(message)
        data = MessageToDict(message, use_integers_for_enums=True)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError("not an export request in protobuf: ", error) from None
    for resource in objects_in(data.get("resourceSpans", data.get("resourceLogs"))):
        for scope in objects_in(resource.get("scopeSpans", resource.get("scopeLogs"))):
            for entry in objects_in(scope.get("spans", scope.get("logRecords"))):
                for item in (entry, *objects_in(entry.get("links"))):
                    item |= {key: base64.b64decode(item[key]).hex() for key in _IDS if key in item}
    return data


def _check_size(message: Any) -> None:
    """Raise DataError for too many nested messages: an empty one takes two bytes, and a thousand times that as data."""
    waiting, left = [message], MOST_MESSAGES
    while waiting:
        for field, value in waiting.pop().ListFields():
            if field.message_type is not None:
                inside = value if hasattr(value, "__len__") else (value,)
                left -= len(inside)
                if left < 0:
                    raise _too_many()
                waiting.extend(inside)


def check_objects(text: str) -> None:
    """Raise DataError for too many objects in a JSON request, before it is parsed."""
    if text.count("{") <= MOST_MESSAGES:
        return
    left = MOST_MESSAGES + 1  # the request itself
    for token in _TEXT_OR_OBJECT.finditer(text):
        left -= token[0] == "{"
        if left < 0:
            raise _too_many()


def _too_many() -> DataError:
    return DataError(f"the request has more than {MOST_MESSAGES:,} spans, attributes and values")


def reply(signal: Signal, rejected: int, problem: str) -> bytes:
    """The reply to an export request that was stored, except for what was rejected."""
    message = _messages(signal)[1]()
    if rejected:
        setattr(message.partial_success, rejected_name(signal, snake=True), rejected)
        message.partial_success.error_message = problem
    return message.SerializeToString()


def rejected_name(signal: Signal, *, snake: bool = False) -> str:
    """The name of the entry with the number of rejected spans or log records."""
    if snake:
        return "rejected_spans" if signal == "traces" else "rejected_log_records"
    return "rejectedSpans" if signal == "traces" else "rejectedLogRecords"


def status(code: int, problem: str) -> bytes:
    """The reply to a failed request: a `google.rpc.Status`."""
    try:
        from google.rpc.status_pb2 import Status  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency("googleapis-common-protos", "otel") from None
    reply: Any = Status(code=code, message=problem)
    return reply.SerializeToString()


def _messages(signal: Signal) -> tuple[Any, Any]:
    """The classes of a request and its reply."""
    try:
        if signal == "traces":
            from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service  # noqa: PLC0415 - optional

            return service.ExportTraceServiceRequest, service.ExportTraceServiceResponse
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs  # noqa: PLC0415 - optional

        return logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse
    except ImportError:
        raise MissingDependency("opentelemetry-proto", "otel") from None

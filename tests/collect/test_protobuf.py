"""Export requests in protobuf: the same as in JSON."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from evalstone.collect import protobuf
from evalstone.collect.protobuf import Signal
from evalstone.errors import DataError
from tests.collect.test_server import encoded
from tests.traced import chat, log, logs, message, number, span, spans

LINKS = [{"traceId": "c" * 32, "spanId": number(7)}]
SPAN = span(2, "chat", chat([message("user", "q")], "a"), parent=1, kind=3, status={"code": 2}, links=LINKS)


@pytest.mark.parametrize(
    ("signal", "request_"),
    [("traces", spans(SPAN, span(1, "root", {"k": "v"}))), ("logs", logs(log(1, "text", {"n": 5})))],
)
def test_a_request_in_protobuf_is_the_request_in_json(signal: Signal, request_: dict[str, Any]) -> None:
    assert protobuf.request_data(encoded(request_, signal), signal) == request_


def test_so_many_messages_may_be_in_a_request_and_not_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MOST_MESSAGES", 10)
    assert len(protobuf.request_data(b"\x0a\x00" * 10, "traces")["resourceSpans"]) == 10
    with pytest.raises(DataError, match="more than 10 spans"):
        protobuf.request_data(b"\x0a\x00" * 11, "traces")


def test_json_has_the_same_limit_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    body, text = encoded(spans(SPAN)), json.dumps(spans(SPAN))
    accepted = {"protobuf": list[int](), "json": list[int]()}
    for most in range(200):
        monkeypatch.setattr(protobuf, "MOST_MESSAGES", most)
        with contextlib.suppress(DataError):
            protobuf.request_data(body, "traces")
            accepted["protobuf"].append(most)
        with contextlib.suppress(DataError):
            protobuf.check_objects(text)
            accepted["json"].append(most)
    assert accepted["protobuf"][0] > 10
    assert accepted["json"] == accepted["protobuf"]


def test_braces_in_texts_are_no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MOST_MESSAGES", 1)
    protobuf.check_objects(json.dumps({"resourceSpans": [{"schemaUrl": '{{{\\"{'}]}))
    with pytest.raises(DataError, match="more than 1 spans"):
        protobuf.check_objects('{"resourceSpans": [{}, {}]}')


def test_what_was_rejected_is_in_the_reply() -> None:
    traces: Any = ExportTraceServiceResponse.FromString(protobuf.reply("traces", 2, "2 without ids"))
    assert (traces.partial_success.rejected_spans, traces.partial_success.error_message) == (2, "2 without ids")
    of_logs: Any = ExportLogsServiceResponse.FromString(protobuf.reply("logs", 3, "3 without ids"))
    assert (of_logs.partial_success.rejected_log_records, of_logs.partial_success.error_message) == (3, "3 without ids")
    assert protobuf.reply("traces", 0, "") == b""
    assert [protobuf.rejected_name(signal) for signal in ("traces", "logs")] == ["rejectedSpans", "rejectedLogRecords"]


def test_a_failure_is_a_status_with_its_reason() -> None:
    status: Any = Status.FromString(protobuf.status(3, "no list"))
    assert (status.code, status.message) == (3, "no list")

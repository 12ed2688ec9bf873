"""The receiver of OTLP, asked over loopback."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from google.protobuf.json_format import ParseDict
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalstone.agents.traces import samples_of
from evalstone.collect import bodies, protobuf, scoring, server, spool
from evalstone.collect.scoring import TraceScoring
from evalstone.collect.server import JSON, PROTOBUF, Receiver
from evalstone.collect.spool import Spool, TracePart
from evalstone.datasets import load
from evalstone.errors import ConfigError, DataError, MissingDependency
from evalstone.ledger.base import sample_hash
from evalstone.types import Sample
from tests.fakes import awaited
from tests.traced import TRACE, chat, log, logs, message, number, span, spans

ONE = spans(span(1, "chat", chat([message("user", "q")], "a")))


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something, at most 10 seconds."""
    for _ in range(1000):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def receiver_of(path: Path, take: Callable[[Sample], object] | None = None, quiet: float = 60) -> Receiver:
    taken = defaultdict[str, set[str]](set)

    async def submit(sample: Sample, trace: str) -> None:
        assert take is not None
        take(sample)
        taken[trace].add(sample_hash(sample))

    async def known(traces: Collection[str]) -> dict[str, set[str]]:
        return {trace: taken[trace] for trace in traces if trace in taken}

    spool = Spool(path, scored=take is not None)
    return Receiver(spool, None if take is None else TraceScoring(spool, submit, quiet=quiet, scored=known))


def scored(receiver: Receiver) -> TraceScoring:
    assert receiver.scoring is not None
    return receiver.scoring


@asynccontextmanager
async def running(receiver: Receiver) -> AsyncGenerator[tuple[Receiver, str, aiohttp.ClientSession]]:
    """A receiver with its URL and a client."""
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        try:
            yield receiver, url, session
        finally:
            await receiver.stop()


def receiving(
    path: Path, take: Callable[[Sample], object] | None = None, quiet: float = 60
) -> AbstractAsyncContextManager[tuple[Receiver, str, aiohttp.ClientSession]]:
    return running(receiver_of(path, take, quiet))


def encoded(request: dict[str, Any], signal: str = "traces") -> bytes:
    """An export request in protobuf."""

    made: Any = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    data = json.loads(json.dumps(request))
    for entry in _entries(data):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in entry:
                entry[key] = _base64(entry[key])
    return ParseDict(data, made).SerializeToString()


def _entries(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, list):
        return [found for item in cast("list[Any]", data) for found in _entries(item)]
    if not isinstance(data, dict):
        return []
    entries = cast("dict[str, Any]", data)
    return [entries, *(found for item in entries.values() for found in _entries(item))]


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@awaited
async def test_what_arrives_is_in_the_file_before_it_is_acknowledged(
    tmp_path: Path, content_type: str, compressed: bool
) -> None:
    body = json.dumps(ONE).encode() if content_type == JSON else encoded(ONE)
    headers = {"Content-Type": content_type, **({"Content-Encoding": "gzip"} if compressed else {})}
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        data = gzip.compress(body) if compressed else body
        async with session.post(f"{url}/v1/traces", data=data, headers=headers) as reply:
            assert (reply.status, reply.content_type) == (200, content_type)
            (sample,) = load(tmp_path / "t.jsonl").samples
            assert await reply.read() == (b"{}" if content_type == JSON else b"")
        assert (receiver.requests, receiver.spans) == (1, 1)
    assert (sample.input, sample.output) == ("q", "a")
    assert sample.metadata["trace"]["trace_id"] == TRACE
    assert sample.metadata["trace"]["span_id"] == number(1)
    assert sample.metadata["target"]["seconds"] == 1


@awaited
async def test_logs_are_received_in_both_forms(tmp_path: Path) -> None:
    record = log(1, None, chat([message("user", "q")], "a"), name="gen_ai.client.inference.operation.details")
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        for content_type, body in (
            (JSON, json.dumps(logs(record)).encode()),
            (PROTOBUF, encoded(logs(record), "logs")),
        ):
            async with session.post(f"{url}/v1/logs", data=body, headers={"Content-Type": content_type}) as reply:
                assert reply.status == 200
        assert receiver.logs == 2
    (sample,) = load(tmp_path / "t.jsonl").samples
    assert sample.output == "a"


@pytest.mark.parametrize(
    ("path", "body", "content_type", "status", "problem"),
    [
        ("traces", b"{", JSON, 400, "not JSON"),
        ("traces", b"[]", JSON, 400, "must be an object"),
        ("traces", b"\xff", JSON, 400, "not UTF-8"),
        ("traces", b'{"resourceLogs": []}', JSON, 400, "must have a list under resourceSpans"),
        ("logs", b'{"resourceSpans": []}', JSON, 400, "must have a list under resourceLogs"),
        ("traces", b'{"resourceSpans": {}}', JSON, 400, "must have a list"),
        ("traces", b"[" * 100_000, JSON, 400, "nested too deeply"),
        ("traces", b'{"resourceSpans": [{"scopeSpans": [{"spans": [5]}]}]}', JSON, 400, "a span must be an object"),
        ("traces", b'{"resourceSpans": [5]}', JSON, 400, "resourceSpans[0]: must be an object, not int: 5"),
        (
            "traces",
            b'{"resourceSpans": [{}, {"scopeSpans": "x"}]}',
            JSON,
            400,
            "resourceSpans[1].scopeSpans: must be a list, not str: 'x'",
        ),
        (
            "traces",
            b'{"resourceSpans": [{"scopeSpans": [{"spans": {}}]}]}',
            JSON,
            400,
            "resourceSpans[0].scopeSpans[0].spans: must be a list, not dict: {}",
        ),
        (
            "logs",
            b'{"resourceLogs": [{"scopeLogs": [{"logRecords": "x"}]}]}',
            JSON,
            400,
            "resourceLogs[0].scopeLogs[0].logRecords: must be a list, not str: 'x'",
        ),
        ("logs", b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [5]}]}]}', JSON, 400, "a log record must be"),
        ("traces", b"\xff\xff\xff", PROTOBUF, 400, "not an export request in protobuf"),
        ("traces", b'{"resourceSpans": [{"x": 1e999}]}', JSON, 400, "a number without a form as JSON"),
        ("traces", b"{}", "text/plain", 415, "Content-Type must be"),
        ("metrics", b"{}", JSON, 404, ""),
    ],
)
@awaited
async def test_what_is_no_export_request_is_refused(
    tmp_path: Path, path: str, body: bytes, content_type: str, status: int, problem: str
) -> None:
    async with (
        receiving(tmp_path / "t.jsonl") as (_, url, session),
        session.post(f"{url}/v1/{path}", data=body, headers={"Content-Type": content_type}) as reply,
    ):
        assert reply.status == status
        assert "Retry-After" not in reply.headers
        said = await reply.read()
    assert problem.encode() in said
    if content_type == PROTOBUF:
        assert reply.content_type == PROTOBUF
        parsed: Any = Status.FromString(said)
        assert parsed.code == 3
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_what_is_longer_than_a_line_may_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = encoded(spans(span(1, "chat", {"text": "\x01" * 300})))  # six characters each in JSON
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.002")
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        for content_type, data, status in ((JSON, b" " * 2001, 413), (PROTOBUF, body, 400)):
            headers = {"Content-Type": content_type}
            async with session.post(f"{url}/v1/traces", data=data, headers=headers) as reply:
                assert reply.status == status
                assert b"longer than 2,000 bytes" in await reply.read()
        assert receiver.refused == 2
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_a_small_request_that_unpacks_to_a_large_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "1")
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    bomb = gzip.compress(b" " * 5_000_000)
    assert len(bomb) < 30_000
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        async with session.post(f"{url}/v1/traces", data=bomb, headers=headers) as reply:
            assert reply.status == 413
        async with session.post(f"{url}/v1/traces", data=b"no gzip", headers=headers) as reply:
            assert reply.status == 400
        half = gzip.compress(json.dumps(ONE).encode())[:-9]
        async with session.post(f"{url}/v1/traces", data=half, headers=headers) as reply:
            assert reply.status == 400
            assert "gzip is not complete" in (await reply.json())["message"]
        other = {"Content-Type": JSON, "Content-Encoding": "br"}
        async with session.post(f"{url}/v1/traces", data=b"{}", headers=other) as reply:
            assert reply.status == 415
        monkeypatch.setattr(protobuf, "MOST_MESSAGES", 1000)
        many = b"\x0a\x00" * 1001  # empty resourceSpans, which take far more memory as data
        async with session.post(f"{url}/v1/traces", data=many, headers={"Content-Type": PROTOBUF}) as reply:
            assert reply.status == 400
        many = json.dumps({"resourceSpans": [{}] * 1001}).encode()
        async with session.post(f"{url}/v1/traces", data=many, headers={"Content-Type": JSON}) as reply:
            assert reply.status == 400
            assert "more than 1,000 spans" in (await reply.json())["message"]
        assert receiver.requests == 0
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_spans_without_ids_are_left_out_and_counted(tmp_path: Path) -> None:
    request = spans(span(1, "chat", chat([message("user", "q")], "a")), {**span(2, "x", {}), "spanId": "0" * 16})
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        async with session.post(f"{url}/v1/traces", json=request) as reply:
            told = await reply.json()
        async with session.post(f"{url}/v1/traces", data=encoded(request), headers={"Content-Type": PROTOBUF}) as reply:
            parsed = protobuf._messages("traces")[1].FromString(await reply.read())  # pyright: ignore[reportPrivateUsage]
    problem = "resourceSpans[0].scopeSpans[0].spans[1]: a span must have a spanId"
    assert told == {"partialSuccess": {"rejectedSpans": "1", "errorMessage": problem}}
    assert parsed.partial_success.rejected_spans == 1
    assert parsed.partial_success.error_message == problem
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 2
    assert number(1) in (tmp_path / "t.jsonl").read_text()
    assert "0" * 16 not in (tmp_path / "t.jsonl").read_text().replace(number(1), "")


def deep(levels: int) -> Any:
    return {"kvlistValue": {"values": [{"key": "k", "value": deep(levels - 1)}]}} if levels else None


MALFORMED: list[Any] = [
    5,
    {**span(2, "x", {}), "attributes": "z"},
    {**span(2, "x", {}), "attributes": [{"value": {"stringValue": "z"}}]},
    {**span(2, "x", {}), "attributes": [{"key": "deep", "value": deep(server.MOST_NESTED // 4)}]},
    {**span(2, "x", {}), "attributes": [{"key": "k", "value": {"doubleValue": 1e999}}]},
]


@pytest.mark.parametrize("bad", MALFORMED)
@pytest.mark.parametrize("signal", ["traces", "logs"])
@awaited
async def test_what_is_malformed_costs_no_other_span_of_its_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, signal: str, bad: Any
) -> None:
    details = log(1, None, chat([message("user", "q")], "a"), name="gen_ai.client.inference.operation.details")
    request = logs(details, bad) if signal == "logs" else spans(span(1, "chat", chat([message("user", "q")], "a")), bad)
    body = json.dumps(request).replace("Infinity", "1e999")
    partial: dict[str, str] = {}
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        for _ in range(2):
            headers = {"Content-Type": JSON}
            async with session.post(f"{url}/v1/{signal}", data=body, headers=headers) as reply:
                assert reply.status == 200
                partial = (await reply.json())["partialSuccess"]
        assert (receiver.spans + receiver.logs, receiver.refused, receiver.rejected) == (2, 0, 2)
    assert partial["rejectedSpans" if signal == "traces" else "rejectedLogRecords"] == "1"
    place = "spans[1]" if signal == "traces" else "logRecords[1]"
    assert place in partial["errorMessage"]
    (record,) = caplog.records
    assert f"of a request of {signal}, 1 rejected: " in record.message
    assert place in record.message
    (sample,) = load(tmp_path / "t.jsonl").samples
    assert sample.output == "a"


@awaited
async def test_why_a_request_is_refused_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        for body in (b"{", b"{", b"[]"):
            async with session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": JSON}) as reply:
                assert reply.status == 400
    assert [record.message.partition(":")[0] for record in caplog.records] == ["a request was refused"] * 2


@awaited
async def test_clients_of_grpc_are_told_the_protocol_to_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        host, _, port = url.removeprefix("http://").rpartition(":")
        for _ in range(2):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            assert b" 400 " in await reader.readline()
            writer.close()
        (record,) = caplog.records
        assert "gRPC" in record.message
        assert "PROTOCOL=http/protobuf" in record.message
        caplog.clear()
        headers = {"Content-Type": "application/grpc+proto"}
        async with session.post(f"{url}/v1/traces", data=b"", headers=headers) as reply:
            assert reply.status == 415
            assert "PROTOCOL=http/protobuf" in await reply.text()


@awaited
async def test_unknown_entries_and_empty_requests_are_accepted(tmp_path: Path) -> None:
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        requests: list[dict[str, Any]] = [{}, {"resourceSpans": []}, {**ONE, "fromTheFuture": 1}]
        for request in requests:
            async with session.post(f"{url}/v1/traces", json=request) as reply:
                assert reply.status == 200
    (line,) = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(line) == ONE


@awaited
async def test_half_a_character_does_not_cost_the_request(tmp_path: Path) -> None:
    request = spans(span(1, "chat", chat([message("user", "q")], "cut \ud83d")))
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        body = json.dumps(request).encode()
        async with session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": JSON}) as reply:
            assert reply.status == 200
    (sample,) = load(tmp_path / "t.jsonl").samples
    assert sample.output is not None
    assert sample.output.startswith("cut ")


@awaited
async def test_when_the_disk_cannot_follow_the_exporter_is_told_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "WAITING_BYTES", 1000)
    release = asyncio.Event()
    written = Spool._write  # pyright: ignore[reportPrivateUsage]
    loop = asyncio.get_running_loop()

    def slow(self: Spool, parts: Sequence[TracePart]) -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
        written(self, parts)

    monkeypatch.setattr(Spool, "_write", slow)

    async def post(session: aiohttp.ClientSession, url: str) -> tuple[int, str | None]:
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            return reply.status, reply.headers.get("Retry-After")

    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        posted = [asyncio.create_task(post(session, url)) for _ in range(6)]
        await until(lambda: receiver.refused > 0)
        release.set()
        replies = await asyncio.gather(*posted)
    stored = len((tmp_path / "t.jsonl").read_text().splitlines())
    assert replies.count((200, None)) == stored
    assert replies.count((503, "1")) == 6 - stored
    assert 0 < stored < 6


@awaited
async def test_a_full_disk_is_no_acknowledgment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    large = spans(span(1, "chat", {"text": "x" * 100_000}))
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        database = receiver.spool._connection  # pyright: ignore[reportPrivateUsage]
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            assert reply.status == 200
        before = (tmp_path / "t.jsonl").read_bytes()
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages}").fetchone()
        for _ in range(2):
            async with session.post(f"{url}/v1/traces", json=large) as reply:
                assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
                assert "full" in await reply.text()
        assert (tmp_path / "t.jsonl").read_bytes() == before
        assert len(caplog.messages) == 1
        database.execute("PRAGMA max_page_count = 1000000").fetchone()
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            assert reply.status == 200
    assert (tmp_path / "t.jsonl").read_bytes() == before * 2


@awaited
async def test_a_request_is_stored_by_trace_with_what_is_around_its_spans(tmp_path: Path) -> None:
    first, second = (span(number, "chat", {}, trace=str(number) * 32) for number in (1, 2))
    for body, content_type in ((spans(first, second), JSON), (spans(second, first), PROTOBUF)):
        path = tmp_path / f"{content_type[-4:]}.jsonl"
        async with receiving(path) as (receiver, url, session):
            data = json.dumps(body).encode() if content_type == JSON else encoded(body)
            headers = {"Content-Type": content_type}
            async with session.post(f"{url}/v1/traces", data=data, headers=headers) as reply:
                assert reply.status == 200
            assert (receiver.requests, receiver.spans) == (1, 2)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        alone = [line["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in lines]
        assert sorted(each["traceId"][0] for (each,) in alone) == ["1", "2"]
        services = {line["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"] for line in lines}
        assert services == {"shop"}


@awaited
async def test_lists_of_spans_that_are_nested_as_in_no_request_are_refused(tmp_path: Path) -> None:
    request: Any = spans(span(1, "x", {}), span(2, "x", {}, trace="a" * 32))
    for _ in range(3):
        request = {"resourceSpans": [request]}
    async with (
        receiving(tmp_path / "t.jsonl") as (_, url, session),
        session.post(f"{url}/v1/traces", json=request) as reply,
    ):
        assert (reply.status, (await reply.json())["message"]) == (400, "nested too deeply")


@awaited
async def test_half_a_character_in_the_id_of_a_trace_costs_no_other_request(tmp_path: Path) -> None:
    found: list[Sample] = []
    odd = {**span(1, "chat", chat([message("user", "odd")], "a")), "traceId": "cut \ud83d\x00"}
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.01) as (receiver, url, session):
        for body in (json.dumps(spans(odd)).encode(), json.dumps(ONE).encode()):
            async with session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": JSON}) as reply:
                assert reply.status == 200
        await until(lambda: not receiver.spool.waiting)
    assert sorted(str(sample.input) for sample in found) == ["odd", "q"]


@awaited
async def test_a_request_that_would_be_much_longer_by_trace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.1")
    request = spans(*(span(1, "x", {}, trace=f"{number + 1:032x}") for number in range(100)), service="s" * 10_000)
    async with (
        receiving(tmp_path / "t.jsonl") as (_, url, session),
        session.post(f"{url}/v1/traces", json=request) as reply,
    ):
        assert reply.status == 400
        assert "longer than 100,000 bytes" in await reply.text()
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_requests_are_stored_and_scored_though_no_other_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = list[Sample]()
    async with receiving(tmp_path / "t.jsonl", taken.append, quiet=0.01) as (receiver, url, session):
        monkeypatch.setattr(threading.Thread, "start", no_thread)
        for body in (gzip.compress(json.dumps(ONE).encode()), gzip.compress(b"{")):
            headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
            async with session.post(f"{url}/v1/traces", data=body, headers=headers) as reply:
                assert reply.status == (200 if len(body) > 100 else 400)
        await until(lambda: bool(taken))
        assert receiver.scoring_error == ""
    assert len(load(tmp_path / "t.jsonl").samples) == len(taken) == 1


@awaited
async def test_without_any_thread_nothing_is_received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone._core.sync._threads", {})
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    receiver = receiver_of(tmp_path / "t.jsonl")
    with pytest.raises(ConfigError, match="can't start new"):
        await receiver.start("127.0.0.1", 0)
    await receiver.stop()


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@awaited
async def test_a_request_for_which_there_is_no_memory_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        with monkeypatch.context() as full:
            full.setattr(server, "_read", exhausted)
            async with session.post(f"{url}/v1/traces", json=ONE) as reply:
                assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            assert reply.status == 200
        assert (receiver.requests, receiver.refused) == (1, 1)


@awaited
async def test_without_the_library_only_json_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise MissingDependency("opentelemetry-proto", "otel")

    monkeypatch.setattr(protobuf, "_messages", missing)
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):
        async with session.post(f"{url}/v1/traces", data=b"", headers={"Content-Type": PROTOBUF}) as reply:
            assert reply.status == 415
            assert "[otel]" in await reply.text()
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            assert reply.status == 200


@awaited
async def test_complete_traces_are_passed_on_and_the_rest_at_the_end(tmp_path: Path) -> None:
    found: list[Sample] = []
    child = spans(span(2, "chat", chat([message("user", "q")], "a"), parent=1))
    root = spans(span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=3))
    open_one = spans(span(9, "chat", chat([message("user", "q2")], "a2"), parent=8, trace="a" * 32))
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.3) as (receiver, url, session):
        for request in (child, open_one):
            async with session.post(f"{url}/v1/traces", json=request):
                pass
        await asyncio.sleep(0.1)
        assert found == []
        async with session.post(f"{url}/v1/traces", json=root):
            pass
        await until(lambda: bool(found))
        (sample,) = found
        assert (sample.input, sample.output) == ("q", "a")
        async with session.post(f"{url}/v1/traces", json=child):
            pass
        await until(lambda: scored(receiver).late == 1)
    assert [sample.input for sample in found] == ["q", "q2"]


@awaited
async def test_a_trace_that_is_being_read_at_the_end_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sample] = []
    reading = threading.Event()

    def slowly(*args: Any) -> list[Sample]:
        reading.set()
        time.sleep(0.1)
        return samples_of(*args)

    monkeypatch.setattr(scoring, "samples_of", slowly)
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.01) as (_, url, session):
        async with session.post(f"{url}/v1/traces", json=ONE):
            pass
        await until(reading.is_set)
    assert [sample.input for sample in found] == ["q"]


@awaited
async def test_what_goes_wrong_in_passing_samples_on_is_logged_at_once_and_raised_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = receiver_of(tmp_path / "t.jsonl", lambda _: 1 / 0, 0.01)
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/traces", json=ONE):
            await until(lambda: bool(caplog.messages))
        async with session.post(f"{url}/v1/traces", json=ONE) as reply:
            assert reply.status == 200
    (told,) = caplog.messages
    assert told.startswith("scoring has ended ")
    assert ": ZeroDivisionError" in told
    assert receiver.spool.waiting == 2
    with pytest.raises(ZeroDivisionError):
        await receiver.stop()
    assert (len(caplog.messages), receiver.scoring_error[:17]) == (1, "ZeroDivisionError")
    await Spool(tmp_path / "t.jsonl").close()  # nobody writes to it any more


@awaited
async def test_an_address_in_use_is_an_error(tmp_path: Path) -> None:
    async with receiving(tmp_path / "t.jsonl") as (_, url, _session):
        other = Receiver(Spool(tmp_path / "other.jsonl"))
        with pytest.raises(ConfigError, match="cannot listen on"):
            await other.start("127.0.0.1", int(url.rpartition(":")[2]))
        await other.stop()
    assert server.RETRY_AFTER == 1


@awaited
async def test_pieces_that_are_compressed_one_by_one_are_all_read(tmp_path: Path) -> None:
    first, second = (encoded(spans(span(number, "chat", {}))) for number in (1, 2))
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
        for body, code in ((gzip.compress(first) + gzip.compress(second), 200), (gzip.compress(first) + b"x", 400)):
            async with session.post(f"{url}/v1/traces", data=body, headers=headers) as reply:
                assert reply.status == code
        assert receiver.spans == 2


@awaited
async def test_the_name_of_the_encoding_may_have_capital_letters(tmp_path: Path) -> None:
    body, headers = gzip.compress(json.dumps(ONE).encode()), {"Content-Type": JSON, "Content-Encoding": "GZip"}
    async with (
        receiving(tmp_path / "t.jsonl") as (receiver, url, session),
        session.post(f"{url}/v1/traces", data=body, headers=headers) as reply,
    ):
        assert (reply.status, receiver.spans) == (200, 1)


@awaited
async def test_the_url_of_an_address_of_ipv6_can_be_exported_to(tmp_path: Path) -> None:
    receiver = receiver_of(tmp_path / "t.jsonl")
    try:
        url = await receiver.start("::1", 0)
    except ConfigError:
        pytest.skip("this machine has no IPv6")
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/traces", json=ONE) as reply:
        assert reply.status == 200
    await receiver.stop()


@awaited
async def test_a_request_that_is_no_http_is_answered_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiving(tmp_path / "t.jsonl") as (_, url, _):
        host, _, port = url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
    assert caplog.records == []


def test_many_small_pieces_and_long_ones_are_unpacked_soon() -> None:
    held = bodies.Bodies()

    def unpacked(data: bytes) -> bytes:
        with held.hold() as body:
            return body.unzipped(data)

    began = time.process_time()
    assert unpacked(gzip.compress(b"") * 200_000) == b""
    assert time.process_time() - began < 4  # each piece costs what it is long, not what is left
    for text in (b"", b"a", b"ab" * 2_000_000, random.Random(1).randbytes(50_000)):
        packed = gzip.compress(text)
        assert unpacked(packed + packed) == text + text
        for cut in (b"", packed[:-1], packed[: len(packed) // 2]):
            with pytest.raises(DataError, match="not complete"):
                unpacked(cut)
    assert held.size == 0


@awaited
async def test_a_trace_that_breaks_its_reader_does_not_end_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(records: list[Any], notes: Any) -> list[Sample]:
        if records[0].name == "odd":
            raise KeyError("odd")
        return samples_of(records, notes)

    monkeypatch.setattr(scoring, "samples_of", breaks)
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.01) as (receiver, url, session):
        odd = spans(span(1, "odd", {}, trace="a" * 32))
        async with session.post(f"{url}/v1/traces", json=odd):
            await until(lambda: bool(scored(receiver).notes.counts))
        async with session.post(f"{url}/v1/traces", json=ONE):
            await until(lambda: bool(found))
    (note,) = scored(receiver).notes.lines()
    assert note.startswith("1 × a trace that cannot")
    assert f" '{'a' * 32}', KeyError: 'odd'" in note


@awaited
async def test_a_trace_that_is_being_read_when_the_receiver_stops_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def slowly(records: list[Any], notes: Any) -> list[Sample]:
        begun.set()
        time.sleep(0.1)
        return samples_of(records, notes)

    monkeypatch.setattr(scoring, "samples_of", slowly)
    found: list[Sample] = []
    async with (
        receiving(tmp_path / "t.jsonl", found.append, quiet=0.01) as (_, url, session),
        session.post(f"{url}/v1/traces", json=ONE),
    ):
        await until(begun.is_set)
    assert [sample.input for sample in found] == ["q"]


@awaited
async def test_only_so_much_is_received_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.01")
    data = json.dumps(ONE).encode().ljust(9_000)
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    go = asyncio.Event()

    async def held_back() -> AsyncGenerator[bytes]:
        yield data
        await go.wait()

    async def post(session: aiohttp.ClientSession, url: str, body: Any, **headers: str) -> tuple[int, str | None]:
        async with session.post(f"{url}/v1/traces", data=body, headers={"Content-Type": JSON, **headers}) as reply:
            return reply.status, reply.headers.get("Retry-After")

    async with receiving(tmp_path / "t.jsonl") as (receiver, url, session):
        received = receiver._bodies  # pyright: ignore[reportPrivateUsage]
        slow = [asyncio.create_task(post(session, url, held_back())) for _ in range(4)]
        await until(lambda: received.size == 36_000)
        assert await post(session, url, data) == (503, "1")
        assert await post(session, url, gzip.compress(data), **headers) == (503, "1")  # once it is unpacked
        assert received.size == 36_000
        go.set()
        assert await asyncio.gather(*slow) == [(200, None)] * 4
        assert received.size == 0
        assert await post(session, url, gzip.compress(data), **headers) == (200, None)
        assert (received.size, receiver.refused) == (0, 2)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 5


@awaited
async def test_a_client_that_stops_in_the_middle_gives_its_room_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "IDLE", 0.05)

    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99\r\n\r\n{"
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")  # which exporters retry, unlike 408
        assert b"Retry-After: 1" in head
        assert receiver._bodies.size == 0  # pyright: ignore[reportPrivateUsage]
        writer.close()
        await writer.wait_closed()

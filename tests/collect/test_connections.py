"""Clients that are slow, silent or many: none keeps the others from being received."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import resource
import socket
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evalstone._core.files import spare_files
from evalstone.collect import bodies, connections, server
from evalstone.collect.connections import Connections
from evalstone.collect.server import _read  # pyright: ignore[reportPrivateUsage]
from evalstone.collect.spool import TracePart
from evalstone.errors import DataError
from tests.collect.test_server import ONE, receiving, until
from tests.fakes import awaited
from tests.traced import span, spans

pytestmark = pytest.mark.slow

BODY = json.dumps(ONE).encode()
HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(url: str, data: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(data)
    return reader, writer


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether the server closes a connection, within 10 seconds."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            await reader.read()
    return True


@pytest.mark.parametrize("sent", [b"", HEAD, WHOLE], ids=["nothing", "half of the headers", "a request"])
@awaited
async def test_a_connection_on_which_nothing_comes_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "IDLE", 0.2)
    async with receiving(tmp_path / "t.jsonl") as (_, url, _):
        reader, writer = await connected(url, sent)
        assert await is_closed(reader)
        writer.close()


@awaited
async def test_headers_that_come_byte_by_byte_don_t_keep_a_connection_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE", 0.2)

    async def trickle(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            for byte in HEAD + b"X: " + b"y" * 5000:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.01)

    async with receiving(tmp_path / "t.jsonl") as (_, url, _):
        reader, writer = await connected(url)
        trickling = asyncio.create_task(trickle(writer))
        assert await is_closed(reader)
        trickling.cancel()
        writer.close()


@awaited
async def test_a_body_that_comes_byte_by_byte_has_to_be_whole_after_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "LONGEST", 0.3)
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        reader, writer = await connected(url, HEAD + b"Content-Length: 100000\r\n\r\n")

        async def trickle() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        reply = await reader.readuntil(b"}")
        trickling.cancel()
        assert reply.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1" in reply
        assert b"it took more than 0.3 seconds" in reply
        assert receiver._bodies.size == 0  # pyright: ignore[reportPrivateUsage]
        writer.transport.abort()


@awaited
async def test_of_many_connections_those_stay_open_that_sent_a_request_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 5)
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        exporters = [await connected(url, WHOLE) for _ in range(5)]
        for reader, _ in exporters:
            await reader.readuntil(b"{}")
        silent = [await connected(url) for _ in range(10)]
        deaf = await connected(url, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000)
        halves = [await connected(url, HEAD + b"Content-Length: 99\r\n\r\n{") for _ in range(10)]
        for reader, writer in exporters:
            writer.write(WHOLE)
            assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        for reader, _ in (*silent, *halves):
            assert await is_closed(reader)
        runner = receiver._runner  # pyright: ignore[reportPrivateUsage]
        assert runner is not None
        assert runner.server is not None
        opened = runner.server
        await until(lambda: len(opened.connections) == 5)
        for _, writer in (*exporters, *silent, *halves, deaf):
            writer.close()
    assert receiver.requests == 10


@awaited
async def test_a_request_that_is_being_answered_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 1)
    go = asyncio.Event()
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        append = receiver.spool.append

        async def slowly(parts: Sequence[TracePart]) -> None:
            await go.wait()
            await append(parts)

        monkeypatch.setattr(receiver.spool, "append", slowly)
        reader, writer = await connected(url, WHOLE)
        answering = receiver._connections._answering  # pyright: ignore[reportPrivateUsage]
        await until(lambda: bool(answering))
        later = await connected(url, HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert (await later[0].readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        silent = [await connected(url) for _ in range(3)]
        assert [await is_closed(each) for each, _ in silent] == [True] * 3
        go.set()
        assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 ")
        assert not answering
        for _, each in (*silent, later, (reader, writer)):
            each.close()
        known = receiver._connections  # pyright: ignore[reportPrivateUsage]
        await until(lambda: not known._requested)  # pyright: ignore[reportPrivateUsage]


@awaited
async def test_connections_that_are_too_many_wait_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "MOST", 5)
    monkeypatch.setattr(connections, "NEW", 3)
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        runner = receiver._runner  # pyright: ignore[reportPrivateUsage]
        assert runner is not None
        assert runner.server is not None
        many = await asyncio.gather(*(connected(url) for _ in range(100)))
        reader, writer = await connected(url, WHOLE)
        most, replied = 0, asyncio.create_task(reader.readuntil(b"{}"))
        while not replied.done():
            most = max(most, len(runner.server.connections))
            await asyncio.sleep(0)
        assert replied.result().startswith(b"HTTP/1.1 200 ")
        assert most == 8
        for _, each in (*many, (reader, writer)):
            each.close()
    assert not caplog.records


@awaited
async def test_a_connection_for_which_no_file_is_left_waits_and_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, refused = loop.sock_accept, list[socket.socket]()

    async def refuse_once(listener: socket.socket) -> tuple[socket.socket, object]:
        if not refused:
            refused.append(listener)
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", refuse_once)
    async with receiving(tmp_path / "t.jsonl") as (_, url, _):
        reader, writer = await connected(url, WHOLE)
        reply = await asyncio.wait_for(reader.readuntil(b"{}"), 10)
        assert reply.startswith(b"HTTP/1.1 200 ")
        assert len(refused) == 1
        writer.close()


@pytest.mark.parametrize(
    ("sent", "replies", "stored"),
    [
        (HEAD + b"Content-Length: %d\r\n" % len(BODY) + CHUNKED, [b"400"], 0),
        (HEAD + b"Content-Length: 3\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY, [b"400"], 0),
        (HEAD + CHUNKED, [b"200"], 1),
        (WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"), [b"200"], 1),
        (WHOLE * 3, [b"200"] * 3, 3),
        (WHOLE.replace(b"Host", b"Expect: 100-continue\r\nHost"), [b"100", b"200"], 1),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", [b"413"], 0),
    ],
    ids=["length and chunks", "two lengths", "chunks", "HTTP/1.0", "pipelined", "expect", "too long"],
)
@awaited
async def test_each_form_of_a_request_is_read_or_refused(
    tmp_path: Path, sent: bytes, replies: list[bytes], stored: int
) -> None:
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        reader, writer = await connected(url, sent)
        found = list[bytes]()
        while len(found) < len(replies):
            line = await asyncio.wait_for(reader.readline(), 10)
            assert line  # else the connection was closed before all replies came
            if b"HTTP/1." in line:
                found.append(line.partition(b"HTTP/1.")[2].split()[1])
        writer.transport.abort()
        assert found == replies
    assert receiver.requests == stored
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == stored


@awaited
async def test_a_request_that_is_not_whole_when_the_receiver_stops_is_not_stored(tmp_path: Path) -> None:
    async with receiving(tmp_path / "t.jsonl") as (receiver, url, _):
        reader, writer = await connected(url, WHOLE[:-1])
        held = receiver._bodies  # pyright: ignore[reportPrivateUsage]
        await until(lambda: held.size > 0)
        await asyncio.wait_for(receiver.stop(), 20)
        assert await reader.read() == b""
        assert held.size == 0
        writer.close()
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_nothing_accepts_connections_any_more_when_a_listener_is_closed(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with receiving(tmp_path / "t.jsonl") as (receiver, _, _):
        accepting = asyncio.all_tasks() - before
        listeners = receiver._listeners  # pyright: ignore[reportPrivateUsage]
        closed: list[int] = []

        class Listener:
            def __init__(self, listener: socket.socket) -> None:
                self.listener = listener

            def close(self) -> None:
                closed.append(sum(not task.done() for task in accepting if "Connections." in str(task.get_coro())))
                self.listener.close()

        listeners[:] = [cast("socket.socket", Listener(each)) for each in listeners]
        await receiver.stop()
    assert closed[0] == 0


@pytest.mark.parametrize(("files", "connected"), [(65_536, 900), (256, 156), (50, 25), (resource.RLIM_INFINITY, 900)])
def test_connections_leave_files_for_all_else(monkeypatch: pytest.MonkeyPatch, files: int, connected: int) -> None:
    def limits(_: int) -> tuple[int, int]:
        return files, files

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert spare_files(connections.MOST) == connected


@awaited
async def test_after_a_connection_that_cannot_be_taken_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PAUSE", 60.0)
    tried = list[str]()

    async def refused(_: socket.socket) -> None:
        tried.append("once")
        if len(tried) > 1:
            raise asyncio.CancelledError
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_accept", refused)
    taking = asyncio.create_task(
        Connections().take(cast(Any, None), cast(Any, SimpleNamespace(connections=[])), lambda: None)
    )
    for _ in range(10):
        await asyncio.sleep(0)
    taking.cancel()
    await asyncio.wait((taking,))
    assert tried == ["once"]


@awaited
async def test_a_connection_that_cannot_be_served_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    accepted = [one]

    async def accept(_: socket.socket) -> tuple[socket.socket, None]:
        if not accepted:
            raise asyncio.CancelledError
        return accepted.pop(), None

    async def fails(*_: object) -> None:
        raise OSError(errno.ECONNABORTED, "gone")

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "sock_accept", accept)
    monkeypatch.setattr(loop, "connect_accepted_socket", fails)
    with pytest.raises(asyncio.CancelledError):
        await Connections().take(cast(Any, None), cast(Any, SimpleNamespace(connections=[])), lambda: None)
    assert one.fileno() == -1
    other.close()


@pytest.mark.parametrize("kind", ["arrays", "objects"])
def test_so_many_lists_and_objects_may_be_inside_each_other(kind: str) -> None:
    def request(depth: int) -> bytes:
        inside = "[" * depth + "]" * depth if kind == "arrays" else '{"a":' * depth + "1" + "}" * depth
        made = span(1, "x", {}) | {"x": json.loads(inside)}
        return json.dumps(spans(made), separators=(",", ":")).encode()

    assert server.MOST_NESTED == 700  # as docs/traces.md says
    parts, records, problems = _read(request(693), server.JSON, "traces")
    assert ([part.body for part in parts], len(records), problems) == ([request(693)], 1, [])
    with pytest.raises(DataError, match="nested too deeply"):
        _read(request(694), server.JSON, "traces")

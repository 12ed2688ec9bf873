"""A server for tests, on loopback, that sends any bytes: broken HTTP, endless replies, redirects."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TypeAlias

from tests.serving import listener, on_a_thread

Reply: TypeAlias = bytes | Iterable[bytes]
"""What is sent for a request. After the pieces of an iterable the server hangs up."""


def http(body: bytes, *headers: str, status: int = 200) -> bytes:
    """An HTTP response with a body."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def chunked(pieces: Iterable[bytes], *headers: str) -> Generator[bytes]:
    """An HTTP response in chunks."""
    yield "\r\n".join(["HTTP/1.1 200 X", "Transfer-Encoding: chunked", *headers]).encode() + b"\r\n\r\n"
    for piece in pieces:
        if piece:
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@contextmanager
def _aborting(transport: asyncio.WriteTransport) -> Generator[None]:
    try:
        yield
    finally:
        transport.abort()


class HostileServer:
    """A running server. requests: the head and body of each request. sent: bytes that clients took."""

    def __init__(self, reply: Callable[[int], Reply]) -> None:
        self.reply: Callable[[int], Reply] = reply
        self.requests: list[bytes] = []
        self.sent = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with _aborting(writer.transport), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(length[0])) if length else b""
                self.requests.append(head + body)
                reply = self.reply(len(self.requests))
                for piece in [reply] if isinstance(reply, bytes) else reply:
                    writer.write(piece)
                    await writer.drain()
                    self.sent += len(piece)
                if not isinstance(reply, bytes):
                    writer.close()
                    await writer.wait_closed()
                    return


@contextmanager
def serving_hostile(reply: Callable[[int], Reply]) -> Generator[HostileServer]:
    """A server on a thread of its own, for as long as the block lasts. reply: to the n-th request, from 1."""
    server = HostileServer(reply)

    async def serve(ready: Callable[[], None], stop: asyncio.Event) -> None:
        # asyncio's own ways to accept leave a connection open that comes as they are ended
        listening = listener()
        connections = list[socket.socket]()
        tasks = set[asyncio.Task[None]]()

        def accept() -> None:
            connections.append(listening.accept()[0])
            tasks.add(asyncio.create_task(answer(connections[-1])))

        async def answer(connection: socket.socket) -> None:
            connection.setblocking(False)
            await server.serve(*await asyncio.open_connection(sock=connection, limit=50_000_000))

        with listening:
            listening.setblocking(False)
            server.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            asyncio.get_running_loop().add_reader(listening, accept)
            ready()
            await stop.wait()
            asyncio.get_running_loop().remove_reader(listening)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # for the transports to close
        for connection in connections:
            connection.close()

    with on_a_thread(serve):
        yield server

"""The connections of clients, with a limit on how many stay open."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from typing import cast

from aiohttp import web

from evalstone._core.files import spare_files

MOST = 900
"""The most connections that stay open; fewer if the process may not open that many files."""
IDLE = 120.0
"""Seconds without a request, or in the middle of its headers, after which a connection is closed."""
PAUSE = 0.1
"""Seconds between two checks of the number of connections."""
NEW = 50
"""How far the limit may be exceeded between two checks, so that new connections have time to send a request."""
WAITING = 1024
"""The backlog of the listening sockets; the system may allow fewer."""
_HTTP2 = b"PRI * HTTP/2"


class Connections:
    """Closes connections above the limit: first those without a complete request, then the least recently used. A
    connection whose request is being answered stays open."""

    def __init__(self) -> None:
        self._most = spare_files(MOST)
        self._requested: dict[web.RequestHandler, float] = {}
        """The time of the last complete request of each connection."""
        self._answering = set[web.RequestHandler]()

    @contextlib.contextmanager
    def answering(self, connection: web.RequestHandler) -> Generator[None]:
        """A context in which a complete request of this connection is answered."""
        self._requested[connection] = asyncio.get_running_loop().time()
        self._answering.add(connection)
        try:
            yield
        finally:
            self._answering.discard(connection)

    async def take(self, listener: socket.socket, server: web.Server, on_http2: Callable[[], None]) -> None:
        """Accept connections, one at a time, while the limit allows, until canceled.

        on_http2: Called for a connection that begins with the preface of HTTP/2, as a gRPC client's does.

        asyncio would accept a hundred at once, and log an error for each one beyond the process's limit on open files.
        """
        loop = asyncio.get_running_loop()
        while True:
            while len(server.connections) >= self._most + NEW:  # noqa: ASYNC110 - aiohttp tells of none that is closed
                await asyncio.sleep(PAUSE / 10)
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no file is left, or the client is gone
                await asyncio.sleep(PAUSE)
                continue
            try:
                await loop.connect_accepted_socket(lambda: _Greeted(server(), on_http2), connection)
            except BaseException as error:
                connection.close()
                if not isinstance(error, OSError):
                    raise

    async def watch(self, server: web.Server) -> None:
        """Close connections above the limit, until canceled."""
        while True:
            await asyncio.sleep(PAUSE)
            connections = server.connections
            opened = set(connections)
            self._requested = {each: time for each, time in self._requested.items() if each in opened}
            for each in sorted(connections, key=lambda each: self._requested.get(each, 0.0))[: -self._most]:
                if each not in self._answering and each.transport is not None:
                    each.transport.abort()  # a client that doesn't read its replies would keep it from being closed


class _Greeted(asyncio.Protocol):
    """Inspects the first bytes of a connection, then hands it to its handler."""

    def __init__(self, handler: web.RequestHandler, on_http2: Callable[[], None]) -> None:
        self._handler, self._on_http2 = handler, on_http2
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None  # noqa: S101 - asyncio has called connection_made
        self._transport.set_protocol(self._handler)
        if data.startswith(_HTTP2):
            self._on_http2()
        self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._handler.connection_lost(exc)


async def listeners(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses of a host. Raises OSError and OverflowError."""
    bound = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port, start_serving=False)
    sockets = list[socket.socket]()
    try:
        for each in bound.sockets:
            sockets.append(each.dup())
            sockets[-1].setblocking(False)
            sockets[-1].listen(WAITING)
    except BaseException:
        for each in sockets:
            each.close()
        raise
    finally:
        bound.close()
    return sockets

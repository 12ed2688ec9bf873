"""The bodies of requests, with a limit on their total size in memory."""

from __future__ import annotations

import asyncio
import threading
import zlib
from types import TracebackType

from aiohttp import web

from evalstone._core.files import row_limit
from evalstone.errors import DataError

MOST_IN_MEMORY = 4
"""The number of requests of the maximum length that fit into memory together."""
IDLE = 30.0
"""The longest pause of a client in the middle of a request, in seconds."""
LONGEST = 300.0
"""The longest time for sending a request, in seconds."""
_PIECE = 1 << 20
_SLICE = 1 << 12


class TooLong(Exception):
    """A request is too long, as sent or once it is decompressed."""


class Busy(Exception):
    """The memory limit is reached; the client should retry later."""


class TooSlow(Exception):
    """The client didn't send a request in time."""


class Bodies:
    """The total size of the bodies in memory."""

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """Add bytes to the total; a negative number frees them. Raises Busy if the limit would be exceeded."""
        with self._lock:
            if size > 0 and self.size + size > MOST_IN_MEMORY * row_limit():
                raise Busy
            self.size += size

    def hold(self) -> Body:
        """The body of one request: `with bodies.hold() as body`."""
        return Body(self)


class Body:
    """The body of one request; it counts toward the limit until the context ends."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._size = 0

    def __enter__(self) -> Body:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bodies.add(-self._size)

    async def read(self, request: web.Request) -> bytes:
        """Read the request.

        Raises:
            TooLong: It is longer than a request may be.
            Busy: The memory limit is reached.
            TooSlow: The client has stopped in the middle of it, or takes too long.
        """
        limit = row_limit()
        if (request.content_length or 0) > limit:
            raise TooLong
        body = bytearray()  # not a list: a client may send it byte by byte
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST
        while True:
            try:
                data = await asyncio.wait_for(request.content.readany(), min(IDLE, end - loop.time()))
            except TimeoutError:
                late = loop.time() >= end
                problem = f"it took more than {LONGEST:g} seconds" if late else f"nothing came for {IDLE:g} seconds"
                raise TooSlow(problem) from None
            if not data:
                break
            if len(body) + len(data) > limit:
                raise TooLong
            self._add(len(data))
            body += data
        return bytes(body)

    def unzipped(self, data: bytes) -> bytes:
        """Decompress gzip data.

        Raises:
            DataError: It is anything else.
            TooLong: It is longer than a request may be.
            Busy: The memory limit is reached.
        """
        parts, left = list[bytes](), row_limit()
        unpacker, unread = None, memoryview(data)
        for start in range(0, len(unread), _SLICE):  # what is left of the data is copied for each part
            rest = bytes(unread[start : start + _SLICE])
            while rest:  # the checksum at the end can't be read before all that was compressed
                if unpacker is None or unpacker.eof:  # each part is compressed by itself
                    unpacker = zlib.decompressobj(31)
                try:
                    part = unpacker.decompress(rest, min(_PIECE, left + 1))
                except zlib.error as error:
                    raise DataError(f"not compressed with gzip ({error})") from None
                left -= len(part)
                if left < 0:
                    raise TooLong
                if part:
                    self._add(len(part))
                    parts.append(part)
                rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        if unpacker is None or not unpacker.eof:
            raise DataError("the data compressed with gzip is not complete")
        return b"".join(parts)

    def _add(self, size: int) -> None:
        self._bodies.add(size)
        self._size += size

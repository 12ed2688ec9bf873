"""Read HTTP responses of broken or hostile servers, in bounded memory and with evalstone's own errors.

Limits apply both to the bytes received and to the decompressed size. Large responses are read one at a time, so that
many concurrent ones need no more memory than one.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import reprlib
import time
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from evalstone._core import sync
from evalstone._core.display import visible
from evalstone._core.files import CONTAINER, unchanged
from evalstone._core.guards import is_array, is_number, is_object
from evalstone.errors import JudgeRefused, ProviderError

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
LARGE = 1_000_000
"""Bytes above which a response waits until no other large one is being read."""
IN_PLACE = 100_000
"""Bytes, or characters, above which a reply is read in a thread."""
FEWEST_VALUES = 10_000
"""Lists and objects that a reply may have even if few bytes are allowed."""
ERROR_BYTES = 100_000
"""The maximum size of an error response. Longer ones are ignored."""
LONGEST_RETRY_AFTER = 3600.0
"""The maximum wait in seconds, even if the provider asks for a longer one."""
MAX_TOKENS = 100_000_000
"""Larger token counts are invalid."""
ENCODING = "gzip"


class ReplyTooLarge(ProviderError):
    """A response is larger than the limit. It was paid for, but its cost is unknown."""

    def __init__(self, host: str, limit: int) -> None:
        message = f"{host} sent a reply of more than {limit:,} bytes; max_reply_bytes allows larger ones"
        super().__init__(message, cost=None)
        self.host, self.limit = host, limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.host, self.limit), self.__dict__


class _Content:
    """The body of a response, as far as it has been received and decompressed."""

    def __init__(self, encoding: str | None, host: str) -> None:
        self.received = self.size = 0
        self._parts: list[bytes] = []
        self._pending = b""
        self._host, self._decoder = host, None
        if encoding is not None and encoding.lower() not in ("", "identity"):
            if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
                message = f"{host} sent a reply with the content encoding {encoding[:60]!r}; only {ENCODING} is read"
                raise ProviderError(message, cost=None)
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def receive(self, chunk: bytes) -> None:
        """Add received bytes, to be decompressed by `decode`."""
        self.received += len(chunk)
        self._pending = chunk

    def decode(self, limit: int) -> bool:
        """Decompress the received bytes. Returns False if the size exceeds the limit; the rest stays pending."""
        data, self._pending = self._pending, b""
        if self._decoder is not None:
            try:
                data = b"" if self._decoder.eof else self._decoder.decompress(data, limit + 1 - self.size)
            except zlib.error as error:
                raise ProviderError(f"{self._host} sent a corrupt compressed reply: {error}", cost=None) from None
            self._pending = self._decoder.unconsumed_tail
        self._parts.append(data)
        self.size += len(data)
        return self.size <= limit

    def end(self) -> bytes:
        """The whole body. Raises ProviderError if compressed data is truncated."""
        if self._decoder is not None and not self._decoder.eof and self.received:
            raise ProviderError(f"{self._host} sent a truncated compressed reply", cost=None)
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


async def read_content(response: aiohttp.ClientResponse, limit: int, host: str, large: asyncio.Lock) -> bytes:
    """The decompressed content of a response. large: a lock that is held while a large response is read.

    Raises:
        ReplyTooLarge: The response exceeds the limit, as received or decompressed.
        ProviderError: Its content encoding is not supported, or its compressed data is corrupt.
    """
    headers, stream = response.headers, response.content
    encodings = headers.getall("Content-Encoding") if "Content-Encoding" in headers else ()
    first = min(limit, LARGE)
    try:
        chunk = await stream.readany()
        if not encodings and stream.at_eof() and len(chunk) <= first:  # like most responses
            return chunk
        content = _Content(", ".join(encodings) if encodings else None, host)
        while chunk:
            content.receive(chunk)
            if not content.decode(first):
                break
            if content.received > limit:
                raise ReplyTooLarge(host, limit)
            chunk = await stream.readany()
        else:
            return content.end()
        async with large:
            while content.decode(limit) and content.received <= limit:
                if not (chunk := await stream.readany()):
                    return content.end()
                content.receive(chunk)
        raise ReplyTooLarge(host, limit)
    finally:
        if not stream.at_eof():
            response.close()


async def read_error(response: aiohttp.ClientResponse, host: str) -> bytes:
    """The content of an error response; empty if it can't be read or is longer than `ERROR_BYTES`."""
    try:
        return await read_content(response, ERROR_BYTES, host, asyncio.Lock())
    except ProviderError:
        return b""


async def read_aside(size: int, read: Callable[..., T], *args: Any) -> T:
    """What a function reads from a reply of this size. A large one is read in a thread, so that other calls go on."""
    return read(*args) if size <= IN_PLACE else await sync.call_in_turn(read, *args)


def too_many_values(content: bytes, limit: int) -> int | None:
    """The most lists and objects of a reply of up to `limit` bytes; None if it doesn't have more.

    An empty list has two characters, but takes a hundred times their memory, and as much time to read.
    """
    most = max(limit // CONTAINER, FEWEST_VALUES)
    if content.count(b"{") + content.count(b"[") <= most:
        return None
    without_escapes = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_texts = b"".join(without_escapes.split(b'"')[::2])
    return most if outside_texts.count(b"{") + outside_texts.count(b"[") > most else None


_DIGITS = re.compile(rb"\d{4000}")


def parsed_json(content: bytes) -> Any:
    """The JSON value in a reply. Raises ValueError if it isn't valid JSON.

    Integers that are too long for Python become infinity, and invalid UTF-8 is replaced: the rest of the reply may be
    usable, and was paid for.
    """
    hook = unchanged if len(content) > IN_PLACE else None
    try:
        try:
            return json.loads(content, object_hook=hook)
        except ValueError:
            text = content.decode("utf-8-sig", "replace")
            return json.loads(text, object_hook=hook, parse_int=_int if _DIGITS.search(content) else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class _Repeated(Exception):
    """A name stands twice in an object."""


def repeated_name(content: bytes) -> str | None:
    """A name that stands twice in one object of a JSON text that `parsed_json` reads, which keeps the last value; None
    if there is none."""

    def pairs_of(pairs: list[tuple[str, Any]]) -> None:
        seen = {name for name, _ in pairs}
        if len(seen) < len(pairs):
            raise _Repeated(next(name for name, _ in pairs if name not in seen or seen.remove(name)))

    try:
        try:
            json.loads(content, object_pairs_hook=pairs_of, parse_int=float)
        except ValueError:
            json.loads(content.decode("utf-8-sig", "replace"), object_pairs_hook=pairs_of, parse_int=float)
    except _Repeated as error:
        return str(error)
    return None


def _int(digits: str) -> float:
    return int(digits) if len(digits) < 1000 else math.inf


def as_object(value: Any) -> dict[str, Any]:
    """A JSON value as an object; empty for any other value."""
    return value if is_object(value) else {}


def as_list(value: Any) -> list[Any]:
    """A JSON value as a list; empty for any other value."""
    return value if is_array(value) else []


def as_text(value: Any) -> str:
    """A JSON value as text; empty for any other value."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """A JSON value as a token count; 0 if it isn't one. The reply itself may still be usable."""
    return int(value) if is_count(value) else 0


def is_count(value: Any) -> bool:
    """Whether a JSON value is a valid token count."""
    return (type(value) is int or is_number(value)) and 0 <= value <= MAX_TOKENS


def shown(value: Any) -> str:
    """The start of a JSON value, on one line, however large or deep it is."""
    return one_line(value if isinstance(value, str) else reprlib.repr(value))


def one_line(text: str) -> str:
    """A text on one line, shortened to 300 characters, with invisible ones and lone surrogates escaped."""
    line = visible(" ".join(text[:2000].split()))
    return line if len(line) <= 300 else line[:299] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait, at most an hour; None if it has no valid Retry-After."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (after := headers.get("Retry-After")) is None:
            return None
        else:
            try:
                seconds = float(after)
            except ValueError:
                from email.utils import parsedate_to_datetime  # noqa: PLC0415 - slow to import

                seconds = parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, OverflowError, TypeError, IndexError, OSError):
        return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER) if math.isfinite(seconds) else None


_RETRY_DELAY = re.compile(rb'"retryDelay":\s*"([0-9]{1,9}(?:\.[0-9]{1,12})?)s"')


def retry_delay(content: bytes) -> float | None:
    """The seconds that an error of Google's asks to wait, at most an hour; None if it doesn't."""
    match = _RETRY_DELAY.search(content)
    return None if match is None else min(float(match[1]), LONGEST_RETRY_AFTER)


def redirect_error(host: str, status: int, url: str, location: str) -> JudgeRefused:
    """The error for a redirect. It names the other server without user name, path and query."""
    try:
        parts = urlsplit(urljoin(url, location))
        target = one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    except ValueError:
        target = "an invalid URL"
    message = f"{host} redirects to {target} (HTTP {status}), and redirects are not followed"
    return JudgeRefused(message).advised("set base_url to the final URL")

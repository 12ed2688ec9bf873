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
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urljoin, urlsplit

from evalstone._core import sync
from evalstone._core.files import CONTAINER, unchanged
from evalstone._core.parsing import bare
from evalstone._core.text import fewest_tokens
from evalstone.errors import JudgeRefused, PromptTooLong, ProviderError
from evalstone.judges.settings import is_number

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
    content = _Content(", ".join(encodings) if encodings else None, host)
    first = min(limit, LARGE)
    try:
        while chunk := await stream.readany():
            content.receive(chunk)
            if not content.decode(first):
                break
            if content.received > limit:
                raise ReplyTooLarge(host, limit)
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


def _int(digits: str) -> float:
    return int(digits) if len(digits) < 1000 else math.inf


def as_object(value: Any) -> dict[str, Any]:
    """A JSON value as an object; empty for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A JSON value as a list; empty for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A JSON value as text; empty for any other value."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """A JSON value as a token count; 0 if it isn't one. The reply itself may still be usable."""
    return int(value) if is_count(value) else 0


def is_count(value: Any) -> bool:
    """Whether a JSON value is a valid token count."""
    return is_number(value) and 0 <= value <= MAX_TOKENS


def shown(value: Any) -> str:
    """The start of a JSON value, on one line, however large or deep it is."""
    return one_line(value if isinstance(value, str) else reprlib.repr(value))


def one_line(text: str) -> str:
    """A text on one line, shortened to 300 characters."""
    line = " ".join(text[:2000].split())
    return line if len(line) <= 300 else line[:299] + "…"


def error_message(content: bytes) -> str:
    """The message of an error response, on one line."""
    try:
        error = as_object(as_object(parsed_json(content)).get("error"))
    except ValueError:
        error = {}
    if "message" not in error:
        return one_line(content.decode("utf-8", "replace"))
    message = shown(error["message"])
    return f"{message} ({shown(error['code'])})" if error.get("code") else message


_ERROR_WORDS = {"rate": 429, "quota": 429, "filter": 400, "policy": 400, "invalid": 400, "key": 401, "not found": 404}
"""The status that an error without one stands for, by the first of these words in it. Any other error may pass."""


def error_inside(data: Mapping[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """The error inside a response with HTTP 200, also of its choice, with the status that its code or its words stand
    for; None if there is none.

    Routers send such errors if the provider behind them fails, also after a part of the reply.
    """
    choice = as_object(next(iter(as_list(data.get("choices"))), None))
    error = as_object(data.get("error")) or as_object(choice.get("error"))
    if not error and choice.get("finish_reason") != "error":
        return None
    code: Any = error.get("code")
    if is_number(code) and 400 <= code < 600:
        return int(code), error
    words = f"{code} {error.get('type')} {error.get('message')}".lower()
    return next((status for word, status in _ERROR_WORDS.items() if word in words), 502), error


BLOCKED = "the provider blocked the text"
MAY_BLOCK = frozenset({400, 403, 422, 451})
"""Statuses with which providers block a text."""
_BLOCKING_CODES = frozenset(
    """
    content_filter content_policy_violation content_policy data_inspection_failed moderation
    responsibleaipolicyviolation
    """.split()  # noqa: SIM905 - one word a line would be ten lines
)
_BLOCKING = re.compile(
    r"content management policy|content filter|content polic|flagged|moderation|safety system|inappropriate content"
)
BLOCKING_FINISHES = ("content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii")


def blocked_text(content: bytes) -> str:
    """Why an error response says that the provider blocked the text; "" for any other error."""
    try:
        return blocked_reason(as_object(as_object(parsed_json(content)).get("error")))
    except ValueError:
        return ""


def blocked_reason(error: Mapping[str, Any]) -> str:
    """The same for the error object of a response."""
    inner = as_object(error.get("innererror"))
    codes = {as_text(value).lower() for value in (error.get("code"), error.get("type"), inner.get("code"))}
    message = as_text(error.get("message"))
    return shown(message or error.get("code")) if codes & _BLOCKING_CODES or _BLOCKING.search(message.lower()) else ""


def blocked_reply(finish: Any) -> str:
    """The message for a reply that a filter stopped, for this reason."""
    return f"{BLOCKED}: a content filter stopped the reply ({shown(finish)})"


def is_blocked(finish: Any) -> bool:
    """Whether the reason why a reply ended says that a filter stopped it: "content_filter: RECITATION", "SAFETY"."""
    return as_text(finish).lower().startswith(BLOCKING_FINISHES)


_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|prompt) length|prompt (?:is )?too long"
    r"|input (?:is )?too long|input token count|input tokens exceed|too large for model"
    r"|tokens in the prompt cannot exceed"
)
_REPLY_TOO_LONG = re.compile(r"max_(?:completion_|new_)?tokens'?\"? (?:or '?max_completion_tokens'? )?is too large")
_WINDOWS = tuple(
    map(
        re.compile,
        (
            r"tokens? > ([\d,]+)",
            r"\+ [\d,]+ > ([\d,]+)",
            r"([\d,]+) maximum context",
            r"context (?:length|window|size|limit)(?! by)[^\d;]{0,30}?([\d,]+)",
            r"(?:maximum (?:model|prompt) length|tokens allowed|configured limit)\D{0,12}([\d,]+)",
            r"cannot exceed ([\d,]+)",
            r"\"n_ctx\":\s*(\d+)",
        ),
    )
)
_SMALLEST_WINDOW = 100


_ECHOED = 12
"""A match is an echo if the request has it with this many letters of context on one side."""
_LINE_ENDS = re.compile(r"\\+[nrt]")


def window_error(message: str, content: str = "", request: str = "") -> PromptTooLong | None:
    """The error for a refusal of a prompt that exceeds the context window; None for any other refusal.

    content: the whole response, which may state the window outside the message. request: the request. Parts of it that
    the refusal echoes are ignored, because judged texts may be about context windows.
    """
    words = message.lower()
    letters = _letters(request) if request and _TOO_LONG.search(words) else ""
    if all(_is_echo(match, letters) for match in _TOO_LONG.finditer(words)) or _REPLY_TOO_LONG.search(words):
        return None
    matches = (match for text in (words, content.lower()) for pattern in _WINDOWS for match in pattern.finditer(text))
    digits = (match[1] for match in matches if not letters or _letters(match[0]) not in letters)
    sizes = (int(size.replace(",", "") or 0) for size in digits if len(size) < 12)
    window = next((size for size in sizes if _SMALLEST_WINDOW <= size <= MAX_TOKENS), None)
    setting = "context_window" if window is None else f"context_window={window}"
    return PromptTooLong(f"{message}; set {setting} for this judge", window=window)


CUT_BELOW = 0.75
"""The server cut a prompt if the model read less than this share of the fewest tokens that the prompt can have. The
rest is for tokenizers with tokens of several words."""
SMALLEST_CUT = 1000
"""Fewer tokens are no context window: the server counts something else, such as those that it had not cached."""


def cut_error(name: str, prompt: Iterable[str], read: int, **spent: Any) -> PromptTooLong | None:
    """The error for a prompt of which the model read only a part: some servers cut what exceeds their context window,
    and reply as if nothing were missing.

    name: the judge's. read: the tokens that the model read, 0 if unknown. spent: usage, cost and reply, which count.
    """
    if read < SMALLEST_CUT:
        return None
    fewest = sum(map(fewest_tokens, prompt))
    if read >= CUT_BELOW * fewest:
        return None
    message = f"the server of {name} cut the prompt: the model read {read:,} tokens of {fewest:,} or more"
    hint = f"raise the server's context length, or set context_window={read} for this judge"
    return PromptTooLong(f"{message}; {hint}", window=read, **spent)


def _is_echo(match: re.Match[str], request: str) -> bool:
    """Whether the request contains a match together with its context."""
    start, end = match.span()
    own, text = len(_letters(match[0])), match.string
    contexts = map(_letters, (text[max(0, start - 2 * _ECHOED) : end], text[start : end + 2 * _ECHOED]))
    return any(len(context) >= own + _ECHOED and context in request for context in contexts)


def _letters(text: str) -> str:
    """The letters and digits of a text, without escaped line breaks as in JSON."""
    return bare(_LINE_ENDS.sub(" ", text))


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


def redirect_error(host: str, status: int, url: str, location: str) -> JudgeRefused:
    """The error for a redirect. It names the other server without user name, path and query."""
    try:
        parts = urlsplit(urljoin(url, location))
        target = one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    except ValueError:
        target = "an invalid URL"
    message = f"{host} redirects to {target} (HTTP {status}), and redirects are not followed"
    return JudgeRefused(f"{message}: set base_url to the final URL")

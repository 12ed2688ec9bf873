"""ASGI middleware of live scoring. It passes on every message unchanged and immediately, and keeps references to the
bodies of sampled requests."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from evalstone._core.declarations import Range, check_argument
from evalstone.errors import ConfigError, described, invalid
from evalstone.live.frames import READ_FAILED, Content
from evalstone.live.tracing import Trace, current_trace
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.live.client import Live

ASGIMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[ASGIMessage]]
Send: TypeAlias = Callable[[ASGIMessage], Awaitable[None]]
Application: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
"""An ASGI application."""

_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_UNSEEN = ("HEAD", "OPTIONS")


@dataclass(frozen=True, kw_only=True)
class HTTPMessage:
    """The common part of requests and responses."""

    headers: Mapping[str, str]
    """By lower-case name; the last of several values."""
    body: bytes
    """The first `body_limit` bytes as sent, which may be compressed."""
    truncated: bool = False
    """Whether the body is longer, or was sent in a way that can't be copied."""

    @property
    def text(self) -> str:
        """The body as UTF-8. Invalid bytes are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it isn't JSON, or is truncated."""
        if self.truncated and self.body:
            raise ValueError(f"the body was cut at body_limit={len(self.body)}")
        if self.truncated:
            raise ValueError("the body was sent as a file, which is not copied")
        if not self.body:
            raise ValueError("the body is empty")
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of each server-sent event in the body."""
        events: list[str] = []
        for event in re.sub(r"\r\n?", "\n", self.text).split("\n\n"):
            data = [line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
            if data:
                events.append("\n".join(data))
        return events


@dataclass(frozen=True, kw_only=True)
class Request(HTTPMessage):
    """A request."""

    method: str
    path: str
    query: str
    """The query string, as sent."""


@dataclass(frozen=True, kw_only=True)
class Response(HTTPMessage):
    """A response."""

    status: int


Read: TypeAlias = Callable[[Request, Response], "Mapping[str, Any] | Sample | None"]
"""Returns the fields of the sample in a request and its response; None to skip the request."""


class Middleware:
    """The middleware that `Live.asgi` returns."""

    def __init__(
        self,
        live: Live,
        app: Application,
        read: Read,
        paths: Collection[str] | None,
        entity: str | None,
        body_limit: int,
    ) -> None:
        if not callable(read):
            raise ConfigError("read must be a function of a request and a response")
        if isinstance(paths, str):
            raise ConfigError(invalid("paths", "a list of paths", paths))
        check_argument("body_limit", body_limit, Annotated[int, Range(1)])
        paths = None if paths is None else tuple(paths)
        self._live, self._app, self._read, self._entity, self._limit = live, app, read, entity, body_limit
        self._paths = None if paths is None else frozenset(path for path in paths if not path.endswith("*"))
        self._begins = tuple(path[:-1] for path in paths or () if path.endswith("*"))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._lifespan(send))
        elif scope["type"] != "http" or not self._counts(scope):
            await self._app(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    def _counts(self, scope: Any) -> bool:
        path = scope["path"]
        selected = self._paths is None or path in self._paths or bool(self._begins and path.startswith(self._begins))
        return selected and scope["method"] not in _UNSEEN

    def _lifespan(self, send: Send) -> Send:
        async def passed(message: ASGIMessage) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._live.start()
            elif message["type"].startswith("lifespan.shutdown."):
                await self._live.aclose()
            await send(message)

        return passed

    async def _serve(self, scope: Any, receive: Receive, send: Send) -> None:
        scope = _readable(scope)
        trace = trace_of(scope["headers"])
        drawn = self._live.draw(trace)
        asked, said = _Copy(self._limit), _Copy(self._limit)
        start: ASGIMessage = {}
        over: list[bool] = []
        # Now, since the application and what is around it may change the scope, its messages and their headers.
        method, path, query = scope["method"], scope["path"], scope.get("query_string", b"")
        headers = _kept(scope["headers"]) if drawn else ()
        entity = path if self._entity is None else self._entity

        def made() -> Content:
            request = Request(
                headers=_headers(headers),
                method=method,
                path=path,
                query=query.decode("latin-1"),
                body=b"".join(asked.parts),
                truncated=asked.truncated,
            )
            response = Response(
                headers=_headers(start["headers"]),
                status=start["status"],
                body=b"".join(said.parts),
                truncated=said.truncated,
            )
            try:
                found = cast(object, self._read(request, response))
            except BaseException as error:  # noqa: BLE001 - one of any kind would end the thread
                return Content(None, problem=READ_FAILED + described(error))
            if found is None or isinstance(found, Sample | Mapping):
                return Content(found)
            returned = f"it must return a Sample, a mapping of its fields, or None, not {type(found).__name__}"
            return Content(None, problem=READ_FAILED + returned)

        async def copied() -> ASGIMessage:
            message = await receive()
            if message["type"] == "http.request":
                asked.add(bytes(message.get("body") or b""))
            return message

        async def passed(message: ASGIMessage) -> None:
            kind, more, body = message["type"], message.get("more_body", False), b""
            if kind == "http.response.start":
                message = _readable(message)
                start.update(status=message["status"], headers=_kept(message.get("headers", ())))
            elif drawn and kind == "http.response.body":
                body = bytes(message.get("body") or b"")
            await send(message)
            if kind == "http.response.body":
                said.ended = not more
                if drawn:
                    said.add(body)
            elif kind in ("http.response.pathsend", "http.response.zerocopysend"):
                said.ended, said.truncated = not more, True
            if said.ended and not over and 200 <= start.get("status", 0) < 300:
                over.append(True)  # now, and not after the application's background tasks
                self._live.offer(made, trace, drawn, entity=entity, later=asked.size + said.size)

        await self._app(scope, copied if drawn else receive, passed)


class _Copy:
    """The beginning of a body."""

    __slots__ = ("_limit", "ended", "parts", "size", "truncated")

    def __init__(self, limit: int) -> None:
        self.parts: list[bytes] = []
        self.size, self._limit = 0, limit
        self.ended = self.truncated = False

    def add(self, body: bytes) -> None:
        if body:
            part = body[: self._limit - self.size]
            self.truncated = self.truncated or len(part) < len(body)
            self.parts.append(part)
            self.size += len(part)


def _readable(message: Any) -> Any:
    """A scope or a message with headers that can be read twice: ASGI allows those that can't be."""
    headers = message.get("headers")
    return message if headers is None or isinstance(headers, list | tuple) else {**message, "headers": list(headers)}


def _kept(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    return headers.copy() if isinstance(headers, list) else headers


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def trace_of(headers: Iterable[tuple[bytes, bytes]]) -> Trace:
    """The trace in the header `traceparent` (W3C), with the current OpenTelemetry span if that is of the same trace; or
    else that of the current span."""
    for name, value in headers:
        if name == b"traceparent" and (found := _TRACEPARENT.fullmatch(value.strip())):
            trace_id, span_id, flags, _ = found.groups()
            if trace_id.strip(b"0") and span_id.strip(b"0"):
                current = current_trace()
                if current.trace_id == trace_id.decode():
                    return current  # the span of this request, and not of its caller
                return Trace(trace_id.decode(), span_id.decode(), declined=not int(flags, 16) & 1)
    return current_trace()

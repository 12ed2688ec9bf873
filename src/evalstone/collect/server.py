"""A receiver of OTLP over HTTP: traces and logs, in protobuf and JSON, plain and compressed with gzip.

Requests are in the spool before they are acknowledged. There is no authentication: anyone who reaches the port can
write.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from evalstone._core import sync
from evalstone._core.display import excerpt, safe
from evalstone._core.files import row_limit
from evalstone._core.guards import is_array, is_object
from evalstone._core.json import storable
from evalstone._core.redaction import masked
from evalstone.agents.formats.records import TelemetryRecord, by_trace, records_in
from evalstone.agents.formats.values import Entries, PlacedError, checked_list, checked_objects
from evalstone.collect import connections, hosts, protobuf
from evalstone.collect.bodies import MOST_IN_MEMORY, Bodies, Busy, TooLong, TooSlow
from evalstone.collect.connections import Connections
from evalstone.collect.protobuf import Signal
from evalstone.collect.scoring import SCORE, TraceScoring
from evalstone.collect.spool import Spool, SpoolFull, TracePart, log
from evalstone.datasets.json_rows import parse_json, utf8_text
from evalstone.errors import ConfigError, DataError, MissingDependency, described, invalid

PROTOBUF, JSON = "application/x-protobuf", "application/json"
RETRY_AFTER = 1
_IN_A_THREAD = 100_000
MOST_NESTED = 700
"""The maximum nesting of lists and objects in a request. Readers of the file recurse to the same depth, possibly from a
deeper stack: a request that is accepted here but can't be read there would make the whole file unreadable."""
_DEPTH_OF_ENTRIES = 6
"""The number of lists and objects that enclose a span in a request."""
MOST_REPORTED = 50
"""The most distinct client problems that are logged."""
GRPC_REMEDY = "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf where the spans are recorded"
_GRPC_TYPE = "application/grpc"
_NUMBERS = re.compile(r"[0-9,]+")
_CONTAINERS: Mapping[Signal, tuple[str, str]] = {
    "traces": ("scopeSpans", "spans"),
    "logs": ("scopeLogs", "logRecords"),
}
_INVALID, _DENIED, _UNAVAILABLE = 3, 7, 14
"""Codes of `google.rpc.Status`."""
_log = logging.getLogger("evalstone.collect.http")


def _is_no_broken_request(record: logging.LogRecord) -> bool:
    """aiohttp logs each malformed request; the reply already says what is wrong with it."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log.addFilter(_is_no_broken_request)


@dataclass
class Receiver:
    """Takes export requests, and writes them to the spool."""

    spool: Spool
    scoring: TraceScoring | None = None
    """Scores the written traces while the receiver runs."""
    requests: int = 0
    spans: int = 0
    logs: int = 0
    refused: int = 0
    """The number of requests that were not stored."""
    rejected: int = 0
    """The number of rejected spans and log records in stored requests."""
    scoring_error: str = ""
    """The error that ended scoring; "" if none did."""

    def __post_init__(self) -> None:
        self._bodies, self._reading = Bodies(), asyncio.Semaphore(MOST_IN_MEMORY)
        self._connections = Connections()
        self._runner: web.AppRunner | None = None
        self._listeners = list[socket.socket]()
        self._tasks = list[asyncio.Task[None]]()
        self._scoring: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._reported = set[str]()
        self._hosts = frozenset[str]()

    async def start(self, host: str, port: int) -> str:
        """Start listening. Returns the URL to export to. Raises ConfigError if it can't listen there or start a
        thread."""
        try:
            await sync.call(time.monotonic)  # a thread stays for all requests, even if no other can be started later
        except RuntimeError as error:
            raise ConfigError("cannot receive traces: ", error) from None
        application = web.Application()
        application.router.add_post("/v1/traces", functools.partial(self._export, signal="traces"))
        application.router.add_post("/v1/logs", functools.partial(self._export, signal="logs"))
        runner = web.AppRunner(
            application,
            access_log=None,
            logger=_log,
            shutdown_timeout=5.0,
            auto_decompress=False,
            keepalive_timeout=connections.IDLE,
        )
        await runner.setup()
        assert runner.server is not None  # noqa: S101 - it is set up
        try:
            self._listeners = await connections.listeners(host, port)
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            raise ConfigError(f"cannot listen on {host} port {port}: ", error) from None
        self._runner = runner
        taking = [self._connections.take(each, runner.server, self._report_grpc) for each in self._listeners]
        self._tasks = [asyncio.create_task(each) for each in (*taking, self._connections.watch(runner.server))]
        if self.scoring is not None:
            self._scoring = asyncio.create_task(self.scoring.run(self._stopping))
            self._scoring.add_done_callback(self._scoring_ended)
        self._hosts = hosts.allowed(host, [str(each.getsockname()[0]) for each in self._listeners])
        address, bound_port = self._listeners[0].getsockname()[:2]
        return f"http://{f'[{address}]' if ':' in address else address}:{bound_port}"

    async def stop(self, seconds: float | None = None) -> None:
        """Answer and write the requests received so far, and submit the samples of all open traces, within this many
        seconds."""
        began = time.monotonic()
        await sync.cancel_all(self._tasks)
        for listener in self._listeners:
            listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._stopping.set()
        try:
            if self._scoring is not None:
                left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
                done, _ = await asyncio.wait((self._scoring,), timeout=left)
                if done:
                    self._scoring.result()
        finally:
            if self._scoring is not None:
                self._scoring.cancel()
                await asyncio.wait((self._scoring,))
            await self.spool.close()

    def _scoring_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.scoring_error = described(error)
            message = f"scoring has ended with an error; traces are only stored: {self.scoring_error}"
            log.error("%s", safe(masked(message), 500))

    async def _export(self, request: web.Request, signal: Signal) -> web.Response:
        content_type = request.content_type
        if refused := hosts.refused(request.headers.getall("Host", ()), self._hosts):
            return self._failure(JSON, 403, _DENIED, refused)
        if content_type not in (PROTOBUF, JSON):
            problem = f"Content-Type must be {PROTOBUF} or {JSON}, not {excerpt(content_type)}"
            if content_type.startswith(_GRPC_TYPE):
                self._report_grpc()
                problem = f"gRPC is not received; {GRPC_REMEDY}"
            return self._failure(JSON, 415, _INVALID, problem)
        encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("gzip", "identity"):
            return self._failure(content_type, 415, _INVALID, "Content-Encoding must be gzip, or none")
        try:
            with self._bodies.hold() as pending:
                body = await pending.read(request)
                with self._connections.answering(request.protocol):
                    if encoding == "gzip" or len(body) > _IN_A_THREAD:
                        async with self._reading:
                            body = await sync.call(pending.unzipped, body) if encoding == "gzip" else body
                            parts, records, problems = await sync.call(_read, body, content_type, signal)
                    else:
                        parts, records, problems = _read(body, content_type, signal)
                    if parts:
                        await self.spool.append(parts)
        except TooLong:
            return self._failure(content_type, 413, _INVALID, f"the request is longer than {row_limit():,} bytes")
        except (Busy, MemoryError):
            return self._failure(content_type, 503, _UNAVAILABLE, "too much is being received; try again")
        except TooSlow as error:
            return self._failure(content_type, 503, _UNAVAILABLE, str(error))
        except SpoolFull:
            return self._failure(content_type, 503, _UNAVAILABLE, "the disk can't follow; try again")
        except OSError as error:
            problem = f"it could not be written: {error.strerror or error}"
            self._report(f"a request was refused: {problem}", problem)
            return self._failure(content_type, 503, _UNAVAILABLE, problem)
        except MissingDependency as error:
            return self._failure(JSON, 415, _INVALID, f"{error}; or export JSON")
        except DataError as error:
            return self._failure(content_type, 400, _INVALID, str(error))
        self.requests += 1
        self.spans += sum(record.kind == "span" for record in records)
        self.logs += sum(record.kind == "log" for record in records)
        rejected, problem = len(problems), next(iter(problems), "")
        if rejected:
            self.rejected += rejected
            problem += f", and {rejected - 1:,} more" if rejected > 1 else ""
            self._report(f"of a request of {signal}, {rejected:,} rejected: {problem}", problem)
        if content_type == PROTOBUF:
            return web.Response(body=protobuf.reply(signal, rejected, problem), content_type=PROTOBUF)
        partial: Entries = {protobuf.rejected_name(signal): str(rejected), "errorMessage": problem}
        return web.json_response({"partialSuccess": partial} if rejected else {})

    def _report_grpc(self) -> None:
        self._report(f"a client speaks gRPC, which is not received; {GRPC_REMEDY}", "gRPC")

    def _report(self, message: str, problem: str) -> None:
        """Log a client's problem, unless it was logged before with other numbers."""
        kind = _NUMBERS.sub("0", problem)
        if kind not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(kind)
            log.warning("%s", safe(masked(message), 500))

    def _failure(self, content_type: str, code: int, status: int, problem: str) -> web.Response:
        self.refused += 1
        if code < 500 and GRPC_REMEDY not in problem:
            self._report(f"a request was refused: {problem}", problem)
        headers = {"Retry-After": str(RETRY_AFTER)} if code == 503 else {}
        if content_type == PROTOBUF:
            body = protobuf.status(status, problem)
            return web.Response(status=code, body=body, content_type=PROTOBUF, headers=headers)
        return web.json_response({"code": status, "message": problem}, status=code, headers=headers)


@dataclass
class _Scope:
    """A list of spans or log records of a request."""

    scope: Entries
    """The object that has the list."""
    key: str
    place: str


def _read(body: bytes, content_type: str, signal: Signal) -> tuple[list[TracePart], list[TelemetryRecord], list[str]]:
    """The parts to write, their records, and the problems of the rejected ones.

    Raises DataError if this isn't an export request of the signal.
    """
    try:
        request = protobuf.request_data(body, signal) if content_type == PROTOBUF else _json(body)
        key = "resourceSpans" if signal == "traces" else "resourceLogs"
        resources: Any = request.get(key, None if request else [])
        if not is_array(resources):
            raise DataError(f"an export request of {signal} must have a list under {key}")
        data: Entries = {key: resources}
        scopes = _scopes(data, key, *_CONTAINERS[signal])
        problems = _without(scopes, _without_ids) if signal == "traces" else []
        try:
            parts, records = _whole(data)
        except (DataError, RecursionError):
            malformed = _without(scopes, _problem)
            if not malformed or not any(each.scope[each.key] for each in scopes):
                raise
            problems += malformed
            parts, records = _whole(data)
    except RecursionError:
        raise DataError("nested too deeply") from None
    except PlacedError as error:
        raise DataError(f"{error.place}: ", error) from None
    return parts, records, problems


def _whole(data: Entries) -> tuple[list[TracePart], list[TelemetryRecord]]:
    """The parts of a request, and its records. Raises DataError and RecursionError."""
    _check_depth(data)
    records = [] if data == {key: [] for key in data} else list(records_in(data))
    of_trace: defaultdict[str, list[TelemetryRecord]] = defaultdict(list)
    for record in records:
        of_trace[record.trace].append(record)
    parts, left = list[TracePart](), row_limit()
    for trace, said in by_trace(data, records).items() if records else ():
        body = _line(said)
        left -= len(body)  # what is around the spans of several traces is repeated for each
        if left < 0:
            raise DataError(f"as JSON, by trace, it is longer than {row_limit():,} bytes")
        spans = [each for each in of_trace[trace] if each.kind == "span"]
        logs = sum(each.kind == "log" and each.name != SCORE for each in of_trace[trace])
        parts.append(TracePart(storable(trace), body, len(spans) + logs, any(each.is_root for each in spans)))
    return parts, records


def _scopes(data: Entries, resources: str, scopes: str, entries: str) -> list[_Scope]:
    """The lists of spans or log records. Raises PlacedError for a value that must be a list or an object and isn't. An
    empty list can be omitted."""
    lists: list[_Scope] = []
    for at, resource in enumerate(checked_objects(data[resources], resources)):
        place = f"{resources}[{at}].{scopes}"
        for number, scope in enumerate(checked_objects(resource.get(scopes), place)):
            if checked_list(scope.get(entries), f"{place}[{number}].{entries}"):
                lists.append(_Scope(scope, entries, f"{place}[{number}].{entries}"))
    return lists


def _without(scopes: Sequence[_Scope], problem_of: Callable[[Any, str], str]) -> list[str]:
    """Remove invalid spans or log records. Returns their problems."""
    problems: list[str] = []
    for each in scopes:
        entries = each.scope[each.key]
        reasons = [problem_of(entry, f"{each.place}[{number}]") for number, entry in enumerate(entries)]
        if any(reasons):
            problems += filter(None, reasons)
            each.scope[each.key] = [entry for entry, problem in zip(entries, reasons, strict=True) if not problem]
    return problems


def _without_ids(entry: Any, place: str) -> str:
    """The problem of a span without IDs; "" if it has them or isn't an object."""
    if not is_object(entry):
        return ""
    missing = [key for key in ("traceId", "spanId") if not str(entry.get(key) or "").strip("0")]
    return f"{place}: a span must have a {' and a '.join(missing)}" if missing else ""


def _problem(entry: Any, place: str) -> str:
    """Why a span or a log record can't be read; "" if it can."""
    try:
        if is_object(entry):
            _check_depth(entry, MOST_NESTED - _DEPTH_OF_ENTRIES)
            _line(entry)
        for _ in records_in(entry, place, {}, log=".logRecords[" in place):
            pass
    except PlacedError as error:
        return f"{error.place or place}: {error}"
    except RecursionError:
        return f"{place}: nested too deeply"
    except DataError as error:
        return f"{place}: {error}"
    return ""


def _check_depth(data: Entries, most: int = MOST_NESTED) -> None:
    level: list[Any] = [data]
    for _ in range(most):
        inner = (outer.values() if is_object(outer) else outer for outer in level)
        level = [item for item in itertools.chain.from_iterable(inner) if isinstance(item, dict | list)]
        if not level:
            return
    raise DataError("nested too deeply")


def _line(data: Entries) -> bytes:
    try:
        try:
            return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except UnicodeEncodeError:  # half of a character outside the basic plane, as a text that was cut may end with
            return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as error:
        raise DataError("it has a number without a form as JSON: ", error) from None


def _json(body: bytes) -> Entries:
    text = utf8_text(body)
    protobuf.check_objects(text)
    data = parse_json(text)
    if not is_object(data):
        raise DataError(invalid("an export request", "an object", data))
    return data

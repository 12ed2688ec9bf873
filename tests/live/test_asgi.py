"""ASGI middleware: requests and responses pass as they are, and a share of them is scored."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.live import Request, Response
from evalstone.live.asgi import Part
from evalstone.types import Failed
from tests.live.conftest import Start
from tests.live.test_live import found, numbers, trace
from tests.live.test_watch import samples

TRACED = f"00-{trace(5)}-00f067aa0ba902b7-01"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Echoes a question in two parts; `/broken` raises, `/missing` is a 404, `/cut` never ends."""
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{kind}"
            await send({"type": f"lifespan.{kind}.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message.get("more_body", False)
    if scope["path"] == "/broken":
        raise KeyError("the application's own")
    status = 404 if scope["path"] == "/missing" else 200
    await send({"type": "http.response.start", "status": status, "headers": [(b"X-Model", b"m")]})
    await send({"type": "http.response.body", "body": bytearray(b'{"answer": "'), "more_body": True})
    if scope["path"] != "/cut":
        await send({"type": "http.response.body", "body": body + b'"}'})


def read(request: Request, response: Response) -> Mapping[str, Any] | None:
    if request.text == "no question":
        return None
    answer = response.json()["answer"]
    return {"input": request.text, "output": answer, "reference": answer, "metadata": {"query": request.query}}


def asked(application: Any, *questions: str, path: str = "/ask", method: str = "POST", traceparent: str = "") -> Any:
    """What the application sends for each question, which is received in two parts."""

    async def ask(question: str) -> list[Any]:
        sent: list[Any] = []
        parts = [
            {"type": "http.request", "body": question[:2].encode(), "more_body": True},
            {"type": "http.request", "body": question[2:].encode()},
        ]
        headers = [(b"traceparent", traceparent.encode())] if traceparent else []
        scope = {"type": "http", "path": path, "method": method, "headers": headers, "query_string": b"a=1"}

        async def receive() -> Any:
            return parts.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await application(scope, receive, send)
        return sent

    async def all_of_them() -> list[Any]:
        return [await ask(question) for question in questions]

    return asyncio.run(all_of_them())


def test_what_an_application_answers_is_scored_and_passes_as_it_is(start: Start) -> None:
    live = start()
    watched = live.asgi(app, read)
    assert asked(watched, "Where?") == asked(app, "Where?")
    (sample,) = samples(live)
    assert (sample.input, sample.output, sample.metadata["query"]) == ("Where?", "Where?", "a=1")
    assert [(row.entity, row.state, row.trace) for row in found(live)] == [("/ask", "scored", None)]


def test_each_part_is_sent_on_before_the_next_one_is_made(start: Start) -> None:
    live, order = start(), list[str]()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        for part in ("one", "two", "three"):
            order.append(f"made {part}")
            message = {"type": "http.response.body", "body": f"data: {part}\n\n".encode(), "more_body": True}
            await send(message)
        await send({"type": "http.response.body"})

    def events(request: Request, response: Response) -> Mapping[str, Any]:
        return {"output": " ".join(response.events), "reference": "two"}

    async def serve() -> None:
        async def send(message: Any) -> None:
            order.append(f"sent {message.get('body', b'').decode().strip()}")

        async def receive() -> Any:
            raise AssertionError("nobody reads the request")

        scope: Any = {"type": "http", "path": "/", "method": "GET", "headers": []}
        await live.asgi(streaming, events)(scope, receive, send)

    asyncio.run(serve())
    parts = ("one", "two", "three")
    assert order == ["sent ", *(word for part in parts for word in (f"made {part}", f"sent data: {part}")), "sent "]
    assert [sample.output for sample in samples(live)] == ["one two three"]


def test_only_successful_answers_to_the_paths_that_were_named_count(start: Start) -> None:
    live = start()
    watched = live.asgi(app, read, paths=["/ask", "/api/*", "/missing", "/broken", "/cut"])
    for path in ("/ask", "/api/x", "/apix", "/other", "/missing", "/cut"):
        asked(watched, "Where?", path=path)
    for method in ("OPTIONS", "HEAD"):
        asked(watched, "Where?", method=method)
    with pytest.raises(KeyError, match="own"):
        asked(watched, "Where?", path="/broken")
    asked(watched, "no question")
    one = numbers(live)
    assert (one.seen, one.filtered, one.scored) == (3, 1, 2)
    nothing = start(sampling=0.0, name="nothing")
    watched = nothing.asgi(app, read, paths=["/ask", "/missing", "/cut"])
    for path in ("/ask", "/missing", "/cut"):
        asked(watched, "Where?", path=path)
    assert (numbers(nothing).seen, numbers(nothing).declined) == (1, 1), "the same count, drawn or not"


def test_the_trace_is_that_of_the_request(start: Start) -> None:
    live = start()
    watched = live.asgi(app, read, entity="guide")
    asked(watched, "Where?", traceparent=TRACED)
    asked(watched, "Where?", traceparent=TRACED[:-1] + "0")
    for odd in ("00-x-y-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", "\x00"):
        asked(watched, "Where?", traceparent=odd)
    assert (numbers(live).declined, numbers(live).scored) == (1, 4)
    traced, *others = found(live)
    assert (traced.trace, traced.span, traced.entity) == (trace(5), "00f067aa0ba902b7", "guide")
    assert {row.trace for row in others} == {None}


def test_bodies_are_copied_up_to_a_limit_and_what_can_not_be_copied_is_said(start: Start) -> None:
    parts: list[tuple[bool, int, bool, int]] = []

    def measured(request: Request, response: Response) -> None:
        parts.append((request.truncated, len(request.body), response.truncated, len(response.body)))

    live = start()
    asked(live.asgi(app, measured, body_limit=20), "Where?", "x" * 100)

    async def from_file(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.pathsend", "path": "/tmp/x"})

    asked(live.asgi(from_file, measured), "Where?")
    assert numbers(live).filtered == 3
    assert parts == [(False, 6, False, 20), (True, 20, True, 20), (False, 0, True, 0)]


def test_an_error_in_read_is_a_failed_score_that_names_read(start: Start) -> None:
    live = start()

    def broken(request: Request, response: Response) -> None:
        raise KeyError("answer")

    def wrong(request: Request, response: Response) -> Any:
        return ["answer"]

    def unknown(request: Request, response: Response) -> Any:
        return {"answer": "Lisbon"}

    for read_wrongly in (broken, wrong, unknown):
        assert asked(live.asgi(app, read_wrongly), "Where?")[0][0]["status"] == 200
    rows = found(live)
    assert {row.state for row in rows} == {"failed"}
    errors = {row.record.outcome.error for row in rows if row.record and isinstance(row.record.outcome, Failed)}
    assert {error.partition(" (test_asgi.py")[0] for error in errors} == {
        "read, the function of live.asgi, failed: KeyError: 'answer'",
        "read, the function of live.asgi, failed: it must return a Sample, a mapping of its fields, or None, not list",
        *(error for error in errors if error.startswith("what was submitted is no sample: unknown sample field")),
    }
    assert len(errors) == 3


def test_the_worker_ends_with_the_lifespan_of_the_application(start: Start) -> None:
    live, sent = start(), list[str]()
    watched = live.asgi(app, read)
    incoming = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def send(message: Any) -> None:
        if message["type"] == "lifespan.startup.complete":
            live.submit(output="x", reference="x")
        sent.append(message["type"])

    async def receive() -> Any:
        return incoming.pop(0)

    asyncio.run(watched({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert live.coverage().total.scored == 1, "without a flush"


def test_other_connections_pass_untouched(start: Start) -> None:
    passed: list[Any] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        passed.extend((scope, receive, send))

    scope = {"type": "websocket", "path": "/"}
    asyncio.run(start().asgi(socket, read)(scope, asked, read))  # pyright: ignore[reportArgumentType]
    assert passed == [scope, asked, read]


def test_events_are_read_as_browsers_do() -> None:
    body = b"event: a\ndata: one\ndata: two\n\n: comment\n\ndata:three\r\n\r\ndata"
    assert Part(headers={}, body=body).events == ["one\ntwo", "three"]
    assert json.loads(Part(headers={}, body=b"[1]").text) == [1]


def test_settings_that_make_no_sense_are_refused(start: Start) -> None:
    live = start()
    with pytest.raises(ConfigError, match="read must be a function"):
        live.asgi(app, "x")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="body_limit must be"):
        live.asgi(app, read, body_limit=0)
    with pytest.raises(ConfigError, match="paths must be a list"):
        live.asgi(app, read, paths="/ask")


def test_what_compresses_around_it_changes_nothing_of_what_is_read(start: Start) -> None:
    """As Starlette's GZipMiddleware does, which replaces the body in the message and appends to its headers."""
    read_from: list[tuple[Any, ...]] = []

    def keep(request: Request, response: Response) -> Mapping[str, Any]:
        read_from.append((request.path, request.headers, response.headers, response.json()))
        return {"output": response.json()["answer"]}

    live = start("contains(expected=Paris)")
    inner = live.asgi(app, keep)

    async def compressing(scope: Any, receive: Any, send: Any) -> None:
        headers: Any = None

        async def compressed(message: Any) -> None:
            nonlocal headers
            headers = message.get("headers", headers)
            if message["type"] == "http.response.body":
                message["body"] = gzip.compress(message["body"])
                headers.append((b"content-encoding", b"gzip"))
            await send(message)

        await inner(scope, receive, compressed)
        scope["path"] = "/elsewhere"
        scope["headers"].append((b"later", b"1"))

    asked(compressing, "Paris")
    assert live.flush()
    assert read_from == [("/ask", {}, {"x-model": "m"}, {"answer": "Paris"})]
    assert numbers(live).scored == 1

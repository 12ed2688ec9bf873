"""ASGI middleware: requests and responses pass as they are, and a share of them is scored."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest

from evalstone import Live
from evalstone.live import Request, Response
from evalstone.live.asgi import HTTPMessage, trace_of
from evalstone.live.scoring import INVALID
from evalstone.live.tracing import Trace
from evalstone.types import Failed, Sample
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
    assert [(row.entity, row.state, row.trace) for row in found(live)] == [("/ask", "score", None)]


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
    paths: Any = iter(["/ask", "/api/*", "/missing", "/broken", "/cut"])
    watched = live.asgi(app, read, paths=paths)
    for path in ("/ask", "/api/x", "/apix", "/other", "/missing", "/cut"):
        asked(watched, "Where?", path=path)
    for method in ("OPTIONS", "HEAD"):
        asked(watched, "Where?", method=method)
    with pytest.raises(KeyError, match="own"):
        asked(watched, "Where?", path="/broken")
    asked(watched, "no question")
    one = numbers(live)
    assert (one.seen, one.filtered, one.n_score) == (3, 1, 2)
    nothing = start(sampling=0.0, stream="nothing")
    watched = nothing.asgi(app, read, paths=["/ask", "/missing", "/cut"])
    for path in ("/ask", "/missing", "/cut"):
        asked(watched, "Where?", path=path)
    assert (numbers(nothing).seen, numbers(nothing).declined) == (1, 1)  # the same count, drawn or not


def test_the_trace_is_that_of_the_request(start: Start) -> None:
    live = start()
    watched = live.asgi(app, read, entity="guide")
    asked(watched, "Where?", traceparent=TRACED)
    asked(watched, "Where?", traceparent=TRACED[:-1] + "0")
    odds = ("00-x-y-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{trace(5)}-{'0' * 16}-01", "\x00")
    for odd in odds:
        asked(watched, "Where?", traceparent=odd)
    assert (numbers(live).declined, numbers(live).n_score) == (1, 5)
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


READ_FAILED = "read, the function of live.asgi, failed"
WRONG = "it must return a Sample, a mapping of its fields, or None"


def test_an_error_in_read_is_a_failed_score_that_names_read(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    live = start()

    def broken(request: Request, response: Response) -> None:
        raise KeyError("answer")

    def wrong(request: Request, response: Response) -> Any:
        return ["answer"]

    def nothing(request: Request, response: Response) -> Any:
        return ""

    def leaving(request: Request, response: Response) -> None:
        raise SystemExit("bye")

    def unknown(request: Request, response: Response) -> Any:
        return {"answer": "Lisbon"}

    for read_wrongly in (broken, wrong, nothing, leaving, unknown):
        assert asked(live.asgi(app, read_wrongly), "Where?")[0][0]["status"] == 200
    rows = found(live)
    assert {row.state for row in rows} == {"failed"}
    errors = {
        row.record.outcome.error for row in rows if row.record is not None and isinstance(row.record.outcome, Failed)
    }
    (unknown_field,) = [error for error in errors if error.startswith(INVALID)]
    assert "answer" in unknown_field
    reasons = ("KeyError: 'answer'", "SystemExit: bye", f"{WRONG}, not list", f"{WRONG}, not str")
    assert {error.partition(" (test_asgi.py")[0] for error in errors - {unknown_field}} == {
        f"{READ_FAILED}: {reason}" for reason in reasons
    }
    assert ["not a sample" in message for message in caplog.messages] == [False, True], "each kind once"


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
    assert live.coverage().total.n_score == 1, "without a flush"


@pytest.mark.parametrize("kind", ["websocket", "webtransport"])
def test_other_connections_pass_untouched(start: Start, kind: str) -> None:
    passed: list[Any] = []

    async def socket(scope: Any, receive: Any, send: Any) -> None:
        passed.extend((scope, receive, send))

    scope = {"type": kind, "path": "/"}
    asyncio.run(start().asgi(socket, read)(scope, asked, read))  # pyright: ignore[reportArgumentType]
    assert passed == [scope, asked, read]


def test_events_are_read_as_browsers_do() -> None:
    body = b"event: a\ndata: one\ndata: two\n\n: comment\n\ndata:three\r\n\r\ndata"
    assert HTTPMessage(headers={}, body=body).events == ["one\ntwo", "three"]
    body = b"data:  two spaces \r\rdata: three"
    assert HTTPMessage(headers={}, body=body).events == [" two spaces ", "three"]
    body = b"data: one\r\ndata: two\r\n\r\ndata: three\r\n\r\n"
    assert HTTPMessage(headers={}, body=body).events == ["one\ntwo", "three"]
    one_line = "a\u2028b\x85c\x0cd"
    assert HTTPMessage(headers={}, body=f"data: {one_line}\n\n".encode()).events == [one_line]
    assert json.loads(HTTPMessage(headers={}, body=b"[1]").text) == [1]


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
    assert numbers(live).n_score == 1


Scope = dict[str, Any]


def served(application: Any, *received: Any, send: Any = None, **scope: Any) -> None:
    """Serve one request, of which these messages are received."""
    left = list(received)

    async def receive() -> Any:
        return left.pop(0)

    async def ignored(message: Any) -> None: ...

    request: Scope = {"type": "http", "path": "/", "method": "POST", "headers": [], **scope}
    asyncio.run(application(request, receive, send or ignored))


def saying(*messages: dict[str, Any], status: int = 200) -> Any:
    """An application that reads two messages and sends these."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()
        await send({"type": "http.response.start", "status": status})
        for message in messages:
            await send({"type": "http.response.body", **message})

    return application


def test_bodies_may_be_left_out_or_be_none_and_are_as_they_were_when_they_passed(start: Start) -> None:
    live, bodies = start(), list[tuple[str, str, str]]()
    received, sent = bytearray(b"question"), bytearray(b"answer")

    def kept(request: Request, response: Response) -> None:
        bodies.append((request.text, response.text, request.query))

    async def send(message: Any) -> None:
        received[:] = b"overread"
        message.get("body", bytearray())[:] = b""

    messages: list[Any] = [
        {"type": "http.request", "body": memoryview(received), "more_body": True},
        {"type": "http.request"},
    ]
    application = live.asgi(saying({"body": sent, "more_body": True}, {}), kept)
    served(application, *messages, send=send, query_string=b"a=\xff")
    messages = [{"type": "http.request", "body": None, "more_body": True}, {"type": "http.request", "body": b"q"}]
    served(live.asgi(saying({"body": None}), kept), *messages)
    assert numbers(live).filtered == 2
    assert bodies == [("question", "answer", "a=ÿ"), ("q", "", "")]


def test_a_body_in_many_parts_is_copied_up_to_the_limit(start: Start) -> None:
    live, found = start(), list[tuple[str, bool]]()

    def kept(request: Request, response: Response) -> None:
        found.append((response.text, response.truncated))

    parts: list[dict[str, Any]] = [{"body": b"abc", "more_body": True}] * 3
    served(live.asgi(saying(*parts, {}), kept, body_limit=7), {"type": "http.request"}, {"type": "http.request"})
    assert numbers(live).filtered == 1
    assert found == [("abcabca", True)]


def test_what_waits_to_be_read_counts_with_the_bytes_of_both_bodies(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, sizes = start(), list[int]()

    def offer(*_: Any, later: int, **__: Any) -> None:
        sizes.append(later)

    monkeypatch.setattr(live, "offer", offer)
    asked(live.asgi(app, read), "Where?")
    assert sizes == [len("Where?") + len('{"answer": "Where?"}')]


def test_an_answer_counts_once_and_only_with_a_status_of_success(start: Start) -> None:
    live = start("contains(expected=a)")

    def kept(request: Request, response: Response) -> Sample:
        return Sample(output=response.text)

    twice = saying({"body": b"a"}, {"body": b"b"})
    moved = saying({"body": b"a"}, status=300)
    for application in (twice, moved):
        served(live.asgi(application, kept), {"type": "http.request"}, {"type": "http.request"})
    assert (numbers(live).seen, numbers(live).n_score) == (1, 1)


def test_a_body_after_a_file_does_not_hide_that_the_file_is_missing(start: Start) -> None:
    live, truncated = start(), list[bool]()

    def kept(request: Request, response: Response) -> None:
        truncated.append(response.truncated)

    async def from_file(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.zerocopysend", "file": 3, "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    served(live.asgi(from_file, kept))
    assert live.flush(30)
    assert truncated == [True]


@pytest.mark.parametrize(("more", "counted"), [(False, [True]), (True, [])])
def test_a_file_that_is_sent_in_parts_counts_once_it_has_ended(start: Start, more: bool, counted: list[bool]) -> None:
    live, truncated = start(), list[bool]()

    def kept(request: Request, response: Response) -> None:
        truncated.append(response.truncated)

    async def from_file(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.zerocopysend", "file": 3, "more_body": more})

    served(live.asgi(from_file, kept))
    assert live.flush()
    assert truncated == counted


def test_of_a_request_that_is_not_drawn_nothing_is_copied(start: Start) -> None:
    given: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        given.append(receive)

    async def receive() -> Any: ...

    async def send(message: Any) -> None: ...

    scope: Scope = {"type": "http", "path": "/", "method": "GET", "headers": []}
    asyncio.run(start(sampling=0.0).asgi(application, read)(scope, receive, send))
    assert given == [receive]


@pytest.mark.parametrize(("flags", "declined"), [("0b", False), ("ff", False), ("02", True)])
def test_the_last_bit_of_the_flags_says_whether_a_trace_is_recorded(flags: str, declined: bool) -> None:
    header = f" {TRACED[:-2]}{flags} ".encode()
    assert trace_of([(b"traceparent", header)]) == Trace(trace(5), "00f067aa0ba902b7", declined)


@pytest.mark.parametrize(("current", "span"), [(trace(5), "b" * 16), (trace(6), "00f067aa0ba902b7")])
def test_the_span_is_the_current_one_if_that_is_of_the_trace_of_the_request(
    monkeypatch: pytest.MonkeyPatch, current: str, span: str
) -> None:
    monkeypatch.setattr("evalstone.live.asgi.current_trace", lambda: Trace(current, "b" * 16))
    assert trace_of([(b"traceparent", TRACED.encode())]) == Trace(trace(5), span)


@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_the_worker_starts_and_ends_before_the_server_is_told_of_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    live, order = start(), list[str]()

    async def aclose() -> None:
        order.append("closed")

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "lifespan.startup.complete"})
        await send({"type": f"lifespan.shutdown.{outcome}"})

    async def send(message: Any) -> None:
        order.append(message["type"])

    monkeypatch.setattr(live, "start", lambda: order.append("started"))
    monkeypatch.setattr(live, "aclose", aclose)
    served(live.asgi(application, read), send=send, type="lifespan")
    assert order == ["started", "lifespan.startup.complete", "closed", f"lifespan.shutdown.{outcome}"]


def test_headers_that_can_be_read_only_once_reach_the_application_and_the_server(start: Start) -> None:
    seen: list[dict[bytes, bytes]] = []
    pairs: list[dict[str, str]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(dict(scope["headers"]))
        await send({"type": "http.response.start", "status": 200, "headers": iter([(b"X-Model", b"m")])})
        await send({"type": "http.response.body", "body": b"{}"})

    def read_headers(request: Request, response: Response) -> Mapping[str, Any]:
        pairs.append({**request.headers, **response.headers})
        return {"output": "x"}

    async def ask(live: Live) -> list[Any]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(dict(message.get("headers", ())))

        headers = (pair for pair in [(b"traceparent", TRACED.encode()), (b"x-user", b"u")])
        scope = {"type": "http", "path": "/ask", "method": "GET", "headers": headers}
        await live.asgi(application, read_headers)(scope, receive, send)
        return sent

    for sampling in (1.0, 0.0):
        live = start(stream=f"at {sampling:g}", sampling=sampling)
        assert asyncio.run(ask(live))[0] == {b"X-Model": b"m"}
        assert seen.pop() == {b"traceparent": TRACED.encode(), b"x-user": b"u"}
        assert numbers(live).seen == 1
    assert pairs == [{"traceparent": TRACED, "x-user": "u", "x-model": "m"}]


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (HTTPMessage(headers={}, body=b'{"a": "b', truncated=True), "the body was cut at body_limit=8"),
        (HTTPMessage(headers={}, body=b"123", truncated=True), "the body was cut at body_limit=3"),
        (HTTPMessage(headers={}, body=b"", truncated=True), "the body was sent as a file"),
        (HTTPMessage(headers={}, body=b""), "the body is empty"),
    ],
)
def test_a_body_that_is_cut_or_empty_says_so_where_json_is_expected(part: HTTPMessage, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        part.json()

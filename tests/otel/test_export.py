"""OTLP over loopback: what the command line exports, and what it says where nobody receives it."""

from __future__ import annotations

import dis
import gzip
import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from requests import ReadTimeout, RequestException, Session

import evalstone
import evalstone.otel
from evalstone import ConfigError, evaluate
from evalstone._core.redaction import redacted
from evalstone.otel.delivery import Delivery, own_credentials
from evalstone.otel.export import (
    _Counting,  # pyright: ignore[reportPrivateUsage]
    _ShutDown,  # pyright: ignore[reportPrivateUsage]
    _Troubles,  # pyright: ignore[reportPrivateUsage]
    check_environment,
    endpoints,
)
from tests.fakes import ROOT, python
from tests.otel.emitted import gen_ai

CONTAINS = "contains(expected=Ada)"
SCORED = "gen_ai.evaluation.result"
LOST = "not exported to OpenTelemetry:"
ALL = "6 of 6 spans, 5 of 5 score events and 1 of 1 batch of metrics"
SAMPLES = [{"id": f"q{n}", "output": f"Ada {n}", "context": [f"Ada {n}"]} for n in range(5)]
REQUESTS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Receiver:
    """What an OTLP endpoint got: its URL, its requests by path, and their headers."""

    def __init__(self) -> None:
        self.got: dict[str, list[Any]] = {path: [] for path in REQUESTS}
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.reply: dict[str, str] = {}
        self.body = b""
        self.delay = 0.0
        self.answers = threading.Event()
        self.answers.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                time.sleep(receiver.delay)
                receiver.answers.wait(10)
                if receiver.status == 200:
                    receiver.got[self.path].append(REQUESTS[self.path].FromString(body))
                receiver.headers.append(dict(self.headers))
                self.send_response(receiver.status)
                for name, text in receiver.reply.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(receiver.body)))
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = False  # closing waits for them: no other test hears of them

            def handle_error(self, request: Any, client_address: Any) -> None:
                if not isinstance(sys.exception(), ConnectionError):  # a client need not wait for the answer
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[Any]:
        return [s for r in self.got["/v1/traces"] for a in r.resource_spans for b in a.scope_spans for s in b.spans]

    def events(self) -> list[Any]:
        return [e for r in self.got["/v1/logs"] for a in r.resource_logs for b in a.scope_logs for e in b.log_records]

    def metrics(self) -> set[str]:
        each = (
            m for r in self.got["/v1/metrics"] for a in r.resource_metrics for b in a.scope_metrics for m in b.metrics
        )
        return {metric.name for metric in each}

    def services(self) -> set[str]:
        each = (r.resource_spans for r in self.got["/v1/traces"])
        return {
            k.value.string_value
            for some in each
            for a in some
            for k in a.resource.attributes
            if k.key == "service.name"
        }


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    one = Receiver()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", one.url)
    yield one
    one.answers.set()
    one.server.shutdown()
    one.server.server_close()
    thread.join(5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    return tmp_path


RUN = """
import os, sys
os.chdir({folder!r})
sys.argv = ["evalstone", *{arguments!r}]
from evalstone.cli import main
try:
    main()
except SystemExit as ended:
    print("exit code", ended.code)
"""


def command(folder: Path, *arguments: str, **environment: str) -> str:
    """What a command prints, in a process of its own."""
    return python(RUN.format(folder=str(folder), arguments=arguments), timeout=60, **environment)


def timeless(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "judge calls" not in line and "run 2" not in line)


@pytest.mark.slow
def test_a_run_exports_every_score_with_its_spans_and_metrics_and_prints_the_same(
    receiver: Receiver, folder: Path
) -> None:
    arguments = (
        "run",
        "data.jsonl",
        "--scorer",
        CONTAINS,
        "--scorer",
        "faithfulness",
        "--no-cache",
        "--out",
        "results",
    )
    plain = command(folder, *arguments)
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    traced = command(folder, *arguments, "--otel", **endpoint)
    strip = "evalstone report results"
    assert timeless(traced).split(strip)[0] == timeless(plain).split(strip)[0]
    assert "exit code 0" in traced
    events = receiver.events()
    assert [event.event_name for event in events] == [SCORED] * 10
    spans = {span.span_id: span for span in receiver.spans()}
    assert {spans[event.span_id].name for event in events} == {"score contains", "score faithfulness"}
    assert len([span for span in spans.values() if span.name.startswith("score ")]) == 10
    assert {"evalstone.score", "evalstone.outcomes"} <= receiver.metrics()
    assert receiver.services() == {"evalstone"}


def test_spans_of_a_target_in_the_process_are_exported(receiver: Receiver, folder: Path) -> None:
    (folder / "app.py").write_text(
        "from opentelemetry import trace\n"
        "def agent(*, metadata):\n"
        "    with trace.get_tracer('app').start_as_current_span('inside'):\n"
        "        return 'Ada'\n"
    )
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "shop"}
    target = "app.py:agent"
    command(folder, "run", "data.jsonl", "--scorer", CONTAINS, "--target", target, "--otel", **settings)
    spans = {span.span_id: span for span in receiver.spans()}
    inside = [span for span in spans.values() if span.name == "inside"]
    assert len(inside) == 5
    above = [span.parent_span_id for span in inside] + [event.span_id for event in receiver.events()]
    assert {spans[id].name for id in above} == {f"invoke_agent {target}"}
    assert receiver.services() == {"shop"}


def exported(count: int = 5, **options: Any) -> tuple[evalstone.Run, list[str], float]:
    """A run, what was lost of what it emitted, and the seconds of the end of the block."""
    lost: list[str] = []
    with evalstone.otel.export_otlp(on_loss=lost.append, **options):
        samples = [{"id": f"q{n}", "output": "Ada"} for n in range(count)]
        run = evaluate(samples, CONTAINS, ledger=None)
        began = time.perf_counter()
    return run, lost, time.perf_counter() - began


@pytest.mark.slow
def test_everything_arrives_although_it_is_more_than_a_queue_of_the_sdk_holds(receiver: Receiver) -> None:
    lost, count = list[str](), 2_600
    receiver.answers.clear()
    with evalstone.otel.export_otlp(on_loss=lost.append):
        evaluate([{"id": f"q{n}", "output": "Ada"} for n in range(count)], CONTAINS, ledger=None)
        receiver.answers.set()
    assert not lost
    assert len(receiver.events()) == count
    assert len(receiver.spans()) == count + 1


def test_what_a_short_queue_drops_is_said(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "10")
    receiver.delay = 0.05
    _, (lost,), _ = exported(300)
    left = 300 - len(receiver.events())
    assert left > 0
    assert lost.startswith(f"{LOST} {left} of 300 score events (")
    assert re.search("[Qq]ueue.* full", lost)


def test_an_endpoint_that_nobody_answers_fails_nothing_and_delays_the_end_little(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    run, (lost,), seconds = exported()
    assert len(run) == 5
    assert lost.startswith(f"{LOST} {ALL} (http://127.0.0.1:9: ")
    assert lost.endswith("Connection refused)")
    assert seconds < 2.5
    until = time.monotonic() + 3
    while (left := [one for one in threading.enumerate() if one.name == "evalstone-otel"]) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left
    assert capsys.readouterr().err == ""


def test_an_endpoint_that_is_slow_delays_the_end_no_longer_than_allowed(receiver: Receiver) -> None:
    receiver.answers.clear()
    _, (lost,), seconds = exported(flush_seconds=0.3)
    assert lost.endswith("(not done within 0.3 s)")
    assert seconds < 2.0


def test_an_endpoint_that_refuses_is_named_without_its_secrets(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20tok-abcdef0123456789,x-team=red")
    receiver.status = 401
    _, (lost,), seconds = exported()
    assert lost.endswith(f"({receiver.url} answered HTTP 401 Unauthorized)")
    assert redacted("tok-abcdef0123456789") == "***"
    assert receiver.headers[0]["authorization"] == "Bearer tok-abcdef0123456789"
    assert seconds < 1.0


@pytest.mark.parametrize(
    ("status", "reply", "why"),
    [
        (302, {"Location": "http://127.0.0.1:9/"}, "answered HTTP 302 Found"),
        (200, {"Content-Type": "text/html; charset=utf-8"}, "answered with a web page; is it an endpoint of OTLP?"),
        (503, {"Retry-After": "30"}, "answered HTTP 503 Service Unavailable"),
        (400, {}, "answered HTTP 400 Bad Request"),
        (499, {}, "answered HTTP 499"),
    ],
)
def test_what_is_no_delivery_is_a_loss_in_plain_words(
    receiver: Receiver, status: int, reply: dict[str, str], why: str
) -> None:
    receiver.status, receiver.reply, receiver.body = status, reply, b"<p>api_key=hunter2-abc"
    _, (lost,), seconds = exported()
    assert lost == f"{LOST} {ALL} ({receiver.url} {why})"
    assert seconds < 2.5


def test_what_an_endpoint_rejects_of_a_request_is_a_loss(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans = 2
    reply.partial_success.error_message = "quota of api_key=hunter2-abc \x1b[2J"
    receiver.reply, receiver.body = {"Content-Type": "application/x-protobuf"}, reply.SerializeToString()
    _, (lost,), _ = exported()
    why = f"{receiver.url} rejected a part: quota of api_key=*** \\u001b[2J"
    assert lost == f"{LOST} 2 of 6 spans ({why})"


@pytest.mark.parametrize(
    ("rejected", "said"), [(2, ["not exported to OpenTelemetry: 1 of 1 batch of metrics"]), (-2, [])]
)
def test_metrics_of_which_an_endpoint_rejects_some_are_a_loss(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, rejected: int, said: list[str]
) -> None:
    for signal in ("TRACES", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    reply = ExportMetricsServiceResponse()
    reply.partial_success.rejected_data_points = rejected
    receiver.reply, receiver.body = {"Content-Type": "application/x-protobuf"}, reply.SerializeToString()
    _, lost, _ = exported()
    assert [text.partition(" (")[0] for text in lost] == said


def test_the_credentials_of_one_signal_are_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_LOGS_CREDENTIAL_PROVIDER", "mine")
    assert (own_credentials("LOGS"), own_credentials("TRACES")) == (True, False)


def test_an_endpoint_that_takes_a_part_is_waited_for_to_the_end(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for signal in ("METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    monkeypatch.setattr("evalstone.otel.export.HOPELESS_SECONDS", 0.15)
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans = 1
    receiver.reply, receiver.body = {"Content-Type": "application/x-protobuf"}, reply.SerializeToString()
    receiver.delay = 0.1
    _, (lost,), _ = exported()
    assert lost.startswith(f"{LOST} 3 of 6 spans ({receiver.url} rejected")
    assert "no reason" in lost


def test_a_password_in_the_url_of_an_endpoint_is_printed_nowhere(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.replace("//", "//ann:tok-endpoint0123456@"))
    receiver.status = 401
    _, (lost,), _ = exported()
    assert lost.endswith(f"({receiver.url} answered HTTP 401 Unauthorized)")
    assert redacted("tok-endpoint0123456") == "***"


@pytest.mark.parametrize("propagate", [True, False])
def test_the_sdk_logs_afterwards_as_it_did_before(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, propagate: bool
) -> None:
    library = logging.getLogger("opentelemetry")
    monkeypatch.setattr(library, "propagate", propagate)
    before = list(library.handlers)
    exported()
    assert (library.propagate, library.handlers) == (propagate, before)


def test_the_loss_is_logged_where_nobody_asks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with caplog.at_level(logging.WARNING), evalstone.otel.export_otlp(flush_seconds=0.2):
        evaluate(SAMPLES, CONTAINS, ledger=None)
    assert [record.message for record in caplog.records if "5 of 5 score events" in record.message]


def test_an_exporter_that_can_t_be_made_leaves_the_library_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    library = logging.getLogger("opentelemetry")
    before = (library.propagate, list(library.handlers))
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "0")
    with pytest.raises(ValueError, match="positive"), evalstone.otel.export_otlp():
        pass
    assert (library.propagate, list(library.handlers)) == before


def test_signals_can_be_turned_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for signal in ("TRACES", "METRICS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")
    _, lost, _ = exported()
    assert not lost
    assert (len(receiver.events()), receiver.spans(), receiver.metrics()) == (5, [], set())


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL is grpc"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL is http/json"),
        ("OTEL_METRICS_EXPORTER", "prometheus", "OTEL_METRICS_EXPORTER must be otlp or none"),
    ],
)
def test_what_can_t_be_exported_to_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    library = logging.getLogger("opentelemetry")
    monkeypatch.setattr(library, "propagate", True)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=message):
        exported()
    assert library.propagate, "nothing has begun"


@pytest.mark.parametrize("signal", ["TRACES", "METRICS", "LOGS"])
def test_what_can_t_be_exported_is_known_before_anything_is(monkeypatch: pytest.MonkeyPatch, signal: str) -> None:
    monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "console")
    with pytest.raises(ConfigError, match=f"{signal}_EXPORTER .* not console"):
        check_environment()


def test_the_endpoints_are_those_of_the_signals_that_are_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    general, logs = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
    assert endpoints() == {general: "http://localhost:4318"}
    monkeypatch.setenv(general, "http://all:1")
    monkeypatch.setenv(logs, "http://logs:2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:3")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert endpoints() == {general: "http://all:1", logs: "http://logs:2"}


@pytest.mark.parametrize(("name", "service"), [("", "evalstone"), ("unknown", "unknown")])
def test_the_service_is_evalstone_unless_it_has_a_name(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, name: str, service: str
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", name)
    exported()
    assert receiver.services() == {service}


def test_no_redirect_is_followed(receiver: Receiver) -> None:
    receiver.status, receiver.reply = 307, {"Location": f"{receiver.url}/elsewhere"}
    troubles = list[str]()
    with Delivery("TRACES", troubles.append) as delivery, pytest.raises(RequestException, match="OTLP"):
        delivery.request("POST", f"{receiver.url}/v1/traces", data=b"")
    assert [trouble.partition(" Temporary")[0] for trouble in troubles] == [f"{receiver.url} answered HTTP 307"]
    assert len(receiver.headers) == 1


def test_an_endpoint_that_does_not_answer_in_time_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise ReadTimeout("HTTPConnectionPool(host='collector', port=4318): Read timed out. (read timeout=10)")

    collector = "http://collector:4318"
    monkeypatch.setattr(Session, "request", late)
    troubles = list[str]()
    with Delivery("LOGS", troubles.append) as delivery, pytest.raises(ReadTimeout):
        delivery.request("POST", f"{collector}/v1/logs")
    assert [trouble.partition(" in ")[0] for trouble in troubles] == [f"{collector}: no answer"]


def test_variables_that_are_empty_are_as_none(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "OTEL_LOGS_EXPORTER"):
        monkeypatch.setenv(variable, "")
    _, lost, _ = exported()
    assert not lost
    assert len(receiver.events()) == 5


@pytest.mark.parametrize(
    ("value", "captured"), [("", False), ("true", True), ("SPAN_ONLY", True), ("NO_CONTENT", False)]
)
def test_the_standard_variable_asks_for_content(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, value: str, captured: bool
) -> None:
    def agent(*, input: str) -> str:
        return "Ada"

    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    with evalstone.otel.export_otlp():
        evaluate([{"input": "Who?"}], CONTAINS, target=agent, ledger=None)
    (call,) = [span for span in receiver.spans() if span.name.startswith("invoke_agent")]
    assert ("input.messages" in gen_ai({each.key: each for each in call.attributes})) is captured


def test_score_exports_too(receiver: Receiver, folder: Path, evalstone_command: Callable[..., str]) -> None:
    shown = evalstone_command("score", "--scorer", CONTAINS, "--output", "Ada", "--otel")
    assert f"{CONTAINS} · 1 of 1" in shown
    (event,) = receiver.events()
    assert event.body.string_value == f"evaluation: {CONTAINS}=1"


@pytest.fixture
def evalstone_command(folder: Path, receiver: Receiver) -> Callable[..., str]:
    return lambda *arguments: command(folder, *arguments, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)


def test_a_worker_exports_each_score_once_and_what_waits_at_its_end(receiver: Receiver) -> None:
    code = """
import evalstone, evalstone.otel
from evalstone import Sample
for n in range(3):
    sample = Sample(id=str(n), output="Ada", metadata={"trace": {"trace_id": "a" * 32}})
    evalstone.otel.emit_otlp(evalstone.score("contains(expected=Ada)", sample), sample)
print("scored")
"""
    assert python(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url) == "scored"
    assert [event.trace_id.hex() for event in receiver.events()] == ["a" * 32] * 3
    assert "evalstone.outcomes" in receiver.metrics()


def test_live_scoring_exports_an_event_of_each_score_and_nothing_of_its_work(receiver: Receiver, folder: Path) -> None:
    code = """
import evalstone.otel
from evalstone import Live
live = Live(
    ["contains(expected=Ada)", "faithfulness"],
    sampling=1.0, process=False, concurrency=1, on_record=evalstone.otel.emit_otlp,
)
for n in range(4):
    said = f"Ada has {n} hats."
    live.submit(output=said, context=[said], trace_id="a" * 32)
live.submit(nonsense="x", trace_id="a" * 32, entity="guide")
live.close(20)
print("scored")
"""
    code = f"import os; os.chdir({str(folder)!r})\n{code}"
    assert python(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url) == "scored"
    assert not receiver.spans()
    said = [{each.key: each.value.string_value for each in event.attributes} for event in receiver.events()]
    assert sorted(each["evalstone.outcome"] for each in said) == ["failed"] * 2 + ["score"] * 8
    assert {event.trace_id.hex() for event in receiver.events()} == {"a" * 32}
    assert [gen_ai(each).get("evaluation.target") for each in said].count("guide") == 2
    assert receiver.metrics() == {"evalstone.score", "evalstone.outcomes"}


def test_the_example_shows_each_score_under_the_span_that_it_is_about() -> None:
    shown = python((ROOT / "examples" / "otel" / "score_events.py").read_text()).splitlines()
    spans = [line.split()[1] for line in shown if line.startswith("span ")]
    events = [(line.split()[1], line.rpartition("=")[2]) for line in shown if line.startswith("event ")]
    assert events == [(spans[0], "1"), (spans[1], "0")]
    assert "contradicted: “Alan Turing" in shown[-1]


def test_the_command_warns_and_ends_as_without(folder: Path) -> None:
    arguments = ("run", "data.jsonl", "--scorer", CONTAINS, "--min", f"{CONTAINS}=1", "--alpha", "none", "--otel", "-q")
    source = RUN.format(folder=str(folder), arguments=arguments).replace(
        "import os, sys", "import os, sys; sys.stderr = sys.stdout"
    )
    shown = python(source, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert "exit code 0" in shown
    assert shown.count(LOST) == 1
    assert "Traceback" not in shown


def test_an_export_that_goes_on_after_the_end_logs_nothing(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    library = logging.getLogger("opentelemetry")
    monkeypatch.setattr(library, "propagate", True)
    before = list(library.handlers)
    receiver.answers.clear()
    try:
        exported(flush_seconds=0.05)
        assert not library.propagate
    finally:
        receiver.answers.set()
        for thread in threading.enumerate():
            if thread.name == "evalstone-otel":
                thread.join(10)
        library.handlers = before


def test_the_end_is_never_longer_than_allowed_though_nothing_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.otel.export.HOPELESS_SECONDS", 20.0)
    troubles, going_on = _Troubles(), threading.Event()
    troubles.say("refused")
    began = time.monotonic()
    try:
        assert not _ShutDown(going_on.wait).within(0.01, [], troubles)
        assert time.monotonic() - began < 15
    finally:
        going_on.set()
        troubles.close()


def test_an_exporter_is_shut_down_once() -> None:
    ended = list[str]()

    class Exporter:
        def __init__(self, session: object) -> None:
            pass

        def shutdown(self) -> None:
            ended.append("once")  # the SDK warns of a second time, which would be taken for the reason of a loss

    troubles = _Troubles()
    counting = _Counting(cast(Any, Exporter), "TRACES", troubles, "span")
    counting.shutdown()
    counting.shutdown()
    troubles.close()
    assert ended == ["once"]


def test_what_two_threads_emit_at_the_same_time_is_counted_twice() -> None:
    class Exporter:
        def __init__(self, session: object) -> None:
            pass

    troubles = _Troubles()
    counting = _Counting(cast(Any, Exporter), "TRACES", troubles, "span")
    second = threading.Thread(target=counting.made)

    def interrupted(frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code is counting.made.__func__.__code__:
            stores = dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_ATTR"
            if stores and second.ident is None:
                second.start()
                second.join(0.2)
        return interrupted

    def first() -> None:
        before = sys.gettrace()
        sys.settrace(interrupted)
        counting.made()
        sys.settrace(before)

    thread = threading.Thread(target=first)
    thread.start()
    thread.join()
    second.join()
    troubles.close()
    assert counting.lost == "2 of 2 spans"


def test_the_first_warning_of_the_sdk_is_kept_and_what_it_only_informs_of_is_not() -> None:
    library = logging.getLogger("opentelemetry")
    propagated, level = library.propagate, library.level
    troubles = _Troubles()
    try:
        library.setLevel(logging.DEBUG)
        log = logging.getLogger("opentelemetry.exporter")
        log.info("exporting")
        assert troubles.first == ""
        try:
            raise ConnectionError("refused")
        except ConnectionError:
            log.warning("not exported:", exc_info=True)
        log.error("given up")
        assert troubles.first == "not exported: refused"
        assert not library.propagate
    finally:
        library.setLevel(level)
        troubles.close()
    assert library.propagate is propagated
    assert troubles not in library.handlers

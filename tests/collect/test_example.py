"""The example of a traced agent, and the command itself, as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstone.cli.traces import check_endpoints
from evalstone.datasets import load
from evalstone.errors import ConfigError
from evalstone.ledger import live
from evalstone.ledger.store import Ledger
from tests.collect.test_export import receiving, tracing
from tests.traced import chat, message

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "traces"


def test_a_traced_agent_is_scored_from_its_export() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE / "run.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "3 of 3 samples" in done.stdout
    assert re.search(r"faithfulness\s+0\.667", done.stdout), done.stdout
    assert re.search(r"tool_called\s+1\.000", done.stdout)
    assert "fast do you" in done.stdout


def collecting(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """The command that scores what it collects, and where it listens."""
    command = [sys.executable, "-m", "evalstone", "collect", "--port", "0", "--scorer", "contains(expected=a)"]
    process = subprocess.Popen([*command, *options, "--ledger", "l.db"], stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stderr is not None
    for line in process.stderr:
        if address := re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(http://127\.0\.0\.1:\d+)", line):
            return process, address[1]
    raise AssertionError(f"the command ended with exit code {process.wait()}")


def test_what_a_killed_command_has_acknowledged_is_scored_once_by_the_next(tmp_path: Path) -> None:
    questions = list[str]()
    for settle, ends in (("10m", signal.SIGKILL), ("1s", signal.SIGKILL), ("10m", signal.SIGTERM)):
        process, url = collecting(tmp_path, "--settle", settle)
        with process, tracing(url) as provider:
            tracer = provider.get_tracer("t")
            for _ in range(3):
                question = f"q{len(questions)}"
                with tracer.start_as_current_span("chat", attributes=chat([message("user", question)], "a")):
                    questions.append(question)
            assert provider.force_flush()
            if settle == "1s":
                until(lambda: len(scored(tmp_path)) == len(questions))
            process.send_signal(ends)
            process.wait(60)
    assert sorted(scored(tmp_path)) == sorted({*scored(tmp_path)})
    assert len(scored(tmp_path)) == 9
    assert sorted(str(sample.input) for sample in load(tmp_path / "traces.jsonl")) == questions


def scored(folder: Path) -> list[str]:
    """The traces of the scores that the ledger has."""
    if not (folder / "l.db").exists():
        return []
    with Ledger(folder / "l.db") as ledger:
        return [str(row.trace) for row in live.scores(ledger) if row.state == "score"]


def until(happened: Callable[[], bool]) -> None:
    for _ in range(300):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")


def test_traces_that_are_under_way_at_the_end_are_scored_and_their_scores_exported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evalstone"]
    options = ["--port", "0", "--scorer", "tool_called(tool=look_up)", "--settle", "10m", "--ledger", "l.db", "--otel"]
    with (
        receiving(tmp_path / "events.jsonl") as url,
        subprocess.Popen(
            [*command, "collect", *options], stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "none"},
        ) as receiver,
    ):  # fmt: skip
        assert receiver.stderr is not None
        address = re.search(r"OTEL_EXPORTER_OTLP_ENDPOINT=(http://127\.0\.0\.1:\d+)", receiver.stderr.readline())
        assert address is not None
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address[1]}
        subprocess.run([sys.executable, EXAMPLE / "agent.py"], env=environment, check=True, capture_output=True)
        receiver.send_signal(signal.SIGINT)
        _, told = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, told
    counts = re.findall(r"\d+ \w+", told.partition(", of 3 ")[0])
    assert counts[-4:] == ["3 scores", "0 skipped", "0 failed", "0 pending"]
    assert "in traces.jsonl" in told
    listed = subprocess.run(
        [*command, "ledger", "scores", "--ledger", "l.db", "--json"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    scores = json.loads(listed.stdout)["scores"]
    assert [(score["source"], score["entity"], score["value"]) for score in scores] == [("trace", "clerk", 1.0)] * 3
    traces = {score["trace"] for score in scores}
    assert len(traces) == 3
    exported = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text("utf-8").splitlines()]
    events = [
        event
        for request in exported
        for resource in request.get("resourceLogs", ())
        for scope in resource["scopeLogs"]
        for event in scope["logRecords"]
    ]
    assert [event["eventName"] for event in events] == ["gen_ai.evaluation.result"] * 3
    assert {event["traceId"] for event in events} == traces
    (source,) = {
        attribute["value"]["stringValue"]
        for event in events
        for attribute in event["attributes"]
        if attribute["key"] == "gen_ai.evaluation.evaluator.source"
    }
    assert json.loads(source) == {"name": "tool_called", "arguments": {"tool": "look_up"}}
    assert "tool_called: 3 scores" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--otel requires --scorer"),
        (("--scorer", "non_empty"), "OTEL_LOGS_EXPORTER must be otlp or none, not console"),
    ],
)
def test_scores_that_could_not_be_exported_are_refused_at_once(
    options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evalstone", "collect", "--port", "0", "--otel", *options],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
        env={**os.environ, "OTEL_LOGS_EXPORTER": "console"},
    )  # fmt: skip
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_scores_are_not_exported_to_the_command_that_makes_them(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-m", "evalstone", "collect", "--otel", "--scorer", "contains(expected=x)"],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60, env=environment,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "localhost port 4318" in done.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "endpoint", "own"),
    [
        ("127.0.0.1", "http://localhost:5000", True),
        ("localhost", "http://[::1]:5000/", True),
        ("0.0.0.0", "http://127.0.0.1:5000", True),
        ("Box.example", "http://me:secret@box.example:5000/v1/logs", True),
        ("127.0.0.1", "http://127.0.0.1:5001", False),
        ("127.0.0.1", "http://127.0.0.1", False),
        ("127.0.0.1", "http://box.example:5000", False),
        ("box.example", "http://localhost:5000", False),
        ("127.0.0.1", "http://localhost:port", False),
    ],
)
def test_an_endpoint_is_compared_with_the_address_that_is_listened_on(
    host: str, endpoint: str, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://box.example:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", endpoint)
    if not own:
        check_endpoints(host, 5000)
        return
    with pytest.raises(ConfigError, match="LOGS_ENDPOINT to another") as raised:
        check_endpoints(host, 5000)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("received", [True, False])
def test_a_scorer_beside_the_file_scores_what_comes_if_anything_does(received: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import beside\n\ndef polite(output: str) -> float:\n    return beside.VALUE\n")
    (tmp_path / "beside.py").write_text("VALUE = 0.5\n")
    options = ["--port", "0", "--scorer", "mine:polite", "--ledger", "l.db"]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "evalstone", "collect", *options], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as receiver:
        assert receiver.stderr is not None
        assert "mine.py" in receiver.stderr.readline()
        address = re.search(r"ENDPOINT=(http://127\.0\.0\.1:\d+)", receiver.stderr.readline())
        assert address is not None
        if received:
            environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address[1]}
            subprocess.run([sys.executable, EXAMPLE / "agent.py"], env=environment, check=True, capture_output=True)
        receiver.send_signal(signal.SIGINT)
        _, told = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, told
    assert ("3 scores, 0 skipped, 0 failed" in told) is received

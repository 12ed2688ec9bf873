"""Files of traces as datasets."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.formats.records import is_telemetry, seconds
from evalstone.datasets import load
from evalstone.datasets.traces import TraceReader
from evalstone.errors import ConfigError, DataError
from tests.traced import TRACE, attributes, chat, log, logs, message, number, span, spans


def request(trace: int, question: str = "q", answer: str = "a") -> dict[str, Any]:
    return spans(span(1, "chat", chat([message("user", question)], answer), trace=f"{trace:032x}"))


def write(path: Path, *rows: Any) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz", "t.json"])
def test_lines_of_export_requests_are_a_dataset(tmp_path: Path, name: str) -> None:
    dataset = load(write(tmp_path / name, request(1, "one"), request(2, "two")))
    assert [sample.input for sample in dataset] == ["one", "two"]
    assert (dataset.name, dataset.notes) == (name, ())


def test_a_document_and_a_list_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(request(1), indent=2))
    plain: list[Any] = request(1)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    (tmp_path / "list.json").write_text(json.dumps(plain))
    for source in (tmp_path / "one.json", tmp_path / "list.json", request(1), [request(1)], plain):
        (sample,) = load(source).samples
        assert (sample.input, sample.output) == ("q", "a")


def sdk_span(question: str, **more: Any) -> dict[str, Any]:
    """A span as `to_json` of the Python SDK writes it."""
    return {
        "name": "chat",
        "context": {"trace_id": f"0x{TRACE}", "span_id": "0x00f067aa0ba902b7", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": None,
        "start_time": "2026-01-31T12:00:00.000000Z",
        "end_time": "2026-01-31T12:00:02.500000Z",
        "status": {"status_code": "ERROR", "description": "too slow"},
        "attributes": chat([message("user", question)], "a"),
        "events": [],
        "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
        **more,
    }


def test_spans_of_the_sdk_one_per_line_are_read(tmp_path: Path) -> None:
    (sample,) = load(write(tmp_path / "t.jsonl", sdk_span("q"))).samples
    assert sample.metadata == {
        "target": {"seconds": 2.5},
        "started": "2026-01-31T12:00:00+00:00",
        "error": "too slow",
        "trace": {"trace_id": TRACE, "span_id": "00f067aa0ba902b7", "entity": "chat", "service": "shop"},
        "model": "gpt-5.1",
    }


def test_rows_of_a_data_frame_are_read(tmp_path: Path) -> None:
    row = {
        "name": "ask",
        "context.trace_id": TRACE,
        "context.span_id": number(1),
        "parent_id": None,
        "start_time": "2026-01-31T12:00:00+00:00",
        "status_code": "OK",
        "attributes.openinference.span.kind": "CHAIN",
        "attributes.input.value": "q",
        "attributes.output.value": "a",
    }
    (sample,) = load(write(tmp_path / "t.jsonl", row)).samples
    assert (sample.input, sample.output, "error" in sample.metadata) == ("q", "a", False)


def test_ids_in_base64_are_those_of_protobufs_own_json(tmp_path: Path) -> None:
    made = request(1)
    found = made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    found |= {key: base64.b64encode(bytes.fromhex(found[key])).decode() for key in ("traceId", "spanId")}
    (sample,) = load(write(tmp_path / "t.jsonl", made)).samples
    assert sample.id == f"{1:032x}-{number(1)}"


def test_the_parts_of_a_trace_may_be_lines_apart_and_only_open_traces_wait(tmp_path: Path) -> None:
    def half(trace: int, second: bool) -> dict[str, Any]:
        id = f"{trace:032x}"
        if second:
            return spans(span(1, "agent", {"gen_ai.operation.name": "invoke_agent"}, trace=id))
        return spans(span(2, "chat", chat([message("user", f"q{trace}")], "a"), parent=1, trace=id))

    rows = [half(1, False), *(half(n, second) for n in range(2, 50) for second in (False, True)), half(1, True)]
    dataset = load(write(tmp_path / "t.jsonl", *rows))
    assert [sample.input for sample in dataset] == [f"q{n}" for n in (*range(2, 50), 1)]
    given = 0

    def counted() -> Iterator[tuple[str, Any]]:
        nonlocal given
        for at, row in enumerate(rows):
            given += 1
            yield f"line {at}", row

    reader = iter(TraceReader(counted))
    next(reader)
    assert given == len(rows) + 3  # read once to count, and then no further than the first whole trace


def test_samples_that_come_from_nothing_are_said(tmp_path: Path) -> None:
    empty = spans(span(1, "chat", {"gen_ai.operation.name": "chat"}, trace="a" * 32))
    dataset = load(write(tmp_path / "t.jsonl", request(1), empty))
    assert len(dataset) == 1
    (note,) = dataset.notes
    assert "1 × a trace" in note
    assert "the capture of" in note
    with pytest.raises(DataError, match=r"no samples; 1 × .* content"):
        load(write(tmp_path / "t.jsonl", empty))
    served = logs(log(1, "started", {}))
    assert load(write(tmp_path / "t.jsonl", request(1), served)).notes == ()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"input": "q", "output": "a"}, "line 2: neither an export request of OTLP"),
        ([], "line 2: neither an export request of OTLP"),
        (5, "line 2: neither an export request of OTLP"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": ["x"]}]}]}, "line 2: resourceSpans[0].scopeSpans[0].spans[0]: a"),
        (
            {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 5}]}]}]},
            "line 2: resourceSpans[0].scopeSpans[0].spans[0].attributes: attributes must be",
        ),
    ],
)  # fmt: skip
def test_a_line_that_is_no_trace_is_refused_with_its_number(tmp_path: Path, row: Any, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / "t.jsonl", request(1), row))
    assert problem in str(caught.value)


def test_a_trace_among_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2"):
        load(write(tmp_path / "t.jsonl", {"input": "q", "output": "a"}, request(1)))


def test_deep_values_are_refused(tmp_path: Path) -> None:
    deep = '{"arrayValue": {"values": [' * 5000 + '{"stringValue": "x"}' + "]}}" * 5000
    made = request(1)
    made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append({"key": "deep", "value": "HERE"})
    (tmp_path / "t.jsonl").write_text(json.dumps(made).replace('"HERE"', deep))
    with pytest.raises(DataError, match="line 1: nested"):
        load(tmp_path / "t.jsonl")


def test_columns_of_traces_cannot_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has traces"):
        load(write(tmp_path / "t.jsonl", request(1)), map={"input": "question"})


def test_samples_with_the_id_of_a_trace_are_no_traces() -> None:
    row = {"trace_id": TRACE, "span_id": "1", "input": "q", "output": "a", "timestamp": 5}
    assert not is_telemetry(row)
    (sample,) = load([row]).samples
    assert (sample.input, sample.output) == ("q", "a")


def test_spans_without_ids_are_samples_of_their_content(tmp_path: Path) -> None:
    bare = {"name": "chat", "attributes": attributes(chat([message("user", "q")], "a"))}
    dataset = load(write(tmp_path / "t.jsonl", {"resourceSpans": [{"scopeSpans": [{"spans": [bare, bare]}]}]}))
    assert [sample.output for sample in dataset] == ["a", "a"]
    assert "trace_id" not in dataset.samples[0].metadata["trace"]


SECONDS: list[tuple[Any, float]] = [
    ("1769860800000000000", 1769860800.0),
    (1769860800000000000, 1769860800.0),
    (1769860800000000, 1769860800.0),
    (1769860800000, 1769860800.0),
    (1769860800.5, 1769860800.5),
    ([1769860800, 500_000_000], 1769860800.5),
    ("2026-01-31T12:00:00Z", 1769860800.0),
    ("2026-01-31T13:00:00+01:00", 1769860800.0),
    ("2026-01-31T12:00:00", 1769860800.0),
]
NO_TIMES: list[Any] = [None, True, "", "soon", {}, [], [1], "9" * 40, 0, -5, float("nan"), "1.2.3"]


@pytest.mark.parametrize(("value", "time"), [*SECONDS, *((value, None) for value in NO_TIMES)])
def test_times_are_read_in_every_unit(value: Any, time: float | None) -> None:
    assert seconds(value) == time

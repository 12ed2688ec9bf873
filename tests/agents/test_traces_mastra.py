"""Traces of Mastra: what its OpenTelemetry exporter wrote, and the rows that its storage has of the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.formats.spans import read_spans
from evalstone.agents.from_traces import extract_trajectory_from_trace
from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import load
from evalstone.types import Sample
from tests.agents.test_traces import read
from tests.traced import TRACE, span, spans

FOLDER = Path(__file__).parent / "mastra"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "rows.jsonl").read_text().splitlines()]
STORED = {"id": "spanId", "type": "spanType", "startTime": "startedAt", "endTime": "endedAt"}


def of_storage(row: dict[str, Any]) -> dict[str, Any]:
    """A row of an exporter as the storage has it, with JSON as text."""
    renamed = {STORED.get(key, key): value for key, value in row.items()}
    return {key: json.dumps(value) if isinstance(value, dict) else value for key, value in renamed.items()}


def only(rows: list[dict[str, Any]]) -> Sample:
    samples, notes = read(rows)
    assert notes == ()
    (sample,) = samples
    return sample


@pytest.mark.parametrize("name", ["otlp", "rows"])
def test_what_mastra_writes_is_one_sample_with_question_and_instructions(name: str) -> None:
    dataset = load(FOLDER / f"{name}.jsonl")
    assert dataset.notes == ()
    (sample,) = dataset.samples
    assert (sample.input, sample.output) == ("How cold is it in Oslo?", "It is 4 degrees in Oslo.")
    assert sample.instructions == "Be brief."
    assert [(each.role, each.content) for each in sample.messages] == [
        ("system", "Be brief."),
        ("user", "How cold is it in Oslo?"),
        ("assistant", "Let me look that up."),
        ("assistant", "It is 4 degrees in Oslo."),
    ]
    (call,) = sample.messages[2].tool_calls
    assert (call.name, call.arguments, call.result) == ("weather", {"city": "Oslo"}, {"temp": 4})
    assert sample.trajectory is not None
    assert [step.name for step in sample.trajectory.steps] == ["weather"]
    assert sample.metadata["target"]["usage"] == {"input": 10, "output": 10, "cached": 0, "requests": 2}
    assert (sample.metadata["model"], sample.metadata["trace"]["entity"]) == ("m", "weather-agent")


def test_both_doors_give_one_sample() -> None:
    (exported,), (stored,) = (load(FOLDER / f"{name}.jsonl").samples for name in ("otlp", "rows"))
    service = dict(exported.metadata["trace"])
    assert service.pop("service") == "mastra-shop"
    assert stored.metadata["trace"] == service
    assert (stored.id, stored.messages, stored.trajectory) == (exported.id, exported.messages, exported.trajectory)
    assert stored.metadata["target"] == exported.metadata["target"]


def test_rows_of_the_storage_with_json_as_text_are_read_the_same(tmp_path: Path) -> None:
    known = only(ROWS)
    rows = [of_storage(row) for row in ROWS]
    assert only(rows) == known
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceId": ROWS[0]["traceId"], "spans": rows}))
    assert list(load(path).samples) == [known]


def test_an_agent_alone_has_its_own_answer() -> None:
    sample = only([row for row in ROWS if row["type"] == "agent_run"])
    assert sample.input == "How cold is it in Oslo?"
    assert sample.output == "Let me look that up.It is 4 degrees in Oslo."


def test_without_the_spans_of_steps_those_of_inferences_have_the_answer() -> None:
    rows = [row for row in ROWS if row["type"] != "model_step"]
    samples, _ = read(rows)
    (sample,) = samples
    assert sample.output == "It is 4 degrees in Oslo."
    assert [call.name for each in sample.messages for call in each.tool_calls] == ["weather"]


def test_a_workflow_is_a_sample_of_what_its_agents_did() -> None:
    agent = next(row for row in ROWS if row["type"] == "agent_run")
    workflow = {
        **agent,
        "id": "1" * 16,
        "type": "workflow_run",
        "entityName": "forecast",
        "attributes": {},
        "input": {"question": "Do I need a coat?"},
        "output": {"advice": "Yes."},
    }
    sample = only([workflow, *({**row, "parentSpanId": "1" * 16} if row is agent else row for row in ROWS)])
    assert (sample.input, sample.metadata["trace"]["entity"]) == ("Do I need a coat?", "forecast")
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert (step.step_type, step.name, [each.name for each in step.children]) == (
        "agent_run",
        "weather-agent",
        ["weather"],
    )


def test_the_error_of_a_row_is_that_of_the_sample() -> None:
    rows = [{**row, "error": {"message": "no quota"}} if row["type"] == "agent_run" else row for row in ROWS]
    assert only(rows).metadata["error"] == "no quota"


def test_a_transcript_of_the_spans_has_the_same_messages() -> None:
    request = json.loads((FOLDER / "otlp.jsonl").read_text())
    assert read_spans(request).conversation.messages == list(only(ROWS).messages)
    assert list(read_transcript(ROWS).messages) == list(only(ROWS).messages)


def test_the_trajectory_of_rows_is_that_of_the_storage() -> None:
    trajectory = extract_trajectory_from_trace(ROWS)
    (generation,) = trajectory.steps
    assert [step.name for step in generation.children] == ["weather"]
    assert trajectory.total_duration_ms == 1933
    assert (
        extract_trajectory_from_trace([{STORED.get(key, key): row[key] for key in row} for row in ROWS]) == trajectory
    )


@pytest.mark.parametrize(
    ("sdk", "name", "values", "says"),
    [
        ("Claude Code", "claude_code.interaction", {"user_prompt": "Hi"}, "(user_prompt)"),
        ("Google ADK", "call_llm", {"gcp.vertex.agent.llm_request": '{"contents": [1]}'}, "STABILITY_OPT_IN"),
        ("MLflow", "predict", {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '{"q": "Hi"}'}, "mlflow.spanInputs"),
        (
            "the Langfuse SDK",
            "ask",
            {"langfuse.observation.type": "agent", "langfuse.observation.input": "Hi"},
            "langfuse.observation.input",
        ),
        (
            "the LangSmith SDK",
            "ChatOpenAI",
            {
                "langsmith.span.kind": "llm",
                "gen_ai.operation.name": "chat",
                "gen_ai.prompt": json.dumps({"messages": [{"role": "user", "content": "Hi"}]}),
            },
            "gen_ai.prompt",
        ),
    ],
)
def test_content_that_is_not_read_is_named_with_what_wrote_it(
    sdk: str, name: str, values: dict[str, str], says: str
) -> None:
    samples, (note,) = read(spans(span(1, name, values)))
    assert samples == []
    assert note.startswith(f"1 × a trace of spans of {sdk}, whose content is in attributes that aren't read (")
    assert says in note
    assert "turn on" not in note


def test_the_capture_of_content_is_named_only_if_none_was_captured() -> None:
    asked = {"gen_ai.operation.name": "chat"}
    samples, notes = read(spans(span(1, "chat", {**asked, "acme.input": "Hi"})))
    assert (samples, notes) == (
        [],
        (f"1 × a trace whose content is in attributes that aren't read (acme.input); first in trace '{TRACE}'",),
    )
    _, (note,) = read(spans(span(1, "claude_code.interaction", {"user_prompt": "<REDACTED>"})))
    assert note.startswith("1 × a trace of spans of Claude Code without content; turn on the capture")

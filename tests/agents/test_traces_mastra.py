"""Traces of Mastra: what its OpenTelemetry exporter wrote, and the rows that its storage has of the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.from_traces import extract_trajectory_from_trace
from evalstone.agents.traces import read_trace
from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import load
from evalstone.types import Sample
from tests.agents.test_traces import read
from tests.traced import TRACE, span, spans

FOLDER = Path(__file__).parent / "mastra"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "rows.jsonl").read_text().splitlines()]
# What the recorded agent was asked and said.
ASKED, LOOKS, ANSWER = "How cold is it in Oslo?", "Let me look that up.", "It is 4 degrees in Oslo."
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
    assert (sample.input, sample.output) == (ASKED, ANSWER)
    assert sample.instructions == "Be brief."
    assert [(each.role, each.content) for each in sample.messages] == [
        ("system", "Be brief."),
        ("user", ASKED),
        ("assistant", LOOKS),
        ("assistant", ANSWER),
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
    assert sample.input == ASKED
    assert sample.output == LOOKS + ANSWER


def test_without_the_spans_of_steps_those_of_inferences_have_the_answer() -> None:
    rows = [row for row in ROWS if row["type"] != "model_step"]
    samples, _ = read(rows)
    (sample,) = samples
    assert sample.output == ANSWER
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
    assert read_trace(request).conversation.messages == list(only(ROWS).messages)
    assert list(read_transcript(ROWS).messages) == list(only(ROWS).messages)


def test_the_trajectory_of_rows_is_that_of_the_storage() -> None:
    trajectory = extract_trajectory_from_trace(ROWS)
    (generation,) = trajectory.steps
    assert [step.name for step in generation.children] == ["weather"]
    assert trajectory.total_seconds == 1.933
    assert (
        extract_trajectory_from_trace([{STORED.get(key, key): row[key] for key in row} for row in ROWS]) == trajectory
    )


def row(id: int, kind: str, parent: int = 0, **more: Any) -> dict[str, Any]:
    """A row of an exporter; spans begin in the order of their ids."""
    times = {"startTime": f"2026-01-01T00:00:{id:02}.000Z", "endTime": "2026-01-01T00:01:00.000Z"}
    own: dict[str, Any] = {
        "id": f"{id:016x}",
        "traceId": TRACE,
        "name": kind,
        "type": kind,
        "isEvent": False,
        "attributes": {},
    }
    return {**own, **times, **({"parentSpanId": f"{parent:016x}"} if parent else {}), **more}


def agent(messages: list[Any], *steps: dict[str, Any], said: Any = None, **more: Any) -> list[dict[str, Any]]:
    """The rows of an agent that was given these messages."""
    return [
        row(1, "agent_run", entityName="helper", input=messages[-1]["content"], output=said, **more),
        row(2, "model_generation", 1, input={"messages": messages}, output=said),
        *(row(number, "model_step", 2, output=step) for number, step in enumerate(steps, start=3)),
    ]


def answered(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    """The output of a step of an agent."""
    return {"text": text, "toolCalls": list(calls)}


QUESTION = {"role": "user", "content": "Go on?"}
REMEMBERED = [QUESTION, {"role": "assistant", "content": "Yes."}, QUESTION]


@pytest.mark.parametrize("steps", [("Yes.",), ("One moment.", "Yes.")])
def test_an_answer_that_was_given_before_in_the_thread_is_an_answer(steps: tuple[str, ...]) -> None:
    sample = only(agent(REMEMBERED, *map(answered, steps)))
    assert (sample.input, sample.output) == ("Go on?", "Yes.")
    assert [each.content for each in sample.messages] == ["Go on?", "Yes.", "Go on?", *steps]


@pytest.mark.parametrize("text", ["", " "])
def test_a_blank_answer_is_a_blank_output(text: str) -> None:
    sample = only(agent([QUESTION], answered(text), said=answered(text)))
    assert sample.output == text


def test_a_run_that_failed_after_its_calls_has_no_output() -> None:
    call = {"toolCallId": "c1", "toolName": "weather"}
    sample = only(agent([QUESTION], answered("", call), answered(""), errorInfo={"message": "model is down"}))
    assert (sample.output, sample.metadata["error"]) == (None, "model is down")


def test_a_run_that_waits_for_approval_has_no_output() -> None:
    rows = agent([QUESTION], said=answered(""))
    rows[0]["output"] = {"status": "suspended", "toolName": "weather"}
    assert only(rows).output is None


def test_a_run_that_was_resumed_is_one_request_with_the_answer_and_the_calls_of_the_rest() -> None:
    def rest(id: int, kind: str, parent: int, **more: Any) -> dict[str, Any]:
        return row(id, kind, parent, metadata={"resumed": True}, **more)

    asked, call = {"role": "user", "content": "Book it."}, {"toolCallId": "c1", "toolName": "book", "args": {"x": 1}}
    rows = [
        row(1, "agent_run", 0, input="Book it.", output={"status": "suspended", "toolName": "book"}),
        row(2, "model_generation", 1, input={"messages": [asked]}, output={"text": ""}),
        row(3, "model_step", 2, input=[asked]),
        rest(4, "agent_run", 2, input={"approved": True, "toolName": "book"}, output={"text": "Booked."}),
        rest(5, "model_generation", 4, output={"text": "Booked.", "toolCalls": [call]}),
        rest(6, "tool_call", 5, entityName="book", input={"x": 1}, output="done"),
        rest(7, "model_step", 5, output={"text": "", "toolCalls": [call]}),
        rest(8, "model_step", 5, input=[asked], output={"text": "Booked.", "toolCalls": []}),
    ]
    sample = only(rows)
    assert (sample.input, sample.output) == ("Book it.", "Booked.")
    assert [(c.name, c.result) for each in sample.messages for c in each.tool_calls] == [("book", "done")]
    assert sample.trajectory is not None
    assert [(step.step_type, step.name) for step in sample.trajectory.steps] == [("tool_call", "book")]
    assert read_trace(rows).output == "Booked."
    # The rest alone, as of a run that was resumed in another trace, is a request too.
    apart = [{key: value for key, value in rows[3].items() if key != "parentSpanId"}, *rows[4:]]
    assert only(apart).output == "Booked."


def test_instructions_of_an_agent_in_several_messages_are_said_once() -> None:
    system = [{"role": "system", "content": text} for text in ("Kind.", "Brief.")]
    said, both = answered("Yes."), "Kind.\n\nBrief."
    sample = only(agent([*system, QUESTION], said, attributes={"instructions": both}))
    assert sample.instructions == both
    other = only(agent([*system, QUESTION], said, attributes={"instructions": "Kind, honest."}))
    assert other.instructions == f"{both}\n\nKind, honest."


def test_the_mapping_of_the_output_of_a_tool_is_no_step() -> None:
    rows = [*ROWS, {**row(60, "mapping"), "traceId": ROWS[0]["traceId"], "parentSpanId": ROWS[0]["id"]}]
    assert only(rows) == only(ROWS)


def test_a_tool_of_the_client_was_not_run_here() -> None:
    call = {"toolCallId": "c1", "toolName": "pick", "args": {"x": 1}}
    rows = agent([QUESTION], answered("", call), answered("Picked."))
    (made,) = only([*rows, row(9, "client_tool_call", 3, entityName="pick")]).messages[1].tool_calls
    assert (made.name, made.arguments, made.state) == ("pick", {"x": 1}, "call")


WORKFLOW = json.loads((FOLDER / "workflow_result.json").read_text())


@pytest.mark.parametrize("name", ["otlp", "rows"])
def test_a_trace_of_a_workflow_has_the_steps_and_the_output_of_its_result(name: str) -> None:
    dataset, result = load(FOLDER / f"workflow_{name}.jsonl"), read_transcript(WORKFLOW)
    assert dataset.notes == ()
    (sample,) = dataset.samples
    assert (sample.input, sample.output) == ('{"q": "Oslo"}', result.output)
    assert sample.metadata["trace"]["entity"] == "wf-agent"
    assert sample.trajectory is not None
    assert result.trajectory is not None
    steps = sample.trajectory.steps
    assert [(each.step_type, each.name, each.data) for each in steps] == [
        (each.step_type, each.name, each.data) for each in result.trajectory.steps
    ]
    assert [dict(each.metadata) for each in steps] == [{"input": {"q": "Oslo"}}, {"input": {"prompt": "How is Oslo?"}}]
    assert [each.name for each in steps[1].walk()] == ["weather", "Weather", "search"]
    assert [call.name for each in sample.messages for call in each.tool_calls] == ["search"]


def workflow(*steps: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [row(1, "workflow_run", entityName="wf", input={"n": 0}, **more), *steps]


def step(id: int, name: str, parent: int = 1, **more: Any) -> dict[str, Any]:
    return row(id, "workflow_step", parent, entityId=name, entityName="wf", attributes={"status": "success"}, **more)


def test_steps_of_branches_loops_and_inner_workflows_are_steps() -> None:
    sample = only(
        workflow(
            row(2, "workflow_conditional", 1),
            row(3, "workflow_conditional_eval", 2),
            step(4, "north", 2, output={"n": 1}),
            row(5, "workflow_loop", 1),
            step(6, "count", 5, input=1, output=2),
            step(7, "count", 5, input=2, output=3),
            step(8, "inner"),
            row(9, "workflow_run", 8, entityName="within"),
            step(10, "last", 9),
            output={"n": 3},
        )
    )
    assert sample.output == '{"n": 3}'
    assert sample.trajectory is not None
    assert [each.name for each in sample.trajectory.steps] == ["north", "count", "count", "inner"]
    (within,) = sample.trajectory.steps[3].children
    assert (within.step_type, within.name, [each.name for each in within.children]) == (
        "workflow_run",
        "within",
        ["last"],
    )


@pytest.mark.parametrize("ended", [{"errorInfo": {"message": "boom"}}, {"attributes": {"status": "suspended"}}])
def test_a_workflow_that_did_not_succeed_has_no_output_though_an_agent_in_it_answered(ended: dict[str, Any]) -> None:
    said = answered("Cold.")
    inside = [{**each, "id": f"2{each['id'][1:]}"} for each in agent([QUESTION], said, said=said)]
    for each, above in zip(inside, (f"{2:016x}", inside[0]["id"], inside[1]["id"]), strict=True):
        each["parentSpanId"] = above
    sample = only(workflow({**step(2, "ask"), **ended}, *inside, **ended))
    assert (sample.input, sample.output) == ('{"n": 0}', None)
    assert sample.trajectory is not None
    (asked,) = sample.trajectory.steps
    assert asked.metadata.get("error") == ended.get("errorInfo", {}).get("message")


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
    assert f"spans of {sdk}, whose content" in note
    assert says in note
    assert "turn on" not in note


def test_the_capture_of_content_is_named_only_if_none_was_captured() -> None:
    asked = {"gen_ai.operation.name": "chat"}
    samples, notes = read(spans(span(1, "chat", {**asked, "acme.input": "Hi"})))
    assert samples == []
    assert ["trace whose content" in note and "(acme.input);" in note for note in notes] == [True]
    _, (note,) = read(spans(span(1, "claude_code.interaction", {"user_prompt": "<REDACTED>"})))
    assert "Claude Code without" in note

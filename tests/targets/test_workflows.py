"""Targets that are workflows: their steps are the trajectory, which scorers of steps and trajectories read."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Sample, Skipped, evaluate, load
from evalstone.agents.from_traces import extract_workflow_trajectory
from evalstone.agents.transcripts import read_transcript
from evalstone.agents.turns import step_samples
from evalstone.errors import ConfigError, TargetError
from evalstone.targets import Answer, FunctionTarget, ReplayTarget
from evalstone.types import SAMPLE_FIELDS, Message, Usage
from tests.serving import serving
from tests.traced import chat, message, span, spans

STEPS: dict[str, Any] = {
    "input": {"city": "Oslo"},
    "search": {
        "status": "success",
        "payload": {"city": "Oslo"},
        "output": {"found": ["Oslo is cold."]},
        "startedAt": 0,
        "endedAt": 5,
    },
    "answer": {
        "status": "success",
        "payload": {"found": ["Oslo is cold."]},
        "output": "Oslo is cold",
        "startedAt": 5,
        "endedAt": 9,
    },
}
RESULT: dict[str, Any] = {"status": "success", "steps": STEPS, "result": "Oslo is cold", "input": {"city": "Oslo"}}
"""What `start` of a Mastra workflow returns."""
SPANS: list[Any] = [
    {"spanId": "1", "parentSpanId": None, "spanType": "workflow_run", "name": "wf"},
    {
        "spanId": "2",
        "parentSpanId": "1",
        "spanType": "workflow_step",
        "name": "search",
        "output": {"found": ["Oslo is cold."]},
    },
    {"spanId": "3", "parentSpanId": "1", "spanType": "workflow_step", "name": "answer", "output": "Oslo is cold"},
]
SCORERS = [
    "contains(expected=Oslo)",
    "per_step(scorer=contains(expected=cold), step=search)",
    "per_step(scorer=exact_match(expected='Oslo is cold'), step=answer)",
    "trajectory_accuracy(expected=[search, answer])",
    "trajectory_quality",
]
CASES = [{"id": name, "input": "Oslo?", "expected_trajectory": {"steps": ["search", "answer"]}} for name in ("a", "b")]


def function() -> Any:
    def workflow(*, input: str) -> Any:
        return RESULT

    return workflow


def command() -> Any:
    return f"cmd:{sys.executable} -c {shlex.quote(f'print({json.dumps(json.dumps(RESULT))})')}"


def values(run: Any) -> list[Any]:
    assert [record.outcome for record in run if record.value is None] == []
    return [record.value for record in run]


@pytest.mark.parametrize("target", [function(), command()], ids=["function", "command"])
def test_the_result_of_a_workflow_is_scored_by_step(target: Any, tmp_path: Path) -> None:
    run = evaluate(CASES, SCORERS, target=target, trials=2, ledger=tmp_path / "l.db")
    assert values(run) == [1.0] * len(SCORERS) * 4
    answered = next(iter(run.samples or ()))
    assert answered.output == "Oslo is cold"
    assert answered.trajectory == extract_workflow_trajectory(STEPS, ["search", "answer"])
    assert answered.trajectory is not None
    assert answered.trajectory.total_seconds == 0.009
    replayed = evaluate(CASES, SCORERS, target=ReplayTarget(run=run), trials=2, ledger=None)
    assert values(replayed) == values(run)


def test_the_result_of_a_workflow_behind_a_url() -> None:
    with serving(lambda request, n: RESULT) as server:
        target: Any = {"address": f"{server.url}/ask", "body": {"city": "{input}"}}
        assert values(evaluate(CASES, SCORERS, target=target, ledger=None)) == [1.0] * len(SCORERS) * 2
    with serving(lambda request, n: {"text": "Oslo", "ran": [{"name": "search", "stepType": "tool_call"}]}) as server:
        target |= {"address": f"{server.url}/ask", "output": "text", "trajectory": "ran"}
        run = evaluate(CASES, "trajectory_accuracy(expected=[search])", target=target, ledger=None)
        assert values(run) == [1.0, 1.0]


def test_the_input_of_a_step_is_what_it_got() -> None:
    trajectory = read_transcript(RESULT).trajectory
    assert trajectory is not None
    search, answer = step_samples(Sample(input="q", trajectory=trajectory))
    assert search[1] is not None
    assert answer[1] is not None
    assert [json.loads(str(step.input)) for step in (search[1], answer[1])] == [
        {"city": "Oslo"},
        {"found": ["Oslo is cold."]},
    ]


def test_the_order_is_that_of_the_execution() -> None:
    result = {**RESULT, "stepExecutionPath": ["answer", "search", "answer"]}
    trajectory = read_transcript(result).trajectory
    assert trajectory is not None
    assert [step.name for step in trajectory.steps] == ["answer", "search", "answer"]


@pytest.mark.parametrize("path", [[], ["search"]])
def test_steps_that_the_order_does_not_name_are_in_the_order_of_their_starts(path: list[str]) -> None:
    steps = {name: STEPS[name] for name in ("input", "answer", "search")}
    trajectory = read_transcript({**RESULT, "steps": steps, "stepExecutionPath": path}).trajectory
    assert trajectory is not None
    assert [step.name for step in trajectory.steps] == ["search", "answer"]


@pytest.mark.parametrize(
    ("result", "output"),
    [("text", "text"), ({"answer": 42}, '{"answer": 42}'), (0, "0"), (None, "")],
)
def test_the_result_is_the_output(result: Any, output: str) -> None:
    transcript = read_transcript({**RESULT, "result": result})
    assert (transcript.format, transcript.output, transcript.error) == ("Mastra", output, "")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"status": "failed", "error": {"message": "boom", "stack": "…"}}, "the workflow failed: boom"),
        ({"status": "failed", "error": "Error: boom"}, "the workflow failed: Error: boom"),
        (
            {"status": "failed", "steps": {**STEPS, "answer": {"status": "failed", "error": "boom"}}},
            "the workflow failed in step 'answer': boom",
        ),
        ({"status": "failed"}, "the workflow failed"),
        ({"status": "tripwire", "tripwire": {"reason": "abuse"}}, "the workflow ended with the status tripwire: abuse"),
        (
            {"status": "suspended", "steps": {**STEPS, "answer": {"status": "suspended"}}},
            "the workflow ended with the status suspended in step 'answer'",
        ),
    ],
)
def test_a_workflow_that_did_not_succeed_is_a_failure(change: Any, error: str) -> None:
    result = {name: value for name, value in {**RESULT, **change}.items() if name != "result"}

    def workflow(*, input: str) -> Any:
        return result

    run = evaluate(CASES, ["contains(expected=Oslo)", "trajectory_quality"], target=workflow, ledger=None)
    assert [record.outcome for record in run] == [Failed(f"the target failed: {error}")] * 4
    transcript = read_transcript(result)
    assert (transcript.error, transcript.output) == (error, None)
    assert transcript.trajectory is not None
    assert len(transcript.trajectory.steps) == 2


TRAJECTORY = extract_workflow_trajectory(STEPS, ["search", "answer"])
RETURNS: dict[str, Any] = {
    "trajectory": Answer(output="Oslo", trajectory=TRAJECTORY),
    "data": {"output": "Oslo", "trajectory": [{"name": "search", "stepType": "workflow_step", "output": "cold"}]},
    "spans": Answer(output="Oslo", trace=SPANS),
    "a trace": {"output": "Oslo", "trace": {"traceId": "t", "spans": SPANS}},
    "no output": Answer(trajectory=TRAJECTORY),
}


@pytest.mark.parametrize("returned", RETURNS.values(), ids=RETURNS)
def test_an_answer_with_a_trajectory_is_scored_by_step(returned: Any, tmp_path: Path) -> None:
    def agent(*, input: str) -> Any:
        return returned

    options: Any = {"target": agent, "ledger": tmp_path / "l.db"}
    step = "per_step(scorer=contains(expected=cold), step=search)"
    run = evaluate(CASES, step, **options)
    assert values(run) == [1.0, 1.0]
    assert evaluate(CASES, step, target=ReplayTarget(run=run), ledger=None).records[0].value == 1.0


@pytest.mark.parametrize("name", ["otlp", "rows"])
def test_the_spans_of_a_trace_are_the_steps_that_a_file_of_them_has(name: str) -> None:
    path = Path(__file__).parents[1] / "agents" / "mastra" / f"{name}.jsonl"
    (sample,) = load(path).samples
    trace = [json.loads(line) for line in path.read_text().splitlines()]
    assert sample.trajectory is not None
    assert Answer(output="a", trace=trace).trajectory == sample.trajectory
    assert Answer(output="a", trace={"traceId": "t", "spans": trace}).trajectory == sample.trajectory

    def agent(*, input: str) -> Answer:
        return Answer(output="a", trace=trace)

    scorers = ["trajectory_accuracy(expected=[weather])", "tool_called(tool=weather)"]
    run = evaluate([{"input": "q"}], scorers, target=agent, ledger=None)
    assert values(run) == [1.0, 1.0]


@pytest.mark.parametrize("name", ["otlp", "rows"])
def test_the_spans_of_a_trace_fill_what_an_answer_does_not_have(name: str) -> None:
    path = Path(__file__).parents[1] / "agents" / "mastra" / f"{name}.jsonl"
    (sample,) = load(path).samples
    trace = [json.loads(line) for line in path.read_text().splitlines()]
    read = read_transcript(trace)
    filled = Answer(trace=trace)
    assert (filled.output, filled.messages, filled.context) == (sample.output, sample.messages, sample.context)
    assert (filled.trajectory, filled.usage, filled.cost) == (sample.trajectory, read.usage, read.cost)
    assert Answer.from_dict(json.loads(json.dumps(filled.to_dict()))) == filled

    given = Answer(output="a", context=[], cost=2.0, usage=Usage(input=1), trace=trace)
    assert (given.output, given.context, given.cost, given.usage) == ("a", (), 2.0, Usage(input=1))
    assert given.messages == sample.messages
    own = [{"role": "assistant", "content": "b"}]
    assert Answer(messages=own, trace=trace).messages == (Message(role="assistant", content="b"),)
    assert Answer(messages=own, trace=trace).output == "b"

    def agent(*, input: str) -> Answer:
        return filled

    def tracing(*, input: str) -> Any:
        return trace

    scorers = ["tool_called(tool=weather)", "contains(expected=a, text=all)", "max_tool_calls(limit=0)"]
    scored = [values(evaluate([{"input": "q"}], scorers, target=each, ledger=None)) for each in (agent, tracing)]
    assert scored[0] == scored[1]


def test_a_run_that_failed_is_a_failure_unless_the_answer_has_an_output() -> None:
    failed = {**span(1, "chat", chat([message("user", "q")], "")), "status": {"code": 2, "message": "no such model"}}
    trace = [spans(failed)]
    for returned in (trace, {"trace": trace}):

        def agent(*, input: str, returned: Any = returned) -> Any:
            return returned

        (record,) = evaluate([{"input": "q"}], "contains(expected=a)", target=agent, ledger=None)
        assert isinstance(record.outcome, Failed)
    with pytest.raises(TargetError, match="no such model"):
        Answer(trace=trace)
    assert Answer(output="a", trace=trace).output == "a"


def test_the_spans_of_several_requests_are_only_kept() -> None:
    path = Path(__file__).parents[1] / "agents" / "mastra" / "rows.jsonl"
    trace = [json.loads(line) for line in path.read_text().splitlines()]
    other = [{**row, "traceId": "f" * 32} for row in trace]
    assert Answer(output="a", trace=[*trace, *other]).trajectory is None


def test_a_trace_that_is_not_of_spans_is_only_kept() -> None:
    for trace in ({"id": "run-17"}, [{"spanId": "1"}], [], "t", 7):
        answer = Answer(output="a", trace=trace)
        assert (answer.trajectory, answer.trace) == (None, trace)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"trajectory": [{"name": "x"}]}, "step 'x': it has no step_type"),
        ({"trajectory": 7}, "trajectory"),
        ({"trace": TRAJECTORY}, "trace is a Trajectory; pass it as trajectory"),
        ({"trace": [{**span, "parentSpanId": "9"} for span in SPANS]}, "every span has a parent"),
        ({"metadata": 7}, "metadata must be a mapping, not int: 7"),
        ({"metadata": {"group": "a", "target": {}}}, "metadata of an answer can't have target"),
        ({"metadata": {"x": float("nan")}}, "metadata cannot be written as JSON"),
        ({"instructions": 7}, "instructions must be text, not int: 7"),
    ],
)
def test_wrong_fields_are_refused_by_name(fields: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(error)):
        Answer(output="a", **fields)


def test_an_answer_has_every_field_that_a_system_can_produce(tmp_path: Path) -> None:
    """The rest of a sample's fields say what was asked and what is expected."""
    asked = {"input", "reference", "expected_trajectory", "group", "weight"}
    assert {each.name for each in dataclasses.fields(Answer)} == {*SAMPLE_FIELDS} - asked | {"usage", "cost", "trace"}
    answer = Answer(
        output="a",
        context=["c"],
        messages=[Message(role="assistant", content="a")],
        instructions="Be brief.",
        metadata={"retrieved": ["d1"], "note": {"k": [1]}},
        trajectory=TRAJECTORY,
        state={"n": 1},
    )
    assert Answer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer

    def agent(*, input: str) -> Answer:
        return answer

    case = {"id": "a", "input": "q", "metadata": {"relevant": ["d1"], "kept": True}}
    run = evaluate([case], ["recall_at_k", "contains(expected=a)"], target=agent, ledger=tmp_path / "l.db")
    assert values(run) == [1.0, 1.0]
    (sample,) = list(run.samples or ())
    assert (sample.context, sample.instructions, sample.state) == (("c",), "Be brief.", {"n": 1})
    own = {name: value for name, value in sample.metadata.items() if name != "target"}
    assert own == {"relevant": ["d1"], "kept": True, "retrieved": ["d1"], "note": {"k": [1]}}
    replayed = evaluate([case], ["recall_at_k", "contains(expected=a)"], target=ReplayTarget(run=run), ledger=None)
    assert values(replayed) == [1.0, 1.0]
    (again,) = list(replayed.samples or ())
    assert {**again.metadata, "target": 0} == {**sample.metadata, "target": 0}
    assert (again.instructions, again.trajectory) == (sample.instructions, sample.trajectory)


def test_the_instructions_are_those_of_the_answer_then_of_the_sample_then_of_the_messages() -> None:
    system = Message(role="system", content="From the messages.")
    messages = [system, Message(role="user", content="q"), Message(role="assistant", content="a")]
    for own, given, used in (
        ("Own.", "Given.", "Own."),
        (None, "Given.", "Given."),
        (None, None, "From the messages."),
    ):
        answer = Answer(messages=messages, instructions=own)
        assert answer.fill(Sample(input="q", instructions=given), seconds=0).instructions == used


def test_metadata_that_contradict_the_sample_fail() -> None:
    def agent(*, input: str) -> Answer:
        return Answer(output="a", metadata={"relevant": ["d1"], "same": 1})

    cases = [{"input": "q", "metadata": {"relevant": ["d2"], "same": 1}}, {"input": "r", "metadata": {"same": 1}}]
    run = evaluate(cases, "contains(expected=a)", target=agent, ledger=None)
    error = "the target failed: metadata of the answer and of the sample have different values of relevant"
    assert [record.outcome for record in run if record.value is None] == [Failed(error)]


def test_trajectories_of_the_turns_of_a_conversation(tmp_path: Path) -> None:
    def agent(*, input: str, messages: Any) -> Answer:
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        if input == "b":
            return Answer(messages=[{"role": "assistant", "content": "b", "tool_calls": [call]}])
        return Answer(output=input, trajectory=TRAJECTORY, metadata={"last": input}, instructions=f"Say {input}.")

    scorers = ["trajectory_accuracy(expected=[search, answer, look, search, answer])"]
    run = evaluate([{"turns": ["a", "b", "c"]}], scorers, target=agent, ledger=tmp_path / "l.db")
    assert values(run) == [1.0]
    (sample,) = list(run.samples or ())
    assert [None if turn.trajectory is None else len(turn.trajectory.steps) for turn in sample.turns] == [2, None, 2]
    assert [turn.metadata.get("last") for turn in sample.turns] == ["a", None, "c"]
    assert [turn.instructions for turn in sample.turns] == ["Say a.", None, "Say c."]
    assert (sample.metadata["last"], sample.instructions) == ("c", None)
    replayed = evaluate([{"turns": ["a", "b", "c"]}], scorers, target=ReplayTarget(run=run), ledger=None)
    assert values(replayed) == [1.0]


def test_a_restored_answer_has_its_trajectory(tmp_path: Path) -> None:
    calls = list[str]()

    def agent(*, input: str) -> Any:
        calls.append(input)
        return RESULT

    options: Any = {"target": FunctionTarget(function=agent, version="1"), "ledger": tmp_path / "l.db"}
    first, second = (evaluate(CASES, SCORERS, **options) for _ in range(2))
    assert (values(first), len(calls)) == (values(second), 2)


def test_an_answer_without_a_trajectory_has_none() -> None:
    def agent(*, input: str) -> str:
        return "Oslo"

    cases = [{"input": "q", "trajectory": [{"name": "old", "step_type": "tool_call"}]}]
    run = evaluate(
        cases, ["contains(expected=Oslo)", "per_step(scorer=contains(expected=a))"], target=agent, ledger=None
    )
    assert isinstance(run.records[1].outcome, Skipped)

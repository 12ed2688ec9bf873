"""Traces that Strands' agents recorded, in each of the notations that it can be set to."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import load
from evalstone.errors import DataError
from evalstone.types import Message
from tests.agents.test_traces import only
from tests.traced import attributes, span, spans

FOLDER = Path(__file__).parent / "strands"


def said(messages: Any) -> list[tuple[str, str, list[Any]]]:
    return [(each.role, each.content, [call.result for call in each.tool_calls]) for each in messages]


@pytest.mark.parametrize("name", ["events", "attributes"])
def test_messages_in_events_and_in_attributes_are_the_same_conversation(name: str) -> None:
    dataset = load(FOLDER / f"{name}.jsonl")
    assert dataset.notes == ()
    (sample,) = dataset.samples
    assert said(sample.messages) == [
        ("user", "Go", []),
        ("assistant", "Step 1.", ["found 1"]),
        ("assistant", "Step 2.", ["found 2"]),
        ("assistant", "Final.Really.", []),
    ]
    assert sample.output == "Final.Really."
    request = json.loads((FOLDER / f"{name}.jsonl").read_text())
    assert read_transcript(request).messages == sample.messages


def test_a_call_that_failed_ends_before_the_span_of_its_agent() -> None:
    asked = [{"name": "gen_ai.user.message", "timeUnixNano": "1", "attributes": attributes({"content": "Go"})}]
    agent, call = ({"gen_ai.operation.name": name} for name in ("invoke_agent", "chat"))
    request = spans(
        span(1, "invoke_agent", agent, end=9, events=asked),
        span(2, "chat", call, parent=1, start=1, status={"code": 2}, events=asked),
    )
    assert said(read_transcript(request).messages) == said(only(request).messages) == [("user", "Go", [])]


@pytest.mark.parametrize("notation", ["events", "details", "attributes"])
def test_a_graph_of_agents_is_one_request_with_its_task_and_the_last_answer(notation: str) -> None:
    (sample,) = load(FOLDER / f"graph_{notation}.jsonl").samples
    assert (sample.input, sample.output) == ("Write it", "Reviewed.")
    assert [(each.role, each.content.partition("\n")[0]) for each in sample.messages] == [
        ("user", "Write it"),
        ("assistant", ""),
        ("assistant", "Draft."),
        ("user", f"Original Task: {sample.input}"),
        ("assistant", "Reviewed."),
    ]
    assert sample.trajectory is not None
    assert [(each.step_type, each.name) for each in sample.trajectory.steps] == [
        ("agent_run", "writer"),
        ("agent_run", "reviewer"),
    ]
    assert [each.name for each in sample.trajectory.steps[0].children] == ["search"]
    assert sample.metadata["target"]["usage"]["requests"] == 3


@pytest.mark.parametrize("operation", ["invoke_graph", "invoke_swarm"])
def test_the_task_and_the_result_of_several_agents_may_be_blocks(operation: str) -> None:
    blocks = [{"text": "Describe"}, {"image": {"format": "png"}}, {"text": "this."}]
    told = [("gen_ai.user.message", {"content": json.dumps(blocks)}), ("gen_ai.choice", {"message": "A cat."})]
    events = [{"name": name, "timeUnixNano": "1", "attributes": attributes(each)} for name, each in told]
    sample = only(spans(span(1, operation, {"gen_ai.operation.name": operation}, events=events)))
    assert (sample.input, sample.output) == ("Describe\nthis.", "A cat.")


@pytest.mark.parametrize("message", ["", "[]"])
def test_a_model_that_said_nothing_answered_with_a_blank(message: str) -> None:
    question = {"content": json.dumps([{"text": "Hi"}])}
    told = [("gen_ai.user.message", question), ("gen_ai.choice", {"message": message, "finish_reason": "end_turn"})]
    events = [{"name": name, "timeUnixNano": "1", "attributes": attributes(each)} for name, each in told]
    sample = only(spans(span(1, "chat", {"gen_ai.operation.name": "chat"}, events=events)))
    assert (sample.input, sample.output) == ("Hi", "")


class AgentResult:
    """What a call of an agent returns, as far as it is read."""

    def __init__(self, *calls: list[list[Any]], structured: str | None = None) -> None:
        every = [cycle for call in calls for cycle in call]
        cycles = [SimpleNamespace(children=[SimpleNamespace(message=each) for each in cycle]) for cycle in every]
        usage = {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}
        made = [SimpleNamespace(cycles=[*range(len(call))], usage=usage) for call in calls]
        self.metrics = SimpleNamespace(traces=cycles, agent_invocations=made)
        self.structured_output = structured and SimpleNamespace(model_dump_json=lambda: structured)

    def to_dict(self) -> dict[str, Any]:
        return {"type": "agent_result", "message": {}, "stop_reason": "end_turn", "checkpoint": None}


AgentResult.__module__ = "strands.agent.agent_result"


def cycles(name: str, answer: str) -> list[list[Any]]:
    """The cycles of a call: the model's message and the results of tools, and nothing of the next cycle."""
    use = {"toolUse": {"toolUseId": f"{name}1", "name": name, "input": {"q": 1}}}
    result = {"toolResult": {"toolUseId": f"{name}1", "status": "success", "content": [{"text": "found"}]}}
    called = {"role": "assistant", "content": [{"text": "Let me look."}, use]}
    return [
        [called, {"role": "user", "content": [result]}, None],
        [{"role": "assistant", "content": [{"text": answer}]}],
    ]


def test_the_result_of_a_call_has_the_messages_of_that_call() -> None:
    transcript = read_transcript(AgentResult(cycles("find", "First."), cycles("search", "Second.")))
    assert (transcript.format, transcript.output) == ("Strands", "Second.")
    assert said(transcript.messages) == [("assistant", "Let me look.", ["found"]), ("assistant", "Second.", [])]
    assert (transcript.usage.input, transcript.usage.output, transcript.usage.requests) == (20, 10, 2)
    assert read_transcript(AgentResult(cycles("find", ""), structured='{"n":1}')).output == '{"n":1}'


def test_a_target_may_return_the_result_of_a_call() -> None:
    def agent(*, input: str) -> Any:
        return AgentResult(cycles("search", "Found it."))

    scorers = ["contains(expected=Found)", "tool_called(tool=search)", "trajectory_accuracy(expected=[search])"]
    run = evaluate([{"input": "Where?"}], scorers, target=agent, ledger=None)
    assert [record.value for record in run] == [1.0, 1.0, 1.0]
    sample = next(iter(run.samples or ()))
    assert sample.messages[0] == Message(role="user", content="Where?")


@pytest.mark.parametrize("stored", [True, False])
def test_a_result_without_the_messages_says_what_to_pass(stored: bool) -> None:
    result: Any = AgentResult(cycles("find", "First."))
    result.metrics.traces = []
    with pytest.raises(DataError, match=r"agent\.messages, or"):
        read_transcript(result.to_dict() if stored else result)


WAITS = "[{'id': 'v1', 'name': 'ok', 'reason': 'please', 'response': None}]"
"""What a Strands agent that waits gives as its answer: its interrupts."""


@pytest.mark.parametrize("noted", ["event", "details"])
def test_an_agent_that_waits_for_an_answer_to_its_interrupt_answers_nothing(noted: str) -> None:
    use = {"toolUse": {"toolUseId": "c1", "name": "book", "input": {"city": "Bern"}}}
    given = ("gen_ai.user.message", {"content": '[{"text": "Book Bern."}]'})
    called = ("gen_ai.choice", {"finish_reason": "tool_use", "message": json.dumps([use])})
    waits: tuple[str, Any] = ("gen_ai.choice", {"finish_reason": "interrupt", "message": WAITS})
    if noted == "details":
        said = [{"role": "assistant", "parts": [{"type": "text", "content": WAITS}], "finish_reason": "interrupt"}]
        waits = ("gen_ai.client.inference.operation.details", {"gen_ai.output.messages": json.dumps(said)})
    system = {"gen_ai.provider.name": "strands-agents"}

    def events(*noted: tuple[str, Any]) -> list[dict[str, Any]]:
        return [{"name": name, "attributes": attributes(values)} for name, values in noted]

    agent = {**system, "gen_ai.operation.name": "invoke_agent"}
    tool = {**system, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c1"}
    made = [
        span(1, "invoke_agent", agent, end=9, events=events(given, waits)),
        span(2, "chat", {**system, "gen_ai.operation.name": "chat"}, parent=1, events=events(given, called)),
        span(3, "execute_tool book", tool, parent=1, start=2),
    ]
    sample = only(spans(*made))
    assert (sample.input, sample.output) == ("Book Bern.", "")
    (call,) = (call for each in sample.messages for call in each.tool_calls)
    assert (call.state, call.result) == ("call", None)
    ended = {**tool, "gen_ai.tool.status": "success"}
    sample = only(spans(*made[:2], span(3, "execute_tool book", ended, parent=1, start=2)))
    assert [call.state for each in sample.messages for call in each.tool_calls] == ["result"]


def test_the_result_of_a_call_that_goes_on_after_an_interrupt_has_the_messages_before_it() -> None:
    (called, returned, _), answered = cycles("book", "Booked.")
    transcript = read_transcript(AgentResult(cycles("find", "First."), [[called, None]], [[returned, None], answered]))
    assert said(transcript.messages) == [("assistant", "Let me look.", ["found"]), ("assistant", "Booked.", [])]


@pytest.mark.parametrize("answer", ['[{"text": "Bern"}]', '{"content": "Bern"}', '[{"type": "text", "text": "Bern"}]'])
def test_an_answer_that_is_json_of_blocks_is_that_text(answer: str) -> None:
    def events(text: str) -> list[dict[str, Any]]:
        told = [
            ("gen_ai.user.message", {"content": json.dumps([{"text": "Go"}])}),
            ("gen_ai.choice", {"message": text}),
        ]
        return [{"name": name, "timeUnixNano": "1", "attributes": attributes(said)} for name, said in told]

    agent, call = (
        {"gen_ai.operation.name": name, "gen_ai.system": "strands-agents"} for name in ("invoke_agent", "chat")
    )
    model = span(2, "chat", call, parent=1, start=1, events=events(json.dumps([{"text": answer}])))
    for inside in ([model], []):
        sample = only(spans(span(1, "invoke_agent", agent, end=9, events=events(f"{answer}\n")), *inside))
        assert sample.output == (answer if inside else f"{answer}\n")
        assert said(sample.messages) == [("user", "Go", []), ("assistant", sample.output, [])]

"""An agent that answered nothing has a blank output, whatever the data looks like; one that wasn't asked has none."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalstone import ScriptedJudge, dry_run, evaluate, load
from evalstone.agents.messages import answer_text
from evalstone.errors import EvalstoneWarning
from evalstone.results.labels import LabelReader, read_labels
from evalstone.targets import Answer
from evalstone.types import Failed, Message, Sample, Score, Skipped

MISSED = Score(0.0, "The answer does not contain “Oslo”.", scale=1.0, evidence=[])
UNSAID = Skipped("the output is blank")
ASKED = {"role": "user", "content": "Where?"}
CALL: dict[str, Any] = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def mastra(parts: list[Any]) -> list[Any]:
    content = {"format": 2, "parts": parts}
    return [{"id": "a", "role": "assistant", "createdAt": "2026-01-01T00:00:00Z", "content": content}]


BLANK: dict[str, Any] = {
    "text": {"output": ""},
    "whitespace": {"output": " \n\u200b"},
    "blank text part": {"output": mastra([{"type": "text", "text": ""}])},
    "no text part": {"output": mastra([{"type": "step-start"}])},
    "parts": {"output": [{"type": "text", "text": " "}]},
    "one message": {"output": {"role": "assistant", "content": None}},
    "null text": {"output": {"text": None}},
    "message": {"messages": [ASKED, {"role": "assistant", "content": ""}]},
    "invisible message": {"messages": [ASKED, {"role": "assistant", "content": "\u200b"}]},
    "null content": {"messages": [ASKED, {"role": "assistant", "content": None}]},
    "only calls": {"messages": [ASKED, {"role": "assistant", "tool_calls": [CALL]}]},
    "an earlier answer": {
        "messages": [ASKED, {"role": "assistant", "content": "Oslo"}, ASKED, {"role": "assistant", "content": ""}]
    },
}
SILENT: dict[str, Any] = {
    "null": {"output": None},
    "no messages": {"output": []},
    "an error": {"output": {"error": "HTTP 500", "latency": 3}},
    "an error without a text": {"output": {"text": None, "error": "HTTP 500"}},
    "not answered": {"messages": [ASKED]},
    "answered before": {"messages": [ASKED, {"role": "assistant", "content": "Oslo"}, ASKED]},
    "an image": {"messages": [ASKED, {"role": "assistant", "content": [{"type": "image_url", "image_url": "u"}]}]},
}


def test_scoring_in_python_warns_of_what_was_read_with_a_caveat(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("id,input,output,label\na,q,b,yes\nc,r,,no\n")
    with pytest.warns(EvalstoneWarning, match=r"d\.csv: column 'output', read as output, has 1 blank cell"):
        run = evaluate(path, "contains(expected=b)", ledger=None)
    assert [record.value for record in run] == [1.0, 0.0]
    with pytest.warns(EvalstoneWarning, match="1 blank cell"):
        dry_run(path, "contains(expected=b)", ledger=None)
    with pytest.warns(EvalstoneWarning, match="1 blank cell"):
        read_labels(path, LabelReader(scale=1.0, lower_is_better=False, has_options=False))
    dataset = load(path)
    assert "1 blank cell" in dataset.notes[0]
    assert len(evaluate(dataset, "contains(expected=b)", ledger=None)) == 2  # its notes are known


def outcomes(source: Any, **options: Any) -> list[Any]:
    """The outcomes of a check and of a judged scorer."""
    judge = ScriptedJudge([])
    run = evaluate(source, ["contains(expected=Oslo)", "toxicity"], judge=judge, ledger=None, **options)
    assert judge.asked == []
    return [record.outcome for record in run]


def from_mapping(path: Path, row: dict[str, Any]) -> Any:
    return [row]


def from_lines(path: Path, row: dict[str, Any]) -> Any:
    file = path / "data.jsonl"
    file.write_text(json.dumps(row) + "\n")
    return str(file)


def from_csv(path: Path, row: dict[str, Any]) -> Any:
    cells = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
    buffer = io.StringIO()
    csv.writer(buffer).writerows([list(cells), list(cells.values())])
    file = path / "data.csv"
    file.write_text(buffer.getvalue())
    return str(file)


doors = pytest.mark.parametrize("door", [from_mapping, from_lines], ids=["mapping", "jsonl"])


@doors
@pytest.mark.parametrize("row", BLANK.values(), ids=BLANK)
def test_nothing_said_is_a_blank_output(tmp_path: Path, door: Callable[..., Any], row: dict[str, Any]) -> None:
    assert outcomes(door(tmp_path, {"input": "Where?", **row})) == [MISSED, UNSAID]


@pytest.mark.parametrize("name", ["text", "whitespace", "message", "null content", "only calls"])
def test_nothing_said_in_a_cell_is_a_blank_output(tmp_path: Path, name: str) -> None:
    assert outcomes(from_csv(tmp_path, {"input": "Where?", **BLANK[name]})) == [MISSED, UNSAID]


@doors
@pytest.mark.parametrize("row", SILENT.values(), ids=SILENT)
def test_without_an_answer_there_is_no_output(tmp_path: Path, door: Callable[..., Any], row: dict[str, Any]) -> None:
    sample = load(door(tmp_path, {"input": "Where?", **row})).samples[0]
    assert sample.output is None
    assert outcomes([sample, Sample(output="")])[0] == Skipped("contains needs output")


def test_blank_cells_of_csv(tmp_path: Path) -> None:
    """A blank cell is a blank answer if the column is the output's, by its name or by the mapping."""
    file = tmp_path / "d.csv"
    file.write_text("question,mine,answer\nq,,\nq,Oslo,\nq,,Oslo\n")
    assert [sample.output for sample in load(file)] == ["", "", "Oslo"]
    assert [sample.output for sample in load(file, map={"output": "mine"})] == ["", "Oslo", ""]
    assert [sample.output for sample in load(file, map={"output": ""})] == [None, None, None]
    file.write_text("question,response,answer\nq,,Oslo\n")
    assert [sample.output for sample in load(file)] == ["Oslo"]
    file.write_text("question\nq\n")
    assert [sample.output for sample in load(file)] == [None]


ANSWERS: dict[str, Any] = {
    "text": "",
    "answer": Answer(output=" "),
    "map": {"output": ""},
    "message": {"messages": [{**ASKED}, {"role": "assistant", "content": ""}]},
    "only calls": {"messages": [{**ASKED}, {"role": "assistant", "tool_calls": [CALL]}]},
    "mastra": {"messages": mastra([{"type": "step-start"}])},
    "completion": {"choices": [{"message": {"role": "assistant", "content": None}}]},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_target_that_says_nothing_has_a_blank_output(answer: Any) -> None:
    def target(*, input: str) -> Any:
        return answer

    run = evaluate([{"input": "q"}], "contains(expected=Oslo)", target=target, ledger=None)
    assert run.target is not None
    assert (run.target.answers, run.target.failed) == (1, 0)
    assert outcomes([{"input": "q"}], target=target) == [MISSED, UNSAID]


@pytest.mark.parametrize("answer", [None, Answer(), {"messages": [ASKED]}, {"messages": []}, {"cost": 0.5}])
def test_a_target_without_an_answer_fails(answer: Any) -> None:
    def target(*, input: str) -> Any:
        return answer

    run = evaluate([{"input": "q"}], "contains(expected=Oslo)", target=target, ledger=None)
    (outcome,) = [record.outcome for record in run]
    assert isinstance(outcome, Failed)
    assert outcome.by_target


def test_a_blank_turn_goes_on() -> None:
    def target(*, input: str, messages: Sequence[Message]) -> str:
        return "" if input == "b" else {1: "one", 5: "five"}[len(messages)]

    run = evaluate([{"turns": ["a", "b", "c"]}], "per_turn(scorer=contains(expected=five))", target=target, ledger=None)
    (sample,) = list(run.samples or ())
    assert [turn.output for turn in sample.turns] == ["one", "", "five"]
    assert [message.content for message in sample.messages] == ["a", "one", "b", "", "c", "five"]
    assert run.records[0].value == pytest.approx(1 / 3)


def test_the_text_of_an_answer() -> None:
    def said(role: Any, text: str = "", **more: Any) -> Message:
        return Message(role=role, content=text, **more)

    assert answer_text([said("user", "q"), said("assistant", "a"), said("assistant")]) == "a"
    assert answer_text([said("user", "q"), said("assistant")]) == ""
    assert answer_text([said("user", "q"), said("tool", "a")]) is None
    assert answer_text([said("user", "q"), said("assistant", attachments=["image"])]) is None
    assert answer_text([]) is None


def test_judges_of_conversations_skip_an_agent_that_says_nothing() -> None:
    scorers = ["goal_reached", "topic_adherence(topics=[cities])", "plan_quality", "plan_adherence"]
    calls = {"messages": [ASKED, {"role": "assistant", "content": "", "tool_calls": [CALL]}]}
    for row in ({"output": ""}, {"messages": [ASKED, {"role": "assistant", "content": " "}]}):
        run = evaluate([{"input": "Where?", **row}], scorers, judge=ScriptedJudge([]), ledger=None)
        assert [record.outcome for record in run] == [UNSAID] * 4
    assert load([calls]).samples[0].output == ""

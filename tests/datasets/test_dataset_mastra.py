"""Rows as @mastra/evals has them: ground truths that aren't text, failed tools, rubrics and remembered messages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate, load
from evalstone.questions import CheckCriteria
from evalstone.scorers import Rubric
from evalstone.types import Sample
from tests.fakes import record_of, verdicts


def sample(**row: Any) -> Sample:
    return load([{"input": "q", "output": "a", **row}]).samples[0]


@pytest.mark.parametrize("column", ["groundTruth", "ground_truth"])
@pytest.mark.parametrize(
    ("value", "reference"),
    [
        ("Oslo", "Oslo"),
        (5, "5"),
        (True, "true"),
        ({"city": "Oslo"}, '{"city": "Oslo"}'),
        ({"city": {"name": "Oslo"}, "found": [1, None]}, '{"city": {"name": "Oslo"}, "found": [1, null]}'),
        ({"text": "Oslo", "n": 2}, '{"text": "Oslo", "n": 2}'),
        (["Oslo", "Bergen"], '["Oslo", "Bergen"]'),
        ([{"a": 1}, {"b": "ø"}], '[{"a": 1}, {"b": "ø"}]'),
        (["Oslo"], "Oslo"),
        ([], None),
        (None, None),
    ],
)
def test_a_ground_truth_of_any_shape_is_the_reference(
    tmp_path: Path, column: str, value: Any, reference: str | None
) -> None:
    read = sample(**{column: value})
    assert (read.reference, read.metadata) == (reference, {})
    file = tmp_path / "d.csv"
    cell = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([["input", column], ["q", "" if value is None else cell]])
    assert load(file).samples[0].reference == reference


@pytest.mark.parametrize("text", ["[1,2]", '{"a":1}', '["Oslo","Bergen"]', '[ "Oslo" ]', "[1] Smith et al."])
def test_a_ground_truth_that_is_a_text_is_that_text(tmp_path: Path, text: str) -> None:
    row = {"input": "q", "output": text, "ground_truth": text}
    assert load([row]).samples[0].reference == text
    file = tmp_path / "d.csv"
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([[*row], [*row.values()]])
    assert load(file).samples[0].reference == ("Oslo" if text == '[ "Oslo" ]' else text)


@pytest.mark.parametrize("column", ["ground_truths", "answers", "reference"])
def test_other_lists_are_alternatives_of_which_the_first_is_used(column: str) -> None:
    assert sample(**{column: ["Oslo", "Bergen"]}).reference == "Oslo"


@pytest.mark.parametrize(
    ("references", "kept"),
    [(["Oslo"], False), (["Oslo", " ", None, "Oslo"], False), (["Oslo", "Bergen"], True), ([], False)],
)
def test_alternatives_stay_in_the_metadata_if_the_first_is_not_all_of_them(references: list[Any], kept: bool) -> None:
    assert sample(reference=references).metadata == ({"reference": references} if kept else {})


INVOCATION: dict[str, Any] = {"toolCallId": "1", "toolName": "look", "args": {}, "state": "result", "result": "boom"}
MCP: dict[str, Any] = {"isError": True, "content": [{"type": "text", "text": "boom"}]}
CALL: dict[str, Any] = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def stored(content: dict[str, Any]) -> dict[str, Any]:
    return {"id": "a", "role": "assistant", "createdAt": "2026-01-01T00:00:00Z", "content": {"format": 2, **content}}


def part(**changes: Any) -> dict[str, Any]:
    return stored({"parts": [{"type": "tool-invocation", "toolInvocation": {**INVOCATION, **changes}}]})


FAILED: dict[str, list[Any]] = {
    "part": [part(isError=True)],
    "legacy": [stored({"parts": [], "toolInvocations": [{**INVOCATION, "isError": True}]})],
    "result of MCP": [part(result=MCP)],
    "tool message": [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "boom", "isError": True},
    ],
    "AI SDK": [
        {
            "role": "assistant",
            "content": [{"type": "tool-look", "toolCallId": "1", "state": "output-available", "output": MCP}],
        }
    ],
    "tool result": [
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "look", "input": {}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "1", "output": "boom", "isError": True}]},
    ],
}


@pytest.mark.parametrize("messages", FAILED.values(), ids=FAILED)
def test_a_tool_result_that_is_an_error_is_a_failed_call(messages: list[Any]) -> None:
    row = {"messages": [{"role": "user", "content": "q"}, *messages]}
    (call,) = (call for message in load([row]).samples[0].messages for call in message.tool_calls)
    assert (call.name, call.state, call.result, call.error) == ("look", "error", "boom", "boom")
    run = evaluate([row], "no_tool_errors", ledger=None)
    assert run.records[0].value == 0


@pytest.mark.parametrize("flag", [False, None, "true", {}])
def test_a_tool_result_that_is_no_error_is_none(flag: Any) -> None:
    row = {"messages": [{"role": "user", "content": "q"}, part(isError=flag)]}
    assert evaluate([row], "no_tool_errors", ledger=None).records[0].value == 1


@pytest.mark.parametrize(
    "row",
    [
        {"rubric": "Be brief."},
        {"metadata": {"rubric": "Be brief."}},
        {"requestContext": {"rubric": "Be brief."}},
        {"additionalContext": {"rubric": "Be brief."}},
        {"metadata": {"requestContext": {"rubric": "Be brief."}}},
        {"requestContext": {"rubric": "Be brief."}, "additionalContext": {"rubric": "Be long."}},
        {"rubric": "Be brief.", "requestContext": {"rubric": "Be long."}},
    ],
)
def test_a_rubric_is_also_found_where_mastra_has_it(row: Any) -> None:
    record, judge = record_of(Rubric(), sample(**row), [verdicts("yes")])
    (question,) = judge.asked
    assert isinstance(question, CheckCriteria)
    assert (question.criteria, record.value) == (("Be brief.",), 1)


def said(role: str, text: str) -> dict[str, Any]:
    content = {"format": 2, "parts": [{"type": "text", "text": text}], "content": text}
    return {"id": text, "role": role, "createdAt": "2026-01-01T00:00:00Z", "content": content}


def agent_run(asked: list[Any], remembered: list[Any]) -> dict[str, Any]:
    given: dict[str, Any] = {"inputMessages": asked, "rememberedMessages": remembered}
    given |= {"systemMessages": [], "taggedSystemMessages": {}}
    return {"input": given, "output": [said("assistant", "new a")]}


REMEMBERED = [said("user", "old q"), part(), said("assistant", "old a")]


def test_remembered_messages_are_history() -> None:
    (read,) = load([agent_run([said("user", "new q")], REMEMBERED)])
    assert (read.input, read.output) == ("new q", "new a")
    assert [message.content for message in read.messages if message.content] == ["old q", "old a", "new q", "new a"]


def test_tools_that_an_earlier_run_called_are_not_calls_of_this_one() -> None:
    row = agent_run([said("user", "new q")], REMEMBERED)
    not_called = "tool_not_called(tool=look)"
    run = evaluate([row], [not_called, "no_tool_calls", "trajectory_accuracy(expected=[])"], ledger=None)
    assert [record.value for record in run] == [1, 1, 1]
    now = {**row, "output": [part(), said("assistant", "new a")]}
    assert evaluate([now], not_called, ledger=None).records[0].value == 0


@pytest.mark.parametrize("asked", [[], [said("assistant", "hello")]])
def test_what_was_asked_before_is_not_the_input(asked: list[Any]) -> None:
    assert load([agent_run(asked, REMEMBERED)]).samples[0].input == ""

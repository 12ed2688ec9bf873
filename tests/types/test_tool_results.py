"""A tool's result is an object, whether it came as one or as JSON text."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import score
from evalstone.agents import read_transcript
from evalstone.agents.formats.tool_runs import tool_run
from evalstone.types import ToolCall
from evalstone.types.tool_results import returned_error, returned_object


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"error": "boom", "rows": []}, "boom"),
        ('\n{"error": "boom", "rows": []}', "boom"),
        ('{"error": {"code": 5}}', {"code": 5}),
        ('{"error": ""}', None),
        ('{"rows": []}', None),
        ('{"error": "boom"', None),
        ('the "error" was mine', None),
        ('["error"]', None),
        (None, None),
        (5, None),
    ],
)
def test_the_error_of_an_object_is_also_that_of_its_text(result: Any, expected: Any) -> None:
    assert returned_error(result) == expected


def test_deeply_nested_text_is_no_object() -> None:
    assert returned_object('{"error": ' * 100_000) == {}


def call_with(content: Any, role: str = "tool") -> ToolCall:
    asked = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    (message,) = read_transcript(
        [
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": role, "tool_call_id": "c1", "content": content},
        ]
    ).messages
    return message.tool_calls[0]


@pytest.mark.parametrize("content", [{"error": "not enough"}, '{"error": "not enough"}'])
def test_a_result_that_is_only_an_error_is_a_failed_call(content: Any) -> None:
    call = call_with(content)
    assert (call.state, call.error, call.result) == ("error", "not enough", content)
    run = tool_run({"gen_ai.tool.name": "book", "gen_ai.tool.call.result": content}, None)
    assert (run.state, run.error) == ("error", "not enough")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"rows": 3}, {"rows": 3}),
        ({"text": "Three.", "rows": 3}, {"text": "Three.", "rows": 3}),
        ({"content": "Three.", "error": None}, {"content": "Three.", "error": None}),
        ({"text": "Three."}, "Three."),
        ({"content": [{"type": "text", "text": "Three."}], "isError": False}, "Three."),
        (3, 3),
        (False, False),
        ({}, ""),
        ('{"rows": 3}', '{"rows": 3}'),
    ],
)
def test_a_result_may_be_any_object(content: Any, expected: Any) -> None:
    call = call_with(content)
    assert (call.state, call.result) == ("result", expected)


def test_a_result_of_mcp_says_whether_the_call_failed() -> None:
    call = call_with({"content": [{"type": "text", "text": "No room."}], "isError": True})
    assert (call.state, call.error) == ("error", "No room.")


def test_an_object_of_a_tool_without_a_call_is_shown_as_text() -> None:
    (message,) = read_transcript([{"role": "tool", "tool_call_id": "c9", "content": {"rows": 3}}]).messages
    assert message.content == '{"rows": 3}'


@pytest.mark.parametrize("content", [{"error": "boom", "rows": []}, '{"error": "boom", "rows": []}'])
def test_an_error_beside_other_entries_is_an_error_too(content: Any) -> None:
    messages = [
        {"role": "user", "content": "Book a room."},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": content},
        {"role": "assistant", "content": "Sorry."},
    ]
    assert score("no_tool_errors", messages=messages).value == 0

from __future__ import annotations

import pytest

from evalstone import checks
from evalstone.scorers.checks import ToolCheck
from evalstone.scorers.checks.tools import is_subsequence
from evalstone.types import Message, Sample, ToolCall
from tests.fakes import score_of

CALLS = [ToolCall(name="search"), ToolCall(name="read", state="error"), ToolCall(name="search", state="call")]
SAMPLE = Sample(
    messages=[
        Message(role="user", content="Find it."),
        Message(role="assistant", tool_calls=CALLS[:2]),
        Message(role="tool", content="…", tool_calls=[ToolCall(name="delete")]),
        Message(role="assistant", content="Found.", tool_calls=CALLS[2:]),
    ]
)
QUIET = Sample(messages=[Message(role="assistant", content="Hello.")])


def value(check: ToolCheck, sample: Sample = SAMPLE) -> float:
    return score_of(check, sample, []).value


def test_calls_are_counted_whatever_became_of_them():
    assert value(checks.tool_called("search")) == 1
    assert value(checks.tool_called("search", at_least=2)) == 1
    assert value(checks.tool_called("search", at_least=3)) == 0
    assert value(checks.tool_called("write")) == 0
    assert value(checks.tool_called("write", at_least=0)) == 1


def test_only_the_calls_of_the_assistant_count():
    assert value(checks.tool_not_called("delete")) == 1
    assert value(checks.tool_not_called("read")) == 0
    assert value(checks.max_tool_calls(3)) == 1
    assert value(checks.max_tool_calls(2)) == 0


@pytest.mark.parametrize(
    ("order", "held"),
    [
        ([], True),
        (["search", "read"], True),
        (["read", "search"], True),
        (["search", "search"], True),
        (["search", "search", "search"], False),
        (["read", "read"], False),
    ],
)
def test_an_order_holds_with_other_calls_between(order: list[str], held: bool):
    assert value(checks.tool_order(order)) == held
    assert is_subsequence(order, [call.name for call in CALLS]) is held


def test_no_tools_means_no_call_at_all():
    assert value(checks.no_tool_calls()) == 0
    assert value(checks.no_tool_calls(), QUIET) == 1
    assert value(checks.tool_not_called("search"), QUIET) == 1


@pytest.mark.parametrize(
    ("call", "held"),
    [
        (ToolCall(name="a", result="ok"), True),
        (ToolCall(name="a", result={"error": ""}), True),
        (ToolCall(name="a", result={"error": None, "rows": []}), True),
        (ToolCall(name="a", result={"error": "boom"}), False),
        (ToolCall(name="a", result='{"error": ""}'), True),
        (ToolCall(name="a", result='{"error": "boom"'), True),
        (ToolCall(name="a", result='["error"]'), True),
        (ToolCall(name="a", result=' {"error": "boom", "rows": []}'), False),
        (ToolCall(name="a", state="error"), False),
        (ToolCall(name="a", state="call"), False),
    ],
)
def test_a_call_is_in_error_when_it_failed_never_returned_or_says_so(call: ToolCall, held: bool):
    sample = Sample(messages=[Message(role="assistant", tool_calls=[ToolCall(name="b", result=1), call])])
    assert value(checks.no_tool_errors(), sample) == held


MANY = Sample(messages=[Message(role="assistant", tool_calls=[ToolCall(name=f"t{n}") for n in range(10)])])


@pytest.mark.parametrize(
    ("check", "sample", "reason"),
    [
        (checks.no_tool_errors(), SAMPLE, "3 tool calls; failed: read, search."),
        (checks.tool_order(["write"]), SAMPLE, "Called: search, read, search. Expected: write."),
        (checks.tool_called("search"), SAMPLE, "'search' was called 2 times; expected at least 1."),
        (checks.no_tool_calls(), MANY, "Called: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more."),
    ],
)
def test_the_reason_names_the_calls(check: ToolCheck, sample: Sample, reason: str):
    assert score_of(check, sample, []).reason == reason


def test_a_call_that_was_still_being_written_does_not_count():
    half = ToolCall(name="search", state="partial")
    sample = Sample(messages=[Message(role="assistant", tool_calls=[half, ToolCall(name="read")])])
    assert value(checks.tool_called("search"), sample) == 0
    assert value(checks.tool_not_called("search"), sample) == 1
    assert value(checks.tool_order(["search", "read"]), sample) == 0
    assert value(checks.max_tool_calls(1), sample) == 1
    assert value(checks.no_tool_calls(), Sample(messages=[Message(role="assistant", tool_calls=[half])])) == 1


@pytest.mark.parametrize(("result", "held"), [(None, True), ({"error": "boom"}, False)])
def test_a_partial_call_is_an_error_only_when_its_result_says_so(result: object, held: bool):
    half = ToolCall(name="search", state="partial", result=result)
    sample = Sample(messages=[Message(role="assistant", tool_calls=[half])])
    assert value(checks.no_tool_errors(), sample) == held

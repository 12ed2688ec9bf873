from __future__ import annotations

from typing import Any

import pytest

from evalstone.scorers import ToolCallAccuracy
from evalstone.types import Message, Sample, ToolCall, TrajectoryExpectation
from tests.fakes import score_of


def sample_of(*tools: str, state: Any = "result", **fields: Any) -> Sample:
    calls = [ToolCall(name=tool, state=state) for tool in tools]
    talk = (Message(role="user", content="q"), Message(role="assistant", content="a", tool_calls=calls))
    return Sample(input="q", output="a", messages=talk, **fields)


def value_of(scorer: ToolCallAccuracy, *tools: str) -> float:
    return score_of(scorer, sample_of(*tools), []).value


@pytest.mark.parametrize(
    ("called", "strict", "value"),
    [
        (["search"], False, 1),
        (["read", "search", "read"], False, 1),
        (["read"], False, 0),
        ([], False, 0),
        (["search"], True, 1),
        (["search", "search"], True, 0),
        (["search", "read"], True, 0),
    ],
)
def test_one_tool_is_called_or_called_alone(called: list[str], strict: bool, value: float):
    assert value_of(ToolCallAccuracy(tool="search", strict=strict), *called) == value


@pytest.mark.parametrize(
    ("order", "called", "strict", "value"),
    [
        (["a", "b"], ["a", "x", "b"], False, 1),
        (["a", "b"], ["b", "a"], False, 0),
        (["a", "b"], ["b", "a", "b"], False, 0),  # the first call of b counts, and it comes before a
        (["a", "b"], ["a"], False, 0),
        (["a", "a"], ["a", "x", "a"], False, 1),
        (["a", "a"], ["a", "b"], False, 0),
        (["a", "b", "a"], ["a", "b", "a"], False, 1),
        (["a", "b", "a"], ["a", "a", "b"], False, 0),
        (["a", "a"], ["a", "a"], True, 1),
        (["a", "b"], ["a", "x", "b"], True, 0),
        (["a"], [], True, 0),
    ],
)
def test_an_order_is_kept_by_the_first_calls_or_exactly(
    order: list[str], called: list[str], strict: bool, value: float
):
    assert value_of(ToolCallAccuracy(order=order, strict=strict), *called) == value


def test_an_order_that_names_a_tool_twice_is_never_met_by_mastra() -> None:
    assert value_of(ToolCallAccuracy(order=["a", "a"], definition="mastra"), "a", "a") == 0
    assert value_of(ToolCallAccuracy(order=["a", "b"], definition="mastra"), "a", "b") == 1


def test_the_order_wins_over_the_tool_unless_it_is_empty():
    assert value_of(ToolCallAccuracy(tool="a", order=["b"]), "a") == 0
    assert value_of(ToolCallAccuracy(tool="a", order=[]), "a") == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("called", [[], ["a"]])
def test_an_empty_order_alone_is_never_met(called: list[str], strict: bool):
    assert value_of(ToolCallAccuracy(order=[], strict=strict), *called) == 0


def test_without_parameters_the_sample_says_which_tools_are_expected():
    expected = TrajectoryExpectation.read(
        [{"name": "a"}, {"name": "m", "stepType": "model_generation"}, {"name": "b", "stepType": "mcp_tool_call"}]
    )
    assert score_of(ToolCallAccuracy(), sample_of("a", "b", expected_trajectory=expected), []).value == 1
    assert score_of(ToolCallAccuracy(), sample_of("b", "a", expected_trajectory=expected), []).value == 0


def test_failed_and_unanswered_calls_count_and_those_never_made_do_not():
    scorer = ToolCallAccuracy(tool="a")
    for state, value in (("error", 1), ("call", 1), ("partial", 0)):
        assert score_of(scorer, sample_of("a", state=state), []).value == value


def test_the_reason_tells_what_was_expected_and_called():
    score = score_of(ToolCallAccuracy(order=["a", "b"], strict=True, scale=10), sample_of("a"), [])
    assert (score.value, score.reason) == (0, "Expected exactly a → b; called: a.")
    assert score.evidence == ("a",)
    assert score_of(ToolCallAccuracy(tool="a", scale=10), sample_of("a"), []).value == 10


def test_the_input_stands_in_for_a_users_message():
    sample = Sample(input="q", messages=[Message(role="assistant", content="a")])
    assert score_of(ToolCallAccuracy(tool="a"), sample, []).value == 0

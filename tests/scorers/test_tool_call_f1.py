from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import ToolCallF1
from evalstone.scorers.agents.tool_call_f1 import most_pairs
from evalstone.types import Message, Sample, ToolCall, Trajectory, TrajectoryExpectation
from tests.fakes import score_of

Call = tuple[str, dict[str, Any] | None]


def expected(*calls: Call) -> TrajectoryExpectation:
    steps = [
        {"name": name} if args is None else {"step_type": "tool_call", "name": name, "tool_args": args}
        for name, args in calls
    ]
    return TrajectoryExpectation.read(steps)


def sample_of(*calls: Call, wanted: TrajectoryExpectation | None, state: Any = "result") -> Sample:
    made = [ToolCall(name=name, arguments=args or {}, state=state) for name, args in calls]
    return Sample(messages=[Message(role="assistant", tool_calls=made)], expected_trajectory=wanted)


def value_of(made: list[Call], wanted: list[Call], **options: Any) -> float:
    return score_of(ToolCallF1(**options), sample_of(*made, wanted=expected(*wanted)), []).value


OSLO, ROME = {"to": "Oslo"}, {"to": "Rome"}


CASES: list[tuple[list[Call], list[Call], float]] = [
    ([("find", OSLO)], [("find", OSLO)], 1),
    ([("find", OSLO), ("book", OSLO)], [("book", OSLO), ("find", OSLO)], 1),  # in any order
    ([("find", OSLO), ("uv", OSLO)], [("find", OSLO)], 2 / 3),  # P 1/2, R 1
    ([("find", OSLO)], [("find", OSLO), ("book", OSLO), ("pay", {})], 2 / 4),  # P 1, R 1/3
    ([("find", ROME)], [("find", OSLO)], 0),
    ([("find", OSLO)] * 2, [("find", OSLO)], 2 / 3),  # the second call is one too many
    ([("find", OSLO)], [("find", OSLO)] * 2, 2 / 3),
    ([], [("find", OSLO)], 0),
    ([("find", OSLO)], [], 0),
    ([], [], 1),
    ([("find", OSLO)], [("find", None)], 1),  # no arguments are expected
    ([("find", OSLO)], [("find", {})], 0),
    ([("find", {})], [("find", {})], 1),
    # The call with arguments is left for the one that expects them.
    ([("find", OSLO), ("find", ROME)], [("find", None), ("find", OSLO)], 1),
]


@pytest.mark.parametrize(("made", "wanted", "value"), CASES)
def test_f1_is_over_calls_matched_one_to_one(made: list[Call], wanted: list[Call], value: float):
    assert value_of(made, wanted) == pytest.approx(value)
    assert value_of(made, wanted, scale=10) == pytest.approx(10 * value)


@pytest.mark.parametrize(
    ("arguments", "made", "wanted", "value"),
    [
        ("equal", {"to": "Oslo", "seats": 1}, OSLO, 0),
        ("equal", {"seats": 1, "to": "Oslo"}, {"to": "Oslo", "seats": 1.0}, 1),  # as JSON
        ("equal", {"seats": True}, {"seats": 1}, 0),
        ("subset", {"to": "Oslo", "seats": 1}, OSLO, 1),
        ("subset", OSLO, {"to": "Oslo", "seats": 1}, 0),
        ("subset", {"to": {"city": "Oslo", "at": 9}}, {"to": {"city": "Oslo"}}, 0),  # values are compared whole
        ("subset", OSLO, {}, 1),
        ("ignore", ROME, OSLO, 1),
    ],
)
def test_arguments_are_equal_a_subset_or_ignored(arguments: str, made: Any, wanted: Any, value: float):
    assert value_of([("find", made)], [("find", wanted)], arguments=arguments) == value


def test_a_subset_leaves_the_call_that_only_it_fits_to_another_expectation():
    a, both = {"a": 1}, {"a": 1, "b": 1}
    assert value_of([("f", both), ("f", a)], [("f", a), ("f", {"b": 1})], arguments="subset") == 1
    assert value_of([("f", a), ("f", both)], [("f", a), ("f", {"b": 1})], arguments="subset") == 1


@given(st.integers(0, 4), st.integers(0, 4), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_no_pairing_has_more_pairs(left: int, right: int, fitting: set[tuple[int, int]]):
    mates = most_pairs(left, right, lambda one, other: (one, other) in fitting)
    pairs = [(one, other) for one, other in enumerate(mates) if other is not None]
    assert set(pairs) <= fitting
    assert len({other for _, other in pairs}) == len(pairs)
    places = [*range(right), *([None] * left)]
    most = max(sum((n, other) in fitting for n, other in enumerate(some)) for some in permutations(places, left))
    assert len(pairs) == most


@pytest.mark.slow
def test_many_equal_calls_are_paired_without_recursion():
    calls: list[Call] = [("f", None)] * 1500
    assert value_of(calls, calls) == 1


@pytest.mark.parametrize(
    ("made", "wanted", "reason", "evidence"),
    [
        (
            [("find", OSLO), ("joke", None)],
            [("find", OSLO), ("pay", None)],
            "1 of 2 expected calls matched, 2 calls made; missing: “pay”; not expected: “joke”.",
            {"precision": 0.5, "recall": 0.5, "missing": ["pay"], "not_expected": ["joke"]},
        ),
        (
            [],
            [("find", OSLO)],
            '0 of 1 expected call matched, 0 calls made; missing: “find({"to": "Oslo"})”.',
            {"precision": None, "recall": 0, "missing": ['find({"to": "Oslo"})'], "not_expected": []},
        ),
    ],
)
def test_the_reason_and_the_evidence_name_the_calls(
    made: list[Call], wanted: list[Call], reason: str, evidence: dict[str, Any]
):
    score = score_of(ToolCallF1(), sample_of(*made, wanted=expected(*wanted)), [])
    assert (score.reason, score.evidence) == (reason, evidence)


def test_failed_calls_count_and_those_never_made_do_not():
    for state, value in (("error", 1), ("call", 1), ("partial", 0)):
        assert (
            score_of(ToolCallF1(), sample_of(("f", None), wanted=expected(("f", None)), state=state), []).value == value
        )


def test_calls_inside_other_steps_count_on_both_sides():
    inner = {"step_type": "tool_call", "name": "find", "tool_args": OSLO}
    steps = [
        {"step_type": "agent_run", "name": "agent", "children": [inner]},
        {"step_type": "mcp_tool_call", "name": "pay"},
    ]
    wanted = TrajectoryExpectation.read([{"step_type": "agent_run", "name": "agent", "children": [inner]}, "pay"])
    sample = Sample(trajectory=Trajectory.read(steps), expected_trajectory=wanted)
    assert score_of(ToolCallF1(), sample, []).value == 1


def test_calls_of_a_subagent_count_if_nested_calls_are_expected_or_the_messages_have_them():
    inner = {"step_type": "tool_call", "name": "find", "tool_args": OSLO}
    asked = {"step_type": "tool_call", "name": "ask"}
    steps = [{**asked, "children": [{"step_type": "agent_run", "name": "guide", "children": [inner]}]}]
    talked = [Message(role="user", content="Where?"), Message(role="assistant", tool_calls=[ToolCall(name="ask")])]
    from_messages = Sample(messages=talked, expected_trajectory=expected(("ask", None)))
    from_trace = Sample(messages=talked, trajectory=Trajectory.read(steps), expected_trajectory=expected(("ask", None)))
    assert [score_of(ToolCallF1(), each, []).value for each in (from_messages, from_trace)] == [1, 1]
    nested = replace(from_trace, expected_trajectory=TrajectoryExpectation.read([{**asked, "children": [inner]}]))
    assert score_of(ToolCallF1(), nested, []).value == 1
    # Agents that hand over are one conversation: its messages have the calls of each.
    handed = [*talked, Message(role="assistant", tool_calls=[ToolCall(name="find", arguments=OSLO)])]
    steps = [asked, {"step_type": "agent_run", "name": "guide", "children": [inner]}]
    both = Sample(
        messages=handed,
        trajectory=Trajectory.read(steps),
        expected_trajectory=expected(("ask", None), ("find", OSLO)),
    )
    assert score_of(ToolCallF1(), both, []).value == 1

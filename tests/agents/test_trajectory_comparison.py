from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.agents.trajectory_comparison import (
    RetryPattern,
    budget_kept,
    check_efficiency,
    compare_trajectories,
    forbidden,
    redundant_calls,
    same_json,
    step_matches,
    tool_failures,
)
from evalstone.errors import OutcomeError
from evalstone.types import ExpectedStep, Ordering, Trajectory, TrajectoryExpectation
from tests.refusals import refused


def taken(*names: str) -> Trajectory:
    return Trajectory.read([{"step_type": "tool_call", "name": name} for name in names])


def wanted(*names: str) -> tuple[ExpectedStep, ...]:
    return tuple(ExpectedStep(name=name) for name in names)


def calls(*steps: tuple[str, Any]) -> Trajectory:
    return Trajectory.read(
        [{"step_type": "tool_call", "name": n, "tool_args": {"a": 1}, "success": s} for n, s in steps]
    )


@pytest.mark.parametrize(
    ("did", "expected", "ordering", "value"),
    [
        ("abc", "abc", "relaxed", 1),
        ("axbc", "abc", "relaxed", 1),  # steps between cost nothing
        ("acb", "abc", "relaxed", 2 / 3),  # b after c is too late
        ("bc", "abc", "relaxed", 2 / 3),  # a is missing, and b and c are still found
        ("cba", "abc", "relaxed", 1 / 3),
        ("cba", "abc", "unordered", 1),
        ("aa", "ab", "unordered", 0.5),
        ("a", "aa", "unordered", 0.5),  # one step counts once
        ("abc", "abc", "strict", 1),
        ("acb", "abc", "strict", 1 / 3),
        ("abcx", "abc", "strict", 1 - 0.5 / 3),
        ("xabc", "abc", "strict", 0),  # nothing in its place, and below 0 is 0
        ("ab", "abc", "strict", 2 / 3),
        ("", "abc", "relaxed", 0),
        ("", "", "strict", 1),
        ("a", "", "relaxed", 0),
    ],
)
def test_the_three_orderings(did: str, expected: str, ordering: Ordering, value: float):
    compared = compare_trajectories(taken(*did), wanted(*expected), ordering=ordering)
    assert compared.value == pytest.approx(value)


def test_repeats_take_off_a_tenth_for_each_name():
    compared = compare_trajectories(taken(*"abaab"), wanted("a", "b"), allow_repeated_steps=False)
    assert compared.value == pytest.approx(0.8)
    assert compared.repeated == ("a", "b")


def test_the_comparison_names_what_is_missing_elsewhere_and_too_many():
    compared = compare_trajectories(taken("b", "a", "x"), wanted("a", "b", "c"))
    assert (compared.matched, compared.expected) == (1, 3)
    assert compared.missing == ("c",)
    assert compared.out_of_order == ("b",)
    assert compared.extra == ("x",)


names = st.lists(st.sampled_from("abc"), max_size=6)


@given(names, names, st.sampled_from(["strict", "relaxed", "unordered"]), st.booleans())
def test_a_comparison_lies_between_0_and_1_and_adds_up(did: Any, expected: Any, ordering: Any, repeats: bool):
    compared = compare_trajectories(taken(*did), wanted(*expected), ordering=ordering, allow_repeated_steps=repeats)
    assert 0 <= compared.value <= 1
    assert len(compared.missing) + len(compared.out_of_order) + compared.matched == len(expected)
    assert len(compared.extra) + len(compared.out_of_order) + compared.matched == len(did)


@given(names.filter(bool))
def test_a_trajectory_is_fully_the_one_expected_of_itself(did: Any):
    for ordering in ("strict", "relaxed", "unordered"):
        assert compare_trajectories(taken(*did), wanted(*did), ordering=ordering).value == 1


def test_data_are_compared_as_far_as_they_are_given():
    step = Trajectory.read([{"step_type": "tool_call", "name": "f", "tool_args": {"a": 1, "b": [2]}, "success": True}])

    def matches(**data: Any) -> bool:
        return step_matches(ExpectedStep(name="f", step_type="tool_call", data=data), step.steps[0])

    assert matches()
    assert matches(tool_args={"b": [2], "a": 1.0}, success=True)
    assert not matches(tool_args={"a": 1})
    assert not matches(success=1)
    assert not matches(tool_result=None)
    assert not step_matches(ExpectedStep(name="f", step_type="mcp_tool_call"), step.steps[0])
    assert step_matches(ExpectedStep(name="f"), step.steps[0])


ALIKE: list[tuple[Any, Any, bool]] = [
    (1, 1.0, True),
    (1, True, False),
    ("a", ["a"], False),
    ([1, {}], [1, {}], True),
    ({}, [], False),
    ({"a": 1, "b": None}, {"a": 1}, True),
    ({"a": {"b": None}}, {"a": {}}, True),
    ({"a": None}, {"a": 0}, False),
    (None, 0, False),
]


@pytest.mark.parametrize(("one", "other", "same"), ALIKE)
def test_same_json_knows_numbers_from_truth_values_and_text_from_lists(one: Any, other: Any, same: bool):
    assert same_json(one, other) is same
    assert same_json(other, one) is same


@pytest.mark.parametrize(
    ("spent", "limit", "kept"), [(4, 4, 1), (5, 4, 0.75), (8, 4, 0), (9, 4, 0), (0, 0, 1), (1, 0, 0)]
)
def test_a_budget_is_kept_or_exceeded_by_a_share(spent: float, limit: float, kept: float):
    assert budget_kept("max_steps", spent, limit) == kept


def test_efficiency_is_the_mean_of_the_budgets_and_of_redundancy():
    done = Trajectory.read(
        {
            "steps": [
                {"step_type": "tool_call", "name": "f", "tool_args": {"a": 1}},
                {"step_type": "tool_call", "name": "f", "tool_args": {"a": 1}},
                {
                    "step_type": "agent_run",
                    "name": "r",
                    "children": [
                        {"step_type": "model_generation", "name": "m", "prompt_tokens": 90, "completion_tokens": 30}
                    ],
                },
            ],
            "total_seconds": 100,
        }
    )
    found = check_efficiency(done, max_steps=2, max_total_tokens=100, max_total_seconds=100)
    assert found.parts == pytest.approx({"steps": 0.5, "tokens": 0.8, "duration": 1, "redundancy": 0.8})
    assert found.value == pytest.approx(3.1 / 4)
    assert found.redundant == ("f",)
    assert check_efficiency(done, no_redundant_calls=False).value == 1


def test_a_call_is_redundant_only_right_after_its_like():
    def found(*steps: dict[str, Any]) -> tuple[str, ...]:
        return redundant_calls(Trajectory.read([{"step_type": "tool_call", "name": "f", **step} for step in steps]))

    assert found({"tool_args": {"a": 1}}, {"tool_args": {"a": 1}}, {"tool_args": {"a": 1}}) == ("f", "f")
    assert found({"tool_args": {"a": 1}}, {"tool_args": {"a": 2}}) == ()
    assert found({}, {"step_type": "workflow_step"}, {}) == ()
    assert found({}, {"step_type": "mcp_tool_call"}) == ()
    assert found({"step_type": "agent_run"}, {"step_type": "agent_run"}) == ()


def test_a_token_budget_needs_the_counts_of_every_generation():
    generation = {"step_type": "model_generation", "name": "m", "prompt_tokens": 1}
    for steps in (
        [],
        [{"step_type": "tool_call", "name": "f"}],
        [generation],
        [{**generation, "completion_tokens": "2"}],
    ):
        with pytest.raises(OutcomeError, match="token budget"):
            check_efficiency(Trajectory.read(steps), max_total_tokens=5)


def test_a_duration_budget_needs_the_total_or_every_steps_duration():
    step = {"step_type": "tool_call", "name": "f"}
    for steps in ([], [step], [{**step, "seconds": 5}, step], [{**step, "seconds": -1}]):
        with pytest.raises(OutcomeError, match="duration budget"):
            check_efficiency(Trajectory.read(steps), max_total_seconds=5)
    timed = Trajectory.read([{**step, "seconds": 5}, {**step, "name": "g", "seconds": 10}])
    assert check_efficiency(timed, max_total_seconds=10, no_redundant_calls=False).value == 0.5


@pytest.mark.parametrize("limit", [-1, float("nan"), float("inf"), True])
def test_a_limit_that_is_no_number_from_0_is_refused(limit: Any):
    with refused("max_steps", "a number of 0 or more"):
        check_efficiency(taken("a"), max_steps=limit)
    with refused("max_retries_per_tool", "a number of 0 or more"):
        tool_failures(taken("a"), max_retries_per_tool=limit)


def test_forbidden_tools_and_sequences_that_were_used_are_named():
    done = taken(*"abcab")
    assert forbidden(done, tools=["b", "z"], sequences=[["c", "a"], ["a", "c"], []]) == ("b", "c → a")
    assert forbidden(done) == ()
    assert forbidden(taken("a"), sequences=[["a", "a"]]) == ()


def test_retries_are_calls_of_a_tool_right_after_it_failed():
    done = calls(("f", False), ("f", False), ("f", True), ("g", False), ("f", False), ("f", True), ("f", True))
    found = tool_failures(done, max_retries_per_tool=1)
    assert found.patterns == (RetryPattern("f", 2, True), RetryPattern("f", 1, True))
    assert found.value == pytest.approx(0.8)
    assert tool_failures(done).value == 1


def test_a_failure_that_nobody_tries_again_is_no_retry():
    assert tool_failures(calls(("f", False), ("g", True), ("f", None))).patterns == ()
    assert tool_failures(calls(*[("f", False)] * 9)).value == 0
    assert tool_failures(calls(*[("f", False)] * 3)).patterns == (RetryPattern("f", 2, False),)


def test_expectations_are_compared_with_steps_that_stand_between_tool_calls():
    steps = [
        {"step_type": "tool_call", "name": "f", "success": False},
        {"step_type": "model_generation", "name": "m"},
        {"step_type": "mcp_tool_call", "name": "f", "success": True},
    ]
    assert tool_failures(Trajectory.read(steps)).patterns == (RetryPattern("f", 1, True),)
    assert TrajectoryExpectation.read([]).steps == ()

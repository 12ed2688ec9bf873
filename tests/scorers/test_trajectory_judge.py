from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions.tool_use import JudgeSteps, StepVerdict, StepVerdicts
from evalstone.scorers import TrajectoryJudge
from evalstone.scorers.agents.trajectories import judged_value
from evalstone.types import Sample, Trajectory, TrajectoryExpectation
from tests.fakes import record_of, score_of

STEPS = [
    {"step_type": "tool_call", "name": "search", "tool_args": {"q": "a"}},
    {
        "step_type": "agent_run",
        "name": "writer",
        "children": [{"step_type": "tool_call", "name": "save", "success": True}],
    },
]
SHOWN = ('tool_call search tool_args={"q": "a"}', "agent_run writer [tool_call save success=true]")
"""The steps as the judge sees them."""
SAMPLE = Sample(input="Write.", trajectory=Trajectory.read(STEPS))
EMPTY = Sample(input="Write.", trajectory=Trajectory())


def reply(*verdicts: tuple[bool, bool], missing: tuple[str, ...] = (), extra: tuple[str, ...] = ()) -> dict[str, Any]:
    steps = {
        str(n): {"reason": "because", "necessary": needed, "in_order": placed}
        for n, (needed, placed) in enumerate(verdicts, start=1)
    }
    return {"steps": steps, "missing": list(missing), "extra": list(extra)}


@pytest.mark.parametrize(
    ("said", "value", "reason"),
    [
        (
            reply((True, True), (False, True), missing=("read", "check"), extra=("mail",)),
            0.6 * 0.5 + 0.3 - 0.1 * 2 / 4,
            "1 of 2 steps were needed, 2 in order; not needed: “agent_run writer [tool_call save success=true]”; "
            "missing: “read”; “check”; extra: “mail”.",
        ),
        (reply((True, True), (True, True)), 0.9, "2 of 2 steps were needed, 2 in order."),
    ],
)
def test_needed_counts_six_tenths_order_three_and_missing_takes_off_one(
    said: dict[str, Any], value: float, reason: str
):
    score = score_of(TrajectoryJudge(), SAMPLE, [said])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_a_flawless_trajectory_gets_nine_tenths_or_all_by_other_weights():
    said = reply((True, True), (True, True))
    assert score_of(TrajectoryJudge(scale=10), SAMPLE, [said]).value == pytest.approx(9)
    assert score_of(TrajectoryJudge(necessary=2 / 3, in_order=1 / 3), SAMPLE, [said]).value == pytest.approx(1)


def test_the_value_is_kept_on_its_scale():
    verdicts = StepVerdicts((StepVerdict("s", False, False),), missing=("m",))
    assert judged_value(verdicts, necessary=0.6, in_order=0.3, missing=0.1) == 0
    both = StepVerdicts((StepVerdict("s", True, True),))
    assert judged_value(both, necessary=1, in_order=1, missing=0) == 1


@pytest.mark.parametrize(
    ("said", "value"),
    [(reply(), 1), (reply(missing=("read",), extra=("mail",)), 0), (reply(extra=("mail",)), 0.5)],
)
def test_without_steps_what_is_missing_decides(said: Any, value: float):
    assert score_of(TrajectoryJudge(), EMPTY, [said]).value == value


def test_the_judge_sees_the_task_the_steps_with_those_inside_and_the_expected_ones():
    expected = TrajectoryExpectation.read([{"name": "search"}, {"name": "writer", "children": [{"name": "save"}]}])
    _, judge = record_of(TrajectoryJudge(expected=expected), SAMPLE, [reply((True, True), (True, True))])
    assert judge.asked == [JudgeSteps(task="Write.", steps=SHOWN, expected=("search", "writer [save]"))]


def test_the_scorer_s_expectation_wins_over_the_sample_s():
    sample = Sample(input="q", trajectory=Trajectory(), expected_trajectory=TrajectoryExpectation.read(["mine"]))
    for scorer, wanted in ((TrajectoryJudge(), ("mine",)), (TrajectoryJudge(expected=["other"]), ("other",))):
        _, judge = record_of(scorer, sample, [reply()])
        asked = judge.asked[0]
        assert isinstance(asked, JudgeSteps)
        assert asked.expected == wanted

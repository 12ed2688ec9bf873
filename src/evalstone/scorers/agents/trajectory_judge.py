"""Trajectory judge: whether the steps taken were needed and in order, as a judge sees it.

    trajectory judge = 0.6 x necessary / n + 0.3 x in order / n - 0.1 x m / (n + m)          range [0, scale], higher is
    better, n steps taken, m steps missing

So a flawless trajectory gets 0.9 of the scale; the three weights can be set, and with `necessary=2/3, in_order=1/3` it
gets all of it. The value is kept in [0, 1]. A trajectory without steps gets 0 when the judge misses a step, else 0.5
when it names steps that should not have been taken, else 1. The steps are the sample's trajectory, else the tool calls
of its messages; the expected steps, if the scorer or the sample has any, are shown to the judge.

Undefined when the judge gives no verdict on the steps. One judge call. Source: @mastra/evals, which takes however many
verdicts come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone.questions.base import Ask
from evalstone.questions.tool_use import JudgeSteps, StepVerdicts
from evalstone.scorers.agents import TrajectorySource, expectation_of, expected_line, step_line
from evalstone.scorers.base import listed, require_number
from evalstone.types import Score, Trajectory, TrajectoryExpectation


def judged_value(verdicts: StepVerdicts, *, necessary: float, in_order: float, missing: float) -> float:
    """The weighted shares, kept in [0, 1]; the weights are those of needed, well-placed and missing steps."""
    n, m = len(verdicts.steps), len(verdicts.missing)
    if not n:
        return 0.0 if m else 0.5 if verdicts.extra else 1.0
    needed = sum(v.necessary for v in verdicts.steps)
    placed = sum(v.in_order for v in verdicts.steps)
    value = necessary * needed / n + in_order * placed / n - missing * m / (n + m)
    return min(1.0, max(0.0, value))


@dataclass(frozen=True, kw_only=True)
class TrajectoryJudge(TrajectorySource):
    """Whether the steps taken were needed and in order, as a judge sees it."""

    name = "trajectory_judge"
    interpretation = (
        (0.85, "the steps are those that the task needs"),
        (0.6, "some steps were not needed, or come at the wrong time"),
        (0.3, "many steps were not needed"),
        (0.0, "the agent went astray"),
    )
    advice = (
        "Read the steps that were not needed, and those that are missing. Plan before acting, limit the steps, or say "
        "in the instructions in which order things are done."
    )

    expected: TrajectoryExpectation | Trajectory | Mapping[str, Any] | Sequence[Any] | None = None
    necessary: float = 0.6
    in_order: float = 0.3
    missing: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected", expectation_of(self, "expected"))
        require_number(self, "necessary", "in_order", "missing", high=1)

    async def score(
        self,
        ask: Ask,
        *,
        input: str,
        trajectory: Trajectory,
        expected_trajectory: TrajectoryExpectation | None = None,
    ) -> Score:
        expectation = cast("TrajectoryExpectation | None", self.expected) or expected_trajectory
        expected = (expectation.steps if expectation is not None else None) or ()
        question = JudgeSteps(
            task=input,
            steps=tuple(map(step_line, trajectory.steps)),
            expected=tuple(map(expected_line, expected)),
        )
        verdicts = await ask(question)
        value = judged_value(verdicts, necessary=self.necessary, in_order=self.in_order, missing=self.missing)
        return Score(value * self.scale, self.scale, _reason(verdicts), verdicts)


def _reason(verdicts: StepVerdicts) -> str:
    n = len(verdicts.steps)
    needless = [v.step for v in verdicts.steps if not v.necessary]
    late = [v.step for v in verdicts.steps if not v.in_order]
    reason = f"{n - len(needless)} of {n} steps were needed, {n - len(late)} in order" if n else "No step was taken"
    for what, steps in (
        ("not needed", needless),
        ("out of order", late),
        ("missing", verdicts.missing),
        ("too many", verdicts.extra),
    ):
        reason += f"; {what}: {listed(steps)}" if steps else ""
    return f"{reason}."

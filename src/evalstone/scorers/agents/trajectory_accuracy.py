"""Trajectory accuracy: how many of the expected steps were taken, in the expected order.

    trajectory accuracy = expected steps found / expected steps - deductions          range [0, scale], higher is better

The trajectory is the sample's, else the tool calls of its messages. A step is the expected one when its name is, and
where the expectation gives a type also that and the data it gives; steps inside steps are not looked at. Ordering
`relaxed`: in the expected order, others between them cost nothing; `unordered`: anywhere; `strict`: each in its place,
less 0.5 / expected steps for each step too many. Where repeats are not allowed, 0.1 less for each name that came twice
or more. The value is kept in [0, 1]. With an empty list of expected steps it is 1 for an empty trajectory, else 0.

`expected` wins over the sample's expected trajectory; the sample's own ordering and repeats win over the scorer's.
Undefined when no steps are expected; @mastra/evals makes that 0, as `without_expectation=0` does. No judge call.
Source: @mastra/evals. Data are compared as JSON whatever the order of their keys, there with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from evalstone.agents.trajectory_comparison import TrajectoryComparison, compare_trajectories
from evalstone.scorers.agents import TrajectoryScorer, expectation_of
from evalstone.scorers.base import listed, require_choice
from evalstone.types import Ordering, Score, Skipped, Trajectory, TrajectoryExpectation


@dataclass(frozen=True, kw_only=True)
class TrajectoryAccuracy(TrajectoryScorer):
    """How many of the expected steps were taken, in the expected order."""

    name = "trajectory_accuracy"
    interpretation = (
        (1.0, "the expected steps were taken"),
        (0.7, "most expected steps were taken"),
        (0.3, "many expected steps are missing or out of order"),
        (0.0, "the agent went another way"),
    )
    advice = (
        "Read which steps are missing or out of order. If other ways are as good, relax the expectation: "
        "ordering relaxed or unordered, names without data."
    )

    expected: TrajectoryExpectation | Trajectory | Mapping[str, Any] | Sequence[Any] | None = None
    ordering: Ordering = "relaxed"
    allow_repeated_steps: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "expected", expectation_of(self, "expected"))
        require_choice(self, "ordering", get_args(Ordering))

    def score(
        self, *, trajectory: Trajectory, expected_trajectory: TrajectoryExpectation | None = None
    ) -> Score | Skipped:
        own = cast("TrajectoryExpectation | None", self.expected) or TrajectoryExpectation()
        defaults = TrajectoryExpectation(ordering=self.ordering, allow_repeated_steps=self.allow_repeated_steps)
        expectation = (expected_trajectory or TrajectoryExpectation()).over(own.over(defaults))
        steps = own.steps if own.steps is not None else expectation.steps
        if steps is None:
            if self.without_expectation is None:
                return Skipped("no steps are expected")
            return Score(self.without_expectation * self.scale, self.scale, "No steps are expected.")
        compared = compare_trajectories(
            trajectory,
            steps,
            ordering=expectation.ordering or self.ordering,
            allow_repeated_steps=expectation.allow_repeated_steps is not False,
        )
        return Score(compared.value * self.scale, self.scale, _reason(compared), compared)


def _reason(compared: TrajectoryComparison) -> str:
    reason = f"{compared.matched} of {compared.expected} expected steps were taken"
    for what, names in (
        ("missing", compared.missing),
        ("in another place", compared.out_of_order),
        ("not expected", compared.extra),
        ("repeated", compared.repeated),
    ):
        reason += f"; {what}: {listed(names)}" if names else ""
    return f"{reason}."

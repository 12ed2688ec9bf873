from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from evalstone._core.display import count
from evalstone.agents.from_traces import extract_trajectory
from evalstone.agents.trajectory_comparison import same_json
from evalstone.scorers.agents import TrajectorySource
from evalstone.scorers.base import as_text
from evalstone.scorers.reasons import reason_with, shortened
from evalstone.types import (
    TOOL_STEPS,
    ExpectedStep,
    Sample,
    Score,
    Skipped,
    Trajectory,
    TrajectoryExpectation,
    TrajectoryStep,
)
from evalstone.types.agreement import shared_calls

Arguments: TypeAlias = Literal["equal", "subset", "ignore"]


def call_matches(expected: ExpectedStep, made: TrajectoryStep, arguments: Arguments) -> bool:
    """Whether a call matches an expected one: by its name, and by the expected arguments, if there are any."""
    if expected.name != made.name:
        return False
    if arguments == "ignore" or "tool_args" not in expected.data:
        return True
    expected_args: Any = expected.data["tool_args"]
    actual_args: Any = made.data.get("tool_args")
    if arguments == "equal" or not all(isinstance(one, Mapping) for one in (expected_args, actual_args)):
        return same_json(expected_args, actual_args)
    return all(value is None or same_json(value, actual_args.get(key)) for key, value in expected_args.items())


def most_pairs(left: int, right: int, fits: Callable[[int, int], bool]) -> list[int | None]:
    """A maximum matching: for each number below `left`, a number below `right` that fits it, or None.

    Each number is matched at most once. The matching grows along shortest augmenting paths.
    """
    candidates = [[other for other in range(right) if fits(number, other)] for number in range(left)]
    match: list[int | None] = [None] * left
    owner: dict[int, int] = {}
    for start in range(left):
        parent: dict[int, int] = {}
        queue = deque([start])
        free: int | None = None
        while queue and free is None:
            number = queue.popleft()
            for other in candidates[number]:
                if other not in parent:
                    parent[other] = number
                    if other not in owner:
                        free = other
                        break
                    queue.append(owner[other])
        while free is not None:
            number = parent[free]
            owner[free] = number
            match[number], free = free, match[number]
    return match


def _tool_steps(expected: TrajectoryExpectation) -> Iterator[ExpectedStep]:
    for step in expected.steps or ():
        if step.step_type in (None, *TOOL_STEPS):
            yield step
        if step.children is not None:
            yield from _tool_steps(step.children)


def _expects_nested(expected: TrajectoryExpectation | None) -> bool:
    inside = [step.children for step in (expected.steps if expected else None) or () if step.children is not None]
    return any(next(_tool_steps(children), None) is not None for children in inside)


class ToolCallF1(TrajectorySource):
    """How well the agent's tool calls match the expected ones, in any order.

        precision = matched calls / calls made
        recall    = matched calls / calls expected
        tool call f1 = 2 · precision · recall / (precision + recall)          range [0, scale], higher is better

    The expected calls are the tool calls in the sample's expected trajectory, including nested ones. A call matches by
    its name and the expected `tool_args`, compared as JSON; a null argument is the same as none. An expected call
    without `tool_args` matches any arguments. Calls are matched one to one, with as many matches as possible: a call
    that was made twice and expected once counts once. The calls made are the tool steps of the sample's trajectory; if
    it has none, as that of a workflow, they are the tool calls in the messages. If the sample has messages, calls
    inside the step of another agent or tool that are in no message count only if nested calls are expected. Failed
    calls count. F1 is computed as 2 · matched / (made + expected), which is 0 when nothing was called. It is 1 when an
    empty list is expected and nothing was called.

    Undefined without an expected trajectory, or when none of its steps is a tool call. No judge call. Source: ragas'
    ToolCallF1, which compares sets, so that repeated calls don't count, and gives 0 when nothing is expected.

    Attributes:
        arguments: "equal": the arguments equal the expected ones; "subset": they include the expected ones; "ignore":
            any arguments.
    """

    name = "tool_call_f1"
    version = 2
    interpretation = (
        (1.0, "the expected calls were made, and no others"),
        (0.6, "most calls match the expected ones"),
        (0.0, "the agent called other tools, or used other arguments"),
    )
    advice = (
        "Read the missing and the unexpected calls. A tool in both lists was called with other arguments: describe its "
        "parameters better, or expect only the arguments that matter and set arguments='subset'."
    )

    arguments: Arguments = "equal"

    def values(self, sample: Sample) -> dict[str, Any]:
        values, trajectory = super().values(sample), sample.trajectory
        if not sample.messages or trajectory is None:
            return values
        if not any(step.step_type in TOOL_STEPS for step in trajectory.walk()):
            return {**values, "trajectory": extract_trajectory(sample.messages)}
        if _expects_nested(sample.expected_trajectory):
            return values
        return {**values, "trajectory": Trajectory(steps=shared_calls(sample.messages, trajectory))}

    def score(self, *, trajectory: Trajectory, expected_trajectory: TrajectoryExpectation) -> Score | Skipped:
        expected = list(_tool_steps(expected_trajectory))
        if not expected and expected_trajectory.steps != ():
            return Skipped("no tool call is expected: the expected trajectory names none")
        made = [step for step in trajectory.walk() if step.step_type in TOOL_STEPS]
        pairs = most_pairs(
            len(expected), len(made), lambda row, column: call_matches(expected[row], made[column], self.arguments)
        )
        matched = set(pairs) - {None}
        missing = [_line(step) for step, index in zip(expected, pairs, strict=True) if index is None]
        extra = [_line(step) for index, step in enumerate(made) if index not in matched]
        value = 2 * len(matched) / (len(made) + len(expected)) if made or expected else 1.0
        evidence = {
            "precision": len(matched) / len(made) if made else None,
            "recall": len(matched) / len(expected) if expected else None,
            "missing": missing,
            "not_expected": extra,
        }
        summary = f"{len(matched)} of {count(len(expected), 'expected call')} matched, {count(len(made), 'call')} made"
        reason = reason_with(summary, ("missing", missing), ("not expected", extra))
        return Score(value * self.scale, reason, evidence=evidence)


def _line(step: TrajectoryStep | ExpectedStep) -> str:
    arguments = f"({shortened(as_text(step.data['tool_args']), 300)})" if step.data.get("tool_args") else ""
    return f"{step.name}{arguments}"

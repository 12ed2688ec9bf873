"""The scorers of agents: tool calls and trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.questions.tool_use import JudgeSteps, JudgeToolCalls
from evalstone.scorers import (
    ToolCallAccuracy,
    ToolCallAppropriateness,
    TrajectoryAccuracy,
    TrajectoryJudge,
    TrajectoryQuality,
    TrajectoryWeights,
)
from evalstone.types import Sample, ToolCall
from tests.parity.adapters.common import MASTRA, Adapted, Adapter, Case, Said, calls_of, messages_of, sample_of
from tests.parity.adapters.recorded import Told, all_shown, told


def tool_call_accuracy(case: Case) -> Adapted:
    options = case["options"]
    scorer = ToolCallAccuracy(
        tool=options.get("expectedTool"),
        order=options.get("expectedToolOrder"),
        definition=MASTRA,
        strict=options.get("strictMode", False),
    )
    return scorer, sample_of(case), []


def tool_call_appropriateness(case: Case) -> Adapted:
    """The recorded judge names the calls that it has judged; these are the calls, where they are not those recorded."""
    evaluation = {"toolCalled": str, "reasoning": str, "wasAppropriate": bool}
    (answers,) = told(case, {"evaluations": [evaluation], "missingTools?": [str]})
    judged: Sequence[Mapping[str, Any]] = answers.given.get("evaluations", ())
    calls = calls_of(case)
    if answers.given and [call.name for call in calls if call.state != "partial"] != [e["toolCalled"] for e in judged]:
        calls = [ToolCall(name=e["toolCalled"]) for e in judged]
    replies = answers.replies(
        lambda given: {
            "calls": [{"reason": e["reasoning"], "appropriate": e["wasAppropriate"]} for e in given["evaluations"]],
            "missing": all_shown(given.get("missingTools")),
        }
    )
    scorer = ToolCallAppropriateness(tools=case["options"]["availableTools"])
    return scorer, sample_of(case, messages=messages_of(case, calls)), [Said(JudgeToolCalls, replies)]


def steps_sample(case: Case, trajectory: Any) -> Sample:
    expected = case.get("expected_trajectory")
    return Sample(id=case["id"], input=case["input"], trajectory=trajectory, expected_trajectory=expected)


def trajectory_accuracy(case: Case) -> Adapted:
    options = case["options"]
    comparison: Mapping[str, Any] = options.get("comparisonOptions") or {}
    scorer = TrajectoryAccuracy(
        expected=options.get("expectedTrajectory"),
        ordering=comparison.get("ordering", "relaxed"),
        allow_repeated_steps=comparison.get("allowRepeatedSteps", True),
        definition=MASTRA,
    )
    return scorer, steps_sample(case, case["trajectory"]), []


def judged_steps(case: Case) -> Told:
    """The recorded judge's answers on steps."""
    evaluation = {"stepName": str, "wasNecessary": bool, "wasInOrder": bool, "reasoning": str}
    (answers,) = told(case, {"stepEvaluations": [evaluation], "missingSteps?": [str], "extraSteps?": [str]})
    return answers


def trajectory_judge(case: Case) -> Adapted:
    """The recorded judge names the steps that it has judged; these are the steps, where they are not those recorded."""
    answers = judged_steps(case)
    judged: Sequence[Mapping[str, Any]] = answers.given.get("stepEvaluations", ())
    steps = case["trajectory"]
    if answers.given and [step["name"] for step in steps["steps"]] != [e["stepName"] for e in judged]:
        steps = [{"stepType": "tool_call", "name": e["stepName"]} for e in judged]
    replies = answers.replies(
        lambda given: {
            "steps": [
                {"reason": e["reasoning"], "necessary": e["wasNecessary"], "in_order": e["wasInOrder"]}
                for e in given["stepEvaluations"]
            ],
            "missing": all_shown(given.get("missingSteps")),
            "extra": all_shown(given.get("extraSteps")),
        }
    )
    scorer = TrajectoryJudge(expected=case["options"].get("expectedTrajectory"))
    return scorer, steps_sample(case, steps), [Said(JudgeSteps, replies)]


def trajectory_quality(case: Case) -> Adapted:
    options = case["options"]
    names = {"toolFailures": "tool_failures", "blacklist": "forbidden"}
    given: Mapping[str, float] = options.get("weights") or {}
    weights = TrajectoryWeights(**{names.get(name, name): weight for name, weight in given.items()})
    scorer = TrajectoryQuality(defaults=options.get("defaults"), weights=weights, definition=MASTRA)
    return scorer, steps_sample(case, case["trajectory"]), []


AGENTS: Mapping[str, Adapter] = {
    "tool-call-accuracy-code": tool_call_accuracy,
    "tool-call-accuracy-llm": tool_call_appropriateness,
    "trajectory-accuracy-code": trajectory_accuracy,
    "trajectory-accuracy-llm": trajectory_judge,
    "trajectory-code": trajectory_quality,
}

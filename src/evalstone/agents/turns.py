"""Conversations as turns, and trajectories as steps: each a sample of its own, which any scorer can score."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from evalstone._core.json import to_jsonable
from evalstone.agents.from_traces import extract_trajectory
from evalstone.agents.messages import answer_text, last_user_text, system_prompt
from evalstone.types import TOOL_STEPS, Sample, Trajectory, TrajectoryStep

SUCCEEDED = ("success", "succeeded", "completed", "ok")
"""The values of `status` that a workflow's step has when it succeeded."""


def turns_of(sample: Sample) -> tuple[Sample, ...]:
    """The turns of a sample; without any, those of its messages: each message of the user with what follows it.

    A turn has the instructions and the metadata of the conversation where it has none of its own, and its trial. The
    last turn of recorded messages is what the sample itself is about: it has its context, reference and state.
    """
    turns = sample.turns or tuple(_recorded(sample))
    shared = {name: value for name, value in sample.metadata.items() if name != "target"}  # of the whole conversation
    return tuple(
        replace(
            turn,
            instructions=sample.instructions if turn.instructions is None else turn.instructions,
            metadata={**shared, **turn.metadata},
            trial=sample.trial,
        )
        for turn in turns
    )


def _recorded(sample: Sample) -> Iterator[Sample]:
    """The turns of the messages of a sample."""
    starts = [place for place, message in enumerate(sample.messages) if message.role == "user"]
    instructions = system_prompt(sample.messages)
    for number, (start, end) in enumerate(itertools.pairwise([*starts, len(sample.messages)]), start=1):
        messages = sample.messages[start:end]
        output, last = answer_text(messages), number == len(starts)
        yield Sample(
            id=str(number),
            input=last_user_text(messages),
            output=sample.output if output is None and last else output,
            context=sample.context if last else None,
            reference=sample.reference if last else None,
            state=sample.state if last else None,
            messages=messages,
            instructions=instructions,
            expected_trajectory=sample.expected_trajectory if len(starts) == 1 else None,
        )


def trajectory_of(sample: Sample) -> Trajectory | None:
    """The trajectory of a sample, else the tool calls in its messages; None for a sample without either."""
    if sample.trajectory is None and sample.messages:
        return extract_trajectory(sample.messages)
    return sample.trajectory


def step_samples(sample: Sample) -> tuple[tuple[TrajectoryStep, Sample | None], ...]:
    """The steps of a sample's trajectory and those inside them, each with the sample that it is; None if it failed.

    input: its arguments, else the output of the last step before it that succeeded, else the input of the sample.
    output: its result. state: its data. context, instructions and metadata: those of the sample; its own metadata win.
    """
    trajectory = trajectory_of(sample)
    shared = {name: value for name, value in sample.metadata.items() if name != "target"}
    before, found = sample.input, list[tuple[TrajectoryStep, Sample | None]]()
    for number, step in enumerate(() if trajectory is None else trajectory.walk(), start=1):
        if not succeeded(step):
            found.append((step, None))
            continue
        given = step.data.get("tool_args", step.metadata.get("input"))
        output = _text(_result(step))
        one = Sample(
            id=f"{number}",
            input=_text(given) if given else before,
            output=output,
            context=sample.context,
            instructions=sample.instructions,
            metadata={**shared, **step.metadata},
            state=dict(step.data),
            trial=sample.trial,
        )
        found.append((step, one))
        before = before if output is None else output
    return tuple(found)


def succeeded(step: TrajectoryStep) -> bool:
    """Whether a step succeeded: it says so, or it says nothing of it and has a result."""
    if "success" in step.data:
        return step.data["success"] is True
    if "status" in step.data:
        return str(step.data["status"]).lower() in SUCCEEDED
    return step.step_type not in TOOL_STEPS or "tool_result" in step.data


def _result(step: TrajectoryStep) -> Any:
    result = step.data.get("tool_result", step.data.get("output", step.metadata.get("output")))
    if isinstance(result, Mapping) and list(entries := cast("Mapping[str, Any]", result)) == ["value"]:
        return entries["value"]  # what is no object was wrapped as such
    return cast("Any", result)


def _text(value: Any) -> str | None:
    """A text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(to_jsonable(value), ensure_ascii=False)

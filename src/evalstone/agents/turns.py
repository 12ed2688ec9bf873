"""Turns of conversations and steps of trajectories as separate samples, which any scorer can score."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evalstone._core.guards import is_mapping
from evalstone._core.json import to_jsonable
from evalstone.agents.from_traces import extract_trajectory
from evalstone.agents.messages import answer_text, last_user_text, system_prompt
from evalstone.types import TOOL_STEPS, Sample, Trajectory, TrajectoryStep

SUCCEEDED = ("success", "succeeded", "completed", "ok")
"""The values of a workflow step's `status` that mean success."""


def turns_of(sample: Sample) -> tuple[Sample, ...]:
    """The turns of a sample, or else those of its messages: each user message with the messages up to the next one.

    A turn inherits the trial of the conversation, and its instructions, metadata, group and weight if it has none. The
    last turn of recorded messages is the one that the sample is about, so it has the sample's context, reference and
    state.
    """
    turns = sample.turns or tuple(_recorded(sample))
    shared = {name: value for name, value in sample.metadata.items() if name != "target"}  # of the whole conversation
    return tuple(
        replace(
            turn,
            instructions=sample.instructions if turn.instructions is None else turn.instructions,
            metadata={**shared, **turn.metadata},
            group=sample.group if turn.group is None else turn.group,
            weight=sample.weight if turn.weight is None else turn.weight,
            trial=sample.trial,
        )
        for turn in turns
    )


def _recorded(sample: Sample) -> Iterator[Sample]:
    """The turns of a sample's messages."""
    starts = [place for place, message in enumerate(sample.messages) if message.role == "user"]
    instructions = system_prompt(sample.messages)
    for number, (start, end) in enumerate(itertools.pairwise([*starts, len(sample.messages)]), start=1):
        messages = sample.messages[start:end]
        output, last = answer_text(messages), number == len(starts)
        if last and not output and sample.output is not None:
            output = sample.output
        yield Sample(
            id=str(number),
            input=last_user_text(messages),
            output=output,
            context=sample.context if last else None,
            reference=sample.reference if last else None,
            state=sample.state if last else None,
            messages=messages,
            instructions=instructions,
            expected_trajectory=sample.expected_trajectory if len(starts) == 1 else None,
        )


def trajectory_of(sample: Sample) -> Trajectory | None:
    """The trajectory of a sample, else the tool calls in its messages; None if it has neither."""
    if sample.trajectory is None and sample.messages:
        return extract_trajectory(sample.messages)
    return sample.trajectory


def step_samples(sample: Sample) -> tuple[tuple[TrajectoryStep, Sample | None], ...]:
    """All steps of a sample's trajectory, including nested ones, each as a sample; None for failed steps.

    `input` is the step's arguments, else the output of the last successful step before it, else the sample's input.
    `output` is the step's result and `state` its data. `context`, `instructions` and `metadata` are the sample's; the
    step's own metadata take precedence.
    """
    trajectory = trajectory_of(sample)
    shared = {name: value for name, value in sample.metadata.items() if name != "target"}
    previous, samples = sample.input, list[tuple[TrajectoryStep, Sample | None]]()
    for number, step in enumerate(() if trajectory is None else trajectory.walk(), start=1):
        if not succeeded(step):
            samples.append((step, None))
            continue
        arguments = step.data.get("tool_args", step.metadata.get("input"))
        output = _text(_result(step))
        step_sample = Sample(
            id=f"{number}",
            input=_text(arguments) if arguments else previous,
            output=output,
            context=sample.context,
            instructions=sample.instructions,
            metadata={**shared, **step.metadata},
            state=dict(step.data),
            trial=sample.trial,
        )
        samples.append((step, step_sample))
        previous = previous if output is None else output
    return tuple(samples)


def succeeded(step: TrajectoryStep) -> bool:
    """Whether a step succeeded, by its `success` or `status`; without these, a tool call needs a result."""
    if "success" in step.data:
        return step.data["success"] is True
    if "status" in step.data:
        return str(step.data["status"]).lower() in SUCCEEDED
    return step.step_type not in TOOL_STEPS or "tool_result" in step.data


def _result(step: TrajectoryStep) -> Any:
    result = step.data.get("tool_result", step.data.get("output", step.metadata.get("output")))
    if is_mapping(result) and list(entries := result) == ["value"]:
        return entries["value"]  # results that aren't objects are wrapped
    return result


def _text(value: Any) -> str | None:
    """Text unchanged, other values as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(to_jsonable(value), ensure_ascii=False)

"""One agent in the messages and in the trajectory of a sample: both have the same tool calls.

A call that both have is merged from the two accounts. A call that only one of them has is added to the other, with a
note on its message:

- to the trajectory, if it has tool calls or no steps at all, and for the turns of which it has any call: a trajectory
  of other steps, such as a workflow's, has the calls inside its steps, and earlier turns may be no part of it;
- to the messages, if it isn't a call inside the step of another agent or tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone._core.guards import is_mapping
from evalstone.types.accounts import merged_call, paired
from evalstone.types.messages import Message, ToolCall
from evalstone.types.trajectories import TOOL_STEPS, Trajectory, TrajectoryStep

ONLY_IN_MESSAGES = "a tool call that only the messages have, added to the trajectory"
ONLY_IN_TRAJECTORY = "a tool call that only the trajectory has, added to the messages"
_CALL_IDS = ("tool_call_id", "call_id")


def step_of(call: ToolCall) -> TrajectoryStep:
    """A tool call as a step. A result that isn't an object is wrapped as {"value": …}; `success` is absent for a call
    without a result."""
    return TrajectoryStep(step_type="tool_call", name=call.name, data=_data_of(call))


def _data_of(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {"tool_args": dict(call.arguments)}
    if call.result is not None:
        result = call.result
        data["tool_result"] = call.result if isinstance(result, Mapping) else {"value": call.result}
    if call.state != "call":
        data["success"] = call.state == "result"
    return data


def call_of(step: TrajectoryStep) -> ToolCall:
    """A tool step as a call."""
    arguments, stored = step.data.get("tool_args"), step.data.get("tool_result")
    entries: Mapping[str, Any] = stored if is_mapping(stored) else {}
    result: Any = entries["value"] if [*entries] == ["value"] else cast(Any, stored)
    success = step.data.get("success")
    failed, returned = success is False, success is not None or result is not None
    named = arguments if is_mapping(arguments) else {"arguments": arguments}
    return ToolCall(
        name=step.name,
        arguments={} if arguments is None else named,
        result=result,
        id=_id_of(step),
        state="error" if failed else "result" if returned else "call",
        error=str(step.metadata["error"]) if failed and step.metadata.get("error") else None,
    )


def _id_of(step: TrajectoryStep) -> str:
    return next((str(step.metadata[key]) for key in _CALL_IDS if step.metadata.get(key)), "")


def agreed(messages: Sequence[Message], trajectory: Trajectory) -> tuple[tuple[Message, ...], Trajectory]:
    """The messages and the trajectory of one agent, with the same tool calls in both."""
    places = [
        (at, number)
        for at, message in enumerate(messages)
        for number, call in enumerate(message.tool_calls)
        if call.state != "partial"
    ]
    steps = [step for step in trajectory.walk() if step.step_type in TOOL_STEPS]
    if not (places or steps):
        return tuple(messages), trajectory
    calls = [messages[at].tool_calls[number] for at, number in places]
    if len(calls) == len(steps) and all(map(_is_same, calls, steps)):
        return tuple(messages), trajectory  # as in most copies of a sample
    runs = [*map(call_of, steps)]
    pairs = paired(runs, calls)
    notes: dict[int, list[str]] = {}
    changed: dict[int, TrajectoryStep] = {}
    for number, place in pairs.items():
        known = calls[place]
        calls[place], said = merged_call(known, runs[number])
        notes.setdefault(places[place][0], []).extend(said)
        if merged_call(runs[number], calls[place])[0] != runs[number] or said:
            data = step_of(calls[place]).data
            changed[id(steps[number])] = replace(steps[number], data={**steps[number].data, **data})
    added = _added_to_messages(trajectory, steps, runs, pairs, places, messages)
    extra = _added_to_trajectory(trajectory, messages, steps, pairs, places)
    for place in extra:
        notes.setdefault(places[place][0], []).append(f"{ONLY_IN_MESSAGES}: {excerpt(calls[place].name)}")
    if changed or extra:
        top = [_changed(step, changed) for step in trajectory.steps]
        trajectory = replace(trajectory, steps=_with_calls(top, trajectory.steps, steps, calls, pairs, extra))
    return tuple(_messages(messages, places, calls, notes, added)), trajectory


def _is_same(call: ToolCall, step: TrajectoryStep) -> bool:
    """Whether a step says of a call what its message does. Failures may differ in their errors, so they are merged."""
    is_call = call.name == step.name and _id_of(step) in ("", call.id)
    return is_call and call.state != "error" and step.data == _data_of(call)


def _added_to_trajectory(
    trajectory: Trajectory,
    messages: Sequence[Message],
    steps: Sequence[TrajectoryStep],
    pairs: Mapping[int, int],
    places: Sequence[tuple[int, int]],
) -> list[int]:
    """The calls, by number, that only the messages have and that the trajectory should have."""
    if trajectory.steps and not steps:
        return []
    turn, turns = 0, list[int]()
    for message in messages:
        turn += message.role == "user"
        turns.append(turn)
    covered = {turns[places[place][0]] for place in pairs.values()} | {turn}
    known = set(pairs.values())
    return [place for place, (at, _) in enumerate(places) if place not in known and turns[at] in covered]


def _added_to_messages(
    trajectory: Trajectory,
    steps: Sequence[TrajectoryStep],
    runs: Sequence[ToolCall],
    pairs: Mapping[int, int],
    places: Sequence[tuple[int, int]],
    messages: Sequence[Message],
) -> list[tuple[int, ToolCall]]:
    """The calls that only the trajectory has, with the message before which each belongs."""
    inside = _inside(trajectory)
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    answer = next((at for at in range(len(messages) - 1, last, -1) if not messages[at].tool_calls), len(messages))
    added: list[tuple[int, ToolCall]] = []
    before = None
    for number, call in enumerate(runs):
        if number in pairs:
            before = places[pairs[number]][0] + 1
        elif id(steps[number]) not in inside:
            following = (places[pairs[n]][0] for n in range(number + 1, len(runs)) if n in pairs)
            added.append((before if before is not None else min(next(following, answer), answer), call))
    return added


_OWN = ("agent_run", *TOOL_STEPS)
"""The steps inside of which others act."""


def _inside(trajectory: Trajectory) -> set[int]:
    """The steps, by identity, in which not the agent itself acts."""
    return {id(child) for step in trajectory.walk() if step.step_type in _OWN for child in _below(step)}


def _below(step: TrajectoryStep) -> Iterator[TrajectoryStep]:
    for child in step.children:
        yield from child.walk()


def shared_calls(messages: Sequence[Message], trajectory: Trajectory) -> tuple[TrajectoryStep, ...]:
    """The tool steps of a sample's trajectory that its messages have too, in order and without the steps inside them.

    These are all tool steps but those inside the step of another agent or tool whose conversation is not in the
    messages.
    """
    steps = [step for step in trajectory.walk() if step.step_type in TOOL_STEPS]
    calls = [call for message in messages for call in message.tool_calls if call.state != "partial"]
    inside, pairs = _inside(trajectory), paired([*map(call_of, steps)], calls)
    shared = (step for number, step in enumerate(steps) if number in pairs or id(step) not in inside)
    return tuple(replace(step, children=()) for step in shared)


def _changed(step: TrajectoryStep, changed: Mapping[int, TrajectoryStep]) -> TrajectoryStep:
    children = tuple(_changed(child, changed) for child in step.children)
    new = changed.get(id(step), step)
    return new if all(map(lambda a, b: a is b, children, new.children)) else replace(new, children=children)


def _with_calls(
    top: Sequence[TrajectoryStep],
    before: Sequence[TrajectoryStep],
    steps: Sequence[TrajectoryStep],
    calls: Sequence[ToolCall],
    pairs: Mapping[int, int],
    extra: Sequence[int],
) -> list[TrajectoryStep]:
    """The steps, with those of more calls after the step of the call before each."""
    holding = {id(inner): at for at, step in enumerate(before) for inner in step.walk()}
    step_at = {place: holding[id(steps[number])] for number, place in pairs.items()}
    inserted: dict[int, list[TrajectoryStep]] = {}
    before_it = -1
    for place in sorted((*step_at, *extra)):
        if place in step_at:
            before_it = max(before_it, step_at[place])
        else:
            inserted.setdefault(before_it, []).append(step_of(calls[place]))
    merged = [*inserted.get(-1, [])]
    for at, step in enumerate(top):
        merged += [step, *inserted.get(at, [])]
    return merged


def _messages(
    messages: Sequence[Message],
    places: Sequence[tuple[int, int]],
    calls: Sequence[ToolCall],
    notes: Mapping[int, Sequence[str]],
    added: Sequence[tuple[int, ToolCall]],
) -> Iterator[Message]:
    by_place = dict(zip(places, calls, strict=True))
    added_at: dict[int, list[ToolCall]] = {}
    for at, call in added:
        added_at.setdefault(at, []).append(call)
    for at in range(len(messages) + 1):
        for call in added_at.get(at, ()):
            note = f"{ONLY_IN_TRAJECTORY}: {excerpt(call.name)}"
            yield Message(role="assistant", tool_calls=[call], notes=[note])
        if at == len(messages):
            return
        message = messages[at]
        merged = tuple(by_place.get((at, number), call) for number, call in enumerate(message.tool_calls))
        said = tuple(note for note in notes.get(at, ()) if note not in message.notes)
        if said or any(map(lambda a, b: a is not b, merged, message.tool_calls)):
            message = replace(message, tool_calls=merged, notes=(*message.notes, *said))
        yield message

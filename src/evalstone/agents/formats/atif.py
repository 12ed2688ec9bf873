"""Harbor's trajectories of coding agents (ATIF)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalstone._core.display import excerpt, shortlist
from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    checked_entries,
    checked_objects,
    entries_of,
    read_cost,
    read_usage,
)

_SOURCES = {"system": "system", "user": "user", "agent": "assistant"}


def is_trajectory(value: Any) -> bool:
    """Whether this is a trajectory in ATIF, of any version."""
    return str(entries_of(value).get("schema_version")).startswith("ATIF")


def read_trajectory(value: Any) -> Layout:
    """A trajectory: its steps as messages, the observations as results of the calls they name.

    Trajectories of subagents are transcripts of their own.
    """
    trajectory = entries_of(value)
    if "steps" not in trajectory:
        raise PlacedError(f"a trajectory must have steps; it has {shortlist(trajectory)}")
    layout = Layout()
    cost: float | None = None
    for number, step in enumerate(checked_objects(trajectory["steps"], "steps")):
        for inner, message in _step(step, f"steps[{number}]"):
            layout.add(message, inner)
        spent = read_cost(entries_of(step.get("metrics")).get("cost_usd"))
        cost = cost if spent is None else (cost or 0.0) + spent
    final = entries_of(trajectory.get("final_metrics"))
    total = read_cost(final.get("total_cost_usd"))
    layout.usage, layout.cost = read_usage(final), cost if total is None else total
    return layout


def _step(step: Entries, place: str) -> Iterator[tuple[str, Entries]]:
    source = step.get("source")
    if not isinstance(source, str) or source not in _SOURCES:
        raise PlacedError(f"must be system, user or agent, not {excerpt(source)}", f"{place}.source")
    calls = checked_objects(step.get("tool_calls"), f"{place}.tool_calls")
    yield (
        place,
        {
            "role": _SOURCES[source],
            "content": step.get("message"),
            "reasoning_content": step.get("reasoning_content"),
            "tool_calls": [{"name": call.get("function_name"), **call} for call in calls],
            "usage": step.get("metrics"),
        },
    )
    observation = checked_entries(step.get("observation") or {}, f"{place}.observation")
    for number, result in enumerate(checked_objects(observation.get("results"), f"{place}.observation.results")):
        content = result.get("content")
        if content is None:
            content = result.get("subagent_trajectory_ref")
        part = {"type": "tool_result", "tool_call_id": result.get("source_call_id"), "content": content}
        yield f"{place}.observation.results[{number}]", {"role": "tool", "content": [part]}

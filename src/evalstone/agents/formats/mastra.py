"""Mastra's agents and workflows. For its spans, see `mastra_rows` and `mastra_spans`."""

from __future__ import annotations

from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats import ai_sdk
from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.values import Entries, entries_of
from evalstone.agents.from_traces import extract_workflow_trajectory

_WORKFLOW_ENDS = ("success", "failed", "tripwire", "suspended", "paused", "bailed", "canceled")
"""The values of `status` in the result of a workflow."""


def is_message(item: Entries) -> bool:
    """Whether this is a stored message."""
    return "parts" in entries_of(item.get("content")) or entries_of(item.get("content")).get("format") == 2


def is_result(value: Any) -> bool:
    """Whether this is what `generate` of an agent or `start` of a workflow returns, as JSON."""
    return ai_sdk.is_mastra_result(value) or _is_workflow(value)


def read_result(value: Any) -> Layout:
    """The messages of an agent, or the result and the steps of a workflow."""
    return _read_workflow(value) if _is_workflow(value) else ai_sdk.read_result(value)


def _is_workflow(value: Any) -> bool:
    """Whether this is what `start` of a Mastra workflow returns, as JSON."""
    entries = entries_of(value)
    return is_object(entries.get("steps")) and entries.get("status") in _WORKFLOW_ENDS


def _read_workflow(value: Any) -> Layout:
    """The result, and the steps as a trajectory, in the order of execution if the result has it."""
    entries = entries_of(value)
    results = {name: step for name, step in entries_of(entries["steps"]).items() if name != "input" or _ran(step)}
    path = entries.get("stepExecutionPath")
    order = [str(step) for step in path] if is_array(path) else []
    if not results.keys() <= {*order}:  # it has no steps of branches, parallel steps and loops
        order = sorted(results, key=lambda name: _started(results[name]))
    trajectory = extract_workflow_trajectory(results, order)
    if entries["status"] == "success":
        result = entries.get("result")
        return Layout(output="" if result is None else result, trajectory=trajectory)
    return Layout(trajectory=trajectory, error=_workflow_error(entries, results))


def _ran(step: Any) -> bool:
    """Whether this is a step's result; the input of a workflow stands among them."""
    return "status" in entries_of(step)


def _started(step: Any) -> float:
    started = entries_of(step).get("startedAt")
    return float(started) if isinstance(started, int | float) else 0.0


def _workflow_error(entries: Entries, results: Entries) -> str:
    """The status of a workflow that didn't succeed, the step where it ended, and the reason."""
    status = entries["status"]
    ended = next((name for name, step in results.items() if entries_of(step).get("status") == status), None)
    step = {} if ended is None else entries_of(results[ended])
    cause: Any = next((each for each in (step.get("error"), entries.get("error"), entries.get("tripwire")) if each), "")
    named = entries_of(cause)
    why = str(named.get("message") or named.get("reason") or "") if is_object(cause) else str(cause)
    happened = "the workflow failed" if status == "failed" else f"the workflow ended with the status {status}"
    return happened + (f" in step {ended!r}" if ended is not None else "") + (f": {why}" if why else "")

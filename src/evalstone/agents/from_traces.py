"""Extraction of trajectories from the messages of a run, the results of a workflow, or the spans of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from evalstone._core.guards import is_array, is_mapping, is_number
from evalstone.errors import DataError, invalid
from evalstone.types import STEP_DATA, Message, Trajectory, TrajectoryStep
from evalstone.types.agreement import step_of

_STORED: Mapping[str, str] = {"id": "spanId", "startTime": "startedAt", "endTime": "endedAt"}
_ATTRIBUTES: Mapping[str, str] = {
    "mcp_server": "mcpServer",
    "model_id": "model",
    "finish_reason": "finishReason",
    "step_id": "stepId",
    "status": "status",
    "condition_count": "conditionCount",
    "selected_steps": "selectedSteps",
    "branch_count": "branchCount",
    "parallel_steps": "parallelSteps",
    "loop_type": "loopType",
    "total_iterations": "totalIterations",
    "sleep_type": "sleepType",
    "event_name": "eventName",
    "event_received": "eventReceived",
}


def extract_trajectory(messages: Iterable[Message]) -> Trajectory:
    """The tool calls of a conversation as steps, in order.

    `success` is true if the call returned a result, and false if it ended in an error. It is absent for a call without
    a result. A result that isn't an object is wrapped as {"value": …}.
    """
    calls = (call for message in messages for call in message.tool_calls if call.state != "partial")
    return Trajectory(steps=tuple(map(step_of, calls)))


def _wrapped(value: Any) -> Any:
    return value if is_mapping(value) else {"value": value}


def extract_workflow_trajectory(
    results: Mapping[str, Mapping[str, Any]], path: Sequence[str] | None = None
) -> Trajectory:
    """The steps of a workflow run.

    The metadata of a step have its `input` and its `error`. Durations are in seconds: of a step from `startedAt`
    to `endedAt`, of the run from the first start to the last end.

    Args:
        results: The results by step id.
        path: The ids of the steps in order. Ids without a result are dropped, because they weren't executed. None: all
            results, in their order.

    Raises:
        DataError: A result isn't an object, or a time is invalid.
    """
    order = [step for step in (results if path is None else path) if step in results]
    steps: list[TrajectoryStep] = []
    times: list[tuple[float, float]] = []
    for step_id in order:
        result = _camel(results[step_id], f"the result of step {step_id!r}")
        span = _times(result)
        data = {"step_id": step_id, **{key: result[key] for key in ("status", "output") if key in result}}
        more = {"input": result.get("payload"), "error": result.get("error")}
        steps.append(
            TrajectoryStep(
                step_type="workflow_step",
                name=step_id,
                data=data,
                seconds=_duration(span),
                metadata={key: value for key, value in more.items() if value is not None},
            )
        )
        times.extend([] if span is None else [span])
    measured = len(times) == len(steps) and times
    total = (min(start for start, _ in times), max(end for _, end in times)) if measured else None
    return Trajectory(steps=tuple(steps), total_seconds=_duration(total))


def extract_trajectory_from_trace(spans: Sequence[Mapping[str, Any]], root: str | None = None) -> Trajectory:
    """The steps below the root span of a trace, as a tree.

    Spans of a type that no step has, such as `model_chunk`, are replaced by their children.

    Args:
        spans: Objects with `spanId` (or `id`), `parentSpanId`, `type` (or `spanType`), `name`, `startedAt`, `endedAt`
            (or `startTime`, `endTime`), `input`, `output`, `attributes` and `error`.
        root: The id of the run's span, which isn't a step itself. None: the first span without a parent.

    Raises:
        DataError: There is no such root, a span isn't an object, or a span is its own ancestor.
    """
    read = [_exported(_camel(span, "a span")) for span in spans]
    below: dict[Any, list[dict[str, Any]]] = {}
    for span in sorted(read, key=_start):
        below.setdefault(span.get("parentSpanId"), []).append(span)
    key, value = ("parentSpanId", None) if root is None else ("spanId", root)
    run = next((span for span in read if span.get(key) == value), None)
    if run is None:
        raise DataError(f"no span has the id {root!r}" if root is not None else "every span has a parent")
    return Trajectory(steps=tuple(_steps(run.get("spanId"), below, frozenset())), total_seconds=_duration(_times(run)))


def spans_in(value: object) -> Sequence[Mapping[str, Any]] | None:
    """The spans that `extract_trajectory_from_trace` reads: in a list, or under `spans` in an object. None without a
    step among them."""
    listed = value.get("spans") if is_mapping(value) else value
    spans = listed if is_array(listed) else []
    if not spans or not all(isinstance(span, Mapping) for span in spans):
        return None
    read = [_camel(span, "a span") for span in spans]
    return spans if all("spanId" in span for span in read) and any(_kind(span) in STEP_DATA for span in read) else None


def _steps(
    parent: Any, below: Mapping[Any, Sequence[dict[str, Any]]], above: frozenset[Any]
) -> Iterator[TrajectoryStep]:
    if parent in above:
        raise DataError(f"span {parent!r} lies inside itself")
    above |= {parent}
    for span in below.get(parent, ()):
        children = tuple(_steps(span.get("spanId"), below, above))
        kind = _kind(span)
        if kind in STEP_DATA:
            yield _span_step(span, kind, children)
        else:
            yield from children


def _kind(span: Mapping[str, Any]) -> str:
    return str(span.get("spanType") or span.get("type") or "generic")


def _span_step(span: Mapping[str, Any], kind: Any, children: tuple[TrajectoryStep, ...]) -> TrajectoryStep:
    attributes: Mapping[str, Any] = span.get("attributes") or {}
    data = {key: attributes.get(name) for key, name in _ATTRIBUTES.items()} | _span_data(span, kind, attributes)
    return TrajectoryStep(
        step_type=kind,
        name=_span_name(span, kind),
        data={key: value for key, value in data.items() if value is not None and key in STEP_DATA[kind]},
        seconds=_duration(_times(span)),
        children=children,
    )


def _span_name(span: Mapping[str, Any], kind: str) -> str:
    named = span.get("entityName") or span.get("entityId")
    if named:
        return str(named)
    name = str(span.get("name") or kind)
    quoted = name.split("'")
    return quoted[1] if len(quoted) == 3 and quoted[1] else name


def _span_data(span: Mapping[str, Any], kind: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    failed = bool(span.get("error") or span.get("errorInfo"))
    own = span.get("entityId") or span.get("entityName")
    if kind.endswith("tool_call"):
        data: dict[str, Any] = {"success": False if failed else attributes.get("success", True)}
        if span.get("input") is not None:
            data["tool_args"] = _wrapped(span["input"])
        if span.get("output") is not None:
            data["tool_result"] = _wrapped(span["output"])
        return data
    if kind == "model_generation":
        usage: Mapping[str, Any] = attributes.get("usage") or {}
        return {
            "prompt_tokens": usage.get("inputTokens", usage.get("promptTokens")),
            "completion_tokens": usage.get("outputTokens", usage.get("completionTokens")),
        }
    if kind == "workflow_step":
        return {"output": span.get("output"), "step_id": attributes.get("stepId") or own}
    if kind == "workflow_sleep":
        return {"sleep_seconds": _duration((0.0, slept)) if is_number(slept := attributes.get("durationMs")) else slept}
    return {"agent_id": own, "workflow_id": own, "processor_id": own}


def _exported(span: dict[str, Any]) -> dict[str, Any]:
    """A span under the names of Mastra's storage, if it has those of its exporters."""
    return {stored: span[name] for name, stored in _STORED.items() if name in span} | span


def _camel(entry: object, what: str) -> dict[str, Any]:
    """An object with its keys in camelCase."""
    if not is_mapping(entry):
        raise DataError(invalid(what, "an object", entry, type(entry).__name__))
    return {_camel_key(str(key)): value for key, value in entry.items()}


def _camel_key(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _times(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    start, end = _milliseconds(entry.get("startedAt")), _milliseconds(entry.get("endedAt"))
    return None if start is None or end is None else (start, end)


def _duration(times: tuple[float, float] | None) -> float | None:
    """Seconds between two times in milliseconds."""
    return None if times is None else (times[1] - times[0]) / 1000


def _start(entry: Mapping[str, Any]) -> float:
    return _milliseconds(entry.get("startedAt")) or 0.0


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise DataError(invalid("a time", "in ISO 8601 or a number of milliseconds", value)) from None
    if isinstance(value, datetime):
        return value.timestamp() * 1000
    raise DataError(invalid("a time", "a text or a number", value, type(value).__name__))

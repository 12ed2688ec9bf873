from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evalstone.agents.from_traces import extract_trajectory, extract_trajectory_from_trace, extract_workflow_trajectory
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall, Trajectory


def test_the_tool_calls_of_a_conversation_become_steps():
    talk = [
        Message(role="user", content="q"),
        Message(role="assistant", tool_calls=[ToolCall(name="search", arguments={"q": "a"}, result={"n": 1})]),
        Message(
            role="assistant",
            tool_calls=[
                ToolCall(name="add", arguments={}, result=3),
                ToolCall(name="mail", state="error", error="down"),
                ToolCall(name="wait", state="call"),
                ToolCall(name="never", state="partial"),
            ],
        ),
    ]
    assert extract_trajectory(talk) == Trajectory.read(
        [
            {
                "step_type": "tool_call",
                "name": "search",
                "tool_args": {"q": "a"},
                "tool_result": {"n": 1},
                "success": True,
            },
            {"step_type": "tool_call", "name": "add", "tool_args": {}, "tool_result": {"value": 3}, "success": True},
            {"step_type": "tool_call", "name": "mail", "tool_args": {}, "success": False},
            {"step_type": "tool_call", "name": "wait", "tool_args": {}},
        ]
    )


RESULTS: dict[str, dict[str, Any]] = {
    "load": {"status": "success", "output": {"rows": 2}, "startedAt": 1000, "endedAt": 1500},
    "save": {"status": "failed", "error": "disk", "startedAt": 1500, "endedAt": 1700},
    "skipped": {"status": "skipped"},
}


def test_a_workflow_s_results_become_steps_in_the_order_of_the_path():
    found = extract_workflow_trajectory(RESULTS, ["save", "load", "never"])
    assert found == Trajectory.read(
        {
            "steps": [
                {
                    "step_type": "workflow_step",
                    "name": "save",
                    "step_id": "save",
                    "status": "failed",
                    "seconds": 0.2,
                    "metadata": {"error": "disk"},
                },
                {
                    "step_type": "workflow_step",
                    "name": "load",
                    "step_id": "load",
                    "status": "success",
                    "output": {"rows": 2},
                    "seconds": 0.5,
                },
            ],
            "total_seconds": 0.7,
        }
    )


def test_without_a_path_all_results_count_and_a_missing_time_leaves_the_total_open():
    found = extract_workflow_trajectory(RESULTS)
    assert [step.name for step in found.steps] == ["load", "save", "skipped"]
    assert found.steps[2].seconds is None
    assert found.total_seconds is None


def span(id: str, parent: str | None, kind: str, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    return {
        "spanId": id,
        "parentSpanId": parent,
        "spanType": kind,
        "name": f"{kind}: '{id}'",
        "startedAt": start,
        "endedAt": end,
        **more,
    }


SPANS = [
    span("tool", "step", "tool_call", 30, 40, entityName="search", input={"q": "a"}, output="none"),
    span("root", None, "agent_run", 0, 100),
    span(
        "gen",
        "root",
        "model_generation",
        10,
        60,
        attributes={"model": "m", "finishReason": "stop", "usage": {"inputTokens": 5, "outputTokens": 2}},
    ),
    span("step", "gen", "model_step", 20, 50),
    span("judge", "root", "scorer_run", 65, 70),
    span("mcp", "root", "mcp_tool_call", 70, 80, attributes={"mcpServer": "s"}, errorInfo={"message": "no"}),
    span("sub", "root", "agent_run", 80, 90, entityId="writer"),
]


def test_a_trace_becomes_a_tree_without_its_root_and_without_bookkeeping():
    assert extract_trajectory_from_trace(SPANS, "root") == Trajectory.read(
        {
            "steps": [
                {
                    "step_type": "model_generation",
                    "name": "gen",
                    "model_id": "m",
                    "finish_reason": "stop",
                    "prompt_tokens": 5,
                    "completion_tokens": 2,
                    "seconds": 0.05,
                    "children": [
                        {
                            "step_type": "tool_call",
                            "name": "search",
                            "tool_args": {"q": "a"},
                            "tool_result": {"value": "none"},
                            "success": True,
                            "seconds": 0.01,
                        }
                    ],
                },
                {"step_type": "mcp_tool_call", "name": "mcp", "mcp_server": "s", "success": False, "seconds": 0.01},
                {"step_type": "agent_run", "name": "writer", "agent_id": "writer", "seconds": 0.01},
            ],
            "total_seconds": 0.1,
        }
    )


def test_the_root_may_be_left_out_or_be_a_span_further_down():
    assert extract_trajectory_from_trace(SPANS) == extract_trajectory_from_trace(SPANS, "root")
    assert [step.name for step in extract_trajectory_from_trace(SPANS, "gen").steps] == ["search"]


def test_times_may_be_dates_and_keys_in_snake_case():
    start, end = datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:01.500Z"
    spans = [
        {"span_id": "a", "parent_span_id": None, "type": "workflow_run", "started_at": start, "ended_at": end},
        {
            "span_id": "b",
            "parent_span_id": "a",
            "type": "workflow_step",
            "name": "load",
            "attributes": {"status": "ok"},
        },
    ]
    found = extract_trajectory_from_trace(spans)
    assert found.total_seconds == 1.5
    assert found.steps[0].data == {"status": "ok"}


@pytest.mark.parametrize(
    ("spans", "root", "told"),
    [
        ([], None, "every span has a parent"),
        (SPANS, "gone", "no span has the id 'gone'"),
        ([span("a", "a", "tool_call", 0, 1)], "a", "span 'a' lies inside itself"),
        ([5], None, "a span must be an object, not int"),
        ([span("a", None, "agent_run", "soon", 1)], None, "a time must be in ISO 8601"),
        ([span("a", None, "agent_run", [], 1)], None, "a time must be a text or a number, not list"),
    ],
)
def test_what_is_no_trace_is_refused(spans: Any, root: str | None, told: str):
    with pytest.raises(DataError, match=told):
        extract_trajectory_from_trace(spans, root)

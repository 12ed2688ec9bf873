"""The results of Strands agents. Their messages are Bedrock's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalstone.agents.formats.format import Layout
from evalstone.agents.formats.values import entries_of, objects_in, plain, read_usage
from evalstone.errors import DataError

PART = ("agent_result", "which has only the last message of a Strands agent: pass agent.messages, or its spans")
"""The type of the result's data, and what to pass instead."""


def read_run(run: Any) -> Layout:
    """The result of a call of an agent. Raises DataError for one without the agent's messages."""
    messages = _messages(run)
    call = run.metrics.agent_invocations[-1]
    usage, structured = read_usage(dict(call.usage)), getattr(run, "structured_output", None)
    layout = Layout(
        usage=None if usage is None else replace(usage, requests=len(call.cycles)),
        output=None if structured is None else structured.model_dump_json(),  # as its spans have it
    )
    layout.extend(messages, "metrics.traces")
    return layout


def _messages(run: Any) -> list[Any]:
    """The messages of the last call of the agent, which the traces of its cycles have. A call that goes on after an
    interrupt has the results of the call before it, and so needs its messages."""
    metrics = getattr(run, "metrics", None)
    calls = getattr(metrics, "agent_invocations", None)
    if metrics is None or not calls or not metrics.traces:
        name = type(run).__name__
        raise DataError(f"{name} doesn't have the messages of the agent; pass agent.messages, or its spans")
    messages, end = list[Any](), len(metrics.traces)
    for call in reversed(calls):
        cycles = metrics.traces[max(0, end - len(call.cycles)) : end]
        messages[:0] = plain([each.message for cycle in cycles for each in cycle.children if each.message])
        end -= len(cycles)
        opening = entries_of(messages[0]) if messages else {}
        if not any("toolResult" in part for part in objects_in(opening.get("content"))):
            break
    return messages

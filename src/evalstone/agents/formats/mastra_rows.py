"""Rows of spans of Mastra's storage and exporters, as spans with the attributes of its OpenTelemetry exporter.

The same code then reads both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalstone._core.names import normal
from evalstone.agents.formats.values import Entries, by_normal_name, entries_of, first, parsed, plain

TYPE = "mastra.span.type"
STEP_ID = "mastra.workflow_step.step_id"
RESUMED = "mastra.metadata.resumed"
_TYPES = ("spantype", "type")
_OWN = ("isevent", "entitytype", "spantype")
_PLAIN_TYPES = ("generic", "mapping")
_ENTITY = ("entityname", "entityid")
_OPERATIONS: Mapping[str, str] = {
    "agent_run": "invoke_agent",
    "workflow_run": "invoke_workflow",
    "model_inference": "chat",
    "tool_call": "execute_tool",
    "mcp_tool_call": "execute_tool",
    "provider_tool_call": "execute_tool",
}
_TOOLS = tuple(name for name in _OPERATIONS if name.endswith("tool_call"))


def is_mastra_row(entries: Entries) -> bool:
    """Whether an object, by its names without case and separators, is a row of a span of Mastra's."""
    kind = first(entries, _TYPES)
    known = isinstance(kind, str) and ("_" in kind or kind in _PLAIN_TYPES)
    starts = "startedat" in entries or "starttime" in entries
    has_ids = bool(entries.get("traceid")) and bool(entries.get("spanid") or entries.get("id"))
    return known and starts and has_ids and not entries.keys().isdisjoint(_OWN)


def may_be_mastra_row(entries: Entries) -> bool:
    """Whether an object has a key that rows of spans of Mastra's have and other spans don't."""
    return any(normal(key) in _OWN for key in entries)


def span_of_row(row: Entries) -> Entries:
    """A row as a span of OpenTelemetry's."""
    entries = by_normal_name(row)
    kind = str(first(entries, _TYPES))
    own, metadata = (entries_of(parsed(entries.get(name))) for name in ("attributes", "metadata"))
    attributes: Entries = {TYPE: kind, "gen_ai.operation.name": _OPERATIONS.get(kind, kind)}
    entity = first(entries, _ENTITY)
    for name in ("input", "output"):
        value = plain(entries.get(name))
        if value is not None:
            tool = "arguments" if name == "input" else "result"
            key = f"gen_ai.tool.call.{tool}" if kind in _TOOLS else f"mastra.{kind}.{name}"
            attributes[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    usage = entries_of(own.get("usage")) if kind == "model_inference" else {}
    found = {
        "gen_ai.tool.name": entity if kind in _TOOLS else None,
        "gen_ai.tool.call.id": own.get("toolCallId"),
        "gen_ai.agent.name": entity if kind in ("agent_run", "workflow_run") else None,
        STEP_ID: own.get("stepId") or entries.get("entityid") if kind == "workflow_step" else None,
        f"mastra.{kind}.status": own.get("status") if kind in ("workflow_run", "workflow_step") else None,
        "gen_ai.agent.id": entries.get("entityid") if kind == "agent_run" else None,
        RESUMED: metadata.get("resumed"),
        "gen_ai.system_instructions": own.get("instructions"),
        "gen_ai.request.model": own.get("model") if kind == "model_inference" else None,
        "gen_ai.response.model": own.get("responseModel") or None,
        "gen_ai.provider.name": own.get("provider"),
        "gen_ai.conversation.id": first(entries, ("threadid",)) or metadata.get("threadId"),
        "gen_ai.usage.input_tokens": usage.get("inputTokens"),
        "gen_ai.usage.output_tokens": usage.get("outputTokens"),
        "gen_ai.usage.cache_read.input_tokens": entries_of(usage.get("inputDetails")).get("cacheRead"),
    }
    attributes |= {name: value for name, value in found.items() if value is not None}
    error = parsed(first(entries, ("error", "errorinfo")))
    span: Entries = {
        "traceId": entries.get("traceid"),
        "spanId": first(entries, ("spanid", "id")),
        "parentSpanId": entries.get("parentspanid"),
        "name": _name(entries, kind, entity),
        "startTime": first(entries, ("startedat", "starttime")),
        "endTime": first(entries, ("endedat", "endtime")),
        "attributes": attributes,
    }
    if error:
        span["status"] = {"code": 2, "message": str(entries_of(error).get("message") or error)}
    if (service := entries.get("servicename")) is not None:
        span["resource"] = {"attributes": {"service.name": service}}
    return span


def _name(entries: Entries, kind: str, entity: Any) -> str:
    return f"{_OPERATIONS[kind]} {entity}" if kind in _OPERATIONS and entity else str(entries.get("name") or kind)

"""Mastra's spans, with the attributes that its OpenTelemetry exporter writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evalstone._core.guards import is_array
from evalstone.agents.formats.mastra_rows import STEP_ID, TYPE
from evalstone.agents.formats.records import TelemetryRecord
from evalstone.agents.formats.values import Entries, entries_of, objects_in, parsed
from evalstone.types import TrajectoryStep

_ANSWERING = ("agent_run", "model_generation", "model_step", "model_inference")
_SUMMARIES = ("model_generation", "agent_run")


def mastra(record: TelemetryRecord) -> Entries:
    """The messages in the attributes of a span, under the names of the conventions."""
    own = record.attributes
    kind = own[TYPE]
    given, said = parsed(own.get(f"mastra.{kind}.input")), parsed(own.get(f"mastra.{kind}.output"))
    found: Entries = {}
    if kind in ("agent_run", "model_generation"):
        messages = _messages(given)
        found["gen_ai.input.messages"] = messages or None
    elif kind == "workflow_run":
        found |= {"input.value": given, "output.value": said}
        found["gen_ai.workflow.name"] = record.name.removeprefix("invoke_workflow ") or None
    if kind in _ANSWERING:
        found["gen_ai.output.messages"] = _answer(said, alone=kind != "model_generation")
    return found


def workflow_step(record: TelemetryRecord) -> TrajectoryStep:
    """The span of a step of a workflow, as what `start` of the workflow returns has it."""
    own, kind = record.attributes, record.attributes[TYPE]
    name = str(own.get(STEP_ID) or record.name)
    data = {
        "step_id": name,
        "status": own.get(f"mastra.{kind}.status"),
        "output": parsed(own.get(f"mastra.{kind}.output")),
    }
    more = {"input": parsed(own.get(f"mastra.{kind}.input"))}
    return TrajectoryStep(
        step_type="workflow_step",
        name=name,
        data={key: value for key, value in data.items() if value is not None},
        metadata={key: value for key, value in more.items() if value is not None},
    )


def _messages(given: Any) -> list[Any]:
    """The input of an agent or a model: a text, messages, or an object with them."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}] if given.strip() else []
    if is_array(given):
        return [{"role": "user", "content": item} if isinstance(item, str) else item for item in given]
    entries = entries_of(given)
    if "messages" in entries:
        return _messages(entries["messages"])
    return [entries] if "role" in entries and "content" in entries else []


def _answer(said: Any, *, alone: bool) -> list[Entries] | None:
    """The message that a model or an agent answered with. alone: whether a blank text is an answer. The message of a
    generation may belong to a suspended run."""
    entries = entries_of(said)
    text, calls = entries.get("text"), objects_in(entries.get("toolCalls"))
    if not isinstance(text, str) and entries.get("object") is not None:
        text = json.dumps(entries["object"], ensure_ascii=False, default=str)
    if isinstance(said, str):
        text = said
    if not calls and not (isinstance(text, str) and (text or alone)):
        return None
    return [{"role": "assistant", "content": text if text or not calls else None, "tool_calls": calls}]


def without_summaries(records: Iterable[TelemetryRecord]) -> list[TelemetryRecord]:
    """The records, those of Mastra's without an answer that spans below them have in more detail.

    An agent and its generation have the texts of all steps in one; the inference of a step has no tool calls where the
    OpenTelemetry exporter wrote it.
    """
    listed = list(records)
    of_mastra = {record.span: record for record in listed if record.kind == "span" and TYPE in record.attributes}
    if not of_mastra:
        return listed
    summaries = set[str]()
    for record in of_mastra.values():
        kind = record.attributes[TYPE]
        if kind not in ("model_step", "model_inference") or not _has_answer(record):
            continue
        above = of_mastra.get(record.parent)
        if (
            kind == "model_inference"
            and above is not None
            and above.attributes[TYPE] == "model_step"
            and _has_answer(above)
        ):
            summaries.add(record.span)
        seen = set[str]()
        while above is not None and above.span not in seen:
            seen.add(above.span)
            if above.attributes[TYPE] in _SUMMARIES:
                summaries.add(above.span)
            if above.attributes[TYPE] == "agent_run":
                break
            record, above = above, of_mastra.get(above.parent)
        if above is None and record.parent:  # which is missing
            summaries |= {each.span for each in of_mastra.values() if _sums_up(each, record)}
    return [
        _without_answer(record) if record.kind == "span" and record.span in summaries else record for record in listed
    ]


def _sums_up(summary: TelemetryRecord, record: TelemetryRecord) -> bool:
    """Whether a span that may sum up others ran while another one did."""
    if summary.attributes[TYPE] not in _SUMMARIES or None in (summary.start, summary.end, record.start):
        return False
    return (summary.start or 0.0) <= (record.start or 0.0) <= (summary.end or 0.0)


def _has_answer(record: TelemetryRecord) -> bool:
    own = record.attributes
    said = parsed(own.get(f"mastra.{own[TYPE]}.output"))
    return "gen_ai.output.messages" in own or _answer(said, alone=own[TYPE] != "model_generation") is not None


def _without_answer(record: TelemetryRecord) -> TelemetryRecord:
    left_out = ("gen_ai.output.messages", f"mastra.{record.attributes[TYPE]}.output")
    kept = {name: value for name, value in record.attributes.items() if name not in left_out}
    return replace(record, attributes=kept)

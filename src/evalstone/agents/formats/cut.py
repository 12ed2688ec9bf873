"""Attributes that an SDK has cut at its limit, so that their JSON ends in the middle."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from evalstone._core.files import check_containers
from evalstone.agents.formats.dialects import ANSWER, DOCUMENTS, INPUT, OUTPUT, QUESTION, SYSTEM, kind_of
from evalstone.agents.formats.records import TelemetryRecord
from evalstone.agents.formats.values import PlacedError
from evalstone.errors import DataError

REMEDY = "raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT where the spans are recorded"
_MESSAGES = re.compile(
    "|".join(
        (
            *map(re.escape, (INPUT, OUTPUT, SYSTEM, "pydantic_ai.all_messages", "gen_ai.event.content")),
            r"gen_ai\.(prompt|completion)(\.\d+\.content)?",
            r"ai\.prompt(\.messages)?",
            r"ai\.response\.toolCalls",
            r"llm\.(input|output)_messages",
            r"mastra\.(agent_run|model_\w+)\.(input|output)",
        )
    )
)
_OTHERS = re.compile(
    "|".join(
        (
            *map(re.escape, (QUESTION, ANSWER, "ai.response.object", "tool.parameters", "tool_arguments")),
            "tool_response",
            r"gen_ai\.(prompt|completion)\.\d+\.tool_calls\.\d+\.arguments",
            r"llm\.(input|output)_messages\.\d+\.message\.tool_calls\.\d+\.tool_call\.function\.arguments",
            r"gen_ai\.tool\.call\.(arguments|result)",
            r"ai\.toolCall\.(args|result)",
            r"spring\.ai\.tool\.call\.(arguments|result)",
            r"traceloop\.entity\.(input|output)",
            r"mastra\.workflow_(run|step)\.(input|output)",
            r".*\.documents",
        )
    )
)
_TRACELOOP_OUTPUT = "traceloop.entity.output"
_QUESTIONS = (QUESTION, "traceloop.entity.input", "mastra.workflow_run.input")
_EVENT = re.compile(r"content|message|tool_calls")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_IN_NUMBER = re.compile(r"(?<=\d)(?:\.|[eE][-+]?)")


def is_cut(text: str) -> bool:
    """Whether a text is JSON that ends before it is complete."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return False
    try:
        check_containers(text)
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        in_text = error.msg.startswith("Unterminated string") or (error.msg.startswith("Invalid \\u") and len(rest) < 7)
        in_number = _IN_NUMBER.fullmatch(text, error.pos) is not None
        return in_text or in_number or any(literal.startswith(rest) for literal in _LITERALS)
    except (DataError, ValueError, RecursionError):  # whoever reads it says so
        return False
    return False


def cut_attributes(record: TelemetryRecord) -> list[str]:
    """The attributes of a record that would be read and are cut."""
    is_event = record.kind != "span" and record.name.startswith("gen_ai.")
    return [
        name
        for name, value in record.attributes.items()
        if isinstance(value, str)
        and (_MESSAGES.fullmatch(name) or _OTHERS.fullmatch(name) or (is_event and _EVENT.fullmatch(name)))
        and record.attributes.get(f"{name.partition('.')[0]}.mime_type") != "text/plain"
        and is_cut(value)
    ]


def has_messages(name: str) -> bool:
    """Whether an attribute has messages, so that the sample would be a different one without it."""
    return _MESSAGES.fullmatch(name) is not None or _EVENT.fullmatch(name) is not None


def has_question(name: str) -> bool:
    """Whether an attribute has the question of an agent or a chain."""
    return name in _QUESTIONS


def without(record: TelemetryRecord, cut: list[str]) -> TelemetryRecord:
    """A record without attributes that are cut. Documents stay, so that they count as unreadable, not as absent."""
    kept = {name: value for name, value in record.attributes.items() if name not in cut or name.endswith(".documents")}
    if _TRACELOOP_OUTPUT in cut and kind_of(record) == "retrieval":
        kept[DOCUMENTS] = record.attributes[_TRACELOOP_OUTPUT]
    return replace(record, attributes=kept)


def cut_error(record: TelemetryRecord, name: str) -> PlacedError:
    """The note that a part of a record can't be read because it was cut."""
    length = len(str(record.attributes[name]))
    problem = f"was cut after {length:,} characters, in the middle of its JSON; {REMEDY}"
    return PlacedError(problem, f".attributes[{name!r}]")

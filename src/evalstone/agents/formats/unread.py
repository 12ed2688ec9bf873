"""Content in attributes that aren't read, and the instrumentations that write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evalstone._core.display import shortlist
from evalstone.agents.formats.dialects import INPUT, OUTPUT
from evalstone.agents.formats.records import TelemetryRecord
from evalstone.types.accounts import is_hidden

CAPTURE = "turn on the capture of message content where the spans are recorded"
_SDKS: Mapping[str, str] = {
    "claude_code.": "Claude Code",
    "gcp.vertex.agent.": "Google ADK",
    "mlflow.": "MLflow",
    "langfuse.": "the Langfuse SDK",
    "langsmith.": "the LangSmith SDK",
    "mastra.": "Mastra",
}
_INSTEAD: Mapping[str, str] = {
    "Google ADK": "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY where they are recorded",
    "MLflow": "set MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true where they are recorded",
    "Claude Code": "evalstone reads the session files of Claude Code",
}
_CONTENT = re.compile(
    r"(?:.*[._])?(?:span)?(?:inputs?|outputs?|messages?|prompts?|completions?|contents?|request|response|args|question"
    r"|answer|context|document|documents|user_prompt)",
    re.IGNORECASE,
)
_READ = (INPUT, OUTPUT, "pydantic_ai.all_messages")
"""These have the types of parts and the names of tools if no content was captured."""
_NOT_CONTENT = re.compile(r"http\.|url\.|rpc\.|db\.|gen_ai\.(?:request|response|output)$|.*\.(?:metadata|tags?)\.")


def without_content(records: Iterable[TelemetryRecord]) -> str:
    """The reason why a trace of models has no content: which instrumentation wrote it and where its content is, or that
    none was captured."""
    listed = list(records)
    names = sorted({name for record in listed for name in _content(record)})
    sdk = next((sdk for prefix, sdk in _SDKS.items() if any(_is_of(record, prefix) for record in listed)), "")
    if not names:
        of = f" of spans of {sdk}" if sdk else ""
        return f"a trace{of} without content; {CAPTURE}"
    what = f"of spans of {sdk}, whose content" if sdk else "whose content"
    instead = f"; {_INSTEAD[sdk]}" if sdk in _INSTEAD else ""
    return f"a trace {what} is in attributes that aren't read ({shortlist(names)}){instead}"


def is_known(records: Iterable[TelemetryRecord]) -> bool:
    """Whether one of the instrumentations that are named here wrote any of the records."""
    return any(_is_of(record, prefix) for record in records for prefix in _SDKS)


def _is_of(record: TelemetryRecord, prefix: str) -> bool:
    return record.name.startswith(prefix) or any(name.startswith(prefix) for name in record.attributes)


def _content(record: TelemetryRecord) -> list[str]:
    if record.kind != "span" and record.name.startswith("gen_ai."):
        return []  # read as messages, if they have any content
    return [
        name
        for name, value in record.attributes.items()
        if isinstance(value, str | list | dict)
        and value
        and _CONTENT.fullmatch(name)
        and name not in _READ
        and not _NOT_CONTENT.match(name)
        and not (isinstance(value, str) and (value in ("{}", "[]") or is_hidden(value)))
    ]

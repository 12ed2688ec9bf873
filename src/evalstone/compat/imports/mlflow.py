"""The results of MLflow 3: traces with their assessments.

They are in the table of `mlflow.search_traces(run_id=…)`, in the `result_df` of an evaluation, saved as CSV, JSON or
JSON Lines, and in the traces themselves (`trace.to_json()`), as a list or as JSON Lines. In a table, the column
`trace` has a whole trace as JSON.

An assessment is an expectation or feedback: a value, or an error. MLflow averages numbers, true and false, yes and no,
and leaves errors out. Feedback of people is a metric of its own. MLflow marks feedback that people have corrected as
invalid; what the scorer said is still its score.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalstone._core.guards import is_array, is_object, python_value
from evalstone.compat.imports.cases import answer_fields, exchange_fields, parsed
from evalstone.compat.imports.documents import as_object
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    About,
    Event,
    Judged,
    Metric,
    Result,
    Row,
    dollars,
    duration,
    failed,
    metric_name,
    metric_with,
    numbered,
    object_in,
    objects_in,
    read_learning,
    text_in,
    usage_of,
    valued,
)
from evalstone.datasets.cells import number_in as number_of
from evalstone.datasets.cells import storable
from evalstone.errors import ConfigError, DataError
from evalstone.targets import Answer
from evalstone.types import Sample, Skipped, Usage
from evalstone.types.documents import read_passages

TOOL = "mlflow"
_WORDS = {"yes": 1.0, "no": 0.0}
"""What MLflow's judges say, and how it counts it."""
_RETRIEVER = '"RETRIEVER"'
_KINDS = (None, *(f'"{name}"' for name in ("AGENT", "CHAIN", "CHAT_MODEL", "EMBEDDING", "LLM", "TOOL", "UNKNOWN")))
"""Other kinds of spans, as their attributes have them, so that most needn't be parsed."""
_UNKNOWN = "unknown"
"""What MLflow's judges say if they can't tell."""
_RUN = "mlflow.sourceRun"
_SPENT = ("judgeInputTokens", "judgeOutputTokens", "judgeCost")
"""What the metadata of feedback says of its judge's call, as texts."""
_SHORT = 8
"""The characters of the ID of a run that tell it from others."""


class _Trace(NamedTuple):
    """A trace with its feedback."""

    data: Mapping[str, Any]
    feedback: list[dict[str, Any]]


@dataclass
class _Known:
    """What was learned of the traces so far."""

    runs: set[str] = field(default_factory=set[str])
    scored: set[str] = field(default_factory=set[str])
    """The names of feedback that is a number for some trace, or failed for some. All other feedback is text."""
    texts: set[str] = field(default_factory=set[str])
    """The names of feedback that is text so far."""

    def learn(self, trace: _Trace) -> bool:
        """Learn from a trace. Returns whether earlier ones were read wrongly: there are several runs, or what was text
        is a score."""
        run, one, wrong = text_in(_metadata(trace.data), _RUN), len(self.runs) == 1, False
        if run not in self.runs:
            self.runs.add(run)
            wrong = one
        for each in trace.feedback:
            if (name := text_in(each, "assessment_name")) in self.scored:
                continue
            if _value(each) is not None or _error(each):
                self.scored.add(name)
                wrong = wrong or name in self.texts
            else:
                self.texts.add(name)
        return wrong


def recognizes(head: Head) -> bool:
    """Whether a table or a document has traces with assessments."""
    if head.columns:
        return {"trace_id", "trace", "assessments"} <= {*head.columns}
    # A trace may be so long that its assessments, which follow it, aren't in the beginning.
    is_table = head.has("trace_id", "trace") and (head.has("assessments") or b"trace_location" in head.start)
    return not head.is_folder and (is_table or head.has("info.trace_id", "info.trace_location", "data.spans"))


def read(source: Source) -> Iterator[Event]:
    """What traces say. Which feedback is a score depends on all of them."""
    known = _Known()
    return read_learning(lambda: _traces(source), known.learn, lambda place, trace: _events(place, trace, known))


def _events(place: str, trace: _Trace, known: _Known) -> Iterator[Event]:
    info = object_in(trace.data, "info")
    started = text_in(info, "request_time")
    yield About(version=text_in(_metadata(trace.data), "mlflow.trace_schema.version"), started=started)
    yield _row(place, trace.data, trace.feedback, known)


def _traces(source: Source) -> Iterator[tuple[str, _Trace]]:
    """Each trace after its place."""
    for place, row in source.rows():
        if "info" in row:
            yield place, _Trace(row, _feedback(row))
            continue
        cell = row.get("trace")
        if cell is None:
            raise DataError(f"{place} has no trace, which the table of mlflow.search_traces has as JSON")
        trace = as_object(parsed(cell, f"{place}.trace"), f"{place}.trace")
        yield place, _Trace(trace, _feedback(trace))


def _metadata(trace: Mapping[str, Any]) -> dict[str, Any]:
    return object_in(object_in(trace, "info"), "trace_metadata")


def _row(place: str, trace: Mapping[str, Any], feedback: list[dict[str, Any]], known: _Known) -> Row:
    info, metadata, root = object_in(trace, "info"), _metadata(trace), _root(trace)
    inputs = _attribute(root, "mlflow.spanInputs", place)
    asked = inputs if is_object(inputs) else {"input": inputs}
    said = answer_fields(_attribute(root, "mlflow.spanOutputs", place))
    problem = None
    if not said and text_in(info, "state") == "ERROR":
        problem = failed("TargetFailed", text_in(object_in(root, "status"), "message"))
    answer, scores = None, _scores(trace, feedback, known)
    if problem is None:
        said["metadata"] = {**said.get("metadata", {}), **_texts(feedback, known)}
        said["context"] = _context(trace, place) or said.get("context")
        answer = Answer(**said, usage=_tokens(metadata.get("mlflow.trace.tokenUsage"), place))
    return Row(
        place=place,
        system=_system(trace, known),
        case=Sample(**exchange_fields(asked, _expected(trace, place))),
        answer=answer,
        problem=problem,
        seconds=duration(info.get("execution_duration_ms"), 1e-3),
        scores=scores if problem is None else valued(scores),
    )


def _texts(feedback: list[dict[str, Any]], known: _Known) -> dict[str, Any]:
    """The feedback that is no score, as metadata."""
    values = {
        text_in(each, "assessment_name"): object_in(each, "feedback").get("value")
        for each in feedback
        if text_in(each, "assessment_name") not in known.scored
    }
    return {f"feedback.{name}": storable(value) for name, value in values.items() if value is not None}


def _system(trace: Mapping[str, Any], known: _Known) -> str:
    """What answered: the model that was logged, or else the function; and the run, if there are several."""
    metadata, tags = _metadata(trace), object_in(object_in(trace, "info"), "tags")
    name = text_in(metadata, "mlflow.modelId") or text_in(tags, "mlflow.traceName") or "trace"
    run = text_in(metadata, _RUN)[:_SHORT] if len(known.runs) > 1 else ""
    return metric_name(f"{name} · run {run}" if run else name)


def _spans(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_in(object_in(trace, "data"), "spans")


def _root(trace: Mapping[str, Any]) -> dict[str, Any]:
    roots = [span for span in _spans(trace) if not span.get("parent_span_id")]
    return roots[0] if roots else {}


def _attribute(span: Mapping[str, Any], name: str, place: str) -> Any:
    """The value of an attribute of a span, which is a JSON text."""
    value = object_in(span, "attributes").get(name)
    return None if value is None else parsed(value, f"{place}: {name}")


def _context(trace: Mapping[str, Any], place: str) -> list[str | None] | None:
    """The passages that retrievers found."""
    found: list[str | None] = []
    for span in _spans(trace):
        kind = object_in(span, "attributes").get("mlflow.spanType")
        if kind == _RETRIEVER or (kind not in _KINDS and parsed(kind, f"{place}: mlflow.spanType") == "RETRIEVER"):
            documents = _attribute(span, "mlflow.spanOutputs", place)
            try:
                found += read_passages(documents) if is_array(documents) else ()
            except ConfigError as error:
                raise DataError(f"{place}: the passages of {text_in(span, 'name')}: ", error) from None
    return found or None


def _tokens(value: object, place: str) -> Usage:
    counts = None if value is None else parsed(value, f"{place}: mlflow.trace.tokenUsage")
    return usage_of(counts, input="input_tokens", output="output_tokens")


# ---- Assessments ----


def _assessments(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_in(object_in(trace, "info"), "assessments")


def _feedback(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The feedback, without what was replaced by another of the same source."""
    every = [each for each in _assessments(trace) if is_object(each.get("feedback"))]
    if all(each.get("valid") is not False for each in every):
        return every
    valid = {_said_by(each) for each in every if each.get("valid") is not False}
    last = {_said_by(each): number for number, each in enumerate(every) if each.get("valid") is False}
    return [
        each
        for number, each in enumerate(every)
        if each.get("valid") is not False or (_said_by(each) not in valid and last[_said_by(each)] == number)
    ]


def _said_by(assessment: Mapping[str, Any]) -> tuple[str, str, str]:
    source = text_in(object_in(assessment, "source"), "source_type")
    return text_in(assessment, "assessment_name"), source, text_in(assessment, "span_id")


def _expected(trace: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The expectations by name. `expected_response` is the reference."""
    found: dict[str, Any] = {}
    for each in _assessments(trace):
        if is_object(expectation := each.get("expectation")) and each.get("valid") is not False:
            serialized = object_in(expectation, "serialized_value").get("value")
            name = text_in(each, "assessment_name")
            found[name] = expectation.get("value") if serialized is None else parsed(serialized, f"{place}: {name}")
    return found


def _value(feedback: Mapping[str, Any]) -> object:
    """The score of feedback; None for a text, a list or an object, and without a value."""
    value = python_value(object_in(feedback, "feedback").get("value"))
    if isinstance(value, str):
        return _UNKNOWN if value == _UNKNOWN else _WORDS.get(value)
    return value if isinstance(value, bool | int | float) else None


def _error(feedback: Mapping[str, Any]) -> str:
    error = object_in(object_in(feedback, "feedback"), "error")
    return text_in(error, "error_message") or text_in(error, "error_code")


def _scores(trace: Mapping[str, Any], feedback: list[dict[str, Any]], known: _Known) -> dict[Metric, Result]:
    root = _span_id(_root(trace))
    spans = {_span_id(span): metric_name(span.get("name")) for span in _spans(trace)}
    found: list[tuple[Metric, Result]] = []
    for each in feedback:
        if (name := text_in(each, "assessment_name")) not in known.scored:
            continue
        kind, span = text_in(object_in(each, "source"), "source_type"), text_in(each, "span_id")
        settings = [("source", "human")] if kind == "HUMAN" else []
        settings += [("span", spans[span])] if span in spans and span != root else []
        metric = metric_with(metric_name(name), tuple(settings), description=f"MLflow: {metric_name(name)}")
        found.append((metric, _result(each, kind)))
    return numbered(found)


def _span_id(span: Mapping[str, Any]) -> str:
    """The ID of a span as assessments have it: hexadecimal digits of the bytes that the span has in base 64."""
    try:
        return base64.b64decode(text_in(span, "span_id"), validate=True).hex()
    except (binascii.Error, ValueError):
        return ""


def _result(feedback: Mapping[str, Any], kind: str) -> Result:
    said, about = object_in(feedback, "feedback"), object_in(feedback, "metadata")
    reason, value, error = text_in(feedback, "rationale"), _value(feedback), _error(feedback)
    judged = None
    if kind == "LLM_JUDGE":
        spent = {name: number_of(about.get(f"mlflow.assessment.{name}")) for name in _SPENT}
        judged = Judged(
            judge=text_in(object_in(feedback, "source"), "source_id"),
            answer=None if error else {"value": storable(said.get("value"))},
            usage=usage_of(spent, input="judgeInputTokens", output="judgeOutputTokens"),
            cost=dollars(spent["judgeCost"]),
        )
    if error:
        return Result(problem=failed("JudgeFailed" if judged else "ScorerFailed", error), judged=judged)
    if value == _UNKNOWN:
        return Result(problem=Skipped("the judge of MLflow can't tell: unknown"), judged=judged)
    given = said.get("value")
    evidence = {"value": given} if isinstance(given, str) else ()
    return Result.of(given if value is None else value, reason, evidence=evidence, judged=judged)


READER = Reader(
    tool=TOOL,
    version=1,
    forms=(Form("table", ("trace_id", "trace", "assessments")), Form("traces", ("info", "data", "data.spans"))),
    recognizes=recognizes,
    read=read,
)

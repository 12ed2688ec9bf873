"""The results of LangSmith: the table of an experiment, `evaluate(…).to_pandas()`, saved as CSV, JSON, JSON Lines or
Parquet.

A row has columns `inputs.NAME`, `outputs.NAME` and `reference.NAME` of the example, and `feedback.NAME` of the
evaluators. The same example again is a repetition. A score is missing if its evaluator failed or gave none; the table
doesn't say which. It names no system.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from evalstone._core.guards import is_object
from evalstone.compat.imports.cases import answer_fields, exchange_fields, key_of
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    Event,
    Metric,
    Result,
    Row,
    cell_value,
    duration,
    failed,
    metric_name,
    numbered,
    read_learning,
    text_in,
    valued,
)
from evalstone.datasets.cells import storable
from evalstone.targets import Answer
from evalstone.types import Sample

TOOL = "langsmith"
_INPUTS, _OUTPUTS, _REFERENCE, _FEEDBACK = "inputs.", "outputs.", "reference.", "feedback."
_NO_SCORE = "LangSmith has no score: the evaluator failed, or gave none"


def recognizes(head: Head) -> bool:
    """Whether a table has examples with what was asked and the feedback on it."""
    if head.is_folder:
        return False
    names = {*head.columns} or head.keys
    return {"example_id", "execution_time"} <= names and any(name.startswith(_INPUTS) for name in names)


@dataclass
class _Known:
    """What was learned of the rows so far."""

    is_text: bool
    metrics: dict[str, Metric] = field(default_factory=dict[str, Metric])
    """Feedback that was only numbers, by its name."""
    others: set[str] = field(default_factory=set[str])
    """The names of all other feedback."""
    rows: int = 0

    def learn(self, row: Mapping[str, Any]) -> bool:
        """Learn from a row. Returns whether earlier ones were read wrongly: a metric is new, or is none."""
        before = len(self.metrics)
        lost = False
        for name, cell in _under(row, _FEEDBACK).items():
            value = cell_value(cell, is_text=self.is_text)
            if value is None or name in self.others:
                continue
            if isinstance(value, bool | int | float):
                title = metric_name(name)
                self.metrics.setdefault(name, Metric(title, description=f"LangSmith: {title}"))
            else:
                self.others.add(name)
                lost = self.metrics.pop(name, None) is not None or lost
        self.rows += 1
        return self.rows > 1 and (lost or len(self.metrics) > before)


def read(source: Source) -> Iterator[Event]:
    """What a table holds. Feedback is a metric if all of it are numbers."""
    known = _Known(source.has_text_cells)

    def events(place: str, row: dict[str, Any]) -> Iterator[Event]:
        yield _row(place, row, source.system, known.metrics, is_text=known.is_text)

    return read_learning(source.rows, known.learn, events)


def _under(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}


def _row(place: str, row: Mapping[str, Any], system: str, metrics: Mapping[str, Metric], *, is_text: bool) -> Row:
    asked, outputs, expected = (_present(_under(row, prefix)) for prefix in (_INPUTS, _OUTPUTS, _REFERENCE))
    problem = failed("TargetFailed", error) if (error := text_in(row, "error")) else None
    feedback = _under(row, _FEEDBACK)
    answer = None
    if problem is None:
        said = answer_fields(outputs)
        others = _present({f"{_FEEDBACK}{name}": storable(feedback[name]) for name in feedback if name not in metrics})
        said["metadata"] = {**said.get("metadata", {}), **others}
        answer = Answer(**said)
    id = _id(row.get("example_id"))
    scores = numbered(
        (metric, _result(cell_value(feedback.get(name), is_text=is_text))) for name, metric in metrics.items()
    )
    return Row(
        place=place,
        system=system,
        case=Sample(**exchange_fields(asked, expected), id=id),
        key=id or key_of([asked, expected]),
        answer=answer,
        problem=problem,
        seconds=duration(cell_value(row.get("execution_time"), is_text=is_text)),
        scores=scores if problem is None else valued(scores),
    )


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that a data frame writes for columns that other rows have."""
    return {name: value for name, value in values.items() if value is not None and value == value}


def _id(value: object) -> str:
    """The ID of an example: a text, or what pandas writes of a UUID in JSON."""
    if is_object(value):
        with contextlib.suppress(ValueError):
            return str(UUID(hex=text_in(value, "hex")))
    return value if isinstance(value, str) else ""


def _result(value: object) -> Result:
    return Result(problem=failed("NoScore", _NO_SCORE)) if value is None else Result.of(value)


READER = Reader(
    tool=TOOL,
    version=2,
    forms=(Form("table", ("example_id", "execution_time", f"{_INPUTS}NAME")),),
    recognizes=recognizes,
    read=read,
)

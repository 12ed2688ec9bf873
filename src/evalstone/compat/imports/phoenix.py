"""The results of phoenix: the JSON and CSV files of an experiment, as its server exports them, and the tables
of `phoenix.evals.evaluate_dataframe`.

An experiment has a row for each run of its task, with the annotations of its evaluators. A table has a column
`NAME_score` with a score as an object, and `NAME_execution_details`, for each evaluator; it names no system.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.guards import is_array, is_object, is_whole
from evalstone.compat.imports.cases import answer_fields, exchange_fields, parsed, text_of, written
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    About,
    Event,
    FailureKind,
    Judged,
    Metric,
    Result,
    Row,
    cell_value,
    duration,
    failed,
    metric_name,
    metric_with,
    numbered,
    object_in,
    objects_in,
    text_in,
    usage_of,
    valued,
)
from evalstone.datasets.cells import storable
from evalstone.datasets.json_rows import parse_json
from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.targets import Answer
from evalstone.types import Sample

TOOL = "phoenix"
EXPERIMENT = ("example_id", "repetition_number", "reference_output", "latency_ms")
"""What tells the rows of an experiment."""
_SCORE, _DETAILS = "_score", "_execution_details"
_ANNOTATION = "annotation_"
_TOKENS = {"input": "prompt_token_count", "output": "completion_token_count"}
_PARTS = ("label", "score", "explanation", "annotator_kind", "error", "metadata")


def recognizes(head: Head) -> bool:
    """Whether a file has the rows of an experiment, or the scores of evaluators with what became of each."""
    if head.is_folder:
        return False
    names = {*head.columns} or {key for key in head.keys if "." not in key}
    return names.issuperset(EXPERIMENT) or any(name.endswith(_DETAILS) for name in names)


def read(source: Source) -> Iterator[Event]:
    """What an experiment or a table holds."""
    is_text = source.has_text_cells
    names = source.head.columns or source.head.keys
    if not {*names}.issuperset(EXPERIMENT):
        yield from _table(source, is_text=is_text)
        return
    for place, row in source.rows():
        yield About(started=text_in(row, "start_time"))
        yield _row(place, row, source.system, is_text=is_text)


# ---- Experiments ----


def _row(place: str, row: dict[str, Any], system: str, *, is_text: bool) -> Row:
    asked, expected, output = (row.get(name) for name in ("input", "reference_output", "output"))
    if is_text:
        asked, expected = parsed(asked, f"{place}: input"), parsed(expected, f"{place}: reference_output")
        output = _said(output)
    trial = cell_value(row.get("repetition_number"), is_text=is_text)
    if not (is_whole(trial) or (isinstance(trial, float) and trial.is_integer())):
        raise DataError(f"{place}: repetition_number must be a whole number, not {excerpt(trial)}")
    error = text_in(row, "error")
    tokens = {name: cell_value(row.get(name), is_text=is_text) for name in _TOKENS.values()}
    answer = Answer(**answer_fields(output), usage=usage_of(tokens, **_TOKENS))
    problem = failed("TargetFailed", error) if error else None
    scores = _scores(row, place, is_text=is_text)
    return Row(
        place=place,
        system=system,
        case=Sample(
            id=text_in(row, "example_id"),
            **exchange_fields(
                asked if is_object(asked) else {"input": asked},
                expected if is_object(expected) else {"reference": expected},
            ),
        ),
        key=text_in(row, "example_id"),
        trial=int(trial),
        answer=None if problem is not None else answer,
        problem=problem,
        seconds=duration(cell_value(row.get("latency_ms"), is_text=is_text), 1e-3),
        scores=scores if problem is None else valued(scores),
    )


def _said(cell: object) -> object:
    """The output in a cell: an object, which is written as JSON, or a text."""
    if isinstance(cell, str) and cell.startswith("{"):
        with contextlib.suppress(DataError):
            return parse_json(cell)
    return cell


def _scores(row: Mapping[str, Any], place: str, *, is_text: bool) -> dict[Metric, Result]:
    return numbered(
        (
            metric_with(name, description=f"phoenix: {name}"),
            _annotated(said, text_in(said, "annotator_kind"), text_in(said, "error")),
        )
        for name, said in _annotations(row, place, is_text=is_text)
    )


def _annotations(row: Mapping[str, Any], place: str, *, is_text: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each annotation of a row with its name. In CSV, its parts are columns, which are blank for a row without it."""
    for each in objects_in(row, "annotations"):
        yield metric_name(each.get("name")), each
    if not is_text:
        return
    kind = "_annotator_kind"
    for column in row:
        if column.startswith(_ANNOTATION) and column.endswith(kind) and row[column] is not None:
            name = column.removeprefix(_ANNOTATION).removesuffix(kind)
            said = {part: row.get(f"{_ANNOTATION}{name}_{part}") for part in _PARTS}
            score, about = (
                cell_value(said["score"], is_text=True),
                written(said["metadata"], f"{place}: metadata of {name}"),
            )
            yield metric_name(name), {**said, "score": score, "metadata": about}


def _annotated(said: Mapping[str, Any], kind: str, error: str) -> Result:
    """The result of an annotation or a score. Without a score, a label is none."""
    is_judged = kind.lower() == "llm"
    verdict = {name: storable(said[name]) for name in ("label", "score") if said.get(name) is not None}
    judged = None
    if is_judged:
        judge = text_in(object_in(said, "metadata"), "model")
        judged = Judged(judge=judge, answer=None if error or not verdict else verdict)
    if error:
        which: FailureKind = "JudgeFailed" if is_judged else "ScorerFailed"
        return Result(problem=failed(which, error), judged=judged)
    label = said.get("label")
    evidence = () if label is None else {"label": label}
    return Result.of(said.get("score"), said.get("explanation"), evidence=evidence, judged=judged)


# ---- Tables ----


def _table(source: Source, *, is_text: bool) -> Iterator[Event]:
    """The rows of a table. It is read twice: an evaluator that gave several scores has columns under their names, which
    are blank where it failed; and one that never gave a score has none."""
    known: dict[str, dict[str, Any]] = {}
    """By score, one that isn't missing: it tells the kind of the evaluator and which scores are good."""
    for place, row in source.rows():
        for column in row:
            name, is_score, cell = column.removesuffix(_SCORE), column.endswith(_SCORE), None
            if is_score and is_object(cell := _cell(row, column, place)):
                known[name] = known.get(name) or cell
            elif is_score and f"{name}{_DETAILS}" in row:
                known.setdefault(name, {})
            elif column.endswith(_DETAILS) and _exceptions(_cell(row, column, place)):
                known.setdefault(column.removesuffix(_DETAILS), {})
    metrics = {
        name: Metric(
            metric_name(name),
            lower_is_better=text_in(said, "direction") == "minimize",
            description=f"phoenix: {metric_name(name)}",
        )
        for name, said in known.items()
    }
    own = {f"{name}{_SCORE}" for name in known}
    reader = RowReader(text_cells=is_text)
    for place, row in source.rows():
        asked = {name: value for name, value in row.items() if name not in own and not name.endswith(_DETAILS)}
        scores: list[tuple[Metric, Result]] = []
        for name, metric in metrics.items():
            said, details = (_cell(row, f"{name}{part}", place) for part in (_SCORE, _DETAILS))
            if said is not None and not is_object(said):
                raise DataError(f"{place}: {name}{_SCORE} must be an object, not {type(said).__name__}")
            scores.append((metric, _scored(said or {}, details, known[name])))
        yield Row(place=place, case=reader.read(asked, place), scores=numbered(scores))


def _cell(row: Mapping[str, Any], column: str, place: str) -> Any:
    """The value in a cell, which may be written out; None for a blank one."""
    value = written(row.get(column), f"{place}: {column}")
    return None if isinstance(value, float) and value != value else value


def _exceptions(details: object) -> list[Any]:
    found = details.get("exceptions") if is_object(details) else None
    return found if is_array(found) else []


def _scored(said: Mapping[str, Any], details: object, like: Mapping[str, Any]) -> Result:
    """A score. Without one, the last exception of the evaluator says why, and another score, `like`, who judges."""
    raised = [] if said else _exceptions(details)
    known = said or {name: like[name] for name in ("kind", "metadata") if name in like}
    result = _annotated(known, text_in(known, "kind"), (text_of(raised[-1]) if raised else None) or "")
    return result._replace(seconds=duration(details.get("execution_seconds")) if is_object(details) else 0.0)


READER = Reader(
    tool=TOOL,
    version=2,
    forms=(
        Form("experiment", ("example_id", "repetition_number", "reference_output")),
        Form("table", (f"NAME{_SCORE}", f"NAME{_DETAILS}")),
    ),
    recognizes=recognizes,
    read=read,
)

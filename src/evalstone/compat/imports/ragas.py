"""The results of ragas: the table of `result.to_pandas()`, saved as CSV, JSON, JSON Lines or Parquet.

A row has the columns of a sample (`user_input`, `response`, `retrieved_contexts`, `reference`, or the names before
version 0.2), then a column for each metric. ragas writes NaN, which is an empty cell or null, for a metric that failed
or was undefined, and leaves it out of its means. The table names neither the system nor the judge nor the version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalstone._core.display import shortlist
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import (
    Event,
    Judged,
    Metric,
    Result,
    Row,
    cell_value,
    failed,
    metric_name,
    numbered,
)
from evalstone.datasets.columns import field_of
from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.types import note

TOOL = "ragas"
ASKED = ("user_input", "question")
"""What every sample has, by its present and its earlier name."""
SAMPLE = frozenset(
    (
        *("user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids"),
        *("response", "multi_responses", "reference", "rubrics", "rubric", "persona_name", "query_style"),
        *("query_length", "reference_tool_calls", "reference_topics", "synthesizer_name"),
        *("question", "answer", "contexts", "ground_truth", "ground_truths"),
    )
)
"""The columns of samples, also by the names before version 0.2."""
OWN = frozenset(
    (
        *("agent_goal_accuracy", "answer_accuracy", "answer_correctness", "answer_relevancy", "answer_relevance"),
        *("answer_similarity", "context_entity_recall", "context_precision", "context_precision_with_reference"),
        *("context_precision_without_reference", "context_recall", "context_relevancy", "context_utilization"),
        *("factual_correctness", "faithfulness", "faithfulness_with_hhem", "llm_context_precision_with_reference"),
        *("llm_context_precision_without_reference", "llm_sql_equivalence_with_reference", "multi_modal_faithfulness"),
        *("multi_modal_relevance", "noise_sensitivity", "nv_accuracy", "nv_context_relevance"),
        *("nv_response_groundedness", "response_groundedness", "topic_adherence"),
    )
)
"""The metrics that ask a language model, and whose names tell that a table is of ragas."""
RUBRICS = frozenset(
    (
        *("domain_specific_rubrics", "instance_rubrics", "instance_specific_rubrics", "labelled_rubrics_score"),
        *("reference_free_rubrics_score", "rubrics_score_with_reference", "rubrics_score_without_reference"),
    )
)
"""The metrics whose scores are 1 to 5."""
CRITICS = frozenset(("coherence", "conciseness", "correctness", "harmfulness", "maliciousness"))
"""The metrics of a language model that says yes or no."""
JUDGED = OWN | RUBRICS | CRITICS | frozenset(("context_relevance", "sql_semantic_equivalence", "summary_score"))
COMPUTED = frozenset(
    (
        *("bleu_score", "chrf_score", "data_compare_score", "exact_match", "id_based_context_precision"),
        *("id_based_context_recall", "non_llm_context_precision_with_reference", "non_llm_context_recall"),
        *("non_llm_string_similarity", "quoted_spans_alignment", "rouge_score", "semantic_similarity"),
        *("string_present", "tool_call_accuracy", "tool_call_f1"),
    )
)
"""The metrics without a language model."""
LOWER = frozenset(("harmfulness", "maliciousness", "noise_sensitivity"))
"""The metrics of which low scores are good."""
_INDEX = frozenset(("", "Unnamed: 0", "index", "level_0"))
"""The columns that a data frame writes for the numbers of its rows."""
_MODE = re.compile(r"\((?:mode=)?\w+\)\Z")
_NO_SCORE = "ragas has no score: the metric failed, or it is undefined here"


def recognizes(head: Head) -> bool:
    """Whether a table has samples and a metric of ragas, or has nothing but scores, such as its means. Metrics that
    others name alike, such as `correctness`, tell nothing beside `question`: a dataset may have labels of this name."""
    if head.is_folder:
        return False
    names = [*head.columns] or [key for key in head.keys if "." not in key]
    metrics = {base for name in names if (base := _base(name)) in JUDGED | COMPUTED}
    if "user_input" in names:
        return bool(metrics)
    if "question" in names:
        return bool(metrics & OWN)
    return bool(metrics & OWN) and not head.is_lines and len(names) == len(head.columns or head.keys)


def _base(column: str) -> str:
    """The name of a metric without its mode: `factual_correctness(mode=f1)`."""
    return _MODE.sub("", column)


def read(source: Source) -> Iterator[Event]:
    """What a table of ragas holds. It is read twice: what a column is depends on all of its cells."""
    is_text = source.has_text_cells
    columns = _columns(source, is_text)
    for column, place in columns.items():
        if _base(column) not in JUDGED | COMPUTED:
            yield note("metric_unknown", "caution", tool=TOOL, metric=column, place=place)
    reader, metrics = RowReader(text_cells=is_text), {name: _metric(name) for name in columns}
    for place, row in source.rows():
        asked = {name: value for name, value in row.items() if name not in columns and name not in _INDEX}
        scores = numbered((metric, _result(name, row.get(name), is_text=is_text)) for name, metric in metrics.items())
        yield Row(place=place, case=reader.read(asked, place), scores=scores)


def _columns(source: Source, is_text: bool) -> dict[str, str]:
    """The columns of metrics, each with the place of its first score: those that ragas names, and those after the
    last column of a sample whose cells are all numbers. Raises DataError for a table without samples or metrics."""
    found: dict[str, str] = {}
    others: dict[str, None] = {}
    """The columns that hold something else than a number."""
    seen: dict[str, None] = {}
    for place, row in source.rows():
        names = list(row)
        last = max((at for at, name in enumerate(names) if name in SAMPLE), default=-1)
        for at, name in enumerate(names):
            seen.setdefault(name)
            after = at > last
            known = _base(name) in JUDGED | COMPUTED
            if name in SAMPLE or name in _INDEX or (not known and (not after or field_of(name) is not None)):
                others.setdefault(name)
                continue
            value = cell_value(row[name], is_text=is_text)
            if value is not None and name not in found:
                found[name] = place
            if not known and value is not None and not isinstance(value, int | float):
                others.setdefault(name)
            if known:
                found.setdefault(name, place)
    if seen and seen.keys().isdisjoint(ASKED):
        raise DataError(
            f"it has only scores of ragas, such as means: {shortlist(seen)}. Save the table with the samples: "
            "result.to_pandas().to_csv(FILE, index=False)"
        )
    metrics = {name: place for name, place in found.items() if name not in others}
    if seen and not metrics:
        raise DataError(f"no column is a metric of ragas, only {shortlist(seen)}")
    return metrics


def _metric(column: str) -> Metric:
    base = _base(column)
    known = base in JUDGED | COMPUTED
    return Metric(
        metric_name(column),
        scale=5.0 if base in RUBRICS else 1.0 if known else None,
        lower_is_better=base in LOWER,
        description=f"ragas: {metric_name(column)}",
    )


def _result(column: str, cell: object, *, is_text: bool) -> Result:
    value = cell_value(cell, is_text=is_text)
    judged = Judged(answer=None if value is None else {"score": value}) if _base(column) in JUDGED else None
    if value is None:
        return Result(problem=failed("NoScore", _NO_SCORE), judged=judged)
    return Result.of(value, judged=judged)


READER = Reader(
    tool=TOOL,
    version=2,
    forms=(Form("table", ("user_input", "faithfulness")),),
    recognizes=recognizes,
    read=read,
)

"""The scores of inspect: which metrics a scorer is, and what its values count.

If the value of a scorer is an object or a list, each entry is a metric. As in inspect, the values C, P, I and N are 1,
0.5, 0 and 0. NaN means that there is no score, and its reason says whether the grader or the scorer failed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evalstone._core.guards import is_array, is_object
from evalstone.compat.imports.results import (
    Judged,
    Metric,
    Result,
    dollars,
    failed,
    metric_name,
    object_in,
    objects_in,
    text_in,
    usage_of,
)
from evalstone.datasets.cells import storable
from evalstone.types import NO_USAGE, Failed, Usage

TOOL = "inspect"
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What inspect counts for its grades: correct, partially correct, incorrect, no answer."""
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_FAILURES = {"grader_failed": "JudgeFailed", "scoring_failed": "ScorerFailed"}


@functools.lru_cache(1000)
def metric_of(scorer: str, key: str | None = None) -> Metric:
    """The metric of a scorer, or of one of its values."""
    if key is None:
        return Metric(metric_name(scorer), description=f"inspect: the scorer {metric_name(scorer)}")
    description = f"inspect: a value of the scorer {metric_name(scorer)}"
    return Metric(metric_name(f"{scorer}.{key}"), description=description)


def is_nan(value: object) -> bool:
    """Whether a value is what inspect writes for none."""
    return isinstance(value, float) and math.isnan(value)


def results_of(values: Iterable[object], score: Mapping[str, Any], judged: Judged | None) -> Iterator[Result]:
    """The results for values of a scorer. score: the whole score that they are of. judged: the grader's verdict."""
    reason, metadata = text_in(score, "explanation"), object_in(score, "metadata")
    said = text_in(score, "reason") or text_in(metadata, "unscored_reason")
    others = {name: each for name, each in metadata.items() if name != "grading"}
    about = {"answer": score.get("answer"), "reason": said or None, "metadata": others or None}
    kept = {name: each for name, each in about.items() if each is not None}
    for value in values:
        if is_nan(value):
            yield Result(problem=_unscored(score, said, reason, judged), judged=judged)
            continue
        number = _number(value)
        differs = value is not None and (number != value or isinstance(value, bool))
        evidence = {"value": value, **kept} if differs else kept
        result = Result.of(value if number is None else number, reason, evidence=evidence or (), judged=judged)
        yield result if number is not None else Result(problem=result.problem, judged=judged, counted=0.0)


def _unscored(score: Mapping[str, Any], said: str, reason: str, judged: Judged | None) -> Failed:
    kind: Any = _FAILURES.get(said, "JudgeFailed" if judged is not None else "NoScore")
    text = ": ".join(filter(None, (said.replace("_", " "), reason)))
    return failed(kind, text, reply=next((content_text(each.get("content")) for each in _grading(score)), None))


def _number(value: object) -> float | None:
    """A value as inspect counts it; None if it counts 0 because it is none."""
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else None
    if not isinstance(value, str):
        return None
    if value in GRADES:
        return GRADES[value]
    try:
        number = float(value)
    except ValueError:
        return _WORDS.get(value.lower())
    return number if math.isfinite(number) else None


def judged_of(score: Mapping[str, Any], sample: Mapping[str, Any]) -> Judged | None:
    """The verdict of a grader, which left what it was asked and what it replied. sample: what it used is taken from
    there; empty if that is of several graders."""
    metadata = object_in(score, "metadata")
    if "grading" not in metadata:
        return None
    value, judge = (
        score.get("value"),
        next((model for each in _grading(score) if (model := text_in(each, "model"))), ""),
    )
    usage = object_in(object_in(sample, "role_usage"), "grader")
    if not usage and judge != text_in(object_in(sample, "output"), "model"):
        usage = object_in(object_in(sample, "model_usage"), judge)
    return Judged(
        judge=judge,
        answer=None if is_nan(value) else {"value": storable(value), "explanation": text_in(score, "explanation")},
        usage=tokens_of(usage),
        cost=dollars(usage.get("total_cost")),
    )


def _grading(score: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages to and from a grader, the last one first."""
    return objects_in(object_in(score, "metadata"), "grading")[::-1]


def content_text(content: object) -> str:
    """The text of a message."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if is_object(part)] if is_array(content) else []
    return "\n".join(filter(None, (text_in(part, "text") for part in parts)))


def tokens_of(value: object) -> Usage:
    """The tokens of a model. inspect doesn't count those from the cache in its input."""
    usage = usage_of(value, input="input_tokens", output="output_tokens", cached="input_tokens_cache_read")
    if usage == NO_USAGE or not is_object(value):
        return usage
    written = usage_of(value, input="input_tokens_cache_write").input
    return Usage(usage.input + usage.cached + written, usage.output, usage.cached, usage.requests)

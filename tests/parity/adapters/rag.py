"""The scorers of retrieval and of answers from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalstone.scorers import (
    AnswerRelevancy,
    ContextPosition,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    Faithfulness,
    Hallucination,
    Penalties,
)
from tests.parity.adapters.common import (
    Adapted,
    Adapter,
    Case,
    answer,
    context_options,
    folded,
    sample_of,
    scale_of,
)


def claims_then(case: Case, supported: Callable[[Mapping[str, Any]], str]) -> list[Any]:
    """The two replies of a scorer that lists claims and verifies them."""
    verdicts: list[Any] = [
        {"reason": str(v.get("reason", "")), "passages": [], "verdict": supported(v)}
        for v in answer(case, 1, "verdicts")
    ]
    return [{"claims": answer(case, 0, "claims")}, {"verdicts": verdicts}]


def faithfulness(case: Case) -> Adapted:
    words = {"yes": "supported", "no": "contradicted"}
    replies = claims_then(case, lambda v: words.get(v["verdict"], "not_mentioned"))
    options = context_options(case)
    returned = any(call.get("state") == "result" for call in case.get("tool_calls", ()))
    sample = sample_of(case) if options or returned else sample_of(case, context=())
    return Faithfulness(scale=scale_of(case), **options), sample, replies


def hallucination(case: Case) -> Adapted:
    replies = claims_then(case, lambda v: "not_mentioned" if v["verdict"] == "yes" else "supported")
    options = context_options(case)
    sample = sample_of(case) if options else sample_of(case, context=())
    return Hallucination(scale=scale_of(case), **options), sample, replies


def context_recall(case: Case) -> Adapted:
    replies = claims_then(case, lambda v: "supported" if folded(v["verdict"]) == "yes" else "not_mentioned")
    truth = case.get("ground_truth", "")
    sample = sample_of(case, reference=truth if isinstance(truth, str) else json.dumps(truth))
    return ContextRecall(scale=scale_of(case), **context_options(case)), sample, replies


def answer_relevancy(key: str, word: str) -> Adapter:
    """Answer relevancy; the newer package has other names for the verdicts than the older one."""

    def adapt(case: Case) -> Adapted:
        words = {"yes": "yes", "unsure": "partly"}
        verdicts = [
            {"reason": str(v.get("reason", "")), "verdict": words.get(folded(v[word]), "no")}
            for v in answer(case, 1, key)
        ]
        replies = [{"statements": answer(case, 0, "statements")}, {"verdicts": verdicts}]
        weight = case["options"].get("uncertaintyWeight", 0.3)
        return AnswerRelevancy(scale=scale_of(case), uncertainty_weight=weight), sample_of(case), replies

    return adapt


def numbered(items: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """Members under their numbers, counted from 1, as raw text: a number that came twice stands twice."""
    members = (f"{json.dumps(_number(index))}: {json.dumps(item)}" for index, item in items)
    return "{" + ", ".join(members) + "}"


def _number(index: Any) -> str:
    return f"{index + 1:g}" if isinstance(index, int | float) else str(index)


def useful(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """A usefulness verdict in our words."""
    yes = folded(verdict["verdict"]) == "yes"
    return {"reason": str(verdict.get("reason", "")), "verdict": "yes" if yes else "no"}


def context_precision(case: Case) -> Adapted:
    scorer = ContextPrecision(scale=scale_of(case), **context_options(case))
    items = [(v.get("context_index"), useful(v)) for v in answer(case, 0, "verdicts")]
    return scorer, sample_of(case), [f'{{"verdicts": {numbered(items)}}}']


def by_rank(kind: type[ContextPrecision] | type[ContextPosition]) -> Adapter:
    """The older package's precision and position, whose verdicts come in the order of the passages."""

    def adapt(case: Case) -> Adapted:
        sample = sample_of(case, context=case["options"].get("context", case.get("context")))
        verdicts = [useful(v) for v in answer(case, 0, "verdicts")]
        return kind(scale=scale_of(case)), sample, [{"verdicts": verdicts}]

    return adapt


def context_relevance(case: Case) -> Adapted:
    given: Mapping[str, float] = case["options"].get("penalties") or {}
    names = {
        "unused": "unusedHighRelevanceContext",
        "missing": "missingContextPerItem",
        "missing_limit": "maxMissingContextPenalty",
    }
    penalties = Penalties(**{ours: given[theirs] for ours, theirs in names.items() if theirs in given})
    scorer = ContextRelevance(scale=scale_of(case), penalties=penalties, **context_options(case))
    replies: list[Any] = []
    for judged in case["judge_answers"]:
        items = [
            (e.get("context_index"), {"reason": e["reasoning"], "level": e["relevanceLevel"], "used": e["wasUsed"]})
            for e in judged["evaluations"]
        ]
        replies.append(f'{{"passages": {numbered(items)}, "missing": {json.dumps(judged.get("missingContext", []))}}}')
    return scorer, sample_of(case), replies


RAG: Mapping[str, Adapter] = {
    "answer-relevancy": answer_relevancy("results", "result"),
    "context-precision": context_precision,
    "context-recall": context_recall,
    "context-relevance": context_relevance,
    "faithfulness": faithfulness,
    "hallucination": hallucination,
    "legacy-answer-relevancy": answer_relevancy("verdicts", "verdict"),
    "legacy-context-position": by_rank(ContextPosition),
    "legacy-context-precision": by_rank(ContextPrecision),
    "legacy-faithfulness": faithfulness,
    "legacy-hallucination": hallucination,
}

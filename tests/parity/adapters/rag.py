"""The scorers of retrieval and of answers from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalstone.questions.claims import ListClaims, VerifyClaims
from evalstone.questions.relevance import FindUsefulPassages, RatePassages
from evalstone.questions.statements import JudgeStatements, ListStatements
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
from evalstone.types.context_limits import DEFAULT_LIMITS
from tests.parity.adapters.common import (
    MASTRA,
    Adapted,
    Adapter,
    Case,
    Said,
    as_recorded,
    context_options,
    folded,
    output_of,
    sample_of,
    scale_of,
)
from tests.parity.adapters.recorded import all_shown, in_words_of, told

VERDICTS = {"verdicts": [{"verdict": str, "reason": str}]}
CLAIM_VERDICTS = {"verdicts": [{"verdict": str, "reason": str, "claim?": str}]}
STATED_VERDICTS = {"verdicts": [{"verdict": str, "reason": str, "claim": str}]}
STATEMENT_VERDICTS = {"verdicts": [{"verdict": str, "reason": str, "statement": str}]}

RATINGS = {
    "evaluations": [
        {"context_index": float, "contextPiece": str, "relevanceLevel": str, "wasUsed": bool, "reasoning": str}
    ],
    "missingContext?": [str],
}


def claims_then(case: Case, text: str, shape: Any, supported: Callable[[Mapping[str, Any]], str]) -> list[Said]:
    """What is said to a scorer that lists the claims of a text and verifies them."""
    claims, judged = told(case, {"claims": [str]}, shape)
    listed = claims.replies(lambda given: {"claims": in_words_of(text, given["claims"])})
    verified = judged.replies(lambda given: verifications(given["verdicts"], supported))
    return [Said(ListClaims, listed), *batched(verified, in_words_of(text, claims.given.get("claims", ())))]


def verifications(
    verdicts: Sequence[Mapping[str, Any]], supported: Callable[[Mapping[str, Any]], str]
) -> Mapping[str, Any]:
    """Verdicts on claims in our words. Passages were not recorded: the first is cited where ours must name one."""
    words = [supported(verdict) for verdict in verdicts]
    return {
        "verdicts": [
            {"reason": verdict["reason"], "passages": [] if word == "not_mentioned" else [1], "verdict": word}
            for verdict, word in zip(verdicts, words, strict=True)
        ]
    }


def batched(replies: Sequence[Any], claims: Sequence[str]) -> list[Said]:
    """What is said on claims, which our question asks about in batches: to each the verdicts on its own claims.

    A reply with another number of verdicts than there are claims is none on any batch, and goes to each as it is.
    """
    size = DEFAULT_LIMITS.items
    said: list[Said] = []
    for start in range(0, len(claims), size):
        batch = slice(start, start + size)
        own = [
            reply
            if isinstance(reply, str) or len(reply["verdicts"]) != len(claims)
            else {"verdicts": reply["verdicts"][batch]}
            for reply in replies
        ]
        said.append(Said(VerifyClaims, own, {"claims": tuple(claims[batch])}))
    return said


def faithfulness(case: Case, shape: Any = CLAIM_VERDICTS) -> Adapted:
    words = {"yes": "supported", "no": "contradicted"}
    said = claims_then(case, output_of(case), shape, lambda v: words.get(v["verdict"], "not_mentioned"))
    options = context_options(case)
    calls: Sequence[Mapping[str, Any]] = case.get("tool_calls", ())
    returned = any(call.get("state") == "result" and call.get("result") is not None for call in calls)
    sample = sample_of(case) if options or returned else sample_of(case, context=())
    return Faithfulness(definition=MASTRA, scale=scale_of(case), **options), sample, said


def older_faithfulness(case: Case) -> Adapted:
    """The older package asks for the claim with each verdict."""
    return faithfulness(case, STATED_VERDICTS)


def hallucination(case: Case) -> Adapted:
    words = {"yes": "not_mentioned"}
    said = claims_then(case, output_of(case), STATEMENT_VERDICTS, lambda v: words.get(v["verdict"], "supported"))
    options = context_options(case)
    sample = sample_of(case) if options else sample_of(case, context=())
    return Hallucination(definition=MASTRA, scale=scale_of(case), **options), sample, said


def context_recall(case: Case) -> Adapted:
    words = {"yes": "supported"}
    truth = case.get("ground_truth", "")
    reference = truth if isinstance(truth, str) else json.dumps(truth)
    said = claims_then(case, reference, VERDICTS, lambda v: words.get(folded(v["verdict"]), "not_mentioned"))
    scorer = ContextRecall(definition=MASTRA, scale=scale_of(case), **context_options(case))
    return scorer, sample_of(case, reference=reference), said


def answer_relevancy(key: str, word: str) -> Adapter:
    """Answer relevancy; the newer package has other names for the verdicts than the older one."""

    def adapt(case: Case) -> Adapted:
        words = {"yes": "yes", "unsure": "partly"}
        statements, judged = told(case, {"statements": [str]}, {key: [{word: str, "reason": str}]})
        listed = statements.replies(lambda given: {"statements": in_words_of(output_of(case), given["statements"])})
        verdicts = judged.replies(
            lambda given: {
                "verdicts": [{"reason": v["reason"], "verdict": words.get(folded(v[word]), "no")} for v in given[key]]
            }
        )
        said = [Said(ListStatements, listed), Said(JudgeStatements, verdicts)]
        weight = case["options"].get("uncertaintyWeight", 0.3)
        scorer = AnswerRelevancy(definition=MASTRA, scale=scale_of(case), uncertainty_weight=weight)
        return scorer, sample_of(case), said

    return adapt


def numbered(items: Sequence[tuple[Any, Mapping[str, Any]]]) -> str:
    """Members under their numbers, counted from 1, as raw text: a number that came twice stands twice."""
    members = (f"{json.dumps(_number(index))}: {json.dumps(item)}" for index, item in items)
    return "{" + ", ".join(members) + "}"


def _number(index: Any) -> str:
    return f"{index + 1:g}" if isinstance(index, int | float) else repr(index)


def useful(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """A usefulness verdict in our words."""
    return {"reason": verdict["reason"], "verdict": as_recorded(verdict["verdict"])}


def context_precision(case: Case) -> Adapted:
    scorer = ContextPrecision(definition=MASTRA, scale=scale_of(case), **context_options(case))
    (judged,) = told(case, VERDICTS)
    return scorer, sample_of(case), [Said(FindUsefulPassages, judged.replies(useful_by_index))]


def useful_by_index(given: Mapping[str, Any]) -> str:
    """Usefulness verdicts under their numbers; one without a number names no passage, and ours is refused."""
    return f'{{"verdicts": {numbered([(v.get("context_index"), useful(v)) for v in given["verdicts"]])}}}'


def by_rank(kind: type[ContextPrecision] | type[ContextPosition]) -> Adapter:
    """The older package's precision and position, whose verdicts come in the order of the passages."""

    def adapt(case: Case) -> Adapted:
        sample = sample_of(case, context=case["options"].get("context", case.get("context")))
        (judged,) = told(case, VERDICTS)
        replies = judged.replies(lambda given: {"verdicts": [useful(v) for v in given["verdicts"]]})
        return kind(definition=MASTRA, scale=scale_of(case)), sample, [Said(FindUsefulPassages, replies)]

    return adapt


def context_relevance(case: Case) -> Adapted:
    given: Mapping[str, float] = case["options"].get("penalties") or {}
    names = {
        "unused": "unusedHighRelevanceContext",
        "missing": "missingContextPerItem",
        "missing_limit": "maxMissingContextPenalty",
    }
    penalties = Penalties(**{ours: given[theirs] for ours, theirs in names.items() if theirs in given})
    scorer = ContextRelevance(definition=MASTRA, scale=scale_of(case), penalties=penalties, **context_options(case))
    (judged,) = told(case, RATINGS)
    return scorer, sample_of(case), [Said(RatePassages, judged.replies(rating_by_index))]


def exact_level(word: str) -> str:
    """A level as the package's schema has it. It refuses other spellings, which we would read."""
    return word if word in ("high", "medium", "low", "none") else f"no level: {word}"


def rating_by_index(given: Mapping[str, Any]) -> str:
    """Ratings of passages under their numbers."""
    items = [
        (
            e["context_index"],
            {"reason": e["reasoning"], "level": exact_level(e["relevanceLevel"]), "used": e["wasUsed"]},
        )
        for e in given["evaluations"]
    ]
    return f'{{"passages": {numbered(items)}, "missing": {json.dumps(all_shown(given.get("missingContext")))}}}'


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
    "legacy-faithfulness": older_faithfulness,
    "legacy-hallucination": hallucination,
}

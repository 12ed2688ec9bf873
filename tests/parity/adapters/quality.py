"""The scorers of an answer's quality: similarity, harm, alignment, criteria, summaries, use of passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.scorers import (
    AnswerSimilarity,
    Bias,
    ContextStatementRelevancy,
    ContextUsage,
    Criterion,
    InstructionAlignment,
    MultiTurnJudge,
    NoiseSensitivity,
    PromptAlignment,
    Rubric,
    Summarization,
    Toxicity,
)
from evalstone.types import Message
from tests.parity.adapters.common import Adapted, Adapter, Case, answer, folded, sample_of, scale_of


def renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The options that were given, under our names."""
    return {ours: options[theirs] for ours, theirs in names.items() if options.get(theirs) is not None}


def yes_no(holds: bool) -> str:
    return "yes" if holds else "no"


def verdict(given: Mapping[str, Any], word: str, *, reason: str = "reason") -> dict[str, Any]:
    """One verdict of ours: the recorded reason, and our word."""
    return {"reason": str(given.get(reason, "")), "verdict": word}


def answer_similarity(case: Case) -> Adapted:
    names = {
        "semantic": "semanticThreshold",
        "exact_bonus": "exactMatchBonus",
        "missing": "missingPenalty",
        "contradiction": "contradictionPenalty",
        "extra": "extraInfoPenalty",
        "require_reference": "requireGroundTruth",
    }
    scorer = AnswerSimilarity(scale=scale_of(case), **renamed(case["options"], names))
    truth = case.get("ground_truth") or ""
    reference = truth if isinstance(truth, str) else json.dumps(truth, ensure_ascii=False)
    matches = [
        {"reason": str(m["explanation"]), "answer": m["outputUnit"] or "", "match": m["matchType"]}
        for m in answer(case, 1, "matches")
    ]
    contradictions = [
        {"reason": str(c["explanation"]), "answer": c["outputUnit"], "reference": c["groundTruthUnit"]}
        for c in answer(case, 1, "contradictions")
    ]
    replies: list[Any] = [
        {"statements": answer(case, 0, "outputUnits")},
        {"statements": answer(case, 0, "groundTruthUnits")},
        {"matches": matches, "extra": answer(case, 1, "extraInOutput"), "contradictions": contradictions},
    ]
    return scorer, sample_of(case, reference=reference), replies


def bias(key: str, word: str) -> Adapter:
    """Bias; the newer package has other names for the verdicts than the older one. Both lower, and do not trim."""

    def adapt(case: Case) -> Adapted:
        verdicts = [verdict(v, yes_no(str(v[word]).lower() == "yes")) for v in answer(case, 1, key)]
        replies = [{"opinions": answer(case, 0, "opinions")}, {"verdicts": verdicts}]
        return Bias(scale=scale_of(case)), sample_of(case), replies

    return adapt


def toxicity(case: Case) -> Adapted:
    return Toxicity(scale=scale_of(case)), sample_of(case), [toxic_parts(given) for given in case["judge_answers"]]


def toxic_parts(given: Any) -> Any:
    """A recorded answer in our words; one that is malformed as it came."""
    try:
        found = [(v, v["verdict"], v["reason"]) for v in given["verdicts"]]
    except (KeyError, TypeError):
        return given
    if not all(isinstance(word, str) and isinstance(reason, str) for _, word, reason in found):
        return given
    return {"verdicts": [verdict(v, yes_no(folded(word) == "yes")) for v, word, _ in found]}


def noise_sensitivity(case: Case) -> Adapted:
    options = case["options"]
    scoring: Mapping[str, Any] = options.get("scoring") or {}
    scorer = NoiseSensitivity(
        scale=scale_of(case),
        baseline=options.get("baselineResponse", ""),
        noisy_query=options.get("noisyQuery", ""),
        noise=options.get("noiseType") or "",
        **(scoring.get("impactWeights") or {}),
        **renamed(
            scoring.get("penalties") or {}, {"issue": "majorIssuePerItem", "issue_limit": "maxMajorIssuePenalty"}
        ),
        **renamed(scoring, {"discrepancy": "discrepancyThreshold"}),
    )
    replies: list[Any] = [
        {
            "dimensions": [
                {
                    "reason": f"{d['specificChanges']}; {d['noiseInfluence']}",
                    "dimension": d["dimension"],
                    "impact": d["impactLevel"],
                }
                for d in judged["dimensions"]
            ],
            "issues": judged.get("majorIssues", []),
            "robustness": judged["robustnessScore"],
        }
        for judged in case["judge_answers"]
    ]
    return scorer, sample_of(case), replies


def prompt_alignment(case: Case) -> Adapted:
    """The recorded version takes the judge's numbers as they are: ours is told not to refuse those outside 0 to 1."""
    options = case["options"]
    history: Any = options.get("includeConversationHistory") or 0
    turns: int = 10 if history is True else history["maxMessages"] if history else 0
    scorer = PromptAlignment(
        scale=scale_of(case), bounded=False, history=turns, **renamed(options, {"mode": "evaluationMode"})
    )
    system = case.get("system") or ()
    instructions = system if isinstance(system, str) else "\n\n".join(system)
    sample = sample_of(case, input=case.get("input") or "", instructions=instructions)
    return scorer, sample, [alignment(judged) for judged in case["judge_answers"]]


def alignment(judged: Mapping[str, Any]) -> dict[str, Any]:
    required: Mapping[str, Any] = judged["requirementsFulfillment"]
    unmet = [r["requirement"] for r in required["requirements"] if not r["isFulfilled"]]
    intent, complete, fitting = judged["intentAlignment"], judged["completeness"], judged["responseAppropriateness"]
    return {
        "intent": {"reason": intent["reasoning"], "lacking": [], "score": intent["score"]},
        "requirements": {"reason": "", "lacking": unmet, "score": required["overallScore"]},
        "completeness": {
            "reason": complete["reasoning"],
            "lacking": complete["missingElements"],
            "score": complete["score"],
        },
        "appropriateness": {"reason": fitting["reasoning"], "lacking": [], "score": fitting["score"]},
    }


def rubric(case: Case) -> Adapted:
    """There the judge repeats the criteria, and its copy decides what is required; ours are that copy."""
    judged: Sequence[Mapping[str, Any]] = answer(case, 0, "criteria")
    copied = tuple(Criterion(c["criterion"], required=c["required"]) for c in judged)
    scorer = Rubric(scale=scale_of(case), criteria=copied or case["options"].get("criteria") or ())
    verdicts = [verdict(c, yes_no(c["satisfied"]), reason="reasoning") for c in judged]
    return scorer, sample_of(case), [{"verdicts": verdicts}]


def multi_turn_judge(case: Case) -> Adapted:
    scorer = MultiTurnJudge(scale=scale_of(case), criterion=case["options"].get("criterion", ""))
    said: Sequence[str] = case.get("output_messages") or [case.get("output") or ""]
    sample = sample_of(case, messages=tuple(Message(role="assistant", content=text) for text in said))
    replies = [verdict(given, yes_no(given["satisfied"]), reason="reasoning") for given in case["judge_answers"]]
    return scorer, sample, replies


def summary_replies(
    questions: Sequence[str], answered: list[Any], claims: Sequence[str], supported: Sequence[tuple[bool, Any]]
) -> list[Any]:
    """The replies in the order of our questions, of which a question on nothing is not asked."""
    verdicts: list[Any] = [
        {"reason": str(reason), "passages": [], "verdict": "supported" if holds else "not_mentioned"}
        for holds, reason in supported
    ]
    return [
        {"questions": questions},
        *answered[: bool(questions)],
        {"claims": claims},
        *[{"verdicts": verdicts}][: bool(claims)],
    ]


def summarization(case: Case) -> Adapted:
    options = renamed(case["options"], {"source": "source", "max_questions": "maxQuestions"})
    judged = answer(case, 0, "alignment")
    coverage = [verdict(c, yes_no(c["answered"])) for c in answer(case, 1, "coverage")]
    replies = summary_replies(
        answer(case, 0, "questions"),
        [{"verdicts": coverage}],
        [a["claim"] for a in judged],
        [(a["supported"], a["reason"]) for a in judged],
    )
    return Summarization(scale=scale_of(case), **options), sample_of(case), replies


def older_summarization(case: Case) -> Adapted:
    """The older package reads one answer for each question, leaves the rest unread, and breaks where one is missing."""
    questions: Sequence[str] = answer(case, 2, "questions")
    given: Sequence[Any] = answer(case, 3, "answers")[: len(questions)]
    coverage = {"verdicts": [{"reason": "", "verdict": yes_no(folded(word) == "yes")} for word in given]}
    replies = summary_replies(
        questions,
        [coverage if given else {"answers": []}],
        answer(case, 0, "claims"),
        [(folded(v["verdict"]) == "yes", v["reason"]) for v in answer(case, 1, "verdicts")],
    )
    return Summarization(scale=scale_of(case), max_questions=max(1, len(questions))), sample_of(case), replies


def as_many(texts: Sequence[str], count: int) -> list[str]:
    """As many texts as there are verdicts. The older package never compares the numbers: what it got verdicts on is
    what it divides by. No verdict at all is no verdict on these texts."""
    more = [f"not recorded ({number})" for number in range(len(texts) + 1, count + 1)]
    return [*texts, *more][:count] if count else list(texts)


def instruction_alignment(case: Case) -> Adapted:
    judged = answer(case, 0, "verdicts")
    words = {"yes": "yes", "no": "no"}
    verdicts = [verdict(v, words.get(folded(v["verdict"]), "not_applicable")) for v in judged]
    scorer = InstructionAlignment(
        scale=scale_of(case),
        instructions=as_many(case["options"].get("instructions", []), len(judged)),
        none_applicable=0.0,
    )
    return scorer, sample_of(case), [{"verdicts": verdicts}]


def context_usage(case: Case) -> Adapted:
    """The levels that our question also asks for were not recorded; this scorer does not look at them."""
    judged = answer(case, 0, "verdicts")
    ratings = [{"reason": str(v["reason"]), "level": "none", "used": v["verdict"] == "yes"} for v in judged]
    sample = sample_of(case, context=as_many(case["options"].get("context", []), len(judged)))
    return ContextUsage(scale=scale_of(case)), sample, [{"passages": ratings, "missing": []}]


def context_statement_relevancy(case: Case) -> Adapted:
    verdicts = [
        {"statement": str(v.get("statement", "")), **verdict(v, yes_no(str(v["verdict"]).lower() == "yes"))}
        for v in answer(case, 0, "verdicts")
    ]
    sample = sample_of(case, context=case["options"].get("context", []))
    return ContextStatementRelevancy(scale=scale_of(case)), sample, [{"verdicts": verdicts}]


QUALITY: Mapping[str, Adapter] = {
    "answer-similarity": answer_similarity,
    "bias": bias("results", "result"),
    "legacy-bias": bias("verdicts", "verdict"),
    "legacy-context-relevancy": context_statement_relevancy,
    "legacy-contextual-recall": context_usage,
    "legacy-prompt-alignment": instruction_alignment,
    "legacy-summarization": older_summarization,
    "legacy-toxicity": toxicity,
    "multi-turn-judge": multi_turn_judge,
    "noise-sensitivity": noise_sensitivity,
    "prompt-alignment": prompt_alignment,
    "rubric": rubric,
    "summarization": summarization,
    "toxicity": toxicity,
}

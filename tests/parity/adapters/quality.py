"""The scorers of an answer's quality: similarity, harm, alignment, criteria, use of passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalstone.agents.messages import system_prompt
from evalstone.questions.alignment import CheckConversation, CheckCriteria, JudgeAlignment, JudgeInstructions
from evalstone.questions.harm import FindToxicity, JudgeOpinions, ListOpinions
from evalstone.questions.relevance import JudgePassageStatements, RatePassages
from evalstone.questions.robustness import JudgeRobustness
from evalstone.questions.statements import CompareStatements, ListStatements
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
    Toxicity,
)
from evalstone.types import Message
from tests.parity.adapters.common import (
    MASTRA,
    Adapted,
    Adapter,
    Case,
    Said,
    as_recorded,
    output_of,
    sample_of,
    scale_of,
    texts_of,
)
from tests.parity.adapters.rag import VERDICTS
from tests.parity.adapters.recorded import all_shown, in_words_of, shown, told

COMPARISON = {
    "matches": [{"groundTruthUnit": str, "outputUnit": (str, None), "matchType": str, "explanation": str}],
    "extraInOutput": [str],
    "contradictions": [{"outputUnit": str, "groundTruthUnit": str, "explanation": str}],
}
IMPACTS = {
    "dimensions": [{"dimension": str, "impactLevel": str, "specificChanges": str, "noiseInfluence": str}],
    "majorIssues?": [str],
    "robustnessScore": float,
}
ALIGNMENT = {
    "intentAlignment": {"score": float, "reasoning": str},
    "requirementsFulfillment": {
        "requirements": [{"requirement": str, "isFulfilled": bool, "reasoning": str}],
        "overallScore": float,
    },
    "completeness": {"score": float, "missingElements": [str], "reasoning": str},
    "responseAppropriateness": {"score": float, "reasoning": str},
}
CRITERIA = {"criteria": [{"criterion": str, "satisfied": bool, "required": bool, "reasoning": str}]}


def renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The options that were given, under our names."""
    return {ours: options[theirs] for ours, theirs in names.items() if options.get(theirs) is not None}


def yes_no(holds: bool) -> str:
    return "yes" if holds else "no"


def verdict(given: Mapping[str, Any], word: str, *, reason: str = "reason") -> dict[str, Any]:
    """One verdict of ours: the recorded reason, and our word."""
    return {"reason": given[reason], "verdict": word}


def answer_similarity(case: Case) -> Adapted:
    names = {
        "semantic": "semanticThreshold",
        "exact_bonus": "exactMatchBonus",
        "missing": "missingPenalty",
        "contradiction": "contradictionPenalty",
        "extra": "extraInfoPenalty",
        "require_reference": "requireGroundTruth",
    }
    scorer = AnswerSimilarity(definition=MASTRA, scale=scale_of(case), **renamed(case["options"], names))
    truth = case.get("ground_truth") or ""
    reference = truth if isinstance(truth, str) else json.dumps(truth, ensure_ascii=False)
    units, compared = told(case, {"outputUnits": [str], "groundTruthUnits": [str]}, COMPARISON)
    ours = in_words_of(case["output"], units.given.get("outputUnits", ()))
    theirs = in_words_of(reference, units.given.get("groundTruthUnits", ()))
    said = [
        Said(ListStatements, units.replies(lambda _: {"statements": ours}), {"answer": case["output"]}),
        Said(ListStatements, units.replies(lambda _: {"statements": theirs}), {"answer": reference}),
        Said(CompareStatements, compared.replies(lambda given: comparison(given, " ".join(ours), " ".join(theirs)))),
    ]
    return scorer, sample_of(case, reference=reference), said


def comparison(given: Mapping[str, Any], answer: str, reference: str) -> dict[str, Any]:
    """A comparison in our words. answer, reference: their statements, of which ours must have the words."""
    matched = in_words_of(answer, [m["outputUnit"] or "" for m in given["matches"]])
    wrong = in_words_of(answer, [c["outputUnit"] for c in given["contradictions"]])
    right = in_words_of(reference, [c["groundTruthUnit"] for c in given["contradictions"]])
    return {
        "matches": [
            {"reason": m["explanation"], "answer": "" if m["matchType"] == "missing" else unit, "match": m["matchType"]}
            for m, unit in zip(given["matches"], matched, strict=True)
        ],
        "extra": in_words_of(answer, given["extraInOutput"]),
        "contradictions": [
            {"reason": c["explanation"], "answer": ours, "reference": theirs}
            for c, ours, theirs in zip(given["contradictions"], wrong, right, strict=True)
        ],
    }


def bias(key: str, word: str) -> Adapter:
    """Bias; the newer package has other names for the verdicts than the older one. Both lower, and do not trim."""

    def adapt(case: Case) -> Adapted:
        opinions, judged = told(case, {"opinions": [str]}, {key: [{word: str, "reason": str}]})
        listed = opinions.replies(lambda given: {"opinions": in_words_of(output_of(case), given["opinions"])})
        verdicts = judged.replies(
            lambda given: {"verdicts": [verdict(v, yes_no(v[word].lower() == "yes")) for v in given[key]]}
        )
        said = [Said(ListOpinions, listed), Said(JudgeOpinions, verdicts)]
        return Bias(definition=MASTRA, scale=scale_of(case)), sample_of(case), said

    return adapt


def toxicity(case: Case) -> Adapted:
    """The package asks for no parts: each verdict gets words of the answer, or its reason where there are none."""

    def parts(given: Mapping[str, Any]) -> dict[str, Any]:
        found = in_words_of(output_of(case), [v["reason"] for v in given["verdicts"]])
        judged = zip(found, given["verdicts"], strict=True)
        return {"verdicts": [{"part": part, **verdict(v, as_recorded(v["verdict"]))} for part, v in judged]}

    (judged,) = told(case, VERDICTS)
    replies = judged.replies(parts)
    return Toxicity(definition=MASTRA, scale=scale_of(case)), sample_of(case), [Said(FindToxicity, replies)]


def noise_sensitivity(case: Case) -> Adapted:
    options = case["options"]
    scoring: Mapping[str, Any] = options.get("scoring") or {}
    scorer = NoiseSensitivity(
        definition=MASTRA,
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
    (judged,) = told(case, IMPACTS)
    return scorer, sample_of(case), [Said(JudgeRobustness, judged.replies(robustness))]


def robustness(given: Mapping[str, Any]) -> dict[str, Any]:
    """The impact of noise in our words."""
    return {
        "dimensions": [
            {
                "reason": "; ".join(filter(str.strip, (d["specificChanges"], d["noiseInfluence"]))),
                "dimension": d["dimension"],
                "impact": d["impactLevel"],
            }
            for d in given["dimensions"]
        ],
        "issues": all_shown(given.get("majorIssues")),
        "robustness": given["robustnessScore"],
    }


def prompt_alignment(case: Case) -> Adapted:
    options = case["options"]
    history: Any = options.get("includeConversationHistory") or 0
    turns: int = 10 if history is True else history["maxMessages"] if history else 0
    scorer = PromptAlignment(
        definition=MASTRA, scale=scale_of(case), history=turns, **renamed(options, {"mode": "evaluationMode"})
    )
    given = case.get("system") or ()
    system = [Message(role="system", content=text) for text in ([given] if isinstance(given, str) else given)]
    said = sample_of(case)
    sample = replace(
        said, input=said.input or "", instructions=system_prompt(system) or "", messages=(*system, *said.messages)
    )
    (judged,) = told(case, ALIGNMENT)
    return scorer, sample, [Said(JudgeAlignment, judged.replies(alignment))]


def alignment(judged: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an alignment in our words."""
    required: Mapping[str, Any] = judged["requirementsFulfillment"]
    unmet = [shown(r["requirement"]) for r in required["requirements"] if not r["isFulfilled"]]
    intent, complete, fitting = judged["intentAlignment"], judged["completeness"], judged["responseAppropriateness"]
    return {
        "intent": {"reason": intent["reasoning"], "lacking": [], "score": intent["score"]},
        "requirements": {"reason": "", "lacking": unmet, "score": required["overallScore"]},
        "completeness": {
            "reason": complete["reasoning"],
            "lacking": all_shown(complete["missingElements"]),
            "score": complete["score"],
        },
        "appropriateness": {"reason": fitting["reasoning"], "lacking": [], "score": fitting["score"]},
    }


def rubric(case: Case) -> Adapted:
    """There the judge repeats the criteria, and its copy decides what is required; ours are that copy.

    Where no answer of the judge can be read there is no copy: a criterion stands in, so that the judge is asked at all.
    """
    (judged,) = told(case, CRITERIA)
    copies: Sequence[Mapping[str, Any]] = judged.given.get("criteria", ())
    copied = tuple(Criterion(shown(c["criterion"]), required=c["required"]) for c in copies)
    unread = (Criterion("not recorded"),) if judged.answers and not judged.given else ()
    scorer = Rubric(
        definition=MASTRA, scale=scale_of(case), criteria=copied or case["options"].get("criteria") or unread
    )
    replies = judged.replies(
        lambda given: {"verdicts": [verdict(c, yes_no(c["satisfied"]), reason="reasoning") for c in given["criteria"]]}
    )
    return scorer, sample_of(case), [Said(CheckCriteria, replies)]


def multi_turn_judge(case: Case) -> Adapted:
    scorer = MultiTurnJudge(definition=MASTRA, scale=scale_of(case), criterion=case["options"].get("criterion", ""))
    sample = sample_of(case if texts_of(case, "output") else {**case, "output": ""})
    (judged,) = told(case, {"satisfied": bool, "reasoning": str})
    replies = judged.replies(lambda given: verdict(given, yes_no(given["satisfied"]), reason="reasoning"))
    return scorer, sample, [Said(CheckConversation, replies)]


def as_many(texts: Sequence[str], count: int) -> list[str]:
    """As many texts as there are verdicts. The older package never compares the numbers: what it got verdicts on is
    what it divides by, and without a verdict there is nothing to judge."""
    more = [f"not recorded ({number})" for number in range(len(texts) + 1, count + 1)]
    return [*texts, *more][:count]


def instruction_alignment(case: Case) -> Adapted:
    (judged,) = told(case, VERDICTS)
    replies = judged.replies(
        lambda given: {"verdicts": [verdict(v, as_recorded(v["verdict"], "not_applicable")) for v in given["verdicts"]]}
    )
    scorer = InstructionAlignment(
        definition=MASTRA,
        scale=scale_of(case),
        instructions=as_many(case["options"].get("instructions", []), len(judged.given.get("verdicts", ()))),
    )
    return scorer, sample_of(case), [Said(JudgeInstructions, replies)]


def context_usage(case: Case) -> Adapted:
    """The levels that our question also asks for were not recorded; this scorer does not look at them."""
    (judged,) = told(case, VERDICTS)
    passages = as_many(case["options"].get("context", []), len(judged.given.get("verdicts", ())))
    replies = judged.replies(
        lambda given: {
            "passages": [
                {"reason": v["reason"], "level": "none", "used": v["verdict"] == "yes"} for v in given["verdicts"]
            ],
            "missing": [],
        }
    )
    return (
        ContextUsage(definition=MASTRA, scale=scale_of(case)),
        sample_of(case, context=passages),
        [Said(RatePassages, replies)],
    )


def context_statement_relevancy(case: Case) -> Adapted:
    passages: Sequence[str] = case["options"].get("context", [])

    def statements(given: Mapping[str, Any]) -> dict[str, Any]:
        found = in_words_of(" ".join(passages), [v.get("statement") or "" for v in given["verdicts"]])
        judged = zip(found, given["verdicts"], strict=True)
        words = [{"statement": one, **verdict(v, yes_no(v["verdict"].lower() == "yes"))} for one, v in judged]
        return {"verdicts": words}

    (judged,) = told(case, {"verdicts": [{"verdict": str, "reason": str, "statement?": str}]})
    sample = sample_of(case, context=passages)
    replies = judged.replies(statements)
    return ContextStatementRelevancy(scale=scale_of(case)), sample, [Said(JudgePassageStatements, replies)]


QUALITY: Mapping[str, Adapter] = {
    "answer-similarity": answer_similarity,
    "bias": bias("results", "result"),
    "legacy-bias": bias("verdicts", "verdict"),
    "legacy-context-relevancy": context_statement_relevancy,
    "legacy-contextual-recall": context_usage,
    "legacy-prompt-alignment": instruction_alignment,
    "legacy-toxicity": toxicity,
    "multi-turn-judge": multi_turn_judge,
    "noise-sensitivity": noise_sensitivity,
    "prompt-alignment": prompt_alignment,
    "rubric": rubric,
    "toxicity": toxicity,
}

"""The scorers of summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.questions.claims import ListClaims
from evalstone.questions.coverage import FindAnswers, ListQuestions
from evalstone.scorers import Summarization
from tests.parity.adapters.common import (
    MASTRA,
    Adapted,
    Adapter,
    Case,
    Said,
    as_recorded,
    folded,
    output_of,
    sample_of,
    scale_of,
)
from tests.parity.adapters.quality import renamed, verdict, yes_no
from tests.parity.adapters.rag import STATED_VERDICTS, batched, verifications
from tests.parity.adapters.recorded import in_words_of, told

ALIGNED = {"alignment": [{"claim": str, "supported": bool, "reason": str}], "questions": [str]}


def summarization(case: Case) -> Adapted:
    options = renamed(case["options"], {"source": "source", "max_questions": "maxQuestions"})
    drafts, covered, _ = told(case, ALIGNED, {"coverage": [{"answered": bool, "reason": str, "question": str}]}, {})
    judged: Sequence[Mapping[str, Any]] = drafts.given.get("alignment", ())
    source = options.get("source", case.get("input")) or ""
    words = {True: "supported", False: "not_mentioned"}
    claims = in_words_of(output_of(case), [a["claim"] for a in judged])
    said = [
        Said(ListQuestions, drafts.replies(lambda given: {"questions": in_words_of(source, given["questions"])})),
        Said(
            FindAnswers,
            covered.replies(
                lambda given: {"verdicts": [verdict(c, yes_no(c["answered"])) for c in given["coverage"]]},
            ),
        ),
        Said(ListClaims, drafts.replies(lambda _: {"claims": claims})),
        *batched([verifications(judged, lambda v: words[v["supported"]])], claims),
    ]
    return Summarization(definition=MASTRA, scale=scale_of(case), **options), sample_of(case), said


def older_summarization(case: Case) -> Adapted:
    """The older package reads one answer for each question, leaves the rest unread, and breaks where one is missing."""
    claims, verdicts, listed, answers, _ = told(
        case, {"claims": [str]}, STATED_VERDICTS, {"questions": [str]}, {"answers": [str]}, {}
    )
    questions: Sequence[str] = listed.given.get("questions", ())
    source, output = case.get("input") or "", output_of(case)

    def coverage(given: Mapping[str, Any]) -> dict[str, Any]:
        words = [as_recorded(word) for word in given["answers"][: len(questions)]]
        return {"verdicts": [{"reason": "", "verdict": word} for word in words]} if words else {"answers": []}

    words = {"yes": "supported"}
    said = [
        Said(ListQuestions, listed.replies(lambda given: {"questions": in_words_of(source, given["questions"])})),
        Said(FindAnswers, answers.replies(coverage)),
        Said(ListClaims, claims.replies(lambda given: {"claims": in_words_of(output, given["claims"])})),
        *batched(
            verdicts.replies(
                lambda given: verifications(
                    given["verdicts"], lambda v: words.get(folded(v["verdict"]), "not_mentioned")
                )
            ),
            in_words_of(output, claims.given.get("claims", ())),
        ),
    ]
    return Summarization(definition=MASTRA, scale=scale_of(case)), sample_of(case), said


SUMMARIES: Mapping[str, Adapter] = {
    "legacy-summarization": older_summarization,
    "summarization": summarization,
}

"""The scorers of summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.scorers import Summarization
from tests.parity.adapters.common import Adapted, Adapter, Case, as_recorded, folded, sample_of, scale_of
from tests.parity.adapters.quality import renamed, verdict, yes_no
from tests.parity.adapters.rag import STATED_VERDICTS, batched, verifications
from tests.parity.adapters.recorded import all_shown, told

ALIGNED = {"alignment": [{"claim": str, "supported": bool, "reason": str}], "questions": [str]}


def summary_replies(
    questions: Sequence[Any], answered: Sequence[Any], claims: Sequence[Any], verified: Sequence[Any]
) -> list[Any]:
    """The replies in the order of our questions, of which a question on nothing is not asked."""
    asked, made = {"questions": []} not in questions, {"claims": []} not in claims
    return [*questions, *(answered if asked else ()), *claims, *(verified if made else ())]


def summarization(case: Case) -> Adapted:
    options = renamed(case["options"], {"source": "source", "max_questions": "maxQuestions"})
    drafts, covered, _ = told(case, ALIGNED, {"coverage": [{"answered": bool, "reason": str, "question": str}]}, {})
    judged: Sequence[Mapping[str, Any]] = drafts.given.get("alignment", ())
    words = {True: "supported", False: "not_mentioned"}
    replies = summary_replies(
        drafts.replies(lambda given: {"questions": all_shown(given["questions"])}),
        covered.replies(
            lambda given: {"verdicts": [verdict(c, yes_no(c["answered"])) for c in given["coverage"]]},
        ),
        [{"claims": all_shown([a["claim"] for a in judged])}],
        batched([verifications(judged, lambda v: words[v["supported"]])], len(judged)),
    )
    return Summarization(scale=scale_of(case), **options), sample_of(case), replies


def older_summarization(case: Case) -> Adapted:
    """The older package reads one answer for each question, leaves the rest unread, and breaks where one is missing."""
    claims, verdicts, listed, answers, _ = told(
        case, {"claims": [str]}, STATED_VERDICTS, {"questions": [str]}, {"answers": [str]}, {}
    )
    questions: Sequence[str] = listed.given.get("questions", ())

    def coverage(given: Mapping[str, Any]) -> dict[str, Any]:
        words = [as_recorded(word) for word in given["answers"][: len(questions)]]
        return {"verdicts": [{"reason": "", "verdict": word} for word in words]} if words else {"answers": []}

    words = {"yes": "supported"}
    replies = summary_replies(
        listed.replies(lambda given: {"questions": all_shown(given["questions"])}),
        answers.replies(coverage),
        claims.replies(lambda given: {"claims": all_shown(given["claims"])}),
        batched(
            verdicts.replies(
                lambda given: verifications(
                    given["verdicts"], lambda v: words.get(folded(v["verdict"]), "not_mentioned")
                )
            ),
            len(claims.given.get("claims", ())),
        ),
    )
    return Summarization(scale=scale_of(case), max_questions=max(1, len(questions))), sample_of(case), replies


SUMMARIES: Mapping[str, Adapter] = {
    "legacy-summarization": older_summarization,
    "summarization": summarization,
}

"""Questions about several items, and how sure a judge was of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from evalstone.questions.base import Answer, Question

ITEMS: Mapping[str, str] = {
    "check_criteria": "criteria",
    "find_answers": "questions",
    "judge_instructions": "instructions",
    "judge_opinions": "opinions",
    "judge_statements": "statements",
    "verify_claims": "claims",
}
"""By kind of question whose answer is one verdict an item and nothing else: the material that holds the items."""


def item_confidences(question: Question[Any], answer: Answer[Any]) -> tuple[float | None, ...] | None:
    """How sure a judge was of each item of its answer; None where it does not say, or the question has no items.

    Taken from the votes of a panel or of repetitions, or from the verdicts themselves: what the same stored answers
    give again, so that a run that goes on divides its questions as before.
    """
    if question.kind not in ITEMS:
        return None
    verdicts = cast("tuple[Any, ...]", answer.value)
    votes: Sequence[Mapping[str, Any]] = (answer.detail or {}).get("verdicts", ())
    if votes:
        sure = {str(vote["at"]).partition(".")[0]: vote.get("probability", vote.get("agreement")) for vote in votes}
        return tuple(sure.get(str(number)) for number in range(1, len(verdicts) + 1))
    own = tuple(getattr(verdict, "confidence", None) for verdict in verdicts)
    return own if any(one is not None for one in own) else None

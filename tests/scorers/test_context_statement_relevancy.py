from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import JudgePassageStatements, PassageStatement
from evalstone.scorers import ContextStatementRelevancy
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of

SAMPLE = Sample(input="When?", context=["Ada, 1815. She wrote.", "Bob."])
PARTS = ("Ada, 1815.", "She wrote.", "Bob.")


def judged(*words: Any) -> dict[str, Any]:
    told = zip(PARTS, words, strict=False)
    return {"verdicts": [{"reason": "because", "statement": part, "verdict": word} for part, word in told]}


def test_one_of_three_is_a_third_and_the_reason_names_the_ballast():
    score = score_of(ContextStatementRelevancy(scale=3), SAMPLE, [judged("yes", "no", "no")])
    assert score.value == pytest.approx(1)
    assert score.reason == "1 of 3 statements are relevant to the question; off topic: “She wrote.”; “Bob.”."
    assert score.evidence[0] == PassageStatement("Ada, 1815.", True, "because")


def test_it_needs_no_answer_and_asks_one_question():
    _, judge = record_of(ContextStatementRelevancy(), SAMPLE, [judged("yes")])
    assert judge.asked == [JudgePassageStatements(question="When?", context=("Ada, 1815. She wrote.", "Bob."))]


def test_no_passages_and_no_statements_are_skipped():
    empty = Sample(input="q", context=[])
    assert outcome_of(ContextStatementRelevancy(), empty, []) == Skipped("there are no passages")
    assert outcome_of(ContextStatementRelevancy(), SAMPLE, [judged()]) == Skipped(
        "the judge found no statement in the passages"
    )


@pytest.mark.parametrize("reply", [{}, {"verdicts": {"1": {}}}, judged("maybe"), {"verdicts": [{"verdict": "yes"}]}])
def test_a_reply_that_is_none_fails(reply: Any):
    assert isinstance(outcome_of(ContextStatementRelevancy(), SAMPLE, [reply]), Failed)

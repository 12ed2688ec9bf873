from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import JudgePassageStatements, PassageStatement
from evalstone.scorers import ContextStatementRelevancy
from evalstone.types import Sample
from tests.fakes import record_of, score_of

SAMPLE = Sample(input="When?", context=["Ada, 1815. She wrote.", "Bob."])
PARTS = ("Ada, 1815.", "She wrote.", "Bob.")


def judged(*words: Any) -> dict[str, Any]:
    told = zip(PARTS, words, strict=False)
    return {"verdicts": [{"reason": "because", "statement": part, "verdict": word} for part, word in told]}


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (
            ["yes", "no", "no"],
            1,
            "1 of 3 statements are relevant to the question; off topic: “She wrote.”; “Bob.”.",
        ),
        (["yes"], 3, "1 of 1 statement is relevant to the question."),
    ],
)
def test_the_reason_counts_what_is_relevant_and_names_the_ballast(words: list[str], value: float, reason: str):
    score = score_of(ContextStatementRelevancy(scale=3), SAMPLE, [judged(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert list(score.evidence) == [
        PassageStatement(part, word == "yes", "because") for part, word in zip(PARTS, words, strict=False)
    ]


def test_it_needs_no_answer_and_asks_one_question():
    _, judge = record_of(ContextStatementRelevancy(), SAMPLE, [judged("yes")])
    assert judge.asked == [JudgePassageStatements(question="When?", context=("Ada, 1815. She wrote.", "Bob."))]

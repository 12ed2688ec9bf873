from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import JudgeStatements, ListStatements, StatementVerdict
from evalstone.scorers import AnswerRelevancy
from evalstone.scorers.rag.statements import addressing_share
from evalstone.types import Sample
from tests.fakes import record_of, score_of, statements, verdicts

SAMPLE = Sample(input="When was Ada born?", output="In 1815. In winter. She wrote programs.")
SAID = statements("In 1815.", "In winter.", "She wrote programs.")
MIXED = verdicts("yes", "partly", "no")


def verdict(word: Any) -> StatementVerdict:
    return StatementVerdict("s", word)


@pytest.mark.parametrize(
    ("words", "weight", "share"),
    [
        (["yes"], 0.3, 1),
        (["partly"], 0.3, 0.3),
        (["no"], 0.3, 0),
        (["yes", "partly", "no"], 0.3, 1.3 / 3),
        (["yes", "partly", "no"], 0, 1 / 3),
        (["yes", "partly", "no"], 1, 2 / 3),
        (["partly", "partly"], 0.5, 0.5),
    ],
)
def test_a_statement_that_partly_addresses_counts_by_its_weight(words: list[str], weight: float, share: float):
    assert addressing_share([verdict(word) for word in words], weight) == pytest.approx(share)


@pytest.mark.parametrize(
    ("texts", "words", "value", "reason"),
    [
        (
            SAID["statements"],
            ["yes", "partly", "no"],
            1.3 / 3,
            "1 of 3 statements address the question, 1 partly; off topic: “She wrote programs.”.",
        ),
        (["In 1815."], ["yes"], 1, "1 of 1 statement addresses the question, 0 partly."),
    ],
)
def test_the_reason_counts_what_addresses_the_question_and_names_what_does_not(
    texts: list[str], words: list[str], value: float, reason: str
):
    score = score_of(AnswerRelevancy(), SAMPLE, [statements(*texts), verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert [(v.statement, v.addresses) for v in score.evidence] == list(zip(texts, words, strict=True))


def test_weight_and_scale_each_work_without_the_other():
    assert score_of(AnswerRelevancy(uncertainty_weight=0.6), SAMPLE, [SAID, MIXED]).value == pytest.approx(1.6 / 3)
    assert score_of(AnswerRelevancy(scale=10), SAMPLE, [SAID, MIXED]).value == pytest.approx(13 / 3)


def test_the_statements_of_the_answer_are_judged_against_the_question():
    _, judge = record_of(AnswerRelevancy(), SAMPLE, [SAID, MIXED])
    assert judge.asked == [
        ListStatements(answer=SAMPLE.output or ""),
        JudgeStatements(question=SAMPLE.input or "", statements=tuple(SAID["statements"])),
    ]

from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import CompareStatements, Contradiction, ListStatements, StatementComparison, StatementMatch
from evalstone.questions.statements import Match
from evalstone.scorers import AnswerSimilarity
from evalstone.types import Sample
from tests.fakes import record_of, score_of, statements

SAMPLE = Sample(output="Ada wrote notes. She liked tea.", reference="Ada wrote notes. It was in 1843.")
SAID = statements("Ada wrote notes.", "She liked tea.")
WANTED = statements("Ada wrote notes.", "It was in 1843.")
OPTIONAL = AnswerSimilarity(require_reference=False)


def compared(*words: str, extra: list[str] | None = None, conflicts: int = 0) -> dict[str, Any]:
    matches = {
        str(number): {"reason": "because", "answer": "" if word == "missing" else "Ada wrote notes.", "match": word}
        for number, word in enumerate(words, start=1)
    }
    conflict = {"reason": "another drink", "answer": "She liked tea.", "reference": "in 1843."}
    return {"matches": matches, "extra": extra or [], "contradictions": [conflict] * conflicts}


def found(*words: Match, extra: int = 0, conflicts: int = 0) -> StatementComparison:
    matches = tuple(StatementMatch("s", word) for word in words)
    return StatementComparison(matches, ("x",) * extra, (Contradiction("because", "a", "b"),) * conflicts)


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (found("exact"), 1.0),
        (found("semantic"), 0.8 / 1.2),
        (found("partial"), 0.4 / 1.2),
        (found("missing"), 0.0),
        (found("exact", "missing"), (1.2 - 0.15) / 2.4),
        (found("exact", "semantic", "partial", "missing"), (1.2 + 0.8 + 0.4 - 0.15) / 4.8),
        (found("exact", extra=1), 0.95),
        (found("exact", extra=4), 0.8),
        (found("exact", extra=40), 0.8),
        (found("exact", "exact", conflicts=1), 0.0),
    ],
)
def test_the_formula_on_small_cases(comparison: StatementComparison, expected: float):
    assert AnswerSimilarity().similarity(comparison) == pytest.approx(expected)


def test_every_figure_counts():
    scorer = AnswerSimilarity(semantic=0.5, exact_bonus=0.5, missing=0.3, contradiction=0.1, extra=0.02)
    value = scorer.similarity(found("exact", "semantic", "exact", "missing", extra=2, conflicts=1))
    assert value == pytest.approx((1.5 + 0.5 + 1.5 - 0.3) / 6 - 0.1 - 0.04)


def test_without_a_bonus_other_words_can_count_in_full():
    assert AnswerSimilarity(exact_bonus=0, semantic=1).similarity(found("semantic", "exact")) == 1


@pytest.mark.parametrize(
    ("scorer", "sample", "replies", "value", "reason"),
    [
        (
            AnswerSimilarity(contradiction=0.1, scale=10),
            SAMPLE,
            [SAID, WANTED, compared("exact", "missing", extra=["She liked tea."], conflicts=1)],
            10 * (1.05 / 2.4 - 0.1 - 0.05),
            "of 2 statements of the reference 1 exact, 1 missing; missing: “It was in 1843.”; "
            "contradicted: “in 1843.”; beyond the reference: “She liked tea.”.",
        ),
        (OPTIONAL, Sample(output="a"), [], 0, "There is no reference to compare with."),
        (OPTIONAL, Sample(output="a", reference=" "), [], 0, "There is no reference to compare with."),
    ],
)
def test_the_reason_names_what_is_missing_contradicted_and_beyond(
    scorer: AnswerSimilarity, sample: Sample, replies: list[Any], value: float, reason: str
):
    score = score_of(scorer, sample, replies)
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_the_answer_and_the_reference_are_divided_and_then_compared():
    record, judge = record_of(AnswerSimilarity(), SAMPLE, [SAID, WANTED, compared("exact", "missing")])
    assert judge.asked == [
        ListStatements(answer=SAMPLE.output or ""),
        ListStatements(answer=SAMPLE.reference or ""),
        CompareStatements(reference=tuple(WANTED["statements"]), answer=tuple(SAID["statements"])),
    ]
    assert [one["match"] for one in record.to_dict()["evidence"]["matches"]] == ["exact", "missing"]


def test_an_answer_without_statements_is_compared_all_the_same():
    assert score_of(AnswerSimilarity(), SAMPLE, [statements(), WANTED, compared("missing", "missing")]).value == 0

"""The choice that an answer to a multiple-choice question makes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import checks
from evalstone.errors import ConfigError
from evalstone.scorers.checks.multiple_choice import choice_in
from evalstone.types import Sample, Score
from tests.fakes import outcome_of, score_of


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "b",
        " (b). ",
        "**B**",
        "B.",
        "The answer is B",
        "the correct answer is: (b).",
        "**Answer:** B",
        "Answer - B",
        "Final answer:\nB",
        "answer: option B because it fits",
        "The answer is $\\boxed{\\text{B}}$.",
        "\\boxed{B}",
        "Option A is wrong, so option B.",
        "Option B fits best. Option A is incorrect.",
        "I think (B) is the correct answer, not (A).",
        "A is tempting. But B is correct.",
        "B) Paris",
        "B. Paris is the capital. A would be wrong.",
        "(B) Paris",
        "b) Paris",
        "B: Paris",
        "It has to be (B), since (B) alone fits.",
        "First I thought that the answer is A. The answer is B.",
        "Let me think.\n\nB",
        "Choice [B]",
        "Antwort: B",
        '{"answer": "B"}',
        "B is the answer.",
        "I would pick B.",
        "<answer>B</answer>",
        "A passt nicht.\n答案：(B)。",
        "答案是B。",
        "所以选B，因为它最好",
        "正解はBです",
        "정답은 B",
        "ANSWER：Ｂ",
        "Ｂ",
        "ANSWER: b",
        "the answer is b.",
        "Die Antwort ist B.",
        "A: wrong. B: right. So B.",
        "Therefore, it must be (B).",
        "Answer: A\nWait, actually B.",
        "The answer is A. Or rather, B.",
        "A) Paris\nB) Rome\n\nB",
        "(A) 5 (B) 6\nB",
        "(B) Paris, not (C) Rome",
        "(B) because (C) is too big",
        "(B) 5 (D) 7",
        "(B) 5, which solves it. The team (C) lost.",
        "I don't think the answer is A. The answer is B.",
        "I am not sure, but the answer is B",
        "There is no doubt that the answer is B",
        "It's not A, so the answer is B",
        "The answer is B, A is wrong.",
        "Answer: B or B",
        "A, or B? I would pick B",
        # What is said of other options after the answer.
        "The answer is B. Option A is too small.",
        "The correct answer is B. Here's why the others are wrong:\n- Option A: too small\n- Option C: too big",
        "B\n\nOption A is too small. Option C is too big.",
        "Answer: B\nUnlike option A, it fits.",
        # A negation that is about something else.
        "Because 4 is not odd the correct answer is B",
        "If x is not zero then the answer is B",
        "The option that is NOT a mammal is B.",
        "Without a doubt the answer is B",
        "The answer is not A, it is B.",
        "I think it's B.",
        "I would go with B.",
        "The answer is most likely B.",
        "The answer is:\n\n**B. Paris**",
        "\\boxed{B. 12}",
        "That leaves B.",
        "B seems correct.",
        "The answer is A? No, it's B.",
        "Die Antwort ist nicht A, sondern B.",
        "Die richtige Antwort lautet B.",
        "B ist richtig.",
        "La réponse correcte est la B.",
        "La respuesta correcta es B",
        "A alternativa correta é B",
        "La risposta è la B",
        "Правильный ответ — B",
        "Het antwoord is B",
        "Jawabannya adalah B",
        "Đáp án đúng là B",
        "सही उत्तर B है",
        "【答案】B",
        "A选项错误，B选项正确",
        "正解はAではなくBです",
    ],
)
def test_a_choice_is_read_however_it_is_stated(answer: str):
    assert choice_in(answer, "ABCD") == "B"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " ",
        "A dog runs.",
        "The answer is A dog",
        "I am not sure.",
        "Answer: I don't know",
        "I don't think the answer is B.",
        "I doubt that the correct answer is B",
        "The answer is neither option A",
        "Answer: B or C",
        "The answer is (B) and (C).",
        "答案是B或C",
        "答案不是B",
        "不选B",
        "A, B and C",
        "A: Paris. B: Rome.",
        "A) Paris\nB) Rome",
        "answer: a dog",
        "(A) 5 (B) 6",
        "(A) King of France (B) Queen of Spain (C) neither",
        "A) 5 B) 6",
        "A. Paris B. Rome",
        "(b) five (c) six",
        "The answer is not B",
        "I would not choose B",
        "You can't pick B",
        "(A) or (B)",
        "(A) and (B) are both plausible",
        "A\nB",
        "Paris",
        "The answer is Because",
        "Option A is too small. Option B is too big.",
        "Option B isn't correct",
        "Option B is clearly wrong",
        "Option B can't be right",
        "Option A or B",
        "The answer is B (and also C)",
        "It's not true that the answer is B",
        "Ich glaube nicht, dass die Antwort B ist",
        "答えはBではありません",
        "정답은 B가 아닙니다",
        "选项B不正确",
        "E",
        "(e)",
    ],
)
def test_what_makes_no_single_choice_has_none(answer: str):
    assert choice_in(answer, "ABCD") is None


def test_the_labels_are_a_parameter():
    assert choice_in("The answer is (3).", "1234") == "3"
    assert choice_in("Answer: 2", "1234") == "2"
    assert choice_in("Answer: 2.5", "1234") is None
    assert choice_in("The answer is J.", "ABCDEFGHIJ") == "J"


def test_the_score_compares_choices_and_the_evidence_has_both():
    scorer = checks.choice()
    assert score_of(scorer, Sample(output="The answer is (b).", reference="B) Paris"), []).value == 1
    wrong = score_of(scorer, Sample(output="A", reference="B"), [])
    assert (wrong.value, wrong.evidence.answer, wrong.evidence.expected) == (0, "A", "B")
    assert score_of(checks.choice("B"), Sample(output=""), []).value == 0


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"letters": "abc"}, "letters must be different capital letters from A to Z, or different digits"),
        ({"letters": "AAB"}, "letters must be different"),
        ({"letters": "A1"}, "letters must be different"),
        ({"letters": ""}, "letters must be different"),
        ({"letters": 4}, "letters must be different"),
        ({"expected": "Z", "letters": "AB"}, "expected must be one of AB, not 'Z'"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"choice: {told}"):
        checks.choice(**parameters)


@given(st.text(max_size=80), st.sampled_from("ABCD"))
def test_any_answer_has_a_score(output: str, expected: str):
    outcome = outcome_of(checks.choice(expected, letters="ABCD"), Sample(output=output), [])
    assert isinstance(outcome, Score)
    assert outcome.value in (0, 1)


@given(st.text(max_size=80), st.sampled_from("ABCD"))
def test_a_statement_at_the_end_decides(before: str, letter: str):
    assert choice_in(f"{before}\n\nThe answer is ({letter}).", "ABCD") == letter


@pytest.mark.slow
def test_long_texts_take_linear_time():
    started = time.process_time()
    for text in (
        "answer is " * 20_000,
        " " * 200_000,
        "(" * 200_000,
        "A\n" * 100_000,
        "answer" + " \n" * 80_000,
        "so A, " * 40_000,
    ):
        choice_in(text, "ABCD")
    assert time.process_time() - started < 20

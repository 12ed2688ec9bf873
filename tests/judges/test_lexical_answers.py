"""Answers beside questions and references, by the lexical judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.judges.lexical import LexicalJudge
from evalstone.questions import JudgeStatements, ListStatements, RatePassages
from evalstone.questions.base import Question
from evalstone.questions.verdict import AgreesWithContext, CorrectAgainstReference

CAPITAL = "What is the capital of France?"
SEVEN = (
    "context_relevance",
    "context_position",
    "context_precision",
    "context_recall",
    "faithfulness",
    "hallucination",
    "answer_relevancy",
)


def value(question: Question[Any]) -> Any:
    return asyncio.run(LexicalJudge().answer(question)).value


def test_it_answers_all_that_the_first_seven_scorers_and_answer_correctness_ask():
    sample = {
        "input": CAPITAL,
        "output": "The capital of France is Paris.",
        "reference": "Paris is the capital of France.",
        "context": ["Paris is the capital of France.", "Whales sing under water."],
    }
    names = (*SEVEN, "answer_correctness", "factual_correctness", "relevancy_check", "fact_check")
    run = evaluate([sample], list(names), judge="lexical", ledger=None)
    assert {name: run[name].n_score for name in names} == dict.fromkeys(names, 1)
    assert run["answer_relevancy"].mean == run["answer_correctness"].mean == run["relevancy_check"].mean == 1
    assert run["hallucination"].mean == 0


@pytest.mark.parametrize(
    ("answer", "statements"), [("- Paris.\n- It is large. It is large.", ("Paris.", "It is large.")), (" ", ())]
)
def test_the_statements_of_an_answer_are_its_sentences(answer: str, statements: tuple[str, ...]):
    assert value(ListStatements(answer=answer)) == statements


@pytest.mark.parametrize(
    ("question", "statement", "told"),
    [
        (CAPITAL, "The capital of France is Paris.", "yes"),
        (CAPITAL, "Paris.", "yes"),
        ("When was Ada born?", "In 1815.", "yes"),
        ("Is Paris in France?", "Yes, it is.", "yes"),
        ("When was Ada born?", "Whales sing under water.", "no"),
        (CAPITAL, "I do not know the answer.", "no"),
    ],
)
def test_a_statement_addresses_a_question_by_its_words_or_by_the_kind_of_thing_it_is(
    question: str, statement: str, told: str
):
    (found,) = value(JudgeStatements(question=question, statements=(statement,)))
    assert found.addresses == told
    assert 0.5 <= found.probability <= 1


def test_a_statement_beside_the_rest_of_an_answer_does_not_fully_address_the_question():
    found = value(JudgeStatements(question=CAPITAL, statements=("The capital of France is Paris.", "Whales sing.")))
    assert [one.addresses for one in found] == ["yes", "partly"]


@pytest.mark.parametrize(
    ("question", "answer", "reference", "verdict"),
    [
        (CAPITAL, "I think it is Paris.", "Paris", "yes"),
        (CAPITAL, "The capital of France is Lyon.", "The capital of France is Paris.", "no"),
        ("How many?", "There are 12 of them.", "There are 15 of them.", "no"),
        ("What of the tower?", "The tower is not open.", "The tower is open.", "no"),
    ],
)
def test_an_answer_is_correct_when_it_says_what_the_reference_adds_to_the_question(
    question: str, answer: str, reference: str, verdict: str
):
    asked = CorrectAgainstReference(question=question, answer=answer, reference=reference)
    assert value(asked).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "reference", "is_named"),
    [
        ("The tower is not open on Mondays.", "The tower is open on Mondays.", True),
        ("Students pay 6 pounds on weekdays.", "No, the cafe does not accept cash.", False),
    ],
)
def test_a_negation_is_the_reason_only_where_answer_and_reference_match_otherwise(
    answer: str, reference: str, is_named: bool
):
    found = value(CorrectAgainstReference(question="What is said here?", answer=answer, reference=reference))
    assert found.verdict == "no"
    assert ("negation" in found.reason) == is_named


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        (CAPITAL, "Paris is the capital of France.", "yes"),
        ("When do whales sing?", "Paris is the capital of France.", "no"),
        (CAPITAL, "The capital of France is Honolulu in Hawaii.", "no"),
    ],
)
def test_an_answer_off_the_question_or_off_the_passages_does_not_agree_with_them(
    question: str, answer: str, verdict: str
):
    passages = ("Paris is the capital of France.",)
    assert value(AgreesWithContext(question=question, answer=answer, context=passages)).verdict == verdict


def test_levels_fall_with_what_a_passage_has_of_the_question():
    asked = RatePassages(
        question="How tall is the Eiffel Tower in Paris?",
        answer="",
        context=("The Eiffel Tower in Paris is 300 metres tall.", "A tower is tall.", "Whales sing."),
    )
    found = value(asked).passages
    assert [one.level for one in found][0::2] == ["high", "none"]
    assert found[1].level in ("medium", "low")
    assert not any(one.used for one in found)

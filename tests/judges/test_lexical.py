from __future__ import annotations

import asyncio
import pickle
import time
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import Sample, ScriptedJudge, audit, evaluate, read_run, write_run
from evalstone.errors import JudgeDeclined
from evalstone.judges.composite import Panel
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.questions import (
    ClaimVerdict,
    FindUsefulPassages,
    ListClaims,
    RatePassages,
    VerifyClaims,
)
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.verdict import AgreesWithContext, ClaimSupported, CorrectAgainstReference
from evalstone.report.notes import sentence_of
from evalstone.types import NO_USAGE, note
from tests.fakes import QUESTION_KINDS, question_of

pytestmark = pytest.mark.slow

A = TypeVar("A")

TOWER = (
    "The Eiffel Tower is 300 metres tall. It was completed in 1889 by the company of Gustave Eiffel.",
    "Paris is the capital of France. About two million people live in the city.",
)

CITIES = "| City | Country |\n|:---|---:|\n| Paris | France |\n| Rome | Italy |"


def asked(question: Question[A]) -> JudgeAnswer[A]:
    return asyncio.run(LexicalJudge().answer(question))


def claims(text: str) -> tuple[str, ...]:
    return asked(ListClaims(text=text)).value


def verdict(claim: str, context: tuple[str, ...] = TOWER) -> ClaimVerdict:
    return asked(VerifyClaims(claims=(claim,), context=context)).value[0]


def test_the_judge_is_a_value_that_says_what_it_cannot_see():
    judge = LexicalJudge()
    assert judge == pickle.loads(pickle.dumps(judge)) == LexicalJudge()
    assert hash(judge) == hash(LexicalJudge())
    assert judge.identity == "lexical@7"
    assert not judge.cacheable
    assert "not meaning" in judge.note


ANSWERED = {
    "list_claims",
    "verify_claims",
    "list_statements",
    "judge_statements",
    "rate_passages",
    "find_useful_passages",
    "claim_supported",
    "agrees_with_context",
    "correct_against_reference",
}
VERDICTS = (
    ClaimSupported(claim="Paris is large.", context=TOWER),
    AgreesWithContext(question="Is it?", answer="Paris is large.", context=TOWER),
    CorrectAgainstReference(question="Is it?", answer="Paris is large.", reference="It is."),
)
QUESTIONS = {
    question.kind: question for question in (*(question_of(kind, "Ada.") for kind in QUESTION_KINDS), *VERDICTS)
}


@pytest.mark.parametrize("kind", sorted(QUESTIONS.keys() - ANSWERED))
def test_a_question_that_words_cannot_answer_is_declined_with_advice(kind: str):
    with pytest.raises(JudgeDeclined, match=f"\\({kind}\\); use a model"):
        asked(QUESTIONS[kind])


@pytest.mark.parametrize("kind", sorted(ANSWERED))
def test_an_answer_is_valid_without_a_call_and_names_its_judge(kind: str):
    answer = asked(QUESTIONS[kind])
    assert answer.judge == LexicalJudge().identity
    assert (answer.reply, answer.usage, answer.cost) == (None, NO_USAGE, 0.0)
    assert answer.probability is None or 0.5 <= answer.probability <= 1
    if (alternatives := answer.alternatives) is not None:
        assert sum(alternatives.values()) == pytest.approx(1)
        assert alternatives[answer.value.verdict] == max(alternatives.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Sure! The tower is 300 metres tall. Would you like more? It opened in 1889. I hope this helps!",
            ["The tower is 300 metres tall.", "It opened in 1889."],
        ),
        ("Paris", ["Paris"]),
        ("It is tall. It is tall.", ["It is tall."]),
        # A lead-in that names the source.
        ("Based on the provided passages, the tower is tall.", ["The tower is tall."]),
        ("Passage 2 mentions that Paris is large.", ["Paris is large."]),
        # A question that tells something.
        ("Yeah, did you know that Paris is large?", ["Paris is large"]),
        ("Have you heard that Paris is large ? Do you know how large? Did you know?", ["Paris is large"]),
        # What is said beside the unknown.
        ("I don't know by whom, but it was built in 1889.", ["it was built in 1889."]),
        ("I'm not sure by whom, but it was built in 1889.", ["it was built in 1889."]),
        ("I am not sure but it was built in 1889.", ["I am not sure but it was built in 1889."]),
        ("The owner is not sure of it.", ["The owner is not sure of it."]),
        # The header of a table.
        (
            f"Cities:\n\n{CITIES}\n\nA | B\n--- | ---\nOslo | Norway\n",
            ["| Paris | France |", "| Rome | Italy |", "Oslo | Norway"],
        ),
        ("Paris | France\nRome | Italy", ["Paris | France", "Rome | Italy"]),
        ("| --- |\nParis is in France.", ["Paris is in France."]),
    ],
)
def test_claims_are_the_sentences_that_assert_something(text: str, expected: list[str]):
    assert list(claims(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?!",
        "```\n---\n```",
        "Unable to answer based on given passages.",
        "The passages do not mention the height of the tower.",
        "I'm sorry, but I cannot answer this question.",
        "I can't tell.",
        "The passages can't answer this.",
        "I don\u2019t know.",
        "The passage doesn\u2019t say.",
        "The height is not mentioned in the provided context.",
        "## The tower",
        "Here are the steps:",
        "How tall is it?",
        "Hello!",
        "I'm not sure.",
        "I’m not sure about that.",
        "I am not entirely certain whether it is open.",
        "I am unsure about it.",
    ],
)
def test_what_asserts_nothing_makes_no_claim(text: str):
    assert claims(text) == ()


def test_a_claim_in_the_words_of_a_passage_is_supported_and_the_reason_quotes_it():
    found = verdict("The Eiffel Tower was completed in 1889.")
    assert found.verdict == "supported"
    assert found.passages == (1,)
    assert "completed in 1889" in found.reason


def test_a_number_in_no_passage_makes_a_claim_unsupported():
    found = verdict("The company of Gustave Eiffel has 4711 workers.")
    assert found.verdict == "not_mentioned"
    assert found.passages == ()
    assert "4711" in found.reason


def test_another_number_in_the_same_sentence_contradicts():
    found = verdict("The Eiffel Tower is 320 metres tall.")
    assert found.verdict == "contradicted"
    assert found.passages == (1,)
    assert "300" in found.reason
    assert "320" in found.reason


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The Eiffel Tower is three hundred metres tall.", "supported"),
        ("Paris is not the capital of France.", "contradicted"),
    ],
)
def test_a_number_in_words_is_the_same_number_and_a_negation_contradicts(claim: str, expected: str):
    assert verdict(claim).verdict == expected


def test_a_name_in_no_passage_makes_a_short_claim_unsupported_and_is_named():
    found = verdict("Paris is the capital of Germany.")
    assert found.verdict == "not_mentioned"
    assert "Germany" in found.reason


def test_a_claim_that_shares_no_word_is_not_mentioned():
    assert verdict("Whales sing.").verdict == "not_mentioned"


@pytest.mark.parametrize("context", [(), ("",), ("...",)])
def test_without_text_in_the_passages_nothing_is_supported(context: tuple[str, ...]):
    found = verdict("Paris is large.", context)
    assert found.verdict == "not_mentioned"
    assert "no text" in found.reason


def test_verdicts_come_in_the_order_of_the_claims_with_a_probability():
    given = ("Whales sing.", "Paris is the capital of France.")
    answer = asked(VerifyClaims(claims=given, context=TOWER))
    assert [one.claim for one in answer.value] == list(given)
    assert answer.probability is not None
    assert 0.5 <= answer.probability <= 1
    assert asked(VerifyClaims(claims=(), context=TOWER)).value == ()


def test_the_same_question_has_the_same_answer_each_time():
    question = VerifyClaims(claims=("Paris is the capital of France, a city by the sea.",), context=TOWER)
    assert asked(question).value == asked(question).value


def test_the_passage_with_the_words_of_the_question_is_rated_highest():
    ratings = asked(
        RatePassages(
            question="How tall is the Eiffel Tower?",
            answer="The Eiffel Tower is 300 metres tall.",
            context=(*TOWER, "Whales sing under water."),
        )
    ).value
    assert [one.level for one in ratings.passages] == ["high", "none", "none"]
    assert [one.used for one in ratings.passages] == [True, False, False]
    assert [one.passage for one in ratings.passages] == [1, 2, 3]
    assert ratings.missing == ()


def test_a_passage_is_useful_when_the_answer_takes_from_it():
    found = asked(
        FindUsefulPassages(question="What is the capital?", answer="The capital of France is Paris.", context=TOWER)
    ).value
    assert [one.useful for one in found] == [False, True]


def test_an_empty_answer_uses_no_passage():
    found = asked(FindUsefulPassages(question="", answer="", context=TOWER)).value
    assert not any(one.useful for one in found)


def test_a_fence_or_a_control_character_in_judged_text_stays_out_of_reasons():
    found = verdict("Paris is the capital.", ("<</context 0123>>\x00\x1b Paris is the capital\nof France.",))
    assert found.verdict == "supported"
    assert "\x00" not in found.reason
    assert "\n" not in found.reason


@given(st.text(), st.lists(st.text(), max_size=3).map(tuple))
def test_any_text_can_be_judged(text: str, context: tuple[str, ...]):
    found = claims(text)
    verified = asked(VerifyClaims(claims=(*found, text), context=context)).value
    rated = asked(RatePassages(question=text, answer=text, context=context)).value
    useful = asked(FindUsefulPassages(question=text, answer=text, context=context)).value
    assert len(verified) == len(found) + 1
    assert len(rated.passages) == len(useful) == len(context)


LONG = {
    "many sentences of the same words": "alpha beta gamma delta. " * 4_000,
    "many sentences with one new word each": " ".join(f"alpha beta gamma x{n}." for n in range(4_000)),
    "one sentence without an end": "word other " * 9_000,
    "one word": "x" * 100_000,
    "marks": "." * 100_000,
}


@pytest.mark.parametrize("context", LONG)
@pytest.mark.parametrize("output", LONG)
def test_a_long_output_against_a_long_passage_takes_seconds_at_most(output: str, context: str):
    started = time.process_time()
    found = claims(LONG[output])
    asked(VerifyClaims(claims=found, context=(LONG[context],)))
    asked(RatePassages(question="alpha?", answer=LONG[output], context=(LONG[context],)))
    assert time.process_time() - started < 10


def test_a_claim_of_ten_thousand_words_is_judged():
    claim = " ".join(f"word{n}" for n in range(10_000))
    assert verdict(claim).verdict == "not_mentioned"
    assert len(verdict(claim).reason) < 1000


GERMAN = Sample(output="Die Garantie gilt 24 Monate.", context=["Alle Geräte haben eine Garantie von 24 Monaten."])
CHINESE = Sample(output="您可以在收货后30天内退货。", context=["商品可在收货后30天内退货。"])
ENGLISH = Sample(output="The tower is tall.", context=TOWER)


def test_samples_that_are_not_in_english_are_counted_in_a_note_of_the_run(tmp_path: Path):
    samples = [GERMAN, CHINESE, ENGLISH]
    run = evaluate(samples, "faithfulness", judge="lexical", ledger=None)
    caution = note("not_in_english", "warning", samples=2, of=3)
    assert LexicalJudge().cautions(iter(samples)) == run.cautions == (caution,)
    assert caution in run.notes
    assert sentence_of(caution) in [*run.view().warnings]
    assert read_run(write_run(run, tmp_path)).notes == run.notes
    assert evaluate([ENGLISH], "faithfulness", judge="lexical", ledger=None).cautions == ()


def test_a_panel_and_a_log_pass_on_the_caution_of_their_judges(tmp_path: Path):
    for judge in (Panel(LexicalJudge(), ScriptedJudge([])), LoggingJudge(LexicalJudge(), tmp_path / "log.jsonl")):
        samples = [Sample(output="Die Garantie gilt nicht mehr und wird nicht verlängert.")]
        assert judge.cautions(iter(samples)) == (note("not_in_english", "warning", samples=1, of=1),)


def test_an_audit_has_the_caution_of_its_judge():
    report = audit([GERMAN, CHINESE], "faithfulness", judge="lexical", ledger=None)
    (caution,) = report.cautions
    assert (caution.kind, caution["samples"] > 2) == ("not_in_english", True)  # perturbed ones count
    assert caution.to_dict() in report.to_dict()["notes"]


def test_a_judge_that_was_not_asked_has_no_caution():
    run = evaluate([GERMAN], "contains(expected=Monate)", judge="lexical", ledger=None)
    assert (run.judge_note, run.cautions) == ("", ())

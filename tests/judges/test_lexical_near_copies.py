"""Claims that equal a sentence but for a negation, a name or a unit."""

from __future__ import annotations

import asyncio

import pytest

from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.features import evidence
from evalstone.judges.lexical.model import shipped
from evalstone.judges.lexical.passages import prepared
from evalstone.questions import ClaimVerdict, VerifyClaims
from evalstone.questions.verdict import ClaimSupported


def verdict(claim: str, *context: str) -> ClaimVerdict:
    return asyncio.run(LexicalJudge().answer(VerifyClaims(claims=(claim,), context=context))).value[0]


def support(response: str, *context: str) -> float:
    choice = asyncio.run(LexicalJudge().answer(ClaimSupported(claim=response, context=context))).value
    assert choice.probability is not None
    return choice.probability


NEGATED = [
    ("Dogs are not allowed.", "Dogs are allowed."),
    ("Visiting hours are from 2 pm to 6 pm. Dogs are not allowed.", "Dogs are allowed."),
    ("Sale items cannot be returned.", "Sale items can be returned."),
    ("Sale items can not be returned.", "Sale items can be returned."),
    ("Sale items can't be returned.", "Sale items can be returned."),
    ("The museum doesn't open on Mondays.", "The museum opens on Mondays."),
    ("The shop doesn’t take cards.", "The shop takes cards."),
    ("The drug is not safe for children under 12.", "The drug is safe for children under 12."),
    ("The drug is not considered safe.", "The drug is considered safe."),
    ("No refunds are given for digital goods.", "Refunds are given for digital goods."),
    ("Dogs are never allowed in the park.", "Dogs are allowed in the park."),
    ("Entry is not included in the price.", "Entry is included in the price."),
]


@pytest.mark.parametrize(("one", "other"), NEGATED)
def test_a_sentence_and_its_negation_contradict_each_other(one: str, other: str):
    assert verdict(other, one).verdict == "contradicted"
    assert support(other, one) <= 0.2
    if one.count(".") == 1:
        assert verdict(one, other).verdict == "contradicted"
        assert support(one, other) <= 0.2
        assert verdict(one, one).verdict == "supported"


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Dogs are not allowed.", "Dogs aren't allowed."),
        ("Sale items cannot be returned.", "Sale items can't be returned."),
        ("No refunds are given for digital goods.", "Refunds are not given for digital goods."),
        ("Dogs are allowed in the park.", "No, dogs are allowed in the park."),
        ("No, Paris is the capital of France.", "Paris is the capital of France."),
        ("The museum is not only open on Mondays.", "The museum is open on Mondays."),
        ("Dogs are not allowed in the museum. Dogs are allowed in the garden.", "Dogs are allowed in the garden."),
        ("Dogs are allowed in the garden but not in the museum.", "Dogs are allowed in the garden."),
    ],
)
def test_a_negation_of_the_same_or_of_something_else_contradicts_nothing(source: str, claim: str):
    assert verdict(claim, source).verdict == "supported"
    assert support(claim, source) > 0.5


@pytest.mark.parametrize(
    ("source", "claim", "reason"),
    [
        ("The Eiffel Tower is in Paris.", "The Eiffel Tower is in Berlin.", "has Paris where the claim has Berlin"),
        ("Paris is the capital of France.", "Lyon is the capital of France.", "has Paris where the claim has Lyon"),
        ("The CEO is Ann Lee.", "The CEO is Bob Ray.", "has Ann, Lee where the claim has Bob, Ray"),
        (
            "The company was founded by Steve Jobs in California in 1976.",
            "The company was founded by Steve Jobs in Texas in 1976.",
            "has California where the claim has Texas",
        ),
        (
            "Returns are accepted within 5 days.",
            "Returns are accepted within five weeks.",
            "has 5 days where the claim has 5 weeks",
        ),
        ("The tower is 330 m tall.", "The tower is 330 feet tall.", "has 330 meters where the claim has 330 feet"),
    ],
)
def test_another_name_or_unit_in_the_same_sentence_is_not_supported(source: str, claim: str, reason: str):
    found = verdict(claim, source)
    assert found.verdict == "not_mentioned"
    assert reason in found.reason
    assert support(claim, source) <= 0.2


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("He was born in the United Kingdom.", "He was born in the UK."),
        ("The meeting is on Monday.", "The meeting is on Mon."),
        ("He plays for the Italian team.", "He plays for the Italy team."),
        ("The bill was signed by Joe Biden.", "The bill was signed by President Biden."),
        ("The tower is in Paris.", "The tower is not in Berlin."),
        ("The tower is not in Paris.", "The tower is in Berlin."),
        ("The tower is in Paris.", "The tower is in Paris, France."),
        ("The tower is in Paris, near the river, and was built by his company.", "The tower is in Berlin."),
        ("The tower is in Paris.", "The tower is in Berlin, near the river, and was built by his company."),
        ("Running is healthy.", "Jogging is healthy."),
        ("Everyone is welcome.", "Everybody is welcome."),
        ("Doctors recommend rest.", "Physicians recommend rest."),
        ("Mars has three moons.", "Mars has three satellites."),
        ("The trial lasted 5 days.", "The trial had 5 patients."),
        ("Wait 30 min, or 30 hours if it rains.", "Wait 30 minutes."),
    ],
)
def test_what_may_be_another_word_for_the_same_is_no_swap(source: str, claim: str):
    assert evidence(claim, prepared((source,), shipped().lexicon)).swap is None


def test_a_name_that_another_passage_has_is_no_swap():
    passages = prepared(("The tower is in Paris.", "He moved to Berlin."), shipped().lexicon)
    assert evidence("The tower is in Berlin.", passages).swap is None

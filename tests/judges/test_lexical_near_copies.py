"""Claims that equal a sentence but for a negation, a name, a unit or an opposite."""

from __future__ import annotations

import asyncio

import pytest

from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.classifier import differs
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
    ("Not all members voted for the proposal.", "All members voted for the proposal."),
    ("The drug hardly reduces pain.", "The drug reduces pain."),
    ("Tickets are non-refundable.", "Tickets are refundable."),
    ("The shop no longer accepts cash.", "The shop still accepts cash."),
    ("The hotel lacks a pool.", "The hotel has a pool."),
    ("He is unable to walk.", "He is able to walk."),
    ("You dont need a visa.", "You need a visa."),
    ("The shop doesn`t open on Mondays.", "The shop opens on Mondays."),
    ("The shop doesnʼt open on Mondays.", "The shop opens on Mondays."),
    ("Dogs are n\u00adot allowed.", "Dogs are allowed."),
    ("You can't enter without a ticket.", "You can enter without a ticket."),
    ("You can't enter without a ticket.", "You can't enter with a ticket."),
    ("Nobody was injured in the accident.", "Somebody was injured in the accident."),
    ("The temperature is -5 degrees.", "The temperature is 5 degrees."),
    ("Are dogs allowed? No.", "Dogs are allowed."),
    ("Is breakfast included? No, it costs 10 euros.", "Breakfast is included."),
    ("Q: Are dogs allowed?\nA: No.\nQ: Is there parking?\nA: Yes.", "Dogs are allowed."),
    ("**Question: Are dogs allowed?**\n**Answer:** No!", "Dogs are allowed."),
    ("Hunde sind nicht erlaubt.", "Hunde sind erlaubt."),
    ("Los perros no están permitidos.", "Los perros están permitidos."),
    ("Les chiens ne sont pas autorisés.", "Les chiens sont autorisés."),
    ("Собаки не допускаются.", "Собаки допускаются."),
    ("Hundar är inte tillåtna.", "Hundar är tillåtna."),
    ("Hunde er ikke tilladt.", "Hunde er tilladt."),
    ("개는 공원에 들어갈 수 없습니다.", "개는 공원에 들어갈 수 있습니다."),
    ("कुत्तों को अनुमति नहीं है।", "कुत्तों को अनुमति है।"),
    ("الكلاب غير مسموح بها.", "الكلاب مسموح بها."),
]


@pytest.mark.parametrize(("one", "other"), NEGATED)
def test_a_sentence_and_its_negation_contradict_each_other(one: str, other: str):
    assert verdict(other, one).verdict == "contradicted"
    assert support(other, one) <= 0.2
    if one.count(".") == 1 and "?" not in one:
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
        ("Tickets are non-refundable.", "Tickets are not refundable."),
        ("You dont need a visa.", "You don't need a visa."),
        ("The shop no longer accepts cash.", "The shop does not accept cash anymore."),
        ("The hotel lacks a pool.", "The hotel has no pool."),
        ("No dogs and no cats are allowed.", "No dogs or cats are allowed."),
        ("You can't smoke here, you cannot drink here.", "You can't smoke or drink here."),
        ("The water is not safe and never clean.", "The water is not safe or clean."),
        ("Neither dogs nor cats are allowed.", "Dogs and cats are not allowed."),
        ("Never open links, never click on links in emails.", "Never open or click on links in emails."),
        ("The box contains nothing but gold.", "The box contains gold."),
        ("No more than 5 people may enter.", "At most 5 people may enter."),
        ("No fewer than 100 people died.", "At least 100 people died."),
        ("You can not enter without a ticket.", "You can enter with a ticket."),
        ("You can enter with a ticket.", "You can not enter without a ticket."),
        ("The temperature is -5 degrees.", "The temperature is minus 5 degrees."),
        ("See pages 5 - 10 of the report.", "See pages 5-10 of the report."),
        ("Are dogs allowed? No.", "Dogs are not allowed."),
        ("Are dogs allowed? Yes, in the garden.", "Dogs are allowed."),
        ("Is it far? No, it is near the park.", "It is near the park."),
        ("Who won the race? No one knows who won the race.", "No one knows who won the race."),
        ("Dogs are not allowed. Dogs are allowed.", "Dogs are allowed."),
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
        ("Don't take more than 5 mg.", "Don't take more than 5 g.", "has 5 milligrams where the claim has 5 grams"),
        ("The ticket costs $5.", "The ticket costs €5.", "has 5 dollars where the claim has 5 euros"),
        ("The ticket costs $1.", "The ticket costs 1 euro.", "has 1 dollar where the claim has 1 euro"),
        ("The car goes 100 km/h.", "The car goes 100 mph.", "has 100 kmh where the claim has 100 mph"),
        ("The motor has 10 kW.", "The motor has 10 MW.", "has 10 kilowatts where the claim has 10 megawatts"),
        ("The disk has 500GB.", "The disk has 500TB.", "has 500 gigabytes where the claim has 500 terabytes"),
        ("Take 500 µg daily.", "Take 500 mg daily.", "has 500 micrograms where the claim has 500 milligrams"),
        ("Microsoft acquired GitHub.", "Google acquired GitHub.", "has Microsoft where the claim has Google"),
        ("Einstein won the prize.", "Bohr won the prize.", "has Einstein where the claim has Bohr"),
        ("He works for UNESCO.", "He works for Ukraine.", "has UNESCO where the claim has Ukraine"),
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
        ("He lives in Zürich.", "He lives in Zurich."),
        ("Straßburg is old.", "Strassburg is old."),
        ("Kyiv was attacked.", "Kiev was attacked."),
        ("Muhammad was a prophet.", "Mohammed was a prophet."),
        ("Scientists discovered a planet.", "Researchers discovered a planet."),
        ("Recently retired nurses are welcome.", "Lately retired nurses are welcome."),
        ("It costs £5.", "It costs 5 pounds."),
        ("He paid 5 dollars and 5 cents.", "He paid 5 cents."),
        ("The speed limit is 50 miles per hour.", "The speed limit is 50 mph."),
        ("It was 5 °C.", "It was 5 degrees Celsius."),
        ("Turn left, then right.", "Turn right, then left."),
        ("Take it before or after meals.", "Take it after meals."),
        ("Most students passed.", "Some students passed."),
        ("All students passed.", "Most students passed."),
        ("You must pay.", "You may have to pay."),
        ("Store flammable liquids outside.", "Store inflammable liquids outside."),
        ("The law is in force.", "The law is enforced."),
        ("He is unable to walk.", "He is not able to walk."),
        ("He is unable to walk.", "He can't walk."),
        ("They do it in Rome.", "They undo it in Rome."),
        ("He was able to walk.", "He was stable to walk."),
        ("The company raised prices.", "The company increased prices."),
        ("The device is safe.", "The device is not unsafe."),
        ("The lights are on, the heating is off.", "The heating is off."),
    ],
)
def test_what_may_be_another_word_for_the_same_is_no_swap(source: str, claim: str):
    assert evidence(claim, prepared((source,), shipped().lexicon)).swap is None


def test_a_name_that_another_passage_has_is_no_swap():
    source, claim = ("The tower is in Paris.", "He moved to Berlin."), "The tower is in Berlin."
    assert evidence(claim, prepared(source[:1], shipped().lexicon)).swap is not None
    assert evidence(claim, prepared(source, shipped().lexicon)).swap is None


OPPOSED = [
    ("Children under 12 enter free.", "Children over 12 enter free.", "has under where the claim has over"),
    ("At least 5 people attended.", "Fewer than 5 people attended.", "has least where the claim has fewer"),
    ("More than 100 people died.", "Less than 100 people died.", "has more where the claim has less"),
    ("No more than 5 people may enter.", "More than 5 people may enter.", "has most where the claim has more"),
    ("Take the pill before meals.", "Take the pill after meals.", "has before where the claim has after"),
    ("Sales went up by 5%.", "Sales went down by 5%.", "has up where the claim has down"),
    ("Profits rose by 5%.", "Profits fell by 5%.", "has rose where the claim has fell"),
    ("The door is open.", "The door is closed.", "has open where the claim has closed"),
    ("The tap is on.", "The tap is off.", "has on where the claim has off"),
    ("Set debug: false in the file.", "Set debug: true in the file.", "has false where the claim has true"),
    ("It is possible to cancel the order.", "It is impossible to cancel the order.", "has possible where"),
    ("The contract is invalid.", "The contract is valid.", "has invalid where the claim has valid"),
    ("The water is safe.", "The water is unsafe.", "has safe where the claim has unsafe"),
    ("Some students passed the exam.", "All students passed the exam.", "has some where the claim has all"),
    ("You may pay in advance.", "You must pay in advance.", "has may where the claim has must"),
    ("She lives in North Korea.", "She lives in South Korea.", "has north where the claim has south"),
    ("Store at 20 °C.", "Store at 20 °F.", "has celsius where the claim has fahrenheit"),
    ("Do not use it before meals.", "Do not use it after meals.", "has before where the claim has after"),
]


@pytest.mark.parametrize(("source", "claim", "reason"), OPPOSED)
def test_an_opposite_in_the_same_sentence_is_not_supported(source: str, claim: str, reason: str):
    found = verdict(claim, source)
    assert found.verdict == "not_mentioned"
    assert reason in found.reason
    assert support(claim, source) <= 0.2
    assert verdict(source, source).verdict == "supported"


def test_of_two_equal_sentences_the_one_that_agrees_with_the_claim_counts():
    for context in (("Sales went up.", "Sales went down."), ("Sales went down.", "Sales went up.")):
        passages = prepared(context, shipped().lexicon)
        for claim in context:
            found = evidence(claim, passages)
            assert found.best is not None
            assert found.best.text == claim
            assert not differs(found)
    passages = prepared(("Sales went up.", "Sales never went down.", "Sales went up again."), shipped().lexicon)
    assert differs(evidence("Sales went down.", passages))

"""Votes, counted by hand."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.json import to_jsonable
from evalstone._core.prompts import Prompt
from evalstone.errors import JudgeDeclined
from evalstone.judges.voting import (
    Vote,
    VoteConfig,
    VoteResult,
    entropy,
    settle,
    weighted_together,
)
from evalstone.questions import ClaimVerdict, Grade, YesNoVerdict
from evalstone.questions.alignment import AlignmentPart, AlignmentParts
from evalstone.questions.base import is_votable
from evalstone.questions.custom import AnswerAs, AnswerForm, Choose, Chosen, GiveNumber
from evalstone.questions.harm import ToxicityVerdict
from evalstone.questions.rating import RateByCriterion, Rating
from evalstone.questions.relevance import PassageRating, PassageRatings
from evalstone.questions.reply import label_orders
from evalstone.questions.statements import Contradiction, StatementComparison, StatementMatch
from tests.fakes import QUESTION_KINDS, question_of

PROMPT = Prompt("", "{{text}}")
VOTES: tuple[Vote, ...] = get_args(Vote)
GIVEN = (("text", "x"),)
OWN = (
    Choose(values=GIVEN, prompt=PROMPT, choices=("good", "bad")),
    GiveNumber(values=GIVEN, prompt=PROMPT, high=10.0),
    RateByCriterion(values=GIVEN, prompt=PROMPT, levels=5),
    AnswerAs(values=GIVEN, prompt=PROMPT, answer=AnswerForm(bool)),
    AnswerAs(values=GIVEN, prompt=PROMPT, answer=AnswerForm(list[str])),
)


def voted(*values: Any, vote: Vote = "majority", sure: tuple[float | None, ...] | None = None) -> VoteResult[Any]:
    return settle(values, VoteConfig(vote, sure or (None,) * len(values)))


def said(*words: str) -> tuple[ClaimVerdict, ...]:
    return tuple(
        ClaimVerdict(f"c{number}", word, (number,), f"{word} because")  # pyright: ignore[reportArgumentType]
        for number, word in enumerate(words, start=1)
    )


def words(settled: VoteResult[Any]) -> list[str]:
    return [verdict.verdict for verdict in settled.value]


def test_claims_are_voted_on_one_by_one() -> None:
    found = voted(
        said("supported", "contradicted"), said("supported", "not_mentioned"), said("contradicted", "not_mentioned")
    )
    assert words(found) == ["supported", "not_mentioned"]
    first, second = found.verdicts
    assert (first.at, first.votes, first.agreement) == ("1.verdict", {"contradicted": 1, "supported": 2}, 2 / 3)
    assert first.entropy == pytest.approx(-(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3))
    assert second.at == "2.verdict"


def test_reason_and_citations_come_from_one_judge_who_gave_the_verdict() -> None:
    mine = ClaimVerdict("c", "supported", (3,), "mine")
    found = voted((ClaimVerdict("c", "contradicted", (1,), "other"),), (mine,), (ClaimVerdict("c", "supported"),))
    assert found.value == (mine,)


def test_a_tie_of_two_goes_to_the_less_favourable_and_of_three_to_the_middle() -> None:
    assert words(voted(said("supported"), said("contradicted"))) == ["contradicted"]
    assert words(voted(said("supported"), said("not_mentioned"))) == ["not_mentioned"]
    assert words(voted(said("supported"), said("contradicted"), said("not_mentioned"))) == ["not_mentioned"]


def test_unanimous_takes_the_least_favourable_verdict_that_anybody_gave() -> None:
    found = voted(said("supported"), said("supported"), said("not_mentioned"), vote="unanimous")
    assert words(found) == ["not_mentioned"]
    assert found.verdicts[0].agreement == 1 / 3
    assert words(voted(said("supported"), said("supported"), vote="unanimous")) == ["supported"]


def test_the_favourable_answer_to_is_it_toxic_is_no() -> None:
    yes, no = ToxicityVerdict("p", True), ToxicityVerdict("p", False)
    assert voted((yes,), (no,), vote="unanimous").value == (yes,)
    assert voted((yes,), (no,)).value == (yes,)
    assert voted((yes,), (no,), (no,)).value == (no,)


def test_mean_weighs_each_verdict_by_how_sure_its_judge_is() -> None:
    yes, no = YesNoVerdict("yes"), YesNoVerdict("no")
    # yes: (0.55 + 0.2 / 2) / 2 of two judges; no: (0.45 / 2 + 0.8) / 2
    assert voted(yes, no, vote="mean", sure=(0.55, 0.8)).value.verdict == "no"
    assert voted(yes, no, vote="mean", sure=(0.9, 0.8)).value.verdict == "yes"
    # Two who are hardly sure are outweighed by one who is: yes (0.4 + 0.4 + 0.02) / 3, no (0.3 + 0.3 + 0.96) / 3.
    assert voted(yes, yes, no, vote="mean", sure=(0.4, 0.4, 0.96)).value.verdict == "no"
    assert voted(yes, yes, no, vote="mean").value.verdict == "yes"


def test_a_judge_may_be_sure_of_each_item_by_itself_and_the_vote_says_how_sure_it_is() -> None:
    def verdicts(*given: tuple[Any, float]) -> tuple[ClaimVerdict, ...]:
        return tuple(ClaimVerdict(f"c{n}", word, probability=sure) for n, (word, sure) in enumerate(given, 1))

    one = verdicts(("supported", 0.6), ("supported", 0.9))
    other = verdicts(("contradicted", 0.7), ("contradicted", 0.7))
    # What a judge leaves over goes to the two other words: contradicted (0.7 + 0.2) / 2, supported (0.9 + 0.15) / 2.
    found = voted(one, other, vote="mean").value
    assert [item.verdict for item in found] == ["contradicted", "supported"]
    assert [item.probability for item in found] == pytest.approx([0.45, 0.525])
    assert [item.probability for item in voted(one, one, other).value] == pytest.approx([0.45, 0.65])
    assert voted(said("supported"), one[:1]).value[0].probability == 0.6


@dataclass(frozen=True)
class Forecast:
    """An answer type with a probability of its own, which is part of the reply."""

    verdict: Literal["rain", "sun"]
    probability: float
    confidence: float


def test_a_probability_that_is_part_of_the_reply_is_a_number_like_others() -> None:
    found = voted(Forecast("rain", 0.75, 0.5), Forecast("rain", 0.25, 0.5), Forecast("sun", 0.0, 0.5), vote="mean")
    assert (found.value.probability, found.value.confidence) == (pytest.approx(1 / 3), 0.5)


@pytest.mark.parametrize(("vote", "probability"), [("majority", 0.8), ("mean", 0.65), ("unanimous", 0.15)])
def test_the_probability_of_a_yes_is_voted_on_as_a_number(vote: Vote, probability: float) -> None:
    choices = YesNoVerdict("yes", "", 0.8), YesNoVerdict("no", "", 0.15), YesNoVerdict("yes")
    assert voted(*choices, vote=vote).value.probability == pytest.approx(probability)
    assert voted(YesNoVerdict("yes"), YesNoVerdict("no"), vote=vote).value.probability is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.sampled_from(VOTES))
def test_the_probability_of_a_yes_is_on_the_side_of_the_verdict(given_yes: list[float], vote: Vote) -> None:
    choices = [YesNoVerdict("yes" if yes > 0.5 else "no", "", yes) for yes in given_yes]
    sure = tuple(max(yes, 1 - yes) for yes in given_yes)
    found = voted(*choices, vote=vote, sure=sure).value
    assert found.probability is not None
    if found.probability != pytest.approx(0.5):
        assert (found.verdict == "yes") == (found.probability > 0.5)


@pytest.mark.parametrize(("vote", "score"), [("majority", 0.5), ("mean", 0.6), ("unanimous", 0.3)])
def test_numbers_have_a_median_a_mean_and_a_lowest(vote: Vote, score: float) -> None:
    found = voted(Grade(0.5, "b"), Grade(1.0, "c"), Grade(0.3, "a"), vote=vote)
    assert found.value.score == pytest.approx(score)
    (number,) = found.verdicts
    assert (number.agreement, number.entropy) == (None, None)
    assert number.deviation == pytest.approx(math.sqrt(((0.5 - 0.6) ** 2 + 0.4**2 + 0.3**2) / 3))


def test_the_nearest_number_speaks() -> None:
    assert voted(Grade(0.1, "a"), Grade(0.5, "b"), Grade(1.0, "c")).value == Grade(0.5, "b")


@pytest.mark.parametrize(
    ("vote", "score"),
    [("majority", 2), ("mean", 3), ("unanimous", 1)],  # of 1, 2, 4, 4: median 2 or 4, mean 2.75
)
def test_marks_stay_whole(vote: Vote, score: int) -> None:
    found = voted(Rating(4), Rating(1), Rating(2), Rating(4), vote=vote)
    assert found.value.score == score
    assert isinstance(found.value.score, int)


def test_half_way_between_two_marks_the_lower_counts() -> None:
    assert voted(Rating(2), Rating(3), vote="mean").value.score == 2


def test_the_probabilities_of_marks_are_averaged_over_the_judges_that_gave_any() -> None:
    found = voted(Rating(2, "", {"2": 0.8, "3": 0.2}), Rating(3, "", {"3": 1.0}), Rating(3))
    assert found.value.probabilities == pytest.approx({"2": 0.4, "3": 0.6})
    assert weighted_together([None, None]) is None


def test_levels_and_use_are_voted_on_apart_and_what_is_missing_comes_from_one_judge() -> None:
    one = PassageRatings((PassageRating(1, "high", True, "a"),), ("x",))
    two = PassageRatings((PassageRating(1, "high", False, "b"),), ("y",))
    three = PassageRatings((PassageRating(1, "low", False, "c"),), ("z",))
    found = voted(one, two, three)
    assert found.value == PassageRatings((PassageRating(1, "high", False, "b"),), ("y",))
    assert [vote.at for vote in found.verdicts] == ["passages.1.level", "passages.1.used"]


def test_parts_within_an_answer_are_voted_on_and_lists_of_a_judges_own_are_not() -> None:
    def alignment(*scores: float) -> AlignmentParts:
        return AlignmentParts(*(AlignmentPart(score, "r", ("l",)) for score in scores))

    found = voted(alignment(1, 1, 1, 0), alignment(0, 1, 0.5, 0.5), vote="mean")
    assert [getattr(found.value, part).score for part in ("intent", "requirements", "completeness")] == [0.5, 1, 0.75]
    one = StatementComparison((StatementMatch("s", "exact"),), ("more",), (Contradiction("r", "a", "b"),))
    two = StatementComparison((StatementMatch("s", "missing"),), (), (Contradiction("q", "c", "d"),))
    assert voted(one, two, two).value == two


def test_lists_that_judges_made_themselves_are_taken_whole_from_the_first() -> None:
    assert voted(("a", "b"), ("c",)).value == ("a", "b")
    one, two = (ToxicityVerdict("p", True),), (ToxicityVerdict("q", False),)
    assert voted(one, two, two).value == one
    assert voted((), one).value == ()
    assert voted("text", "other").verdicts == ()


def test_words_without_an_order_go_to_the_first_of_a_tie_and_must_agree_to_be_unanimous() -> None:
    assert voted(Chosen("b", "r"), Chosen("a")).value == Chosen("b", "r")
    assert voted(Chosen("b"), Chosen("a", "s"), Chosen("a")).value == Chosen("a", "s")
    with pytest.raises(JudgeDeclined, match="on choice: b, a"):
        voted(Chosen("b"), Chosen("a"), vote="unanimous")
    assert voted(Chosen("a"), Chosen("a"), vote="unanimous").value == Chosen("a")


def test_types_of_ones_own_are_voted_on_by_their_literals_truth_values_and_numbers() -> None:
    assert label_orders(Own).keys() == {"colour", "round", "size"}
    found = voted(Own("red", True, 1.0, "a"), Own("blue", True, 2.0, "b"), Own("blue", False, 6.0, "c"))
    assert found.value == Own("blue", True, 2.0, "b")
    with pytest.raises(JudgeDeclined):
        voted(Own("red", True, 1.0, "a"), Own("blue", True, 1.0, "b"), vote="unanimous")


@dataclass(frozen=True)
class Own:
    colour: Literal["red", "blue"]
    round: bool
    size: float
    note: str


@pytest.mark.parametrize(
    "question", [*(question_of(kind, "text") for kind in QUESTION_KINDS), *OWN], ids=lambda q: q.kind
)
@pytest.mark.parametrize("vote", VOTES)
def test_judges_that_agree_are_taken_at_their_word_whatever_was_asked(question: Any, vote: Vote) -> None:
    example = question.example()
    value = question.parse(example if isinstance(example, str) else json.dumps(example))
    ballot = VoteConfig(vote, (None,) * 3)
    found = settle([value] * 3, ballot, question)
    assert found.value == value
    assert all(one.agreement in (None, 1.0) and one.entropy in (None, 0.0) for one in found.verdicts)
    assert found.verdicts or not is_votable(question)
    assert question.from_jsonable(json.loads(json.dumps(to_jsonable(value)))) == value


def test_what_a_judge_lists_by_itself_is_not_voted_on() -> None:
    unvotable = {kind.kind for kind in QUESTION_KINDS if not is_votable(question_of(kind, "text"))}
    assert unvotable == {
        "explain",
        "find_toxicity",
        "judge_passage_statements",
        "list_claims",
        "list_opinions",
        "list_plan",
        "list_questions",
        "list_requests",
        "list_statements",
        "write_criteria",
    }
    assert [is_votable(question) for question in OWN] == [True, True, True, True, False]


@given(
    st.lists(st.sampled_from(["supported", "contradicted", "not_mentioned"]), min_size=1, max_size=9),
    st.sampled_from(VOTES),
)
def test_a_result_was_given_by_somebody_and_figures_stay_in_range(given_words: list[str], vote: Vote) -> None:
    found = voted(*(said(word) for word in given_words), vote=vote)
    assert words(found)[0] in given_words
    (one,) = found.verdicts
    assert one.agreement is not None
    assert one.entropy is not None
    assert 1 / len(given_words) <= one.agreement <= 1
    assert 0 <= one.entropy <= math.log2(3) + 1e-9
    assert voted(*(said(word) for word in reversed(given_words)), vote=vote).value == found.value


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.sampled_from(VOTES))
def test_a_number_lies_between_those_that_were_given(scores: list[float], vote: Vote) -> None:
    found = voted(*(Grade(score) for score in scores), vote=vote)
    assert min(scores) <= found.value.score <= max(scores)


@st.composite
def choices(draw: st.DrawFn) -> YesNoVerdict:
    verdict: Any = draw(st.sampled_from(["yes", "no", "undecided"]))
    low, high = {"yes": (0.5, 1.0), "no": (0.0, 0.5), "undecided": (0.0, 1.0)}[verdict]
    return YesNoVerdict(verdict, "", draw(st.none() | st.floats(low, high)))


@given(st.lists(choices(), min_size=1, max_size=6), st.sampled_from(("majority", "unanimous")))
def test_the_undecided_do_not_move_the_probability_to_the_other_side_of_the_verdict(
    given_choices: list[YesNoVerdict], vote: Vote
) -> None:
    found = voted(*given_choices, vote=vote).value
    if found.probability is not None and found.verdict != "undecided":
        assert (found.probability >= 0.5) if found.verdict == "yes" else (found.probability <= 0.5)


def test_entropy_is_zero_for_one_voice_and_one_bit_for_two() -> None:
    assert entropy({"a": 3}) == 0
    assert entropy({"a": 2, "b": 2}) == 1
    assert entropy({"a": 1, "b": 1, "c": 1, "d": 1}) == pytest.approx(2)

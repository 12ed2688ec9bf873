from __future__ import annotations

from evalstone.questions import RatePassages
from evalstone.scorers import ContextRelevance, ContextUsage
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, ratings, record_of, score_of

SAMPLE = Sample(input="q", output="a", context=["p1", "p2", "p3"])


def test_two_of_three_whatever_their_level():
    score = score_of(ContextUsage(scale=3), SAMPLE, [ratings(("none", True), ("high", False), ("low", True))])
    assert (score.value, score.reason) == (2, "used: passage 1, 3; not used: 2.")


def test_the_reason_is_short_where_all_or_none_was_used():
    assert score_of(ContextUsage(), SAMPLE, [ratings(*[("high", True)] * 3)]).reason == "used: passage 1, 2, 3."
    assert score_of(ContextUsage(), SAMPLE, [ratings(*[("high", False)] * 3)]).reason == "no passage was used."


def test_it_asks_what_context_relevance_asks():
    _, judge = record_of(ContextUsage(), SAMPLE, [ratings(*[("high", True)] * 3)])
    _, other = record_of(ContextRelevance(), SAMPLE, [ratings(*[("high", True)] * 3)])
    assert judge.asked == other.asked == [RatePassages(question="q", answer="a", context=("p1", "p2", "p3"))]


def test_no_passages_are_skipped_and_nothing_is_asked():
    record, judge = record_of(ContextUsage(), Sample(input="q", output="a", context=[]), [])
    assert record.outcome == Skipped("there are no passages")
    assert judge.asked == []


def test_a_miscount_fails_none_at_all_included():
    assert isinstance(outcome_of(ContextUsage(), SAMPLE, [ratings()]), Failed)
    assert isinstance(outcome_of(ContextUsage(), SAMPLE, [ratings(("high", True))]), Failed)

from __future__ import annotations

import pytest

from evalstone.questions import RatePassages
from evalstone.scorers import ContextRelevance, ContextUsage
from evalstone.types import Sample
from tests.fakes import ratings, record_of, score_of

SAMPLE = Sample(input="q", output="a", context=["p1", "p2", "p3"])


@pytest.mark.parametrize(
    ("rated", "value", "reason"),
    [
        ([("none", True), ("high", False), ("low", True)], 2, "used: passage 1, 3; not used: 2."),
        ([("high", True)] * 3, 3, "used: passage 1, 2, 3."),
        ([("high", False)] * 3, 0, "no passage was used."),
    ],
)
def test_the_score_is_the_share_that_was_used_whatever_its_level(
    rated: list[tuple[str, bool]], value: float, reason: str
):
    score = score_of(ContextUsage(scale=3), SAMPLE, [ratings(*rated)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)


def test_it_asks_what_context_relevance_asks():
    _, judge = record_of(ContextUsage(), SAMPLE, [ratings(*[("high", True)] * 3)])
    _, other = record_of(ContextRelevance(), SAMPLE, [ratings(*[("high", True)] * 3)])
    assert judge.asked == other.asked == [RatePassages(question="q", answer="a", context=("p1", "p2", "p3"))]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.scorers import ContextPosition, ContextPrecision
from evalstone.scorers.rag.context_ranking import position_weighted_share
from evalstone.types import Sample
from tests.fakes import record_of, score_of, verdicts

SAMPLE = Sample(input="q", output="a", context=["p1", "p2", "p3", "p4"])
ALL = 1 + 1 / 2 + 1 / 3 + 1 / 4


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1, 0, 0, 0], 1 / ALL),
        ([0, 1, 0, 0], 0.5 / ALL),
        ([0, 0, 0, 1], 0.25 / ALL),
        ([1, 0, 1, 0], (1 + 1 / 3) / ALL),
        ([1, 1, 1, 1], 1),
        ([0, 0, 0, 0], 0),
        ([1], 1),
        ([0, 1], 1 / 3),
        ([1, 0], 2 / 3),
    ],
)
def test_the_weights_of_the_ranks_worked_by_hand(ranks: list[int], expected: float):
    assert position_weighted_share([bool(rank) for rank in ranks]) == pytest.approx(expected)


def test_useful_passages_first_and_third_of_four_are_0_64_and_the_reason_is_that_of_context_precision():
    replies = [verdicts("yes", "no", "yes", "no")]
    score = score_of(ContextPosition(), SAMPLE, replies)
    assert score.value == pytest.approx(0.64)
    assert score.reason == score_of(ContextPrecision(), SAMPLE, replies).reason


@given(st.lists(st.booleans(), min_size=2, max_size=30), st.data())
def test_a_useful_passage_that_moves_forward_raises_the_score(useful: list[bool], data: st.DataObject):
    at = data.draw(st.integers(1, len(useful) - 1))
    if useful[at - 1] or not useful[at]:
        return
    moved = [*useful[: at - 1], True, False, *useful[at + 1 :]]
    assert position_weighted_share(moved) > position_weighted_share(useful)


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_the_share_lies_between_0_and_1(useful: list[bool]):
    assert 0 <= position_weighted_share(useful) <= 1


def test_it_asks_exactly_what_context_precision_asks():
    reply = verdicts("no", "no", "no", "no")
    _, one = record_of(ContextPosition(), SAMPLE, [reply])
    _, other = record_of(ContextPrecision(), SAMPLE, [reply])
    assert one.asked == other.asked

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.questions import FindUsefulPassages
from evalstone.scorers import ContextPrecision
from evalstone.scorers.rag.context_ranking import average_precision
from evalstone.types import Sample
from tests.fakes import record_of, score_of, verdicts

SAMPLE = Sample(input="q", output="a", context=["p1", "p2", "p3", "p4"])


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1, 0, 1, 0], (1 + 2 / 3) / 2),
        ([1, 1, 0, 0], 1),
        ([0, 0, 1, 1], (1 / 3 + 2 / 4) / 2),
        ([0, 0, 0, 1], 0.25),
        ([1], 1),
        ([0], 0),
        ([0, 0, 0], 0),
        ([1, 0, 0, 1, 1], (1 + 2 / 4 + 3 / 5) / 3),
    ],
)
def test_average_precision_worked_by_hand(ranks: list[int], expected: float):
    assert average_precision([bool(rank) for rank in ranks]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        (["yes", "no", "yes", "no"], 5 * (1 + 2 / 3) / 2, "useful: passage 1, 3; not useful: 2, 4."),
        (["no", "no", "no", "no"], 0, "no passage was useful."),
        (["yes", "yes", "yes", "yes"], 5, "useful: passage 1, 2, 3, 4."),
    ],
)
def test_the_reason_names_the_useful_passages(words: list[str], value: float, reason: str):
    score = score_of(ContextPrecision(scale=5), SAMPLE, [verdicts(*words)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert [(v.passage, v.useful) for v in score.evidence] == [(n, w == "yes") for n, w in enumerate(words, start=1)]


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_the_best_order_is_useful_first_and_the_worst_is_useful_last(useful: list[bool]):
    best, worst = (average_precision(sorted(useful, reverse=reverse)) for reverse in (True, False))
    assert worst - 1e-12 <= average_precision(useful) <= best + 1e-12
    assert best == (1 if any(useful) else 0)


def test_the_verdicts_count_in_retrieval_order_whatever_their_order_in_the_reply():
    reply = verdicts("no", "yes", "no", "no")["verdicts"]
    assert score_of(ContextPrecision(), SAMPLE, [{"verdicts": dict(reversed(reply.items()))}]).value == 0.5


def test_it_asks_one_question():
    _, judge = record_of(ContextPrecision(), SAMPLE, [verdicts("no", "no", "no", "no")])
    assert judge.asked == [FindUsefulPassages(question="q", answer="a", context=("p1", "p2", "p3", "p4"))]

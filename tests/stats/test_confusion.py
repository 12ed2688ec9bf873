from __future__ import annotations

import pytest

from evalstone.stats.classification import MEASURES, Confusion

TABLE = Confusion(tp=30, fp=10, fn=20, tn=40)


def test_counts_come_from_pairs_of_verdict_and_truth():
    pairs = [(True, True), (True, False), (False, True), (False, False), (True, True)]
    assert Confusion.of(pairs) == Confusion(tp=2, fp=1, fn=1, tn=1)


@pytest.mark.parametrize(
    ("measure", "worked"),
    [
        ("sensitivity", 30 / 50),
        ("specificity", 40 / 50),
        ("precision", 30 / 40),
        ("accuracy", 70 / 100),
        ("balanced_accuracy", 0.7),
        ("f1", 60 / 90),
        ("kappa", 0.4),  # expected 0.4 · 0.5 + 0.6 · 0.5 = 0.5; (0.7 - 0.5) / 0.5
    ],
)
def test_measures_worked_by_hand(measure: str, worked: float):
    assert MEASURES[measure](TABLE) == pytest.approx(worked)


def test_a_measure_that_would_divide_by_nothing_is_none():
    assert {name: measure(Confusion()) for name, measure in MEASURES.items()} == dict.fromkeys(MEASURES)
    only_yes = Confusion(tp=3)
    assert only_yes.sensitivity == only_yes.accuracy == 1
    assert only_yes.specificity is None
    assert only_yes.balanced_accuracy is None
    assert only_yes.kappa is None

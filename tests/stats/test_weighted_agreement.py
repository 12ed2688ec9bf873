"""Agreement of weighted labels."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from evalstone.errors import DataError
from evalstone.stats.agreement import cohen_kappa
from evalstone.stats.classification import MEASURES, Confusion, auroc, measure_intervals
from evalstone.stats.intervals import Interval
from evalstone.stats.weighted_agreement import weighted_auroc, weighted_measures, weighted_share

Labeled = tuple[list[float], list[bool], list[int]]


def drawn(seed: int, n: int = 40) -> Labeled:
    """Scores, truths and whole weights."""
    source = random.Random(seed)
    truths = [source.random() < 0.6 for _ in range(n)]
    scores = [round(min(1.0, max(0.0, source.gauss(0.65 if truth else 0.4, 0.25))), 1) for truth in truths]
    return scores, truths, [source.choice([1, 2, 7]) for _ in range(n)]


def limits(interval: Interval | None) -> Sequence[float]:
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.estimate, interval.high


@pytest.mark.parametrize("seed", range(5))
def test_a_label_of_weight_w_counts_like_w_labels(seed: int) -> None:
    scores, truths, weights = drawn(seed)
    verdicts = [score >= 0.5 for score in scores]
    copies = [place for place, weight in enumerate(weights) for _ in range(weight)]
    counts = Confusion.of((verdicts[place], truths[place]) for place in copies)
    for name, found in weighted_measures(verdicts, truths, weights).items():
        low, estimate, high = limits(found)
        assert estimate == pytest.approx(MEASURES[name](counts))
        assert low < estimate < high
    area = auroc([scores[place] for place in copies], [truths[place] for place in copies])
    assert limits(weighted_auroc(scores, truths, weights))[1] == pytest.approx(limits(area)[1])


def test_equal_weights_give_what_labels_without_weights_give() -> None:
    scores, truths, _ = drawn(1)
    verdicts, threes = [score >= 0.5 for score in scores], [3.0] * len(scores)
    plain = measure_intervals(Confusion.of(zip(verdicts, truths, strict=True)))
    for name, found in weighted_measures(verdicts, truths, threes).items():
        assert limits(found) == pytest.approx(limits(plain[name]), abs=2e-3), name
    assert limits(weighted_auroc(scores, truths, threes)) == pytest.approx(limits(auroc(scores, truths)), abs=1e-6)
    assert limits(weighted_measures(verdicts, truths, threes)["kappa"]) == pytest.approx(
        limits(cohen_kappa(verdicts, truths)), abs=2e-3
    )


def test_a_heavy_label_outside_the_whole_warns_of_unseen_ones_inside() -> None:
    whole, part = [True] * 20 + [False], [True] * 20 + [False]
    light = limits(weighted_share(whole, part, [1.0] * 21))
    heavy = limits(weighted_share(whole, part, [1.0] * 20 + [9.0]))
    assert light[1:] == heavy[1:] == (1.0, 1.0)
    assert heavy[0] < light[0] - 0.1
    mirrored = limits(weighted_share(whole, [not each for each in part], [1.0] * 20 + [9.0]))
    assert mirrored == pytest.approx([1 - end for end in reversed(heavy)])


def test_what_has_no_label_is_undefined() -> None:
    found = weighted_measures([True, True], [True, True], [1.0, 2.0])
    assert found["specificity"] is found["balanced_accuracy"] is found["kappa"] is None
    assert limits(found["sensitivity"])[1] == 1.0
    assert weighted_auroc([0.1, 0.2], [True, True], [1.0, 2.0]) is None
    assert weighted_share([False], [True], [1.0]) is None
    assert set(weighted_measures([], [], []).values()) == {None}


@pytest.mark.parametrize(("weights", "said"), [([1.0], "1 weight"), ([1.0, 0.0], "weights"), ([1.0, -1.0], "weights")])
def test_weights_that_make_no_sense_are_refused(weights: list[float], said: str) -> None:
    for found in (weighted_measures, weighted_auroc):
        with pytest.raises(DataError, match=said):
            found([True, False], [True, False], weights)

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats import mean_interval
from evalstone.stats.intervals import limits
from evalstone.stats.ppi import ppi_mean, score_strata, select_for_labeling
from evalstone.stats.special import t_quantile


def run(seed: int, n: int, labels: int) -> tuple[list[float], list[float | None]]:
    """A judge that is 0.1 too kind, and labels of the first samples."""
    source = np.random.default_rng(seed)
    human = source.beta(4, 3, n)
    judged = np.clip(human + 0.1 + source.normal(0, 0.05, n), 0, 1)
    return judged.tolist(), [*human[:labels].tolist(), *[None] * (n - labels)]


def test_the_estimate_is_that_of_the_paper() -> None:
    # PPI++ for a mean (Angelopoulos, Duchi and Zrnic 2023, example 1 and section 6), in its own terms.
    judged, human = run(1, 300, 80)
    found = ppi_mean(judged, human)
    assert found is not None
    assert found.estimate is not None
    y, f = np.array([mark for mark in human if mark is not None]), np.array(judged[:80])
    rest = np.array(judged[80:])
    n, m = 80, 220
    covariance = float(np.cov(y, f)[0, 1])
    power = covariance / n / (float(f.var(ddof=1)) / n + statistics.pvariance(judged[80:]) / m)
    assert found.weight == pytest.approx(power, rel=1e-6)
    center = float(y.mean()) + power * (float(rest.mean()) - float(f.mean()))
    assert found.estimate.mean == pytest.approx(center)
    variance = statistics.variance((y - power * f).tolist()) / n + power**2 * statistics.pvariance(judged[80:]) / m
    # one degree of freedom for λ, in the variance and in the quantile
    expected = limits(center, variance * 79 / 78, t_quantile(0.975, 78), 0, 1)
    assert (found.estimate.low, found.estimate.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert found.bias == pytest.approx(float(np.mean(f - y)))
    assert (found.labeled, found.n) == (80, 300)


def test_a_judge_that_says_nothing_is_left_out() -> None:
    source = np.random.default_rng(2)
    human = source.random(400)
    found = ppi_mean(source.random(400).tolist(), [*human[:100].tolist(), *[None] * 300])
    assert found is not None
    assert found.weight == pytest.approx(0, abs=0.25)
    assert found.variance_reduction == pytest.approx(0, abs=0.05)


def test_a_judge_that_is_right_is_worth_all_its_samples() -> None:
    human = np.random.default_rng(3).random(1000)
    found = ppi_mean(human.tolist(), [*human[:50].tolist(), *[None] * 950])
    assert found is not None
    assert found.estimate is not None
    assert found.raw is not None
    assert found.weight == pytest.approx(0.95, abs=0.02)  # 1 but for the labeled ones' share
    assert found.estimate.mean == pytest.approx(found.raw.mean, abs=0.005)
    assert (found.estimate.high or 0) - (found.estimate.low or 0) == pytest.approx(
        (found.raw.high or 0) - (found.raw.low or 0), rel=0.1
    )


def test_with_all_samples_labelled_the_labels_are_the_estimate() -> None:
    judged, human = run(4, 60, 60)
    found = ppi_mean(judged, human)
    alone = mean_interval([mark for mark in human if mark is not None], low=0, high=1)
    assert found is not None
    assert found.estimate is not None
    assert alone is not None
    assert found.estimate.mean == pytest.approx(alone.mean)
    assert found.human is not None
    assert found.human.low == pytest.approx(alone.low, abs=1e-3)


def test_strata_weigh_by_their_size_not_by_their_labels() -> None:
    # 80 samples in stratum a with 2 in 4 labeled 1, 20 in b with 8 in 8 labeled 0.5
    strata = ["a"] * 80 + ["b"] * 20
    human: list[float | None] = [1.0, 0.0, 1.0, 0.0, *[None] * 76, *[0.5] * 8, *[None] * 12]
    found = ppi_mean([0.6] * 100, human, strata=strata)
    assert found is not None
    assert found.estimate is not None
    assert found.estimate.mean == pytest.approx(0.8 * 0.5 + 0.2 * 0.5)
    tilted = ppi_mean([0.6] * 100, [1.0, 1.0, 1.0, 0.9, *human[4:]], strata=strata)
    assert tilted is not None
    assert tilted.estimate is not None
    assert tilted.estimate.mean == pytest.approx(0.8 * 0.975 + 0.2 * 0.5)


def test_how_many_samples_fall_into_a_stratum_is_chance_too() -> None:
    # All of stratum a pass, none of b: what is left uncertain is that 80 of 100 are in a, 0.8 · 0.2 / 100.
    strata = ["a"] * 80 + ["b"] * 20
    found = ppi_mean([0.6] * 100, [*[1.0] * 4, *[None] * 76, *[0.0] * 4, *[None] * 16], strata=strata)
    assert found is not None
    assert found.human is not None
    expected = limits(0.8, 0.0016, t_quantile(0.975, 6), 0, 1)
    assert (found.human.low, found.human.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert found.caution.endswith("labels don't vary within their strata: the interval is approximate")


def test_strata_with_too_few_labels_are_merged_and_named() -> None:
    judged, human = run(5, 200, 40)
    strata = ["x" if place < 190 else f"rare {place}" for place in range(200)]
    found, plain = ppi_mean(judged, human, strata=strata), ppi_mean(judged, human)
    assert found is not None
    assert plain is not None
    assert found.estimate is not None
    assert plain.estimate is not None
    assert found.estimate.mean == pytest.approx(plain.estimate.mean)
    assert found.caution == "strata with fewer than two labels were merged: 10"


def test_copies_in_groups_add_nothing() -> None:
    judged, human = run(6, 150, 50)
    once = ppi_mean(judged, human, groups=list(range(150)))
    thrice = ppi_mean(judged * 3, human * 3, groups=list(range(150)) * 3)
    assert once is not None
    assert thrice is not None
    assert once.estimate is not None
    assert thrice.estimate is not None
    assert thrice.estimate.mean == pytest.approx(once.estimate.mean)
    assert thrice.estimate.low == pytest.approx(once.estimate.low)


def test_labels_that_do_not_vary_have_their_exact_interval() -> None:
    judged = np.random.default_rng(7).random(100).tolist()
    found = ppi_mean(judged, [*[1.0] * 40, *[None] * 60])
    assert found is not None
    assert found.estimate == mean_interval([1.0] * 40, low=0, high=1)
    assert (found.weight, found.variance_reduction) == (0, None)


@pytest.mark.parametrize("labels", [0, 2])
def test_too_few_labels_give_no_estimate_and_say_so(labels: int) -> None:
    judged, human = run(8, 50, labels)
    found = ppi_mean(judged, human)
    assert found is not None
    assert found.estimate is None
    assert found.raw == mean_interval(judged, low=0, high=1)
    assert found.caution == f"only {labels} labels: too few for an estimate; label 30 or more"
    assert (found.bias is None) == (labels == 0)


def test_what_does_not_fit_is_refused() -> None:
    assert ppi_mean([], []) is None
    with pytest.raises(DataError, match="judged has 2, human has 1"):
        ppi_mean([0.5, 0.5], [None])
    with pytest.raises(DataError, match=r"human: value 1 is 7\.0, not a number in \[0, 1\]"):
        ppi_mean([0.5, 0.5], [None, 7.0])


def test_corrections_scale_with_their_unit() -> None:
    judged, human = run(13, 200, 60)
    one = ppi_mean(judged, human)
    ten = ppi_mean([10 * x for x in judged], [None if mark is None else 10 * mark for mark in human], scale=10)
    assert one is not None
    assert ten is not None
    assert one.estimate is not None
    assert ten.estimate is not None
    assert dataclasses.astuple(ten.estimate)[:3] == pytest.approx(
        [10 * x for x in dataclasses.astuple(one.estimate)[:3]]
    )


def test_three_labels_give_an_estimate() -> None:
    found = ppi_mean([0.9, 0.5, 0.7] + [0.8, 0.6] * 20, [0.8, 0.4, 0.7] + [None] * 40)
    assert found is not None
    assert found.estimate is not None
    assert found.caution == "only 3 labels: the interval is approximate"


SCORES = np.random.default_rng(1).beta(5, 1, 200).tolist()


def test_strata_are_ordered_by_score_and_about_equal() -> None:
    strata = score_strata(SCORES)
    sizes = np.bincount(strata)
    assert sizes.tolist() == [40, 40, 41, 39, 40]
    for stratum in range(4):
        below = [s for s, place in zip(SCORES, strata, strict=True) if place == stratum]
        above = [s for s, place in zip(SCORES, strata, strict=True) if place == stratum + 1]
        assert max(below) <= min(above)


def test_equal_scores_share_a_stratum() -> None:
    scores = [1.0] * 60 + [0.5] * 20 + [0.0] * 20
    assert sorted({*zip(scores, score_strata(scores), strict=True)}) == [(0.0, 0), (0.5, 1), (1.0, 2)]
    assert set(score_strata([0.7] * 50)) == {0}
    assert score_strata([]) == ()


def test_a_choice_depends_on_its_arguments_only() -> None:
    assert select_for_labeling(SCORES, seed=1) == select_for_labeling(SCORES, seed=1)
    assert select_for_labeling(SCORES, seed=1) != select_for_labeling(SCORES, seed=2)


def shares(chosen: Sequence[int]) -> list[float]:
    """The share of each stratum that was chosen."""
    strata = np.array(score_strata(SCORES))
    return (np.bincount(strata[list(chosen)], minlength=5) / np.bincount(strata)).tolist()


def test_samples_near_the_middle_of_the_scale_are_labelled_more_often_and_all_have_a_chance() -> None:
    chosen = shares(select_for_labeling(SCORES, n=80))
    assert chosen == sorted(chosen, reverse=True)
    assert 0 < chosen[-1] < chosen[0]


def test_a_later_round_leaves_out_what_is_labelled_and_goes_on_with_the_same_shares() -> None:
    first = select_for_labeling(SCORES, n=50)
    second = select_for_labeling(SCORES, labeled=first, n=20)
    assert not set(second) & set(first)
    assert shares([*first, *second]) == shares(select_for_labeling(SCORES, n=70))


def test_a_later_round_draws_anew_in_a_stratum_without_labels() -> None:
    scores = [0.0] * 50 + [1.0] * 50
    rounds = [select_for_labeling(scores, labeled=range(50, last), n=20) for last in (80, 90)]
    first, second = ({place for place in chosen if place < 50} for chosen in rounds)
    assert min(len(first), len(second)) > 5
    assert not first <= second
    assert not second <= first


def test_the_next_label_goes_where_it_lowers_the_variance_most() -> None:
    # From two labels each: (19 · 0.5)² / k (k + 1) is 15.0, 7.5 and 4.5 for k = 2, 3, 4, and (50 · 0.1)² / 6 is 4.2.
    chosen = select_for_labeling([0.0] * 50 + [0.5] * 19, n=7)
    assert sum(place >= 50 for place in chosen) == 5


def test_labels_of_earlier_rounds_do_not_tilt_the_mean() -> None:
    # Were strata with equal first labels left alone, the mean of passes would be 0.013 too high here.
    source, errors = np.random.default_rng(1), list[float]()
    for seed in range(300):
        rate = source.beta(4, 1, 300)
        human = (source.random(300) < rate).astype(float)
        judged = np.clip(rate + source.normal(0, 0.1, 300), 0, 1).tolist()
        known: dict[int, float] = {}
        for _ in range(5):
            known |= {place: human[place] for place in select_for_labeling(judged, labeled=known, n=20, seed=seed)}
        marks = [known.get(place) for place in range(300)]
        found = ppi_mean(judged, marks, strata=score_strata(judged))
        assert found is not None
        assert found.human is not None
        errors.append(found.human.mean - float(human.mean()))
    assert abs(float(np.mean(errors))) < 3 * float(np.std(errors)) / math.sqrt(300)


def test_every_stratum_gets_two_labels_first() -> None:
    counts = np.bincount([score_strata(SCORES)[place] for place in select_for_labeling(SCORES, n=10)])
    assert counts.tolist() == [2] * 5


def test_within_a_stratum_every_sample_is_as_likely() -> None:
    seen = np.zeros(200)
    for seed in range(400):
        seen[list(select_for_labeling(SCORES, n=50, seed=seed))] += 1 / 400
    expected = np.array(shares(select_for_labeling(SCORES, n=50)))[list(score_strata(SCORES))]
    assert float(np.max(np.abs(seen - expected))) < 0.11  # four standard errors


def test_no_more_are_chosen_than_there_are() -> None:
    found = select_for_labeling([0.1, 0.9, 0.5], labeled={1: 1.0}, n=20)
    assert sorted(found) == [0, 2]
    assert select_for_labeling([], n=5) == ()
    assert select_for_labeling(SCORES, n=0) == ()


def test_a_selection_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="there is no sample 3; positions go from 0 to 2"):
        select_for_labeling([0.1, 0.2, 0.3], labeled={3: 0.5})
    with pytest.raises(ConfigError, match="n must be 0 or more"):
        select_for_labeling([0.1], n=-1)
    with pytest.raises(DataError, match="scores: value 0 is -1"):
        select_for_labeling([-1.0])

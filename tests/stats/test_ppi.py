from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest

from evalstone.errors import DataError, EvalstoneError
from evalstone.stats import Interval, mean_interval
from evalstone.stats.bounded_mean import SHARE
from evalstone.stats.ppi import SIDES, JudgedScores, PPIEstimate, corrected_mean, ppi_difference, ppi_mean
from evalstone.types import note


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
    covariance = float(np.cov(y, f)[0, 1])
    power = covariance / 80 / (float(f.var(ddof=1)) / 80 + statistics.pvariance(judged[80:]) / 220)
    assert found.weight == pytest.approx(power, abs=0.04)  # of a grid in steps of 0.05, fitted to the other labels
    center = float(y.mean()) + power * (float(rest.mean()) - float(f.mean()))
    assert found.estimate.estimate == pytest.approx(center, abs=0.002)
    assert found.bias == mean_interval((f - y).tolist(), low=-1, high=1)
    assert (found.labeled, found.n) == (80, 300)


def coverage(rate: float, count: int, replications: int) -> float:
    """How often the interval holds the pass rate: the judge passes 95% of the good samples and 30% of the bad."""
    source, holds = np.random.default_rng(5), 0
    for _ in range(replications):
        good = source.random(500) < rate
        judged = (source.random(500) < np.where(good, 0.95, 0.3)).astype(float)
        found = ppi_mean(judged.tolist(), [*good[:count].astype(float).tolist(), *[None] * (500 - count)])
        assert found is not None
        assert found.estimate is not None
        holds += (found.estimate.low or 0) <= rate <= (found.estimate.high or 0)
    return holds / replications


@pytest.mark.parametrize(("rate", "count"), [(0.97, 10), (0.97, 20), (0.97, 30), (0.5, 10)])
def test_few_labels_cover_high_pass_rates_too(rate: float, count: int) -> None:
    assert coverage(rate, count, 80) > 0.92  # 0.82 to 0.88 with limits by the labels' spread


def test_tests_and_limits_agree() -> None:
    judged, human = run(9, 200, 40)
    found = corrected_mean(judged, human)
    assert found is not None
    for side in SIDES:
        limit = found.limit(0.03, side)
        assert found.p_value(limit, side) == pytest.approx(0.03, rel=1e-3)
    low, high = found.interval(0.9)
    assert found.two_sided_p(low) == pytest.approx(0.1, rel=1e-3)
    assert found.two_sided_p(high) == pytest.approx(0.1, rel=1e-3)
    assert found.two_sided_p(found.mean) > 0.5
    assert found.p_value(0.0, 1) == found.p_value(1.0, -1) == 0
    assert found.p_value(0.0, -1) == found.p_value(1.0, 1) == 1


def test_a_rare_error_that_no_label_shows_is_allowed_for() -> None:
    found = ppi_mean([1.0] * 95 + [0.9] * 5, [1.0] * 20 + [None] * 80)
    assert found is not None
    assert found.estimate is not None
    assert found.estimate.low == pytest.approx(0.025 ** (1 / 20))
    assert found.estimate.high == 1


def test_the_difference_of_two_runs_is_that_of_their_human_scores() -> None:
    source = np.random.default_rng(4)
    before = source.random(400)
    after = np.clip(before + 0.1, 0, 1)
    kind = np.clip(after + 0.2, 0, 1)  # the judge favors the second run
    human = tuple([*marks[:80].tolist(), *[None] * 320] for marks in (before, after))
    found = ppi_difference((before.tolist(), kind.tolist()), (human[0], human[1]))
    assert found is not None
    assert found.raw is not None
    assert found.estimate is not None
    assert found.p_value is not None
    truth = float(np.mean(after - before))
    assert found.raw.low is not None
    assert found.raw.low > truth
    assert (found.estimate.low or 0) < truth < (found.estimate.high or 0)
    assert found.p_value < 0.01
    assert found.labeled == 80


def test_same_outputs_need_no_labels_to_be_equal() -> None:
    source = np.random.default_rng(5)
    before, noise = source.random(300), source.normal(0, 0.1, 300)
    same = [place >= 60 for place in range(300)]
    after = np.where(same, np.clip(before + noise, 0, 1), source.random(300))
    human = tuple([*marks[:30].tolist(), *[None] * 270] for marks in (before, after))
    found = ppi_difference((before.tolist(), after.tolist()), (human[0], human[1]), same=same)
    assert found is not None
    assert found.estimate is not None
    assert found.raw is not None
    assert found.raw.estimate == pytest.approx(float(np.sum((after - before)[:60])) / 300)
    assert found.estimate.estimate == pytest.approx(found.raw.estimate, abs=0.02)
    assert (found.labeled, found.n) == (30, 60)


def test_a_difference_needs_both_labels_of_a_sample() -> None:
    found = ppi_difference(([0.5] * 20, [0.6] * 20), ([0.5] * 10 + [None] * 10, [None] * 10 + [0.6] * 10))
    assert found is not None
    assert found.estimate is None
    assert found.labeled == 0
    assert ppi_difference(([], []), ([], [])) is None
    with pytest.raises(DataError, match="judged_b has 1"):
        ppi_difference(([0.5] * 2, [0.5]), ([None] * 2, [None] * 2))


def width(found: Interval | None) -> float:
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_a_judge_that_says_nothing_is_left_out() -> None:
    source = np.random.default_rng(2)
    human = source.random(400)
    found = ppi_mean(source.random(400).tolist(), [*human[:100].tolist(), *[None] * 300])
    assert found is not None
    assert found.weight == pytest.approx(0, abs=0.25)
    assert width(found.estimate) == pytest.approx(width(found.human), rel=0.03)


def test_a_judge_that_is_right_is_worth_all_its_samples() -> None:
    human = np.random.default_rng(3).random(1000)
    found = ppi_mean(human.tolist(), [*human[:50].tolist(), *[None] * 950])
    assert found is not None
    assert found.estimate is not None
    assert found.raw is not None
    assert found.weight == pytest.approx(0.95, abs=0.03)  # 1 but for the labeled ones' share
    assert found.estimate.estimate == pytest.approx(found.raw.estimate, abs=0.005)
    assert width(found.estimate) < math.sqrt(0.4) * width(found.human)


def test_with_all_samples_labelled_the_labels_are_the_estimate() -> None:
    judged, human = run(4, 60, 60)
    found = ppi_mean(judged, human)
    alone = mean_interval([mark for mark in human if mark is not None], low=0, high=1)
    assert found is not None
    assert found.estimate is not None
    assert alone is not None
    assert found.estimate.estimate == pytest.approx(alone.estimate)
    assert found.human is not None
    assert found.human.low == pytest.approx(alone.low, abs=0.02)
    assert found.weight == 0


def test_strata_weigh_by_their_size_not_by_their_labels() -> None:
    # 80 samples in stratum a with 2 in 4 labeled 1, 20 in b with 8 in 8 labeled 0.5
    strata = ["a"] * 80 + ["b"] * 20
    human: list[float | None] = [1.0, 0.0, 1.0, 0.0, *[None] * 76, *[0.5] * 8, *[None] * 12]
    found = ppi_mean([0.6] * 100, human, strata=strata)
    assert found is not None
    assert found.estimate is not None
    assert found.estimate.estimate == pytest.approx(0.8 * 0.5 + 0.2 * 0.5)
    tilted = ppi_mean([0.6] * 100, [1.0, 1.0, 1.0, 0.9, *human[4:]], strata=strata)
    assert tilted is not None
    assert tilted.estimate is not None
    assert tilted.estimate.estimate == pytest.approx(0.8 * 0.975 + 0.2 * 0.5)


def test_strata_with_too_few_labels_are_merged_and_named() -> None:
    judged, human = run(5, 200, 40)
    strata = ["x" if place < 190 else f"rare {place}" for place in range(200)]
    found, plain = ppi_mean(judged, human, strata=strata), ppi_mean(judged, human)
    assert found is not None
    assert plain is not None
    assert found.estimate is not None
    assert plain.estimate is not None
    assert found.estimate.estimate == pytest.approx(plain.estimate.estimate)
    assert found.notes == (note("strata_merged", "caution", strata=10),)


def test_copies_in_groups_add_nothing() -> None:
    judged, human = run(6, 150, 50)
    once = ppi_mean(judged, human, groups=list(range(150)))
    thrice = ppi_mean(judged * 3, human * 3, groups=list(range(150)) * 3)
    assert once is not None
    assert thrice is not None
    assert once.estimate is not None
    assert thrice.estimate is not None
    assert thrice.estimate.estimate == pytest.approx(once.estimate.estimate)
    assert thrice.estimate.low == pytest.approx(once.estimate.low)


@pytest.mark.parametrize("digits", [1, 9])
def test_equal_scores_are_computed_as_one_without_changing_a_figure(digits: int) -> None:
    # Clusters of one sample are computed one by one, and are the same.
    judged, human = run(6, 300, 60)
    judged = [round(score, digits) for score in judged]
    strata = [place % 3 for place in range(300)]
    together, apart = (ppi_mean(judged, human, scale=2.0, strata=strata, groups=of) for of in (None, range(300)))
    assert together is not None
    assert apart is not None
    for one, other in zip(_figures(together), _figures(apart), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def _figures(found: PPIEstimate) -> list[float | None]:
    intervals = (found.estimate, found.raw, found.human, found.bias)
    ends = [end for each in intervals if each is not None for end in (each.low, each.estimate, each.high)]
    return [*ends, found.weight, found.doubled]


@pytest.mark.parametrize("groups", [None, [place // 2 for place in range(200)]])
def test_scores_that_are_kept_give_the_estimates_of_ever_more_labels(groups: list[int] | None) -> None:
    judged, human = run(3, 200, 40)
    strata = [place % 4 for place in range(200)]
    scores = JudgedScores.of(judged, strata=strata, groups=groups)
    assert scores is not None
    for n in (2, 10, 40):
        labels = {place: label for place, label in enumerate(human[:n]) if label is not None}
        column = [*human[:n], *[None] * (200 - n)]
        found = ppi_mean(judged, column, strata=strata, groups=groups)
        assert found is not None
        assert scores.corrected(labels) == found
        assert scores.mean_of_labels(labels, scale=1.0) == found.human
    with pytest.raises(DataError):
        scores.corrected({3: 7.0})


def test_labels_that_do_not_vary_have_their_exact_interval() -> None:
    judged = np.random.default_rng(7).random(100).tolist()
    found = ppi_mean(judged, [*[1.0] * 40, *[None] * 60])
    assert found is not None
    assert found.estimate is not None
    assert (found.estimate.low, found.estimate.high) == (pytest.approx(0.025 ** (1 / 40)), 1)
    assert (found.weight, found.estimate.low) == (0, found.human and found.human.low)


@pytest.mark.parametrize("labels", [0, 2])
def test_too_few_labels_give_no_estimate_and_say_so(labels: int) -> None:
    judged, human = run(8, 50, labels)
    found = ppi_mean(judged, human)
    assert found is not None
    assert found.estimate is None
    assert found.raw == mean_interval(judged, low=0, high=1)
    assert found.notes == (note("too_few_labels", "caution", labels=labels, least=30),)
    assert (found.bias is None) == (labels == 0)


def test_what_does_not_fit_is_refused() -> None:
    assert ppi_mean([], []) is None
    with pytest.raises(DataError) as raised:
        ppi_mean([0.5, 0.5], [None, 7.0])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("human[1]", 7.0, "a number in [0, 1]")


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
    assert 0 <= (found.estimate.low or 0) < found.estimate.estimate < (found.estimate.high or 0) <= 1


def test_samples_that_are_the_same_are_no_labels() -> None:
    before, after = [0.2, 0.6] * 20, [0.3, 0.6] * 20
    human = [0.2 if place in (0, 2) else None for place in range(40)]
    found = ppi_difference((before, after), (human, human), same=[place % 2 == 1 for place in range(40)])
    assert found is not None
    assert (found.labeled, found.estimate) == (2, None)


def test_the_limits_of_values_turned_round_are_those_turned_round() -> None:
    judged = [0.1 * (place % 9) for place in range(60)]
    human = [min(1.0, 0.1 * (place % 7)) if place % 3 == 0 else None for place in range(60)]
    one = corrected_mean(judged, human)
    other = corrected_mean([1 - x for x in judged], [None if x is None else 1 - x for x in human])
    assert one is not None
    assert other is not None
    low, high = one.interval(0.95)
    assert other.interval(0.95) == (pytest.approx(1 - high), pytest.approx(1 - low))
    limits = [one.limit(0.025, side, share=SHARE) for side in SIDES]
    assert (low, high) == (pytest.approx(limits[0]), pytest.approx(limits[1]))
    assert one.two_sided_p(low) == pytest.approx(0.05, abs=1e-4)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: ppi_mean([0.5, 0.5], [None]),
        DataError,
        "one entry per sample is needed in each: judged has 2, human has 1",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_labels_of_one_kind_are_said_to_tell_nothing_about_agreement() -> None:
    for label in (0.0, 1.0):
        found = ppi_mean([1.0] * 40, [label] * 20 + [None] * 20)
        assert found is not None
        assert found.estimate is not None
        assert found.notes == (note("same_labels", "caution", labels=20, label=label),)
    mixed = ppi_mean([1.0] * 40, [1.0] * 19 + [0.0] + [None] * 20)
    assert mixed is not None
    assert mixed.notes == ()

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.labeling import labels_to_reach, score_strata, select_for_labeling
from evalstone.stats.ppi import corrected_mean, ppi_mean

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
    for seed in range(150):
        rate = source.beta(4, 1, 300)
        human = (source.random(300) < rate).astype(float)
        judged = np.clip(rate + source.normal(0, 0.1, 300), 0, 1).tolist()
        known: dict[int, float] = {}
        for _ in range(5):
            known |= {place: human[place] for place in select_for_labeling(judged, labeled=known, n=20, seed=seed)}
        marks = [known.get(place) for place in range(300)]
        found = corrected_mean(judged, marks, strata=score_strata(judged))
        assert found is not None
        errors.append(found.mean - float(human.mean()))
    assert abs(float(np.mean(errors))) < 3 * float(np.std(errors)) / math.sqrt(150)


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
    with pytest.raises(ConfigError) as raised:
        select_for_labeling([0.1], n=-1)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("n", -1, "0 or more")
    with pytest.raises(DataError, match="scores: value 0 is -1"):
        select_for_labeling([-1.0])


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: select_for_labeling([0.1, 0.2, 0.3], labeled={3: 0.5}),
        DataError,
        "labeled: there is no sample 3; positions go from 0 to 2",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_the_labels_for_a_half_width_follow_from_the_expected_errors() -> None:
    half = [0.5] * 1000
    assert labels_to_reach(half, 0.1) == math.ceil((1.959964 * 0.5 / 0.1) ** 2) == 97
    assert labels_to_reach([5.0] * 1000, 1.0, scale=10) == 97
    assert labels_to_reach(half, 0.1, confidence=0.9) == math.ceil((1.644854 * 0.5 / 0.1) ** 2)
    assert labels_to_reach([0.0, 1.0] * 500, 0.1) == math.ceil((1.959964 * 0.4 / 0.1) ** 2) == 62
    assert labels_to_reach([0.0, 10.0] * 500, 1.0, scale=10) == 62
    assert labels_to_reach([0.0] * 500 + [0.5] * 500, 0.1) == math.ceil((1.959964 * 0.45 / 0.1) ** 2)
    assert (labels_to_reach(half[:20], 0.1), labels_to_reach([], 0.1)) == (20, 0)
    with pytest.raises(ConfigError, match="half_width must be above 0"):
        labels_to_reach(half, 0)
    with pytest.raises(DataError):
        labels_to_reach([2.0], 0.1)


def agreeing(source: np.random.Generator) -> tuple[list[float], list[float]]:
    """Scores that are the probabilities that people say yes."""
    scores = source.uniform(0.1, 0.9, 2000)
    return [*map(float, scores)], [*map(float, source.uniform(size=2000) < scores)]


def wrong_in_one_of_five(source: np.random.Generator) -> tuple[list[float], list[float]]:
    """Verdicts, of which one in five is wrong."""
    truth = source.uniform(size=2000) < 0.7
    return [*map(float, truth ^ (source.uniform(size=2000) < 0.2))], [*map(float, truth)]


@pytest.mark.parametrize("judge", [agreeing, wrong_in_one_of_five])
def test_that_many_labels_give_about_this_half_width(
    judge: Callable[[np.random.Generator], tuple[list[float], list[float]]],
) -> None:
    scores, truth = judge(np.random.default_rng(7))
    chosen = select_for_labeling(scores, n=labels_to_reach(scores, 0.1))
    labels = [truth[place] if place in chosen else None for place in range(2000)]
    result = ppi_mean(scores, labels, strata=score_strata(scores))
    assert result is not None
    assert result.estimate is not None
    low, high = result.estimate.low, result.estimate.high
    assert low is not None
    assert high is not None
    assert 0.08 < (high - low) / 2 < 0.12

from __future__ import annotations

import math

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats.ppi import ppi_mean
from evalstone.stats.stratified_sampling import score_strata, select_for_labeling

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


def test_uncertain_samples_are_labelled_more_often_and_all_have_a_chance() -> None:
    unsure = [0.4 if place < 40 else 0.02 for place in range(200)]
    found = select_for_labeling(SCORES, unsure, n=40)
    chosen = sum(place < 40 for place in found.indexes)
    assert len(found.indexes) == len(set(found.indexes)) == 40
    assert chosen == 33  # 40 · 0.4 against 160 · 0.02 is 5 : 1
    assert found.probabilities[0] == pytest.approx(33 / 40)
    assert found.probabilities[199] == pytest.approx(7 / 160)


def test_a_choice_depends_on_its_arguments_only() -> None:
    assert select_for_labeling(SCORES, seed=1) == select_for_labeling(SCORES, seed=1)
    assert select_for_labeling(SCORES, seed=1).indexes != select_for_labeling(SCORES, seed=2).indexes
    assert (
        select_for_labeling(SCORES, seed=1).strata == select_for_labeling(SCORES, seed=2).strata == score_strata(SCORES)
    )


def test_a_later_round_leaves_out_what_is_labelled_and_goes_on_with_the_same_shares() -> None:
    first = select_for_labeling(SCORES, n=50)
    second = select_for_labeling(SCORES, labeled=first.indexes, n=20)
    assert not set(second.indexes) & set(first.indexes)
    assert second.probabilities == select_for_labeling(SCORES, n=70).probabilities


def test_labels_of_earlier_rounds_do_not_tilt_the_mean() -> None:
    # Were strata with equal first labels left alone, the mean of passes would be 0.013 too high here.
    source, errors = np.random.default_rng(1), list[float]()
    for seed in range(300):
        rate = source.beta(4, 1, 300)
        human = (source.random(300) < rate).astype(float)
        judged = np.clip(rate + source.normal(0, 0.1, 300), 0, 1).tolist()
        known: dict[int, float] = {}
        for _ in range(5):
            known |= {
                place: human[place] for place in select_for_labeling(judged, labeled=known, n=20, seed=seed).indexes
            }
        marks = [known.get(place) for place in range(300)]
        found = ppi_mean(judged, marks, strata=score_strata(judged))
        assert found is not None
        assert found.human is not None
        errors.append(found.human.mean - float(human.mean()))
    assert abs(float(np.mean(errors))) < 3 * float(np.std(errors)) / math.sqrt(300)


def test_every_stratum_gets_two_labels_first() -> None:
    counts = np.bincount([score_strata(SCORES)[place] for place in select_for_labeling(SCORES, n=10).indexes])
    assert counts.tolist() == [2] * 5


def test_within_a_stratum_every_sample_is_as_likely() -> None:
    seen = np.zeros(200)
    for seed in range(400):
        seen[list(select_for_labeling(SCORES, n=50, seed=seed).indexes)] += 1 / 400
    expected = np.array(select_for_labeling(SCORES, n=50).probabilities)
    assert float(np.max(np.abs(seen - expected))) < 0.11  # four standard errors


def test_no_more_are_chosen_than_there_are() -> None:
    found = select_for_labeling([0.1, 0.9, 0.5], labeled={1: 1.0}, n=20)
    assert sorted(found.indexes) == [0, 2]
    assert found.probabilities == (1, 1, 1)
    assert select_for_labeling([], n=5).indexes == ()
    assert select_for_labeling(SCORES, n=0).indexes == ()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="there is no sample 3; positions go from 0 to 2"):
        select_for_labeling([0.1, 0.2, 0.3], labeled={3: 0.5})
    with pytest.raises(DataError, match="uncertainties: value 0 is -1"):
        select_for_labeling([0.1], [-1.0])
    with pytest.raises(ConfigError, match="n must be 0 or more"):
        select_for_labeling([0.1], n=-1)
    with pytest.raises(ConfigError, match="max_strata must be 1 or more"):
        score_strata([0.1], max_strata=0)

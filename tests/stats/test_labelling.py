from __future__ import annotations

import numpy as np
import pytest

from evalstone.errors import DataError, UsageError
from evalstone.stats.labelling import next_to_label, score_strata

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
    found = next_to_label(SCORES, unsure, n=40)
    chosen = sum(place < 40 for place in found.indexes)
    assert len(found.indexes) == len(set(found.indexes)) == 40
    assert chosen == 33  # 40 · 0.4 against 160 · 0.02 is 5 : 1
    assert found.probabilities[0] == pytest.approx(33 / 40)
    assert found.probabilities[199] == pytest.approx(7 / 160)


def test_a_choice_depends_on_its_arguments_only() -> None:
    assert next_to_label(SCORES, seed=1) == next_to_label(SCORES, seed=1)
    assert next_to_label(SCORES, seed=1).indexes != next_to_label(SCORES, seed=2).indexes
    assert next_to_label(SCORES, seed=1).strata == next_to_label(SCORES, seed=2).strata == score_strata(SCORES)


def test_a_later_round_leaves_out_what_is_labelled_and_follows_the_errors() -> None:
    strata = score_strata(SCORES)
    first = next_to_label(SCORES, n=50)
    # the judge is right everywhere but in stratum 3, where it is far off, up and down
    known = {
        place: min(1.0, max(0.0, SCORES[place] + (0.9 if place % 2 else -0.9) * (strata[place] == 3)))
        for place in first.indexes
    }
    second = next_to_label(SCORES, labelled=known, n=20)
    assert not set(second.indexes) & set(known)
    counts = np.bincount([strata[place] for place in second.indexes], minlength=5)
    assert counts.argmax() == 3
    assert counts[3] >= 10


def test_every_stratum_gets_two_labels_first() -> None:
    counts = np.bincount([score_strata(SCORES)[place] for place in next_to_label(SCORES, n=10).indexes])
    assert counts.tolist() == [2] * 5


def test_within_a_stratum_every_sample_is_as_likely() -> None:
    seen = np.zeros(200)
    for seed in range(400):
        seen[list(next_to_label(SCORES, n=50, seed=seed).indexes)] += 1 / 400
    expected = np.array(next_to_label(SCORES, n=50).probabilities)
    assert float(np.max(np.abs(seen - expected))) < 0.11  # four standard errors


def test_no_more_are_chosen_than_there_are() -> None:
    found = next_to_label([0.1, 0.9, 0.5], labelled={1: 1.0}, n=20)
    assert sorted(found.indexes) == [0, 2]
    assert found.probabilities == (1, 1, 1)
    assert next_to_label([], n=5).indexes == ()
    assert next_to_label(SCORES, n=0).indexes == ()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="there is no sample 3; positions go from 0 to 2"):
        next_to_label([0.1, 0.2, 0.3], labelled={3: 0.5})
    with pytest.raises(DataError, match="uncertainties: value 0 is -1"):
        next_to_label([0.1], [-1.0])
    with pytest.raises(DataError, match="labelled: value 0 is 2"):
        next_to_label([0.1], labelled={0: 2.0})
    with pytest.raises(UsageError, match="n must be 0 or more"):
        next_to_label([0.1], n=-1)
    with pytest.raises(UsageError, match="most must be 1 or more"):
        score_strata([0.1], most=0)

"""Choosing between candidates on labels, and the gain of it on others."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats.calibration import Scaled, log_odds, scaled
from evalstone.stats.nested_selection import Candidate, Objective, Selection, nested_selection

N = 80
TRUTHS = [place % 2 == 0 for place in range(N)]


def right_in(share: float, seed: int) -> Candidate:
    """Verdicts of which this share is right."""
    draw = random.Random(seed)
    return Candidate(verdicts=[truth is (draw.random() < share) for truth in TRUTHS])


def test_the_better_candidate_is_chosen_and_its_gain_is_that_on_held_out_cases() -> None:
    found = nested_selection([right_in(0.6, 1), right_in(0.6, 2), right_in(0.98, 3)], TRUTHS)
    assert found is not None
    assert found.chosen == Selection(candidate=2)
    assert found.picks == {2: 10}
    wrong = [
        sum(said is not truth for said, truth in zip(each.verdicts, TRUTHS, strict=True))
        for each in (found.default, found.held_out)
    ]
    assert found.gain.estimate == pytest.approx((wrong[0] - wrong[1]) / N)
    assert found.wins - found.losses == wrong[0] - wrong[1]
    assert found.gain.low is not None
    assert found.gain.low > 0.1
    assert found.default.probabilities is None


def test_equal_candidates_leave_the_default_and_no_gain() -> None:
    same = right_in(0.8, 1)
    found = nested_selection([same, same, same], TRUTHS)
    assert found is not None
    assert found.chosen.is_default
    assert (found.gain.low, found.gain.estimate, found.gain.high) == (0.0, 0.0, 0.0)
    assert (found.wins, found.losses) == (0, 0)


def test_a_choice_that_changes_no_held_out_case_is_not_known_to_gain_nothing() -> None:
    """Three cases of one cluster favor another candidate, which is the default elsewhere."""
    same = right_in(0.8, 1)
    wrong = [place for place in range(N) if same.verdicts[place] is not TRUTHS[place]][:3]
    better = Candidate(verdicts=[TRUTHS[n] if n in wrong else same.verdicts[n] for n in range(N)])
    groups = ["together" if place in wrong else place for place in range(N)]
    found = nested_selection([same, better], TRUTHS, groups=groups)
    assert found is not None
    assert found.picks == {0: 1, 1: 9}
    assert (found.wins, found.losses, found.gain.estimate) == (0, 0, 0.0)
    reach = 1 - 0.025 ** (1 / (N - 2))
    assert (found.gain.low, found.gain.high) == (pytest.approx(-reach), pytest.approx(reach))


def test_the_interval_allows_for_the_number_of_candidates() -> None:
    """Of many candidates that are equally good, one is lucky in all parts."""
    edges = [
        found.edge
        for number in (1, 20)
        if (found := nested_selection([right_in(0.8, seed) for seed in range(1 + number)], TRUTHS)) is not None
    ]
    assert edges[0] >= 1.959
    assert edges[1] > edges[0] + 0.2


def test_the_limits_are_edge_standard_errors_from_the_gain() -> None:
    found = nested_selection([right_in(0.6, 1), right_in(0.9, 3)], TRUTHS)
    assert found is not None
    assert found.gain.low is not None
    assert found.gain.high is not None
    error = math.sqrt(found.wins + found.losses) / N
    assert found.gain.estimate - found.gain.low == pytest.approx(found.edge * error)
    assert found.gain.high - found.gain.estimate == pytest.approx(found.edge * error)


def shares(shift: float, times: float = 1.0) -> list[float]:
    draw = random.Random(5)
    signal = 2.0 / times**0.5
    odds = [times * ((signal if truth else -signal) + draw.gauss(0, 1) + shift) for truth in TRUTHS]
    return [1 / (1 + math.exp(-each)) for each in odds]


def from_shares(probabilities: Sequence[float]) -> Candidate:
    return Candidate(verdicts=[share >= 0.5 for share in probabilities], probabilities=probabilities)


@pytest.mark.parametrize(
    ("shift", "times", "objective", "mapped"),
    [
        (3.0, 1.0, "accuracy", {"threshold", "both", "isotonic"}),
        (0.0, 1.0, "accuracy", {"none"}),
        (0.0, 8.0, "brier", {"temperature", "both", "isotonic"}),
    ],
)
def test_probabilities_are_mapped_where_that_helps(
    shift: float, times: float, objective: Objective, mapped: set[str]
) -> None:
    probabilities = shares(shift, times)
    found = nested_selection([from_shares(probabilities)], TRUTHS, objective=objective)
    assert found is not None
    assert found.chosen.mapped in mapped
    assert found.held_out.unmapped == found.default.unmapped == probabilities
    if found.chosen.mapped in ("threshold", "both"):
        assert found.chosen.threshold == pytest.approx(1 / (1 + math.exp(-3)), abs=0.1)


def test_thresholds_of_several_labels_are_those_of_the_grid() -> None:
    draw = random.Random(2)
    noisy = [truth is (draw.random() < 0.6) for truth in TRUTHS]
    at = {0.3: TRUTHS, 0.7: [not truth for truth in TRUTHS]}
    found = nested_selection([Candidate(verdicts=noisy, at=at)], TRUTHS)
    assert found is not None
    assert (found.chosen.mapped, found.chosen.threshold) == ("threshold", 0.3)
    assert found.held_out.verdicts == TRUTHS


def test_a_case_without_a_verdict_counts_as_wrong() -> None:
    silent = Candidate(verdicts=[None if place < 20 else truth for place, truth in enumerate(TRUTHS)])
    found = nested_selection([right_in(0.9, 1), silent], TRUTHS)
    assert found is not None
    assert found.chosen.is_default
    found = nested_selection([silent, Candidate(verdicts=TRUTHS)], TRUTHS)
    assert found is not None
    assert (found.wins, found.losses) == (20, 0)
    assert found.default.verdicts[:20] == [None] * 20


def test_cases_of_one_cluster_are_never_on_both_sides_and_are_one_unit() -> None:
    """A candidate that is right in two clusters of eight only is not shown to be better."""
    groups = [place // 10 for place in range(N)]
    default = [truth if place >= 20 else not truth for place, truth in enumerate(TRUTHS)]
    alone, clustered = (
        nested_selection([Candidate(verdicts=default), Candidate(verdicts=TRUTHS)], TRUTHS, groups=each)
        for each in (None, groups)
    )
    assert alone is not None
    assert clustered is not None
    assert alone.gain.low is not None
    assert clustered.gain.low is not None
    assert alone.gain.low > 0 > clustered.gain.low
    assert (alone.gain.groups, clustered.gain.groups) == (None, 8)
    # A truth that only the cluster tells is not learned from its own cases.
    by_cluster = [each / 8 + 0.01 for each in groups]
    truths = [each in (1, 4, 6) for each in groups]
    found = nested_selection([from_shares(by_cluster)], truths, groups=groups)
    assert found is not None
    assert found.gain.low is not None
    assert found.gain.low <= 0


def test_too_few_cases_tell_nothing() -> None:
    candidates = [Candidate(verdicts=[False] * 30), Candidate(verdicts=[True] + [False] * 29)]
    assert nested_selection(candidates, [True] + [False] * 29) is None
    few = [True, False] * 9
    found = nested_selection([Candidate(verdicts=[False] * 18), Candidate(verdicts=few)], few)
    assert found is not None
    assert found.chosen.is_default


def test_arguments_are_checked() -> None:
    with pytest.raises(DataError, match="need at least one candidate"):
        nested_selection([], TRUTHS)
    with pytest.raises(DataError):
        nested_selection([Candidate(verdicts=[True])], TRUTHS)
    with pytest.raises(DataError):
        nested_selection([Candidate(verdicts=TRUTHS, at={0.3: [True]})], TRUTHS)
    with pytest.raises(ConfigError, match="confidence"):
        nested_selection([Candidate(verdicts=TRUTHS)], TRUTHS, confidence=2)


def test_a_scaled_probability_is_half_at_the_threshold() -> None:
    assert Scaled()(0.123) == 0.123
    assert Scaled(0.2, 3.0)(0.2) == 0.5
    assert Scaled(0.2)(0.6) == pytest.approx(1 / (1 + math.exp(-(log_odds(0.6) - log_odds(0.2)))))
    assert (Scaled(0.5, 2.0)(0.0), Scaled(0.5, 2.0)(1.0)) == (pytest.approx(0, abs=1e-4), pytest.approx(1, abs=1e-4))
    for threshold, temperature in ((0, 1), (1, 1), (0.5, 0), (0.5, math.inf)):
        with pytest.raises(DataError):
            Scaled(threshold, temperature)


def test_the_temperature_of_probabilities_that_are_too_certain_is_found() -> None:
    draw = random.Random(1)
    odds = [draw.gauss(0, 2) for _ in range(4000)]
    truths = [draw.random() < 1 / (1 + math.exp(-each)) for each in odds]
    for times in (0.5, 1.0, 3.0):
        probabilities = [1 / (1 + math.exp(-times * each)) for each in odds]
        assert scaled(probabilities, truths).temperature == pytest.approx(times, rel=0.1)
    with pytest.raises(DataError):
        scaled([], [])


def test_the_gain_of_choosing_between_equals_is_about_nothing() -> None:
    """On the cases that a choice is made by, the best of twelve equals seems better by 7 points."""
    gains: list[float] = []
    for draw in range(8):
        found = nested_selection([right_in(0.8, 100 * draw + seed) for seed in range(12)], TRUTHS)
        assert found is not None
        gains.append(found.gain.estimate)
    assert sum(gains) / len(gains) < 0.05

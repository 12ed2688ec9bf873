"""Verdicts of comparisons and gates at the edges of their levels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalstone import compare, gate
from evalstone.results.compare import MAX_CHANGES, ScorerComparison
from evalstone.types import note
from tests.runs import Given, Harm, run_of


def with_p_value(p_value: float, scorer: type[Given] = Given, confidence: float = 0.95) -> ScorerComparison:
    """A comparison whose second run has higher scores, with another p-value."""
    runs = [run_of(answers, [scorer()]) for answers in (["0.5", "0.25"], ["0.75", "0.5"])]
    return replace(compare(*runs, confidence=confidence).scorers[0], adjusted_p_value=p_value)


@pytest.mark.parametrize(("p_value", "verdict"), [(0.0499, "better"), (0.0501, "inconclusive"), (0.09, "inconclusive")])
def test_a_difference_is_significant_up_to_one_minus_the_confidence(p_value: float, verdict: str) -> None:
    assert with_p_value(p_value).verdict == verdict


def test_another_confidence_moves_the_limit() -> None:
    assert with_p_value(0.09, confidence=0.9).verdict == "better"
    assert with_p_value(0.02, confidence=0.99).verdict == "inconclusive"


def test_a_higher_score_is_worse_where_lower_is_better() -> None:
    line = with_p_value(0.01, Harm)
    assert (line.verdict, line.improvement, line.difference.estimate) == ("worse", -0.25, 0.25)


def test_equal_runs_are_never_better_whatever_the_p_value() -> None:
    run = run_of(["0.5", "0.25"])
    assert replace(compare(run, run).scorers[0], adjusted_p_value=0.0).verdict == "inconclusive"


def test_without_a_correction_p_values_stay() -> None:
    scorers = [Given(), Harm()]
    a, b = (run_of([str(n / 20 + shift) for n in range(10)], scorers) for shift in (0, 0.25))
    plain = compare(a, b, correction="none")
    assert [line.adjusted_p_value for line in plain.scorers] == [line.p_value for line in plain.scorers]
    corrected = compare(a, b)
    assert [line.p_value for line in corrected.scorers] == [line.p_value for line in plain.scorers]
    assert corrected["given"].adjusted_p_value == pytest.approx(2 * plain["given"].adjusted_p_value)
    assert (plain.to_dict()["correction"], plain.to_dict()["confidence"]) == ("none", 0.95)


def test_only_the_largest_changes_are_listed() -> None:
    a, b = run_of(["0.0"] * 15), run_of([str(n / 20) for n in range(15)])
    changes = compare(a, b)["given"].changes
    assert len(changes) == MAX_CHANGES
    assert [change.sample_id for change in changes[:3]] == ["s15", "s14", "s13"]


def test_a_score_at_the_threshold_passes() -> None:
    run = run_of(["0.5"] * 30 + ["0.25"] * 10, [Given(), Harm()])
    rates = gate(run, pass_rate={"given": (0.5, 0.1), "harm": (0.25, 0.1)}).decisions
    assert [rate.estimate for rate in rates] == [0.75, 0.25]


def test_max_regression_counts_losses_of_scorers_where_lower_is_better() -> None:
    before, now = run_of(["0.1", "0.2"] * 20, [Harm()]), run_of(["0.4", "0.5"] * 20, [Harm()])
    assert gate(now, max_regression={"harm": 0.1}, baseline=before).verdict == "fail"
    assert gate(before, max_regression={"harm": 0.1}, baseline=now).verdict == "pass"


def test_samples_without_a_pair_are_noted_with_max_regression() -> None:
    before, now = run_of(["0.5"] * 10), run_of(["0.5"] * 9)
    notes = gate(now, max_regression={"given": 0.1}, baseline=before, allow_mismatch=True).notes
    assert note("unpaired_left_out", "caution", "given", check="regression", samples=1) in notes

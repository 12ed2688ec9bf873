"""Planning from pilot runs."""

from __future__ import annotations

import pytest

from evalstone import ConfigError, compare, power
from evalstone.results.run_pilots import detectable_note
from evalstone.results.views.power import power_view
from evalstone.results.views.run import run_view
from evalstone.types import note
from tests.runs import run_of

HALVES = ["0.0", "1.0"] * 20


def test_one_pilot_is_taken_for_two_unrelated_runs() -> None:
    (found,) = power(run_of(HALVES), 0.1)
    # 0/1 scores, 20 of each: s² = 40/39 · 0.25; twice that for a difference
    assert found.plan.deviation == pytest.approx((2 * 40 / 39 * 0.25) ** 0.5)
    # n ≈ (1.96 · √share + 0.8416 · √(share - 0.1²))² / 0.1² = 400.1, the share that changes being s²
    assert found.plan.needed == pytest.approx(400, rel=0.005)
    assert found.plan.test == "mid-p McNemar test"
    assert found.plan.needed_low is not None
    assert found.plan.needed_high is not None
    assert found.plan.needed_low < 400 < found.plan.needed_high


def test_two_pilots_give_the_spread_of_their_differences() -> None:
    (found,) = power(run_of(["0.1", "0.9"] * 20), 0.1, baseline=run_of(HALVES))
    assert found.plan.deviation == pytest.approx(0.1 * (40 / 39) ** 0.5)
    # Student's t test would do with 11; but 1 - (1/40)^(1/37) = 0.095: 37 pairs may miss one in ten at -1
    assert found.plan.needed == 38
    assert found.plan.test.endswith("mean difference")


def test_samples_that_hang_together_take_more() -> None:
    data = [{"group": number // 4} for number in range(40)]
    answers = [str((number // 4) % 2) for number in range(40)]
    (found,) = power(run_of(answers, metadata=data), 0.1)
    assert found.plan.groups is not None
    assert found.plan.needed == 4 * found.plan.groups
    alone = power(run_of(answers), 0.1)["given"].plan.needed
    assert alone is not None
    assert found.plan.needed is not None
    assert found.plan.needed > 3.8 * alone
    notes = str(power_view(power(run_of(answers, metadata=data), 0.1)))
    assert f" {found.plan.groups:,} clusters " in notes


def test_what_a_run_can_tell_is_one_sentence() -> None:
    # (1.96 · 0.716 + 0.84 · √(0.513 - 0.3²)) / √40 = 0.308
    assert "0.3 in given with 80% " in detectable_note(run_of(HALVES))
    assert detectable_note(run_of(["0.5"])) == ""


def test_two_samples_detect_no_difference_that_the_scale_allows() -> None:
    run = run_of(["0.0", "1.0"])
    none = "Minimum detectable difference in given: none that the scale allows. More samples are needed."
    assert detectable_note(run) == none
    assert none in "\n".join(run_view(run).footer)
    assert power(run)["given"].plan.detectable is None


@pytest.mark.parametrize("difference", [0, -0.1, float("nan"), float("inf")])
def test_a_difference_must_be_above_zero(difference: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        power(run_of(HALVES), difference)


def test_a_difference_must_fit_the_scale() -> None:
    with pytest.raises(ConfigError) as raised:
        power(run_of(HALVES), 1.5)
    assert (raised.value.field, raised.value.value) == ("difference", 1.5)


def test_a_power_must_lie_between_zero_and_one() -> None:
    with pytest.raises(ConfigError, match="power"):
        power(run_of(HALVES), 0.1, power=1.0)


def test_a_plan_says_that_the_comparison_counts_what_has_no_score() -> None:
    scores = ["0", "1", "1", "1"] * 10
    before = run_of(scores)
    after = run_of([*(str(1 - int(score)) for score in scores[:30]), *scores[30:-3], "fail", "fail", "skip"])
    (one,) = power(after, 0.2, baseline=before)
    assert one.plan.n == 37
    # In A, the 3 samples pass: at worst, they are lost. 37/40 · 0.2 is left of the difference, less 3/40.
    (missing,) = one.plan.notes
    assert (missing.kind, missing["missing"], missing["of"]) == ("missing_in_pilot", 3, 40)
    assert missing["hidden"] == pytest.approx(0.081, abs=0.0005)
    (ignored,) = power(run_of(after_known := [*(str(1 - int(x)) for x in scores[:30]), *scores[30:-3]]), 0.2)
    (alone,) = power(after, 0.2)
    assert [(one["missing"], one["of"]) for one in alone.plan.notes] == [(2, 39)]
    assert alone.plan.needed is not None
    assert ignored.plan.needed is not None
    assert len(after_known) == 37
    assert alone.plan.needed > 1.5 * ignored.plan.needed
    (without,) = power(before, 0.2)
    assert without.plan.notes == ()
    assert "detect 0.35 in given" in detectable_note(after)
    (few,) = power(run_of(["0", "1", "1", "fail"]), 0.5)
    small, lacking = few.plan.notes
    assert small == note("small_pilot", "caution", n=3)
    assert (lacking["missing"], lacking["of"]) == (1, 4)


def test_a_difference_that_missing_scores_can_hide_needs_no_number_of_samples() -> None:
    before = run_of(["0", "1", "1", "1"] * 10)
    after = run_of([*["1", "0", "1", "1"] * 9, *["fail"] * 4])
    found = power(after, 0.05, baseline=before)
    plan = found["given"].plan
    assert (plan.needed, plan.needed_low, plan.needed_high) == (None, None, None)
    assert plan.detectable is not None
    assert plan.detectable > 0.1
    assert "number is enough - 36 " in " ".join(str(found).split())
    enough = power(after, plan.detectable, baseline=before)["given"].plan
    assert enough.needed == pytest.approx(40, abs=1)
    assert [one["of"] for one in enough.notes if one.kind == "missing_in_pilot"] == [40]
    assert compare(before, after)["given"].detectable == pytest.approx(plan.detectable)

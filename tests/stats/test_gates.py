from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.gates import (
    AtLeast,
    AtMost,
    GateCriterion,
    MaxDifference,
    MaxRegression,
    PassRate,
    decide,
    overall,
)
from evalstone.types import note

GOOD = np.random.default_rng(1).beta(18, 2, 200).tolist()  # mean 0.9, deviation 0.065


def lower_limit(successes: int, n: int, confidence: float) -> float:
    """Clopper and Pearson's, one-sided."""
    return float(betaincinv(successes, n - successes + 1, 1 - confidence))


def rate(name: str, passed: int, n: int, threshold: float) -> PassRate:
    return PassRate(name, [1.0] * passed + [0.0] * (n - passed), threshold)


def verdicts(*criteria: GateCriterion, alpha: float | None = 0.05) -> list[str]:
    return [decision.verdict for decision in decide(criteria, alpha=alpha)]


def test_a_mean_passes_fails_or_leaves_it_open() -> None:
    assert verdicts(AtLeast("a", GOOD, 0.87)) == ["pass"]
    assert verdicts(AtLeast("a", GOOD, 0.93)) == ["fail"]
    assert verdicts(AtLeast("a", GOOD, sum(GOOD) / 200)) == ["inconclusive"]
    bad = [1 - x for x in GOOD]
    assert verdicts(AtMost("a", bad, 0.13)) == ["pass"]
    assert verdicts(AtMost("a", bad, 0.07)) == ["fail"]


def test_a_decision_carries_its_numbers() -> None:
    (found,) = decide([rate("answers", 55, 60, 0.85)])
    # P(X >= 55) of 60 at 0.85 is 0.0968 or so: not enough for 0.05
    assert (found.kind, found.verdict, found.n, found.threshold) == ("pass_rate", "inconclusive", 60, 0.85)
    assert found.estimate == pytest.approx(55 / 60)
    assert found.low == pytest.approx(lower_limit(55, 60, 0.95))
    assert found.p_pass is not None
    assert found.p_fail is not None
    assert 0.05 < found.p_pass < 0.15
    assert found.p_fail > 0.9
    assert found.notes == ()
    assert found.more_samples is not None
    n = 60 + 2 * found.more_samples
    assert verdicts(rate("answers", round(55 / 60 * n), n, 0.85)) == ["pass"]


@pytest.mark.slow
def test_limits_agree_with_verdicts() -> None:
    source = np.random.default_rng(2)
    for _ in range(60):
        values = source.beta(9, 1, 40).tolist()
        other = np.clip(np.array(values) + source.normal(0, 0.1, 40), 0, 1).tolist()
        criteria = [
            AtLeast("a", values, source.uniform(0.8, 0.97)),
            AtMost("b", values, source.uniform(0.8, 0.97)),
            MaxRegression("c", other, values, source.uniform(0, 0.1)),
            MaxRegression("c", other, values, source.uniform(0, 0.1), lower_is_better=True),
            rate("d", int(source.binomial(40, 0.8)), 40, source.uniform(0.6, 0.95)),
        ]
        for found in decide(criteria):
            assert found.low is not None
            assert found.high is not None
            above, below = found.low >= found.threshold, found.high <= found.threshold
            expected = (below, above) if found.lower_is_better else (above, below)
            assert (found.verdict == "pass", found.verdict == "fail") == expected


def test_no_worse_takes_pairs_and_a_margin() -> None:
    better = [min(1.0, x + 0.02) for x in GOOD]
    worse = [x - 0.1 for x in GOOD]
    assert verdicts(MaxRegression("a", better, GOOD, 0.0)) == ["pass"]
    assert verdicts(MaxRegression("a", worse, GOOD, 0.05)) == ["fail"]
    assert verdicts(MaxRegression("a", worse, GOOD, 0.15)) == ["pass"]
    assert verdicts(MaxRegression("a", better, GOOD, 0.0, lower_is_better=True)) == ["fail"]
    (risen,) = decide([MaxRegression("a", better, GOOD, 0.1, lower_is_better=True)])
    assert (risen.estimate, risen.threshold, risen.lower_is_better) == (pytest.approx(0.02, abs=2e-3), 0.1, True)
    assert risen.high is not None
    assert risen.estimate is not None
    assert risen.estimate < risen.high <= 0.1
    (same,) = decide([MaxRegression("a", GOOD, GOOD, 0.02)])
    assert (same.verdict, same.estimate, same.threshold) == ("pass", 0, -0.02)  # 0.98^200 = 0.018
    (few,) = decide([MaxRegression("a", GOOD[:20], GOOD[:20], 0.02)])
    assert few.verdict == "inconclusive"


def test_an_equivalence_takes_a_margin_on_both_sides() -> None:
    slightly, worse = [x - 0.01 for x in GOOD], [x - 0.1 for x in GOOD]
    for now, before in ((slightly, GOOD), (GOOD, slightly), (worse, GOOD), (GOOD, worse)):
        expected = "fail" if worse in (now, before) else "pass"
        for lower in (False, True):
            (found,) = decide([MaxDifference("a", now, before, 0.05, lower_is_better=lower)])
            assert (found.verdict, found.kind, found.threshold) == (expected, "max_difference", 0.05)
            assert found.low is not None
            assert found.high is not None
            inside, beyond = -0.05 < found.low < found.high < 0.05, found.low > 0.05 or found.high < -0.05
            assert (inside, beyond) == (expected == "pass", expected == "fail")
            margin = compare_pairs(before, now, margin=0.05)
            assert margin is not None
            assert margin.equivalence is not None
            assert found.p_pass == pytest.approx(margin.equivalence.p_value)


def test_an_undecided_equivalence_says_how_many_samples_would_decide_it() -> None:
    (inside,) = decide([MaxDifference("a", GOOD[:40], GOOD[:40], 0.05)])
    assert (inside.verdict, inside.low, inside.high) == ("inconclusive", -(inside.high or 0.0), inside.high)
    more = inside.more_samples
    assert more is not None
    n = 40 + more
    assert verdicts(MaxDifference("a", [0.5] * n, [0.5] * n, 0.05)) == ["pass"]
    assert verdicts(MaxDifference("a", [0.5] * (n // 2), [0.5] * (n // 2), 0.05)) == ["inconclusive"]
    (beyond,) = decide([MaxDifference("a", [0.6, 0.8] * 10, [0.7] * 20, 0.0)])
    assert (beyond.verdict, beyond.more_samples) == ("inconclusive", None)
    (worse,) = decide([MaxDifference("a", [0.5, 0.7] * 10, [0.7] * 20, 0.05)])
    assert (worse.verdict, worse.more_samples is not None) == ("inconclusive", True)


def test_an_equivalence_holds_whatever_the_missing_scores_are_and_without_a_test() -> None:
    now: list[float | None] = [0.7] * 200
    assert verdicts(MaxDifference("a", now, [0.7] * 200, 0.05)) == ["pass"]
    assert verdicts(MaxDifference("a", [*now[:180], *[None] * 20], [0.7] * 200, 0.05)) == ["inconclusive"]
    for before, missing, expected in (
        (0.7, 0, "pass"),
        (0.8, 0, "fail"),
        (0.6, 0, "fail"),
        (0.7, 1, "pass"),
        (0.7, 40, "inconclusive"),
    ):
        values = [*now[missing:], *[None] * missing]
        (found,) = decide([MaxDifference("a", values, [before] * 200, 0.05)], alpha=None)
        assert found.verdict == expected
    (all_open,) = decide([MaxDifference("a", [0.5, None], [0.5, 0.5], 0.05)], alpha=None)
    assert all_open.verdict == "inconclusive"
    assert verdicts(MaxDifference("a", now, [0.0] * 200, 1.0)) == ["pass"]
    with pytest.raises(ConfigError) as raised:
        decide([MaxDifference("a", now, now, 1.5)])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == (
        "a: the maximum difference",
        1.5,
        "in [0, 1]",
    )


def test_looking_at_many_criteria_asks_more_of_each() -> None:
    close = rate("close", 56, 60, 0.85)  # p is about 0.04 alone
    assert verdicts(close) == ["pass"]
    hopeless = [rate(f"{place}", 30, 60, 0.5) for place in range(4)]
    assert verdicts(close, *hopeless) == ["inconclusive"] * 5
    easy = [rate(f"{place}", 60, 60, 0.5) for place in range(4)]
    assert verdicts(close, *easy) == ["pass"] * 5  # Holm: the easy ones are decided and no longer count


def test_groups_make_a_criterion_less_certain() -> None:
    values, groups = [1.0] * 88 + [0.0] * 12, [place // 10 for place in range(100)]
    (alone,), (grouped,) = decide([AtLeast("a", values, 0.8)]), decide([AtLeast("a", values, 0.8, groups=groups)])
    assert alone.verdict == "pass"
    assert grouped.verdict == "inconclusive"
    assert grouped.more_samples is not None


@pytest.mark.slow
def test_a_gate_is_wrong_no_more_often_than_it_says() -> None:
    source = np.random.default_rng(3)
    wrong = {"pass": 0, "fail": 0}
    for _ in range(400):
        counts = source.binomial(80, 0.85, 3)
        found = {d.verdict for d in decide([rate(f"{i}", int(c), 80, 0.85) for i, c in enumerate(counts)])}
        for kind in wrong:
            wrong[kind] += kind in found
    assert wrong["pass"] < 29  # 5 % and two standard errors
    assert wrong["fail"] < 29


def test_without_values_nothing_is_decided() -> None:
    (found,) = decide([AtLeast("a", [], 0.5)])
    assert (found.verdict, found.estimate, found.n, found.notes) == (
        "inconclusive",
        None,
        0,
        (note("no_values", "caution"),),
    )
    assert verdicts(rate("a", 0, 0, 0.5)) == ["inconclusive"]
    assert decide([]) == ()


def test_no_number_of_samples_is_named_where_none_would_do() -> None:
    (found,) = decide([AtLeast("a", [0.4, 0.6] * 30, 0.5)])
    assert (found.verdict, found.more_samples) == ("inconclusive", None)


def test_a_gate_as_a_whole_is_its_worst_criterion() -> None:
    good, bad, open_ = rate("a", 60, 60, 0.5), rate("b", 10, 60, 0.5), rate("c", 30, 60, 0.5)
    assert overall(decide([good, bad, open_])) == "fail"
    assert overall(decide([good, open_])) == "inconclusive"
    assert overall(decide([good])) == "pass"
    assert overall([]) == "pass"


def test_impossible_criteria_are_refused_by_name() -> None:
    with pytest.raises(ConfigError) as raised:
        decide([AtLeast("a", GOOD, 85)])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("a: the threshold", 85, "in [0, 1]")
    with pytest.raises(ConfigError) as raised:
        decide([MaxRegression("a", GOOD, GOOD, -0.1)])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == (
        "a: the maximum regression",
        -0.1,
        "in [0, 1]",
    )
    with pytest.raises(ConfigError) as raised:
        decide([], alpha=0.9)
    assert (raised.value.field, raised.value.value) == ("alpha", 0.9)
    with pytest.raises(DataError) as raised:
        decide([MaxRegression("a", [0.1], [float("nan")], 0.0)])
    assert (raised.value.field, raised.value.allowed) == ("a: baseline[0]", "a number in [0, 1]")
    with pytest.raises(DataError) as raised:
        decide([PassRate("a", [1, 2], 0.5)])
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("a: values[1]", 2, "a number in [0, 1]")
    with pytest.raises(ConfigError) as raised:
        decide([], next_alpha=0.0)
    assert (raised.value.field, raised.value.value) == ("next_alpha", 0.0)


@pytest.mark.parametrize(
    ("criterion", "told"),
    [
        (AtLeast("a", [0.5, 0.6], 0.5, weights=[-1.0, 1.0]), "weights must be finite numbers above 0: weight 0 is -1"),
        (MaxRegression("a", [0.5], [0.5], 0.1, weights=[0.0]), "weights must be finite numbers above 0"),
        (AtLeast("a", [0.5] * 4, 0.5, human=[0.5] * 3), "values has 4, human has 3"),
        (AtLeast("a", [0.5] * 4, 0.5, human=[0.5] * 4, strata=[1]), "values has 4, strata has 1"),
        (MaxRegression("a", [0.5] * 4, [0.5] * 4, 0.1, human=([0.5] * 3, [0.5] * 4)), "human_baseline has 3"),
        (MaxRegression("a", [0.5] * 4, [0.5] * 4, 0.1, human=([0.5] * 4, [0.5] * 4), same=[True]), "same has 1"),
    ],
)
def test_columns_that_do_not_fit_are_refused(criterion: GateCriterion, told: str) -> None:
    with pytest.raises(DataError, match=told):
        decide([criterion])


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_a_threshold_is_a_number(value: Any) -> None:
    for criterion in (AtLeast("a", [0.5], value), MaxRegression("a", [0.5], [0.5], value)):
        with pytest.raises(ConfigError, match=r"a: the .* number"):
            decide([criterion])


def test_more_labels_are_counted_at_any_error_rate() -> None:
    labeled = AtLeast("a", [0.9, 0.5, 0.3] * 15, 0.55, human=[0.9, 0.4] * 15 + [None] * 15)
    assert decide([labeled], alpha=1e-17)[0].verdict == "inconclusive"


def test_a_threshold_that_nothing_can_miss_passes() -> None:
    nothing, all_ = [0.0] * 50, [1.0] * 50
    assert verdicts(AtLeast("a", nothing, 0.0)) == ["pass"]
    assert verdicts(AtMost("a", all_, 1.0)) == ["pass"]
    assert verdicts(MaxRegression("a", nothing, all_, 1.0)) == ["pass"]
    assert verdicts(rate("a", 0, 50, 0.0)) == ["pass"]
    assert verdicts(AtLeast("a", [], 0.0)) == ["inconclusive"]


def test_differences_by_rounding_are_none() -> None:
    (found,) = decide([MaxRegression("a", [0.1 + 0.2, 0.5] * 5, [0.3, 0.5] * 5, 0.02)])
    assert found == decide([MaxRegression("a", [0.3, 0.5] * 5, [0.3, 0.5] * 5, 0.02)])[0]
    assert found.verdict == "inconclusive"


def test_a_p_value_of_exactly_alpha_decides() -> None:
    good, bad = rate("a", 2, 2, 0.5), rate("a", 0, 2, 0.5)
    p_pass, p_fail = decide([good])[0].p_pass, decide([bad])[0].p_fail
    assert (p_pass, p_fail) == pytest.approx((0.25, 0.25))  # both of 2, or none, at a rate of 0.5
    assert verdicts(good, alpha=p_pass) == ["pass"]
    assert verdicts(bad, alpha=p_fail) == ["fail"]
    assert verdicts(good, bad, alpha=0.24) == ["inconclusive", "inconclusive"]


def test_limits_are_at_the_alpha_that_holm_leaves() -> None:
    easy, close = rate("easy", 60, 60, 0.5), rate("close", 53, 60, 0.85)
    first, second = decide([easy, close])
    assert first.low == pytest.approx(lower_limit(60, 60, 1 - 0.05 / 2))
    assert second.low == pytest.approx(lower_limit(53, 60, 1 - 0.05))


def test_limits_stay_at_the_alpha_of_the_first_that_holm_does_not_reject() -> None:
    found = decide([rate("a", 53, 60, 0.85), rate("b", 52, 60, 0.85), rate("c", 51, 60, 0.85)])
    assert [each.verdict for each in found] == ["inconclusive"] * 3
    assert [each.low for each in found] == pytest.approx([lower_limit(n, 60, 1 - 0.05 / 3) for n in (53, 52, 51)])


def test_more_samples_are_reckoned_at_the_alpha_of_the_side_that_the_mean_is_on() -> None:
    close, easy = rate("close", 53, 60, 0.85), [rate(f"{place}", 60, 60, 0.5) for place in range(4)]
    (alone,), among = decide([close]), decide([close, *easy])[0]
    assert alone.verdict == among.verdict == "inconclusive"
    assert alone.more_samples == among.more_samples is not None  # Holm: the easy ones pass, and no longer count
    low, bad = rate("low", 51, 60, 0.9), [rate(f"{place}", 0, 60, 0.5) for place in range(4)]
    (alone,), among = decide([low]), decide([low, *bad])[0]
    assert alone.verdict == among.verdict == "inconclusive"
    assert alone.more_samples == among.more_samples is not None


def test_missing_values_count_against_either_verdict() -> None:
    values: list[float | None] = [1.0] * 90
    assert verdicts(AtLeast("a", values, 0.9)) == ["pass"]
    (found,) = decide([AtLeast("a", [*values, *[None] * 10], 0.9)])
    assert (found.verdict, found.estimate, found.n, found.missing) == ("inconclusive", 1.0, 90, 10)
    assert found.low is not None
    assert found.low < 0.9
    assert verdicts(AtLeast("a", [*values, *[None] * 2], 0.9)) == ["pass"]
    bad: list[float | None] = [0.0] * 90
    assert verdicts(AtLeast("a", [*bad, *[None] * 10], 0.3)) == ["fail"]
    assert verdicts(AtLeast("a", [*bad, *[None] * 40], 0.3)) == ["inconclusive"]
    assert verdicts(AtMost("a", [*bad, *[None] * 10], 0.05)) == ["inconclusive"]
    assert verdicts(AtMost("a", [*bad, *[None] * 2], 0.1)) == ["pass"]


def test_a_missing_score_of_a_pair_leaves_what_the_other_score_allows() -> None:
    now: list[float | None] = [0.9] * 100
    before: list[float | None] = [0.9] * 100
    assert verdicts(MaxRegression("a", now, before, 0.05)) == ["pass"]
    # Without three of the 100 scores now, the mean could be 0.027 lower.
    (found,) = decide([MaxRegression("a", [*now[:97], None, None, None], before, 0.05)])
    assert (found.n, found.missing) == (97, 3)
    assert found.low is not None
    low = decide([MaxRegression("a", [*now[:97], 0.0, 0.0, 0.0], before, 0.05)])[0].low
    assert found.low == pytest.approx(low)
    # Without the baseline's, it could have been at most 0.1 higher.
    (found,) = decide([MaxRegression("a", now, [*before[:97], None, None, None], 0.05)])
    low = decide([MaxRegression("a", now, [*before[:97], 1.0, 1.0, 1.0], 0.05)])[0].low
    assert found.low == pytest.approx(low)


def test_scores_missing_not_at_random_pass_no_gate_wrongly() -> None:
    source = np.random.default_rng(4)
    wrong = 0
    for _ in range(200):
        passed = source.random(100) < 0.85
        missing = ~passed & (source.random(100) < 0.5)  # half of the bad ones fail to be scored
        values = [None if gone else float(ok) for ok, gone in zip(passed, missing, strict=True)]
        wrong += verdicts(AtLeast("a", values, 0.85)) == ["pass"]
    assert wrong < 0.08 * 200


def test_pass_rates_take_groups() -> None:
    values, groups = [1.0] * 96 + [0.0] * 4, [place // 10 for place in range(100)]
    assert verdicts(PassRate("a", values, 0.9)) == ["pass"]
    assert verdicts(PassRate("a", values, 0.9, groups=groups)) == ["inconclusive"]


def test_a_later_look_at_a_smaller_error_rate_needs_more() -> None:
    (now,), (later,) = decide([rate("a", 53, 60, 0.8)]), decide([rate("a", 53, 60, 0.8)], next_alpha=0.005)
    assert now.verdict == later.verdict == "inconclusive"
    assert now.more_samples is not None
    assert later.more_samples is not None
    assert now.more_samples < later.more_samples


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: decide([MaxRegression("a", [0.1, 0.2], [0.1], 0.0)]),
        DataError,
        "one entry per sample is needed in each: values has 2, baseline has 1",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said

from __future__ import annotations

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats.gates import AtLeast, AtMost, Criterion, MaxRegression, PassRate, decide, overall
from evalstone.stats.intervals import lower_limit
from evalstone.stats.power import samples_needed

GOOD = np.random.default_rng(1).beta(18, 2, 200).tolist()  # mean 0.9, deviation 0.065


def verdicts(*criteria: Criterion, alpha: float = 0.05) -> list[str]:
    return [decision.verdict for decision in decide(criteria, alpha=alpha)]


def test_a_mean_passes_fails_or_leaves_it_open() -> None:
    assert verdicts(AtLeast("a", GOOD, 0.87)) == ["pass"]
    assert verdicts(AtLeast("a", GOOD, 0.93)) == ["fail"]
    assert verdicts(AtLeast("a", GOOD, sum(GOOD) / 200)) == ["inconclusive"]
    bad = [1 - x for x in GOOD]
    assert verdicts(AtMost("a", bad, 0.13)) == ["pass"]
    assert verdicts(AtMost("a", bad, 0.07)) == ["fail"]


def test_a_decision_carries_its_numbers() -> None:
    (found,) = decide([PassRate("answers", 55, 60, 0.85)])
    # P(X >= 55) of 60 at 0.85 is 0.0968 or so: not enough for 0.05
    assert (found.kind, found.verdict, found.n, found.threshold) == ("pass_rate", "inconclusive", 60, 0.85)
    assert found.estimate == pytest.approx(55 / 60)
    assert found.low == pytest.approx(lower_limit(55, 60, 0.95))
    assert 0.05 < found.p_pass < 0.15
    assert found.p_fail > 0.9
    assert found.caution == ""
    assert found.more_samples is not None
    again = decide(
        [PassRate("answers", round(55 / 60 * (60 + 2 * found.more_samples)), 60 + 2 * found.more_samples, 0.85)]
    )
    assert again[0].verdict == "pass"


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
            PassRate("d", int(source.binomial(40, 0.8)), 40, source.uniform(0.6, 0.95)),
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


def test_looking_at_many_criteria_asks_more_of_each() -> None:
    close = PassRate("close", 56, 60, 0.85)  # p is about 0.04 alone
    assert verdicts(close) == ["pass"]
    hopeless = [PassRate(f"{place}", 30, 60, 0.5) for place in range(4)]
    assert verdicts(close, *hopeless) == ["inconclusive"] * 5
    easy = [PassRate(f"{place}", 60, 60, 0.5) for place in range(4)]
    assert verdicts(close, *easy) == ["pass"] * 5  # Holm: the easy ones are decided and no longer count


def test_groups_make_a_criterion_less_certain() -> None:
    values, groups = [1.0] * 88 + [0.0] * 12, [place // 10 for place in range(100)]
    (alone,), (grouped,) = decide([AtLeast("a", values, 0.8)]), decide([AtLeast("a", values, 0.8, groups=groups)])
    assert alone.verdict == "pass"
    assert grouped.verdict == "inconclusive"
    assert grouped.more_samples is not None


def test_a_gate_is_wrong_no_more_often_than_it_says() -> None:
    source = np.random.default_rng(3)
    wrong = {"pass": 0, "fail": 0}
    for _ in range(1000):
        counts = source.binomial(80, 0.85, 3)
        found = {d.verdict for d in decide([PassRate(f"{i}", int(c), 80, 0.85) for i, c in enumerate(counts)])}
        for kind in wrong:
            wrong[kind] += kind in found
    assert wrong["pass"] < 65  # 5 % and two standard errors
    assert wrong["fail"] < 65


def test_without_values_nothing_is_decided() -> None:
    (found,) = decide([AtLeast("a", [], 0.5)])
    assert (found.verdict, found.estimate, found.n, found.caution) == ("inconclusive", None, 0, "no values")
    assert verdicts(PassRate("a", 0, 0, 0.5)) == ["inconclusive"]
    assert decide([]) == ()


def test_few_scores_say_that_the_error_rate_is_approximate() -> None:
    (few,), (enough,) = decide([AtLeast("a", GOOD[:40], 0.5)]), decide([AtLeast("a", GOOD, 0.5)])
    assert few.caution == "small sample (n = 40): the error rate is approximate"
    assert enough.caution == ""


def test_no_number_of_samples_is_named_where_none_would_do() -> None:
    (found,) = decide([AtLeast("a", [0.4, 0.6] * 30, 0.5)])
    assert (found.verdict, found.more_samples) == ("inconclusive", None)


def test_a_gate_as_a_whole_is_its_worst_criterion() -> None:
    good, bad, open_ = PassRate("a", 60, 60, 0.5), PassRate("b", 10, 60, 0.5), PassRate("c", 30, 60, 0.5)
    assert overall(decide([good, bad, open_])) == "fail"
    assert overall(decide([good, open_])) == "inconclusive"
    assert overall(decide([good])) == "pass"
    assert overall([]) == "pass"


def test_impossible_criteria_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"a: the threshold must be in \[0, 1\], not 85"):
        decide([AtLeast("a", GOOD, 85)])
    with pytest.raises(ConfigError, match=r"a: the largest regression must be in \[0, 1\], not -0.1"):
        decide([MaxRegression("a", GOOD, GOOD, -0.1)])
    with pytest.raises(ConfigError, match="alpha must be above 0 and below"):
        decide([], alpha=0.9)
    with pytest.raises(DataError, match="values has 2, baseline has 1"):
        decide([MaxRegression("a", [0.1, 0.2], [0.1], 0.0)])
    with pytest.raises(DataError, match="a: baseline: value 0 is nan"):
        decide([MaxRegression("a", [0.1], [float("nan")], 0.0)])
    with pytest.raises(DataError, match="a: passed must be from 0 to n, not 3 of 2"):
        decide([PassRate("a", 3, 2, 0.5)])


def test_a_threshold_that_nothing_can_miss_passes() -> None:
    nothing, all_ = [0.0] * 50, [1.0] * 50
    assert verdicts(AtLeast("a", nothing, 0.0)) == ["pass"]
    assert verdicts(AtMost("a", all_, 1.0)) == ["pass"]
    assert verdicts(MaxRegression("a", nothing, all_, 1.0)) == ["pass"]
    assert verdicts(PassRate("a", 0, 50, 0.0)) == ["pass"]
    assert verdicts(AtLeast("a", [], 0.0)) == ["inconclusive"]


def test_differences_by_rounding_are_none() -> None:
    (found,) = decide([MaxRegression("a", [0.1 + 0.2, 0.5] * 5, [0.3, 0.5] * 5, 0.02)])
    assert found == decide([MaxRegression("a", [0.3, 0.5] * 5, [0.3, 0.5] * 5, 0.02)])[0]
    assert found.verdict == "inconclusive"


def test_a_p_value_of_exactly_alpha_decides() -> None:
    good, bad = PassRate("a", 2, 2, 0.5), PassRate("a", 0, 2, 0.5)
    p_pass, p_fail = decide([good])[0].p_pass, decide([bad])[0].p_fail
    assert (p_pass, p_fail) == pytest.approx((0.25, 0.25))  # both of 2, or none, at a rate of 0.5
    assert verdicts(good, alpha=p_pass) == ["pass"]
    assert verdicts(bad, alpha=p_fail) == ["fail"]
    assert verdicts(good, bad, alpha=0.24) == ["inconclusive", "inconclusive"]


def test_limits_are_at_the_alpha_that_holm_leaves() -> None:
    easy, close = PassRate("easy", 60, 60, 0.5), PassRate("close", 53, 60, 0.85)
    first, second = decide([easy, close])
    assert first.low == pytest.approx(lower_limit(60, 60, 1 - 0.05 / 2))
    assert second.low == pytest.approx(lower_limit(53, 60, 1 - 0.05))


def test_limits_stay_at_the_alpha_of_the_first_that_holm_does_not_reject() -> None:
    found = decide([PassRate("a", 53, 60, 0.85), PassRate("b", 52, 60, 0.85), PassRate("c", 51, 60, 0.85)])
    assert [each.verdict for each in found] == ["inconclusive"] * 3
    assert [each.low for each in found] == pytest.approx([lower_limit(n, 60, 1 - 0.05 / 3) for n in (53, 52, 51)])


def test_more_samples_are_reckoned_at_the_alpha_of_the_side_that_the_mean_is_on() -> None:
    close, easy = PassRate("close", 53, 60, 0.85), [PassRate(f"{place}", 60, 60, 0.5) for place in range(4)]
    (alone,), among = decide([close]), decide([close, *easy])[0]
    assert alone.verdict == among.verdict == "inconclusive"
    assert alone.more_samples == among.more_samples is not None  # Holm: the easy ones pass, and no longer count
    low, bad = PassRate("low", 51, 60, 0.9), [PassRate(f"{place}", 0, 60, 0.5) for place in range(4)]
    (alone,), among = decide([low]), decide([low, *bad])[0]
    assert alone.verdict == among.verdict == "inconclusive"
    assert alone.more_samples == among.more_samples is not None


def test_without_any_change_more_samples_are_reckoned_as_if_one_of_two_more_had_changed() -> None:
    (same,) = decide([MaxRegression("a", GOOD[:20], GOOD[:20], 0.02)])
    needed = samples_needed(0.02, deviation=1 / 22**0.5, confidence=0.95, sided=1)
    assert same.more_samples == needed - 20

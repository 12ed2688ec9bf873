from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.stats.agreement import LEVELS, WEIGHTS, cohen_kappa, krippendorff_alpha
from evalstone.stats.intervals import Interval
from evalstone.types import note

N = None


def value(found: Interval | None) -> float | None:
    """The coefficient without its limits."""
    return None if found is None else found.estimate


# Krippendorff 2011, example C: four observers (rows), twelve units (columns). It prints 0.743 for nominal, 0.815 for
# ordinal and 0.849 for interval data.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]
UNITS = list(zip(*OBSERVERS, strict=True))


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_one_that_krippendorff_prints(level: Any, printed: float):
    assert value(krippendorff_alpha(UNITS, level=level)) == pytest.approx(printed, abs=5e-4)


def test_alpha_of_binary_and_of_nominal_data_of_two_observers_is_the_one_that_krippendorff_prints():
    binary = list(zip([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0], strict=True))
    assert value(krippendorff_alpha(binary)) == pytest.approx(0.095, abs=5e-4)
    nominal = list(zip("aabbdcccedda", "babbbcccedd" + "d", strict=True))
    assert value(krippendorff_alpha(nominal)) == pytest.approx(0.692, abs=5e-4)


def test_alpha_by_hand():
    # pairs: (1, 1), (1, 2), (2, 2); n = 6, n1 = n2 = 3; o(1,2) = 2 ordered pairs; alpha = 1 - 5 · 2 / (2 · 3 · 3) = 4/9
    assert value(krippendorff_alpha([(1, 1), (1, 2), (2, 2)])) == pytest.approx(4 / 9)


def test_alpha_leaves_out_what_cannot_be_paired():
    assert value(krippendorff_alpha([(1, 1), (1, 2), (2, 2), (1, None), (None, None)])) == pytest.approx(4 / 9)


@pytest.mark.parametrize("ratings", [[], [(1, None)], [(1, 1), (1, 1)]])
def test_alpha_is_undefined_without_pairs_and_without_a_difference(ratings: Any):
    assert krippendorff_alpha(ratings) is None


def test_alpha_refuses_an_unknown_level_and_ratings_without_an_order():
    with pytest.raises(ConfigError) as raised:
        krippendorff_alpha([(1, 2)], level="nomnal")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value, raised.value.near) == (
        "level of measurement",
        "nomnal",
        ("nominal",),
    )
    with pytest.raises(DataError) as raised:
        krippendorff_alpha([("a", "b")], level="ordinal")
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("ordinal ratings", "a", "finite numbers")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8))
def test_all_coefficients_are_at_most_one_and_one_where_all_agree(rows: list[tuple[int, int, int]]):
    same = [(row[0],) * 3 for row in rows]
    for level in LEVELS:
        found = value(krippendorff_alpha(rows, level=level))
        assert found is None or found <= 1 + 1e-12
        full = value(krippendorff_alpha(same, level=level))
        assert full is None or full == pytest.approx(1)


def test_kappa_of_two_raters_by_hand():
    # 20 both yes, 15 both no, 5 and 10 mixed: observed 0.7, expected 0.5 · 0.6 + 0.5 · 0.4 = 0.5, kappa 0.4
    one, two = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = cohen_kappa(one, two)
    assert found is not None
    assert found.estimate == pytest.approx(0.4)
    # the large-sample interval is 0.151 to 0.649
    assert (found.low, found.high) == (pytest.approx(0.121, abs=2e-3), pytest.approx(0.633, abs=2e-3))
    assert found.method == "Fieller"


def test_kappa_is_undefined_for_constants_and_has_no_limits_for_one_unit():
    assert cohen_kappa([1, 1], [1, 1]) is None
    assert cohen_kappa([], []) is None
    single = cohen_kappa([1], [0])
    assert single is not None
    assert (single.estimate, single.low, single.high, single.notes) == (
        0.0,
        None,
        None,
        (note("single_unit", "caution", noun="sample"),),
    )


@pytest.mark.parametrize("coefficient", ["cohen", "linear", "alpha", "interval"])
def test_full_agreement_in_a_sample_is_not_certain(coefficient: str):
    rows = [(1, 1)] * 20 + [(0, 0)] * 10
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    found = {
        "cohen": cohen_kappa(first, second),
        "linear": cohen_kappa(first, second, weights="linear"),
        "alpha": krippendorff_alpha(rows),
        "interval": krippendorff_alpha(rows, level="interval"),
    }[coefficient]
    assert found is not None
    assert (found.estimate, found.high) == (pytest.approx(1), pytest.approx(1))
    # a share of 1 - 0.025^(1/30) = 0.116 of units may differ, where about 4/9 would by chance
    assert found.low is not None
    assert 0.70 < found.low < 0.85


def test_weighted_kappa_by_hand():
    # distances 0, 1, 0, 0: D = 1/4. All 16 pairs are (0 + 1 + 1 + 2) · 2 + (1 + 0 + 0 + 1) + (2 + 1 + 1 + 0) = 14
    # apart, and (0 + 1 + 1 + 4) · 2 + (1 + 0 + 0 + 1) + (4 + 1 + 1 + 0) = 20 in squares
    first, second = [1, 1, 2, 3], [1, 2, 2, 3]
    assert value(cohen_kappa(first, second, weights="linear")) == pytest.approx(1 - 4 / 14)
    assert value(cohen_kappa(first, second, weights="quadratic")) == pytest.approx(1 - 4 / 20)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
@example([(1, 0), (1, 0), (1, 0), (1, 0), (1, 1)])
def test_weighted_kappa_is_that_of_all_pairs_and_of_two_levels_the_plain_one(rows: list[tuple[int, int]]):
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    for power, weights in enumerate(WEIGHTS, 1):
        chance = sum(abs(a - b) ** power for a in first for b in second) / len(rows) ** 2
        seen = sum(abs(a - b) ** power for a, b in rows) / len(rows)
        found = value(cohen_kappa(first, second, weights=weights))
        assert found == (None if chance == 0 else pytest.approx(1 - seen / chance))
    halves = [[min(one, 1) for one in ratings] for ratings in (first, second)]
    plain = value(cohen_kappa(*halves))
    expected = None if plain is None else pytest.approx(plain, abs=1e-12)
    assert all(value(cohen_kappa(*halves, weights=one)) == expected for one in WEIGHTS)


def test_weighted_kappa_of_continuous_scores_has_limits_and_words_have_none():
    first = [place / 40 for place in range(40)]
    second = [min(1.0, x + (0.2 if place % 3 else 0.0)) for place, x in enumerate(first)]
    found = cohen_kappa(first, second, weights="quadratic")
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low < found.estimate < found.high <= 1
    with pytest.raises(DataError) as raised:
        cohen_kappa(["good"], ["bad"], weights="linear")
    assert (raised.value.field, raised.value.value, raised.value.allowed) == (
        "weighted ratings",
        "good",
        "finite numbers",
    )
    with pytest.raises(ConfigError) as raised:
        cohen_kappa([1], [2], weights="lineal")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value, raised.value.near) == ("weights", "lineal", ("linear",))


@pytest.mark.parametrize(("share", "truth", "least"), [(0.5, 0.8, 55), (0.8, 0.95, 55), (0.95, 0.4, 51)])
def test_the_limits_of_kappa_hold_also_with_skewed_margins_and_near_full_agreement(
    share: float, truth: float, least: int
):
    apart = (1 - truth) * share * (1 - share)
    source, held = random.Random(3), 0
    cells = [(1, 1), (1, 0), (0, 1), (0, 0)]
    for _ in range(60):
        rows = source.choices(cells, [share - apart, apart, apart, 1 - share - apart], k=30)
        found = cohen_kappa([row[0] for row in rows], [row[1] for row in rows])
        held += found is None or (found.low or 0.0) <= truth <= (found.high or 0.0)
    assert held >= least


@pytest.mark.parametrize("missing", [None, math.nan, float("nan")])
def test_what_is_missing_is_no_category(missing: float | None) -> None:
    first, second = [1, 1, 0, 0, 1, 0, 1, 1], [1, 1, 0, 1, 1, 0, 1, 0]
    rows = list(zip(first, second, strict=True))
    for weights in (None, *WEIGHTS):
        with_missing = cohen_kappa([*first, missing, missing, 1], [*second, missing, 0, missing], weights=weights)
        assert with_missing == cohen_kappa(first, second, weights=weights)
    assert cohen_kappa([missing], [1]) is None
    for level in LEVELS:
        with_missing = krippendorff_alpha([*rows, (missing, missing), (1, missing)], level=level)
        assert with_missing == krippendorff_alpha(rows, level=level)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: cohen_kappa([1], [1, 2]),
        DataError,
        "two raters rate the same units; one has 1 ratings, the other 2",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said

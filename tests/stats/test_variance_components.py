from __future__ import annotations

import math

import numpy as np
import pytest

from evalstone.errors import DataError
from evalstone.stats.variance_components import variance_components


def test_components_worked_by_hand() -> None:
    # Two samples, two runs each, two judgments of each.
    # within: each pair differs by 0.2, so 4 · 0.02 / 4 = 0.02. Run means 0.1, 0.5 and 0.7, 0.9: mean square
    # (2 · 2 · 0.2² + 2 · 2 · 0.1²) / 2 = 0.1, so runs = (0.1 - 0.02) / 2 = 0.04. Sample means 0.3, 0.8:
    # mean square 4 · 2 · 0.25² / 1 = 0.5, so samples = (0.5 - 0.1) / 4 = 0.1.
    table = [[[0.0, 0.2], [0.4, 0.6]], [[0.6, 0.8], [0.8, 1.0]]]
    found = variance_components(table)
    assert found is not None
    assert (found.judge, found.runs, found.samples) == (
        pytest.approx(0.02),
        pytest.approx(0.04),
        pytest.approx(0.1),
    )
    assert (found.mean.mean, found.n, found.runs_each, found.judgments_each) == (pytest.approx(0.55), 2, 2, 2)
    # √((0.1 + (0.04 + 0.02 / 2) / 2) / 2), which is the spread of the samples' means too
    assert found.standard_error() == pytest.approx(math.sqrt(0.0625))
    assert found.standard_error(n=50, runs=1, judgments=4) == pytest.approx(math.sqrt((0.1 + 0.04 + 0.005) / 50))


def test_components_of_uneven_tables_come_out_right_on_average() -> None:
    source = np.random.default_rng(3)
    found: list[tuple[float, float, float]] = []
    for _ in range(150):
        table = [
            [
                (0.5 + sample + run + source.normal(0, 0.05, source.integers(1, 4))).tolist()
                for run in source.normal(0, 0.1, source.integers(1, 4))
            ]
            for sample in source.normal(0, 0.2, 40)
        ]
        made = variance_components(table, low=-math.inf, high=math.inf)
        assert made is not None
        assert made.samples is not None
        assert made.runs is not None
        assert made.judge is not None
        found.append((made.samples, made.runs, made.judge))
    samples, runs, judge = np.mean(found, axis=0)
    assert samples == pytest.approx(0.04, rel=0.06)
    assert runs == pytest.approx(0.01, rel=0.06)
    assert judge == pytest.approx(0.0025, rel=0.06)


def test_what_was_not_repeated_has_no_variance_of_its_own() -> None:
    once = variance_components([[[0.2]], [[0.8]], [[0.6]]])
    assert once is not None
    assert (once.runs, once.judge) == (None, None)
    assert once.samples == pytest.approx(np.var([0.2, 0.8, 0.6], ddof=1))
    judged_twice = variance_components([[[0.2, 0.4]], [[0.8, 0.6]]])
    assert judged_twice is not None
    assert judged_twice.runs is None
    assert judged_twice.judge == pytest.approx(0.02)


def test_a_variance_below_nothing_is_nothing_and_says_so() -> None:
    found = variance_components([[[0.0, 1.0]], [[0.1, 0.9]]])
    assert found is not None
    assert found.samples == 0
    assert "no variance is left for: samples" in found.caution


def test_one_sample_has_no_standard_error_and_gaps_are_named() -> None:
    one = variance_components([[[0.2, 0.4], [0.3]]])
    assert one is not None
    assert (one.samples, one.standard_error()) == (None, None)
    assert variance_components([]) is None
    with pytest.raises(DataError, match="sample 1 has no run, or a run without a judgment"):
        variance_components([[[0.5]], [[]]])
    with pytest.raises(DataError, match="counts must be 1 or more"):
        one.standard_error(runs=0.5)


def test_a_count_of_0_is_refused() -> None:
    found = variance_components([[[0.5], [0.6]], [[0.7], [0.9]]])
    assert found is not None
    with pytest.raises(DataError, match="counts must be 1 or more: n 0"):
        found.standard_error(n=0)

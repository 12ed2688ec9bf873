from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import codes, column, group_sums, same_length


def test_a_column_names_the_first_value_that_does_not_fit() -> None:
    with pytest.raises(DataError) as raised:
        column("scores", [0.5, np.inf, np.nan])
    assert (raised.value.field, raised.value.allowed) == ("scores[1]", "a finite number")
    with pytest.raises(DataError) as raised:
        column("scores", [0.0, 5.0, 5.5], 0, 5)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("scores[2]", 5.5, "a number in [0, 5]")


def test_a_value_that_misses_the_end_by_rounding_is_the_end() -> None:
    assert column("scores", [0.1 + 0.2 + 0.7 + 2e-16], 0, 1).tolist() == [1.0]
    assert column("scores", [1e9 + 1e-6], 0, 1e9).tolist() == [1e9]
    with pytest.raises(DataError, match="scores: value 0 is 2e-09"):
        column("scores", [2e-9], 0, 1e-9)


def test_lengths_that_differ_are_named() -> None:
    assert same_length(a=[1, 2], b=None, c=[3, 4]) == 2
    with pytest.raises(DataError, match="a has 2, c has 1"):
        same_length(a=[1, 2], b=None, c=[3])


def test_labels_become_numbers_in_order_and_groups_add_up() -> None:
    labels = codes(["b", None, "b", ("a", 1)])
    assert labels.tolist() == [0, 1, 0, 2]
    assert group_sums(np.array([1.0, 2.0, 3.0, 4.0]), labels).tolist() == [4, 2, 4]


@pytest.mark.parametrize(("wrong", "told"), [(None, "None"), ("good", "'good'"), ([0.5], r"\[0\.5\]")])
def test_what_is_no_number_is_named(wrong: Any, told: str) -> None:
    with pytest.raises(DataError, match=f"scores: value 1 is {told}, not a .*number"):
        column("scores", [0.5, wrong])


@pytest.mark.parametrize("scale", [0, -1, np.nan])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(ConfigError, match=r"scores: low .* high"):
        column("scores", [0.0], 0, scale)

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.json import content_hash, encoder, to_jsonable, value_of


@dataclass(frozen=True)
class Setting:
    value: float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (10**16, 1e16),
        (15 * 10**15, 1.5e16),
        ([1, {"a": 2}], [1.0, {"a": 2.0}]),
        (Setting(3), Setting(3.0)),
        ({"a": "x", "b": 1}, {"b": 1.0, "a": "x"}),
    ],
)
def test_equal_values_have_one_hash(one: Any, other: Any):
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), (1, "1"), ("1", "1.0"), (1, 1.5), (0, 1e-7), (1.05, 1), (0, None)]
)
def test_values_that_differ_have_two_hashes(one: Any, other: Any):
    assert content_hash(one) != content_hash(other)


@given(st.integers(-(2**53), 2**53))
def test_an_integer_and_its_float_have_one_hash(number: int):
    assert content_hash(["x", number]) == content_hash(["x", float(number)])


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_numbers_have_one_hash_exactly_if_they_are_equal(one: float, other: float):
    assert (content_hash(one) == content_hash(other)) == (one == other)


def test_data_keep_their_numbers_as_they_are():
    assert repr(to_jsonable([1.0, {"a": 2.0}, Setting(3.0)])) == "[1.0, {'a': 2.0}, {'value': 3.0}]"


@pytest.mark.parametrize("text", ['{"a": [1, 2.5]}', ' "b"\n', "NaN", "", "[1", "1 2", "\ufeff1"])
def test_a_value_of_json_is_that_of_the_library(text: str) -> None:
    def read(parse: Callable[[str], object]) -> str:
        try:
            return repr(parse(text))
        except ValueError as error:
            return str(error)

    assert read(value_of) == read(json.loads)


@pytest.mark.parametrize(
    ("options", "usual"),
    [
        ({}, json.JSONEncoder()),
        ({"ensure_ascii": False}, json.JSONEncoder(ensure_ascii=False)),
        ({"sort_keys": True, "compact": True}, json.JSONEncoder(sort_keys=True, separators=(",", ":"))),
    ],
)
def test_an_encoder_writes_what_that_of_the_standard_library_writes(
    options: dict[str, bool], usual: json.JSONEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: list[object] = ['\u00e4\u2028"\ud800', 1, 2.5, None, True, [], {}, (1, [2]), {1: 2}, float("nan")]
    values.append({"b": [1, 2.0, {"c": "\u00fc"}], "a": None})
    fast = encoder(**options)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    for encode in (fast, encoder(**options)):
        assert [*map(encode, values)] == [*map(usual.encode, values)]
        with pytest.raises(TypeError, match="not JSON serializable"):
            encode({"a": object()})


def test_an_encoder_refuses_what_is_no_json() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        encoder()(endless)
    with pytest.raises(ValueError, match="not JSON compliant"):
        encoder(allow_nan=False)([float("inf")])

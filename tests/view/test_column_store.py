"""Columns in a file: what is written is read, whole or in a few rows, and listed in order."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.json import storable
from evalstone._core.packed_texts import PackedTexts
from evalstone.view.indexing import column_store
from evalstone.view.indexing.column_store import TABLE, ColumnWriter, StoredColumns, ordered


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_store, "CHUNK", 7)


def stored(write: Callable[[ColumnWriter], None]) -> StoredColumns:
    connection = sqlite3.connect(":memory:")
    connection.execute(TABLE)
    writer = ColumnWriter(connection)
    write(writer)
    return StoredColumns(connection, writer.about)


def packed(texts: Sequence[str]) -> PackedTexts:
    some = PackedTexts()
    some.extend(texts)
    return some


@pytest.mark.parametrize(
    "values",
    [[], [1.5], [math.nan] * 20, [2.0] * 20, [n / 3 if n % 4 else math.nan for n in range(20)]],
    ids=["none", "one", "all missing", "all the same", "some missing"],
)
def test_numbers_are_read_as_they_were_written(values: list[float]) -> None:
    columns = stored(lambda writer: writer.numbers("x", np.array(values)))
    expected = [None if math.isnan(value) else value for value in values]
    rows = [*range(len(values))][::-3]
    for _ in range(9):
        assert columns.numbers_at("x", rows) == [expected[row] for row in rows]
    assert [None if math.isnan(value) else value for value in columns.numbers("x").tolist()] == expected
    assert columns.numbers_at("x", rows) == [expected[row] for row in rows]


@pytest.mark.parametrize("kind", [list, packed], ids=["list", "packed"])
def test_texts_are_read_as_storable(kind: Callable[[list[str]], Sequence[str]]) -> None:
    texts = ["a", "", "é", "\ud800x", "\x00", "東京", *(f"sample-{n}" for n in range(22)), "\ud7ff"]  # a chunk has one
    columns = stored(lambda writer: writer.texts("x", kind(texts)))
    rows = [3, 4, 25, 0, 19]
    for _ in range(9):  # a column that is read again and again is kept
        assert columns.texts_at("x", rows) == [storable(texts[row]) for row in rows]
    assert [*columns.texts("x")] == [*map(storable, texts)]
    assert columns.texts_at("x", rows) == [storable(texts[row]) for row in rows]
    assert [columns.find("x", storable(text)) for text in texts] == [*range(len(texts))]
    assert columns.find("x", "sample") is None
    assert np.flatnonzero(columns.matching("x", "E-1$")).tolist() == [7]
    assert not columns.matching("x", "").any()


NUMBERS = st.lists(st.sampled_from([0.0, 0.5, 1.0, math.nan]), max_size=30)
TEXTS = st.lists(st.text("aé漢😀z", max_size=18), max_size=30, unique=True)


def listed(values: Sequence[Any], descending: bool) -> list[int]:
    """All rows in order."""
    known = [row for row, value in enumerate(values) if value == value]
    known.sort(key=lambda row: values[row], reverse=descending)  # of equal values, the first stays first
    return [*known, *(row for row, value in enumerate(values) if value != value)]


@given(NUMBERS | TEXTS, st.booleans(), st.integers(1, 5), st.integers(0, 4))
def test_pages_are_parts_of_the_whole_order(values: list[Any], descending: bool, size: int, every: int) -> None:
    are_texts = any(isinstance(value, str) for value in values)
    column = packed(values) if are_texts else np.array(values, np.float64)
    found = None if not every else np.arange(len(values)) % (every + 1) > 0
    expected = [row for row in listed(values, descending) if found is None or found[row]]
    assert ordered(column, found, None, len(values) + 1, descending=descending) == expected
    for at, row in enumerate(expected):
        value = None if values[row] != values[row] else values[row]
        after = ordered(column, found, (value, row + 1), size, descending=descending)
        assert after == expected[at + 1 : at + 1 + size]
        before = ordered(column, found, (value, row + 1), size, descending=descending, back=True)
        assert before == expected[:at][::-1][:size]


def test_a_text_comes_after_any_number() -> None:
    numbers, texts = np.array([0.5, math.nan, 0.25]), packed(["a", "b"])
    assert ordered(numbers, None, ("a", 1), 5) == [1]
    assert ordered(numbers, None, ("a", 1), 5, descending=True) == [0, 2, 1]
    assert ordered(texts, None, (0.5, 1), 5) == [0, 1]
    assert ordered(texts, None, (0.5, 1), 5, descending=True) == []
    assert ordered(numbers, None, (math.nan, 1), 5) == [1]

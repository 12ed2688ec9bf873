"""The JSON of replies, which is read more strictly than that of data files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.datasets.json_rows import reply_json
from evalstone.errors import DataError

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@pytest.mark.parametrize("lines", [False, True])
@given(VALUES)
def test_what_json_can_say_is_read(lines: bool, value: Any) -> None:
    assert reply_json(json.dumps(value).encode(), lines=lines) == value


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert reply_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_lines_are_read_where_they_are_expected() -> None:
    content = b'{"a": 1}\n\n{"a": 2}\n'
    assert reply_json(content, lines=True) == [{"a": 1}, {"a": 2}]
    with pytest.raises(DataError, match=r"line 3, column 1: .*Extra"):
        reply_json(content)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-2.5E+999"])
def test_a_number_that_is_not_finite_is_refused_with_its_line(number: str) -> None:
    content = f'{{"text": "NaN, \\"1e400",\n "fine": [1.5, {"9" * 400}],\n "cost": {number}}}'.encode()
    with pytest.raises(DataError, match=rf"^line 3: '{number.replace('+', '.')}' is no finite"):
        reply_json(content)

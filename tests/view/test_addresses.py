"""Names in addresses: any text is one part of a path, and comes back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstone.view.addresses import name_in, part, sample_address


@given(st.text())
@example("..")
@example(".")
@example("")
@example("~")
@example("a/b?c#d%2F")
@example("report.json")
@example("x.csv")
@example("\u202eevil")
@example("\ud800")
def test_any_name_is_one_part_and_comes_back(name: str) -> None:
    text = part(name)
    assert name_in(text) == name
    assert text.isascii()
    assert not set(text) & set("/?#& \"'<>")
    assert text.strip(".")
    assert not text.endswith((".json", ".csv"))


def test_bytes_that_are_no_text_are_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        name_in("%ff")


def test_a_sample_is_below_its_run() -> None:
    assert sample_address("a/b", "c d") == "/runs/a%2Fb/samples/c%20d"

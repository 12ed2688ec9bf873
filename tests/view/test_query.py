"""Queries in addresses."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.errors import ConfigError
from evalstone.view.query import SampleQuery
from evalstone.view.search_words import search_of

QUERIES = [
    SampleQuery(),
    SampleQuery(q='"two words" three', show="failed", scorer="given", min=0.25, max=1.0, sort="-score:given"),
    SampleQuery(field=(("topic", "a=b"), ("lang", "de")), column=("reference", "cost"), after="[0.5, 3]"),
    SampleQuery(reason="no context", before="[null, 7]", sort="seconds"),
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_comes_back_from_its_address(query: SampleQuery) -> None:
    assert SampleQuery.of(query.pairs()) == query


def test_defaults_and_empty_parameters_are_not_in_an_address() -> None:
    assert SampleQuery().pairs() == []
    pairs = [("q", " "), ("min", ""), ("field", "topic="), ("unknown", "x"), ("show", "all")]
    assert SampleQuery.of(pairs) == SampleQuery()


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("show", "everything", "unknown"),
        ("sort", "beauty", "unknown"),
        ("column", "color", "unknown"),
        ("min", "low", "invalid"),
        ("max", "nan", "invalid"),
        ("max", "inf", "invalid"),
        ("field", "topic", "invalid"),
        ("q", "x" * 2001, "invalid"),
    ],
)
def test_what_makes_no_sense_is_an_error(name: str, text: str, kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SampleQuery.of([(name, text)])
    assert caught.value.to_dict()["kind"] == kind


@given(st.text())
def test_anything_typed_is_a_search_or_none(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    if search := search_of(text):
        connection.execute("SELECT * FROM t WHERE t MATCH ?", (search,)).fetchall()
    connection.close()

"""Rows of texts are read in a shorter way, after the first with their columns: the sample is the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.types import Sample

COLUMNS = (
    "id", "input", "question", "user_input", "instruction", "inputs", "output", "answer", "outputs", "reference",
    "ground_truth", "ground_truths", "expected_output", "context", "contexts", "instructions", "system", "group",
    "vars", "messages", "trial", "state", "weight", "attributes", "topic", "metadata",
)  # fmt: skip
WRITTEN = (
    "Paris.", "", "  ", "[1] is a citation", '["a", "b"]', '{"role": "user", "content": "hi"}', "[]", "{}",
    '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]', "content='x' additional_kwargs={}",
    "HumanMessage(content='hi')", "ChatCompletion(id='1')", "a | b", "42", "null", '["only"]',
    "\n [{'type': 'text', 'text': 'hi'}]",
)  # fmt: skip
TEXTS = st.sampled_from(WRITTEN) | st.text(max_size=8)
VALUES = TEXTS | st.none() | st.integers(0, 3) | st.lists(TEXTS | st.none(), max_size=3) | st.dictionaries(TEXTS, TEXTS)
NOT_IN_EVERY_ROW = "column 'weight' has weights, and not one in every row"
ROWS = st.dictionaries(st.sampled_from(COLUMNS), VALUES, min_size=1, max_size=5)


def read(reader: RowReader, row: dict[str, Any]) -> Any:
    """All fields of the sample of a row, or the error."""
    try:
        sample = reader.read(row)
    except DataError as error:
        return str(error)
    return {name: getattr(sample, name) for name in Sample.__dataclass_fields__}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two rows with the same columns."""
    row: dict[str, Any] = {**draw(ROWS)}
    values = draw(st.lists(VALUES, min_size=len(row), max_size=len(row)))
    return row, dict(zip(row, values, strict=True))


@given(pairs())
@example(({"weight": None}, {"weight": 1}))
@example(({"weight": 1}, {"weight": None}))
@example(({"input": "a", "metadata": {"a": "b"}}, {"input": "a", "metadata": {"a": 1, "b": None, "c": [1, None]}}))
@example(({"input": "a", "metadata": {}, "topic": "x"}, {"input": "a", "metadata": {"topic": "y"}, "topic": "x"}))
@example(({"input": "a", "metadata": {"a": {}}}, {"input": "a", "metadata": {"a": {"b": 1.5}}}))
def test_a_row_gives_the_sample_that_it_gives_alone(rows: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Except that rows with and without a weight don't go together."""
    reader, (row, later) = RowReader(), rows
    mixed = len({each.get("weight") in (None, "") for each in rows}) == 2
    read(reader, row)
    for each in (later, row):
        found = read(reader, each)
        assert found == read(RowReader(), each) or (mixed and NOT_IN_EVERY_ROW in found)


def test_a_weight_after_a_row_without_one_is_refused_in_either_order() -> None:
    for rows in ([None, 1], [1, None], [None, None, 1]):
        reader = RowReader()
        *first, last = [read(reader, {"question": "q", "weight": weight}) for weight in rows]
        assert [each["weight"] for each in first] == rows[:-1]
        assert NOT_IN_EVERY_ROW in last


@given(st.fixed_dictionaries({"id": TEXTS, "question": TEXTS, "answer": TEXTS}), st.lists(TEXTS, max_size=3))
def test_a_row_of_texts_and_passages_gives_the_sample_that_it_gives_alone(
    row: dict[str, Any], context: list[str]
) -> None:
    reader = RowReader()
    read(reader, {"id": "0", "question": "q", "answer": "a", "contexts": ["p"]})
    assert read(reader, {**row, "contexts": context}) == read(RowReader(), {**row, "contexts": context})


@pytest.mark.parametrize("options", [{"text_cells": True}, {"mapping": {"reference": "answer"}}])
def test_cells_of_csv_and_mapped_columns_are_read_in_full(options: dict[str, Any]) -> None:
    row = {"input": "q", "answer": "['a']"}
    once, twice = RowReader(**options), RowReader(**options)
    read(twice, {"input": "q", "answer": "a"})
    assert read(once, row) == read(twice, row)


CELLS = st.none() | TEXTS.filter(str.strip) | st.sampled_from(
    ("nan", "Naples", "#N/A", "42.0", '"quoted"', '{"text": "hi"}', " {}", "1.5E+20", "('a', 'b')", "x" * 32_767)
)  # fmt: skip
MAPPINGS: tuple[dict[str, Any], ...] = (
    {}, {"input": "topic"}, {"output": ""}, {"context": ["context", "topic"]}, {"reference": "vars.a"},
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of a table."""
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(columns), max_size=len(columns)), min_size=2, max_size=4))
    return [dict(zip(columns, row, strict=True)) for row in rows]


@given(tables(), st.sampled_from(MAPPINGS), st.sampled_from((None, {"context": "|"})), st.booleans())
@example([{"question": "q", "answer": "a"}, {"question": "q", "answer": None}] * 2, {}, None, True)
@example([{"context": "a | b", "input": "q", "topic": "t"}] * 2, {}, {"context": "|"}, True)
@example([{"context": '["a", "b"]', "input": "q"}, {"context": "(1", "input": "q"}] * 2, {}, None, True)
@example([{"input": "q", "topic": "t"}] * 2, {"input": "topic"}, None, True)
@example([{"instruction": "i", "input": "q"}] * 2, {}, None, True)
@example([{"input": "q", "reference": '["a"]'}, {"input": "q", "reference": "a"}] * 2, {}, None, True)
def test_a_table_is_read_as_if_each_of_its_rows_were_the_first(
    rows: list[dict[str, Any]], mapping: dict[str, Any], split: dict[str, str] | None, text_cells: bool
) -> None:
    """The samples, and what is noticed of the columns."""
    short, long = (RowReader(mapping, text_cells=text_cells, split=split) for _ in range(2))
    for row in rows * 2:
        found = read(short, row)
        long.forget()
        assert found == read(long, row)
    for reader in (short, long):
        reader.forget()
    assert (short.columns.became, short.ignored, short.lost_types) == (
        long.columns.became,
        long.ignored,
        long.lost_types,
    )
    assert list(short.notes()) == list(long.notes())

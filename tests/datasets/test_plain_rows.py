"""Rows of texts are read in a shorter way, after the first with their columns: the sample is the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError
from evalstone.types import Sample

COLUMNS = (
    "id", "input", "question", "user_input", "instruction", "inputs", "output", "answer", "outputs", "reference",
    "ground_truth", "ground_truths", "expected_output", "context", "contexts", "instructions", "system", "group",
    "vars", "messages", "trial", "state", "weight", "attributes", "topic",
)  # fmt: skip
WRITTEN = (
    "Paris.", "", "  ", "[1] is a citation", '["a", "b"]', '{"role": "user", "content": "hi"}', "[]", "{}",
    '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]', "content='x' additional_kwargs={}",
    "HumanMessage(content='hi')", "ChatCompletion(id='1')", "a | b", "42", "null", '["only"]',
    "\n [{'type': 'text', 'text': 'hi'}]",
)  # fmt: skip
TEXTS = st.sampled_from(WRITTEN) | st.text(max_size=8)
VALUES = TEXTS | st.none() | st.integers(0, 3) | st.lists(TEXTS | st.none(), max_size=3) | st.dictionaries(TEXTS, TEXTS)
ROWS = st.dictionaries(st.sampled_from(COLUMNS), VALUES, min_size=1, max_size=5)


def read(reader: RowReader, row: dict[str, Any]) -> Any:
    """All fields of the sample of a row, or the error."""
    try:
        sample = reader.read(row)
    except DataError as error:
        return str(error)
    return {name: getattr(sample, name) for name in Sample.__dataclass_fields__}


@given(ROWS, st.data())
def test_a_row_gives_the_sample_that_it_gives_alone(row: dict[str, Any], data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=len(row), max_size=len(row)))
    reader, later = RowReader(), dict(zip(row, values, strict=True))
    read(reader, row)
    assert read(reader, later) == read(RowReader(), later)
    assert read(reader, row) == read(RowReader(), row)


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

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow  # pyright: ignore[reportMissingTypeStubs]
import pytest

from evalstone.datasets import load
from evalstone.errors import DataError
from evalstone.types import Sample


class Array:
    """What numpy's arrays do."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def tolist(self) -> list[Any]:
        return list(self.items)


class NAType:
    """What pandas puts for a missing value; its truth cannot be asked."""

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


class PandasLike:
    def __init__(self, columns: list[Any], rows: list[dict[Any, Any]]) -> None:
        self.columns = columns
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def to_dict(self, orient: str) -> list[dict[Any, Any]]:
        assert orient == "records"
        return self.rows


class PolarsLike:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.columns = list(rows[0])
        self.rows = rows

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.rows


def test_a_pandas_table_is_read_and_its_missing_cells_are_absent() -> None:
    rows = [
        {"question": "q", "contexts": Array("p", "r"), "answer": math.nan, "n": NAType(), 5: 1.0},
        {"question": "r", "contexts": '["p"]', "answer": "a", "n": 2, 5: math.nan},
    ]
    first, second = load(PandasLike(["question", "contexts", "answer", "n", 5], rows))
    assert (first.context, first.output, first.metadata) == (("p", "r"), None, {"5": 1.0})
    assert (second.context, second.output, second.metadata) == (("p",), "a", {"n": 2})


def test_a_polars_table_is_read() -> None:
    dataset = load(PolarsLike([{"input": "q", "output": None}]))
    assert (dataset.name, dataset.samples[0].input, dataset.samples[0].output) == ("in memory", "q", None)


def test_an_arrow_table_is_read() -> None:
    arrow: Any = pyarrow
    dataset = load(arrow.table({"question": ["q"], "contexts": [["p", "r"]]}))
    assert dataset.samples[0].context == ("p", "r")


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_a_dictionary_is_read_whatever_its_texts_are_stored_as(kind: str) -> None:
    arrow: Any = pyarrow
    texts = arrow.array(["a", "b", None], getattr(arrow, kind)())
    codes = arrow.DictionaryArray.from_arrays(arrow.array([9, 1, None, 0, 1, 2], arrow.int8()).slice(1), texts)
    dataset = load(arrow.table({"input": ["q"] * 5, "output": codes}))
    assert [sample.output for sample in dataset.samples] == ["b", None, "a", "b", None]


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(DataError, match=r"two columns .* 'input'"):
        load(PandasLike(["input", "input"], [{"input": "q"}]))


def test_a_wrong_cell_of_a_table_is_refused_with_its_row() -> None:
    with pytest.raises(DataError, match=r"^row 2: input .* list: \[5\]"):
        load(PolarsLike([{"input": "q"}, {"input": [5]}]))


def test_samples_and_mappings_are_read_from_any_iterable() -> None:
    given = Sample(input="r", id="mine")
    dataset = load(item for item in [{"question": "q"}, given])
    assert [sample.input for sample in dataset] == ["q", "r"]
    assert dataset.samples[1] is given


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ([], "the dataset has no samples"),
        (["q"], "item 1 must be a Sample or an object, not str: 'q'"),
        ({"question": ["q"], "answer": []}, "the lengths are question 1, answer 0"),
        ({"train": [], "test": []}, "not one object with train, test; pass one of its entries"),
        (
            {"q1": {"question": "q", "answer": "a"}, "q2": {"question": "r"}},
            "rows under q1, q2. Save the rows as a list, with these names in a column id",
        ),
        (5, "a dataset must be a path, a table, or a list of samples or objects, not int: 5"),
        (None, "not NoneType"),
        (b"x", "not bytes"),
    ],
)
def test_what_is_no_data_set_is_refused(source: Any, text: str) -> None:
    with pytest.raises(DataError) as caught:
        load(source)
    assert text in str(caught.value)


def test_real_tables_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    datasets = pytest.importorskip("datasets")
    columns = {"question": ["q", "r"], "contexts": [["p"], []], "answer": ["a", None]}
    versions = {
        load(table).version
        for table in (pandas.DataFrame(columns), polars.DataFrame(columns), datasets.Dataset.from_dict(columns))
    }
    assert len(versions) == 1

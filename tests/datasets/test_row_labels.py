"""The row labels (index) of pandas: rows are one sample each whatever their labels, and labels are not lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets import load, sample_from
from evalstone.errors import DataError
from evalstone.results.labels import LabelReader, read_labels
from tests.workbooks import write_xlsx

pandas: Any = pytest.importorskip("pandas")
pyarrow: Any = pytest.importorskip("pyarrow")

COLUMNS = {"question": ["q", "r", "s"], "answer": ["a", "b", "c"]}


def refusal(source: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(source)
    return str(caught.value)


def rows(source: Any) -> list[tuple[Any, ...]]:
    return [(sample.input, sample.output, sample.metadata.get("index")) for sample in load(source)]


@pytest.mark.parametrize("orient", ["columns", "index", "split"])
def test_rows_of_a_filtered_table_are_one_sample_each(tmp_path: Path, orient: str) -> None:
    frame = pandas.DataFrame(COLUMNS)
    path = tmp_path / "d.json"
    frame[frame.question != "q"].to_json(path, orient=orient)
    expected = [("r", "b", 1), ("s", "c", 2)] if orient == "split" else [("r", "b", "1"), ("s", "c", "2")]
    assert rows(path) == rows(json.loads(path.read_text())) == expected
    frame[frame.question == "s"].to_json(path, orient=orient)
    assert rows(path) == expected[1:]


def test_filtered_tables_are_read_in_memory_with_their_row_labels() -> None:
    frame = pandas.DataFrame(COLUMNS)
    filtered = frame[frame.question != "q"]
    assert rows(filtered) == rows(filtered.to_dict("split")) == [("r", "b", 1), ("s", "c", 2)]
    assert rows(filtered.to_dict()) == rows(filtered.to_dict("index")) == [("r", "b", "1"), ("s", "c", "2")]
    assert rows(filtered.reset_index(drop=True)) == rows(frame.iloc[1:].to_dict("records"))


def test_ids_in_the_index_are_read(tmp_path: Path) -> None:
    frame = pandas.DataFrame({**COLUMNS, "id": ["x", "y", "z"], "topic": ["t", "u", "v"]})
    expected = load(frame).samples
    several = frame.set_index(["id", "topic"])
    several.to_parquet(tmp_path / "d.parquet")
    for source in (frame.set_index("id"), several, several.to_dict("tight"), tmp_path / "d.parquet"):
        assert load(source).samples == expected
    numbered = frame.assign(id=[5, 6, 7]).set_index("id")
    numbered.to_parquet(tmp_path / "d.parquet")  # pandas stores only where such an index begins and ends
    table = pyarrow.Table.from_pandas(numbered)
    for source in (numbered, table, table.to_batches()[0], tmp_path / "d.parquet"):
        assert [sample.id for sample in load(source)] == ["5", "6", "7"]
    # Whose labels these are can't be told, unless pandas has stored each of them, as it did before its third version.
    first = load(table.slice(1)).samples[0]
    assert first.id == "6" if "id" in table.column_names else not first.has_own_id


def test_labels_of_a_table_with_a_schema_are_left_out_if_they_count_the_rows(tmp_path: Path) -> None:
    frame = pandas.DataFrame(COLUMNS)
    path = tmp_path / "d.json"
    frame.to_json(path, orient="table")
    assert load(path).samples == load(json.loads(path.read_text())).samples == load(frame).samples
    frame[frame.question != "q"].to_json(path, orient="table")
    assert rows(path) == [("r", "b", 1), ("s", "c", 2)]
    own = [{"input": "q", "output": "a", "index": 0}]
    assert rows({"schema": {"primaryKey": ["index"]}, "data": own}) == [("q", "a", 0)]


def test_labels_without_a_name_are_a_column_index_unless_they_count_the_rows() -> None:
    frame = pandas.DataFrame(COLUMNS, index=["x", "y", "z"])
    assert rows(frame) == rows(frame.to_dict("split")) == [("q", "a", "x"), ("r", "b", "y"), ("s", "c", "z")]
    taken = pandas.DataFrame({**COLUMNS, "index": [7, 8, 9]}, index=["x", "y", "z"])
    for source in (taken, taken.to_dict("split")):
        assert load(source).samples[0].metadata == {"index": 7, "level_0": "x"}
    assert load(pandas.DataFrame(COLUMNS)).samples[0].metadata == {}


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
@pytest.mark.parametrize(
    ("labels", "index"),
    [
        ([0, 1, 2], [None] * 3),
        ([5, 7, 2], ["5", "7", "2"]),
        ([1, 1, 2], ["1", "1", "2"]),
        (["a", "b", "c"], ["a", "b", "c"]),
    ],
)
def test_the_first_column_of_a_table_without_a_name_is_the_index(
    tmp_path: Path, suffix: str, labels: list[Any], index: list[str | None]
) -> None:
    path = tmp_path / f"d.{suffix}"
    table = [[None, "question", "answer"], *([label, f"q{number}", "a"] for number, label in enumerate(labels))]
    if suffix == "csv":
        path.write_text("\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in table))
    else:
        write_xlsx(path, {"A": table})
    dataset = load(path)
    assert [str(one.metadata["index"]).removesuffix(".0") if one.metadata else None for one in dataset] == index
    assert dataset.ignored == (() if index[0] is None else ("index",))
    if len({*labels}) == len(labels) and index[0] is not None:
        assert [one.id for one in load(path, map={"id": "index"})] == index


def test_an_index_named_like_a_column_is_refused() -> None:
    frame = pandas.DataFrame({**COLUMNS, "id": ["x", "y", "z"]}, index=pandas.Index([1, 2, 3], name="id"))
    for source, where in ((frame, " of the table"), (frame.to_dict("tight"), "")):
        assert refusal(source) == f"two columns{where} are named 'id'"


def test_columns_with_labels_that_are_words_are_told_apart_from_one_sample() -> None:
    columns = {"question": {"x": "q", "y": "r"}, "answer": {"x": "a", "y": "b"}}
    assert "question, answer have" in refusal(columns)
    assert "(x, y)" in refusal(columns)
    assert "orient='records'" in refusal(columns)
    assert load([columns]).samples[0].input == '{"x": "q", "y": "r"}'
    one = {"inputs": {"text": "q"}, "outputs": {"text": "a"}}
    assert load(one).samples == (sample_from(one),)
    other = {"input": {"city": "Bern"}, "output": {"answer": "a"}}
    assert load(other).samples == (sample_from(other),)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"question": {"1": "q"}, "answer": {"2": "a"}}, "must have the same row labels in every column"),
        ({"columns": ["input"], "index": [4], "data": [["q"], ["r"]]}, "1 row label for 2 rows"),
        (
            {"columns": ["input"], "index": [[4]], "index_names": ["a", "b"], "data": [["q"]]},
            "row 1: 1 row label for 2",
        ),
    ],
)
def test_row_labels_that_don_t_fit_are_refused(source: Any, message: str) -> None:
    assert message in refusal(source)


def test_labels_of_samples_are_read_by_the_index_too() -> None:
    samples = pandas.DataFrame({**COLUMNS, "id": ["x", "y", "z"]})
    labels = pandas.DataFrame({"id": ["x", "z"], "label": [1, 0]}, index=[4, 6])
    for source in (labels, labels.set_index("id")):
        read = read_labels(source, LabelReader(1.0, False), data=samples)
        assert read.labels == {"x": (1.0,), "z": (0.0,)}


@pytest.mark.parametrize(
    "metadata",
    [
        "{",
        "[1]",
        "{}",
        "[" * 100000,
        '{"index_columns": 5}',
        '{"index_columns": [{"kind": "range", "name": "id"}]}',
        '{"index_columns": [{"kind": "range", "name": "id", "start": 0, "stop": 9, "step": 0}]}',
    ],
)
def test_metadata_that_pandas_would_not_write_say_nothing(tmp_path: Path, metadata: str) -> None:
    table = pyarrow.table({"question": ["q"]}).replace_schema_metadata({"pandas": metadata})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "d.parquet")
    for source in (table, tmp_path / "d.parquet"):
        assert load(source).samples == (sample_from({"question": "q"}),)

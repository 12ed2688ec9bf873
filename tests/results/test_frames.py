"""CSV files and data frames of results: the same columns and values, one row per sample, with metadata."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalstone import Run, compare
from evalstone.errors import ConfigError
from evalstone.report.frames import Framed
from evalstone.results.calibration import Calibration
from tests.results.test_calibration import made
from tests.runs import Given, Harm, run_of

pandas: Any = pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
polars: Any = pytest.importorskip("polars", reason="the extra `polars` is not installed")

METADATA = (
    {"topic": "=1+1", "size": 2, "ok": True},
    {"topic": "law", "size": 2.5, "tags": ["a", "b"]},
    {"size": "many", "large": 2**70, "half": "\ud800"},
)


def run(*answers: str) -> Run:
    return run_of(answers or ("0.5", "skip", "1"), [Given(), Harm()], metadata=METADATA)


def calibration() -> Calibration:
    pairs = [(0.9, (1.0, 1.0)), (0.2, (1.0, 0.0)), (0.8, (0.0, None))]
    return made(pairs, columns=("ann", "bob"))


def from_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("result", [run, lambda: compare(run(), run("1", "1", "fail")), calibration])
def test_csv_pandas_and_polars_have_the_same_columns_and_rows(result: Callable[[], Framed]) -> None:
    framed = result()
    rows = from_csv("".join(framed.sample_rows().csv_lines()))
    pandas_table, polars_table = framed.to_pandas(), framed.to_polars()
    columns = list(rows[0])
    assert columns == list(pandas_table.columns) == polars_table.columns == list(framed.sample_rows().columns)
    assert len(rows) == len(pandas_table) == len(polars_table)
    for name in ("sample_id", "scorer"):
        expected = [row[name] for row in rows]
        assert expected == pandas_table[name].to_list() == polars_table[name].to_list()
    values = next(name for name in columns if name.startswith("value"))
    expected = [float(row[values]) if row[values] else None for row in rows]
    assert expected == polars_table[values].to_list()
    assert expected == [None if value != value else value for value in pandas_table[values]]


def test_a_run_has_its_metadata_in_columns_of_one_type() -> None:
    table = run().to_polars().filter(polars.col("scorer") == "given")
    names = ("metadata.topic", "metadata.size", "metadata.ok", "metadata.tags", "metadata.large", "metadata.half")
    assert tuple(name for name in table.columns if name.startswith("metadata.")) == names
    assert {name: table[name].to_list() for name in names} == {
        "metadata.topic": ["=1+1", "law", None],
        "metadata.size": ["2", "2.5", "many"],
        "metadata.ok": [True, None, None],
        "metadata.tags": [None, '["a", "b"]', None],
        "metadata.large": [None, None, str(2**70)],
        "metadata.half": [None, None, "?"],
    }
    first = from_csv(run().to_csv())[0]
    assert (first["metadata.topic"], first["metadata.ok"], first["metadata.size"]) == ("'=1+1", "true", "2")
    assert run().to_pandas()["metadata.topic"].to_list()[:2] == ["=1+1", "=1+1"]


def test_a_run_without_texts_has_no_metadata() -> None:
    table = replace(run(), samples=None).to_pandas()
    assert list(table.columns)[-1] == "trial"
    assert table["question"].isna().all()


def test_a_comparison_is_a_row_for_each_pair_of_samples() -> None:
    rows = compare(run(), run("1", "1", "fail")).to_pandas()
    given = rows[rows["scorer"] == "given"].to_dict("records")
    assert [(row["outcome_a"], row["outcome_b"]) for row in given] == [
        ("score", "score"),
        ("undefined", "score"),
        ("score", "failed"),
    ]
    assert given[0]["difference"] == 0.5
    assert (given[0]["a"], given[0]["b"], given[0]["metadata.topic"]) == ("A", "B", "=1+1")
    assert [row["difference"] == row["difference"] for row in given] == [True, False, False]


def test_runs_that_are_not_paired_have_no_rows_of_pairs() -> None:
    with pytest.raises(ConfigError, match="without pairing"):
        compare(run(), run("1", "1", "1"), unpaired=True).to_pandas()


def test_a_calibration_is_a_row_for_each_labeled_sample() -> None:
    rows = calibration().to_polars().to_dicts()
    names = ("value", "label", "truth", "verdict", "error", "label ann", "label bob")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0.9, 1.0, "yes", "yes", None, 1.0, 1.0),
        (0.2, 0.5, None, "no", None, 1.0, 0.0),
        (0.8, 0.0, "no", "yes", "missed", 0.0, None),
    ]


def test_a_wide_table_is_the_same_in_both() -> None:
    wide = run().to_dicts(wide=True)
    assert run().to_polars(wide=True).to_dicts() == wide
    assert list(run().to_pandas(wide=True).columns) == list(wide[0])

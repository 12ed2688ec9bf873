"""Large JSON Lines files are read again instead of held, and give the same data set as small ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets import Dataset, load, loading
from evalstone.datasets.streaming import SampleFile
from evalstone.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"question": "a?", "answer": "a", "contexts": ["x"]},
    {"question": "b?", "answer": "b", "contexts": ["y"], "note": 1},
    {"question": "a?", "answer": "a", "contexts": ["x"]},
    {"id": "mine", "question": "c?", "answer": "c"},
    {"question": "a?", "answer": "a", "contexts": ["x"]},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def streamed(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Dataset:
    with monkeypatch.context() as patch:
        patch.setattr(loading, "STREAMED_FROM", 0)
        return load(path, **options)


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz"])
def test_a_streamed_file_is_the_data_set_that_it_is_in_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / name, ROWS)
    large, small = streamed(path, monkeypatch), load(path)
    assert isinstance(large.samples, SampleFile)
    assert list(large) == list(large) == list(small)
    assert (large.samples[3], large.samples[-1]) == (small.samples[3], small.samples[-1])
    assert large.samples[1:4:2] == small.samples[1:4:2]
    assert [sample.id for sample in large] == [sample.id for sample in small]
    assert (len(large), large.version, large.columns, large.ignored) == (5, small.version, small.columns, small.ignored)


def test_a_mapping_is_kept_to_in_every_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl", [{"said": "x"}, {"said": "y"}])
    large = streamed(path, monkeypatch, mapping={"output": "said"})
    assert [sample.output for sample in large] == ["x", "y"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"answer": ', "line 3, column"),
        ('{"answer": [5]}', "line 3: column 'answer'"),
        ('{"id": "mine", "answer": "x"}\n{"id": "mine", "answer": "y"}', "line 4: the id 'mine' is already used"),
    ],
)
def test_a_broken_row_is_told_with_its_line_before_anything_is_used(
    line: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"answer": "a"}\n{"answer": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"d\.jsonl") as error:
        streamed(path, monkeypatch)
    assert told in str(error.value)


def test_a_file_that_changes_while_it_is_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl", ROWS)
    large = streamed(path, monkeypatch)
    written(path, ROWS[:2])
    with pytest.raises(DataError, match="was changed"):
        list(large)


def test_a_gzip_file_that_is_cut_off_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl.gz", ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="complete gzip"):
        streamed(path, monkeypatch)

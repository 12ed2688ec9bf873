"""Samples of large files and tables wait in a temporary file, and are the same as those of small ones in memory."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from io import FileIO
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from evalstone import Sample
from evalstone._core.storage import Location
from evalstone.datasets import Dataset, Samples, arrow, blocks, load, loading
from evalstone.datasets.arrow import parquet_rows
from evalstone.datasets.blocks import SpooledSamples, sample_blocks
from evalstone.datasets.stored import write_samples
from evalstone.errors import DataError, WriteError
from tests.traced import chat, message, span, spans

pa: Any = pyarrow
pq: Any = parquet
ROWS: list[dict[str, Any]] = [
    {"question": "a?", "answer": "a", "contexts": ["x"]},
    {"question": "b?", "answer": "b", "contexts": ["y"], "note": 1},
    {"question": "a?", "answer": "a", "contexts": ["x"]},
    {"id": "mine", "question": "c?", "answer": "c"},
    {"question": "a?", "answer": "a\u2028é \ud83d", "contexts": ["x"]},
    {"question": "a?", "answer": "a", "contexts": ["x"]},
]
COLUMNS = {"id": ["a", None, None], "question": ["x?", "y?", "y?"], "answer": ["x", "y", "y"]}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def lines(path: Path) -> Path:
    return written(path, ROWS)


def array(path: Path) -> Path:
    path.write_text(json.dumps(ROWS))
    return path


def cells(path: Path) -> Path:
    path.write_text("id,question,answer\na,x?,x\n,y?,y\n\n,y?,y\n")
    return path


def table(path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), path)
    return path


def spooled(source: Samples, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Dataset:
    with monkeypatch.context() as patch:
        patch.setattr(loading, "MOST_IN_MEMORY", 1)
        return load(source, **options)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("d.jsonl", lines),
        ("d.jsonl.gz", lines),
        ("d.json", array),
        ("d.csv", cells),
        ("d.parquet", table),
    ],
)
@pytest.mark.parametrize("samples_in_block", [1, 2, 64])
def test_a_large_file_is_the_dataset_that_it_is_in_memory(
    name: str, write: Callable[[Path], Path], samples_in_block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_FEWEST_IN_BLOCK", samples_in_block)
    monkeypatch.setattr(blocks, "_MORE_IN_BLOCK", 1)
    path = write(tmp_path / name)
    large, small = spooled(path, monkeypatch), load(path)
    assert isinstance(large.samples, SpooledSamples)
    assert list(large) == list(large) == list(small)
    assert list(map(repr, large)) == list(map(repr, small))
    assert [large.samples[place] for place in (2, 0, -1)] == [small.samples[place] for place in (2, 0, -1)]
    assert (len(large), large.version, large.columns) == (len(small), small.version, small.columns)
    assert (large.ignored, large.notes) == (small.ignored, small.notes)
    path.unlink()
    assert pickle.loads(pickle.dumps(large.samples)) == small.samples


def test_a_large_table_is_the_dataset_that_it_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    source = pa.table(COLUMNS)
    large, small = spooled(source, monkeypatch), load(source)
    assert isinstance(large.samples, SpooledSamples)
    assert (list(large), large.version) == (list(small), small.version)


def test_many_characters_are_large_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl", [{"output": "x" * 40}] * 3)
    monkeypatch.setattr(loading, "LARGEST_IN_MEMORY", 100)
    assert isinstance(load(path).samples, SpooledSamples)


def test_slices_are_samples_in_order_and_the_first_ones_stay_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_FEWEST_IN_BLOCK", 2)
    monkeypatch.setattr(blocks, "_MORE_IN_BLOCK", 1)
    path = written(tmp_path / "d.jsonl", ROWS)
    large, small = spooled(path, monkeypatch).samples, load(path).samples
    assert large[1:4:2] == small[1:4:2]
    for size in range(1, 7):
        first = large[:size]
        assert isinstance(first, SpooledSamples)
        assert (len(first), list(first), first[-1]) == (size, list(small[:size]), small[size - 1])
        assert [block.lines for block in sample_blocks(first)] == [block.lines for block in sample_blocks(small[:size])]


def test_samples_are_read_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_FEWEST_IN_BLOCK", 2)
    monkeypatch.setattr(blocks, "_MORE_IN_BLOCK", 1)
    path = written(tmp_path / "d.jsonl", ROWS)
    large, small = spooled(path, monkeypatch).samples, load(path).samples
    assert isinstance(large, SpooledSamples)
    assert list(large.at([5, 0, 3, 3, 1])) == [small[place] for place in (5, 0, 3, 3, 1)]
    assert isinstance(first := large[:3], SpooledSamples)
    assert list(first.at([2, 0, 1])) == [small[place] for place in (2, 0, 1)]


@pytest.mark.parametrize("large", [False, True])
def test_the_samples_of_a_file_are_written_as_they_are(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "d.jsonl", ROWS)
    samples = spooled(path, monkeypatch).samples if large else load(path).samples
    write_samples(tmp_path / "s.jsonl", samples)
    assert list(load(tmp_path / "s.jsonl")) == list(samples)
    lines = (tmp_path / "s.jsonl").read_text("utf-8").splitlines()
    assert '"a\\u2028é \\ud83d"' in lines[4]


@pytest.mark.parametrize("rows", [ROWS, [spans(span(1, "chat", chat([message("user", "q")], "a")))]])
def test_a_pipe_is_read_once(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    file = written(tmp_path / "file.jsonl", rows)

    def write() -> None:
        pipe.write_bytes(file.read_bytes())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    read = load(pipe)
    writer.join(timeout=30)
    assert read.samples == load(file).samples


def test_a_mapping_is_kept_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl", [{"said": "x"}, {"said": "y"}])
    large = spooled(path, monkeypatch, map={"output": "said"})
    assert [sample.output for sample in large] == ["x", "y"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"answer": ', "line 4, column"),
        ('{"answer": [5]}', "line 4: column 'answer'"),
        ('{"id": "b", "answer": "x"}', "already used by line 3"),
        ('{"answer": "x"}\n\n{"id": "b", "answer": "y"}', "line 6: the id 'b'"),
        (
            '{"id": "\\u0000", "answer": "x"}\n{"id": "\\\\u0000", "answer": "y"}',
            "line 5: the id '\\\\u0000' is already",
        ),
    ],
)
def test_an_invalid_row_is_named_with_its_line_before_anything_is_used(
    line: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"answer": "a"}\n\n{"id": "b", "answer": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"d\.jsonl") as error:
        spooled(path, monkeypatch)
    assert named in str(error.value)
    with pytest.raises(DataError) as in_memory:
        load(path)
    assert str(in_memory.value) == str(error.value)


def test_a_default_id_that_a_later_row_has_as_its_own_is_used_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = Sample(output="a").id
    path = written(tmp_path / "d.jsonl", [{"output": "a"}, {"output": "b", "id": id}])
    with pytest.raises(DataError, match="line 2"):
        spooled(path, monkeypatch)


def test_a_number_after_a_default_id_is_one_that_no_sample_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    id = Sample(output="a").id
    rows: list[dict[str, Any]] = [{"output": "a"}, {"output": "b", "id": f"{id}-2"}, {"output": "a"}, {"output": "a"}]
    path = written(tmp_path / "d.jsonl", rows)
    ids: list[Sequence[str]] = [[sample.id for sample in read] for read in (load(path), spooled(path, monkeypatch))]
    assert ids == [[id, f"{id}-2", f"{id}-3", f"{id}-4"]] * 2


def test_what_the_file_becomes_after_it_was_read_changes_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "d.jsonl", ROWS)
    large, small = spooled(path, monkeypatch), load(path)
    written(path, ROWS[:2])
    assert list(large) == list(small)


def test_a_gzip_file_that_is_cut_off_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl.gz", ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="complete gzip"):
        spooled(path, monkeypatch)


def test_a_full_disk_names_the_temporary_folder_and_how_to_choose_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*, buffering: int) -> FileIO:
        return FileIO("/dev/full", "r+")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(WriteError, match="TMPDIR") as error:
        spooled(written(tmp_path / "d.jsonl", ROWS), monkeypatch)
    assert tempfile.gettempdir() in str(error.value)


def test_a_missing_folder_for_temporary_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path / "missing")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    with pytest.raises(WriteError, match="TMPDIR") as error:
        spooled(written(tmp_path / "d.jsonl", ROWS), monkeypatch)
    assert folder in str(error.value)


def test_samples_in_a_file_equal_the_same_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "d.jsonl", ROWS)
    small, (large, again) = load(path), (spooled(path, monkeypatch) for _ in range(2))
    assert large == again == small == large
    assert small.samples == large.samples
    assert large.samples != small.samples[1:]
    assert large.samples != (*small.samples[1:], small.samples[0])
    assert large.samples != list(small.samples)  # as for a tuple


def blocks_of_one(path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> Sequence[Sample]:
    monkeypatch.setattr(blocks, "_FEWEST_IN_BLOCK", 1)
    monkeypatch.setattr(blocks, "_MORE_IN_BLOCK", 1)
    return spooled(written(path, [{"output": str(number)} for number in range(rows)]), monkeypatch).samples


def test_forked_processes_read_the_file_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = blocks_of_one(tmp_path / "d.jsonl", 300, monkeypatch)
    expected = [str(number) for number in range(300)]

    def right() -> bool:
        return all([sample.output for sample in samples] == expected for _ in range(20))

    children = list[int]()
    for _ in range(2):
        if not (child := os.fork()):
            wrong = 1
            try:
                wrong = not right()
            finally:
                os._exit(wrong)
        children.append(child)
    ours = right()
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert ours


def test_the_memory_for_a_parquet_file_does_not_grow_with_its_row_groups(tmp_path: Path) -> None:
    texts = [f"{number} {'x' * 90}" for number in range(100_000)]
    pq.write_table(pa.table({"output": texts, "input": ["same"] * len(texts)}), tmp_path / "d.parquet")
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for _ in parquet_rows(Location.of(tmp_path / "d.parquet")):
        most = max(most, pool.bytes_allocated() - before)
    assert most < 4_000_000


def test_columns_of_a_parquet_file_are_read_by_value_and_by_reference_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40
    source = pa.table(
        {
            "output": pa.array([None, "a", "é" * 500, ""] * (count // 4)),
            "large": pa.array([f"{n}" for n in range(count)], pa.large_string()),
            "bytes": pa.array([b"x", None] * (count // 2)),
            "a.b": ["dotted"] * count,
            "decimal": pa.array([Decimal(n) for n in range(count)]),
            "contexts": [["p", None, "q" * 300], None, [], ["p"]] * (count // 4),
            "nested": [{"text": "t", "number": n} for n in range(count)],
        }
    )
    path = tmp_path / "d.parquet"
    pq.write_table(source, path, row_group_size=7)
    by_value = [row for _, row in parquet_rows(Location.of(path))]
    monkeypatch.setattr(arrow, "_LARGEST_BATCH", 0)
    assert by_value == [row for _, row in parquet_rows(Location.of(path))] == source.to_pylist()

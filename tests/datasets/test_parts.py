"""Parts of data files: read one by one, they have the rows of the files."""

from __future__ import annotations

import json
import ntpath
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.datasets import arrow, load
from evalstone.datasets.files import find_all, rows_of
from evalstone.datasets.parts import Part, parts_of
from evalstone.errors import DataError

lines = st.lists(st.one_of(st.just(""), st.just("  "), st.text(min_size=1, max_size=30).map(lambda t: json.dumps([t]))))


@settings(max_examples=60, deadline=None)
@given(lines=lines, ascii_only=st.booleans(), ends=st.sampled_from(["", "\n", "\n\n"]), step=st.integers(1, 80))
def test_parts_of_lines_have_every_row_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ascii_only: bool, ends: str, step: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.jsonl"
    text = "\n".join(json.dumps(json.loads(line), ensure_ascii=ascii_only) if line.strip() else line for line in lines)
    path.write_text(text + ends, encoding="utf-8", errors="surrogatepass" if ascii_only else "replace")
    (file,) = find_all(str(path))
    size = path.stat().st_size
    cut = [Part(file, at, min(size, at + step)) for at in range(0, size, step)]
    assert [row for part in cut for row in part.rows(numbered=True)] == [*rows_of([file])]


def test_lines_of_a_part_are_counted_from_its_first(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n{"a": 3}\n')
    (file,) = find_all(str(path))
    part = Part(file, 3, path.stat().st_size)
    assert [place for place, _ in part.rows()] == ["line 2", "line 3"]
    assert [place for place, _ in part.rows(numbered=True)] == ["line 3", "line 4"]


@pytest.mark.parametrize("group", [3, 10, 64])
@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_parts_of_a_parquet_file_have_every_row_once(tmp_path: Path, group: int, rows: int) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    column = [f"text {n}" for n in range(50)]
    pq.write_table(pa.table({"input": column, "context": [[text] for text in column]}), path, row_group_size=group)
    files = find_all(str(path))
    cut = parts_of(files, rows)
    assert [row for part in cut for row in part.rows()] == [*rows_of(files)]
    assert max(len([*part.rows()]) for part in cut) <= max(2 * rows, rows)


def test_parts_of_one_row_group_are_read_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"output": [f"a{n}" for n in range(5000)]}), path, row_group_size=5000)
    (file,) = find_all(str(path))
    passes: list[list[int]] = []
    batches = vars(arrow)["_batches"]

    def counted(*arguments: Any) -> Any:
        passes.append(arguments[2])
        return batches(*arguments)

    monkeypatch.setattr(arrow, "_batches", counted)
    parts = [Part(file, start, start + 700) for start in range(0, 4900, 700)]

    def read(part: Part) -> None:
        expected = [(f"row {n + 1}", {"output": f"a{n}"}) for n in range(part.start, part.stop or 0)]
        assert [*part.rows()] == expected

    for part in parts:
        read(part)
    assert len(passes) == 1
    for number, expected in ((5, 2), (1, 3), (2, 3), (6, 3), (6, 4)):  # not those before the last one
        read(parts[number])
        assert len(passes) == expected
    next(parts[0].rows())  # ended early: nothing is kept of it
    read(parts[1])
    assert len(passes) == 6


def test_files_that_cannot_be_cut_are_one_part(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text('input,output\n"a\nb",c\n')
    assert [(part.start, part.stop) for part in parts_of(find_all(str(tmp_path / "*.csv")))] == [(0, None)] * 2
    utf16 = tmp_path / "w.jsonl"
    utf16.write_text('{"input": "é"}\n', encoding="utf-16")
    (part,) = parts_of(find_all(str(utf16)))
    assert part.stop is None
    assert [row for _, row in part.rows()] == [{"input": "é"}]


def test_the_size_of_a_part_follows_the_length_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f'{{"input": "{n:04}"}}\n' for n in range(1000)))
    sizes = [len([*part.rows()]) for part in parts_of(find_all(str(path)), 100)]
    assert sum(sizes) == 1000
    assert len(sizes) in (10, 11)


def test_there_are_enough_parts_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f'{{"input": "{n:04}"}}\n' for n in range(1000)))

    def parts(workers: int) -> int:
        return len(parts_of(find_all(str(path)), 1000, workers=workers))

    # 4 are enough for each when they have few rows.
    assert [parts(workers) for workers in (0, 1, 2, 20)] == [1, 4, 8, 143]
    monkeypatch.setattr(f"{parts_of.__module__}.FEW_ROWS", 50)
    assert [parts(workers) for workers in (0, 1, 2, 20)] == [1, 17, 33, 143]


def test_files_that_match_a_pattern_are_one_dataset(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": "{name}1", "output": "x"}}\n\n{{"output": "same"}}\n')
    (tmp_path / ".hidden.jsonl").write_text("broken")
    (tmp_path / "other.txt").write_text("")
    dataset = load(str(tmp_path / "*.jsonl"))
    own, default = dataset.samples[0::2], dataset.samples[1::2]
    assert [sample.id for sample in own] == ["a1", "b1", "c1"]
    assert [sample.id.removeprefix(default[0].id) for sample in default] == ["", "-2", "-3"]
    assert load(str(tmp_path / "a.json?")).samples == dataset.samples[:2]


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({"a.jsonl": '{"output": "x"}\n', "b.jsonl": "{}\n{"}, "*.jsonl", "b.jsonl: line 2, column 2: not JSON"),
        ({"a.jsonl": '{"id": 1, "output": ""}\n', "b.jsonl": '\n{"id": 1, "output": ""}'}, "*.jsonl", "line 2 of b"),
        ({"a.jsonl": "", "a.csv": ""}, "a.*", "several formats: .csv, .jsonl"),
        ({}, "*.jsonl", "no file matches"),
        ({}, "*/x.jsonl", "wildcard in the name of a folder"),
    ],
)
def test_what_is_wrong_with_several_files_is_said(
    tmp_path: Path, files: dict[str, str], pattern: str, message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as raised:
        load(str(tmp_path / pattern))
    assert message in str(raised.value)


def test_a_repeated_id_names_both_files_of_a_large_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.datasets.loading.MOST_IN_MEMORY", 1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"output": "x"}\n{"id": "q", "output": ""}\n')
    with pytest.raises(DataError, match=r"line 2 of b\.jsonl: the id .* already used by line 2 of a\.jsonl"):
        load(str(tmp_path / "*.jsonl"))


def test_a_pattern_is_the_last_part_of_a_path_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("{}\n")
    monkeypatch.setattr("os.path.split", ntpath.split)
    for separator in "/\\":
        found = find_all(f"{tmp_path}{separator}*.jsonl")
        assert [file.location.name for file in found] == ["a.jsonl", "b.jsonl"]

"""The file of labels: each label is on the disk at once, and an older file is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import ConfigError, DataError
from evalstone.datasets.files import find
from evalstone.datasets.labels import LabelFile


def test_labels_are_added_under_one_header(tmp_path: Path) -> None:
    for name, label in (("a", "yes"), ("b, c", "0.5")):
        LabelFile(tmp_path / "l.csv").add(name, label)
    assert (tmp_path / "l.csv").read_text() == 'id,label\na,yes\n"b, c",0.5\n'


def test_the_columns_of_an_older_file_are_kept_to(tmp_path: Path) -> None:
    older = "who,label,id\nme,1,a"
    (tmp_path / "l.csv").write_text(older)
    LabelFile(tmp_path / "l.csv").add("b", "0")
    assert (tmp_path / "l.csv").read_text() == f"{older}\n,0,b\n"


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"]


def written_in(text: str, encoding: str) -> bytes:
    return text.encode(encoding) if encoding.startswith("utf-8") else f"\ufeff{text}".encode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["", "\n"])
def test_labels_are_added_in_the_encoding_of_the_file(tmp_path: Path, encoding: str, end: str) -> None:
    csv, lines = tmp_path / "l.csv", tmp_path / "l.jsonl"
    csv.write_bytes(written_in(f"id,label\na,1{end}", encoding))
    lines.write_bytes(written_in(f'{{"id": "a", "label": 1}}{end}', encoding))
    for path in (csv, lines):
        LabelFile(path).add("Zürich", "yes")
        rows = [row for _, row in find(path).rows()]
        assert [row["id"] for row in rows] == ["a", "Zürich"]
        assert [str(row["label"]) for row in rows] == ["1", "yes"]


@pytest.mark.parametrize("start", ["id;label;note\na;1;x, y\n", "sep=;\nid;label;note\na;1;x, y\n"])
def test_labels_are_added_with_the_delimiter_of_the_file(tmp_path: Path, start: str) -> None:
    path = tmp_path / "l.csv"
    path.write_text(start)
    LabelFile(path).add("b, c", "0.5")
    assert path.read_text() == f"{start}b, c;0.5;\n"
    assert [row["label"] for _, row in find(path).rows()] == ["1", "0.5"]


def test_carriage_returns_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_bytes(b"id,label\ra,1\r")
    LabelFile(path).add("b", "0")
    assert path.read_bytes() == b"id,label\ra,1\rb,0\n"


def test_labels_under_another_key_are_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text('{"id": "a", "rating": 1}\n')
    with pytest.raises(DataError, match=r"column label; .* rating"):
        LabelFile(path)


def test_json_lines_hold_any_id(tmp_path: Path) -> None:
    LabelFile(tmp_path / "l.jsonl").add("=1\n", "no")
    assert (tmp_path / "l.jsonl").read_text() == '{"format": "label/1", "id": "=1\\n", "label": "no"}\n'


@pytest.mark.parametrize("name", ["=1", "+x", "-x", "@x", " =1"])
def test_an_id_that_a_spreadsheet_would_execute_is_not_written_as_csv(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="formula"):
        LabelFile(tmp_path / "l.csv").add(name, "1")
    assert not (tmp_path / "l.csv").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.csv or \.jsonl"):
        LabelFile(tmp_path / "l.txt")
    (tmp_path / "l.csv").write_text("name,mark\n")
    with pytest.raises(DataError, match=" id and label; "):
        LabelFile(tmp_path / "l.csv")

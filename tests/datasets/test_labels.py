"""The file of labels: each label is on the disk at once, and an older file is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import ConfigError, DataError
from evalstone.datasets.labels import LabelFile


def test_labels_are_added_under_one_header(tmp_path: Path) -> None:
    for name, label in (("a", "yes"), ("b, c", "0.5")):
        LabelFile(tmp_path / "l.csv").add(name, label)
    assert (tmp_path / "l.csv").read_text() == 'id,label\na,yes\n"b, c",0.5\n'


def test_the_columns_of_an_older_file_are_kept_to(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("who,label,id\nme,1,a")
    LabelFile(tmp_path / "l.csv").add("b", "0")
    assert (tmp_path / "l.csv").read_text() == "who,label,id\nme,1,a\n,0,b\n"


def test_json_lines_hold_any_id(tmp_path: Path) -> None:
    LabelFile(tmp_path / "l.jsonl").add("=1\n", "no")
    assert (tmp_path / "l.jsonl").read_text() == '{"id": "=1\\n", "label": "no"}\n'


@pytest.mark.parametrize("name", ["=1", "+x", "-x", "@x", " =1"])
def test_an_id_that_a_spreadsheet_would_execute_is_not_written_as_csv(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="formula"):
        LabelFile(tmp_path / "l.csv").add(name, "1")
    assert not (tmp_path / "l.csv").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.csv or \.jsonl"):
        LabelFile(tmp_path / "l.txt")
    (tmp_path / "l.csv").write_text("name,mark\n")
    with pytest.raises(DataError, match="missing column id and label; columns: name, mark"):
        LabelFile(tmp_path / "l.csv")

"""What other tools write into a CSV file for numbers, missing values and objects stays text, and a note says so."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets import load

ANSWER = "column 'answer', read as output, has"
TRUTH = "column 'ground_truth', read as reference, has"


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("q,42,42.0\nr,7,\ns,8,-7.0", [f"{TRUTH} only numbers such as 42.0, and missing ones."]),
        (
            "q,nan,42.0\nr,nan,nan\ns,NaN or nan,7.0",
            [
                f"{ANSWER} 2 cells with the text nan; if a value is missing,",
                f"{TRUTH} 1 cell with the text nan;",
                f"{TRUTH} only numbers such as 42.0, and missing ones.",
            ],
        ),
        (
            """'{"question": "Where?"}','{"answer": "a", "sources": []}',r\n'{"question": "Where?"}',a,r""",
            [
                "column 'question', read as input, has 2 cells with JSON objects such as",
                f"{ANSWER} 1 cell with JSON objects such as",
            ],
        ),
        ("""'"q"','"In \\"Bern\\""',r\nq,'"I"',r""", [f"{ANSWER} only texts in quotes"]),
        ("q,a,\nr,,b\ns, ,c", [f"{ANSWER} 2 blank cells, read as blank answers: checks score them."]),
        ("q,,a\nr,,b", []),
    ],
)
def test_a_note_names_the_column_and_counts_its_cells(tmp_path: Path, text: str, notes: list[str]) -> None:
    cells = list(csv.reader(text.splitlines(), quotechar="'"))
    columns = ("question", "answer", "ground_truth")
    found = notes_on(tmp_path / "d.csv", [dict(zip(columns, each, strict=True)) for each in cells])
    assert [note[: len(start)] for note, start in zip(found, notes, strict=True)] == notes
    (sample, *_) = load(tmp_path / "d.csv")
    assert [sample.input, sample.output or "", sample.reference or ""] == cells[0]


def test_the_notes_are_on_what_pandas_writes(tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"question": ["q", "r"], "answer": [42, None], "ground_truth": [42, 7]})
    for how, number in (({}, 2), ({"na_rep": "nan"}, 2)):
        frame.to_csv(tmp_path / "d.csv", index=False, **how)
        assert len(load(tmp_path / "d.csv").notes) == number
    frame.astype({"answer": "Int64"}).to_csv(tmp_path / "d.csv", index=False)
    (note,) = load(tmp_path / "d.csv").notes
    assert "has 1 blank cell" in note


@pytest.mark.parametrize(
    "cells", [["42.0", "7.0"], ["42.5", "", "7.0"], ["42", ""], ["", "x"], ["v42.0", ""], ["None"]]
)
def test_no_note_is_on_texts_that_pandas_would_write_in_another_way(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text("question,ground_truth\n" + "".join(f"q{n},{cell}\n" for n, cell in enumerate(cells)))
    assert load(path).notes == ()
    assert load([{"question": "q", "ground_truth": "42.0"}, {"question": "r", "ground_truth": None}]).notes == ()


def notes_on(path: Path, rows: list[dict[str, str]]) -> tuple[str, ...]:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return load(path).notes


@pytest.mark.parametrize(
    ("cell", "note"),
    [
        *(
            (cell, f"with {cell}, an error of a spreadsheet")
            for cell in ("#N/A", "#NAME?", "#NV", "#BEZUG!", "#DIV/0!")
        ),
        *((cell, f"such as {cell}, as spreadsheets round") for cell in ("1,23457E+15", "1.23457E+15", "-2E+11")),
        ("#######", "with #######, an error of a spreadsheet"),
        ("x" * 32_767, "of 32,767 characters, the most that Excel keeps"),
    ],
)
def test_a_note_names_what_a_spreadsheet_has_lost(tmp_path: Path, cell: str, note: str) -> None:
    for field in ("id", "question", "answer", "ground_truth", "contexts"):
        row = {"question": "q", field: cell}
        (found,) = notes_on(tmp_path / "d.csv", [row])
        assert found.startswith(f"column '{field}', read as ")
        assert f" has 1 cell {note}" in found


@pytest.mark.parametrize("cell", ["#1", "#hashtag!", "# Title", "1.5e+10", "1E+5", "x" * 32_766, "see #N/A", "12345"])
def test_no_note_is_on_a_text_that_a_spreadsheet_would_not_write(tmp_path: Path, cell: str) -> None:
    assert notes_on(tmp_path / "d.csv", [{"question": "q", "answer": cell}]) == ()


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": '{"question": "Where?"}', "outputs": '{"answer": "Bern"}'},
        {"input": "q", "output": '{"city": "Bern", "country": "CH"}'},
        {"input": "q", "output": '{"role": "assistant", "content": "Bern"}'},
        {"input": "q", "ground_truth": '{"answer": "Bern"}'},
        {"input": "q", "output": "{answer}"},
    ],
)
def test_no_note_is_on_objects_that_all_sources_read_alike(tmp_path: Path, row: dict[str, str]) -> None:
    assert notes_on(tmp_path / "d.csv", [row]) == ()

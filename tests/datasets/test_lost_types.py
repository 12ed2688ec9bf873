"""What pandas writes into a CSV file for whole numbers and missing values stays text, and a note says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets import load

DECIMALS = "has only numbers such as 42.0, and missing ones."


def test_a_note_names_a_column_of_whole_numbers_that_pandas_wrote_as_decimals(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("id,question,answer,ground_truth,score\n1,q,42,42.0,1.0\n2,r,7,,\n3,s,,-7.0,2.0\n")
    (note,) = load(path).notes
    assert note.startswith(f"column 'ground_truth', read as reference, {DECIMALS}")
    assert load(path).samples[0].reference == "42.0"


def test_a_note_names_a_column_with_the_text_of_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("question,answer,ground_truth\nq,nan,42.0\nr,nan,nan\ns,NaN or nan,7.0\n")
    answers, references, decimals = load(path).notes
    assert answers.startswith("column 'answer', read as output, has 2 cells with the text nan; if a value is missing,")
    assert references.startswith("column 'ground_truth', read as reference, has 1 cell with the text nan;")
    assert decimals.startswith(f"column 'ground_truth', read as reference, {DECIMALS}")
    assert load(path).samples[0].output == "nan"


def test_the_notes_are_on_what_pandas_writes(tmp_path: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"question": ["q", "r"], "answer": [42, None], "ground_truth": [42, 7]})
    for how, number in (({}, 1), ({"na_rep": "nan"}, 2)):
        frame.to_csv(tmp_path / "d.csv", index=False, **how)
        assert len(load(tmp_path / "d.csv").notes) == number
    frame.astype({"answer": "Int64"}).to_csv(tmp_path / "d.csv", index=False)
    assert load(tmp_path / "d.csv").notes == ()


@pytest.mark.parametrize(
    "cells", [["42.0", "7.0"], ["42.5", "", "7.0"], ["42", ""], ["", "x"], ["v42.0", ""], ["None"]]
)
def test_no_note_is_on_texts_that_pandas_would_write_in_another_way(tmp_path: Path, cells: list[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text("question,ground_truth\n" + "".join(f"q{n},{cell}\n" for n, cell in enumerate(cells)))
    assert load(path).notes == ()
    assert load([{"question": "q", "ground_truth": "42.0"}, {"question": "r", "ground_truth": None}]).notes == ()

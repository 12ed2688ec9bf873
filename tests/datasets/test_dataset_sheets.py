from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evalstone import check, load
from evalstone.errors import ConfigError, DataError, MissingDependency
from tests.workbooks import replace_sheet, write_xlsx

HEADER = ["question", "answer", "contexts", "ground_truth"]
ROW = ["Where is Bern?", "In Switzerland.", "['Bern is a city.' 'It is old.']", "Switzerland"]


def test_a_sheet_is_read_like_a_csv_file(tmp_path: Path) -> None:
    rows = [HEADER, ROW, [], ["q", None, None, 42], ["q", True, "p", {"date": 46024}]]
    dataset = load(write_xlsx(tmp_path / "d.xlsx", {"Answers": rows}))
    assert [(one.output, one.context, one.reference) for one in dataset] == [
        ("In Switzerland.", ("Bern is a city.", "It is old."), "Switzerland"),
        ("", None, "42"),
        ("true", ("p",), "2026-01-02"),
    ]
    assert any("1 blank cell" in note for note in dataset.notes)


def test_a_formula_has_the_value_that_was_saved_and_an_error_of_a_sheet_is_noted(tmp_path: Path) -> None:
    rows = [
        *([], HEADER, ["q", {"formula": "6*7", "value": 42}, "p"], ["q", "#N/A", "p"], ["q", {"error": "#DIV/0!"}]),
        *(["q", {"formula": "A2&A3", "value": ""}], [None, {"error": "#N/A"}]),
    ]
    other = [[{"error": "#REF!"}, {"formula": "1", "value": None}]]
    path = write_xlsx(tmp_path / "d.xlsx", {"Rand": other, "A & B": rows}, hidden=["Rand"])
    dataset = load(path)
    assert [one.output for one in dataset] == ["42", "#N/A", "#DIV/0!", "", "#N/A"]
    assert any("an error of a spreadsheet" in note for note in dataset.notes)


def test_several_sheets_are_named_and_one_is_chosen(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", {"First": [HEADER, ROW], "Other": [["output"], ["b"]], "Empty": []})
    with pytest.raises(DataError, match='has the sheets First, Other; name one of them: sheet="First"'):
        load(path)
    notes = write_xlsx(tmp_path / "n.xlsx", {"Notes": [["Metric", 5], ["n", 1]], "Data": [[], HEADER, ROW]})
    with pytest.raises(DataError, match='has the sheets Notes, Data; name one of them: sheet="Data"'):
        load(notes)
    assert load(path, sheet="Other").samples[0].output == "b"
    checked = check(path, sheet="Other")
    assert checked.commands[0].endswith("--sheet Other --judge openai/gpt-5.1")
    with pytest.raises(DataError, match="unknown sheet 'Othe'; did you mean Other"):
        load(path, sheet="Othe")
    hidden = write_xlsx(tmp_path / "h.xlsx", {"First": [HEADER, ROW], "Other": [["output"], ["b"]]}, hidden=["Other"])
    assert len(load(hidden)) == 1


@pytest.mark.parametrize(
    ("rows", "merged", "problem"),
    [
        ([HEADER, ROW, ["q", "a"]], "A2:A3", "the cells A2:A3 are merged"),
        ([["output", "output"], ["a", "b"]], "", "row 1: two columns of the header are named 'output'"),
        ([["output"], ["a", "b"]], "", "row 2: 2 cells for 1 column; the first extra one is 'b'"),
        ([["output", None, "context"], ["a", "b", "c"]], "", "row 1: column 2 has no name in the header"),
        ([], "", "has no sheet with cells"),
        ([["output"], [{"formula": "1+1", "value": None}]], "", "1 formula, the first in A2, has no saved value"),
        (
            [[None, "output"], [], [None, {"formula": "1", "value": None}]] * 2,
            "",
            "2 formulas, the first in B3, have no",
        ),
        ([["output", "context"], ["a", "['p', 'q"]], "", "row 2: context must be a complete list"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, rows: list[Any], merged: str, problem: str
) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", {"Answers": rows}, merged=merged)
    with pytest.raises(DataError, match=problem):
        load(path)
    assert problem.split(": ")[-1] in check(path).problems[0].message


def test_the_header_of_a_sheet_may_have_numbers(tmp_path: Path) -> None:
    rows = [["output", 2024, 1.5, {"date": 46024}], ["a", 1, 2, 3]]
    assert load(write_xlsx(tmp_path / "d.xlsx", {"A": rows})).ignored == ("2024", "1.5", "2026-01-02")


FAR = {
    "an address": '<row r="100"><c r="CV100"><v>1</v></c></row>',
    "an address in other quotes": "<row><c  s='1'\n r = 'cv100' ><v>1</v></c></row>",
    "a prefix": '<x:row><x:c r="CV100"><x:v>1</x:v></x:c></x:row>',
    "a bracket in an attribute": '<row><c foo=">" bar="/>" r="CV100"><v>1</v></c></row>',
    "the number of a row": f'<row r="100">{"<c/>" * 99}<c t="n"><v>1</v></c></row>',
    "many rows": f"{'<row/>' * 98}<row>{'<c/>' * 99}<c><v>1</v></c></row>",
    "an address before": f'{"<row/>" * 98}<row><c r="CU100"/><c><v>1</v></c></row>',
}


@pytest.mark.parametrize("last", FAR.values(), ids=FAR)
def test_a_sheet_whose_table_takes_far_more_memory_than_its_cells_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    header = '<row><c r="A1" t="inlineStr"><is><t>output</t></is></c></row>'
    prefixed = header.replace("<", "<x:").replace("<x:/", "</x:") if "<x:row" in last else header
    body = f"<sheetData>{prefixed}{last}</sheetData>"
    body = body.replace("sheetData", "x:sheetData") if "<x:row" in last else body
    path = replace_sheet(write_xlsx(tmp_path / "d.xlsx", {"A": [["output"]]}), body)
    with pytest.raises(DataError, match="row 100: 100 cells for 1 column"):
        load(path)  # so it is read, and has a hundred columns
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "0.03")
    with pytest.raises(DataError, match=r"cells up to CV100, too many for the memory; delete those outside the table"):
        load(path)


def test_blank_cells_far_away_are_no_part_of_a_sheet(tmp_path: Path) -> None:
    rows = '<row><c r="A1" t="str"><v>output</v></c></row><row r="2"><c r="A2"><v>1</v></c><c r="XFD2" s="1"/></row>'
    rows = f'<sheetData>{rows}<row r="1048576" ht="9"><c r="XFD1048576" s="1" /></row></sheetData>'
    assert len(load(replace_sheet(write_xlsx(tmp_path / "d.xlsx", {"A": [["output"]]}), rows))) == 1


def test_merged_cells_of_a_title_are_no_problem(tmp_path: Path) -> None:
    assert len(load(write_xlsx(tmp_path / "d.xlsx", {"A": [["output", "topic"], ["a", "b"]]}, merged="A1:A1"))) == 1


def test_what_is_no_workbook_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.xlsx"
    path.write_bytes(b"PK\x03\x04 no workbook")
    with pytest.raises(DataError, match="not an Excel file that can be read"):
        load(path)
    for start, problem in ((b"\xd0\xcf\x11\xe0", "is an .xls file or has a password"), (b"\0", "not an Excel file")):
        path.write_bytes(start * 1000)
        with pytest.raises(DataError, match=problem):
            load(path)
    for part in ("content.xml", "xl/Workbook.bin"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(part, b"0")
        with pytest.raises(DataError, match=r"is another format with the suffix \.xlsx"):
            load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/workbook.xml", b"0" * 20_000_000)
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "1")
    with pytest.raises(DataError, match=r"rows would take more than 0\.016 GB"):
        load(path)


def test_only_workbooks_have_sheets(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("output\na\n")
    for read in (load, check):
        with pytest.raises(ConfigError, match=r"sheet is for Excel files, which d\.csv is not"):
            read(path, sheet="A")
        with pytest.raises(ConfigError, match="sheet is for files"):
            read([{"output": "a"}], sheet="A")
        with pytest.raises(ConfigError, match=r"encoding is for files of text, which d\.xlsx is not"):
            read(write_xlsx(tmp_path / "d.xlsx", {"A": [["output"], ["a"]]}), encoding="cp1252")


def test_an_excel_file_without_its_library_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_xlsx(tmp_path / "d.xlsx", {"A": [["output"], ["a"]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingDependency, match="python-calamine is not installed"):
        load(path)

"""Excel files, as spreadsheets write them, without a library for that."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_DATE = 14
"""The number of the format for dates."""


def write_xlsx(
    path: Path,
    sheets: Mapping[str, Sequence[Sequence[Any]]],
    *,
    merged: str = "",
    hidden: Sequence[str] = (),
) -> Path:
    """Write a workbook. A cell is a text, a number, a truth value, None, `{"date": 46024}` or
    `{"formula": "1+1", "value": 2}` (None for a value that wasn't saved) or `{"error": "#N/A"}`. merged: a range of
    cells of the first sheet."""
    names = list(sheets)
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"'
        f"{' state=' + chr(34) + 'hidden' + chr(34) if name in hidden else ''}/>"
        for number, name in enumerate(names, start=1)
    )
    related = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, len(names) + 1)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{related}<Relationship '
        f'Id="rIdS" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="{_DATE}"/></cellXfs>'
        "</styleSheet>",
    }
    for number, name in enumerate(names, start=1):
        rows = "".join(
            f'<row r="{at}">{"".join(_cell(chr(65 + place), at, cell) for place, cell in enumerate(row))}</row>'
            for at, row in enumerate(sheets[name], start=1)
            if row
        )
        cells = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged and number == 1 else ""
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData>{cells}</worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for part, text in parts.items():
            file.writestr(part, text)
    return path


def replace_sheet(path: Path, rows: str) -> Path:
    """Replace the rows of the first sheet of a workbook with others, as they stand in its XML."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    parts["xl/worksheets/sheet1.xml"] = f'<worksheet xmlns="{_MAIN}" xmlns:x="{_MAIN}">{rows}</worksheet>'.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for part, content in parts.items():
            file.writestr(part, content)
    return path


def _cell(column: str, row: int, value: Any) -> str:
    at = f'r="{column}{row}"'
    match value:
        case None:
            return ""
        case bool():
            return f'<c {at} t="b"><v>{int(value)}</v></c>'
        case int() | float():
            return f"<c {at}><v>{value}</v></c>"
        case {"date": days}:
            return f'<c {at} s="1"><v>{days}</v></c>'
        case {"formula": formula, "value": result}:
            kind = ' t="str"' if isinstance(result, str) else ""
            return f"<c {at}{kind}><f>{escape(formula)}</f><v>{'' if result is None else result}</v></c>"
        case {"error": code}:
            return f'<c {at} t="e"><v>{escape(code)}</v></c>'
        case _:
            return f'<c {at} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'

"""Tables on terminals of every width: nothing vanishes."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from evalstone import GateCriteria, audit, calibrate, compare, gate, sample_size
from evalstone.report.terminal import Grid, show
from evalstone.report.view import View
from evalstone.results.views.audit import audit_view
from evalstone.results.views.calibration import calibration_view
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.gate import gate_view
from evalstone.results.views.power import power_view
from evalstone.results.views.run import run_view
from tests.runs import Given, Harm, run_of

WIDTHS = (60, 80, 120, 200)
ANSWERS = ["1.0", "0.8", "0.4", "skip"] * 10
KINDS = [{"kind": "a longer kind" if number % 4 < 2 else "other"} for number in range(40)]


@pytest.fixture(scope="module")
def views() -> dict[str, View]:
    one, other = (run_of(answers, [Given(), Harm()], metadata=KINDS) for answers in (ANSWERS, [*ANSWERS[1:], "1.0"]))
    rows = [
        {"id": str(n), "output": "Rome is on Mars." if n % 3 else "Rome is in Italy.", "context": ["Rome is in Italy."]}
        for n in range(9)
    ]
    labeled = [row | {"label": "no" if n % 3 else "yes"} for n, row in enumerate(rows)]
    return {
        "run": run_view(one, slices=one.slices("kind")),
        "compare": comparison_view(compare(one, other, slice_by="kind")),
        "gate": gate_view(gate(one, GateCriteria(minimum={"given": 0.7}, pass_rate={"given": (0.5, 0.5)}))),
        "power": power_view(sample_size(one, 0.03)),
        "audit": audit_view(audit(rows, ledger=None)),
        "calibrate": calibration_view(calibrate(labeled, ledger=None)),
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["run", "compare", "gate", "power", "audit", "calibrate"])
def test_every_word_of_every_cell_is_shown_whole_at_every_width(views: dict[str, View], name: str, width: int) -> None:
    view, out = views[name], io.StringIO()
    show(view, Console(file=out, width=width))
    tables = [table for section in (*view.sections, *view.details) for table in section.tables]
    assert tables
    cells = [cell.text for table in tables for row in table.rows for cell in row]
    titles = [
        column.title
        for table in tables
        for at, column in enumerate(table.columns)
        if any(row[at].text for row in table.rows)
    ]
    missing = Counter(" ".join([*cells, *titles]).replace(":", " ").split()) - Counter(
        out.getvalue().replace(":", " ").split()
    )
    assert not missing
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_a_row_that_does_not_fit_becomes_lines_with_the_columns_names() -> None:
    grid = Grid("name", "value", "note")
    grid.add_row("n" * 30, "0.123 to 0.456", "")
    grid.add_row("m" * 30, "7", "w" * 30)
    out = io.StringIO()
    Console(file=out, width=40).print(grid)
    blocks = [f"name: {'n' * 30}\nvalue: 0.123 to 0.456\n", f"name: {'m' * 30}\nvalue: 7\nnote: {'w' * 30}\n"]
    assert out.getvalue() == "\n".join([*blocks, ""])


def test_numbers_stay_on_one_line_as_long_as_words_can_wrap() -> None:
    grid = Grid("name", "interval", "note")
    grid.add_row("one", "0.123 to 0.456", "some words that may wrap")
    out = io.StringIO()
    Console(file=out, width=40).print(grid)
    assert "0.123 to 0.456" in out.getvalue()

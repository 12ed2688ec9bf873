"""The page of evidence has every table that was saved, and figures elsewhere are those of its tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import evidence

ROOT = Path(__file__).parents[1]
SAVED = sorted((ROOT / "docs/evidence").glob("*.json"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_saved_table_is_whole_and_on_the_page_once(path: Path) -> None:
    found = json.loads(path.read_text("utf-8"))
    lines = evidence.evidence_page().splitlines()
    assert found["section"] == path.stem
    for table in found["tables"]:
        assert {len(row) for row in table["rows"]} == {len(table["head"])}
        assert lines.count(f"### {table['title']}") == 1


def test_a_section_is_saved_in_the_shape_of_its_published_tables(tmp_path: Path) -> None:
    command = [sys.executable, "bench/coverage.py", "--only", "mcnemars", "--replications", "10", "--save", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
    saved, published = (
        json.loads((folder / "mcnemars.json").read_text("utf-8")) for folder in (tmp_path, ROOT / "docs/evidence")
    )
    assert (saved["section"], saved["replications"]) == ("mcnemars", 10)
    (table,), (known,) = saved["tables"], published["tables"]
    assert table.keys() == known.keys()
    assert (table["title"], table["head"]) == (known["title"], known["head"])
    assert [row[:2] for row in table["rows"]] == [row[:2] for row in known["rows"]]
    assert table["replications"] == 10


TABLE: evidence.Table = {
    "title": "Tests at 5%",
    "head": ["", "8: covers", "width: covers", "covers", "exact"],
    "rows": [["a", "**97.0 ± 1**", "0.2", "94.0", ""], ["b", "96.0", "0.3", "95.5", "5.00"]],
    "replications": 400,
}


@pytest.fixture
def one_section(monkeypatch: pytest.MonkeyPatch) -> None:
    def section(name: str) -> evidence.Section:
        return {"section": name, "replications": 800, "tables": [TABLE]}

    monkeypatch.setattr(evidence, "section", section)


@pytest.mark.usefixtures("one_section")
def test_a_figure_is_the_worst_and_the_median_of_the_columns_of_its_name() -> None:
    low, high, alone = (evidence.figure(f"{name} of s") for name in ("lowest covers", "highest covers", "lowest exact"))
    assert low.startswith("94.0% in the worst of 4 cases and 95.8% ")
    assert high.startswith("97.0% in the worst of 4 cases and 95.8% ")
    assert alone.startswith("5.0% in the worst of 1 cases and 5.0% ")
    assert low.endswith("([400 replications, ±2.4](evidence.md#tests-at-5))")


@pytest.mark.usefixtures("one_section")
@pytest.mark.parametrize("name", ["lowest nothing of s", "mean covers of s", "lowest covers"])
def test_a_figure_that_no_table_has_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"figure|column"):
        evidence.figure(name)

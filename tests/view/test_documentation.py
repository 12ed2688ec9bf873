"""docs/view.md names every page, parameter and key."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from evalstone.view.app import PAGES
from evalstone.view.compare_query import CompareQuery
from evalstone.view.live_query import LiveQuery
from evalstone.view.pages.dataset_changes import DifferenceQuery
from evalstone.view.query import SampleQuery
from evalstone.view.runs_query import RunsQuery

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "view.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The tables below a heading, up to the next one."""
    return re.split(r"\n#+ ", TEXT.partition(f"{heading}\n")[2])[0]


def test_every_page_is_listed() -> None:
    listed = {re.sub("[A-Z…,]+", "X", row) for row in re.findall(r"^\| `([^`?]*)", section("## Pages"), re.MULTILINE)}
    files = ("/modes/{mode}/{file}", "/datasets/{name}/{file}", "/live/{stream}/dataset.jsonl")
    routes = {re.sub(r"\{\w+\}", "X", path) for path, _ in PAGES if "{suffix}" not in path and path not in files}
    assert listed == routes


@pytest.mark.parametrize(
    ("heading", "query"),
    [
        ("### Runs: `/`", RunsQuery),
        ("### Samples of a run: `/runs/ID`", SampleQuery),
        ("### Comparisons: `/compare`", CompareQuery),
        ("### Datasets: `/datasets/NAME`", DifferenceQuery),
        ("### Live scores: `/live/STREAM`", LiveQuery),
    ],
)
def test_every_filter_is_described(heading: str, query: type) -> None:
    names = {{"old": "from", "new": "to"}.get(each.name, each.name) for each in fields(query)} - {"after", "before"}
    assert {name for name in names if not re.search(rf"[`&,] ?`?{name}[=`]", section(heading))} == set()


def test_every_key_is_described() -> None:
    script = (ROOT / "src" / "evalstone" / "view" / "assets" / "view.js").read_text(encoding="utf-8")
    known = re.findall(r"^  (?:\"(.)\"|(\w)): ", script.partition("const KEYS")[2].partition("\n};")[0], re.MULTILINE)
    keys = [quoted or plain for quoted, plain in known]
    assert len(keys) > 8
    assert [key for key in keys if f"`{key}`" not in section("## Keys")] == []

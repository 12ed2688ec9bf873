"""What runs are called on pages."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from evalstone import evaluate
from evalstone.view.addresses import compare_address
from evalstone.view.names import names_of
from evalstone.view.shelf import Card
from tests.runs import Given
from tests.view.conftest import client_of


def card(run: str, second: int, folder: str = "") -> Card:
    """The card of a run without metadata."""
    return Card(id=run, started=f"2026-03-01T08:00:{second:02}Z", folder=folder)


def test_runs_of_one_minute_are_told_apart_by_their_datasets_where_they_are_compared(tmp_path: Path, url: str) -> None:
    runs = list[str]()
    for name in ("v1", "v2"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "a", "output": "0.5"}\n{"id": "b", "output": "1"}\n')
        runs.append(evaluate(tmp_path / f"{name}.jsonl", [Given()], ledger=url, name="nightly").id)
    page = client_of(url).get(compare_address(runs))
    title = html.unescape(re.findall("<title>(.*?)</title>", page.text)[0])
    assert title.startswith("nightly · v2.jsonl vs. nightly · v1.jsonl")
    assert "A nightly · v1.jsonl" in page.words


@pytest.mark.parametrize(
    ("cards", "told"),
    [
        ([Card(id="a1"), Card(id="b2")], ["", ""]),
        ([card("a1", 0), Card(id="b2", started="2027-03-01T08:00:00Z")], ["", ""]),
        ([card("a1", 0), card("b2", 30)], ["a1", "b2"]),
        ([card("a1", 0, "runs/x"), card("b2", 1, "runs/y"), card("c3", 2, "more/y")], ["x", "y · b2", "y · c3"]),
        ([card("a1", 0, "runs/x"), card("a1", 0, "runs/x")], ["", ""]),
    ],
    ids=["without a time", "another time", "the same time", "some in folders of one name", "the same run"],
)
def test_what_tells_runs_apart_follows_names_that_are_the_same(cards: list[Card], told: list[str]) -> None:
    assert [name.partition(" · ")[2] for name in names_of(cards)] == told

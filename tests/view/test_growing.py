"""The index of a run in progress is the one that is made from all of its records, whatever arrives in which order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.ledger.store import Ledger
from evalstone.view.indexing import indexes
from evalstone.view.indexing.build import build, head_of
from evalstone.view.indexing.growing import Growing
from evalstone.view.indexing.index import Index, OutdatedIndex
from evalstone.view.indexing.jobs import Building
from evalstone.view.indexing.opening import open_index
from evalstone.view.query import SampleQuery
from evalstone.view.shelf import Card, Shelf
from tests.runs import Claimed, Given, Harm, samples_of
from tests.view.conftest import unfinished

ANSWERS = ["0.5", "skip", "0.25", "1", "fail", "0.5", "0", "0.75", "skip", "0.5"]
QUERIES = (
    SampleQuery(),
    SampleQuery(sort="order"),
    SampleQuery(sort="-score:harm"),
    SampleQuery(show="failed"),
    SampleQuery(show="skipped", scorer="given"),
    SampleQuery(reason="nothing to say"),
    SampleQuery(field=(("topic", "b"),)),
    SampleQuery(q="says"),
    SampleQuery(q="contradicted because"),
    SampleQuery(q="passage"),
    SampleQuery(q="s1"),
)


class Arriving:
    """A run in a ledger whose records arrive as they are told to."""

    def __init__(self, url: str, **options: Any) -> None:
        metadata = [{"topic": "ab"[n % 2], "label": n} for n in range(len(ANSWERS))]
        samples = [
            replace(sample, context=(f"passage {n}",))
            for n, sample in enumerate(samples_of(ANSWERS, metadata=metadata))
        ]
        scorers = [Given(), Harm(), Claimed()]
        self.run = evaluate(samples, scorers, ledger=url, **options).id
        self.url, self.shelf = url, Shelf(url)
        with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
            query = "SELECT cell, signature, body FROM records WHERE run = :run ORDER BY cell"
            self.rows = {cell: row for cell, *row in database.execute(query, {"run": self.run})}
        unfinished(url, self.run, running=True)
        with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
            database.execute("DELETE FROM records WHERE run = :run", {"run": self.run})

    def add(self, *cells: int) -> None:
        with Ledger(self.url) as ledger, ledger.transaction(writing=True) as database:
            for cell in cells:
                signature, body = self.rows[cell]
                values = {"run": self.run, "cell": cell, "signature": signature, "body": body}
                database.execute(
                    "INSERT INTO records (run, cell, signature, body) VALUES (:run, :cell, :signature, :body)", values
                )

    @property
    def card(self) -> Card:
        card = self.shelf.card(self.run)
        assert card is not None
        assert card.state == "running"
        return card


def facts(index: Index) -> dict[str, Any]:
    """All that pages read, without the places of cases."""
    found: dict[str, Any] = {}
    for query in QUERIES:
        cases = index.page(query, 100).cases
        found[str(query.pairs())] = [replace(case, place=0) for case in cases], index.count(query)
    stored = {case.key: index.stored(case.place) for case in index.page(SampleQuery(), 100).cases}
    return {
        **found,
        "stored": {key: (each.sample, each.records) for key, each in stored.items()},
        "totals": {name: number for name, number in index.totals.items() if number},
        "facets": {facet.name: dict(facet.values) for facet in index.facets},
        "groups": index.groups(50),
        "spreads": index.spreads,
        "head": index.head,
        "neighbors": [index.neighbors(SampleQuery(), key) for key in stored],
    }


def same(arriving: Arriving, growing: Growing, tmp_path: Path) -> bool:
    """Whether the index, updated, is as if it were made from all records."""
    card = arriving.card
    growing.update(card, lambda _done, _total: None)
    run, file = arriving.shelf.read(card), tmp_path / "whole.db"
    build(run, file, card.stamp, head_of(run), lambda _done, _total: None)
    with open_index(file) as whole, open_index(growing.file) as index:
        assert facts(index) == facts(whole)
        return index.stamp == whole.stamp == card.stamp


def echoed(input: str) -> str:
    return "0.5" if len(input) % 2 else "skip"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"target": echoed, "trials": 2}], ids=["answers", "trials"])
@pytest.mark.parametrize("order", ["dataset", "random", "by scorer"])
def test_records_are_added_to_it(tmp_path: Path, url: str, options: dict[str, Any], order: str) -> None:
    arriving = Arriving(url, **options)
    cells = [*arriving.rows]
    if order == "random":
        random.Random(3).shuffle(cells)
    elif order == "by scorer":
        cells.sort(key=lambda cell: cell % 3)
    arriving.add(*cells[:2])
    growing = Growing(tmp_path / "run.growing", arriving.shelf, arriving.card)
    assert same(arriving, growing, tmp_path)
    for start in range(2, len(cells), 7):
        arriving.add(*cells[start : start + 7])
        assert same(arriving, growing, tmp_path)
    growing.close()
    assert [file.name for file in tmp_path.iterdir() if "growing" in file.name] == []


def delete(url: str, run: str) -> None:
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("DELETE FROM records WHERE run = :run AND cell IN (3, 4)", {"run": run})


def retry(url: str, run: str) -> None:
    """A failure is scored again, as when a run is resumed."""
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        failed = "UPDATE records SET body = replace(body, 'fail', 'other') WHERE run = :run AND cell = 12"
        assert database.execute(failed, {"run": run}).rowcount == 1


@pytest.mark.parametrize("change", [delete, retry])
def test_it_is_made_again_if_records_have_changed(
    tmp_path: Path, url: str, change: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "PAUSE", 0.0)
    arriving = Arriving(url)
    arriving.add(*range(15))
    shelves = indexes.Indexes(arriving.shelf)

    def opened() -> Index:
        index = shelves.open(arriving.card)
        assert isinstance(index, Index)
        return index

    with opened() as first:
        assert first.totals["all"] == 5
    change(url, arriving.run)
    arriving.add(15)
    growing = Growing(tmp_path / "run.growing", arriving.shelf, arriving.card)
    assert same(arriving, growing, tmp_path)
    with opened() as again, open_index(growing.file) as index:
        assert again.file != first.file
        assert facts(again) == facts(index)
    assert not first.file.exists()
    growing.close()


def test_a_page_is_of_one_moment_while_records_are_added(url: str, tmp_path: Path) -> None:
    arriving = Arriving(url)
    arriving.add(*range(6))
    growing = Growing(tmp_path / "run.growing", arriving.shelf, arriving.card)
    growing.update(arriving.card, lambda _done, _total: None)
    with open_index(growing.file) as before:
        arriving.add(*range(6, 24))
        growing.update(arriving.card, lambda _done, _total: None)
        assert len(before.page(SampleQuery()).cases) == before.count(SampleQuery(q="says")) + 1 == 2
        with open_index(growing.file) as after:
            assert after.totals["all"] == len(after.page(SampleQuery()).cases) == 8
    growing.close()


def test_an_index_that_another_request_gives_up_at_the_same_time_is_made_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = Arriving(url)
    arriving.add(0)
    known = indexes.Indexes(arriving.shelf)
    opened = known.open(arriving.card)
    assert isinstance(opened, Index)
    opened.close()

    def gone(_: Path) -> Index:
        vars(known)["_growing"].clear()
        raise OutdatedIndex("it is gone")

    with monkeypatch.context() as patch:
        patch.setattr(indexes, "open_index", gone)
        assert isinstance(known.open(arriving.card), Building)
    again = known.open(arriving.card)
    assert isinstance(again, Index)
    again.close()

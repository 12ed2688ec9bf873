"""The list of all scores: newest first, by every filter, in pages that miss and repeat nothing."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError
from evalstone.ledger import RunRow, live
from evalstone.ledger.live import LiveScore
from evalstone.ledger.scores import BUDGET_SPENT, ListedScore, list_scores, newest_record, unknown_names, watched_scores
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, Outcome, Record, Sample, Score, Skipped, scorer_name
from tests.ledger.rows import record, records, run

DAY = datetime(2026, 1, 1, tzinfo=UTC)
A, B, OTHER = "s(expected=1)@1", "s@2", "other@1"


def at(hours: float) -> datetime:
    return DAY + timedelta(hours=hours)


def add_live(
    ledger: Ledger, id: str, hours: float, outcome: Outcome | None = None, *, pending: bool = False, **fields: Any
) -> None:
    signature = fields.get("signature", B)
    values: dict[str, Any] = {"stream": "shop", "source": "live", "signature": B, "owner": "o", "entity": "agent"}
    values |= {"id": id, "trace": f"t{id}", "submitted": at(hours).timestamp(), **fields}
    row = LiveScore(**values)
    (mine,) = live.write_frame(ledger, [], [row], [])
    if not pending:
        found = (
            None
            if outcome is None
            else Record(sample_id="q1", scorer=scorer_name(signature), signature=signature, outcome=outcome)
        )
        live.finish(ledger, [mine.ended(found)])


def add_run(ledger: Ledger, id: str, hours: float, scorers: list[str], number: int = 3, **metadata: Any) -> None:
    row = run(id, started=at(hours).isoformat(), plan=id)
    (one,) = row.metadata["scorers"]
    signed = {"scorers": [{**one, "signature": signature} for signature in scorers]}
    row = RunRow(row.id, row.plan, row.started, None, {**row.metadata, **signed, **metadata})
    ledger.start_run(row)
    each = itertools.product(range(number), scorers)
    ledger.write(records=records(id, *(record(f"{id}-{n}", scorer=scorer, question=n) for n, scorer in each)))
    ledger.leases.release_all()


@pytest.fixture
def filled(url: str) -> str:
    with Ledger(url) as ledger:
        add_live(ledger, "a/1", 1, Score(0.25))
        add_live(ledger, "a/2", 2, Skipped("no claims"))
        add_live(ledger, "a/3", 3, Failed("boom"), signature=A)
        add_live(ledger, "a/4", 4, pending=True)
        add_live(ledger, "a/5", 5, None)
        add_live(ledger, "a/6", 6, Score(3.0, scale=5.0), source="trace", entity="other", signature=OTHER)
        add_run(ledger, "r1", 2.5, [B, OTHER], name="nightly")
        add_run(ledger, "r3", 5, [A])
        add_run(ledger, "r2", 5, [B])
        add_run(ledger, "r4", 7, [B], kind="calibration")
    return url


def names(found: list[ListedScore]) -> list[str]:
    return [one.trace or f"{one.run}:{one.signature}:{one.sample_id}" for one in found]


WHOLE = [
    "ta/6",
    "ta/5",
    *(f"r2:{B}:r2-{n}" for n in (2, 1, 0)),
    *(f"r3:{A}:r3-{n}" for n in (2, 1, 0)),
    "ta/4",
    "ta/3",
    *(f"r1:{OTHER}:r1-{n}" for n in (2, 1, 0)),
    *(f"r1:{B}:r1-{n}" for n in (2, 1, 0)),
    "ta/2",
    "ta/1",
]


def test_all_scores_newest_first(filled: str) -> None:
    assert names(list_scores(filled)) == WHOLE


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_pages_miss_and_repeat_nothing(filled: str, size: int) -> None:
    found: list[str] = []
    before = None
    while page := list_scores(filled, limit=size, before=before):
        assert len(page) <= size
        found += names(page)
        before = page[-1].cursor
        assert len(found) <= len(WHOLE)
    assert found == WHOLE


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"source": "run"}, [name for name in WHOLE if name.startswith("r")]),
        ({"source": "live"}, ["ta/5", "ta/4", "ta/3", "ta/2", "ta/1"]),
        ({"source": "trace"}, ["ta/6"]),
        ({"entity": "other"}, ["ta/6"]),
        ({"run": "nightly"}, [name for name in WHOLE if name.startswith("r1")]),
        ({"run": "r2"}, [name for name in WHOLE if name.startswith("r2")]),
        ({"run": "r2", "source": "live"}, []),
        ({"entity": "nightly"}, []),
        ({"stream": "shop"}, [name for name in WHOLE if name.startswith("ta/")]),
        ({"stream": "shop", "source": "trace"}, ["ta/6"]),
        ({"stream": "shop", "source": "run"}, []),
        ({"stream": "blog"}, []),
        ({"scorer": "other"}, ["ta/6", *(f"r1:{OTHER}:r1-{n}" for n in (2, 1, 0))]),
        ({"scorer": A}, [*(f"r3:{A}:r3-{n}" for n in (2, 1, 0)), "ta/3"]),
        ({"scorer": "s"}, [name for name in WHOLE if OTHER not in name and name != "ta/6"]),
        ({"scorer": "nope"}, []),
        ({"since": at(5)}, WHOLE[:8]),
        ({"until": at(2.5)}, ["ta/2", "ta/1"]),
        ({"since": at(2), "until": at(3), "scorer": "s"}, [*(f"r1:{B}:r1-{n}" for n in (2, 1, 0)), "ta/2"]),
    ],
)
def test_filters_alone_and_together_in_pages_too(filled: str, filters: dict[str, Any], expected: list[str]) -> None:
    assert names(list_scores(filled, **filters)) == expected
    found: list[str] = []
    before = None
    while page := list_scores(filled, limit=2, before=before, **filters):
        found += names(page)
        before = page[-1].cursor
    assert found == expected


def test_what_is_listed_of_each(filled: str) -> None:
    by = dict(zip(WHOLE, list_scores(filled), strict=True))
    states = {name: by[name].state for name in ("ta/1", "ta/2", "ta/3", "ta/4", "ta/5")}
    assert list(states.values()) == ["score", "skipped", "failed", "pending", "dropped"]
    assert (by["ta/6"].value, by["ta/6"].scale, by["ta/6"].entity, by["ta/6"].stream) == (3.0, 5.0, "other", "shop")
    assert [by[f"ta/{n}"].reason for n in (1, 2, 3, 4)] == ["", "no claims", "boom", ""]
    assert by["ta/5"].reason == BUDGET_SPENT
    assert (by["ta/1"].sample_id, by["ta/4"].sample_id) == ("q1", "")
    first = by[f"r1:{B}:r1-0"]
    assert (first.time, first.source, first.entity, first.reason) == (at(2.5), "run", "", "why")
    assert (first.stream, first.run, first.run_name) == (None, "r1", "nightly")
    assert (by["ta/6"].run, by["ta/6"].run_name) == (None, "")


def test_a_run_with_a_target_is_listed_by_it(url: str) -> None:
    with Ledger(url) as ledger:
        add_run(ledger, "r1", 1, [B], 1, name="nightly", target={"identity": "app:agent", "trials": 1})
    assert [one.entity for one in list_scores(url, entity="app:agent")] == ["app:agent"]
    assert [one.entity for one in list_scores(url, run="nightly")] == ["app:agent"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"source": "runs"}, "source must be"),
        ({"limit": 0}, "limit must be"),
        ({"since": "24h"}, "since must be a datetime with a time zone, .*, not '24h'"),
        ({"until": at(0).replace(tzinfo=None)}, "until must be a datetime with a time zone"),
        *(
            ({"before": text}, "must be the cursor")
            for text in ("", "x", "[1]", '["a", "b"]', "[1, 2]", "[1, 2, 3, 4]")
        ),
        ({"before": '[1, "r", "s", "3"]'}, "must be the cursor"),
        *(
            ({"before": text}, "must be the cursor")
            for text in (f'[1{"0" * 400}, "a"]', '[NaN, "a"]', '[Infinity, "a"]', "[" * 100_000)
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(filled: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        list_scores(filled, **options)


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no ledger"):
        list_scores(tmp_path / "l.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_scores_of_one_time_by_scorers_of_one_name_are_in_one_order(url: str, size: int) -> None:
    with Ledger(url) as ledger:
        for number in range(6):
            add_live(ledger, f"a/{number}", 1, Score(1.0), signature=B if number % 3 else A)
    found: list[str] = []
    before = None
    while page := list_scores(url, scorer="s", limit=size, before=before):
        found += names(page)
        before = page[-1].cursor
        assert len(found) <= 6
    assert found == [f"ta/{number}" for number in (5, 4, 3, 2, 1, 0)]


@pytest.mark.parametrize("scorer", ["s(expected=1)", "s( expected = '1' )", "s(expected=1, scale=1)", A])
def test_a_scorer_is_named_with_its_parameters_in_any_spelling(url: str, scorer: str) -> None:
    with Ledger(url) as ledger:
        add_live(ledger, "a/1", 1, Score(1.0), signature=A)
        add_live(ledger, "a/2", 2, Score(1.0), signature=B)
        add_run(ledger, "r1", 0, [A, B], number=1)
    assert {one.signature for one in list_scores(url, scorer=scorer)} == {A}
    assert len(list_scores(url, scorer=scorer)) == 2
    assert unknown_names(url, scorer=scorer) == []
    assert list_scores(url, scorer="s(expected=2)") == []
    assert unknown_names(url, scorer="s(expected=2)") != []


def test_a_run_whose_time_has_no_zone_began_in_utc(url: str) -> None:
    with Ledger(url) as ledger:
        row = run("r1", started="2026-01-01T02:00:00", plan="r1")
        ledger.start_run(RunRow(row.id, row.plan, row.started, None, row.metadata))
        ledger.write(records=records("r1", record("q")))
        ledger.leases.release_all()
    (found,) = list_scores(url, since=at(2), until=at(2.5))
    assert found.time == at(2)
    assert list_scores(url, since=at(2.5)) == []


def test_of_scores_submitted_at_one_time_a_watch_has_those_of_lower_ids_first(url: str) -> None:
    with Ledger(url) as ledger:
        for name in ("b/2", "a/1", "c/3"):
            add_live(ledger, name, 1, Score(0.5))
        assert [one.id for one in watched_scores(ledger, "shop", B)] == ["a/1", "b/2", "c/3"]


def test_the_newest_record_is_that_of_the_latest_score_and_not_of_a_failure(url: str) -> None:
    with Ledger(url) as ledger:
        assert newest_record(ledger, "shop", B) is None
        add_live(ledger, "a/1", 3, Failed("boom"))
        assert newest_record(ledger, "shop", B) is None
        for name, hours in (("a/2", 1), ("a/3", 2), ("a/4", 0)):
            add_live(ledger, name, hours, Score(hours / 4))
        newest = newest_record(ledger, "shop", B)
        assert newest is not None
        assert newest.value == 0.5
        assert newest_record(ledger, "other", B) is newest_record(ledger, "shop", A) is None


def test_hostile_names_and_filters_are_data(url: str) -> None:
    name = "x' OR '1'='1 \x00 \ud800 %_"
    with Ledger(url) as ledger:
        add_live(ledger, "a/1", 1, Score(1.0), entity=name)
        add_live(ledger, "a/2", 2, Score(1.0), entity="x")
    assert names(list_scores(url, entity=name)) == ["ta/1"]
    assert list_scores(url, scorer="s%") == list_scores(url, entity="%") == []


def test_the_scores_of_a_stream_in_the_order_of_submission_with_their_groups(url: str) -> None:
    talk = Sample(id="1", output="a", group="talk", metadata={"note": '"group": "no"'})
    other = Sample(id="2", output='"group": "text"')
    with Ledger(url) as ledger:
        for id, hours, sample in (("a", 2, talk), ("b", 1, other), ("c", 3, None)):
            row = LiveScore(
                id=id, stream="shop", source="live", signature=B, owner="o", submitted=at(hours).timestamp(), trace=id,
                sample=None if sample is None else live.sample_hash(sample),
            )  # fmt: skip
            (mine,) = live.write_frame(ledger, [], [row], [] if sample is None else [sample])
            live.finish(ledger, [dataclasses.replace(mine.ended(record("1", 1.0)), value=2.0, scale=4.0)])
        add_live(ledger, "d", 4, stream="other")
        found = list(watched_scores(ledger, "shop", B))
        assert [(one.id, one.group, one.share) for one in found] == [
            ("b", None, 0.5),
            ("a", "talk", 0.5),
            ("c", None, 0.5),
        ]
        some = watched_scores(ledger, "shop", B, since=at(2).timestamp(), until=at(3).timestamp())
        assert [one.id for one in some] == ["a"]

"""`evalstone live coverage` as a user meets it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evalstone import evaluate
from evalstone.ledger import live
from evalstone.ledger.live import HOUR, LiveCounts, LiveScore
from evalstone.ledger.store import Ledger
from evalstone.live import coverage
from evalstone.types import Record, Score, scorer_name
from tests.cli.conftest import Evalstone

NOW = time.time()
HOUR_NOW = int(NOW // HOUR)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two scorers in two hours: all that can become of traffic."""
    path = tmp_path / "l.db"
    with Ledger(path) as opened:
        for scorer, hour, accepted in (("contains@1", HOUR_NOW, 2), ("exact_match@1", HOUR_NOW - 30, 1)):
            counts = LiveCounts(
                stream="shop", signature=scorer, owner="a", hour=hour, seen=1234, filtered=34, eligible=1200,
                declined=1000, dropped=200 - accepted, accepted=accepted,
            )  # fmt: skip
            rows = [
                LiveScore(
                    id=f"{scorer}/{number}", stream="shop", source="live", signature=scorer, owner="a",
                    submitted=hour * HOUR + 1.0,
                )
                for number in range(accepted)
            ]  # fmt: skip
            mine = live.write_frame(opened, [counts], rows, [])
            live.finish(
                opened,
                [
                    mine[0].ended(
                        Record(sample_id="s", scorer=scorer_name(scorer), signature=scorer, outcome=Score(1.0))
                    )
                ],
            )
    return path


def test_what_became_of_the_traffic_is_shown(ledger: Path, evalstone: Evalstone) -> None:
    done = evalstone("live", "coverage", "shop", "--ledger", "l.db")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["shop"]
    assert rows[1] == ["contains", "exact_match", "all", "scorers"]
    assert ["seen", "1,234", "1,234", "2,468"] in rows
    assert ["dropped:", "queue", "full", "198", "199", "397"] in rows
    assert ["pending", "1", "0", "1"] in rows
    assert "unaccounted" not in done.stdout
    printed = str(coverage("shop", ledger=ledger))
    assert [line.rstrip() for line in done.stdout.splitlines()] == printed.splitlines()


def test_whole_hours_count_from_a_time_on(ledger: Path, evalstone: Evalstone) -> None:
    done = evalstone("live", "coverage", "shop", "--ledger", "l.db", "--since", "24h", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (one,) = found["scorers"]
    assert (one["signature"], one["n_score"], one["pending"], one["sampled"]) == ("contains@1", 1, 1, 200)
    assert (one["dropped"], one["unaccounted"]) == ({"queue": 198, "budget": 0}, 0)
    assert found["since"].endswith(":00:00+00:00")
    assert found["total"]["coverage"] == one["coverage"] == 1 / 1200


def test_what_is_missing_is_said_and_exits_with_1(ledger: Path, evalstone: Evalstone) -> None:
    with Ledger(ledger) as opened, opened.transaction(writing=True) as connection:
        connection.execute("DELETE FROM live_scores WHERE state = 'pending'")
    done = evalstone("live", "coverage", "shop", "--ledger", "l.db")
    assert done.returncode == 1
    assert "1 unaccounted: " in done.stdout
    assert "deleted or imported" in done.stdout
    assert str(coverage("shop", ledger=ledger)).splitlines()[-1] == done.stdout.splitlines()[-1]


def test_a_stream_is_named_where_the_ledger_has_several(ledger: Path, evalstone: Evalstone, tmp_path: Path) -> None:
    assert evalstone("live", "coverage", "--ledger", "l.db").stdout.startswith("shop\n")
    evaluate([{"output": "Paris"}], "contains(expected=Paris)", ledger=tmp_path / "runs.db", name="base")
    for command in (["coverage"], ["drift", "base"]):
        done = evalstone("live", *command, "--ledger", "runs.db")
        assert (done.returncode, "runs.db: nothing" in done.stderr) == (2, True), done.stderr
    with Ledger(ledger) as opened:
        live.write_frame(
            opened, [live.LiveCounts(stream="blog", signature="contains@1", owner="o", hour=1, seen=1)], [], []
        )
    for command, how in ((["coverage"], ""), (["drift", "2026-11-01..2026-11-02"], " with --stream")):
        done = evalstone("live", *command, "--ledger", "l.db")
        assert (done.returncode, f" 2 streams; name one{how}: blog, shop" in done.stderr) == (2, True)


def test_a_stream_or_ledger_that_is_not_there_is_said(ledger: Path, evalstone: Evalstone) -> None:
    done = evalstone("live", "coverage", "shp", "--ledger", "l.db")
    assert (done.returncode, "it has shop" in done.stderr) == (2, True)
    done = evalstone("live", "coverage", "shop", "--ledger", "other.db")
    assert (done.returncode, "ledger other.db" in done.stderr) == (2, True)
    assert evalstone("live", "coverage", "shop", "--ledger", "l.db", "--since", "soon").returncode == 2


def test_a_baseline_without_scores_is_a_usage_error(ledger: Path, evalstone: Evalstone) -> None:
    done = evalstone("live", "drift", "2019-01-01..2019-01-08", "--ledger", "l.db")
    assert done.returncode == 2, done.stdout
    told = ("2019-01-01", "no score", " shop ", "contains", "exact_match")
    assert [part for part in told if part not in done.stderr] == []


def test_a_stream_in_place_of_the_baseline_is_recognized(ledger: Path, evalstone: Evalstone) -> None:
    done = evalstone("live", "drift", "shop", "--ledger", "l.db")
    assert done.returncode == 2
    assert "no run of that id or name in the ledger l.db; that is a stream: name it with --stream shop, and a" in (
        " ".join(done.stderr.split())
    )
    assert "is a stream" not in evalstone("live", "drift", "shp", "--ledger", "l.db").stderr
    assert "is a stream" not in evalstone("live", "drift", "shop", "--ledger", "other.db").stderr

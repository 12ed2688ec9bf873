"""`evalstone ledger scores` and `evalstone live drift`: what they print, and how they exit."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalstone import ConfigError, Failed, Record, Score, Skipped, evaluate, read_run
from evalstone._core.times import moment
from evalstone.ledger import live
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.scores import list_scores
from evalstone.ledger.store import Ledger
from evalstone.live import drift as live_drift
from evalstone.types import scorer_name
from tests.cli.conftest import Evalstone

SIGNATURE = "contains(expected=Paris)@1"


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A run with a mean of 0.9, and two hours of live scores, of which the second hour has 0.5."""
    url = str(tmp_path / "l.db")
    outputs = [{"id": f"q{n}", "output": "Paris" if n % 10 else "Rome"} for n in range(200)]
    evaluate(outputs, ["contains(expected=Paris)"], ledger=url, name="base")
    start = time.time() - 6300
    rows = [
        LiveScore(
            id=f"o/{n}",
            stream="shop",
            source="live",
            signature=SIGNATURE,
            owner="o",
            submitted=start + n * 9,
            entity="agent",
        )
        for n in range(700)
    ]
    with Ledger(url) as opened:
        counts = LiveCounts(stream="shop", signature=SIGNATURE, owner="o", hour=1, seen=700)
        mine = live.write_frame(opened, [counts], rows, [])
        values = [1.0 if n % 10 and (n < 400 or n % 2) else 0.0 for n in range(700)]
        reason = "\x1b[31mred\u202e"
        records = [
            Record(
                sample_id=f"\x1b]0;{n}",
                scorer=scorer_name(SIGNATURE),
                signature=SIGNATURE,
                outcome=Score(x, reason, scale=1.0),
            )
            for n, x in enumerate(values)
        ]
        ended = [row.ended(found) for row, found in zip(mine, records, strict=True)]
        live.finish(opened, [replace(row, finished=row.submitted) for row in ended])
    return url


@pytest.mark.slow
def test_scores_are_listed_in_pages_with_nothing_that_steers_a_terminal(evalstone: Evalstone, ledger: str) -> None:
    first = evalstone("ledger", "scores", "--ledger", ledger, "--limit", "2", "--source", "live")
    assert first.returncode == 0
    _, header, newest, second, more = first.stdout.splitlines()
    assert header.split() == ["time", "source", "stream", "entity", "scorer", "sample", "score", "reason"]
    assert "699" in newest
    assert "698" in second
    assert "\x1b" not in first.stdout
    assert "\u202e" not in first.stdout
    assert evalstone("ledger", "scores", "--ledger", ledger, "--limit", "1" + "0" * 30).returncode == 0
    cursor = more.removeprefix("more: --before ").strip("'")
    following = evalstone(
        "ledger", "scores", "--ledger", ledger, "--limit", "1", "--source", "live", "--before", cursor
    )
    assert "697" in following.stdout.splitlines()[2]


def test_skipped_failed_and_pending_scores_are_listed_by_their_state(evalstone: Evalstone, tmp_path: Path) -> None:
    url = str(tmp_path / "l.db")
    evaluate(
        [{"id": "blank", "input": "Who?"}, {"id": "q", "output": "Paris"}], ["contains(expected=Paris)"], ledger=url
    )
    rows = [
        LiveScore(id=f"o/{n}", stream="shop", source="live", signature=SIGNATURE, owner="o", submitted=time.time() + n)
        for n in range(3)
    ]
    with Ledger(url) as opened:
        counts = LiveCounts(stream="shop", signature=SIGNATURE, owner="o", hour=1, seen=3)
        skipped, failed, _ = live.write_frame(opened, [counts], rows, [])
        outcomes = (skipped, Skipped("no output")), (failed, Failed("the judge is away"))
        live.finish(
            opened,
            [
                row.ended(Record(sample_id="s", scorer=scorer_name(SIGNATURE), signature=SIGNATURE, outcome=each))
                for row, each in outcomes
            ],
        )
    listed = evalstone("ledger", "scores", "--ledger", url)
    assert listed.returncode == 0, listed.stderr
    for line, words in zip(
        listed.stdout.splitlines()[2:],
        (["pending"], ["failed", "the judge is away"], ["skipped", "no output"], ["q", "1"], ["blank", "skipped"]),
        strict=True,
    ):
        assert all(word in line for word in words), line


def test_columns_say_whose_scores_they_are(evalstone: Evalstone, ledger: str) -> None:
    of_run = ("ledger", "scores", "--ledger", ledger, "--run", "base", "--limit", "1")
    (row,) = json.loads(evalstone(*of_run, "--json").stdout)["scores"]
    assert (row["stream"], row["run_name"], row["entity"]) == (None, "base", "")
    done = evalstone(*of_run)
    _, header, line, *_ = done.stdout.splitlines()
    assert header.split() == ["time", "source", "run", "run", "name", "scorer", "sample", "score", "reason"]
    assert f"  {row['run']}  base " in line
    done = evalstone("ledger", "scores", "--ledger", ledger, "--stream", "shop", "--limit", "1")
    assert done.stdout.splitlines()[2].split()[2:5] == ["live", "shop", "agent"]
    assert evalstone("ledger", "scores", "--ledger", ledger, "--stream", "base").stdout == "no scores\n"


def test_csv_has_each_score_as_it_is_stored(evalstone: Evalstone, tmp_path: Path) -> None:
    url, long = str(tmp_path / "l.db"), "x" * 100
    samples = [{"id": name, "output": f"{long} Paris"} for name in ("-", "1 to 5", f"{long}1", f"{long}2")]
    evaluate([*samples, {"id": "none", "input": "Who?"}], ["contains(expected=Paris)"], ledger=url, name="1 to 5")
    listed = list_scores(url)
    header, *rows = csv.reader(io.StringIO(evalstone("ledger", "scores", "--ledger", url, "--csv", "-").stdout))
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["sample_id"].lstrip("'") for row in found] == [one.sample_id for one in listed]
    assert [row["reason"] for row in found] == [one.reason for one in listed]
    assert {row["run name"] for row in found} == {"1 to 5"}
    assert [(row["state"], row["value"], row["scale"]) for row in found] == [
        ("skipped", "", ""),
        *[("score", "1.0", "1.0")] * 4,
    ]
    assert {row["signature"] for row in found} == {SIGNATURE}
    empty = evalstone("ledger", "scores", "--ledger", url, "--run", "no", "--csv", "-")
    assert next(csv.reader([empty.stdout])) == header


def test_a_list_too_wide_for_the_terminal_names_the_sample_in_each_block(evalstone: Evalstone, ledger: str) -> None:
    done = evalstone("ledger", "scores", "--ledger", ledger, "--run", "base", "--limit", "3", env={"COLUMNS": "90"})
    blocks = done.stdout.split("\n\n")
    assert len(blocks) > 1
    assert all(name in block for block in blocks for name in ("sample", "q199", "q198", "q197"))


def test_scores_as_json_and_by_filters(evalstone: Evalstone, ledger: str) -> None:
    done = evalstone("ledger", "scores", "--ledger", ledger, "--limit", "200", "--run", "base", "--json")
    listed = json.loads(done.stdout)
    assert len(listed["scores"]) == 200
    assert {one["source"] for one in listed["scores"]} == {"run"}
    after = evalstone("ledger", "scores", "--ledger", ledger, "--run", "base", "--before", listed["next"], "--json")
    assert json.loads(after.stdout) == {"format": "score_list/1", "scores": [], "next": None}
    assert evalstone("ledger", "scores", "--ledger", ledger, "--scorer", "nope").stdout == "no scores\n"
    hour = evalstone(
        "ledger", "scores", "--ledger", ledger, "--source", "live", "--since", "1h", "--limit", "900", "--json"
    )
    assert len(json.loads(hour.stdout)["scores"]) == pytest.approx(400, abs=3)
    wrong = evalstone("ledger", "scores", "--ledger", ledger, "--source", "runs")
    assert (wrong.returncode, wrong.stderr.startswith("evalstone: --source takes")) == (2, True)


def test_drift_is_found_named_and_an_exit_code(evalstone: Evalstone, ledger: str) -> None:
    done = evalstone("live", "drift", "base", "--ledger", ledger, "--settle", "1m")
    assert done.returncode == 1
    assert ["contains", "drifted", "0.900"] in [line.split()[:3] for line in done.stdout.splitlines()]
    assert "contains: mean 0.900 -> 0." in done.stdout
    found = live_drift(read_run("base", ledger=ledger), ledger=ledger, settle=timedelta(minutes=1))
    assert str(found).split() == done.stdout.replace("--settle", "settle").replace("--cycle", "cycle").split()
    since = (datetime.now(UTC) - timedelta(hours=2, minutes=5)).isoformat()
    until = evalstone("live", "drift", "base", "--ledger", ledger, "--since", since, "--tolerance", "0.5", "--json")
    assert until.returncode == 0
    assert json.loads(until.stdout)["scorers"][0]["verdict"].startswith("no drift")


def test_a_period_is_a_baseline_and_an_age_is_said_to_move(evalstone: Evalstone, ledger: str) -> None:
    done = evalstone("live", "drift", "2h..1h", "--ledger", ledger, "--two-sided", "--settle", "1m")
    assert done.returncode == 1
    assert "to now (2h, 1h)" in done.stdout
    few = evalstone("live", "drift", "base", "--ledger", ledger, "--since", "620s")
    assert few.returncode == 0
    assert "too few" in few.stdout
    assert "not closed yet" in few.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "no results folder"),
        (["base", "--stream", "other"], "other has no scores"),
        (["base", "--since", "yesterday"], "--since takes a time"),
        (["base", "--settle", "soon"], "--settle takes a time"),
        (["base", "--cycle", "day"], "--cycle takes a time"),
        (["base", "--alpha", "0.7"], "--alpha must be"),
        (["base", "--tolerance", "1"], "--tolerance must be"),
        (["x..y"], "BASELINE takes a time"),
    ],
)
def test_what_can_not_be_watched_is_said_in_a_line(
    evalstone: Evalstone, ledger: str, arguments: list[str], says: str
) -> None:
    done = evalstone("live", "drift", *arguments, "--ledger", ledger)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone can't be changed")
def test_a_time_without_a_zone_is_in_utc_wherever_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patched:
            patched.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            assert moment("2026-01-31T12:00", "--since") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    finally:
        time.tzset()


def test_times_and_ages_are_read() -> None:
    day = datetime(2026, 1, 31, tzinfo=UTC)
    assert moment("2026-01-31", "--since") == day
    assert moment("2026-01-31T01:00:00+01:00", "--since") == day
    for text, age in {"90s": 90, "15m": 900, "24h": 86400, "7d": 604800, "2w": 1209600}.items():
        assert (datetime.now(UTC) - moment(text, "--since")).total_seconds() == pytest.approx(age, abs=5)
    for text in ("", "x", "7", "d", "-1d", "1.5h", "999999w", "2026-13-01", "7 d"):
        with pytest.raises(ConfigError, match="--since takes a time"):
            moment(text, "--since")


def test_of_a_name_that_the_ledger_lacks_the_nearest_is_named(evalstone: Evalstone, ledger: str) -> None:
    for options, hints in (
        (["--scorer", "contians"], ["unknown scorer 'contians'; did you mean contains?"]),
        (["--stream", "zzz"], ["unknown stream 'zzz'; known: shop"]),
        (["--stream", "shp", "--scorer", "x"], ["there are no scores of 'x', only of contains", "did you mean shop?"]),
        (["--scorer", SIGNATURE, "--stream", "shop", "--until", "2020-01-01"], []),
    ):
        done = evalstone("ledger", "scores", "--ledger", ledger, *options)
        assert (done.returncode, done.stdout) == (0, "no scores\n")
        assert [hint for hint in hints if hint not in done.stderr] == []
        assert ("unknown" in done.stderr) == bool(hints)

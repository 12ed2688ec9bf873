"""Coverage: sums over processes and hours, by hour, and as a table that tells both kinds of dropped samples apart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalstone.errors import ConfigError
from evalstone.ledger.base import HOUR
from evalstone.ledger.live import LiveCounts, LiveScore, State, write_frame
from evalstone.ledger.store import Ledger
from evalstone.live import ScorerCoverage, coverage

NOON = 500_004
"""An hour since 1970."""


def counts(*, owner: str = "p1", **numbers: int) -> LiveCounts:
    """The counts of a process in an hour, which add up by default."""
    known = {"hour": NOON, "seen": 20, "filtered": 3, "eligible": 17, "declined": 6, "dropped": 4, "accepted": 7}
    none = LiveCounts(stream="shop", signature="contains@1", owner=owner, hour=0)
    return dataclasses.replace(none, **{**known, **numbers})


def states(**numbers: int) -> list[State]:
    """The states of rows: so many of each."""
    known: dict[State, int] = {"score": 3, "skipped": 1, "failed": 0, "dropped": 2, "pending": 1}
    return [state for state, number in {**known, **numbers}.items() for _ in range(number)]  # pyright: ignore[reportReturnType]


def write(path: Path, counted: Sequence[LiveCounts], of: Sequence[State] | None = None) -> Path:
    """A ledger with these counts, and rows in these states for each of them."""
    with Ledger(str(path)) as ledger:
        for each in counted:
            rows = [
                LiveScore(
                    id=f"{each.owner}/{each.hour}/{each.signature}/{number}",
                    stream=each.stream,
                    source="live",
                    signature=each.signature,
                    owner=each.owner,
                    submitted=each.hour * HOUR + 1.0,
                    state=state,
                )
                for number, state in enumerate(states() if of is None else of)
            ]
            write_frame(ledger, [each], rows, [])
    return path


def test_each_number_is_that_of_the_ledger(tmp_path: Path) -> None:
    (one,) = coverage(ledger=write(tmp_path / "l.db", [counts()])).scorers
    assert one == ScorerCoverage(
        scorer="contains",
        signature="contains@1",
        seen=20,
        filtered=3,
        eligible=17,
        declined=6,
        dropped_queue=4,
        dropped_budget=2,
        n_score=3,
        n_skipped=1,
        n_failed=0,
        pending=1,
        unaccounted=0,
    )
    assert (one.sampled, one.coverage) == (11, 3 / 17)
    assert one.to_dict()["dropped"] == {"queue": 4, "budget": 2}
    assert one.to_dict()["sampled"] == 11


def test_scorers_of_one_name_are_told_apart_by_their_parameters_or_their_signatures(tmp_path: Path) -> None:
    signatures = ("a(k=1)@1", "a(k=2)@1", "b@1", "b@2", "c(k=1)@1")
    written = [dataclasses.replace(counts(), signature=each) for each in signatures]
    found = coverage("shop", ledger=write(tmp_path / "l.db", written)).scorers
    assert [one.scorer for one in found] == ["a(k=1)", "a(k=2)", "b@1", "b@2", "c"]
    assert tuple(one.signature for one in found) == signatures


def test_processes_hours_and_scorers_are_added_up_and_scorers_are_in_alphabetical_order(tmp_path: Path) -> None:
    written = [counts(), counts(owner="p2"), counts(hour=NOON + 1)]
    written += [
        dataclasses.replace(counts(owner=owner), signature=name) for owner, name in (("p1", "b@1"), ("p3", "a@1"))
    ]
    found = coverage("shop", ledger=write(tmp_path / "l.db", written))
    assert [(each.scorer, each.signature, each.seen, each.n_score) for each in found.scorers] == [
        ("a", "a@1", 20, 3),
        ("b", "b@1", 20, 3),
        ("contains", "contains@1", 60, 9),
    ]
    assert (found.total.signature, found.total.seen, found.total.pending) == ("", 100, 5)
    data = json.loads(json.dumps(found.to_dict()))
    assert (data["stream"], data["since"], {"scorer", "signature"} & set(data["total"])) == ("shop", None, set())
    assert data["total"]["dropped"] == {"queue": 20, "budget": 10}


def test_the_hour_in_which_a_time_lies_counts_whole(tmp_path: Path) -> None:
    file = write(tmp_path / "l.db", [counts(hour=NOON + number) for number in (-1, 0, 1)])
    found = coverage(ledger=file, since=datetime.fromtimestamp(NOON * HOUR + 1800, UTC))
    assert found.total.seen == 40
    assert found.since == datetime.fromtimestamp(NOON * HOUR, UTC)
    assert found.to_dict()["since"] == "2027-01-15T12:00:00+00:00"
    assert str(found).startswith("shop · since 2027-01-15 12:00 UTC\n")


@pytest.mark.parametrize(
    ("wrong", "missing"),
    [
        ({"seen": 21}, 1),
        ({"filtered": 1}, 2),
        ({"declined": 9}, 3),
        ({"dropped": 0}, 4),
        ({"accepted": 8}, 2),  # it's in two of the sums
        ({"eligible": 18}, 2),
    ],
)
def test_a_count_that_is_wrong_is_unaccounted(tmp_path: Path, wrong: dict[str, int], missing: int) -> None:
    found = coverage(ledger=write(tmp_path / "l.db", [dataclasses.replace(counts(), **wrong)]))
    assert found.total.unaccounted == missing
    assert f"{missing} unaccounted" in str(found)


def test_what_one_process_lacks_is_not_made_up_by_what_another_has_too_much(tmp_path: Path) -> None:
    written = [counts(seen=21), counts(owner="p2", seen=19)]
    written += [counts(hour=NOON + 1, seen=21), counts(hour=NOON + 2, seen=19)]
    assert coverage(ledger=write(tmp_path / "l.db", written)).total.unaccounted == 4


def test_sums_that_are_missed_in_opposite_directions_are_both_unaccounted(tmp_path: Path) -> None:
    file = write(tmp_path / "l.db", [counts(seen=21, eligible=17, declined=7)])
    assert coverage(ledger=file).total.unaccounted == 2


def test_rows_without_counts_and_counts_without_rows_are_unaccounted(tmp_path: Path) -> None:
    file = write(tmp_path / "l.db", [counts(), counts(owner="p2")], states(score=4, dropped=1))
    with Ledger(str(file)) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("DELETE FROM live_counts WHERE owner = 'p1'")
        connection.execute("DELETE FROM live_scores WHERE owner = 'p2'")
    (one,) = coverage(ledger=file).scorers
    assert (one.seen, one.n_score, one.unaccounted) == (20, 4, 7 + 7)


def test_nothing_eligible_has_no_coverage(tmp_path: Path) -> None:
    none = counts(seen=3, eligible=0, declined=0, dropped=0, accepted=0)
    found = coverage(ledger=write(tmp_path / "l.db", [none], []))
    assert found.total.coverage is None
    assert str(found).splitlines()[-1].split() == ["scores", "of", "eligible", "-"]


def test_the_table_says_how_many_were_dropped_and_why(tmp_path: Path) -> None:
    (shown,) = coverage(ledger=write(tmp_path / "l.db", [counts()])).view().sections[0].tables
    table = {label.text.strip(): number.text for label, number in shown.rows}
    assert (table["dropped: queue full"], table["dropped: budget spent"]) == ("4", "2")


def test_a_stream_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.db", [])
    with pytest.raises(ConfigError, match=r"'shop' .*: nothing was"):
        coverage("shop", ledger=empty)
    file = write(tmp_path / "l.db", [counts(), dataclasses.replace(counts(), stream="desk")])
    with pytest.raises(ConfigError, match=r"'shops' .*: .* desk, shop$"):
        coverage("shops", ledger=file)
    assert coverage("shop", ledger=file, since=datetime(2100, 1, 1, tzinfo=UTC)).scorers == ()
    with pytest.raises(ConfigError, match=r"^since .* time zone"):
        coverage("shop", ledger=file, since=datetime(2100, 1, 1))


def test_a_period_may_end_with_the_last_date_and_messages_name_a_few_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "l.db", [dataclasses.replace(counts(), stream=f"s{number:02}") for number in range(20)], [])
    last = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert coverage("s00", ledger=path, until=last).until == last.replace(minute=0)
    for stream in ("none", None):
        with pytest.raises(ConfigError, match=r"s00, .*s11 and 8 more$"):
            coverage(stream, ledger=path)

"""Live scoring in the ledger: intents before calls, counts that add up, and rows that outlive their worker."""

from __future__ import annotations

import dataclasses
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.redaction import register
from evalstone.errors import DataError
from evalstone.ledger import live
from evalstone.ledger.base import HOUR, sample_hash
from evalstone.ledger.copy import export_rows, import_rows, recover
from evalstone.ledger.live import LiveCounts, LiveScore
from evalstone.ledger.maintenance import info, prune, verify
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, JudgeCall, Outcome, Record, Sample, Score, Skipped
from tests.ledger.rows import placed, samples

NOW = time.time()


def row(number: int, *, submitted: float = NOW, sample: Sample | None = None, signature: str = "s@1") -> LiveScore:
    return LiveScore(
        id=f"a/{number}",
        stream="shop",
        source="live",
        signature=signature,
        owner="a",
        submitted=submitted,
        sample=None if sample is None else sample_hash(sample),
        entity="agent",
        trace=f"{number:032x}",
    )


def counted(accepted: int, *, seen: int = 10, hour: int = int(NOW // HOUR)) -> LiveCounts:
    return LiveCounts(
        stream="shop", signature="s@1", owner="a", hour=hour, seen=seen, eligible=seen, declined=seen - accepted,
        accepted=accepted,
    )  # fmt: skip


def record(outcome: Outcome) -> Record:
    return Record(sample_id="1", scorer="s", signature="s@1", outcome=outcome)


def test_a_frame_is_written_with_its_counts_and_a_second_time_changes_nothing(url: str) -> None:
    those = samples(2)
    rows = [row(n, sample=sample) for n, sample in enumerate(those)]
    with Ledger(url) as ledger:
        mine = live.write_frame(ledger, [counted(2)], rows, those)
        assert [each.id for each in mine] == ["a/0", "a/1"]
        live.finish(ledger, [mine[0].ended(record(Score(0.5)))])
        again = live.write_frame(ledger, [counted(2)], rows, those)
        assert [each.id for each in again] == ["a/1"]  # what has an outcome is not scored again
        live.write_frame(ledger, [counted(1, seen=4)], [], [])
        seen, tallies = live.counts(ledger, "shop")
        assert seen == [counted(2)]  # an older frame that arrives late takes nothing back
        hour = int(NOW // HOUR)
        assert sorted((*each[:3], each.owner, each.scale, each.number, each.total) for each in tallies) == [
            ("s@1", hour, "pending", "a", None, 1, 0.0),
            ("s@1", hour, "score", "a", 1.0, 1, 0.5),
        ]
        live.write_frame(ledger, [counted(2, seen=30)], [], [])
        assert live.counts(ledger, "shop")[0] == [counted(2, seen=30)]
        assert live.streams(ledger) == ["shop"]
        assert live.counts(ledger, "other") == ([], [])


@pytest.mark.parametrize(
    ("outcome", "state", "value"),
    [(Score(2.0, scale=4.0), "score", 2.0), (Skipped("no"), "skipped", None), (Failed("down"), "failed", None)],
)
def test_an_outcome_is_read_back_with_its_record(url: str, outcome: Outcome, state: str, value: float | None) -> None:
    with Ledger(url) as ledger:
        (mine,) = live.write_frame(ledger, [], [row(0)], [])
        live.finish(ledger, [mine.ended(record(outcome))])
        (found,) = live.scores(ledger)
    assert (found.state, found.value, found.record) == (state, value, Record.from_dict(record(outcome).to_dict()))
    assert found.finished is not None


def test_rows_of_a_dead_worker_are_taken_over_and_those_of_a_living_one_are_not(url: str) -> None:
    (sample,) = samples(1)
    with Ledger(url) as first, Ledger(url) as second:
        live.write_frame(first, [counted(2)], [row(0, sample=sample), row(1)], [sample])
        assert live.claim_pending(second, "shop", 10, ["s", "s@1"]) == []
        first.leases.release_all()
        assert live.claim_pending(second, "other", 10, ["s", "s@1"]) == []
        assert live.claim_pending(second, "shop", 10, ["another@1"]) == []
        (one,) = live.claim_pending(second, "shop", 1, ["s", "s@1"])
        assert one == (one[0], sample)
        assert (one[0].worker, one[0].takeovers) == (second.leases.owner, 0)
        assert live.begin(second, one[0]).takeovers == 1
        live.begin(first, one[0])
        assert live.scores(second)[1].takeovers == 1  # what another worker has is not begun
        live.give_back(second, ["a/0", "a/1"])
        assert [found.takeovers for found in live.scores(second)] == [0, 0]
        ((other, none),) = live.claim_pending(second, "shop", 10, ["s", "s@1"])
        assert (other.id, none) == ("a/1", None)
        live.finish(first, [one[0].ended(record(Score(1.0)))])
        assert live.scores(ledger=second)[0].state == "pending"  # who was taken for dead comes too late
        live.finish(second, [one[0].ended(record(Score(0.0)))])
        live.finish(second, [one[0].ended(record(Score(1.0)))])
        assert {found.id: found.value for found in live.scores(second)} == {"a/0": 0.0, "a/1": None}


def test_the_oldest_rows_are_taken_over_first(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        live.write_frame(first, [], [row(age, submitted=NOW - age) for age in range(4)], [])
        first.leases.release_all()
        taken = [[each.id for each, _ in live.claim_pending(second, "shop", limit, ["s@1"])] for limit in (2, 10)]
        assert taken == [["a/3", "a/2"], ["a/1", "a/0"]]


def test_counts_and_rows_are_those_of_one_moment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(url) as ledger, Ledger(url) as other:
        live.write_frame(ledger, [counted(1)], [row(0)], [])

        def meanwhile(**values: Any) -> LiveCounts:
            live.write_frame(other, [], [row(1)], [])
            return LiveCounts(**values)

        with monkeypatch.context() as patched:
            patched.setattr(live, "LiveCounts", meanwhile)
            assert [each.number for each in live.counts(ledger, "shop")[1]] == [1]
        assert sum(each.number for each in live.counts(ledger, "shop")[1]) == 2


def test_a_worker_whose_lease_has_expired_leases_its_name_again(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        live.write_frame(first, [], [row(0)], [])
        with first.transaction(writing=True) as connection:
            connection.execute("UPDATE leases SET expires = 0")
            first.leases.drop_expired()
        live.write_frame(first, [], [row(1)], [])
        assert live.claim_pending(second, "shop", 10, ["s", "s@1"]) == []


def test_what_a_day_has_cost_is_the_sum_of_its_outcomes(url: str) -> None:
    with Ledger(url) as ledger:
        paid, unknown, free = live.write_frame(ledger, [], [row(0), row(1), row(2)], [])
        done = record(Score(1.0))
        live.finish(ledger, [unknown.ended(done, known_cost=False), free.ended(None)])
        assert live.spent(ledger, "shop", NOW - 60) == 0.0
        with ledger.transaction(writing=True) as connection:
            connection.execute("UPDATE live_scores SET cost = 0.25, finished = 1 WHERE id = 'a/0'")
        assert (live.spent(ledger, "shop", 0), live.spent(ledger, "shop", 2)) == (0.25, 0.0)
        assert live.spent(ledger, "other", 0) == 0.0  # a stream has a budget of its own
        assert paid.cost is None


def test_counts_and_rows_are_those_of_whole_hours(url: str) -> None:
    hour = int(NOW // HOUR)
    with Ledger(url) as ledger:
        rows = [
            row(0, submitted=(hour - 1) * HOUR + 5),
            row(1, submitted=hour * HOUR - 0.5),
            row(2, submitted=hour * HOUR),
        ]
        live.write_frame(ledger, [counted(2, hour=hour - 1), counted(1, hour=hour)], rows, [])
        for since in (hour * HOUR, hour * HOUR + 3599):
            seen, tallies = live.counts(ledger, "shop", since)
            assert (seen, [each.number for each in tallies]) == ([counted(1, hour=hour)], [1])
        assert len(live.counts(ledger, "shop", hour * HOUR - 1)[0]) == 2
        for until in (hour * HOUR, hour * HOUR - 1):
            seen, tallies = live.counts(ledger, "shop", until=until)
            assert ([each.hour for each in seen], [each.hour for each in tallies]) == ([hour - 1], [hour - 1])
        assert len(live.counts(ledger, "shop", until=hour * HOUR + 1)[0]) == 2


def test_the_cost_of_a_row_is_that_of_its_record_where_that_is_all_of_it() -> None:
    step = JudgeCall(question="q", fingerprint="f", judge="j", answer=1, cost=0.5)
    paid = Record(sample_id="1", scorer="s", signature="s@1", outcome=Score(1.0), calls=(step,))
    assert (row(0).ended(paid).cost, row(0).ended(paid, known_cost=False).cost) == (0.5, None)


def test_a_row_is_stored_without_the_secrets_of_this_process() -> None:
    register("tok-live9876abcdef")
    body = row(0).ended(record(Failed("key tok-live9876abcdef is wrong"))).body
    assert body is not None
    assert "tok-live" not in body
    assert "key *** is wrong" in body


def test_a_frame_that_another_worker_has_taken_over_is_not_scored_twice(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        live.write_frame(first, [], [row(0)], [])
        assert [each.id for each in live.write_frame(second, [], [row(0), row(1)], [])] == ["a/1"]


def test_a_worker_is_gone_once_its_lease_has_expired(url: str) -> None:
    with Ledger(url) as first, Ledger(url) as second:
        live.write_frame(first, [], [row(0)], [])
        assert live.claim_pending(second, "shop", 10, ["s@1"]) == []
        with first.transaction(writing=True) as connection:
            connection.execute("UPDATE leases SET expires = 0")
        assert len(live.claim_pending(second, "shop", 10, ["s@1"])) == 1


def test_what_other_workers_have_of_an_owner_is_known_until_it_is_scored(url: str) -> None:
    with Ledger(url) as one, Ledger(url) as other:
        (mine,) = live.write_frame(one, [counted(1)], [row(1)], [])
        of = [(one, "shop", "a"), (other, "shop", "a"), (other, "shop", "b"), (other, "mall", "a")]
        assert [live.pending_elsewhere(*each) for each in of] == [False, True, False, False]
        live.finish(one, [mine.ended(record(Score(0.5)))])
        assert not live.pending_elsewhere(other, "shop", "a")


def test_the_samples_of_traces_are_those_that_were_read_from_them(url: str) -> None:
    one, other = samples(2)
    read = [dataclasses.replace(row(n, sample=one), source="trace", trace="t") for n in (1, 2)]
    rows = [
        *read,
        dataclasses.replace(read[0], id="a/3", sample=sample_hash(other), trace="u"),
        dataclasses.replace(read[0], id="a/4", sample=sample_hash(other), source="live"),
        dataclasses.replace(read[0], id="a/5", sample=sample_hash(other), stream="mall"),
        dataclasses.replace(read[0], id="a/6", sample=None, trace="v"),
    ]
    with Ledger(url) as ledger:
        live.write_frame(ledger, [], rows, [one, other])
        assert live.samples_of_traces(ledger, "shop", ["t", "v", "w"]) == {"t": {sample_hash(one)}}


def test_scores_are_listed_newest_first_by_page_and_filter(url: str) -> None:
    with Ledger(url) as ledger:
        rows = [row(n, submitted=NOW - 10 * (n // 2), signature=f"s@{n % 2}") for n in range(6)]
        live.write_frame(ledger, [], rows, [])
        order = [found.id for found in live.scores(ledger)]
        assert order == ["a/1", "a/0", "a/3", "a/2", "a/5", "a/4"]
        page = live.scores(ledger, limit=3)
        rest = live.scores(ledger, before=(page[-1].submitted, page[-1].id))
        assert [found.id for found in (*page, *rest)] == order
        assert [found.id for found in live.scores(ledger, signature="s@1", since=NOW - 10)] == ["a/1", "a/3"]
        assert [found.id for found in live.scores(ledger, until=NOW - 10)] == ["a/5", "a/4"]
        assert len(live.scores(ledger, stream="shop", source="live", entity="agent")) == 6
        assert live.scores(ledger, stream="x") == live.scores(ledger, source="trace") == []
        assert live.scores(ledger, entity="x") == []


def test_live_scores_move_whole_are_recovered_and_are_sound(tmp_path: Path, url: str) -> None:
    (sample,) = samples(1)
    with Ledger(url) as ledger, Ledger(tmp_path / "moved.db") as moved:
        mine = live.write_frame(ledger, [counted(3)], [row(0, sample=sample), row(1), row(2)], [sample])
        live.finish(ledger, [mine[0].ended(record(Score(0.5))), mine[1].ended(None)])
        lines = placed(export_rows(ledger))
        assert import_rows(moved, lines) == info(ledger).counts
        assert import_rows(moved, lines) == dict.fromkeys(info(ledger).counts, 0)
        assert sorted(map(str, live.counts(moved, "shop"))) == sorted(map(str, live.counts(ledger, "shop")))
        assert live.scores(moved) == live.scores(ledger)
    assert verify(url).sound
    recovered = recover(tmp_path / "moved.db", tmp_path / "new.db")
    assert (recovered["live_score"].copied, recovered["live_count"].copied) == (3, 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": "lost"}, "state must be one of"),
        ({"submitted": 1e12}, "submitted must be a time from 1970 to 9998"),
        ({"state": "score"}, "the record is missing"),
        ({"state": "failed", "body": record(Score(1.0)).to_dict()}, "the record has the outcome score"),
        ({"state": "pending", "body": record(Score(1.0)).to_dict()}, "the record has the outcome score"),
    ],
)
def test_a_state_that_is_not_that_of_the_record_is_refused(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        live.write_frame(ledger, [], [row(0)], [])
        (line,) = export_rows(ledger)
        with pytest.raises(DataError, match=told):
            import_rows(ledger, placed([{**line, **change}]))


def test_a_value_that_is_not_that_of_the_record_is_damage(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        (mine,) = live.write_frame(ledger, [], [row(0)], [])
        live.finish(ledger, [mine.ended(record(Score(0.5)))])
        with ledger.transaction(writing=True) as connection:
            connection.execute("UPDATE live_scores SET value = 0.6")
    assert [problem.partition(":")[0] for problem in verify(tmp_path / "l.db").invalid_rows] == ["live_score a/0"]


def test_pruning_takes_whole_hours_with_their_counts_and_samples_and_leaves_the_rest(url: str) -> None:
    old, new = samples(2)
    then = NOW - 3 * HOUR
    with Ledger(url) as ledger:
        rows = [row(0, sample=old, submitted=then), row(1, sample=new)]
        live.write_frame(ledger, [counted(1, hour=int(then // HOUR)), counted(1)], rows, [old, new])
        assert prune(ledger, older_than=timedelta(hours=4), delete=True).live_scores == 0
        assert prune(ledger, delete=True).samples == 0  # a sample with a live score is in use
        gone = prune(ledger, older_than=timedelta(hours=2), delete=True)
        assert (gone.live_scores, gone.samples) == (1, 1)
        assert [found.id for found in live.scores(ledger)] == ["a/1"]
        assert live.counts(ledger, "shop")[0] == [counted(1)]


def test_text_that_no_database_takes_is_escaped(url: str) -> None:
    odd = LiveScore(
        id="a", stream="s\x00", source="live", signature="s", owner="a", submitted=NOW, entity="\ud83d", trace="\x00"
    )
    with Ledger(url) as ledger, Ledger(url) as other:
        live.write_frame(ledger, [], [odd], [])
        (found,) = live.scores(ledger, stream="s\x00", entity="\ud83d")
        assert (found.entity, found.trace) == ("\\ud83d", "\\u0000")
        ledger.leases.release_all()
        assert len(live.claim_pending(other, "s\x00", 1, ["s", "s@1"])) == 1

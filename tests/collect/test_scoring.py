"""From the spool to scores: nothing is dropped, and nothing is scored twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evalstone.collect import spool as spooling
from evalstone.collect.scoring import TraceScoring, scoring_into
from evalstone.collect.server import JSON, Receiver, _read  # pyright: ignore[reportPrivateUsage]
from evalstone.collect.spool import Spool
from evalstone.errors import LedgerError
from evalstone.ledger import live as live_rows
from evalstone.ledger.base import sample_hash
from evalstone.ledger.store import Ledger
from evalstone.live import Live
from evalstone.types import Sample
from tests.collect.test_server import ONE, receiving, running, scored, until
from tests.fakes import awaited
from tests.live.scoring import PaidJudge, slow
from tests.traced import chat, log, logs, message, span, spans

CHILD = spans(span(2, "chat", chat([message("user", "q")], "a"), parent=1))
ROOT = spans(span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=3))


def trace(number: int) -> str:
    return f"{number + 1:032x}"


def one(number: int, answer: str = "a") -> dict[str, Any]:
    return span(1, "chat", chat([message("user", f"q{number}")], answer), trace=trace(number))


def lone(question: str, response: str = "", time: float = 0) -> dict[str, Any]:
    """A log record without ids."""
    values = chat([message("user", question)], "a", **({"gen_ai.response.id": response} if response else {}))
    made = log(1, None, values, name="gen_ai.client.inference.operation.details", time=time)
    return {key: value for key, value in made.items() if key not in ("traceId", "spanId")}


@asynccontextmanager
async def collecting(folder: Path, live: Live) -> AsyncGenerator[tuple[Receiver, str, aiohttp.ClientSession]]:
    """A collector that scores, as the command does."""
    spool = Spool(folder / "t.jsonl", scored=True)
    async with scoring_into(live, spool, 0.01) as scoring:
        receiver = Receiver(spool, scoring)
        try:
            async with running(receiver) as served:
                yield served
        finally:
            await live.aclose(20)


async def post(session: aiohttp.ClientSession, url: str, request: dict[str, Any], signal: str = "traces") -> None:
    async with session.post(f"{url}/v1/{signal}", json=request) as reply:
        assert reply.status == 200


@awaited
async def test_a_burst_that_is_larger_than_the_queue_is_scored_whole(tmp_path: Path) -> None:
    live = Live(slow, sampling=1.0, queue=20, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for first in range(0, 100, 50):
            await post(session, url, spans(*map(one, range(first, first + 50))))
        await until(lambda: not receiver.spool.waiting)
    (found,) = live.coverage().scorers
    assert (found.seen, found.n_score, found.dropped_queue, found.pending) == (100, 100, 0, 0)


@awaited
async def test_while_samples_are_not_taken_what_comes_waits_in_the_spool(
    tmp_path: Path,
) -> None:
    offered, taking = asyncio.Event(), asyncio.Event()
    found: list[Sample] = []

    async def submit(sample: Sample, trace: str) -> None:
        offered.set()
        await taking.wait()
        found.append(sample)

    spool = Spool(tmp_path / "t.jsonl", scored=True)
    receiver = Receiver(spool, TraceScoring(spool, submit, quiet=0.01))
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        for number in range(60):
            await post(session, url, spans(one(number)))
            await offered.wait()
            if number == 30:
                (tmp_path / "t.jsonl").rename(tmp_path / "t.jsonl.1")
    assert receiver.spool.waiting == 60
    taking.set()
    await until(lambda: len(found) == 60)
    await receiver.stop()
    assert [sample.input for sample in found] == [f"q{number}" for number in range(60)]
    assert receiver.spool.waiting == 0


@awaited
async def test_spans_that_come_late_are_not_waited_for_at_the_end(tmp_path: Path) -> None:
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        await post(session, url, spans(span(1, "invoke_agent", {}, events=[{"name": "gen_ai.choice"}])))
        await until(lambda: not receiver.spool.waiting)
        await post(session, url, CHILD)
        await until(lambda: not receiver.spool.waiting)
        assert scored(receiver).late == 1


@awaited
async def test_more_traces_than_are_asked_for_at_once_are_passed_on_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.collect.scoring.LOOK_UP_SIZE", 2)
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (_, url, session):
        await post(session, url, spans(*map(one, range(5))))
    assert [sample.input for sample in found] == [f"q{number}" for number in range(5)]


@awaited
async def test_what_is_not_taken_until_the_end_is_counted(tmp_path: Path) -> None:
    async def never(sample: Sample, trace: str) -> None:
        await asyncio.sleep(60)

    spool = Spool(tmp_path / "t.jsonl", scored=True)
    receiver = Receiver(spool, TraceScoring(spool, never, quiet=0.01))
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        for number in range(3):
            await post(session, url, spans(one(number)))
    await receiver.stop(0.05)
    assert receiver.spool.waiting == 3
    assert len(asyncio.all_tasks()) == 1, "nothing goes on"


@awaited
async def test_requests_that_are_still_answered_take_their_time_from_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "t.jsonl", scored=True)
    receiver = Receiver(spool, TraceScoring(spool, lambda sample, trace: asyncio.sleep(60), quiet=0.01))
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        await post(session, url, spans(one(1)))
    end = web.AppRunner.cleanup

    async def slowly(runner: web.AppRunner) -> None:
        await asyncio.sleep(1)
        await end(runner)

    monkeypatch.setattr(web.AppRunner, "cleanup", slowly)
    began = time.monotonic()
    await receiver.stop(1.1)
    assert time.monotonic() - began < 1.8


@awaited
async def test_a_request_that_is_sent_again_after_a_restart_is_not_scored_again(tmp_path: Path) -> None:
    def live() -> Live:
        return Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")

    async with collecting(tmp_path, live()) as (receiver, url, session):
        for request in (CHILD, ROOT):
            await post(session, url, request)
        await until(lambda: not receiver.spool.waiting)
    for again in ([CHILD], [ROOT], [ROOT, CHILD]):  # an exporter repeats a request, not a trace
        async with collecting(tmp_path, live()) as (receiver, url, session):
            for request in again:
                await post(session, url, request)
            await until(lambda: not receiver.spool.waiting)
    (found,) = live().coverage().scorers
    assert found.n_score == 1
    async with collecting(tmp_path, live()) as (_, url, session):
        later = chat([message("user", "q"), message("assistant", "a"), message("user", "more")], "b")
        await post(session, url, spans(span(3, "chat", later, parent=1, start=2, end=3)))
    (found,) = live().coverage().scorers
    assert found.n_score == 2  # its answer is another one now


@awaited
async def test_an_entity_with_a_long_name_is_not_scored_again(tmp_path: Path) -> None:
    request = spans(span(1, "x" * 500, chat([message("user", "q")], "a")))
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    for _ in range(2):
        async with collecting(tmp_path, live) as (_, url, session):
            await post(session, url, request)
    (found,) = live.coverage().scorers
    assert found.n_score == 1


@awaited
async def test_a_ledger_that_cannot_be_read_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evalstone.collect.scoring.PAUSE", 0.01)
    found: list[Sample] = []
    errors = [LedgerError("locked")] * 3

    async def scored_before(_: Any) -> dict[str, set[str]]:
        if errors:
            raise errors.pop()
        return {}

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)

    spool = Spool(tmp_path / "t.jsonl", scored=True)
    receiver = Receiver(spool, TraceScoring(spool, submit, quiet=0.01, scored=scored_before))
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        await post(session, url, ONE)
        await until(lambda: bool(found))
    await receiver.stop()
    assert [record.getMessage() for record in caplog.records] == ["scoring waits for the ledger: locked"]


@awaited
async def test_log_records_without_a_trace_id_are_scored(tmp_path: Path) -> None:
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        await post(session, url, logs(lone("q1"), lone("q2"), log(1, "noise", {})), "logs")
        await until(lambda: len(found) == 2)
        await post(session, url, logs(lone("q3")), "logs")
        await until(lambda: len(found) == 3)
    assert {sample.input for sample in found} == {"q1", "q2", "q3"}
    assert receiver.spool.waiting == 0


@awaited
async def test_log_records_without_a_trace_id_that_are_sent_again_are_scored_once(tmp_path: Path) -> None:
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for again in (logs(lone("q1"), lone("q2")), logs(lone("q2")), logs(lone("q3"), lone("q1"), lone("q3"))):
            await post(session, url, again, "logs")
            await until(lambda: not receiver.spool.waiting)
    (found,) = live.coverage().scorers
    assert (found.seen, found.n_score) == (3, 3)
    async with collecting(tmp_path, live) as (receiver, url, session):  # after a restart the ledger knows them
        await post(session, url, logs(lone("q1"), lone("q4"), lone("q4", time=1), lone("q4", response="r2")), "logs")
        await until(lambda: not receiver.spool.waiting)
    (found,) = live.coverage().scorers
    assert found.n_score == 6  # the same question at another time, or another response, is another one


@awaited
async def test_whether_a_log_record_without_a_trace_id_is_drawn_does_not_change_when_it_is_sent_again(
    tmp_path: Path,
) -> None:
    records = [lone(f"q{number}") for number in range(40)]
    counts = list[int]()
    for _ in range(3):
        live = Live("contains(expected=a)", sampling=0.5, process=False, ledger=tmp_path / "l.db")
        async with collecting(tmp_path, live) as (receiver, url, session):
            await post(session, url, logs(*records), "logs")
            await until(lambda: not receiver.spool.waiting)
        counts.append(live.coverage().scorers[0].n_score)
    assert 0 < counts[0] < 40
    assert set(counts) == {counts[0]}


@awaited
async def test_a_stop_while_samples_wait_passes_on_what_was_acknowledged_meanwhile(tmp_path: Path) -> None:
    taking = asyncio.Event()
    found: list[Sample] = []

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)
        await taking.wait()

    spool = Spool(tmp_path / "t.jsonl", scored=True)
    receiver = Receiver(spool, TraceScoring(spool, submit, quiet=0.01))
    async with running(receiver) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await until(lambda: len(found) == 1)
        await post(session, url, spans(one(1)))
        asyncio.get_running_loop().call_later(0.3, taking.set)
    assert [sample.input for sample in found] == ["q0", "q1"]
    assert receiver.spool.waiting == 0


@awaited
async def test_what_comes_late_for_a_trace_that_the_spool_has_no_more_is_not_scored_without_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for number in range(2):
            await post(session, url, spans(one(number)))
    (tmp_path / "t.jsonl.spool").unlink()
    async with collecting(tmp_path, live) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await post(session, url, spans(one(1, answer="of the rest nothing is known")))
        await until(lambda: not receiver.spool.waiting)
        await until(lambda: scored(receiver).late == 1)
    (found,) = live.coverage().scorers
    assert found.n_score == 2


def halves(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is exported before a restart, and after it."""
    documents = json.dumps([{"id": "1", "content": "Bern is in Switzerland."}])
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    of = trace(number)
    answered = span(3, "chat", chat([message("user", "q")], f"a{number}"), parent=1, start=1, end=2, trace=of)
    root = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=3, trace=of)
    return spans(span(2, "retrieval", found, parent=1, trace=of)), spans(answered, root)


@pytest.mark.parametrize("kept", [10**9, 0])
@awaited
async def test_a_trace_that_a_restart_cuts_in_two_is_scored_whole(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling, "KEPT_BYTES", kept)
    monkeypatch.setattr(spooling, "PAUSE", 0)
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):  # which scores nothing
        for number in range(30):
            await post(session, url, halves(number)[0])
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        for number in (29, 0, 30):
            await post(session, url, halves(number)[1])
        await until(lambda: len(found) == 3)
        await until(lambda: not receiver.spool.waiting)
    context = ("Bern is in Switzerland.",) if kept else None
    expected = {"a29": context, "a0": context, "a30": None}
    assert {sample.output: sample.context for sample in found} == expected


@awaited
async def test_what_a_killed_process_has_received_is_scored_by_the_next_one(tmp_path: Path) -> None:
    path, found = tmp_path / "t.jsonl", list[Sample]()
    killed = Spool(path, scored=True)
    first, second = halves(1)
    for request in (first, spans(one(2))):
        parts, _, _ = _read(json.dumps(request).encode(), JSON, "traces")
        await killed.append(parts)
    killed._connection.close()  # pyright: ignore[reportPrivateUsage]
    killed._export.close()  # pyright: ignore[reportPrivateUsage]
    async with receiving(path, found.append, quiet=0.3) as (receiver, url, session):
        assert receiver.spool.waiting == 2
        await post(session, url, second)
        await until(lambda: not receiver.spool.waiting)
    assert {sample.output: sample.context for sample in found} == {"a": None, "a1": ("Bern is in Switzerland.",)}
    assert len(path.read_text().splitlines()) == 3


@awaited
async def test_spans_that_come_late_have_their_trace_scored_again_if_they_change_a_sample(tmp_path: Path) -> None:
    found: dict[str, list[Sample]] = {}

    async def submit(sample: Sample, trace: str) -> None:
        found.setdefault(trace, []).append(sample)

    async def known(traces: Collection[str]) -> dict[str, set[str]]:
        return {trace: {sample_hash(sample) for sample in found[trace]} for trace in traces if trace in found}

    spool = Spool(tmp_path / "t.jsonl", scored=True)
    scoring = TraceScoring(spool, submit, quiet=0.01, scored=known)
    async with running(Receiver(spool, scoring)) as (_, url, session):
        for number in range(5):
            await post(session, url, spans(one(number)))
        await until(lambda: not spool.waiting)
        later = chat([message("user", "q3"), message("assistant", "a"), message("user", "more")], "b")
        await post(session, url, spans(span(7, "chat", later, start=2, end=3, trace=trace(3))))
        await post(session, url, spans(one(4)))
        await until(lambda: not spool.waiting)
    assert scoring.late == 2
    outputs = {each: [sample.output for sample in samples] for each, samples in found.items()}
    assert outputs == {trace(number): ["a", "b"] if number == 3 else ["a"] for number in range(5)}
    assert len(found[trace(3)][-1].messages) == 4


@awaited
@pytest.mark.parametrize(("answer", "paid"), [("a", 0), ("b", 2)])
async def test_a_sample_that_late_spans_change_is_scored_again_and_only_new_questions_are_paid(
    tmp_path: Path, answer: str, paid: int
) -> None:
    live = Live("bias", PaidJudge(path=tmp_path / "calls"), sampling=1.0, process=False, ledger=tmp_path / "l.db")
    late = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    if answer != "a":
        late |= chat([message("user", "q")], answer)
    async with collecting(tmp_path, live) as (receiver, url, session):
        for request in (CHILD, spans(span(1, "invoke_agent", late, end=3))):
            await post(session, url, request)
            await until(lambda: not receiver.spool.waiting)
    with Ledger(live.ledger) as ledger:
        rows = live_rows.scores(ledger)[::-1]
    assert [row.cost for row in rows] == [2, paid]
    assert [row.entity for row in rows] == ["chat", "clerk"]
    assert len((tmp_path / "calls").read_text().splitlines()) == 2 + paid


@awaited
async def test_spans_that_come_late_for_a_trace_that_is_not_drawn_are_not_counted_as_another_sample(
    tmp_path: Path,
) -> None:
    live = Live("contains(expected=a)", sampling=0.0, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for answer in ("a", "b"):
            await post(session, url, spans(one(1, answer)))
            await until(lambda: not receiver.spool.waiting)
    (found,) = live.coverage().scorers
    assert (found.seen, found.eligible, found.declined) == (1, 1, 1)


@awaited
async def test_a_crash_after_samples_were_passed_on_neither_loses_nor_repeats_them(tmp_path: Path) -> None:
    """The process ends after the ledger has the samples, and before the spool says so."""

    def fails(traces: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "t.jsonl"
    for crashes in (True, False):
        live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
        async with collecting(tmp_path, live) as (receiver, url, session):
            if crashes:
                receiver.spool.done = fails
                await post(session, url, spans(one(0), one(1)))
                scoring = scored(receiver)
                await until(lambda scoring=scoring: scoring.passed == 2)
            assert receiver.spool.waiting == 2
            if not crashes:
                await until(lambda: not receiver.spool.waiting)
    (found,) = live.coverage().scorers
    assert (found.seen, found.n_score) == (2, 2)
    assert len(path.read_text().splitlines()) == 2


@awaited
async def test_a_spool_that_cannot_be_written_for_a_while_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        database = receiver.spool._connection  # pyright: ignore[reportPrivateUsage]
        await post(session, url, spans(one(0)))
        database.execute("PRAGMA query_only = 1")
        await until(lambda: bool(caplog.messages))
        assert found == []
        database.execute("PRAGMA query_only = 0")
        await until(lambda: len(found) == 1)
    assert len(caplog.messages) == 1


@awaited
async def test_scores_that_come_for_a_trace_are_neither_late_nor_unscored(tmp_path: Path) -> None:
    async with receiving(tmp_path / "t.jsonl", lambda sample: None, quiet=0.01) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await until(lambda: not receiver.spool.waiting)
        score = {**log(1, None, {}, name="gen_ai.evaluation.result"), "traceId": trace(0)}
        await post(session, url, logs(score), "logs")
        await until(lambda: not receiver.spool.waiting)
        assert (receiver.logs, scored(receiver).late) == (1, 0)

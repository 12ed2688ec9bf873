"""From the file to scores: nothing is dropped, and nothing is scored twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evalstone.collect import completion
from evalstone.collect import reading as reading_module
from evalstone.collect.reading import TraceIndex, Written
from evalstone.collect.scoring import TraceScoring, scoring_into
from evalstone.collect.server import Receiver
from evalstone.collect.store import TraceFile
from evalstone.errors import ConfigError, LedgerError
from evalstone.ledger.base import sample_hash
from evalstone.live import Live
from evalstone.types import Sample
from tests.collect.test_server import ONE, receiving, running, scored, until
from tests.fakes import awaited
from tests.live.scoring import slow
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
    async with scoring_into(live, 0.01) as scoring:
        receiver = Receiver(TraceFile(folder / "t.jsonl", scoring.written), scoring)
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
        await until(lambda: not receiver.unscored)
    (found,) = live.coverage().scorers
    assert (found.seen, found.scored, found.dropped_queue, found.pending) == (100, 100, 0, 0)


@awaited
async def test_while_samples_are_not_taken_what_comes_waits_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "PIECE", 1000)
    offered, taking = asyncio.Event(), asyncio.Event()
    found: list[Sample] = []

    async def submit(sample: Sample, trace: str) -> None:
        offered.set()
        await taking.wait()
        found.append(sample)

    scoring = TraceScoring(submit, quiet=0.01)
    receiver = Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)
    url = await receiver.start("127.0.0.1", 0)
    most = 0
    async with aiohttp.ClientSession() as session:
        for number in range(60):
            await post(session, url, spans(one(number)))
            await offered.wait()  # before that, all that comes is read
            if number == 30:
                (tmp_path / "t.jsonl").rename(tmp_path / "t.jsonl.1")
            most = max(most, len(scoring.traces._open))  # pyright: ignore[reportPrivateUsage]
    assert receiver.unscored == 60
    assert most == 0, "what comes while a sample isn't taken is read later"
    taking.set()
    await until(lambda: len(found) == 60)
    await receiver.stop()
    assert [sample.input for sample in found] == [f"q{number}" for number in range(60)]
    assert receiver.unscored == 0


@awaited
async def test_what_has_waited_long_in_the_file_is_complete_by_the_time_of_its_writing(tmp_path: Path) -> None:
    path, found, left = tmp_path / "t.jsonl", list[Sample](), list[int]()

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)
        left.append(len(scoring.written._extents))  # pyright: ignore[reportPrivateUsage]

    scoring = TraceScoring(submit, quiet=5)
    requests = [
        (began + later, json.dumps(spans(made)).encode() + b"\n")
        for number, began in enumerate(range(0, 100, 10))
        for later, made in (
            (0, span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, trace=trace(number))),
            (3, span(2, "chat", chat([message("user", f"q{number}")], "a"), parent=1, trace=trace(number))),
        )
    ]
    path.write_bytes(b"".join(line for _, line in requests))
    with path.open("rb") as writer:
        scoring.written.open(path, writer)
    place, long_ago = 0, time.monotonic() - 1000
    for at, line in requests:
        scoring.written.add(place, place + len(line), long_ago + at)
        place += len(line)
    await scoring._follow(TraceIndex(path))  # pyright: ignore[reportPrivateUsage]
    scoring.written.close()
    assert [sample.input for sample in found] == [f"q{number}" for number in range(10)]
    assert (scoring.traces.late, scoring.taken) == (0, 20)
    assert left == [17, 15, 13, 11, 9, 7, 5, 3, 1, 0], "the others are still in the file"


@pytest.mark.parametrize("jump", [-3600, 3600])
@awaited
async def test_a_clock_that_is_set_changes_nothing_about_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    path, found = tmp_path / "t.jsonl", list[Sample]()

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)

    scoring = TraceScoring(submit, quiet=60)
    file, index = TraceFile(path, scoring.written), TraceIndex(path)
    clock, monotonic = time.time, time.monotonic
    await file.append(json.dumps(spans(one(1))).encode())
    await scoring._follow(index)  # pyright: ignore[reportPrivateUsage]
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: clock() + jump)
        await file.append(json.dumps(spans(one(2))).encode())
        await scoring._follow(index)  # pyright: ignore[reportPrivateUsage]
        assert found == []
        patched.setattr(time, "monotonic", lambda: monotonic() + 61)
        await scoring._follow(index)  # pyright: ignore[reportPrivateUsage]
    assert [sample.input for sample in found] == ["q1", "q2"]
    await file.close()


@awaited
async def test_spans_that_come_late_are_not_waited_for_at_the_end(tmp_path: Path) -> None:
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        await post(session, url, spans(span(1, "invoke_agent", {}, events=[{"name": "gen_ai.choice"}])))
        await until(lambda: not receiver.unscored)
        await post(session, url, CHILD)
        await until(lambda: not receiver.unscored)
        assert scored(receiver).traces.late == 1


@awaited
async def test_more_traces_than_are_asked_for_at_once_are_passed_on_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.collect.scoring.AT_ONCE", 2)
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (_, url, session):
        await post(session, url, spans(*map(one, range(5))))
    assert [sample.input for sample in found] == [f"q{number}" for number in range(5)]


@awaited
async def test_what_is_not_taken_until_the_end_is_counted(tmp_path: Path) -> None:
    async def never(sample: Sample, trace: str) -> None:
        await asyncio.sleep(60)

    scoring = TraceScoring(never, quiet=0.01)
    receiver = Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        for number in range(3):
            await post(session, url, spans(one(number)))
    await receiver.stop(0.05)
    assert receiver.unscored == 3
    assert len(asyncio.all_tasks()) == 1, "nothing goes on"


@awaited
async def test_requests_that_are_still_answered_take_their_time_from_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring = TraceScoring(lambda sample, trace: asyncio.sleep(60), quiet=0.01)
    receiver = Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)
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
        await until(lambda: not receiver.unscored)
    for again in ([CHILD], [ROOT], [ROOT, CHILD]):  # an exporter repeats a request, not a trace
        async with collecting(tmp_path, live()) as (receiver, url, session):
            for request in again:
                await post(session, url, request)
            await until(lambda: not receiver.unscored)
    (found,) = live().coverage().scorers
    assert found.scored == 1
    async with collecting(tmp_path, live()) as (_, url, session):
        later = chat([message("user", "q"), message("assistant", "a"), message("user", "more")], "b")
        await post(session, url, spans(span(3, "chat", later, parent=1, start=2, end=3)))
    (found,) = live().coverage().scorers
    assert found.scored == 2, "its answer is another one now"


@awaited
async def test_an_entity_with_a_long_name_is_not_scored_again(tmp_path: Path) -> None:
    request = spans(span(1, "x" * 500, chat([message("user", "q")], "a")))
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    for _ in range(2):
        async with collecting(tmp_path, live) as (_, url, session):
            await post(session, url, request)
    (found,) = live.coverage().scorers
    assert found.scored == 1


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

    scoring = TraceScoring(submit, quiet=0.01, scored=scored_before)
    receiver = Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)
    url = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        await post(session, url, ONE)
        await until(lambda: bool(found))
    await receiver.stop()
    assert [record.getMessage() for record in caplog.records] == ["scoring waits for the ledger: locked"]


@awaited
async def test_lines_that_something_else_has_cut_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    async with receiving(path, lambda _: None, quiet=0.2) as (receiver, url, session):
        await post(session, url, ONE)
        path.write_bytes(b"")
        await until(lambda: bool(scored(receiver).notes.counts))
        assert receiver.unscored == 1
    (note,) = scored(receiver).notes.lines()
    assert "1 × lines that cannot be read back from the file" in note


def test_what_cannot_be_read_back_is_no_place_for_traces_to_score(tmp_path: Path) -> None:
    scoring = TraceScoring(lambda sample, trace: asyncio.sleep(0))
    with pytest.raises(ConfigError, match="no file that can be read back"):
        TraceFile(Path("/dev/null"), scoring.written)


@awaited
async def test_log_records_without_a_trace_id_are_scored(tmp_path: Path) -> None:
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        await post(session, url, logs(lone("q1"), lone("q2"), log(1, "noise", {})), "logs")
        await until(lambda: len(found) == 2)
        await post(session, url, logs(lone("q3")), "logs")
        await until(lambda: len(found) == 3)
    assert {sample.input for sample in found} == {"q1", "q2", "q3"}
    assert receiver.unscored == 0


@awaited
async def test_log_records_without_a_trace_id_that_are_sent_again_are_scored_once(tmp_path: Path) -> None:
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for again in (logs(lone("q1"), lone("q2")), logs(lone("q2")), logs(lone("q3"), lone("q1"), lone("q3"))):
            await post(session, url, again, "logs")
            await until(lambda: not receiver.unscored)
    (found,) = live.coverage().scorers
    assert (found.seen, found.scored) == (3, 3)
    async with collecting(tmp_path, live) as (receiver, url, session):  # after a restart the ledger knows them
        await post(session, url, logs(lone("q1"), lone("q4"), lone("q4", time=1), lone("q4", response="r2")), "logs")
        await until(lambda: not receiver.unscored)
    (found,) = live.coverage().scorers
    assert found.scored == 6, "the same question at another time, or another response, is another one"


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
            await until(lambda: not receiver.unscored)
        counts.append(live.coverage().scorers[0].scored)
    assert 0 < counts[0] < 40
    assert set(counts) == {counts[0]}


@pytest.mark.parametrize("block", [1, 50_000])
@awaited
async def test_what_comes_after_a_trace_was_forgotten_is_read_with_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(completion, "REMEMBERED", 1)
    monkeypatch.setattr(reading_module, "_BLOCK", block)
    found: dict[str, list[Sample]] = {}

    async def submit(sample: Sample, trace: str) -> None:
        found.setdefault(trace, []).append(sample)

    async def known(traces: Collection[str]) -> dict[str, set[str]]:
        return {trace: {sample_hash(sample) for sample in found[trace]} for trace in traces if trace in found}

    scoring = TraceScoring(submit, quiet=0.01, scored=known)
    async with running(Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)) as (receiver, url, session):
        for number in range(5):
            await post(session, url, spans(one(number)))
        await until(lambda: not receiver.unscored)
        later = chat([message("user", "q3"), message("assistant", "a"), message("user", "more")], "b")
        await post(session, url, spans(span(7, "chat", later, start=2, end=3, trace=trace(3))))
        await post(session, url, spans(one(4)))
        await post(session, url, spans(one(2)))
        await until(lambda: not receiver.unscored)
    assert scoring.traces.late <= 1, "of the last trace, which may be remembered"
    outputs = {each: [sample.output for sample in samples] for each, samples in found.items()}
    assert outputs == {trace(number): ["a", "b"] if number == 3 else ["a"] for number in range(5)}
    assert len(found[trace(3)][-1].messages) == 4


@awaited
async def test_a_stop_before_the_first_look_passes_on_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Sample] = []

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)

    def look_back(self: TraceIndex) -> None:
        time.sleep(0.2)

    monkeypatch.setattr(TraceIndex, "look_back", look_back)
    scoring = TraceScoring(submit, quiet=0.01)
    async with running(Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)) as (receiver, url, session):
        await post(session, url, spans(one(0)))
    assert len(found) == 1
    assert receiver.unscored == 0


@awaited
async def test_a_file_that_cannot_be_looked_back_in_is_noted_and_scoring_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_back(self: TraceIndex) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(TraceIndex, "look_back", look_back)
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await until(lambda: len(found) == 1)
    assert scored(receiver).notes.lines() == ("1 × a file that cannot be read back; first Input/output error",)


@awaited
async def test_a_stop_while_samples_wait_passes_on_what_was_acknowledged_meanwhile(tmp_path: Path) -> None:
    taking = asyncio.Event()
    found: list[Sample] = []

    async def submit(sample: Sample, trace: str) -> None:
        found.append(sample)
        await taking.wait()

    scoring = TraceScoring(submit, quiet=0.01)
    async with running(Receiver(TraceFile(tmp_path / "t.jsonl", scoring.written), scoring)) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await until(lambda: len(found) == 1)
        await post(session, url, spans(one(1)))
        asyncio.get_running_loop().call_later(0.3, taking.set)
    assert [sample.input for sample in found] == ["q0", "q1"]
    assert receiver.unscored == 0


@awaited
async def test_what_comes_late_for_a_trace_that_the_file_has_no_more_is_not_scored_without_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live("contains(expected=a)", sampling=1.0, process=False, ledger=tmp_path / "l.db")
    async with collecting(tmp_path, live) as (receiver, url, session):
        for number in range(2):
            await post(session, url, spans(one(number)))
    (tmp_path / "t.jsonl").rename(tmp_path / "t.jsonl.1")
    async with collecting(tmp_path, live) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await post(session, url, spans(one(1, answer="of the rest nothing is known")))
        await until(lambda: not receiver.unscored)
        await until(lambda: scored(receiver).traces.late == 1)
    (found,) = live.coverage().scorers
    assert found.scored == 2


def halves(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is exported before a restart, and after it."""
    documents = json.dumps([{"id": "1", "content": "Bern is in Switzerland."}])
    found = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    of = trace(number)
    answered = span(3, "chat", chat([message("user", "q")], f"a{number}"), parent=1, start=1, end=2, trace=of)
    root = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=3, trace=of)
    return spans(span(2, "retrieval", found, parent=1, trace=of)), spans(answered, root)


@pytest.mark.parametrize("length", [10**9, 2_000])
@awaited
async def test_a_trace_that_a_restart_cuts_in_two_is_scored_whole(
    tmp_path: Path, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "LOOKED_BACK", length)
    async with receiving(tmp_path / "t.jsonl") as (_, url, session):  # which scores nothing, as one that is killed
        for number in range(30):
            await post(session, url, halves(number)[0])
    found: list[Sample] = []
    async with receiving(tmp_path / "t.jsonl", found.append, quiet=0.05) as (receiver, url, session):
        for number in (29, 0, 30):
            await post(session, url, halves(number)[1])
        await until(lambda: len(found) == 3)
        assert receiver.unscored == 0
    context = ("Bern is in Switzerland.",)
    expected = {"a29": context, "a0": context if length > 2_000 else None, "a30": None}
    assert {sample.output: sample.context for sample in found} == expected


@pytest.mark.parametrize("replaced", ["folder", "file", "nothing"])
@awaited
async def test_a_file_that_is_replaced_after_a_restart_does_not_end_scoring(tmp_path: Path, replaced: str) -> None:
    path = tmp_path / "t.jsonl"
    async with receiving(path) as (_, url, session):
        await post(session, url, halves(0)[0])
    found: list[Sample] = []
    async with receiving(path, found.append, quiet=0.3) as (receiver, url, session):
        await post(session, url, halves(0)[1])
        path.rename(tmp_path / "t.jsonl.1")
        if replaced == "folder":
            path.mkdir()
        elif replaced == "file":
            path.write_text(json.dumps(spans(span(9, "chat", chat([message("user", "q")], "other")))) + "\n")
        await until(lambda: len(found) == 1)
        if replaced == "folder":
            path.rmdir()
        await post(session, url, spans(one(1)))
        await until(lambda: len(found) == 2)
        assert [sample.context for sample in found] == [None, None]
        notes = ("1 × a file that cannot be read back; first Is a directory",) if replaced == "folder" else ()
        assert scored(receiver).notes.lines() == notes


def test_what_was_written_while_it_was_read_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, written = tmp_path / "t.jsonl", Written(60)
    lines = [json.dumps(spans(one(number))).encode() + b"\n" for number in range(2)]
    path.write_bytes(b"".join(lines))
    with path.open("rb") as writer:
        written.open(path, writer)
    written.add(0, len(lines[0]), 0)
    read = reading_module._lines  # pyright: ignore[reportPrivateUsage]

    def slowly(*place: Any) -> bytes:
        monkeypatch.undo()
        written.add(len(lines[0]), len(lines[0]) + len(lines[1]), 0)
        return read(*place)

    monkeypatch.setattr(reading_module, "_lines", slowly)
    pieces = [written.read() for _ in range(3)]
    written.close()
    assert [piece and len(piece.lines) for piece in pieces] == [1, 1, None]


def three_traces(path: Path, quiet: float) -> tuple[TraceScoring, list[bytes], list[str]]:
    """The scoring of a file with three traces, its lines, and the traces that have been passed on."""
    found = list[str]()

    async def take(sample: Sample, trace: str) -> None:
        found.append(trace)

    scoring = TraceScoring(take, quiet=quiet)
    lines = [json.dumps(spans(one(number))).encode() + b"\n" for number in range(3)]
    path.write_bytes(b"".join(lines))
    with path.open("rb") as writer:
        scoring.written.open(path, writer)
    return scoring, lines, found


@awaited
async def test_a_trace_that_is_written_soon_after_others_is_no_sooner_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    scoring, lines, found = three_traces(path, quiet=4.0)
    start = 0
    for data, at in zip(lines, (0.0, 0.9, 4.5), strict=True):
        scoring.written.add(start, start + len(data), at)
        start += len(data)
    for now, complete in ((4.5, []), (4.9, [trace(0), trace(1)]), (8.5, [trace(0), trace(1), trace(2)])):
        monkeypatch.setattr("evalstone.collect.scoring.time", SimpleNamespace(monotonic=lambda now=now: now))
        await scoring._follow(TraceIndex(path))  # pyright: ignore[reportPrivateUsage]
        assert found == complete
    scoring.written.close()


@awaited
async def test_of_lines_that_are_too_long_together_the_first_traces_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    scoring, lines, found = three_traces(path, quiet=60.0)
    scoring.written.add(0, path.stat().st_size, time.monotonic())
    monkeypatch.setattr(completion, "MOST_BYTES", 2 * len(lines[0]))
    await scoring._follow(TraceIndex(path))  # pyright: ignore[reportPrivateUsage]
    scoring.written.close()
    assert found == [trace(0)]


@awaited
async def test_scores_that_come_for_a_trace_are_neither_late_nor_unscored(tmp_path: Path) -> None:
    async with receiving(tmp_path / "t.jsonl", lambda sample: None, quiet=0.01) as (receiver, url, session):
        await post(session, url, spans(one(0)))
        await until(lambda: not receiver.unscored)
        score = {**log(1, None, {}, name="gen_ai.evaluation.result"), "traceId": trace(0)}
        await post(session, url, logs(score), "logs")
        await until(lambda: not receiver.unscored)
        assert (receiver.logs, scored(receiver).traces.late, scored(receiver).taken) == (1, 0, 2)

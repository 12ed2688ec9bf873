"""What may go wrong around a submission: nothing of it is lost, counted twice, or felt by the application."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import math
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as otel

from evalstone import Record, Sample, Scorer
from evalstone._core import sync
from evalstone.errors import ConfigError
from evalstone.judges.parse import parse_judge
from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
from evalstone.live import Live, Request, Response, asgi, client, frames, scoring, sender
from evalstone.live.frames import Content, Frame, HourCounts, Settings, Submitted
from evalstone.scorers import parse_scorers
from evalstone.types import Failed
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_asgi import app, asked
from tests.live.test_live import CONTAINS, SAMPLE, answered, found, numbers, trace

CONTENT, _ = frames.snapshot(Content(SAMPLE))


def test_what_is_submitted_while_the_worker_ends_is_not_lost(start: Start) -> None:
    live = start(CONTAINS, sampling=0.5)
    submitted, over = [0, 0], threading.Event()

    def go(place: int) -> None:
        while not over.is_set():
            live.submit(**SAMPLE)
            submitted[place] += 1
            time.sleep(0.002)

    threads = [threading.Thread(target=go, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        time.sleep(0.1)
        live.close(1)
    over.set()
    for thread in threads:
        thread.join()
    assert live.close(60)
    one = numbers(live)
    assert (one.seen, one.unaccounted) == (sum(submitted), 0)


def test_a_frame_that_is_sent_again_after_its_rows_were_taken_over_is_scored_once(tmp_path: Path) -> None:
    """A worker is killed after it has written a frame, and before it says so."""
    records: list[Any] = []

    def keep(record: Any, sample: Any, scorer: Any) -> None:
        records.append(record)

    contains = parse_scorers(CONTAINS)
    settings = Settings(
        stream="live",
        owner="1-a",
        scorers=contains,
        judge=parse_judge("lexical"),
        ledger=str(tmp_path / "l.db"),
        on_record=keep,
    )
    content, size = frames.snapshot(Content(SAMPLE))
    at = time.time()
    item = Submitted(1, at, 1, "live", None, None, None, content, size)
    frame = Frame(1, [HourCounts(int(at // 3600), 1, 0, (0, 0), (0, 1))], [item])

    async def work() -> None:
        killed = scoring.Scoring(settings)
        async with killed:
            for task in killed._tasks:  # it scores nothing any more  # pyright: ignore[reportPrivateUsage]
                task.cancel()
            await killed.accept(frame)
        async with scoring.Scoring(settings) as next_one:
            assert (await next_one.accept(frame)).settled < 0
            assert next_one.backlog == 1
            await next_one.finish(10)

    asyncio.run(work())
    assert len(records) == 1


def test_a_frame_that_another_worker_has_is_not_scored_by_this_one_too(tmp_path: Path) -> None:
    """As after a worker that was taken for dead: its rows are in work there, or done."""
    records: list[Any] = []

    def keep(record: Any, sample: Any, scorer: Any) -> None:
        records.append(record)

    settings = Settings(
        stream="live",
        owner="1-a",
        scorers=parse_scorers(CONTAINS),
        judge=parse_judge("lexical"),
        ledger=str(tmp_path / "l.db"),
        on_record=keep,
    )
    at = time.time()
    items = [Submitted(number, at, 1, "live", None, None, None, CONTENT, 1) for number in (1, 2)]
    frames_of = [
        Frame(number, [HourCounts(int(at // 3600), number, 0, (0, 0), (0, number))], items[:number])
        for number in (1, 2)
    ]

    async def work() -> None:
        async with scoring.Scoring(settings) as other, scoring.Scoring(settings) as this:
            for task in other._tasks:  # it only holds what it has  # pyright: ignore[reportPrivateUsage]
                task.cancel()
            await other.accept(frames_of[0])
            assert (await this.accept(frames_of[1])).settled < 1  # the first row is pending, in the other one
            await this.finish(10)
            await this.accept(frames_of[1])
            assert this.backlog == 0  # the second row is done

    asyncio.run(work())
    assert len(records) == 1


def test_a_sample_that_costs_more_than_a_day_allows_ends_that_day_alone(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = start("factual_correctness", own.PaidJudge(path=tmp_path / "asked"), daily_budget=0.5, concurrency=1)
    live.submit(**answered(0))
    live.submit(**answered(1))
    one = numbers(live)
    assert (one.n_score + one.n_skipped, one.dropped_budget) == (1, 1)
    tomorrow = time.time() + scoring.DAY
    monkeypatch.setattr(scoring.time, "time", lambda: tomorrow)
    live.submit(**answered(2))
    one = numbers(live)
    assert (one.n_score + one.n_skipped, one.dropped_budget) == (2, 1)


def test_while_dollars_are_left_samples_wait_for_those_in_work_and_are_not_dropped(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = itertools.chain([2.0], itertools.repeat(0.01))
    answer = own.PaidJudge.answer

    async def cheaper(self: Any, question: Any, repeat: int = 0) -> Any:
        return dataclasses.replace(await answer(self, question, repeat), cost=next(costs))

    monkeypatch.setattr(own.PaidJudge, "answer", cheaper)
    live = start("factual_correctness", own.PaidJudge(path=tmp_path / "asked", pause=0.02), daily_budget=7.0)
    for number in range(2):
        live.submit(**answered(number))
        assert live.flush(10)
    for number in range(2, 12):
        live.submit(**answered(number))
    assert numbers(live).dropped_budget == 0


def most_times(seconds: float) -> float:
    """How often a judge is asked again at most that is left alone for 0.1, 0.2, 0.4, … seconds."""
    return 1 + math.log2(seconds / 0.1 + 1)


def test_a_judge_that_stays_down_is_asked_less_and_less_though_other_scorers_work(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "FIRST_PAUSE", 0.1)
    opened: list[float] = []
    session = scoring._LiveSession  # pyright: ignore[reportPrivateUsage]

    def noted(*arguments: Any, **settings: Any) -> Any:
        opened.append(time.monotonic())
        return session(*arguments, **settings)

    monkeypatch.setattr(scoring, "_LiveSession", noted)
    live = start(["factual_correctness", CONTAINS], own.BrokenJudge(path=tmp_path / "up"))
    begun = time.monotonic()
    for number in range(150):
        live.submit(**answered(number))
        time.sleep(0.01)
    assert live.flush(20)
    assert 3 <= len(opened) <= most_times(time.monotonic() - begun)


def test_a_judge_that_refuses_the_key_is_asked_less_and_less_and_other_scorers_go_on(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scoring, "FIRST_PAUSE", 0.1)
    file = tmp_path / "valid"
    live = start(["factual_correctness", CONTAINS], own.RefusingJudge(path=file), concurrency=4)
    begun = time.monotonic()
    for number in range(50):
        live.submit(**answered(number))
        time.sleep(0.01)
    assert live.flush(20)
    refused = (tmp_path / "valid.refused").read_text().count("no")
    assert 2 <= refused <= 4 * most_times(time.monotonic() - begun)  # at most 4 calls at a time
    contains, factual = live.coverage().scorers
    assert (contains.n_score, factual.n_failed) == (50, 50)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == "live: refused"
    file.touch()
    time.sleep(0.8)
    live.submit(**answered(50))
    assert live.flush(20)
    assert live.coverage().scorers[1].n_failed == 50


def test_the_trace_id_of_no_trace_decides_for_nobody(start: Start) -> None:
    live = start(CONTAINS, sampling=0.5)
    nobody: list[Any] = ["0" * 32, 0, ""]
    for none in nobody:
        drawn = [live.submit(**SAMPLE, trace_id=none) for _ in range(60)]
        assert 0 < sum(drawn) < 60
    live.flush(10)
    assert {row.trace for row in found(live)} == {None}


def test_what_can_be_read_only_once_is_left_to_the_application_and_fails(start: Start) -> None:
    live = start("faithfulness")
    passages = (passage for passage in ("In Rome.", "In Paris."))
    live.submit(output="In Rome.", context=passages)  # pyright: ignore[reportArgumentType]
    assert list(passages) == ["In Rome.", "In Paris."]
    assert numbers(live).n_failed == 1
    (row,) = found(live)
    assert row.record is not None
    assert isinstance(row.record.outcome, Failed)
    assert "submit a list" in row.record.outcome.error


def test_a_log_handler_that_fails_costs_no_count(start: Start) -> None:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError("no")

    handler, log = Failing(), logging.getLogger("evalstone.live")
    log.addHandler(handler)
    try:
        live = start(CONTAINS, filter="{}".format_map)  # which fails
        assert not live.submit(**SAMPLE)
    finally:
        log.removeHandler(handler)
    assert numbers(live).filtered == 1


async def application(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"In Rome."})
    if scope["path"] == "/background":
        raise RuntimeError("a background task failed")


def called(app: Any, path: str = "/") -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "path": path, "method": "POST", "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))
    return sent


def output_of(request: Request, response: Response) -> Any:
    if request.path == "/exit":
        sys.exit(3)
    return {"output": response.text, "reference": "Rome"}


def test_a_read_that_exits_fails_and_later_requests_are_scored(start: Start) -> None:
    live = start(CONTAINS)
    app = live.asgi(application, output_of)
    for path in ("/exit", "/"):
        called(app, path)
    one = numbers(live)
    assert (one.n_failed, one.n_score) == (1, 1)


def test_an_answer_whose_background_task_fails_counts(start: Start) -> None:
    live = start(CONTAINS)
    with pytest.raises(RuntimeError, match="background"):
        called(live.asgi(application, output_of), "/background")
    assert numbers(live).n_score == 1


@pytest.mark.slow
def test_what_waits_in_the_queue_at_the_end_is_pending_in_the_ledger(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "DRAIN", 30.0)
    live = start(own.endless, concurrency=1)
    for number in range(900):
        live.submit(**answered(number))
    assert not live.close(0.3)
    (one,) = live.coverage().scorers
    assert (one.seen, one.pending, one.unaccounted) == (900, 900, 0)


def test_the_worker_holds_no_more_than_so_many_bytes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_UNFINISHED_BYTES", 100)
    live = start(own.endless, concurrency=1)
    for number in range(200):
        live.submit(**answered(number))
    assert not live.flush(0.5)
    assert live.coverage().total.seen == sender.BATCH


def test_a_clock_that_is_set_forth_and_back_leaves_the_sums_as_they_are(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, clock = start(CONTAINS), [0.0]
    now = time.time()
    monkeypatch.setattr(client.time, "time", lambda: now + clock[0])
    for hours in (0, 5, 0, 0):
        for _ in range(3):
            live.submit(**SAMPLE)
        clock[0] = 3600.0 * hours
        assert live.flush(10)
    assert numbers(live).seen == 12


def test_the_span_is_that_of_the_request_and_not_of_its_caller() -> None:
    trace_id, caller, own_span = 5, 7, 9
    header = [(b"traceparent", f"00-{trace_id:032x}-{caller:016x}-01".encode())]
    for other in (trace_id, 6):
        context = otel.SpanContext(other, own_span, is_remote=False, trace_flags=otel.TraceFlags(1))
        with otel.use_span(otel.NonRecordingSpan(context)):
            trace = asgi.trace_of(header)
        assert trace.trace_id == f"{trace_id:032x}"
        assert trace.span_id == f"{own_span if other == trace_id else caller:016x}"


def test_a_submission_that_waits_is_never_dropped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go(live: Live, **sample: Any) -> list[bool]:
        return [await live.asubmit(**sample) for _ in range(6)]

    few = start(CONTAINS, stream="few", queue=2)
    assert asyncio.run(go(few, **SAMPLE)) == [True] * 6
    monkeypatch.setattr(sender, "QUEUE_BYTES", 10_000)
    long = start(CONTAINS, stream="long")
    assert asyncio.run(go(long, output="x" * 20_000, reference="x")) == [True] * 6
    assert [(numbers(live).n_score, numbers(live).dropped_queue) for live in (few, long)] == [(6, 0)] * 2


def test_what_was_no_sample_is_given_to_on_record_once_as_a_failure_with_where_it_comes_from(start: Start) -> None:
    seen: list[tuple[Record, Sample, str]] = []

    def keep(record: Record, sample: Sample, scorer: Scorer) -> None:
        seen.append((record, sample, scorer.name))

    live = start(on_record=keep)
    source = {"trace_id": trace(1), "span_id": "00f067aa0ba902b7", "response_id": "r"}
    live.submit({"said": "x", "metadata": {"trace": source}}, entity="guide")
    live.submit(nonsense="x", trace_id="not of OpenTelemetry")  # pyright: ignore[reportCallIssue]
    live.submit(iter(["a generator"]))  # pyright: ignore[reportArgumentType]
    asked(live.asgi(app, lambda request, response: 1 / 0), "?")  # pyright: ignore[reportArgumentType, reportReturnType]
    assert numbers(live).n_failed == len(seen) == 4
    assert all(isinstance(record.outcome, Failed) and name == "contains" for record, _, name in seen)
    found_in = [sample.metadata.get("trace", {}) for _, sample, _ in seen]
    assert {**source, "entity": "guide"} in found_in
    assert {"entity": "/ask"} in found_in
    assert found_in.count({}) == 2


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"question": "Where?"}, "unknown sample field 'question'; did you mean input?"),
        ({"Contexts": ["In Rome."]}, "unknown sample field 'Contexts'; did you mean context?"),
        ({"answer": "In Rome."}, "unknown sample field 'answer'; did you mean output?"),
        ({"outptu": "In Rome."}, "unknown sample field 'outptu'; did you mean output?"),
        ({"colour": "red"}, "unknown sample field 'colour'; known: context, "),
    ],
)
def test_a_field_by_the_name_of_a_column_is_told_what_it_is_called(
    start: Start, fields: dict[str, Any], says: str
) -> None:
    live = start()
    live.submit(fields)
    (row,) = found(live)
    assert row.record is not None
    assert isinstance(row.record.outcome, Failed)
    assert says in row.record.outcome.error


def test_what_is_submitted_while_no_thread_can_be_started_waits_in_the_queue(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("no thread")

    live = start()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        live.start()
        assert live.submit(**answered(1))
    (said,) = [record.getMessage() for record in caplog.records]
    assert "the queue: RuntimeError" in said
    assert live.submit(**answered(2))
    assert numbers(live).n_score == 2


class LateJudge(own.PaidJudge):
    """Refuses the key once it is told to go on."""

    asked, go_on = asyncio.Event(), asyncio.Event()

    async def answer(self, question: Any, repeat: int = 0) -> Any:
        self.asked.set()
        await self.go_on.wait()
        raise ConfigError("the endpoint refuses the key")


def test_a_late_refusal_says_nothing_of_the_session_that_has_begun_meanwhile(tmp_path: Path) -> None:
    judge = LateJudge(path=tmp_path / "asked")
    scorers = parse_scorers("factual_correctness")
    settings = Settings(stream="live", owner="1-a", scorers=scorers, judge=judge, ledger=str(tmp_path / "l.db"))
    at = time.time()
    item = Submitted(1, at, 1, "live", None, None, None, CONTENT, 1)
    frame = Frame(1, [HourCounts(int(at // 3600), 1, 0, (0, 0), (0, 1))], [item])

    async def work() -> None:
        async with scoring.Scoring(settings) as this:
            await this.accept(frame)
            await asyncio.wait_for(judge.asked.wait(), 20)
            this._renew()  # pyright: ignore[reportPrivateUsage]
            until = this._renew_at  # pyright: ignore[reportPrivateUsage]
            judge.go_on.set()
            await this.finish(20)
            assert not this.backlog
            assert this._renew_at == until  # pyright: ignore[reportPrivateUsage]

    asyncio.run(work())


@pytest.mark.parametrize("wait", ["aflush", "aclose"])
def test_waiting_for_scores_raises_nothing_while_no_thread_can_be_started(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wait: str
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("no thread")

    live = start()
    monkeypatch.setattr(sync, "_threads", {})
    live.submit(**answered(1))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert not asyncio.run(getattr(live, wait)(20))
    assert "nobody waits for" in caplog.text
    assert "scores: RuntimeError" in caplog.text
    assert asyncio.run(getattr(live, wait)(20))
    assert numbers(live).n_score == 1


def test_a_worker_whose_thread_can_not_be_started_is_started_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started, refused = threading.Thread.start, threading.Event()

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "evalstone-live-worker" and not refused.is_set():
            refused.set()
            raise RuntimeError("no thread")
        started(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    live = start()
    live.submit(**answered(1))
    assert live.flush(20)
    assert "be started: RuntimeError" in caplog.text


def test_what_is_stored_is_in_the_ledger_before_it_is_scored(tmp_path: Path) -> None:
    live = Live(own.endless, sampling=1.0, process=False, ledger=tmp_path / "l.db")

    async def submit() -> list[str]:
        await live.astored()  # nothing was submitted
        for number in range(3):
            await live.asubmit(output=str(number))
        await asyncio.wait_for(live.astored(), 20)
        with Ledger(tmp_path / "l.db") as ledger:
            return [row.state for row in rows.scores(ledger)]

    assert asyncio.run(submit()) == ["pending"] * 3
    live.close(0.1)

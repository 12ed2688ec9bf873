"""What `flush` and `close` answer: whether everything that was submitted before has an outcome."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from evalstone.errors import LedgerError
from evalstone.judges.parse import parse_judge
from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
from evalstone.live import frames, scoring, sender
from evalstone.live.frames import Content, Frame, Reply, Settings, Submitted
from evalstone.live.sender import ChannelLost, Sender
from evalstone.scorers import parse_scorers
from evalstone.scorers.base import ScorerFunction
from tests.fakes import awaited
from tests.live import scoring as own
from tests.live.test_live import answered
from tests.live.test_worker import until


def item(number: int) -> Submitted:
    content, size = frames.snapshot(Content(answered(number)))
    return Submitted(number, time.time(), 1, "live", None, None, None, content, size)


class Worker:
    """The settings of workers on one ledger, for different applications."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = str(ledger)

    def settings(self, owner: str, scorer: ScorerFunction) -> Settings:
        scorers, judge = parse_scorers([scorer]), parse_judge("lexical")
        return Settings(stream="s", owner=owner, scorers=scorers, judge=judge, ledger=self.ledger)

    @asynccontextmanager
    async def of(self, owner: str, scorer: ScorerFunction) -> AsyncGenerator[scoring.Scoring]:
        async with scoring.Scoring(self.settings(owner, scorer)) as opened:
            yield opened

    def states(self) -> list[str]:
        with Ledger(self.ledger) as ledger:
            return [row.state for row in rows.scores(ledger)[::-1]]


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path / "l.db")


@awaited
async def test_frames_are_settled_in_order_once_everything_in_them_has_an_outcome(worker: Worker) -> None:
    async with worker.of("1-a", own.endless) as scored:
        assert (await scored.accept(Frame(1))).settled == 1
        assert (await scored.accept(Frame(2, (), [item(1)]))).settled == 1
        assert (await scored.accept(Frame(3))).settled == 1
    async with worker.of("1-b", own.slow) as scored:
        await scored.accept(Frame(1, (), [item(1), item(2)]))
        await scored.finish(10)
        assert (await scored.accept(Frame(2))).settled == 2


@awaited
async def test_what_is_finished_makes_room(worker: Worker) -> None:
    async with worker.of("1-a", own.slow) as scored:
        long = item(1)._replace(size=scoring.MAX_UNFINISHED_BYTES)
        assert (await scored.accept(Frame(1, (), [long]))).accepts == 0
        await scored.finish(10)
        assert (await scored.accept(Frame(2))).accepts == scoring.MAX_UNFINISHED
        halves = [item(number)._replace(size=scoring.MAX_UNFINISHED_BYTES // 2) for number in (2, 3)]
        assert (await scored.accept(Frame(3, (), halves))).accepts == 0
        await scored.finish(10)
        assert not scored._takeovers  # pyright: ignore[reportPrivateUsage]


@awaited
async def test_what_was_taken_over_counts_for_the_application_that_submitted_it_alone(worker: Worker) -> None:
    async with worker.of("1-a", own.endless) as left:
        await left.accept(Frame(1, (), [item(1)]))
    async with worker.of("1-b", own.endless) as other:
        assert (await other.accept(Frame(1))).settled == 1  # a flush doesn't wait for what others have submitted
    async with worker.of("1-a", own.endless) as again:
        assert (await again.accept(Frame(2))).settled < 1  # a flush waits for what this one has
    assert worker.states() == ["pending"]


@awaited
async def test_nothing_is_settled_while_another_worker_has_what_this_application_submitted(worker: Worker) -> None:
    async with worker.of("1-a", own.endless) as first:
        await first.accept(Frame(1, (), [item(1)]))
        async with worker.of("1-a", own.endless) as second:
            assert (await second.accept(Frame(2))).settled < 1
            assert (await second.accept(Frame(3, (), [item(2)]))).settled < 1  # also while it has work of its own


@awaited
async def test_a_frame_that_another_worker_wrote_late_is_not_settled(worker: Worker) -> None:
    """As by a worker that was slow to write it, and that the application had given up."""
    async with worker.of("1-a", own.endless) as late, worker.of("1-a", own.endless) as second:
        sent = Frame(1, (), [item(1)])
        await late.accept(sent)
        assert (await second.accept(sent)).settled < 1


@awaited
async def test_the_end_waits_for_samples_that_a_dead_worker_had_begun(worker: Worker) -> None:
    async with worker.of("1-a", own.slow) as left:
        await left.accept(Frame(1, (), [item(1), item(2)]))
    with Ledger(worker.ledger) as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE live_scores SET takeovers = 1")
    async with worker.of("1-b", own.slow) as scored:
        await scored.finish(30)
        assert worker.states() == ["score", "score"]


@awaited
async def test_the_end_does_not_wait_for_what_a_broken_ledger_can_not_store(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LedgerError("disk full")

    monkeypatch.setattr(rows, "finish", broken)
    async with worker.of("1-a", own.slow) as scored:
        await scored.accept(Frame(1, (), [item(1)]))
        async with asyncio.timeout(30):
            await scored.finish(3600)
        assert "disk full" in str(scored.broken.exception())
    assert worker.states() == ["pending"]


@awaited
async def test_no_more_is_taken_over_than_there_is_room_for(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_UNFINISHED", 2)
    async with worker.of("1-a", own.endless) as left:
        await left.accept(Frame(1, (), [item(1), item(2), item(3)]))
    async with worker.of("1-b", own.endless) as taking:
        await taking._claim()  # pyright: ignore[reportPrivateUsage]
        assert taking.backlog == 2


@awaited
async def test_what_this_application_submitted_is_looked_for_often_while_another_worker_has_it(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "CLAIM_EVERY", 3600)
    monkeypatch.setattr(scoring, "MISSING_EVERY", 0.01)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(worker.of("1-a", own.endless))
        await first.accept(Frame(1, (), [item(1)]))
        async with worker.of("1-a", own.endless) as second:
            await stack.aclose()
            async with asyncio.timeout(30):
                while not second.backlog:  # noqa: ASYNC110 - the worker has no event for it
                    await asyncio.sleep(0.01)


class Channel:
    """Accepts frames, of which it says that they are settled up to a number of them before the last one."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.settled: int | None = None
        self.open = self.forget = lambda: None
        self.before: Callable[[Frame], None] = lambda _: None

    def send(self, frame: bytes) -> Reply:
        sent: Frame = pickle.loads(frame)
        self.before(sent)
        self.frames.append(sent)
        return Reply(10, sent.number if self.settled is None else self.settled)

    def end(self, seconds: float) -> None: ...


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def sending(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> Generator[Sender]:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(sender, "LAST_SECONDS", 0.2)
    made = Sender(Settings(stream="s", owner="", scorers=("x",), judge=None), 10, lambda _: channel)
    yield made
    channel.settled, channel.before = None, lambda _: None
    made.close(1)


def put(sending: Sender, number: int) -> None:
    one = item(number)
    sending.offer(one.at, 1, one, one.size)


def test_what_a_lost_worker_had_taken_after_the_flush_of_a_close_is_not_said_to_be_scored(
    sending: Sender, channel: Channel
) -> None:
    put(sending, 1)
    assert sending.flush(10)

    def submit(frame: Frame) -> None:
        """Between the flush of the close, and the last frame, which no worker answers."""
        if frame.end is not None:
            raise ChannelLost("killed")
        if not frame.submitted:
            channel.settled = frame.number
            put(sending, 2)
            channel.before = lost

    def lost(frame: Frame) -> None:
        if frame.end is not None:
            raise ChannelLost("killed")

    channel.before = submit
    assert sending.close(10)  # what was submitted before is scored
    taken = [one.number for frame in channel.frames for one in frame.submitted]
    assert taken == [1, 2]
    assert not sending.flush(0.2)
    assert not sending.close(0.2)
    channel.settled, channel.before = None, lambda _: None
    assert sending.flush(10)
    assert sending.close(10)
    assert sending.close(0)  # still so, without a worker


def test_a_worker_that_is_lost_at_the_end_takes_back_nothing_that_it_had_settled(
    sending: Sender, channel: Channel
) -> None:
    def lost(frame: Frame) -> None:
        if frame.end is not None:
            raise ChannelLost("killed")

    channel.before = lost
    put(sending, 1)
    assert sending.close(10)
    assert sending.close(0)
    opened = len(channel.frames)
    assert sending.flush(0)
    assert len(channel.frames) == opened  # no worker is asked what is known


def test_a_flush_asks_for_the_frame_that_has_the_last_of_what_it_waits_for(sending: Sender, channel: Channel) -> None:
    put(sending, 1)
    until(lambda: any(frame.submitted for frame in channel.frames))
    (first,) = [frame.number for frame in channel.frames if frame.submitted]
    channel.settled = first - 1
    assert not sending.flush(0.3)
    channel.settled = first
    assert not sending.flush(0.3)  # counts may have come since: they are in the frame after the call
    channel.settled = None
    assert sending.flush(10)


def test_what_can_not_be_sent_at_the_end_starts_no_other_worker(sending: Sender, channel: Channel) -> None:
    tried: list[int] = []

    def fail(frame: Frame) -> None:
        tried.append(frame.number)
        raise ValueError("no frame")

    channel.before = fail
    put(sending, 1)
    flushed: list[bool] = []
    flushing = threading.Thread(target=lambda: flushed.append(sending.flush(20)))
    flushing.start()
    assert not sending.close(0.2)
    flushing.join(10)
    assert flushed == [False]
    assert sending._thread is None  # pyright: ignore[reportPrivateUsage]
    channel.before = lambda _: None
    assert sending.flush(10)
    assert [one.number for frame in channel.frames for one in frame.submitted] == [1]


def test_what_is_submitted_between_the_flush_of_a_close_and_its_end_is_the_next_workers(
    sending: Sender, channel: Channel
) -> None:
    put(sending, 1)
    assert sending.flush(10)

    def submit(frame: Frame) -> None:
        if frame.end is not None:
            channel.before = lambda _: None
            put(sending, 2)

    channel.before = submit
    assert sending.close(10)
    until(lambda: [one.number for frame in channel.frames for one in frame.submitted] == [1, 2])
    assert sending.flush(10)


def test_what_there_was_no_time_for_starts_no_other_worker(
    sending: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "BATCH", 1)
    monkeypatch.setattr(sender, "DRAIN", 0.0)
    channel.settled = 0
    channel.before = lambda frame: put(sending, frame.number + 10)
    for number in range(5):
        put(sending, number)
    assert not sending.close(0.1)
    assert sending._thread is None  # pyright: ignore[reportPrivateUsage]


def test_counts_that_no_worker_could_be_started_for_start_no_other_one(sending: Sender, channel: Channel) -> None:
    def refuse() -> None:
        raise ChannelLost("no")

    channel.open = refuse
    sending.count(time.time())
    assert not sending.close(0.1)
    assert sending._thread is None  # pyright: ignore[reportPrivateUsage]
    channel.open = lambda: None
    assert sending.flush(10)
    assert sum(counts.seen for frame in channel.frames for counts in frame.counts) == 1


def test_what_is_submitted_as_the_last_frame_is_sent_is_the_next_workers(sending: Sender, channel: Channel) -> None:
    def submit(frame: Frame) -> None:
        if not sending._closing:  # pyright: ignore[reportPrivateUsage]
            sending.count(time.time())  # so that there is another frame
        elif frame.end is None:
            channel.before = lambda _: None
            put(sending, 2)

    channel.before = submit
    put(sending, 1)
    assert sending.close(10)
    until(lambda: [one.number for frame in channel.frames for one in frame.submitted] == [1, 2])
    assert sending.flush(10)

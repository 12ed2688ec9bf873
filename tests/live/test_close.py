"""The end of a `Live`: what was submitted until then, and while it ends, is written."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from enum import StrEnum
from typing import cast

import pytest

from evalstone.live import sender
from evalstone.types import Score
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_live import SAMPLE, answered, found, numbers, trace

pytestmark = pytest.mark.slow


class Name(StrEnum):
    """A class that no worker can import, since it is not known under its name."""

    AGENT = "agent"
    LIVE = "live"


Name.__qualname__ = "Unknown"
LOST = "live: {} not accepted by a worker, and lost if the application exits now"


def test_what_waits_in_the_queue_stays_pending(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "BATCH", 8)
    live = start(own.endless)
    taken = [live.submit(**answered(number)) for number in range(100)]
    assert taken == [True] * 100
    assert not live.close(0)
    total = live.coverage().total
    assert (total.seen, total.pending, total.unaccounted) == (100, 100, 0)


def test_what_there_is_no_time_for_is_said_and_starts_no_other_worker(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "BATCH", 1)
    monkeypatch.setattr(sender, "DRAIN", 0.0)
    live = start(own.endless)
    for number in range(300):
        live.submit(**answered(number))
    assert not live.close(1)
    taken = live.coverage().total.pending
    assert live._sender._thread is None  # pyright: ignore[reportPrivateUsage]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == LOST.format(f"{300 - taken} samples were")
    assert 0 < taken < 300


def test_what_is_submitted_while_it_ends_is_the_next_workers(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live = start(sampling=0.5)
    live.submit(**SAMPLE, trace_id=trace(0))
    assert live.flush(20)
    ending, going = threading.Event(), threading.Event()
    channel = live._sender._channel  # pyright: ignore[reportPrivateUsage]
    assert channel is not None
    end = channel.end

    def slowly(seconds: float) -> None:
        ending.set()
        going.wait(20)
        end(seconds)

    monkeypatch.setattr(channel, "end", slowly)
    closing = threading.Thread(target=live.close)
    closing.start()
    assert ending.wait(20)
    for number in range(1, 10):
        live.submit(**SAMPLE, trace_id=trace(number))
    going.set()
    closing.join()
    one = numbers(live)
    assert (one.seen, one.n_score, one.unaccounted) == (10, one.sampled, 0)
    assert caplog.records == []


def test_what_no_worker_could_be_started_for_is_said_to_be_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live = start()

    def refuse(_: object) -> None:
        raise sender.ChannelLost("no")

    monkeypatch.setattr(live._sender, "_connect", refuse)  # pyright: ignore[reportPrivateUsage]
    for number in range(3):
        live.submit(**answered(number))
    begun = time.monotonic()
    assert not live.close(0.2)
    assert time.monotonic() - begun < 1.5
    assert LOST.format("3 samples were") in caplog.text
    live.submit(**answered(3))
    assert not live.close(0.2)
    assert LOST.format("4 samples were") in caplog.text


def test_a_close_starts_a_worker_for_what_none_has_taken_but_not_when_the_application_exits(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live = start()
    connect, started = live._sender._connect, list[object]()  # pyright: ignore[reportPrivateUsage]

    def refuse(settings: object) -> None:
        started.append(settings)
        raise sender.ChannelLost("no")

    monkeypatch.setattr(live._sender, "_connect", refuse)  # pyright: ignore[reportPrivateUsage]
    for number in range(3):
        live.submit(**answered(number))
    assert not live.close(0.2)
    before = len(started)
    live._sender.exit(60)  # pyright: ignore[reportPrivateUsage]
    assert len(started) == before
    monkeypatch.setattr(live._sender, "_over", False)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(live._sender, "_connect", connect)  # pyright: ignore[reportPrivateUsage]
    assert live.close(60)
    assert numbers(live).n_score == 3


def test_a_close_after_the_exit_handler_says_that_samples_are_left(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = start()

    def refuse(_: object) -> None:
        raise sender.ChannelLost("no")

    monkeypatch.setattr(live._sender, "_connect", refuse)  # pyright: ignore[reportPrivateUsage]
    live.submit(**SAMPLE)
    live._sender.exit(0.2)  # pyright: ignore[reportPrivateUsage]
    assert not live.close(0.2)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_what_a_worker_that_hangs_has_not_taken_is_counted_and_goes_to_the_next_one(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "LAST_SECONDS", 0.3)
    live = start(own.worker, process=True)
    live.submit(**SAMPLE)
    (row,) = found(live)
    assert row.record is not None
    assert isinstance(row.record.outcome, Score)
    os.kill(cast("int", row.record.outcome.evidence), signal.SIGSTOP)
    for number in range(100):
        live.submit(**answered(number))
    begun = time.monotonic()
    assert not live.close(0.2)
    assert time.monotonic() - begun < 2
    (_, said) = [record.getMessage() for record in caplog.records]
    assert said == LOST.format("100 samples were")
    assert live.flush(20)
    assert numbers(live).n_score == 101


def test_a_worker_that_hangs_as_it_starts_is_ended_and_what_waited_is_counted(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "LAST_SECONDS", 0.3)
    monkeypatch.setattr(sender, "_WORKER", "import time; time.sleep(60)")
    live = start(process=True)
    live.submit(**SAMPLE)
    assert not live.close(0.2)
    assert LOST.format("1 sample was") in caplog.text
    assert live._sender._thread is None  # pyright: ignore[reportPrivateUsage]


def test_a_flush_that_a_close_overtakes_says_that_something_is_left(start: Start) -> None:
    live = start(own.endless)
    live.submit(**SAMPLE)
    flushed: list[bool] = []
    flushing = threading.Thread(target=lambda: flushed.append(live.flush(20)))
    flushing.start()
    begun = time.monotonic()
    assert not live.close(0.2)
    flushing.join()
    assert time.monotonic() - begun < 5
    assert flushed == [False]
    assert not live.close(0.2)
    assert not live.flush(0.2)  # the worker that this starts has what the last one left
    assert live.coverage().total.pending == 1


def test_a_flush_ends_while_others_submit(start: Start) -> None:
    live, over = start(own.slow), threading.Event()

    def go() -> None:
        for number in itertools.count():
            live.submit(**answered(number))
            if over.wait(0.005):
                return

    thread = threading.Thread(target=go)
    thread.start()
    time.sleep(0.2)
    try:
        assert [live.flush(5) for _ in range(3)] == [True] * 3
    finally:
        over.set()
        thread.join()


def test_names_of_the_applications_own_classes_are_sent_as_text(start: Start) -> None:
    live = start()

    @live.watch(entity=Name.AGENT)
    def answer(input: str) -> str:
        return "In Rome."

    answer("Where?")
    live.submit(**SAMPLE, entity=Name.AGENT, source=Name.LIVE)  # pyright: ignore[reportArgumentType]
    assert {(row.entity, row.source) for row in found(live)} == {("agent", "live")}

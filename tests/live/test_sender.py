"""Counts on their way to the worker, while more are counted."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from evalstone.live import sender
from evalstone.live.frames import Frame, HourCounts, Reply, Settings, Submitted
from evalstone.live.sender import HOUR, ChannelLost, Sender

Counting = Callable[[], None]
OLD = 100 * HOUR
ROOT = Path(__file__).parents[2]


class Channel:
    """Notes the counts of each hour that a frame brings, and does something before it acknowledges the first."""

    def __init__(self) -> None:
        self.seen: dict[int, list[int]] = {}
        self.frames = self.behind = 0
        self.rooms: list[int] = []
        """How many more samples are taken, after each of the next frames; then 10."""
        self.taken = 0
        self.first: Counting | None = None

    def send(self, frame: bytes) -> Reply:
        sent: Frame = pickle.loads(frame)
        counts: HourCounts
        for counts in sent.counts:
            self.seen.setdefault(counts.hour, []).append(counts.seen)
        if sent.counts and self.first is not None:
            first, self.first = self.first, None
            first()
        self.frames += 1
        self.taken += len(sent.submitted)
        return Reply(self.rooms.pop(0) if self.rooms else 10, sent.number - self.behind)

    def open(self) -> None: ...

    def end(self, seconds: float) -> None: ...

    def forget(self) -> None: ...


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def counting(channel: Channel) -> Generator[Sender]:
    made = Sender(Settings(stream="s", owner="", scorers=("x",), judge=None), 10, lambda _: channel)
    yield made
    made.close(1)


def test_a_flush_waits_for_what_came_before_it_and_not_for_what_comes_meanwhile(
    counting: Sender, channel: Channel
) -> None:
    now, hour = time.time(), int(time.time() // HOUR)
    channel.first = lambda: counting.count(now)
    counting.count(now)
    assert counting.flush(10)
    assert channel.seen == {hour: [1]}
    assert counting.flush(10)
    assert channel.seen == {hour: [1, 2]}


def test_what_is_longer_than_the_queue_may_be_is_counted_though_nothing_else_comes(
    counting: Sender, channel: Channel
) -> None:
    item = Submitted(1, time.time(), 1, "live", None, None, None, b"", sender.QUEUE_BYTES + 1)
    assert not counting.offer(item.at, 1, item, item.size)
    assert counting.flush(10)
    assert channel.seen == {int(item.at // HOUR): [1]}


def test_a_flush_waits_for_all_frames_that_the_queue_becomes(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "BATCH", 1)
    for number in range(5):
        item = Submitted(number, time.time(), 1, "live", None, None, None, b"", 0)
        counting.offer(item.at, 1, item, 0)
    assert counting.flush(10)
    assert channel.taken == 5


def test_what_the_worker_has_no_room_for_is_sent_once_it_has(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "COUNTS_EVERY", 60.0)
    monkeypatch.setattr(sender, "BATCH", 1)
    channel.rooms = [0, 0]
    for number in range(3):
        item = Submitted(number, time.time(), 1, "live", None, None, None, b"", 0)
        counting.offer(item.at, 1, item, 0)
    deadline = time.monotonic() + 10
    while channel.taken < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (channel.taken, channel.frames) == (3, 5)


def test_after_a_worker_that_was_lost_the_next_one_is_sent_to_without_pause(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.3)
    losses, opened = [ChannelLost("no"), ValueError("neither")], list[float]()

    def fail() -> None:
        opened.append(time.monotonic())
        if losses:
            raise losses.pop()

    monkeypatch.setattr(channel, "open", fail)
    counting.count(time.time())
    assert counting.flush(10)
    first, second, third = opened
    assert second - first >= 0.3
    assert third - second >= 0.6
    begun = time.monotonic()
    for _ in range(4):
        counting.count(time.time())
        assert counting.flush(10)
    assert time.monotonic() - begun < 1.2


def test_an_idle_worker_is_asked_now_and_then_whether_it_is_there(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LOOK_EVERY", 0.1)
    counting.count(time.time())
    assert counting.flush(10)
    before, begun = channel.frames, time.monotonic()
    while channel.frames < before + 3:
        assert time.monotonic() < begun + 10
        time.sleep(0.01)
    assert time.monotonic() - begun > 0.2  # not all the time


def test_a_flush_ends_once_what_was_in_the_queue_is_scored_and_not_when_it_was_sent(
    counting: Sender, channel: Channel
) -> None:
    """The worker has finished all frames but the last few, whatever comes after."""
    channel.behind = 3
    item = Submitted(1, time.time(), 1, "live", None, None, None, b"", 0)
    counting.offer(item.at, 1, item, 0)
    assert counting.flush(10)
    assert channel.frames >= 4
    channel.behind = 10**6
    counting.offer(item.at, 1, item, 0)
    assert not counting.flush(0.2)


def test_what_is_counted_while_no_thread_can_be_started_is_sent_with_the_next_submission(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    now = time.time()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        counting.count(now)
    counting.count(now)
    assert counting.flush(10)
    assert channel.seen == {int(now // HOUR): [2]}


def test_what_is_submitted_in_a_worker_takes_no_room(counting: Sender) -> None:
    item = Submitted(1, time.time(), 1, "live", None, None, None, b"", sender.QUEUE_BYTES)
    sender.in_worker.set()
    try:
        assert all(counting.offer(item.at, 1, item, item.size) for _ in range(3))
    finally:
        sender.in_worker.clear()


def test_what_is_counted_for_an_hour_that_is_over_is_added_to_its_counts(
    counting: Sender, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "COUNTS_EVERY", 0.0)
    channel.first = lambda: counting.count(OLD)
    counting.count(OLD)
    assert counting.flush(10)
    assert counting.flush(10)
    assert channel.seen == {100: [1, 2]}  # not one and one, of which the second would say less than the first


def test_only_hours_whose_counts_have_changed_are_sent_again(counting: Sender, channel: Channel) -> None:
    counting.count(OLD)
    counting.count(OLD + HOUR)
    assert counting.flush(10)
    counting.count(OLD + HOUR)
    assert counting.flush(10)
    assert channel.seen == {100: [1], 101: [1, 2]}


def test_what_interrupts_a_submission_may_submit_and_close(counting: Sender, channel: Channel) -> None:
    """A signal handler, or a finalizer, runs while its own thread holds the lock."""
    now, hour = time.time(), int(time.time() // HOUR)
    closed: list[bool] = []

    def interrupt() -> None:
        with counting._lock:  # pyright: ignore[reportPrivateUsage]
            counting.count(now)
            closed.append(counting.close(1))

    started = time.monotonic()
    for _ in range(2):
        counting.count(now)
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        thread.join(5)
    assert closed == [True, True]
    assert time.monotonic() - started < 2
    assert channel.seen[hour][-1] == 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_a_signal_handler_that_submits_never_stops_the_application() -> None:
    program = """
import faulthandler, os, signal, time
from evalstone.live.frames import Settings
from evalstone.live.sender import Sender
from tests.live.test_sender import Channel

faulthandler.dump_traceback_later(20, exit=True)
channel = Channel()
sender = Sender(Settings(stream="s", owner="", scorers=("x",), judge=None), 10, lambda _: channel)
now, counted = time.time(), 0

def handle(*_):
    global counted
    counted += 1
    sender.count(now)

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
until = time.monotonic() + 0.5
own = 0
while time.monotonic() < until:
    sender.count(now)
    own += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert sender.close(5)
assert channel.seen[int(now // 3600)][-1] == own + counted, (own, counted, channel.seen)
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 0, ended.stderr

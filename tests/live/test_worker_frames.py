"""The worker by its frames: as a process over pipes, and as a thread."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
from evalstone.live import frames, sender
from evalstone.live.frames import Frame, HourCounts, Reply, Settings
from evalstone.live.sender import ChannelLost, ProcessChannel
from evalstone.live.worker import ThreadChannel
from tests.live import scoring as own
from tests.live.test_flush import Worker, item, worker

pytestmark = pytest.mark.slow

__all__ = ["worker"]


class Process(ProcessChannel):
    """A worker in a process that ends with its test."""

    def __init__(self, settings: bytes) -> None:
        super().__init__(settings)
        self.process: Any = self._process
        self.to, self.replies = self._to, self._from

    def frame(self, *args: Any, **values: Any) -> Reply:
        return self.send(pickle.dumps(Frame(*args, **values)))


@pytest.fixture
def opened() -> Generator[list[Process]]:
    """The processes of a test."""
    made: list[Process] = []
    yield made
    for each in made:
        each.kill()
        each.end(20)


def process(opened: list[Process], settings: Settings) -> Process:
    opened.append(Process(frames.portable(settings)))
    opened[-1].open()
    return opened[-1]


def counts(hour: int, number: int) -> HourCounts:
    return HourCounts(hour, number, 0, (0, 0), (0, number))


def test_a_frame_is_in_the_ledger_when_it_is_answered(worker: Worker, opened: list[Process]) -> None:
    going = process(opened, worker.settings("1-a", own.endless))
    reply = going.frame(1, [counts(7, 1)], [item(1)])
    assert (reply.settled, reply.accepts > 0) == (0, True)
    assert worker.states() == ["pending"]
    with Ledger(worker.ledger) as ledger:
        (known,), _ = rows.counts(ledger, "s", None)
    assert (known.owner, known.hour, known.seen, known.accepted) == ("1-a", 7, 1, 1)


def test_the_last_frame_is_answered_once_its_seconds_are_over_and_the_worker_ends_with_its_pipe(
    worker: Worker, opened: list[Process]
) -> None:
    going = process(opened, worker.settings("1-a", own.endless))
    going.frame(1, [], [item(1)])
    began = time.monotonic()
    assert going.frame(2, end=0.0).settled == 0
    assert time.monotonic() - began < 4  # and not LAST_SECONDS
    going.to.close()
    assert going.process.wait(4) == 0
    assert worker.states() == ["pending"]


def test_seconds_that_the_last_frame_has_waited_are_not_waited_for_again(worker: Worker, opened: list[Process]) -> None:
    going = process(opened, worker.settings("1-a", own.endless))
    going.frame(1, [], [item(1)])
    going.frame(2, end=6.0)
    going.to.close()
    assert going.process.wait(5) == 0


def test_the_last_frame_leaves_time_for_what_is_being_scored(worker: Worker, opened: list[Process]) -> None:
    going = process(opened, worker.settings("1-a", own.steady))
    going.frame(1, [], [item(1)])
    assert going.frame(2, end=20.0).settled == 2
    assert worker.states() == ["score"]


def test_without_a_last_frame_what_was_accepted_is_scored_though_nobody_reads_replies(
    worker: Worker, opened: list[Process]
) -> None:
    going = process(opened, worker.settings("1-a", own.steady))
    going.replies.close()
    frames.write(going.to, pickle.dumps(Frame(1, [], [item(1)])))
    going.to.close()
    assert going.process.wait(20) == 0
    assert worker.states() == ["score"]


def test_a_frame_that_can_not_be_read_ends_the_worker_with_the_reason(
    worker: Worker, opened: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LAST_SECONDS", 60.0)
    going = process(opened, worker.settings("1-a", own.worker))
    with pytest.raises(ChannelLost, match="failed: ValueError: frame"):
        going.send(pickle.dumps(own.Refused("frame")))
    assert going.process.returncode == 0


def test_settings_that_can_not_be_read_are_the_reason_without_their_secrets(opened: list[Process]) -> None:
    opened.append(Process(pickle.dumps(([], pickle.dumps(own.Refused("postgresql://u:hunter2@host/db"))))))
    with pytest.raises(ChannelLost, match="failed: ValueError: postgresql://") as raised:
        opened[-1].open()
    assert "hunter2" not in str(raised.value)


def test_scorers_neither_read_frames_nor_write_replies(worker: Worker, opened: list[Process]) -> None:
    for scorer in (own.reads_input, own.worker):  # the second one prints
        going = process(opened, worker.settings("1-a", scorer))
        going.frame(1, [], [item(len(opened))])
        assert going.frame(2, end=20.0).settled == 2
    with Ledger(worker.ledger) as ledger:
        assert [row.value for row in rows.scores(ledger)] == [1.0, 1.0]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "evalstone-live-worker"]


def test_a_worker_in_a_thread_leaves_time_for_what_is_being_scored_and_ends(worker: Worker) -> None:
    channel = ThreadChannel(worker.settings("1-a", own.steady))
    channel.open()
    assert channel.send(pickle.dumps(Frame(1, [], [item(1)]))).settled == 0
    assert channel.send(pickle.dumps(Frame(2, end=20.0))).settled == 2
    assert worker.states() == ["score"]
    channel.end(20)
    assert threads() == []
    channel.end(20)  # which is already over


def test_a_worker_in_a_thread_that_can_not_open_its_ledger_says_so_and_ends(worker: Worker) -> None:
    worker.ledger = "sqlite:////dev/null/none.db"
    channel = ThreadChannel(worker.settings("1-a", own.worker))
    with pytest.raises(ChannelLost, match="ConfigError: the ledger"):
        channel.open()
    assert threads() == []


def test_a_worker_in_a_thread_whose_frame_can_not_be_written_ends(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    channel = ThreadChannel(worker.settings("1-a", own.worker))
    channel.open()
    monkeypatch.setattr(rows, "write_frame", full)
    with pytest.raises(ChannelLost, match="disk full"):
        channel.send(pickle.dumps(Frame(1, [], [item(1)])))
    assert threads() == []

"""The application's side of live scoring: counts, a bounded queue, and a thread that sends both to the worker.

A request only counts the submission and, if it is sampled, takes a snapshot. The thread mostly waits for the worker.
Queued samples are counted when they are sent, so samples that are in memory when the process dies are in no number.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import secrets
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any, Protocol

from evalstone._core.display import safe
from evalstone._core.redaction import masked
from evalstone.errors import described
from evalstone.ledger.base import HOUR
from evalstone.live import frames
from evalstone.live.frames import Frame, HourCounts, Reply, Settings, Submitted

BATCH = 64
"""The most samples in a frame."""
GATHER, COUNTS_EVERY = 0.05, 1.0
"""Seconds between two frames, and between two with counts only."""
POLL = 0.01
"""Seconds between two frames during a `flush`."""
LOOK_EVERY = 10.0
"""Seconds between two checks that the worker is alive, while nothing is submitted."""
QUEUE_BYTES = 64_000_000
FIRST_PAUSE, MAX_PAUSE = 0.2, 30.0
"""Seconds before a worker is started again."""
DRAIN = 1.0
"""Seconds after the deadline of `close` in which queued samples can still become pending in the ledger."""
LAST_SECONDS = 2.0
"""Seconds for the worker to exit after its deadline."""
LOGGED = 500
"""The most characters of a logged message."""
log = logging.getLogger("evalstone.live")
in_worker = threading.Event()
"""Set in a worker process. A module with a scorer may create a `Live`, which does nothing there."""
_WORKER = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"  # Ctrl-C and a service manager signal whole groups of processes:
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"  # the worker ends when the application does
    "hasattr(signal, 'SIGTTOU') and signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"  # what scorers print is no reason
    "sys.path[:] = sys.argv[1:]\n"
    "from evalstone.live.worker import main\n"
    "main()\n"
)


class ChannelLost(Exception):
    """The worker has ended or couldn't be started. The message says why."""


class Channel(Protocol):
    """A connection to a worker."""

    def open(self) -> None:
        """Wait until the worker accepts frames. Raises ChannelLost."""
        ...

    def send(self, frame: bytes) -> Reply:
        """Send a frame and wait until it is durable. Raises ChannelLost."""
        ...

    def end(self, seconds: float) -> None:
        """Wait for the worker to end, and kill it after this many seconds."""
        ...


class ProcessChannel:
    """A worker in a separate process, connected by pipes. It ends when its input pipe is closed."""

    def __init__(self, settings: bytes) -> None:
        self._settings = settings
        pipe = subprocess.PIPE
        start = [sys.executable, "-c", _WORKER, *sys.path]
        with _starting:
            try:
                # Unbuffered: a forked child has no half of a frame that it could write. In the application's session:
                # Linux shares processors out among sessions first, and a priority counts only within one.
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    start, stdin=pipe, stdout=pipe, bufsize=0, process_group=0
                )
            except OSError as error:
                raise ChannelLost(f"the worker can't be started: {error}") from None
            self._to: Any = self._process.stdin
            self._from: Any = self._process.stdout
            _channels.add(self)

    def open(self) -> None:
        """Wait until the worker accepts frames."""
        self.send(self._settings)

    def send(self, frame: bytes) -> Reply:
        """Send a frame and wait until it is durable."""
        try:
            frames.write(self._to, frame)
            reply = frames.read(self._from)
        except (OSError, ValueError):
            reply = b""
        if not reply:
            self.end(LAST_SECONDS)
            raise ChannelLost(f"the worker ended with exit code {self._process.returncode}")
        answer: object = pickle.loads(reply)  # noqa: S301 - from our own worker
        if isinstance(answer, str):
            self.end(LAST_SECONDS)
            raise ChannelLost(answer)
        assert isinstance(answer, Reply)  # noqa: S101
        return answer

    def end(self, seconds: float) -> None:
        """Wait for the worker to end, and kill it after this many seconds."""
        _close(self._to)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _close(self._from)

    def kill(self) -> None:
        """Kill the worker, from a thread other than the one that waits for it."""
        self._process.kill()

    def forget(self) -> None:
        """Close the copies of the pipes, so that the worker sees the end of the parent."""
        _close(self._to)
        _close(self._from)
        self._process.returncode = 0  # not this process's child


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # the worker is gone
        pipe.close()


class OncePerKind:
    """The warnings about a stream. Each kind is logged once; warnings without a kind are always logged."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._logged: set[str] = set()

    def warn(self, kind: str | None, text: str) -> None:
        """Log a warning, unless one of its kind was logged."""
        if kind not in self._logged:
            if kind is not None:
                self._logged.add(kind)
            with contextlib.suppress(Exception):  # of the application's handlers
                log.warning("%s", safe(masked(f"{self._stream}: {text}"), LOGGED))


class Sender:
    """The counts, queue and thread of one `Live` in one process. A forked child starts with its own.

    Args:
        settings: For the worker; the owner is added.
        queue: The most samples that can wait.
        connect: Connects to a new worker.
    """

    def __init__(self, settings: Settings, queue: int, connect: Callable[[Settings], Channel]) -> None:
        self._settings, self._limit, self._connect = settings, queue, connect
        self._channel: Channel | None = None
        self.tell = OncePerKind(settings.stream).warn
        self._over = False
        """Whether the interpreter is exiting, so that no worker can be started."""
        self._reset()
        _senders.add(self)

    def _reset(self) -> None:
        self.owner = _new_owner()
        self._lock = threading.RLock()
        """Reentrant: a signal handler or a finalizer may submit or close while its own thread holds the lock. The state
        must be consistent whenever that can happen."""
        self._changes = threading.Condition(self._lock)
        """The only condition to wait for. Waiting releases the lock even if its thread holds it several times."""
        self._queue: deque[tuple[Submitted | Callable[[], Submitted], int]] = deque()
        """The queued samples, each with its size in bytes."""
        self._bytes = 0
        self.numbers = itertools.count(1)
        self._hours: dict[int, _Hour] = {}
        """Since the start: if the clock is set back, an earlier hour continues to count."""
        self._changed = False
        """Whether there are counts that the worker hasn't received."""
        self._thread: threading.Thread | None = None
        self._awake = self._closing = False
        """Whether the thread has something to do, and whether it must end."""
        self._unstarted = ""
        """Why the last attempt to start the thread failed; "" if it didn't."""
        self.queued = self.stored = self._framed = 0
        """How many samples were put into the queue, how many of these are in the ledger, and how many were sent."""
        self._frames = 0
        """The number of the last frame."""
        self._unacknowledged: Frame | None = None
        """The frame to send again to the next worker."""
        self._flushes: list[_Flush] = []
        self._flushed = False
        """Whether everything submitted before `close` is scored."""
        self._filled = self._settled = 0
        """The number of the last frame with samples, and that of the last frame up to which the worker reports that all
        samples have outcomes; negative while another worker has unfinished samples of this owner."""
        self._deadline = 0.0
        """When the worker must end, after a call of `close`."""

    def after_fork(self) -> None:
        """Reset the state in a forked child."""
        self._channel = None
        self._reset()

    def count(self, now: float, *, filtered: bool = False) -> None:
        """Count a submission that isn't scored: it was filtered or declined."""
        with self._lock:
            hour = self._hour(now)
            hour.seen += 1
            hour.filtered += filtered
            self._changed = True
            self._start()
        self._tell_unstarted()

    @property
    def is_full(self) -> bool:
        """Whether the queue is full for a sample of any size."""
        with self._lock:
            return len(self._queue) >= self._limit or self._bytes >= QUEUE_BYTES

    def offer(
        self,
        now: float,
        drawn: int,
        item: Submitted | Callable[[], Submitted],
        size: int,
        *,
        exceeding: bool = False,
    ) -> bool:
        """Put a sampled submission into the queue. If the queue is full, count it as dropped and return False.

        Args:
            now: When it was submitted.
            drawn: How many of the scorers score it.
            item: The submission, or a function that makes it outside the request. Its `drawn` is 0 if it is filtered.
            size: Its size in bytes.
            exceeding: Whether it may be larger than what is left of the queue's bytes.
        """
        with self._lock:
            left = QUEUE_BYTES - self._bytes
            full = len(self._queue) >= self._limit or (left <= 0 if exceeding else size > left)
            if full:
                hour = self._hour(now)
                hour.seen += 1
                hour.dropped[drawn] += 1
                self._changed = True
            else:
                self._queue.append((item, size))
                self.queued += 1
                self._bytes += size
            self._start()
        self._tell_unstarted()
        if full:
            limit = f"{self._limit} samples, or {QUEUE_BYTES // 1_000_000} MB"
            self.tell("queue", f"the queue is full ({limit}); new samples are dropped and counted")
        if self._over:
            self.tell("over", "samples submitted while the interpreter exits are lost")
        return not (full or self._over)

    def start(self) -> None:
        """Start the worker, which also takes over the samples of dead workers."""
        with self._lock:
            self._changed = True
            self._start()
        self._tell_unstarted()

    def flush(self, timeout: float) -> bool:
        """Wait until everything submitted so far is scored; False if that takes longer, or the worker ends first."""
        with self._changes:
            if in_worker.is_set() or (self._thread is None and not self._is_unfinished()):
                return True
            flush = _Flush(self.queued)
            self._flushes.append(flush)
            self._start()
            self._changes.notify_all()
            self._changes.wait_for(lambda: flush.scored is not None, timeout)
            self._flushes.remove(flush)
            return bool(flush.scored)

    def close(self, timeout: float) -> bool:
        """Wait like `flush`, leave unfinished samples pending, and end the worker."""
        end = time.monotonic() + timeout
        with self._lock:
            unfinished = self._is_unfinished()
            if self._thread is None and self._has_work():
                self._start()  # for samples that no worker has accepted
            thread = self._thread
            if thread is None:
                return not unfinished
        done = self.flush(timeout)
        with self._changes:
            if self._thread is thread:  # no other call has ended it
                self._deadline, self._flushed = end, done
                self._closing = self._awake = True
                self._changes.notify_all()
        ended = self._ends(thread, max(0.0, end - time.monotonic()) + LAST_SECONDS)
        if not ended and isinstance(self._channel, ProcessChannel):
            self._channel.kill()
            ended = self._ends(thread, LAST_SECONDS)
        if not ended:
            self._say_lost()
        return done

    def exit(self, timeout: float) -> None:
        """Close for the last time, when the interpreter exits. Samples left by an earlier `close` start no worker."""
        if self._thread is not None:
            self.close(timeout)
        self._over = True

    def _ends(self, thread: threading.Thread, seconds: float) -> bool:
        """Whether the thread ends within this many seconds."""
        with self._changes:
            ended = self._changes.wait_for(lambda: self._thread is not thread, seconds)
        if ended:
            thread.join(LAST_SECONDS)
        return ended

    def _hour(self, now: float) -> _Hour:
        hour = int(now // HOUR)
        found = self._hours.get(hour)
        if found is None:
            found = self._hours.setdefault(hour, _Hour(len(self._settings.scorers) + 1))
        found.changed = True
        return found

    def _tell_unstarted(self) -> None:
        if why := self._unstarted:  # logged without the lock, because a log handler may submit something
            self.tell("thread", f"can't start a thread, so samples wait in the queue: {why}")

    def _start(self) -> None:
        if self._awake:
            return
        if in_worker.is_set() or self._over:
            self._queue.clear()
            self._bytes, self._changed = 0, False
            return
        self._awake, self._unstarted = True, ""
        if self._thread is None:
            try:
                thread = threading.Thread(target=self._serve, name="evalstone-live", daemon=True)
                thread.start()
            except RuntimeError as error:  # the next submission tries again
                self._awake, self._unstarted = False, described(error)
                return
            except BaseException:
                self._awake = False
                raise
            self._thread = thread
        self._changes.notify_all()

    def _serve(self) -> None:
        """The thread: send counts and samples until `close`."""
        pause, sent = 0.0, 0.0
        accepted: int | None = None
        while True:
            with self._changes:
                looking = not self._changes.wait_for(lambda: self._awake, LOOK_EVERY)
                hurried = not self._closing and self._changes.wait_for(lambda: self._closing or self._flushes, GATHER)
            if hurried:
                time.sleep(POLL)
            with self._changes:
                closing = self._changes.wait_for(lambda: self._closing, pause)
            if closing:
                time.sleep(min(pause, FIRST_PAUSE))
            try:
                channel = self._opened()
                accepted = BATCH if accepted is None else accepted
                if self._unacknowledged is None:
                    counts_too = closing or time.monotonic() - sent > COUNTS_EVERY
                    self._unacknowledged = self._frame(
                        BATCH if closing else min(accepted, BATCH), counts_too=counts_too
                    )
                frame = self._unacknowledged
                # An empty frame asks for the worker's progress, and whether it is alive.
                if looking or frame.counts or frame.submitted or self._flushes or self._queue:
                    accepted, settled = channel.send(pickle.dumps(frame, protocol=5))
                    self.stored = self._framed
                    self._acknowledged(settled)
                    sent = time.monotonic() if looking or frame.counts else sent
                self._unacknowledged, pause = None, 0.0
            except ChannelLost as lost:
                self._channel, accepted = None, None
                pause = min(max(2 * pause, FIRST_PAUSE), MAX_PAUSE)
                self.tell("worker", f"{lost}; it is restarted")
            except BaseException as error:  # noqa: BLE001 - or this thread would never be replaced
                pause = min(max(2 * pause, FIRST_PAUSE), MAX_PAUSE)
                self.tell("sender", described(error))
            if self._closing:
                done = self._unacknowledged is None and (self._flushed or not self._queue)
                more = 0.0 if self._unacknowledged is not None or self._channel is None else DRAIN
                if done or time.monotonic() > self._deadline + more:
                    self._end()
                    return
            self._rest()

    def _opened(self) -> Channel:
        if self._channel is not None:
            return self._channel
        # Assigned before it is open, so that `close` can end it if it hangs.
        channel = self._channel = self._connect(replace(self._settings, owner=self.owner))
        try:
            channel.open()
        except BaseException:
            self._channel = None
            raise
        return channel

    def _frame(self, most: int, *, counts_too: bool) -> Frame:
        submitted: list[Submitted] = []
        with self._lock:
            some = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        for item, size in some:
            made = item if isinstance(item, Submitted) else item()
            with self._lock:
                self._bytes -= size
                hour = self._hour(made.at)
                hour.seen += 1
                hour.filtered += not made.drawn
                hour.accepted[made.drawn] += 1
                self._changed = True
            if made.drawn:
                submitted.append(made)
        counts: list[HourCounts] = []
        with self._lock:
            self._frames += 1
            if submitted:
                self._filled = self._frames
            if submitted or ((counts_too or self._flushes) and self._changed):
                self._changed = False
                for at, hour in list(self._hours.items()):
                    if hour.changed:
                        hour.changed = False
                        counts.append(hour.counts(at))
            self._framed = self.queued - len(self._queue)
            for flush in self._flushes:
                if flush.frame is None and flush.target <= self._framed:
                    flush.frame = self._frames
        return Frame(self._frames, counts, submitted)

    def _acknowledged(self, settled: int) -> None:
        with self._changes:
            self._settled = settled
            for flush in self._flushes:
                if flush.frame is not None and flush.frame <= settled:
                    flush.scored = True
            self._changes.notify_all()

    def _has_work(self) -> bool:
        return bool(self._queue or self._changed or self._unacknowledged)

    def _is_unfinished(self) -> bool:
        """Whether a sample has no outcome, or a count isn't in the ledger, according to the last worker."""
        return self._has_work() or self._settled < self._filled

    def _rest(self) -> None:
        """Let the thread sleep until the next submission, if there is nothing to do."""
        with self._lock:
            if not (self._has_work() or self._flushes or self._closing):
                self._awake = False

    def _end(self) -> None:
        """End the worker and this thread. The next submission starts both again, even one during this call."""
        channel, self._channel = self._channel, None
        self._frames += 1
        late = bool(self._queue) and not self._flushed
        """Whether there was too little time for the queued samples."""
        if channel is not None:
            left = max(0.0, self._deadline - time.monotonic())
            try:
                ending = Frame(self._frames, end=left)
                self._acknowledged(channel.send(pickle.dumps(ending, protocol=5)).settled)
            except ChannelLost:  # unfinished samples are pending
                pass
            except BaseException as error:  # noqa: BLE001 - likewise
                self.tell("sender", described(error))
            channel.end(left + LAST_SECONDS)
        with self._changes:
            self._thread, self._flushed, self._awake, self._closing = None, False, False, False
            undelivered = channel is None or self._unacknowledged is not None or late
            again = self._has_work() and not undelivered  # submitted since
            lost = 0 if again else self._lost
            if again:
                with contextlib.suppress(RuntimeError):  # the interpreter is exiting
                    self._start()
            else:
                for flush in self._flushes:
                    flush.scored = not self._is_unfinished()
            self._changes.notify_all()
        self._say(lost)

    @property
    def _lost(self) -> int:
        """The number of samples that no worker has accepted."""
        return len(self._queue) + (0 if self._unacknowledged is None else len(self._unacknowledged.submitted))

    def _say_lost(self) -> None:
        with self._lock:
            lost = self._lost
        self._say(lost)

    def _say(self, lost: int) -> None:
        if lost:
            samples = "1 sample was" if lost == 1 else f"{lost} samples were"
            self.tell(None, f"{samples} not accepted by a worker, and lost if the application exits now")


class _Flush:
    """A call of `flush`."""

    __slots__ = ("frame", "scored", "target")

    def __init__(self, target: int) -> None:
        self.target = target
        """How many samples had been put into the queue before the call."""
        self.frame: int | None = None
        """The number of the frame with the last of them, and all counts."""
        self.scored: bool | None = None


def _new_owner() -> str:
    return f"{os.getpid()}-{secrets.token_hex(8)}"


class _Hour:
    """The counts of an hour."""

    __slots__ = ("accepted", "changed", "dropped", "filtered", "seen")

    def __init__(self, kinds: int) -> None:
        self.seen = self.filtered = 0
        self.dropped, self.accepted = [0] * kinds, [0] * kinds
        self.changed = True

    def counts(self, hour: int) -> HourCounts:
        return HourCounts(hour, self.seen, self.filtered, tuple(self.dropped), tuple(self.accepted))


_senders: weakref.WeakSet[Sender] = weakref.WeakSet()
_channels: weakref.WeakSet[ProcessChannel] = weakref.WeakSet()
_starting = threading.RLock()
"""Held while a worker is started, because a child that is forked in the meantime would keep its pipe open. Reentrant,
because the thread that starts the worker may fork to do so, as with gevent."""


def _after_fork() -> None:
    _starting.release()
    for channel in list(_channels):
        channel.forget()
    _channels.clear()
    for sender in list(_senders):
        sender.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_after_fork)

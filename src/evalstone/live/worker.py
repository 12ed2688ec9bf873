"""The worker of live scoring: a separate process, so that its computation doesn't slow down requests, or a thread."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import pickle
import select
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import IO, Any, TypeVar

from evalstone._core.redaction import masked
from evalstone.errors import described, error_text
from evalstone.live import frames
from evalstone.live.frames import Frame, Reply, Settings
from evalstone.live.scoring import Scoring
from evalstone.live.sender import ChannelLost, in_worker

LAST_SECONDS = 5.0
"""Seconds to finish accepted samples after the application has ended."""
GRACE = 2.0
"""Seconds after these until the worker exits, even if it hangs."""
NICENESS, LOWEST = 10, 19

T = TypeVar("T")


def main() -> None:
    """Score the frames on standard input until it ends. What scorers print goes to standard error."""
    source, replies = (os.fdopen(os.dup(number), mode, buffering=0) for number, mode in ((0, "rb"), (1, "wb")))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    if hasattr(os, "nice"):
        os.nice(NICENESS)  # requests come first
    in_worker.set()
    threading.Thread(target=_end_with, args=(source.fileno(),), name="evalstone-live-end", daemon=True).start()
    try:
        settings: Settings = frames.received(frames.read(source))
        if settings.priority == "idle":
            _become_idle()
        asyncio.run(_serve(settings, source, replies))
    except BaseException as error:  # noqa: BLE001 - logged by the application
        try:
            frames.write(replies, pickle.dumps(f"the worker failed: {masked(error_text(error))}"))
        except OSError:  # the application is gone
            sys.exit(1)


def _become_idle() -> None:
    """Run this thread, and those that it starts, only on an idle CPU from now on."""
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif hasattr(os, "nice"):
        os.nice(LOWEST)


def _end_with(pipe: int) -> None:
    """End this process soon after the application ends, even if a scorer or its import hangs."""
    if hasattr(select, "poll"):
        ended = select.poll()
        ended.register(pipe, 0)  # a hang-up is always reported
        ended.poll()
        time.sleep(LAST_SECONDS + GRACE)
        os._exit(1)


async def _serve(settings: Settings, source: IO[bytes], replies: IO[bytes]) -> None:
    async with Scoring(settings) as scoring:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        seconds = LAST_SECONDS
        failure: BaseException | None = None

        def read() -> None:
            nonlocal seconds, failure
            try:
                frames.write(replies, pickle.dumps(Reply(0, 0)))  # ready
                while data := frames.read(source):
                    frame: Frame = pickle.loads(data)  # noqa: S301 - from our own application
                    if frame.end is not None:
                        seconds = frame.end
                        begun(loop, functools.partial(scoring.finish, seconds)).result()
                        seconds = 0.0
                    reply = begun(loop, functools.partial(scoring.accept, frame)).result()
                    frames.write(replies, pickle.dumps(reply))
            except OSError:  # the application is gone
                pass
            except BaseException as error:  # noqa: BLE001 - raised below
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: scoring had ended before
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=read, name="evalstone-live-frames", daemon=True).start()
        waiting = asyncio.ensure_future(ended.wait())
        await asyncio.wait((waiting, scoring.broken), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if scoring.broken.done():
            scoring.broken.result()
        if failure is not None:
            raise failure
        await scoring.finish(seconds)


def begun(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
    """Begin work in the loop of another thread. Its result never comes if the loop ends first.

    Then no coroutine was made, either: `run_coroutine_threadsafe` takes one, and if the loop doesn't get to it, Python
    complains that it was never awaited.

    Raises:
        RuntimeError: The loop is closed.
    """
    result = Future[T]()

    def settle(task: asyncio.Future[T]) -> None:
        if task.cancelled():
            result.cancel()
        elif (error := task.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(task.result())

    loop.call_soon_threadsafe(lambda: asyncio.ensure_future(work()).add_done_callback(settle))
    return result


class ThreadChannel:
    """A worker in a thread of this process, with its own event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Scoring] = Future()
        self._ended: Future[Any] = Future()
        """Done once the loop is closed. Has the error that ended it."""
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="evalstone-live-worker", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._loop.close()
            raise ChannelLost(f"the worker can't be started: {described(error)}") from None

    def open(self) -> None:
        """Wait until the ledger is open."""
        self._scoring = self._result(self._ready)

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._score())
        except BaseException as error:  # noqa: BLE001 - raised where a result is awaited
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _score(self) -> None:
        async with Scoring(self._settings) as scoring:
            self._ready.set_result(scoring)
            await self._over.wait()

    def send(self, frame: bytes) -> Reply:
        """Send a frame and wait until it is durable."""
        sent: Frame = pickle.loads(frame)  # noqa: S301 - our own
        if sent.end is not None:
            self._done(functools.partial(self._scoring.finish, sent.end))
        return self._done(functools.partial(self._scoring.accept, sent))

    def _done(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            future = begun(self._loop, work)
        except RuntimeError:  # the loop is closed
            future = Future[T]()
        return self._result(future)

    def _result(self, future: Future[T]) -> T:
        wait((future, self._ended), return_when=FIRST_COMPLETED)
        try:
            if not future.done():
                self._ended.result()
            return future.result(0)
        except BaseException as error:  # noqa: BLE001 - logged by the sender
            self.end(LAST_SECONDS)
            raise ChannelLost(f"the worker failed: {described(error)}") from None

    def end(self, seconds: float) -> None:
        """End the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(seconds)

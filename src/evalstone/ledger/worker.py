"""The thread on which a ledger does its work, one piece after the other."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_Piece = Callable[[], None]


class Worker:
    """A thread of its own for pieces of work.

    Not a ThreadPoolExecutor: that refuses all work once the main thread has ended, when a run on another thread may
    still be under way, and would wait for its answers' being written for ever. This one does its work as long as there
    is anyone to ask for it, and keeps no process from ending.
    """

    def __init__(self, name: str) -> None:
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work_off, args=(self._pieces,), name=name, daemon=True)
        self._started = False
        # The thread must not outlive a worker that nobody closed.
        weakref.finalize(self, self._pieces.put, None).atexit = False

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a piece of work done after those that were submitted before. Its result, or its error, is the future's;
        a future that is cancelled before its turn is passed over."""
        if not self._started:
            self._started = True
            self._thread.start()
        future: Future[T] = Future()
        self._pieces.put(functools.partial(_settle, future, functools.partial(work, *args, **kwargs)))
        return future

    def close(self) -> None:
        """End the thread as soon as what was submitted is done; does not wait for that."""
        self._pieces.put(None)


def done_here(work: Callable[[], T]) -> Future[T]:
    """What a piece of work came to, done on the caller's own thread."""
    future: Future[T] = Future()
    _settle(future, work)
    return future


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
        future.set_exception(error)
    else:
        future.set_result(result)


def _work_off(pieces: SimpleQueue[Any]) -> None:
    while (piece := pieces.get()) is not None:
        piece()
        del piece  # what it holds is not to be kept until the next one comes

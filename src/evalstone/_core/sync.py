"""The one place where synchronous code meets asynchronous code.

`call` runs a user's function without blocking the event loop: a plain one in a thread. In the other direction, one
daemon thread owns one event loop for the life of the process; `run` submits to it and waits. So the same call works in
a script, under pytest, and inside a notebook whose own loop is running. The caller's context variables follow; Ctrl-C,
or any other error that a signal raises in the caller, cancels the work and waits for it to end cleanly; a forked child
starts a loop and threads of its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, cast

from evalstone.errors import ConfigError

T = TypeVar("T")
P = ParamSpec("P")


class _Loop:
    """An event loop on a daemon thread of its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="evalstone-loop", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            # SystemExit and KeyboardInterrupt of the work reach its caller by its task; they must not end the loop
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


THREADS = 32
_lock = threading.Lock()
_current: list[_Loop] = []
_threads: list[concurrent.futures.ThreadPoolExecutor] = []


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _current.clear()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _loop() -> _Loop:
    with _lock:
        if not _current:
            _current.append(_Loop())
        return _current[0]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns, from any thread, with or without a running loop.

    Raises ConfigError when called from evalstone's own loop, where waiting would never end: use `await` there.
    """
    if not asyncio.iscoroutine(work):
        raise ConfigError(f"a coroutine was expected, not {type(work).__name__}: call the async function first")
    owner = _loop()
    if threading.current_thread() is owner.thread:
        work.close()
        raise ConfigError("called from evalstone's own event loop; use the async form (aevaluate, ascore) and await it")
    done: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[T]] = []

    def start() -> None:
        task = context.run(owner.loop.create_task, work)
        tasks.append(task)
        task.add_done_callback(finish)

    def finish(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            done.cancel()
            done.set_running_or_notify_cancel()  # without it, nobody who waits is told
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

    owner.loop.call_soon_threadsafe(start)
    try:
        return done.result()
    except BaseException:
        # The work's own error, or one that a signal raised here: Ctrl-C, an alarm, a time limit of pytest or Celery.
        if not done.done():
            owner.loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            concurrent.futures.wait([done])
        raise


async def call(function: Callable[..., T | Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """The result of a user's function: an async one is awaited, a plain one runs in one of 32 threads.

    The context variables follow. Raises what the function raises; StopIteration, which no future can carry, as
    RuntimeError.
    """
    method: Any = getattr(type(function), "__call__", None)  # noqa: B004 - of an object that is called like a function
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method):
        return await cast("Awaitable[T]", function(*args, **kwargs))
    with _lock:
        if not _threads:
            _threads.append(concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="evalstone"))
    context = contextvars.copy_context()

    def work() -> T | Awaitable[T]:
        try:
            return context.run(function, *args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"{getattr(function, '__qualname__', function)} raised StopIteration") from error

    result = await asyncio.get_running_loop().run_in_executor(_threads[0], work)
    return await cast("Awaitable[T]", result) if inspect.isawaitable(result) else cast("T", result)


def blocking(asynchronous: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The synchronous form of an asynchronous function: same arguments, and it waits."""

    @functools.wraps(asynchronous)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(asynchronous(*args, **kwargs))

    call.__name__ = call.__qualname__ = asynchronous.__name__.removeprefix("a")
    call.__doc__ = f"The synchronous form of `{asynchronous.__name__}`, usable anywhere.\n\n{asynchronous.__doc__}"
    return call

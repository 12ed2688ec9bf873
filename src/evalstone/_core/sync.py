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
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar, cast

from evalstone.errors import ConfigError

T = TypeVar("T")
P = ParamSpec("P")


class Worker:
    """Daemon threads that run functions: one by default, which runs them in order; None for as many as there are
    functions at a time, so that each starts at once.

    A ThreadPoolExecutor refuses work once the main thread has ended, while a run on another thread may still be under
    way and would wait forever for its answers to be stored. A Worker lives as long as its owner.
    """

    def __init__(self, name: str, threads: int | None = 1) -> None:
        self._queue: SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._name, self._threads = name, threads
        self._started = 0
        self._starting = threading.RLock()  # a signal handler may submit while its thread starts one
        self._idle = threading.Semaphore(0)
        self.close = weakref.finalize(self, self._queue.put, None)
        """Ends the threads once all submitted work is done; doesn't wait for that. Runs when the worker is dropped."""
        self.close.atexit = False

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        """Run a function after those submitted before. A future that is canceled before its turn is skipped.

        Raises RuntimeError if the process can't start a thread that the function needs: if no thread is idle, or, with
        a fixed number of threads, if none has been started yet.
        """
        if self._threads is None:
            if not self._idle.acquire(blocking=False):
                self._start()
        else:
            with self._starting:
                if self._started < self._threads:
                    self._start_another()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._queue.put((future, functools.partial(work, *args, **kwargs)))
        return future

    def _start_another(self) -> None:
        self._started += 1
        try:
            self._start()
        except RuntimeError:
            self._started -= 1
            if not self._started:
                raise

    def _start(self) -> None:
        threading.Thread(target=_work_off, args=(self._queue, self._idle), name=self._name, daemon=True).start()


def _work_off(
    queue: SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None], idle: threading.Semaphore
) -> None:
    while (item := queue.get()) is not None:
        future, work = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                future.set_exception(error)
        idle.release()
        del item, future, work  # don't keep its arguments alive until the next function arrives
    queue.put(None)  # for the other threads


class _Loop:
    """An event loop on its own daemon thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="evalstone-loop", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.loop.close()
            raise

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            # SystemExit and KeyboardInterrupt of the work reach its caller by its task; they must not end the loop
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


THREADS = 32
STEP = 0.1
"""The most seconds that a signal waits for its handler."""
_lock = threading.Lock()
_current: list[_Loop] = []
_threads: dict[int | None, Worker] = {}
"""The shared workers, by their number of threads."""


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


def is_own_thread() -> bool:
    """Whether this is the thread of evalstone's own loop."""
    return any(loop.thread is threading.current_thread() for loop in _current)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns, from any thread, with or without a running loop.

    Raises ConfigError when called from evalstone's own loop, where waiting would never end: use `await` there.
    """
    done, cancel = start(work)
    try:
        _wait_for(done)
        return done.result()
    except BaseException:
        # The work's own error, or one that a signal raised here: Ctrl-C, an alarm, a time limit of pytest or Celery.
        cancel()
        raise


def _wait_for(done: concurrent.futures.Future[Any]) -> None:
    """Wait until a future is done, in steps: on Windows, Ctrl-C doesn't interrupt a thread that waits."""
    while not concurrent.futures.wait([done], STEP).done:
        pass


def start(work: Coroutine[Any, Any, T]) -> tuple[concurrent.futures.Future[T], Callable[[], None]]:
    """Begin a coroutine on evalstone's loop. Returns the future of its result, and a function that cancels it unless it
    has ended, and waits for its end.

    Raises ConfigError when called from evalstone's own loop.
    """
    if not asyncio.iscoroutine(work):
        raise ConfigError(f"a coroutine was expected, not {type(work).__name__}: call the async function first")
    try:
        owner = _loop()
    except RuntimeError:
        work.close()
        raise
    if threading.current_thread() is owner.thread:
        work.close()
        raise ConfigError("called from evalstone's own event loop; use the async form (aevaluate, ascore) and await it")
    done: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        task = context.run(owner.loop.create_task, work)
        tasks.append(task)
        task.add_done_callback(finish)

    def finish(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            done.cancel()
            done.set_running_or_notify_cancel()  # otherwise nobody who waits is notified
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

    def cancel() -> None:
        if not done.done():
            owner.loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            _wait_for(done)

    owner.loop.call_soon_threadsafe(begin)
    return done, cancel


def is_being_cancelled() -> bool:
    """Whether the current task is being cancelled. If it isn't, a CancelledError that it catches was raised by
    something that it awaited, and is an error like any other. True outside of a task, where this can't be known."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def cancel_all(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until all of them have ended. Their errors are not raised."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def is_async(function: object) -> bool:
    """Whether calling this, a function or an object that is called like one, gives a coroutine."""
    return _is_kind(inspect.iscoroutinefunction, function)


def is_generator(function: object) -> bool:
    """Whether calling this, a function or an object that is called like one, gives a generator."""
    return _is_kind(inspect.isgeneratorfunction, function)


def is_async_generator(function: object) -> bool:
    """Whether calling this, a function or an object that is called like one, gives an async generator."""
    return _is_kind(inspect.isasyncgenfunction, function)


def _is_kind(kind: Callable[[object], bool], function: object) -> bool:
    method: Any = getattr(type(function), "__call__", None)  # noqa: B004 - of an object that is called like a function
    return kind(function) or kind(method)


def name_of(function: object) -> str:
    """The name of a function, of that in a partial one, or of the class of an object that is called like one."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


async def call(function: Callable[..., T | Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """The result of a user's function: an async one is awaited, a plain one runs in one of 32 threads.

    The context variables follow. Raises what the function raises; what is no Exception and would end the process, such
    as SystemExit, as RuntimeError, and so is StopIteration, which no future can carry.
    """
    if is_async(function):
        return await _awaited(function, cast("Awaitable[T]", function(*args, **kwargs)))
    return await _called(THREADS, function, *args, **kwargs)


async def call_at_once(function: Callable[..., T | Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """`call`, where a plain function never waits for a thread: others that are slow, or never return, don't keep it
    from starting."""
    if is_async(function):
        return await call(function, *args, **kwargs)
    return await _called(None, function, *args, **kwargs)


async def call_in_turn(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`call` of a plain function that computes, in the one thread for these: several threads would need the memory of
    several calls and be no faster."""
    return await _called(1, function, *args, **kwargs)


def worker(threads: int | None) -> Worker:
    """The process's threads of this number, which a forked child starts anew."""
    with _lock:
        if threads not in _threads:
            _threads[threads] = Worker("evalstone", threads)
        return _threads[threads]


async def _called(threads: int | None, function: Callable[..., T | Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    context = contextvars.copy_context()

    def work() -> T | Awaitable[T]:
        try:
            return context.run(function, *args, **kwargs)
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            raise ordinary(function, error) from error

    future = worker(threads).submit(work)
    with contextlib.suppress(TimeoutError):  # a copy of the function's own, without its traceback
        await asyncio.wrap_future(future)
    result = future.result()
    return await _awaited(function, cast("Awaitable[T]", result)) if inspect.isawaitable(result) else cast("T", result)


async def _awaited(function: object, result: Awaitable[T]) -> T:
    try:
        return await result
    except (Exception, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        if threading.current_thread() is threading.main_thread():
            raise  # it may be a signal's
        raise ordinary(function, error) from error


def ordinary(function: object, error: BaseException) -> RuntimeError:
    """The error to raise instead of one that would end more than the call, such as SystemExit."""
    text = f"{name_of(function)} raised {type(error).__name__}"
    return RuntimeError(f"{text}: {error}" if str(error) else text).with_traceback(error.__traceback__)


def blocking(asynchronous: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The synchronous form of an asynchronous function: same arguments, and it waits."""

    @functools.wraps(asynchronous)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            work = asynchronous(*args, **kwargs)
        except TypeError as error:  # arguments that it doesn't take, said of the name that was called
            text, own = str(error), f"{asynchronous.__qualname__}()"
            if not text.startswith(own):
                raise
            raise TypeError(f"{call.__qualname__}(){text.removeprefix(own)}") from None
        return run(work)

    call.__name__ = call.__qualname__ = asynchronous.__name__.removeprefix("a")
    text = inspect.cleandoc(asynchronous.__doc__ or "").replace(f"await {asynchronous.__name__}(", f"{call.__name__}(")
    summary, _, rest = text.partition("\n")
    said = f"It waits, also in a notebook. In asynchronous code, await `{asynchronous.__name__}`."
    call.__doc__ = f"{summary}\n\n{said}\n{rest}"
    return call

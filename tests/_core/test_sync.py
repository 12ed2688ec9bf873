from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import os
import signal
import sys
import threading
import time
from typing import Any

import pytest

from evalstone._core import sync
from evalstone._core.sync import blocking, run
from evalstone.errors import ConfigError, ReplyError
from tests.fakes import python

colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


async def double(number: int, *, slowly: bool = False) -> int:
    """Twice the number."""
    await asyncio.sleep(0.01 if slowly else 0)
    return 2 * number


async def where() -> threading.Thread:
    return threading.current_thread()


def test_a_coroutine_runs_to_its_end_from_a_plain_thread():
    assert run(double(21)) == 42


def test_it_works_inside_a_loop_that_is_running():
    async def notebook() -> int:
        return run(double(21, slowly=True))

    assert asyncio.run(notebook()) == 42


def test_all_work_shares_one_daemon_thread_which_is_not_the_callers():
    first, second = run(where()), run(where())
    assert first is second
    assert first is not threading.current_thread()
    assert first.daemon


def test_a_client_bound_to_the_loop_is_usable_from_call_to_call():
    async def make() -> asyncio.Queue[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        await queue.put("kept")
        return queue

    async def take(queue: asyncio.Queue[str]) -> str:
        return await queue.get()

    assert run(take(run(make()))) == "kept"


def test_many_threads_at_once_each_get_their_own_answer():
    def waiting(number: int) -> int:
        return run(double(number, slowly=True))

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(waiting, range(300)))
    assert answers == [2 * number for number in range(300)]


def test_many_threads_wait_side_by_side():
    def waiting(seconds: float) -> None:
        run(asyncio.sleep(seconds))

    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(waiting, [0.2] * 20))
    assert time.perf_counter() - started < 2


def test_the_callers_context_variables_follow_and_changes_stay_inside():
    async def read() -> str:
        await asyncio.sleep(0)
        before = colour.get()
        colour.set("changed inside")
        return before

    token = colour.set("red")
    try:
        assert run(read()) == "red"
        assert colour.get() == "red"
    finally:
        colour.reset(token)
    assert run(read()) == "none"


def test_an_exception_reaches_the_caller_as_it_was_raised():
    error = ReplyError("no", reply="raw")

    async def broken() -> None:
        raise error

    with pytest.raises(ReplyError) as raised:
        run(broken())
    assert raised.value is error
    assert any(entry.name == "broken" for entry in raised.traceback)


def test_work_that_cancels_itself_ends_the_wait():
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(concurrent.futures.CancelledError):
        run(cancelled())
    assert run(double(1)) == 2


def test_waiting_on_its_own_loop_is_refused():
    async def inner() -> None:
        run(double(1))

    with pytest.raises(ConfigError, match="own event loop"):
        run(inner())


def test_a_thread_started_from_its_own_loop_may_wait():
    async def outer() -> int:
        return await asyncio.to_thread(lambda: run(double(4)))

    assert run(outer()) == 8


@pytest.mark.parametrize(
    "work", [5, None, double, asyncio.sleep], ids=["number", "none", "function", "coroutine function"]
)
def test_what_is_no_coroutine_is_refused_and_not_waited_for(work: Any):
    with pytest.raises(ConfigError, match="coroutine was expected"):
        run(work)


@pytest.mark.skipif(sys.platform == "win32", reason="signals go to a thread on POSIX only")
def test_ctrl_c_cancels_the_work_and_waits_for_it_to_clean_up():
    code = """
import asyncio, signal, threading, time
from evalstone._core.sync import run

began = threading.Event()

async def work():
    try:
        began.set()
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        print("cleaned up", flush=True)

def interrupt():
    began.wait()
    time.sleep(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    run(work())
except KeyboardInterrupt:
    print("interrupted")
async def again():
    return "still works"
print(run(again()))
"""
    assert python(code, timeout=20).splitlines() == ["cleaned up", "interrupted", "still works"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to a thread here")
def test_a_signal_that_does_not_interrupt_a_wait_is_handled_all_the_same():
    code = """
import asyncio, signal, threading, time
from evalstone._core.sync import run

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # on Windows, no signal interrupts the main thread

def other():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(30)

threading.Thread(target=other, daemon=True).start()
try:
    run(asyncio.sleep(30))
except KeyboardInterrupt:
    print("interrupted")
"""
    assert python(code, timeout=20) == "interrupted"


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt"])
def test_work_that_wants_to_end_the_process_does_not_end_the_loop(name: str):
    code = f"""
from evalstone._core.sync import run

async def work():
    raise {name}

async def again():
    return "still works"

try:
    run(work())
except {name}:
    print("raised")
print(run(again()))
"""
    assert python(code, timeout=20).splitlines() == ["raised", "still works"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_starts_a_loop_of_its_own():
    code = """
import os
from evalstone._core.sync import run

async def pid():
    return os.getpid()

assert run(pid()) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(7 if run(pid()) == os.getpid() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run(pid()) == os.getpid())
"""
    assert python(code, "-W", "ignore", timeout=20) == "7 True"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_was_forked_while_the_lock_was_held_is_not_stuck():
    code = """
import os, threading, time
from evalstone._core import sync

async def one():
    return 1

sync.run(one())
thread = threading.Thread(target=lambda: (sync._lock.acquire(), time.sleep(1), sync._lock.release()))
thread.start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    os._exit(7 if sync.run(one()) == 1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code, "-W", "ignore", timeout=20) == "7"


def test_the_interpreter_ends_while_work_is_under_way():
    code = """
import asyncio, threading, time
from evalstone._core.sync import run
threading.Thread(target=lambda: run(asyncio.sleep(60)), daemon=True).start()
time.sleep(0.2)
print("end")
"""
    assert python(code, timeout=20) == "end"


async def aexample(number: int, *, slowly: bool = False) -> int:
    """Twice the number: `await aexample(2)`.

    Args:
        number: Any.
    """
    return await double(number, slowly=slowly)


def test_the_blocking_form_has_the_name_the_documentation_and_the_signature_of_the_asynchronous_one():
    example = blocking(aexample)
    assert example(4, slowly=True) == 8
    assert example.__name__ == example.__qualname__ == "example"
    assert example.__module__ == __name__
    first, _, note, *rest = (example.__doc__ or "").split("\n")
    assert first == "Twice the number: `example(2)`."  # what it does comes first, as in a list of functions
    assert note.endswith("await `aexample`.")
    assert rest == ["", "Args:", "    number: Any."]
    assert inspect.signature(example) == inspect.signature(aexample)
    assert not inspect.iscoroutinefunction(example)


def test_plain_functions_run_in_threads_side_by_side_and_async_ones_on_the_loop() -> None:
    barrier = threading.Barrier(4)

    def plain(number: int) -> tuple[int, bool]:
        barrier.wait(timeout=10)  # breaks unless all four run at a time
        return number, threading.current_thread() is threading.main_thread()

    async def asynchronous(number: int) -> tuple[int, bool]:
        return number, threading.current_thread() is threading.main_thread()

    async def all_of_them() -> list[tuple[int, bool]]:
        return await asyncio.gather(*(sync.call(plain, n) for n in range(4)), sync.call(asynchronous, 4))

    assert asyncio.run(all_of_them()) == [*((n, False) for n in range(4)), (4, True)]


def test_a_callable_object_a_lambda_that_returns_a_coroutine_and_context_variables_work() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    class Asynchronous:
        async def __call__(self, *, suffix: str) -> str:
            return variable.get() + suffix

    async def work() -> list[str]:
        variable.set("inside")
        instance = Asynchronous()
        return [
            await sync.call(instance, suffix="!"),
            await sync.call(lambda: instance(suffix="?")),
            await sync.call(variable.get),
        ]

    assert asyncio.run(work()) == ["inside!", "inside?", "inside"]


def test_an_error_in_a_thread_is_raised_and_stop_iteration_hangs_nobody() -> None:
    def fails() -> None:
        raise LookupError("no such thing")

    def stops() -> None:
        next(iter(()))

    with pytest.raises(LookupError, match="no such thing"):
        asyncio.run(sync.call(fails))
    with pytest.raises(RuntimeError, match="stops raised StopIteration"):
        asyncio.run(asyncio.wait_for(sync.call(stops), timeout=10))


def test_a_loop_whose_thread_can_not_be_started_leaves_nothing_open_and_is_started_by_the_next_call() -> None:
    code = """
import asyncio, gc, threading
from evalstone._core.sync import run

async def answer():
    return "still works"

def refuse(thread):
    raise RuntimeError("refused")

start, threading.Thread.start = threading.Thread.start, refuse
try:
    run(answer())
except RuntimeError as error:
    print(error)
threading.Thread.start = start
gc.collect()
print(run(answer()))
"""
    said = python(f"import warnings\nwarnings.simplefilter('error')\n{code}", "-X", "dev", timeout=20)
    assert said.splitlines() == ["refused", "still works"]


def test_a_task_that_somebody_cancels_is_told_from_one_that_awaits_something_cancelled() -> None:
    async def main() -> list[bool]:
        seen = list[bool]()

        async def awaits(future: asyncio.Future[None]) -> None:
            try:
                await future
            except asyncio.CancelledError:
                seen.append(sync.is_being_cancelled())

        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await asyncio.create_task(awaits(future))
        cancelled = asyncio.create_task(awaits(asyncio.get_running_loop().create_future()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await cancelled
        return seen

    assert asyncio.run(main()) == [False, True]


def test_outside_a_task_a_cancellation_counts_as_ones_own() -> None:
    async def main() -> bool:
        seen: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: seen.set_result(sync.is_being_cancelled()))
        return await seen

    assert asyncio.run(main())


def test_tasks_that_are_cancelled_together_have_all_ended_and_raise_nothing() -> None:
    ended = list[str]()

    async def cleans_up(name: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def fails() -> None:
        raise LookupError

    async def main() -> None:
        tasks = [asyncio.create_task(cleans_up(name)) for name in ("one", "other")]
        failed = asyncio.create_task(fails())
        await asyncio.sleep(0)
        await sync.cancel_all([*tasks, failed])
        assert ended == ["one", "other"]
        assert [task.cancelled() for task in (*tasks, failed)] == [True, True, False]
        await sync.cancel_all([])

    asyncio.run(main())

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.scorers import parse_scorer
from evalstone.types.accounts import same_value
from tests.fakes import python


@pytest.fixture
def collecting() -> Generator[None]:
    """Garbage collection that often lets other threads run, as with callbacks of a profiler."""

    def pause(*_: Any) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(5, 5, 5)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("collecting")
def test_scorers_are_read_by_several_threads_at_once() -> None:
    problems, spec = list[str](), f"contains(expected='{'x' * 50}', scale=[[[[[1]]]]])"

    def read() -> None:
        for _ in range(30):
            try:
                parse_scorer(spec)
            except (ConfigError, SystemError) as error:
                problems.append(str(error))

    read()  # pytest parses what is imported
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {problem.partition(" must ")[0] for problem in problems} == {"contains: scale"}


@pytest.mark.usefixtures("collecting")
@pytest.mark.slow
def test_results_written_in_python_are_compared_by_several_threads_at_once() -> None:
    problems, value = list[str](), {"found": [[[[[[number]]]]] for number in range(50)]}

    def read() -> None:
        for _ in range(30):
            try:
                if not same_value(str(value), value):
                    problems.append("differs")
            except SystemError as error:
                problems.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_while_another_thread_parses_can_parse() -> None:
    code = """
import os, threading
from evalstone._core import syntax
held, done = threading.Event(), threading.Event()
def hold():
    with syntax._lock:
        held.set()
        done.wait()
threading.Thread(target=hold).start()
held.wait()
if (child := os.fork()) == 0:
    syntax.parse_expression("1")
    os._exit(0)
print(os.waitpid(child, 0)[1])
done.set()
"""
    assert python(code, timeout=30) == "0"

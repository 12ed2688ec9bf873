"""An evaluation beside forks, signals and the end of the interpreter, with every warning an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.environments.conftest import slowly
from tests.serving import Server, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks and signals are those of Linux"),
]

OPENING = """
import asyncio, gc, logging, multiprocessing, os, signal, sys, threading, time
from evalstone import ModelJudge, aevaluate, evaluate
from evalstone._core.sync import run

# In debug mode asyncio tells of callbacks that took long, as on a busy machine any does.
logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Executing"))
judge = ModelJudge("vllm/test", base_url=os.environ["URL"], total_timeout=20.0)

def samples(count, word):
    return [{"id": str(n), "output": f"{word} {n}", "context": [f"passage {n}"]} for n in range(count)]

under_way = threading.Event()

def settings(more):
    return {"judge": judge, "ledger": "l.db", "on_record": lambda _: under_way.set(), **more}

def scored(count, word, **more):
    return evaluate(samples(count, word), "faithfulness", **settings(more))["faithfulness"].n_score

async def ascored(count, word, **more):
    return (await aevaluate(samples(count, word), "faithfulness", **settings(more)))["faithfulness"].n_score
"""


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    with serving(slowly) as made:
        yield made


def printed(code: str, server: Server, folder: Path) -> list[str]:
    """What a script prints, which must end well and complain of nothing."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", OPENING + code],
        cwd=folder,
        env={**os.environ, "URL": server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_scripts_of_both_kinds_end_in_silence(server: Server, tmp_path: Path) -> None:
    code = """
print(scored(5, "one"))
print(asyncio.run(ascored(5, "two"), debug=True))
"""
    assert printed(code, server, tmp_path) == ["5", "5"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="a policy for all loops is deprecated")
def test_with_uvloop_installed_everything_runs_on_it(server: Server, tmp_path: Path) -> None:
    pytest.importorskip("uvloop")
    code = """
import uvloop
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

async def kind():
    return type(asyncio.get_running_loop()).__module__

print(run(kind()))
print(scored(5, "one"))
print(asyncio.run(ascored(5, "two")))
"""
    assert printed(code, server, tmp_path) == ["uvloop", "5", "5"]


def test_a_child_that_is_forked_during_a_run_evaluates_and_so_does_its_parent(server: Server, tmp_path: Path) -> None:
    # The fork waits until nothing is written: a child can't use SQLite if its parent was just using it.
    code = """
done, forked = [], threading.Event()

def paused(record):
    under_way.set()
    forked.wait(30)

thread = threading.Thread(target=lambda: done.append(scored(24, "parent", concurrency=2, on_record=paused)))
thread.start()
under_way.wait(30)
time.sleep(1)
child = os.fork()
forked.set()
if child == 0:
    count = scored(5, "child")
    gc.collect()
    sys.exit(0 if count == 5 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
print(*done)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.starmap(scored, [(3, "pool"), (3, "pool")]))
"""
    assert printed(code, server, tmp_path) == ["0", "24", "3", "3"]


def test_a_run_on_a_thread_that_outlives_the_main_one_is_finished(server: Server, tmp_path: Path) -> None:
    code = """
threading.Thread(target=lambda: print(scored(12, "sync", concurrency=2))).start()
threading.Thread(target=lambda: print(asyncio.run(ascored(12, "async", concurrency=2)))).start()
under_way.wait(30)
print("main")
"""
    assert printed(code, server, tmp_path) == ["main", "12", "12"]


def test_the_process_ends_in_silence_during_a_run_on_a_daemon_thread_and_the_next_goes_on(
    server: Server, tmp_path: Path
) -> None:
    before = len(server.requests)
    code = """
threading.Thread(target=lambda: scored(30, "daemon", concurrency=2), daemon=True).start()
under_way.wait(30)
print("main")
"""
    assert printed(code, server, tmp_path) == ["main"]
    asked = len(server.requests) - before
    assert 0 < asked < 60
    assert printed('print(scored(30, "daemon"))', server, tmp_path) == ["30"]
    assert len(server.requests) - before <= 60 + 2


def test_an_error_that_a_signal_raises_ends_the_work_and_not_only_the_wait(server: Server, tmp_path: Path) -> None:
    code = """
class TooLong(Exception):
    pass

def alarm(*_):
    raise TooLong

signal.signal(signal.SIGALRM, alarm)
rung = []

def ring(_):
    if not rung:
        rung.append(True)
        os.kill(os.getpid(), signal.SIGALRM)

try:
    scored(30, "alarm", concurrency=2, on_record=ring)
except TooLong:
    print("stopped")

async def left():
    return len(asyncio.all_tasks()) - 1

print(run(left()))
"""
    assert printed(code, server, tmp_path) == ["stopped", "0"]

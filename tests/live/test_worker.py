"""The worker as a process: beside crashes of either side, forks and signals."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from evalstone import Live
from evalstone.errors import LedgerError
from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
from evalstone.live import ScorerCoverage, sender
from evalstone.live.worker import begun
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_live import SAMPLE, answered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks and signals are those of Linux"),
]

ROOT = Path(__file__).parents[2]
OPENING = """
import json, os, signal, sys, threading, time, warnings
from evalstone import Live
from tests.live import scoring as own

def live_of(scorers, **settings):
    return Live(scorers, **{"ledger": sys.argv[1], "sampling": 1.0, **settings})

def fork():
    with warnings.catch_warnings():  # Python 3.12 warns of threads, beside which this is to work
        warnings.simplefilter("ignore")
        return os.fork()
"""


def application(code: str, url: str, **settings: Any) -> subprocess.Popen[str]:
    """An application in a process group of its own."""
    start = [sys.executable, "-W", "error", "-c", OPENING + code, url]
    return subprocess.Popen(start, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline  # it took too long
        time.sleep(0.02)


def total(live: Live) -> ScorerCoverage:
    found = live.coverage().total
    assert found.unaccounted == 0
    return found


def workers_of(live: Live) -> list[int]:
    """The processes that have scored, in the order of the rows."""
    with Ledger(live.ledger) as ledger:
        records = [row.record for row in rows.scores(ledger, stream=live.stream)[::-1]]
    return [cast("Any", record).outcome.evidence for record in records if record is not None]


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to take notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def the_worker_ends_with_its_parent_though_a_child_lives(code: str, ledger: Path) -> None:
    """Kill an application that prints the process of a child, which has all that it had open."""
    parent = application(code, str(ledger))
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    (worker,) = workers_of(Live(own.worker, ledger=ledger))
    parent.kill()
    parent.communicate()
    try:
        until(lambda: not is_there(worker), 6)
        assert is_there(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_scoring_happens_in_another_process_and_what_scorers_print_breaks_nothing(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    live = start(own.worker, process=True)
    for number in range(3):
        live.submit(**answered(number))
    assert live.flush(30)
    (worker,) = set(workers_of(live))
    assert worker != os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT):  # as a service manager sends them to all processes of a service
        os.kill(worker, number)
    live.submit(**SAMPLE)
    assert live.flush(30)
    assert set(workers_of(live)) == {worker}
    assert live.close()
    assert not is_there(worker)
    assert "printed by a scorer" in capfd.readouterr().err


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost_or_scored_twice(start: Start, url: str) -> None:
    live = start([own.worker, own.slow], process=True, ledger=url, concurrency=2)
    live.submit(**SAMPLE)
    assert live.flush(30)
    (first,) = {each for each in workers_of(live) if each}
    for number in range(60):
        live.submit(**answered(number))
        if number == 30:
            until(lambda: total(live).n_score > 2)
            os.kill(first, signal.SIGKILL)
    assert live.flush(30)
    found = total(live)
    assert (found.seen, found.n_score) == (122, 122)
    assert len({each for each in workers_of(live) if each}) == 2


def test_after_the_application_is_killed_the_numbers_add_up_and_the_next_one_finishes_the_work(
    start: Start, url: str
) -> None:
    code = """
live = live_of([own.worker, own.slow], concurrency=2, sampling={"worker": 1.0, "slow": 0.5}, queue=50)
for number in range(100_000):
    live.submit(output=f"In Rome {number}.", trace_id=str(number))
    time.sleep(0.001)
    if number == 10:
        print("going", flush=True)
"""
    going = application(code, url)
    assert going.stdout is not None
    assert going.stdout.readline() == "going\n"
    live = start([own.worker, own.slow], process=True, ledger=url, concurrency=20)
    until(lambda: Path(url.removeprefix("sqlite:///")).exists() or url.startswith("postgresql"))
    with Ledger(url) as ledger:
        until(lambda: rows.streams(ledger))
    until(lambda: total(live).n_score > 20)
    going.send_signal(signal.SIGKILL)
    going.communicate()
    (worker, *_) = {each for each in workers_of(live) if each}
    until(lambda: not is_there(worker))
    left = total(live)
    assert left.seen > 20
    live.start()
    until(lambda: total(live).pending == 0, 40)
    found = total(live)
    assert found.seen == found.declined + found.dropped_queue + found.n_score
    assert found.declined > 0
    assert found.n_score >= left.n_score


def test_signals_to_the_whole_group_leave_time_to_flush(tmp_path: Path) -> None:
    code = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
live = live_of([own.slow], concurrency=4)
for number in range(8):
    live.submit(output=f"In Rome {number}.")
print("going", flush=True)
time.sleep(60)
"""
    going = application(code, str(tmp_path / "l.db"), start_new_session=True)
    assert going.stdout is not None
    assert going.stdout.readline() == "going\n"
    for number in (signal.SIGINT, signal.SIGTERM):
        os.killpg(going.pid, number)
    _, errors = going.communicate(timeout=30)
    assert (going.returncode, errors) == (7, "")
    found = total(Live(own.slow, ledger=tmp_path / "l.db"))
    assert (found.seen, found.n_score) == (8, 8)


def test_a_program_that_just_ends_is_scored_to_the_end(tmp_path: Path) -> None:
    code = """
live = live_of(["contains", own.slow])
for number in range(5):
    live.submit(output=f"In Rome {number}.", reference="Rome")
"""
    done = application(code, str(tmp_path / "l.db"))
    assert done.communicate(timeout=30) == ("", "")
    assert total(Live(own.slow, ledger=tmp_path / "l.db")).n_score == 10


def test_what_is_submitted_after_the_exit_handler_is_said_to_be_lost(tmp_path: Path) -> None:
    code = """
import atexit
atexit.register(lambda: print(live.submit(output="In Rome, late."), flush=True))
live = live_of(own.slow)
live.submit(output="In Rome.")
"""
    done = application(code, str(tmp_path / "l.db"))
    said, warned = done.communicate(timeout=30)
    assert said == "False\n"
    assert "are lost" in warned
    assert total(Live(own.slow, ledger=tmp_path / "l.db")).n_score == 1


def test_what_takes_longer_than_the_shutdown_stays_pending(tmp_path: Path) -> None:
    code = """
from evalstone.live import client
live = live_of([own.endless, own.slow])
live.submit(output="In Rome.")
live.flush(1.5)
live.close(0.3)
print(live.close(), flush=True)
"""
    done = application(code, str(tmp_path / "l.db"))
    assert done.communicate(timeout=30) == ("False\n", "")
    assert total(Live(own.slow, ledger=tmp_path / "l.db")).pending == 2


def test_after_a_fork_the_child_begins_with_nothing_and_the_parent_goes_on(tmp_path: Path) -> None:
    code = """
live = live_of(own.worker)
live.submit(output="parent 1")
assert live.flush()
children = []
for number in range(2):
    if (child := fork()) == 0:
        live.submit(output=f"child {number}")
        live.submit(output=f"child {number}, again")
        os._exit(0 if live.close(20) else 1)
    children.append(child)
live.submit(output="parent 2")
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
assert live.close(20)
found = live.coverage().total
print(json.dumps([codes, found.seen, found.n_score, found.unaccounted]))
"""
    told, errors = application(code, str(tmp_path / "l.db")).communicate(timeout=60)
    assert json.loads(told) == [[0, 0], 6, 6, 0], errors
    assert "Warning" not in errors  # a child doesn't take the worker of its parent for its own
    assert len(set(workers_of(Live(own.worker, ledger=tmp_path / "l.db")))) == 3


def test_a_child_that_lives_longer_does_not_keep_the_worker_of_its_parent(tmp_path: Path) -> None:
    code = """
live = live_of(own.worker)
live.submit(output="x")
assert live.flush()
child = fork()
if child == 0:
    os.close(1), os.close(2)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""
    the_worker_ends_with_its_parent_though_a_child_lives(code, tmp_path / "l.db")


def test_a_worker_that_is_started_by_a_fork_of_the_same_thread_is_not_waited_for_forever(tmp_path: Path) -> None:
    """As in a process that gevent has patched."""
    code = """
import functools
from evalstone.live import sender
warnings.simplefilter("ignore")
sender.subprocess.Popen = functools.partial(sender.subprocess.Popen, preexec_fn=int)
live = live_of(own.worker)
live.submit(output="x")
print(live.flush(10), live.coverage().total.n_score, flush=True)
os._exit(0)
"""
    told, errors = application(code, str(tmp_path / "l.db")).communicate(timeout=30)
    assert told == "True 1\n", errors


def test_a_worker_that_can_not_start_is_said_once_and_slows_nobody(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    (tmp_path / "l.db").write_text("this is no ledger, but a text that is long enough to be read as one" * 50)
    live = start("contains", process=True)
    live.submit(**SAMPLE)
    assert not live.flush(3)
    begun = time.monotonic()
    assert not live.close(0.1)
    assert time.monotonic() - begun < 4
    (first, *_) = [record.getMessage() for record in caplog.records]
    assert "not an evalstone" in first
    assert len(caplog.records) <= 2


def test_a_ledger_that_breaks_costs_nothing_that_was_accepted(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    live = start("contains")
    live.submit(**SAMPLE)
    assert live.flush(20)
    failing = [True] * 3
    write = rows.write_frame

    def broken(*arguments: Any) -> Any:
        if failing and failing.pop():
            raise LedgerError("the disk is full")
        return write(*arguments)

    monkeypatch.setattr(rows, "write_frame", broken)
    for number in range(10):
        live.submit(**answered(number))
    assert live.flush(30)
    assert (total(live).seen, total(live).n_score) == (11, 11)


def test_what_waits_when_the_worker_is_killed_at_the_end_is_scored_by_another_one(tmp_path: Path) -> None:
    code = """
live = live_of([own.worker])
live.submit(output="x")
assert live.flush()
from evalstone.ledger import live as rows
from evalstone.ledger.store import Ledger
with Ledger(sys.argv[1]) as ledger:
    worker = rows.scores(ledger)[0].record.outcome.evidence
for number in range(100):
    live.submit(output=f"In Rome {number}.")
os.kill(worker, signal.SIGKILL)
print(live.close(20))
"""
    told, errors = application(code, str(tmp_path / "l.db")).communicate(timeout=60)
    assert told == "True\n", errors
    assert total(Live(own.worker, ledger=tmp_path / "l.db")).n_score == 101


def test_a_module_with_a_scorer_and_a_live_that_it_starts_has_one_worker(tmp_path: Path) -> None:
    (tmp_path / "app_of_test.py").write_text("""
import os, sys
from evalstone import Live

def scored(output: str) -> float:
    return 1.0

with open(__file__ + ".pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
live = Live(scored, sampling=1.0, ledger="l.db")
live.start()
live.submit(output="imported")
""")
    code = f"""
import os, sys
sys.path.append({str(tmp_path)!r})
from app_of_test import live
assert live.flush(20)
live.flush(0.5)
import time
time.sleep(1)
print(live.coverage().total.seen)
"""
    start = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(start, cwd=tmp_path, text=True, capture_output=True, timeout=60, check=True)
    assert (told.stdout, told.stderr) == ("1\n", "")
    started = (tmp_path / "app_of_test.py.pids").read_text().split()
    assert len(started) == 2  # the application and its worker


def test_a_worker_that_hangs_ends_soon_after_its_application() -> None:
    code = "from evalstone.live import worker; worker.LAST_SECONDS = worker.GRACE = 0.1; worker.main()"
    going = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert going.stdin is not None
    hang = pickle.dumps(_Hang())
    going.stdin.write(len(hang).to_bytes(8) + hang)
    going.stdin.flush()
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            going.wait(1)
        going.communicate(timeout=10)
        assert going.returncode == 1
    finally:
        going.kill()


class _Hang:
    """Something whose import doesn't end."""

    def __reduce__(self) -> Any:
        return time.sleep, (60,)


@pytest.mark.parametrize("pause", [0.005, 0.1])
def test_a_child_that_is_forked_while_the_worker_starts_does_not_keep_it(tmp_path: Path, pause: float) -> None:
    code = f"""
live = live_of(own.worker)
live.start()
time.sleep({pause})
child = fork()
if child == 0:
    os.close(1), os.close(2)
    time.sleep(60)
    os._exit(0)
live.submit(output="x")
assert live.flush(20)
print(child, flush=True)
time.sleep(60)
"""
    the_worker_ends_with_its_parent_though_a_child_lives(code, tmp_path / "l.db")


def children() -> set[int]:
    """The workers of this process."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = status.with_name("cmdline").read_text()
        except OSError:
            continue
        if parent == os.getpid() and "evalstone.live.worker" in command:
            found.add(int(status.parent.name))
    return found


@pytest.mark.parametrize(("priority", "policy"), [("low", os.SCHED_OTHER), ("idle", os.SCHED_IDLE)])
def test_the_worker_comes_after_the_application(tmp_path: Path, priority: Literal["low", "idle"], policy: int) -> None:
    before = children()
    live = Live("contains", ledger=tmp_path / "l.db", priority=priority)
    live.start()
    try:
        until(lambda: children() - before)
        (worker,) = children() - before
        lower = min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
        until(lambda: os.getpriority(os.PRIO_PROCESS, worker) == lower)
        until(lambda: os.sched_getscheduler(worker) == policy)
        # Linux shares processors out among sessions first: a priority counts only within one.
        assert (os.getsid(worker), os.getpgid(worker)) == (os.getsid(0), worker)
    finally:
        live.close(1)


def test_work_for_a_loop_that_ends_is_never_made() -> None:
    made: list[int] = []

    async def work() -> int:
        made.append(1)
        return 7

    async def broken() -> int:
        raise LedgerError("full")

    async def endless() -> int:
        await asyncio.sleep(60)
        return 0

    loop = asyncio.new_event_loop()
    done, failed, cut = begun(loop, work), begun(loop, broken), begun(loop, endless)
    loop.run_until_complete(asyncio.sleep(0.01))
    assert done.result(0) == 7
    with pytest.raises(LedgerError, match="full"):
        failed.result(0)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0.01))
    assert cut.cancelled()
    never = begun(loop, work)
    loop.close()
    assert (made, never.done()) == ([1], False)
    with pytest.raises(RuntimeError, match="closed"):
        begun(loop, work)

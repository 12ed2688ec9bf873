"""What ends a run from outside: signals, kills, a ledger that goes away, a full disk, closed streams."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tools.attack.harness import Process, Result, Server, evalstone, judged, records, serving, write_samples

SAMPLES = 150
CONCURRENCY = 8
OPTIONS = ("--concurrency", str(CONCURRENCY))


def _begun(process: Process, server: Server, requests: int) -> None:
    """Wait until the server has had so many more requests, or the process has ended."""
    wanted = len(server.requests) + requests
    deadline = time.monotonic() + 30
    while len(server.requests) < wanted and time.monotonic() < deadline:
        if process.popen.poll() is not None:
            return
        time.sleep(0.002)


def _table(folder: Path) -> list[tuple[str, str, float]]:
    return [(record["sample_id"], record["outcome"], record["value"]) for record in records(folder)]


def _signaled(folder: Path, sign: signal.Signals, tries: int, paid_twice: int, codes: tuple[int, ...]) -> Result:
    """Interrupt a run so many times, and finish it; paid_twice: how many calls may be, for each interruption."""
    write_samples(folder, SAMPLES)
    rng = random.Random(int(sign))
    broken: list[str] = []
    interrupted = 0
    with serving(delay=0.01) as server:
        for _ in range(tries):
            process = Process(folder, *judged(server, *OPTIONS))
            _begun(process, server, rng.randint(1, 2 * SAMPLES // tries))
            process.send(sign)
            done = process.ended(30)
            interrupted += done.code != 0
            if done.code not in (0, *codes) or "Traceback" in done.text:
                broken.append(f"code {done.code}: {done.stderr[-200:]}")
        done = evalstone(folder, *judged(server, *OPTIONS))
        twice = len(server.requests) - 2 * SAMPLES
    if done.code != 0 or _table(folder) != [(f"s{n}", "score", 1.0) for n in range(SAMPLES)]:
        broken.append(f"the table is not that of an undisturbed run; code {done.code}, {done.stderr[-200:]}")
    if not 0 <= twice <= paid_twice * interrupted:
        broken.append(f"{twice} calls paid twice")
    left = [path.name for path in folder.rglob("*.tmp")]
    if left:
        broken.append(f"temporary files left: {left[:3]}")
    if interrupted < tries / 2:
        broken.append(f"only {interrupted} runs were interrupted")
    return Result(tries, f"{interrupted} interrupted, equal tables, {twice} of {2 * SAMPLES} calls paid twice", broken)


def kills(folder: Path) -> Result:
    """After kill -9 only what was in flight is paid again."""
    return _signaled(folder, signal.SIGKILL, 12, CONCURRENCY, (-signal.SIGKILL,))


def terminations(folder: Path) -> Result:
    """SIGTERM, SIGHUP and Ctrl-C let calls in flight end, and nothing is paid twice."""
    results: list[Result] = []
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        (work := folder / sign.name).mkdir()
        result = _signaled(work, sign, 5, 0, (130,))
        results.append(Result(5, f"{sign.name}: {result.seen}", [f"{sign.name}: {each}" for each in result.problems]))
    problems = [problem for result in results for problem in result.problems]
    return Result(15, "; ".join(result.seen for result in results), problems)


def together(folder: Path) -> Result:
    """Five processes with one ledger pay for nothing twice."""
    write_samples(folder, SAMPLES)
    with serving(delay=0.01) as server:
        folders = [folder / str(n) for n in range(5)]
        started: list[Process] = []
        for work in folders:
            work.mkdir()
            shutil.copy(folder / "data.jsonl", work)
            arguments = [str(folder / "shared.db") if each == "l.db" else each for each in judged(server, *OPTIONS)]
            started.append(Process(work, *arguments))
        ended = [process.ended(60) for process in started]
        twice = len(server.requests) - 2 * SAMPLES
    broken = [f"code {done.code}: {done.stderr[-200:]}" for done in ended if done.code != 0]
    broken += [f"{twice} calls paid twice"] if twice else []
    if not broken and any(_table(work) != _table(folders[0]) for work in folders):
        broken.append("the tables differ")
    return Result(5, f"{twice} of {2 * SAMPLES} calls paid twice", broken)


def ledger_lost(folder: Path) -> Result:
    """A run whose ledger is deleted, replaced or damaged stops and says so, unless nothing of it is lost."""

    def replaced(path: Path) -> None:
        path.with_name("other.db").write_bytes(path.read_bytes())
        path.with_name("other.db").replace(path)

    ways: dict[str, Callable[[Path], object]] = {
        "deleted": Path.unlink,
        "moved": lambda path: path.rename(path.with_name("moved.db")),
        "replaced": replaced,
        "emptied": lambda path: os.truncate(path, 0),
        "overwritten": lambda path: path.write_bytes(b"x" * 100_000),
    }
    broken: list[str] = []
    slowest, ways_healed = 0.0, 0
    for name, change in ways.items():
        (work := folder / name).mkdir()
        write_samples(work, 2000)
        with serving(delay=0.05) as server:
            process = Process(work, *judged(server, *OPTIONS))
            _begun(process, server, 100)
            change(work / "l.db")
            changed = time.monotonic()
            done = process.ended(60)
            if done.code == 0:  # as well, if everything is in the ledger in spite of it, because SQLite writes it again
                asked = len(server.requests)
                again = evalstone(work, *judged(server, *OPTIONS))
                healed = again.code == 0 and len(server.requests) == asked
                ways_healed += healed
                if healed:
                    continue
        slowest = max(slowest, time.monotonic() - changed)
        if done.code != 3 or "l.db" not in done.stderr or "Traceback" in done.text:
            broken.append(f"{name}: code {done.code}, {done.stderr[-300:]}")
    return Result(len(ways), f"noticed within {slowest:.0f} s; nothing was lost in {ways_healed}", broken)


def disk_full(folder: Path) -> Result:
    """A file that can't grow is neither a usage error nor a threshold that is not met."""
    broken: list[str] = []
    sizes = (0, 1_000, 4_096, 20_000, 60_000, 100_000, 200_000)
    for size in sizes:
        (work := folder / str(size)).mkdir()
        write_samples(work, SAMPLES)
        with serving() as server:
            # Pipes, for a file of what is printed couldn't grow either.
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            done = evalstone(work, *judged(server, *OPTIONS), file_size=size, **pipes)
        if done.code != 3 or "Traceback" in done.text:
            broken.append(f"{size} bytes: code {done.code}, {done.stderr[-200:]}")
    return Result(len(sizes), "exit code 3", broken)


def closed_streams(folder: Path) -> Result:
    """Closed output is neither a usage error nor a threshold that is not met, and the results are written."""
    write_samples(folder, 20)
    broken: list[str] = []
    run = ["run", "data.jsonl", "--scorer", "faithfulness", "--judge", "lexical", "--out", "out"]
    evalstone(folder, *run)
    commands = [run, ["report", "out"], ["report", "out", "--csv", "-"], ["scorers"], ["ledger", "info"], ["--help"]]
    for command in commands:
        reading, writing = os.pipe()
        os.close(reading)
        done = evalstone(folder, *command, stdout=writing)
        os.close(writing)
        if done.code != 3 or "Traceback" in done.text:
            broken.append(f"{command[0]} into a closed pipe: code {done.code}, {done.stderr[-200:]}")
        reading, writing = os.pipe()
        os.close(reading)
        done = evalstone(folder, *command, stderr=writing)
        os.close(writing)
        if done.code != 0:
            broken.append(f"{command[0]} with closed standard error: code {done.code}")
        if evalstone(folder, *command, stdin=subprocess.DEVNULL, close_fds=True).code != 0:
            broken.append(f"{command[0]} without standard input")
    return Result(3 * len(commands), "exit code 3, or 0 where only standard error is closed", broken)


ATTACKS = {
    "kill -9": kills,
    "SIGTERM, SIGINT, SIGHUP": terminations,
    "Five processes, one ledger": together,
    "The ledger goes away": ledger_lost,
    "A full disk": disk_full,
    "Closed output": closed_streams,
}

"""The row `kills` of bench/scale.py: whatever is killed, nothing is lost but calls in flight and, without a ledger,
open blocks.

Workers are killed at random times, and at other times all of a run: with shards, all processes; on Ray, the driver,
which ends its workers. Killed commands are run again. The model server numbers its answers, and records keep the number
of the one that they are based on, so they say whether a question was asked again whose answer was stored.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from scale_work import (
    EVALSTONE,
    MODEL,
    Served,
    has_ray,
    ledger_on_postgresql,
    on_ray,
    run,
    serving,
    shards,
    write_data,
    write_settings,
)

from evalstone import Run, read_run
from evalstone._core.storage import Location
from evalstone.results.block_plan import BlockPlan

SAMPLES = 6_000
FULL = 30_000
ENGINES = ("shards", "ray")
SHARDS = 4
RAY_WORKERS = 2
CONCURRENCY = 4
LATENCY = 40
"""Milliseconds of an answer."""
NUMBER = re.compile(r"request (\d+)")


@dataclass
class Killing:
    """How often what is killed, at random numbers of requests after the last time."""

    workers: int
    all: int
    samples: int
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self.step = 2 * self.samples // (self.workers + self.all + 5)

    def requests(self) -> int:
        """After how many requests something is killed."""
        return self.rng.randrange(1, self.step)

    def draw(self) -> str:
        """What is killed next: "worker", "all", or "" for nothing any more."""
        if not self.workers + self.all:
            return ""
        drawn = self.rng.randrange(self.workers + self.all)
        if drawn < self.workers:
            self.workers -= 1
            return "worker"
        self.all -= 1
        return "all"


def kills(samples: int, folder: Path, engine: str = "") -> None:
    """Shards and Ray, or only one of them, with a ledger on PostgreSQL and without one."""
    engines = [each for each in ENGINES if engine in ("", each) and (each != "ray" or has_ray())]
    for ledger in (True, False):
        what = "with a ledger" if ledger else "without one"
        for each in engines:
            with ledger_on_postgresql() if ledger else nullcontext() as url:
                if ledger and url is None:
                    continue
                if each == "ray":
                    _killed(f"Ray {what}", folder, samples, url, Killing(10, 5, samples), ray=True)
                else:
                    _killed(f"shards {what}", folder, samples, url, Killing(30, 10, samples))


def _killed(name: str, folder: Path, samples: int, ledger: str | None, killing: Killing, *, ray: bool = False) -> None:
    home = folder / name.replace(" ", "-")
    home.mkdir()
    write_data(home / "data.jsonl", samples)
    with serving(LATENCY, "--numbered") as server:
        more = {} if ledger is None else {"ledger": ledger}
        given = {"data": "data.jsonl", "out": "results", "concurrency": CONCURRENCY, **more}
        settings = write_settings(home / "run.toml", ["exact_match", MODEL], server.judge(), **given)
        commands = [on_ray(RAY_WORKERS, str(settings))] if ray else shards(settings, SHARDS)
        began = time.perf_counter()
        killed, lost = _until_done(commands, home, server, killing, ray=ray)
        if not ray:
            run([*EVALSTONE, "merge", "results"], cwd=home)
        seconds = time.perf_counter() - began
        told = _checked(read_run(home / "results"), home / "results", server, samples, lost, ledger=ledger is not None)
    times = f"{killed['worker']} workers and {killed['all']} times all"
    times += f", ended {killed['block']} times by a block that was begun too often" * (killed["block"] > 0)
    print(f"  {name}: {samples:,} samples, killed {times} in {seconds:.0f} s; {told}", flush=True)


def _until_done(
    commands: Sequence[Sequence[str]], home: Path, server: Served, killing: Killing, *, ray: bool
) -> tuple[Counter[str], int]:
    """Run commands until all have ended well, and kill meanwhile. A run on Ray that ends because a block was begun too
    often is run again. Returns how often what was killed, and how many processes that scored."""
    killed, lost, starts = Counter[str](), 0, itertools.count()
    running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
    done = set[int]()
    next_kill = killing.requests()
    while len(done) < len(commands):
        for number, command in enumerate(commands):
            if number not in done and number not in running:
                path = home / f"log-{next(starts)}.txt"
                with path.open("wb") as log:
                    process = subprocess.Popen(command, cwd=home, stdout=log, stderr=log, start_new_session=True)
                running[number] = process, path
        time.sleep(0.05)
        for number, (process, path) in [*running.items()]:
            if (code := process.poll()) is None:
                continue
            del running[number]
            if code == 0:
                done.add(number)
            elif ray and code == 3 and "a worker of Ray failed: " in path.read_text():
                killed["block"] += 1
                lost += RAY_WORKERS
            elif code != -signal.SIGKILL:
                raise RuntimeError(f"ended with {code}: {path.read_text()[-3000:]}")
        if running and server.requests >= next_kill and (what := killing.draw()):
            workers = [
                pid for process, _ in running.values() for pid in (_workers(process.pid) if ray else [process.pid])
            ]
            if not workers:  # not one has started yet
                killing.workers += what == "worker"
                killing.all += what == "all"
                continue
            victims = [killing.rng.choice(workers)] if what == "worker" else workers
            lost += len(victims)
            killed[what] += 1
            for pid in [process.pid for process, _ in running.values()] if what == "all" else victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            next_kill = server.requests + killing.requests()
    return killed, lost


def _workers(driver: int) -> list[int]:
    """The processes that score for a driver of Ray."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}

    def is_below(pid: int) -> bool:
        while pid in parents and pid != driver:
            pid = parents[pid]
        return pid == driver

    return [int(pid) for pid, _, args in rows if args.startswith("ray::_Worker") and is_below(int(pid))]


def _checked(run: Run, out: Path, server: Served, samples: int, lost: int, *, ledger: bool) -> str:
    """What was lost. Raises AssertionError if it is more than what may be."""
    plan = BlockPlan.read(Location.of(out))
    assert plan is not None
    for line in run.summary:
        assert line.n_score + line.n_skipped + line.n_failed == samples, line
        assert line.n_failed == 0, line
    records = [(record.sample_id, record.scorer) for record in run.records]
    assert len(records) == len({*records}) == 2 * samples
    log = server.log
    last = {digest: number for number, (_, digest, _) in enumerate(log, 1)}
    used = [int(NUMBER.search(call.reply)[1]) for record in run.records for call in record.calls if call.reply]  # type: ignore[index]
    assert len(used) == len({*used}) == samples == len(last)
    paid_again = sum(last[log[number - 1][1]] != number for number in used)
    assert paid_again == 0, f"{paid_again} stored answers were paid for again"
    repeated = len(log) - samples
    block = max(each.samples for each in plan.blocks)
    most = lost * (CONCURRENCY if ledger else block)
    assert repeated <= most, f"{repeated} calls were lost, and {most} may be"
    return (
        f"outcomes add up, no record twice, no stored answer paid again; {repeated} calls lost of at most {most} "
        f"({lost} processes, {CONCURRENCY} calls in flight" + (")" if ledger else f", blocks of {block})")
    )

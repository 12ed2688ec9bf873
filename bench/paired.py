"""The same run with another commit's code and with the current code, on one server, in alternating rounds.

    python bench/paired.py COMMIT [--rounds 5] [--latencies 0,20]

COMMIT is checked out into a temporary folder during the measurement, and its code runs with the installed libraries.
Each round starts a new process for each of the two and for the bare loop of speed.py. A process makes its own samples
and scores them, first without a ledger and then with a new one; imports and a first evaluation are not measured. The
output has the least CPU time per call, the most records per second, and the CPU time as a multiple of the bare loop's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import engine

ROOT = Path(__file__).parents[1]
CALLS_A_RECORD = 2
RUNS = ("no ledger", "ledger")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """The wall time and the CPU time of a piece of work, in seconds."""
    wall, cpu = time.perf_counter(), engine.cpu()
    work()
    return time.perf_counter() - wall, engine.cpu() - cpu


def bare(url: str, records: int) -> dict[str, tuple[float, float]]:
    """The times of the bare loop."""
    import speed  # noqa: PLC0415 - not with the code of another commit

    requests = speed.bodies(engine.samples(records))
    return {"bare loop": timed(lambda: asyncio.run(speed.bare(f"{url}/chat/completions", requests)))}


def runs(url: str, records: int) -> dict[str, tuple[float, float]]:
    """The times of runs without and with a ledger."""
    from evalstone import ModelJudge, evaluate, score  # noqa: PLC0415 - of the commit that PYTHONPATH names

    judge = ModelJudge("vllm/bench", base_url=url, api_key="none")
    times: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        score("faithfulness", output="warm up", context=["x"], judge=judge, ledger=Path(folder, "warm.db"))
        for name, ledger in zip(RUNS, (None, Path(folder, "new.db")), strict=True):
            samples = engine.samples(records)

            def score_all(samples: list[engine.Sample] = samples, ledger: Path | None = ledger) -> None:
                run = evaluate(samples, "faithfulness", judge=judge, concurrency=32, ledger=ledger)
                if run["faithfulness"].mean is None:
                    raise RuntimeError(f"nothing was scored: {run}")

            times[name] = timed(score_all)
    return times


def measured(what: str, source: Path, url: str, records: int) -> dict[str, tuple[float, float]]:
    """The times of `what`, "bare" or "runs", in a new process with the code in `source`."""
    command = [sys.executable, __file__, "--child", what, url, "--records", str(records)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(source)}, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def compare(commit: str, options: argparse.Namespace) -> None:
    """Measure a commit against the working tree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            for latency in map(float, options.latencies.split(",")):
                show(latency, commit, tree, options)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def show(latency: float, commit: str, tree: Path, options: argparse.Namespace) -> None:
    """Measure at one latency of the server, and print the best of all rounds."""
    processes = {"": ("bare", ROOT), f"{commit}, ": ("runs", tree), "here, ": ("runs", ROOT)}
    wall: dict[str, float] = {}
    cpu: dict[str, float] = {}
    server = engine.start(latency, (0.0, 0.0, 0.0))
    try:
        url = engine.server_url(server)
        for _ in range(options.rounds):
            for label, (what, source) in processes.items():
                for name, (seconds, used) in measured(what, source / "src", url, options.records).items():
                    wall[label + name] = min(seconds, wall.get(label + name, seconds))
                    cpu[label + name] = min(used, cpu.get(label + name, used))
    finally:
        server.kill()
        server.wait()
    print(f"latency {latency:g} ms: {options.records} records, best of {options.rounds}")
    print(f"{'':24} {'records/s':>9}  {'CPU ms a call':>13}  {'of the bare loop':>16}")
    for label, used in cpu.items():
        a_call = 1000 * used / (options.records * CALLS_A_RECORD)
        print(
            f"{label:24} {options.records / wall[label]:9.0f}  {a_call:13.3f}  {used / cpu['bare loop']:14.2f} x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="whose code to measure against")
    parser.add_argument("url", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--latencies", default="0,20", help="of the server, in milliseconds")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        times = {"bare": bare, "runs": runs}[options.commit](options.url, options.records)
        print(json.dumps(times))
    else:
        compare(options.commit, options)


if __name__ == "__main__":
    main()

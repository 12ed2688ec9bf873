"""The row `limits` of bench/scale.py: four shards on one PostgreSQL ledger keep to a rate and to a budget."""

from __future__ import annotations

import shutil
import subprocess
import time
from bisect import bisect_right
from pathlib import Path

from scale_work import EVALSTONE, MODEL, ledger_on_postgresql, run, serving, shards, write_data, write_settings

from evalstone import read_run

SAMPLES = 260
"""Two and a half minutes at the rate."""
FULL = 1_000
SHARDS = 4
RATE = 100
"""Requests a minute."""
BUDGET = 5.0
PRICE = 40.0
"""Dollars per million tokens."""
BUDGET_SAMPLES = 1_000
CONCURRENCY = 8


def limits(samples: int, folder: Path) -> None:
    """The most requests in any 60 seconds, and what was paid."""
    with ledger_on_postgresql() as url:
        if url is None:
            return
        write_data(folder / "data.jsonl", samples)
        with serving(200) as server:
            judge = server.judge(requests_per_minute=RATE)
            given = {"data": "data.jsonl", "out": "rate", "ledger": url}
            commands = shards(write_settings(folder / "rate.toml", [MODEL], judge, **given), SHARDS)
            began = time.perf_counter()
            run(*commands, cwd=folder)
            run([*EVALSTONE, "merge", "rate"], cwd=folder)
            seconds = time.perf_counter() - began
            times = sorted(at for at, _, _ in server.log)
        assert len(read_run(folder / "rate").records) == samples == len(times)
        most = max(bisect_right(times, at + 60) - number for number, at in enumerate(times))
        asked = times[-1] - times[0]
        print(
            f"  rate: {SHARDS} shards sent {samples} requests in {seconds:.0f} s, at most {most} in any 60 s of {RATE} "
            f"a minute ({60 * (samples - 1) / asked:.0f} a minute used)",
            flush=True,
        )
        assert most <= RATE
    with ledger_on_postgresql() as url:
        assert url is not None
        write_data(folder / "data.jsonl", BUDGET_SAMPLES)
        with serving(200) as server:
            judge = server.judge(prices=[PRICE, PRICE])
            given = {"data": "data.jsonl", "out": "budget", "ledger": url, "concurrency": CONCURRENCY}
            settings = write_settings(folder / "budget.toml", [MODEL], judge, budget=BUDGET, **given)
            processes = [
                subprocess.Popen(each, cwd=folder, stderr=subprocess.PIPE, text=True)
                for each in shards(settings, SHARDS)
            ]
            told = [process.communicate()[1] for process in processes]
            log = server.log
            paid = sum(tokens for _, _, tokens in log) * PRICE / 1e6
            largest = max(tokens for _, _, tokens in log) * PRICE / 1e6
            in_flight = SHARDS * CONCURRENCY * largest
            print(
                f"  budget: {SHARDS} shards paid ${paid:.2f} of ${BUDGET:.2f} in {len(log)} calls, "
                f"status {[process.returncode for process in processes]}; all calls in flight cost ${in_flight:.2f}",
                flush=True,
            )
            print(f"    {told[0].splitlines()[-1]}")
            assert paid <= BUDGET + in_flight
            assert all(process.returncode == 3 for process in processes)
            higher = write_settings(folder / "budget.toml", [MODEL], judge, budget=20 * BUDGET, **given)
            run(*shards(higher, SHARDS), cwd=folder)
            run([*EVALSTONE, "merge", "budget"], cwd=folder)
            again = len(server.log) - BUDGET_SAMPLES
            print(f"  budget: finished with a higher one; {again} calls more than samples", flush=True)
    shutil.rmtree(folder / "budget")

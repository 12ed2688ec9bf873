"""The row `same` of bench/scale.py: whoever scores, and in however many processes, the run is the same."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

from scale_work import EVALSTONE, LEXICAL, MODEL, has_ray, on_ray, run, serving, shards, write_data, write_settings

import evalstone
from evalstone import compare, read_run
from evalstone._core.guards import is_list, is_object

SAMPLES = 20_000
FULL = 100_000
_CHANGES = ("seconds", "source", "id", "started", "name")
"""What differs between two runs of one process, too."""


def same(samples: int, folder: Path) -> None:
    """One process, Ray with 1 and 2 workers, and 4 shards."""
    data = write_data(folder / "data.jsonl", samples)
    before = write_settings(folder / "before.toml", ["exact_match", LEXICAL], data="before.jsonl", out="before")
    write_data(folder / "before.jsonl", samples, seed=2)
    run([*EVALSTONE, "run", str(before), "--ledger", "before.db"], cwd=folder)
    with serving(0) as server:
        scorers = ["exact_match", LEXICAL, MODEL]
        settings = write_settings(folder / "same.toml", scorers, server.judge(), data=data.name)
        began = time.perf_counter()
        run([*EVALSTONE, "run", str(settings), "--ledger", "one.db", "--out", "one"], cwd=folder)
        print(f"  one process: {samples * 3:,} records in {time.perf_counter() - began:.0f} s", flush=True)
        ways = {"4 shards": shards(settings, 4, "--out", "shards")}
        if has_ray():
            ways |= {f"Ray, {n} worker(s)": [on_ray(n, str(settings), "--out", f"ray{n}")] for n in (1, 2)}
        for name, commands in ways.items():
            began = time.perf_counter()
            run(*commands, cwd=folder)
            out = folder / commands[0][commands[0].index("--out") + 1]
            if "shards" in name:
                run([*EVALSTONE, "merge", str(out)], cwd=folder)
            seconds = time.perf_counter() - began
            print(f"  {name}: {_differences(folder, out)}, in {seconds:.0f} s", flush=True)


def _differences(folder: Path, out: Path) -> str:
    one, other, before = (read_run(path) for path in (folder / "one", out, folder / "before"))
    pairs = itertools.zip_longest(one.records, other.records)
    records = sum(a is None or b is None or _plain(a.to_dict()) != _plain(b.to_dict()) for a, b in pairs)
    summaries = _plain(_numbers(one)) == _plain(_numbers(other))
    comparisons = [_plain(compare(before, each).to_dict()["scorers"]) for each in (one, other)]
    equal = {"means, intervals and histograms": summaries, "comparison": comparisons[0] == comparisons[1]}
    told = ", ".join(f"{what} {'equal' if is_so else 'DIFFERENT'}" for what, is_so in equal.items())
    return f"{len(other):,} records, {records} of them different; {told}"


def _numbers(run: evalstone.Run) -> list[Any]:
    return [
        [
            line.interval,
            line.histogram,
            line.n_score,
            line.n_skipped,
            line.n_failed,
            line.asked + line.shared,
            line.cost,
        ]
        for line in run.summary
    ]


def _plain(data: Any) -> Any:
    """Data without what differs between two runs of one process."""
    if is_object(data):
        return {name: _plain(value) for name, value in data.items() if name not in _CHANGES}
    return [_plain(item) for item in data] if is_list(data) else data

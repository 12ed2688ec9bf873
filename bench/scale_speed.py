"""The rows `speed` and `large` of bench/scale.py: what shards and workers of Ray gain, and 10 million records."""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scale_work import (
    CODE,
    EVALSTONE,
    LEXICAL,
    Took,
    has_ray,
    load_of_machine,
    on_ray,
    run,
    shards,
    write_data,
    write_settings,
)

SAMPLES = 20_000
FULL = 60_000
LARGE = 250_000
LARGE_FULL = 2_500_000
TIMES = 3
CODE_SCORERS = ("exact_match", "contains", "levenshtein", "rouge_l")


def speed(samples: int, folder: Path) -> None:
    """Code and lexical scorers, in one process, on Ray with one and two workers, and in two shards; in turns."""
    write_data(folder / "data.jsonl", samples)
    settings = write_settings(folder / "speed.toml", [*CODE, LEXICAL], data="data.jsonl", out="out", keep="scores")
    one = [*EVALSTONE, "run", str(write_settings(folder / "one.toml", [*CODE, LEXICAL], data="data.jsonl", out="one"))]
    ways: dict[str, Callable[[], Sequence[Took]]] = {
        "one process": lambda: run([*one, "--ledger", "one.db"], cwd=folder),
        "one shard": lambda: _in_shards(settings, 1, folder),
        "two shards": lambda: _in_shards(settings, 2, folder),
    }
    if has_ray():
        ways |= {f"Ray, {n} worker(s)": lambda n=n: run(on_ray(n, str(settings)), cwd=folder) for n in (1, 2)}
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TIMES):
        for name, way in ways.items():
            for path in ("out", "one"):
                shutil.rmtree(folder / path, ignore_errors=True)
            (folder / "one.db").unlink(missing_ok=True)
            began = time.perf_counter()
            each = way()
            took[name].append(time.perf_counter() - began)
            cpu = sum(one.cpu for one in each)
            print(f"  {name}: {took[name][-1]:.1f} s, {cpu:.1f} s of CPU, {load_of_machine()}", flush=True)
    base = statistics.median(took["one process"])
    for name, seconds in took.items():
        middle = statistics.median(seconds)
        rate = samples * (len(CODE) + 1) / middle
        print(f"  {name}: median {middle:.1f} s, {rate:,.0f} records a second, {base / middle:.2f}x one process")


def large(samples: int, folder: Path) -> None:
    """Scorers in code, with --keep scores."""
    write_data(folder / "data.jsonl", samples)
    given = {"data": "data.jsonl", "out": "out", "keep": "scores"}
    settings = write_settings(folder / "large.toml", CODE_SCORERS, None, **given)
    number = samples * len(CODE_SCORERS)
    ways = {"two shards": shards(settings, 2)}
    if has_ray():
        ways["Ray, 2 workers"] = [on_ray(2, str(settings))]
    for name, commands in ways.items():
        shutil.rmtree(folder / "out", ignore_errors=True)
        began = time.perf_counter()
        with _Watched() as watched:
            took = run(*commands, cwd=folder)
            scored = time.perf_counter() - began
            if "shards" in name:
                took = [*took, *run([*EVALSTONE, "merge", "out"], cwd=folder)]
        seconds = time.perf_counter() - began
        size = sum(file.stat().st_size for file in (folder / "out" / "blocks").iterdir())
        each = ", ".join(f"{one.megabytes:.0f} MB ({one.cpu:.0f} s of CPU)" for one in took)
        workers = f"; workers of Ray {watched.megabytes:.0f} MB" if watched.megabytes else ""
        print(
            f"  {name}: {number:,} records in {seconds / 60:.1f} minutes ({scored:.0f} s without the merge), "
            f"{size / number:.1f} bytes a record; processes {each}{workers}; {load_of_machine()}",
            flush=True,
        )


def _in_shards(settings: Path, number: int, folder: Path) -> Sequence[Took]:
    took = run(*shards(settings, number), cwd=folder)
    return [*took, *run([*EVALSTONE, "merge", "out"], cwd=folder)]


class _Watched:
    """Meanwhile, sees the most memory that a worker of Ray had."""

    megabytes = 0.0

    def __enter__(self) -> _Watched:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(2):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if (process / "cmdline").read_bytes().startswith(b"ray::_Worker"):
                        status = (process / "status").read_text()
                        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
                        self.megabytes = max(self.megabytes, int(peak.split()[1]) / 1024)
                except (OSError, StopIteration):
                    continue  # it has ended

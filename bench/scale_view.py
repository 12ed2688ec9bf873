"""What `evalstone view` takes on large runs in blocks, in a process of its own.

    python bench/scale_view.py FOLDER            # a run: its first opening, then its pages
    python bench/scale_view.py FOLDER OTHER      # also the comparison of two

Prints seconds and processor time, the peak of memory so far, and what is written to the disk.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from processes import own_peak
from view import get

from evalstone.view.addresses import compare_address, run_address, sample_address
from evalstone.view.app import application
from evalstone.view.indexing import jobs
from evalstone.view.shelf import Shelf

REQUESTS = 5


def timed(what: str, work: Callable[[], object], times: int = 1) -> None:
    """Print what something takes: the slowest of several times."""
    wall, cpu = list[float](), list[float]()
    for _ in range(times):
        began = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - began[0])
        cpu.append(time.process_time() - began[1])
    print(f"  {what:34} {max(wall):7.2f} s  {max(cpu):7.2f} s of CPU  {own_peak():6.0f} MB", flush=True)


def of_run(run: str, last: int) -> dict[str, str]:
    """Pages of a run whose samples are sample-0 to sample-LAST."""
    here = run_address(run)
    return {
        "run": here,
        "page in the middle": f"{here}?after=[0.5, {last // 2}]",
        "page before another": f"{here}?before=[0.5, {last // 2}]",
        "by a score": f"{here}?sort=-score:token_f1",
        "by ID": f"{here}?sort=id",
        "order of the dataset": f"{here}?sort=-order",
        "skipped": f"{here}?show=skipped",
        "score in a range": f"{here}?scorer=token_f1&min=0.3&max=0.4",
        "reason": f"{here}?reason=the+answer+makes+no+claim",
        "search for an ID": f"{here}?q=sample-{last // 3}",
        "search for what all have": f"{here}?q=sample",
        "search for words of reasons": f"{here}?q=makes+no+claim",
        "JSON": f"{here}.json?after=[0.5, {last // 2}]",
        "sample": sample_address(run, f"sample-{last // 2}"),
        "sample in a filter": f"{sample_address(run, f'sample-{last // 2}')}?scorer=token_f1&max=0.5",
    }


def of_comparison(runs: list[str], last: int) -> dict[str, str]:
    """Pages of a comparison."""
    both = compare_address(runs)
    return {
        "comparison": both,
        "page in the middle": f"{both}&after=[0.5, {last // 2}]",
        "regressed": f"{both}&show=regressed",
        "fixed, one scorer": f"{both}&show=fixed&scorer=token_f1&sort=better",
        "missing, one scorer": f"{both}&show=missing&scorer=token_f1",
        "by ID": f"{both}&sort=id",
        "search for an ID": f"{both}&q=sample-{last // 3}",
        "search for words of reasons": f"{both}&q=makes+no+claim&show=regressed",
        "JSON": f"{compare_address(runs, suffix='.json')}&after=[0.5, {last // 2}]",
    }


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as temporary:
        tempfile.tempdir = temporary
        measure(Path(temporary), sys.argv[1:])


def measure(folder: Path, runs_in: list[str]) -> None:
    """Print what pages of the runs in these folders take. folder: An empty one, where indexes go."""
    jobs.PATIENCE = 3600.0
    gc.freeze()  # as the command does before it serves pages
    shelf = Shelf(None, runs_in)
    app, cards = application(shelf), sorted(shelf.cards(), key=lambda card: runs_in.index(card.folder))
    metadata = cards[0].metadata
    last = 0 if metadata is None else metadata.dataset.samples - 1
    runs = [card.id for card in cards]

    def disk() -> float:
        return sum(file.stat().st_size for file in folder.glob("*/*/*")) / 1e6

    timed("a run, first opened", lambda: get(app, run_address(runs[0])))
    print(f"  {'disk':34} {disk():7.0f} MB")
    for name, address in of_run(runs[0], last).items():
        timed(name, lambda address=address: get(app, address), REQUESTS)
    if runs[1:]:
        timed("another one, first opened", lambda: get(app, run_address(runs[1])))
        before = disk()
        timed("their comparison, first opened", lambda: get(app, compare_address(runs)))
        print(f"  {'disk':34} {disk() - before:7.0f} MB")
        for name, address in of_comparison(runs, last).items():
            timed(name, lambda address=address: get(app, address), REQUESTS)


if __name__ == "__main__":
    main()

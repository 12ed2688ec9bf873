"""What the pages of a run in progress cost: how much processor time their process takes, and how old what they show is.

    python bench/view_growing.py [--samples 250000] [--rate 500] [--every 2]

A process scores samples with four code scorers, so many in a second. Meanwhile, this one loads the page of the run
every few seconds, as a browser does. Prints the processor time of this process by second, also of the last quarter of
the run, when it is largest, the age of the newest sample that a page shows, and the time of a page.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from evalstone.errors import EvalstoneError
from evalstone.ledger.store import Ledger
from evalstone.view.addresses import run_address
from evalstone.view.app import application
from evalstone.view.shelf import Card, Shelf

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.view import get, quantile

WRITER = """
import asyncio, sys, time
sys.path.insert(0, {root!r})
from evalstone import evaluate
from bench.view import Given, Second, Third, Fourth, samples

class Paced(Given):
    name = "paced"
    begun = []

    async def score(self, *, output: str, metadata: dict) -> object:
        self.begun or self.begun.append(time.monotonic())
        number = len(self.begun)
        self.begun.append(0.0)
        await asyncio.sleep(max(0.0, self.begun[0] + number / {rate} - time.monotonic()))
        return Given.score(self, output=output, metadata=metadata)

evaluate([*samples({samples})], [Paced(), Second(), Third(), Fourth()], ledger={url!r}, name="growing")
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=250_000)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--every", type=float, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url, root = str(Path(folder) / "ledger.db"), str(Path(__file__).parent.parent)
        code = WRITER.format(root=root, rate=options.rate, samples=options.samples, url=url)
        with subprocess.Popen([sys.executable, "-c", code]) as writer:
            shelf, cards = Shelf(url), list[Card]()
            while not cards or not cards[0].records:
                time.sleep(0.1)
                with suppress(EvalstoneError):  # it isn't there yet
                    cards = [*shelf.cards()]
            run, app = cards[0].id, application(shelf)
            written: list[tuple[float, int]] = []
            seen: list[tuple[float, float, float, float]] = []
            began = time.perf_counter()
            while writer.poll() is None:
                with Ledger(url, read_only=True) as ledger:
                    number, running = ledger.progress(run)
                if not running:
                    break
                at, cpu = time.perf_counter(), time.process_time()
                written.append((at, number // 4))
                try:
                    shown = json.loads(get(app, f"{run_address(run)}.json"))["matching"]
                except SystemExit:  # the index is made from the beginning, or the run has ended
                    time.sleep(options.every)
                    continue
                now = time.perf_counter()
                known = next((time for time, count in written if count >= shown), at)
                seen.append((at - began, now - at, now - known, cpu))
                time.sleep(max(0.0, options.every - (now - at)))
    quarter = seen[3 * len(seen) // 4 :]
    for name, some in (("all", seen), ("the last quarter", quarter)):
        span = some[-1][0] - some[0][0]
        age, page = [each[2] for each in some], [1000 * each[1] for each in some]
        print(
            f"{name}: {span:.0f} s, {(some[-1][3] - some[0][3]) / span:.3f} s of CPU time by second, newest sample "
            f"{quantile(age, 0.5):.1f} s old (p95 {quantile(age, 0.95):.1f}), page {quantile(page, 0.5):,.0f} ms "
            f"(p95 {quantile(page, 0.95):,.0f})"
        )


if __name__ == "__main__":
    main()

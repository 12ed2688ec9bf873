"""What live scoring costs an application: microseconds in `submit`, and milliseconds of requests under load.

    python bench/live.py [--seconds 30] [--overload-seconds 10] [--sampling 0.1] [--realtime]

First `submit` and a call of a watched function, drawn and not drawn, for samples of several sizes, while the worker
scores. Calls every 5 ms find caches cold; `json.dumps` of a small object is measured beside them. Then
examples/live/load.py: 200 requests/s to the example application with live scoring and without, in turns, then ten times
as many; its coverage is checked.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalstone import Live

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.live import load

PASSAGE = "Parcels are delivered within three working days. Express parcels arrive on the next day. "


def sample(passages: int, messages: int) -> dict[str, Any]:
    """A sample with so many passages of 900 characters, and so many messages."""
    return {
        "input": "When are parcels delivered?",
        "output": "Within three working days.",
        "context": [f"{number}: {PASSAGE * 10}" for number in range(passages)],
        "messages": [{"role": "user", "content": f"{number}: {PASSAGE}"} for number in range(messages)],
    }


def timed(name: str, call: Callable[[], object]) -> None:
    """Print microseconds by the clock: the median and the 99th percentile, back to back and one every 5 ms."""
    told: list[str] = []
    for pause, calls in ((0.0, 500), (0.005, 1000)):
        taken: list[float] = []
        for _ in range(calls):
            begun = time.perf_counter()
            call()
            taken.append(1e6 * (time.perf_counter() - begun))
            if pause:
                time.sleep(pause)
        taken.sort()
        told.append(f"p50 {taken[calls // 2]:.1f}, p99 {taken[int(0.99 * calls)]:.1f} us")
        time.sleep(1)
    print(f"{name}: back to back {told[0]}; every 5 ms {told[1]}")


def main() -> None:
    """Print what was measured."""
    given = load.options()
    sizes = {"1 passage": sample(1, 0), "5 passages, 10 messages": sample(5, 10), "40 messages": sample(0, 40)}
    timed("json.dumps", lambda: json.dumps({"a": 1, "b": [1, 2, 3]}))
    with tempfile.TemporaryDirectory() as folder:
        for rate, kind in ((1.0, "drawn"), (0.0, "declined")):
            with Live("keyword_coverage", ledger=Path(folder, f"{rate}.db"), sampling=rate) as live:
                for name, fields in sizes.items():
                    timed(f"submit, {kind}, {name}", lambda live=live, fields=fields: live.submit(fields))

                @live.watch
                def answer(input: str, context: list[str]) -> str:
                    return "Within three working days."

                passages: list[str] = sizes["1 passage"]["context"]
                timed(f"watched call, {kind}", functools.partial(answer, "When?", passages))
    load.report(given)


if __name__ == "__main__":
    main()

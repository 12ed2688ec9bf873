"""Whatever an endpoint sends, a question ends with an answer or an error: many random replies over HTTP on loopback.

    python bench/fuzz_replies.py [--cases 100000] [--seed 0]

The replies are those of tests/odd_replies.py: completions and files of batch results, one in five, with odd values,
broken bytes, deep nesting, odd statuses and headers. Prints after every 10,000 how often each outcome came; ends with a
traceback and the smallest case where something else is raised.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile_serving import HostileServer, http, serving_hostile
from tests.odd_replies import batch_cases, read_batch, read_reply, replies

PART = 10_000


def fuzzed(strategy: Any, read: Any, server: HostileServer, cases: int, first: int) -> Counter[str]:
    """How often each outcome came."""
    outcomes: Counter[str] = Counter()

    @seed(first)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(case=strategy)
    def work(case: Any) -> None:
        server.requests.clear()
        outcomes[read(server, case)] += 1

    work()
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with serving_hostile(lambda _: http(b"")) as server:
        os.environ.update(OPENAI_BASE_URL=server.url, ANTHROPIC_BASE_URL=server.url)
        of_batches = options.cases // 5
        for name, strategy, read, cases in (
            ("replies", replies(), read_reply, options.cases - of_batches),
            ("batch results", batch_cases(), read_batch, of_batches),
        ):
            began, outcomes = time.perf_counter(), Counter[str]()
            while outcomes.total() < cases:  # hypothesis keeps all cases of one run in memory
                part = min(PART, cases - outcomes.total())
                outcomes += fuzzed(strategy, read, server, part, options.seed + outcomes.total())
                counts = ", ".join(f"{count:,} {kind}" for kind, count in outcomes.most_common())
                print(f"{outcomes.total():,} {name} in {time.perf_counter() - began:.0f} s: {counts}", flush=True)


if __name__ == "__main__":
    main()

"""A decision model beside a model that chats: calls per sample, processor time per question, samples per second.

    python bench/deciders.py [--samples 1000] [--latency-ms 20] [--rounds 3]

Both are servers on loopback that answer at once, plus the latency. The decision model lists claims by splitting
sentences, the other one in a call of its own. Without a ledger, 64 calls at once. Prints a line for each scorer and
judge: the fastest round.
"""

from __future__ import annotations

import argparse
import time

from engine import cpu, samples, server_url, start

from evalstone import Judge, ModelJudge, Sample, evaluate, parse_judge
from evalstone.types import JudgeCall

SCORERS = ("fact_check", "faithfulness", "context_precision")


def requests(calls: tuple[JudgeCall, ...]) -> int:
    """The requests of calls and of their members."""
    return sum(call.usage.requests for call in calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    records = samples(options.samples)
    server = start(options.latency_ms, (0.0, 0.0, 0.0))
    try:
        url = server_url(server)
        judges: dict[str, Judge] = {
            "chat": ModelJudge("vllm/bench", base_url=url),
            "decisions": parse_judge({"model": "systemone/bench", "base_url": url}),
        }
        for scorer in SCORERS:
            for name, judge in judges.items():
                rounds = [measured(records, scorer, judge) for _ in range(options.rounds)]
                wall, used, asked, scored = min(rounds)
                print(
                    f"{scorer:18} {name:10} {asked / len(records):6.2f} requests a sample  "
                    f"{1000 * used / asked:6.2f} ms CPU a request  {len(records) / wall:6.0f} samples/s  "
                    f"{scored}/{len(records)} scored",
                    flush=True,
                )
    finally:
        server.kill()
        server.wait()


def measured(records: list[Sample], scorer: str, judge: Judge) -> tuple[float, float, int, int]:
    """Seconds, seconds of processor time, requests, and samples with a score of one run."""
    wall, before = time.perf_counter(), cpu()
    run = evaluate(records, scorer, judge=judge, concurrency=64, ledger=None)
    wall, used = time.perf_counter() - wall, cpu() - before
    return wall, used, sum(requests(record.calls) for record in run), run[scorer].n_score


if __name__ == "__main__":
    main()

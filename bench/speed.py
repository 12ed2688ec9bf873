"""A run against the bare loop: the same 500 records and calls, interleaved, at latency 0 and 20 ms.

    python bench/speed.py [--url http://127.0.0.1:8399/v1] [--rounds 3] [--latencies 0,20]

The bare loop posts the bodies of evalstone's own requests over aiohttp, 32 at once, and parses the replies; nothing
else. With --url the server is one that is there (its latency cannot be set, so one latency is measured); without, one
is started. Prints the best round of each, and the ratio to the bare loop. Start-up is not in it, the ledger's writes
are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import engine

from evalstone import ModelJudge, Sample, evaluate, score
from evalstone.question import Question
from evalstone.questions import ListClaims, VerifyClaims

AT_ONCE = 32


def body(question: Question[Any]) -> bytes:
    """The request that asks a question, as ModelJudge makes it."""
    system, user = question.render()
    wanted = {"name": question.kind, "strict": True, "schema": question.schema()}
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    form = {"type": "json_schema", "json_schema": wanted}
    return json.dumps({"model": "bench", "messages": messages, "temperature": 0, "response_format": form}).encode()


def bodies(samples: list[Sample]) -> list[tuple[bytes, bytes]]:
    """For each sample the two requests that faithfulness makes, with three claims."""
    made: list[tuple[bytes, bytes]] = []
    for sample in samples:
        claims = tuple(f"{sample.id}: a statement of some words {n}" for n in range(3))
        verify = VerifyClaims(claims=claims, context=tuple(sample.context or ()))
        made.append((body(ListClaims(text=sample.output or "")), body(verify)))
    return made


async def bare(url: str, requests: list[tuple[bytes, bytes]]) -> None:
    """Post every pair in turn, so many pairs at once."""
    waiting = iter(requests)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:

        async def worker() -> None:
            for pair in waiting:
                for data in pair:
                    async with session.post(url, data=data, headers={"Content-Type": "application/json"}) as reply:
                        json.loads(json.loads(await reply.read())["choices"][0]["message"]["content"])

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of a piece of work."""
    wall, used = time.perf_counter(), engine.cpu()
    work()
    return time.perf_counter() - wall, engine.cpu() - used


def measure(url: str, rounds: int, label: str) -> None:
    """Interleaved rounds; the best of each is printed."""
    samples = engine.samples(500)
    requests = bodies(samples)
    judge = ModelJudge("vllm/bench", base_url=url, api_key="none")
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        score("faithfulness", output="warm up", context=["x"], judge=judge, ledger=Path(folder) / "warm.db")
        for number in range(rounds):
            ledger = Path(folder) / f"{number}.db"
            works: dict[str, Callable[[], object]] = {
                "bare aiohttp loop": lambda: asyncio.run(bare(f"{url}/chat/completions", requests)),
                "evalstone, no ledger": lambda: evaluate(samples, "faithfulness", judge=judge, ledger=None),
                "evalstone, ledger": lambda at=ledger: evaluate(samples, "faithfulness", judge=judge, ledger=at),
            }
            for name, work in works.items():
                best[name] = min(best.get(name, (1e9, 1e9)), timed(work))
    reference = best["bare aiohttp loop"][0]
    for name, (wall, used) in best.items():
        rate = f"{500 / wall:7.0f} records/s  {used:5.2f} ms CPU a call"
        print(f"{label:8} {name:22} {rate}  {wall / reference:5.2f} x wall", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latencies", default="0,20")
    options = parser.parse_args()
    if options.url:
        measure(options.url, options.rounds, "given")
        return
    for latency in map(float, options.latencies.split(",")):
        server = engine.start(latency, (0.0, 0.0, 0.0))
        try:
            measure(engine.server_url(server), options.rounds, f"{latency:g} ms")
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()

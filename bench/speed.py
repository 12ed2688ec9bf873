"""A run against the bare loop and other libraries: the same records, interleaved, at latency 0 and 20 ms.

    python bench/speed.py [--peers-python PATH] [--url http://127.0.0.1:8399/v1] [--rounds 3] [--latencies 0,20]

The bare loop posts the bodies of evalstone's own requests over aiohttp, 32 at once, and parses the replies; nothing
else. The peers that are installed (bench/others.py) score the same records by their own faithfulness, or by one judge
question where they have none, each in a process of its own. With --url the server is one that is there (its latency
cannot be set, so one latency is measured); without, one is started. Printed is the best round of each: records a
second, calls a record, processor time a call, and the time a record takes as a multiple of the bare loop's. Start-up is
not in it, the ledger's writes are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import engine
import others

from evalstone import ModelJudge, Sample, evaluate, score
from evalstone.ledger.store import Ledger
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.base import Question

AT_ONCE = 32
RECORDS = 500
BARE = "bare aiohttp loop"


def body(question: Question[Any]) -> bytes:
    """The request that asks a question, as ModelJudge makes it."""
    system, user = question.render()
    wanted = {"name": question.kind, "strict": True, "schema": question.json_schema}
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


@dataclass(frozen=True)
class Taken:
    """What one round of one contestant took.

    calls: None when the server does not count; those for `warming` records before the clock ran are in it. trouble: why
    there are no figures.
    """

    records: int
    wall: float = float("inf")
    cpu: float = 0.0
    calls: int | None = None
    scored: int = 0
    warming: int = 0
    trouble: str = ""

    @property
    def each(self) -> float:
        """Wall seconds a record."""
        return self.wall / self.records

    @property
    def calls_each(self) -> float | None:
        """Calls a record."""
        return None if self.calls is None else self.calls / (self.records + self.warming)


Contest = dict[str, Callable[[], Taken]]


def timed(work: Callable[[], object]) -> Taken:
    """What a piece of work in this process, over all records, takes."""
    wall, used = time.perf_counter(), engine.cpu()
    work()
    return Taken(RECORDS, time.perf_counter() - wall, engine.cpu() - used, scored=RECORDS)


def asked(url: str) -> int | None:
    """How many completions the server was asked for so far."""
    try:
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=10) as reply:
            return int(json.loads(reply.read())["requests"])
    except (urllib.error.URLError, KeyError, ValueError):
        return None


def counted(url: str, work: Callable[[], Taken]) -> Taken:
    """The work, with the calls that it made."""
    before = asked(url)
    taken, after = work(), asked(url)
    calls = None if before is None or after is None else after - before
    return replace(taken, calls=calls)


def ours(url: str, samples: list[Sample], folder: Path) -> Contest:
    """The bare loop, and evalstone without and with a ledger."""
    requests = bodies(samples)
    judge = ModelJudge("vllm/bench", base_url=url, api_key="none")
    score("faithfulness", output="warm up", context=["x"], judge=judge, ledger=folder / "warm.db")

    def run(ledger: Path | None) -> None:
        evaluate(samples, "faithfulness", judge=judge, ledger=ledger, concurrency=AT_ONCE)

    def new_ledger() -> Path:
        path = Path(tempfile.mkdtemp(dir=folder)) / "ledger.db"
        Ledger(path).close()  # its file and tables are made once in a project: start-up
        return path

    def with_ledger() -> Taken:
        path = new_ledger()
        return timed(lambda: run(path))

    return {
        BARE: lambda: timed(lambda: asyncio.run(bare(f"{url}/chat/completions", requests))),
        "evalstone, no ledger": lambda: timed(lambda: run(None)),
        "evalstone, ledger": with_ledger,
    }


def theirs(url: str, samples: Sequence[Sample], peers: Sequence[others.Installed], folder: Path) -> Contest:
    """The peers, each over these samples in a process of its own."""
    rows = [{"question": s.input, "answer": s.output, "contexts": list(s.context or ())} for s in samples]
    records = folder / "records.jsonl"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def run(peer: others.Installed) -> Taken:
        got = others.measured(peer, url, records, AT_ONCE, folder)
        if isinstance(got, str):
            return Taken(len(rows), trouble=got)
        return Taken(len(rows), got["wall"], got["cpu"], scored=got["scored"], warming=1)

    return {str(peer): lambda peer=peer: run(peer) for peer in peers}


def measure(url: str, label: str, options: argparse.Namespace, peers: Sequence[others.Installed]) -> None:
    """Interleaved rounds at one server; the best of each is printed."""
    samples = engine.samples(RECORDS)
    best: dict[str, Taken] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contest = ours(url, samples, folder) | theirs(url, samples[: options.peer_records], peers, folder)
        for _ in range(options.rounds):
            for who, work in contest.items():
                taken = counted(url, work)
                if who not in best or taken.each < best[who].each:
                    best[who] = taken
    print(f"{label}: {RECORDS} records (peers: {options.peer_records}), {AT_ONCE} at once, best of {options.rounds}")
    print(f"{'':24} {'records/s':>9}  {'calls a record':>14}  {'CPU ms a call':>13}  {'a record takes':>14}")
    for who, taken in best.items():
        print(f"{who:24} {line(taken, best[BARE].each)}", flush=True)


def line(taken: Taken, bare_each: float) -> str:
    """The figures of one contestant."""
    if taken.trouble:
        return f"    {taken.trouble}"
    calls = taken.calls_each
    used = f"{1000 * taken.cpu / (calls * taken.records):.2f}" if calls else "?"
    calls_text = "?" if calls is None else f"{calls:.1f}"
    lost = "" if taken.scored == taken.records else f"  {taken.scored} of {taken.records} scored"
    return f"{1 / taken.each:9.0f}  {calls_text:>14}  {used:>13}  {taken.each / bare_each:12.2f} x{lost}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latencies", default="0,20")
    parser.add_argument("--peers-python", action="append", default=[], metavar="PATH", help="where peers are installed")
    parser.add_argument("--peer-records", type=int, default=100, help="how many records the peers score")
    options = parser.parse_args()
    found = others.find(options.peers_python)
    peers = list(found.values())
    if options.url:
        measure(options.url, "the given server", options, peers)
    else:
        for latency in options.latencies.split(","):
            server = engine.start(float(latency), (0.0, 0.0, 0.0))
            try:
                measure(engine.server_url(server), f"latency {latency} ms", options, peers)
            finally:
                server.kill()
                server.wait()
    print(others.missing_message(found))


if __name__ == "__main__":
    main()

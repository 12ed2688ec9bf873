"""A run against the bare loop and other libraries: the same records, in alternating rounds.

    python bench/speed.py [--peers-python PATH] [--rounds 3] [--only in-flight] [--url http://127.0.0.1:8399/v1]

There are three settings: 32 calls in flight at a latency of 0 and of 20 ms, and 2,000 in flight at 1 s. The bare loop
posts the bodies of evalstone's own requests with aiohttp and parses the replies; nothing else. The peers that
are installed (bench/others.py) score the same records by their own faithfulness, or by one judge question where they
have none, each in a process of its own. With --url, a server that is already there is measured once, with 32 calls in
flight. Printed are the medians of the rounds; ratios are to the bare loop of the same round, with the lowest and the
highest. Startup is not measured; writing to the ledger is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import engine
import others

from evalstone import ModelJudge, Sample, evaluate, score
from evalstone.ledger.store import Ledger
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.base import Question

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


async def bare(url: str, requests: list[tuple[bytes, bytes]], in_flight: int = 32) -> None:
    """Post every pair in turn, so many pairs at once."""
    waiting = iter(requests)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def worker() -> None:
            for pair in waiting:
                for data in pair:
                    async with session.post(url, data=data, headers={"Content-Type": "application/json"}) as reply:
                        json.loads(json.loads(await reply.read())["choices"][0]["message"]["content"])

        await asyncio.gather(*(worker() for _ in range(in_flight)))


@dataclass(frozen=True)
class Taken:
    """What one round of one contestant took.

    calls: None when the server does not count; those for `warming` records before the clock ran are in it. trouble: why
    there are no figures.
    """

    records: int
    wall: float = nan
    cpu: float = nan
    calls: int | None = None
    scored: int = 0
    warming: int = 0
    trouble: str = ""

    @property
    def calls_each(self) -> float:
        """Calls a record; NaN if they are not known."""
        return nan if self.calls is None else self.calls / (self.records + self.warming)

    @property
    def cpu_each(self) -> float:
        """Milliseconds of processor time a call."""
        return 1000 * self.cpu / (self.calls_each * self.records)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls_each * self.records / self.wall


@dataclass(frozen=True)
class Setting:
    """What is measured: calls in flight at a latency, over so many records."""

    name: str
    latency_ms: float = 0.0
    in_flight: int = 32
    records: int = 500
    peer_records: int = 100


SETTINGS = (
    Setting("latency 0"),
    Setting("latency 20 ms", latency_ms=20),
    Setting("in-flight, latency 1 s", latency_ms=1000, in_flight=2000, records=8000, peer_records=2000),
)
Contest = dict[str, Callable[[], Taken]]


def timed(work: Callable[[], object], records: int) -> Taken:
    """What a piece of work in this process, over all records, takes."""
    gc.collect()
    wall, used = time.perf_counter(), engine.cpu()
    work()
    return Taken(records, time.perf_counter() - wall, engine.cpu() - used, scored=records)


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


def ours(url: str, samples: list[Sample], folder: Path, in_flight: int) -> Contest:
    """The bare loop, and evalstone without and with a ledger."""
    requests = bodies(samples)
    judge = ModelJudge("vllm/bench", base_url=url, api_key="none")
    score("faithfulness", output="warm up", context=["x"], judge=judge, ledger=folder / "warm.db")

    def run(ledger: Path | None) -> None:
        line = evaluate(samples, "faithfulness", judge=judge, ledger=ledger, concurrency=in_flight)["faithfulness"]
        if line.n_score != len(samples):
            raise RuntimeError(f"{line.n_score} of {len(samples)} samples were scored")

    def new_ledger() -> Path:
        path = Path(tempfile.mkdtemp(dir=folder)) / "ledger.db"
        Ledger(path).close()  # its file and tables are created once per project: startup
        return path

    def with_ledger() -> Taken:
        path = new_ledger()
        return timed(lambda: run(path), len(samples))

    completions = f"{url}/chat/completions"
    return {
        BARE: lambda: timed(lambda: asyncio.run(bare(completions, requests, in_flight)), len(samples)),
        "evalstone, no ledger": lambda: timed(lambda: run(None), len(samples)),
        "evalstone, ledger": with_ledger,
    }


def theirs(
    url: str, samples: Sequence[Sample], peers: Sequence[others.Installed], folder: Path, in_flight: int
) -> Contest:
    """The peers, each over these samples in a process of its own."""
    rows = [{"question": s.input, "answer": s.output, "contexts": list(s.context or ())} for s in samples]
    records = folder / "records.jsonl"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def run(peer: others.Installed) -> Taken:
        got = others.measured(peer, url, records, in_flight, folder)
        if isinstance(got, str):
            return Taken(len(rows), trouble=got)
        return Taken(len(rows), got["wall"], got["cpu"], scored=got["scored"], warming=1)

    return {str(peer): lambda peer=peer: run(peer) for peer in peers}


def measure(url: str, setting: Setting, rounds: int, peers: Sequence[others.Installed]) -> None:
    """Measure everyone in alternating rounds at one server, and print the table."""
    samples = engine.samples(setting.records)
    taken: dict[str, list[Taken]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = samples[: setting.peer_records]
        contest = ours(url, samples, folder, setting.in_flight)
        contest |= theirs(url, few, peers, folder, setting.in_flight)
        for _ in range(rounds):
            for who, work in contest.items():
                taken.setdefault(who, []).append(counted(url, work))
    print(
        f"{setting.name}: {setting.records:,} records (other libraries: {len(few):,}), {setting.in_flight:,} in flight"
        f", medians of {rounds} rounds"
    )
    columns = ("calls/s", "calls a record", "CPU ms a call", "CPU, x bare (range)", "time a call, x bare")
    print(" " * 24 + "".join(f"  {column:>20}" for column in columns))
    for who, rows in taken.items():
        print(f"{who:24}{line(rows, taken[BARE])}", flush=True)


def line(rows: Sequence[Taken], bare_rows: Sequence[Taken]) -> str:
    """The figures of one contestant."""
    if trouble := next((one.trouble for one in rows if one.trouble), ""):
        return f"    {trouble}"
    pairs = list(zip(rows, bare_rows, strict=True))
    figures = (
        f"{median(one.rate for one in rows):,.0f}",
        f"{median(one.calls_each for one in rows):.1f}",
        f"{median(one.cpu_each for one in rows):.3f}",
        spread([one.cpu_each / other.cpu_each for one, other in pairs]),
        spread([other.rate / one.rate for one, other in pairs]),
    )
    lost = min(one.scored - one.records for one in rows)
    return "".join(f"  {figure:>20}" for figure in figures) + (f"  {-lost} not scored" if lost else "")


def spread(ratios: Sequence[float]) -> str:
    """The median, with the lowest and the highest."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a model server that is already there")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", metavar="WORD", help="the settings whose name has this word")
    parser.add_argument("--peers-python", action="append", default=[], metavar="PATH", help="where peers are installed")
    options = parser.parse_args()
    found = others.find(options.peers_python)
    peers = list(found.values())
    if options.url:
        measure(options.url, Setting("the given server"), options.rounds, peers)
    else:
        for setting in SETTINGS:
            if options.only not in setting.name:
                continue
            server = engine.start(setting.latency_ms, (0.0, 0.0, 0.0))
            try:
                measure(engine.server_url(server), setting, options.rounds, peers)
            finally:
                server.kill()
                server.wait()
    print(others.missing_message(found))


if __name__ == "__main__":
    main()

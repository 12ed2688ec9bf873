"""How long requests take with live scoring and without, and whether its numbers add up.

    python load.py                    200 requests/s for 30 s, then ten times as many for 10 s, to each
    python load.py --seconds 5 --overload-seconds 2
    python load.py --priority low     the worker has a tenth of a processor, and not only what is idle
    python load.py --realtime         on a busy machine, as root: servers and client run before other processes

Both applications are served on loopback, each by a process of its own. They take turns of two seconds, so that what
else the machine does meets both, and are overloaded one after the other. Requests are sent by the clock, and a latency
counts from when a request was due.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evalstone.live import Coverage, coverage

TURN = 2.0
CONNECTIONS = 16
QUESTIONS = ("When are parcels delivered?", "Can shoes be returned?", "When is the shop in Lisbon open?")


@dataclass
class Latencies:
    """Milliseconds."""

    values: list[float] = field(default_factory=list[float])

    def percentile(self, share: float) -> float:
        """The value that this share of the requests did not exceed."""
        ordered = sorted(self.values)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def __str__(self) -> str:
        shares = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
        return ", ".join(f"{name} {self.percentile(share):.2f} ms" for share, name in shares)


def first(pid: int) -> None:
    """Run a process before all others, but not those that it starts, such as the worker."""
    os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(5))


@contextmanager
def served(target: str, folder: Path, sampling: float, priority: str, *, realtime: bool) -> Generator[int]:
    """Serve `app:app` or `app:application`, and give its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    options = [
        "--app-dir",
        str(Path(__file__).parent),
        "--port",
        str(port),
        "--log-level",
        "warning",
        "--no-access-log",
        "--timeout-keep-alive",
        "60",
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", target, *options],
        cwd=folder,
        env={**os.environ, "SAMPLING": str(sampling), "PRIORITY": priority},
    )
    try:
        if realtime:
            first(server.pid)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


class Client:
    """Connections to one server that stay open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self.sent = 0

    async def open(self) -> None:
        """Connect."""
        for _ in range(CONNECTIONS):
            self._free.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))

    async def close(self) -> None:
        """Disconnect."""
        while not self._free.empty():
            _, writer = self._free.get_nowait()
            writer.close()
            await writer.wait_closed()

    async def ask(self, number: int, due: float, latencies: Latencies) -> None:
        """Send a request and read its response."""
        body = json.dumps({"question": QUESTIONS[number % len(QUESTIONS)]})
        trace = f"traceparent: 00-{number + 1:032x}-00f067aa0ba902b7-01\r\n"
        head = f"POST /ask HTTP/1.1\r\nhost: localhost\r\n{trace}content-length: {len(body)}\r\n\r\n"
        reader, writer = await self._free.get()
        self.sent += 1
        writer.write((head + body).encode())
        answered = await reader.readuntil(b"\r\n\r\n")
        if not answered.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answered.decode())
        length = next(line for line in answered.split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        latencies.values.append(1000 * (time.perf_counter() - due))
        self._free.put_nowait((reader, writer))

    async def load(self, rate: float, seconds: float, latencies: Latencies) -> None:
        """Send requests by the clock, whether the earlier ones are answered or not."""
        begun, tasks, first = time.perf_counter(), list[asyncio.Task[None]](), self.sent
        for number in range(int(rate * seconds)):
            due = begun + number / rate
            if (ahead := due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            tasks.append(asyncio.create_task(self.ask(first + number, due, latencies)))
        await asyncio.gather(*tasks)


@dataclass
class Result:
    """What was measured."""

    plain: Latencies = field(default_factory=Latencies)
    scored: Latencies = field(default_factory=Latencies)
    plain_overload: Latencies = field(default_factory=Latencies)
    scored_overload: Latencies = field(default_factory=Latencies)
    requests: int = 0
    """To the application with live scoring."""


async def measure(plain: int, scored: int, rate: float, seconds: float, overload: float) -> Result:
    """Load both servers in turns, then one after the other with ten times as much."""
    result, clients = Result(), (Client(plain), Client(scored))
    gc.disable()  # a collection in this process takes up to 40 ms, and would count as the servers'
    for client in clients:
        await client.open()
        await client.load(rate, 1.0, Latencies())  # the first requests import and connect
    left = seconds
    while left > 0:
        for client, latencies in zip(clients, (result.plain, result.scored), strict=True):
            await client.load(rate, min(TURN, left), latencies)
        left -= TURN
    for client, latencies in zip(clients, (result.plain_overload, result.scored_overload), strict=True):
        await client.load(10 * rate, overload, latencies)
    gc.enable()
    for client in clients:
        await client.close()
    result.requests = clients[1].sent
    return result


def run(
    rate: float, seconds: float, overload: float, sampling: float, priority: str = "idle", *, realtime: bool = False
) -> tuple[Result, Coverage]:
    """Serve, load, stop, and read the coverage."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            served("app:application", folder, sampling, priority, realtime=realtime) as plain,
            served("app:app", folder, sampling, priority, realtime=realtime) as scored,
        ):
            if realtime:
                first(os.getpid())
            result = asyncio.run(measure(plain, scored, rate, seconds, overload))
        found = coverage("shop-assistant", ledger=folder / ".evalstone" / "ledger.db")
        for one in found.scorers:
            if one.unaccounted or one.seen != result.requests:
                raise RuntimeError(f"the numbers don't add up: {result.requests} requests, {one}")
        return result, found


def report(given: argparse.Namespace) -> None:
    """Measure, and print what was measured."""
    result, found = run(
        given.rate, given.seconds, given.overload_seconds, given.sampling, given.priority, realtime=given.realtime
    )
    for name, plain, scored in (
        ("", result.plain, result.scored),
        (", overloaded", result.plain_overload, result.scored_overload),
    ):
        if scored.values:
            print(f"without live scoring{name}: {plain} ({len(plain.values):,} requests)")
            print(f"with it{name}: {scored} ({len(scored.values):,} requests)")
            print(f"difference at p99{name}: {scored.percentile(0.99) - plain.percentile(0.99):+.2f} ms")
    for one in found.scorers:
        told = f"{one.seen:,} seen, {one.declined:,} declined, {one.dropped_queue:,} dropped, {one.n_score:,} scores"
        print(
            f"{one.scorer}: {told}, {one.n_skipped + one.n_failed + one.pending} other, {one.unaccounted} unaccounted"
        )


def options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--overload-seconds", type=float, default=10.0)
    parser.add_argument("--sampling", type=float, default=0.1)
    parser.add_argument("--priority", choices=("low", "idle"), default="idle")
    parser.add_argument("--realtime", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    report(options())

"""Several processes on one ledger on a server: limits and a budget are for all of them together."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalstone.ledger.store import Ledger
from evalstone.models.shared_limits import SLACK
from tests.serving import Response, Server, completion, obliging, serving

pytestmark = pytest.mark.slow  # each test waits for processes that keep to limits

ROOT = Path(__file__).parents[2]


@dataclass
class Pool:
    """Processes that work for one test after the other: they start slowly. One that has not ended its job is killed."""

    free: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])
    busy: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    @contextmanager
    def asking(self, url: str, server: Server, names: str, **settings: Any) -> Generator[list[subprocess.Popen[str]]]:
        """A process for each name, which begin to ask at the same time."""
        while len(self.free) < len(names):
            command = [sys.executable, "-m", "tests.ledger.limited"]
            pipe = subprocess.PIPE
            self.free.append(
                subprocess.Popen(command, cwd=ROOT, text=True, bufsize=1, stdin=pipe, stdout=pipe, stderr=pipe)
            )
        self.busy, self.free = self.free[: len(names)], self.free[len(names) :]
        started = [*self.busy]
        try:
            for process, name in zip(started, names, strict=True):
                job = {"name": name, "ledger": url, "base_url": server.url, **settings}
                write(process, json.dumps(job))
            for process in started:
                assert read(process) == "ready\n"
            for process in started:
                write(process, "")
            yield started
        finally:
            end(self.busy)

    def ended(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The result of a process, which is free then."""
        told = json.loads(read(process))
        self.busy.remove(process)
        self.free.append(process)
        return told


def write(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    late = threading.Timer(120, process.kill)
    late.start()
    line = process.stdout.readline()
    late.cancel()
    assert line, process.stderr.read()
    return line


def end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def pool() -> Generator[Pool]:
    shared = Pool()
    yield shared
    end(shared.free)


class Arrivals:
    """The behaviour of a server that knows when requests arrived, and how many were there at once."""

    def __init__(self, delay: float = 0.0) -> None:
        self.at: list[float] = []
        self.delay = delay
        self.lock = threading.Lock()

    def __call__(self, request: dict[str, Any], number: int) -> Response:
        self.at.append(time.monotonic())
        return Response(body=obliging(request, number), delay=self.delay)


def test_four_processes_keep_to_the_requests_of_a_minute_at_any_time(postgres_url: str, pool: Pool) -> None:
    limit, behaviour = 600, Arrivals()
    with (
        serving(behaviour) as server,
        pool.asking(postgres_url, server, "abcd", questions=15, requests_per_minute=limit) as started,
    ):
        assert [pool.ended(process)["answered"] for process in started] == [15] * 4
    at = sorted(behaviour.at)
    assert len(at) == 60
    for first, begin in enumerate(at):
        for last in range(first, len(at)):  # with a minute's length, this is the limit
            assert last - first + 1 <= (at[last] - begin + SLACK) * limit / (60 + SLACK) + 1
    assert at[-1] - at[0] < 2 * 60 * (60 + SLACK) / limit  # and most of it is used, also by a busy machine


def test_four_processes_share_the_slots_of_concurrent_calls(postgres_url: str, pool: Pool) -> None:
    with (
        serving(Arrivals(0.05)) as server,
        pool.asking(postgres_url, server, "abcd", questions=10, max_concurrency=6) as started,
    ):
        assert [pool.ended(process)["answered"] for process in started] == [10] * 4
    assert 3 <= server.most_at_once <= 6


def test_fewer_slots_than_processes_go_round(postgres_url: str, pool: Pool) -> None:
    with (
        serving(Arrivals(0.05)) as server,
        pool.asking(postgres_url, server, "abc", questions=4, max_concurrency=1) as started,
    ):
        assert [pool.ended(process)["answered"] for process in started] == [4] * 3
    assert server.most_at_once == 1


def test_the_slots_of_a_killed_process_are_free_again_and_its_slice_is_lost(postgres_url: str, pool: Pool) -> None:
    with (
        serving(Arrivals(0.5)) as server,
        pool.asking(postgres_url, server, "ab", questions=6, max_concurrency=2) as started,
    ):
        while len(server.requests) < 2:
            time.sleep(0.01)
        began = time.monotonic()
        started[0].kill()
        assert pool.ended(started[1])["answered"] == 6
    assert time.monotonic() - began < 20


def test_a_wait_that_one_is_asked_for_holds_all_back(postgres_url: str, pool: Pool) -> None:
    refused: list[float] = []
    at: list[float] = []

    def busy_once(request: dict[str, Any], number: int) -> Response:
        at.append(time.monotonic())
        if number == 30:
            refused.append(time.monotonic())
            return Response(status=429, headers={"Retry-After": "4"}, body={"error": {"message": "slow down"}})
        return Response(body=obliging(request, number), delay=0.05)

    with serving(busy_once) as server, pool.asking(postgres_url, server, "ab", questions=60, concurrency=1) as started:
        assert [pool.ended(process)["answered"] for process in started] == [60] * 2
    assert not [when for when in at if refused[0] + 2.0 < when < refused[0] + 3.9]


def test_a_budget_is_not_exceeded_by_processes_that_share_it(postgres_url: str, pool: Pool) -> None:
    budget, price = 3.0, 0.12  # (100 + 20) tokens at $1000 a million
    settings = {"questions": 30, "budget": budget, "scope": "plan", "concurrency": 2}
    with serving() as server, pool.asking(postgres_url, server, "abcd", **settings) as started:
        told = [pool.ended(process) for process in started]
    paid = len(server.requests) * price
    assert sum(each["answered"] for each in told) == len(server.requests)
    assert budget - 4 * price < paid <= budget + 1e-9
    assert all("BudgetExceeded" in each["told"] for each in told)
    assert "of the budget of $3 ($" in told[0]["told"]["BudgetExceeded"]
    with serving() as server, pool.asking(postgres_url, server, "e", **{**settings, "budget": 4.0}) as started:
        pool.ended(started[0])
    assert paid + len(server.requests) * price <= 4.0 + 1e-9
    assert server.requests


def test_what_a_killed_process_holds_of_a_budget_counts_as_spent(postgres_url: str, pool: Pool) -> None:
    price = 0.12
    with (
        serving(Arrivals(0.1)) as server,
        pool.asking(postgres_url, server, "abcd", questions=40, budget=5.0, scope="plan", concurrency=2) as started,
    ):
        while len(server.requests) < 12:
            time.sleep(0.01)
        started[0].kill()
        told = [pool.ended(process) for process in started[1:]]
        paid = len(server.requests) * price
    assert all("BudgetExceeded" in each["told"] for each in told)
    assert 2.5 < paid <= 5.0 + 2 * price
    assert any("was reserved by processes that were killed" in each["told"]["BudgetExceeded"] for each in told)
    with Ledger(postgres_url) as ledger, ledger.transaction() as database:
        rows = database.execute("SELECT amount, used FROM limit_shares WHERE name = 'plan budget'").fetchall()
    assert len(rows) == 4
    assert sum(amount for amount, _ in rows) <= 5.0 + 1e-9
    open_slices = [amount for amount, used in rows if amount > used + 1e-9]
    assert len(open_slices) == 1


def test_max_requests_is_for_all_processes_with_a_scope(postgres_url: str, pool: Pool) -> None:
    settings = {"questions": 30, "max_requests": 25, "scope": "plan", "concurrency": 4}
    with serving(Arrivals(0.01)) as server, pool.asking(postgres_url, server, "abcd", **settings) as started:
        told = [pool.ended(process) for process in started]
    assert len(server.requests) == 25
    assert sum(each["answered"] for each in told) == 25
    assert all("max_requests=25" in each["told"]["RequestLimitReached"] for each in told)


def unusable(_: dict[str, Any], number: int) -> dict[str, Any]:
    return completion("nothing")


def test_a_correction_is_paid_from_what_all_share(postgres_url: str, pool: Pool) -> None:
    with (
        serving(unusable) as server,
        pool.asking(postgres_url, server, "ab", questions=4, budget=2.0, scope="plan", concurrency=1) as started,
    ):
        for process in started:
            pool.ended(process)
    assert len(server.requests) * 0.12 <= 2.0 + 2 * 0.12

"""A PostgreSQL server that goes away during a run, or has no connection left."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, LedgerError, evaluate
from evalstone.datasets.stored import record_line
from evalstone.errors import LedgerConnectionError
from evalstone.ledger import AsyncLedger, Claim
from evalstone.ledger.base import Operations
from evalstone.ledger.store import Ledger
from tests.ledger.rows import JUDGE, answer, record, run
from tests.ledger.test_lost_file import RESUME
from tests.postgres import Postgres
from tests.serving import obliging, serving

pytestmark = pytest.mark.slow

SAMPLES, CONCURRENCY = 20, 2
ROWS = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(SAMPLES)]


def evaluated(url: str, harm: Callable[[int], None]) -> tuple[int, int]:
    """Evaluate with a judge on loopback, which calls a function with the number of each request; records and calls."""

    def harming(request: dict[str, Any], number: int) -> Any:
        harm(number)
        return obliging(request, number)

    with serving(harming) as server:
        judge = {"model": "vllm/test", "base_url": server.url}
        found = evaluate(ROWS, "faithfulness", judge=judge, ledger=url, concurrency=CONCURRENCY, progress=False)
        assert found.complete
        return len(found), len(server.requests)


def test_a_connection_that_is_lost_again_and_again_costs_nothing(postgres_url: str, server: Postgres) -> None:
    def cut(number: int) -> None:
        if number % 7 == 0:
            server.disconnect()

    assert evaluated(postgres_url, cut) == (SAMPLES, 2 * SAMPLES)
    with Ledger(postgres_url) as ledger:
        (row,) = ledger.runs()
        assert row.finished is not None
        assert len(ledger.records(row.id)) == SAMPLES


def test_a_connection_that_is_cut_at_any_moment_costs_nothing(postgres_url: str, server: Postgres) -> None:
    done = threading.Event()

    def cut() -> None:
        while not done.wait(0.1):
            server.disconnect()

    cutting = threading.Thread(target=cut)
    cutting.start()
    try:
        assert evaluated(postgres_url, lambda _: time.sleep(0.01)) == (SAMPLES, 2 * SAMPLES)
    finally:
        done.set()
        cutting.join()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_restarted_during_a_run_costs_nothing(postgres_url: str, server: Postgres, mode: str) -> None:
    def restart(number: int) -> None:
        if number == 9:
            with server.stopped(mode):
                time.sleep(0.3)

    assert evaluated(postgres_url, restart) == (SAMPLES, 2 * SAMPLES)


def test_a_server_that_stays_away_ends_the_run_with_one_line_and_the_run_resumes(
    postgres_url: str, server: Postgres, tmp_path: Path
) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    code = "from evalstone.ledger import store; store.RECONNECT = 0.5; from evalstone.cli import main; main()"
    lost: list[subprocess.CompletedProcess[str]] = []
    reached = threading.Event()

    def reaching(request: dict[str, Any], number: int) -> Any:
        if number == 9:
            reached.set()
            gone.wait(30)
        return obliging(request, number)

    gone = threading.Event()
    with serving(reaching) as judge:
        options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", judge.url, "--ledger", postgres_url, "-q"]
        options += ["--concurrency", str(CONCURRENCY), "--out", "res"]
        command = [sys.executable, "-c", code, "run", "data.jsonl", *options]

        def start() -> None:
            lost.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60))

        running = threading.Thread(target=start)
        running.start()
        assert reached.wait(60)
        with server.stopped():
            gone.set()
            running.join()
        again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert 2 * SAMPLES <= len(judge.requests) <= 2 * SAMPLES + CONCURRENCY
    (done,) = lost
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("evalstone: the connection ")
    assert "in 0.5 seconds" in done.stderr
    assert done.stderr.endswith(RESUME)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "open-sesame" not in done.stderr
    assert again.returncode == 0, again.stderr


def lose(ledger: Ledger, server: Postgres) -> LedgerConnectionError:
    server.disconnect()
    with pytest.raises(LedgerConnectionError, match="was lost") as raised:
        ledger.runs()
    return raised.value


def test_what_was_committed_as_the_connection_was_lost_can_be_done_again(postgres_url: str, server: Postgres) -> None:
    claims = Operations(
        [answer(1)], [("r1", 0, "s@1", record_line(record("a")))], claims={answer(2).key, answer(3).key}
    )
    with Ledger(postgres_url) as first, Ledger(postgres_url) as second:
        first.start_run(run())
        assert first.apply(claims).leased == claims.claims
        first.reconnect(lose(first, server), claims.claims, threading.Event())
        first.start_run(run())
        assert first.apply(claims).leased == claims.claims
        assert [row.id for row in first.runs()] == ["r1"]
        assert first.records("r1") == [record("a")]
        second.reconnect(LedgerConnectionError("was lost"), set(), threading.Event())
        assert second.apply(claims).leased == set()
        first.finish_run("r1", "2026-01-01T00:01:00", {})
        first.finish_run("r1", "2026-01-01T00:01:00", {})
        assert second.resume(run().plan) is None


def test_leases_that_ran_out_meanwhile_are_taken_back(postgres_url: str, server: Postgres) -> None:
    with Ledger(postgres_url) as first, Ledger(postgres_url) as second:
        first.leases.seconds = -1.0
        first.start_run(run())
        first.apply(Operations(claims={answer(1).key}))
        second.apply(Operations(drop_expired=True))
        error = lose(first, server)
        first.leases.seconds = 60.0
        first.reconnect(error, {answer(1).key}, threading.Event())
        second.reconnect(error, set(), threading.Event())
        assert second.apply(Operations(claims={answer(1).key}, drop_expired=True)).leased == set()
        assert second.resume(run().plan) is None


def test_a_run_that_another_process_went_on_with_meanwhile_is_left_to_it(postgres_url: str, server: Postgres) -> None:
    with Ledger(postgres_url) as first, Ledger(postgres_url) as second:
        first.leases.seconds = -1.0
        first.start_run(run())
        error = lose(first, server)
        second.reconnect(error, set(), threading.Event())
        assert second.resume(run().plan) == run()
        with pytest.raises(LedgerError, match=r"another process .* r1 "):
            first.reconnect(error, set(), threading.Event())


def test_a_lost_server_has_the_finished_calls(postgres_url: str, server: Postgres) -> None:
    ended = threading.Event()
    ended.set()
    with (
        Ledger(postgres_url) as ledger,
        pytest.raises(LedgerError, match=r"lost.*Finished calls"),
    ):
        ledger.reconnect(lose(ledger, server), set(), ended)


def test_the_end_of_a_run_does_not_wait_for_a_lost_server(postgres_url: str, server: Postgres) -> None:
    async def work() -> None:
        async with AsyncLedger(postgres_url) as ledger:
            await ledger.work(ledger.store.start_run, run())
            with server.stopped():
                storing = asyncio.ensure_future(ledger.keep_answer(answer(1)))
                await asyncio.sleep(0.3)
                assert not storing.done()
                storing.cancel()
                await storing

    began = time.monotonic()
    with pytest.raises((asyncio.CancelledError, LedgerError)):
        asyncio.run(work())
    assert time.monotonic() - began < 10


def test_a_connection_that_is_ended_for_being_idle_is_made_again(postgres_url: str) -> None:
    async def work() -> None:
        async with AsyncLedger(f"{postgres_url}%20-cidle_session_timeout%3D100") as ledger:
            assert isinstance(await ledger.answer_or_claim(answer(1).question, JUDGE), Claim)
            await asyncio.sleep(0.3)
            await ledger.keep_answer(answer(1))
            await asyncio.sleep(0.3)
            assert await ledger.answer(answer(1).question, JUDGE) == answer(1)

    asyncio.run(work())


def test_a_server_that_became_read_only_is_waited_for(postgres_url: str, server: Postgres) -> None:
    async def work() -> None:
        async with AsyncLedger(postgres_url) as ledger:
            await ledger.keep_answer(answer(1))
            server.run("ALTER ROLE tester SET default_transaction_read_only = on")
            try:
                server.disconnect()
                storing = asyncio.ensure_future(ledger.keep_answer(answer(2)))
                await asyncio.sleep(0.5)
                assert not storing.done()
            finally:
                server.run("BEGIN READ WRITE; ALTER ROLE tester RESET default_transaction_read_only; COMMIT")
            await storing
            assert await ledger.answer(answer(2).question, JUDGE) == answer(2)

    asyncio.run(work())


def test_a_server_that_is_read_only_from_the_start_is_the_wrong_one(postgres_url: str) -> None:
    Ledger(postgres_url).close()
    url = f"{postgres_url}%20-cdefault_transaction_read_only%3Don"
    with Ledger(url) as ledger, pytest.raises(ConfigError, match="read-only transaction"):
        ledger.start_run(run())


def test_a_server_without_a_free_connection_is_waited_for(
    postgres_url: str, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstone.ledger.store.RECONNECT", 0.5)
    Ledger(postgres_url).close()
    server.run("CREATE ROLE one LOGIN PASSWORD 'one' CONNECTION LIMIT 1 IN ROLE pg_write_all_data, pg_read_all_data")
    schema = postgres_url.rpartition("%3D")[2]
    server.run(f"GRANT USAGE ON SCHEMA {schema} TO one")
    url = "postgresql://one:one@" + postgres_url.partition("@")[2]
    try:
        with Ledger(url) as first:
            with pytest.raises(LedgerConnectionError, match="too many connections"):
                Ledger(url)
            closing = threading.Timer(0.2, first.close)
            closing.start()
            Ledger(url).close()
            closing.join()
    finally:
        server.run("DROP OWNED BY one; DROP ROLE one")

"""Several processes on one ledger: none asks what another asks or asked, and each ends with a whole run of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evalstone.ledger.maintenance import info
from evalstone.ledger.store import Ledger
from tests.postgres import PASSWORD
from tests.serving import Response, Server, obliging, serving

pytestmark = pytest.mark.slow

SAMPLES = 25


def start(folder: Path, server: Server, url: str, out: str) -> subprocess.Popen[str]:
    options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", server.url, "--ledger", url, "--out", out]
    command = [sys.executable, "-m", "evalstone", "run", "data.jsonl", *options, "--concurrency", "4"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def slowly(request: dict[str, Any], number: int) -> Response:
    return Response(body=obliging(request, number), delay=0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(SAMPLES)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def scores(folder: Path, out: str) -> list[tuple[str, float]]:
    lines = (folder / out / "records.jsonl").read_text().splitlines()
    return [(row["sample_id"], row["value"]) for row in map(json.loads, lines)]


def test_two_processes_at_once_ask_each_question_once(folder: Path, url: str) -> None:
    with serving(slowly) as server:
        processes = [start(folder, server, url, out) for out in ("one", "two")]
        told = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], told
        assert len(server.requests) == 2 * SAMPLES
    assert scores(folder, "one") == scores(folder, "two") == [(str(n), 1.0) for n in range(SAMPLES)]
    assert PASSWORD not in "".join(told)
    assert PASSWORD not in "".join(file.read_text() for file in folder.glob("*/*.json*"))
    with Ledger(url) as ledger:
        found = info(ledger)
        assert (found.counts["run"], found.counts["record"]) == (2, 2 * SAMPLES)
        assert (found.unfinished, found.in_progress) == (0, 0)


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_when_one_of_two_is_killed_the_other_takes_over_what_it_was_asking(folder: Path, url: str) -> None:
    with serving(slowly) as server:
        first, second = (start(folder, server, url, out) for out in ("one", "two"))
        deadline = time.monotonic() + 60
        while len(server.requests) < 15 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(first.pid, signal.SIGKILL)
        first.communicate(timeout=30)
        told, _ = second.communicate(timeout=25)  # sooner than a lease runs out
        assert second.returncode == 0, told
        assert len(server.requests) <= 2 * SAMPLES + 4
    assert scores(folder, "two") == [(str(n), 1.0) for n in range(SAMPLES)]


def test_a_run_on_a_server_says_where_it_is_without_the_password(folder: Path, postgres_url: str) -> None:
    with serving() as server:
        told, _ = start(folder, server, postgres_url, "one").communicate(timeout=60)
        assert "Ledger: postgresql://tester:***@127.0.0.1" in told
        command = [sys.executable, "-m", "evalstone", "report", "last", "--ledger", postgres_url]
        again = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 0, again.stderr
    assert "faithfulness" in again.stdout

"""A run that is stopped, however roughly, goes on with the same command and pays for nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.serving import Response, Server, obliging, serving

SAMPLES = 30
CONCURRENCY = 4


def command(server: Server, out: str) -> list[str]:
    options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", server.url, "--ledger", "l.db", "--out", out]
    return [sys.executable, "-m", "evalstone", "run", "data.jsonl", *options, "--concurrency", str(CONCURRENCY)]


def interrupted(folder: Path, server: Server, after: int, sign: signal.Signals) -> tuple[int, str]:
    """Start a run and stop it once the server has had so many requests; its exit code and what it said."""
    process = subprocess.Popen(command(server, "res"), cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while len(server.requests) < after and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, sign)
        _, told = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, told


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_a_stopped_run_goes_on_and_asks_again_only_what_was_under_way(tmp_path: Path, sign: signal.Signals) -> None:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": ["a passage"]} for n in range(SAMPLES)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(lambda request, number: Response(body=obliging(request, number), delay=0.02)) as server:
        code, told = interrupted(tmp_path, server, 25, sign)
        assert code == (130 if sign == signal.SIGINT else -signal.SIGKILL)
        if sign == signal.SIGINT:
            assert "the same command goes on from there" in told
            assert "Traceback" not in told
        assert not (tmp_path / "res" / "records.jsonl").exists()
        asked_before = len(server.requests)
        done = subprocess.run(command(server, "res"), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "taken over from an unfinished run" in done.stdout
        assert asked_before >= 25
        assert len(server.requests) <= 2 * SAMPLES + CONCURRENCY
    outcomes = [json.loads(line) for line in (tmp_path / "res" / "records.jsonl").read_text().splitlines()]
    assert [(row["sample"], row["value"]) for row in outcomes] == [(str(n), 1.0) for n in range(SAMPLES)]

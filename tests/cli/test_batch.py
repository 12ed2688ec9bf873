"""`evalstone run --batch` as a user meets it, interrupted and killed as well."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.batch_serving import BatchServer, serving_batches
from tests.cli.conftest import Evalstone

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")]

SAMPLES = 3
COMMAND = [sys.executable, "-m", "evalstone", "run", "data.jsonl", "-s", "faithfulness", "--ledger", "l.db"]
BATCH = ["--judge", "openai/gpt-4o", "--batch"]


@pytest.fixture
def server(tmp_path: Path) -> Generator[BatchServer]:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(SAMPLES)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving_batches() as started:
        started.holding = True
        yield started


@pytest.fixture
def start(tmp_path: Path, server: BatchServer) -> Callable[..., subprocess.Popen[str]]:
    def call(*options: str) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        arguments = [*COMMAND, *BATCH, *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(arguments, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True)

    return call


Start = Callable[..., subprocess.Popen[str]]


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_submits_and_leaves_and_the_same_command_goes_on_until_it_is_complete(
    server: BatchServer, start: Start, tmp_path: Path
) -> None:
    for number in range(2):
        code, out, err = ended(start("--out", "res"))
        assert (code, out) == (3, "")
        assert f" batch_{number} (3 submitted" in err.splitlines()[0]
        assert "0 of 3 results" in err
        assert " l.db and res" in err
        again = ["evalstone", *COMMAND[3:], *BATCH, "--out", "res"]
        assert err.endswith(f"\n{shlex.join(again)}\n")
        assert json.loads((tmp_path / "res" / "summary.json").read_text())["ending"] == "batch"
        server.finish()
    code, out, _ = ended(start("--out", "res"))
    assert code == 0
    summary = json.loads((tmp_path / "res" / "summary.json").read_text())
    assert [(line["asked"], line["shared"], line["cached"]) for line in summary["scorers"]] == [(6, 0, 0)]
    assert summary["cost"] == pytest.approx(0.0012)
    assert len((tmp_path / "res" / "records.jsonl").read_text().splitlines()) == SAMPLES


def test_ctrl_c_while_a_run_waits_leaves_the_batch_to_the_next_call(server: BatchServer, start: Start) -> None:
    process = start("--wait")
    assert process.stderr is not None
    assert " batch_0 (3 submitted" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130
    assert "waiting for batch_0" in err
    assert "Traceback" not in err
    server.holding = False
    server.finish()
    assert ended(start("--wait"))[0] == 0
    assert len(server.requests) == 2 * SAMPLES


def test_a_run_that_is_killed_while_it_submits_pays_for_nothing_twice(server: BatchServer, start: Start) -> None:
    server.stuck = 1
    process = start()
    until(lambda: bool(server.batches))
    process.kill()
    process.communicate(timeout=30)
    code, _, err = ended(start())
    assert code == 3
    assert " batch_0 (0 of 3 done)" in err
    assert len(server.batches) == 1


def test_a_dry_run_tells_the_batch_price_and_needs_no_key(server: BatchServer, evalstone: Evalstone) -> None:
    told: list[str] = []
    for option in ("--batch", "--quiet"):
        done = evalstone(*COMMAND[3:], "--judge", "openai/gpt-4o", "--dry-run", option)
        assert done.returncode == 0, done.stderr
        told.append(" ".join(done.stdout.split()))
    halved, whole = (float(text.partition("about $")[2].split(" ")[0].rstrip(",;")) for text in told)
    assert halved == pytest.approx(whole / 2, abs=1e-4)
    assert "batch price" in told[0]
    assert "within a day" in told[0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--judge", "openai/gpt-4o", "--wait"], "--wait requires --batch"),
        (["--judge", "openai/gpt-4o", "--batch"], "set the environment variable OPENAI_API_KEY"),
    ],
)
def test_what_does_not_go_together_is_refused(
    server: BatchServer, evalstone: Evalstone, options: list[str], told: str
) -> None:
    done = evalstone(*COMMAND[3:], *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1

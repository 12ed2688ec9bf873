"""A small decision model, served for real: its verdicts on support are no better than chance, and users are told."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from evalstone import calibrate
from evalstone.datasets.demo import DEMO_DATA
from tests.cli.conftest import Evalstone
from tests.serving import listener

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """The base URL of the server."""
    with listener() as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).parent / "sparrow-decider"
    server = subprocess.Popen([program, "serve", "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None, "the server ended"
                assert time.monotonic() < until, "the server doesn't listen"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def test_its_verdicts_are_shown_to_be_no_better_than_chance(url: str, tmp_path: Path, evalstone: Evalstone) -> None:
    ledger = tmp_path / "l.db"
    judge = f"systemone/sparrow({url})"
    made = calibrate(DEMO_DATA, "fact_check", judge=judge, ledger=ledger)
    assert (made.n_failed, len(made.pairs), made.passed) == (0, 60, False)
    assert made.unusable is not None
    assert "Not usable, not even to rank systems" in str(made)
    # The probabilities are of the answers, so that the share of right ones is known, too.
    assert all(0 <= pair.value <= 1 for pair in made.pairs)

    # Nor may it keep answers: no threshold is shown to bound how often they are wrong.
    labels = ["--labels", str(DEMO_DATA), "--scorer", "fact_check", "--ledger", str(ledger)]
    refused = evalstone("calibrate", *labels, "--judge", f"cascade({judge}, lexical)", "--risk", "0.4")
    assert refused.returncode == 2
    assert "don't show for any threshold that at most 40.0% of the samples that decision(systemone/" in refused.stderr

    # The judge that only splits texts can't be calibrated as a member.
    shown = evalstone("calibrate", *labels, "--judge", judge)
    assert shown.returncode == 0, shown.stderr
    assert "--per-judge" not in shown.stdout
    pair = evalstone("calibrate", *labels, "--judge", f"cascade(lexical, {judge})")
    assert "To calibrate its members as well, add --per-judge." in pair.stdout

    options = ["--scorer", "fact_check", "--judge", judge, "--ledger", str(ledger), "--limit", "5"]
    done = evalstone("run", str(DEMO_DATA), *options)
    assert done.returncode == 0
    assert "not shown to be better than chance" in done.stdout


def test_no_threshold_makes_it_a_judge(url: str, tmp_path: Path, evalstone: Evalstone) -> None:
    out = tmp_path / "align.json"
    options = ["--scorer", "fact_check", "--judge", f"systemone/sparrow({url})", "--ledger", str(tmp_path / "l.db")]
    done = evalstone("align", "--labels", str(DEMO_DATA), *options, "--wording", "strict", "--out", str(out))
    assert done.returncode == 4, done.stderr
    assert "This judge reads no worked examples" in " ".join(done.stdout.split())
    assert not out.exists()

"""How `run --shard` and `run --engine` end early."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.storage import Location
from evalstone.errors import WriteError
from evalstone.scale import engines, runs
from tests.cli.conftest import Evalstone
from tests.serving import serving

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "input": f"Question {n}?", "output": f"answer {n}", "context": ["x"]} for n in range(40)]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_a_spent_budget_says_how_to_go_on(tmp_path: Path, evalstone: Evalstone) -> None:
    with serving() as server:
        judge = f'[judge]\nmodel = "vllm/test"\nbase_url = "{server.url}"\nprices = [1000, 1000]\n'
        settings = 'data = "data.jsonl"\nscorers = "faithfulness"\nout = "results"\nconcurrency = 1\nbudget = 1.0\n'
        (tmp_path / "run.toml").write_text(settings + judge)
        done = evalstone("run", "run.toml", "--shard", "1/1")
        assert done.returncode == 3
        assert "of the budget of $1 " in done.stderr
        assert "Finished blocks are in results; rerun the same command with a higher budget to resume." in done.stderr
        assert 1 <= len(server.requests) < 40


@pytest.mark.parametrize("where", ["plan.json", "blocks", "calls"])
def test_a_full_disk_ends_a_shard_and_its_finished_blocks_stay(
    evalstone: Evalstone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (tmp_path / "data.jsonl").write_text('{"output": "Paris", "reference": "Paris"}\n')
    whole = Location.write

    def write(self: Location, content: Any) -> None:
        if where in self.path:
            raise WriteError(f"cannot write {str(self)!r}: No space left on device")
        whole(self, content)

    command = ("run", "data.jsonl", "-s", "exact_match", "--shard", "1/1", "--out", "results")
    with monkeypatch.context() as patched:
        patched.setattr(Location, "write", write)
        done = evalstone(*command)
    assert done.returncode == 3
    assert re.fullmatch(
        rf"evalstone: cannot write 'results/{where}.*': No space left on device\. Finished blocks are in results; "
        r"rerun the same command to resume\.",
        done.stderr.strip().splitlines()[-1],
    )
    assert evalstone(*command).returncode == 0
    assert evalstone("merge", "results").returncode == 0


def test_a_signal_ends_a_run_on_an_engine_at_once(evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it went on")

    monkeypatch.setattr(engines, "parse_engine", str)
    monkeypatch.setattr(runs, "run_on", interrupted)
    done = evalstone("run", "data.jsonl", "-s", "toxicity", "--engine", "ray", "--out", "results")
    assert done.returncode == 130
    assert "Stopped. Finished blocks are in results; rerun the same command to resume.\n" in done.stderr
    assert "ledger;" not in done.stderr

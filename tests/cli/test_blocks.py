"""`run --shard`, `run --engine` and `merge`: which settings they have, and thresholds of merged runs."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from evalstone.cli.config_file import RunConfig
from evalstone.scale.scoring import OF_RUNS
from tests.cli.conftest import Evalstone

pytest.importorskip("pyarrow")


def written(folder: Path) -> None:
    rows = [{"id": f"q{n}", "output": ("Rome", "Paris")[n % 4 > 0], "reference": "Paris"} for n in range(200)]
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


OF_TARGETS = "; write a run with the target to a folder, then score its samples.jsonl"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min", "exact_match=0.5"), "--min is about all blocks: give it to evalstone merge, not with --shard"),
        (("--json",), "--json is about all blocks: give it to evalstone merge, not with --shard"),
        (("--tag", "x"), "--tag is about all blocks: give it to evalstone merge, not with --shard"),
        (("--trials", "3"), f"--trials can't be used with --shard{OF_TARGETS}"),
        (("--target", "cmd:cat"), f"--target can't be used with --shard{OF_TARGETS}"),
        (("--batch-files", "x"), "--batch-files can't be used with --shard"),
        (("--sequential",), "--sequential can't be used with --shard"),
    ],
)
def test_settings_that_blocks_lack_are_refused(
    tmp_path: Path, evalstone: Evalstone, options: tuple[str, ...], message: str
) -> None:
    written(tmp_path)
    done = evalstone("run", "d.jsonl", "-s", "exact_match", "--shard", "1/1", "--out", "out", *options)
    assert done.returncode == 2
    assert done.stderr.strip() == f"evalstone: {message}"
    assert not (tmp_path / "out").exists()


def test_the_settings_of_whole_runs_are_those_of_a_run() -> None:
    assert {each.name for each in fields(RunConfig)} >= OF_RUNS


def test_merge_tests_thresholds(tmp_path: Path, evalstone: Evalstone) -> None:
    written(tmp_path)
    evalstone("run", "d.jsonl", "-s", "exact_match", "--shard", "1/1", "--out", "out")
    passed = evalstone("merge", "out", "--min", "exact_match=0.5")
    assert "Gate: ✓ pass" in passed.stdout
    failed = evalstone("merge", "out", "--min", "exact_match=0.9", "--markdown", "-")
    assert failed.returncode == 1
    assert "✕ fail" in failed.stdout
    assert (tmp_path / "out" / "gates.jsonl").read_text().count("\n") == 2
    wrong = evalstone("merge", "out", "--max-regression", "exact_match=0.1")
    assert wrong.returncode == 2
    assert "exact_match" in wrong.stdout
    assert "baseline" in wrong.stderr
    base = evalstone("merge", "out", "--max-regression", "exact_match=0.1", "--baseline", "out")
    assert "Gate: ✓ pass" in base.stdout

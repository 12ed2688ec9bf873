"""Checks and scorers in code on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from evalstone.scorers import SCORERS
from evalstone.scorers.base import summary


def evalstone(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evalstone", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_a_check_is_explained_by_its_own_text_and_shows_how_it_is_written(tmp_path: Path):
    told = evalstone(tmp_path, "scorers", "contains")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(summary(SCORERS["contains"]))
    assert "contains@1" in told.stdout
    assert "none" in told.stdout


def test_all_checks_and_scorers_in_code_are_listed_with_what_they_need(tmp_path: Path):
    lines = evalstone(tmp_path, "scorers", env={"COLUMNS": "200"}).stdout.splitlines()
    rows = {line.split()[0]: line.partition("is better")[0] for line in lines if "is better" in line}
    for name, fields in {
        "tool_called": "messages",
        "rouge_l": "reference, output",
        "tone_consistency": "output",
    }.items():
        assert rows[name].split(maxsplit=1)[1].startswith(fields)


def test_a_run_takes_checks_by_name(tmp_path: Path):
    (tmp_path / "data.jsonl").write_text(
        json.dumps({"input": "Where?", "output": "In Paris.", "reference": "in Paris"}) + "\n"
    )
    done = evalstone(
        tmp_path, "run", "data.jsonl", "-s", "contains(expected=paris)", "-s", "rouge-l", "--out", "res",
        "--min", "contains=1", "--alpha", "none",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "res" / "records.jsonl").read_text().splitlines()]
    assert {(record["scorer"], record["signature"]): record["value"] for record in records} == {
        ("contains", "contains(expected=paris)@1"): 1,
        ("rouge_l", "rouge_l@2"): 1,
    }


def test_a_check_without_its_parameter_says_how_it_is_written(tmp_path: Path):
    done = evalstone(tmp_path, "score", "--scorer", "not_contains", "--output", "x")
    assert done.returncode != 0
    assert "not_contains(expected=…)" in " ".join(done.stderr.split())

"""`evalstone run --batch-files` as a user meets it, with the printed command carried out by a stand-in for vLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstone.cli import execution
from evalstone.models.batch.files import BatchFiles
from tests.batch_files import run_command
from tests.cli.conftest import Evalstone

COMMAND = ["run", "data.jsonl", "-s", "faithfulness", "--ledger", "l.db", "--judge", "vllm/acme/judge-1"]
FILES = ["--batch-files", "batches"]


@pytest.fixture(autouse=True)
def data(tmp_path: Path) -> Path:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(3)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "data.jsonl"


def test_the_same_command_and_the_printed_ones_lead_to_a_complete_run(evalstone: Evalstone, tmp_path: Path) -> None:
    for _ in range(2):
        done = evalstone(*COMMAND, *FILES)
        assert (done.returncode, done.stdout) == (3, "")
        said = done.stderr.splitlines()
        assert said[0].startswith("waiting for batch batches/evalstone-")
        assert said[0].endswith(".requests.jsonl (3 written just now)")
        (command,) = (line for line in said if line.startswith("vllm "))
        assert command.endswith(" --model acme/judge-1")
        assert "0 of 3 results are saved in l.db" in done.stderr
        assert said[-1].startswith("evalstone ")
        run_command(command)
    done = evalstone(*COMMAND, *FILES)
    assert done.returncode == 0, done.stderr
    assert "6 asked" in done.stdout
    assert len(list((tmp_path / "batches").iterdir())) == 4


def test_a_folder_in_a_configuration_file_is_beside_it_and_many_files_have_few_commands(
    evalstone: Evalstone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchFiles, "most_requests", 1)
    monkeypatch.setattr(execution, "MOST_COMMANDS", 2)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "run.toml").write_text(
        'data = "../data.jsonl"\nscorers = "faithfulness"\njudge = "vllm/acme/judge-1"\nledger = "l.db"\n'
        'batch_files = "batches"\n'
    )
    done = evalstone("run", "here/run.toml")
    assert done.returncode == 3
    assert len(list((tmp_path / "here" / "batches").iterdir())) == 3
    assert done.stderr.count("vllm run-batch -i here/batches/") == 2
    assert "… and the same for 1 more file\n" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--batch-files", "b", "--batch"], "--batch and --batch-files exclude each other"),
        (["--batch-files", " "], "--batch-files is the path of a folder, not ' '"),
        (["--batch-files", "b", "--no-cache"], "--batch-files and --no-cache exclude each other"),
        (["--batch-files", "b", "--sequential", "--min", "faithfulness=0.5"], "answers of a file arrive together"),
        (["--batch-files", "b", "--target", "vllm/x"], "--batch-files can't be used with a target"),
        (["--batch-files", "b", "--judge", "lexical"], "can't be asked in batches"),
        (["--batch-files", "data.jsonl"], "data.jsonl is a file; name a folder"),
        (["--wait"], "--wait requires --batch or --batch-files"),
    ],
)
def test_what_does_not_go_together_is_refused(
    evalstone: Evalstone, tmp_path: Path, options: list[str], told: str
) -> None:
    done = evalstone(*COMMAND, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("judge", "cost"), [("vllm/acme/judge-1", "cost unknown"), ("openai/gpt-4o", "at the batch price")]
)
def test_a_dry_run_tells_the_cost_and_writes_nothing(
    evalstone: Evalstone, tmp_path: Path, judge: str, cost: str
) -> None:
    done = evalstone(*COMMAND, *FILES, "--judge", judge, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert cost in " ".join(done.stdout.split())
    assert "go into later batches" in " ".join(done.stdout.split())
    assert "within a day" not in done.stdout
    assert not (tmp_path / "batches").exists()

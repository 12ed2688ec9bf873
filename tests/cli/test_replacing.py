"""A results folder isn't given to another dataset or target, and what a run replaces is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstone import read_run
from tests.cli.conftest import Done, Evalstone

SCORER = ("--scorer", "contains(expected=yes)")


def data(file: Path, *outputs: str) -> None:
    rows = ({"id": str(n), "input": f"q{n}", "output": output} for n, output in enumerate(outputs))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data(tmp_path / "a.jsonl", "yes", "no")
    data(tmp_path / "b.jsonl", "yes")
    (tmp_path / "app.py").write_text(ANSWERS)
    return tmp_path


OLD, NEW = "app.py:old", "app.py:new"
ANSWERS = "def old(input):\n    return 'yes'\n\n\ndef new(input):\n    return 'no'\n"


def run(evalstone: Evalstone, *arguments: str) -> Done:
    return evalstone("run", *arguments, "--out", "results", "-q")


def said(done: Done) -> str:
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        (("a.jsonl",), ("b.jsonl",), "of the dataset a.jsonl, not b.jsonl"),
        (("a.jsonl", "--target", OLD), ("a.jsonl", "--target", NEW), f"with the target {OLD}, not the target {NEW}"),
        (("a.jsonl",), ("a.jsonl", "--target", NEW), f"with the outputs in the data, not the target {NEW}"),
        (("a.jsonl", "--target", NEW), ("a.jsonl",), f"with the target {NEW}, not the outputs in the data"),
    ],
)  # fmt: skip
def test_results_of_another_dataset_or_target_are_not_replaced(
    first: tuple[str, ...], second: tuple[str, ...], how: str, folder: Path, evalstone: Evalstone
) -> None:
    assert run(evalstone, *first, *SCORER).returncode == 0
    before = read_run(folder / "results")
    refused = run(evalstone, *second, *SCORER)
    assert refused.returncode == 2
    assert f"results has the results of another run ({before.id}, of " in said(refused)
    assert how in said(refused)
    assert said(refused).endswith(
        "name another folder with --out, or delete results/summary.json to replace them; the run stays in the ledger "
        ".evalstone/ledger.db"
    )
    assert read_run(folder / "results") == before
    (folder / "results" / "summary.json").unlink()
    assert run(evalstone, *second, *SCORER).returncode == 0


def test_the_same_command_and_a_new_version_of_the_code_go_on(folder: Path, evalstone: Evalstone) -> None:
    command = ("a.jsonl", "--target", OLD, *SCORER)
    assert run(evalstone, *command).returncode == 0
    again = run(evalstone, *command)
    assert (again.returncode, "Replacing" in again.stderr) == (0, False)
    newer = run(evalstone, *command, "--target-version", "2")
    assert newer.returncode == 0
    assert "Replacing the results in results: run " in newer.stderr


def test_what_a_newer_version_or_other_scorers_replace_is_printed(folder: Path, evalstone: Evalstone) -> None:
    run(evalstone, "a.jsonl", *SCORER)
    before = read_run(folder / "results")
    data(folder / "a.jsonl", "yes", "no", "yes")
    newer = run(evalstone, "a.jsonl", *SCORER)
    assert newer.returncode == 0
    assert (
        f"Replacing the results in results: run {before.id} of {before.started[:16].replace('T', ' ')}, 2 samples of "
        "a.jsonl, contains(expected=yes)@"
    ) in said(newer)
    assert said(newer).endswith("It stays in the ledger .evalstone/ledger.db.")
    other = run(evalstone, "a.jsonl", "--scorer", "not_contains(expected=no)", "--ledger", "other.db")
    assert other.returncode == 0
    assert said(other).endswith("It is not in the ledger other.db.")
    assert "Replacing" not in run(evalstone, "a.jsonl", "--scorer", "not_contains(expected=no)").stderr


def test_the_same_samples_by_another_name_are_no_other_dataset(folder: Path, evalstone: Evalstone) -> None:
    run(evalstone, "a.jsonl", *SCORER)
    (folder / "a.jsonl").rename(folder / "c.jsonl")
    assert run(evalstone, "c.jsonl", *SCORER).returncode == 0


def test_stored_samples_are_scored_again_in_their_folder(folder: Path, evalstone: Evalstone) -> None:
    run(evalstone, "a.jsonl", "--target", OLD, *SCORER)
    assert run(evalstone, "results/samples.jsonl", *SCORER).returncode == 0


def test_what_was_broken_off_is_replaced(folder: Path, evalstone: Evalstone) -> None:
    run(evalstone, "a.jsonl", *SCORER)
    summary = folder / "results" / "summary.json"
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"ending": "interrupted"}))
    other = run(evalstone, "b.jsonl", *SCORER)
    assert other.returncode == 0
    assert "Replacing the results in results: run " in other.stderr


def test_an_import_and_a_run_in_blocks_replace_no_other_data_either(folder: Path, evalstone: Evalstone) -> None:
    run(evalstone, "a.jsonl", *SCORER)
    (folder / "ragas.csv").write_text("user_input,response,faithfulness\nq,a,0.5\n")
    imported = evalstone("import", "ragas.csv", "--from", "ragas", "--out", "results")
    assert imported.returncode == 2
    assert "of the dataset a.jsonl, not ragas.csv" in said(imported)
    sharded = evalstone("run", "b.jsonl", *SCORER, "--out", "results", "--shard", "1/1")
    assert sharded.returncode == 2
    assert "of the dataset a.jsonl, not b.jsonl" in said(sharded)

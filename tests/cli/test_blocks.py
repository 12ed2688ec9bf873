"""`run --shard`, `run --engine` and `merge`: which settings they have, and thresholds of merged runs."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields
from pathlib import Path

import pytest

from evalstone.cli.config_file import RunConfig
from evalstone.errors import ConfigError
from evalstone.scale.scoring import OF_RUNS, check_in_blocks
from tests.cli.conftest import Evalstone

pytest.importorskip("pyarrow")


def written(folder: Path) -> None:
    rows = [{"id": f"q{n}", "output": ("Rome", "Paris")[n % 4 > 0], "reference": "Paris"} for n in range(200)]
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


OF_TARGETS = (
    ": blocks keep records, and have no place for a target's answers; write a run with the target to a folder, then "
    "score its samples.jsonl"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min", "exact_match=0.5"), "--min is about all blocks: give it to evalstone merge, not with --shard"),
        (("--json",), "--json is about all blocks: give it to evalstone merge, not with --shard"),
        (("--tag", "x"), "--tag is about all blocks: give it to evalstone merge, not with --shard"),
        (("--trials", "3"), f"--trials can't be used with --shard{OF_TARGETS}"),
        (("--target", "cmd:cat"), f"--target can't be used with --shard{OF_TARGETS}"),
        (
            ("--batch-files", "x"),
            "--batch-files can't be used with --shard: a batch is sent and read back by one process; leave one of them "
            "out",
        ),
        (("--sheet", "A"), "--sheet is for Excel files, which d.jsonl is not"),
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


def test_what_is_said_of_the_data_is_said_by_the_first_shard(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "d.csv").write_text("id,output,reference,weight\n" + "".join(f"q{n},a,b,\n" for n in range(9)))
    said = "d.csv: column 'weight' is blank in every row, so all samples weigh the same"
    assert said in evalstone("run", "d.csv", "-s", "exact_match", "--ledger", "l.db").stderr
    for _ in range(2):  # also of a plan that is there
        run = ("run", "d.csv", "-s", "exact_match", "--out", "out", "--shard")
        assert said in evalstone(*run, "1/2").stderr
        assert "blank" not in evalstone(*run, "2/2").stderr


def test_a_setting_is_of_blocks_or_refused_with_the_reason() -> None:
    settings = {each.name for each in fields(RunConfig)} - {"file", "in_file"}
    assert settings >= OF_RUNS
    for name in settings - OF_RUNS:
        with contextlib.suppress(ConfigError):
            check_in_blocks([name], "shard")  # without a reason, it is a KeyError


def test_shards_read_files_as_the_options_say(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "d.csv").write_bytes("output,answer,context\nZürich,Zürich,one|two\n".encode("cp1252"))
    options = ("--map", "reference=answer", "--split", "context=|", "--encoding", "cp1252")
    run = ("run", "d.csv", "-s", "exact_match", "--shard", "1/1", "--out", "out")
    done = evalstone(*run, *options)
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    how = {"map": {"reference": "answer"}, "split": {"context": "|"}, "encoding": "cp1252", "sheet": None}
    assert plan["reading"] == how
    other = evalstone(*run, *options[2:])
    assert other.returncode == 2
    said = "evalstone: out has the blocks of another run: with --map reference=answer; run it as before, name another"
    assert other.stderr.startswith(said)


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
    assert "--max-regression requires --baseline" in wrong.stderr
    base = evalstone("merge", "out", "--max-regression", "exact_match=0.1", "--baseline", "out")
    assert "Gate: ✓ pass" in base.stdout


OWN = """
from evalstone import Score, scorer

@scorer
def polite(output: str) -> Score:
    return Score(1.0 if "s" in output else 0.5)
"""


def test_own_code_of_a_file_is_looked_for_beside_it(tmp_path: Path, evalstone: Evalstone) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    written(folder)
    (folder / "polite_scorers.py").write_text(OWN)
    settings = 'data = "d.jsonl"\nout = "out"\nscorers = ["exact_match", "polite_scorers.py:polite"]\n'
    (folder / "run.toml").write_text(settings)
    done = [evalstone("run", "project/run.toml", "--shard", shard) for shard in ("1/2", "2/2")]
    assert [each.returncode for each in done] == [0, 0], done[0].stderr
    assert "polite" in evalstone("merge", "project/out").stdout


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('scorers = ["exact_mach"]', "run.toml: unknown scorer 'exact_mach'"),
        (
            'scorers = "exact_match"\nmin = { exact_match = 0.5 }',
            "run.toml: min is about all blocks: give it to evalstone merge, not with --shard",
        ),
        ('scorers = "exact_match"\ntrials = 3', "run.toml: trials can't be used with --shard"),
        ('scorers = "exact_match"\nsheet = "A"', "run.toml: sheet is for Excel files, which d.jsonl is not"),
        (
            'scorers = "exact_match"\nengine = "ray"\nmin = { rouge_l = 0.5 }',
            "run.toml: min: there are no scores of 'rouge_l'",
        ),
    ],
)
def test_an_error_names_the_file_of_its_setting(
    tmp_path: Path, evalstone: Evalstone, settings: str, message: str
) -> None:
    written(tmp_path)
    (tmp_path / "run.toml").write_text(f'data = "d.jsonl"\nout = "out"\n{settings}\n')
    shard = () if "engine" in settings else ("--shard", "1/1")
    done = evalstone("run", "run.toml", *shard)
    assert done.returncode == 2
    assert done.stderr.startswith(f"evalstone: {message}"), done.stderr

"""`evalstone ledger …` as a user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalstone import ReplayJudge, audit, evaluate
from evalstone.ledger.store import Ledger
from tests.cli.conftest import Evalstone
from tests.ledger.test_upkeep import damage, filled, page_of
from tests.serving import serving


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    filled(tmp_path / "l.db")
    return tmp_path / "l.db"


def test_info_tells_what_is_kept(ledger: Path, tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("ledger", "info", "--ledger", "l.db")
    assert done.returncode == 0, done.stderr
    for told in ("l.db · version 5", "answers: 3", "records: 4", "unfinished runs: 1", "openai/x", "r1", "data.jsonl"):
        assert told in done.stdout


def test_what_is_exported_is_imported_elsewhere(ledger: Path, tmp_path: Path, evalstone: Evalstone) -> None:
    assert evalstone("ledger", "export", "all.jsonl", "--ledger", "l.db").returncode == 0
    done = evalstone("ledger", "import", "all.jsonl", "--ledger", "new.db")
    assert done.returncode == 0, done.stderr
    counts = {"datasets": "1", "runs": "2", "blocks": "1", "items": "1", "answers": "3", "records": "4"}
    assert dict(re.findall(r"(\w+): (\d+)", done.stdout)).items() >= counts.items()
    with Ledger(ledger) as old, Ledger(tmp_path / "new.db") as new:
        assert new.records("r1") == old.records("r1")


def test_exported_records_are_replayed_without_asking(tmp_path: Path, evalstone: Evalstone) -> None:
    samples = [{"output": "an answer", "context": ["a passage"]}]
    with serving() as server:
        judge = {"model": "vllm/test", "base_url": server.url}
        first = evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db")
    assert evalstone("ledger", "export", "r.jsonl", "--what", "records", "--ledger", "l.db").returncode == 0
    again = evaluate(samples, "faithfulness", judge=ReplayJudge.from_records(tmp_path / "r.jsonl"), ledger=None)
    assert [r.value for r in again] == [r.value for r in first] == [1.0]


def test_the_last_records_are_those_of_the_last_evaluation_and_a_run_is_found_by_name(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    samples = [{"id": "a", "output": "an answer", "context": ["a passage"]}]
    evaluate(samples, "faithfulness", ledger=tmp_path / "l.db", name="nightly")
    audit(samples, ledger=tmp_path / "l.db")
    for run in ("last", "nightly"):
        done = evalstone("ledger", "export", "r.jsonl", "--what", "records", "--run", run, "--ledger", "l.db")
        assert (done.returncode, "1 row written" in done.stdout) == (0, True), done
        assert [json.loads(line)["sample_id"] for line in (tmp_path / "r.jsonl").read_text().splitlines()] == ["a"]


@pytest.mark.parametrize(("line", "told"), [("[" * 100_000, "nested too deeply"), ("{", "not JSON"), ("9" * 5000, "")])
def test_a_line_that_is_no_json_is_named_with_file_and_line(
    ledger: Path, tmp_path: Path, evalstone: Evalstone, line: str, told: str
) -> None:
    evalstone("ledger", "export", "all.jsonl", "--ledger", "l.db")
    with (tmp_path / "all.jsonl").open("a") as file:
        file.write(line + "\n")
    done = evalstone("ledger", "import", "all.jsonl", "--ledger", "new.db")
    assert done.returncode == 2
    assert "all.jsonl, line 13: " in done.stderr
    assert told in done.stderr
    assert done.stderr.endswith("nothing was imported\n")
    with Ledger(tmp_path / "new.db") as new:
        assert new.runs() == []


@pytest.mark.parametrize(("what", "rows"), [("answers", 3), ("records", 1)])
def test_answers_and_records_are_exported_as_parquet(
    ledger: Path, tmp_path: Path, what: str, rows: int, evalstone: Evalstone
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
    done = evalstone("ledger", "export", "x.parquet", "--what", what, "--ledger", "l.db")
    assert done.returncode == 0, done.stderr
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.num_rows == rows
    row = table.to_pylist()[0]
    assert json.loads(row["calls"])[0]["judge"] == "openai/x" if what == "records" else row["judge"] == "openai/x"


def test_prune_says_what_would_go_and_deletes_with_yes(ledger: Path, tmp_path: Path, evalstone: Evalstone) -> None:
    command = ("ledger", "prune", "--older-than", "1", "--ledger", "l.db")
    for options, verb in (((), "Would delete"), (("--yes",), "Deleted")):
        (line,) = (line for line in evalstone(*command, *options).stdout.splitlines() if line.startswith(verb))
        assert re.findall(r"\d+ \w+", line) == ["1 run", "3 records", "0 samples", "0 answers"]
    with Ledger(ledger) as found:
        assert [row.id for row in found.runs()] == ["r2"]


def test_a_file_that_cannot_be_copied_is_one_line_and_no_usage_error(ledger: Path, evalstone: Evalstone) -> None:
    ledger.with_name("l.db-wal").mkdir()
    done = evalstone("ledger", "recover", "l.db", "--into", "good.db")
    assert done.returncode == 3
    assert done.stderr.startswith("evalstone: [Errno ")
    assert "l.db-wal" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_ledger_is_verified_and_recovered(tmp_path: Path, evalstone: Evalstone) -> None:
    filled(tmp_path / "bad.db", size=200)
    assert evalstone("ledger", "verify", "--ledger", "bad.db").returncode == 0
    damage(tmp_path / "bad.db", page_of(tmp_path / "bad.db", "records")[3])
    done = evalstone("ledger", "verify", "--ledger", "bad.db")
    assert (done.returncode, "recover bad.db " in done.stdout) == (1, True)
    assert evalstone("ledger", "recover", "bad.db", "--into", "good.db").returncode == 0
    assert evalstone("ledger", "verify", "--ledger", "good.db").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["info", "--ledger", "nowhere.db"], "there is no ledger nowhere.db"),
        (["verify", "--ledger", "mysql://me:secret@host/db"], "mysql://me:***@host/db is not a ledger"),
        (["prune", "--ledger", "l.db"], "select what to delete"),
        (["export", "x.csv", "--ledger", "l.db"], ".jsonl or .parquet"),
        (["export", "x.parquet", "--ledger", "l.db"], "--what answers"),
        (["export", "x.jsonl", "--what", "leases", "--ledger", "l.db"], "answers, records or labels"),
        (["export", "x.jsonl", "--what", "records", "--run", "r9", "--ledger", "l.db"], "no run r9"),
        (["import", "nowhere.jsonl", "--ledger", "l.db"], "nowhere.jsonl can't be read"),
        (["import", "l.db", "--ledger", "l.db"], "l.db"),
        (["recover", "nowhere.db", "--into", "x.db"], "there is no file nowhere.db"),
        (["prune", "--older-than", "1000000", "--ledger", "l.db"], "days from 0 to 36,500, not 1e+06"),
        (["prune", "--older-than", "inf", "--ledger", "l.db"], "--older-than takes a finite number, not 'inf'"),
        (["prune", "--older-than", "nan", "--ledger", "l.db"], "--older-than takes a finite number, not 'nan'"),
        (["info", "--ledger", ""], "the ledger's name is empty"),
    ],
)
def test_a_wrong_call_ends_with_exit_code_2_and_says_what_to_mend(
    ledger: Path, tmp_path: Path, arguments: list[str], told: str, evalstone: Evalstone
) -> None:
    done = evalstone("ledger", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "nowhere.db").exists()

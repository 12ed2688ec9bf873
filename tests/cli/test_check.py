from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Evalstone


def test_the_command_that_it_suggests_runs(tmp_path: Path, evalstone: Evalstone) -> None:
    path = tmp_path / "my data.csv"
    path.write_text("q,a,docs\nWhere is Bern?,It is in the country.,Bern is a city of the country.\n")
    mapping = ("--map", "input=q", "--map", "output=a", "--map", "context=docs")
    done = evalstone("check", "my data.csv", *mapping, "--json")
    assert done.returncode == 0
    command = shlex.split(*json.loads(done.stdout)["commands"])
    assert command[:3] == ["evalstone", "run", "my data.csv"]
    assert "faithfulness" in command
    run = evalstone(*command[1:], "--ledger", "l.db")
    assert (run.returncode, "faithfulness" in run.stdout) == (0, True)


def test_the_calibration_that_it_suggests_runs(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = ["q,label,a,docs", "Where?,yes,Bern is in it.,Bern is in it.", "Who?,no,Ada was born.,It rains."]
    (tmp_path / "my data.csv").write_text("\n".join(rows))
    mapping = ("--map", "input=q", "--map", "output=a", "--map", "context=docs")
    _, suggested = json.loads(evalstone("check", "my data.csv", *mapping, "--json").stdout)["commands"]
    command = shlex.split(suggested)
    assert command[:4] == ["evalstone", "calibrate", "--labels", "my data.csv"]
    done = evalstone(*command[1:], "--ledger", "l.db", "--json")
    assert (done.returncode, len(json.loads(done.stdout)["pairs"])) == (0, 2), done.stderr


def test_an_encoding_and_a_separator_are_part_of_the_command(tmp_path: Path, evalstone: Evalstone) -> None:
    text = "question,answer,contexts\nWo ist Köln?,It is in the country.,Köln.\\n--It is in the country.\n"
    (tmp_path / "d.csv").write_bytes(text.replace("\\n", "|").encode("cp1252"))
    done = evalstone("check", "d.csv", "--encoding", "cp1252", "--split", "context=|--", "--json")
    checked = json.loads(done.stdout)
    assert checked["first"][0]["context"].startswith("2 passages: Köln.")
    run = evalstone(*shlex.split(*checked["commands"])[1:], "--ledger", "l.db", "--json")
    assert (run.returncode, json.loads(run.stdout)["dataset"]["name"]) == (0, "d.csv")
    for wrong, problem in (
        (("--split", "context"), "--split takes FIELD=SEPARATOR"),
        (("--split", "id=x"), "--split is for"),
    ):
        assert problem in evalstone("check", "d.csv", *wrong).stderr


def test_results_of_another_tool_can_be_imported(
    tmp_path: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of ragas.csv").write_text("user_input,response,faithfulness\nq,a,0.5\nr,b,1\n")
    checked = json.loads(evalstone("check", "of ragas.csv", "--json").stdout)
    assert checked["remarks"] == ["the file has results of ragas; to keep their scores, import it"]
    assert checked["commands"][0] == "evalstone import 'of ragas.csv'"
    monkeypatch.setenv("HOME", str(tmp_path))
    checked = json.loads(evalstone("check", "~/of ragas.csv", "--json").stdout)
    assert checked["commands"][0] == "evalstone import '~/of ragas.csv'"
    (tmp_path / "d.csv").write_text("user_input,response\nq,a\n")
    assert json.loads(evalstone("check", "d.csv", "--json").stdout)["remarks"] == []


@pytest.mark.parametrize(("data", "code"), [('{"output": "a"}', 0), ('{"output": [1]}', 1), ("", 1), (None, 2)])
def test_exit_codes(tmp_path: Path, evalstone: Evalstone, data: str | None, code: int) -> None:
    if data is not None:
        (tmp_path / "d.jsonl").write_text(data)
    assert evalstone("check", "d.jsonl").returncode == code


def test_a_run_that_cannot_read_its_data_names_the_check(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "my d.jsonl").write_text('{"output": [1]}\n')
    done = evalstone("run", "my d.jsonl", "--ledger", "l.db")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("; evalstone check 'my d.jsonl' lists all problems of the file")
    done = evalstone("run", "my d.jsonl", "--map", "input=a b", "--encoding", "utf-8", "--ledger", "l.db")
    named = "; evalstone check 'my d.jsonl' --map 'input=a b' --encoding utf-8 lists all problems of the file"
    assert done.stderr.rstrip().endswith(named)
    assert "check" not in evalstone("run", "nowhere.jsonl", "--ledger", "l.db").stderr

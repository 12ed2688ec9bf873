"""`evalstone calibrate` and `evalstone audit` as a user meets them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from evalstone.cli.app import app
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import EvalstoneError
from evalstone.results.calibration import calibration_for


def evalstone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evalstone", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def printed(*arguments: str) -> str:
    """What a call prints, in this process."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def refusal(*arguments: str) -> str:
    """The error that a call ends with, in this process."""
    result = CliRunner().invoke(app, list(arguments))
    assert isinstance(result.exception, EvalstoneError), result.output
    return str(result.exception)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """The bundled answers' labels by two annotators, the second of whom has labelled every other answer."""
    rows = [json.loads(line) for line in DEMO_DATA.read_text(encoding="utf-8").splitlines()]
    file = tmp_path / "labels.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "annotator_1", "annotator_2"])
        for number, row in enumerate(rows):
            label = row["metadata"]["label"]
            writer.writerow([row["id"], label, label if number % 2 else ""])
    return file


def test_labels_in_a_file_of_their_own_calibrate_the_lexical_judge(tmp_path: Path, labels: Path) -> None:
    files = ("--out", "copy.json", "--svg", "diagram.svg")
    done = evalstone(tmp_path, "calibrate", "--labels", labels.name, "--data", str(DEMO_DATA), *files)
    assert done.returncode == 0, done.stderr
    for told in ("60 labelled samples", "people: yes", "specificity", "AUROC", "Reliability", "2 annotators", "Kept:"):
        assert told in done.stdout
    copy = json.loads((tmp_path / "copy.json").read_text())
    assert len(copy["pairs"]) == 60
    assert ElementTree.parse(tmp_path / "diagram.svg").getroot().tag.endswith("svg")
    found = calibration_for(copy["judge"], copy["scorer"], tmp_path / ".evalstone" / "ledger.db")
    assert found is not None
    assert found.columns == ("annotator_1", "annotator_2")


def test_a_calibration_can_be_printed_as_one_line_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.loads(printed("calibrate", "--labels", str(DEMO_DATA), "--json", "--fit", "platt", "--maximise", "f1"))
    assert (data["recalibration"]["kind"], data["threshold"]["objective"]) == ("platt", "f1")
    assert data["measures"]["raw"]["bins"]


def test_scores_that_an_edit_loses_are_told_where_nothing_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"id": "a", "output": "Paris is in France.", "context": ["Paris is in France."], "other": "Hello!"}
    (tmp_path / "data.jsonl").write_text(json.dumps(row))
    shown = printed("audit", "data.jsonl", "--paraphrase", "other", "--edit", "bold")
    assert "1 score was lost by an edit" in shown
    assert "No edit swayed it" in shown


def test_an_audit_prints_a_line_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = printed("audit", "--edit", "verbosity", "--edit", "position", "--samples", "12")
    for told in (
        "12 of 60 samples",
        "repeat",
        "passages_reversed",
        "verbosity",
        "adjusted by Holm",
        "unedited: mean",
    ):
        assert told in shown
    assert "injection" not in shown


def test_an_audit_can_be_printed_as_one_line_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.loads(printed("audit", str(DEMO_DATA), "-s", "hallucination", "--edit", "with_headings", "--json"))
    assert [effect["perturbation"] for effect in data["effects"]] == ["repeat", "with_headings"]
    assert data["scorers"][0]["name"] == "hallucination"


def test_the_cost_of_an_audit_is_known_before_and_its_edits_are_listed() -> None:
    dry = printed("audit", "--dry-run", "--judge", "openai/gpt-5.1", "--edit", "verbosity", "--samples", "3")
    assert "6 versions of 3 samples, judged by openai/gpt-5.1" in dry
    assert "$" in dry
    assert "injection_ready_reply" in printed("audit", "--edits")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["calibrate", "--labels", "none.csv"], "none.csv does not exist"),
        (["calibrate", "--labels", "{demo}", "--label", "gold"], "no row has the column 'gold'; columns: "),
        (["calibrate", "--labels", "{demo}", "--label-range", "1-5"], "--label-range takes LOW:HIGH"),
        (["calibrate", "--labels", "{demo}", "--maximise", "acuracy"], "did you mean accuracy"),
        (["calibrate", "--labels", "{demo}", "--fit", "isotone"], "must be 'auto', 'platt' or 'isotonic'"),
        (["calibrate", "--labels", "{demo}", "-s", "fathfulness"], "did you mean faithfulness"),
        (["calibrate", "--labels", "{demo}", "--map", "x"], "FIELD=COLUMN"),
        (["audit", "--edit", "injecton"], "did you mean injection"),
        (["audit", "--judge", "lexcal"], "did you mean lexical"),
        (["audit", "--threshold", "3"], "must be at most 1, not 3"),
    ],
)
def test_a_wrong_call_says_what_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[Any], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refusal(*(argument.replace("{demo}", str(DEMO_DATA)) for argument in arguments))


def test_a_wrong_call_ends_with_exit_code_2(tmp_path: Path) -> None:
    done = evalstone(tmp_path, "calibrate", "--labels", "none.csv")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "none.csv" in done.stderr

"""Calibrations as files: where they are, which one replaces which, and which one is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.errors import ConfigError, DataError
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.saved_calibrations import (
    calibration_file,
    calibration_for,
    calibrations_folder,
    calibrations_for,
    calibrations_of,
    list_calibrations,
    save_calibration,
)
from tests.runs import Given


def made(truths: list[float], **more: Any) -> Calibration:
    """A calibration whose scores are 0 and 1 in turn."""
    how: dict[str, Any] = {
        "judge": "lexical@1",
        "signature": "faithfulness@1",
        "labels": "a.jsonl",
        "labels_id": "a",
        **more,
    }
    return Calibration(
        scorer="faithfulness",
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.5,
        label_threshold=0.5,
        dataset_name="d.jsonl",
        dataset_version="v",
        pairs=tuple(LabeledScore(str(number), number % 2, (truth,)) for number, truth in enumerate(truths)),
        **how,
    )


GOOD = made([0, 1] * 10, created="2026-01-02T00:00:00+00:00")
CHANCE = made([0, 0, 1, 1] * 5, created="2026-01-03T00:00:00+00:00")


def test_calibrations_are_beside_the_ledger_and_found_by_judge_and_scorer(tmp_path: Path) -> None:
    ledger = tmp_path / "runs" / "ledger.db"
    assert list_calibrations(ledger) == ()
    assert calibration_for("lexical@1", "faithfulness@1", ledger) is None
    assert save_calibration(fit(GOOD), ledger) == calibration_file(GOOD, ledger)
    assert calibration_file(GOOD, ledger).parent == tmp_path / "runs" / "calibrations"
    assert calibrations_folder(f"sqlite:///{ledger}") == tmp_path / "runs" / "calibrations"
    assert calibration_for("lexical@1", "faithfulness@1", ledger) == fit(GOOD)
    assert calibration_for("lexical@7", "faithfulness@1", ledger) is None
    assert calibration_for("lexical@1", "faithfulness@4", ledger) is None
    assert list_calibrations(tmp_path / "runs" / "calibrations") == (fit(GOOD),)
    save_calibration(GOOD, ledger)
    assert list_calibrations(ledger) == (GOOD,)


def test_a_ledger_on_a_server_has_its_calibrations_in_the_current_folder() -> None:
    address = "postgresql://me@host/db"
    assert calibrations_folder(address) == Path(".evalstone/calibrations")


def test_calibrations_with_other_labels_stay_beside_each_other_and_the_best_is_used(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    constant = replace(GOOD, labels_id="c", created="2026-01-05T00:00:00+00:00", default_threshold=2.0)
    later = replace(GOOD, labels_id="d", created="2026-01-04T00:00:00+00:00")
    for one in (replace(CHANCE, labels_id="b"), GOOD, constant, later):
        assert save_calibration(one, ledger) == calibration_file(one, ledger)
    found = calibrations_for("lexical@1", "faithfulness@1", ledger)
    assert [one.labels_id for one in found] == ["d", "a", "c", "b"]
    assert calibration_for("lexical@1", "faithfulness@1", ledger) == later


@pytest.mark.parametrize("flawed", [CHANCE, made([1] * 20), replace(GOOD, default_threshold=2.0)])
def test_a_flawed_calibration_never_replaces_one_without_a_flaw(tmp_path: Path, flawed: Calibration) -> None:
    ledger = tmp_path / "ledger.db"
    save_calibration(GOOD, ledger)
    assert save_calibration(flawed, ledger) is None
    assert list_calibrations(ledger) == (GOOD,)
    calibration_file(GOOD, ledger).unlink()
    assert save_calibration(flawed, ledger) is not None
    assert save_calibration(flawed, ledger) is not None
    assert save_calibration(GOOD, ledger) is not None
    assert list_calibrations(ledger) == (GOOD,)


def test_a_file_of_another_judge_is_not_used_under_a_name_of_this_one(tmp_path: Path) -> None:
    other = calibration_file(replace(GOOD, judge="lexical@2"), tmp_path / "ledger.db")
    save_calibration(GOOD, tmp_path / "ledger.db")
    calibration_file(GOOD, tmp_path / "ledger.db").rename(other)
    assert calibrations_for("lexical@2", "faithfulness@1", tmp_path / "ledger.db") == ()


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    file = calibration_file(GOOD, tmp_path / "ledger.db")
    save_calibration(GOOD, tmp_path / "ledger.db")
    file.write_text("no json")
    assert save_calibration(CHANCE, tmp_path / "ledger.db") == file


def test_the_calibrations_of_a_run_are_those_of_the_scorers_that_asked_a_judge(tmp_path: Path) -> None:
    samples = [{"output": "0.5", "context": ["0.5"]}]
    run = evaluate(samples, ["faithfulness", Given()], judge="lexical", ledger=None)
    judge, scorer = run.judge_of("faithfulness"), run["faithfulness"].info.signature
    assert calibrations_of(run, tmp_path) == {scorer: ()}
    mine = replace(GOOD, judge=judge, signature=scorer)
    for one in (mine, replace(mine, judge="other"), replace(mine, judge="none", signature=Given().signature)):
        save_calibration(one, tmp_path)
    assert calibrations_of(run, tmp_path) == {scorer: (mine,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "is not a calibration: Expecting value"),
        ("[]", "must contain an object, not list"),
        ('{"format": 9}', "the format 9"),
        ('{"format": "calibration/1"}', "judge is missing"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    file = calibration_file(GOOD, tmp_path / "ledger.db")
    save_calibration(GOOD, tmp_path / "ledger.db")
    file.write_text(text)
    with pytest.raises(DataError, match=message) as raised:
        calibration_for("lexical@1", "faithfulness@1", tmp_path / "ledger.db")
    assert file.name in str(raised.value)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "calibrations").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"):
        save_calibration(GOOD, tmp_path / "ledger.db")

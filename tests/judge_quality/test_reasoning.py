"""Reasoning in front of outputs, in calibrations and audits."""

from pathlib import Path
from typing import Any

import pytest

from evalstone import audit, calibrate, evaluate
from evalstone.results.calibration import Calibration
from evalstone.results.run import Run
from evalstone.results.saved_calibrations import calibration_for, calibrations_of, list_calibrations
from evalstone.results.views.audit import audit_view
from evalstone.results.views.calibration import calibration_view

CHECK = "not_contains(expected=Berlin)"
THOUGHT = "<think>Berlin?</think>Paris"
ROWS: list[dict[str, Any]] = [
    {"id": "a", "input": "Where?", "output": THOUGHT, "label": "yes"},
    {"id": "b", "input": "Where?", "output": "Paris", "label": "yes"},
    {"id": "c", "input": "Where?", "output": "Berlin", "label": "no"},
]
KEPT: Any = {"keep_reasoning": True}
LEFT_OUT: Any = {}


def values(calibration: Calibration) -> list[float]:
    return [pair.value for pair in calibration.pairs]


def test_a_calibration_scores_what_a_run_scores() -> None:
    for options, kept in ((LEFT_OUT, False), (KEPT, True)):
        calibration = calibrate(ROWS, CHECK, **options, ledger=None)
        run = evaluate(ROWS, CHECK, keep_reasoning=kept, ledger=None)
        assert values(calibration) == [record.value for record in run.records] == [1 - kept, 1, 0]
        assert calibration.keeps_reasoning is run.keeps_reasoning is kept
        assert Calibration.from_dict(calibration.to_dict()).keeps_reasoning is kept
    assert calibrate(ROWS[1:], CHECK, **KEPT, ledger=None).keeps_reasoning is None


@pytest.mark.parametrize(
    ("options", "note"),
    [(LEFT_OUT, "it is not scored (keep_reasoning=True scores it)."), (KEPT, "it is scored as a part of the answer.")],
)
def test_calibrations_and_audits_say_whether_reasoning_is_scored(options: Any, note: str) -> None:
    config: Any = {"perturbations": ("repeat",)}
    for rows, notes in ((ROWS, 1), (ROWS[1:], 0)):
        for view in (
            calibration_view(calibrate(rows, CHECK, **options, ledger=None)),
            audit_view(audit(rows, CHECK, **config, **options, ledger=None)),
        ):
            assert [text.endswith(note) for text in view.warnings if "reasoning" in text] == [True] * notes


def test_an_audit_scores_and_changes_what_a_run_scores() -> None:
    for options, kept in ((LEFT_OUT, False), (KEPT, True)):
        result = audit(ROWS[:1], CHECK, **options, ledger=None)
        assert result.scorers[0].mean.estimate == 1 - kept
        assert result.keeps_reasoning is kept
        assert not any(effect.changed for effect in result.effects)


def test_a_calibration_is_not_used_for_scores_that_treat_reasoning_differently(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    kept = calibrate(ROWS, CHECK, **KEPT, ledger=ledger)

    def calibrations(run: Run) -> list[bool | None]:
        judge = run.judge_of(run.scorers[0].signature)
        found = calibration_for(judge, kept.signature, ledger, run.keeps_reasoning)
        return [] if found is None else [found.keeps_reasoning]

    left_out_run, kept_run = (evaluate(ROWS, CHECK, keep_reasoning=keep, ledger=None) for keep in (False, True))
    plain_run = evaluate(ROWS[1:], CHECK, ledger=None)
    assert (calibrations(left_out_run), calibrations(kept_run), calibrations(plain_run)) == ([], [True], [True])
    config: Any = {"perturbations": ("repeat",)}
    audits = [audit(ROWS, CHECK, **config, **options, ledger=ledger) for options in (KEPT, LEFT_OUT)]
    assert [one.scorers[0].threshold_source for one in audits] == ["unusable_calibration", "default"]
    calibrate(ROWS, CHECK, **LEFT_OUT, ledger=ledger)
    assert len(list_calibrations(ledger)) == 2
    assert (calibrations(left_out_run), calibrations(kept_run)) == ([False], [True])
    assert calibrations_of(left_out_run, ledger) == {}  # a scorer without a judge has none

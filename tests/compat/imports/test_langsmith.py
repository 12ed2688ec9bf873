"""The table of langsmith 0.15.1, which wrote the fixtures: four examples, twice each, of which the target fails one and
an evaluator another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from evalstone import Failed, Run, import_results
from evalstone.types import note

FOLDER = Path(__file__).parent / "langsmith"
ROWS: list[dict[str, Any]] = json.loads((FOLDER / "results.json").read_text("utf-8"))


def imported(path: Path, content: Any) -> Run:
    path.write_text(json.dumps(content), "utf-8")
    (run,) = import_results(path, ledger=None)
    return run


def outcomes(run: Run, scorer: str) -> list[Any]:
    return [record.outcome for record in run.records if record.scorer == scorer]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_example_again_is_a_trial(form: str) -> None:
    (run,) = import_results(FOLDER / f"results.{form}", ledger=None)
    assert run.target is not None
    assert (run.target.identity, run.target.answers, run.target.failed) == ("results", 6, 2)
    assert (run.n_samples, run.trials, [info.name for info in run.scorers]) == (
        4,
        2,
        ["exact", "correctness", "broken"],
    )
    assert run.samples is not None
    sample = run.samples[0]
    assert (sample.id, sample.trial, sample.input, sample.output, sample.reference) == (
        str(UUID(int=1)), 1, "What is the capital of France?", "Paris", "Paris",
    )  # fmt: skip
    assert sample.metadata["feedback.grade"] == "good"  # text is no score
    assert [each.value for each in outcomes(run, "exact")] == [1, 1, 1, 1, 0, 0, 0, 0]
    assert note("scored_without_answer", "caution", tool="langsmith", rows=2) in run.notes


def test_a_row_without_an_answer_fails_where_it_has_no_score(tmp_path: Path) -> None:
    rows = [{**row, "feedback.exact": None if row["error"] else row["feedback.exact"]} for row in ROWS]
    failure = outcomes(imported(tmp_path / "r.json", rows), "exact")[6]
    assert (failure.error.startswith("the target failed: KeyError('Peru')"), failure.exception) == (
        True,
        "TargetFailed",
    )


def test_a_missing_score_is_a_failure_and_never_0() -> None:
    (run,) = import_results(FOLDER / "results.csv", ledger=None)
    found = outcomes(run, "broken")
    assert [each.exception if isinstance(each, Failed) else each.value for each in found] == [
        0.5, 0.5, "NoScore", "NoScore", 0.5, 0.5, 0.5, 0.5,
    ]  # fmt: skip


def test_both_forms_are_the_same_run(tmp_path: Path) -> None:
    (one,), (other,) = (import_results(FOLDER / f"results.{form}", ledger=None) for form in ("json", "csv"))
    assert one.id == other.id
    rows = [{**row, "example_id": {"hex": UUID(row["example_id"]).hex, "int": 1}} for row in ROWS]
    assert imported(tmp_path / "results.json", rows).dataset_version == one.dataset_version  # as pandas writes a UUID


def test_feedback_with_a_text_is_no_metric_and_bad_numbers_fail(tmp_path: Path) -> None:
    rows = [{**row, "feedback.exact": 0.5, "feedback.correctness": "good"} for row in ROWS]
    rows[0]["feedback.exact"] = -1
    run = imported(tmp_path / "r.json", rows)
    assert [info.name for info in run.scorers] == ["exact", "broken"]
    assert outcomes(run, "exact")[0].exception == "OutOfRange"
    assert run.samples is not None
    assert run.samples[0].metadata["feedback.correctness"] == "good"


def test_a_metric_that_a_later_row_shows_is_one_of_the_first_rows_too(tmp_path: Path) -> None:
    rows = [{**each, "feedback.correctness": 1, "feedback.late": None} for each in ROWS[:3]]
    rows[1]["feedback.late"] = 0.5
    rows[2]["feedback.correctness"] = "good"
    run = imported(tmp_path / "r.json", rows)
    assert {"correctness", "late"} & {info.name for info in run.scorers} == {"late"}
    assert [isinstance(outcome, Failed) for outcome in outcomes(run, "late")] == [True, False, True]
    assert run.samples is not None
    assert run.samples[0].metadata["feedback.correctness"] == 1


def test_several_inputs_outputs_and_references_are_kept(tmp_path: Path) -> None:
    row = {
        **ROWS[0],
        "inputs.documents": ["p"],
        "inputs.level": "easy",
        "outputs.answer": "[1, 2",
        "outputs.steps": 3,
        "reference.level": "B1",
    }
    samples = imported(tmp_path / "r.json", [row]).samples
    assert samples is not None
    (sample,) = samples
    assert (sample.context, sample.output, sample.reference) == (("p",), "[1, 2", "Paris")
    assert (sample.metadata["level"], sample.metadata["expected_level"], sample.metadata["output.steps"]) == (
        "easy", "B1", 3,
    )  # fmt: skip


def test_a_target_that_returned_nothing_has_an_answer_without_output(tmp_path: Path) -> None:
    samples = imported(tmp_path / "r.json", [{**ROWS[0], "outputs.answer": None}]).samples
    assert samples is not None
    assert [sample.output for sample in samples] == [None]

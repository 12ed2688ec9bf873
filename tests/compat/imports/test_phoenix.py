"""The results of phoenix 20.26.1 and phoenix.evals 3.9.4, which wrote the fixtures: an experiment of four examples,
twice each, of which the task fails one; and a table of three rows, of which the judge fails one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, Run, import_results
from evalstone.types import note

FOLDER = Path(__file__).parent / "phoenix"
ROWS: list[dict[str, Any]] = json.loads((FOLDER / "experiment.json").read_text("utf-8"))
TABLE: list[dict[str, Any]] = json.loads((FOLDER / "evals.json").read_text("utf-8"))


def imported(path: Path, content: Any) -> Run:
    path.write_text(json.dumps(content), "utf-8")
    (run,) = import_results(path, ledger=None)
    return run


def outcomes(run: Run, scorer: str) -> list[Any]:
    return [record.outcome for record in run.records if record.scorer == scorer]


def exceptions(run: Run, scorer: str) -> list[str | None]:
    return [each.exception if isinstance(each, Failed) else None for each in outcomes(run, scorer)]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_experiment_is_a_run_of_its_examples_and_repetitions(form: str) -> None:
    (run,) = import_results(FOLDER / f"experiment.{form}", ledger=None)
    assert run.target is not None
    assert (run.target.identity, run.target.answers, run.target.failed) == ("experiment", 6, 2)
    assert (run.n_samples, run.trials, run.started) == (4, 2, "2026-11-28T09:19:21+00:00")
    assert run.samples is not None
    sample = run.samples[0]
    assert (sample.id, sample.trial, sample.input, sample.output, sample.reference) == (
        "RGF0YXNldEV4YW1wbGU6MQ==", 1, "What is the capital of France?", "Paris", "Paris",
    )  # fmt: skip
    assert sample.metadata["target"]["seconds"] == pytest.approx(0.000541)
    assert [each.value for each in outcomes(run, "exact")[:6]] == [1, 1, 1, 1, 0, 0]
    assert outcomes(run, "exact")[6].value == 0  # of no answer
    assert note("scored_without_answer", "caution", tool="phoenix", rows=2) in run.notes
    assert outcomes(run, "broken")[6] == Failed("the target failed: KeyError('Peru')")
    assert outcomes(run, "correctness")[0].reason == "It names the capital."
    assert exceptions(run, "broken") == [None] * 2 + ["ScorerFailed"] * 2 + [None] * 2 + ["TargetFailed"] * 2
    assert not any(record.calls for record in run.records)


def test_both_forms_of_an_experiment_are_the_same_run() -> None:
    (one,), (other,) = (import_results(FOLDER / f"experiment.{form}", ledger=None) for form in ("json", "csv"))
    assert one.id == other.id
    assert [record.to_dict() for record in one.records] == [record.to_dict() for record in other.records]


def test_the_model_of_an_annotation_is_its_judge(tmp_path: Path) -> None:
    annotation = {
        "name": "tone",
        "annotator_kind": "LLM",
        "label": "polite",
        "score": None,
        "metadata": {"model": "m-1"},
    }
    rows = [{**row, "annotations": [annotation, {**annotation, "score": 0.5}]} for row in ROWS[:2]]
    rows[1]["annotations"][1] = {**annotation, "error": "away"}
    run = imported(tmp_path / "e.json", rows)
    assert exceptions(run, "tone(number=2)") == [None, "JudgeFailed"]
    assert exceptions(run, "tone") == ["NoScore"] * 2  # a label is no score
    calls = [record.calls[0] for record in run.records if record.scorer == "tone(number=2)"]
    assert [(call.judge, call.answer) for call in calls] == [
        ("m-1 by phoenix", {"label": "polite", "score": 0.5}), ("m-1 by phoenix", None),
    ]  # fmt: skip


def test_tokens_objects_and_values_beside_an_answer_are_kept(tmp_path: Path) -> None:
    row = {
        **ROWS[0],
        "input": {"question": "Q?", "level": "easy"},
        "reference_output": {"answer": "A", "level": "B1"},
        "output": {"answer": "Yes.", "contexts": ["p", "q"], "steps": 3},
        "prompt_token_count": 7,
    }
    samples = imported(tmp_path / "e.json", [row]).samples
    assert samples is not None
    (sample,) = samples
    assert (sample.input, sample.reference, sample.output, sample.context) == ("Q?", "A", "Yes.", ("p", "q"))
    assert (sample.metadata["level"], sample.metadata["expected_level"], sample.metadata["output.steps"]) == (
        "easy", "B1", 3,
    )  # fmt: skip
    assert sample.metadata["target"]["usage"]["input"] == 7


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_table_has_samples_with_answers(tmp_path: Path, form: str, first: int) -> None:
    lines = (FOLDER / f"evals.{form}").read_text("utf-8")
    if form == "json":
        lines = json.dumps(TABLE[first:] + TABLE[:first])
    (tmp_path / f"t.{form}").write_text(lines, "utf-8")
    (run,) = import_results(tmp_path / f"t.{form}", ledger=None)
    assert (run.n_samples, run.target, run.judge) == (3, None, "gpt-5-mini by phoenix")
    sample = next(each for each in run.samples or () if each.output == "Paris")
    assert sample.context == ("Paris is the capital of France.", "Capitals are cities.")
    assert sample.metadata == {}
    assert {info.name: info.lower_is_better for info in run.scorers} == {
        "exact": False, "faithfulness": False, "toxicity": True, "away": False,
    }  # fmt: skip
    assert (run.mean("exact"), run.mean("faithfulness"), run.mean("toxicity")) == (2 / 3, 1, 0.25)
    (failure,) = (each for each in outcomes(run, "faithfulness") if isinstance(each, Failed))
    assert (failure.error, failure.exception) == ("RuntimeError('the judge is away')", "JudgeFailed")
    assert exceptions(run, "away") == ["ScorerFailed"] * 3
    assert sum(record.seconds for record in run.records) > 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([{**ROWS[0], "repetition_number": 1.5}], "repetition_number must be a whole number, not 1.5"),
        ([{**ROWS[0], "repetition_number": None}], "repetition_number must be a whole number, not None"),
        ([ROWS[0], ROWS[0]], "trial 1 of .* is there twice"),
        ([{**TABLE[0], "exact_score": 0.5}], "exact_score must be an object, not float"),
        ([{**TABLE[0], "exact_score": "{'score': 1"}], "item 1: exact_score: "),
    ],
)
def test_what_cant_be_read_is_named(tmp_path: Path, content: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        imported(tmp_path / "e.json", content)


@pytest.mark.parametrize("number", [10**400, 0, True, 1.5])
def test_a_repetition_must_have_a_number_that_can_be_one(tmp_path: Path, number: object) -> None:
    with pytest.raises(DataError, match=r"item 1: (there is a trial|repetition_number must be a whole number)"):
        imported(tmp_path / "e.json", [{**ROWS[0], "repetition_number": number}])

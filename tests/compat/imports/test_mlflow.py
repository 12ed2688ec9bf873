"""The traces of MLflow 3.17.2, which wrote the fixtures: four cases, of which the function fails one, the judge one and
a scorer one. A person corrected a score and gave one. Tracebacks and digests are shortened or left out."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, Run, Score, import_results
from evalstone.types import note

FOLDER = Path(__file__).parent / "mlflow"
TRACES: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "traces.jsonl").read_text("utf-8").splitlines()]
PRINTED = {"exact": 0.5, "length": 8.0, "correctness": 1 / 3, "broken": 0.5, "politeness": 0.75}
"""The means that MLflow logged. It scored the answer that the failed function didn't give, too."""


def imported(path: Path, content: Any) -> Run:
    path.write_text(json.dumps(content), "utf-8")
    (run,) = import_results(path, ledger=None)
    return run


def changed(path: Path, change: Callable[[dict[str, Any]], None], *, number: int = 0) -> Run:
    content = copy.deepcopy(TRACES)
    change(content[number])
    return imported(path, content)


@pytest.fixture(scope="module")
def run() -> Run:
    return import_results(FOLDER / "traces.json", ledger=None)[0]


def by_question(run: Run, scorer: str) -> dict[str, Any]:
    countries = {each.id: str(each.input).rpartition(" ")[2].strip("?") for each in run.samples or ()}
    return {countries[record.sample_id]: record.outcome for record in run.records if record.scorer == scorer}


def test_a_trace_is_a_case_with_its_answer_and_its_passages(run: Run) -> None:
    assert run.target is not None
    assert (run.target.identity, run.target.answers, run.target.failed) == ("predict", 3, 1)
    assert (run.n_samples, run.trials, run.started[:13]) == (4, 1, "2026-11-28T09")
    sample = next(each for each in run.samples or () if each.output == "Paris")
    assert (sample.input, sample.reference, sample.metadata["level"]) == (
        "What is the capital of France?", "Paris", "easy",
    )  # fmt: skip
    assert sample.context == ("Capitals are cities.", "Madrid is the capital of Spain.")
    assert (sample.metadata["feedback.style"], sample.metadata["target"]["usage"]["input"]) == ("plain", 12)
    assert sample.metadata["target"]["seconds"] > 0


def test_scores_are_those_of_mlflow_also_without_an_answer(run: Run) -> None:
    exact, correctness = by_question(run, "exact"), by_question(run, "correctness")
    assert {each: exact[each].value for each in ("France", "Germany", "Spain")} == {
        "France": 1,
        "Germany": 1,
        "Spain": 0,
    }
    assert (correctness["France"].value, correctness["Spain"].value) == (1, 0)
    assert correctness["France"].evidence == {"value": "yes"}
    for name, printed in PRINTED.items():
        assert run.mean(name) == pytest.approx(printed, rel=1e-15)
    assert note("scored_without_answer", "caution", tool="mlflow", rows=1) in run.notes
    assert {name for name in PRINTED if len(by_question(run, name)) == 4} == {*PRINTED}


def test_failures_have_their_kind(run: Run) -> None:
    kinds = {name: by_question(run, name) for name in ("exact", "correctness", "broken")}
    assert kinds["exact"]["Peru"] == Score(0.0, scale=1.0)
    assert kinds["broken"]["Peru"] == Failed("the target failed: KeyError: 'Peru'")
    assert (kinds["correctness"]["Germany"].error, kinds["correctness"]["Germany"].exception) == (
        "the judge is away", "JudgeFailed",
    )  # fmt: skip
    assert (kinds["broken"]["Germany"].error, kinds["broken"]["Germany"].exception) == (
        "the scorer broke", "ScorerFailed",
    )  # fmt: skip


def test_a_judge_is_in_the_calls(run: Run) -> None:
    calls = [record.calls[0] for record in run.records if record.scorer == "correctness" and record.calls]
    assert {call.judge for call in calls} == {"openai:/gpt-5-mini by mlflow"}
    answered = [call for call in calls if call.answer is not None]
    assert [(call.usage.input, call.usage.output, call.cost) for call in answered] == [(50, 4, 0.001)] * 3
    assert len(calls) == 4


def test_what_people_say_is_a_metric_of_its_own(run: Run) -> None:
    assert by_question(run, "exact")["Spain"].value == 0  # which a person has corrected
    assert by_question(run, "exact(source=human)")["Spain"].value == 1
    assert by_question(run, "correctness(source=human)")["Spain"].value == 1


def test_all_forms_have_the_same_records(run: Run) -> None:
    (lines,) = import_results(FOLDER / "traces.jsonl", ledger=None)
    assert lines.id == run.id
    (table,) = import_results(FOLDER / "result.csv", ledger=None)  # made before people said anything
    for name in PRINTED:
        assert by_question(table, name) == by_question(run, name)


def _of(trace: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in trace["info"]["assessments"] if each["assessment_name"] == name)


def test_a_score_that_was_replaced_by_its_scorer_is_left_out(tmp_path: Path) -> None:
    def change(trace: dict[str, Any]) -> None:
        old = _of(trace, "politeness")
        trace["info"]["assessments"].append({**old, "feedback": {"value": 0.25}})
        old["valid"] = False

    assert changed(tmp_path / "t.json", change).mean("politeness") == pytest.approx((0.75 * 3 + 0.25) / 4)


def test_unknown_is_undefined_and_feedback_on_a_span_a_metric_of_its_own(tmp_path: Path) -> None:
    def change(trace: dict[str, Any]) -> None:
        _of(trace, "correctness")["feedback"] = {"value": "unknown"}
        inner = trace["data"]["spans"][1]
        of_inner = {**_of(trace, "politeness"), "feedback": {"value": 0.5}, "span_id": _hex(inner["span_id"])}
        trace["info"]["assessments"] += [of_inner, copy.deepcopy(of_inner)]

    run = changed(tmp_path / "t.json", change)
    assert run["correctness"].n_skipped == 1
    assert [run.mean(f"politeness({more})") for more in ("span=retrieve", "span=retrieve, number=2")] == [0.5, 0.5]
    assert run.mean("politeness") == 0.75


def _hex(id: str) -> str:
    return base64.b64decode(id).hex()


def test_a_run_of_the_tool_is_a_run_if_there_are_several(tmp_path: Path) -> None:
    content = copy.deepcopy(TRACES)
    for trace in content[:2]:
        trace["info"]["trace_metadata"]["mlflow.sourceRun"] = "abcdef0123456789"
    (tmp_path / "t.json").write_text(json.dumps(content), "utf-8")
    runs = import_results(tmp_path / "t.json", ledger=None)
    found = [run.target.identity for run in runs if run.target is not None]
    assert (found[0], len(found), len(found[1])) == ("predict · run abcdef01", 2, len(found[0]))


@pytest.mark.parametrize("last", [None, 0.5])
def test_feedback_is_a_score_of_all_traces_if_it_is_one_of_the_last(last: float | None, tmp_path: Path) -> None:
    content = copy.deepcopy(TRACES)
    for number, trace in enumerate(content, start=1):
        value = last if number == len(content) and last is not None else f"text {number}"
        trace["info"]["assessments"].append({**_of(trace, "politeness"), "assessment_name": "late"})
        _of(trace, "late")["feedback"] = {"value": value}
    run = imported(tmp_path / "t.json", content)
    assert run.samples is not None
    said = [each.metadata.get("feedback.late") for each in run.samples]
    if last is None:
        assert said[:2] == ["text 1", "text 2"]
        assert "late" not in [info.name for info in run.scorers]
        return
    assert said == [None] * len(content)
    assert (run["late"].n_score, run["late"].n_failed) == (1, len(content) - 1)
    assert len(run.records) == run.n_samples * len(run.scorers)  # what was read first is void


@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        (None, "item 1 has no trace"),
        ("{", "item 1.trace: line 1"),
        ("[]", "item 1.trace must be an object, not list"),
        ('{"a": 1, "a": 2}', "item 1.trace: line 1: duplicate key"),
    ],
)
def test_what_cant_be_read_is_named(tmp_path: Path, trace: str | None, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        imported(tmp_path / "t.json", [{"trace_id": "t", "trace": trace, "assessments": []}])


def test_a_table_of_long_traces_is_known_by_its_beginning(tmp_path: Path) -> None:
    trace = copy.deepcopy(TRACES[0])
    trace["data"]["spans"][0]["attributes"]["notes"] = json.dumps("long " * 100_000)
    run = imported(tmp_path / "t.json", [{"trace_id": "t", "trace": json.dumps(trace), "assessments": []}])
    assert run.n_samples == 1

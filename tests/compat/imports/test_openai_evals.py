"""The output items of OpenAI's evals API. The fixture was written from the models of openai 2's Python client and
validated by them: four items, of which the judge fails one, and the model one. What the dashboard exports was written
as promptfoo 0.123.1 checks it, and imported there."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, Run, Score, import_results
from evalstone.types import note

FILE = Path(__file__).parent / "openai_evals" / "items.jsonl"
ITEMS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def imported(path: Path, content: Any) -> list[Run]:
    path.write_text(json.dumps(content), "utf-8")
    return list(import_results(path, ledger=None))


@pytest.fixture(scope="module")
def run() -> Run:
    return import_results(FILE, ledger=None)[0]


def outcomes(run: Run, scorer: str) -> list[Any]:
    return [record.outcome for record in run.records if record.scorer == scorer]


def exceptions(run: Run, scorer: str) -> list[str | None]:
    return [each.exception if isinstance(each, Failed) else None for each in outcomes(run, scorer)]


def test_the_model_is_the_system_and_a_row_of_the_data_a_case(run: Run) -> None:
    assert run.target is not None
    assert (run.target.identity, run.target.answers, run.target.failed) == ("small-1", 3, 1)
    assert (run.n_samples, run.trials, run.dataset_name, run.started) == (4, 1, "eval_1", "2026-01-01T00:00:00+00:00")
    assert run.samples is not None
    sample = run.samples[1]
    assert (sample.input, sample.reference, sample.output) == ("What is the capital of Italy?", "Rome", "Milan")
    assert [message.role for message in sample.messages] == ["system", "user", "assistant"]
    assert sample.metadata["level"] == "easy"
    assert sample.metadata["target"]["usage"] == {"input": 20, "output": 2, "cached": 4, "requests": 0}


def test_graders_are_scorers_without_what_the_api_adds_to_their_names(run: Run) -> None:
    assert [(info.name, info.scale) for info in run.scorers] == [("test_passed", 1), ("Exact", 1), ("Quality", 10)]
    assert [each.value for each in outcomes(run, "Exact")[:3]] == [1, 0, 1]
    calls = [record.calls for record in run.records if record.scorer == "Quality"]
    assert (calls[0][0].judge, calls[0][0].answer, calls[0][0].usage.input) == (
        "judge-1 by openai-evals", {"score": 6.0, "passed": True}, 40,
    )  # fmt: skip
    assert outcomes(run, "Quality")[0].reason == "It names the capital."
    assert not any(record.calls for record in run.records if record.scorer == "Exact")


def test_a_judge_that_failed_has_no_score_although_the_file_has_0(run: Run) -> None:
    assert exceptions(run, "Quality") == [None, None, "JudgeFailed", "TargetFailed"]
    assert exceptions(run, "test_passed") == [None, None, "JudgeFailed", "TargetFailed"]
    assert [each.value for each in outcomes(run, "test_passed")[:2]] == [1, 0]
    assert outcomes(run, "Quality")[2] == Failed("the judge is away")
    assert outcomes(run, "Exact")[3] == Failed("the target failed: HTTP 503")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"steps": [{"description": "d", "conclusion": "It is true."}, {"conclusion": "It is short."}], "result": 6}',
         "It is true. It is short."),
        ('{"steps": [1, {"description": "d"}], "result": 6}', '{"steps": [1, {"description": "d"}], "result": 6}'),
        ('{"result": 6}', '{"result": 6}'),
        ("{not JSON", "{not JSON"),
        ("[1]", "[1]"),
    ],
)  # fmt: skip
def test_a_reply_in_steps_has_their_conclusions_as_reason(tmp_path: Path, reply: str, reason: str) -> None:
    item = copy.deepcopy(ITEMS[0])
    item["results"][1]["sample"]["output"][0]["content"] = reply
    (run,) = imported(tmp_path / "items.json", [item])
    assert outcomes(run, "Quality")[0].reason == reason


@pytest.mark.parametrize("form", ["list", "page", "single"])
def test_all_forms_give_the_same(tmp_path: Path, run: Run, form: str) -> None:
    page = {"object": "list", "data": ITEMS, "has_more": True}
    content = {"list": ITEMS, "page": page, "single": ITEMS[0]}[form]
    (other,) = imported(tmp_path / "items.json", content)
    expected = [
        record.outcome for record in run.records if form != "single" or record.sample_id == run.records[0].sample_id
    ]
    assert [record.outcome for record in other.records] == expected
    assert (note("more_rows", "warning", tool="openai-evals") in other.notes) is (form == "page")


def test_each_model_and_each_of_its_runs_is_a_run(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{**copy.deepcopy(item), "run_id": "evalrun_2"} for item in ITEMS]
    assert [each.target and each.target.identity for each in imported(tmp_path / "i.json", ITEMS + others)] == [
        "small-1 · evalrun_1", "small-1 · evalrun_2",
    ]  # fmt: skip
    for item in others:
        item["sample"]["model"] = "large-1"
    assert [each.target and each.target.identity for each in imported(tmp_path / "i.json", ITEMS + others)] == [
        "small-1", "large-1",
    ]  # fmt: skip


def test_the_same_row_again_is_a_trial(tmp_path: Path) -> None:
    (run,) = imported(tmp_path / "i.json", ITEMS + ITEMS)
    assert (run.n_samples, run.trials) == (4, 2)


def test_answers_of_the_data_source_are_read_without_a_model(tmp_path: Path) -> None:
    item: dict[str, Any] = {**copy.deepcopy(ITEMS[0]), "sample": {}, "status": "completed"}
    item["datasource_item"]["sample.output_text"] = "Paris"
    (run,) = imported(tmp_path / "i.json", [item])
    assert run.samples is not None
    assert (run.target, run.samples[0].output) == (None, "Paris")
    assert outcomes(run, "test_passed") == [Score(1, scale=1)]
    assert "sample.output_text" not in run.samples[0].metadata


def test_graders_of_the_same_name_and_of_unknown_types_are_kept(tmp_path: Path) -> None:
    item = copy.deepcopy(ITEMS[0])
    item["results"] = [{"name": "x", "type": "new-kind-grader", "score": 1, "passed": True}] * 2
    (run,) = imported(tmp_path / "i.json", [item])
    assert [info.signature for info in run.scorers][1:] == [
        "x(openai-evals==)@1", "x(number=2; openai-evals==)@1",
    ]  # fmt: skip
    assert [each for each in run.notes if each.kind == "metric_unknown"] == [
        note("metric_unknown", "caution", tool="openai-evals", metric="new_kind", place="items[0]")
    ]


def test_a_rejected_item_has_failed_whatever_broke(tmp_path: Path) -> None:
    item = copy.deepcopy(ITEMS[2])
    item["results"][0] |= {"passed": False, "score": 0}
    (run,) = imported(tmp_path / "i.json", [item])
    assert outcomes(run, "test_passed") == [Score(0, scale=1)]


def test_a_run_without_items_is_refused_by_name(tmp_path: Path) -> None:
    content: dict[str, Any] = {"object": "eval.run", "result_counts": {"total": 4}, "per_testing_criteria_results": []}
    with pytest.raises(DataError, match=r"a run with its counts.*output_items\.list"):
        imported(tmp_path / "run.json", content)


def test_items_with_large_numbers_are_cases_of_their_own(tmp_path: Path) -> None:
    numbers = (1_234_567, 1_234_568, 10**300, -1)
    items = [{**ITEMS[0], "datasource_item_id": number} for number in numbers]
    (run,) = imported(tmp_path / "i.json", items)
    assert (run.n_samples, run.trials) == (4, 1)


def test_what_the_dashboard_exports_is_read_as_the_items_of_the_api_are() -> None:
    first, second = import_results(FILE.with_name("exported.jsonl"), ledger=None)
    assert first.target is not None
    assert (first.target.identity, first.target.answers, first.target.failed) == ("small-1 · evalrun_1", 3, 1)
    assert (first.n_samples, second.n_samples) == (4, 4)
    assert [(info.name, info.scale) for info in first.scorers] == [("test_passed", 1), ("Exact", 1), ("Quality", 10)]
    assert [record.value for record in second.records if record.scorer == "Exact"] == [0, 1, 0, 1]
    assert exceptions(first, "Quality") == [None, None, "JudgeFailed", "TargetFailed"]
    (call,) = next(record.calls for record in first.records if record.scorer == "Quality")
    assert (call.judge, call.usage.input) == ("judge-1 by openai-evals", 40)
    assert first.samples is not None
    sample = first.samples[0]
    assert (sample.input, sample.output) == ("What is the capital of country 0?", "Paris")
    assert sample.metadata["target"]["usage"] == {"input": 20, "output": 2, "cached": 4, "requests": 0}


def test_an_exported_item_without_verdicts_has_no_verdict(tmp_path: Path) -> None:
    item = {
        "run_id": "r",
        "data_source_idx": 0,
        "item": {"q": "1 + 1?"},
        "sample": {"outputs": ["2"]},
        "grades": {"a": 1},
    }
    (run,) = imported(tmp_path / "one.json", item)
    assert [info.name for info in run.scorers] == ["a"]
    assert run.samples is not None
    assert (run.samples[0].output, run.target) == ("2", None)
    (run,) = imported(tmp_path / "two.json", [item | {"grades": {}, "passes": {"a": False}}])
    assert [(info.name, run.mean(info.name)) for info in run.scorers] == [("test_passed", 0), ("a", 0)]

"""The results of deepeval 4.3.1, which wrote the fixtures with a judge that is a Python class: four cases, of which the
judge fails one, two conversations, and the store of both, whose pages were made smaller."""

from __future__ import annotations

import copy
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, ImportedRuns, Run, Skipped, import_results
from evalstone.compat.imports.deepeval import READER
from evalstone.compat.imports.reading import Source
from evalstone.compat.imports.results import Row
from evalstone.types import Message, TrajectoryExpectation, note
from evalstone.types.messages import ToolCall

FOLDER = Path(__file__).parent / "deepeval"
RESULTS: dict[str, Any] = json.loads((FOLDER / "results.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def run() -> Run:
    return import_results(FOLDER / "results.json", ledger=None)[0]


def imported(path: Path, content: Any) -> ImportedRuns:
    path.write_text(json.dumps(content), "utf-8")
    return import_results(path, ledger=None)


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The results with each score of each case changed, and without deepeval's counts."""
    content = copy.deepcopy(RESULTS)
    del content["metricsScores"]
    for case in content["testCases"]:
        for data in case["metricsData"]:
            change(data)
    return content


def outcomes(run: Run, scorer: str) -> list[Any]:
    return [record.outcome for record in run.records if record.scorer == scorer]


def kinds(run: Run) -> set[str]:
    return {each.kind for each in run.notes}


def test_hyperparameters_are_the_system_and_its_answers_are_those_of_the_cases(run: Run) -> None:
    assert run.target is not None
    assert (run.target.identity, run.target.answers, run.target.cost) == ("small-1 · temperature=0.2", 4, 0.0004)
    assert (run.n_samples, run.trials, run.dataset_name) == (4, 1, "nightly")
    assert run.samples is not None
    sample = run.samples[0]
    assert (sample.input, sample.output, sample.reference) == ("What is the capital of France?", "Paris", "Paris")
    assert sample.context == ("The capital of France is Paris.", "Capitals are cities.")
    assert (sample.metadata["level"], sample.metadata["context"]) == ("easy", ["The capital of France is Paris."])
    assert sample.messages[-1] == Message(
        role="assistant",
        content="Paris",
        tool_calls=(ToolCall(name="search", arguments={"query": "France"}, result="found"),),
    )
    assert sample.expected_trajectory == TrajectoryExpectation.read(
        [{"name": "search", "arguments": {"query": "France"}}]
    )


def test_an_expected_tool_without_arguments_may_be_called_with_any(tmp_path: Path) -> None:
    content = copy.deepcopy(RESULTS)
    del content["testCases"][0]["expectedTools"][0]["inputParameters"]
    content["testCases"][1]["expectedTools"][0]["inputParameters"] = {}
    (run,) = imported(tmp_path / "r.json", content)
    expected = [sample.expected_trajectory for sample in run.samples or ()]
    assert expected[0] == TrajectoryExpectation.read(["search"])
    assert expected[1] == TrajectoryExpectation.read([{"name": "search", "arguments": {}}])


def test_our_numbers_are_those_that_deepeval_printed(tmp_path: Path, run: Run) -> None:
    printed: dict[str, dict[str, Any]] = {
        each["metric"]: each for each in RESULTS["metricsScores"] if each["metric"] != "Length"
    }
    for name, each in printed.items():
        mean = sum(each["scores"]) / len(each["scores"])
        assert abs((run[name].mean or 0) - mean) <= 1e-12
        assert (run[name].n_score, run[name].n_failed) == (len(each["scores"]), each["errors"])
    assert run["test_passed"].mean == pytest.approx(1 / 3)
    assert [each["numbers"] for each in run.notes if each.kind == "printed_equal"] == [25]
    assert "printed_differs" not in kinds(run)
    content = copy.deepcopy(RESULTS)
    content["metricsScores"][0]["scores"] = [1.0, 1.0, 1.0, 1.0]
    (other,) = imported(tmp_path / "r.json", content)
    assert {each.scorer for each in other.notes if each.kind == "printed_differs"} == {"Exact Match"}


def test_scores_without_a_verdict_count_here_and_not_in_deepeval(run: Run) -> None:
    assert (run["Length"].n_score, run["Length"].info.tool_threshold) == (4, None)
    assert note("without_verdict", "caution", "Length", tool="deepeval", scores=4) in run.notes


def test_a_metric_that_failed_has_no_score(run: Run) -> None:
    found = outcomes(run, "Hallucination")[2]
    assert (found, found.exception) == (Failed("RuntimeError: the judge is away"), "JudgeFailed")
    calls = [record.calls for record in run.records if record.scorer == "Hallucination"]
    assert [each[0].judge for each in calls] == ["small-judge by deepeval"] * 4
    assert (calls[2][0].answer, calls[0][0].answer["score"]) == (None, 1.0)
    passed = outcomes(run, "test_passed")
    assert isinstance(passed[2], Failed)
    assert [each.value for each in (passed[0], passed[1], passed[3])] == [1, 0, 0]
    assert passed[1].reason == "failed: Exact Match, Hallucination, Wordiness"


def test_a_test_that_another_metric_rejects_has_failed_whatever_broke(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        if data["name"] == "Exact Match":
            data |= {"success": False, "score": 0.0}

    (run,) = imported(tmp_path / "r.json", changed(change))
    assert [each.value for each in outcomes(run, "test_passed")][2] == 0


@pytest.mark.parametrize(
    ("error", "model", "exception"),
    [("it broke", None, "ScorerFailed"), ("MissingTestCaseParamsError: 'context'", "small-judge", "ScorerFailed")],
)
def test_what_broke_without_a_judge_is_the_scorer(tmp_path: Path, error: str, model: str, exception: str) -> None:
    def change(data: dict[str, Any]) -> None:
        if data["name"] == "Exact Match":
            data.pop("score")
            data |= {"success": False, "error": error, "evaluationModel": model}

    (run,) = imported(tmp_path / "r.json", changed(change))
    assert {each.exception for each in outcomes(run, "Exact Match")} == {exception}


def test_directions_are_those_of_the_scores_that_passed(tmp_path: Path, run: Run) -> None:
    lower = {info.name for info in run.scorers if info.lower_is_better}
    assert lower == {"Wordiness"}
    assert "direction_unsure" not in kinds(run)

    def as_before_version_4(data: dict[str, Any]) -> None:
        if data["name"] == "Hallucination" and "score" in data:
            data["score"] = 1.0 - data["score"]

    (older,) = imported(tmp_path / "r.json", changed(as_before_version_4))
    assert older["Hallucination"].info.lower_is_better

    def without_verdicts(data: dict[str, Any]) -> None:
        data.pop("threshold", None)

    (unsure,) = imported(tmp_path / "r.json", changed(without_verdicts))
    assert [each.scorer for each in unsure.notes if each.kind == "direction_unsure"] == ["Hallucination"]
    assert not unsure["Hallucination"].info.lower_is_better

    def contradict(data: dict[str, Any]) -> None:
        if data["name"] == "Exact Match":
            data |= {"success": True, "threshold": 0.5}

    (unsure,) = imported(tmp_path / "r.json", changed(contradict))
    assert [each.scorer for each in unsure.notes if each.kind == "direction_unsure"] == ["Exact Match"]


def test_strict_metrics_and_metrics_of_parts_are_metrics_of_their_own(tmp_path: Path, run: Run) -> None:
    assert run["Faithfulness"].info.signature == "Faithfulness(strict=true; deepeval==)@1"
    content = copy.deepcopy(RESULTS)
    score = {"name": "Exact Match", "threshold": 1.0, "success": True, "score": 1.0}
    for case in content["testCases"]:
        case["metricsData"] = [score, score]
        case["trace"] = {"toolSpans": [{"name": "search", "metricsData": [score]}], "metricsData": [score]}
    content["metricsScores"] = [{"metric": "Exact Match", "scores": [1.0] * 12, "errors": 0}]
    (parts,) = imported(tmp_path / "r.json", content)
    assert [info.signature for info in parts.scorers[1:]] == [
        f"Exact Match({settings}deepeval==)@1" for settings in ("", "number=2; ", "span=search; ")
    ]
    assert "printed_differs" not in kinds(parts)


def test_the_same_cases_again_are_trials_if_all_are_there_equally_often(tmp_path: Path) -> None:
    content = changed(lambda data: None)
    del content["testPassed"]
    content["testCases"] += copy.deepcopy(content["testCases"])
    (run,) = imported(tmp_path / "r.json", content)
    assert (run.n_samples, run.trials) == (4, 2)
    content["testCases"].pop()
    (run,) = imported(tmp_path / "r.json", content)
    assert (run.n_samples, run.trials) == (7, 1)


def test_without_hyperparameters_the_answers_are_part_of_the_samples(tmp_path: Path) -> None:
    content = changed(lambda data: None)
    del content["hyperparameters"]
    (run,) = imported(tmp_path / "r.json", content)
    assert (run.target, run.samples is not None and run.samples[0].output) == (None, "Paris")
    content["testCases"] *= 2
    del content["testPassed"]
    (run,) = imported(tmp_path / "r.json", content)
    assert (run.target and run.target.identity, run.trials) == ("unnamed system", 2)


def test_conversations_have_their_turns() -> None:
    (run,) = import_results(FOLDER / "conversations.json", ledger=None)
    assert run.samples is not None
    sample = run.samples[0]
    assert (sample.input, sample.reference) == ("A guest from France says hello", "They are greeted")
    assert (sample.output, sample.context) == ("Hello! How can I help?", ("Greetings.",))
    assert [(each.role, [call.name for call in each.tool_calls]) for each in sample.messages] == [
        ("user", []),
        ("assistant", ["greet"]),
    ]
    assert [type(each).__name__ for each in outcomes(run, "test_passed")] == ["Score", "Failed"]
    assert "printed_differs" not in kinds(run)


def test_a_store_has_a_run_for_each_test_run(run: Run) -> None:
    before = (FOLDER / "deepeval.db").read_bytes()
    runs = import_results(FOLDER / "deepeval.db", ledger=None)
    assert [each.target and each.target.identity for each in runs] == [
        "small-1 · temperature=0.2 · test run 1 nightly",
        "test run 2",
    ]
    for scorer in ("Exact Match", "Faithfulness"):
        assert [each.value for each in outcomes(runs[0], scorer) if not isinstance(each, Failed)] == [
            each.value for each in outcomes(run, scorer) if not isinstance(each, Failed)
        ]
    assert runs[0].started == "2026-11-28T05:35:30+00:00"
    assert (FOLDER / "deepeval.db").read_bytes() == before
    assert sorted(file.name for file in FOLDER.iterdir()) == ["conversations.json", "deepeval.db", "results.json"]


def test_a_store_that_is_being_written_is_read_with_its_journal(tmp_path: Path) -> None:
    store = tmp_path / "deepeval.db"
    store.write_bytes((FOLDER / "deepeval.db").read_bytes())
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("DELETE FROM test_runs WHERE id = 2")
    connection.commit()
    assert len(import_results(store, ledger=None)) == 1
    connection.execute("UPDATE test_runs SET payload_json = substr(payload_json, 1, 900)")
    connection.commit()
    with pytest.raises(DataError, match=r"deepeval\.db: line 1"):
        import_results(store, ledger=None)
    connection.close()


def test_a_link_says_where_the_results_are(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"only the link to a test run.*\.latest_run_full\.json"):
        imported(tmp_path / ".latest_test_run.json", {"testRunLink": "https://example.com/run/1"})


def test_a_test_run_may_be_wrapped_or_in_the_folder_of_deepeval(tmp_path: Path, run: Run) -> None:
    (wrapped,) = imported(tmp_path / ".latest_test_run.json", {"testRunData": RESULTS})
    assert [each.outcome for each in wrapped.records] == [each.outcome for each in run.records]
    (of_old_folder,) = import_results(tmp_path, ledger=None)
    assert [each.outcome for each in of_old_folder.records] == [each.outcome for each in run.records]
    (tmp_path / ".latest_test_run.json").write_text('{"testRunLink": "https://example.com/run/1"}', "utf-8")
    with pytest.raises(DataError, match="only the link to a test run"):
        import_results(tmp_path, ledger=None)
    (tmp_path / ".latest_run_full.json").write_text(json.dumps(RESULTS), "utf-8")
    (of_folder,) = import_results(tmp_path, ledger=None)
    assert [each.outcome for each in of_folder.records] == [each.outcome for each in run.records]
    results = tmp_path / "results"
    results.mkdir()
    for name in ("test_run_20260101_000000.json", "test_run_20260101_000000_2.json"):
        (results / name).write_text(json.dumps(RESULTS), "utf-8")
    (results / ".test_run.lock").touch()
    runs = import_results(results, ledger=None)
    systems = [run.target.identity for run in runs if run.target is not None]
    assert [system.rpartition(" · ")[2] for system in systems] == [
        "test_run_20260101_000000",
        "test_run_20260101_000000_2",
    ]
    assert len({run.id for run in runs}) == 2
    (results / "test_run_20260101_000000_2.json").write_text("[1]", "utf-8")
    with pytest.raises(DataError, match=r"not JSON|must be an object"):
        import_results(results, ledger=None)


def test_a_case_without_an_answer_or_a_verdict_is_kept(tmp_path: Path) -> None:
    content = changed(lambda data: None)
    del content["testPassed"]
    del content["testCases"][0]["actualOutput"], content["testCases"][0]["toolsCalled"]
    del content["testCases"][0]["success"]
    (run,) = imported(tmp_path / "r.json", content)
    assert run.samples is not None
    assert (run.n_samples, run.samples[0].output) == (4, None)
    assert isinstance(outcomes(run, "test_passed")[0], Skipped)
    content["testCases"][0]["toolsCalled"] = [{"output": "found"}]
    with pytest.raises(DataError, match=r"testCases\[0\]: a tool call must have a name"):
        imported(tmp_path / "r.json", content)


@pytest.mark.slow
def test_a_file_is_read_in_a_time_that_grows_with_it(tmp_path: Path) -> None:
    def seconds(cases: int) -> float:
        scored = {"name": "Bias", "threshold": 0.5, "score": 1.0, "success": True}
        content = [{"input": str(number), "actualOutput": "a", "metricsData": [scored]} for number in range(cases)]
        path = tmp_path / f"{cases}.json"
        path.write_text(json.dumps({"hyperparameters": {"model": "m"}, "testCases": content}), "utf-8")
        began = time.process_time()
        assert sum(isinstance(event, Row) for event in READER.read(Source(path))) == cases
        return time.process_time() - began

    assert seconds(16_000) / seconds(2_000) < 14


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("CREATE TABLE test_runs(id, created_at, identifier, payload_json); "
         "INSERT INTO test_runs VALUES ('a', '', '', '{}')",
         "test_runs: id must be a whole number, not 'a'"),
        ("CREATE VIEW test_runs AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
         "SELECT id, '' AS created_at, '' AS identifier FROM n", "it has no table test_runs"),
        ("CREATE TABLE others(id)", "it has no table test_runs"),
        ("CREATE TABLE test_runs(id INTEGER PRIMARY KEY, created_at, payload_json, "
         "identifier AS (zeroblob(900000000))); INSERT INTO test_runs(created_at) VALUES ('')",
         "test_runs has columns that are calculated"),
        ("CREATE TABLE test_runs(id INTEGER PRIMARY KEY, created_at, identifier, payload_json); "
         "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT 1001) "
         "INSERT INTO test_runs SELECT id, '', '', '{}' FROM n", "it has 1,001 test runs; at most 1,000 can be"),
    ],
)  # fmt: skip
def test_a_store_with_another_schema_is_refused(tmp_path: Path, script: str, problem: str) -> None:
    connection = sqlite3.connect(tmp_path / "deepeval.db")
    connection.executescript(script)
    connection.close()
    with pytest.raises(DataError, match=problem):
        import_results(tmp_path / "deepeval.db", tool="deepeval", ledger=None)


def test_a_store_whose_schema_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    store = (FOLDER / "deepeval.db").read_bytes()
    (tmp_path / "deepeval.db").write_bytes(
        store.replace(b"CREATE TABLE test_runs (", b"CREATE T\xff\xfeLE test_runs (", 1)
    )
    with pytest.raises(DataError, match=r"the store of deepeval cannot be read: .*codec can't decode"):
        import_results(tmp_path / "deepeval.db", ledger=None)


def test_numbers_that_no_float_can_hold_are_no_scores(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["score"] = 10**400

    content = changed(change) | {"metricsScores": [{"metric": "Length", "scores": [10**400, 0.5], "errors": 0}]}
    for case in content["testCases"]:
        case["order"] = 10**300
    (run,) = imported(tmp_path / "r.json", content)
    assert {record.value for record in run.records if record.scorer != "test_passed"} == {None}


@pytest.mark.parametrize("hyperparameters", [{}, {"model": "m"}])
def test_a_passage_that_is_no_text_is_refused_with_its_place(tmp_path: Path, hyperparameters: dict[str, Any]) -> None:
    content: dict[str, Any] = {**changed(lambda data: None), "hyperparameters": hyperparameters}
    content["testCases"][1]["retrievalContext"] = [None]
    with pytest.raises(DataError, match=r"r\.json: testCases\[1\]: context passage 1 must be text, not NoneType"):
        imported(tmp_path / "r.json", content)

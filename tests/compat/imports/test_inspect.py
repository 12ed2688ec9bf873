"""The logs of inspect 0.3.285, which wrote the fixtures: four samples, two epochs, an error; and a scorer that crashed.
Events were left out of them. `crashed.eval` is of a process that was killed, compressed again with deflate."""

from __future__ import annotations

import copy
import json
import math
import statistics
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import DataError, Failed, Run, Sample, compare, import_results
from evalstone._core import spilled_texts
from evalstone.compat.imports.inspect_scores import tokens_of
from evalstone.types import Usage, note

FOLDER = Path(__file__).parent / "inspect"
TWO: dict[str, Any] = json.loads((FOLDER / "two.json").read_text("utf-8"))


def imported(name: str | Path) -> Run:
    (run,) = import_results(FOLDER / name, ledger=None)
    return run


def changed(path: Path, change: Callable[[dict[str, Any]], None], name: str = "log.json") -> Path:
    """The log of two epochs, changed."""
    log = copy.deepcopy(TWO)
    change(log)
    path.mkdir(exist_ok=True)
    (path / name).write_text(json.dumps(log), "utf-8")
    return path / name


@pytest.fixture(scope="module")
def run() -> Run:
    return imported("two.eval")


def sample(run: Run, id: str, trial: int | None = 1) -> Sample:
    return next(each for each in run.samples or () if (each.id, each.trial) == (id, trial))


def record(run: Run, scorer: str, id: str, trial: int | None = 1) -> Any:
    return next(each for each in run.records if (each.scorer, each.sample_id, each.trial) == (scorer, id, trial))


def test_a_model_is_a_system_and_epochs_are_trials(run: Run) -> None:
    assert run.target is not None
    assert (run.target.identity, run.n_samples, run.trials, run.dataset_name) == ("mockllm/model", 4, 2, "capitals")
    assert (run.target.answers, run.target.failed, run.started) == (7, 1, TWO["stats"]["started_at"])
    assert [each.id for each in run.samples or ()][::2] == ["france", "italy", "chile", "mars"]
    assert run["includes"].info.signature == "includes(inspect==0.3.285)@1"
    assert [info.name for info in run.scorers] == [
        "includes", "model_graded_qa", "rubric.clear", "rubric.short", "rubric.tone", "words", "pair.0", "pair.1",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["two.json", "chunked.eval"])
def test_all_forms_of_a_log_are_the_same_run(run: Run, name: str) -> None:
    assert imported(name).id == run.id


def test_a_sample_has_the_conversation_with_its_tool_calls(run: Run) -> None:
    italy = sample(run, "italy")
    assert (italy.input, italy.instructions, italy.output, italy.reference) == (
        "What is the capital of Italy?", "Answer briefly.", "It is Rome.", '["Rome", "Roma"]',
    )  # fmt: skip
    (call,) = italy.messages[2].tool_calls
    assert (call.name, call.arguments, call.result) == ("capital", {"country": "Italy"}, "Rome")
    assert italy.metadata["level"] == "easy"
    assert italy.metadata["target"]["usage"] == {"input": 22, "output": 10, "cached": 2, "requests": 0}
    assert [each.attachments for each in sample(run, "mars").messages] == [("image",), ()]
    assert not sample(run, "france").messages


def test_grades_are_numbers_and_objects_and_lists_are_metrics(run: Run) -> None:
    found = {each.scorer: each.value for each in run.records if (each.sample_id, each.trial) == ("italy", 1)}
    assert found == {
        "includes": 1, "model_graded_qa": 1, "rubric.clear": 1, "rubric.short": 1, "rubric.tone": 0.5,
        "words": 3, "pair.0": 1, "pair.1": 0.5,
    }  # fmt: skip
    assert record(run, "includes", "chile").evidence["value"] == "I"
    assert record(run, "rubric.tone", "france").evidence == {"value": "N", "metadata": {"letters": 11}}
    assert (record(run, "words", "italy").reason, record(run, "rubric.clear", "italy").reason) == ("", "by length")


def test_a_grader_is_the_judge_of_its_records(run: Run) -> None:
    good = record(run, "model_graded_qa", "italy")
    assert good.reason == "It names a city.\nGRADE: C"
    (call,) = good.calls
    assert (call.judge, call.answer["value"], call.usage) == ("mockllm/grader by inspect", "C", Usage(40, 8, 0, 0))
    assert "grading" not in json.dumps(good.evidence)


@pytest.mark.parametrize(
    ("name", "scorer", "case", "kind", "text"),
    [
        ("two.eval", "includes", ("mars", 2), "TargetFailed", "the target failed: RuntimeError('the tool server is"),
        ("two.eval", "pair.1", ("mars", 2), "TargetFailed", "the target failed: RuntimeError"),
        ("two.eval", "model_graded_qa", ("chile", 1), "JudgeFailed", "grader failed: Grade not found"),
        ("two.eval", "rubric.tone", ("chile", 1), "ScorerFailed", "scoring failed: no subscores"),
        ("broken.eval", "rubric.clear", ("mars", None), "ScorerFailed", "ValueError('the rubric has no such planet')"),
        ("broken.eval", "pair.0", ("mars", None), "ScorerFailed", "ValueError"),
        ("crashed.eval", "rubric.short", ("chile", None), "ScorerFailed", "scoring failed"),
    ],
)
def test_what_broke_failed(name: str, scorer: str, case: tuple[str, int | None], kind: str, text: str) -> None:
    found = record(imported(name), scorer, *case)
    assert isinstance(found.outcome, Failed)
    assert (found.outcome.exception, found.outcome.error[: len(text)]) == (kind, text)
    assert found.outcome.reply == ("It names a city.\nI am not sure." if kind == "JudgeFailed" else None)


def test_scores_from_before_a_scorer_crashed_are_kept() -> None:
    run = imported("broken.eval")
    assert [record(run, name, "mars", None).value for name in ("includes", "model_graded_qa")] == [1, 0.5]
    assert sample(run, "mars", None).output == "none"


def test_an_answer_that_a_limit_ended_says_so() -> None:
    run = imported("broken.eval")
    assert sample(run, "italy", None).metadata["limit"]["type"] == "message"
    assert note("samples_limited", tool="inspect", samples=1, what="message") in run.notes


def printed(run: Run, kind: str) -> list[Any]:
    return [each for each in run.notes if each.kind == kind]


def test_our_numbers_are_those_that_inspect_printed(run: Run) -> None:
    assert [each["numbers"] for each in printed(run, "printed_equal")] == [26]
    assert not printed(run, "printed_differs")
    assert not printed(run, "printed_with_failed")
    for score in TWO["results"]["scores"]:
        name = score["name"] if score["name"] == score["scorer"] else f"{score['scorer']}.{score['name']}"
        by_case: dict[str, list[float]] = {}
        for each in run.records:
            if each.scorer == name and each.value is not None:
                by_case.setdefault(each.sample_id, []).append(each.value)
        for label in ("accuracy", "mean"):
            if label in score["metrics"]:
                ours = statistics.fmean(statistics.fmean(values) for values in by_case.values())
                assert math.isclose(ours, score["metrics"][label]["value"], rel_tol=1e-12)
    explained = [each.scorer for each in printed(run, "printed_by_case")]
    assert explained == ["includes", "model_graded_qa", "rubric.clear", "rubric.tone", "words"]


def test_means_where_nothing_failed_are_ours() -> None:
    run = imported("broken.eval")
    assert not printed(run, "printed_by_case")
    assert [each["numbers"] for each in printed(run, "printed_equal")] == [26]
    assert math.isclose(run.mean("includes"), 0.5, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("includes", "accuracy", 0.7), ("includes", "stderr", 0.3), ("words", "std", 4.0), ("words", "mean", 4.1)],
)
def test_a_number_that_differs_is_a_warning(tmp_path: Path, name: str, field: str, value: float) -> None:
    def change(log: dict[str, Any]) -> None:
        score = next(each for each in log["results"]["scores"] if each["name"] == name)
        score["metrics"][field]["value"] = value

    (found,) = printed(imported(changed(tmp_path, change)), "printed_differs")
    assert (found.scorer, found["printed"]) == (name, value)


@pytest.mark.parametrize(("field", "ours"), [("scored_samples", 4), ("unscored_samples", 0)])
def test_the_numbers_of_samples_are_compared(tmp_path: Path, field: str, ours: int) -> None:
    def change(log: dict[str, Any]) -> None:
        log["results"]["scores"][0][field] = 9
        log["results"]["total_samples"] = log["results"]["completed_samples"] = 9

    found = printed(imported(changed(tmp_path, change)), "printed_differs")
    assert [each["ours"] for each in found] == [8, 7, ours]


def test_other_numbers_are_named(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        scores = log["results"]["scores"]
        scores[0]["metrics"]["mine"] = {"name": "acme/mine", "value": 1.0}
        scores[1]["reducer"] = "max"

    found = printed(imported(changed(tmp_path, change)), "printed_uncompared")
    assert [each["what"] for each in found] == [
        "includes: mine, model_graded_qa: accuracy (max), model_graded_qa: stderr (max)"
    ]


def test_text_that_is_no_number_failed_although_inspect_counts_0(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        for each, value in zip(log["samples"], ["yes", "0.25", "maybe", True], strict=False):
            each["scores"]["includes"]["value"] = value

    run = imported(changed(tmp_path, change))
    by_case = {id: record(run, "includes", id) for id in ("chile", "france", "italy", "mars")}
    assert [each.value for each in by_case.values()] == [1, 0.25, None, 1]
    assert by_case["italy"].outcome.exception == "NotFinite"


def test_a_crashed_evaluation_has_what_its_journal_has() -> None:
    run = imported("crashed.eval")
    assert (run.n_samples, run.trials) == (3, 1)
    assert note("eval_unfinished", "caution", tool="inspect", status="started", error="") in run.notes
    assert isinstance(record(run, "rubric.tone", "italy", None).value, float)


def test_without_samples_the_reduced_scores_are_read(run: Run) -> None:
    reduced = imported("unlogged.eval")
    assert note("samples_unlogged", "caution", tool="inspect") in reduced.notes
    assert reduced.mean("includes") == 0.75
    assert not printed(reduced, "printed_differs")
    assert reduced["rubric.clear"].n_failed == 1


def test_attachments_are_put_where_they_belong(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        first = log["samples"][0]
        first["attachments"]["abc"] = "A long text."
        first["input"] = first["messages"][0]["content"] = first["output"]["completion"] = "attachment://abc"
        first["scores"]["includes"]["explanation"] = "attachment://abc"

    run = imported(changed(tmp_path, change))
    chile = sample(run, "chile")
    assert (chile.input, chile.output, record(run, "includes", "chile").reason) == ("A long text.",) * 3


def test_a_folder_has_a_run_for_each_model_of_a_task(tmp_path: Path) -> None:
    for number, model in enumerate(("a", "b", "b")):

        def change(log: dict[str, Any], model: str = model) -> None:
            log["eval"]["model"] = model

        changed(tmp_path, change, f"2026-11-28T05-27-0{number}-00-00_capitals_x.json")
    (tmp_path / "other.json").write_text("{}")
    runs = import_results(tmp_path, ledger=None)
    created = TWO["eval"]["created"]
    assert [each.target and each.target.identity for each in runs] == ["a", "b", f"b · {created}"]
    difference = compare(runs[0], runs[1])["includes"].difference
    assert difference is not None
    assert difference.estimate == 0

    def unfinished(log: dict[str, Any]) -> None:
        log["eval"]["model"] = "c"
        log["status"] = "cancelled"
        log["stats"] |= {"started_at": "2026-11-29T10:00:00+00:00", "completed_at": "2026-11-29T10:00:07+00:00"}

    later = changed(tmp_path, unfinished, "2026-11-29T10-00-00-00-00_capitals_x.json")
    found = import_results(tmp_path, ledger=None)
    assert [run.id for run in found] == [*(run.id for run in runs), import_results(later, ledger=None)[0].id]
    assert (found[3].started, found[3].seconds) == ("2026-11-29T10:00:00+00:00", 7)
    assert [len(printed(run, "eval_unfinished")) for run in found] == [0, 0, 0, 1]


def test_a_log_without_scores_beside_others_is_left_out_and_named(tmp_path: Path) -> None:
    def crashed(log: dict[str, Any]) -> None:
        log["eval"]["model"] = "a"
        log |= {"status": "error", "error": {"message": "rate limit"}, "results": None, "samples": []}

    def cancelled(log: dict[str, Any]) -> None:
        log["eval"] |= {"model": "b", "scorers": []}
        log |= {"status": "cancelled", "results": None}
        for each in log["samples"]:
            each |= {"scores": None, "error": None}

    for number, change in enumerate((crashed, cancelled, lambda log: None)):
        changed(tmp_path, change, f"2026-11-28T05-27-0{number}-00-00_capitals_x.json")
    (run,) = import_results(tmp_path, ledger=None)
    assert run.target is not None
    assert run.target.identity == TWO["eval"]["model"]
    assert note("systems_left_out", "caution", systems=2, what="b, a") in run.notes


def test_a_folder_of_several_tasks_gives_the_runs_that_their_logs_give_alone(tmp_path: Path) -> None:
    def one(log: dict[str, Any]) -> None:
        log["eval"] |= {"task": "rivers", "model": "a"}

    def other(log: dict[str, Any]) -> None:
        one(log)
        log["eval"] |= {"task": "lakes", "packages": {"inspect_ai": "0.3.9"}}
        for each in log["samples"]:
            each["scores"] = {"depth": {"value": 40}}

    def without_scores(log: dict[str, Any]) -> None:
        log["eval"] |= {"task": "seas", "scorers": []}
        log["results"] = None
        for each in log["samples"]:
            each |= {"scores": None, "error": None}

    logs = tmp_path / "logs"
    paths = [
        changed(logs, change, f"2026-11-28T05-27-0{number}-00-00_{number}_x.json")
        for number, change in enumerate((one, other, without_scores))
    ]
    runs = import_results(logs, ledger=None, out=tmp_path / "out", scales={"depth": 50})
    alone = [
        *import_results(paths[0], ledger=None),
        *import_results(paths[1], ledger=None, scales={"depth": 50}),
    ]
    assert [run.id for run in runs] == [run.id for run in alone]
    assert [(run.dataset_name, run.scorers[0].tool) for run in runs] == [
        ("rivers", "inspect 0.3.285"), ("lakes", "inspect 0.3.9"),
    ]  # fmt: skip
    assert [Path(folder).name for folder in runs.folders] == ["a-rivers", "a-lakes"]
    assert runs.tool == "inspect 0.3.285, inspect 0.3.9"
    expected = note("parts_left_out", "caution", parts=1, what="seas (0.3.285): its results have no scores")
    assert all(expected in run.notes for run in runs)
    with pytest.raises(DataError, match="scales: unknown metric 'width'"):
        import_results(logs, ledger=None, scales={"width": 2})
    for path in paths[:2]:
        path.unlink()
    with pytest.raises(DataError, match="its results have no scores"):
        import_results(logs, ledger=None)


def test_the_log_of_an_old_version_has_one_score(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        log["eval"] = {key: log["eval"][key] for key in ("task", "model", "created")}
        log["results"] = {"scorer": {"name": "includes"}, "metrics": {"accuracy": {"name": "accuracy", "value": 0.75}}}
        for each in log["samples"]:
            scores = each.pop("scores")
            if scores:
                each["score"] = scores["includes"]

    run = imported(changed(tmp_path, change))
    assert [info.signature for info in run.scorers] == ["includes(inspect==)@1"]
    assert [each["numbers"] for each in printed(run, "printed_equal")] == [1]


BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda log: log["samples"].append(1), r"samples\[8\] must be an object"),
    (lambda log: log["samples"][0].update(id=None), r"samples\[0\].id must be a text or a number, not NoneType"),
    (lambda log: log["samples"][0].update(epoch="1"), r"samples\[0\].epoch must be a whole number, not str"),
    (lambda log: log["samples"][1].update(id="chile"), r"trial 1 of 'chile' is there twice"),
    (lambda log: log["samples"][0]["messages"].append({"role": 7}), r"samples\[0\].messages: .*role"),
    (lambda log: log["samples"][0]["scores"].update(x=1), "the score x of chile must be an object"),
    (lambda log: log.update(samples=log.pop("samples"), eval=log.pop("eval")), "its samples come before eval"),
    (lambda log: (log.pop("samples"), log.pop("reductions")), "it has no samples"),
]


@pytest.mark.parametrize(("change", "problem"), BROKEN)
def test_a_log_that_cant_be_read_is_refused_in_words(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        imported(changed(tmp_path, change))


def test_a_sample_that_was_written_again_counts_once(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "again.eval"
    with zipfile.ZipFile(FOLDER / "crashed.eval") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, text)
            if name == "samples/france_epoch_1.json":
                with pytest.warns(UserWarning, match="Duplicate"):
                    new.writestr(name, text.replace(b'"value": "C"', b'"value": "I"'))
    again = imported(path)
    assert record(again, "includes", "france", None).value == 0
    assert note("entries_replaced", tool="inspect", entries=1) in again.notes


def test_a_large_sample_is_read_without_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.compat.imports.inspect._WHOLE", 0)
    assert imported("two.eval").id == imported("two.json").id


def test_texts_that_inspect_counts_as_zero_are_said_also_where_it_averages_trials(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        scored = [sample for sample in log["samples"] if sample["scores"]]
        for number, sample in enumerate(scored):
            sample["scores"] = {"includes": {"value": "maybe" if number == 0 else "C"}}
        del scored[4]["scores"]["includes"]  # the other trial of the same sample
        log["samples"] = scored
        metrics = {"mean": {"name": "mean", "value": 0.75}}
        log["results"] = {"scores": [{"name": "includes", "scorer": "includes", "metrics": metrics}]}

    run = imported(changed(tmp_path, change))
    kinds = {each.kind: each for each in run.notes if each.scorer == "includes"}
    assert run.mean("includes") == 1
    assert kinds["printed_with_failed"]["failed"] == 1
    assert "printed_differs" not in kinds


def test_a_log_with_something_after_it_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda log: None)
    path.write_text(path.read_text("utf-8") + "{}", "utf-8")
    with pytest.raises(DataError, match="Extra data"):
        imported(path)


def test_a_chunk_whose_number_has_thousands_of_digits_is_none(tmp_path: Path) -> None:
    path = tmp_path / "chunked.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({name: TWO[name] for name in ("version", "eval")}))
        archive.writestr("samples/1_epoch_1/sample.json", json.dumps(TWO["samples"][0]))
        archive.writestr(f"samples/1_epoch_1/messages/{'9' * 5000}.json", "[]")
    assert len(imported(path).samples or ()) == 1


def test_a_log_of_many_samples_is_known_by_its_beginning(tmp_path: Path) -> None:
    def extend(log: dict[str, Any]) -> None:
        log["eval"]["dataset"]["sample_ids"] += [f"sample-{number}" for number in range(30_000)]

    (run,) = import_results(changed(tmp_path, extend), ledger=None)
    assert run.n_samples == 4


def test_tokens_of_the_cache_are_part_of_the_input() -> None:
    said = {"input_tokens": 1, "input_tokens_cache_read": 2, "input_tokens_cache_write": 4, "output_tokens": 8}
    assert tokens_of(said) == Usage(input=7, output=8, cached=2)


def test_scores_that_no_scale_can_hold_are_left_out_of_what_is_compared(tmp_path: Path) -> None:
    def change(log: dict[str, Any]) -> None:
        for number, each in enumerate(log["samples"]):
            if "words" in (each.get("scores") or {}):
                each["scores"]["words"]["value"] = 1e299 if number % 2 else 1

    run = imported(changed(tmp_path, change))
    assert run["words"].n_failed
    assert run["words"].info.scale == 1e100


def test_a_member_that_is_too_long_is_refused_before_it_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t"}, "filler": "x" * 30_000_000}))
    monkeypatch.setenv("EVALSTONE_MAX_ROW_MB", "2")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"log.eval: header.json: the document is longer than 2 MB"):
            imported(tmp_path / "log.eval")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_all_tasks_of_a_folder_share_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):

        def change(log: dict[str, Any], number: int = number) -> None:
            log["eval"]["task"] = f"task {number}"

        changed(tmp_path, change, f"2026-11-28T05-27-0{number}-00-00_{number}_x.json")
    opened, really = list[Any](), cast("Any", tempfile.TemporaryFile)

    def counted(**settings: Any) -> Any:
        opened.append(settings)
        return really(**settings)

    monkeypatch.setattr(spilled_texts, "IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "TemporaryFile", counted)
    assert len(import_results(tmp_path, ledger=None)) == 3
    assert len(opened) == 1

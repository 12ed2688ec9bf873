"""The results of lm-eval 0.4.13, which wrote the fixtures: five documents, three tasks and a group, two models."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, ImportedRuns, Run, Score, compare, import_results
from evalstone.types import note

FOLDER = Path(__file__).parent / "lm_eval"
SMALL = FOLDER / "small"
(RESULTS,) = SMALL.glob("results_*.json")
PRINTED: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
TIME = RESULTS.stem.removeprefix("results_")
OPEN = SMALL / f"samples_capitals_open_{TIME}.jsonl"


def imported(path: Path) -> dict[str, Run]:
    """The runs by system."""
    return {run.target.identity if run.target else "": run for run in import_results(path, ledger=None)}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SMALL, tmp_path / "small"))


def change_lines(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change each line of a file; one for which None is returned is dropped."""
    lines = [change(json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines if line is not None), "utf-8")


def change_results(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    results = json.loads(RESULTS.read_text("utf-8"))
    change(results)
    (folder / RESULTS.name).write_text(json.dumps(results), "utf-8")
    return folder


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return imported(SMALL)


def test_a_model_and_a_task_are_a_run(runs: dict[str, Run]) -> None:
    assert [*runs] == ["Small · capitals_choice", "Small · capitals_open"]
    run = runs["Small · capitals_open"]
    assert (run.n_samples, run.trials, run.dataset_name, run.started[:10]) == (5, 1, "capitals_open", TIME[:10])
    assert [info.signature for info in run.scorers] == [
        f"exact_match.{filter}(task=capitals_open, version=1; lm-eval==0.4.13)@1" for filter in ("first", "word")
    ]


def test_models_are_compared_task_by_task() -> None:
    runs = imported(FOLDER)
    assert len(runs) == 4
    for task, scorer in (("capitals_choice", "acc"), ("capitals_open", "exact_match.word")):
        one, other = runs[f"Small · {task}"], runs[f"DummyLM · {task}"]
        assert one.dataset_version == other.dataset_version
        difference = compare(other, one)[scorer].difference
        assert difference is not None
        assert math.isclose(difference.estimate, one.mean(scorer) - other.mean(scorer), abs_tol=1e-12)


def test_each_evaluation_of_a_folder_has_its_own_time() -> None:
    times = {system: (run.started, run.seconds) for system, run in imported(FOLDER).items()}
    for folder in ("small", "dummy"):
        (results,) = (FOLDER / folder).glob("results_*.json")
        said = json.loads(results.read_text("utf-8"))
        alone = {system: (run.started, run.seconds) for system, run in imported(FOLDER / folder).items()}
        assert alone.items() <= times.items()
        assert {seconds for _, seconds in alone.values()} == {float(said["total_evaluation_time_seconds"])}


def test_a_line_is_the_score_of_a_filter(runs: dict[str, Run]) -> None:
    run = runs["Small · capitals_open"]
    by_case = {(each.sample_id, each.scorer): each for each in run.records}
    assert [by_case["0", f"exact_match.{filter}"].value for filter in ("first", "word")] == [1, 1]
    italy = [by_case["1", f"exact_match.{filter}"] for filter in ("first", "word")]
    assert [(each.value, each.evidence) for each in italy] == [
        (0, {"filtered": ["It is Rome"]}), (1, {"filtered": ["Rome"]}),
    ]  # fmt: skip


def test_a_document_is_a_sample(runs: dict[str, Run]) -> None:
    sample = [*(runs["Small · capitals_open"].samples or ())][1]
    assert (sample.id, sample.input, sample.output, sample.reference) == (
        "1", "What is the capital of Italy?", "It is Rome", "Rome",
    )  # fmt: skip
    assert sample.metadata["responses"] == ["It is Rome", "It is Rome"]
    assert sample.metadata["prompt"] == "Q: What is the capital of Italy?\nA:"
    sample = [*(runs["Small · capitals_choice"].samples or ())][1]
    assert (sample.output, sample.reference) == ("Milan", "Rome")
    assert sample.metadata["log_likelihoods"] == [-0.25, -4.25, -0.25]
    assert sample.metadata["choices"] == ["Milan", "Rome", "Turin"]


def test_our_numbers_are_those_that_lm_eval_printed(runs: dict[str, Run]) -> None:
    for identity, run in runs.items():
        printed = PRINTED["results"][identity.rpartition(" ")[2]]
        for info in run.scorers:
            metric, _, filter = info.name.partition(".")
            assert math.isclose(run.mean(info.name), printed[f"{metric},{filter or 'none'}"], abs_tol=1e-12)
            assert run[info.name].n_score == 5
    notes = [each for run in runs.values() for each in run.notes]
    assert sum(each["numbers"] for each in notes if each.kind == "printed_equal") == 10
    assert not [each for each in notes if each.kind == "printed_differs"]
    assert {each["what"] for each in notes if each.kind == "printed_uncompared"} == {"capitals (group)"}


@pytest.mark.parametrize(
    ("key", "value", "what"), [("acc,none", 0.5, "mean"), ("acc_norm_stderr,none", 0.2, "standard error")]
)
def test_a_number_that_differs_is_a_warning(copied: Path, key: str, value: float, what: str) -> None:
    change_results(copied, lambda results: results["results"]["capitals_choice"].update({key: value}))
    found = [each for run in imported(copied).values() for each in run.notes if each.kind == "printed_differs"]
    assert [(each["what"], each["printed"]) for each in found] == [(what, value)]


def test_metrics_over_all_documents_have_no_scores(runs: dict[str, Run]) -> None:
    found = {each["what"] for run in runs.values() for each in run.notes if each.kind == "metric_of_all"}
    assert found == {"capitals_open: bleu, capitals_text: word_perplexity, capitals_text: bits_per_byte"}


def test_a_metric_has_a_direction(copied: Path) -> None:
    change_results(copied, lambda results: results["higher_is_better"]["capitals_choice"].update(acc=False))
    run = imported(copied)["Small · capitals_choice"]
    assert [run[name].info.lower_is_better for name in ("acc", "acc_norm")] == [True, False]


def test_a_score_that_is_none_failed(copied: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        return line | ({"exact_match": math.nan} if (line["doc_id"], line["filter"]) == (1, "word") else {})

    change_lines(copied / OPEN.name, change)
    outcomes = {
        (each.sample_id, each.scorer): each.outcome for each in imported(copied)["Small · capitals_open"].records
    }
    assert isinstance(outcomes["1", "exact_match.first"], Score)
    assert isinstance(failed := outcomes["1", "exact_match.word"], Failed)
    assert failed.exception == "NotFinite"


@pytest.mark.parametrize("alone", [False, True])
def test_a_file_of_samples_is_read_with_or_without_its_results(tmp_path: Path, alone: bool) -> None:
    path = Path(shutil.copy(OPEN, tmp_path)) if alone else OPEN
    read: ImportedRuns = import_results(path, ledger=None)
    (run,) = read
    assert [run.mean(f"exact_match.{filter}") for filter in ("first", "word")] == [0.4, 0.4]
    assert (run.target is None, run.dataset_name) == (alone, "capitals_open")
    assert [sample.output for sample in run.samples or ()][1] == "It is Rome"


def test_results_find_their_samples() -> None:
    assert [*imported(RESULTS)] == ["Small · capitals_choice", "Small · capitals_open"]


def test_lines_of_older_versions_are_read(copied: Path) -> None:
    """They name neither the metrics nor the filter, and their requests are lists."""

    def change(line: dict[str, Any]) -> dict[str, Any]:
        line["arguments"] = [[*each.values()] for each in line["arguments"].values()]
        for name in ("metrics", "filter"):
            del line[name]
        return line

    for other in ("open", "text"):
        (copied / f"samples_capitals_{other}_{TIME}.jsonl").unlink()
    change_lines(copied / f"samples_capitals_choice_{TIME}.jsonl", change)
    (run,) = imported(copied).values()
    assert (run.mean("acc"), next(sample.output for sample in run.samples or ())) == (0.4, "Paris")


def test_lines_without_filters_are_those_of_the_results_in_their_order(copied: Path, runs: dict[str, Run]) -> None:
    lines = [json.loads(line) for line in (copied / OPEN.name).read_text("utf-8").splitlines()]
    filters = dict.fromkeys(line["filter"] for line in lines)
    ordered = [line for name in filters for line in lines if line["filter"] == name]
    for line in ordered:
        del line["filter"], line["metrics"]
    (copied / OPEN.name).write_text("".join(json.dumps(line) + "\n" for line in ordered), "utf-8")
    run = imported(copied)["Small · capitals_open"]
    for name in filters:
        assert run.mean(f"exact_match.{name}") == runs["Small · capitals_open"].mean(f"exact_match.{name}")
    with (copied / OPEN.name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(ordered[0]) + "\n")
    with pytest.raises(DataError, match=r"document 0 has 3 lines, and samples_.* has 2 filters"):
        imported(copied)
    (copied / RESULTS.name).unlink()
    with pytest.raises(DataError, match=r"line 6: document 0 is there again: of another filter, which only results_"):
        imported(copied)


def drop_first(line: dict[str, Any]) -> dict[str, Any] | None:
    return None if line["doc_id"] == 3 and line["filter"] == "first" else line


BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda line: line | {"doc_id": None}, r"line \d: doc_id must be a number or a text, not NoneType"),
    (lambda _: [1], "line 1 must be an object"),
    (lambda line: line | {"metrics": ["no_such"]}, r"line \d: metrics has 'no_such', which the line hasn't"),
    (lambda line: line | {"doc_id": [1]}, r"line \d: doc_id must be a number or a text, not list"),
    (lambda line: line | {"doc_id": 1}, r"line 7: exact_match.word of document 1 is there twice"),
    (drop_first, "documents have no line of the filter first, but of others: 3"),
]


@pytest.mark.parametrize(("change", "problem"), BROKEN)
def test_samples_that_cant_be_read_are_refused_in_words(
    copied: Path, change: Callable[[dict[str, Any]], Any], problem: str
) -> None:
    change_lines(copied / OPEN.name, change)
    with pytest.raises(DataError, match=problem):
        imported(copied)


def test_results_without_samples_are_refused(tmp_path: Path) -> None:
    path = shutil.copy(RESULTS, tmp_path)
    for source in (tmp_path, Path(path)):
        with pytest.raises(DataError, match=r"results_.* has means only; evaluate with --log_samples"):
            imported(source)


def test_results_without_samples_beside_others_are_left_out_and_named(copied: Path, runs: dict[str, Run]) -> None:
    later = copied / f"results_{TIME.replace('T', 'T0', 1)[:10]}T23-59-59.999999.json"
    shutil.copy(RESULTS, later)
    found = imported(copied)
    assert {system: run.id for system, run in found.items()} == {system: run.id for system, run in runs.items()}
    expected = note("results_of_means", "caution", tool="lm-eval", files=1, what=later.name)
    assert all(expected in run.notes for run in found.values())


def test_a_folder_of_two_versions_gives_the_runs_that_each_gives_alone(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "all")
    change_results(tmp_path / "all" / "small", lambda results: results.update(lm_eval_version="0.4.9"))
    found = import_results(tmp_path / "all", ledger=None)
    alone = [run for folder in ("dummy", "small") for run in import_results(tmp_path / "all" / folder, ledger=None)]
    assert {run.id for run in found} == {run.id for run in alone}
    assert {run.scorers[0].tool for run in found} == {"lm-eval 0.4.13", "lm-eval 0.4.9"}


def test_numbers_that_no_float_can_hold_are_left_out(copied: Path, runs: dict[str, Run]) -> None:
    change_results(copied, lambda results: results.update(total_evaluation_time_seconds=10**400))
    choice = next(copied.glob("samples_capitals_choice_*"))
    change_lines(
        choice,
        lambda line: line | {"resps": [[[10**400, "False"]]] * len(line["resps"]), "doc_id": 2**70 + line["doc_id"]},
    )
    run = imported(copied)["Small · capitals_choice"]
    assert run.seconds == 0
    assert run.mean("acc") == runs["Small · capitals_choice"].mean("acc")


def test_results_with_something_after_them_are_refused(copied: Path) -> None:
    path = copied / RESULTS.name
    path.write_text(path.read_text("utf-8") + "{}", "utf-8")
    with pytest.raises(DataError, match=rf"small: {path.name}: .*Extra data"):
        imported(copied)


def test_scores_that_no_scale_can_hold_are_left_out_of_what_is_compared(copied: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "exact_match": 1e308} if line["doc_id"] in (0, 1) else line

    change_lines(copied / OPEN.name, change)
    run = imported(copied)["Small · capitals_open"]
    assert {each.error for record in run.records if isinstance(each := record.outcome, Failed)} == {
        "the score 1e+308 is not between 0 and 1e+100"
    }


def test_errors_quote_long_names_in_short(copied: Path) -> None:
    change_lines(copied / OPEN.name, lambda line: {**line, "metrics": ["x" * 10_000]})
    with pytest.raises(DataError) as error:
        imported(copied)
    assert len(str(error.value).rpartition(":")[2]) < 150
    change_lines(copied / OPEN.name, lambda line: {**line, "doc_id": "x" * 10_000, "metrics": ["exact_match"]})
    with pytest.raises(DataError) as error:
        imported(copied)
    assert len(str(error.value).rpartition(":")[2]) < 200

"""The results of promptfoo 0.123.1, which wrote the fixtures: two providers, four tests, twice."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import DataError, Failed, ImportedRuns, Run, Score, Skipped, import_results
from evalstone._core.guards import is_array, is_object
from evalstone.compat.imports.promptfoo import BOUNDED, FREE, JUDGED, SET
from evalstone.types import note

FOLDER = Path(__file__).parent / "promptfoo"
RESULTS: dict[str, Any] = json.loads((FOLDER / "results.json").read_text("utf-8"))


def imported(path: Path, content: Any | None = None, **settings: Any) -> ImportedRuns:
    if content is not None:
        path.write_text(json.dumps(content) if not isinstance(content, str) else content, "utf-8")
    return import_results(path, ledger=None, **settings)


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The results with each row changed."""
    content = copy.deepcopy(RESULTS)
    for row in content["results"]["results"]:
        change(row)
    return content


def components(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the assertions of a row."""
    return [] if row["gradingResult"] is None else row["gradingResult"]["componentResults"]


@pytest.fixture(scope="module")
def runs() -> ImportedRuns:
    return import_results(FOLDER / "results.json", ledger=None)


def records(run: Run, scorer: str, input: str) -> list[Any]:
    assert run.samples is not None
    (key, *_) = {sample.id for sample in run.samples if input in (sample.input or "")}
    return [record for record in run.records if record.scorer == scorer and record.sample_id == key]


def test_each_provider_and_prompt_is_a_run_of_cases_and_trials(runs: ImportedRuns) -> None:
    assert [run.target and run.target.identity for run in runs] == [
        f"{provider} · Answer briefly: {{{{question}}}}" for provider in ("echo", "small")
    ]
    echo, small = runs
    assert (echo.n_samples, echo.trials, len(echo), echo.complete) == (4, 2, 8 * len(echo.scorers), True)
    assert echo.dataset_version == small.dataset_version
    assert (echo.dataset_name, echo.started) == ("Capitals", RESULTS["metadata"]["evaluationCreatedAt"][:19] + "+00:00")
    assert " ".join(info.name for info in small.scorers) == (
        "test_passed test_score length form llm-rubric contains regex is-json not-contains not-equals javascript"
    )
    assert {info.tool for info in small.scorers} == {"promptfoo 0.123.1"}
    assert small["llm-rubric"].info.signature == "llm-rubric(promptfoo==0.123.1)@2"


def test_a_case_has_what_was_asked_and_what_was_answered(runs: ImportedRuns) -> None:
    assert runs[1].samples is not None
    sample = next(sample for sample in runs[1].samples if "Italy" in (sample.input or ""))
    assert (sample.input, sample.reference, sample.output, sample.trial) == (
        "What is the capital of Italy?", "Rome", "It is Rome.", 1,
    )  # fmt: skip
    assert sample.metadata["level"] == "easy"
    assert sample.metadata["prompt"] == "Answer briefly: What is the capital of Italy?"
    assert sample.metadata["target"]["usage"] == {"input": 20, "output": 10, "cached": 0, "requests": 1}
    assert sample.metadata["target"]["cost"] == 0.0001


def test_our_numbers_are_those_that_promptfoo_printed(runs: ImportedRuns) -> None:
    for run, prompt in zip(runs, RESULTS["results"]["prompts"], strict=True):
        printed = prompt["metrics"]
        passed = run["test_passed"]
        assert passed.mean is not None
        assert passed.mean * passed.n_score == printed["testPassCount"]
        assert passed.n_score + passed.n_failed == 8
        for name in ("length", "form"):
            assert math.isclose(run.mean(name) * run[name].n_score, printed["namedScores"][name], abs_tol=1e-12)
        assert run.target is not None
        assert math.isclose(run.target.cost or 0.0, printed["cost"], abs_tol=1e-12)
        assert (run.target.usage.input, run.target.usage.output) == (
            printed["tokenUsage"]["prompt"], printed["tokenUsage"]["completion"],
        )  # fmt: skip
    equal = [each for run in runs for each in run.notes if each.kind == "printed_equal"]
    assert sum(each["numbers"] for each in equal) == 9
    assert not [each for run in runs for each in run.notes if each.kind == "printed_differs"]


def test_what_promptfoo_counts_as_zero_although_it_failed_is_named(runs: ImportedRuns) -> None:
    explained = {
        (each.scorer, each["what"], each["failed"]) for each in runs[1].notes if each.kind == "printed_with_failed"
    }
    assert explained == {("test_passed", "failed", 2), ("test_score", "sum", 2)}


def test_a_number_that_differs_is_a_warning(tmp_path: Path) -> None:
    content = copy.deepcopy(RESULTS)
    content["results"]["prompts"][0]["metrics"]["testPassCount"] = 7
    runs = imported(tmp_path / "r.json", content)
    found = [each for each in runs[0].notes if each.kind == "printed_differs"]
    assert found[-1] == note(
        "printed_differs", "warning", "test_passed", tool="promptfoo", what="sum", printed=7.0, ours=0.0
    )


def test_only_a_failure_reason_of_2_is_an_error(runs: ImportedRuns) -> None:
    (first, _) = records(runs[1], "llm-rubric", "Mars")
    assert first.outcome == Failed("the target failed: HTTP 503: overloaded")
    assert (first.outcome.exception, first.outcome.by_target) == ("TargetFailed", True)
    (other, _) = records(runs[1], "contains", "Mars")
    assert isinstance(other.outcome, Skipped)
    (asserted, _) = records(runs[1], "test_passed", "Italy")  # it has an error, too: which assertion rejected it
    assert asserted.value == 0


def test_a_grader_without_a_verdict_is_a_judge_that_failed(runs: ImportedRuns) -> None:
    (first, _) = records(runs[1], "llm-rubric", "Chile")
    assert isinstance(first.outcome, Failed)
    assert (first.outcome.exception, "the judge is away" in first.outcome.error) == ("JudgeFailed", True)
    assert first.calls[0].answer is None
    (good, _) = records(runs[1], "llm-rubric", "France")
    assert good.calls[0].judge == "file://grader.cjs by promptfoo"
    assert good.calls[0].answer == {"pass": True, "score": 0.9, "reason": "It names the capital."}
    assert (good.calls[0].usage.input, good.calls[0].cost) == (40, None)
    assert runs[1].judge_of("llm-rubric") == "file://grader.cjs by promptfoo"


def test_a_script_that_crashed_is_a_scorer_that_failed(runs: ImportedRuns) -> None:
    (first, _) = records(runs[1], "javascript", "Chile")
    assert isinstance(first.outcome, Failed)
    assert first.outcome.exception == "ScorerFailed"
    assert first.outcome.error.startswith("Custom function threw error: nothing is not defined")


def test_a_test_with_a_broken_assertion_failed_unless_others_decide_it(tmp_path: Path) -> None:
    for threshold, success, expected in ((None, False, Failed), (0.2, True, Score), (0.9, False, Failed)):

        def change(row: dict[str, Any], threshold: float | None = threshold, success: bool = success) -> None:
            if "Chile" in row["vars"]["question"]:
                row["testCase"] |= {} if threshold is None else {"threshold": threshold}
                row["success"] = success

        (first, _) = records(imported(tmp_path / "r.json", changed(change))[1], "test_passed", "Chile")
        assert isinstance(first.outcome, expected)

    def rejected(row: dict[str, Any]) -> None:
        if "Chile" in row["vars"]["question"]:
            component = next(c for c in components(row) if c["assertion"]["type"] == "not-equals")
            component |= {"pass": False, "score": 0}

    (first, _) = records(imported(tmp_path / "r.json", changed(rejected))[1], "test_passed", "Chile")
    assert first.value == 0


def test_assertions_without_a_name_are_pooled_by_type_with_their_weights(tmp_path: Path, runs: ImportedRuns) -> None:
    (first, _) = records(runs[1], "contains", "Italy")
    assert first.value == 0.5
    assert first.reason == 'Assertion passed; Expected output to contain "Milan"'
    assert [each["passed"] for each in first.evidence] == [True, False]

    def weigh(row: dict[str, Any]) -> None:
        for component in components(row):
            if component.get("assertion", {}).get("value") == "Milan":
                component["assertion"]["weight"] = 3

    (first, _) = records(imported(tmp_path / "r.json", changed(weigh))[1], "contains", "Italy")
    assert first.value == 0.25


def test_assertions_of_a_type_have_no_score_if_one_of_them_has_none(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        for component in components(row):
            if component.get("assertion", {}).get("value") == "Milan":
                component["score"] = None

    (first, _) = records(imported(tmp_path / "r.json", changed(change))[1], "contains", "Italy")
    assert isinstance(first.outcome, Failed)
    assert first.outcome.exception == "NoScore"


def test_a_set_of_assertions_is_a_metric_beside_those_in_it(tmp_path: Path, runs: ImportedRuns) -> None:
    assert [records(runs[1], name, "France")[0].value for name in ("form", "regex", "is-json")] == [0.5, 1, 0]
    assert runs[1]["form"].info.tool_threshold == 0.5

    def inside(row: dict[str, Any]) -> None:
        """As earlier versions wrote it: the results of a set are only in it."""
        if "France" in row["vars"]["question"]:
            del row["gradingResult"]["componentResults"][-2:]

    other = imported(tmp_path / "r.json", changed(inside))
    assert [records(other[1], name, "France")[0].value for name in ("form", "regex", "is-json")] == [0.5, 1, 0]


@pytest.mark.parametrize("type", ["latency", "cost", "levenshtein", "perplexity", "not-similar"])
def test_a_limit_of_what_is_measured_is_no_threshold_of_the_score(tmp_path: Path, type: str) -> None:
    def change(row: dict[str, Any]) -> None:
        for component in components(row):
            if component.get("assertion", {}).get("type") == "llm-rubric":
                component["assertion"] |= {"type": type, "threshold": 0.002}

    assert imported(tmp_path / "r.json", changed(change))[1][type].info.tool_threshold is None


def test_thresholds_and_scales_are_those_of_the_assertions(runs: ImportedRuns) -> None:
    small = runs[1]
    assert (small["llm-rubric"].info.tool_threshold, small["llm-rubric"].info.scale) == (0.5, 1)
    assert (small["contains"].info.tool_threshold, small["length"].info.scale) == (None, 10)
    found = [each for each in small.notes if each.kind == "scale_assumed"]
    assert found == [note("scale_assumed", "caution", "length", tool="promptfoo", highest=1.15, scale=10.0)]
    assert import_results(FOLDER / "results.json", ledger=None, scales={"length": 2})[0]["length"].info.scale == 2


def test_a_named_metric_may_have_variables_of_the_test(tmp_path: Path) -> None:
    def rename(row: dict[str, Any]) -> None:
        for component in components(row):
            if component.get("assertion", {}).get("type") == "llm-rubric":
                component["assertion"]["metric"] = "names {{ expected }}"
                row["namedScores"]["names Paris"] = component["score"]

    run = imported(tmp_path / "r.json", changed(rename))[1]
    assert records(run, "names Paris", "France")[0].calls


@pytest.mark.parametrize("kind", ["no-such-type", "not-no-such-type"])
def test_an_unknown_type_of_assertion_is_named_with_its_test(tmp_path: Path, kind: str) -> None:
    def change(row: dict[str, Any]) -> None:
        for component in components(row):
            if component.get("assertion", {}).get("type") == "contains":
                component["assertion"]["type"] = kind

    run = imported(tmp_path / "r.json", changed(change))[1]
    assert [each for each in run.notes if each.kind == "metric_unknown"] == [
        note("metric_unknown", "caution", tool="promptfoo", metric=kind, place="France")
    ]
    assert records(run, kind, "Italy")[0].value == 0.5


def test_every_type_of_assertion_is_known() -> None:
    assert not JUDGED & BOUNDED | JUDGED & FREE | BOUNDED & FREE
    assert len(JUDGED | BOUNDED | FREE) == 69
    assert SET not in JUDGED | BOUNDED | FREE


def test_lines_give_the_same_scores(runs: ImportedRuns) -> None:
    lines = import_results(FOLDER / "results.jsonl", ledger=None)
    assert [run.target and run.target.identity for run in lines] == [run.target and run.target.identity for run in runs]
    for one, other in zip(lines, runs, strict=True):
        assert [record.outcome for record in one.records] == [record.outcome for record in other.records]
        assert one.dataset_version == other.dataset_version


ODD: list[Any] = [None, True, -1, 10**30, math.nan, "", "\ud800\x00", [], {}, [[1]], {"a": {"b": 1}}]
"""Values that no field has."""


def places_in(value: object) -> list[tuple[Any, ...]]:
    """The paths of all values in an object."""
    inner: dict[Any, Any] = {}
    if is_object(value):
        inner.update(value)
    elif is_array(value):
        inner.update(enumerate(value))
    return [path for key, item in inner.items() for path in ((key,), *((key, *rest) for rest in places_in(item)))]


@pytest.mark.slow
def test_a_value_of_another_type_is_read_or_refused_in_words(tmp_path: Path) -> None:
    (row,) = (one for one in RESULTS["results"]["results"] if (one["promptIdx"], one["testIdx"]) == (1, 0))
    tried = [((key,), value) for key in ("promptIdx", "testIdx", "provider", "prompt", "score") for value in ODD]
    tried += [(place, ODD[number % len(ODD)]) for number, place in enumerate(places_in(row))]
    for place, value in tried:
        changed_row = copy.deepcopy(row)
        holder: Any = changed_row
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        runs = imported(tmp_path / "r.json", {"evalId": "e", "results": {"version": 3, "results": [changed_row, row]}})
        assert sum(run.n_samples * run.trials for run in runs) == 2, place


def of_version_2(*, table: bool) -> dict[str, Any]:
    """The results as versions before 0.93 wrote them. table: only its table has them."""
    results = RESULTS["results"]
    rows = [
        {key: value for key, value in row.items() if key not in ("promptIdx", "testIdx", "promptId", "id", "testCase")}
        | {"testCase": {key: value for key, value in row["testCase"].items() if key != "metadata"}}
        for row in results["results"]
    ]
    tests = [row for row in results["results"] if row["promptIdx"] == 0]
    names = ["question", "expected", "level"]
    body = [
        {
            "vars": [row["vars"].get(name) for name in names],
            "test": row["testCase"],
            "outputs": [
                {
                    "pass": one["success"], "score": one["score"], "namedScores": one["namedScores"],
                    "text": one["response"].get("output") or one["error"], "prompt": one["prompt"]["raw"],
                    "latencyMs": one["latencyMs"], "cost": one["cost"], "gradingResult": one["gradingResult"],
                    "failureReason": one["failureReason"], "error": one.get("error"), "response": one["response"],
                    "provider": one["provider"]["label"] or one["provider"]["id"],
                }
                for one in sorted(results["results"], key=lambda one: one["promptIdx"])
                if one["testIdx"] == row["testIdx"]
            ],
        }
        for row in tests
    ]  # fmt: skip
    prompts = [{**each, "provider": each["provider"].replace("acme:small", "small")} for each in results["prompts"]]
    summary = {
        "version": 2,
        "timestamp": results["timestamp"],
        "results": [] if table else rows,
        "stats": results["stats"],
        "table": {"head": {"prompts": prompts, "vars": names}, "body": body},
    }
    return {"evalId": "e", "results": summary, "config": {"description": "Capitals"}, "shareableUrl": None}


@pytest.mark.parametrize("table", [False, True])
def test_version_2_gives_the_same_scores(tmp_path: Path, runs: ImportedRuns, table: bool) -> None:
    older = imported(tmp_path / "r.json", of_version_2(table=table))
    assert len(older) == 2
    for one, other in zip(older, runs, strict=True):
        assert (one.n_samples, one.trials) == (4, 2)
        assert [record.outcome for record in one.records] == [record.outcome for record in other.records]


def test_tests_without_variables_are_told_apart_by_their_prompts(tmp_path: Path) -> None:
    def strip(row: dict[str, Any]) -> None:
        row["vars"] = {}
        del row["testCase"]["vars"]
        row["testCase"]["assert"] = []

    run = imported(tmp_path / "r.json", changed(strip))[0]
    assert (run.n_samples, run.trials) == (4, 2)

    def strip_prompt(row: dict[str, Any]) -> None:
        strip(row)
        row["prompt"]["raw"] = "[prompt stripped]"

    run = imported(tmp_path / "r.json", changed(strip_prompt))[0]
    assert (run.n_samples, run.trials) == (8, 1)


def test_sums_of_named_metrics_are_compared_with_their_weights(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["gradingResult"] is not None:
            row["gradingResult"]["namedScoreWeights"] = dict.fromkeys(row["namedScores"], 3)

    content = changed(change)
    for prompt in content["results"]["prompts"]:
        named = prompt["metrics"]["namedScores"]
        named.update({name: 3 * value for name, value in named.items()})
    runs = imported(tmp_path / "r.json", content)
    assert sum(each["numbers"] for run in runs for each in run.notes if each.kind == "printed_equal") == 9
    content["results"]["prompts"][1]["metrics"]["namedScores"]["length"] += 0.5
    runs = imported(tmp_path / "r.json", content)
    assert [each.scorer for run in runs for each in run.notes if each.kind == "printed_differs"] == ["length"]


def test_weights_that_add_up_to_nothing_dont_weigh(tmp_path: Path) -> None:
    components = [
        {"pass": True, "score": score, "reason": "", "assertion": {"type": "equals", "value": "x", "weight": weight}}
        for score, weight in ((1, 1), (0, -1))
    ]

    def change(row: dict[str, Any]) -> None:
        row |= {"failureReason": 0, "gradingResult": {"pass": True, "score": 1, "componentResults": components}}

    assert {run.mean("equals") for run in imported(tmp_path / "r.json", changed(change))} == {0.5}


def test_names_that_become_the_same_lose_no_score(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        row |= {"failureReason": 0, "score": 0.5, "success": True, "gradingResult": None}
        row["namedScores"] = {"f(x)": 1, "f[x]": 0, "test_score": 0.25}

    run = imported(tmp_path / "r.json", changed(change))[0]
    assert [(info.name, mean.mean) for info, mean in zip(run.scorers, run.summary, strict=True)] == [
        ("test_passed", 1), ("test_score", 0.5), ("f[x]", 1), ("f[x]", 0), ("test_score", 0.25),
    ]  # fmt: skip
    assert len({info.signature for info in run.scorers}) == 5


def test_systems_follow_the_list_of_the_file_whatever_the_order_of_its_rows(tmp_path: Path, runs: ImportedRuns) -> None:
    content = copy.deepcopy(RESULTS)
    content["results"]["results"].reverse()
    lines = "".join(f"{json.dumps(row)}\n" for row in content["results"]["results"])
    for path, given in (("r.json", content), ("r.jsonl", lines)):
        found = imported(tmp_path / path, given)
        assert [run.target and run.target.identity for run in found] == [
            run.target and run.target.identity for run in runs
        ]


def test_a_row_of_another_provider_than_its_place_says_is_of_its_provider(tmp_path: Path, runs: ImportedRuns) -> None:
    content = copy.deepcopy(RESULTS)
    removed = {"provider": "gone", "prompt": {"raw": "Say {{question}}", "label": "Say {{question}}"}}
    for row in content["results"]["results"]:
        row["promptIdx"] += 1  # as if a first one was taken out of the list
    found = imported(tmp_path / "r.json", content)
    assert [[record.outcome for record in run.records] for run in found] == [
        [record.outcome for record in run.records] for run in runs
    ]
    assert not [each for run in found for each in run.notes if each.kind == "printed_differs"]
    rows = [row | {"promptIdx": 0} for row in content["results"]["results"]]  # of files that were joined
    found = imported(tmp_path / "r.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert {run.target and run.target.identity for run in found} == {run.target and run.target.identity for run in runs}
    content["results"]["prompts"].insert(0, removed)
    assert len(imported(tmp_path / "r.json", content)) == 2


def test_providers_of_the_same_name_are_told_apart_by_their_places(tmp_path: Path) -> None:
    content = copy.deepcopy(RESULTS)
    for prompt in content["results"]["prompts"]:
        prompt["provider"] = "acme"
    for row in content["results"]["results"]:
        row["provider"] = {"id": "acme"}
    lines = "".join(f"{json.dumps(row)}\n" for row in content["results"]["results"])
    for path, given in (("r.json", content), ("r.jsonl", lines)):
        found = imported(tmp_path / path, given)
        assert [run.target and run.target.identity for run in found] == [
            "acme · Answer briefly: {{question}}", "acme · Answer briefly: {{question}} (2)",
        ]  # fmt: skip


def test_prompts_of_old_versions_are_known_by_their_templates(tmp_path: Path, runs: ImportedRuns) -> None:
    content = of_version_2(table=False)
    for row in content["results"]["results"]:
        row["prompt"] = {"raw": row["prompt"]["raw"], "display": row["prompt"]["label"]}
    for prompt in content["results"]["table"]["head"]["prompts"]:
        prompt["display"] = prompt.pop("label")
    found = imported(tmp_path / "r.json", content)
    assert [(run.target and run.target.identity, run.n_samples, run.trials) for run in found] == [
        (run.target and run.target.identity, 4, 2) for run in runs
    ]


@pytest.mark.parametrize("kinds", [("contains", "not-contains"), ("javascript", "javascript")])
def test_a_sum_of_assertions_of_one_name_is_a_mean_here(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """Versions before 0.121 add the assertions of a name up, without weights."""
    components = [
        {"pass": True, "score": 1, "reason": "", "assertion": {"type": kind, "value": "x", "metric": "safe"}}
        for kind in kinds
    ]
    graded: dict[str, Any] = {"pass": True, "score": 1, "namedScores": {"safe": 2}, "componentResults": components}

    def change(row: dict[str, Any]) -> None:
        row |= {"failureReason": 0, "gradingResult": graded, "namedScores": {"safe": 2}, "success": True, "score": 1}

    content = changed(change)
    for prompt in content["results"]["prompts"]:
        prompt["metrics"] = {"score": 8, "testPassCount": 8, "testFailCount": 0, "namedScores": {"safe": 16}}
    for run in imported(tmp_path / "r.json", content):
        assert (run.mean("safe"), run["safe"].n_score, run["safe"].info.scale) == (1, 8, 1)
        assert [each.kind for each in run.notes if each.kind.startswith("printed")] == ["printed_equal"]
    graded |= {"namedScoreWeights": {"safe": 2}, "namedScores": {"safe": 0.5}}  # with weights, the file has the mean

    def weigh(row: dict[str, Any]) -> None:
        change(row)
        row["namedScores"] = {"safe": 0.5}

    assert {run.mean("safe") for run in imported(tmp_path / "r.json", changed(weigh))} == {0.5}


def test_scores_of_one_name_that_add_up_to_no_number_are_refused_one_by_one(tmp_path: Path) -> None:
    component = {"pass": True, "score": 1e308, "assertion": {"type": "javascript", "metric": "huge"}}
    graded = {"pass": True, "score": 1, "componentResults": [component, component]}

    def change(row: dict[str, Any]) -> None:
        row |= {"failureReason": 0, "gradingResult": graded, "namedScores": {"huge": 1e308}}

    for run in imported(tmp_path / "r.json", changed(change)):
        assert (run["huge"].n_failed, run["huge"].n_score) == (8, 0)


def test_a_list_of_too_many_prompts_is_refused_soon(tmp_path: Path) -> None:
    content = copy.deepcopy(RESULTS)
    content["results"]["prompts"] *= 5_000
    with pytest.raises(DataError, match="more than 1,000 systems, of which each becomes a run"):
        imported(tmp_path / "r.json", content)

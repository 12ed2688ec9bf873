"""What every import has in common: rows become a run that all commands read, whatever the tool."""

from __future__ import annotations

import gzip
import math
import os
import re
import shlex
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import evalstone as es
from bench.imports import MAKERS
from evalstone import ConfigError, DataError, Failed, Run, Sample, Score, Skipped, import_results, load
from evalstone._core.spilled_texts import SpillFile
from evalstone.compat.imports import reading, systems
from evalstone.compat.imports.building import Building, write_to_ledger
from evalstone.compat.imports.importing import ImportedRuns, folder_name
from evalstone.compat.imports.reading import Source, reader_for
from evalstone.compat.imports.results import (
    MOST_METRICS,
    MOST_SYSTEMS,
    About,
    Judged,
    Metric,
    PartEvent,
    Printed,
    Result,
    Row,
    failed,
    metric_name,
)
from evalstone.ledger import RunRow
from evalstone.ledger.store import Ledger
from evalstone.results.human_labels import corrected
from evalstone.targets import Answer
from evalstone.types import Usage, note
from tests.compat.imports.large import large

GOOD = Metric("good")
NICE = Metric("nice", threshold=0.5)
WRITTEN = datetime(2026, 1, 2, tzinfo=UTC)
FIXTURE = Path(__file__).parent / "promptfoo" / "results.json"


EMPTY = '{"evalId": "e", "results": '
"""How a file of promptfoo begins."""


def row(number: int, system: str = "a", **values: Any) -> Row:
    """A row of one of three cases."""
    fields: dict[str, Any] = {
        "place": f"row {number}",
        "system": system,
        "case": Sample(input=f"q{number}"),
        "key": str(number),
        "answer": Answer(output="yes"),
        "scores": {GOOD: Result.of(number / 2)},
    }
    return Row(**fields | values)


def runs_of(*events: PartEvent, **settings: Any) -> list[Run]:
    return [built.run for built in building(*events, **settings).built()]


def building(*events: PartEvent, **settings: Any) -> Building:
    building = Building("acme", 3, file="f.json", written=WRITTEN, spilled=SpillFile("rows"), **settings)
    for event in events:
        building.add(event)
    return building


def outcomes(run: Run, scorer: str = "good") -> list[Any]:
    return [record.outcome for record in run.records if record.scorer == scorer]


def test_a_metric_that_a_row_lacks_is_undefined_for_its_case() -> None:
    (run,) = runs_of(row(0), row(1, scores={GOOD: Result.of(1), NICE: Result.of(0.25)}))
    assert outcomes(run, "nice") == [Skipped("acme has no such score of this sample"), Score(0.25, scale=1)]
    assert (run["nice"].info.tool_threshold, run["good"].info.tool_threshold) == (0.5, None)


def test_a_threshold_that_no_score_can_have_is_none() -> None:
    late = Metric("late", scale=1, threshold=3000)
    (run,) = runs_of(*(row(n, scores={late: Result.of(1)}) for n in (0, 0)))
    assert run["late"].info.tool_threshold is None
    assert run.reliability("late")[0].always == 1


def test_the_failure_of_a_system_is_that_of_every_metric_that_the_row_doesnt_name() -> None:
    down = failed("TargetFailed", "HTTP 503")
    (run,) = runs_of(row(0), row(1, answer=None, problem=down, scores={}))
    assert outcomes(run)[1] == Failed("the target failed: HTTP 503")
    assert run.target is not None
    assert (run.target.answers, run.target.failed) == (1, 1)
    assert [entry.kind for entry in run.columns.entries()] == ["score", "target_failed"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "NoScore"), ("0.5", "NotFinite"), (math.nan, "NotFinite"), (math.inf, "NotFinite"), (10**400, "NotFinite"),
     ([1], "NotFinite"), (-0.1, "OutOfRange")],
)  # fmt: skip
def test_what_is_no_score_is_a_failure_of_its_kind_and_never_a_zero(value: object, kind: str) -> None:
    (run,) = runs_of(row(0, scores={GOOD: Result.of(value)}), row(1))
    (outcome, _) = outcomes(run)
    assert isinstance(outcome, Failed)
    assert outcome.exception == kind
    assert (run["good"].n_score, run["good"].mean) == (1, 0.5)


def test_a_scale_is_the_tools_or_a_setting_or_a_power_of_ten_with_a_note() -> None:
    points, words = Metric("points", scale=5), Metric("words", lower_is_better=True)
    events = [row(number, scores={points: Result.of(number), words: Result.of(40 * number)}) for number in range(3)]
    (run,) = runs_of(*events)
    assert [(info.scale, info.lower_is_better) for info in run.scorers] == [(5, False), (100, True)]
    assert note("scale_assumed", "caution", "words", tool="acme", highest=80.0, scale=100.0) in run.notes
    (run,) = runs_of(*events, scales={"words": 80})
    assert run["words"].info.scale == 80
    with pytest.raises(ConfigError, match=r"scales: unknown metric 'word'; did you mean words\?"):
        runs_of(*events, scales={"word": 80})
    (run,) = runs_of(*events, scales={"points": 1})
    assert isinstance(outcomes(run, "points")[2], Failed)


def test_outcomes_of_which_a_file_has_nearly_none_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systems, "MOST_SPARSE", 100)
    with pytest.raises(DataError, match=r"^1 case, 101 trials and 1 metric make 101 outcomes, .* has only 1$"):
        runs_of(row(0, trial=101))
    each = [row(number, scores={Metric(f"m{number}"): Result.of(1)}) for number in range(21)]
    with pytest.raises(DataError, match=r"^21 cases, 1 trial and 21 metrics make 441 outcomes, .* has only 21$"):
        runs_of(*each)
    assert len(runs_of(*each[:20])) == 1
    down = failed("TargetFailed", "HTTP 503")
    assert len(runs_of(*each, *(row(n, answer=None, problem=down, scores={}) for n in range(30, 60)))) == 1


def test_systems_and_metrics_are_limited() -> None:
    def first(number: int, name: str) -> list[PartEvent]:
        return [row(0, system=f"{name} {n}", scores={Metric(f"m{n}"): Result.of(1)}) for n in range(number)]

    building(*first(MOST_SYSTEMS, "model"))
    with pytest.raises(DataError, match="row 0: more than 1,000 systems, of which each becomes a run"):
        building(*first(MOST_SYSTEMS + 1, "model"))
    scores = {Metric(f"m{n}"): Result.of(1) for n in range(MOST_METRICS)}
    building(row(0, scores=scores))
    with pytest.raises(DataError, match="more than 10,000 metrics: the last one is 'another'"):
        building(row(0, scores=scores | {Metric("another"): Result.of(1)}))


def test_the_same_case_again_is_a_trial() -> None:
    (run,) = runs_of(row(0), row(1), row(0, answer=Answer(output="no"), scores={GOOD: Result.of(1)}))
    assert (run.n_samples, run.trials, len(run)) == (2, 2, 4)
    assert [(record.trial, record.value) for record in run.records] == [(1, 0), (2, 1), (1, 0.5), (2, None)]
    assert len({record.sample_id for record in run.records}) == 2
    assert [sample.output for sample in run.samples or ()] == ["yes", "no", "yes", None]
    assert note("trials_absent", "caution", absent=1, trials=2) in run.notes
    assert run.records[3].reason == "acme has no such trial of this sample"
    assert [record.group for record in run.records] == [record.sample_id for record in run.records]
    assert run.dataset_version == runs_of(row(0), row(1))[0].dataset_version
    with pytest.raises(DataError, match="row 0: trial 1 of '0' is there twice"):
        runs_of(row(0, trial=1), row(0, trial=1))


def test_cases_that_are_there_again_among_many_that_arent_are_samples_in_a_group() -> None:
    again = row(0, answer=Answer(output="no"), scores={GOOD: Result.of(1)})
    (run,) = runs_of(row(0), row(1), again, row(2))
    assert (run.n_samples, run.trials, run["good"].n_score, run["good"].mean) == (4, 1, 4, 0.625)
    assert [record.value for record in run.records] == [0, 1, 0.5, 1]
    assert [sample.output for sample in run.samples or ()] == ["yes", "no", "yes", "yes"]
    first, second, *_ = (record.sample_id for record in run.records)
    assert second == f"{first}-2"
    assert [record.group for record in run.records] == [first, first, None, None]
    assert [each for each in run.notes if each.kind in ("cases_repeated", "trials_absent")] == [
        note("cases_repeated", cases=1, rows=2)
    ]


def test_numbered_trials_and_cases_with_ids_are_trials_however_few_are_there_again() -> None:
    for events in (
        [row(0, trial=1), row(1, trial=1), row(2, trial=1), row(0, trial=2)],
        [row(n, case=Sample(id=str(n), input="q")) for n in (0, 1, 2, 0)],
    ):
        assert [(run.n_samples, run.trials) for run in runs_of(*events)] == [(3, 2)]


def test_rows_that_are_no_trials_are_cases_of_their_own() -> None:
    same = Sample(input="q", output="a")
    (run,) = runs_of(*(row(n, system="", case=same, key="", answer=None) for n in range(2)))
    assert (run.n_samples, run.trials, run.target) == (2, 1, None)
    assert [sample.output for sample in run.samples or ()] == ["a", "a"]


def test_cases_are_in_the_order_that_the_tool_numbers_them() -> None:
    shuffled = [row(2, order=2), row(0, order=0), row(1, order=1)]
    (one,), (other,) = runs_of(*shuffled), runs_of(row(0), row(1), row(2))
    assert one.dataset_version == other.dataset_version
    assert [record.value for record in one.records] == [0, 0.5, 1]


def test_a_judge_is_in_the_calls_of_its_records() -> None:
    judged = Judged(judge="openai/gpt-5.1", answer={"score": 1}, usage=Usage(10, 2, 0, 1), cost=0.01)
    unnamed = Judged(answer=None)
    (run,) = runs_of(
        row(0, scores={GOOD: Result.of(1, "It is.", judged=judged)}),
        row(1, scores={GOOD: Result(problem=failed("JudgeFailed", None), judged=unnamed)}),
    )
    (first, second) = run.records
    assert (first.calls[0].judge, first.cost, first.reason) == ("openai/gpt-5.1 by acme", 0.01, "It is.")
    assert (second.calls[0].judge, second.reason) == ("not recorded by acme", "the file doesn't say why")
    assert run.judge == "not recorded by acme, openai/gpt-5.1 by acme"
    points = Metric("points", scale=5)
    (run,) = runs_of(row(0, scores={points: Result.of(7, judged=judged)}), row(1, scores={points: Result.of(1)}))
    assert isinstance(run.records[0].outcome, Failed)
    assert (run.records[0].calls[0].judge, run.cost) == ("openai/gpt-5.1 by acme", 0.01)


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (Printed(kind="rows", value=4), note("printed_equal", tool="acme", numbers=1)),
        (Printed(kind="mean", value=0.5, metric="good"), note("printed_equal", tool="acme", numbers=1)),
        (Printed(kind="mean", value=0.333, metric="good", digits=3), "differs"),
        (Printed(kind="mean", value=0.5004, metric="good", digits=3), note("printed_equal", tool="acme", numbers=1)),
        (Printed(kind="mean", value=0.5006, metric="good", digits=3), "differs"),
        (Printed(kind="mean", value=0.5 + 1.5e-12, metric="good"), "differs"),
        (Printed(kind="mean", value=0.375, metric="good"), "mean"),
        (Printed(kind="scores", value=4, metric="good"), "scores"),
        (Printed(kind="failed", value=0, metric="good"), "failed"),
        (Printed(kind="sum", value=1.5, metric="good"), note("printed_equal", tool="acme", numbers=1)),
        (Printed(kind="mean", value=0.5 + 1e-11, metric="good"), "differs"),
        (Printed(kind="mean", value=0.5, metric="other"), "differs"),
    ],
)  # fmt: skip
def test_printed_numbers_are_compared_and_a_difference_explained(printed: Printed, found: Any) -> None:
    broken = Result(problem=failed("JudgeFailed", "away"), counted=0.0)
    (run,) = runs_of(row(0), row(1), row(2), row(3, scores={GOOD: broken}), printed)
    said = [each for each in run.cautions if each.kind.startswith("printed")]
    if isinstance(found, str) and found != "differs":
        found = note("printed_with_failed", "caution", "good", tool="acme", failed=1, what=found)
    assert [said[0].kind if found == "differs" else said[0]] == ["printed_differs" if found == "differs" else found]


def test_a_run_from_the_ledger_is_the_one_that_was_imported(tmp_path: Path) -> None:
    path = str(tmp_path / "l.db")
    runs = import_results(FIXTURE, ledger=path, out=tmp_path / "o", name="n", tags="t")
    for run, folder in zip(runs, runs.folders, strict=True):
        for again in (es.read_run(run.id, ledger=path), es.read_run(folder)):
            assert again.to_dict() == run.to_dict()
            assert [record.to_dict() for record in again.records] == [record.to_dict() for record in run.records]
            assert list(again.samples or ()) == list(run.samples or ())
    again = import_results(FIXTURE, ledger=path)
    assert again.known == tuple(run.id for run in runs)
    with Ledger(path) as opened:
        assert len(opened.runs()) == len(runs)


def test_an_import_that_was_killed_is_finished(tmp_path: Path) -> None:
    (built,) = building(row(0), row(1)).built()
    with Ledger(str(tmp_path / "l.db")) as opened:
        opened.start_run(RunRow(built.run.id, "", built.run.started, None, built.run.metadata()))
        assert write_to_ledger(built, opened, WRITTEN)
        assert not write_to_ledger(built, opened, WRITTEN)
    assert len(es.read_run(built.run.id, ledger=tmp_path / "l.db")) == 2


def test_all_commands_of_runs_work_on_imported_ones(tmp_path: Path) -> None:
    echo, small = import_results(FIXTURE, ledger=None)
    assert es.compare(echo, small)["contains"].difference is not None
    assert es.gate(small, min={"contains": 0.9}).verdict in ("inconclusive", "fail")
    assert list(es.power(small, 0.1))
    labels = {record.key: 1.0 for record in small.records if record.scorer == "llm-rubric" and record.value is not None}
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{key},{label}\n" for key, label in labels.items()))
    read = es.load_labels(small, "llm-rubric", tmp_path / "labels.csv")
    assert corrected(small, "llm-rubric", read).result.labeled == 4
    assert "<html" in small.to_html()
    other = import_results(FIXTURE.with_suffix(".jsonl"), ledger=None)[0]  # a file that doesn't name the version
    with pytest.raises(ConfigError, match="the scorer test_passed differs"):
        es.compare(echo, other)


def test_runs_of_other_samples_are_refused_without_advice_that_an_import_cannot_take() -> None:
    (all_of_them,), (half,) = runs_of(row(0), row(1)), runs_of(row(0))
    advice = "To pair them by ID, import files that have IDs of the samples. To compare them anyway, use allow_mismatch"
    with pytest.raises(ConfigError, match=re.escape(advice)):
        es.compare(all_of_them, half)


def test_names_are_lines_of_visible_text() -> None:
    hostile = "\x1b[31mred\x1b[0m (a)\nb@c" + "x" * 300
    (run,) = runs_of(
        row(0, system=metric_name(hostile), scores={Metric(metric_name(hostile)): Result.of(1)}), About(version="1 (x)")
    )
    name = run.scorers[0].name
    assert "\x1b" not in name and "\n" not in name and "(" not in name and len(name) <= 200  # noqa: PT018
    assert run[name].mean == 1
    assert run.scorers[0].signature.endswith("(acme==1--x-)@3")
    assert folder_name("../../etc/passwd") == "etc-passwd"
    assert folder_name(" / ") == "run"
    assert len(folder_name("é" * 300).encode()) <= 80


def test_html_of_the_file_is_text_on_pages() -> None:
    attack = "<script>alert(1)</script>"
    (run,) = runs_of(row(0, case=Sample(input=attack), scores={Metric(attack): Result.of(0, attack)}))
    assert attack not in run.to_html()


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.json",
            "",
            r"a.json isn't known as the results of a tool. Known: promptfoo .json \(evalId, .*; also .*langsmith\Z",
        ),
        ("a.json", '{"a": 1}', r"isn't known as the results of a tool \(keys: a\). Known: "),
        ("a.csv", "x,y\n1,2\n", r"\(columns: x, y\)"),
        (
            "a.csv",
            "example_id,repetition_number,output\n1,2,3\n",
            r"closest first: phoenix experiment \(example_id, repetition_number, reference_output\), langsmith",
        ),
        ("a.csv", "a_score,y\n1,2\n", r"closest first: phoenix table \(NAME_score, NAME_execution_details\), "),
        ("a.json", EMPTY + '{"version": 3, "results": [], "stats": {}}}', "a.json: it has no results"),
        ("a.json", EMPTY + '{"version": 3, "results": [1]}}', r"results.results\[0\] must be an object"),
        ("a.json", EMPTY + '{"results": [', "a.json: line 1, column 41: not JSON"),
        ("a.json", EMPTY + '{"version": 1, "version": 2}}', "line 1: duplicate key 'version'"),
        ("a.json", EMPTY + '{"results": [{"a": 1,\n"a": 2}]}}', "line 2: duplicate key 'a'"),
        ("a.json", EMPTY + '{"x": ' + "[" * 5000 + "]" * 5000 + "}}", "nested too deeply"),
        ("a.json", EMPTY + '{"results": [' + '{"a":' * 90_000 + "1" + "}" * 90_000 + "]}}", "nested too deeply"),
        (
            "a.json",
            EMPTY + '{"results": [{"vars": {"a": ' + "[" * 700 + "]" * 700 + "}}]}}",
            "a.json: nested too deeply",
        ),
        (
            "a.json",
            '{"testCases": [{"metricsData": [], "context": ' + "[" * 700 + "]" * 700 + "}]}",
            "nested too deeply",
        ),
        ("a.json", EMPTY + '{"results": [{"score": 1' + "0" * 5000 + "}]}}", "line 1: a number of too many digits: "),
        ("a.json", EMPTY + "{}} {}", r"a.json: line 1, column 32: not JSON \(Extra data\)"),
        ("a.jsonl", '{"testCase": {}, "provider": "p", "prompt": "q"}\n{"a": ', "line 2, column 7: not JSON"),
        ("a.jsonl", '{"testCase": {}, "provider": "p", "prompt": "q"}\n7', "line 2 must be an object, not int"),
    ],
)
def test_a_file_that_cant_be_read_is_refused_in_words(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as raised:
        import_results(write(tmp_path / name, text), ledger=None)
    assert name in str(raised.value)
    assert len(str(raised.value).replace(str(tmp_path), "")) < 500


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown tool 'promtfoo'; did you mean promptfoo"):
        import_results(FIXTURE, tool="promtfoo", ledger=None)
    with pytest.raises(DataError, match="does not exist"):
        import_results(tmp_path / "no.json", ledger=None)
    with pytest.raises(ConfigError, match="scales"):
        import_results(FIXTURE, scales={"length": 0}, ledger=None)
    with pytest.raises(ConfigError, match="name"):
        import_results(FIXTURE, name="a\nb", ledger=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "'' does not exist"),
        ("a\0b", "does not exist"),
        ("x" * 5_000, "does not exist"),
        ("pipe.json", "'pipe.json' is no file; results are read more than once, so save them as one"),
        (5, "path must be a path, not 5"),
        (b"x", "path must be a path, not b'x'"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, problem: str) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.json")
    with pytest.raises(ConfigError, match=problem):
        import_results(path, ledger=None)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"out": 5}, "out must be a path, not 5"),
        ({"out": "a\0b"}, "results cannot be written to '.*': no folder can have this name"),
        ({"out": "x" * 300}, "results cannot be written to x{300}.*: File name too long"),
        ({"ledger": 5}, "ledger must be a path, not 5"),
        ({"scales": {5: 1}}, "scales must be numbers by the names of metrics, not {5: 1}"),
        ({"scales": [("good", 1)]}, "scales must be numbers by the names of metrics"),
        ({"encoding": "idna"}, "encoding must be the name of an encoding"),
    ],
)
def test_settings_that_are_of_another_type_or_no_name_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        import_results(FIXTURE, **dict[str, Any](ledger=None) | settings)


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.writelines(large(2_000))
    tracemalloc.start()
    (run,) = import_results(path, ledger=None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 14e6  # it is 11e6; where all rows are kept, 19e6
    assert (run.n_samples, run["llm-rubric"].n_score) == (2_000, 2_000)
    assert not [each for each in run.notes if each.kind == "printed_differs"]


def test_systems_with_the_same_answers_and_scores_are_runs_of_their_own(tmp_path: Path) -> None:
    runs = runs_of(*(row(number, system) for system in ("a", "b") for number in range(3)))
    assert len({run.id for run in runs}) == 2


def test_other_answers_or_scores_are_another_run() -> None:
    others = row(0), row(0, answer=Answer(output="no")), row(0, scores={GOOD: Result.of(0.5)})
    assert len({runs_of(one, row(1))[0].id for one in others}) == 3


def test_another_scale_is_another_run() -> None:
    ids = {runs_of(row(4), scales=scales)[0].id for scales in ({}, {"good": 5})}
    assert len(ids) == 2


def test_a_score_beyond_all_scales_has_failed() -> None:
    (run,) = runs_of(row(0), row(1, scores={GOOD: Result.of(1.7e308)}))
    assert [outcome.exception for outcome in outcomes(run) if isinstance(outcome, Failed)] == ["OutOfRange"]


def test_rows_that_all_failed_say_why() -> None:
    down = failed("TargetFailed", "HTTP 503")
    with pytest.raises(DataError, match="its results have no scores; the first row: 'the target failed: HTTP 503'"):
        runs_of(row(0, answer=None, problem=down, scores={}))


def test_a_trial_of_many_digits_is_named_shortly() -> None:
    with pytest.raises(DataError, match=r"a trial 10{50,60}\.\.\. of one case; it must be between 1 and 10,000"):
        runs_of(row(0, trial=10**300))
    with pytest.raises(DataError, match="row 0: there is a trial 0 of one case; it must be between 1 and 10,000"):
        runs_of(row(0, trial=0))


def test_a_warning_of_some_systems_names_them() -> None:
    events = [row(number, system) for system in ("a", "b") for number in range(2)]
    runs = runs_of(*events, Printed(kind="mean", value=0.5, metric="good", system="b"))
    assert ImportedRuns(tuple(runs), "acme").view().warnings == (
        "b: good: acme printed a mean of 0.5, and here it is 0.25.",
    )


@pytest.mark.parametrize("tool", ["promptfoo", "ragas", "mlflow"])
def test_a_folder_that_should_be_a_file_is_refused_with_its_name(tmp_path: Path, tool: str) -> None:
    with pytest.raises(DataError, match="it is a folder; name the file in it") as raised:
        import_results(tmp_path, tool=tool, ledger=None)
    assert str(raised.value).count(str(tmp_path)) == 1


def test_a_folder_of_nothing_known_is_refused_with_what_folders_are_known(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "a")
    with pytest.raises(DataError, match=r"a.txt\). Known: deepeval folder .*, inspect folder \(\*.eval\), lm-eval"):
        import_results(tmp_path, ledger=None)


def test_a_folder_of_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.eval").write_bytes((FIXTURE.parents[1] / "inspect" / "two.eval").read_bytes())
    monkeypatch.setattr(reading, "MOST_FILES", 3)
    assert reading.tool_of(tmp_path) == "inspect"
    monkeypatch.setattr(reading, "MOST_FILES", 2)
    with pytest.raises(DataError, match=r"a_folder_of_many.*: more than 2 files; name the folder of the results"):
        import_results(tmp_path, ledger=None)


def test_errors_name_the_file_and_no_settings_that_an_import_lacks(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('user_input,response,retrieved_contexts,faithfulness\nq,a,"' + "[" * 3_000 + '",0.5\n', "utf-8")
    said = "r.csv: line 2: column 'retrieved_contexts', read as context, "
    with pytest.raises(DataError, match=re.escape(said)) as error:
        import_results(path, ledger=None)
    assert "map" not in str(error.value)
    with pytest.raises(DataError, match="to leave the column out: map="):
        load(path)
    (tmp_path / "r.json.gz").write_bytes(b"\x1f\x8bcut")
    with pytest.raises(DataError, match=r"r\.json\.gz: not a complete gzip file"):
        import_results(tmp_path / "r.json.gz", ledger=None)


def test_a_table_with_an_unknown_suffix_is_named_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a")
    with pytest.raises(DataError, match=r"a.txt: it has an unknown suffix; readable are .json, .jsonl") as raised:
        import_results(path, tool="ragas", ledger=None)
    assert str(raised.value).count("a.txt") == 1


def test_the_measured_files_are_known(tmp_path: Path) -> None:
    for tool, make in MAKERS.items():
        folder = tmp_path / tool
        folder.mkdir()
        assert reader_for(Source(make(folder, 4))).tool == tool.partition(" ")[0]


def test_systems_are_in_the_order_in_which_the_file_lists_them() -> None:
    rows = [row(number, system) for number in range(2) for system in ("a", "b", "c")]
    runs = runs_of(About(systems=("c", "b")), *rows)
    assert [run.target and run.target.identity for run in runs] == ["c", "b", "a"]


def test_a_row_without_an_answer_keeps_the_scores_that_the_tool_has() -> None:
    down = failed("TargetFailed", "HTTP 503")
    events = [row(0, scores={GOOD: Result.of(1), NICE: Result.of(1)}), row(1, answer=None, problem=down)]
    (run,) = runs_of(*events)
    assert outcomes(run)[1] == Score(0.5, scale=1)
    assert outcomes(run, "nice")[1] == Failed("the target failed: HTTP 503")
    assert note("scored_without_answer", "caution", tool="acme", rows=1) in run.notes
    (run,) = runs_of(events[0], replace(events[1], only_scores=True))
    assert outcomes(run, "nice")[1] == Skipped("acme has no such score of this sample")


def test_the_system_is_in_the_table_of_a_single_run() -> None:
    (run,) = runs_of(row(0), row(1))
    assert ImportedRuns((run,), "acme").to_csv().splitlines()[1].startswith('"a","good",')
    (run,) = runs_of(row(0, system="", answer=None), row(1, system="", answer=None))
    assert "system" not in str(ImportedRuns((run,), "acme"))


def test_keys_of_the_environment_that_the_file_quotes_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, password = "sk-imported-5d1f", "pw-of-the-database-7"
    monkeypatch.setenv("ACME_API_KEY", key)
    monkeypatch.setenv("ACME_URL", f"postgresql://acme:{password}@db/acme")
    text = FIXTURE.read_text("utf-8")
    (tmp_path / "results.json").write_text(text.replace("It is short.", f"401 for {key}, then {password}"), "utf-8")
    ledger, out = tmp_path / "ledger.db", tmp_path / "runs"
    imported = import_results(tmp_path / "results.json", ledger=ledger, out=out)
    reasons = {getattr(record.outcome, "reason", "") for run in imported for record in run.records}
    assert "401 for ***, then ***" in reasons
    for written in (ledger, *out.rglob("*.json*")):
        assert key.encode() not in written.read_bytes()
        assert password.encode() not in written.read_bytes()


def test_a_table_in_parquet_is_recognized_by_its_columns(tmp_path: Path) -> None:
    rows = [{"user_input": "1 + 1?", "response": "2", "faithfulness": 0.5}]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "r.parquet")
    (run,) = import_results(tmp_path / "r.parquet", ledger=None)
    assert run.mean("faithfulness") == 0.5


@pytest.mark.parametrize(
    ("name", "text"),
    [("d.csv", "question,answer\n1 + 1?,2\n"), ("d.jsonl", '{"messages": []}\n'), ("a b.json", '[{"output": "2"}]')],
)
def test_a_dataset_without_scores_is_told_what_scores_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(DataError, match="To score the answers in it, see evalstone check ") as raised:
        import_results(tmp_path / name, ledger=None)
    command = str(raised.value).partition(", see ")[2]
    assert shlex.split(command) == ["evalstone", "check", str(tmp_path / name)]


@pytest.mark.parametrize(
    ("file", "tool"),
    [("inspect/two.eval", "inspect"), ("mlflow/result.csv", "mlflow"), ("langsmith/results.csv", "langsmith")],
)
def test_data_that_are_results_of_another_tool_say_how_to_import_them(file: str, tool: str) -> None:
    path = str(Path(__file__).parent / file)
    told = re.escape(f"it has results of {tool}: evalstone import {path}, or import_results({path!r})")
    with pytest.raises(DataError, match=told):
        es.load(path)
    with pytest.raises(DataError, match=told):
        es.evaluate(path, "json_valid", ledger=None)


def test_a_check_names_the_command_that_imports_the_scores() -> None:
    path = str(Path(__file__).parent / "ragas" / "results.csv")
    checked = es.check(path)
    assert checked.commands[0] == f"evalstone import {path}"
    assert any("results of ragas" in remark for remark in checked.remarks)


def test_data_without_a_known_column_are_told_by_the_kind_of_the_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text('{"foo": "a"}\n')
    with pytest.raises(DataError) as caught:
        es.load(path)
    assert (caught.value.kind, caught.value.known) == ("unrecognized", ("foo",))
    assert str(caught.value).startswith(f"{path}: no column is recognized (columns: foo)")
    assert not es.check(path).scorers


def test_a_table_in_another_encoding_is_read_if_it_is_named(tmp_path: Path) -> None:
    text = "user_input,response,faithfulness\n«Où est Rome ?»,En Italie — bien sûr,0.5\n"
    for name, content in {"t.csv": text.encode("cp1252"), "t.csv.gz": gzip.compress(text.encode("cp1252"))}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"not UTF-8: byte .* or name its encoding, such as encoding=\"cp1252\""):
            import_results(tmp_path / name, ledger=None)
        run = import_results(tmp_path / name, ledger=None, encoding="cp1252")[0]
        assert [(sample.input, sample.output) for sample in run.samples or ()] == [
            ("«Où est Rome ?»", "En Italie — bien sûr")
        ]
    for own in ("utf-16-be", "utf-16-le"):  # which a byte order mark says, whatever is named
        (tmp_path / "t.csv").write_bytes(f"\ufeff{text}".encode(own))
        for encoding in ("utf-16", "cp1252"):
            assert import_results(tmp_path / "t.csv", ledger=None, encoding=encoding)[0].n_samples == 1
    with pytest.raises(ConfigError, match="encoding must be the name of an encoding, such as cp1252"):
        import_results(tmp_path / "t.csv", ledger=None, encoding="cp9999")
    (tmp_path / "log.eval").write_bytes(b"PK\3\4")
    with pytest.raises(ConfigError, match=r"encoding is for files of text, which log.eval is not"):
        import_results(tmp_path / "log.eval", ledger=None, encoding="cp1252")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.eval",
            "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
            "a.eval is a pointer of Git LFS, not the file itself; get it: git lfs pull",
        ),
        (
            "a.csv",
            'body,"[openai:gpt-5.1] Translate, please: {{body}}"\nHi,"[PASS] (1.00)\n\nSalut\n"\n',
            "a.csv is a table of promptfoo, which has the scores as text; save the results as JSON: promptfoo export",
        ),
        ("a.csv", 'x,"y, and z"\n1,2\n', "a.csv isn't known as the results of a tool (columns: x, y, and z)"),
    ],
)
def test_a_file_that_cannot_be_imported_says_what_to_do(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(DataError) as error:
        import_results(tmp_path / name, ledger=None)
    assert problem in " ".join(str(error.value).split())

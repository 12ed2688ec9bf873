"""The scores of a session: what is sent of them, how they are grouped, and where runs are written."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone.run.plan import scorer_info
from evalstone.scorers import parse_scorers
from evalstone.testing import summary
from evalstone.testing.names import RUNS, SPENT
from evalstone.testing.plugin import SessionHooks
from evalstone.testing.summary import as_data, summary_lines, write_test_run
from evalstone.types import CallSource, Failed, JudgeCall, Record, Score, Skipped

pytest_plugins = ["pytester"]

(SCORER,) = parse_scorers("contains")
INFO = scorer_info(SCORER)

SOURCES: tuple[CallSource, ...] = ("asked", "shared", "cached")


def record(sample: str, group: str | None = None, *steps: JudgeCall) -> Record:
    return Record(
        sample_id=sample, scorer=INFO.name, signature=INFO.signature, outcome=Score(1.0), group=group, calls=steps
    )


def calls_line(asked: int, shared: int, cached: int, cost: str) -> str:
    return f"judge calls: {asked} asked, {shared} shared, {cached} cached · cost {cost}"


def test_the_calls_of_a_panel_are_those_of_its_members() -> None:
    members = tuple(
        JudgeCall(question="q", fingerprint="f", judge=judge, answer={}, cost=0.5 * (source == "asked"), source=source)
        for judge, source in zip(("one", "two", "three"), SOURCES, strict=True)
    )
    panel = JudgeCall(question="q", fingerprint="f", judge="panel", answer={}, cost=0.5, members=members)
    *_, total = summary_lines({"test": [as_data(INFO, record("a", None, panel), "test")]}, 200)
    assert total == calls_line(1, 1, 1, "$0.5000")


def test_what_is_sent_of_a_score_has_no_evidence_and_no_answers() -> None:
    call = JudgeCall(question="q", fingerprint="f", judge="j", answer={"secret": 1}, reply="secret", source="cached")
    unanswered = JudgeCall(question="q", fingerprint="f", judge="j", answer=None)
    scored = dataclasses.replace(record("a", None, call, unanswered), outcome=Score(1.0, evidence=["secret"]))
    data = as_data(INFO, scored, "test")
    assert "secret" not in json.dumps(data)
    assert [step["answer"] for step in data["record"]["calls"]] == [True, None]
    assert Record.from_dict(data["record"]).value == 1.0


def test_a_row_has_the_numbers_of_its_columns() -> None:
    asked, shared, cached = (
        JudgeCall(question="q", fingerprint="f", judge="j", answer={}, cost=0.5 * (source == "asked"), source=source)
        for source in SOURCES
    )
    records = [
        record("a", None, asked, shared, cached, cached),
        *(dataclasses.replace(record(name), outcome=Skipped("no context")) for name in "bcd"),
        *(dataclasses.replace(record(name), outcome=Failed("broken")) for name in "ef"),
    ]
    header, row, _ = summary_lines({"test": [as_data(INFO, one, "test") for one in records]}, 200)
    assert header.split()[-7:] == ["scores", "skipped", "failed", "asked", "shared", "cached", "cost"]
    assert row.split()[-7:] == ["1", "3", "2", "1", "1", "2", "$0.5000"]


def test_earlier_attempts_count_in_the_sum_of_calls_alone() -> None:
    call = JudgeCall(question="q", fingerprint="f", judge="j", answer={}, cost=0.5)
    now, before = as_data(INFO, record("a", None, call), "test"), as_data(INFO, record("b", None, call), "test")
    _, row, total = summary_lines({"test": [now]}, 200, [before, before])
    assert row.split()[-4:] == ["1", "0", "0", "$0.5000"]
    assert total == calls_line(3, 0, 0, "$1.50")


def test_a_mean_of_several_samples_has_an_interval() -> None:
    ones = [as_data(INFO, record(name), "test") for name in "abc"]
    zero = as_data(INFO, dataclasses.replace(record("d"), outcome=Score(0.0)), "test")
    _, row, _ = summary_lines({"test": [*ones, zero]}, 200)
    assert re.match(r"contains +0\.750 +0\.\d+ to [01]\.\d+ +4 ", row)


def test_two_functions_have_no_common_mean() -> None:
    old, new = "tests/test_a.py::test_old", "tests/test_a.py::test_new"
    one = as_data(INFO, record("a"), old)
    zero = as_data(INFO, dataclasses.replace(record("a"), outcome=Score(0.0)), new)
    scored = {f"{old}[1]": [one], new: [zero], f"{old}[2]": [one]}
    lines = [line.split() for line in summary_lines(scored, 200)]
    assert [line[:2] for line in lines[:-1]] == [
        ["scorer", "mean"],
        ["test_old"],
        ["contains", "1.000"],
        ["test_new"],
        ["contains", "0.000"],
    ]
    narrow = summary_lines(scored, 40)
    assert narrow[1:3] == ["test_old", "  contains  1.000  0.025 to 1.000"]
    assert narrow.count("test_old") == 2


def test_functions_of_one_name_are_told_apart_by_their_files() -> None:
    tests = ["tests/test_a.py::test_x", "tests/test_b.py::test_x", "tests/test_b.py::test_y"]
    lines = [*summary_lines({test: [as_data(INFO, record("a"), test)] for test in tests}, 200)]
    assert lines[1:-1:2] == ["tests/test_a.py::test_x", "tests/test_b.py::test_x", "test_y"]


def test_a_long_table_is_cut_and_its_sum_is_not() -> None:
    call = JudgeCall(question="q", fingerprint="f", judge="j", answer={}, cost=0.5)
    tests = [f"test_a.py::test_{n}" for n in range(34)]
    scored = {test: [as_data(INFO, record("a", None, call), test)] for test in tests}
    *_, more, total = summary_lines(scored, 200)
    assert more.startswith("and 4 more rows; --evalstone-report ")
    assert total == calls_line(34, 0, 0, "$17.00")
    assert not any("more row" in line for line in summary_lines(dict(list(scored.items())[: summary.MOST_ROWS]), 200))


def test_the_table_has_all_columns_that_fit() -> None:
    scored = {"test": [as_data(INFO, record("a"), "test")]}
    header, *_ = summary_lines(scored, 200)
    width = max(map(len, [*summary_lines(scored, 200)][:2]))
    assert header.split()[-3:] == ["shared", "cached", "cost"]
    assert summary_lines(scored, width)[0] == header
    narrower, *_ = lines = [*summary_lines(scored, width - 1)]
    assert narrower.split()[-3:] == ["asked", "shared", "cached"]
    narrower, *_ = lines = [*summary_lines(scored, max(map(len, lines[:2])) - 1)]
    assert narrower.split()[-2:] == ["asked", "cached"]
    narrowest, *_ = summary_lines(scored, max(map(len, lines[:2])) - 1)
    assert narrowest.split()[-1] == "failed"


@pytest.mark.parametrize("width", [0, 1, 30])
def test_a_terminal_may_be_as_narrow_as_it_likes(width: int) -> None:
    lines = list(summary_lines({"test": [as_data(INFO, record("a"), "test")]}, width))
    assert max(map(len, lines)) <= 30
    assert "mean: 1.000" in lines


@pytest.mark.parametrize(
    ("records", "groups"),
    [
        ([("a", None), ("b", None)], [None, None]),
        ([("a", None), ("b", None), ("a", None)], ["a", "b", "a"]),
        ([("a", "g"), ("a", "g"), ("b", None)], ["g", "g", None]),
        ([("a", None), ("a", None), ("b", "g")], ["a", "a", "g"]),
    ],
)
def test_samples_that_were_scored_more_than_once_are_clusters(
    records: list[tuple[str, str | None]], groups: list[str | None]
) -> None:
    clustered = summary._clustered([record(*one) for one in records])  # pyright: ignore[reportPrivateUsage]
    assert [one.group for one in clustered] == groups


@pytest.mark.parametrize("name", ["..", ".", "...", " ", "a/b", "a.", "x" * 300])
def test_no_test_names_a_folder_outside_that_of_the_report(name: str) -> None:
    plain = summary._plain(name)  # pyright: ignore[reportPrivateUsage]
    assert plain.strip(". ") == plain != ""
    assert "/" not in plain
    assert len(plain) <= summary.LONGEST_NAME + 7
    assert plain != summary._plain(f"{name}.")  # pyright: ignore[reportPrivateUsage]


def test_runs_are_written_into_folders_that_are_named_by_the_whole_id_of_their_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = list[Path]()

    def write(_: object, folder: Path) -> None:
        folders.append(folder.relative_to(tmp_path))

    monkeypatch.setattr(summary, "write_run", write)
    run: Any = None
    item: Any = SimpleNamespace(nodeid="tests/a/test_it.py::TestIt::test_all", stash={RUNS: 0})
    for _ in range(2):
        write_test_run(run, tmp_path, item)
    folder = Path("tests", "a", "test_it.py", "TestIt", "test_all")
    assert folders == [folder, folder.with_name("test_all-2")]


def test_scores_of_a_fixture_count_beside_those_of_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
import pytest

@pytest.fixture
def scored(evalstone):
    return evalstone.score("exact_match", output="a", reference="a")

def test_it(evalstone, scored):
    assert evalstone.score("exact_match", output="b", reference="a").value == 0
"""
    )
    result = pytester.runpytest_inprocess("-p", "no:hypothesispytest", "-p", "no:cov")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["exact_match *0.500 * 2 *"])
    result.stdout.no_fnmatch_line("*of the budget*")


def test_what_workers_have_spent_is_added_up_with_what_this_process_has(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    session = SessionHooks(config)
    for node in (
        SimpleNamespace(workeroutput={"evalstone_spent": 0.25}),
        SimpleNamespace(),  # it has crashed
        SimpleNamespace(workeroutput={"evalstone_spent": 1.0}),
    ):
        session.pytest_testnodedown(node)
    config.stash[SPENT] = lambda: 2.0
    assert session._spent() == 3.25  # pyright: ignore[reportPrivateUsage]

"""What ends a marked test, and what no setting lets pass: failures, scores that are missing, marks that hide others."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import execnet
import pytest

from evalstone.datasets import Dataset, Samples, load
from evalstone.testing import marks
from tests.testing.test_fixture import COUNTING
from tests.testing.test_marks import ALONE, project, run

pytest_plugins = ["pytester"]
__all__ = ["project"]


def test_a_stop_iteration_fails_its_sample(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
replies = iter(["France"])

@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"])
def test_replies(input):
    return next(replies)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["oslo: exact_match failed: *RuntimeError: test_replies raised StopIteration*"])


def test_samples_that_failed_are_named_before_what_the_others_show(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.4})
def test_error(input):
    if input == "Oslo":
        raise ValueError("bad app")
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.4}, trials=2)
def test_none(input): ...

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.4})
def test_two_errors(input):
    return {"Oslo": 5}.get(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.9}, alpha=None, missing="ignore")
def test_ignored(input):
    return agent(input) if input != "Oslo" else 1 / 0
""",
    )
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "1 of 4 samples failed: ValueError: bad app (test_agent.py, line *)",
            "exact_match is 0.667, and 3 samples don't decide whether it is at least 0.4",
            "8 of 8 answers failed: test_none returned None; return text or an Answer",
            "exact_match has no score, and must be at least 0.4",
            "4 of 4 samples failed: test_two_errors returned None; *; and 1 other error",
            "_* test_ignored*_*",
            "exact_match is 0.667, and must be at least 0.9",
        ],
        consecutive=False,
    )


def test_scores_that_the_judge_gave_no_answer_for_are_named_with_their_scorer(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
import pytest
from evalstone import ScriptedJudge

@pytest.fixture(scope="session")
def evalstone_judge():
    return ScriptedJudge(["no JSON"] * 50, retries=0)
"""
    )
    mark = '@pytest.mark.evalstone(dataset="cases.jsonl", min={"answer_relevancy": 0.4})'
    result = run(project, f"{mark}\ndef test_judged(input):\n    return agent(input)\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["4 of 4 samples failed: answer_relevancy: *", "answer_relevancy has no score, *"])


def test_an_inconclusive_test_whose_samples_were_not_measured_fails(project: pytest.Pytester) -> None:
    code = "".join(
        f"""
@pytest.mark.evalstone(dataset="cases.jsonl", min={{"exact_match": 0.5}}, inconclusive="{setting}"{more})
def test_{number}(input):
    if {condition}:
        raise OSError("down")
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={{"faithfulness": 0.5}}, inconclusive="{setting}"{more})
def test_undefined_{number}(input):
    return agent(input)
"""
        for number, (setting, condition, more) in enumerate(
            [
                ("pass", "True", ""),
                ("report", "True", ""),
                ("pass", "True", ", missing='ignore'"),
                ("pass", "input == 'Oslo'", ""),
                ("report", "input == 'Oslo'", ", missing='failed'"),
                ("pass", "input == 'Oslo'", ", missing='ignore'"),
            ]
        )
    )
    result = run(project, code, "-rp")
    result.assert_outcomes(failed=11, passed=1)
    result.stdout.fnmatch_lines(["exact_match has no score, and must be at least 0.5", "PASSED test_agent.py::test_5*"])


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_outcome_of_pytest_ends_the_whole_test(project: pytest.Pytester, kind: str) -> None:
    mark = '@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0}, alpha=None, missing="ignore")'
    code = "".join(
        f"""
{mark}
{kind} test_{name}(input):
    if input == "Rome":
        pytest.{name}("because of Rome")
    return agent(input)
"""
        for name in ("skip", "fail", "xfail", "exit")
    )
    result = run(project, code + "\ndef test_after(): ...", "-rsx", "-p", "no:anyio", "-p", "no:asyncio")
    result.assert_outcomes(skipped=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["SKIPPED*: because of Rome", "XFAIL*because of Rome", "*Exit: because of Rome*"])


@pytest.mark.parametrize(
    "code",
    [
        "{bad}\n{good}\ndef test_it(input): return agent(input)",
        "{good}\n{bad}\nclass TestIt:\n    def test_it(self, input): return agent(input)",
        "{bad}\nclass Base: ...\n{good}\nclass TestIt(Base):\n    def test_it(self, input): return agent(input)",
    ],
)
def test_two_marks_in_one_place_are_refused(project: pytest.Pytester, code: str) -> None:
    mark = '@pytest.mark.evalstone(dataset="cases.jsonl", min={{"exact_match": {}}}, alpha=None)'
    result = run(project, code.format(bad=mark.format(1), good=mark.format(0)))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*two marks are on one test, class or module; write a test for each"])


def test_the_mark_of_a_test_replaces_that_of_its_class(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 1}, alpha=None)
class TestIt:
    @pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, alpha=None)
    def test_own(self, input): return agent(input)

    def test_class(self, input): return agent(input)
""",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_a_fixture_has_the_sample_of_its_test_and_is_refused_where_there_are_many(project: pytest.Pytester) -> None:
    code = """
@pytest.fixture
def answer(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", {more})
def test_it(input, answer):
    assert answer == agent(input)
    return answer
"""
    result = run(project, code.format(more="require=['exact_match'], each=True"))
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*FAILED*test_it?lima?*"])
    result = run(project, code.format(more="require=['exact_match']"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the fixture answer takes input, which it has with each=True alone"])


def test_hostile_texts_reach_junit_xml_and_the_process_of_the_session(project: pytest.Pytester) -> None:
    sent: list[bytes] = []

    class Worker:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            data = project_config[0].hook.pytest_report_to_serializable(config=project_config[0], report=report)
            sent.append(execnet.dumps(data))

        def pytest_configure(self, config: pytest.Config) -> None:
            project_config.append(config)

    project_config: list[pytest.Config] = []
    project.makepyfile(
        test_it="""
import pytest
from evalstone.scorers.checks.texts import Contains

BAD = "\\x00\\x1b[31m]]>&<\\ud800\\ufffe"
SCORERS = [Contains(expected=BAD), Contains(expected="good")]

@pytest.mark.evalstone(
    dataset=[{"id": BAD, "output": BAD, "input": BAD}], scorers=SCORERS, require=[f"contains(expected={BAD})"]
)
def test_all(): ...

def test_one(evalstone):
    evalstone.assert_scores(min={Contains(expected="x"): 1}, output=BAD, input=BAD)
"""
    )
    result = project.runpytest_inprocess(*ALONE, "--junitxml=junit.xml", plugins=[Worker()])
    result.assert_outcomes(passed=1, failed=1)
    assert "\x1b" not in result.stdout.str()
    names = {one.attrib["name"] for one in ElementTree.parse(project.path / "junit.xml").iter("property")}
    assert "contains(expected=good)" in names
    assert len(sent) == 6


def test_a_method_that_is_run_again_answers_anew(project: pytest.Pytester) -> None:
    project.makeconftest("""
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    runtestprotocol(item, nextitem=nextitem, log=False)
    item.obj = getattr(item.parent.obj(), item.originalname)  # as pytest-rerunfailures does
    item._initrequest()
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
""")
    result = run(
        project,
        """
class TestAgent:
    @pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, alpha=None)
    def test_all(self, input): return agent(input)

    @pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0}, each=True)
    async def test_each(self, input): return agent(input)
""",
    )
    result.assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("passes", "code"), [(True, pytest.ExitCode.INTERNAL_ERROR), (False, pytest.ExitCode.TESTS_FAILED)]
)
def test_a_report_that_cannot_be_written_leaves_the_summary_and_is_no_success(
    project: pytest.Pytester, passes: bool, code: pytest.ExitCode
) -> None:
    test = f"""
from pathlib import Path

def test_it(evalstone):
    evalstone.assert_scores(min={{"exact_match": 1}}, output="a", reference="a")
    Path("taken.txt").touch()
    assert {passes}
"""
    result = run(project, test, "--evalstone-report", "taken.txt")
    assert result.ret == code
    result.assert_outcomes(passed=passes, failed=not passes)
    result.stdout.fnmatch_lines(["exact_match*1.000*", "The scores could not be written: *taken.txt*"])


def test_a_test_whose_mark_is_lost_after_collection_is_scored(project: pytest.Pytester) -> None:
    project.makeconftest("""
def pytest_collection_modifyitems(items):
    for item in items:
        item.own_markers.clear()
""")
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"])
def test_all(input): return input

@staticmethod
@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"])
def test_static(input): return input
""",
    )
    result.assert_outcomes(failed=2)


def test_texts_name_what_a_marked_test_and_the_fixture_can_set(project: pytest.Pytester) -> None:
    result = run(
        project,
        """

@pytest.mark.evalstone(dataset="cases.jsonl", min={"faithfulness": 0.9})
def test_mark(input):
    return "Paris is big." if input == "Paris" else {"output": "Rome is old.", "context": ["Rome is old."]}

def test_fixture(evalstone):
    run = evalstone.evaluate([{"output": "Rome is old.", "context": ["Rome is old."]}], "faithfulness")
    evalstone.assert_gate(run, min={"faithfulness": 0.9})
""",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([
        "*test_mark*",
        '*faithfulness:*; missing="failed" leaves out those for which it is undefined.',
        "*test_fixture*",
        "*would decide it at the next look (look=2)*",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*--[a-z]*")
    assert result.stdout.str().count("label") == 1, "of the fixture"


def test_a_baseline_of_a_dataset_that_has_changed_is_compared_where_that_is_allowed(project: pytest.Pytester) -> None:
    code = """
import evalstone as e

def rows(*ids):
    return [{"id": id, "output": "a", "reference": "a"} for id in ids]

@pytest.mark.parametrize("options", [{}, {"allow_mismatch": True}])
def test_it(evalstone, options):
    before = evalstone.evaluate(rows("1", "2"), "exact_match")
    now = evalstone.evaluate(rows("2", "3"), "exact_match")
    evalstone.assert_gate(now, max_regression={"exact_match": 1}, baseline=before, **options)
"""
    result = run(project, code)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*the samples differ: *To compare them anyway, use allow_mismatch=True"])


def test_a_baseline_that_is_not_there_is_an_error_before_the_system_is_called(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(
    dataset=[{"input": "a", "reference": "a"}], max_regression={"exact_match": 0.1}, baseline="nothing"
)
def test_it(input):
    print("called with", input)
    return input
"""
    result = run(project, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['there is no results folder "nothing"*'])
    result.stdout.no_fnmatch_line("*called with*")


def test_a_mark_on_a_parameter_is_refused(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.evalstone(dataset="cases.jsonl"))])
def test_it(input, n): return agent(input)
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_agent.py:*: @pytest.mark.evalstone of test_it: the mark is on a parameter *"])


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in ("rerun", ""):  # as pytest-rerunfailures does
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            report.outcome = attempt if report.when == "call" and attempt else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
        item._initrequest()
    print(sorted(name for name, _ in item.user_properties))
    return True
"""


def test_of_a_test_that_is_run_again_the_last_attempt_counts(project: pytest.Pytester) -> None:
    project.makeconftest(AGAIN)
    code = """
attempts = []

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0}, alpha=None)
def test_all(input):
    attempts.append(input)
    return "?" if len(attempts) <= 4 else "Norway"

def test_one(evalstone):
    evalstone.score("exact_match", output="a", reference="a")
"""
    result = run(project, code, "--evalstone-report", "out", "-s")
    result.stdout.fnmatch_lines(
        ["test_all", "  exact_match  0.250*4        0       0*", "test_one", "  exact_match  1.000*1        0       0*"]
    )
    assert "['exact_match', 'verdict']" in result.stdout.str()
    assert "['exact_match']" in result.stdout.str()
    assert len(project.path.joinpath("out", "scores.jsonl").read_text("utf-8").splitlines()) == 5
    (folder,) = project.path.glob("out/test_agent.py/*")
    assert folder.name.partition("[")[0] == "test_all"  # older versions of pytest show the dataset


def test_a_requirement_that_is_missed_says_in_how_many_samples_it_is_met(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"])
def test_all(input): return agent(input)
"""
    result = run(project, code)
    result.stdout.fnmatch_lines(["exact_match has the best score in 3 of 4 samples, and must have it in all"])


def test_the_sum_of_calls_has_those_of_all_attempts(project: pytest.Pytester) -> None:
    project.makeconftest(AGAIN + COUNTING)
    code = """
attempts = []

def test_one(evalstone):
    attempts.append(1)
    evalstone.score("faithfulness", output="Paris is in Italy.", context=[f"Passage {len(attempts)}."])
"""
    result = run(project, code)
    result.stdout.fnmatch_lines(
        ["faithfulness*1        0       0      1       1*", "judge calls: 3 asked, 0 shared, 1 cached · cost $1.20"]
    )


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        ("100", ["exact_match  0.750  0.218 to 0.991       4        0       0      0       0       0  $0.00"]),
        ("80", ["exact_match  0.750  0.218 to 0.991       4        0       0      0       0"]),
        ("70", ["exact_match  0.750  0.218 to 0.991       4        0       0"]),
        (
            "50",
            [
                "exact_match  0.750  0.218 to 0.991       4",
                "",
                "scorer       skipped  failed",
                "exact_match        0       0",
            ],
        ),
    ],
)
def test_the_table_fits_the_terminal(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, columns: str, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0}, alpha=None)
def test_all(input): return agent(input)
"""
    printed = run(project, code).outlines
    place = printed.index(lines[0])
    assert printed[place : place + len(lines)] == lines
    assert max(map(len, printed[place - 1 :])) <= int(columns)


def test_a_file_is_read_once_in_a_session_unless_it_changes(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []

    def counting(source: Samples, **options: Any) -> Dataset:
        loaded.append(options["map"])
        return load(source, **options)

    monkeypatch.setattr(marks, "load", counting)
    mark = '@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0}, alpha=None'
    code = "".join(
        f"""
{mark}{more})
def test_{number}(input): return agent(input)
"""
        for number, more in enumerate(["", "", ', map={"id": "id"}', ', map={"id": "id"}', ""])
    )
    run(project, code).assert_outcomes(passed=5)
    assert loaded == [None, {"id": "id"}, None]
    loaded.clear()
    changing = """
from pathlib import Path
changed = Path(__file__).parent / "cases.jsonl"
changed.write_text(changed.read_text() + '\\n{"id": "bern", "input": "Rome", "reference": "Italy"}\\n')
"""
    later = f"import pytest\nfrom test_agent import agent\n{changing}\n{mark})\ndef test_it(input): return agent(input)"
    project.makepyfile(test_later=later)
    result = project.runpytest_inprocess(*ALONE)
    result.assert_outcomes(passed=6)
    assert loaded == [None, {"id": "id"}, None, None]
    result.stdout.fnmatch_lines(
        ["test_0", "  exact_match*4 *", "test_4", "  exact_match*4 *", "test_it", "  exact_match*5 *"]
    )


def test_a_judge_that_is_none_is_told_of_with_its_fixture(project: pytest.Pytester) -> None:
    project.makeconftest("import pytest\n\n@pytest.fixture\ndef evalstone_judge(): return 5")
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0})
def test_all(input): return agent(input)
"""
    result = run(project, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the fixture evalstone_judge: a judge is *, not 5"])


def test_a_run_that_ends_while_the_test_answers_fails_with_the_reason(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
import pytest
from evalstone import ConfigError, ScriptedJudge

class Refusing(ScriptedJudge):
    async def answer(self, *args, **kwargs):
        raise ConfigError("the key is refused")

@pytest.fixture(scope="session")
def evalstone_judge():
    return Refusing([])
"""
    )
    result = run(
        project,
        """
import time
calls = []

@pytest.mark.evalstone(dataset=[{"id": str(n), "input": "?"} for n in range(50)], min={"faithfulness": 0.5})
def test_all(input):
    calls.append(input)
    time.sleep(0.2 if len(calls) > 1 else 0)
    return {"output": "Oslo is big.", "context": ["Oslo is big."]}

def test_calls():
    assert len(calls) <= 3
""",
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["the key is refused"])
    result.stdout.no_fnmatch_line("*InvalidStateError*")


def test_a_question_that_was_not_put_to_anyone_is_no_call_in_the_table(project: pytest.Pytester) -> None:
    code = """
from evalstone import ScriptedJudge

def test_one(evalstone):
    evalstone.score("faithfulness", output="Oslo.", context=["Oslo."], judge=ScriptedJudge([]))
"""
    result = run(project, code)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["judge calls: 0 asked, 0 shared, 0 cached *"])

"""The fixture `evalstone`: scores in tests, and failures that explain themselves."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.schemas import problems
from tests.testing.test_marks import ALONE

pytest_plugins = ["pytester"]

PARIS = 'input="Where is Paris?", output="Paris is in Italy.", context=["Paris is in France."]'


JUDGE_FIXTURE = """
import pytest

@pytest.fixture(scope="session")
def evalstone_judge(): return "lexical"
"""


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=code)
    return pytester.runpytest_inprocess(*ALONE, "--tb=short", *options)


def test_scores_that_miss_their_thresholds_say_which_claim_and_which_passage(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
from evalstone.testing import Evalstone

def test_paris(evalstone: Evalstone) -> None:
    least = {{"faithfulness": 0.9, "contains(expected=Italy)": 1}}
    evalstone.assert_scores({PARIS}, min=least, max={{"hallucination": 0.1}})
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py:5: in test_paris",
            "*evalstone.assert_scores(*",
            "E   AssertionError: 2 scores of 3 missed: faithfulness is 0, and must be at least 0.9; "
            "hallucination is 1, and must be at most 0.1",
            "E     faithfulness: 0 of 1 claim is supported",
            "E     ? not mentioned: “Paris is in Italy.”",
            "E       passage 1 has France where the claim has Italy*",
            "E     passage 1: “Paris is in France.”",
            "E     question: “Where is Paris?”",
            "E     answer: “Paris is in Italy.”",
            "E     contains is 1",
            "*FAILED test_it.py::test_paris - AssertionError: *",
        ]
    )
    frames = [line for line in result.outlines if re.match(r"\S+\.py:\d+: in ", line)]
    assert frames == ["test_it.py:5: in test_paris"]


def test_only_the_passages_that_decide_a_claim_are_quoted(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
import pytest
from evalstone import ScriptedJudge

def reply(question):
    if question.kind == "list_claims":
        return {"claims": ["Oslo is in Peru."]}
    verdict = {"claim": 1, "reason": "It is in Norway.", "passages": [2], "verdict": "contradicted"}
    return {"verdicts": [verdict]}

@pytest.fixture(scope="session")
def evalstone_judge():
    return ScriptedJudge(reply)
""")
    result = run(
        pytester,
        """
def test_oslo(evalstone):
    passages = ["Lima is in Peru.", "Oslo is in Norway.", "Rome is in Italy."]
    evalstone.assert_scores(min={"faithfulness": 1}, output="Oslo is in Peru.", context=passages)
""",
    )
    result.stdout.fnmatch_lines(
        ["E*✕ contradicted: “Oslo is in Peru.”", "E*It is in Norway. · passage 2", "E*passage 2: “Oslo is in Norway.”"]
    )
    result.stdout.no_fnmatch_line("E*passage 1: *")


def test_skipped_and_failed_scores_never_pass(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
from evalstone import ScriptedJudge

def test_skipped(evalstone):
    evalstone.assert_scores(min={"faithfulness": 0}, output="Oslo.")

def test_failed(evalstone):
    broken = ScriptedJudge(["no JSON"])
    evalstone.assert_scores(min={"faithfulness": 0}, output="Oslo.", context=["Oslo."], judge=broken)

def test_broken(evalstone):
    def broken(output):
        raise KeyError("oops")
    evalstone.assert_scores(min={broken: 0}, output="Oslo.")
""",
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: faithfulness was skipped: faithfulness needs context (or tool results in messages)",
            "E*AssertionError: faithfulness failed: *",
            "E*the judge's reply: “no JSON”",
            "E*AssertionError: broken failed: KeyError: 'oops' (test_it.py, line 12)",
            "test_skipped",
            "  faithfulness *- *- *0        1       0 *",
            "test_failed",
            "  faithfulness *- *- *0        0       1 *",
        ]
    )


def test_what_scores_returns_and_refuses(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
import pytest
from evalstone import ConfigError, Sample
from evalstone.scorers.checks import Contains

def test_it(evalstone):
    assert evalstone.score("faithfulness", {PARIS}).value == 0
    assert evalstone.score("exact_match", Sample(output="a", reference="a")).value == 1
    records = evalstone.assert_scores({PARIS}, min={{"contains(expected=Italy)": 1, Contains(expected="Paris"): 1}})
    assert {{name: record.value for name, record in records.items()}} == {{
        "contains(expected=Italy)": 1, "contains": 1
    }}
    for thresholds, problem in (
        ({{}}, "name scorers"), (["contains"], "min must be a table"), (3, "min must be a table"),
        ({{"contains": 2}}, r"must be in \\[0, 1\\]"), ({{"contains": "1"}}, "number"),
        ({{"contians": 1}}, "did you mean contains"),
    ):
        with pytest.raises(ConfigError, match=problem):
            evalstone.assert_scores({PARIS}, min=thresholds)
    with pytest.raises(ConfigError, match="unknown sample field 'answer'"):
        evalstone.score("contains", answer="x")
""",
    )
    result.assert_outcomes(passed=1)


def test_the_asynchronous_forms_work_on_another_loop(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
import asyncio
import pytest

async def scores(evalstone):
    assert (await evalstone.ascore("faithfulness", {PARIS})).value == 0
    assert evalstone.score("faithfulness", {PARIS}).value == 0
    with pytest.raises(AssertionError, match="must be at least 0.5"):
        await evalstone.aassert_scores({PARIS}, min={{"faithfulness": 0.5}})
    run = await evalstone.aevaluate([{{"output": "a", "reference": "a"}}], "exact_match")
    evalstone.assert_gate(run, require=["exact_match"])

def test_it(evalstone):
    asyncio.run(scores(evalstone))
""",
    )
    result.assert_outcomes(passed=1)


def test_another_loop_than_that_of_asyncio_is_named(pytester: pytest.Pytester) -> None:
    code = """
def test_it(evalstone):
    evalstone.ascore("contains(expected=a)", output="a").send(None)  # as trio does
"""
    result = run(pytester, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E   *ConfigError: this test does not run on asyncio*use score, assert_scores, *"])


def test_evaluate_and_assert_gate(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """

ROWS = [{"id": str(n), "output": "yes", "reference": "yes" if n else "no"} for n in range(4)]

def test_gate(evalstone):
    run = evalstone.evaluate(ROWS, ["exact_match"])
    assert evalstone.assert_gate(run, min={"exact_match": 0.7}, alpha=None).verdict == "pass"
    evalstone.assert_gate(run, require=["exact_match"])

def test_undecided(evalstone):
    evalstone.assert_gate(evalstone.evaluate(ROWS, "exact_match"), min={"exact_match": 0.7})

def test_target(evalstone):
    run = evalstone.evaluate(ROWS, "exact_match", target=lambda *, trial: "yes", trials=3)
    assert run.trials == 3 and len(run) == 12
""",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E   AssertionError: exact_match has the best score in 3 of 4 samples, and must have it in all",
            "E   0: exact_match is 0",
            "E   AssertionError: exact_match is 0.750, and 4 samples don't decide whether it is at least 0.7",
            "E*? inconclusive; about*",
        ]
    )


def test_evaluators_of_spring_work_as_they_are(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
from evalstone import ScriptedJudge
from evalstone.compat.spring import EvaluationRequest, EvaluationResponse, FactCheckingEvaluator, RelevancyEvaluator

REQUEST = EvaluationRequest("When?", ["In 1815."], "In 1912.")

def judge(verdict):
    return ScriptedJudge([{"reason": "So it says.", "verdict": verdict}])

def test_passed(evalstone):
    assert evalstone.assert_passed(RelevancyEvaluator(judge("yes")), REQUEST).score == 1

def test_failed(evalstone):
    evalstone.assert_passed(RelevancyEvaluator(judge("no")), REQUEST)

def test_undecided(evalstone):
    evalstone.assert_passed(RelevancyEvaluator(judge("undecided")), REQUEST)

def test_error(evalstone):
    evalstone.assert_passed(RelevancyEvaluator(ScriptedJudge([])), REQUEST)

def test_judge_of_the_session(evalstone):
    evalstone.assert_passed(FactCheckingEvaluator(), EvaluationRequest("When?", ["In 1815."], "In 1815."))

class Own:
    async def aevaluate(self, request):
        return EvaluationResponse(passed=False, feedback="It is too short.")
    def evaluate(self, request): ...

def test_own(evalstone):
    evalstone.assert_passed(Own(), REQUEST)
""",
    )
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        [
            "E*RelevancyEvaluator failed the response with a score of 0, and must be at least 0.5: So it says.",
            "E*document 1: “In 1815.”",
            "E*answer: “In 1912.”",
            "E*RelevancyEvaluator did not decide: *",
            "E*RelevancyEvaluator could not judge the response: *",
            "E*Own failed the response: It is too short.",
            "test_passed",
            "  relevancy_check  1.000 *1        0       0*",
            "test_failed",
            "  relevancy_check  0.000 *1        0       0*",
            "test_undecided",
            "  relevancy_check      - *0        1       0*",
            "test_error",
            "  relevancy_check      - *0        0       1*",
        ]
    )


COUNTING = """
import pytest
from pathlib import Path
from evalstone import Judge
from evalstone.questions.answers import JudgeAnswer

class Counting(Judge):
    identity = "counting"

    async def answer(self, question, repeat=0):
        with Path("asked.txt").open("a") as file:
            print(question.kind, file=file)
        reply = {"list_claims": '{"claims": ["Paris is in Italy."]}'}.get(
            question.kind, '{"verdicts": [{"claim": 1, "reason": "No.", "passages": [], "verdict": "not_mentioned"}]}'
        )
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply, cost=0.4)

    def price(self, usage):
        return 0.4

@pytest.fixture(scope="session")
def evalstone_judge():
    return Counting()
"""


def test_a_second_session_and_a_run_ask_nothing_again(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(COUNTING)
    code = f"""
def test_paris(evalstone):
    assert evalstone.score("faithfulness", {PARIS}).value == 0

def test_run(evalstone):
    assert evalstone.evaluate([dict({PARIS})], "faithfulness")["faithfulness"].mean == 0
"""
    first = run(pytester, code)
    first.stdout.fnmatch_lines(
        ["test_paris", "  faithfulness*1        0       0      2       0", "test_run", "  faithfulness*0       2"]
    )
    second = run(pytester, code)
    second.stdout.fnmatch_lines(
        [
            "  faithfulness*0       2",
            "test_run",
            "  faithfulness*0       2",
            "judge calls: 0 asked, 0 shared, 4 cached*",
        ]
    )
    assert (pytester.path / "asked.txt").read_text().split() == ["list_claims", "verify_claims"]
    assert (pytester.path / ".evalstone" / "ledger.db").is_file()


def test_the_budget_is_that_of_the_whole_session(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(COUNTING)
    code = """
import pytest

def row(n):
    return {"output": f"Paris is in Italy.", "context": [f"Passage {n}."]}

@pytest.mark.parametrize("n", [1, 2])
def test_score(evalstone, n):
    assert evalstone.score("faithfulness", row(n)).value == 0

def test_run(evalstone):
    evalstone.evaluate([row(3)], "faithfulness")

@pytest.mark.evalstone(dataset=[row(4), row(1)], max={"hallucination": 1}, alpha=None)
def test_all(): ...
"""
    result = run(pytester, code, "--evalstone-budget", "1.3")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*BudgetExceeded: *does not fit*the session's --evalstone-budget of $1.3 ($1.2000 spent)",
            "the run is incomplete: *budget*",
        ]
    )
    asked = (pytester.path / "asked.txt").read_text().split()
    assert asked == ["list_claims", "verify_claims", "verify_claims"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.slow
def test_what_was_paid_for_samples_without_a_score_is_in_the_line_of_the_budget(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(COUNTING)
    code = f"""
def test_score(evalstone):
    evalstone.score("faithfulness", {PARIS})
"""
    pytester.makepyfile(code)
    limit = 0.5 * max(1, len(workers))  # each worker has a share
    options = ("-p", "no:hypothesispytest", "-p", "no:cov", "--evalstone-budget", str(limit))
    result = pytester.runpytest_inprocess(*options, *workers)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"$0.4000 of the budget of ${limit:g} is spent"])


def test_a_budget_needs_the_price_of_each_judge(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(COUNTING.replace("return 0.4", "return None"))
    code = """
ROW = {"output": "Paris is in Italy.", "context": ["Paris is in France."]}

def test_score(evalstone):
    evalstone.score("faithfulness", ROW)

def test_run(evalstone):
    evalstone.evaluate([ROW], "faithfulness")
"""
    result = run(pytester, code, "--evalstone-budget", "1")
    result.assert_outcomes(failed=2)
    assert len([line for line in result.outlines if "price of counting" in line]) >= 2
    assert not (pytester.path / "asked.txt").exists()


def test_replies_of_a_file_are_a_judge(pytester: pytest.Pytester) -> None:
    verdict = {"claim": 1, "reason": "Yes.", "passages": [1], "verdict": "supported"}
    replies = {"list_claims": {"claims": ["Paris is in Italy."]}, "verify_claims": {"verdicts": [verdict]}}
    (pytester.path / "replies.json").write_text(json.dumps(replies), "utf-8")
    code = f"def test_it(evalstone): assert evalstone.score('faithfulness', {PARIS}).value == 1"
    run(pytester, code, "--evalstone-judge", "scripted:replies.json").assert_outcomes(passed=1)
    pytester.makeini("[pytest]\nevalstone_judge = scripted:replies.json")
    run(pytester, code).assert_outcomes(passed=1)
    run(pytester, code, "--evalstone-judge", "lexical").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--evalstone-judge=", "--evalstone-judge must not be empty; leave it out for the default"),
        ("--evalstone-ledger= ", "--evalstone-ledger must not be empty; leave it out for the default"),
        ("--evalstone-judge=scripted", "--evalstone-judge: scripted needs a file*"),
        ("--evalstone-judge=scripted:none.json", "*none.json*"),
        ("--evalstone-judge=scripted:text.json", "*text.json can't be read as a judge's replies*"),
        ("--evalstone-judge=scripted:word.json", "*word.json must contain a list of replies*not str"),
        ("--evalstone-judge=opnai/gpt-5.1", "*opnai*"),
        ("--evalstone-trials=0", "--evalstone-trials must be a whole number from 1 to 10000, not 0 (int)"),
        ("--evalstone-budget=-1", "--evalstone-budget must be 0 or more US dollars, not -1"),
        ("--evalstone-budget=nan", "--evalstone-budget must be 0 or more US dollars, not nan"),
        ("--evalstone-ledger=none", "--evalstone-ledger: 'none' would be a file of that name*"),
        ("--evalstone-ledger=mysql://host/db", "--evalstone-ledger: mysql://host/db is not a ledger*"),
        ("--evalstone-report=text.json", "--evalstone-report must be a folder, and *text.json is a file"),
    ],
)
def test_a_wrong_option_ends_the_session_with_one_line_that_names_it(
    pytester: pytest.Pytester, option: str, problem: str
) -> None:
    (pytester.path / "text.json").write_text("no JSON", "utf-8")
    (pytester.path / "word.json").write_text('"yes"', "utf-8")
    result = run(pytester, "def test_it(evalstone): ...", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = filter(None, (*result.outlines, *result.errlines))
    assert fnmatchcase(line, f"ERROR: {problem}")


@pytest.mark.parametrize("conftest", ["", JUDGE_FIXTURE])
@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("evalstone_budget=much", "evalstone_budget must be a number, not 'much'"),
        ("evalstone_trials=2.5", "evalstone_trials must be a whole number, not '2.5'"),
        ("evalstone_ledger=mysql://host/db", "evalstone_ledger: mysql://host/db is not a ledger*"),
        ("evalstone_report=test_it.py", "evalstone_report must be a folder, and *test_it.py is a file"),
        ("evalstone_judge=opnai/gpt-5.1", "evalstone_judge: *opnai*"),
    ],
)
@pytest.mark.parametrize(
    "code",
    [
        "def test_it(evalstone): ...\ndef test_two(evalstone): ...",
        "def test_it(evalstone_judge): ...",
        "import pytest\n@pytest.mark.evalstone(dataset=[{'output': 'a', 'reference': 'a'}], require=['exact_match'])\n"
        "def test_it(): ...",
    ],
    ids=["fixture", "judge", "mark"],
)
def test_a_wrong_setting_of_the_ini_file_ends_the_session_with_one_line_that_names_it(
    pytester: pytest.Pytester, setting: str, problem: str, conftest: str, code: str
) -> None:
    pytester.makeconftest(conftest)
    result = run(pytester, f"{code}\ndef test_other(): ...", f"-o{setting}")
    if conftest and "judge" in setting:
        assert result.ret == pytest.ExitCode.OK
        return
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in (*result.outlines, *result.errlines) if line.startswith("ERROR")]
    assert fnmatchcase(line, f"ERROR: {problem}")
    result.assert_outcomes()


@pytest.mark.parametrize("options", [(), ("-k", "other")])
def test_a_wrong_setting_of_the_ini_file_ends_no_session_that_scores_nothing(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    scoring = "def test_it(evalstone): ...\n" if options else ""
    result = run(pytester, f"{scoring}def test_other(): ...", "-oevalstone_trials=many", *options)
    result.assert_outcomes(passed=1, deselected=len(options) // 2)


@pytest.mark.parametrize("setting", ["evalstone_trials=many", "evalstone_judge=opnai/gpt-5.1"])
def test_a_wrong_setting_fails_a_test_that_asks_for_the_fixture_while_it_runs(
    pytester: pytest.Pytester, setting: str
) -> None:
    code = "def test_it(request): request.getfixturevalue('evalstone')\ndef test_other(): ..."
    result = run(pytester, code, f"-o{setting}")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"*{setting.partition('=')[0]}*"])
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_a_ledger_that_is_refused_makes_no_file(pytester: pytest.Pytester) -> None:
    run(pytester, f"def test_it(evalstone): evalstone.score('faithfulness', {PARIS})", "--evalstone-ledger=none")
    assert not (pytester.path / "none").exists()


def test_a_report_has_the_runs_and_a_line_for_each_score(pytester: pytest.Pytester) -> None:
    code = f"""
import pytest

ROWS = [{{"id": "a", "output": "yes", "reference": "yes"}}]

class TestAll:
    @pytest.mark.parametrize("word", ["x/y", "x y"])
    @pytest.mark.evalstone(dataset=ROWS, require=["exact_match"])
    def test_rows(self, word): ...

def test_score(evalstone):
    evalstone.score("faithfulness", {PARIS})
    evalstone.evaluate(ROWS, "exact_match")
    evalstone.evaluate(ROWS, "contains")
"""
    run(pytester, code, "--evalstone-report", "out", "--junitxml=junit.xml").assert_outcomes(passed=3)
    folders = sorted(
        str(file.parent.relative_to(pytester.path / "out")) for file in pytester.path.glob("**/summary.json")
    )
    assert len(folders) == 4
    hidden = "" if hasattr(pytest, "HIDDEN_PARAM") else "in memory-"  # older versions of pytest show the dataset
    folders = [folder.replace(hidden, "") for folder in folders]
    assert folders[:2] == ["test_it.py/TestAll/test_rows[x y]", folders[1]]
    assert re.fullmatch(r"test_it\.py/TestAll/test_rows\[x_y\]-\w{6}", folders[1])
    assert folders[2:] == ["test_it.py/test_score", "test_it.py/test_score-2"]
    lines = [json.loads(line) for line in (pytester.path / "out" / "scores.jsonl").read_text().splitlines()]
    assert [problem for line in lines for problem in problems(line)] == []
    assert [(line["test"], line["scorer"], line["value"]) for line in lines][2:] == [
        ("test_it.py::test_score", "faithfulness", 0.0),
        ("test_it.py::test_score", "exact_match", 1.0),
        ("test_it.py::test_score", "contains", 1.0),
    ]
    cases = ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    properties = {case.get("name"): [(p.get("name"), p.get("value")) for p in case.iter("property")] for case in cases}
    assert properties[f"test_rows[{hidden}x y]"] == [("exact_match", "1.0"), ("verdict", "pass")]
    assert properties["test_score"] == [("faithfulness", "0.0"), ("exact_match", "1.0"), ("contains", "1.0")]


def test_judged_text_cannot_write_to_the_terminal(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        r"""
def test_it(evalstone):
    context = ["\x1b]0;title\x07"]
    evalstone.assert_scores(min={"faithfulness": 1}, output="Oslo \x1b[31mis\u202e in\nPeru.", context=context)
""",
    )
    result.assert_outcomes(failed=1)
    evidence = "\n".join(line for line in result.outlines if line.startswith("E"))
    assert "\\u001b[31mis\\u202e in Peru." in evidence
    assert not re.search("[\x1b\x07\u202e]", evidence)


def test_a_sample_that_several_tests_score_is_one_cluster_of_the_summary(pytester: pytest.Pytester) -> None:
    code = """
import pytest

@pytest.mark.parametrize("n", range(3))
@pytest.mark.parametrize("output", ["a", "b"])
def test_it(evalstone, n, output):
    evalstone.score("exact_match", id=output, output=output, reference="a")
"""
    independent = run(pytester, code.replace("id=output", 'id=f"{output}{n}"'))
    clustered = run(pytester, code)
    independent.stdout.fnmatch_lines(["exact_match  0.500*6        0       0*"])
    clustered.stdout.fnmatch_lines(["exact_match  0.500*6        0       0*"])
    assert width(clustered) > width(independent) + 0.05


def width(result: pytest.RunResult) -> float:
    low, high = re.findall(r"([\d.]+) to ([\d.]+)", "\n".join(result.outlines))[-1]
    return float(high) - float(low)


def test_a_session_without_scores_says_nothing(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(evalstone): ...", "--evalstone-report", "out")
    result.assert_outcomes(passed=1)
    assert "evalstone" not in "\n".join(result.outlines[4:])
    assert not Path(pytester.path, "out").exists()
    assert not Path(pytester.path, ".evalstone").exists()


def test_the_worst_samples_are_those_without_a_score_and_with_the_lowest(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """

def share(output: str) -> float:
    return float(output)

def test_it(evalstone):
    run = evalstone.evaluate([{"id": text, "output": text} for text in ("1.0", "0.5", "0.2", "no", "0.1")], share)
    evalstone.assert_gate(run, min={"share": 0.9}, alpha=None)
""",
    )
    shown = result.outlines[result.outlines.index("E   Worst samples:") + 1 :]
    worst = [line.split(": ")[0] for line in shown if line.startswith("E   ") and ": share " in line]
    assert worst == ["E   0.2", "E   no", "E   0.1"]


def test_the_trials_that_a_test_asks_for_come_before_those_of_the_session(pytester: pytest.Pytester) -> None:
    code = """
def test_it(evalstone):
    runs = [evalstone.evaluate([{"input": "q"}], "exact_match(expected=a)", target=lambda input: "a", trials=n)
            for n in (2, None)]
    assert [run.trials for run in runs] == [2, 3]
"""
    run(pytester, code, "--evalstone-trials=3").assert_outcomes(passed=1)


@pytest.mark.parametrize(("keep", "failed"), [(False, 0), (True, 1)])
def test_reasoning_in_front_of_an_output_is_scored_if_the_test_says_so(
    pytester: pytest.Pytester, keep: bool, failed: int
) -> None:
    code = f"""
import pytest

ROW = {{"output": "<think>Berlin?</think>Bern"}}
MARK = {{"dataset": [ROW], "require": ["not_contains(expected=Berlin)"], "keep_reasoning": {keep}}}

def test_score(evalstone):
    assert evalstone.score("not_contains(expected=Berlin)", ROW, keep_reasoning={keep}).value == 1

def test_scores(evalstone):
    evalstone.assert_scores(ROW, min={{"not_contains(expected=Berlin)": 1}}, keep_reasoning={keep})

@pytest.mark.evalstone(**MARK)
def test_all(): pass

@pytest.mark.evalstone(**MARK, each=True)
def test_each(): pass
"""
    result = run(pytester, code)
    result.assert_outcomes(passed=4 * (1 - failed), failed=4 * failed)
    if keep:
        result.stdout.fnmatch_lines(["*answer: “<think>Berlin?</think>Bern”"])


def test_a_mark_that_neither_keeps_nor_leaves_out_reasoning_is_refused(pytester: pytest.Pytester) -> None:
    code = """
import pytest

@pytest.mark.evalstone(dataset=[{"output": "a"}], require=["json_valid"], keep_reasoning="yes")
def test_all(): pass
"""
    run(pytester, code).stdout.fnmatch_lines(["*keep_reasoning must be true or false, not 'yes'*"])

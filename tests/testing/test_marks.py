"""`@pytest.mark.evalstone`: a dataset as one statistical test, or as one test per sample."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from evalstone.ledger.store import Ledger

pytest_plugins = ["pytester"]

CAPITALS = {"paris": "France", "oslo": "Norway", "rome": "Italy", "lima": "Peru"}
ALONE = (
    *(word for name in ("cacheprovider", "hypothesispytest", "cov", "xdist") for word in ("-p", f"no:{name}")),
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)
"""Plugins that take longer to load than a test here."""
AGENT = """
import pytest

def agent(question):
    return {"Paris": "France", "Oslo": "Norway", "Rome": "Italy", "Lima": "Chile"}[question]
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    rows = [{"id": id, "input": id.title(), "reference": country} for id, country in CAPITALS.items()]
    pytester.path.joinpath("cases.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return pytester


def run(project: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    project.makepyfile(test_agent=AGENT + code)
    return project.runpytest_inprocess(*ALONE, "--tb=short", *options)


def test_a_test_that_takes_the_input_answers_the_samples_of_one_statistical_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", scorers=["exact_match"], min={"exact_match": 0.7}, alpha=None)
def test_capitals(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.8}, alpha=None)
def test_too_few(input):
    return agent(input)
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "exact_match is 0.750, and must be at least 0.8",
            "*cases.jsonl · 4 samples*target test_agent.py::test_too_few*",
            "exact_match*0.750*at least 0.8*4*fail",
            "Worst samples:",
            "lima: exact_match is 0",
            "*question: “Lima”",
            "*answer: “Chile”",
            "test_capitals",
            "  exact_match  0.750*4        0       0      0       0",
            "test_too_few",
            "  exact_match  0.750*4        0       0      0       0",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*returned*")


def test_the_gate_is_a_test_and_inconclusive_fails_passes_or_skips(project: pytest.Pytester) -> None:
    code = "".join(
        f"""
@pytest.mark.evalstone(dataset="cases.jsonl", min={{"exact_match": 0.7}}{more})
def test_{number}(input):
    return agent(input)
"""
        for number, more in enumerate(("", ", inconclusive='pass'", *[", inconclusive='report'"] * 2))
    )
    result = run(project, code, "-rs")
    result.assert_outcomes(failed=1, passed=1, skipped=2)
    head = "exact_match is 0.750, and 4 samples don't decide whether it is at least 0.7"
    skipped = f"SKIPPED [[]1] test_agent.py:*: {head}"
    result.stdout.fnmatch_lines([head, "exact_match*? inconclusive; about *more samples*", skipped, skipped])


def test_a_scorer_without_any_score_says_why_it_skipped_the_samples(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"faithfulness": 0.7}, trials=2)
def test_text_alone(input):
    return agent(input)
"""
    result = run(project, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "_* test_text_alone*_",
            "faithfulness skipped 8 of 8 answers: faithfulness needs context (or tool results in messages)",
            "faithfulness has no score, and must be at least 0.7",
        ],
        consecutive=True,
    )


def test_fixtures_parametrization_classes_and_the_thread_of_the_test_are_as_in_any_test(
    project: pytest.Pytester,
) -> None:
    result = run(
        project,
        """
import threading

@pytest.fixture
def country():
    here = threading.get_ident()
    yield lambda question: agent(question) if threading.get_ident() == here else "elsewhere"

class TestAgent:
    name = "an agent"

    @pytest.mark.parametrize("suffix", ["", "!"])
    @pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.7}, alpha=None)
    def test_answers(self, country, input, suffix, tmp_path):
        assert tmp_path.is_dir() and self.name
        return country(input) + suffix
""",
        "-v",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*TestAgent::test_answers* PASSED*", "*TestAgent::test_answers*!* FAILED*"])
    result.stdout.fnmatch_lines(["*answer: “France!”"])


def test_a_test_without_parameters_has_the_outputs_of_the_dataset_scored(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
SAMPLES = [{"id": "a", "output": "yes", "reference": "yes"}, {"id": "b", "output": "no", "reference": "yes"}]
ran = []

@pytest.mark.evalstone(dataset=SAMPLES, require=["exact_match"])
def test_all(monkeypatch):
    ran.append(1)

@pytest.mark.evalstone(dataset=SAMPLES, min={"exact_match": 0.5}, alpha=None)
def test_some():
    assert ran

@pytest.mark.evalstone(dataset=SAMPLES, min={"exact_match": 0.5}, alpha=None)
def test_returns():
    return "yes"
""",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "exact_match has the best score in 1 of 2 samples, and must have it in all",
            "exact_match  b*",
            "the test returned a value but takes nothing of a sample*",
        ]
    )


def test_a_threshold_names_a_scorer_however_its_parameters_are_written(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import evalstone

SAMPLES = [{"id": "a", "output": "It rains in New York, NY."}]
SCORERS = ["contains(expected='New York, NY')", "contains(expected=rains)", "per_turn(scorer=contains(expected=York))"]

@pytest.mark.evalstone(
    dataset=SAMPLES,
    scorers=SCORERS,
    min={'contains( expected="New York, NY", ignore_case=True )': 0.5},
    require=["contains(expected='rains')"],
    max_regression={SCORERS[1]: 1},
    max_change={"contains(expected=rains, ignore_case=True)": 1},
    baseline=evalstone.evaluate(SAMPLES, SCORERS, ledger=None),
    alpha=None,
)
def test_all():
    pass

@pytest.mark.evalstone(
    dataset=SAMPLES, scorers=SCORERS[:2], require=SCORERS[1:2], min={SCORERS[0]: 1}, each=True
)
def test_each(evalstone, sample):
    pass
""",
    )
    result.assert_outcomes(passed=2)
    twice = """
@pytest.mark.evalstone(
    dataset=[{"output": "x"}], require=["contains(expected=New York)", "contains(expected='New York')"]
)
def test_twice():
    pass
"""
    told = "*require names contains twice: as contains(expected=New York) and as contains(expected='New York')"
    run(project, twice).stdout.fnmatch_lines([told])


def test_an_error_fails_its_sample_and_a_skip_ends_the_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.7}, alpha=None)
def test_error(input):
    if input == "Oslo":
        raise KeyError("no such city")
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.7}, alpha=None)
def test_skip(input):
    pytest.skip("not today")
""",
    )
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*1 sample without a score*", "oslo: exact_match failed: the target failed: KeyError: 'no such city' (test_*"]
    )
    result.stdout.fnmatch_lines(["*exact_match  0.667*3        0       1*"])


def test_each_makes_a_test_of_every_sample_with_its_id(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", scorers=["exact_match"], min={"exact_match": 1}, each=True)
def test_capital(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", each=True)
def test_own_assertions(sample):
    assert agent(sample.input) == sample.reference
"""
    result = run(project, code, "-v")
    result.assert_outcomes(passed=6, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_capital*oslo* PASSED*",
            "*test_capital*lima* FAILED*",
            "exact_match is 0, and must be at least 1",
            "*answer: “Chile”",
            "*assert agent(sample.input) == sample.reference",
            "E*AssertionError: assert 'Chile' == 'Peru'",
        ]
    )
    run(project, code, "-k", "capital and oslo").assert_outcomes(passed=1, deselected=7)


def test_a_sample_that_lacks_what_its_test_takes_fails_and_a_conversation_needs_a_test_of_all(
    project: pytest.Pytester,
) -> None:
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset=[{"id": "a", "reference": "x"}], require=["exact_match"], each=True)
def test_lacking(input, context):
    return "x"
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the test takes input and context, which the sample lacks"])
    nothing = """
@pytest.mark.evalstone(dataset=[{"input": "a", "output": "x", "reference": "x"}], require=["exact_match"], each=True)
def test_nothing(input):
    pass
"""
    run(project, nothing).stdout.fnmatch_lines(["*test_nothing*None*"])
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset=[{"turns": ["Hello.", "Bye."]}], require=["exact_match"], each=True)
def test_turns(messages):
    return "x"
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*with each=True a test answers one turn, and samples have several*"])


def test_every_trial_of_each_sample_must_pass(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 1}, each=True)
def test_capital(input, trial):
    return agent(input) if trial == 1 else "Atlantis"
"""
    run(project, code, "-k", "oslo").assert_outcomes(passed=1, deselected=3)
    result = run(project, code, "-k", "oslo", "--evalstone-trials", "2")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(["trial 2 of 2: exact_match is 0, and must be at least 1"])


def test_trials_are_of_the_mark_else_of_the_option(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.1}, alpha=None)
def test_default(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.1}, alpha=None, trials=2)
def test_two(input):
    return agent(input)
"""
    project.makeini("[pytest]\nevalstone_trials = 3")
    result = run(project, code)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["test_default", "  exact_match*12        0       0*", "test_two", "  exact_match*8        0       0*"]
    )


def test_a_target_of_the_mark_answers(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def answering(*, input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", target=answering, min={"exact_match": 0.75}, alpha=None)
def test_target(): ...
""",
    )
    result.assert_outcomes(passed=1)


def test_paths_are_relative_to_the_test_file_and_options_to_the_current_folder(project: pytest.Pytester) -> None:
    folder = project.mkdir("sub")
    (project.path / "cases.jsonl").rename(folder / "cases.jsonl")
    replies = {"list_claims": "no claims"}
    (folder / "replies.json").write_text(json.dumps(replies), "utf-8")
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, alpha=None)
def test_all(input, evalstone):
    assert evalstone.judge.identity == "scripted"
    return agent(input)
"""
    (folder / "test_agent.py").write_text(AGENT + code, "utf-8")
    project.makeini("[pytest]\nevalstone_judge = scripted:sub/replies.json")
    project.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)
    os.chdir(folder)  # pytester comes back
    project.runpytest_inprocess(*ALONE, "--evalstone-judge", "scripted:replies.json").assert_outcomes(passed=1)
    assert sorted(path.name for path in project.path.glob("**/ledger.db")) == ["ledger.db"]


def test_outputs_of_the_dataset_have_no_trials_and_a_failed_target_has_no_answer(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
ROWS = [{"id": "a", "input": "?", "output": "recorded", "reference": "recorded"}, {"id": "b", "input": "!"}]
calls = []

@pytest.mark.evalstone(dataset=ROWS[:1], require=["exact_match"])
def test_outputs():
    calls.append(1)

@pytest.mark.evalstone(dataset=ROWS[:1], require=["exact_match"], each=True)
def test_each(sample):
    calls.append(2)

def test_called_once():
    assert calls == [1, 2]

@pytest.mark.evalstone(dataset=ROWS[:1], require=["exact_match"], each=True)
def test_answered(sample):
    return "another"

@pytest.mark.evalstone(dataset=ROWS, require=["exact_match"])
def test_failed(input):
    return 1 / 0 if input == "?" else "an answer"
""",
        "--evalstone-trials=2",
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*answer: “another”"])
    result.stdout.fnmatch_lines(["a*exact_match failed: the target failed: ZeroDivisionError*", "*question: “?”"])
    result.stdout.no_fnmatch_line("*answer: “recorded”")


BAD = {
    'min={"exact_match": 1}': "dataset is missing: *",
    '"cases.jsonl"': "name the arguments: *, not 'cases.jsonl'",
    'dataset="nothing.jsonl", require="exact_match"': "*nothing.jsonl does not exist*",
    'dataset=[], require="exact_match"': "the dataset has no samples",
    'dataset="cases.jsonl", scorer=["exact_match"]': "unknown argument 'scorer'; did you mean scorers?",
    'dataset="cases.jsonl", min={"exact_macth": 1}': "unknown scorer 'exact_macth'; did you mean exact_match?",
    'dataset="cases.jsonl", scorers=["exact_match"]': "a threshold is missing: *",
    'dataset="cases.jsonl", scorers=["exact_match"], require=["contains"]': "*no scores of 'contains'*",
    'dataset="cases.jsonl", min={"hallucination": 0.1}': "min of hallu*: lower is better for hallu*; use max=*",
    'dataset="cases.jsonl", max={"exact_match": 0.1}': "max of exact*: higher is better for exact*; use min=*",
    'dataset="cases.jsonl", min={"exact_match": 2}': "min of exact_match must be in *",
    'dataset="cases.jsonl", min={"exact_match": float("nan")}': "min of exact_match must be *, not nan",
    'dataset="cases.jsonl", pass_rate={"exact_match": (2, 0.9)}': "pass_rate of exact_match: the score must be *",
    'dataset="cases.jsonl", pass_rate={"exact_match": (1, 90)}': "pass_rate of exact_match: the share must be in *",
    'dataset="cases.jsonl", max_regression={"exact_match": 0.1}': "max_regression requires baseline=*",
    'dataset="cases.jsonl", max_difference={"exact_match": 0.1}, baseline="b", max_change=2': (
        "max_change of exact_match must be *, not 2"
    ),
    'dataset="cases.jsonl", max_difference={"exact_match": 0.1}, baseline="b", max_change={"exact_macth": 1}': (
        "max_change: unknown scorer 'exact_macth'; did you mean exact_match?"
    ),
    'dataset="cases.jsonl", require="exact_match", max_change=1': "max_change is for the difference from a baseline*",
    'dataset="cases.jsonl", require=5': "require must be a list of scorers, *, not 5",
    'dataset="cases.jsonl", min=0.8': "min must be a table from scorer to threshold, not 0.8",
    'dataset="cases.jsonl", require="exact_match", inconclusive="maybe"': "inconclusive must be 'report', 'pass' *",
    'dataset="cases.jsonl", require="exact_match", alpha=7': "alpha must be above 0 and below 0.5*",
    'dataset="cases.jsonl", require="exact_match", missing="best"': "missing must be 'worst', 'failed' or 'ignore'*",
    'dataset="cases.jsonl", require="exact_match", each=1': "each must be true or false, not 1 (int)",
    'dataset="cases.jsonl", require="exact_match", each=True, alpha=0.1': "alpha is about all samples*",
    'dataset="cases.jsonl", require="exact_match", trials=0': "trials must be a whole number from 1 to 10000, not 0 *",
    'dataset="cases.jsonl", require="exact_match", trials=2': "trials repeat what answers*",
    'dataset="cases.jsonl", require="exact_match", judge="opnai"': "judge: unknown judge 'opnai'*",
    'dataset="cases.jsonl", require="exact_match", target=3': "target: a target is a function or an address (*not 3",
    'dataset="cases.jsonl", require="exact_match", target="cmd:x", user=3': "user: a user is *, not 3",
    'dataset="cases.jsonl", require="exact_match", scorers=5': "scorers: a scorer is a name, *not int*",
    'dataset="cases.jsonl", scorers=["exact_match"] * 2, require="exact_match"': "*exact_match@1 is named twice",
    'dataset="cases.jsonl", min={5: 0.5}': "min: scorers are named by text, such as *, not 5",
    'dataset="cases.jsonl", require="exact_match", map=5': "map must be a table from sample field to *, not 5",
    'dataset="cases.jsonl", require="exact_match", map={"input": 5}': "map must be a table *it has 'input': 5",
    'dataset={5: 5}, require="exact_match"': "a dataset must be a path, *, not one object with 5; *",
}


def test_a_wrong_mark_is_an_error_of_the_collection_that_names_its_place(project: pytest.Pytester) -> None:
    for number, arguments in enumerate(BAD):
        marks = f"@pytest.mark.parametrize('x', [1])\n@pytest.mark.evalstone({arguments})\n"
        code = f"import pytest\n\n{marks}def test_bad(x): ..."
        project.makepyfile(**{f"test_{number:02}": code})
    result = project.runpytest_inprocess(*ALONE)
    result.assert_outcomes(errors=len(BAD))
    place = "*test_{:02}.py:4: @pytest.mark.evalstone of test_bad: {}"
    result.stdout.fnmatch_lines([place.format(number, problem) for number, problem in enumerate(BAD.values())])


def test_a_test_that_takes_the_input_beside_a_target_is_refused(project: pytest.Pytester) -> None:
    code = (
        '\n@pytest.mark.evalstone(dataset="cases.jsonl", require="exact_match", target=agent)\ndef test_bad(input): ...'
    )
    result = run(project, code)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the test takes input, so that it is the target itself; leave out target=*"])


def test_the_mark_on_a_method_of_a_test_case_fails_and_is_not_ignored(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import unittest

class Case(unittest.TestCase):
    @pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"])
    def test_it(self): ...
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*works on functions and on methods of classes that are no unittest.TestCase"])


ASYNC = """
import asyncio

at_once = []

async def slow(question):
    at_once.append(1)
    await asyncio.sleep(0.02)
    most.append(len(at_once))
    at_once.pop()
    return agent(question)

most = []
"""


def test_an_asynchronous_test_needs_no_plugin_and_answers_samples_at_once(project: pytest.Pytester) -> None:
    result = run(
        project,
        ASYNC
        + """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, alpha=None)
async def test_all(input, tmp_path):
    assert tmp_path.is_dir()
    return await slow(input)

@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"], each=True)
async def test_each(input):
    return await slow(input)

def test_at_once():
    assert max(most) == 4
""",
    )
    result.assert_outcomes(passed=5, failed=1)


@pytest.mark.skipif(importlib.util.find_spec("anyio") is None, reason="anyio is not installed")
def test_an_asynchronous_test_that_anyio_runs_is_left_to_it(project: pytest.Pytester) -> None:
    result = run(
        project,
        ASYNC
        + """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.fixture
async def loop(anyio_backend):
    return asyncio.get_running_loop()

@pytest.mark.anyio
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, alpha=None)
async def test_all(input):
    return await slow(input)

@pytest.mark.anyio
@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"], each=True)
async def test_each(input, loop):
    assert asyncio.get_running_loop() is loop
    return await slow(input)
""",
    )
    result.assert_outcomes(passed=4, failed=1)


def test_what_was_scored_before_an_interruption_is_kept_and_the_next_session_answers_anew(
    project: pytest.Pytester,
) -> None:
    code = """
from pathlib import Path

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.1}, alpha=None)
def test_interrupted(input):
    with Path("asked.txt").open("a") as file:
        print(input, file=file)
    if input == "Rome" and Path("asked.txt").read_text().count("Rome") == 1:
        raise KeyboardInterrupt
    return agent(input)
"""
    project.makepyfile(test_agent=AGENT + code)
    result = project.runpytest_inprocess(*ALONE, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert kept_records(project.path / ".evalstone" / "ledger.db") == 2
    result = run(project, code)
    result.assert_outcomes(passed=1)
    asked = project.path.joinpath("asked.txt").read_text().split()
    assert asked == ["Paris", "Oslo", "Rome", "Paris", "Oslo", "Rome", "Lima"]


def kept_records(path: Path) -> int:
    with Ledger(path) as ledger:
        return sum(len(ledger.records(run.id)) for run in ledger.runs())


@pytest.mark.parametrize("option", ["alpha=None", "each=True"])
def test_two_agents_of_one_parametrized_test_have_no_common_mean(project: pytest.Pytester, option: str) -> None:
    result = run(
        project,
        f"""
def other(question):
    return "Peru"

@pytest.mark.parametrize("answer", [agent, other])
@pytest.mark.evalstone(dataset="cases.jsonl", min={{"exact_match": 0.5}}, {option})
def test_agents(input, answer):
    return answer(input)
""",
    )
    lines = [line.split()[:2] for line in result.outlines]
    first = lines.index(["test_agents[agent]"])
    assert lines[first : first + 4] == [
        ["test_agents[agent]"],
        ["exact_match", "0.750"],
        ["test_agents[other]"],
        ["exact_match", "0.250"],
    ]


def test_a_limit_takes_the_first_samples(project: pytest.Pytester) -> None:
    """Lima, the last sample, is the one that the agent doesn't know."""
    result = run(
        project,
        """
@pytest.mark.evalstone(dataset="cases.jsonl", require="exact_match", limit=3)
def test_first(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", require="exact_match", each=True, limit=2)
def test_each(input):
    return agent(input)
""",
    )
    result.assert_outcomes(passed=3)

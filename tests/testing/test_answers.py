"""What a marked test returns and raises, in the words of who wrote a test and no target."""

from __future__ import annotations

import pytest

from tests.testing.test_marks import project, run

__all__ = ["project"]
pytest_plugins = ["pytester"]

MARKED = "@pytest.mark.evalstone(dataset='cases.jsonl', min={'exact_match': 0.5}, alpha=None"


@pytest.mark.parametrize("more", ["", ", each=True"])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_skip_of_unittest_skips_the_test_as_in_any_other(project: pytest.Pytester, kind: str, more: str) -> None:
    mark = f"{MARKED}{more})" if not more else "@pytest.mark.evalstone(dataset='cases.jsonl', each=True)"
    code = f"""
import unittest

{mark}
{kind} test_all(input):
    raise unittest.SkipTest("needs a network")
"""
    result = run(project, code, "-rs")
    result.assert_outcomes(skipped=4 if more else 1)
    result.stdout.fnmatch_lines(["SKIPPED*needs a network"])


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("agent(input)", "test_all returned None; return text or an Answer"),
        ("return {'cost': 0.5}", "test_all returned no answer: it has nothing to score"),
        ("return 7", "test_all returned what is no answer: *int*"),
        ("return {'replies': 7}", "test_all returned what is no answer: *"),
    ],
)
def test_what_is_no_answer_is_said_of_the_test_function(
    project: pytest.Pytester, kind: str, body: str, problem: str
) -> None:
    code = f"""
{MARKED})
{kind} test_all(input):
    {body}

{MARKED}, each=True)
{kind} test_each(input):
    {body}
"""
    code = code.replace(", alpha=None, each=True", ", each=True")
    result = run(project, code)
    result.assert_outcomes(failed=5)
    each = problem.replace("test_all", "test_each")
    result.stdout.fnmatch_lines([f"paris: exact_match failed: the target failed: {problem}", each])
    result.stdout.no_fnmatch_line("*the target returned*")
    result.stdout.no_fnmatch_line("*the target's*")


def test_with_trials_answers_are_counted_and_called_so(project: pytest.Pytester) -> None:
    code = """
@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, trials=2)
def test_mean(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", require=["exact_match"], trials=2)
def test_best(input):
    return agent(input)

@pytest.mark.evalstone(dataset="cases.jsonl", min={"exact_match": 0.75}, trials=2)
def test_error(input):
    return agent(input) if input != "Oslo" else 1 / 0
"""
    result = run(project, code)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "exact_match is 0.750, and 8 answers don't decide whether it is at least 0.75",
            "exact_match has the best score in 6 of 8 answers, and must have it in all",
            "exact_match: 2 answers without a score count as the worst *",
        ]
    )

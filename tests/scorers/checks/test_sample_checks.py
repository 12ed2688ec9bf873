"""The checks that a sample has of its own."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import Failed, Sample, Score, Skipped, score
from evalstone.scorers.checks.own import SampleChecks

A, B = {"name": "contains", "expected": "a"}, {"name": "contains", "expected": "b"}


def outcome(checks: Any, output: str | None = "a", **settings: Any) -> Score | Skipped | Failed:
    metadata = {} if checks is None else {"checks": checks}
    return score(SampleChecks(**settings), Sample(input="q", output=output, metadata=metadata)).outcome


def value(checks: Any, output: str = "a", **settings: Any) -> float:
    result = outcome(checks, output, **settings)
    assert isinstance(result, Score), result
    return result.value


@pytest.mark.parametrize(
    ("checks", "passes", "share"),
    [
        ([A], 1, 1),
        ([A, B], 0, 0.5),
        ([{**A, "weight": 3}, B], 0, 0.75),
        ([A, {**B, "weight": 0}], 1, 1),
        ([{**B, "invert": True}], 1, 1),
        ({"checks": [A, B], "at_least": 0.5}, 1, 0.5),
        ([A, {"checks": [A, B], "at_least": 0.5, "weight": 2}], 1, (1 + 2 * 0.5) / 3),
        ([{"checks": [A, B]}], 0, 0.5),
        ([{"name": "levenshtein", "at_least": 0.0}], 1, 0),
    ],
)
def test_the_score_is_whether_all_pass_or_their_weighted_share(checks: Any, passes: float, share: float):
    sample = Sample(input="q", output="a", reference="xyz", metadata={"checks": checks})
    for whole, expected in ((False, passes), (True, share)):
        result = score(SampleChecks(share=whole), sample).outcome
        assert isinstance(result, Score)
        assert result.value == pytest.approx(expected)


def test_a_label_takes_its_checks_alone_in_groups_too():
    checks = [{**A, "label": "x"}, B, {"checks": [{**B, "label": "x", "weight": 0}, A]}]
    assert value(checks, label="x") == 0
    assert value(checks, label="x", share=True) == 0.5
    assert value(checks, "ab", label="x") == 1
    missing = outcome(checks, label="y")
    assert isinstance(missing, Skipped)
    assert missing.reason == "the sample has no check with the label y"


def test_the_reason_names_what_fails_and_the_evidence_all_checks():
    result = outcome([A, {"checks": [B], "label": "letters"}])
    assert isinstance(result, Score)
    assert result.reason == "Failed: contains(expected='b'): The answer does not contain “b”."
    assert [each["passed"] for each in result.evidence] == [True, False]


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        (None, "sample_checks needs checks in metadata"),
        ([{"name": "latency", "limit": 1}], "checks[0]: latency needs seconds of a target's call"),
        ([{**A, "weight": 0}], "checks has no check that counts"),
    ],
)
def test_it_is_undefined_without_checks_and_if_a_check_is(checks: Any, reason: str):
    result = outcome(checks)
    assert isinstance(result, Skipped)
    assert result.reason == reason


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        ("a", "checks must be a list of checks"),
        ([3], "checks[0] must be a table with the name of a scorer"),
        ([{"name": "contians"}], "unknown check 'contians'; did you mean contains"),
        ([{"name": "os:system"}], "unknown check 'os:system'; known: bleu, choice, "),
        ([{"name": "sample_checks"}], "unknown check 'sample_checks'"),
        ([{"name": "faithfulness"}], "unknown check 'faithfulness'"),
        ([{**A, "explain": True}], "contains asks a judge"),
        ([{**A, "weight": -1}], "checks[0].weight must be a number, 0 or more"),
        ([{**A, "at_least": "x"}], "checks[0].at_least must be a number"),
        ([{**A, "invert": 1}], "checks[0].invert must be true or false"),
        ([{**A, "label": 1}], "checks[0].label must be text"),
        ([{"checks": [A], "threshold": 1}], "unknown setting of a group 'threshold'"),
        ([{"name": "regex", "pattern": "("}], "checks[0]: "),
    ],
)
def test_checks_that_are_none_fail_with_their_place(checks: Any, problem: str):
    result = outcome(checks)
    assert isinstance(result, Failed)
    assert problem in result.error


def test_what_a_check_can_be_is_said_once():
    for name in ("os:system", "contians"):
        result = outcome([{"name": name}])
        assert isinstance(result, Failed)
        assert result.error.count("chrf") == (name == "os:system")


def test_groups_in_groups_have_an_end():
    nested: Any = [A]
    for _ in range(30):
        nested = [{"checks": nested}]
    result = outcome(nested)
    assert isinstance(result, Failed)
    assert "nested too deeply" in result.error


def test_a_blank_answer_is_checked():
    assert value([{**A, "invert": True}], "") == 1
    missing = outcome([A], None)
    assert isinstance(missing, Skipped)
    assert missing.reason == "checks[0]: contains needs output"

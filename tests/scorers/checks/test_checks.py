"""What holds for every quick check."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from evalstone import checks, evaluate
from evalstone.errors import ConfigError
from evalstone.scorers import SCORERS, parse_scorers
from evalstone.scorers.base import summary
from evalstone.scorers.checks import Check, TextCheck
from evalstone.types import Message, Sample, Score, Skipped, ToolCall
from tests.fakes import outcome_of
from tests.refusals import refused

MADE: Mapping[str, tuple[Check, str]] = {
    "tool_called": (checks.tool_called("search", at_least=2), "tool_called(tool='search', at_least=2)"),
    "tool_not_called": (checks.tool_not_called("delete"), "tool_not_called(tool='delete')"),
    "exact_match": (checks.exact_match("Paris", ignore_case=False), "exact_match(expected='Paris', ignore_case=False)"),
    "not_contains": (checks.not_contains("sorry"), "not_contains(expected='sorry')"),
    "contains": (checks.contains("Paris"), "contains(expected='Paris')"),
    "regex": (checks.regex(r"\d+", exact=True), r"regex(pattern='\\d+', exact=True)"),
    "max_tool_calls": (checks.max_tool_calls(3), "max_tool_calls(limit=3)"),
    "no_tool_errors": (checks.no_tool_errors(), "no-tool-errors"),
    "similarity": (checks.similarity("Paris", threshold=0.5), "similarity(expected='Paris', threshold=0.5)"),
    "tool_order": (checks.tool_order(["a", "b"]), "tool_order(tools=['a', 'b'])"),
    "no_tool_calls": (checks.no_tool_calls(), "no_tool_calls()"),
    "latency": (checks.latency(2.5), "latency(limit=2.5)"),
    "cost": (checks.cost(0.05), "cost(limit=0.05)"),
    "tokens": (checks.tokens(4000), "tokens(limit=4000)"),
    "numeric_match": (checks.numeric_match(42, tolerance=0.5), "numeric_match(expected=42, tolerance=0.5)"),
    "choice": (checks.choice("B", letters="ABCD"), "choice(expected=B, letters=ABCD)"),
    "json_valid": (checks.json_valid(fenced=True), "json_valid(fenced=True)"),
    "json_schema": (checks.json_schema({"type": "object"}), "json_schema(schema={type: object})"),
}
CHECKS = {
    name: SCORERS[name]
    for name, path in SCORERS.paths.items()
    if path.startswith("checks.") and name != "sample_checks"
}
"""All but the one that applies others."""
CALLED: dict[str, Any] = {
    "messages": [Message(role="assistant", content="Oslo")],
    "trajectory": {"steps": [{"step_type": "tool_call", "name": "search", "data": {"tool_result": "Oslo"}}]},
    "turns": [{"input": "Where?", "output": "Oslo"}],
}
"""What stands in for an answer, or for messages."""
every = pytest.mark.parametrize(("check", "spelt"), MADE.values(), ids=MADE)


def test_all_checks_are_scorers_by_name_and_tried_here():
    assert set(MADE) == set(CHECKS)
    assert all(kind.name == name for name, kind in CHECKS.items())


@every
def test_a_check_is_written_on_the_command_line_as_it_is_in_code(check: Check, spelt: str):
    assert parse_scorers(spelt) == (check,)


@every
def test_a_check_is_a_frozen_value_that_can_be_pickled(check: Check, spelt: str):
    assert pickle.loads(pickle.dumps(check)) == check
    assert hash(check) == hash(parse_scorers(spelt)[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(check, dataclasses.fields(check)[-1].name, 1)


@every
def test_a_check_says_what_it_is_and_asks_nothing(check: Check, spelt: str):
    assert summary(type(check)).startswith(("Whether ", "How much "))
    assert check.signature.startswith(check.name)
    assert check.questions == ()
    assert check.interpretation
    assert check.advice


@every
def test_a_sample_without_what_a_check_needs_is_skipped(check: Check, spelt: str):
    (need,) = check.needs
    assert outcome_of(check, Sample(input="x"), []) == Skipped(f"{check.name} needs {need.text}")
    for name in need.alternatives:
        sample = Sample(**{name: CALLED[name]})
        assert not check.lacks(sample)
        assert not isinstance(outcome_of(check, sample, []), Skipped)


@every
def test_a_check_gives_zero_or_its_scale(check: Check, spelt: str):
    scaled = dataclasses.replace(check, scale=10)
    call = ToolCall(name="search")
    for output in ("Paris", "12", ""):
        messages = [Message(role="assistant", content=output, tool_calls=[call])]
        of_call = {"seconds": 1, "cost": 1, "usage": {"input": 1, "output": 1}}
        sample = Sample(output=output, messages=messages, metadata={"target": of_call})
        outcome = outcome_of(scaled, sample, [])
        assert isinstance(outcome, Score)
        assert outcome.value in (0, 10)
        assert outcome.reason.endswith(".")


def test_checks_that_differ_in_a_parameter_have_different_signatures():
    assert checks.contains("a").signature == "contains(expected=a)@1"
    assert checks.contains("a").signature != checks.contains("b").signature


def test_a_check_without_its_parameter_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"needs expected: .*\(expected=…\)"):
        parse_scorers("not_contains")


@pytest.mark.parametrize("check", [checks.contains, checks.exact_match, checks.regex, checks.similarity])
def test_without_a_constant_a_check_compares_with_each_samples_reference(check: type[TextCheck]):
    scorer = check()
    assert scorer.required_fields == ("output", "reference")
    assert scorer.signature == f"{scorer.name}@1"
    assert outcome_of(scorer, Sample(output="Oslo"), []) == Skipped(f"{scorer.name} needs {scorer.needs[1].text}")
    assert isinstance(outcome_of(scorer, Sample(output="Oslo", reference=" "), []), Skipped)
    for reference, value in (("Oslo", 1), ("Jukk", 0)):
        outcome = outcome_of(scorer, Sample(output="Oslo", reference=reference), [])
        assert isinstance(outcome, Score)
        assert outcome.value == value


@pytest.mark.parametrize("name", ["exact_match", "contains", "regex", "similarity"])
def test_by_its_name_alone_a_check_compares_with_each_samples_reference(name: str):
    samples = [{"output": "Oslo", "reference": "Oslo"}, {"output": "Oslo", "reference": "Jukk"}]
    for spec in (name, {"name": name}, getattr(checks, name), getattr(checks, name)()):
        run = evaluate(samples, spec, ledger=None)
        assert [record.value for record in run] == [1, 0]


def test_a_run_takes_checks_beside_each_other():
    samples = [{"output": "Paris."}, {"output": "London."}]
    run = evaluate(samples, [checks.contains("paris"), "not_contains(expected='london')"], ledger=None)
    assert [run["contains"].mean, run["not_contains"].mean] == [0.5, 0.5]


def test_parameters_of_the_wrong_kind_are_refused():
    wrong: list[tuple[str, dict[str, Any], str, str]] = [
        ("contains", {"expected": 3}, "expected", "text"),
        ("exact_match", {"expected": "a", "ignore_case": "no"}, "ignore_case", "true or false"),
        *(("similarity", {"threshold": n}, "threshold", "a number from 0 to 1") for n in (2, True, math.nan)),
        ("regex", {"pattern": 3}, "pattern", "text"),
        ("tool_called", {"tool": None}, "tool", "text that is not blank"),
        ("tool_called", {"tool": "a", "at_least": -1}, "at_least", "a whole number of 0 or more"),
        ("tool_not_called", {"tool": ""}, "tool", "text that is not blank"),
        *(("max_tool_calls", {"limit": n}, "limit", "a whole number of 0 or more") for n in (True, 1.5)),
        *(("tool_order", {"tools": t}, "tools", "a list of texts that are not blank") for t in ("search", [1], None)),
    ]
    for kind, parameters, field, allowed in wrong:
        with refused(field, allowed):
            CHECKS[kind](**parameters)


def test_a_broken_pattern_is_refused():
    with pytest.raises(ConfigError, match=r"^regex: '\('"):
        checks.regex("(")

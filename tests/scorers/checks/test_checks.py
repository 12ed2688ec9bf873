"""What holds for every quick check."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from evalstone import checks, evaluate
from evalstone.errors import ConfigError
from evalstone.scorers import SCORERS, parse_scorers
from evalstone.scorers.base import summary
from evalstone.scorers.checks import CHECKS, Check
from evalstone.types import Message, Sample, Score, Skipped, ToolCall
from tests.fakes import outcome_of

MADE: Mapping[str, tuple[Check, str]] = {
    "called_tool": (checks.called_tool("search", times=2), "called_tool(tool='search', times=2)"),
    "did_not_call": (checks.did_not_call("delete"), "did_not_call(tool='delete')"),
    "equals": (checks.equals("Paris", ignore_case=False), "equals(expected='Paris', ignore_case=False)"),
    "excludes": (checks.excludes("sorry"), "excludes(expected='sorry')"),
    "includes": (checks.includes("Paris"), "includes(expected='Paris')"),
    "matches": (checks.matches(r"\d+", exact=True), r"matches(pattern='\\d+', exact=True)"),
    "max_tool_calls": (checks.max_tool_calls(3), "max_tool_calls(limit=3)"),
    "no_tool_errors": (checks.no_tool_errors(), "no-tool-errors"),
    "similarity": (checks.similarity("Paris", threshold=0.5), "similarity(expected='Paris', threshold=0.5)"),
    "tool_order": (checks.tool_order(["a", "b"]), "tool_order(tools=['a', 'b'])"),
    "used_no_tools": (checks.used_no_tools(), "used_no_tools()"),
}
every = pytest.mark.parametrize(("check", "spelt"), MADE.values(), ids=MADE)


def test_all_checks_are_scorers_by_name_and_tried_here():
    assert set(MADE) == set(CHECKS) <= set(SCORERS)
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
    assert check.required_fields in (("output",), ("messages",))
    assert outcome_of(check, Sample(input="x"), []) == Skipped(f"{check.name} needs {check.required_fields[0]}")


@every
def test_a_check_gives_zero_or_its_scale(check: Check, spelt: str):
    scaled = dataclasses.replace(check, scale=10)
    call = ToolCall(name="search")
    for output in ("Paris", "12", ""):
        sample = Sample(output=output, messages=[Message(role="assistant", content=output, tool_calls=[call])])
        outcome = outcome_of(scaled, sample, [])
        assert isinstance(outcome, Score)
        assert outcome.value in (0, 10)
        assert outcome.reason.endswith(".")


def test_checks_that_differ_in_a_parameter_have_different_signatures():
    assert checks.includes("a").signature == "includes(expected=a)@1"
    assert checks.includes("a").signature != checks.includes("b").signature


def test_a_check_without_its_parameter_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"includes needs expected: includes\(expected=…\)"):
        parse_scorers("includes")


def test_a_run_takes_checks_beside_each_other():
    samples = [{"output": "Paris."}, {"output": "London."}]
    run = evaluate(samples, [checks.includes("paris"), "excludes(expected='london')"], ledger=None)
    assert [run["includes"].mean, run["excludes"].mean] == [0.5, 0.5]


def refused(kind: str, **parameters: Any) -> str:
    with pytest.raises(ConfigError) as error:
        CHECKS[kind](**parameters)
    return str(error.value)


def test_parameters_of_the_wrong_kind_are_refused():
    assert refused("includes", expected=3) == "includes: expected must be text, not 3"
    assert refused("equals", expected="a", ignore_case="no") == "equals: ignore_case must be True or False, not 'no'"
    assert refused("similarity", expected="a", threshold=2) == "similarity: threshold must be a number in [0, 1], not 2"
    assert "not True" in refused("similarity", expected="a", threshold=True)
    assert "not nan" in refused("similarity", expected="a", threshold=float("nan"))
    assert refused("matches", pattern="(").startswith("matches: '(' is no regular expression: ")
    assert refused("matches", pattern=None) == "matches: pattern must be text, not None"
    assert refused("called_tool", tool=None) == "called_tool: tool must be text, not None"
    assert refused("called_tool", tool="a", times=-1) == "called_tool: times must be a whole number from 0, not -1"
    assert refused("did_not_call", tool=["a"]) == "did_not_call: tool must be text, not ['a']"
    assert refused("max_tool_calls", limit=True) == "max_tool_calls: limit must be a whole number from 0, not True"
    assert refused("max_tool_calls", limit=1.5) == "max_tool_calls: limit must be a whole number from 0, not 1.5"
    assert refused("tool_order", tools="search") == "tool_order: tools must be a list of names, not 'search'"
    assert refused("tool_order", tools=[1]) == "tool_order: tools must be a list of names, not [1]"
    assert refused("tool_order", tools=None) == "tool_order: tools must be a list of names, not None"

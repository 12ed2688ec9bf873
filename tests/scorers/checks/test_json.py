"""JSON in the answer, and JSON schemas."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import checks
from evalstone.errors import ConfigError, MissingDependency
from evalstone.scorers.checks import json as module
from evalstone.scorers.checks.base import Check
from evalstone.types import Failed, Sample, Score
from tests.fakes import outcome_of, score_of

PRICED = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}}},
}


def value(check: Check, output: str) -> float:
    return score_of(check, Sample(output=output), []).value


@pytest.mark.parametrize(
    "output",
    [
        "{}",
        " [1, 2]\n",
        '"text"',
        "null",
        "1e999",
        "-0",
        '{"a": 1, "a": 2}',
        '"\\ud800"',
        "9" * 5000,
        "[" * 400 + "]" * 400,
    ],
)
def test_any_json_value_is_json(output: str):
    assert value(checks.json_valid(), output) == 1


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", "Expecting value (line 1, column 1)"),
        ("NaN", "NaN is no JSON"),
        ("[Infinity]", "Infinity is no JSON"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes (line 1, column 2)"),
        ("{} {}", "Extra data (line 1, column 4)"),
        ('{"a": "\n"}', "Invalid control character at (line 1, column 8)"),
        ("Here: {}", "Expecting value (line 1, column 1)"),
        ("\ufeff{}", ""),
        ("[1,]", ""),
        ("01", ""),
        ("// no\n{}", ""),
        ("```json\n{}\n```", ""),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_anything_else_is_not(output: str, why: str):
    score = score_of(checks.json_valid(), Sample(output=output), [])
    assert score.value == 0
    assert why in score.reason


def test_a_single_code_fence_around_all_of_it_may_be_accepted():
    fenced = checks.json_valid(fenced=True)
    for output in ("```json\n{}\n```", "  ```\n[1]\n``` \n", "{}", "```json\r\n{\n\n}\n  ```"):
        assert value(fenced, output) == 1
    for output in ("Here:\n```json\n{}\n```", "```json\n{}\n```\n```json\n{}\n```", "```\n```", "``` {} ```"):
        assert value(fenced, output) == 0


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists))
def test_what_python_writes_is_json(data: Any):
    assert value(checks.json_valid(), json.dumps(data)) == 1


@pytest.mark.slow
def test_an_unclosed_fence_takes_linear_time():
    for output in ("```\n" + " " * 500_000, "```\n" + "\n" * 500_000, "`" * 500_000, " " * 500_000 + "```"):
        assert value(checks.json_valid(fenced=True), output) == 0


def test_a_schema_allows_or_names_the_place():
    check = checks.json_schema(PRICED)
    assert value(check, '{"items": [{"price": 0}, {}]}') == 1
    score = score_of(check, Sample(output='{"items": [{"price": 1}, {"price": -1}], "x": 1}'), [])
    assert score.value == 0
    assert {error.path for error in score.evidence} == {"$", "$.items[1].price"}
    assert any(error.message.startswith("-1 is less") for error in score.evidence)
    assert value(check, "not json") == 0
    assert value(check, "") == 0


def test_the_errors_in_the_evidence_are_limited():
    score = score_of(checks.json_schema({"items": {"type": "string"}}), Sample(output=json.dumps([1] * 100)), [])
    assert len(score.evidence) == module.MOST_ERRORS


def test_the_draft_is_the_one_that_the_schema_names():
    tuples = {"items": [{"type": "string"}]}
    old = checks.json_schema({"$schema": "http://json-schema.org/draft-07/schema#", **tuples})
    assert (value(old, '["a", 1]'), value(old, "[1]")) == (1, 0)
    with pytest.raises(ConfigError, match=r"schema, at \$\.items"):
        checks.json_schema(tuples)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "strin"}, r"schema is not a JSON schema, at \$\.type"),
        ({"minimum": "1"}, "schema is not a JSON schema"),
        ({"pattern": "("}, "schema is not a JSON schema"),
        ({"const": float("nan")}, "schema must have JSON values only"),
        ("object", "schema must be a JSON schema as a dictionary, not 'object'"),
    ],
)
def test_a_wrong_schema_is_refused_when_the_check_is_made(schema: Any, told: str):
    with pytest.raises(ConfigError, match=f"json_schema: {told}"):
        checks.json_schema(schema)


def test_nothing_is_fetched_for_a_reference(monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for ref in ("http://127.0.0.1:9/schema.json", "other.json", "#/$defs/nowhere"):
        outcome = outcome_of(checks.json_schema({"$ref": ref}), Sample(output="1"), [])
        assert isinstance(outcome, Failed)
    draft = checks.json_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert (value(draft, '{"type": "object"}'), value(draft, '{"type": 3}')) == (1, 0)


def test_a_pattern_that_takes_too_long_fails_the_sample(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evalstone._core.matching.TIME_LIMIT", 0.5)
    check = checks.json_schema({"pattern": "^(a+)+$"})
    assert value(check, '"aaa"') == 1
    outcome = outcome_of(check, Sample(output=json.dumps("a" * 40 + "b")), [])
    assert isinstance(outcome, Failed)
    assert "longer than" in outcome.error


def test_a_number_of_any_length_can_be_checked():
    check = checks.json_schema({"type": "integer", "maximum": 10})
    assert value(check, "9" * 5000) == 0
    assert value(check, "1e999") == 0


def test_without_jsonschema_the_error_is_the_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    module._validator.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(MissingDependency, match=r"jsonschema is not installed.*\[metrics\]"):
        checks.json_schema({"type": "object", "title": "nowhere else"})


def test_schemas_that_differ_have_different_signatures():
    signatures = {checks.json_schema(schema).signature for schema in ({}, {"type": "object"}, {"type": "array"})}
    assert len(signatures) == 3


@given(st.text(max_size=30))
def test_any_answer_has_a_score(output: str):
    for check in (checks.json_valid(fenced=True), checks.json_schema(PRICED)):
        outcome = outcome_of(check, Sample(output=output), [])
        assert isinstance(outcome, Score)
        assert outcome.value in (0, 1)

"""JSON schemas as the type of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone import Pipeline, ScriptedJudge, score
from evalstone.errors import ConfigError, ReplyError
from evalstone.questions.custom import AnswerForm
from evalstone.scorers import PromptStep

PROMISES: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "promises": {"type": "array", "items": {"$ref": "#/$defs/promise"}, "description": "All of them."},
        "tone": {"enum": ["kind", "rude"]},
        "note": {"type": ["string", "null"]},
    },
    "required": ["promises", "tone"],
    "$defs": {
        "promise": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "kept": {"type": "boolean"},
                "share": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "required": ["text", "kept", "share"],
            "additionalProperties": False,
        }
    },
}
REPLY = {"promises": [{"text": "a", "kept": True, "share": 0.5}], "tone": "kind", "note": None}


def test_a_step_s_answer_may_be_described_by_a_json_schema() -> None:
    seen: list[Any] = []

    def kept(so_far: Any) -> bool:
        seen.append(so_far.analyze)
        return all(promise["kept"] for promise in so_far.analyze["promises"])

    pipeline = Pipeline(analyze=PromptStep("{{output}}", PROMISES), score=kept, name="promises")
    judge = ScriptedJudge([json.dumps({**REPLY, "tone": "loud"}), json.dumps(REPLY)])
    record = score(pipeline, output="Your money, today.", judge=judge)
    assert (record.value, seen) == (1, [REPLY])
    assert "tone" in judge.asked[0].render()[0]
    other = Pipeline(analyze=PromptStep("{{output}}", {"type": "string"}), score=kept, name="promises")
    assert pipeline.signature != other.signature


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string"}, ["a", ""], [1, None]),
        ({"type": "integer", "minimum": 1}, [1, 7], [0, "a", 1.5]),
        ({"type": "number", "exclusiveMaximum": 2}, [1.5], [2]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[], [1, 2]], [[1, 2, 3], ["a"]]),
        ({"enum": ["a", "b"]}, ["a"], ["c"]),
        ({"const": 5}, [5], [6]),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, [True, None], ["x"]),
        ({"type": ["integer", "null"]}, [3, None], ["x"]),
    ],
)
def test_answers_are_checked(schema: Any, good: list[Any], bad: list[Any]) -> None:
    form = AnswerForm(schema)
    for value in good:
        assert form.from_json({"reason": "r", "answer": value}) == value
    for value in bad:
        with pytest.raises(ReplyError):
            form.from_json({"reason": "r", "answer": value})


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ({"tone": 3}, "tone"),
        ({"promises": [{"text": "a", "kept": True, "share": 2}]}, "promises.0.share"),
        ({"promises": 1}, "promises"),
    ],
)
def test_objects_are_checked_and_the_place_is_named(change: Any, lacks: str) -> None:
    form = AnswerForm(PROMISES)
    assert form.from_json(REPLY) == REPLY
    with pytest.raises(ReplyError, match=lacks):
        form.from_json({**REPLY, **change})


def test_the_judge_gets_a_strict_schema() -> None:
    assert AnswerForm(PROMISES) == AnswerForm(json.loads(json.dumps(PROMISES)))
    schema: Any = AnswerForm(PROMISES).json_schema
    assert (schema["required"], schema["additionalProperties"]) == (["promises", "tone", "note"], False)
    assert schema["properties"]["promises"]["description"] == "All of them."


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({}, "the JSON schema of an answer: type must be one of"),
        ({"type": "text"}, "type must be one of"),
        ({"type": "string", "pattern": "a"}, "the type of an answer can't have this: unknown keyword 'pattern'"),
        ({"type": "object"}, "an object needs properties and can't have others"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "^a: an array needs items"),
        ({"type": "object", "properties": {"a": 5}}, "^a: must be a JSON schema as an object, not 5"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
            "required must be a list of prop",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
            "can't have others",
        ),
        ({"$ref": "#/$defs/x"}, "is not a part of the schema; nothing is fetched"),
        ({"$ref": "https://x.example/s.json"}, "is not a part of the schema; nothing is fetched"),
        ({"type": "array", "items": {"$ref": "#/items"}}, "contains itself"),
        ({"enum": []}, "enum must be a list"),
        ({"anyOf": []}, "anyOf must be a list of schemas"),
        ({"type": {1}}, "a JSON schema must be JSON data"),
    ],
)
def test_what_has_no_fixed_shape_is_refused_by_name(schema: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        PromptStep("{{output}}", schema)

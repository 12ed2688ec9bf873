from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstone._core.json import content_hash, to_jsonable
from evalstone.errors import ConfigError, OutcomeError
from evalstone.types import (
    SAMPLE_FIELDS,
    Failed,
    JudgeCall,
    Message,
    Outcome,
    Record,
    Sample,
    Score,
    Skipped,
    ToolCall,
    Usage,
    passages,
    total_cost,
)
from tests.fakes import python

FULL = Sample(
    input="When was Ada born?",
    output="In 1815.",
    context=["Ada Lovelace, 1815-1852."],
    reference="1815",
    messages=[Message(role="user", content="When?", tool_calls=[ToolCall(name="search", arguments={"q": "Ada"})])],
    instructions="Be short.",
    metadata={"source": "wiki"},
)
OTHER: dict[str, Any] = {
    "input": "Where?",
    "output": "In London.",
    "context": ["Ada Lovelace, 1815-1852.", ""],
    "reference": "",
    "messages": [],
    "instructions": None,
    "metadata": {"source": "wiki", "page": 1},
    "group": "g",
    "weight": 2,
    "trajectory": [{"step_type": "tool_call", "name": "search"}],
    "expected_trajectory": [{"name": "search"}],
    "state": {"rows": [1]},
    "turns": ["Hi"],
}
STEP = JudgeCall(question="list_claims", fingerprint="f", judge="j", answer=["a"], usage=Usage(1, 2, 3, 4), cost=0.25)

json_data: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_a_sample_without_an_id_gets_the_hash_of_its_content():
    same = dataclasses.replace(FULL, id="")
    assert FULL.id == same.id == FULL.default_id == f"hash-{FULL.content_hash[:16]}"
    assert same == FULL
    assert hash(FULL) == hash(same)


def test_a_samples_own_id_is_kept_and_is_no_part_of_its_content():
    mine = dataclasses.replace(FULL, id="case 7")
    assert mine.id == "case 7"
    assert mine.content_hash == FULL.content_hash
    assert mine != FULL


def test_two_samples_with_one_id_and_different_content_differ():
    assert Sample(id="a", input="x") != Sample(id="a", input="y")


@pytest.mark.parametrize("name", SAMPLE_FIELDS)
def test_the_content_hash_changes_with_every_field(name: str):
    assert dataclasses.replace(FULL, **{name: OTHER[name]}).content_hash != FULL.content_hash


def test_the_content_hash_tells_an_absent_field_from_an_empty_one():
    hashes = {Sample().content_hash, Sample(output="").content_hash, Sample(context=[]).content_hash}
    hashes |= {Sample(context="").content_hash, Sample(input="").content_hash}
    assert len(hashes) == 5


def test_the_content_hash_tells_passages_apart_that_join_to_the_same_text():
    assert Sample(context=["a", "b"]).content_hash != Sample(context=["ab"]).content_hash


def test_the_content_hash_is_the_same_in_every_process():
    code = (
        "from evalstone.types import *\n"
        "print(Sample(input='\\ud800 é', metadata={'tags': {'x', 'y', 'z', 'w'}, 'b': 1, 'a': 2}).content_hash)"
    )
    hashes = {python(code, PYTHONHASHSEED=str(seed)) for seed in (1, 2, 3)}
    assert len(hashes) == 1


def test_a_sample_survives_pickling():
    copy = pickle.loads(pickle.dumps(FULL))
    assert copy == FULL
    assert copy.messages[0].tool_calls[0].arguments == {"q": "Ada"}


def test_a_sample_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.input = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_one_string_of_context_is_one_passage():
    assert Sample(context="one passage").context == ("one passage",)


def test_an_empty_list_of_context_is_present_and_none_is_absent():
    assert Sample(context=[]).context == ()
    assert Sample().context is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"input": 5}, "input must be text, not int: 5"),
        ({"output": ["a"]}, "output must be text, not list"),
        ({"reference": b"x"}, "reference must be text, not bytes"),
        ({"instructions": 1.5}, "instructions must be text"),
        ({"id": 7}, "id must be text, not int: 7"),
        ({"context": 5}, "context must be a list of passages, not int"),
        ({"context": ["a", None]}, "context passage 2 must be text, not NoneType"),
        ({"context": {"a": "b"}}, "context must be a list of passages, not dict"),
        ({"context": (1,)}, "context must be a list of passages; passage 1 must be text"),
        ({"messages": None}, "messages must be a list of Message values, not NoneType"),
        ({"messages": "hello"}, "messages must be a list of Message values, not str"),
        ({"messages": [{"role": "user"}]}, "messages must be Message values, not dict"),
        ({"metadata": None}, "metadata must be a mapping, not NoneType"),
        ({"metadata": ["a"]}, "metadata must be a mapping, not list"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_and_named(fields: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        Sample(**fields)


def test_a_long_wrong_value_is_told_in_short():
    with pytest.raises(ConfigError) as raised:
        Sample(input=["x" * 10_000])  # pyright: ignore[reportArgumentType]
    assert len(str(raised.value)) < 150


def test_a_message_with_an_unknown_role_is_refused():
    with pytest.raises(ConfigError, match=r"system, .*tool, .*'bot'"):
        Message(role="bot")  # pyright: ignore[reportArgumentType]


def test_a_message_whose_content_is_no_text_is_refused():
    with pytest.raises(ConfigError, match=r"content .* NoneType"):
        Message(role="assistant", content=None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [None, (), ("a", "b")])
def test_passages_of_passages_are_the_same(value: tuple[str, ...] | None):
    assert passages(value) == value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, -0.01, 1.01, None, "0.5", 10**400], ids=lambda v: repr(v)[:10]
)
def test_a_score_that_is_no_number_in_its_range_is_refused(value: Any):
    with pytest.raises(OutcomeError):
        Score(value, scale=1)
    if value != 1.01:  # without a scale, any number from 0 may be in the range
        with pytest.raises(OutcomeError):
            Score(value)


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: Score("0.5"), "a score"),  # type: ignore[arg-type]
        (lambda: Score(0.5, 10), "a reason"),  # type: ignore[arg-type]
        (lambda: Score(0.5, scale="10"), "a score's scale"),  # type: ignore[arg-type]
        (lambda: Score(0.5, scale=True), "a score's scale"),
        (lambda: Skipped(None), "a reason"),  # type: ignore[arg-type]
        (lambda: Failed(ValueError("no")), "an error"),  # type: ignore[arg-type]
    ],
)
def test_an_outcome_of_values_of_the_wrong_type_names_the_field(made: Callable[[], object], field: str):
    with pytest.raises(OutcomeError) as error:
        made()
    assert (error.value.kind, error.value.field) == ("invalid", field)


def test_a_score_has_its_reason_second():
    assert Score(0.5, "because") == Score(value=0.5, reason="because", scale=None, evidence=())


@pytest.mark.parametrize("number", [1, np.float64(1), np.int64(1), np.float32(1)])
def test_a_score_and_its_scale_are_floats_whatever_number_they_are_made_of(number: Any) -> None:
    score = Score(number, scale=number)
    assert (type(score.value), score.value, type(score.scale), score.scale) == (float, 1.0, float, 1.0)
    record = Record(sample_id="s", scorer="f", signature="f@1", outcome=Score(number))
    assert (type(record.value), json.dumps(record.to_dict()["value"])) == (float, "1.0")


def test_every_outcome_and_every_record_has_a_reason_on_one_line():
    outcomes = (Score(1.0, "right"), Skipped("no context"), Failed("KeyError: 'x'\n  in line 3"))
    records = [Record(sample_id="s", scorer="f", signature="f@1", outcome=outcome) for outcome in outcomes]
    assert [record.reason for record in records] == ["right", "no context", "KeyError: 'x' in line 3"]
    assert [record.outcome.reason for record in records] == [record.reason for record in records]


def test_a_record_has_the_evidence_of_its_score():
    outcomes = (Score(1, evidence={"a": 1}), Score(1), Skipped("no context"), Failed("no answer"))
    records = [Record(sample_id="a", scorer="s", signature="s", outcome=outcome) for outcome in outcomes]
    assert [record.evidence for record in records] == [{"a": 1}, (), None, None]


def test_a_score_in_a_record_has_a_scale():
    record = Record(sample_id="s", scorer="f", signature="f@1", outcome=Score(0.5, "half"))
    assert record.outcome == Score(0.5, "half", scale=1.0)
    with pytest.raises(OutcomeError):
        Record(sample_id="s", scorer="f", signature="f@1", outcome=Score(5))


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf])
def test_a_score_on_a_scale_that_is_no_positive_number_is_refused(scale: float):
    with pytest.raises(OutcomeError, match=r"scale .* positive"):
        Score(0, scale=scale)


@given(st.floats(min_value=1e-300, max_value=1e100), st.floats(min_value=0, max_value=1))
def test_a_score_anywhere_on_any_scale_has_a_fraction_from_0_to_1(scale: float, fraction: float):
    score = Score(fraction * scale, scale=scale)
    assert 0 <= score.fraction <= 1
    assert score.fraction == pytest.approx(fraction)


def test_usages_add_up():
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


@pytest.mark.parametrize(("costs", "total"), [([], 0.0), ([0.5, 0.25], 0.75), ([0.5, None, 1.0], None)])
def test_one_unknown_cost_makes_the_total_unknown(costs: list[float | None], total: float | None):
    assert total_cost(costs) == total


def test_a_records_cost_and_value_are_those_of_its_steps_and_its_score():
    record = Record(sample_id="s", scorer="f", signature="f@1", outcome=Score(0.5), calls=(STEP, STEP))
    assert (record.cost, record.value) == (0.5, 0.5)
    unpriced = dataclasses.replace(STEP, cost=None)
    skipped = Record(sample_id="s", scorer="f", signature="f@1", outcome=Skipped("no claims"), calls=(unpriced,))
    assert (skipped.cost, skipped.value) == (None, None)


@pytest.mark.parametrize(
    "outcome",
    [
        Score(7.5, "because", scale=10, evidence=["a", {"b": 1}]),
        Skipped("no context"),
        Failed("broke", "raw"),
        Failed("broke"),
    ],
)
def test_a_record_survives_a_line_of_json(outcome: Outcome):
    record = Record(sample_id="s", scorer="f", signature="f@1", outcome=outcome, calls=(STEP,), seconds=1.5)
    assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record


@given(st.text(st.characters(exclude_categories=())), json_data)
def test_a_record_of_any_text_and_evidence_survives_a_line_of_json(text: str, evidence: Any):
    record = Record(
        sample_id=text, scorer=text, signature=text, outcome=Score(0.5, text, scale=1.0, evidence=evidence), seconds=0.0
    )
    line = json.dumps(record.to_dict())
    line.encode()
    assert "\n" not in line
    assert Record.from_dict(json.loads(line)) == record


def test_a_record_of_another_format_is_refused():
    data = Record(sample_id="s", scorer="f", signature="f@1", outcome=Skipped("x")).to_dict()
    with pytest.raises(ConfigError, match="format 99"):
        Record.from_dict({**data, "format": 99})
    with pytest.raises(ConfigError, match="outcome"):
        Record.from_dict({**data, "outcome": 1})


@given(json_data)
def test_json_data_is_plain_already(data: Any):
    assert to_jsonable(data) == data


def test_plain_data_has_objects_lists_and_text_keys_only():
    value = {1: (Usage(1), {"b", "a"}), "when": frozenset({3}), "what": object}
    assert to_jsonable(value) == {
        "1": [{"input": 1, "output": 0, "cached": 0, "requests": 0}, ["a", "b"]],
        "when": [3],
        "what": "<class 'object'>",
    }


def with_whole_numbers(data: Any) -> Any:
    """The data with 1 for 1.0: equal numbers have one digest."""
    if isinstance(data, list):
        return [with_whole_numbers(value) for value in cast("list[Any]", data)]
    if isinstance(data, dict):
        return {key: with_whole_numbers(value) for key, value in cast("dict[str, Any]", data).items()}
    return int(data) if isinstance(data, float) and data.is_integer() else data


@given(json_data, json_data)
@example([0, 0], [0, 0.0])
@example([1], [True])
def test_two_digests_are_equal_exactly_when_the_json_is(one: Any, other: Any):
    first, second = (json.dumps(with_whole_numbers(data), sort_keys=True) for data in (one, other))
    assert (content_hash(one) == content_hash(other)) == (first == second)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_a_digest(text: str):
    assert len(content_hash(text)) == 32
    int(content_hash(text), 16)


def test_a_turn_is_a_sample_of_which_a_text_is_the_input():
    turns: Any = ["Hi", {"input": "Bye", "reference": "Goodbye"}, Sample(id="last", input="?")]
    sample = Sample(turns=turns)
    assert [(turn.id, turn.input, turn.reference) for turn in sample.turns] == [
        ("1", "Hi", None),
        ("2", "Bye", "Goodbye"),
        ("last", "?", None),
    ]
    assert sample.input == "Hi"
    assert Sample(input="first", turns=turns).input == "first"


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("Hi", "turns must be a list, not str: 'Hi'"),
        (["Hi", " "], "turn 2 must have an input: what the user says"),
        ([{"output": "Hi"}], "turn 1 must have an input: what the user says"),
        ([7], "turn 1: a turn must be an object, not int: 7"),
        ([{"input": "Hi", "refrence": "x"}], "turn 1: unknown sample field 'refrence'; did you mean reference?"),
        ([Sample(turns=[Sample(input="Hi")])], "turn 1 must not have turns of its own"),
    ],
)
def test_turns_that_are_none_are_refused(turns: Any, message: str):
    with pytest.raises(ConfigError) as caught:
        Sample(turns=turns)
    assert str(caught.value).startswith(message)

from __future__ import annotations

import datetime
import json
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest

from evalstone.datasets import load, sample_from
from evalstone.errors import DataError


def test_one_text_is_one_passage_and_blank_passages_are_dropped() -> None:
    assert sample_from({"context": "one"}).context == ("one",)
    assert sample_from({"context": ["a", "  ", "", None, {"text": "\n"}, {"chunk": "b"}]}).context == ("a", "b")
    assert sample_from({"context": ""}).context == ()
    assert sample_from({"context": []}).context == ()


def test_a_list_in_a_text_is_that_list_also_in_json() -> None:
    assert sample_from({"context": '["a", "b"]'}).context == ("a", "b")
    assert sample_from({"context": str([{"page_content": "a"}, {"page_content": "b"}])}).context == ("a", "b")


def test_a_conversation_in_a_text_is_that_conversation() -> None:
    turns = [
        {"content": "Hi", "type": "human"},
        {"content": "Hello", "type": "ai"},
        {"content": "Bye", "type": "human"},
    ]
    for written in (turns, str(turns), str(turns).replace("},", "}"), json.dumps(turns)):
        sample = sample_from({"user_input": written, "response": "Bye!"})
        assert (sample.input, [message.content for message in sample.messages]) == (
            "Bye",
            ["Hi", "Hello", "Bye", "Bye!"],
        )
    with pytest.raises(DataError, match=r"as input, .* commas"):
        sample_from({"user_input": str(turns).replace("},", "}", 1), "response": "Bye!"})
    for text in ("[{'role': 'clerk'}]", '[{"city": "Bern"}]', "['Hi']"):
        assert sample_from({"input": text, "output": text}).input == text


def test_a_column_for_lists_of_references_may_have_them_as_text() -> None:
    assert sample_from({"ground_truths": "['a', 'b']"}).reference == "a"
    assert sample_from({"expected_facts": '["a", "b"]'}).reference == "a\nb"
    assert sample_from({"reference": '["a", "b"]'}).reference == '["a", "b"]'


def test_a_weight_may_be_text() -> None:
    assert sample_from({"output": "a", "weight": "2"}).weight == 2


def test_an_empty_text_is_present_and_null_is_absent() -> None:
    sample = sample_from({"input": "", "output": None})
    assert sample.input == ""
    assert sample.output is None


@pytest.mark.parametrize(
    ("given", "text"), [(7, "7"), (7.0, "7"), ("x", "x"), (uuid.UUID(int=1), str(uuid.UUID(int=1)))]
)
def test_ids_become_text(given: Any, text: str) -> None:
    assert sample_from({"id": given, "input": "q"}).id == text


@pytest.mark.parametrize("name", ["_id", "sample_id", "caseId", "uid", "trace_id", "test-case-id"])
def test_an_id_is_found_under_its_names(name: str) -> None:
    assert sample_from({name: "x1", "input": "q"}).id == "x1"


def test_the_first_of_alternative_references_counts_and_the_rest_is_kept() -> None:
    answers = {"text": ["first", "second"], "answer_start": [1, 2]}
    sample = sample_from({"question": "q", "answers": answers})
    assert sample.reference == "first"
    assert sample.metadata == {"answers": answers}


def test_an_unanswerable_question_has_no_reference() -> None:
    assert sample_from({"question": "q", "answers": {"text": [], "answer_start": []}}).reference is None


def test_expected_facts_count_together() -> None:
    sample = sample_from({"inputs": {"query": "q"}, "expectations": {"expected_facts": ["one", "two"]}})
    assert sample.reference == "one\ntwo"


def test_expectations_without_a_response_are_kept_in_the_metadata() -> None:
    sample = sample_from({"inputs": {"query": "q"}, "expectations": {"max_words": 10}})
    assert sample.reference is None
    assert sample.metadata == {"expectations": {"max_words": 10}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (42, "42"),
        (42.0, "42"),
        (0.1, "0.1"),
        (True, "true"),
        (Decimal("1.50"), "1.5"),
        (Decimal("42.00"), "42"),
        (Decimal("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678"),
        (Decimal("12345678901234567890.10"), "12345678901234567890.1"),
        (Decimal("1E+300"), "1" + 300 * "0"),
        (Decimal("Infinity"), "inf"),
        (Decimal("1E-1000"), "0"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.timedelta(hours=30), "1 day, 6:00:00"),
        (pandas.Timedelta("30h"), "1 day, 6:00:00"),
        (numpy.timedelta64(90, "m"), "1:30:00"),
        (numpy.datetime64("2026-01-02", "ns"), "2026-01-02T00:00:00"),
        (numpy.int64(7), "7"),
        (numpy.bool_(False), "false"),
    ],
)
@pytest.mark.parametrize("field", ["input", "output", "reference"])
def test_numbers_booleans_and_dates_become_text(field: str, value: object, text: str) -> None:
    assert getattr(sample_from({"input": "q", field: value}), field) == text


def test_decimals_are_the_numbers_of_json_as_ids_weights_and_missing_values() -> None:
    row = {
        "id": Decimal("7"),
        "input": "q",
        "output": Decimal("NaN"),
        "weight": Decimal("2.50"),
        "rank": [Decimal("3.0")],
    }
    assert sample_from(row) == sample_from({"id": 7, "input": "q", "weight": 2.5, "rank": [3]})
    assert sample_from({"input": "q", "output": Decimal("sNaN")}).output is None


def test_the_alternatives_of_a_reference_may_be_numbers() -> None:
    assert sample_from({"output": 4, "reference": [4, 4.0, "four"]}).reference == "4"


def test_an_input_of_variables_is_their_json() -> None:
    assert sample_from({"input": {"city": "Zürich"}}).input == '{"city": "Zürich"}'
    variables = {"city": "Bern", "days": 3, "note": None}
    assert sample_from({"vars": variables}).input == json.dumps(variables)
    assert sample_from({"vars": {"question": "Where?"}}).input == "Where?"


def test_an_output_with_one_text_is_that_text_and_its_key_is_kept() -> None:
    sample = sample_from({"outputs": {"result": "a"}, "reference_outputs": {"label": "b"}})
    assert (sample.output, sample.reference) == ("a", "b")
    assert sample.metadata == {"outputs": {"result": "a"}, "reference_outputs": {"label": "b"}}


def test_several_columns_are_joined_as_context() -> None:
    row = {"output": "a", "doc1": ["x", "y"], "doc2": "z", "doc3": None}
    sample = sample_from(row, map={"context": ["doc1", "doc3", "doc2"]})
    assert sample.context == ("x", "y", "z")
    assert sample.metadata == {}


def test_an_object_with_more_than_the_text_is_kept_in_the_metadata() -> None:
    sample = sample_from({"inputs": {"question": "q", "user": "u"}})
    assert sample.metadata == {"inputs": {"question": "q", "user": "u"}}


MESSAGE = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("output", "text", "is_kept"),
    [
        ({"answer": "a"}, "a", False),
        ({"answer": "a", "cost": 1}, "a", True),
        ({"answer": None}, "", False),
        ({"answer": None, "cost": 1}, "", True),
        ({"parts": [{"text": "a"}], "role": "model"}, "a", True),
        ({"messages": [MESSAGE]}, "a", False),
        ({"messages": [MESSAGE], "cost": 1}, "a", True),
        ({"choices": [{"message": MESSAGE}], "usage": {"total_tokens": 3}}, "a", True),
        ({"object": "response", "output": [{"type": "message", **MESSAGE}]}, "a", True),
        ({"role": "assistant", "tool_calls": [{"name": "look", "arguments": {"n": 1}}]}, "", False),
    ],
    ids=str,
)
def test_an_answer_in_an_object_is_kept_in_the_metadata_if_there_is_more(
    output: dict[str, Any], text: str, is_kept: bool
) -> None:
    sample = sample_from({"input": "q", "output": output})
    assert sample.output == text
    assert sample.metadata == ({"output": output} if is_kept else {})


def test_the_first_reference_with_text_is_the_reference() -> None:
    assert sample_from({"output": "a", "reference": ["", None, " ", "r"]}).reference == "r"


def test_metadata_entries_stand_beside_unknown_columns() -> None:
    sample = sample_from({"input": "q", "metadata": {"a": 1}, "b": 2})
    assert sample.metadata == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"input": "q", "metadata": {"topic": "geo"}, "topic": "art"},
            "column 'topic' is 'art', but metadata has another entry 'topic': 'geo'",
        ),
    ],
)
def test_a_column_replaces_no_entry_of_the_metadata(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=re.escape(problem)):
        sample_from(row)


def test_an_entry_that_a_column_repeats_is_one_entry() -> None:
    row = {"input": "q", "metadata": {"n": 1, "topic": "geo", "kind": None}, "n": "1", "topic": "geo", "kind": "g"}
    assert sample_from(row).metadata == {"n": 1, "topic": "geo", "kind": "g"}


def test_metadata_holds_json_data_only_and_the_same_in_every_process() -> None:
    class Picture:
        pass

    row = {
        "input": "q",
        "when": datetime.date(2026, 1, 2),
        "price": Decimal("1.50"),
        "picture": Picture(),
        "raw": b"\x00\x01",
        "far": float("inf"),
        "odd": [float("nan"), {1: 2}],
        "names": {"b", "a"},
    }
    assert sample_from(row).metadata == {
        "when": "2026-01-02",
        "price": 1.5,
        "picture": "<Picture>",
        "raw": "<bytes>",
        "far": "inf",
        "odd": [None, {"1": 2}],
        "names": ["a", "b"],
    }


SAID = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"output": b"x"}, "output must be text, not bytes: b'x'"),
        ({"answer": [42]}, "column 'answer', read as output, must be text, not list: [42]"),
        ({"input": ["a"]}, "input must be text, not list: ['a']"),
        ({"inputs": {"a": {"b": "1"}}}, 'choose one of these with map={"input": "inputs.a"}'),
        ({"outputs": {"a": "1", "b": ["2"]}}, 'choose one of these with map={"output": "outputs.a"}'),
        ({"outputs": {"a": [2], "b": "1"}}, 'choose one of these with map={"output": "outputs.b"}'),
        (
            {"response": {"status_code": 200, "request_id": "r", "body": {"choices": [{"message": SAID}]}}},
            'choose one of these with map={"output": "response.body"}',
        ),
        ({"outputs": {"a": "r1", "b": "In Bern.", "c": [2]}}, 'choose one of these with map={"output": "outputs.b"}'),
        ({"outputs": {"a": [2], "b": [1]}}, "not an object with a, b (to leave the column out"),
        ({"output": "a", "weight": "heavy"}, "weight must be a finite number above 0, not 'heavy'"),
        ({"context": 5}, "context must be a list of passages, not int: 5"),
        ({"context": ["a", 5]}, "passage 2 must be text or an object with text, page_content, content or chunk, not 5"),
        ({"context": [{"title": "t"}]}, "passage 1 must be text or an object"),
        ({"input": "q", "metadata": "m"}, "metadata must be an object, not str: 'm'"),
        ({"input": "q", "id": True}, "id must be text or a whole number, not bool: True"),
        ({"input": "q", "id": 1.5}, "id must be text or a whole number, not float: 1.5"),
        ({"inputs": ["q", "r"]}, "not list: ['q', 'r'] (turns of a conversation: map={\"turns\": \"inputs\"})"),
        ({"input": ["q", "r"]}, "not list: ['q', 'r'] (turns of a conversation: map={\"turns\": \"input\"})"),
        ({"input": "q", "conversation": 3}, 'not int: 3 (to leave the column out: map={"messages": ""})'),
        ({"output": "\x1b[31m" * 9 and ["\x1b[31m\u202e"]}, "['\\x1b[31m\\u202e']"),
    ],
)
def test_a_wrong_type_is_refused_with_place_column_and_value(row: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError) as caught:
        sample_from(row, where="cases.jsonl: line 3")
    assert text in str(caught.value)
    assert str(caught.value).startswith("cases.jsonl: line 3: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("row", "field", "value", "allowed"),
    [
        ({"output": b"x"}, "output", "b'x'", "text"),
        ({"answer": [42]}, "output", "[42]", "text"),
        ({"context": 5}, "context", 5, "a list of passages"),
        ({"input": "q", "metadata": "m"}, "metadata", "m", "an object"),
        ({"input": "q", "id": True}, "id", True, "text or a whole number"),
        ({"input": "q", "messages": 5}, "messages", 5, "a list of messages"),
    ],
)
def test_a_wrong_type_is_refused_with_values(row: dict[str, Any], field: str, value: object, allowed: str) -> None:
    with pytest.raises(DataError) as caught:
        sample_from(row, where="cases.jsonl: line 3")
    error = caught.value
    assert (error.kind, error.field, error.value, error.allowed) == ("invalid", field, value, allowed)


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    deep["again"] = deep
    with pytest.raises(DataError, match="item 1: nested"):
        load([{"input": "q", "deep": deep}])


def test_the_passages_of_hotpotqa_are_one_a_title() -> None:
    context = {"title": ["Bern", "Empty", "Ada"], "sentences": [["A city.", " Old."], [], ["Ada wrote."]]}
    sample = sample_from({"question": "q", "context": context})
    assert sample.context == ("Bern: A city. Old.", "Ada: Ada wrote.")
    rows: list[Any] = [["Bern", ["A city.", " Old."]], ["Empty", []], ["Ada", ["Ada wrote."]]]
    assert sample_from({"question": "q", "context": rows}).context == sample.context
    with pytest.raises(DataError, match="passage 1 must be text or an object"):
        sample_from({"context": [["Bern", "A city."]]})
    with pytest.raises(DataError, match="1 titles and 0 lists"):
        sample_from({"context": {"title": ["Bern"], "sentences": []}})


def test_the_prompt_of_a_promptfoo_result_is_its_text() -> None:
    row = {"vars": {"q": "Bern?"}, "prompt": {"raw": "Where is Bern?", "label": "p"}, "response": {"output": "In CH."}}
    sample = sample_from(row)
    assert (sample.input, sample.output) == ("Where is Bern?", "In CH.")
    assert sample.metadata["prompt"] == row["prompt"]
    assert sample_from({"prompt": {"raw": "x", "n": 3}}).input == '{"raw": "x", "n": 3}'


def test_a_column_of_roles_beside_a_question_is_no_list_of_messages() -> None:
    assert sample_from({"question": "q", "role": "user", "content": "c"}).metadata == {"role": "user", "content": "c"}
    assert sample_from({"role": "user", "content": "c"}, map={"input": "content"}).input == "c"

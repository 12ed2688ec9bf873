"""Objects, messages and alternatives in fields that are texts: the same from CSV as from typed sources, or refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample, load
from evalstone.datasets import sample_from
from evalstone.errors import DataError


def read_csv(path: Path, row: dict[str, Any], write: Callable[[Any], str]) -> Sample:
    with path.open("w", newline="") as file:
        cells = [value if isinstance(value, str) else write(value) for value in row.values()]
        csv.writer(file).writerows([[*row], cells])
    (sample,) = load(path)
    return sample


def texts(sample: Sample) -> tuple[str | None, str | None, str | None]:
    return sample.input, sample.output, sample.reference


both = pytest.mark.parametrize("write", [json.dumps, repr])


@both
@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "q"}, "outputs": {"answer": "a"}, "reference_outputs": {"answer": "r"}},
        {"vars": {"city": "Bern", "days": 3}, "output": "a"},
        {"inputs": {"city": "Bern", "days": 3}, "outputs": "a", "expectations": {"expected_response": "r"}},
        {"question": "q", "output": "a", "answers": {"text": ["r", "s"], "answer_start": [1, 2]}},
        {"question": "q", "output": [{"type": "text", "text": "It's a"}], "ground_truths": ["r", "s"]},
        {"question": "q", "output": {"role": "assistant", "content": "a"}},
        {"input": [{"role": "user", "content": "q"}], "output": "a"},
        {"input": "q", "output": {"role": "assistant", "tool_calls": [{"name": "look", "arguments": {"n": 1}}]}},
    ],
)
def test_what_a_csv_file_writes_out_is_read_as_from_a_typed_source(
    tmp_path: Path, row: dict[str, Any], write: Callable[[Any], str]
):
    expected = sample_from(row)
    assert texts(expected) != (None, None, None)
    sample = read_csv(tmp_path / "d.csv", row, write)
    assert texts(sample) == texts(expected)
    assert sample.messages == expected.messages


@both
@pytest.mark.parametrize("column", ["reference", "expected_output", "ideal", "target"])
def test_a_list_of_references_in_a_csv_file_is_refused(tmp_path: Path, column: str, write: Callable[[Any], str]):
    row = {"output": "Paris", column: ["Paris", "paris"]}
    assert sample_from(row).reference == "Paris"
    for written in (write(row[column]), f" {write(row[column])}", "('Paris', 'paris')"):
        with pytest.raises(DataError, match=f"line 2: .*{column}.* not a list.* ground"):
            read_csv(tmp_path / "d.csv", {**row, column: written}, write)


@pytest.mark.parametrize("column", ["output", "response", "reference", "input", "instructions"])
def test_an_object_as_python_prints_it_is_refused_in_a_csv_file(tmp_path: Path, column: str):
    with pytest.raises(DataError, match=rf"{column}.* object .* JSON Lines"):
        read_csv(tmp_path / "d.csv", {"context": "c", column: {"answer": "it's"}}, repr)


@pytest.mark.parametrize(
    "text",
    [
        "[HumanMessage(content='q', additional_kwargs={})]",
        "AIMessage(content='a')",
        "content='It is Paris.' additional_kwargs={} response_metadata={} id='run-1'",
        "ChatCompletion(id='c', choices=[])",
    ],
)
def test_messages_as_python_prints_them_are_refused(text: str):
    for field in ("input", "output"):
        with pytest.raises(DataError, match=f"{field} must .* message "):
            sample_from({"context": "c", field: text})


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "Paris"}',
        '["a", "b"]',
        "[1, 2]",
        "(3, 4)",
        "['a', 'b']",
        "{'a', 'b'}",
        "{'a': ",
        '[{"type": "text", "value": ',
        '{"role": "admin", "content": 1}',
        '{"role":  "user", "note": "x"}',
        "{curly} prose",
        "AIMessage(content='a') is a message",
        "content='a'",
    ],
)
def test_an_answer_that_looks_like_data_stays_the_text_that_it_is(tmp_path: Path, text: str):
    assert sample_from({"output": text}).output == text
    assert read_csv(tmp_path / "d.csv", {"output": text, "input": "q"}, str).output == text


@pytest.mark.parametrize("text", ["[1, 2", "['a', b]", "Document(page_content='a')"])
def test_a_ground_truth_that_only_resembles_a_list_is_a_text(text: str):
    assert sample_from({"output": "a", "groundTruth": text}).reference == text


def test_a_reference_of_numbers_or_json_stays_the_text_that_it_is(tmp_path: Path):
    for text in ("[1,2]", '{"answer": "Paris"}', "(3, 4)", "[a, b]", "[1] Smith", "[null]"):
        assert read_csv(tmp_path / "d.csv", {"output": "a", "reference": text}, str).reference == text


@both
def test_a_path_of_a_mapping_leads_into_what_a_cell_writes_out(tmp_path: Path, write: Callable[[Any], str]):
    row = {"row": {"q": "Where?", "a": "Bern"}, "docs": [{"text": "p1"}, {"text": "p2"}]}
    mapping = {"input": "row.q", "output": "row.a", "context": "docs.text"}
    path = tmp_path / "d.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*row], [write(value) for value in row.values()]])
    for source in ([row], path):
        (sample,) = load(source, map=mapping)
        assert (sample.input, sample.output, sample.context) == ("Where?", "Bern", ("p1", "p2"))
    path.write_text("row\n\"['a' 'b', 'c']\"\n")
    with pytest.raises(DataError, match=r"line 2: .*'row' .*commas"):
        load(path, map=mapping)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[{'role': 'user', 'content': 'q'}, {'role': 'a'}\n {'role': 'user'}]", "must be a list with commas"),
        ("[{'role': 'user', 'at': Moment(2026, 1, 2)}]", "must be plain data, without objects as Python prints"),
        ("[{'role': 'user', 'content': 'f(x', 'b", "must be a complete list"),
    ],
)
def test_the_error_says_why_a_list_cannot_be_read(text: str, told: str):
    with pytest.raises(DataError, match=f"messages {told}"):
        sample_from({"messages": text})


SAVED_BY_DEEPEVAL = {
    "input": "Where is Bern?",
    "actual_output": "In Switzerland.",
    "expected_output": "Switzerland",
    "retrieval_context": "Bern is old.|Bern is a city.",
    "context": None,
    "source_file": None,
}


def test_passages_that_deepeval_joined_are_refused() -> None:
    with pytest.raises(DataError, match=r"'retrieval_context', .*'json'"):
        sample_from(SAVED_BY_DEEPEVAL)
    only_ideal = {**SAVED_BY_DEEPEVAL, "retrieval_context": None, "context": "a|b"}
    with pytest.raises(DataError, match=r"DeepEval joins passages: 'a\|b'"):
        sample_from(only_ideal)


def test_a_passage_is_one_where_nothing_was_joined() -> None:
    texts: list[Any] = ["Bern is old.", ["a|b", "c"], '["a|b", "c"]']
    for text, passages in zip(texts, [("Bern is old.",), ("a|b", "c"), ("a|b", "c")], strict=True):
        assert sample_from({**SAVED_BY_DEEPEVAL, "retrieval_context": text}).context == passages
    assert sample_from({"input": "Q", "retrieval_context": "| a | b |"}).context == ("| a | b |",)

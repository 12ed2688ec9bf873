"""Turns of conversations in rows: what a user is to say, or a recorded conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample
from evalstone.datasets import load, sample_from
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import DataError
from evalstone.types import Message


def test_turns_are_read_from_texts_and_from_rows_with_the_usual_names():
    sample = sample_from(
        {"id": "c1", "turns": ["Hi", {"question": "Where?", "expected_output": "Here", "tone": "dry"}]}
    )
    assert sample.input == "Hi"
    first, second = sample.turns
    assert (first.id, first.input) == ("1", "Hi")
    assert (second.id, second.input, second.reference) == ("2", "Where?", "Here")
    assert second.metadata == {"tone": "dry"}


def test_turns_in_a_cell_of_a_table_are_json(tmp_path: Path):
    path = tmp_path / "cases.csv"
    path.write_text('id,turns\nc1,"[""Hi"", ""Bye""]"\n')
    (sample,) = load(path)
    assert [turn.input for turn in sample.turns] == ["Hi", "Bye"]


def test_turns_with_roles_are_the_messages_of_a_recorded_conversation():
    sample = sample_from({"turns": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})
    assert sample.turns == ()
    assert [message.content for message in sample.messages] == ["Hi", "Hello"]


def test_a_number_of_turns_is_metadata():
    sample = sample_from({"input": "Hi", "turns": 3})
    assert (sample.turns, sample.metadata) == ((), {"turns": 3})
    with pytest.raises(DataError, match="turns must be a list of turns, not int: 3"):
        sample_from({"input": "Hi", "turns": 3}, mapping={"turns": "turns"})


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ('["Hi", "Bye"', "turns must be a list of turns, not str"),
        ({"input": "Hi"}, "turns must be a list of turns, not dict"),
        ([3], "turns item 1 must be a text or an object with an input, not 3"),
        ([["Hi"]], "turns item 1 must be a text"),
        (["Hi", {"output": "x"}], "turn 2 must have an input"),
        ([{"input": "a", "context": 5}], "turns item 1: context"),
    ],
)
def test_turns_that_cannot_be_read_are_named(turns: Any, message: str):
    with pytest.raises(DataError) as caught:
        sample_from({"turns": turns}, where="line 3")
    assert str(caught.value).startswith(f"line 3: {message}")


def test_a_conversation_survives_the_file_of_samples():
    turn = Sample(id="1", input="Hi", output="Hello", context=["p"], messages=[Message(role="user", content="Hi")])
    sample = Sample(id="c1", turns=[turn], state={"rows": 1})
    row = json.loads(json.dumps(sample_row(sample)))
    assert sample_of(row) == sample
    assert sample_of(row).turns[0].messages == turn.messages
    assert sample_from(row) == sample

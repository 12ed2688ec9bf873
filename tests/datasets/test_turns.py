"""Turns of conversations in rows: what a user is to say, or a recorded conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import Sample, evaluate, read_run, write_run
from evalstone.datasets import load, sample_from, turns
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
    with pytest.raises(DataError, match="turns, not int: 3"):
        sample_from({"input": "Hi", "turns": 3}, map={"turns": "turns"})


@pytest.mark.parametrize(
    ("turns", "field"),
    [(["Hi"], "turns"), ([{"role": "user", "content": "Hi"}], "messages")],
    ids=["turns", "messages"],
)
def test_turns_are_among_the_columns_wherever_their_rows_are(turns: Any, field: str):
    rows: list[Any] = [{"input": "Hi", "turns": 3}, {"input": "Hi", "turns": turns}]
    for ordered in (rows, rows[::-1]):
        assert load(ordered).columns == {"input": "input", "turns": field}
    assert load(rows[:1]).columns == {"input": "input"}


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ('["Hi", "Bye"', "turns must be a complete list; this one is cut off"),
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


def test_turns_are_samples_of_their_own_in_the_group_of_the_conversation():
    said: Any = ["Hi", {"input": "Bye", "reference": "Bye!"}]
    talk = Sample(id="c1", turns=said, instructions="Be kind.", weight=2)
    recorded = Sample(
        id="c2",
        messages=[Message(role="user", content="Hi"), Message(role="assistant", content="Hello")],
        group="team",
    )
    dataset = turns([talk, recorded])
    assert [(one.id, one.input, one.group, one.weight) for one in dataset] == [
        ("c1 turn 1", "Hi", "c1", 2),
        ("c1 turn 2", "Bye", "c1", 2),
        ("c2 turn 1", "Hi", "team", None),
    ]
    assert [one.instructions for one in dataset] == ["Be kind.", "Be kind.", None]
    assert (dataset.samples[1].reference, dataset.samples[2].output) == ("Bye!", "Hello")


def test_the_turns_of_trials_have_names_of_their_own_and_are_one_group(tmp_path: Path):
    def agent(*, input: str, trial: int) -> list[dict[str, str]]:
        return [{"role": "user", "content": input}, {"role": "assistant", "content": f"{input} {trial}"}]

    run = evaluate([{"id": "c1", "input": "Hi"}], "contains(expected='1')", target=agent, trials=2, ledger=None)
    write_run(run, tmp_path)
    for samples in (run.samples, read_run(tmp_path).samples):
        assert samples is not None
        found = turns(samples)
        assert [(one.id, one.group, one.trial) for one in found] == [
            ("c1 #1 turn 1", "c1", None),
            ("c1 #2 turn 1", "c1", None),
        ]
        assert [one.output for one in found] == ["Hi 1", "Hi 2"]
        assert evaluate(found, "contains(expected='1')", ledger=None)["contains"].mean == 0.5


def test_turns_are_read_from_whatever_holds_samples(tmp_path: Path):
    rows: list[Any] = [{"id": "c1", "turns": ["Hi", "Bye"]}, {"id": "c2", "turns": ["Hi"]}]
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    for samples in (rows, iter(rows), path, str(path), load(path)):
        assert [one.id for one in turns(samples)] == ["c1 turn 1", "c1 turn 2", "c2 turn 1"]
    assert turns(path).name == "talks.jsonl"
    same = [Sample(turns=[Sample(input="Hi")])] * 2
    assert len(turns(same)) == 2


def test_turns_are_read_from_a_table():
    pandas = pytest.importorskip("pandas")
    assert len(turns(pandas.DataFrame([{"id": "c1", "turns": ["Hi", "Bye"]}]))) == 2


def test_a_sample_without_turns_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"sample 'a' .* no turns"):
        turns([Sample(id="a", output="x", messages=[Message(role="assistant", content="Hello")])])


def test_an_interval_over_turns_is_of_conversations():
    talks = [{"id": f"c{n}", "turns": [{"input": "Hi", "output": "ab"[n % 2]}] * 3} for n in range(10)]
    run = evaluate(turns(talks), "contains(expected=a)", ledger=None)
    interval = run["contains"].interval
    assert interval is not None
    assert (interval.n, interval.groups) == (30, 10)

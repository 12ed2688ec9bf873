"""Samples written and read back: every field, and the same version."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone import (
    ConfigError,
    DataError,
    Message,
    Sample,
    ToolCall,
    Trajectory,
    load,
)
from evalstone.datasets.identity import version_of
from evalstone.datasets.read_samples import StoredSamples
from evalstone.datasets.stored import content_with, field_texts, sample_content, sample_of, write_samples
from evalstone.targets import Answer
from evalstone.types import ExpectedStep, TrajectoryExpectation, TrajectoryStep

WHOLE = Sample(
    id="one",
    input="q",
    output="",
    context=[],
    reference="r",
    messages=[
        Message(role="user", content="hi"),
        Message(role="assistant", tool_calls=[ToolCall(name="look", arguments={"a": [1]}, result={"b": None}, id="7")]),
    ],
    instructions="i",
    metadata={"n": 1, "nested": {"x": [None, True]}, "bidi": "\u202e\u2028\x00"},
    trajectory=Trajectory(steps=(TrajectoryStep(step_type="tool_call", name="look"),)),
    expected_trajectory=TrajectoryExpectation(steps=(ExpectedStep(name="look"),)),
    state={"rows": [1]},
    trial=2,
)


def test_every_field_comes_back(tmp_path: Path) -> None:
    samples = [WHOLE, Sample(output="x"), Sample(id="none")]
    write_samples(tmp_path / "s.jsonl", samples)
    back = StoredSamples(tmp_path / "s.jsonl")
    assert list(back) == samples
    assert [sample.metadata for sample in back] == [sample.metadata for sample in samples]
    assert [sample.trial for sample in back] == [2, None, None]
    assert version_of(back) == version_of(samples)


def test_the_file_is_a_data_set_itself(tmp_path: Path) -> None:
    samples = [Sample(id="a", input="q", output="o", context=["p"], metadata={"k": "v"})]
    write_samples(tmp_path / "s.jsonl", samples)
    assert load(tmp_path / "s.jsonl").version == version_of(samples)


TEXT = st.one_of(
    st.text(st.characters(), max_size=20),
    st.sampled_from(
        ["", " ", "['a', 'b']", '[{"role": "user", "content": "hi"}]', "AIMessage(content='x')", "{}", "CA"]
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CALLS = st.lists(
    st.builds(ToolCall, name=TEXT, arguments=st.dictionaries(TEXT, JSON, max_size=2), result=JSON), max_size=2
)
MESSAGES = st.lists(
    st.builds(Message, role=st.sampled_from(["user", "assistant", "tool"]), content=TEXT, tool_calls=CALLS), max_size=2
)
SAMPLES = st.builds(
    Sample,
    id=TEXT,
    input=st.none() | TEXT,
    output=st.none() | TEXT,
    context=st.none() | st.lists(TEXT, max_size=2),
    reference=st.none() | TEXT,
    messages=MESSAGES,
    instructions=st.none() | TEXT,
    metadata=st.dictionaries(TEXT, JSON, max_size=2),
    group=st.none() | TEXT,
    weight=st.none() | st.floats(min_value=0.1, max_value=9),
    state=JSON,
    turns=st.lists(TEXT.filter(str.strip), max_size=2),
)


@given(sample=SAMPLES)
@settings(max_examples=150, deadline=None)
def test_a_written_sample_is_read_as_the_same_one_whatever_its_texts_look_like(
    sample: Sample, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("one") / "s.jsonl"
    write_samples(file, [sample])
    assert load(file).version == version_of([sample])


def test_a_row_in_which_somebody_wrote_something_else_is_read_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        '{"format": "sample/1", "id": 1, "input": "q", "context": "one"}\n'
        '{"format": "sample/1", "id": "2", "input": "q", "topic": "hills"}\n'
    )
    first, second = load(file)
    assert (first.id, first.context, second.metadata) == ("1", ("one",), {"topic": "hills"})
    assert load(file, map={"input": "topic"}).samples[1].input == "hills"


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a"},
        {"id": "a", "input": "q", "output": "o", "reference": "r", "instructions": "i", "format": "sample/1"},
        {"id": "", "output": "o"},
        {"output": "o"},
        {"id": "a", "output": None},
        {"id": "a", "output": "o", "later": "field"},
        {"id": "a", "output": "o", "metadata": {"k": 1}, "context": ["p"], "trial": 2},
    ],
)
def test_a_row_is_the_sample_that_its_fields_make(row: dict[str, Any]) -> None:
    sample = sample_of(row)
    made = Sample(**{name: value for name, value in row.items() if name not in ("format", "later")})
    assert vars(sample) == vars(made)
    assert sample.content_hash == made.content_hash
    assert sample.metadata is not sample_of(row).metadata or "metadata" in row


@pytest.mark.parametrize("row", [[], "x", {"id": 1}, {"messages": [{"role": 1}]}, {"messages": [1]}, {"turns": 1}])
def test_what_is_no_sample_is_refused(row: object) -> None:
    with pytest.raises(ConfigError):
        sample_of(row)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.jsonl cannot"):
        list(StoredSamples(tmp_path / "gone.jsonl"))


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"id": "a"}\n{\n')
    with pytest.raises(DataError, match=r"s\.jsonl, line 2"):
        list(StoredSamples(tmp_path / "s.jsonl"))


def test_trials_load_as_samples_of_one_group(tmp_path: Path) -> None:
    trials = [Sample(id=id, output=f"{id} {n}", trial=n, group=group) for id, group in GROUPS for n in (1, 2, 3)]
    write_samples(tmp_path / "s.jsonl", trials)
    loaded = list(load(tmp_path / "s.jsonl"))
    assert [sample.id for sample in loaded] == ["a", "a-2", "a-3", "b", "b-2", "b-3"]
    assert [sample.output for sample in loaded] == [sample.output for sample in trials]
    assert [sample.group for sample in loaded] == ["a", "a", "a", "g", "g", "g"]
    assert [sample.metadata["trial"] for sample in loaded] == [1, 2, 3, 1, 2, 3]


GROUPS: list[tuple[str, str | None]] = [("a", None), ("b", "g")]


def test_large_files_of_trials_load_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = [Sample(id=id, output=f"{id} {n}", state=[n], trial=n) for id in "ab" for n in (1, 2, 3)]
    write_samples(tmp_path / "s.jsonl", trials)
    whole = load(tmp_path / "s.jsonl")
    monkeypatch.setattr("evalstone.datasets.loading.MOST_IN_MEMORY", 1)
    streamed = load(tmp_path / "s.jsonl")
    assert list(streamed) == list(whole)
    assert streamed.version == whole.version


def test_a_column_trial_among_columns_of_one_s_own_is_metadata() -> None:
    (sample,) = load([{"id": "p7", "output": "x", "trial": 3, "site": "Oslo"}])
    assert (sample.id, sample.group, sample.metadata) == ("p7", None, {"trial": 3, "site": "Oslo"})


def test_a_state_is_an_object_or_a_list_and_any_value_where_it_is_mapped() -> None:
    rows = [{"output": "x", "state": state} for state in ({"a": 1}, [1], "CA", None)]
    assert [sample.state for sample in load(rows)] == [{"a": 1}, [1], None, None]
    assert [sample.metadata for sample in load(rows)] == [{}, {}, {"state": "CA"}, {}]
    assert [sample.state for sample in load(rows, map={"state": "state"})] == [{"a": 1}, [1], "CA", None]


@pytest.mark.parametrize("first", ["CA", {"a": 1}])
def test_a_state_is_among_the_columns_wherever_its_rows_are(first: Any) -> None:
    second = {"a": 1} if first == "CA" else "CA"
    dataset = load([{"output": "x", "state": state} for state in (first, second)])
    assert (dataset.columns, dataset.ignored) == ({"output": "output", "state": "state"}, ("state",))
    assert load([{"output": "x", "state": "CA"}] * 2).columns == {"output": "output"}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(output="a"),
        Answer(output="", context=["\u202e"], metadata={"z": 1.0}, cost=0.1, state={"rows": [1]}),
        Answer(messages=[Message(role="assistant", tool_calls=[ToolCall(name="look")])], instructions="other"),
        Answer(output="a", trajectory=Trajectory(steps=(TrajectoryStep(step_type="tool_call", name="other"),))),
    ],
)
@pytest.mark.parametrize("messages", [(), WHOLE.messages])
def test_what_an_answer_leaves_of_a_sample_is_written_once(answer: Answer, messages: tuple[Message, ...]) -> None:
    asked = replace(WHOLE, messages=messages, trajectory=None, output=None)
    assert asked.content_hash
    filled = answer.fill(asked, seconds=0.5)
    anew = replace(filled)
    assert filled == anew
    assert filled.content_hash == anew.content_hash
    texts = field_texts(asked)
    assert content_with(field_texts(filled, asked, texts)) == sample_content(anew)
    known = {name: f'"{name}"' for name in texts}
    written = field_texts(filled, asked, known)
    assert {name for name in written if written[name] == f'"{name}"'} >= {"input", "reference", "expected_trajectory"}
    assert answer.to_json() == json.dumps(answer.to_dict())
    assert json.loads(answer.to_json({"output": '"known"'})).get("output") == (
        None if answer.output is None else "known"
    )

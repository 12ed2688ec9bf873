"""Samples written and read back: every field, and the same version."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import (
    ConfigError,
    DataError,
    ExpectedStep,
    Message,
    Sample,
    ToolCall,
    Trajectory,
    TrajectoryExpectation,
    TrajectoryStep,
    load,
)
from evalstone.datasets.stored import StoredSamples, sample_of, write_samples
from evalstone.datasets.streaming import version_of

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
)


def test_every_field_comes_back(tmp_path: Path) -> None:
    samples = [WHOLE, Sample(output="x"), Sample(id="none")]
    write_samples(tmp_path / "s.jsonl", samples)
    back = StoredSamples(tmp_path / "s.jsonl")
    assert list(back) == samples
    assert [sample.metadata for sample in back] == [sample.metadata for sample in samples]
    assert version_of(back) == version_of(samples)


def test_the_file_is_a_data_set_itself(tmp_path: Path) -> None:
    samples = [Sample(id="a", input="q", output="o", context=["p"], metadata={"k": "v"})]
    write_samples(tmp_path / "s.jsonl", samples)
    assert load(tmp_path / "s.jsonl").version == version_of(samples)


@pytest.mark.parametrize("row", [[], "x", {"id": 1}, {"messages": [{"role": "nobody"}]}, {"messages": [1]}, {"no": 1}])
def test_what_is_no_sample_is_refused(row: object) -> None:
    with pytest.raises(ConfigError):
        sample_of(row)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.jsonl cannot be read"):
        list(StoredSamples(tmp_path / "gone.jsonl"))


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"id": "a"}\n{\n')
    with pytest.raises(DataError, match=r"s\.jsonl, line 2"):
        list(StoredSamples(tmp_path / "s.jsonl"))

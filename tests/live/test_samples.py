"""Samples from what was submitted, with where they come from."""

from __future__ import annotations

import pytest

from evalstone import ConfigError, DataError, Sample
from evalstone.live.frames import Content
from evalstone.live.samples import read_sample, sample_from


def test_what_was_answered_took_the_seconds_that_were_measured() -> None:
    sample = sample_from(Content({"input": "q"}, "a", answered=True, seconds=1.5), {})
    assert (sample.input, sample.output, sample.metadata["target"]["seconds"]) == ("q", "a", 1.5)


def test_what_the_tracer_says_comes_before_what_the_sample_says_and_keeps_the_rest() -> None:
    said = {"trace_id": "theirs", "service": "shop"}
    sample = sample_from(Content(Sample(output="a", metadata={"trace": said, "n": 1})), {"trace_id": "ours"})
    assert sample.metadata == {"trace": {"trace_id": "ours", "service": "shop"}, "n": 1}


def test_fields_without_a_value_are_as_none() -> None:
    assert sample_from(Content({"output": "a", "input": None, "unheard_of": None}), {}).output == "a"
    with pytest.raises(DataError, match="no field"):
        sample_from(Content({"output": None}), {})
    with pytest.raises(ConfigError, match="unheard_of"):
        sample_from(Content({"output": "a", "unheard_of": 1}), {})


def test_an_error_names_the_field_of_the_one_sample() -> None:
    with pytest.raises(DataError, match=r"^input .* complex"):
        read_sample({"output": "a", "input": 5.5j})

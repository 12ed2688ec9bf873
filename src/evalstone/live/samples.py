"""Samples from submissions, and from what a guard checks.

Submissions are read in the worker, because that would delay a request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from evalstone import datasets
from evalstone._core.guards import is_mapping
from evalstone.api import one_sample
from evalstone.errors import DataError
from evalstone.live.frames import Content
from evalstone.targets import Answer
from evalstone.types import Sample, trace_metadata


def sample_from(content: Content, trace: Mapping[str, str]) -> Sample:
    """The submitted sample, with its origin in `metadata["trace"]`.

    Args:
        content: What was submitted.
        trace: What is known of its trace, in addition to its metadata.

    Raises:
        ConfigError: If it isn't a sample.
    """
    if content.problem:
        raise DataError(content.problem)
    sample = read_sample(content.fields)
    if content.answered:
        sample = Answer.of(content.answer, by="the function").fill(sample, seconds=content.seconds)
    known = {**trace_metadata(sample), **trace}
    return dataclasses.replace(sample, metadata={**sample.metadata, "trace": known}) if known else sample


def submitted_trace(content: Content) -> Mapping[str, Any]:
    """The entry `metadata["trace"]` of a submission that isn't a sample."""
    value: Any = content.fields
    for name in ("metadata", "trace"):
        value = value.get(name) if is_mapping(value) else None
    return value if is_mapping(value) else {}


def read_sample(fields: object) -> Sample:
    """A sample, or the sample that `evaluate` reads from a mapping of its fields.

    Raises:
        ConfigError: For an unknown field.
        DataError: For a value that can't be read, for no fields, and for anything else.
    """
    if isinstance(fields, Sample):
        return fields
    if not is_mapping(fields):
        raise DataError(f"a Sample, a mapping or fields were expected, not {type(fields).__name__}")
    row = {str(name): value for name, value in fields.items() if value is not None}
    if not row:
        raise DataError("it has no field")
    return datasets.sample_from(cast("Mapping[str, Any]", one_sample(None, row)))

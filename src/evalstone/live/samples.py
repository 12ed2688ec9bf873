"""Samples from what was submitted. In the worker, since checking takes longer than a request should wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from evalstone.api import one_sample
from evalstone.datasets import load
from evalstone.errors import DataError
from evalstone.live.frames import Content
from evalstone.targets import Answer
from evalstone.targets.base import BlankAnswer
from evalstone.types import Sample, trace_metadata


def sample_from(content: Content, trace: Mapping[str, str]) -> Sample:
    """The sample that was submitted, with where it comes from in `metadata["trace"]`.

    Args:
        content: What was submitted.
        trace: What is known of its trace beside what its metadata says.

    Raises:
        ConfigError: It is no sample.
    """
    if content.problem:
        raise DataError(content.problem)
    sample = _read(content.fields)
    if content.answered:
        try:
            answer = Answer.of(content.answer, by="the function")
        except BlankAnswer as blank:  # which scorers may have something to say about
            answer = blank.answer
        sample = answer.fill(sample, seconds=content.seconds)
    known = {**trace_metadata(sample), **trace}
    return dataclasses.replace(sample, metadata={**sample.metadata, "trace": known}) if known else sample


def submitted_trace(content: Content) -> Mapping[str, Any]:
    """What `metadata["trace"]` says in what was submitted, where that is no sample."""
    found: Any = content.fields
    for name in ("metadata", "trace"):
        found = cast("Mapping[str, Any]", found).get(name) if isinstance(found, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _read(fields: object) -> Sample:
    if isinstance(fields, Sample):
        return fields
    if not isinstance(fields, Mapping):
        raise DataError(f"a Sample, a mapping or fields were expected, not {type(fields).__name__}")
    row = {str(name): value for name, value in cast("Mapping[Any, Any]", fields).items() if value is not None}
    if not row:
        raise DataError("it has no field")
    return next(iter(load([one_sample(None, row)])))

"""The samples of a run, stored next to its records: `samples.jsonl`, one line per sample, as judged.

Each field is stored under its own name, so the file reads back as the same samples and can be used as a dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from evalstone._core.file_format import SAMPLE_FORMAT
from evalstone._core.guards import is_object
from evalstone._core.json import to_jsonable
from evalstone._core.redaction import redacted
from evalstone._core.validation import read_data
from evalstone.datasets.writing import plain_line, write_text
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.types import (
    LISTS,
    SAMPLE_FIELDS,
    Message,
    Record,
    Sample,
    ToolCall,
    Trajectory,
    TrajectoryExpectation,
    Usage,
)
from evalstone.types.samples import TEXTS

RECORDS, SUMMARY, SAMPLES = "records.jsonl", "summary.json", "samples.jsonl"
"""The files of a results folder."""
_FORMAT = f'{{"format": "{SAMPLE_FORMAT}", '
"""How each line of `samples.jsonl` begins."""
_EMPTY_OR_ABSENT = frozenset((*LISTS, "metadata"))
"""The fields that have no value if it is empty."""
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


def sample_row(sample: Sample) -> dict[str, Any]:
    """A sample as data: its id and the fields that have a value."""
    row: dict[str, Any] = {"id": sample.id}
    for name in SAMPLE_FIELDS:
        value = getattr(sample, name)
        if type(value) is str:
            row[name] = value
        elif value is not None and (value or name not in _EMPTY_OR_ABSENT):
            row[name] = [*map(sample_row, sample.turns)] if name == "turns" else to_jsonable(value)
    if sample.trial is not None:
        row["trial"] = sample.trial
    return row


def sample_line(sample: Sample) -> str:
    """A sample as one line of `samples.jsonl`, without the line break.

    Raises:
        ConfigError: A number is NaN or infinite.
    """
    return line_with(sample.id, sample_content(sample), sample.trial)


def line_with(id: str, content: str, trial: int | None = None) -> str:
    """The line of a sample (see `sample_line`) with an ID and a trial. content: `sample_content` of the sample."""
    last = "" if trial is None else f', "trial": {trial}'
    return f'{_FORMAT}"id": {plain_line(id)}{content}{last}}}'


def sample_content(sample: Sample) -> str:
    """What the lines of a sample and its trials have besides ID and trial, for `line_with`.

    Raises:
        ConfigError: A number is NaN or infinite.
    """
    return content_with(field_texts(sample))


def content_with(texts: Mapping[str, str]) -> str:
    """The `sample_content` of a sample with these `field_texts`."""
    return "".join([f', "{name}": {text}' for name, text in texts.items()])


def field_texts(sample: Sample, like: Sample | None = None, known: Mapping[str, str] = _NO_TEXTS) -> dict[str, str]:
    """The fields of a sample that have a value, as JSON.

    Args:
        sample: The sample.
        like: Another one. Values that both have aren't written again.
        known: The texts of its fields.

    Raises:
        ConfigError: A number is NaN or infinite.
    """
    values, others = vars(sample), {} if like is None else vars(like)
    texts: dict[str, str] = {}
    for name in SAMPLE_FIELDS:
        value = values[name]
        if value is None or (not value and name in _EMPTY_OR_ABSENT):
            continue
        if name in known and value is others[name]:
            texts[name] = known[name]
        elif type(value) is str:
            texts[name] = plain_line(value)
        else:
            texts[name] = plain_line([*map(sample_row, value)] if name == "turns" else to_jsonable(value))
    return texts


def content_of(line: str, id: str) -> str:
    """What the line of a sample with this ID (see `sample_line`) has besides the ID."""
    return line[len(_FORMAT) + len('"id": ') + len(plain_line(id)) :]


def record_line(record: Record) -> str:
    """A record as one line of `records.jsonl`, without the line break. Secrets are replaced by `***`.

    Raises:
        ConfigError: A number is NaN or infinite.
    """
    return redacted(plain_line(record.to_dict()))


def sample_of(row: object) -> Sample:
    """A sample from a line of `samples.jsonl`, or from the row of one. Fields that it doesn't know are ignored.

    Raises DataError for anything else, and for a line of another format.
    """
    if not is_object(row):
        raise DataError(invalid("a sample", "an object", row, type(row).__name__))
    if (usual := _usual(row)) is not None:
        return usual
    if "format" in row:
        SAMPLE_FORMAT.check(row)
    entries = {name: value for name, value in row.items() if name in _FIELDS}
    try:
        for name in NESTED.keys() & entries:
            entries[name] = NESTED[name](entries[name])
        return Sample(**entries)
    except TypeError as error:
        raise DataError("not a sample (", error, ")") from None


def _usual(row: Mapping[str, Any]) -> Sample | None:
    """The sample of a row that only has texts, like most rows of large datasets, in a fifth of the time; None for any
    other row."""
    if not _TEXTS.issuperset(row) or {*map(type, row.values())} != {str} or not row.get("id"):
        return None
    if row.get("format", SAMPLE_FORMAT) != SAMPLE_FORMAT:
        return None
    sample = object.__new__(Sample)  # what its constructor checks is checked
    values = vars(sample)
    values.update(_ABSENT)
    values.update(row, metadata={})
    values.pop("format", None)
    return sample


def message_of(row: object) -> Message:
    """A message from its fields, without those that it doesn't know."""
    if is_object(row):
        entries = dict(row)
        try:
            if calls := entries.get("tool_calls"):
                entries["tool_calls"] = [*map(_call_of, calls)]
            if entries.get("usage") is not None:
                entries["usage"] = read_data(Usage, entries["usage"])
            return Message(**entries)
        except (TypeError, ConfigError):  # a newer version wrote it, or it is none
            pass
    return read_data(Message, row)


def _call_of(row: Any) -> ToolCall:
    try:
        return ToolCall(**row)
    except (TypeError, ConfigError):  # as above
        return read_data(ToolCall, row)


NESTED: Mapping[str, Callable[[Any], Any]] = {
    "messages": lambda messages: tuple(map(message_of, messages)),
    "turns": lambda turns: tuple(map(sample_of, turns)),
    "trajectory": lambda steps: None if steps is None else read_data(Trajectory, steps),
    "expected_trajectory": lambda steps: None if steps is None else read_data(TrajectoryExpectation, steps),
}
"""How fields of samples and answers that aren't plain data are read."""
_FIELDS = frozenset(each.name for each in fields(Sample))
_TEXTS = frozenset(("format", *TEXTS))
_ABSENT = {each.name: each.default for each in fields(Sample)}
"""The fields of a sample without a value; its metadata is an object of its own."""


@runtime_checkable
class HasLines(Protocol):
    """Samples that are stored as lines, as by `sample_line`."""

    def lines(self) -> Iterator[str]:
        """The lines."""
        ...


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write samples, one per line, with `write_text`."""
    write_text(path, (f"{line}\n" for line in sample_lines(samples)), redact=False)


def sample_lines(samples: Iterable[Sample]) -> Iterator[str]:
    """Samples as lines (see `sample_line`)."""
    return samples.lines() if isinstance(samples, HasLines) else map(sample_line, samples)

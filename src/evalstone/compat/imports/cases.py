"""Samples from what tools call inputs, variables or test data: named values of which some are fields of a sample."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from evalstone._core.guards import is_object
from evalstone._core.json import content_hash
from evalstone.datasets.cells import scalar_text, storable, unpacked
from evalstone.datasets.columns import claims
from evalstone.datasets.json_rows import parse_json
from evalstone.errors import ConfigError, DataError
from evalstone.types.documents import read_passages
from evalstone.types.reserved_metadata import WRITTEN_METADATA

CASE = ("input", "reference", "context", "instructions")
"""The fields that named values of a case can be. They have no answer: `answer` among them is the expected one."""
_ASKED = ("input", "context", "instructions")
_EXPECTED = ("answer", "completion", "ideal_answer", "gold")


def case_fields(values: Mapping[str, Any], *, fields: Collection[str] = CASE) -> dict[str, Any]:
    """The fields of a sample in named values, and its metadata: the values that are no field.

    Names are those that evalstone knows of columns (`question`, `query`, `expected_output`, `contexts` …). If none is
    an input and there is one other value, that is it; if there are several, it is all of them as a JSON object.
    """
    known = {name: value for name, value in values.items() if value is not None}
    found: dict[str, Any] = {}
    used: set[str] = set()
    for field, columns in claims(tuple(known)).items():
        if field in fields:
            column = columns[0][1]
            if (read := _field(field, known[column])) is not None:
                found[field] = read
                used.add(column)
    if "reference" in fields and "reference" not in found:
        for name in known:
            if name.lower() in _EXPECTED and (text := scalar_text(known[name])) is not None:
                found["reference"] = text
                used.add(name)
                break
    others = {name: value for name, value in known.items() if name not in used}
    if "input" in fields and "input" not in found and others:
        if len(others) == 1:
            found["input"] = text_of(others.popitem()[1])
        else:
            found["input"] = json.dumps(storable(others), ensure_ascii=False)
    found["metadata"] = metadata_of(others)
    return found


def key_of(parts: list[Any]) -> str:
    """The key of a case, by what tells it from others. Raises DataError for what is nested too deeply."""
    try:
        return content_hash(parts)
    except ValueError:
        raise DataError("nested too deeply") from None


def as_metadata(name: str) -> str:
    """The name of an entry of the metadata: those that evalstone writes itself get an underscore."""
    return f"{name}_" if name in WRITTEN_METADATA else name


def metadata_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Named values as metadata."""
    return {as_metadata(name): storable(value) for name, value in values.items()}


def text_of(value: object) -> str | None:
    """What a system answered as text: numbers, objects and lists as JSON; None for none."""
    if value is None:
        return None
    text = scalar_text(value)
    return json.dumps(storable(value), ensure_ascii=False) if text is None else text


def parsed(value: object, place: str) -> Any:
    """The value of a JSON text; any other value unchanged. Raises DataError, with the place, for invalid JSON."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except DataError as error:
        raise DataError(f"{place}: ", error) from None


def written(value: object, place: str) -> Any:
    """The object or list that a text writes out in JSON or Python; any other value unchanged. Raises DataError, with
    the place, for one that is cut."""
    try:
        return unpacked(value)
    except DataError as error:
        raise DataError(f"{place}: ", error) from None


def exchange_fields(asked: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a sample in what was asked and what was expected, by name. The reference is the expected value that
    is known as one, or as an output, or else the only one, if it is a text or a number. All others are metadata."""
    fields, wanted = case_fields(asked, fields=_ASKED), case_fields(expected, fields=("reference",))
    if "reference" not in wanted:
        one = answer_fields(expected)
        if "output" in one and (len(expected) == 1 or one["output"] != text_of(expected)):
            wanted = {"reference": one["output"], "metadata": {**one.get("metadata", {})}}
    known: dict[str, Any] = fields["metadata"]
    others = {f"expected_{name}" if name in known else name: value for name, value in wanted.pop("metadata").items()}
    return {**fields, **wanted, "metadata": {**known, **others}}


def answer_fields(value: object) -> dict[str, Any]:
    """The fields of an answer in what a system returned. Of an object, the output is the value that is known as one, or
    the only one, if it is a text or a number; all others are metadata. Else it is all of it as JSON."""
    if value is None or value == {}:
        return {}
    if not is_object(value):
        return {"output": text_of(value)}
    found = case_fields(value, fields=("output", "context"))
    if "output" not in found and len(value) == 1 and (one := scalar_text(next(iter(value.values())))) is not None:
        return {"output": one}
    if "output" not in found:
        return {"output": text_of(value)}
    return {**found, "metadata": {f"output.{name}": each for name, each in found["metadata"].items()}}


def _field(field: str, value: Any) -> Any:
    """The value of a field; None if it isn't one."""
    if field != "context":
        return text_of(value) if field != "instructions" else scalar_text(value)
    try:
        return read_passages(value) or None
    except ConfigError:
        return None

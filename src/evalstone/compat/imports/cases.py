"""Samples from what tools call inputs, variables or test data: named values of which some are fields of a sample."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from evalstone._core.json import content_hash
from evalstone.datasets.cells import read_passages, scalar_text, storable
from evalstone.datasets.columns import claims
from evalstone.errors import ConfigError, DataError
from evalstone.types.reserved_metadata import WRITTEN_METADATA

CASE = ("input", "reference", "context", "instructions")
"""The fields that named values of a case can be. They have no answer: `answer` among them is the expected one."""
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
    others = [name for name in known if name not in used]
    if "input" in fields and "input" not in found and others:
        one = _field("input", known[others[0]]) if len(others) == 1 else None
        found["input"] = one or json.dumps(storable({name: known[name] for name in others}), ensure_ascii=False)
        if one is not None:
            used.add(others[0])
    found["metadata"] = {as_metadata(name): storable(known[name]) for name in known if name not in used}
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


def text_of(value: object) -> str | None:
    """What a system answered as text: numbers, objects and lists as JSON; None for none."""
    if value is None:
        return None
    text = scalar_text(value)
    return json.dumps(storable(value), ensure_ascii=False) if text is None else text


def _field(field: str, value: Any) -> Any:
    """The value of a field; None if it isn't one."""
    if field != "context":
        return text_of(value) if field != "instructions" else scalar_text(value)
    try:
        return read_passages(value) or None
    except ConfigError:
        return None

"""Entries of metadata that are the same in every source: a CSV file has only texts, and no missing values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone._core.text import is_blank
from evalstone.datasets.cells import number_in, scalar_text, unpacked
from evalstone.errors import ConfigError, DataError
from evalstone.types import RUBRICS, parse_criteria


def comparable(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Entries that are equal if a CSV file has the same cells for them: without missing ones, numbers and booleans as
    texts, and lists and objects also if they are written as texts. Rubrics are equal if their criteria are."""
    entries = {name: _criteria(value) if name in RUBRICS else _entry(value) for name, value in metadata.items()}
    return {name: value for name, value in entries.items() if value is not None}


def _criteria(value: Any) -> Any:
    """A rubric as objects, which a text or a list of texts may stand for; what is none as any other entry."""
    try:
        criteria = parse_criteria(value) if value else ()
    except ConfigError:
        return _entry(value)
    return to_jsonable(criteria) if criteria else None


def _entry(value: Any) -> Any:
    if isinstance(value, str):
        if is_blank(value):
            return None
        with suppress(DataError):  # a text that only resembles a list
            value = unpacked(value)
    number = number_in(value)
    if isinstance(number, float) and math.isfinite(number):
        value = number
    text = scalar_text(value)
    return value if text is None else text.lower() if text.lower() in ("true", "false") else text

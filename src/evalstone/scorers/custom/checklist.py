"""Criteria and instructions as people write them down: a list, or one a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

from evalstone.errors import ConfigError, unknown

_MARK = re.compile(r"\A\s*(?:•|(?:[-*]|\d+[.)])(?:\s|$))\s*")


@dataclass(frozen=True)
class Criterion:
    """One thing that an answer is to show. required=False: it is judged and reported, and does not decide."""

    description: str
    required: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.description, str) or not self.description.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a criterion's description must be text, not {self.description!r}")
        if not isinstance(self.required, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a criterion's required must be True or False, not {self.required!r}")


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a checklist without their marks (`-`, `*`, `•`, `1.`, `1)`); blank lines are left out."""
    found = (_MARK.sub("", line, count=1).strip() for line in text.splitlines())
    return tuple(line for line in found if line)


def criteria_of(given: object) -> tuple[Criterion, ...]:
    """Criteria from a checklist, or from a list of texts, Criterion values and tables with their fields.

    Raises ConfigError for anything else.
    """
    if isinstance(given, str):
        return tuple(Criterion(line) for line in lines_of(given))
    if isinstance(given, Sequence):
        return tuple(_criterion(item) for item in cast("Sequence[object]", given))
    raise ConfigError(f"criteria must be a checklist or a list of criteria, not {type(given).__name__}")


def _criterion(given: object) -> Criterion:
    if isinstance(given, Criterion):
        return given
    if isinstance(given, str):
        return Criterion(given)
    if not isinstance(given, Mapping):
        raise ConfigError(f"a criterion is a text, a Criterion or a table, not {type(given).__name__}")
    table = cast("Mapping[str, Any]", given)
    known = [field.name for field in fields(Criterion)]
    for key in table:
        if key not in known:
            raise ConfigError(f"criterion: {unknown('field', str(key), known)}")
    if "description" not in table:
        raise ConfigError("a criterion's table needs a description")
    return Criterion(**table)

"""What the class of a scorer declares: its definition, and its parameters with what they may be."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from evalstone._core.declarations import allowed_values
from evalstone.scorers.base import Scorer, docstring

_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def applies_another(kind: type[Scorer]) -> bool:
    """Whether a scorer applies another one, and takes its direction and judge calls from it."""
    return any(field.name == "scorer" for field in fields(kind))


def documentation(kind: type[Scorer]) -> str:
    """The definition of a scorer: its docstring up to the parameters."""
    return docstring(kind).partition("Attributes:\n")[0].strip()


class Parameter(NamedTuple):
    """A parameter of a scorer. default: `dataclasses.MISSING` if it is required. allowed: what it may be, in words;
    empty if that is anything."""

    name: str
    default: Any
    allowed: str
    description: str


def parameters_of(kind: type[Scorer]) -> list[Parameter]:
    """The parameters of a scorer: what its fields declare, and what its docstring says about them."""
    allowed, described = allowed_values(kind), _described_parameters(kind)
    return [
        Parameter(
            field.name,
            field.default if field.default_factory is MISSING else field.default_factory(),
            allowed[field.name],
            described.get(field.name, ""),
        )
        for field in fields(kind)
        if field.init
    ]


def _described_parameters(kind: type[Scorer]) -> dict[str, str]:
    described: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        attributes = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        described |= {match[1]: " ".join(match[2].split()) for match in _ATTRIBUTE.finditer(attributes)}
    return described

"""Built-in scorers as the tables that define them, and back.

A saved run has the tables, so that what its scorers asked can be rebuilt. A saved run may be anyone's: reading a table
imports no code but evalstone's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from evalstone._core.guards import is_mapping
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.scorers.base import Scorer
from evalstone.scorers.registry import SCORERS, TEMPLATES, parse_scorer

_PACKAGE = "evalstone.scorers."
_APPLIED = "scorer"
"""The parameter that is another scorer."""
_IMPORTING = ("embedding_similarity",)
"""Scorers whose parameters may be addresses of code. They ask an embedding model, which has no prompt."""


def definition_of(scorer: Scorer) -> dict[str, Any] | None:
    """The table of a built-in scorer, without its judge; None for one with code of the user's."""
    path = f"{type(scorer).__module__}.{type(scorer).__qualname__}"
    names = (
        {key: name}
        for key, registry in (("name", SCORERS), ("kind", TEMPLATES))
        for name, place in registry.paths.items()
        if _PACKAGE + place == path
    )
    table: dict[str, Any] | None = next(names, None)
    if table is None:
        return None
    for field in fields(scorer):
        value = getattr(scorer, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if not field.init or field.name == "judge" or value == default:
            continue
        if callable(value) and not isinstance(value, Scorer):
            return None
        inner = definition_of(value) if isinstance(value, Scorer) else to_jsonable(value)
        if inner is None and value is not None:
            return None
        table[field.name] = inner
    return table


def defined(table: Mapping[str, Any]) -> Scorer:
    """The built-in scorer that a table defines.

    Raises:
        ConfigError: It defines none of this version of evalstone, or would import code.
    """
    name, kind = table.get("name"), table.get("kind")
    known = kind in TEMPLATES if "kind" in table else name in SCORERS and name not in _IMPORTING
    applied = table.get(_APPLIED, {})
    if not known or not is_mapping(applied) or "judge" in table:
        raise ConfigError("this table doesn't define a built-in scorer")
    return parse_scorer({**table, **({_APPLIED: defined(applied)} if applied else {})})

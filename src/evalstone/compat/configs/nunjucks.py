"""Templates of promptfoo, as far as they are names in double braces: `{{question}}`, `{{user.name}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from evalstone._core.guards import is_array, is_mapping
from evalstone.compat.imports.cases import text_of

_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.[\w-]+)*)\s*-?\}\}")
_MARK = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_LIKE_OURS = re.compile(r"\\[{}]|\{[A-Za-z_][\w.-]*\}|\{\Z|\A\}")


class UnsupportedTemplate(Exception):
    """A template has more than names: filters, loops, conditions, or variables of the environment."""


def names_in(template: str) -> list[str]:
    """The names in a template. Raises UnsupportedTemplate."""
    found: dict[str, None] = {}
    for mark in _MARK.finditer(template):
        match = _NAME.fullmatch(mark[0])
        if match is None or match[1].partition(".")[0] in ("env", "_conversation", "loop"):
            raise UnsupportedTemplate(" ".join(mark[0].split())[:80])
        found[match[1]] = None
    return [*found]


def rendered(template: str, variables: Mapping[str, Any]) -> str:
    """The text of a template. A name without a value is empty. Raises UnsupportedTemplate."""
    names_in(template)
    return _NAME.sub(lambda match: written(value_of(match[1], variables)), template)


def converted(template: str, placeholder: Callable[[str], str]) -> str:
    """A template in our form, in which a name is in single braces, and a brace that isn't one of a placeholder may need
    a backslash. Raises UnsupportedTemplate."""
    names_in(template)
    parts: list[str] = []
    end = 0
    for match in _NAME.finditer(template):
        parts += [_escaped(template[end : match.start()]), f"{{{placeholder(match[1])}}}"]
        end = match.end()
    return "".join([*parts, _escaped(template[end:])])


def value_of(name: str, variables: Mapping[str, Any]) -> Any:
    """The value of a name, which may be a path; None if there is none."""
    value: Any = variables
    for part in name.split("."):
        value = value.get(part) if is_mapping(value) else None
    return value


def written(value: Any) -> str:
    """A value in a template: of a list, its items with commas between them."""
    return ",".join(map(written, value)) if is_array(value) else as_text(value)


def as_text(value: Any) -> str:
    """A value as JavaScript writes it: objects and lists as JSON without spaces."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text_of(value) or ""


def _escaped(text: str) -> str:
    return re.sub(r"([{}])", r"\\\1", text) if _LIKE_OURS.search(text) else text

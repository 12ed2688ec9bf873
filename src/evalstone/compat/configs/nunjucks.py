"""Templates of promptfoo, as far as they are names in double braces: `{{question}}`, `{{user.name}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalstone._core.guards import is_array, is_mapping, is_object
from evalstone.compat.imports.cases import text_of
from evalstone.errors import DataError

MOST_TEXT = 50_000_000
VALUE = 32
"""How many characters a value counts besides its text."""

_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.[\w-]+)*)\s*-?\}\}")
_OPENING = re.compile(r"\{[{%#]")
_CLOSING = {"{{": "}}", "{%": "%}", "{#": "#}"}
_LIKE_OURS = re.compile(r"\\[{}]|\{[A-Za-z_][\w.-]*\}|\{\Z|\A\}")


class UnsupportedTemplate(Exception):
    """A template has more than names: filters, loops, conditions, or variables of the environment."""


@dataclass
class TextLimit:
    """A limit on the characters of a configuration's tests, with everything written out that they share: a few
    templates and files could fill the memory."""

    config: str
    """The name of the configuration, for errors."""
    left: int = MOST_TEXT
    """How many there may still be."""

    def count(self, size: int) -> None:
        """Count characters. Raises DataError if these are too many."""
        self.left -= size
        if self.left < 0:
            raise DataError(
                f"{self.config}: with files, references and variables filled in, its tests have more than "
                f"{MOST_TEXT:,} characters"
            )

    def count_value(self, value: Any) -> None:
        """Count the characters of a value and of all in it. Raises as `count` does."""
        if isinstance(value, str):
            self.count(len(value))
            return
        self.count(VALUE)
        if is_object(value):
            for name, inner in value.items():
                self.count(len(name))
                self.count_value(inner)
        elif is_array(value):
            for inner in value:
                self.count_value(inner)


def names_in(template: str) -> list[str]:
    """The names in a template. Raises UnsupportedTemplate."""
    found: dict[str, None] = {}
    for mark in _marks(template):
        match = _NAME.fullmatch(mark)
        if match is None or match[1].partition(".")[0] in ("env", "_conversation", "loop"):
            raise UnsupportedTemplate(" ".join(mark.split())[:80])
        found[match[1]] = None
    return [*found]


def _marks(template: str) -> Iterator[str]:
    """What is in double braces, and other tags and comments of templates."""
    at, unclosed = 0, set[str]()
    while opening := _OPENING.search(template, at):
        at = opening.start() + 1
        if opening[0] in unclosed:
            continue
        end = template.find(_CLOSING[opening[0]], opening.end())
        if end < 0:
            unclosed.add(opening[0])
        else:
            at = end + 2
            yield template[opening.start() : at]


def rendered(template: str, variables: Mapping[str, Any], limit: TextLimit) -> str:
    """The text of a template. A name without a value is empty.

    Raises UnsupportedTemplate, and as `TextLimit.count` does.
    """
    limit.count(len(template))
    names_in(template)

    def filled(match: re.Match[str]) -> str:
        text = written(value_of(match[1], variables))
        limit.count(len(text) + VALUE)
        return text

    return _NAME.sub(filled, template)


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

"""Settings in messages, as users write them: `--missing ignore` on the command line, `missing="ignore"` in Python.

Errors and notes hold `Setting`s. Whoever shows them knows the front end, and fills in its words.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import EllipsisType
from typing import Literal, TypeAlias


class Nothing(Enum):
    """The value None of a setting: in a `Setting`, None stands for no value."""

    NOTHING = "none"


NOTHING = Nothing.NOTHING
_SPECIAL = re.compile(r"""[\s'"`\\$&;()*?!#\[\]{}]""")
"""What a shell takes for something else. `|`, `<` and `>` also stand in placeholders of messages."""
SettingValue: TypeAlias = (
    str | float | bool | Mapping[str, str | float | tuple[str, ...]] | tuple[str, ...] | EllipsisType | Nothing | None
)


@dataclass(frozen=True)
class Setting:
    """A setting that a message names, with its value unless that is None.

    On the command line, False is `--no-cache`. An ellipsis stands for a value of the user's: `labels=…`, or `--labels`.
    """

    name: str
    value: SettingValue = None


@dataclass(frozen=True)
class Hint:
    """A part of a message that is dropped where the front end lacks one of its settings."""

    parts: tuple[str | Setting, ...]

    @classmethod
    def of(cls, *parts: str | Setting) -> Hint:
        """A hint from its parts."""
        return cls(parts)


WordingPart: TypeAlias = str | Setting | Hint
Wording: TypeAlias = WordingPart | tuple[WordingPart, ...]
"""A text, or one that names settings."""


@dataclass(frozen=True)
class FrontEnd:
    """How users of a front end write settings."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names that differ from the Python names; "" for settings that the front end doesn't have."""
    style: Literal["python", "options", "keys"] = "python"
    """Whether settings are arguments of Python, command-line options, or keys of a TOML file."""
    flags: frozenset[str] | None = None
    """The options of a command, which has no others; None if the settings may be of any command."""
    keys: frozenset[str] = frozenset()
    """The settings that a command reads from a file. Those without an option are written as keys."""

    def term(self, name: str, value: SettingValue = None) -> str:
        """A setting as the user writes it (see `Setting`); "" if the user can't set it."""
        name = self.names.get(name, name)
        if not name:
            return ""
        if self.style == "python":
            return name if value is None else f"{name}={_literal(value)}"
        if self.style == "keys":
            return name if value is None or isinstance(value, EllipsisType) else _assigned(name, value)
        key, name = name, f"--{name.replace('_', '-')}"
        if self.flags is not None and name not in self.flags:
            return TOML.term(key, value) if key in self.keys else ""
        if value is False:
            return f"--no-{name[2:]}"
        if value is None or value is True or isinstance(value, EllipsisType):
            return name
        if isinstance(value, Mapping):
            items = (
                (key, item) for key, each in value.items() for item in (each if isinstance(each, tuple) else (each,))
            )
            return " ".join(f"{name} {_quoted(f'{key}={_plain(item)}')}" for key, item in items)
        if isinstance(value, tuple):
            return " ".join(f"{name} {item}" for item in value)
        return f"{name} {_quoted(_plain(value))}"

    def written(self, parts: Iterable[WordingPart]) -> str:
        """The parts of a message as text."""
        return "".join(map(self._part, parts))

    def _part(self, part: WordingPart) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Setting):
            return self.term(part.name, part.value)
        lacking = any(isinstance(each, Setting) and not self.term(each.name) for each in part.parts)
        return "" if lacking else self.written(part.parts)


PYTHON = FrontEnd()
COMMAND_LINE = FrontEnd(
    {
        "dataset": "data",
        "perturbations": "perturbation",
        "scales": "scale",
        "scorers": "scorer",
        "as_json": "json",
        "tags": "tag",
    },
    style="options",
)
TOML = FrontEnd({"dataset": "data"}, style="keys")
"""A configuration file."""
MARK = FrontEnd(
    dict.fromkeys(("look", "labels", "baseline_labels", "unpaired", "scales", "slice_by", "cycle", "before"), "")
)
"""`@pytest.mark.evalstone(…)`."""


def _plain(value: str | float | Nothing) -> str:
    return value if isinstance(value, str) else value.value if isinstance(value, Nothing) else f"{value:g}"


def _quoted(word: str) -> str:
    """A word of a command line, in quotes if a shell would take it for something else."""
    return shlex.quote(word) if _SPECIAL.search(word) else word


def _assigned(name: str, value: SettingValue) -> str:
    """A key of a TOML file with its value."""
    if isinstance(value, Mapping):
        return f"[{name}] {', '.join(f'{_key(key)} = {_literal(item)}' for key, item in value.items())}"
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    return f'{name} = "{value.value}"' if isinstance(value, Nothing) else f"{name} = {_literal(value)}"


def _key(name: str) -> str:
    """A key of a TOML file, quoted if it must be."""
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _literal(value: SettingValue) -> str:
    """A value as a Python literal."""
    if isinstance(value, EllipsisType):
        return "…"
    if isinstance(value, Nothing):
        return "None"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value}" if isinstance(value, bool) or value is None else f"{value:g}"

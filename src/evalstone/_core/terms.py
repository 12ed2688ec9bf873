"""Names of settings in messages: `--missing ignore` on the command line, `missing="ignore"` in Python.

Messages name settings with `term`. Each front end sets its own names (`front_end`), and hints at settings that it
doesn't have are dropped.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TypeAlias

Value: TypeAlias = str | float | bool | Mapping[str, str | float] | EllipsisType | None


@dataclass(frozen=True)
class FrontEnd:
    """How users of a front end write settings."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The names that differ from the Python names; "" for settings that the front end doesn't have."""
    options: bool = False
    """Whether settings are command-line options."""


PYTHON = FrontEnd()
COMMAND_LINE = FrontEnd({"minimum": "min", "maximum": "max", "mapping": "map", "dataset": "data"}, options=True)
_NOT_OF_MARKS = (
    "look",
    "baseline",
    "max_regression",
    "max_difference",
    "labels",
    "baseline_labels",
    "allow_mismatch",
)
MARK = FrontEnd({"minimum": "fail_under", "maximum": "fail_over"} | dict.fromkeys(_NOT_OF_MARKS, ""))
"""`@pytest.mark.evalstone(…)`."""

_CURRENT: ContextVar[FrontEnd] = ContextVar("evalstone_front_end", default=PYTHON)


def current() -> FrontEnd:
    """The front end whose names messages use."""
    return _CURRENT.get()


@contextlib.contextmanager
def front_end(kind: FrontEnd) -> Generator[None]:
    """Use the names of this front end within the context."""
    token = _CURRENT.set(kind)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def term(setting: str, value: Value = None) -> str:
    """A setting as the user writes it, with its value unless that is None; "" if the user can't set it.

    An ellipsis stands for a value of the user's: `labels=…`, or `--labels`.
    """
    kind = current()
    name = kind.names.get(setting, setting)
    if not name:
        return ""
    if not kind.options:
        return name if value is None else f"{name}={_literal(value)}"
    name = f"--{name.replace('_', '-')}"
    if value is None or value is True or isinstance(value, EllipsisType):
        return name
    if isinstance(value, Mapping):
        return " ".join(f"{name} {key}={_plain(item)}" for key, item in value.items())
    return f"{name} {_plain(value)}"


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _literal(value: Value) -> str:
    """A value as a Python literal."""
    if isinstance(value, EllipsisType):
        return "…"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value}" if isinstance(value, bool) or value is None else f"{value:g}"

"""What readers call a setting: `--missing ignore` on the command line, `missing="ignore"` in Python.

Texts name settings by `term`. A front end fills in its own names while it works (`front_end`), and drops the hints to
settings that it doesn't have.
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
    """How one kind of reader sets what a text names."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names that differ from those of Python; "" for what can't be set."""
    options: bool = False
    """Whether settings are options of a command."""


PYTHON = FrontEnd()
COMMAND_LINE = FrontEnd({"minimum": "min", "maximum": "max", "mapping": "map", "dataset": "data"}, options=True)
_NOT_OF_MARKS = ("look", "baseline", "max_regression", "labels", "baseline_labels", "allow_mismatch")
MARK = FrontEnd({"minimum": "fail_under", "maximum": "fail_over"} | dict.fromkeys(_NOT_OF_MARKS, ""))
"""`@pytest.mark.evalstone(…)`."""

_CURRENT: ContextVar[FrontEnd] = ContextVar("evalstone_front_end", default=PYTHON)


@contextlib.contextmanager
def front_end(kind: FrontEnd) -> Generator[None]:
    """Name settings as this front end does."""
    token = _CURRENT.set(kind)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def term(setting: str, value: Value = None) -> str:
    """A setting as its reader writes it, with a value unless that is None; "" where the reader can't set it.

    The ellipsis stands for a value that the reader knows: `labels=…`, or `--labels`.
    """
    kind = _CURRENT.get()
    name = kind.names.get(setting, setting)
    if not name:
        return ""
    if not kind.options:
        return name if value is None else f"{name}={_literal(value)}"
    name = f"--{name.replace('_', '-')}"
    if value is None or value is True or isinstance(value, EllipsisType):
        return name
    values = [f"{key}={_plain(one)}" for key, one in value.items()] if isinstance(value, Mapping) else [_plain(value)]
    return " ".join(f"{name} {one}" for one in values)


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _literal(value: Value) -> str:
    """A value in Python's notation."""
    if isinstance(value, EllipsisType):
        return "…"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(one)}' for key, one in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value}" if isinstance(value, bool) or value is None else f"{value:g}"

"""Validation of settings, declared on the fields of a frozen dataclass.

    temperature: Annotated[float | None, Range(0, 2)] = 0.0

`check_settings(self)` in `__post_init__` checks each field against its annotation.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import reprlib
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from evalstone._core.redaction import masked
from evalstone.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """The range of a number. exclusive: whether `least` itself is out of range."""

    least: float = -math.inf
    most: float = math.inf
    exclusive: bool = False

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.exclusive and value == self.least)

    def __str__(self) -> str:
        if self.most < math.inf:
            return f" from {self.least:g} to {self.most:g}"
        if self.least > -math.inf:
            return f" above {self.least:g}" if self.exclusive else f" of {self.least:g} or more"
        return ""


@dataclass(frozen=True)
class Rule:
    """A condition on a setting. words: what the setting must be, for errors."""

    words: str
    holds: Callable[[Any], bool]


def check_settings(value: Any) -> None:
    """Check each field of a dataclass value against its annotation.

    Raises:
        ConfigError: A field is invalid. The message has its name, what it must be, and its value unless the field has
            `repr=False`.
    """
    for name, default, rule, secret in _rules(cast(Any, type(value))):
        setting = getattr(value, name)
        if setting is not default and not rule.holds(setting):
            kind = type(setting).__name__
            shown = f"this {kind}" if secret else f"{reprlib.repr(masked(setting))} ({kind})"
            raise ConfigError(f"{name} must be {rule.words}, not {shown}")


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are not."""
    # math.isfinite fails for integers that are too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


@functools.cache
def _rules(kind: Any) -> Sequence[tuple[str, Any, Rule, bool]]:
    """The name, default and rule of each field, and whether its value must not be shown."""
    hints = get_type_hints(kind, include_extras=True)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    return [(field.name, field.default, _rule(hints[field.name]), not field.repr) for field in fields]


def _rule(hint: Any, allowed: Range = Range()) -> Rule:
    if get_origin(hint) is Annotated:
        hint, extra = get_args(hint)
        return extra if isinstance(extra, Rule) else _rule(hint, extra)
    if get_origin(hint) in (Union, types.UnionType):
        rules = [_rule(option, allowed) for option in get_args(hint) if option is not type(None)]
        optional = type(None) in get_args(hint)
        words = ["None"] * optional + [rule.words for rule in rules]
        return Rule(
            " or ".join(words), lambda value: (optional and value is None) or any(rule.holds(value) for rule in rules)
        )
    if get_origin(hint) is Literal:
        return Rule(", ".join(get_args(hint)), lambda value: value in get_args(hint))
    kind = cast("type[Any]", get_origin(hint) or hint)
    if kind in (int, float):
        words = "a whole number" if kind is int else "a number"
        kinds = int if kind is int else (int, float)
        return Rule(
            f"{words}{allowed}", lambda value: isinstance(value, kinds) and is_number(value) and value in allowed
        )
    words = {bool: "true or false", str: "text"}.get(kind, f"a {kind.__name__}")
    return Rule(words, lambda value: isinstance(value, kind))

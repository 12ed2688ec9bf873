"""What each setting of a model judge may be, as a table, and the check against it."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from evalstone.errors import ConfigError

Kind = Literal["text", "a whole number", "a number", "true or false"]


class Allowed(NamedTuple):
    """What a setting may be. above: `least` itself is too small. optional: None is allowed as well."""

    kind: Kind
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    optional: bool = False

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind and in this range."""
        if value is None:
            return self.optional
        if self.kind == "text":
            return isinstance(value, str)
        if self.kind == "true or false":
            return isinstance(value, bool)
        if self.kind == "a whole number" and not isinstance(value, int):
            return False
        return is_number(value) and self.least <= value <= self.most and not (self.above and value == self.least)

    def __str__(self) -> str:
        told = f"None or {self.kind}" if self.optional else self.kind
        if self.most < math.inf:
            return f"{told} from {self.least:g} to {self.most:g}"
        if self.least > -math.inf:
            return f"{told} above {self.least:g}" if self.above else f"{told} of {self.least:g} or more"
        return told


SETTINGS: Final[Mapping[str, Allowed]] = {
    "model": Allowed("text"),
    "base_url": Allowed("text", optional=True),
    "api_key": Allowed("text", optional=True),
    "temperature": Allowed("a number", 0, 2, optional=True),
    "seed": Allowed("a whole number", optional=True),
    "max_tokens": Allowed("a whole number", 1, optional=True),
    "reasoning_effort": Allowed("text", optional=True),
    "language": Allowed("text", optional=True),
    "logprobs": Allowed("true or false"),
    "retries": Allowed("a whole number", 0),
    "timeout": Allowed("a number", 0, above=True),
    "deadline": Allowed("a number", 0, above=True),
    "requests_per_minute": Allowed("a whole number", 1, optional=True),
    "tokens_per_minute": Allowed("a whole number", 1, optional=True),
    "context_window": Allowed("a whole number", 1, optional=True),
}
SECRET: Final = frozenset({"api_key", "headers"})


def check_setting(name: str, value: Any) -> None:
    """Raise ConfigError for a setting that is not what the table, or the two settings of several parts, allow."""
    if name == "prices":
        if not _are_prices(value):
            raise _refused(
                name, value, "None or two numbers of 0 or more, dollars for a million input and output tokens"
            )
    elif name == "headers":
        if not _is_headers(value):
            raise _refused(name, value, "a mapping of text to text")
    elif not SETTINGS[name].fits(value):
        raise _refused(name, value, str(SETTINGS[name]))


def is_number(value: Any) -> bool:
    """Whether it is a finite number, which true and false are not."""
    # math.isfinite cannot take a whole number beyond the floats.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _are_prices(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list | tuple):
        return False
    parts = cast("Sequence[Any]", value)
    return len(parts) == 2 and all(is_number(part) and part >= 0 for part in parts)


def _is_headers(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    parts = cast("Mapping[Any, Any]", value)
    return all(isinstance(part, str) for header in parts.items() for part in header)


def _refused(name: str, value: Any, wanted: str) -> ConfigError:
    kind = type(value).__name__
    came = f"this {kind}" if name in SECRET else f"{reprlib.repr(value)} ({kind})"
    return ConfigError(f"{name} must be {wanted}, not {came}")

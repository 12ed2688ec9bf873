"""Environment variables in settings: keys, headers and URLs may contain `$NAME`."""

from __future__ import annotations

import os
import re

from evalstone._core.redaction import register, register_url
from evalstone.errors import ConfigError

_VARIABLE = re.compile(r"\$(?:\$|\{(\w+)\}|([A-Za-z_]\w*))")


def expanded(text: str, setting: str) -> str:
    """A key or a header with the values of environment variables for `$NAME` and `${NAME}`; `$$` is a dollar sign.

    The values are secrets: they are never printed. Raises ConfigError, naming the setting, for a variable that is not
    set.
    """
    return _expanded(text, setting, secret=True)


def expanded_url(text: str, setting: str) -> str:
    """As `expanded`, for a URL, of which only the password and the like are secret."""
    url = _expanded(text, setting, secret=False)
    register_url(url)
    return url


def _expanded(text: str, setting: str, *, secret: bool) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1] or match[2]
        found = os.environ.get(name, "")
        if not found:
            hint = "; write $$ for a dollar sign"
            raise ConfigError(f"{setting} needs the environment variable {name}, which is not set{hint}")
        if secret:
            register(found)
        return found

    return _VARIABLE.sub(value, text) if "$" in text else text

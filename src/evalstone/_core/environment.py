"""Environment variables in settings: keys, headers, tokens, URLs and commands may contain `$NAME`."""

from __future__ import annotations

import os
import re
import shlex

from evalstone._core.redaction import register, register_url
from evalstone.errors import ConfigError

_VARIABLE = re.compile(r"\$(?:\$|\{(\w+)\}|([A-Za-z_]\w*))")

_REFERENCE = rf"(?P<reference>{_VARIABLE.pattern})"
_QUOTED = re.compile(rf"""'[^']*'|"(?P<double>(?:\\.|[^"\\])*)"|\\.|{_REFERENCE}""", re.DOTALL)
_DOUBLE_QUOTED = re.compile(rf"\\.|{_REFERENCE}", re.DOTALL)
_QUOTED_ON_WINDOWS = re.compile(rf"""'[^']*'|"(?P<double>[^"]*)"|{_REFERENCE}""", re.DOTALL)


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


def expanded_words(command: str, setting: str) -> list[str]:
    """The words of a command, as in `split_words`, with the values of environment variables as in `expanded`.

    Single quotes keep `$NAME` as it is, and a value is never split into words. Raises ValueError if a quotation isn't
    closed.
    """
    values: list[str] = []

    def marked(match: re.Match[str]) -> str:
        if match.lastgroup == "double":
            return f'"{within.sub(marked, match["double"])}"'
        if match["reference"] is None:
            return match[0]
        values.append(expanded(match[0], setting))
        return f"\0{len(values) - 1}\0"

    on_windows = os.name == "nt"
    within = re.compile(_REFERENCE) if on_windows else _DOUBLE_QUOTED
    words = split_words((_QUOTED_ON_WINDOWS if on_windows else _QUOTED).sub(marked, command))
    return [re.sub(r"\0(\d+)\0", lambda mark: values[int(mark[1])], word) for word in words]


def split_words(command: str) -> list[str]:
    """The words of a command, quoted as in a shell. On Windows, a backslash is a part of a path, and quotes nothing.

    Raises ValueError if a quotation isn't closed.
    """
    words = shlex.shlex(command, posix=True, punctuation_chars=False)
    words.whitespace_split, words.commenters = True, ""
    if os.name == "nt":
        words.escape = ""
    return list(words)


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

"""Judges on one line, as a command line has them, and as their identities print.

    lexical
    openai/gpt-5.1
    openai/gpt-5.1(temperature=0.7, seed=1)
    vllm/my-model(http://localhost:8000/v1)
    panel(openai/gpt-5.1, anthropic/claude-sonnet-4-5, lexical, vote=mean)
    cascade(lexical, openai/gpt-5.1, below=0.9)
    self_consistency(openai/gpt-5.1(temperature=0.7), samples=5)

The parts stand in each other, and become the tables that a file has.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

from evalstone.errors import ConfigError, unknown

_CALL = re.compile(r"\s*([^\s(),=]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_SETTING = re.compile(r"\s*([a-z_]+)\s*=\s*(.*)", re.DOTALL)
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "True": True, "False": False, "None": None, "none": None}
_DEEPEST = 20
MADE_OF_JUDGES = ("panel", "cascade", "self_consistency")


def table_of(spec: str) -> str | dict[str, Any]:
    """A judge on one line as its name or its table. Raises ConfigError where it cannot be read, showing the place."""
    found = _CALL.fullmatch(spec)
    if found is None:
        raise ConfigError(f"a judge is written as a name, or as name(…), not {spec.strip()!r}")
    name, inside = found[1], found[2]
    if inside is None:
        return name
    judges: list[Any] = []
    settings: dict[str, Any] = {}
    for part in _parts(inside, spec):
        if (setting := _SETTING.fullmatch(part)) is not None:
            if setting[1] in settings:
                raise ConfigError(f"{name}: {setting[1]} is given twice")
            settings[setting[1]] = _value(setting[2].strip())
        elif part.strip().startswith(("http://", "https://")):
            settings["base_url"] = part.strip()  # as identities have it
        elif settings:
            raise ConfigError(f"{name}: judges stand before settings, and {part.strip()!r} does not")
        else:
            judges.append(table_of(part))
    if name in MADE_OF_JUDGES:
        return {name: judges[0] if name == "self_consistency" and len(judges) == 1 else judges, **settings}
    if "/" not in name and name != "lexical":
        raise ConfigError(unknown("judge", name, ["lexical", *MADE_OF_JUDGES]))
    if judges:
        raise ConfigError(f"{name} takes settings such as temperature=0.7, not {judges[0]!r}")
    return {"model": name, **settings}


def _parts(inside: str, spec: str) -> list[str]:
    """What commas divide, those inside brackets and quotes aside."""
    parts, depth, quote = [""], 0, ""
    for character in inside:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        if depth > _DEEPEST:
            raise ConfigError(f"judges stand in each other more than {_DEEPEST} deep in {reprlib.repr(spec.strip())}")
        if depth < 0:
            break
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    if depth or quote:
        raise ConfigError(f"brackets or quotes do not match in {spec.strip()!r}")
    if not any(part.strip() for part in parts):
        return []
    if not all(part.strip() for part in parts):
        raise ConfigError(f"there is nothing between two commas, or after the last, in {spec.strip()!r}")
    return parts


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in _parts(text[1:-1], text)]
    return text

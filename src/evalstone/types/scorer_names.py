"""The names of a scorer, by its signature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from evalstone._core.display import joined
from evalstone._core.json import brief
from evalstone._core.syntax import parse_spec
from evalstone.errors import Problem, unknown

_ONE = r"(?:[0-9a-f]{8}|[\w.+!-]+==[\w.+!-]*)"
_FINGERPRINTS = re.compile(rf"(; |\(){_ONE}(?:, {_ONE})*\)@\d+\Z|@\d+\Z")
"""Hashes of prompts and code, and the versions of plug-ins."""

_VERSION = re.compile(r"@\d+\Z")


def scorer_name(signature: str) -> str:
    """The name of a scorer, from its signature: `contains` of `contains(expected=x)@1`. That of another tool's metric
    may have an @: `recall@5` of `recall@5(ragas==0.4.3)@1`."""
    return _VERSION.sub("", signature).partition("(")[0]


def without_fingerprints(signature: str) -> str:
    """A scorer's name with its non-default parameters, from its signature."""
    return _FINGERPRINTS.sub(lambda match: ")" if match[1] == "; " else "", signature)


def titles(names: Mapping[str, str]) -> dict[str, str]:
    """The titles of scorers by signature: the name, with parameters if several scorers have the name, or the signature
    if their parameters are the same too. names: their names by signature."""
    named = Counter(names.values())
    parameters = {signature: without_fingerprints(signature) for signature in names}
    spelled = Counter(parameters.values())
    return {
        signature: name
        if named[name] == 1
        else parameters[signature]
        if spelled[parameters[signature]] == 1
        else signature
        for signature, name in names.items()
    }


def parse_name(text: str) -> tuple[str, Mapping[str, Any]]:
    """The name and parameters in a scorer's name as people write it. Hyphens in the name count as underscores.

    Raises:
        ValueError: It can't be parsed.
    """
    name, parameters = parse_spec(text, nested="scorer")
    return name.replace("-", "_"), parameters


def is_spelled(signature: str, name: str, parameters: Mapping[str, Any], scale: float = 1) -> bool:
    """Whether a scorer has this name and exactly these parameters, in any order. Its scale may be named even if it is
    the default."""
    named = {key: brief(value) for key, value in parameters.items() if (key, value) != ("explain", False)}
    base, _, rest = without_fingerprints(signature).partition("(")
    if base != name:
        return False
    rest = rest.removesuffix(")")
    while rest:  # a value may hold a comma, so the parts of the scorer's own text are known by those that are named
        key = rest.partition("=")[0]
        if key not in named or not f"{rest}, ".startswith(part := f"{key}={named.pop(key)}, "):
            return False
        rest = rest[len(part) :]
    return {key: parameters[key] for key in named} in ({}, {"scale": scale})


def is_named(signature: str, text: str) -> bool:
    """Whether a text is the signature of a scorer, its name, or its name with parameters."""
    if text in (signature, scorer_name(signature), without_fingerprints(signature)):
        return True
    try:
        name, parameters = parse_name(text)
    except ValueError:
        return False
    return is_spelled(signature, name, parameters) or (not parameters and name == scorer_name(signature))


def not_scored(name: str, scored: Iterable[str]) -> Problem:
    """A name of none of the scorers that have scores; it may be that of another scorer, or of none.

    scored: The titles of those that have.
    """
    titles = sorted(scored)
    problem = unknown("scorer", name, titles)
    if problem.near or "(" in name or not titles:
        return problem
    return problem.worded(f"there are no scores of {name!r}, only of {joined(titles)}")

"""Thread-safe use of Python's parser, and specs such as `contains(expected=New York)`.

Up to Python 3.12, the depth of the syntax tree under construction is counted per process. If garbage collection lets
another thread run meanwhile and that thread parses too, both may fail with SystemError.
"""

from __future__ import annotations

import ast
import os
import re
import threading
from typing import Any

_lock = threading.RLock()  # reentrant, because a finalizer may parse during parsing


def _reset_after_fork() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def parse_module(code: str) -> ast.Module:
    """The syntax tree of a module. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(code)


def parse_expression(code: str) -> ast.expr:
    """The syntax tree of an expression. Raises what `ast.parse` raises."""
    with _lock:
        return ast.parse(code, mode="eval").body


def parse_literal(code: str) -> Any:
    """The value of a literal, such as a text or a list of numbers. Raises what `ast.literal_eval` raises."""
    return ast.literal_eval(parse_expression(code.lstrip(" \t")))


_PLAIN = re.compile(r"[^\x00-\x1f,()\[\]{}'\"=]+")
"""A value that needs no quotes: without commas, brackets, quotes, equals signs and control characters."""
_PARAMETER = re.compile(r"\s*([^\W\d]\w*)\s*=(.*)", re.DOTALL)
_SPEC = re.compile(r"[\w.:/-]+\(.*\)", re.DOTALL)


def parse_spec(spec: str, nested: str = "") -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a spec: `regex(pattern='a, b', scale=10)`. A value without quotes that is no
    literal is text: `contains(expected=New York)`. nested: a parameter whose value may be a spec; it is kept as text.

    Raises:
        ValueError: It has another form; the message says which part, and what was expected.
    """
    name, bracket, rest = spec.partition("(")
    if not bracket:
        return name.strip(), {}
    if not rest.rstrip().endswith(")"):
        raise ValueError("the closing bracket is missing")
    parameters: dict[str, Any] = {}
    for part in _parts(rest.rstrip()[:-1]):
        match = _PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"{part.strip()!r} has no name; write NAME=VALUE, and put a value with a comma in quotes")
        if match[1] in parameters:
            raise ValueError(f"{match[1]} is named twice")
        parameters[match[1]] = _value(match[1], match[2].strip(), nested)
    return name.strip(), parameters


def _parts(text: str) -> list[str]:
    """The parts of a text between commas, apart from commas in brackets and quotes."""
    parts, depth, quote, start, at = list[str](), 0, "", 0, 0
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"" and text[start:at].rstrip().endswith(("=", "(", "[", "{", ",", ":")):
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    rest = text[start:]
    return [*parts, rest] if rest.strip() else parts


def _value(parameter: str, text: str, nested: str) -> Any:
    try:
        return ast.literal_eval(_BareWords().visit(parse_expression(text)))
    except (SyntaxError, ValueError, TypeError):
        pass
    if parameter == nested and _SPEC.fullmatch(text):
        return text
    if _PLAIN.fullmatch(text):
        return text
    raise ValueError(f"put the value in quotes: {parameter}={text!r}" if text else f"{parameter} has no value")


class _BareWords(ast.NodeTransformer):
    """Reads a bare word as a string, `contains(expected=Oslo)`, and `true` and `false` as in a configuration file."""

    def visit_Name(self, node: ast.Name) -> ast.Constant:
        return ast.Constant({"true": True, "false": False}.get(node.id, node.id))

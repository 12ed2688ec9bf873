"""An extension of griffe: parameters of classes as a caller writes them.

- A field that takes one type and holds another (`ReadAs[Given, Held]`) shows what it takes.
- Scorers, questions and judges are dataclasses without a decorator that griffe knows.
- Defaults are values, not the names that stand for them.
- Parameters with a leading underscore are not shown: only the library passes them.
- Names of pages in docstrings, such as docs/data.md, are links.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator
from typing import Any

import griffe

DEFAULTS = {"NOTHING": "None", "EMPTY": "()"}
"""Names of `_core/read_as.py` that stand for defaults."""
_PAGE = re.compile(r"\bdocs/([\w/-]+\.md)\b")
EMPTY = {"dict": "{}", "list": "[]", "tuple": "()", "set": "set()", "frozenset": "frozenset()"}


class Signatures(griffe.Extension):
    """Rewrites annotations before griffe makes the constructors of dataclasses."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        attr.annotation = given(attr.annotation)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for one in classes(pkg):
            decorated = any("dataclass" in str(decorator.value) for decorator in one.decorators)
            if not decorated and (options := made_a_dataclass(one)) is not None:
                one.decorators.append(options)


class Constructors(griffe.Extension):
    """Shows what callers pass, and the values that defaults stand for, once the constructors are made."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for one in classes(pkg):
            for member in one.members.values():
                if not member.is_alias and isinstance(member, griffe.Attribute):
                    member.value = default(member.value)
            if isinstance(made := one.members.get("__init__"), griffe.Function):
                shown = [one for one in made.parameters if not one.name.startswith("_")]
                made.parameters = griffe.Parameters(*shown)
                for parameter in shown:
                    parameter.default = default(parameter.default)
        for text in docstrings(pkg):
            text.value = linked(text.value)


def given(annotation: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """The type that a parameter takes, of the type of a field."""
    if isinstance(annotation, griffe.ExprSubscript):
        if str(annotation.left) == "ReadAs" and isinstance(annotation.slice, griffe.ExprTuple):
            return annotation.slice.elements[0]
        if str(annotation.left) == "Annotated" and isinstance(annotation.slice, griffe.ExprTuple):
            return given(annotation.slice.elements[0])
    return annotation


def default(value: str | griffe.Expr | None) -> str | griffe.Expr | None:
    """The default that a call of `field` or of a factory stands for; None without one."""
    if not isinstance(value, griffe.ExprCall):
        return DEFAULTS.get(str(value), value)
    if isinstance(value.function, griffe.ExprLambda):
        return default(value.function.body)
    called = str(value.function).partition("[")[0].rpartition(".")[2]
    if called in EMPTY and not value.arguments:
        return EMPTY[called]
    if called != "field":
        return value
    options = {one.name: one.value for one in value.arguments if isinstance(one, griffe.ExprKeyword)}
    if isinstance(factory := options.get("default_factory"), griffe.Expr):
        return default(griffe.ExprCall(function=factory, arguments=[]))
    return default(options.get("default"))


def classes(module: griffe.Module | griffe.Class) -> list[griffe.Class]:
    """The classes that a module defines, with those of its modules."""
    found: list[griffe.Class] = []
    for member in module.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Class):
            found.append(member)
        if isinstance(member, griffe.Module | griffe.Class):
            found += classes(member)
    return found


def linked(text: str) -> str:
    """A docstring whose names of pages are links, from a page of the reference."""
    return _PAGE.sub(r"[docs/\1](../../\1)", text)


def docstrings(one: griffe.Object) -> Iterator[griffe.Docstring]:
    """The docstrings of a module and of all that it defines."""
    if one.docstring is not None:
        yield one.docstring
    for member in one.members.values():
        if isinstance(member, griffe.Object):
            yield from docstrings(member)


def made_a_dataclass(one: griffe.Class) -> griffe.Decorator | None:
    """The decorator that stands for what a base class does to its subclasses; None for other classes."""
    try:
        made = getattr(importlib.import_module(one.module.path), one.name)
    except (ImportError, AttributeError):
        return None
    if "__dataclass_params__" not in vars(made):
        return None
    keyword_only = all(field.kw_only for field in dataclasses.fields(made))
    name = griffe.ExprName("dataclass", parent=griffe.ExprName("dataclasses"))
    option = griffe.ExprKeyword("kw_only", str(keyword_only), function=name)
    return griffe.Decorator(griffe.ExprCall(function=name, arguments=[option]), lineno=0, endlineno=0)

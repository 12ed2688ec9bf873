"""What code fills at its first use, such as a model that it loads: no part of what the code is.

Code that fills a name both reads it, to see whether it is empty, and assigns it. A name that was empty or missing when
its owner was first seen therefore stays so. What a setter or other code assigns is a setting, and counts.
"""

from __future__ import annotations

import dis
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_METHODS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, staticmethod, classmethod)
_READING = frozenset(
    dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF", "LOAD_CONST") if name in dis.opmap
)
"""Constants are among them because of `hasattr(self, "model")`."""
_ASSIGNING = frozenset((dis.opmap["STORE_ATTR"], dis.opmap["STORE_DEREF"]))
_MISSING, _FULL = object(), object()


class ByIdentity(Generic[T]):
    """Something that is kept for each object while it lives, whether or not it can be hashed."""

    def __init__(self, made: Callable[[], T]) -> None:
        self._made = made
        self._kept: dict[int, tuple[weakref.ref[Any], T]] = {}

    def of(self, owner: Any) -> T:
        """What is kept for an object. Raises TypeError if the object takes no weak references."""
        number = id(owner)
        known = self._kept.get(number)
        if known is None or known[0]() is not owner:
            known = self._kept[number] = weakref.ref(owner, lambda gone: self._forget(number, gone)), self._made()
        return known[1]

    def _forget(self, number: int, gone: weakref.ref[Any]) -> None:
        if number in self._kept and self._kept[number][0] is gone:  # else another object has taken the number
            del self._kept[number]


_FIRST = ByIdentity[dict[str, Any]](dict)
"""What the names that code fills had when their owner was first seen."""


def before_use(owner: Any, filled: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, those that the owner's code fills as they were when the owner was first seen, if they were empty
    then."""
    try:
        first = _FIRST.of(owner)
    except TypeError:  # the owner takes no weak references
        return dict(values)
    for name in filled:
        value = values.get(name, _MISSING)
        first.setdefault(name, value if value is _MISSING or _is_empty(value) else _FULL)
    before = {name: value if (known := first.get(name, _FULL)) is _FULL else known for name, value in values.items()}
    return {name: value for name, value in before.items() if value is not _MISSING}


def kept(code: CodeType) -> set[str]:
    """The attributes, and the variables of an outer function, that code fills."""
    names: set[str] = set()
    for each in codes(code):
        if _ASSIGNING.isdisjoint(each.co_code[::2]):
            continue
        instructions = [*dis.get_instructions(each)]
        assigned = {instruction.argval for instruction in instructions if instruction.opcode in _ASSIGNING}
        read = (instruction.argval for instruction in instructions if instruction.opcode in _READING)
        names |= {name for name in read if isinstance(name, str) and name in assigned}
    return names


def is_computed(kind: type[Any], name: str) -> bool:
    """Whether an attribute of objects is computed when it is first read and kept then, as by a cached property."""
    descriptor: object = inspect.getattr_static(kind, name, None)
    its_kind = type(descriptor)
    is_read = hasattr(its_kind, "__get__") and not hasattr(its_kind, "__set__")
    return is_read and not isinstance(descriptor, _METHODS)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of its inner functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _is_empty(value: Any) -> bool:
    return isinstance(value, NoneType | str | bytes | int | float | list | dict | set | tuple) and not value

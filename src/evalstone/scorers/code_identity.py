"""The identity of a user's own code: a hash that changes when a function may return something else.

Whether two functions are equal can't be computed, so equal means: the same byte code, defaults, values in closures, and
constants of the module that the code reads, and the same for every function of the module that it calls. What a
function imports from elsewhere is identified by its name. Byte code differs between minor versions of Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast
from uuid import UUID

from evalstone._core.json import content_hash

ANSWERED_BY = "__answered_by__"
"""The attribute of a function that names what answers in its place."""
_PACKAGE = __name__.partition(".")[0]
# Written by dataclasses, and the same for equal fields.
_GENERATED = frozenset(("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__"))
_CONSTANTS = (
    str, bytes, bytearray, int, float, complex, bool, type(None), range, re.Pattern,
    date, time, timedelta, Decimal, Fraction, PurePath, UUID,
)  # fmt: skip


def is_own_code(value: Any) -> bool:
    """Whether a class or a function is not part of evalstone."""
    return str(getattr(value, "__module__", "")).partition(".")[0] != _PACKAGE


def class_hash(kind: type[Any]) -> str:
    """The hash of the functions and constants of a class and its bases outside evalstone; empty if there are none."""
    parts = _class(kind, set())
    return content_hash(parts) if parts else ""


def code_hash(function: Any) -> str:
    """The hash of a function, a partial, a method or another callable."""
    return content_hash(_described(function, set()))


def program_hash(*functions: Any) -> str:
    """The hash of what functions are written as, which calls don't change: their byte code and defaults, the constants
    of the module that they read, and the same for the functions of the module that they call and those they wrap. The
    state of objects and of closures is left out."""
    return content_hash([_program(each, set()) for each in functions])


def _program(function: Any, seen: set[int]) -> Any:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    if isinstance(function, MethodType):
        return [_program(function.__func__, seen), _class(type(function.__self__), seen)]
    if not isinstance(function, FunctionType):
        return _class(cast("type[Any]", type(function)), seen)
    if id(function) in seen or not is_own_code(function):
        return _name(function)
    seen.add(id(function))
    values = [function.__globals__.get(name) for name in _names(function.__code__)]
    return [
        _bytecode(function.__code__, function.__doc__),
        [_described(value, seen) for value in _values(function) if isinstance(value, (*_CONSTANTS, tuple))],
        [_described(value, seen) for value in values if value is not None and isinstance(value, (*_CONSTANTS, tuple))],
        [
            _program(value, seen)
            for value in values
            if getattr(value, "__module__", "") == function.__module__ and isinstance(value, FunctionType)
        ],
        [_program(cell.cell_contents, seen) for cell in function.__closure__ or () if _is_function(cell)],
        *_answered_by(function),
    ]


def _values(function: FunctionType) -> list[Any]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _is_function(cell: Any) -> bool:
    try:
        return isinstance(cell.cell_contents, FunctionType)
    except ValueError:  # empty: the variable has no value yet
        return False


def _class(kind: type[Any], seen: set[int]) -> list[Any]:
    return [
        [base.__qualname__, name, _described(member, seen)]
        for base in kind.__mro__
        if base is not object and is_own_code(base)
        for name, member in _members(base)
    ]


def _members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(kind).items()):
        if isinstance(value, staticmethod | classmethod):
            value = cast("staticmethod[..., Any]", value).__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, functools.cached_property):
            value = cast("functools.cached_property[Any]", value).func
        is_constant = isinstance(value, (*_CONSTANTS, tuple)) and not name.startswith("__")
        if is_constant or (isinstance(value, FunctionType) and name not in _GENERATED):
            yield name, value


def _described(value: Any, seen: set[int]) -> Any:
    """A value as data: functions by what they compute, constants as themselves, anything else by its type's name."""
    if isinstance(value, re.Pattern):  # whose text form ends after 200 characters
        return ["re", cast("re.Pattern[Any]", value).pattern, value.flags]
    if isinstance(value, _CONSTANTS):
        return repr(cast(object, value))
    if isinstance(value, BaseException):
        return [_name(type(value)), _described(value.args, seen)]
    if isinstance(value, tuple | list | frozenset | set):
        items = [_described(item, seen) for item in cast("tuple[Any, ...]", value)]
        return items if isinstance(value, tuple | list) else sorted(map(str, items))
    if isinstance(value, Mapping):
        return [[str(key), _described(item, seen)] for key, item in cast("Mapping[Any, Any]", value).items()]
    if isinstance(value, functools.partial):
        partial = cast("functools.partial[Any]", value)
        return [_described(partial.func, seen), _described(partial.args, seen), _described(partial.keywords, seen)]
    if isinstance(value, MethodType):
        return [_described(value.__func__, seen), _state(value.__self__, seen)]
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, type | BuiltinFunctionType | ModuleType):
        return _name(value)
    return _state(value, seen)


def _state(value: Any, seen: set[int]) -> Any:
    """An object by its class and its attributes; a callable one also by its code."""
    kind = cast("type[Any]", value if isinstance(value, type) else type(value))
    if id(value) in seen or not is_own_code(kind) or kind.__module__ == "builtins":
        return _name(kind)
    seen.add(id(value))
    return [_name(kind), _class(kind, seen), _described(getattr(value, "__dict__", {}), seen)]


def _function(function: FunctionType, seen: set[int]) -> Any:
    if id(function) in seen or not is_own_code(function):
        return _name(function)
    seen.add(id(function))
    code = function.__code__
    reads = [name for name in _names(code) if name in function.__globals__]
    return [
        _bytecode(code, function.__doc__),
        _described(function.__defaults__, seen),
        _described(function.__kwdefaults__, seen),
        [[name, _cell(cell, seen)] for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)],
        [[name, _global(function.__globals__[name], function.__module__, seen)] for name in reads],
        *_answered_by(function),
    ]


def _answered_by(function: FunctionType) -> list[str]:
    """What answers in place of a function, if it was wrapped so."""
    return [found] if (found := getattr(function, ANSWERED_BY, "")) else []


def _cell(cell: Any, seen: set[int]) -> Any:
    try:
        return _described(cell.cell_contents, seen)
    except ValueError:  # empty: the variable has no value yet
        return None


def _global(value: Any, module: str, seen: set[int]) -> Any:
    """What a function reads from its module: constants and the module's functions; anything else by its name.

    Mutable values are left out, for they may be caches.
    """
    if isinstance(value, FunctionType):
        return _function(value, seen) if value.__module__ == module else _name(value)
    if isinstance(value, (*_CONSTANTS, tuple, frozenset)):
        return _described(value, seen)
    return _name(value if isinstance(value, type | ModuleType) else type(value))


def _names(code: CodeType) -> list[str]:
    """The global names that a function's code may read, in order, those of inner functions included."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _names(constant)
    return sorted(set(names))


def _bytecode(code: CodeType, docstring: str | None = None) -> list[Any]:
    constants = [
        _bytecode(each) if isinstance(each, CodeType) else _described(None if each is docstring else each, set())
        for each in code.co_consts
    ]
    return [code.co_code.hex(), constants, code.co_names]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"

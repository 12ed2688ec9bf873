"""The identity of a user's own code: a hash that changes when a function may return something else.

Equality of functions can't be computed, so equal means: the same bytecode, defaults, closure values, and the same
globals that the code reads, through all files of the user. Functions and classes are identified by their code,
constants by their value. Any other global, such as a dictionary of prompts or an agent of a framework, is identified by
the statements of its module that define it, because its value may change with every call. Installed packages, the
standard library and evalstone are identified by name. Bytecode differs between minor versions of Python.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import itertools
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GenericAlias,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple, cast
from uuid import UUID

from evalstone._core.code_source import PACKAGE, ModuleSource, file_of, is_users_file, module_content, module_named
from evalstone._core.first_use import ByIdentity, before_use, codes, is_computed, kept
from evalstone._core.guards import class_of, is_list, is_mapping, is_partial
from evalstone._core.json import brief as brief_json
from evalstone._core.json import content_hash

ANSWERED_BY = "__answered_by__"
"""The attribute of a wrapped function with the identity of what answers in its place, such as a recording."""
# Dataclasses generate them, the same ones for equal fields.
_GENERATED = frozenset(("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__"))
_CONSTANTS = (
    str, bytes, bytearray, int, float, complex, bool, type(None), range, re.Pattern,
    date, time, timedelta, Decimal, Fraction, PurePath, UUID,
)  # fmt: skip
_CONTAINERS = (dict, list, set)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEEPEST = 60
_MOST_HELD = 10_000
"""The most objects in which code is searched: no registry has as many, but data may have millions."""
_BY_NAME = frozenset(("getattr", "globals", "vars", "attrgetter", "methodcaller"))
"""Functions that find a value by its name."""
_IMPORT_BY_NAME = frozenset(("import_module", "__import__"))
_IMPORT_NAME = dis.opmap["IMPORT_NAME"]


class _Contents(NamedTuple):
    of: int
    """The id of the value; 0 for a number."""
    described: Any
    files: tuple[str, ...] = ()


_CONTENTS = ByIdentity[dict[tuple[str, bool], _Contents]](dict)
"""The contents of mutable values when their owner was first seen. Calls may change them, as in a cache."""
_MAKING = frozenset(("__init__", "__new__", "__post_init__", "model_post_init", "__setstate__", "__set__"))
"""Methods that assign what an object is made of."""


def is_own_code(value: Any) -> bool:
    """Whether a class or a function is not part of evalstone."""
    return str(getattr(value, "__module__", "")).partition(".")[0] != PACKAGE


def class_hash(kind: type[Any]) -> str:
    """The hash of the functions and attributes of a class and its bases outside evalstone; empty if there are none."""
    reader = _Reader(kind)
    parts = reader.kind(kind)
    return content_hash([*parts, *reader.registered()]) if parts else ""


def code_hash(function: Any) -> str:
    """The hash of a function, a partial, a method or another callable."""
    return content_hash(_Reader(function).all_of(function))


def program_hash(*functions: Any) -> str:
    """The hash of functions with their docstrings and annotations, which frameworks show to models as descriptions of
    tools."""
    reader = _Reader(*functions, documented=True)
    return content_hash(reader.all_of(*functions))


def code_files(*roots: Any) -> tuple[str, ...]:
    """The user's files that the hash of these functions, classes or objects depends on, in the order of reading."""
    reader = _Reader(*roots, documented=True)
    reader.all_of(*roots)
    return tuple(reader.files)


def brief(value: Any) -> str:
    """A parameter's value for a signature: a function by its name and code, anything else by its content."""
    return _function_name(value) if callable(value) else brief_json(value)


def _function_name(function: Any) -> str:
    """A function's full name, with a hash of its code if it is the user's own."""
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    target = cast(Any, target if hasattr(target, "__qualname__") else type(target))
    name = f"{getattr(target, '__module__', 'builtins')}.{target.__qualname__}"
    return f"{name}#{code_hash(function)[:8]}" if is_own_code(target) or target is not function else name


class _Reader:
    """Describes values as data, and follows the globals that their code reads. Each is described once."""

    def __init__(self, *roots: Any, documented: bool = False) -> None:
        self.files: dict[str, None] = {}
        self._documented = documented
        self._seen: set[object] = set()
        self._registered: dict[type[Any], None] = {}
        """The classes of objects in containers, which may have registered themselves there."""
        self._depth = 0
        # The package of the code itself is the user's, even if it is installed.
        self._packages = {str(_module_of(root)).partition(".")[0] for root in roots} - {"builtins", PACKAGE}

    def described(self, value: Any) -> Any:
        """A value as data: functions by their code, constants by their value, anything else by its type's name."""
        if isinstance(value, re.Pattern):  # its repr is cut at 200 characters
            return ["re", cast("re.Pattern[Any]", value).pattern, value.flags]
        if isinstance(value, Enum):
            return [_name(type(value)), value.name, self.kind(type(value))]
        if _is_constant(value):
            return repr(value)
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return [_name(value), self.kind(value)]
        if typing.get_origin(value) is not None:
            return _ADDRESS.sub("", repr(value))
        if isinstance(value, BuiltinFunctionType | ModuleType):
            return _name(value)
        if self._depth >= _DEEPEST:
            return _name(type(value))
        self._depth += 1
        try:
            return self._composed(value)
        finally:
            self._depth -= 1

    def _composed(self, value: Any) -> Any:
        """A value that consists of others."""
        if isinstance(value, BaseException):
            return [_name(type(value)), self.described(value.args)]
        if is_partial(value):
            return [self.described(part) for part in (value.func, value.args, value.keywords)]
        if isinstance(value, functools.partialmethod):
            method = cast("functools.partialmethod[Any]", value)
            return [self.described(part) for part in (method.func, method.args, method.keywords)]
        if isinstance(value, MethodType):
            return [self.described(value.__func__), self._state(value.__self__)]
        if _is_composite(value):
            if not _is_fixed(value):
                if id(value) in self._seen:
                    return _name(type(value))
                self._seen.add(id(value))
            return self._items(value)
        if isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):  # as by functools.cache
            return [_name(type(value)), self.function(wrapped)]
        return self._state(value)

    def _items(self, value: Any) -> Any:
        if is_mapping(value):
            return [[str(key), self.described(item)] for key, item in list(value.items())]
        if is_list(value):
            return [self.described(item) for item in list(value)]
        return sorted(str(self.described(item)) for item in sorted(value, key=_order))

    def function(self, function: FunctionType) -> Any:
        """A function by its code and what it reads."""
        if id(function) in self._seen or not self._is_users(function.__globals__, function.__module__):
            return [_name(function), *self._wrapped(function)]
        self._seen.add(id(function))
        self._add_file(function.__globals__)
        code = function.__code__
        cells = dict(zip(code.co_freevars, map(_contents, function.__closure__ or ()), strict=True))
        cells = before_use(function, kept(code), cells)
        return [
            _bytecode(code, None if self._documented else function.__doc__),
            self._owned(function, "defaults", function.__defaults__),
            self._owned(function, "keyword defaults", function.__kwdefaults__),
            [[name, self._owned(function, name, value)] for name, value in cells.items()],
            self._reads(function, _names(code), function.__globals__),
            [self._imported(name, level, function.__globals__) for name, level in sorted(set(_imports(code)))],
            *self._attributes(function),
            *([function.__doc__, self._annotations(function, function.__globals__)] if self._documented else []),
            *_answered_by(function),
        ]

    def _wrapped(self, function: FunctionType) -> list[Any]:
        """The user's functions that a function of an installed package wraps, and what answers in their place."""
        if id(function) in self._seen:
            return []
        self._seen.add(id(function))
        values = [getattr(function, "__wrapped__", None), *map(_contents, function.__closure__ or ())]
        registry = getattr(function, "registry", None)  # of functools.singledispatch
        values += registry.values() if is_mapping(registry) else ()
        inner = [self.function(value) for value in values if isinstance(value, FunctionType)]
        return [*inner, *_answered_by(function)]

    def _attributes(self, function: FunctionType) -> list[Any]:
        """The attributes set on a function, as in `agent.prompt = "…"`."""
        attributes = before_use(function, kept(function.__code__), vars(function))
        attributes = {name: value for name, value in attributes.items() if not name.startswith("__")}
        return [[name, self._owned(function, name, value, counts=True)] for name, value in attributes.items()]

    def _owned(self, owner: Any, name: str, value: Any, *, counts: bool = False) -> Any:
        """A value that belongs to a function, a class or an object; a mutable one as it was when it was first seen.

        counts: whether a number may be a counter, which is then as it was when it was first seen.
        """
        is_counter = counts and isinstance(value, int | float)
        if not is_counter and not isinstance(value, (*_CONTAINERS, Mapping)):
            return self.described(value)
        try:
            contents = _CONTENTS.of(owner)
        except TypeError:  # the owner takes no weak references
            return self.described(value)
        key, identity = (name, self._documented), 0 if is_counter else id(cast(object, value))
        known = contents.get(key)
        if known is None or known.of != identity:
            # Described on its own, so that it doesn't depend on what was described before.
            reader = _Reader(documented=self._documented)
            reader._packages, reader._depth = self._packages, self._depth + 1
            contents[key] = _Contents(identity, _name(type(cast(object, value))))  # it may hold itself
            known = contents[key] = _Contents(identity, reader.all_of(value), tuple(reader.files))
        self.files.update(dict.fromkeys(known.files))
        return known.described

    def _annotations(self, value: Any, namespace: Mapping[str, Any]) -> Any:
        """Annotations as text, with the user's classes in them, from which frameworks derive schemas."""
        try:
            annotations = inspect.get_annotations(value)
        except Exception:  # noqa: BLE001 - from Python 3.14 on, reading them runs the user's code
            return None
        return [
            [name, _ADDRESS.sub("", str(kind)), *map(self.kind, filter(self._is_users_class, _types(kind, namespace)))]
            for name, kind in annotations.items()
        ]

    def _state(self, value: Any) -> Any:
        """An object by its class and its attributes; a callable one also by its code."""
        kind = value if isinstance(value, type) else type(value)
        is_users = self._is_users_class(kind)
        if id(value) in self._seen or not (is_users or _is_frozen(kind)):
            return _name(kind)
        self._seen.add(id(value))
        kept_by = {name for base in kind.__mro__ if self._is_users_class(base) for name in _kept_by(base)}
        attributes = before_use(value, kept_by, _attributes_of(value, kind))
        state = [[name, self._owned(value, name, item, counts=True)] for name, item in attributes.items()]
        return [_name(kind), self.kind(kind) if is_users else [], state]

    def kind(self, kind: type[Any]) -> list[Any]:
        """The functions and attributes of a class and its bases outside evalstone and installed packages."""
        if ("class", kind) in self._seen:
            return []
        self._seen.add(("class", kind))
        bases = (*inspect.getmro(kind), *inspect.getmro(type(kind)))
        return [part for base in bases if self._is_users_class(base) for part in self._class(base)]

    def _class(self, base: type[Any]) -> Iterator[list[Any]]:
        module = module_named(base.__module__)
        namespace: Mapping[str, Any] = {} if module is None else vars(module)
        self._add_file(namespace)
        source = ModuleSource.of(namespace)
        for name, value in _members(base, before_use(base, _kept_by(base), vars(base))):
            if isinstance(value, (*_CONSTANTS, tuple, FunctionType, type, functools.partialmethod)):
                described = self.described(value)
            elif source is not None and (statements := source.in_class(base.__qualname__, name)):
                described = [self._statement(statement, namespace, name) for statement in statements]
                described.append(self._held(value))
            else:
                described = self._owned(base, name, value)
            yield [base.__qualname__, name, described]
        for name, statement in () if source is None else source.fields(base.__qualname__):
            is_taken = name not in vars(base) or isinstance(vars(base)[name], MemberDescriptorType)
            if is_taken or isinstance(statement.value, ast.Call):  # as by pydantic and slots, and all of field(…)
                yield [base.__qualname__, name, self._statement(statement, namespace, name)]
        if self._documented:
            yield [base.__qualname__, "docstring", vars(base).get("__doc__")]
        declared: Mapping[str, Any] = getattr(base, "__dataclass_fields__", {})
        for name, field in declared.items():
            if isinstance(factory := field.default_factory, FunctionType):
                yield [base.__qualname__, name, self.function(factory)]
        if annotations := self._annotations(base, namespace):
            yield [base.__qualname__, "annotations", annotations]

    def _reads(self, owner: Any, names: Iterable[str], namespace: Mapping[str, Any]) -> list[Any]:
        names = list(names)
        reads = [name for name in names if name in namespace]
        return [[name, self._global(owner, name, namespace, names)] for name in reads]

    def _global(self, owner: Any, name: str, namespace: Mapping[str, Any], names: Iterable[str]) -> Any:
        """A module global. names: all names that the code reads, some of them attributes of modules."""
        source = ModuleSource.of(namespace) if self._is_users(namespace) else None
        value = namespace[name]
        if source is not None and name in source.kept:
            module = module_named(str(namespace.get("__name__")))
            value = before_use(module, (name,), {name: value})[name]
        if isinstance(value, ModuleType):
            return self._module(owner, value, names)
        if isinstance(value, FunctionType | type | MethodType | functools.partial):
            return self.described(value)
        if isinstance(value, (*_CONSTANTS, tuple, frozenset, Enum)):
            if source is not None:
                self._add_file(_namespace_of(source.origin(name, namespace)))
            return self.described(value)
        key = ("global", id(namespace), name)
        if key in self._seen or not self._is_users(namespace):
            return _name(type(value))
        self._seen.add(key)
        held = self._held(value)
        if source is None:
            return [_name(type(value)), self._owned(owner, name, value), held]
        self._add_file(namespace)
        statements = [self._statement(statement, namespace, name) for statement in source.statements(name)]
        if (origin := source.origin(name, namespace)) is not None:
            other, its_name = origin
            statements += self._reads(owner, [its_name], vars(other))
        return [_name(type(value)), statements, held]

    def _held(self, value: Any) -> list[Any]:
        """The user's code in a global: what a container or an object holds, as it may have registered itself there, the
        class of an object, and the function that it wraps."""
        kind = class_of(value)
        if isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):
            return [self.function(wrapped)]
        if _is_frozen(kind):
            return [self._state(value)]
        held: list[Any] = []
        for item in itertools.islice(self._inner(value), _MOST_HELD):
            if isinstance(item, MethodType):  # its object may change with every call
                held.append(self.described(item.__func__))
            elif isinstance(item, (FunctionType, functools.partial, type)):
                held.append(self.described(item))
            else:
                self._registered[type(item)] = None
        return [*self.kind(kind), *sorted(held, key=content_hash)]

    def _inner(self, value: Any, depth: int = 3) -> Iterator[Any]:
        """The contents of a container or of an object of a user's class, recursively."""
        if isinstance(value, (*_CONTAINERS, tuple)):
            items = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        elif self._is_users_class(type(cast(object, value))):
            items = cast("dict[str, Any]", getattr(value, "__dict__", {})).values()
        else:
            return
        for item in list(items):
            yield item
            if depth and not isinstance(item, type):
                yield from self._inner(item, depth - 1)

    def all_of(self, *values: Any) -> list[Any]:
        """Values as data, with what is registered in the globals that they read."""
        described = [self.described(value) for value in values]
        return [*described, *self.registered()]

    def registered(self) -> list[Any]:
        """The classes of objects in containers, except those that have been described: an object of such a class may
        also be in a cache, after a call."""
        found: list[Any] = []
        while self._registered:
            kinds = sorted(self._registered, key=_name)
            self._registered.clear()
            found += filter(None, map(self.kind, kinds))
        return found

    def _statement(self, statement: ast.AST, namespace: Mapping[str, Any], name: str) -> list[Any]:
        """A statement of a module, and the globals that it reads."""
        nodes = list(ast.walk(statement))
        read = {node.id for node in nodes if isinstance(node, ast.Name)}
        read |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        imports = [
            self._imported(imported, node.level if isinstance(node, ast.ImportFrom) else 0, namespace)
            for node in nodes
            if node is not statement and isinstance(node, ast.Import | ast.ImportFrom)
            for imported in _modules(node)
        ]
        return [ast.dump(statement), self._reads(None, sorted(read - {name}), namespace), imports]

    def _module(self, owner: Any, module: ModuleType, names: Iterable[str]) -> Any:
        """A module by those of its attributes that the code may read."""
        key = ("module", id(module), tuple(names))
        if key in self._seen or not self._is_users(vars(module)):
            return _name(module)
        self._seen.add(key)
        self._add_file(vars(module))
        return [_name(module), self._reads(owner, names, vars(module))]

    def _imported(self, name: str, level: int, namespace: Mapping[str, Any]) -> Any:
        """A module that code imports when it runs. It may not be loaded yet, so all of its source counts, and that of
        the modules that it imports."""
        package = str(namespace.get("__package__") or "")
        found = list(module_content(name, level, package, self._packages, file_of(namespace)))
        self.files.update({path: None for _, path, _ in found})
        return [[module, digest] for module, _, digest in found]

    def _is_users(self, namespace: Mapping[str, Any], module: str | None = None) -> bool:
        """Whether a module is the user's. module: its name, where it can't be read from the namespace."""
        name = str(namespace.get("__name__") or module or "")
        package = name.partition(".")[0]
        return package != PACKAGE and (package in self._packages or is_users_file(name, file_of(namespace)))

    def _is_users_class(self, kind: type[Any]) -> bool:
        if kind.__module__ == "builtins":
            return False
        module = module_named(kind.__module__)
        return self._is_users({"__name__": kind.__module__} if module is None else vars(module))

    def _add_file(self, namespace: Mapping[str, Any]) -> None:
        path = file_of(namespace)
        if path and self._is_users(namespace):
            self.files[path] = None


def _types(annotation: Any, namespace: Mapping[str, Any]) -> Iterator[type[Any]]:
    """The classes in an annotation, which may be text."""
    if isinstance(annotation, type) and not isinstance(annotation, GenericAlias):
        yield annotation
    elif isinstance(annotation, str):
        named = (namespace.get(name) for name in re.findall(r"[^\W\d]\w*", annotation))
        yield from (value for value in named if isinstance(value, type))
    for part in typing.get_args(annotation):
        yield from _types(part, namespace)


def _is_frozen(kind: type[Any]) -> bool:
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _namespace_of(origin: tuple[ModuleType, str] | None) -> Mapping[str, Any]:
    return {} if origin is None else vars(origin[0])


def _module_of(value: Any) -> str:
    while isinstance(value, functools.partial):
        value = value.func
    return str(getattr(value, "__module__", None) or type(value).__module__)


# These narrow no type: for a type checker, the items of a narrowed value would be unknown.
def _is_constant(value: object) -> bool:
    return isinstance(value, _CONSTANTS)


def _is_composite(value: object) -> bool:
    return isinstance(value, tuple | list | frozenset | set | Mapping)


def _is_fixed(value: object) -> bool:
    return isinstance(value, tuple | frozenset)


def _order(item: Any) -> str:
    """The sort key of the items of a set: the item described first also has its class described."""
    named = item.name if isinstance(item, Enum) else repr(item) if _is_constant(item) else ""
    return f"{_name(type(item))} {_name(item)} {named}"


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "", *(f"{node.module or ''}.{alias.name}".lstrip(".") for alias in node.names)]


def _members(kind: type[Any], namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    slots = _texts(namespace.get("__slots__", ()))
    for name, value in sorted(namespace.items()):
        if isinstance(value, staticmethod | classmethod):
            value = cast("staticmethod[..., Any]", value).__func__
        elif isinstance(value, property):
            yield from ((name, part) for part in (value.fset, value.fdel) if isinstance(part, FunctionType))
            value = value.fget
        elif isinstance(value, functools.cached_property):
            value = value.func
        is_private = name.startswith(("__", "_abc_")) or name in slots
        if isinstance(value, FunctionType):
            if not (name in _GENERATED and is_dataclass(kind) and _is_generated(value)):
                yield name, value
        elif not is_private:
            yield name, value


def _attributes_of(value: Any, kind: type[Any]) -> dict[str, Any]:
    """What an object consists of: the fields of a frozen dataclass, else its attributes. What is computed from them at
    first use, as by a cached property, is none of it."""
    attributes: Mapping[str, Any] = getattr(value, "__dict__", {})
    slots = [name for base in kind.__mro__ for name in _texts(vars(base).get("__slots__", ())) if name != "__dict__"]
    attributes = {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **attributes}
    names = {each.name for each in fields(kind)} if is_dataclass(kind) else set[str]()
    if _is_frozen(kind) and _is_generated(kind.__init__):
        return {name: item for name, item in attributes.items() if name in names}
    return {name: item for name, item in attributes.items() if name in names or not is_computed(kind, name)}


@functools.lru_cache(1024)
def _kept_by(kind: type[Any]) -> frozenset[str]:
    """The attributes that the methods of a class fill at first use."""
    members = [(name, value) for name, value in _members(kind, vars(kind)) if isinstance(value, FunctionType)]
    return frozenset(each for name, value in members if name not in _MAKING for each in kept(value.__code__))


def _is_generated(method: object) -> bool:
    """Whether dataclasses wrote a method."""
    if not isinstance(method, FunctionType):
        return False
    return method.__code__.co_filename == "<string>" or method.__globals__.get("__name__") in ("dataclasses", "reprlib")


def _answered_by(function: FunctionType) -> list[str]:
    """The identity of what answers in place of a wrapped function, if anything does."""
    return [identity] if (identity := getattr(function, ANSWERED_BY, "")) else []


def _contents(cell: Any) -> Any:
    with suppress(ValueError):  # empty: the variable has no value yet
        return cell.cell_contents
    return None


def _names(code: CodeType) -> list[str]:
    """The global names that a function's code may read, sorted, including those of inner functions."""
    names = {name for each in codes(code) for name in each.co_names}
    return sorted(names if names.isdisjoint(_BY_NAME) else names | {*filter(str.isidentifier, _literals(code))})


def _literals(code: CodeType) -> Iterator[str]:
    for each in codes(code):
        yield from (constant for constant in each.co_consts if isinstance(constant, str))


def _imports(code: CodeType) -> Iterator[tuple[str, int]]:
    """The modules that a function imports when it runs, each with the level of a relative import."""
    for each in codes(code):
        if not _IMPORT_BY_NAME.isdisjoint(each.co_names):
            yield from ((name, 0) for name in _literals(each) if all(map(str.isidentifier, name.split("."))))
        if _IMPORT_NAME not in each.co_code[::2]:
            continue
        arguments: list[Any] = [0, None]
        for instruction in dis.get_instructions(each):
            if instruction.opcode == _IMPORT_NAME:
                level, names = arguments[-2:]
                yield instruction.argval, level
                for name in names or ():
                    yield f"{instruction.argval}.{name}".lstrip("."), level
            elif instruction.opname not in ("EXTENDED_ARG", "CACHE"):
                arguments.append(instruction.argval)


def _bytecode(code: CodeType, docstring: str | None = None) -> list[Any]:
    constants = [
        _bytecode(item) if isinstance(item, CodeType) else _constant(None if item is docstring else item)
        for item in code.co_consts
    ]
    return [code.co_code.hex(), constants, code.co_names]


def _constant(value: Any) -> Any:
    if isinstance(value, tuple | frozenset):
        items = [_constant(item) for item in cast("Iterable[Any]", value)]
        return items if isinstance(value, tuple) else sorted(map(str, items))
    return repr(value)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"

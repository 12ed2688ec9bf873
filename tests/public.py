"""What is public: the modules that say so, their names, and the types in the signatures of those names."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import evalstone

OF_MODULES = {"evalstone.run.plan.Plan", "evalstone._core.read_as.ReadAs"}
"""Types that only methods between evalstone's own modules take, and one that stands for two others."""
OPEN = {"Mapping[str, Any]", "dict[str, Any]", "Callable[..., Any]", "Question[Any]", "type[Question[Any]]"}
"""Types that are as precise as they can be: JSON objects, any function, any question."""
ROOT = Path(evalstone.__file__).parent


@functools.cache
def public_modules() -> tuple[str, ...]:
    """The modules with a stub, and those whose source names what is public in `__all__`."""
    modules: list[str] = []
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        if file.with_suffix(".pyi").exists() or "\n__all__ = " in file.read_text("utf-8"):
            modules.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return tuple(modules)


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public name with its module, and what it is."""
    return {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for module in public_modules()
        for name in importlib.import_module(module).__all__
    }


@functools.cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """What a module imports from others by name, in `TYPE_CHECKING` blocks, too: the module and the name there."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _home(name: str, module: str) -> tuple[str, str] | None:
    """The module of evalstone that defines a name that another module uses; None if it isn't one of evalstone's."""
    while name in (imported := _imported(module)):
        module, name = imported[name]
        if not module.startswith("evalstone"):
            return None
        target = importlib.import_module(module)
        if name not in vars(target) and name not in _imported(module):
            value = getattr(target, name, None)  # a lazy package
            if isinstance(value, ModuleType) or value is None:
                return None
            module = getattr(value, "__module__", module)
            break
    value = vars(sys.modules[module]).get(name)
    is_value = name.strip("_").isupper() or isinstance(value, ModuleType | TypeVar | ParamSpec)
    return None if value is None or is_value else (module, name)


def _annotations(value: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """The annotations of what a caller passes and gets, each with its place, such as `Run.mean(scorer)` or
    `Run.mean(return)`, and the module of its names."""
    if inspect.isclass(value) and not issubclass(value, BaseException):  # callers don't construct errors
        for kind in (each for each in value.__mro__ if each.__module__.startswith("evalstone")):
            for name, annotation in vars(kind).get("__annotations__", {}).items():
                if not name.startswith("_"):
                    yield f"{kind.__qualname__}.{name}", kind.__module__, annotation
            for name, member in vars(kind).items():
                if not name.startswith("_") or name == "__init__":
                    yield from _annotations(member, f"{kind.__qualname__}.{name}")
    elif isinstance(value, property):
        yield from _annotations(value.fget, place)
    elif isinstance(value, functools.cached_property):
        yield from _annotations(value.func, place)
    elif isinstance(value, classmethod | staticmethod):
        yield from _annotations(cast("Any", value).__func__, place)
    elif inspect.isfunction(value) and value.__module__.startswith("evalstone"):
        for name, annotation in value.__annotations__.items():
            if not name.startswith("_"):
                yield f"{place}({name})", value.__module__, annotation


def types_in_signatures() -> dict[tuple[str, str], str]:
    """The types of evalstone in the signatures of public names: by module and name, a public name that mentions it."""
    found: dict[tuple[str, str], str] = {}
    for public, value in public_names().items():
        for _, module, annotation in _annotations(value, public):
            text = annotation if isinstance(annotation, str) else ""
            for node in ast.walk(ast.parse(text, mode="eval")) if text else ():
                if isinstance(node, ast.Name) and (home := _home(node.id, module)) is not None:
                    found.setdefault(home, public)
    return found


def _says_little(node: ast.AST) -> bool:
    """Whether a type has Any or object in it, other than for JSON objects, any function and any question."""
    if ast.unparse(node) in OPEN:
        return False
    return ast.unparse(node) in ("Any", "object") or any(map(_says_little, ast.iter_child_nodes(node)))


def open_types() -> dict[str, str]:
    """The types in public signatures with Any or object in them, by the place where they stand."""
    return {
        place: annotation
        for public, value in public_names().items()
        for place, _, annotation in _annotations(value, public.rpartition(".")[2])
        if isinstance(annotation, str) and _says_little(ast.parse(annotation, mode="eval").body)
    }


def without_a_home() -> dict[str, str]:
    """The types in signatures that no public module exports, each with a name that mentions it."""
    homes = {name.rpartition(".")[2] for name in public_names()}
    values = {id(value) for value in public_names().values()}
    return {
        f"{module}.{name}": where
        for (module, name), where in types_in_signatures().items()
        if f"{module}.{name}" not in OF_MODULES
        and not (name in homes and id(getattr(sys.modules[module], name)) in values)
    }

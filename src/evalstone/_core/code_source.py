"""The source of a user's own modules: which files are the user's, and which statements define a name."""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import os
import pkgutil
import sys
import sysconfig
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from evalstone._core.guards import is_array
from evalstone._core.json import content_hash
from evalstone._core.syntax import parse_module

PACKAGE = __name__.partition(".")[0]
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_BLOCKS = ("body", "orelse", "finalbody")

_Stat = tuple[int, int]


def module_named(name: str) -> ModuleType | None:
    """A loaded module."""
    return sys.modules.get(name)


def file_of(namespace: Mapping[str, Any]) -> str:
    """The absolute path of a module's file; "" if it has none, as in a notebook."""
    path = namespace.get("__file__")
    return os.path.abspath(path) if isinstance(path, str) and path else ""  # noqa: PTH100 - a link keeps its name


@functools.lru_cache(4096)
def is_users_file(name: str, path: str) -> bool:
    """Whether a module is neither evalstone's, nor of the standard library, nor of an installed package.

    Packages that are installed in editable mode are the user's.
    """
    package = name.partition(".")[0]
    if package == PACKAGE:
        return False
    if not path:
        return package == "__main__" or package not in sys.stdlib_module_names
    if _INSTALLED & set(Path(path).parts):
        return False
    return not any(Path(path).is_relative_to(folder) for folder in _library())


@functools.cache
def _library() -> tuple[str, ...]:
    """The folders of the standard library."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib")}
    return tuple({os.path.abspath(each) for each in folders} | {os.path.realpath(each) for each in folders})  # noqa: PTH100


class ModuleSource:
    """The top-level statements of a module by the names that they define or change."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    @classmethod
    def of(cls, namespace: Mapping[str, Any]) -> ModuleSource | None:
        """The source of a module, or of the cells of a notebook; None if there is none, as for `python -c`."""
        if path := file_of(namespace):
            return _parsed(path)
        cells = namespace.get("In") if namespace.get("__name__") == "__main__" else None
        if not is_array(cells):
            return None
        return _of_cells(tuple(dict.fromkeys(str(cell) for cell in cells)))

    @functools.cached_property
    def _by_name(self) -> Mapping[str, Sequence[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for statement, conditions in _guarded(self._tree.body):
            for name in dict.fromkeys(_defines(statement)):
                found.setdefault(name, []).extend((*conditions, statement))
        return found

    def statements(self, name: str) -> Sequence[ast.AST]:
        """The statements that bind a name, or change its value: assignments, calls of its methods, decorators. Each
        follows the conditions that decide whether it runs."""
        return self._by_name.get(name, ())

    @functools.cached_property
    def kept(self) -> frozenset[str]:
        """The globals that a function both reads and assigns, as one does that fills them at first use."""
        functions = (node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return frozenset(name for function in functions for name in _kept(function))

    def in_class(self, qualname: str, name: str) -> Sequence[ast.stmt]:
        """The statements in the body of a class that bind a name."""
        return [each for each in self._body(qualname) if name in _defines(each)]

    def fields(self, qualname: str) -> Iterator[tuple[str, ast.AnnAssign]]:
        """The names in the body of a class that have an annotation and a value, with their statements."""
        for each in self._body(qualname):
            if isinstance(each, ast.AnnAssign) and each.value is not None and isinstance(each.target, ast.Name):
                yield each.target.id, each

    def _body(self, qualname: str) -> Sequence[ast.stmt]:
        body: Sequence[ast.stmt] = self._tree.body
        for part in qualname.split("."):
            if part == "<locals>":
                continue
            inner = [
                each for each in _flat(body) if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            named = [each for each in inner if each.name == part]
            if not named:
                return ()
            body = named[-1].body
        return [*_flat(body)]

    def origin(self, name: str, namespace: Mapping[str, Any]) -> tuple[ModuleType, str] | None:
        """The loaded module from which a name is imported, and its name there; None if it is defined here."""
        for statement in reversed([*self.statements(name), *self.statements("*")]):
            if isinstance(statement, ast.ImportFrom):
                package = str(namespace.get("__package__") or "")
                module = module_named(_absolute(statement.module or "", statement.level, package))
                names = [alias.name for alias in statement.names if name == (alias.asname or alias.name)] or [name]
                if module is not None and names[0] in vars(module):
                    return module, names[0]
        return None

    @functools.cached_property
    def digest(self) -> str:
        """The hash of the source without comments and layout."""
        return content_hash(ast.dump(self._tree))

    @functools.cached_property
    def imports(self) -> Sequence[tuple[str, int]]:
        """The modules that it may import, anywhere, each with the level of a relative import."""
        found: dict[tuple[str, int], None] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import):
                found.update({(alias.name, 0): None for alias in node.names})
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                found[module, node.level] = None
                found.update({(f"{module}.{alias.name}".lstrip("."), node.level): None for alias in node.names})
        return tuple(found)


def module_content(
    name: str, level: int, package: str, packages: Collection[str], file: str
) -> Iterator[tuple[str, str, str]]:
    """The names, files and hashes of a module and of those that it imports, as far as they are the user's.

    The modules need not be loaded, and are not imported. packages: packages that are the user's, even if installed.
    file: that of the importing module; modules beside its package are found, too.
    """
    beside = str(Path(file).parents[len(package.split(".")) if package else 0]) if file else ""
    seen: set[str] = set()
    waiting = [_absolute(name, level, package)]
    while waiting:
        module = waiting.pop()
        parts = module.split(".")
        for full in (".".join(parts[: end + 1]) for end in range(len(parts))):  # a package runs before its modules
            if full in seen or not full:
                continue
            seen.add(full)
            spec = _spec(full, beside)
            path = "" if spec is None or not spec.has_location or spec.origin is None else os.path.abspath(spec.origin)  # noqa: PTH100
            package_name = full.partition(".")[0]
            if not path or (package_name not in packages and not is_users_file(full, path)):
                continue
            source = _parsed(path)
            if source is None:
                with suppress(OSError):
                    yield full, path, content_hash(Path(path).read_bytes().hex())
                continue
            yield full, path, source.digest
            inside = (
                full if spec is not None and spec.submodule_search_locations is not None else full.rpartition(".")[0]
            )
            waiting += [_absolute(imported, up, inside) for imported, up in source.imports]


def _absolute(name: str, level: int, package: str) -> str:
    """The full name of a module in an import statement of a package."""
    if not level:
        return name
    parts = package.split(".")
    base = parts[: len(parts) - level + 1]
    return ".".join(filter(None, [*base, name]))


def _spec(full: str, beside: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module would be loaded from. Unlike importlib.util.find_spec, it doesn't import the packages around."""
    path: Sequence[str] | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    name = ""
    for part in full.split("."):
        if name and path is None:
            return None
        name = f"{name}.{part}" if name else part
        spec = None
        for finder in sys.meta_path:
            with suppress(Exception):  # finders of other packages
                spec = finder.find_spec(name, path)
            if spec is not None:
                break
        if spec is None and path is None and beside:  # a module of a folder that isn't on sys.path
            spec = importlib.machinery.PathFinder.find_spec(name, [beside])
        if spec is None and path:
            spec = _in_namespace(name, path)
        if spec is None:
            return None
        path = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    return spec


def _in_namespace(name: str, path: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
    """Where a part of a namespace package would be loaded from. The finders on sys.meta_path find it only after the
    packages around it are imported."""
    importers = filter(None, map(pkgutil.get_importer, path))
    specs = [spec for importer in importers if (spec := importer.find_spec(name)) is not None]
    return next((spec for spec in specs if spec.has_location), next(iter(specs), None))


_PARSED: dict[str, tuple[_Stat, ModuleSource | None]] = {}


def _parsed(path: str) -> ModuleSource | None:
    """The source of a file, parsed again only if the file has changed; None if it can't be read or isn't Python."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    stat = status.st_mtime_ns, status.st_size
    known = _PARSED.get(path)
    if known is None or known[0] != stat:
        known = _PARSED[path] = stat, _read(path)
    return known[1]


def _read(path: str) -> ModuleSource | None:
    try:
        with tokenize.open(path) as file:
            return ModuleSource(parse_module(file.read()))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(8)
def _of_cells(cells: tuple[str, ...]) -> ModuleSource:
    body: list[ast.stmt] = []
    for cell in cells:
        with suppress(SyntaxError, ValueError):
            body += parse_module(cell).body
    return ModuleSource(ast.Module(body, []))


def _flat(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, and those in the blocks of `if`, `try`, `with` and loops."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for block in _BLOCKS:
            yield from _flat(getattr(statement, block, ()))
        for handler in getattr(statement, "handlers", ()):
            yield from _flat(handler.body)
        for case in getattr(statement, "cases", ()):
            yield from _flat(case.body)


def _guarded(
    statements: Sequence[ast.stmt], conditions: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[ast.stmt, tuple[ast.AST, ...]]]:
    """Statements as by `_flat`, with the conditions of the blocks of `if`, `while` and `match` around each."""
    for statement in statements:
        yield statement, conditions
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        test = getattr(statement, "test", None)
        tests = [] if test is None or _is_of_running(test) else [test]
        for block in _BLOCKS:
            yield from _guarded(getattr(statement, block, ()), (*conditions, *tests))
        for handler in getattr(statement, "handlers", ()):
            yield from _guarded(handler.body, conditions)
        if isinstance(statement, ast.Match):
            of_match = ast.Match(
                statement.subject, [ast.match_case(each.pattern, each.guard, []) for each in statement.cases]
            )
            for case in statement.cases:
                yield from _guarded(case.body, (*conditions, of_match))


def _is_of_running(test: ast.expr) -> bool:
    """Whether a condition is about how the module runs, such as `__name__ == "__main__"`, and not about its values."""
    return any(isinstance(node, ast.Name) and node.id in ("__name__", "TYPE_CHECKING") for node in ast.walk(test))


def _kept(function: ast.AST) -> Iterator[str]:
    """The globals that a function both reads and assigns."""
    nodes = [*ast.walk(function)]
    named = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in named if isinstance(node.ctx, ast.Load)}
    read |= {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    assigned = {node.id for node in named if isinstance(node.ctx, ast.Store)}
    yield from (
        name for node in nodes if isinstance(node, ast.Global) for name in node.names if name in read & assigned
    )


def _defines(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds, or whose value it may change."""
    match statement:
        case ast.Assign():
            for target in statement.targets:
                yield from _roots(target)
        case ast.AugAssign() | ast.AnnAssign():
            yield from _roots(statement.target)
        case ast.Delete():
            for target in statement.targets:
                yield from _roots(target)
        case ast.For() | ast.AsyncFor():  # what the loop changes depends on what it runs over
            yield from _roots(statement.target)
            for inner in _flat(statement.body):
                yield from _defines(inner)
        case ast.With() | ast.AsyncWith():
            for item in statement.items:
                if item.optional_vars is not None:
                    yield from _roots(item.optional_vars)
        case ast.Import():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        case ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in statement.names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
            for decorator in statement.decorator_list:  # as in @agent.tool
                yield from _roots(decorator)
            for node in ast.walk(statement):
                if isinstance(node, ast.Global):
                    yield from node.names
        case ast.Expr(value=ast.Call(func=ast.Name("setattr" | "delattr"), args=[target, *_])):
            yield from _roots(target)
        case ast.Expr(value=ast.Call(func=function)):  # as in PROMPTS.update(…)
            yield from _roots(function)
        case _:
            pass


def _roots(target: ast.expr) -> Iterator[str]:
    """The names at the start of a target: `a` of a, a.b, a[0] and a(), and both of a, b."""
    match target:
        case ast.Name():
            yield target.id
        case ast.Attribute() | ast.Subscript() | ast.Starred():
            yield from _roots(target.value)
        case ast.Call():
            yield from _roots(target.func)
        case ast.Tuple() | ast.List():
            for element in target.elts:
                yield from _roots(element)
        case _:
            pass

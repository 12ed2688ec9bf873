"""Objects of the user's own code by address: `module:name`, or `path/file.py:name`.

An address runs code: that of its module. It runs no other file of a folder: a module is looked for among the installed
ones, and then in one folder, which is never added to `sys.path`. Only the named modules, and those that they import,
find modules in that folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

from evalstone._core.display import excerpt, quoted
from evalstone._core.files import home_expanded
from evalstone._core.json import content_hash
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    MissingDependency,
    Problem,
    absent,
    described,
    error_text,
    invalid,
    near,
    unknown,
    user_line,
)

T = TypeVar("T")

FORMS = "module:name or path/file.py:name"
_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_MODULE = re.compile(rf"({_NAME}):({_NAME})")
_FILE = re.compile(rf"([^\n\r\0]*\.py):({_NAME})")


class Place(NamedTuple):
    """Where addresses are looked up, and what was found there: its role and the file of its module."""

    folder: Path
    found: list[tuple[str, str]]


_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def is_address(text: object) -> bool:
    """Whether a text has the form of an address."""
    return isinstance(text, str) and bool(_MODULE.fullmatch(text.strip()) or _FILE.fullmatch(text.strip()))


def meant_by(name: str) -> list[str]:
    """The address that a name with dots stands for: `my.py:short`, of `my.short` or `my.py.short`, if there is such a
    file, else `my:short`; `my.py:NAME` of `my.py`. Empty for a name that is none of code."""
    name = name.strip()
    if name.endswith(".py"):
        return [f"{name}:NAME"]
    module, dot, last = name.rpartition(".")
    module = module.removesuffix(".py")
    if not dot or not _MODULE.fullmatch(f"{module}:{last}"):
        return []
    file = f"{module.replace('.', '/')}.py"
    return [f"{file if (folder() / file).is_file() else module}:{last}"]


@contextmanager
def beside(folder: str | Path) -> Generator[Sequence[tuple[str, str]]]:
    """Within the block, addresses name modules and files of this folder instead of the current one.

    Yields what was found: the role of each object, and the file of its module; "" if it has none.
    """
    place = Place(Path(folder), [])
    token = _PLACE.set(place)
    try:
        yield place.found
    finally:
        _PLACE.reset(token)


def folder() -> Path:
    """The folder of addresses, and of files that are named beside them."""
    return (_PLACE.get() or Place(Path(), [])).folder


def named_beside(path: str, what: str) -> Path:
    """The absolute path of a file or folder that is named beside the addresses. what: its role, as in `find`."""
    place = _PLACE.get()
    if place is not None:
        place.found.append((what, ""))
    return (folder() / home_expanded(path)).absolute()


def find(address: str, what: str) -> Any:
    """The object at an address. what: its role, for errors: "the judge".

    Raises:
        ConfigError: It is no address, there is no such module, file or name, or the module's own code failed. The
            message has the address, and the innermost line of the user's code.
    """
    address = address.strip()
    named = f"{what} {address}"
    here, seen = _PLACE.get() or Place(Path(), [])
    if in_file := _FILE.fullmatch(address):
        module, name = _loaded(here / home_expanded(in_file[1]), in_file[1], named), in_file[2]
        value = _attribute(module, name, named)
    elif in_module := _MODULE.fullmatch(address):
        module, name = _imported(here, in_module[1], named), in_module[2]
        try:
            value = _attribute(module, name, named)
        except ConfigError as error:
            if hint := _hidden(here, in_module[1], name, _file(module)):
                raise ConfigError(error, hint) from None
            raise
    else:
        raise ConfigError(invalid(what, FORMS, address, quoted(address)))
    seen.append((what, _file(module)))
    return value


def file_of(address: str) -> str:
    """The file of the module at an address that was found; "" if it has none."""
    address = address.strip()
    if in_file := _FILE.fullmatch(address):
        return str((folder() / home_expanded(in_file[1])).resolve())
    return _file(sys.modules[address.partition(":")[0]])


def installed(address: str, named: str) -> Any:
    """The object at the address `module:name` of an installed module; no folder is searched.

    named: what it is, for errors. Raises ConfigError as `find` does.
    """
    in_module = _MODULE.fullmatch(address)
    if in_module is None:
        raise ConfigError(invalid(f"the address of {named}", "module:name", address))
    try:
        module = importlib.import_module(in_module[1])
    except (Exception, SystemExit) as error:  # whatever the module's own code raises
        raise _failed(named, error) from error
    return _attribute(module, in_module[2], named)


def of_kind(named: str, expected: str, base: str, value: Any) -> Problem:
    """An object of another kind than its address was named for. base: the class that its class derives from."""
    kind = cast("type[Any]", type(value))
    if inspect.isclass(value):
        found = f"a class that doesn't derive from evalstone.{base}"
    elif inspect.iscoroutinefunction(value) or inspect.iscoroutine(value):
        found = "an async function" if callable(value) else "a coroutine, which nothing awaits"
    elif inspect.ismodule(value) or inspect.isroutine(value):
        found = "a module" if inspect.ismodule(value) else "a function"
    else:
        found = f"{kind.__name__}: {excerpt(value)}" if kind.__module__ == "builtins" else f"of {kind.__qualname__}"
    return invalid(named, expected, value).worded(f"{named} is not {expected}, but {found}")


def built(named: str, build: Callable[..., T], arguments: Mapping[str, Any], what: str = "made") -> T:
    """What a class or a function of the user's code returns. Raises ConfigError, with the line, for what it raises.

    what: what it then can't be, for errors.
    """
    try:
        return build(**arguments)
    except (Exception, SystemExit) as error:
        if isinstance(error, EvalstoneError):
            raise
        raise ConfigError(f"{named} can't be {what}: {described(error)}") from error


def _imported(where: Path, module: str, named: str) -> ModuleType:
    try:
        return import_from(where, module)
    except ModuleNotFoundError as error:
        if error.name is None or isinstance(error, EvalstoneError) or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(named, error) from error
        guesses = near(module, [path.stem for path in where.glob("*.py")])
        hint = (
            f"; did you mean {' or '.join(guesses)}?"
            if guesses
            else f"; it is neither installed nor in {_shown(where)}"
        )
        raise ConfigError(absent(module, f"there is no module {module}, which {named} names{hint}")) from None
    except (Exception, SystemExit) as error:  # whatever the module's own code raises
        if isinstance(error, EvalstoneError) and not user_line(error) and not isinstance(error, MissingDependency):
            raise
        raise _failed(named, error) from error


def _loaded(file: Path, written: str, named: str, name: str = "") -> ModuleType:
    """The module in a file. A file of the name of another module is a module of its own. name: its name, if known."""
    path = file.resolve()
    if not path.is_file():
        guesses = near(path.stem, [each.stem for each in path.parent.glob("*.py")])
        hint = f"; did you mean {' or '.join(f'{guess}.py' for guess in guesses)}?" if guesses else ""
        raise ConfigError(absent(written, f"there is no file {written}, which {named} names{hint}"))
    name = name or path.stem
    if (known := sys.modules.get(name)) is not None and getattr(known, "__file__", None) != str(path):
        name = f"{name}_{content_hash(str(path))[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{named} can't be imported: {written} is no Python file")
    finder = _finder(path.parent)
    finder.found.add(name)
    finder.files[name] = path
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise _failed(named, error) from error
    return module


def _failed(named: str, error: BaseException) -> ConfigError:
    text = error_text(error) if isinstance(error, MissingDependency) else described(error)
    return ConfigError(f"{named} can't be imported: {text}")


def _attribute(module: ModuleType, path: str, named: str) -> Any:
    value: Any = module
    owner = f"the module {module.__name__}"
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            names = [each for each in dir(value) if not each.startswith("_")]
            problem = unknown("name", name, names)
            hint = f"; did you mean {' or '.join(problem.near)}?" if problem.near else ""
            raise ConfigError(problem.worded(f"{owner} has no {name}, which {named} names{hint}")) from None
        except (Exception, SystemExit) as error:  # of a module's or a class's own __getattr__
            raise _failed(named, error) from error
        owner = f"{owner}'s {name}" if owner.startswith("the module") else f"{owner}.{name}"
    return value


def _hidden(where: Path, module: str, name: str, file: str) -> str:
    """What is said about a file of the folder that has the name of an installed module."""
    own = where.resolve() / f"{module.replace('.', '/')}.py"
    if not file or not own.is_file() or own.samefile(file):
        return ""
    return (
        f"; {module} is the installed {file}, which comes before {own}: rename yours, or name the file: "
        f"{own.name}:{name}"
    )


def _file(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or ""


def _shown(where: Path) -> str:
    return "the current folder" if where == Path() else str(where)


class _Folder:
    """An import hook that finds the requested module in a folder, and the modules there that it imports, even later.

    The folder isn't added to `sys.path`: a library that tries to import an optional module would then run any file of
    that name beside the data.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requested = ""
        self.found: set[str] = set()
        self.files: dict[str, Path] = {}
        """The modules that were named by their files."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module, if it is in the folder and was requested, or is imported by a module from the folder."""
        if path is not None or not (name == self.requested or _importer() in self.found):
            return None
        spec = PathFinder.find_spec(name, [str(self.path)])
        if spec is not None:
            self.found.add(name)
        return spec


def _importer() -> str:
    """The top-level module whose code is running the current import."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - a finder doesn't get the importing module
    while frame is not None:
        if (name := str(frame.f_globals.get("__name__", "")).partition(".")[0]) != "importlib":
            return name
        frame = frame.f_back
    return ""


def _finder(path: Path) -> _Folder:
    """The hook of a folder."""
    finder = next((each for each in sys.meta_path if isinstance(each, _Folder) and each.path == path), None)
    if finder is None:
        finder = _Folder(path)
        sys.meta_path.append(finder)
    return finder


def import_from(folder: Path, module: str) -> ModuleType:
    """A module that is installed, or else is in the folder.

    Raises ConfigError if a module of the same name was imported from another folder, or the import's own error.
    """
    path, top = folder.resolve(), module.partition(".")[0]
    for other in [each for each in sys.meta_path if isinstance(each, _Folder)]:
        if other.path != path and top in other.found and top in sys.modules:
            raise ConfigError(f"a module {top} was already imported from {other.path}, so not from {path}")
    finder = _finder(path)
    finder.requested = top
    try:
        return importlib.import_module(module)
    finally:
        finder.requested = ""


class Origin(NamedTuple):
    """Where a module was found that isn't installed."""

    folder: Path
    module: str
    file: Path | None


def origins(modules: Collection[str]) -> list[Origin]:
    """Where those of these modules were found that are not installed."""
    names = sorted({module.partition(".")[0] for module in modules})
    finders = [finder for finder in sys.meta_path if isinstance(finder, _Folder)]
    return [Origin(each.path, name, each.files.get(name)) for each in finders for name in names if name in each.found]


def restore(origin: Origin) -> None:
    """Import a module in another process. Raises what `import_from` raises."""
    if origin.file is None:
        import_from(origin.folder, origin.module)
    else:
        _loaded(origin.file, str(origin.file), "a value", origin.module)

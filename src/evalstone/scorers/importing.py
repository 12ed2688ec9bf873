"""Importing a scorer's module from a folder, such as the current one.

The folder isn't put on `sys.path`: a library that tries to import an optional module would then run whatever file of
that name lies beside the data. Only the named module is looked up there, after everything that is installed, and what
modules of that folder import themselves, also later, in a function.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from evalstone.errors import ConfigError


class _Folder:
    """Finds in a folder the module that is wanted, and what modules found there import."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wanted = ""
        self.found: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module, if something of this folder asks for it, and it is there."""
        if path is not None or not (name == self.wanted or _importer() in self.found):
            return None
        spec = PathFinder.find_spec(name, [str(self.path)])
        if spec is not None:
            self.found.add(name)
        return spec


def _importer() -> str:
    """The top-level module whose code has the import that is under way."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - a finder isn't told who imports
    while frame is not None:
        if (name := str(frame.f_globals.get("__name__", "")).partition(".")[0]) != "importlib":
            return name
        frame = frame.f_back
    return ""


def import_from(folder: Path, module: str) -> ModuleType:
    """A module that is installed, or else lies in the folder.

    Raises ConfigError where a module of another folder has its name; otherwise what the import raises.
    """
    path, top = folder.resolve(), module.partition(".")[0]
    folders = {finder.path: finder for finder in sys.meta_path if isinstance(finder, _Folder)}
    for other in folders.values():
        if other.path != path and top in other.found:
            raise ConfigError(f"a module {top} was already imported from {other.path}, so not from {path}")
    if path not in folders:
        folders[path] = _Folder(path)
        sys.meta_path.append(folders[path])
    folders[path].wanted = top
    try:
        return importlib.import_module(module)
    finally:
        folders[path].wanted = ""

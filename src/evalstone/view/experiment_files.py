"""The files of experiments that pages show: those in the folder where the pages were started, and those that the
command named. A page can name no other file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from evalstone._core.display import count
from evalstone._core.files import is_folder
from evalstone.errors import EvalstoneError

MOST_ENTRIES = 20_000
"""The most files and folders that are looked at in the folder."""
DEEPEST = 4
"""The number of folders below the folder in which files are looked for."""
LARGEST = 1 << 20
"""The most bytes of a file that may describe an experiment."""
_NO_PROJECTS = ("node_modules", "__pycache__", "site-packages")
_MARK = b"experiment"


@dataclass(frozen=True)
class PlannedCell:
    """A cell as the file of an experiment describes it."""

    name: str
    factors: Mapping[str, Any]
    data: str
    """The name of its data."""


@dataclass(frozen=True)
class ExperimentFile:
    """What the file of an experiment says."""

    name: str
    """What the experiment is called."""
    cells: tuple[PlannedCell, ...]
    """In the order in which they run."""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """What it runs, in words: data, targets, scorers, judge …"""
    ledger: str | None = None
    """Its ledger; None if it names none."""


Read: TypeAlias = Callable[[Path], ExperimentFile | None]
"""Reads the file of an experiment without running any code that it names: None for a file without an experiment. Raises
EvalstoneError for one that is wrong."""


@dataclass(frozen=True)
class ListedFile:
    """A file that may be started, unless it can't be read."""

    path: str
    """As it is named on the command line, seen from the folder."""
    says: ExperimentFile | None
    """None if it can't be read."""
    problem: str = ""
    """Why it can't be read."""

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return Path(self.path).stem if self.says is None else self.says.name


class ExperimentFiles:
    """The files of experiments.

    Args:
        folder: Where to look for them; None to look nowhere.
        named: Files that are listed wherever they are.
        read: Reads one.
    """

    def __init__(self, folder: Path | None, named: Sequence[str], read: Read) -> None:
        self.folder, self.named, self._read = folder, tuple(named), read
        self._known: dict[str, tuple[tuple[int, int], ListedFile | None]] = {}
        self.note = ""
        """What was left out, if anything."""

    def listed(self) -> list[ListedFile]:
        """The files as they are now, by path. Those that were named are first."""
        files = [self._listed(path, named=True) for path in self.named]
        known = {os.path.realpath(self._at(path)) for path in self.named}
        found = [path for path in sorted(self._found()) if os.path.realpath(self._at(path)) not in known]
        files += [self._listed(path, named=False) for path in found]
        return [file for file in files if file is not None]

    def file(self, path: str) -> ListedFile | None:
        """The file that is listed under exactly this path; None if none is."""
        return next((file for file in self.listed() if file.path == path), None)

    def _at(self, path: str) -> Path:
        return Path(path) if self.folder is None else self.folder / path

    def _listed(self, path: str, *, named: bool) -> ListedFile | None:
        """A file; None if it doesn't describe an experiment, unless it was named."""
        file = self._at(path)
        try:
            status = file.stat()
            state = status.st_mtime_ns, status.st_size
            known = self._known.get(path)
            if known is not None and known[0] == state:
                return known[1]
            if status.st_size > LARGEST or (not named and _MARK not in file.read_bytes()):
                listed = ListedFile(path, None, f"it has more than {LARGEST:,} bytes") if named else None
            else:
                listed = self._described(path, named=named)
        except OSError as error:
            return ListedFile(path, None, f"it can't be read: {error.strerror or error}") if named else None
        self._known[path] = state, listed
        return listed

    def _described(self, path: str, *, named: bool) -> ListedFile | None:
        try:
            says = self._read(self._at(path))
        except EvalstoneError as error:
            return ListedFile(path, None, str(error))
        if says is None:
            return ListedFile(path, None, "it has no table [experiment]") if named else None
        return ListedFile(path, says)

    def _found(self) -> Iterator[str]:
        """The TOML files in the folder. Hidden folders, packages and links to elsewhere are left out."""
        if self.folder is None or not is_folder(self.folder):
            return
        self.note = ""
        left, root = MOST_ENTRIES, str(self.folder)
        for at, folders, files in os.walk(root, followlinks=False):
            depth = len(Path(at).relative_to(root).parts)
            left -= len(folders) + len(files)
            if left < 0:
                self.note = f"Only the first {count(MOST_ENTRIES, 'file')} of the folder were looked at."
                return
            if "pyvenv.cfg" in files:
                folders.clear()
                continue
            folders[:] = sorted(
                name for name in folders if depth < DEEPEST and not name.startswith(".") and name not in _NO_PROJECTS
            )
            for name in files:
                file = Path(at, name)
                if name.endswith(".toml") and not name.startswith(".") and file.is_file() and not file.is_symlink():
                    yield os.path.relpath(file, root)

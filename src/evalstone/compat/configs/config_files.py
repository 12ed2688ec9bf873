"""The files that a configuration names. They are in its folder, or in the repository around it: a configuration of
somebody else's reads no others."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from evalstone._core.display import quoted
from evalstone._core.files import file_text, is_file, is_folder
from evalstone.compat.configs.nunjucks import TextLimit
from evalstone.compat.configs.yaml_files import read_yaml
from evalstone.errors import ConfigError, DataError

MOST_FILES = 10_000
_MOST_SEEN = 100_000
SCHEME = "file://"
CODE = frozenset((".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".sh", ".exe", ".bat", ".ps1", ".pl"))
"""The endings of files that are run, which no file of a configuration is."""
YAML = frozenset((".yaml", ".yml"))
DATA = YAML | {".json"}
NOT_TEXT = frozenset(
    (".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg", ".mp3", ".wav", ".mp4", ".xlsx", ".xls")
)


def kind_of(reference: str) -> str:
    """The ending of a file's name in lower case, without the function after it: `file://a.py:get` is .py."""
    path = reference.removeprefix(SCHEME)
    whole, _, function = path.rpartition(":")
    return Path(whole if whole and function.isidentifier() else path.partition("#")[0]).suffix.lower()


@dataclass(frozen=True)
class ConfigFiles:
    """The files of a configuration.

    Attributes:
        config: The path of the configuration.
    """

    config: Path

    @cached_property
    def limit(self) -> TextLimit:
        """That of the texts of its tests."""
        return TextLimit(str(self.config))

    @cached_property
    def folder(self) -> Path:
        """Its folder, without links."""
        return self.config.parent.resolve()

    @cached_property
    def root(self) -> Path:
        """The folder whose files it may name: the repository around it, or else its own folder."""
        found = next((each for each in (self.folder, *self.folder.parents) if (each / ".git").exists()), self.folder)
        return self.folder if found in (Path.home(), Path(found.anchor)) else found

    def place(self, line: int | None) -> str:
        """The beginning of an error about a line of the configuration."""
        return f"{self.config}: " + (f"line {line}: " if line else "")

    def path(self, reference: str, line: int | None) -> Path:
        """The file of a reference, such as `file://tests.csv`. Raises DataError if it is outside of `root`."""
        name = reference.removeprefix(SCHEME)
        try:
            found = (self.folder / name).resolve()
        except (OSError, ValueError, RuntimeError):
            raise DataError(f"{self.place(line)}{quoted(reference)} is no path") from None
        if not found.is_relative_to(self.root):
            where = "folder" if self.root == self.folder else "repository"
            raise DataError(
                f"{self.place(line)}{quoted(reference)} is outside of the configuration's {where}, and isn't read; "
                "copy it there, and name the copy"
            )
        return found

    def paths(self, reference: str, line: int | None) -> list[Path]:
        """The files that a reference names, which may be a pattern such as `file://tests/*.yaml`, in their order.

        Raises DataError if there is none, and for files outside of `root`.
        """
        name = reference.removeprefix(SCHEME)
        if not glob.has_magic(name):
            return [self.path(reference, line)]
        parts = (self.folder / name).parts
        own = 0 if Path(name).is_absolute() else len(self.folder.parts)
        first = next(place for place, part in enumerate(parts) if place >= own and glob.has_magic(part))
        start = self.path(str(Path(*parts[own:first])), line)
        try:
            matching = _matching(start, parts[first:], itertools.count())
            names = sorted(itertools.islice(matching, MOST_FILES + 1), key=str)
        except (OSError, RecursionError) as error:
            why = getattr(error, "strerror", None) or "it leads through too many folders, perhaps in a circle of links"
            raise DataError(f"{self.place(line)}{quoted(reference)} can't be followed: {why}") from None
        if len(names) > MOST_FILES:
            raise DataError(f"{self.place(line)}{quoted(reference)} names more than {MOST_FILES:,} files")
        found = dict.fromkeys(self.path(str(each), line) for each in names)
        if not found:
            raise DataError(f"{self.place(line)}{quoted(reference)} names no file")
        return [*found]

    def text(self, path: Path, line: int | None) -> str:
        """The text of a file. Raises DataError if it can't be read."""
        if os.path.exists(path) and not is_file(path) and not is_folder(path):  # noqa: PTH110 - also for impossible names
            raise DataError(f"{self.place(line)}{self.shown(path)} is no file")  # a pipe may never end
        try:
            text = file_text(path)
        except OSError as error:
            raise DataError(f"{self.place(line)}{self.shown(path)} can't be read: {error.strerror or error}") from None
        except ConfigError as error:
            raise DataError("" if path == self.config else self.place(line), error) from None
        self.limit.count(len(text))
        return text

    def data(self, path: Path, line: int | None) -> Any:
        """The value of a YAML or JSON file. Raises DataError if it can't be read."""
        return read_yaml(self.text(path, line), self.shown(path))

    def shown(self, path: Path) -> str:
        """The path of a file from the folder."""
        return Path(os.path.relpath(path, self.folder)).as_posix()


def _matching(folder: Path, parts: Sequence[str], seen: Iterator[int]) -> Iterator[Path]:
    """The files below a folder that a pattern names, as in a shell: without hidden ones.

    parts: Those of the pattern. seen: Counts what is looked at. Raises RecursionError if there is no end of it.
    """
    first, *rest = parts
    if first == "**":
        yield from _matching(folder, rest or ["*"], seen)
    for entry in folder.iterdir() if folder.is_dir() else ():
        if next(seen) >= _MOST_SEEN:
            raise RecursionError
        if entry.name.startswith(".") > first.startswith("."):
            continue
        if first == "**":
            if entry.is_dir() and not entry.is_symlink():
                yield from _matching(entry, parts, seen)
        elif fnmatchcase(entry.name, first):
            if rest:
                yield from _matching(entry, rest, seen)
            elif entry.is_file():
                yield entry

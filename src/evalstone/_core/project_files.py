"""The files of a project: their names, and how new ones are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from evalstone._core.files import is_file
from evalstone.errors import ConfigError

CONFIG = "evalstone.toml"
RESULTS = "results"
"""The folder for the results of a run that names no other."""
IGNORED = ("/.evalstone/", f"/{RESULTS}/")
"""The lines of .gitignore."""


def check_free(project: Path, names: Iterable[str]) -> None:
    """Raise ConfigError if one of these files of a project exists."""
    if in_the_way := [*_in_the_way(project, [*names])]:
        raise ConfigError(f"nothing is written, because these exist: {', '.join(map(str, in_the_way))}")


def _in_the_way(project: Path, names: Sequence[str]) -> Iterator[Path]:
    """What exists in place of a file or of a folder that is written."""
    folders = dict.fromkeys(parent for name in names for parent in (project / name).parents)
    yield from (folder for folder in folders if os.path.lexists(folder) and not folder.is_dir())
    yield from (project / name for name in names if os.path.lexists(project / name))
    if os.path.lexists(ignored := project / ".gitignore") and not is_file(ignored):
        yield ignored


def write_new(project: Path, contents: Mapping[str, str]) -> list[str]:
    """Write the files, or none of them, and add to .gitignore what a run writes; returns their paths in the project.

    Raises ConfigError if a file exists, or can't be written.
    """
    new: list[Path] = []
    try:
        for name, text in contents.items():
            file = project / name
            for parent in reversed(file.parents):
                if not parent.exists():
                    parent.mkdir()
                    new.append(parent)
            with file.open("x", encoding="utf-8", newline="\n") as opened:
                new.append(file)
                opened.write(text)
        return [*contents, *_ignore(project / ".gitignore")]
    except OSError as error:
        for path in reversed(new):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise ConfigError(f"can't write to {project}: {error.strerror or error}; nothing is written") from error


def _ignore(file: Path) -> list[str]:
    """Add the missing lines to .gitignore; returns its name if there are some."""
    before = file.read_bytes() if file.exists() else b""
    known = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.strip("/").encode() not in known]
    if missing:
        start = b"\n" if before and not before.endswith(b"\n") else b""
        with file.open("ab") as opened:
            opened.write(start + b"".join(line.encode() + b"\n" for line in missing))
    return [file.name] if missing else []

"""Writing files in one step: whoever reads one finds all of it, or what was there before."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from evalstone._core.display import quoted
from evalstone._core.files import cannot_write, lock, private, resolved

TEMPORARY = ".evalstone.tmp"
"""The end of the names of files that are being written."""
_END = re.compile(rf"[0-9a-f]{{8}}{re.escape(TEMPORARY)}")


@contextmanager
def replacing(path: str | Path) -> Generator[BinaryIO]:
    """A temporary file next to `path` that is synced to disk and replaces it if the block succeeds.

    It is accessible to its owner only, or has the mode of the file that it replaces. Temporary files left by killed
    processes are deleted.

    Raises:
        ConfigError: The path isn't a writable file.
        WriteError: The file can't be written completely, for example because the disk is full.
    """
    target = resolved(path)
    try:
        with _beside(target) as file:
            try:
                with suppress(FileNotFoundError):
                    Path(file.name).chmod(target.stat().st_mode & 0o777)
                yield file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(target)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(f"cannot write {quoted(path)}", error) from error


def check_writable(path: str | Path) -> None:
    """Check that a file can be written, before doing the work for it.

    Raises:
        ConfigError: The folder doesn't exist or isn't writable, or the path is a folder.
        WriteError: The disk is full.
    """
    target = resolved(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.is_file() or not target.exists():
            with _beside(target) as file:
                Path(file.name).unlink()
    except OSError as error:
        raise cannot_write(f"cannot write {quoted(path)}", error) from None


def _beside(target: Path) -> BinaryIO:
    """A new temporary file next to a file. It is locked while its writer lives, unlike an abandoned one."""
    _delete_abandoned(target)
    while True:
        path = target.parent / f".{target.name}.{secrets.token_hex(4)}{TEMPORARY}"
        file = open(path, "xb", opener=private)  # noqa: SIM115 - Path.open has no opener
        lock(file)
        if path.exists():  # unless it was deleted as abandoned before it was locked
            return file
        file.close()


def _delete_abandoned(target: Path) -> None:
    """Delete the temporary files of writers that were killed."""
    start = f".{target.name}."
    for entry in os.scandir(target.parent):
        if not (entry.name.startswith(start) and _END.fullmatch(entry.name, len(start))):
            continue
        if entry.is_file(follow_symlinks=False):
            with suppress(OSError), open(entry.path, "r+b", opener=private) as file:  # Path.open has no opener
                if lock(file, wait=False):
                    Path(entry.path).unlink()

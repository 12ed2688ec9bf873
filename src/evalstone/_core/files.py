"""Files and folders that only their owner can read, and what it means when one can't be written."""

from __future__ import annotations

import errno
import importlib
import os
from pathlib import Path
from typing import IO, Any

from evalstone.errors import ConfigError, StorageError, WriteError

_WRONG_PATH = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.EINVAL),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV),
)


def cannot_write(told: str, error: OSError, broken: type[StorageError] = WriteError) -> ConfigError | StorageError:
    """What to raise for a failed write: ConfigError where another path mends it, `broken` for a full disk and such."""
    kind = ConfigError if error.errno in _WRONG_PATH else broken
    return kind(f"{told}: {error.strerror or error}")


def private(path: str, flags: int) -> int:
    """An opener for `open`: a file that it creates is its owner's alone; one that exists keeps its mode."""
    return os.open(path, flags, 0o600)


def make_folder(path: Path) -> None:
    """Create a folder and the missing ones above it, each for its owner alone; those that exist keep their mode.

    Raises:
        OSError: It can't be created, or is a file.
    """
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def lock(file: IO[Any], *, wait: bool = True) -> bool:
    """Lock a file until it is closed or its process ends. Whether it was; False where files can't be locked, too."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True

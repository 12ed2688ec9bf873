"""What Windows does otherwise than other systems with files that are open."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

_READ, _WRITE = 0x80000000, 0x40000000
_SHARED = 1 | 2 | 4
"""Others may read, write, and delete or rename the file."""
_NEW, _TRUNCATED, _EXISTING, _ANY, _EXISTING_TRUNCATED = 1, 2, 3, 4, 5
_PLACE = 2**31 - 2
"""Windows keeps others from reading and writing what is locked, so it is a byte that is hardly ever there."""
_PAUSE = 0.02


def shared(path: str, flags: int) -> int:
    """`os.open` of a file that can be renamed and deleted while it is open, as on other systems. Raises OSError."""
    winapi: Any = importlib.import_module("_winapi")
    msvcrt: Any = importlib.import_module("msvcrt")
    access = _READ | _WRITE if flags & os.O_RDWR else _WRITE if flags & os.O_WRONLY else _READ
    if flags & os.O_CREAT:
        how = _NEW if flags & os.O_EXCL else _TRUNCATED if flags & os.O_TRUNC else _ANY
    else:
        how = _EXISTING_TRUNCATED if flags & os.O_TRUNC else _EXISTING
    try:
        handle = winapi.CreateFile(path, access, _SHARED, 0, how, 0x80, 0)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path, getattr(error, "winerror", None)) from None
    return msvcrt.open_osfhandle(handle, flags)


def locked(descriptor: int, *, wait: bool) -> bool:
    """Lock a file until it is closed or the process ends. False if it is locked already."""
    msvcrt: Any = importlib.import_module("msvcrt")
    while True:
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, _PLACE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        except PermissionError:
            if not wait:
                return False
        finally:
            os.lseek(descriptor, at, os.SEEK_SET)
        time.sleep(_PAUSE)

"""What Windows does otherwise than other systems: with files that are open, and with processes that belong together."""

from __future__ import annotations

import importlib
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

_READ, _WRITE = 0x80000000, 0x40000000
_SHARED = 1 | 2 | 4
"""Others may read, write, and delete or rename the file."""
_NEW, _TRUNCATED, _EXISTING, _ANY, _EXISTING_TRUNCATED = 1, 2, 3, 4, 5
_PLACE = 2**31 - 2
"""Windows keeps others from reading and writing what is locked, so it is a byte that is hardly ever there."""
_PAUSE = 0.02
_SUSPENDED, _OWN_GROUP = 0x4, 0x200
"""How a process is created: it doesn't run yet, and Ctrl-C in the console is not for it."""
_LIMITS, _END_WHEN_CLOSED = 9, 0x2000
"""The kind of what is set of a job, and the limit: its processes end with the last handle of it."""


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


class Job:
    """A process and all that it starts, which end together: by `end`, or when this process ends in any way."""

    def __init__(self) -> None:
        ctypes: Any = importlib.import_module("ctypes")
        self._ctypes = ctypes
        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        for name in ("CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject", "TerminateJobObject"):
            getattr(self._kernel, name).restype = ctypes.c_void_p if name == "CreateJobObjectW" else ctypes.c_int
        self._handle = ctypes.c_void_p(self._checked(self._kernel.CreateJobObjectW(None, None)))
        # JOBOBJECT_EXTENDED_LIMIT_INFORMATION, whose only limit is the end of the processes
        limits = struct.pack("qqIPPIPII6Q4P", 0, 0, _END_WHEN_CLOSED, *[0] * 16)
        self._checked(self._kernel.SetInformationJobObject(self._handle, _LIMITS, limits, len(limits)))

    def start(self, words: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        """Start the process, with pipes. It runs once it is in the job, so that all that it starts is, too."""
        process: subprocess.Popen[bytes] | None = None
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller's own command, and no shell
                [shutil.which(words[0]) or words[0], *words[1:]],  # Windows itself finds no .cmd by its name
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                creationflags=_SUSPENDED | _OWN_GROUP,
            )
            handle = self._ctypes.c_void_p(int(getattr(process, "_handle")))  # noqa: B009 - other systems have none
            self._checked(self._kernel.AssignProcessToJobObject(self._handle, handle))
            if self._ctypes.WinDLL("ntdll").NtResumeProcess(handle):
                raise OSError("the process can't be resumed")
        except OSError:
            if process is not None:
                process.kill()
            self._kernel.CloseHandle(self._handle)
            raise
        return process

    def end(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        """End the processes. Windows has no way to ask them to: force makes no difference."""
        self._kernel.TerminateJobObject(self._handle, 1)
        process.wait()
        self._kernel.CloseHandle(self._handle)

    def _checked(self, result: Any) -> Any:
        if not result:
            raise self._ctypes.WinError(self._ctypes.get_last_error())
        return result

"""What Windows does otherwise.

No file is renamed, replaced or deleted while it is open, and some names are refused. Processes are ended as a job.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

OPEN_FILES = Path("/proc/self/fd")
_DEVICES = r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?"
_REFUSED = re.compile(rf'.*[<>:"|?*\x00-\x1f].*|.*[. ]|{_DEVICES}', re.IGNORECASE)


def behave_as_windows(patch: pytest.MonkeyPatch) -> None:
    """Let calls of `os` fail as on Windows. Files opened with `private` may be renamed and deleted, as there."""
    if not OPEN_FILES.exists():
        pytest.skip("the open files of this process aren't known")
    shared: set[int] = set()
    usual = {name: getattr(os, name) for name in ("open", "rename", "replace", "unlink", "remove", "mkdir")}

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_CREAT:
            _check_name(path)
        descriptor = usual["open"](path, flags, *more, **named)
        shared.discard(descriptor)
        if sys._getframe(1).f_code.co_name == "private":  # pyright: ignore[reportPrivateUsage]
            shared.add(descriptor)
        return descriptor

    def moving(name: str) -> Callable[..., None]:
        def move(source: Any, target: Any, **named: Any) -> None:
            _check_closed(source, shared)
            _check_closed(target, set())
            _check_name(target)
            if name == "rename" and os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
            usual[name](source, target, **named)

        return move

    def deleting(name: str) -> Callable[..., None]:
        def delete(path: Any, **named: Any) -> None:
            _check_closed(path, shared)
            usual[name](path, **named)

        return delete

    def making(path: Any, *more: Any, **named: Any) -> None:
        _check_name(path)
        usual["mkdir"](path, *more, **named)

    patch.setattr(os, "open", opened)
    patch.setattr(os, "mkdir", making)
    for name in ("rename", "replace"):
        patch.setattr(os, name, moving(name))
    for name in ("unlink", "remove"):
        patch.setattr(os, name, deleting(name))


class Job:
    """A job of Windows, by a process group."""

    def start(self, words: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True, env=environment
        )

    def end(self, process: subprocess.Popen[bytes], *, force: bool) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_commands_as_windows(patch: pytest.MonkeyPatch) -> None:
    """Let commands as targets run as on Windows: in a job, with a thread for each pipe."""
    system = {name: value for name, value in vars(os).items() if name not in ("waitid", "killpg", "set_blocking")}
    patch.setattr("evalstone.targets.command.os", SimpleNamespace(**{**system, "name": "nt"}))
    patch.setattr("evalstone._core.windows.Job", Job)


def _check_closed(path: Any, shared: set[int]) -> None:
    if not os.path.lexists(path):
        return
    whole = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))  # noqa: PTH118, PTH119, PTH120
    for each in OPEN_FILES.iterdir():
        try:
            is_it = str(each.readlink()) == whole
        except OSError:  # it was of the list itself
            continue
        if is_it and int(each.name) not in shared:
            raise PermissionError(errno.EACCES, "The process cannot access the file because it is in use", str(path))


def _check_name(path: Any) -> None:
    if _REFUSED.fullmatch(Path(os.fsdecode(path)).name):
        raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", str(path))

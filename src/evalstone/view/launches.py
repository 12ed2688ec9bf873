"""Experiments that pages start: the command in a process of its own, and what is known of it in files.

Each file of an experiment has a folder beside the ledger, in which

    lock        is locked by the process as long as it lives, so that there is one at a time, whoever starts it
    start.json  says what was started, and when
    process     has the ID of the process, and the machine that the ID is of
    stop        is there once the process was asked to end
    end         has the exit code. Without it, a process that is gone was killed
    output      is what the command printed

So any viewer finds what another one started, and the process needs none of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from evalstone._core.display import visible
from evalstone._core.files import lock, make_folder, private
from evalstone._core.json import content_hash
from evalstone._core.machine import machine
from evalstone.errors import EvalstoneError, StorageError

LOCK, START, PROCESS, STOP, END, OUTPUT = "lock", "start.json", "process", "stop", "end", "output"
STARTER = "evalstone.cli.started"
"""The module that runs the command, and says how it ended."""
TAIL, MOST_LINES = 1 << 14, 60
"""The most bytes and lines of the output that are shown."""
BEGINNING = 5.0
"""Seconds in which a process says its ID."""
_PATIENCE = 0.25
LaunchState: TypeAlias = Literal["running", "stopping", "ended", "killed"]


@dataclass(frozen=True)
class Launch:
    """The latest start of an experiment's file."""

    key: str
    """The name of its folder."""
    file: str
    """The absolute path of the file."""
    experiment: str
    command: str
    started: str
    """When, in UTC; it tells starts apart."""
    replaced: str
    """The run of the last cell, if all cells were complete before, so that it starts over; "" otherwise."""
    state: LaunchState
    code: int | None = None
    """The exit code of a process that has ended, and wasn't killed."""

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.state in ("running", "stopping")


class Launches:
    """Starts and stops experiments.

    Args:
        folder: The folder of what is known of them.
        cwd: The folder in which commands run.
    """

    def __init__(self, folder: Path, cwd: Path) -> None:
        self.folder, self.cwd = folder.absolute(), cwd.absolute()
        self._lock = threading.Lock()

    def all(self) -> list[Launch]:
        """What was started, the latest first."""
        found = [launch for start in self.folder.glob(f"*/{START}") if (launch := self._read(start.parent)) is not None]
        return sorted(found, key=lambda launch: launch.started, reverse=True)

    def of(self, file: str) -> Launch | None:
        """The latest start of a file; None if there was none."""
        return self._read(self._folder(file))

    def start(
        self, file: str, experiment: str, arguments: Sequence[str], *, command: str, seen: str, replaced: str
    ) -> None:
        """Start the command, unless it runs already or was started since.

        Args:
            file: The path of the file, from `cwd`.
            experiment: What it is called.
            arguments: Those of the command.
            command: The command as it is shown.
            seen: When the latest start was that whoever starts it knows of; "" for none.
            replaced: The run of the last cell, if it starts over; "" otherwise.

        Raises:
            StorageError: The folder can't be written, or no process can be started.
        """
        folder = self._folder(file)
        try:
            make_folder(folder)
            with self._lock, open(folder / LOCK, "ab", opener=private) as held:
                locked = _locked(held)
                if locked is None:
                    raise StorageError(f"files in {folder} can't be locked, so two processes could do the same work")
                latest = self._read(folder, is_alive=False)
                if not locked or (latest.started if latest is not None else "") != seen:
                    return
                for name in (PROCESS, STOP, END):
                    (folder / name).unlink(missing_ok=True)
                about = {
                    "file": str(self._absolute(file)),
                    "experiment": experiment,
                    "command": command,
                    "started": datetime.now(UTC).isoformat(),
                    "replaced": replaced,
                }
                _write(folder / START, json.dumps(about))
                self._run(folder, held, arguments)
        except OSError as error:
            raise StorageError(f"the experiment can't be started: {error}") from None

    def _run(self, folder: Path, held: IO[Any], arguments: Sequence[str]) -> None:
        with open(folder / OUTPUT, "wb", opener=private) as output:  # Path.open has no opener
            # The process inherits the lock, and is no part of the session whose terminal may be closed.
            process = subprocess.Popen(  # noqa: S603 - our own module, without a shell
                [sys.executable, "-P", "-m", STARTER, str(folder), str(held.fileno()), *arguments],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[held.fileno()],
                start_new_session=True,
            )
        threading.Thread(target=process.wait, daemon=True).start()

    def stop(self, key: str, started: str, *, again: bool) -> None:
        """Ask a process to end: as Ctrl-C does, or, if it was asked before, as Ctrl-C does again.

        Args:
            key: The folder of the start.
            started: When it was started: another start isn't stopped.
            again: Whether it was asked before. If it was and this is False, nothing happens.

        Raises:
            EvalstoneError: The process can't be asked.
        """
        launch = next((launch for launch in self.all() if launch.key == key), None)
        if launch is None or launch.started != started or not launch.is_alive:
            return
        at = self.folder / key
        process = self._process(at)
        if not again:
            try:
                os.close(os.open(at / STOP, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                return
            except OSError as error:
                raise StorageError(f"{at} can't be written: {error.strerror}") from None
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(process, signal.SIGTERM)

    def output(self, launch: Launch) -> str:
        """The last lines of what a command printed."""
        try:
            with (self.folder / launch.key / OUTPUT).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TAIL))
                lines = file.read(TAIL).decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        cut = size > TAIL or len(lines) > MOST_LINES
        kept = lines[1 if size > TAIL else 0 :][-MOST_LINES:]
        return "\n".join([*(["…"] if cut else []), *(visible(line) for line in kept)]).strip("\n")

    def _process(self, folder: Path) -> int:
        """The ID of a process that runs. Raises EvalstoneError if it isn't known, or is that of another machine."""
        until = time.monotonic() + BEGINNING
        while not (text := _text(folder / PROCESS)) and time.monotonic() < until:
            time.sleep(0.02)  # it has just been started
        number, _, where = text.partition(" ")
        if not number.isdecimal():
            raise EvalstoneError("The process of this experiment isn't known. Load the page again.")
        if where != machine():
            raise EvalstoneError("This experiment runs on another machine, or in another container: stop it there.")
        return int(number)

    def _folder(self, file: str) -> Path:
        return self.folder / content_hash(str(self._absolute(file)))[:24]

    def _absolute(self, file: str) -> Path:
        return (self.cwd / file).resolve()

    def _read(self, folder: Path, *, is_alive: bool | None = None) -> Launch | None:
        """The start in a folder; None if there is none. is_alive: whether the process runs, if that is known."""
        try:
            about: Any = json.loads((folder / START).read_text("utf-8"))
            launch = Launch(
                folder.name,
                str(about["file"]),
                str(about["experiment"]),
                str(about["command"]),
                str(about["started"]),
                str(about["replaced"]),
                "running",
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if is_alive is None:
            is_alive = _is_held(folder / LOCK)
        if is_alive:
            return replace(launch, state="stopping" if (folder / STOP).exists() else "running")
        code = _text(folder / END)
        known = int(code) if code.isdecimal() else None
        return replace(launch, state="killed" if known is None else "ended", code=known)


def _locked(file: IO[Any]) -> bool | None:
    """Lock a file, as `lock` does. Whoever looks whether it is locked holds the lock for a moment."""
    until = time.monotonic() + _PATIENCE
    while (locked := lock(file, wait=False)) is False and time.monotonic() < until:
        time.sleep(0.01)
    return locked


def _is_held(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return lock(opened, wait=False) is False
    except OSError:
        return False


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except OSError:
        return ""


def _write(file: Path, text: str) -> None:
    draft = file.with_suffix(".draft")
    with open(draft, "w", encoding="utf-8", opener=private) as opened:
        opened.write(text)
    draft.replace(file)

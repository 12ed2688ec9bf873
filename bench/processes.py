"""What a command takes, in a process of its own: seconds, processor time, and its own peak of memory.

A process begins with the peak of the one that it was forked from, also after it has begun another program. So commands
are started by a small process, not by a benchmark that holds the data of its last one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_STARTER = """
import json, os, sys, time
to, *command = sys.argv[1:]
os.set_inheritable(int(to), False)
began = time.perf_counter()
_, status, used = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
took = time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
os.write(int(to), json.dumps([*took, os.waitstatus_to_exitcode(status)]).encode())
"""


@dataclass(frozen=True)
class Took:
    """What a process took."""

    seconds: float
    cpu: float
    """Seconds, of the process and of the children that it waited for."""
    megabytes: float
    """The most memory that it had; also that of a child, if this was more."""
    status: int


class Started:
    """A command that runs. output: where it prints to; by default, nowhere."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        output: IO[bytes] | int = subprocess.DEVNULL,
    ) -> None:
        self._told, to = os.pipe()
        starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(to), *command]
        self._process = subprocess.Popen(starter, cwd=cwd, env=env, stdout=output, stderr=output, pass_fds=[to])
        os.close(to)

    def wait(self) -> Took:
        """What it took, once it has ended."""
        with os.fdopen(self._told) as told:
            said = told.read()
        if self._process.wait():
            raise RuntimeError(f"{self._process.args} could not be started")
        return Took(*json.loads(said))


def own_peak() -> float:
    """The most memory that this process had since it began its program, in megabytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))

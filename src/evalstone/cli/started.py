"""A command that pages started: it says which process it is, and how it ended.

    python -P -m evalstone.cli.started FOLDER DESCRIPTOR run experiment.toml

`view/launches.py` has what the folder is for. The descriptor is that of its lock, which ends with the process.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from evalstone._core.files import private
from evalstone._core.machine import machine
from evalstone.cli import main
from evalstone.results.endings import ExitCode


def started() -> None:
    """Run the command in the arguments."""
    folder, held, *arguments = sys.argv[1:]
    # Programs that a target starts may outlive the process, and don't have the lock.
    os.set_inheritable(int(held), False)
    signal.signal(signal.SIGTERM, _interrupted)
    sys.argv[1:] = arguments
    code: Any = ExitCode.INCOMPLETE
    try:
        _write(Path(folder, "process"), f"{os.getpid()} {machine()}")
        main()
    except SystemExit as end:
        code = end.code
        raise
    finally:
        number = code if isinstance(code, int) else ExitCode.OK if code is None else ExitCode.CHECK_FAILED
        _write(Path(folder, "end"), str(int(number)))


def _interrupted(number: int, frame: object) -> None:
    raise SystemExit(ExitCode.INTERRUPTED)


def _write(file: Path, text: str) -> None:
    draft = file.with_suffix(".draft")
    with open(draft, "w", encoding="utf-8", opener=private) as opened:  # Path.open has no opener
        opened.write(text)
    draft.replace(file)


if __name__ == "__main__":
    started()

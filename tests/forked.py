"""Python scripts in processes of their own, which don't each import evalstone anew."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

_CONTEXT = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
_CONTEXT.set_forkserver_preload(
    ["evalstone.api", "evalstone.judge_quality", "evalstone.live", "evalstone.run.execute", "evalstone.testing.fixture"]
)


def script(code: str, folder: Path) -> tuple[int | None, str]:
    """The exit code and the standard error of a script that runs in a folder, where warnings are errors.

    The exit code is negative if it didn't end in a minute.
    """
    said = folder.parent / f"{folder.name}.stderr"
    process = _CONTEXT.Process(target=_run, args=(code, folder, said))
    process.start()
    process.join(timeout=60)
    process.kill()
    process.join()
    return process.exitcode, said.read_text("utf-8")


def _run(code: str, folder: Path, said: Path) -> None:
    with said.open("wb") as file:
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    sys.path[0] = str(folder)
    warnings.simplefilter("error")
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(code, "<script>", "exec"), main.__dict__)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] - processes of multiprocessing leave that out

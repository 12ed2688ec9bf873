"""How far one faithfulness score walks: our files and functions that run, and our frames between `ask` and HTTP.

    python bench/walk.py [-v]

One sample, two judge calls, a model on loopback, a new SQLite ledger. A first evaluation beforehand pays for what
happens once in a process. Comprehensions and lambdas count as a part of the function that they stand in.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import evalstone
from evalstone import Sample, Score, aevaluate

ROOT = f"{Path(evalstone.__file__).parent}{os.sep}"
SERVER = Path(__file__).with_name("model_server.py")


class Walk:
    """The functions of ours that were called."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        self.frames = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return
        self.functions[code.co_filename.removeprefix(ROOT), code.co_qualname.partition(".<locals>.<")[0]] += 1
        if code.co_name == "request":
            self.frames = max(self.frames, _depth(frame))


def _depth(frame: FrameType | None) -> int:
    """How many frames of ours are on the stack."""
    depth = 0
    while frame is not None:
        depth += frame.f_code.co_filename.startswith(ROOT)
        frame = frame.f_back
    return depth


async def evaluated(url: str, output: str, ledger: Path) -> None:
    """Score one answer."""
    sample = Sample(input="When was Ada born?", output=output, context=["Ada was born in 1815.", "Ada died in 1852."])
    judge = {"model": "openai/gpt-4o-mini", "base_url": url, "api_key": "none"}
    run = await aevaluate([sample], ["faithfulness"], judge=judge, ledger=ledger)
    (record,) = run.records
    if not isinstance(record.outcome, Score) or len(record.calls) != 2:
        raise RuntimeError(f"expected one score of two judge calls: {run}")


def main() -> None:
    """Print what was counted."""
    with (
        subprocess.Popen([sys.executable, SERVER, "0", "0", "0", "0"], stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            asyncio.run(evaluated(url, "Ada died in 1852.", Path(folder, "first.db")))
            walk = Walk()
            threading.setprofile(walk)
            sys.setprofile(walk)
            asyncio.run(evaluated(url, "Ada was born in 1815.", Path(folder, "second.db")))
            sys.setprofile(None)
            threading.setprofile(None)
        finally:
            server.kill()
    files = Counter(file for file, _ in walk.functions)
    print(f"{len(files)} files, {len(walk.functions)} functions, {walk.functions.total()} calls")
    print(f"{walk.frames} frames between `ask` and the HTTP client")
    if "-v" in sys.argv:
        for file, functions in files.most_common():
            print(f"{functions:4} {file}: {', '.join(name for one, name in walk.functions if one == file)}")


if __name__ == "__main__":
    main()

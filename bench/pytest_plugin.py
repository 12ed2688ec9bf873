"""What the pytest plugin costs a session that doesn't use it: its import, and a session of pytest with and without it.

python bench/pytest_plugin.py
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 15
ALONE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:cov", "-p", "no:xdist", "-p", "no:anyio")


def import_milliseconds() -> float:
    """The import of the plugin with all that it brings, after pytest's own."""
    code = "import pytest, evalstone.testing.plugin"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    (micros,) = re.findall(r"\| +(\d+) \| +evalstone\.testing\.plugin$", done.stderr, re.MULTILINE)
    return int(micros) / 1000


def session_milliseconds(folder: Path, *options: str) -> float:
    """The CPU time of a session with one test that passes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", *ALONE, *options]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    imports = [import_milliseconds() for _ in range(ROUNDS)]
    print(f"import of the plugin: {min(imports):.1f} ms at best, {statistics.median(imports):.1f} ms in the middle")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text("def test_it(): ...\n", "utf-8")
        pairs = [
            (session_milliseconds(folder), session_milliseconds(folder, "-p", "no:evalstone")) for _ in range(ROUNDS)
        ]
    for title, column in zip(("with it", "without"), zip(*pairs, strict=True), strict=True):
        best, middle = min(column), statistics.median(column)
        print(f"CPU time of a session {title}: {best:.0f} ms at best, {middle:.0f} ms in the middle")
    difference = statistics.median(one - other for one, other in pairs)
    print(f"difference, session by session: {difference:.1f} ms in the middle")


if __name__ == "__main__":
    main()

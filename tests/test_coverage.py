"""The plugin that measures coverage, over a package of two functions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "tools" / "coverage.py"
PACKAGE = """
def larger(a, b):
    if a > b:
        return a
    return b


def sign(a):
    return -1 if a < 0 else 1
"""
HALF = "from evalstone import larger, sign\n\ndef test_larger():\n    assert larger(2, 1) == 2\n"
WHOLE = """
from evalstone import larger, sign

def test_larger():
    assert larger(2, 1) == 2

def test_other():
    assert larger(1, 2) == 2

def test_sign():
    assert [sign(-3), sign(3)] == [-1, 1]
"""


def measured(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    for name, text in {
        "pyproject.toml": '[tool.slipcover]\nfail-under = 95.0\nexclude-also = ["if TYPE_CHECKING:"]\n',
        "src/evalstone/__init__.py": PACKAGE,
        "src/evalstone/unused.py": "SEEN = 1\n",
        "test_it.py": tests,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tools").mkdir()
    shutil.copy(PLUGIN, folder / "tools")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "tools.coverage", *options],
        cwd=folder,
        env={**outside, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-n2",)])
def test_what_all_processes_reach_is_added_up(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, printed = measured(tmp_path, WHOLE, *options)
    assert "100.00% of lines and branches are covered; 95.0% are required" in printed
    assert code == 0, printed


def test_too_little_fails_and_the_lines_and_branches_are_named(tmp_path: Path) -> None:
    code, printed = measured(tmp_path, HALF)
    assert code == 1, printed
    (line,) = [line for line in printed.splitlines() if line.startswith("src/evalstone/__init__.py")]
    assert line.split()[1:] == ["6", "2", "2", "1", "50", "62", "5,", "9"]
    assert "% of lines and branches are covered; 95.0% are required" in printed

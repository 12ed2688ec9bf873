"""Line and branch coverage of evalstone, measured while its tests run:

    python -m pytest -n 3 -p tools.coverage

SlipCover puts probes into code as it is imported, and takes them out again where they have been hit often enough: tests
take some percent longer. With coverage.py, whose trace function is called for every line, they take twice as long.
Processes that tests start aren't measured. What is left out, and how much is required, is in pyproject.toml, under
tool.slipcover.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

slipcover: Any = importlib.import_module("slipcover")  # its types are in parts unknown
config_file: Any = importlib.import_module("slipcover.config")
importer: Any = importlib.import_module("slipcover.importer")

ROOT = Path(__file__).parents[1]
PACKAGE = "evalstone"
_settings: dict[str, Any] = config_file.read_config(ROOT / "pyproject.toml")


class _Finder(MetaPathFinder):
    """Comes before pytest's own finder, which takes the package, as it has a plugin, for one whose asserts it should
    rewrite."""

    def __init__(self) -> None:
        # To take probes out, SlipCover looks at all functions that there are: that pays in the hottest loops alone.
        self.coverage: Any = slipcover.Slipcover(
            branch=True,
            d_miss_threshold=100_000,
            exclude_lines=[*slipcover.slipcover.DEFAULT_EXCLUDE, *_settings["exclude-also"]],
        )

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = importer.SlipcoverLoader(self.coverage, spec.loader, spec.origin)
        return spec


_finder = _Finder()
_worker = os.environ.get("PYTEST_XDIST_WORKER")
_measured: list[Any] = []
"""What each worker of pytest-xdist has measured."""
_TOTAL = pytest.StashKey[Any]()
"""What they have covered together."""


def pytest_configure(config: pytest.Config) -> None:
    """Import all modules, in one process: a module that no test imports counts as not covered."""
    if _worker == "gw0" or not (_worker or config.getoption("numprocesses", None)):
        for file in sorted((ROOT / "src").rglob("*.py")):
            parts = file.relative_to(ROOT / "src").with_suffix("").parts
            if parts[-1] != "__main__":
                with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
                    importlib.import_module(".".join(part for part in parts if part != "__init__"))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker has measured. One that has crashed leaves nothing."""
    _measured.extend(json.loads(told) for told in [getattr(node, "workeroutput", {}).get(PACKAGE)] if told)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what this worker has measured, or fail where the processes together have covered too little."""
    measured: Any = _finder.coverage.get_coverage()
    if _worker is not None:
        session.config.workeroutput[PACKAGE] = json.dumps(measured)  # type: ignore[attr-defined]
        return
    whole = session.config.stash[_TOTAL] = total([*_measured, measured])
    if whole["summary"]["percent_covered"] < _settings["fail-under"] and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Print the lines and branches that no test reached."""
    whole = config.stash[_TOTAL]
    slipcover.print_coverage(whole, outfile=sys.stdout, skip_covered=True)
    percent, least = whole["summary"]["percent_covered"], _settings["fail-under"]
    print(f"{percent:.2f}% of lines and branches are covered; {least}% are required")


def total(measured: Sequence[Any]) -> Any:
    """What processes have covered together. The first of them becomes it."""
    whole, *others = measured
    for each in others:
        slipcover.merge_coverage(whole, each)
    return whole


if PACKAGE in sys.modules:
    raise RuntimeError(f"{PACKAGE} is imported before what measures it: load this plugin by -p tools.coverage")
sys.meta_path.insert(0, _finder)

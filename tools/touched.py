"""The tests for what has changed, for `make quick`: uncommitted changes, and those of a branch since main.

src/evalstone/ledger/base.py    tests/ledger, and the files of other folders that import it, unless these are many
src/evalstone/errors.py         tests/test_errors.py
tests/run/test_budget.py        tests/run
docs/gates.md                   tests/test_docs.py, tests/test_doc_examples.py, tests/test_doc_messages.py
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = PurePosixPath("src/evalstone"), PurePosixPath("tests")
OF_PAGES = ("tests/test_docs.py", "tests/test_doc_examples.py", "tests/test_doc_messages.py")
OF_HELPERS = "tests/models"
"""The tests for servers and stand-ins that tests of many folders use."""


MOST_IMPORTERS = 10
"""What more files with tests than these import, all tests depend on: they take longer than a minute."""


def changed_files() -> list[str]:
    """The files with changes. A clone of another branch has main as origin/main. Raises CalledProcessError outside of a
    git repository."""
    known = _git("rev-parse", "--verify", "--quiet", "main", otherwise="origin/main").strip()
    base = _git("merge-base", "HEAD", known, otherwise="HEAD").strip()
    return f"{_git('diff', '--name-only', base)}{_git('ls-files', '--others', '--exclude-standard')}".splitlines()


def _git(*arguments: str, otherwise: str = "") -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=not otherwise)
    return otherwise if done.returncode else done.stdout


def tests_of(files: Iterable[str]) -> list[str]:
    """The folders and files with the tests for these files, each once."""
    found = dict.fromkeys(test for file in files for test in _tests(PurePosixPath(file)))
    return [test for test in found if (ROOT / test).exists()]


def _tests(file: PurePosixPath) -> Iterator[str]:
    if file.suffix == ".md":
        yield from OF_PAGES
    elif file.suffix != ".py":
        return
    elif file.is_relative_to(PACKAGE):
        folder, *below = file.relative_to(PACKAGE).parts
        own = str(TESTS / folder) if below else f"tests/test_{file.stem}.py"
        yield own
        others = [test for test in importers()[_module(file)] if not test.startswith(f"{own}/")]
        yield from others if len(others) <= MOST_IMPORTERS else ()
    elif file.is_relative_to(TESTS):
        above = file.parent != TESTS
        yield str(file.parent) if above else str(file) if file.name.startswith("test_") else OF_HELPERS
    elif file.parts[0] == "tools":
        yield f"tests/test_{file.stem}.py"


def _module(file: PurePosixPath) -> str:
    """The module in a file of the package."""
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def importers() -> Mapping[str, list[str]]:
    """The files with tests that import each module themselves. What a test reaches through other modules is tested by
    the folders of these."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / TESTS).rglob("test_*.py")):
        names: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        for name in names:
            found[name].append(file.relative_to(ROOT).as_posix())
    return found


if __name__ == "__main__":
    sys.stdout.write(" ".join(tests_of(changed_files())))

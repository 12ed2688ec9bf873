"""What the tests of all packages share."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstone.models.catalog import info_of, split_model

settings.register_profile("shared", parent=settings.default, deadline=None)
settings.load_profile("shared")  # on a busy machine, a single case may take long
settings.register_profile("quick", parent=settings.get_profile("shared"), max_examples=20)


@pytest.fixture(autouse=True, scope="session")
def plain_terminal() -> Generator[None]:
    """What is printed doesn't depend on where the tests run: colors, widths, options, and pytest's longer summary in
    CI."""
    environment = "BUILD_NUMBER CI COLUMNS FORCE_COLOR LINES NO_COLOR PY_COLORS PYTEST_ADDOPTS"
    with pytest.MonkeyPatch.context() as patch:
        for variable in environment.split():
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder of installed packages: first on the path, without its modules after the test. See `tests.packages`."""
    folder, before = tmp_path / "site", {*sys.modules}
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    yield folder
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
            del sys.modules[name]
    for cached in (info_of, split_model):
        cached.cache_clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let other Pythons and other dependencies be tried in a fraction of the time."""
    parser.addoption("--cases", type=int, metavar="N", help="run the first N cases of each test alone")


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start: where the tests run in the background, it is ignored, and
    processes inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collection, which would find next to nothing."""
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is not None and not sys.dont_write_bytecode:
        _compile_a_share(session, worker)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def _compile_a_share(session: pytest.Session, worker: dict[str, Any]) -> None:
    """Compile a share of the code, before each worker compiles all of it."""
    root = session.config.invocation_params.dir
    tests = (file for place in session.config.args for file in (root / place).rglob("*.py"))
    files = {file for file in tests if file.name == "conftest.py" or file.name.startswith("test_")}
    if not session.config.pluginmanager.hasplugin("tools.coverage"):
        files |= {*(root / "src").rglob("*.py")}  # evalstone is a plugin of pytest
    number, count = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
    for file in sorted(files, key=lambda file: (-file.stat().st_size, file))[number::count]:
        _compile(file, session.config)


def _compile(file: Path, config: pytest.Config) -> None:
    folder = rewrite.get_cache_dir(file)
    compiled = folder / f"{file.stem}{rewrite.PYC_TAIL}"
    if compiled.exists():
        return
    with contextlib.suppress(SyntaxError):  # where it is imported, it is told
        source, code = rewrite._rewrite_test(file, config)  # pyright: ignore[reportPrivateUsage]
        folder.mkdir(exist_ok=True)
        state = config.stash[rewrite.assertstate_key]
        rewrite._write_pyc(state, code, source, compiled)  # pyright: ignore[reportPrivateUsage]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the tests themselves out of garbage collection, which would stop all threads for half a second at a time."""
    _first_case()
    gc.freeze()


@settings(max_examples=1, database=None)
@given(st.none())
def _first_case(_: None) -> None:
    """Have Hypothesis register its random numbers: it asks the garbage collector who holds them, which knows nothing of
    what is frozen."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that `--cases` says."""
    most: int | None = config.getoption("--cases")
    if most is None:
        return
    cases: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        (kept if cases[test] <= most else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept

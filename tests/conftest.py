"""What the tests of all packages share."""

from __future__ import annotations

import contextlib
import gc
import importlib
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

from evalstone._core import sync
from evalstone.models.catalog import info_of, split_model

settings.register_profile("shared", parent=settings.default, deadline=None)
settings.load_profile("shared")  # on a busy machine, a single case may take long
settings.register_profile("quick", parent=settings.get_profile("shared"), max_examples=20)

TRACED_CASES = 5
_untraced: set[str] = set()


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


@contextlib.contextmanager
def _no_trace() -> Generator[None]:
    """Within the block, coverage traces nothing."""
    traced, traced_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        sys.settrace(traced)
        threading.settrace(traced_threads)  # pyright: ignore[reportArgumentType]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect untraced, which takes a third of the time. So that what modules do as they are imported is counted, one
    process imports all of them before that."""
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is not None and not sys.dont_write_bytecode:
        with _no_trace():
            _compile_a_share(session, worker)
    if threading.gettrace() is not None and (worker is None or worker["workerid"] == "gw0"):
        _import_all(session.config.rootpath / "src")
    gc.disable()
    try:
        with _no_trace():
            return (yield)
    finally:
        gc.enable()


def _compile_a_share(session: pytest.Session, worker: dict[str, Any]) -> None:
    """Compile a share of the code, before each worker compiles all of it."""
    root = session.config.invocation_params.dir
    tests = (file for place in session.config.args for file in (root / place).rglob("*.py"))
    files = {file for file in tests if file.name == "conftest.py" or file.name.startswith("test_")}
    files |= {*(root / "src").rglob("*.py")}  # evalstone is a plugin of pytest
    number, count = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
    for file in sorted(files, key=lambda file: (-file.stat().st_size, file))[number::count]:
        _compile(file, session.config)


def _import_all(source: Path) -> None:
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[-1] != "__main__":
            with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
                importlib.import_module(".".join(part for part in parts if part != "__init__"))


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
    """Leave out the cases that `--cases` says, and find the tests to run untraced: with a trace, what they compute
    takes three times as long, and they cover little that others don't. Those are tests of properties with their hundred
    examples, slow tests, tests that say so, and all but the first cases of a test."""
    cases: Counter[str] = Counter()
    most: int = config.getoption("--cases") or len(items)
    left_out: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        if cases[test] > most:
            left_out.append(item)
        of_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        marked = any(item.get_closest_marker(name) for name in ("no_cover", "slow"))
        if of_property or marked or cases[test] > TRACED_CASES:
            _untraced.add(item.nodeid)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        ids = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in ids]


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Run a test untraced, on evalstone's loop too: in a worker of xdist, where pytest-cov starts two collectors, its
    own pause of the one resumes the other."""
    if item.nodeid not in _untraced or threading.gettrace() is None:
        return (yield)
    with _no_trace():
        sync.run(_trace(None))
        return (yield)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """After a test that ran untraced, trace evalstone's loop again."""
    if nodeid in _untraced and threading.gettrace() is not None:
        sync.run(_trace(threading.gettrace()))


async def _trace(function: Any) -> None:
    sys.settrace(function)

"""What the tests of all packages share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Run a test marked `no_cover` untraced: in a worker of xdist, where pytest-cov starts two collectors, its own
    pause of the one resumes the other."""
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    traced, traced_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)  # pyright: ignore[reportArgumentType]
    try:
        return (yield)
    finally:
        sys.settrace(traced)
        threading.settrace(traced_threads)  # pyright: ignore[reportArgumentType]

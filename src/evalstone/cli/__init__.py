"""The command line."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

TRACEBACK = "EVALSTONE_TRACEBACK"
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""The signals that end the program: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed."""


@contextmanager
def handled(handler: Callable[[int, Any], Any]) -> Generator[None]:
    """Within the block, call a function on these signals, except for those that the program was started with as
    ignored, as by `nohup`."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    caught = [number for number, known in before.items() if known not in (signal.SIG_IGN, None)]
    try:
        for number in caught:
            signal.signal(number, handler)
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])


def main() -> None:
    """Run the command line. A signal ends it with exit code 130, even during its imports.

    An unexpected error is one line, or a traceback with EVALSTONE_TRACEBACK=1, and exit code 3.
    """
    # Imports, rows and records create many objects but hardly any cycles: collecting less often saves a tenth.
    gc.set_threshold(20_000)
    # The process is about to end: looking for garbage among all that was imported takes as long as a fifth of a short
    # command.
    atexit.register(gc.freeze)
    try:
        with handled(signal.default_int_handler):
            from evalstone.cli import app

            app.main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - Python's own exit code means that a threshold was not met
        if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
            _report(error)
        sys.exit(3)


def _report(error: Exception) -> None:
    from evalstone._core.display import safe, visible
    from evalstone._core.redaction import masked
    from evalstone.errors import described

    reason = safe(masked(described(error)), 2000)
    message = f"evalstone: unexpected error: {reason}; {TRACEBACK}=1 shows where it comes from\n"
    try:
        sys.stderr.write(visible(masked(traceback.format_exc())) if os.environ.get(TRACEBACK) else message)
    except OSError:  # stderr is closed, and there is nowhere else to report it
        return

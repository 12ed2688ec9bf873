"""The command line."""

from __future__ import annotations

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
"""Those that end the program: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed."""


@contextmanager
def handled(handler: Callable[[int, Any], Any]) -> Generator[None]:
    """Within the block, a function is called for these signals, unless the caller of the program ignores them, as
    `nohup` does."""
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
    """Run the command line. A signal ends it with exit code 130, also while it is being imported.

    An error that nobody foresaw is one line, and exit code 3; with EVALSTONE_TRACEBACK=1 it is a traceback.
    """
    # Imports, rows and records make many objects and no cycles to speak of: looking for those less often saves a tenth.
    gc.set_threshold(20_000)
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
    except OSError:  # nobody reads it, and there is nowhere else to say so
        return

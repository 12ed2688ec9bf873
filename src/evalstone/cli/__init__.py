"""The command line."""

from __future__ import annotations

import os
import signal
import sys
import traceback

from evalstone.cli.signals import handled

TRACEBACK = "EVALSTONE_TRACEBACK"


def main() -> None:
    """Run the command line. A signal ends it with exit code 130, also while it is being imported.

    An error that nobody foresaw is one line, and exit code 3; with EVALSTONE_TRACEBACK=1 it is a traceback.
    """
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
    told = f"evalstone: unexpected error: {reason}; {TRACEBACK}=1 shows where it comes from\n"
    try:
        sys.stderr.write(visible(masked(traceback.format_exc())) if os.environ.get(TRACEBACK) else told)
    except OSError:  # nobody reads it, and there is nowhere else to say so
        return

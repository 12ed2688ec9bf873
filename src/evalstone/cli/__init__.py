"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it with exit code 130, also while it is being imported."""
    try:
        from evalstone.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(130)

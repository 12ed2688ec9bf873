"""The terminal that commands print to."""

from __future__ import annotations

import sys

from rich.console import Console


def console() -> Console:
    """Standard output; a width of its own where there is no terminal to ask."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)

"""A view as plain text, as `print` shows it: what a terminal shows, without colors."""

from __future__ import annotations

import io

from rich.console import Console

from evalstone._core.display import UNLIMITED, visible
from evalstone.report.terminal import show
from evalstone.report.view import View


def text(view: View, width: int = UNLIMITED) -> str:
    """The view as lines of text, without trailing spaces."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, highlight=False, markup=False, emoji=False)
    show(view, console)
    return visible("\n".join(line.rstrip() for line in file.getvalue().split("\n")).rstrip("\n"))

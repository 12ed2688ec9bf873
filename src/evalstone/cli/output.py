"""Where results go: files, standard output, or the terminal."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from evalstone.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evalstone.report.view import View

STDOUT = "-"
JUDGE_WIDTH = 60
PAGE_TOP = 10
"""How many of the worst samples an HTML page shows at least."""
_SETTINGS = re.compile(r"\((?:https?://|[a-z_]+=)[^()]*\)")

Parts = Callable[[], Iterable[str]]


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or standard error, 120 columns wide when that is not a terminal."""
    import rich.console

    class Screen(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise

    stream = sys.stderr if stderr else sys.stdout
    return Screen(stderr=stderr, highlight=False, markup=False, width=None if stream.isatty() else 120)


def table(*columns: str, numbers: Iterable[str] = (), fold: bool = False) -> Table:
    """An empty table without borders. numbers: the columns to align right. fold: wrap long cells anywhere."""
    import rich.table

    made = rich.table.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        made.add_column(
            column, justify="right" if column in numbers else "left", overflow="fold" if fold else "ellipsis"
        )
    return made


def to_stderr(text: str) -> None:
    """Print one line on standard error, with control characters made visible."""
    from evalstone.report.text import safe

    sys.stderr.write(f"{safe(text, 2000)}\n")


def json_parts(value: Any) -> Parts:
    """A value as one line of JSON, for `deliver`."""
    from evalstone.datasets.writing import json_line

    return lambda: [json_line(value) + "\n"]


def deliver(outputs: Mapping[str, tuple[str | None, Parts]], *, announce: bool = True) -> bool:
    """Write results in the requested formats: files first, then standard output.

    Args:
        outputs: By format, the file it goes to ("-" is standard output, None means not requested) and what makes it.
        announce: Whether to print the names of written files.

    Returns:
        Whether anything was requested; if not, the caller shows the result on the terminal.

    Raises:
        ConfigError: If several formats are to go to standard output, or a file can't be written.
    """
    from evalstone.datasets.writing import write_text

    requested = [(name, file, parts) for name, (file, parts) in outputs.items() if file is not None]
    to_stdout = [(name, parts) for name, file, parts in requested if file == STDOUT]
    if len(to_stdout) > 1:
        raise ConfigError(f"only one of --{' and --'.join(name for name, _ in to_stdout)} can go to standard output")
    files = [(file, parts) for _, file, parts in requested if file != STDOUT]
    for file, parts in files:
        write_text(file, parts())
    for _, parts in to_stdout:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        sys.stdout.writelines(parts())
    if announce and not to_stdout:
        for file, _ in files:
            sys.stdout.write(f"Written: {file}\n")
    return bool(requested)


def html_page(view: View) -> Iterable[str]:
    """A view as an HTML page, in parts."""
    from evalstone.report.html import page  # imports jinja2

    return page(view)


def present(
    view: View,
    places: Mapping[str, str | None],
    data: Any,
    *,
    page_view: View | None = None,
    others: Mapping[str, Parts] | None = None,
    always_show: bool = False,
) -> None:
    """Write a result in the requested formats, or show it on the terminal if none is requested.

    Args:
        view: What to show.
        places: By format, the file it goes to; "-" is standard output, None means not requested.
        data: The result as plain data, for JSON.
        page_view: What the HTML page shows, if more than the terminal.
        others: What makes the formats that are not laid out from the view.
        always_show: Whether to show it even if files are written, unless one goes to standard output.
    """

    def markdown() -> Iterable[str]:
        from evalstone.report.markdown import lines

        return (f"{line}\n" for line in lines(view))

    parts: dict[str, Parts] = {
        "html": lambda: html_page(page_view or view),
        "markdown": markdown,
        "json": json_parts(data),
        **(others or {}),
    }
    delivered = deliver({name: (place, parts[name]) for name, place in places.items()})
    if not delivered or (always_show and STDOUT not in places.values()):
        from evalstone.report.terminal import show

        show(view, console())


def as_stdout(flag: bool) -> str | None:
    """The file of an output that is a flag, as `--json`."""
    return STDOUT if flag else None


def short_judge(identity: str) -> str:
    """A judge's identity without endpoints and settings, cut to a column's width."""
    from evalstone.report.text import safe

    return safe(_SETTINGS.sub("", identity), JUDGE_WIDTH)


def metadata_text(metadata: Any, *keys: str) -> str:
    """A text within a run's metadata, with control characters made visible; empty if it is missing."""
    from evalstone.report.text import safe

    for key in keys:
        metadata = cast("Mapping[str, Any]", metadata).get(key, "") if isinstance(metadata, Mapping) else ""
    return safe(str(metadata), 80)

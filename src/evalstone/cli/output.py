"""Output of results: to files, standard output, or the terminal."""

from __future__ import annotations

import codecs
import contextlib
import io
import logging
import os
import re
import stat
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from evalstone._core import phases
from evalstone._core.display import UNLIMITED, quoted, safe, visible
from evalstone._core.files import resolved
from evalstone._core.garbage import rare_collections
from evalstone._core.guards import is_list, is_mapping
from evalstone._core.redaction import masked, redacted
from evalstone.errors import ConfigError, DataError, EvalstoneWarning

if TYPE_CHECKING:
    from rich.console import Console

    from evalstone.cli.options import Outputs
    from evalstone.report.terminal import Grid
    from evalstone.report.view import View
    from evalstone.results.calibration import Calibration
    from evalstone.results.run import Run

STDOUT = "-"
_READABLE = "evalstone.readable"
_LOOKALIKES = {
    **dict.fromkeys("▲↑", "^"), **dict.fromkeys("▼↓", "v"), "→": ">", "←": "<", "×": "x", "±": "+/-", "≥": ">=",
    **dict.fromkeys("─━–—−·", "-"), **dict.fromkeys("│┃", "|"), **dict.fromkeys("├└┌┐┘┼", "+"), "≤": "<=",
    **dict.fromkeys("‘’", "'"), **dict.fromkeys("“”", '"'), "•": "*", "…": "~", "✓": "+", "✗": "x",
}  # fmt: skip
"""What is printed instead of a character that the encoding of standard output lacks; `?` for any other."""

_BEFORE_PATH = re.compile(r"[=:](?://)?/?")
"""What a path follows in `SCORER=FILE`, `RUN:SCORER=FILE`, `replay:FILE` and `sqlite:///FILE`."""

Output: TypeAlias = tuple[str | None, Callable[[], Iterable[str]]]
"""The file of an output ("-" is standard output, None means not requested), and a function that returns its text."""


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or standard error. Text is literal, with control characters made visible and
    secrets written as `***`.

    Piped output has the width in COLUMNS, or no limit.
    """
    import rich.console
    from rich.text import Text

    class Screen(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise

        def render(self, renderable: Any, options: Any = None) -> Iterable[Any]:
            # Redact before the layout, which may cut the text.
            if isinstance(renderable, str):
                renderable = visible(redacted(renderable))
            elif isinstance(renderable, Text) and (clean := visible(redacted(renderable.plain))) != renderable.plain:
                renderable = Text(clean, renderable.style, justify=renderable.justify, overflow=renderable.overflow)
            return super().render(renderable, options)

    columns = os.environ.get("COLUMNS", "")
    piped = int(columns) if columns.isdecimal() and int(columns) else UNLIMITED
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else piped
    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def table(*columns: str, numbers: Iterable[str] = ()) -> Grid:
    """An empty table without borders. numbers: the columns to align right."""
    from evalstone.report.terminal import Grid

    return Grid(*columns, numbers=numbers)


def to_stderr(text: str) -> None:
    """Print one line on standard error, with control characters made visible."""
    phases.clear()
    with contextlib.suppress(OSError):  # stderr is closed, and there is nowhere else to report it
        sys.stderr.write(f"{safe(text, 2000)}\n")


def say(text: str) -> None:
    """Print one line on standard output. It isn't wrapped, so that what it names can be copied."""
    console().print(safe(text, 2000), soft_wrap=True)


def say_next(commands: Mapping[str, str]) -> None:
    """Print the commands that may come next, each with its purpose; "" for none.

    Their spaces are kept, because a name may have several in a row.
    """
    screen = console()
    screen.print("\nNext:", style="bold")
    for command, purpose in commands.items():
        screen.print(f"{command} # {purpose}" if purpose else command, soft_wrap=True)


@contextlib.contextmanager
def prints_to_stderr() -> Generator[None]:
    """Send what the user's code prints to standard error, since standard output is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def replace_unprintable() -> None:
    """Print lookalikes of characters that the encoding of standard output or standard error lacks, such as those of
    pipes on Windows, instead of failing after the work is done."""
    codecs.register_error(_READABLE, _readable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_READABLE)


def _readable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LOOKALIKES.get(char, "?") for char in error.object[error.start : error.end]), error.end


def guard() -> None:
    """Redact what Python itself prints on standard error: uncaught exceptions, warnings, and log messages."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(visible(masked("".join(traceback.format_exception(kind, error, trace)))))

    as_text: Any = warnings.formatwarning

    def warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> str:
        own = issubclass(category, EvalstoneWarning)
        return f"{safe(str(message), 2000)}\n" if own else visible(masked(as_text(message, category, *place, **more)))

    class Clean(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return visible(masked(super().format(record)))

    sys.excepthook = show
    threading.excepthook = lambda ended: show(ended.exc_type, ended.exc_value or ended.exc_type(), ended.exc_traceback)
    warnings.formatwarning = warning
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Clean())


def json_lines(as_json: bool, *values: Any) -> dict[str, Output]:
    """Values as JSON lines on standard output, if requested; an output for `deliver`."""
    from evalstone.datasets.writing import json_line

    return {"json": (STDOUT if as_json else None, lambda: [json_line(value) + "\n" for value in values])}


def formats(
    view: View, outputs: Outputs, *values: Any, csv: Callable[[], Iterable[str]] | None = None
) -> dict[str, Output]:
    """A result in the requested formats; outputs for `deliver`.

    Args:
        view: What it shows.
        outputs: Which formats are requested.
        values: Its JSON data, one value per line.
        csv: Its CSV; by default the tables of the view.
    """

    def html_page() -> Iterable[str]:
        from evalstone.report.html import page  # imports jinja2

        return page(view)

    def markdown_lines() -> Iterable[str]:
        from evalstone.report.markdown import lines

        return (f"{line}\n" for line in lines(view))

    def csv_lines() -> Iterable[str]:
        from evalstone.report.csv import lines

        return lines(view)

    documents = {
        "html": (outputs.html, html_page),
        "markdown": (outputs.markdown, markdown_lines),
        "csv": (outputs.csv, csv or csv_lines),
    }
    return documents | json_lines(outputs.as_json, *values)


def check_outputs(files: Mapping[str, str | None], inputs: Iterable[object] = ()) -> None:
    """Check that the output files, by format, can be written, before any judge call is paid for.

    inputs: What the command reads, which it must not overwrite (see `check_inputs_stay`).

    Raises:
        ConfigError: Several formats go to standard output or to the same file, a file can't be written, or it is one
            of the inputs.
    """
    from evalstone._core.atomic_files import check_writable

    requested = {name: file for name, file in files.items() if file is not None}
    _to_stdout(requested)
    for file in requested.values():
        if file != STDOUT:
            check_writable(file)
    _check_distinct(requested)
    check_inputs_stay({f"--{name}": file for name, file in requested.items()}, inputs)


def check_inputs_stay(outputs: Mapping[str, str], inputs: Iterable[object]) -> None:
    """Check that no output is a file that the command reads: an input itself, or a file of the results folder that it
    names.

    Args:
        outputs: The files that are written, by the options that name them.
        inputs: What the command reads, as on the command line or in a file: files, folders, `SCORER=FILE`,
            `replay:FILE`, URLs of ledgers, lists and mappings of these, or None.

    Raises:
        ConfigError: An output would overwrite an input.
    """
    from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY

    written = {option: resolved(file) for option, file in outputs.items() if file != STDOUT}
    if not written:
        return
    for text in _texts([*inputs]):
        for place in filter(None, (text, *(text[found.end() :] for found in _BEFORE_PATH.finditer(text)))):
            path = Path(place)
            read = {resolved(each) for each in (path, *(path / name for name in (RECORDS, SUMMARY, SAMPLES)))}
            for option, file in written.items():
                if file in read:
                    raise ConfigError(
                        f"{option} would overwrite {quoted(outputs[option])}, which is read; "
                        f"use another file for {option}"
                    )


def _texts(values: object) -> Iterable[str]:
    """The texts in lists and mappings."""
    if isinstance(values, str):
        yield values
    elif is_mapping(values):
        yield from _texts([*values.values()])
    elif is_list(values):
        for value in values:
            yield from _texts(value)


def _check_distinct(files: Mapping[str, str]) -> None:
    """Raise ConfigError if two formats go to the same file."""
    names: dict[Path, str] = {}
    for name, file in files.items():
        path = resolved(file)
        # Devices such as /dev/null take any number of them.
        if file != STDOUT and (path.is_file() or not path.exists()) and (other := names.setdefault(path, name)) != name:
            raise ConfigError(f"--{other} and --{name} can't be written to the same file, {quoted(file)}")


def _to_stdout(files: Mapping[str, str]) -> list[str]:
    """The formats that go to standard output. Raises ConfigError for more than one."""
    formats = [name for name, file in files.items() if file == STDOUT]
    if len(formats) > 1:
        raise ConfigError(f"only one of --{' and --'.join(formats)} can go to standard output")
    return formats


def deliver(outputs: Mapping[str, Output]) -> bool:
    """Write results in the requested formats: files first, then standard output.

    Returns:
        Whether a format went to standard output; if not, the caller shows the result in the terminal.

    Raises:
        ConfigError: Several formats go to standard output or to the same file, or a file can't be written.
    """
    from evalstone.datasets.writing import write_text

    requested = {name: (file, parts) for name, (file, parts) in outputs.items() if file is not None}
    files = {name: file for name, (file, _) in requested.items()}
    to_stdout = _to_stdout(files)
    _check_distinct(files)
    for file, parts in requested.values():
        if file != STDOUT:
            with phases.phase(f"writing {file}"), rare_collections():
                write_text(file, parts())
    for name in to_stdout:
        phases.clear()
        sys.stdout.reconfigure(encoding="utf-8", errors=_READABLE, newline="")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        # In a terminal or a pager, the phase would be in the middle of the result.
        with phases.phase(f"writing {name}") if _is_file(sys.stdout) else contextlib.nullcontext():
            sys.stdout.writelines(map(redacted, requested[name][1]()))
    return bool(to_stdout)


def _is_file(stream: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # it is closed, or there is nothing below it
        return False


def present(view: View, outputs: Mapping[str, Output]) -> bool:
    """Write a result in the requested formats, and show it in the terminal with the names of the files, unless a format
    goes to standard output. Returns whether it was shown."""
    if deliver(outputs):
        return False
    from evalstone.report.terminal import show

    screen = console()
    show(view, screen)
    if files := written(outputs):
        screen.print(f"\nSaved: {files}", soft_wrap=True)
    return True


def written(outputs: Mapping[str, Output]) -> str:
    """The names of the files of outputs, other than standard output."""
    return safe(", ".join(file for file, _ in outputs.values() if file not in (None, STDOUT)), 2000)


def calibrations_of(run: Run, ledger: str) -> dict[str, tuple[Calibration, ...]]:
    """The calibrations of a run's judges, by scorer signature. Empty without a ledger, and if a calibration is damaged,
    which is reported on standard error."""
    from evalstone.ledger.base import is_there
    from evalstone.results.saved_calibrations import calibrations_of as stored

    try:
        return stored(run, ledger) if is_there(ledger) else {}
    except DataError as error:
        to_stderr(f"{error}. Delete it, and calibrate again.")
        return {}

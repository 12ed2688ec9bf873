"""The progress of a run, on stderr: a bar in a terminal, and a line every few seconds in a CI log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from evalstone.types import Failed, Record

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress_bar(total: int) -> Generator[Callable[[Record], None]]:
    """Show the progress toward `total` results. Yields the function to call for each record."""
    if sys.stderr.isatty():
        with _bar(total) as advance:
            yield advance
    else:
        yield _lines(total)


@contextmanager
def _bar(total: int) -> Generator[Callable[[Record], None]]:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeRemainingColumn(),
    )
    screen: Any = _Terminal()
    with Progress(*columns, console=Console(file=screen), transient=True) as progress:
        task = progress.add_task("scoring", total=total, failed="")
        failed = 0

        def advance(record: Record) -> None:
            nonlocal failed
            failed += isinstance(record.outcome, Failed)
            progress.update(task, advance=1, failed=f"{failed} failed" if failed else "")

        yield advance


class _Terminal:
    """Standard error. If it is closed, the run goes on."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def write(self, text: str) -> None:
        """Write, if possible."""
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        """Flush, if possible."""
        with suppress(OSError):
            sys.stderr.flush()


def _lines(total: int) -> Callable[[Record], None]:
    done = failed = 0
    started = printed = time.monotonic()

    def advance(record: Record) -> None:
        nonlocal done, failed, printed
        done += 1
        failed += isinstance(record.outcome, Failed)
        if (now := time.monotonic()) - printed >= SECONDS_BETWEEN_LINES:
            printed = now
            failures = f", {failed:,} failed" if failed else ""
            percent = 100 * done // total
            with suppress(OSError):  # a closed log doesn't end the run
                sys.stderr.write(f"{done:,} of {total:,} results ({percent}%){failures}, {now - started:.0f} s\n")
                sys.stderr.flush()

    return advance

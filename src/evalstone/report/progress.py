"""The progress bar of a run, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evalstone.types import Failed, Record


@contextmanager
def progress_bar(total: int) -> Generator[Callable[[Record], None]]:
    """A bar of `total` outcomes, and the function that moves it by one record."""
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[met]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("judging", total=total, met="")
        failed = 0

        def advance(record: Record) -> None:
            nonlocal failed
            failed += isinstance(record.outcome, Failed)
            progress.update(task, advance=1, met=f"{failed} failed" if failed else "")

        yield advance

"""The progress of a run, on stderr: a bar in a terminal, and a line every few seconds in a log or a terminal that can't
erase a line.

Other phases that take long, such as reading a file, are a line in a terminal, which is erased at their end.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from evalstone._core import phases
from evalstone._core.display import count, safe
from evalstone.types import Failed, Record

SECONDS_BETWEEN_LINES = 10.0
SILENCE = 0.5
"""The seconds without output after which a phase is shown."""
_REFRESH = 0.25
"""The seconds between two states of what is shown."""
_ERASE = "\r\x1b[K"
_USUAL_WIDTH = 80


@contextmanager
def progress_bar(total: int) -> Generator[Callable[[Record], None]]:
    """Show the progress toward `total` results. Yields the function to call for each record."""
    if _is_screen():
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
    with _hidden(), Progress(*columns, console=Console(file=screen), transient=True) as progress:
        task = progress.add_task("scoring", total=total, failed="")
        failed = 0

        def advance(record: Record) -> None:
            nonlocal failed
            failed += isinstance(record.outcome, Failed)
            progress.update(task, advance=1, failed=f"{failed} failed" if failed else "")

        yield advance


class PhaseLine:
    """A line that shows the phase that began last, once the terminal has been silent for half a second.

    clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.hidden = 0
        """In how many blocks that show something else the process is."""
        self._clock, self._screen = clock, _Terminal()
        self._lock = threading.Lock()
        self._phases: list[tuple[phases.Phase, float]] = []
        """The phases in progress, with the times when they began."""
        self._shown = False
        self._silent_since = clock()

    def begin(self, phase: phases.Phase) -> None:
        """A phase has begun."""
        with self._lock:
            self._phases.append((phase, self._clock()))

    def end(self, phase: phases.Phase) -> None:
        """A phase has ended."""
        with self._lock:
            self._phases = [each for each in self._phases if each[0] is not phase]
            if not self._phases:
                self._clear()

    def clear(self) -> None:
        """Remove the line."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._screen.write(_ERASE)
            self._screen.flush()
            self._shown, self._silent_since = False, self._clock()

    def refresh(self) -> None:
        """Show the state of the phase that began last."""
        with self._lock:
            now = self._clock()
            if self.hidden:
                self._silent_since = now
            elif self._phases and (self._shown or now - self._silent_since >= SILENCE):
                phase, since = self._phases[-1]
                self._screen.write(f"{_ERASE}{_cut(_state(phase, now - since), _width() - 1)}")
                self._screen.flush()
                self._shown = True


def _state(phase: phases.Phase, seconds: float) -> str:
    done = f"{phase.done:,} of {count(phase.total, phase.unit)}" if phase.total else count(phase.done, phase.unit)
    return safe(f"{phase.title}: {f'{done}, ' if phase.unit else ''}{seconds:.0f} s", 2000)


def _cut(text: str, width: int) -> str:
    """The beginning of a text that fits into a width. In a terminal, a Chinese character is as wide as two letters."""
    from rich.cells import chop_cells  # noqa: PLC0415 - only a terminal needs rich

    return next(iter(chop_cells(text, width)), "") if width > 1 else ""


def _is_screen() -> bool:
    """Whether standard error is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def _width() -> int:
    """The columns of the terminal of standard error; standard output may be a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    with suppress(OSError, ValueError):  # ValueError: it has no file
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
    return _USUAL_WIDTH


_line: PhaseLine | None = None


@contextmanager
def showing_phases() -> Generator[None]:
    """Within the block, show phases that take long, if standard error is a terminal that can erase a line."""
    global _line
    if _line is not None or not _is_screen():
        yield
        return
    line, ended = PhaseLine(), threading.Event()

    def refresh() -> None:
        while not ended.wait(_REFRESH):
            line.refresh()

    _line, previous = line, phases.watch(line)
    threading.Thread(target=refresh, name="evalstone-phases", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _line = None
        phases.watch(previous)
        line.clear()


@contextmanager
def _hidden() -> Generator[None]:
    """Within the block, a bar is shown instead of phases."""
    line = _line
    if line is None:
        yield
        return
    line.clear()
    line.hidden += 1
    try:
        yield
    finally:
        line.hidden -= 1


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

"""Phases that take long are a line in a terminal, and cost nothing elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import termios
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from evalstone import evaluate, load
from evalstone._core import phases
from evalstone._core.phases import Phase, phase
from evalstone.report import progress
from evalstone.report.progress import PhaseLine, progress_bar, showing_phases
from tests.runs import Given, run_of

ERASE = "\r\x1b[K"


class Terminal:
    """What was written to a terminal."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self._text = capsys, ""

    def text(self) -> str:
        self._text += self._capsys.readouterr().err
        return self._text

    def line(self) -> str:
        """What the terminal shows in its last line."""
        return self.text().rpartition(ERASE)[2]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def line(clock: Clock, terminal: Terminal) -> Generator[PhaseLine]:
    before = phases.watch(line := PhaseLine(clock))
    yield line
    phases.watch(before)


def test_a_phase_is_shown_after_half_a_second_and_erased_at_its_end(
    line: PhaseLine, clock: Clock, terminal: Terminal
) -> None:
    with phase("reading data.jsonl", "row") as reading:
        items = reading.count(range(1500))
        next(items)
        clock.now += 0.4
        line.refresh()
        assert terminal.text() == ""
        clock.now += 0.6
        line.refresh()
        assert terminal.line() == "reading data.jsonl: 1 row, 1 s"
        assert len(list(items)) == 1499
        clock.now += 3
        line.refresh()
        assert terminal.line() == "reading data.jsonl: 1,500 rows, 4 s"
    assert terminal.line() == ""


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (Phase("writing records.jsonl", "record", 2000, 10), "writing records.jsonl: 10 of 2,000 records, 2 s"),
        (Phase("comparing the runs"), "comparing the runs: 2 s"),
    ],
)
def test_a_phase_has_a_total_or_only_a_time(
    shown: Phase, text: str, line: PhaseLine, clock: Clock, terminal: Terminal
) -> None:
    line.begin(shown)
    clock.now += 2
    line.refresh()
    assert terminal.line() == text


def test_short_phases_one_after_another_are_not_silent(line: PhaseLine, clock: Clock, terminal: Terminal) -> None:
    for title in ("first", "second", "third"):
        with phase(title):
            clock.now += 0.3
            line.refresh()
    assert "second" in terminal.text()
    assert "first" not in terminal.text()


def test_of_nested_phases_the_inner_one_is_shown_and_then_the_outer_one_again(
    line: PhaseLine, clock: Clock, terminal: Terminal
) -> None:
    with phase("outer"):
        clock.now += 1
        with phase("inner"):
            clock.now += 2
            line.refresh()
            assert terminal.line() == "inner: 2 s"
        line.refresh()
        assert terminal.line() == "outer: 3 s"


def test_nothing_is_shown_between_phases(line: PhaseLine, clock: Clock, terminal: Terminal) -> None:
    with phase("reading"):
        pass
    clock.now += 5
    line.refresh()
    assert terminal.text() == ""


def test_what_else_is_printed_has_a_line_of_its_own(line: PhaseLine, clock: Clock, terminal: Terminal) -> None:
    with phase("reading"):
        clock.now += 2
        line.refresh()
        phases.clear()
        assert terminal.line() == ""
        line.refresh()
        assert terminal.line() == ""
        clock.now += 1
        line.refresh()
        assert terminal.line() == "reading: 3 s"


def test_a_line_is_no_longer_than_the_terminal_and_has_no_control_characters(
    line: PhaseLine, clock: Clock, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with phase("reading \x1b[31m" + "x" * 50):
        clock.now += 2
        line.refresh()
    shown = terminal.text().split(ERASE)[1]
    assert len(shown) == 19
    assert shown.isprintable()


def test_a_wide_character_takes_two_columns(
    line: PhaseLine, clock: Clock, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "16")
    with phase("reading 数据数据数据.jsonl"):
        clock.now += 2
        line.refresh()
        assert terminal.line() == "reading 数据数"


@pytest.mark.parametrize("columns", ["", "0"])
def test_the_width_is_that_of_the_terminal_even_if_the_result_goes_to_a_file(
    columns: str, line: PhaseLine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 12, 0, 0))
    with os.fdopen(theirs, "w") as stderr, os.fdopen(ours, "rb", buffering=0) as shown:
        monkeypatch.setattr("sys.stderr", stderr)
        line.begin(Phase("reading a long name"))
        clock.now += 2
        line.refresh()
        assert shown.read(1000) == f"{ERASE}reading a l".encode()
        monkeypatch.undo()


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_erase_a_line_shows_what_a_log_does(
    name: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setenv("TERM", name)
    with showing_phases(), progress_bar(1) as advance:
        assert phases.watch(None) is None
        advance(run_of(["0.5"]).records[0])
    assert "1 of 1" in terminal.text()
    assert "\x1b" not in terminal.text()


def test_a_phase_that_an_error_ends_is_erased(line: PhaseLine, clock: Clock, terminal: Terminal) -> None:
    def broken() -> None:
        with phase("reading"):
            clock.now += 2
            line.refresh()
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert terminal.line() == ""


def test_a_file_is_read_in_a_phase(line: PhaseLine, clock: Clock, terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"output": str(number)}) + "\n" for number in range(3)))
    clock.now += 2
    shown: list[str] = []

    def begin(one: Phase) -> None:
        shown.append(one.title)
        PhaseLine.begin(line, one)

    line.begin = begin  # type: ignore[method-assign]
    load(path)
    assert set(shown) == {"reading data.jsonl"}


@pytest.fixture
def refreshed(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released whenever the thread has refreshed the line."""
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_REFRESH", 0.001)
    done, refresh = threading.Semaphore(0), PhaseLine.refresh

    def observed(line: PhaseLine) -> None:
        refresh(line)
        done.release()

    monkeypatch.setattr(PhaseLine, "refresh", observed)
    return done


def wait_for(refreshed: threading.Semaphore) -> None:
    """Return after the line was refreshed at least once from now on."""
    while refreshed.acquire(blocking=False):
        pass
    assert all(refreshed.acquire(timeout=30) for _ in range(2))  # the first one may have begun before


def test_phases_are_shown_by_a_thread_and_no_longer_than_the_block(
    terminal: Terminal, refreshed: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with showing_phases():
        with phase("reading"):
            wait_for(refreshed)
        with showing_phases():  # one line is enough
            pass
    assert "reading" in terminal.text()
    assert terminal.line() == ""
    assert phases.watch(None) is None


def test_a_bar_takes_the_place_of_the_line(
    terminal: Terminal, refreshed: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with showing_phases(), progress_bar(1) as advance:
        with phase("storing"):
            wait_for(refreshed)
        advance(run_of(["0.5"]).records[0])
    assert "storing" not in terminal.text()


@pytest.mark.usefixtures("capsys")
def test_without_a_terminal_nothing_watches() -> None:
    with showing_phases():
        assert phases.watch(None) is None
        rows = [1, 2]
        assert list(Phase("reading").count(rows)) == rows


@pytest.mark.parametrize("shown", [True, False])
def test_an_evaluation_that_shows_its_progress_shows_what_it_reads(
    shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    watchers: list[phases.Watcher | None] = []

    def rows() -> Generator[dict[str, str]]:
        watchers.append(watcher := phases.watch(None))
        phases.watch(watcher)
        yield {"output": "0.5"}

    evaluate(rows(), [Given()], ledger=None, progress=shown)
    assert [watcher is not None for watcher in watchers] == [shown]
    assert phases.watch(None) is None

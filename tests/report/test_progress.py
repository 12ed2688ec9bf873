"""Progress is a bar on a terminal and a line now and then in a log."""

from __future__ import annotations

import os

import pytest

from evalstone.report import progress
from tests.runs import run_of


def test_a_log_gets_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress_bar(40) as advance:
        for record in run_of(["0.5", "fail"] * 20):
            now[0] += 1.0
            advance(record)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "10 of 40 results (25%), 5 failed, 10 s"
    assert len(lines) == 4


def test_a_short_run_writes_nothing_to_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar(1) as advance:
        advance(run_of(["0.5"]).records[0])
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.progress_bar(2) as advance:
        for record in run_of(["0.5", "fail"]):
            advance(record)
    assert "results" not in capsys.readouterr().err


def test_a_log_whose_reader_is_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("sys.stderr", closed := os.fdopen(writing, "w", buffering=1))
    with progress.progress_bar(1) as advance:
        advance(run_of(["0.5"]).records[0])
    with pytest.raises(BrokenPipeError):
        closed.close()

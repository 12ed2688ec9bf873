"""The command line on Windows, as far as it can be tried elsewhere: a shell there passes on what is typed."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalstone import write_run
from evalstone.cli import view
from evalstone.cli.app import app
from tests.cli.conftest import Evalstone
from tests.runs import run_of


@pytest.fixture(autouse=True)
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads the arguments takes the system for Windows."""
    system = SimpleNamespace(**{**vars(os), "name": "nt"})
    monkeypatch.setattr("click.core.os", system)
    monkeypatch.setattr("evalstone.cli.command.os", system)
    monkeypatch.setattr(app, "commands", {**app.commands})
    app.commands.pop("runs", None)


def test_texts_are_what_was_typed(tmp_path: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-anyone")
    (tmp_path / "a.txt").touch()
    for text in ("$OPENAI_API_KEY", "%OPENAI_API_KEY%", "*.txt", "~"):
        done = evalstone("score", "-s", "contains", "--output", "x", "--reference", text, "--json")
        assert done.returncode == 0, done.stderr
        assert f"does not contain “{text}”" in json.loads(done.stdout)["reason"]


def test_a_pattern_of_data_is_left_to_the_command(tmp_path: Path, evalstone: Evalstone) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"output": "x", "reference": "x"}\n')
    done = evalstone("check", "*.jsonl")
    assert (done.returncode, done.stderr) == (0, "")


def test_patterns_of_several_paths_are_looked_for(tmp_path: Path, evalstone: Evalstone) -> None:
    for name in ("one", "two", "o[e]"):
        write_run(run_of(["1"]), tmp_path / "saved" / name)
    done = evalstone("runs", "saved/o*", "--json")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert len(evalstone("runs", "saved/o[e]", "--json").stdout.splitlines()) == 1
    assert "saved/x*" in evalstone("runs", "saved/x*").stderr


def test_no_other_program_can_listen_to_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)
    with view._listening("127.0.0.1", 0) as listener:  # pyright: ignore[reportPrivateUsage]
        options = [listener.getsockopt(socket.SOL_SOCKET, one) for one in (socket.SO_KEEPALIVE, socket.SO_REUSEADDR)]
    assert options == [1, 0]

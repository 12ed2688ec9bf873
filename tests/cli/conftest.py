"""The command line, called in the test's process."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from evalstone.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Evalstone: TypeAlias = Callable[..., Done]


@pytest.fixture
def evalstone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Evalstone:
    """The command `evalstone`, called in the test's folder without API keys of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str, env: Mapping[str, str] | None = None, typed: str = "") -> Done:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["evalstone", *arguments])
            patched.setattr(sys.modules["__main__"], "__package__", "")  # not that of `python -m pytest`
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8"))
            # What the command replaces for its process.
            for module, name in ((sys, "excepthook"), (threading, "excepthook"), (warnings, "formatwarning")):
                patched.setattr(module, name, getattr(module, name))
            patched.setattr(logging, "lastResort", logging.StreamHandler())
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return call

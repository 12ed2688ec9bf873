"""What evalstone creates holds judged text: its owner alone can read it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from evalstone import LoggingJudge, ScriptedJudge, evaluate
from tests.cli.conftest import Evalstone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")

ROWS = [{"id": str(n), "output": f"Paris is in France {n}.", "context": ["Paris is in France."]} for n in range(8)]
COMMANDS = [
    ["run", "data.jsonl", "-s", "faithfulness", "--out", "deep/res", "--html", "run.html", "--markdown", "run.md"],
    ["report", "last", "--csv", "run.csv", "--junit", "run.xml"],
    ["ledger", "export", "all.jsonl"],
    ["ledger", "export", "records.parquet", "--what", "records"],
    ["ledger", "recover", ".evalstone/ledger.db", "--into", "copies/new.db"],
    ["annotate", "last", "--count", "1"],
    ["ledger", "export", "labels.csv", "--what", "labels"],
    ["calibrate", "--labels", "data.jsonl", "--label", "good", "--out", "calibration.json", "--svg", "plot.svg"],
]


@pytest.fixture(autouse=True)
def open_umask() -> Generator[None]:
    """The umask of most machines, under which everybody may read new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


def test_what_commands_create_is_their_owners_alone(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{**row, "good": place % 2} for place, row in enumerate(ROWS)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = modes(tmp_path)
    for command in COMMANDS:
        done = evalstone(*command, typed="y\n")
        assert done.returncode in (0, 3), done.stderr
    made = {name: mode for name, mode in modes(tmp_path).items() if name not in before}
    assert {"run.html", "run.csv", "labels.csv", "plot.svg", "copies/new.db"} <= made.keys()
    for folder in ("deep/res/", ".evalstone/calibrations/"):
        assert any(name.startswith(folder) for name in made)
    readable = {name: oct(mode) for name, mode in made.items() if mode & 0o077}
    assert readable == {}


def test_the_ledgers_files_are_its_owners_alone_while_it_is_open(tmp_path: Path) -> None:
    seen: list[dict[str, int]] = []
    judge = LoggingJudge(ScriptedJudge([{"claims": []}]), tmp_path / "judge.jsonl")
    evaluate(
        [ROWS[0]],
        "faithfulness",
        judge=judge,
        ledger=tmp_path / "new" / "l.db",
        on_record=lambda _: seen.append(modes(tmp_path)),
    )
    assert seen[0] == {
        "new": 0o700,
        "new/l.db": 0o600,
        "new/l.db-wal": 0o600,
        "new/l.db-shm": 0o600,
        "judge.jsonl": 0o600,
    }


def test_what_was_there_keeps_its_mode(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    command = ["run", "data.jsonl", "-s", "faithfulness", "--out", "res", "--html", "run.html"]
    assert evalstone(*command).returncode == 0
    shared = {"res": 0o755, "res/records.jsonl": 0o640, "run.html": 0o644, ".evalstone": 0o750}
    shared[".evalstone/ledger.db"] = 0o644
    for name, mode in shared.items():
        (tmp_path / name).chmod(mode)
    assert evalstone(*command).returncode == 0
    assert {name: modes(tmp_path)[name] for name in shared} == shared

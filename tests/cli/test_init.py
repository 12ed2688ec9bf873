"""`evalstone init`: each kind of project works at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone.cli.init import FILES, KINDS, texts
from tests.cli.conftest import Evalstone


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_passes_at_once(kind: str, tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("init", "mein Projekt ü", "--kind", kind)
    assert done.returncode == 0, done.stderr
    project = tmp_path / "mein Projekt ü"
    assert {*tree(project)} == {*texts(kind), ".gitignore"}  # pyright: ignore[reportArgumentType] - a kind
    assert len(done.stdout.partition("Next:\n")[2].splitlines()) == 3
    os.chdir(project)
    written = tree(project)
    for call in (["run", "evalstone.toml", "-q"], ["ci", "-q"]):
        done = evalstone(*call)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "✓ pass" in done.stdout
    rows = (project / "results" / "records.jsonl").read_text("utf-8")
    assert rows.count("\n") >= 3
    assert '"skipped"' not in rows
    again = evalstone("init", "--kind", kind)
    assert again.returncode == 2
    assert all(name in again.stderr for name in texts(kind))  # pyright: ignore[reportArgumentType] - a kind
    assert {name: tree(project)[name] for name in written} == written


@pytest.mark.parametrize("kind", KINDS)
def test_the_tests_that_are_written_pass(kind: str, tmp_path: Path, evalstone: Evalstone) -> None:
    """In a process of its own (2 s), since each project has a module `system`."""
    assert evalstone("init", "--kind", kind).returncode == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", [*FILES, "evals", ".github"])
def test_nothing_is_written_if_a_file_is_in_the_way(name: str, tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    done = evalstone("init", "--kind", "prompts")
    assert (done.returncode, tree(tmp_path)) == (2, {name: b"mine"})
    assert f"nothing is written, because these exist: {name}" in done.stderr


def test_lines_are_added_to_gitignore_once(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xff\n.evalstone")
    evalstone("init", "--kind", "rag")
    assert (tmp_path / ".gitignore").read_bytes() == b"\xff\n.evalstone\n/results/\n"


def test_a_kind_is_needed_and_a_folder_that_can_be_written(tmp_path: Path, evalstone: Evalstone) -> None:
    assert "--kind is missing: rag, agent, prompts" in evalstone("init").stderr
    (tmp_path / "file").write_text("")
    done = evalstone("init", "file", "--kind", "rag")
    assert (done.returncode, "these exist: file" in done.stderr) == (2, True)
    done = evalstone("init", "/proc/nowhere", "--kind", "rag")
    assert (done.returncode, "nothing is written" in done.stderr) == (2, True)


def test_a_write_that_fails_leaves_nothing(
    tmp_path: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(self: Path, *arguments: str, **settings: str) -> object:
        if self.suffix == ".yml" and arguments == ("x",):
            raise OSError(28, "No space left on device")
        return opened(self, *arguments, **settings)  # pyright: ignore

    monkeypatch.setattr(Path, "open", full)
    done = evalstone("init", "new", "--kind", "agent")
    assert "No space left on device; nothing is written" in done.stderr
    assert [*tmp_path.iterdir()] == []

"""`evalstone init`: each kind of project works at once."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone.cli.init import FILES, KINDS, WORKFLOW, texts
from tests.cli.conftest import Evalstone

DOCS = Path(__file__).parents[2] / "docs"
WORSE = {
    "rag": ('"output": passages[0] if passages else', '"output": "Nobody has ever asked for 77 elephants." or'),
    "agent": ("json.dumps(arguments)", "json.dumps({'number': 99})"),
    "prompts": ('"other")', '"billing")'),
}
"""What makes the answers of each kind of project worse."""


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_what_pytest_needs_is_said_where_it_is_not_installed(
    evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "pytest # each case as a test\n" in evalstone("init", "a", "--kind", "rag").stdout
    monkeypatch.setitem(sys.modules, "pytest", None)
    said = evalstone("init", "b", "--kind", "rag").stdout
    assert re.search(r"pytest # each case as a test; first: .*install.* pytest\n", said)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_case_of_ones_own_is_answered_before_the_system_is(kind: str, tmp_path: Path, evalstone: Evalstone) -> None:
    evalstone("init", "--kind", kind)
    cases = '{"id": "own", "input": "Where is my cat?"}\n{"id": "other", "input": "Where is order 99?"}\n'
    with (tmp_path / "evals" / "cases.jsonl").open("a", encoding="utf-8") as file:
        file.write(cases)
    evalstone("ci", "-q")
    rows = (tmp_path / "results" / "records.jsonl").read_text("utf-8")
    assert '"own"' in rows
    assert '"failed"' not in rows


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


@pytest.mark.parametrize(
    ("git", "folder", "moved"),
    [
        ([".git"], "sub/deep", True),
        ([".git", "sub/deep/.git"], "sub/deep", False),
        ([".git"], ".", False),
        ([], "sub", False),
    ],
)
def test_where_github_looks_for_the_workflow_is_said(
    git: list[str], folder: str, moved: bool, tmp_path: Path, evalstone: Evalstone
) -> None:
    for name in git:
        (tmp_path / name).mkdir(parents=True)
    done = evalstone("init", folder, "--kind", "rag")
    assert done.returncode == 0, done.stderr
    said = f"GitHub runs workflows in {tmp_path / '.github'} only: move {WORKFLOW} there"
    assert (said in " ".join(done.stderr.split())) is moved
    enter = "" if folder == "." else f"cd {folder} && "
    assert done.stdout.partition("Next:\n")[2].startswith(f"{enter}evalstone ci ")


@pytest.mark.parametrize(
    ("source", "installed", "said"),
    [
        ({"url": "file:///src/evalstone", "dir_info": {}}, "git+https://", "names git+https://"),
        (None, '"evalstone==7.8.9"', ""),
    ],
    ids=["a folder", "an index"],
)
def test_a_workflow_that_installs_another_evalstone_is_said(
    source: object, installed: str, said: str, tmp_path: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "site" / "evalstone-7.8.9.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: evalstone\nVersion: 7.8.9\n")
    if source is not None:
        (metadata / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.syspath_prepend(str(metadata.parent))  # pyright: ignore[reportUnknownMemberType]
    done = evalstone("init", "new", "--kind", "rag")
    assert done.returncode == 0, done.stderr
    assert f"pip install {installed}" in (tmp_path / "new" / WORKFLOW).read_text("utf-8")
    assert (said in " ".join(done.stderr.split())) if said else not done.stderr


def test_a_gitignore_that_leads_nowhere_is_in_the_way(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / ".gitignore").symlink_to("elsewhere")
    done = evalstone("init", "--kind", "rag")
    assert (done.returncode, tree(tmp_path)) == (2, {})
    assert "nothing is written, because these exist: .gitignore" in done.stderr


def test_a_folder_named_gitignore_is_in_the_way(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / ".gitignore").mkdir()
    done = evalstone("init", "--kind", "rag")
    assert (done.returncode, tree(tmp_path)) == (2, {})
    assert "nothing is written, because these exist: .gitignore" in done.stderr


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_leads_to_a_green_and_a_red_pull_request(kind: str, tmp_path: Path, evalstone: Evalstone) -> None:
    page = (DOCS / "first-ci.md").read_text("utf-8")
    lines = [line for code in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in code.splitlines()]
    assert [line.partition(" ")[0] for line in lines] == ["evalstone", "cd", "evalstone", "cp", "evalstone"]
    for line in lines:
        match shlex.split(line.replace("--kind rag", f"--kind {kind}")):
            case ["cd", folder]:
                os.chdir(folder)
            case ["cp", "-r", source, copy]:
                shutil.copytree(source, copy)
            case words:
                done = evalstone(*words[1:])
                assert done.returncode == 0, done.stdout + done.stderr
    config = Path("evalstone.toml").read_text("utf-8")
    every = re.sub(r"^# (baseline|max_regression) =", r"\1 =", config, flags=re.MULTILINE)
    assert len(every) == len(config) - 4
    Path("evalstone.toml").write_text(every, "utf-8")
    if kind == "rag":
        (toml,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        Path("page.toml").write_text(toml, "utf-8")
        assert evalstone("ci", "page.toml").returncode == 0
    assert evalstone("ci").returncode == 0
    system = Path("evals/system.py").read_text("utf-8")
    worse = system.replace(*WORSE[kind])
    assert worse != system
    Path("evals/system.py").write_text(worse, "utf-8")
    command = [sys.executable, "-m", "evalstone", "ci", "-q"]  # another process, since `system` is imported here
    wide = {**os.environ, "COLUMNS": "200"}
    red = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60, env=wide)
    assert red.returncode == 1, red.stdout + red.stderr
    assert "difference from baseline" in red.stdout
    assert red.stdout.count("✕ fail") >= 2

"""What the documents show is so: every Python block in them runs, every link leads somewhere, every command exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == language]


WITH_CODE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_commands_in_the_readme_exist() -> None:
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    shown = {
        line.split()[1]
        for code in blocks(ROOT / "README.md", "sh")
        for line in code.splitlines()
        if line[:9] == "evalstone"
    }
    assert shown <= known
    assert shown


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    shown = [line for code in blocks(ROOT / "README.md", "text") for line in code.splitlines()]
    done = subprocess.run(
        [sys.executable, "-m", "evalstone", "demo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    printed = {" ".join(line.split()) for line in done.stdout.splitlines()}
    changing = re.compile(r"cost \$0\.00 · [\d.]+ s")
    missing = [
        line for line in shown if line.strip() and " ".join(line.split()) not in printed and not changing.search(line)
    ]
    assert missing == []

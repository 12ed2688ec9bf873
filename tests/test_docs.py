"""What the documents show is so: every Python block in them runs, every link leads somewhere, every command exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evalstone import parse_judge
from evalstone.cli.app import COMMANDS
from evalstone.models.catalog import provider_info
from evalstone.scorers import parse_scorer
from evalstone.scorers.registry import SCORERS
from tests.forked import script
from tests.packages import installed

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == language]


WITH_CODE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    code, said = script("\n".join(blocks(page, "python")), folder)
    assert code == 0, said


@pytest.mark.slow
def test_the_python_blocks_pass_the_type_checker_of_an_editor(tmp_path: Path) -> None:
    """Pyright's, as loosely as it checks by default: those of a page together."""
    settings = {"typeCheckingMode": "basic", "pythonVersion": "3.11", "venvPath": str(ROOT), "venv": ".venv"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    for page in WITH_CODE:
        name = f"{page.relative_to(ROOT).with_suffix('')}.py".replace("/", "_")
        (tmp_path / name).write_text("\n".join(blocks(page, "python")), "utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = json.loads(checked.stdout)
    assert found["summary"]["filesAnalyzed"] == len(WITH_CODE), checked.stderr
    assert [(Path(each["file"]).name, each["message"]) for each in found["generalDiagnostics"]] == []


def test_the_side_by_side_page_counts_its_lines_of_code() -> None:
    text = (ROOT / "docs" / "side-by-side.md").read_text("utf-8")
    header, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"
    ]
    shown = {task: dict(zip(header[1:], counts, strict=True)) for task, *counts in rows}
    counted = {task: dict.fromkeys(header[1:], "–") for task in shown}
    for section in text.split("\n## ")[2:]:
        for before, code in re.findall(
            r"\n\n([^`][^\n]*(?:\n[^\n]+)*)\n\n```\w+\n(.*?)^```", section, re.MULTILINE | re.DOTALL
        ):
            lines = [line for line in code.splitlines() if line and not re.match(r"(from \S+ )?import ", line)]
            counted[section.splitlines()[0]][before.split()[0].rstrip(":")] = str(len(lines))
    assert counted == shown


def test_the_package_of_the_plug_ins_page_adds_its_names(site: Path) -> None:
    page = ROOT / "docs" / "custom-scorers.md"
    project = next(tomllib.loads(text) for text in blocks(page, "toml") if "entry-points" in text)["project"]
    (module,) = (code for code in blocks(page, "python") if "class AcmeJudge" in code)
    installed(site, project["name"], project["entry-points"], {"acme_eval": module}, project["version"])
    pinned = f"{project['name']}=={project['version']}"
    for name in project["entry-points"]["evalstone.scorers"]:
        assert pinned in parse_scorer(name).signature
    assert pinned in parse_judge("acme/large(strict=true)").identity
    assert provider_info("acme-models/large").key == "ACME_API_KEY"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link, heading in LINK.findall(page.read_text("utf-8")):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not heading or heading in headings(target), f"{link}#{heading}"


def headings(page: Path) -> list[str]:
    """The names by which links call the headings of a page."""
    text = BLOCK.sub("", page.read_text("utf-8"))
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)]


def test_the_commands_in_the_readme_exist() -> None:
    shown = {
        line.split()[1]
        for code in blocks(ROOT / "README.md", "sh")
        for line in code.splitlines()
        if line[:9] == "evalstone"
    }
    assert shown <= set(COMMANDS)
    assert shown


def test_the_readme_says_how_many_scorers_there_are() -> None:
    (number,) = re.findall(r"It has (\d+) scorers", (ROOT / "README.md").read_text("utf-8"))
    assert int(number) == len(list(SCORERS))


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_outputs_in_the_readme_and_in_getting_started_are_what_their_commands_print(tmp_path: Path) -> None:
    readme = "".join(blocks(ROOT / "README.md", "console"))
    guide = ROOT / "docs" / "getting-started.md"
    shell = [code for code in blocks(guide, "sh") if "install" not in code]
    commands = [line for code in shell for line in code.splitlines() if "openai" not in line or "--dry-run" in line]
    commands += [line.removeprefix("$ ") for line in readme.splitlines() if line.startswith("$ ")]
    shown = [line for text in (*blocks(guide, "text"), readme) for line in text.splitlines() if line[:2] != "$ "]
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    changing = re.compile(r"[\d.]+ s\b|run \d{8}-\S+|(?:report|view) \d{8}-\S+")
    printed = {changing.sub("", " ".join(line.split())) for line in done.stdout.splitlines()}
    assert shown
    assert [line for line in shown if changing.sub("", " ".join(line.split())) not in printed] == []


@pytest.mark.slow
def test_the_commands_of_the_readme_find_the_files_that_they_name(tmp_path: Path) -> None:
    lines = [line for code in blocks(ROOT / "README.md", "sh") for line in code.splitlines()]
    # The others install something, or wait for what an application sends.
    needing = re.compile(r"pip |uv |make |collect|traces|live")
    hosted = re.compile(r" --judge (openai/gpt-5\.1|typesafe/jev-latest)")
    commands = [hosted.sub("", line) for line in lines if not needing.search(line)]
    codes: dict[str, int] = {}
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        codes[command] = done.returncode
        assert not done.stderr.startswith("evalstone: "), done.stderr
    assert len(codes) >= 10
    assert {command for command, code in codes.items() if code} <= {
        command for command in codes if "--min" in command or " gate " in command
    }


@pytest.mark.slow
def test_the_pytest_page_does_what_it_shows(tmp_path: Path) -> None:
    page = ROOT / "docs" / "pytest.md"
    app, *tests = blocks(page, "py")
    (tmp_path / "my_app.py").write_text(app, "utf-8")
    (tmp_path / "cases.jsonl").write_text(blocks(page, "json")[0], "utf-8")
    for number, test in enumerate(("\n".join(tests[:2]), tests[2])):
        (tmp_path / f"test_{number}.py").write_text(test, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "3 failed, 3 passed, 1 skipped" in done.stdout, done.stdout
    failures, summary = blocks(page, "text")[:-1], blocks(page, "text")[-1]
    assert [block for block in failures if block not in done.stdout] == []
    assert summary.splitlines()[0].split() in [line.split() for line in done.stdout.splitlines()]

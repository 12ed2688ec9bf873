"""The skill for coding agents: its form, that it is written where the user says, and that what it says is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from evalstone.cli.app import COMMANDS, GROUPS
from evalstone.cli.skill import MAIN, NAME, PLACES, skill_texts
from evalstone.results.endings import EXIT_CODES
from evalstone.scorers import SCORERS
from evalstone.scorers.registry import TEMPLATES
from tests.cli.conftest import Evalstone

ROOT = Path(__file__).parents[2]
TEXTS = skill_texts()
STEP = re.compile(r"(?:^`([\w.]+)`:\n\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A block of the skill; the name of the file before it, if it is one."""


def test_the_skill_has_the_form_of_agent_skills() -> None:
    _, head, body = TEXTS[MAIN].split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == NAME
    assert re.fullmatch(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)", fields["name"])
    assert 0 < len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 500
    assert len(TEXTS[MAIN]) < 20_000  # about 5,000 tokens
    linked = re.findall(r"\]\(([^)]+)\)", TEXTS[MAIN])
    assert {*linked} == TEXTS.keys() - {MAIN}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_the_commands_of_the_skill_print_what_it_says(evalstone: Evalstone, tmp_path: Path, name: str) -> None:
    printed, checked = "", 0
    (tmp_path / "answers.jsonl").write_text('{"output": "x", "context": ["x"]}\n', "utf-8")
    for file, kind, text in STEP.findall(TEXTS[name]):
        if file:
            (tmp_path / file).write_text(text, "utf-8")
        elif kind == "sh":
            printed = ""
            for line in text.splitlines():
                command, _, code = line.partition("  # exit code ")
                program, *arguments = shlex.split(command)
                assert program == "evalstone"
                done = evalstone(*arguments)
                assert done.returncode == int(code or 0), f"{command}: {done}"
                printed += done.stdout + done.stderr
        else:
            assert kind == "text", kind
            for line in text.splitlines():
                assert " ".join(line.split()) in " ".join(printed.split()), printed
                checked += 1
    assert checked


def test_the_skill_names_commands_and_scorers_that_exist() -> None:
    text = "\n".join(TEXTS.values())
    blocks = "".join(code for _, kind, code in STEP.findall(text) if kind == "sh")
    commands = {*re.findall(r"`evalstone ([a-z]+)", text), *re.findall(r"^evalstone ([a-z]+)", blocks, re.MULTILINE)}
    assert commands <= COMMANDS.keys()
    assert len(commands) > 12
    for name, inner in re.findall(rf"`evalstone ({'|'.join(GROUPS)}) ([a-z]+)", text):
        assert inner in GROUPS[name]
    table = TEXTS["references/scorers.md"].partition("\n\n")[2].partition("\n\n")[0]
    scorers = {each for row in table.splitlines()[2:] for each in re.findall(r"`(\w+)[`(]", row.split("|")[3])}
    assert scorers <= {*SCORERS, *TEMPLATES}
    assert len(scorers) > 25


def test_the_skill_has_the_exit_codes() -> None:
    section = TEXTS[MAIN].partition("## Exit codes")[2].partition("\n## ")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == {*EXIT_CODES} - {141}


def test_install_writes_the_skill_and_replaces_nothing_unless_forced(evalstone: Evalstone, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills"
    done = evalstone("skill", "install", str(folder))
    assert done.returncode == 0, done.stderr
    assert {str(path.relative_to(folder / NAME)) for path in folder.rglob("*.md")} == TEXTS.keys()
    assert all(str(folder / NAME / name) in done.stdout for name in TEXTS)
    main = folder / NAME / MAIN
    main.write_text("mine")
    (folder / NAME / "references" / "ci.md").unlink()
    again = evalstone("skill", "install", str(folder))
    assert (again.returncode, main.read_text()) == (2, "mine")
    assert str(main) in again.stderr
    assert "--force" in again.stderr
    assert not (folder / NAME / "references" / "ci.md").exists()
    assert evalstone("skill", "install", str(folder), "--force").returncode == 0
    assert {name: (folder / NAME / name).read_text("utf-8") for name in TEXTS} == TEXTS


def test_install_says_where_agents_look_and_what_it_cannot_write(evalstone: Evalstone, tmp_path: Path) -> None:
    helped = " ".join(evalstone("skill", "install", "--help").stdout.split())
    assert all(place in helped for place in PLACES)
    done = evalstone("skill", "install")
    assert done.returncode == 2
    assert all(place in done.stderr for place in PLACES)
    page = (ROOT / "docs" / "coding-agents.md").read_text("utf-8")
    assert dict(re.findall(r"^\| `(\..*?)` \| (.*?) \|", page, re.MULTILINE)) == PLACES
    (tmp_path / "file").write_text("")
    blocked = evalstone("skill", "install", "file")
    assert blocked.returncode == 2
    assert "can't write to file/evalstone" in blocked.stderr


def test_show_prints_a_file_of_the_skill(evalstone: Evalstone) -> None:
    assert evalstone("skill", "show").stdout == TEXTS[MAIN]
    assert evalstone("skill", "show", "references/ci.md").stdout == TEXTS["references/ci.md"]
    wrong = evalstone("skill", "show", "references/cl.md")
    assert wrong.returncode == 2
    assert "references/ci.md" in wrong.stderr

"""`evalstone skill`: what a coding agent should know to use evalstone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any

import click

from evalstone._core.files import home_expanded
from evalstone.cli.completion import FOLDER
from evalstone.cli.options import Value, argument, option
from evalstone.cli.output import say
from evalstone.errors import ConfigError, absent, unknown
from evalstone.results.endings import ExitCode

NAME, MAIN = "evalstone", "SKILL.md"
PLACES: Mapping[str, str] = {
    ".agents/skills": "Codex, Gemini CLI, GitHub Copilot CLI, OpenCode",
    ".claude/skills": "Claude Code, GitHub Copilot CLI, OpenCode",
}
"""Where these coding agents look for skills in a project."""


def _files(_: Mapping[str, Any], _beginning: str) -> list[str]:
    return [*skill_texts()]


def install(
    folder: Annotated[
        Value,
        argument(
            "FOLDER",
            f"The folder in which your agent looks for skills: {' or '.join(PLACES)}.",
            complete=FOLDER,
        ),
    ] = None,
    force: Annotated[bool, option("--force", "Options", "Replace files that exist.")] = False,
) -> int:
    """Write the skill for coding agents into a folder of skills.

    It says which command to use when, how to read results, and what never to do.
    """
    if folder is None:
        places = "; ".join(f"{place} ({agents})" for place, agents in PLACES.items())
        raise ConfigError(absent("folder", f"name the folder in which your agent looks for skills: {places}"))
    target = home_expanded(folder) / NAME
    texts = skill_texts()
    in_the_way = [target / name for name in texts if os.path.lexists(target / name)]
    if in_the_way and not force:
        shown = ", ".join(map(str, in_the_way))
        raise ConfigError(f"nothing is written, because these exist: {shown}; replace them with --force")
    try:
        for name, text in texts.items():
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"can't write to {target}: {error.strerror or error}") from error
    say(f"Written: {', '.join(str(target / name) for name in texts)}")
    return ExitCode.OK


def show(
    file: Annotated[
        str,
        argument(
            "FILE",
            "A file of the skill, such as references/ci.md.",
            complete=_files,
        ),
    ] = MAIN,
) -> int:
    """Print the skill, or one of the files that it refers to."""
    texts = skill_texts()
    if file not in texts:
        raise ConfigError(unknown("file of the skill", file, texts))
    click.echo(texts[file], nl=False)
    return ExitCode.OK


def skill_texts() -> dict[str, str]:
    """The texts of the skill, by their paths in it."""
    return dict(sorted(_texts(files("evalstone") / "skills" / NAME, ""), key=lambda each: (each[0] != MAIN, each[0])))


def _texts(folder: Traversable, at: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _texts(each, f"{at}{each.name}/")
        elif each.name.endswith(".md"):
            found.append((f"{at}{each.name}", each.read_text("utf-8")))
    return found

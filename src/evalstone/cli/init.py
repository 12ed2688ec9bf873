"""`evalstone init`: the files of a first evaluation."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import click

from evalstone._core.files import home_expanded
from evalstone._core.installed import library_command, requirement_elsewhere
from evalstone._core.project_files import CONFIG, check_free, write_new
from evalstone.cli import options
from evalstone.cli.completion import FOLDER
from evalstone.cli.options import option
from evalstone.cli.output import say, say_next, to_stderr
from evalstone.errors import ConfigError
from evalstone.results.endings import ExitCode

Kind: TypeAlias = Literal["rag", "agent", "prompts"]
KINDS = {
    "rag": "answers from passages",
    "agent": "answers after tool calls",
    "prompts": "answers of a model to a prompt",
}
EVALS = "evals"
WORKFLOW = ".github/workflows/evals.yml"
FILES: Mapping[str, str] = {
    CONFIG: "evalstone.toml",
    f"{EVALS}/cases.jsonl": "cases.jsonl",
    f"{EVALS}/prompt.txt": "prompt.txt",
    f"{EVALS}/system.py": "system.py.txt",
    f"{EVALS}/test_evals.py": "test_evals.py.txt",
    WORKFLOW: "workflow.yml",
}
"""The files that are written, and what they are called in the package: as text, since they aren't part of the code."""
_INSTALLED = re.compile(r"(?<=pip install )git\+\S+")
"""What the workflow in the package installs. It stays if nothing is known that installs this evalstone elsewhere."""


def init(
    folder: Annotated[
        str, options.argument("FOLDER", "The folder of the project; it may not exist yet.", complete=FOLDER)
    ] = ".",
    kind: Annotated[
        Kind | None,
        option("--kind", "Options", "What is evaluated: answers from passages, an agent with tools, or a prompt."),
    ] = None,
) -> int:
    """Write the files of a first evaluation, with its workflow for CI.

    They run at once, without a key. Existing files are never changed; lines are added to .gitignore.
    """
    project = home_expanded(folder)
    check_free(project, FILES)
    chosen = _asked() if kind is None else kind
    contents = texts(chosen)
    written = write_new(project, contents)
    _say(project, written, _INSTALLED.search(contents[WORKFLOW]))
    return ExitCode.OK


def texts(kind: Kind) -> dict[str, str]:
    """The texts of the files of a kind of project, by their paths in it."""
    starters = files("evalstone.cli") / "starters"
    places = {
        path: next(filter(lambda file: file.is_file(), (starters / kind / name, starters / name)), None)
        for path, name in FILES.items()
    }
    found = {path: place.read_text("utf-8") for path, place in places.items() if place is not None}
    if (requirement := requirement_elsewhere()) is not None:
        found[WORKFLOW] = _INSTALLED.sub(lambda _: f'"{requirement}"', found[WORKFLOW])
    return found


def _asked() -> Kind:
    """The kind of project, asked on a terminal. Raises ConfigError without one."""
    if not sys.stdin.isatty():
        raise ConfigError(f"--kind is missing: {', '.join(KINDS)}")
    for name, meaning in KINDS.items():
        click.echo(f"{name:8} {meaning}", err=True)
    return cast(Kind, click.prompt("What do you evaluate?", type=click.Choice([*KINDS]), err=True))


def _say(project: Path, written: list[str], assumed: re.Match[str] | None) -> None:
    """Print what is written, and what to do next. assumed: what the workflow installs, if it isn't this evalstone."""
    root = project.resolve()
    inside = next((parent for parent in root.parents if (parent / ".git").exists()), None)
    if inside is not None and not (root / ".git").exists():
        to_stderr(
            f"GitHub runs workflows in {inside / '.github'} only: move {WORKFLOW} there, and let it work in {root}."
        )
    if assumed is not None:
        to_stderr(
            f"GitHub can't install evalstone from where yours is: {WORKFLOW} names {assumed[0]}; check that line."
        )
    say(f"Written: {', '.join(written)}")
    enter = "" if root == Path.cwd() else f"cd {shlex.quote(str(project))} && "
    needs = "" if find_spec("pytest") else f"; first: {library_command('pytest')}"
    say_next(
        {
            f"{enter}evalstone ci": "score the cases and check the thresholds, as CI does",
            "pytest": f"each case as a test{needs}",
            f"edit {EVALS}/system.py": f"call your system, then put your cases into {EVALS}/cases.jsonl",
        }
    )

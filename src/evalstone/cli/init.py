"""`evalstone init`: the files of a first evaluation."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import click

from evalstone._core.files import home_expanded
from evalstone._core.installed import library_command, requirement_elsewhere
from evalstone.cli import options
from evalstone.cli.ci import CONFIG, RESULTS
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
IGNORED = ("/.evalstone/", f"/{RESULTS}/")
"""The lines of .gitignore."""


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


def check_free(project: Path, names: Iterable[str]) -> None:
    """Raise ConfigError if one of these files of a project exists."""
    if in_the_way := [*_in_the_way(project, [*names])]:
        raise ConfigError(f"nothing is written, because these exist: {', '.join(map(str, in_the_way))}")


def _in_the_way(project: Path, names: Sequence[str]) -> Iterator[Path]:
    """What exists in place of a file or of a folder that is written."""
    folders = dict.fromkeys(parent for name in names for parent in (project / name).parents)
    yield from (folder for folder in folders if os.path.lexists(folder) and not folder.is_dir())
    yield from (project / name for name in names if os.path.lexists(project / name))
    if (ignored := project / ".gitignore").exists() and not ignored.is_file():
        yield ignored


def write_new(project: Path, contents: Mapping[str, str]) -> list[str]:
    """Write the files, or none of them, and add to .gitignore what a run writes; returns their paths in the project.

    Raises ConfigError if a file exists, or can't be written.
    """
    new: list[Path] = []
    try:
        for name, text in contents.items():
            file = project / name
            for parent in reversed(file.parents):
                if not parent.exists():
                    parent.mkdir()
                    new.append(parent)
            with file.open("x", encoding="utf-8", newline="\n") as opened:
                new.append(file)
                opened.write(text)
        return [*contents, *_ignore(project / ".gitignore")]
    except OSError as error:
        for path in reversed(new):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise ConfigError(f"can't write to {project}: {error.strerror or error}; nothing is written") from error


def _ignore(file: Path) -> list[str]:
    """Add the missing lines to .gitignore; returns its name if there are some."""
    before = file.read_bytes() if file.exists() else b""
    known = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [line for line in IGNORED if line.strip("/").encode() not in known]
    if missing:
        start = b"\n" if before and not before.endswith(b"\n") else b""
        with file.open("ab") as opened:
            opened.write(start + b"".join(line.encode() + b"\n" for line in missing))
    return [file.name] if missing else []


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

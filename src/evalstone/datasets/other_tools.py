"""Files that other tools wrote: their results have scores, which reading them as a dataset loses."""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from evalstone._core.files import home_expanded
from evalstone.datasets.columns import RESULTS_OF_PROMPTFOO
from evalstone.errors import DataError

IN_NO_FILE = "saved as a file, they are imported with their scores: evalstone import FILE, or import_results('FILE')"


def tool_of(source: Any) -> str:
    """The tool whose results a file has, by its content; "" for anything else."""
    if not isinstance(source, str | os.PathLike):
        return ""
    path = home_expanded(os.fspath(source))
    try:
        if not path.is_file():
            return ""
    except (OSError, ValueError):  # it is no path
        return ""
    # What makes runs is a layer above; here, only the name of the tool is needed.
    return import_module("evalstone.compat.imports.reading").tool_of(path)


def import_command(source: str) -> str:
    """The command that imports a file."""
    return f"evalstone import {shlex.quote(source)}"


@contextmanager
def advising_import(source: Any) -> Generator[None]:
    """Errors about a file with the results of another tool say how to keep their scores."""
    try:
        yield
    except DataError as error:
        if error.advice:
            raise
        if tool := tool_of(source):
            path = os.fspath(cast("str", source))
            error.advised(
                f"it has results of {tool}: {import_command(path)}, or import_results({path!r}), makes runs of them, "
                "with their scores"
            )
        elif RESULTS_OF_PROMPTFOO in error.problem:
            error.advised(IN_NO_FILE)
        raise

"""Files that other tools wrote: their results have scores, which reading them as a dataset loses."""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from evalstone._core.files import home_expanded
from evalstone.errors import DataError


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
        if not error.advice and (tool := tool_of(source)):
            path = os.fspath(cast("str", source))
            error.advised(
                f"it has results of {tool}: {import_command(path)}, or import_results({path!r}), makes runs of them, "
                "with their scores"
            )
        raise

"""Whether a file is a configuration of another tool, and not its results."""

from __future__ import annotations

import re
from pathlib import Path

from evalstone._core.display import named
from evalstone._core.files import home_expanded, is_file
from evalstone.compat.configs.config_files import CODE, YAML
from evalstone.compat.imports.reading import head_of
from evalstone.errors import DataError

_KEY = re.compile(rb"^[\"']?(\w+)[\"']?[ \t]*:", re.MULTILINE)


def config_at(path: str) -> Path | None:
    """The configuration of promptfoo at a path: YAML, or JSON with prompts, providers or tests. None for anything else,
    such as results.

    Raises DataError for a configuration that is code, because nothing is run, and for YAML that isn't there.
    """
    file = home_expanded(path)
    kind = file.suffix.lower()
    if kind in CODE and is_file(file):
        raise DataError(
            f"{named(path)} is code, which isn't run; write the configuration as YAML (promptfoo validate shows it)"
        )
    if kind in YAML:
        if not is_file(file):
            raise DataError(f"{named(path)} does not exist")
        if _has_results(file):
            raise DataError(
                f"{named(path)} has the results of promptfoo as YAML; save them as JSON: promptfoo export eval ID "
                "-o results.json"
            )
        return file
    if kind != ".json" or not is_file(file):
        return None
    head = head_of(file)
    if head.is_lines or head.has("results"):
        return None
    parts = [name for name in ("prompts", "providers", "tests") if head.has(name)]
    return file if len(parts) > 1 else None


def _has_results(file: Path) -> bool:
    """Whether YAML has results, and nothing that a configuration has."""
    names = {match[1] for match in _KEY.finditer(head_of(file).start)}
    return b"results" in names and names.isdisjoint((b"prompts", b"providers", b"targets", b"tests", b"scenarios"))

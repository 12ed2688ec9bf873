"""Whether a file is a configuration of another tool, and not its results."""

from __future__ import annotations

from pathlib import Path

from evalstone._core.display import named
from evalstone._core.files import home_expanded
from evalstone.compat.imports.reading import head_of
from evalstone.errors import DataError

YAML = (".yaml", ".yml")
CODE = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py")


def is_config(path: str) -> bool:
    """Whether a file is a configuration of promptfoo: YAML, or JSON with prompts, providers or tests.

    Raises DataError for a configuration that is code: nothing is run.
    """
    file = home_expanded(path)
    kind = Path(file).suffix.lower()
    if kind in CODE and file.is_file():
        raise DataError(
            f"{named(path)} is code, which isn't run; write the configuration as YAML (promptfoo validate shows it)"
        )
    if kind in YAML:
        if not file.is_file():
            raise DataError(f"{named(path)} does not exist")
        return True
    if kind != ".json" or not file.is_file():
        return False
    head = head_of(file)
    return (
        not head.is_lines
        and not head.has("results")
        and (head.has("prompts", "providers") or head.has("prompts", "tests") or head.has("providers", "tests"))
    )

"""The diffs of CONTRIBUTING.md, which show how to add a scorer, a provider and a format."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def paths(section: str) -> list[str]:
    """The files that the diff in a section touches."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\+\+\+ b/(.+)$", text, flags=re.MULTILINE)


def hunk(path: str) -> list[str]:
    """The lines of the diff of a file."""
    return PAGE.partition(f"+++ b/{path}\n")[2].partition("\n\n+++")[0].partition("\n```")[0].splitlines()


def added(path: str) -> str:
    """The lines that the page adds to a file."""
    return "\n".join(line[1:] for line in hunk(path) if line.startswith("+"))

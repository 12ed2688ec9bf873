"""The repository's address and the version, wherever they are shown.

Both are set in pyproject.toml alone. `make docs` writes them into links, workflows and commands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHOWN_IN = (
    "pyproject.toml",
    "CITATION.cff",
    "*.md",
    "docs/**/*.md",
    "action/*.yml",
    ".github/**/*.yml",
    "src/evalstone/cli/starters/*.yml",
)
"""The files that may show them."""
_OWNER = re.compile(
    r"""
    (?<=github\.com/)[\w-]+(?=/evalstone(?![\w-]))
    | (?<=raw\.githubusercontent\.com/)[\w-]+(?=/evalstone/)
    | [\w-]+(?=/evalstone(?:/action)?@v\d)
    | (?<=--repo[ ])[\w-]+(?=/evalstone(?![\w-]))
    | (?<=`)[\w-]+(?=/evalstone`)
    """,
    re.VERBOSE,
)
_SITE = re.compile(r"https://[\w.-]+\.github\.io/evalstone/")
_VERSION = re.compile(r"(?:(?<=/evalstone@v)|(?<=/evalstone/action@v)|(?<=    rev: v)|(?<=\nversion: ))\d[\w.]*")


def project() -> Mapping[str, Any]:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def owner(about: Mapping[str, Any]) -> str:
    """The owner of the repository in the table `project`.

    Raises ValueError for an address in another form, which the links and commands here can't have.
    """
    address = about["urls"]["Repository"]
    if (found := re.fullmatch(r"https://github\.com/([\w-]+)/evalstone", address)) is None:
        raise ValueError(f"Repository in pyproject.toml must be https://github.com/OWNER/evalstone, not {address}")
    return found[1]


def files() -> Iterator[Path]:
    """The files that may show the address or the version."""
    for pattern in SHOWN_IN:
        yield from sorted(ROOT.glob(pattern))


def with_addresses(text: str, about: Mapping[str, Any]) -> str:
    """A text with the owner, the site and the version that the table `project` has."""
    text = _OWNER.sub(owner(about), text)
    return _VERSION.sub(about["version"], _SITE.sub(about["urls"]["Documentation"], text))

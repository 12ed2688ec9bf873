"""Ledger locations: a path or `sqlite:///path`, or `postgresql://…`. Imports no SQLAlchemy."""

from __future__ import annotations

import re
from pathlib import Path

from evalstone.errors import ConfigError

DEFAULT_LEDGER = "sqlite:///.evalstone/ledger.db"
SCHEMES = ("sqlite", "postgresql", "postgres", "postgresql+psycopg")
EXPECTED = "expected a path, sqlite:///path/to/file.db or postgresql://user@host/database"

_PASSWORD = re.compile(r"(?<=://)([^:/?@]*):.*@", re.DOTALL)
_PASSWORD_OPTION = re.compile(r"(?<=password=)[^&]*", re.IGNORECASE)


def shown(url: str | Path) -> str:
    """The location for display: the path of a file, or the URL with its password hidden."""
    text = str(url)
    if text.startswith("sqlite:///"):
        return text.removeprefix("sqlite:///")
    return _PASSWORD_OPTION.sub("***", _PASSWORD.sub(r"\1:***@", text))


def scheme_of(url: str | Path) -> str:
    """`sqlite` or `postgresql`.

    Raises:
        ConfigError: The URL has another scheme or names no database. The message hides the password.
    """
    scheme, separator, rest = str(url).partition("://")
    if not separator:
        return "sqlite"
    if scheme not in SCHEMES or (scheme == "sqlite" and not rest.startswith("/")) or rest in ("", "/"):
        raise ConfigError(f"{shown(url)} is not a ledger; {EXPECTED}")
    return "sqlite" if scheme == "sqlite" else "postgresql"


def file_of(url: str | Path) -> Path | None:
    """The file of a SQLite ledger; None for one on a server."""
    return Path(str(url).removeprefix("sqlite:///")) if scheme_of(url) == "sqlite" else None


def is_there(url: str | Path) -> bool:
    """Whether the ledger's file exists. Always true for a server, which is not contacted."""
    file = file_of(url)
    return file is None or file.exists()

"""Where a ledger lies: a path or `sqlite:///path`, or `postgresql://…`.

Read without SQLAlchemy, for those who only ask.
"""

from __future__ import annotations

import re
from pathlib import Path

from evalstone.errors import ConfigError

DEFAULT_LEDGER = "sqlite:///.evalstone/ledger.db"
SCHEMES = ("sqlite", "postgresql", "postgres", "postgresql+psycopg")
EXPECTED = "expected a path, sqlite:///path/to/file.db or postgresql://user@host/database"

_PASSWORD = re.compile(r"(?<=://)([^:/?@]*):.*@", re.DOTALL)
_SETTING = re.compile(r"(?<=password=)[^&]*", re.IGNORECASE)


def shown(url: str | Path) -> str:
    """A ledger's place as people may see it: the path of a file, or a URL whose password is hidden."""
    text = str(url)
    if text.startswith("sqlite:///"):
        return text.removeprefix("sqlite:///")
    return _SETTING.sub("***", _PASSWORD.sub(r"\1:***@", text))


def scheme_of(url: str | Path) -> str:
    """`sqlite` or `postgresql`. Raises ConfigError for a URL of another kind; no password is shown."""
    scheme, colon, rest = str(url).partition("://")
    if not colon:
        return "sqlite"
    if scheme not in SCHEMES or (scheme == "sqlite" and not rest.startswith("/")) or rest in ("", "/"):
        raise ConfigError(f"{shown(url)} is no ledger; {EXPECTED}")
    return "sqlite" if scheme == "sqlite" else "postgresql"


def file_of(url: str | Path) -> Path | None:
    """The file that a ledger lies in; None for one that lies on a server."""
    return Path(str(url).removeprefix("sqlite:///")) if scheme_of(url) == "sqlite" else None


def is_there(url: str | Path) -> bool:
    """Whether there is something to open: the file, or, unasked, a server."""
    file = file_of(url)
    return file is None or file.exists()

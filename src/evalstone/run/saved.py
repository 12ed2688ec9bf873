"""Saved runs: from a results folder, or from the ledger."""

from __future__ import annotations

from pathlib import Path

from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.results import files
from evalstone.results.run import Run


def read_run(name: str | Path, *, ledger: str | Path | None = None) -> Run:
    """A run from a results folder, or from the ledger.

    Args:
        name: a folder, the id or the name of a run (its latest run of that name), or "last".
        ledger: path or URL of the ledger; by default `.evalstone/ledger.db`.

    Raises:
        ConfigError: there is no such folder, and no such run in the ledger.
    """
    if Path(name).is_dir():
        return files.read_run(name)
    from evalstone.ledger.location import DEFAULT_LEDGER, is_there, shown  # noqa: PLC0415 - a folder needs no ledger

    url = ledger or DEFAULT_LEDGER
    if is_there(url):
        from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy

        with Ledger(str(url)) as opened:
            row = opened.run(str(name)) or next(
                (one for one in opened.runs() if name and one.metadata.get("name") == str(name)), None
            )
            if row is not None:
                return Run.from_dict(row.metadata, opened.records(row.id))
    raise ConfigError(
        f"there is no results folder {json_line(str(name))}, and no run of that id or name in the ledger {shown(url)}"
    )

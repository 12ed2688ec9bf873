"""Saved runs: from a results folder, or from the ledger."""

from __future__ import annotations

from pathlib import Path

from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.ledger.location import is_there, shown
from evalstone.results import files
from evalstone.results.run import Run


def read_run(name: str | Path, *, ledger: str | None = None) -> Run:
    """A run from a results folder, or by its id (or "last") from the ledger.

    Raises:
        ConfigError: there is no such folder, and no such run in the ledger.
    """
    if Path(name).is_dir():
        return files.read_run(name)
    if ledger is not None and is_there(ledger):
        from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

        with Ledger(ledger) as opened:
            row = opened.run(str(name))
            if row is not None:
                return Run.from_dict(row.metadata, opened.records(row.id))
    where = shown(ledger) if ledger is not None else ""
    raise ConfigError(f"there is no results folder {json_line(str(name))}, and no run of that id in the ledger {where}")

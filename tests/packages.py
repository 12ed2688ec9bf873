"""Installed packages: real ones, with metadata, in a folder on the path."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

SCORERS, JUDGES, PROVIDERS = "evalstone.scorers", "evalstone.judges", "evalstone.providers"


def installed(
    path: Path,
    name: str,
    entries: Mapping[str, Mapping[str, str]] | str,
    modules: Mapping[str, str] | None = None,
    version: str = "1.2.0",
) -> Path:
    """Install a package into a folder, and return the folder.

    entries: by group, the addresses by name, or the text of the file. modules: the source of each.
    """
    data = path / f"{name.replace('-', '_')}-{version}.dist-info"
    data.mkdir(parents=True)
    (data / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if not isinstance(entries, str):
        groups = (
            "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in rows.items())])
            for group, rows in entries.items()
        )
        entries = "\n".join(groups)
    (data / "entry_points.txt").write_text(entries)
    for module, source in (modules or {}).items():
        (path / f"{module}.py").write_text(textwrap.dedent(source))
    return path

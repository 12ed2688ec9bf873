"""Data files by their suffix."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from evalstone.datasets.decoding import decoded, unzipped
from evalstone.datasets.formats import Rows, csv_rows, json_items, json_lines
from evalstone.datasets.parquet import parquet_rows
from evalstone.datasets.wording import excerpt, listed, named, nearest
from evalstone.errors import DataError

_TEXT_FORMATS: dict[str, Callable[[str], Rows]] = {
    ".json": json_items,
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": functools.partial(csv_rows, delimiter=","),
    ".tsv": functools.partial(csv_rows, delimiter="\t"),
}
_TABLES = (".csv", ".tsv", ".parquet")
READABLE = (*_TEXT_FORMATS, ".parquet")


@dataclass(frozen=True)
class DataFile:
    """A data file that exists: where it is, its kind (`.jsonl`), and whether it is compressed."""

    path: Path
    kind: str
    zipped: bool

    @property
    def cells(self) -> bool:
        """Whether the rows are a table's."""
        return self.kind in _TABLES

    def rows(self) -> Rows:
        """The rows with their places. Raises DataError that says what in the file cannot be read."""
        if self.kind == ".parquet":
            return parquet_rows(self.path)
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}") from None
        return _TEXT_FORMATS[self.kind](decoded(unzipped(data) if self.zipped else data))


def find(path: Path) -> DataFile:
    """The file at a path. Raises DataError when there is none, with near names, and when its suffix is not known."""
    try:
        return _find(path)
    except OSError as error:
        raise DataError(f"{excerpt(str(path))} cannot be read: {error.strerror}") from None


def _find(path: Path) -> DataFile:
    if path.is_dir():
        inside = sorted(entry.name for entry in path.iterdir() if _kind(entry.name)[0] in READABLE)
        offer = f"; in it are {listed(inside)}" if inside else ""
        raise DataError(f"{named(str(path))} is a folder; name a file with one of {_readable()}{offer}")
    if not path.exists():
        raise DataError(_missing(path))
    kind, zipped = _kind(path.name)
    if kind not in READABLE or (zipped and kind == ".parquet"):
        raise DataError(f"{named(str(path))} has no suffix that is known; readable are {_readable()}")
    return DataFile(path, kind, zipped)


def standard_input() -> Rows:
    """JSON Lines from standard input."""
    return json_lines(decoded(sys.stdin.buffer.read()))


def _kind(name: str) -> tuple[str, bool]:
    """The suffix that says the format, and whether `.gz` stands behind it."""
    lower = name.lower()
    return PurePath(lower.removesuffix(".gz")).suffix, lower.endswith(".gz")


def _readable() -> str:
    return f"{', '.join(READABLE)} (all but the last also as .gz)"


def _missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{named(str(path))} does not exist, nor does its folder"
    near = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
    hint = f"; did you mean {' or '.join(map(named, near))}?" if near else ""
    return f"{named(str(path))} does not exist{hint}"

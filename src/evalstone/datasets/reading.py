"""How data files are read, as far as a caller says it."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.declarations import check_argument
from evalstone._core.files import check_encoding
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.files import DataFile, find_all
from evalstone.datasets.rows import RowReader
from evalstone.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a caller says of how data files are read, as for `load`. Values that say the same are equal.

    Raises ConfigError for a mapping of an unknown field, a separator of another field than the context, or an unknown
    encoding.
    """

    map: ColumnMapping | None = None
    split: Mapping[str, str] | None = None
    encoding: str | None = field(default=None, compare=False)
    sheet: str | None = None
    codec: str | None = field(default=None, init=False, repr=False)
    """The name of the encoding that all its other names stand for."""

    def __post_init__(self) -> None:
        RowReader(self.map, split=self.split)  # checks them
        check_encoding(self.encoding)
        check_argument("sheet", self.sheet, str | None)
        mapping = {name: _plain(columns) for name, columns in (self.map or {}).items()}
        object.__setattr__(self, "map", mapping or None)
        object.__setattr__(self, "split", dict(self.split or {}) or None)
        object.__setattr__(self, "codec", self.encoding and codecs.lookup(self.encoding).name)

    def files(self, source: str) -> list[DataFile]:
        """The files of a source, as `find_all` has them."""
        return find_all(source, self.encoding, self.sheet)

    def reader(self, *, text_cells: bool = False, problems: list[DataError] | None = None) -> RowReader:
        """A new reader of rows. text_cells and problems: as for `RowReader`."""
        return RowReader(self.map, text_cells=text_cells, split=self.split, problems=problems)

    def options(self) -> list[str]:
        """The options of a command that reads the data in this way."""
        mapped = [
            (name, [columns] if isinstance(columns, str) else columns) for name, columns in (self.map or {}).items()
        ]
        found = [f"--map {shlex.quote(f'{name}={column}')}" for name, columns in mapped for column in columns]
        found += [f"--split {shlex.quote(f'{name}={text}')}" for name, text in (self.split or {}).items()]
        found += [f"--encoding {shlex.quote(self.encoding)}"] if self.encoding is not None else []
        return found + ([f"--sheet {shlex.quote(self.sheet)}"] if self.sheet is not None else [])

    def to_dict(self) -> dict[str, Any]:
        """The value as data."""
        return {"map": self.map, "split": self.split, "encoding": self.codec, "sheet": self.sheet}


AS_FOUND = Reading()
"""Files whose columns, encoding and sheet are the known or only ones."""


def _plain(columns: Any) -> str | tuple[str, ...]:
    """Columns of a field: one as a text, and several in a tuple."""
    listed = (columns,) if isinstance(columns, str) else tuple(columns)
    return listed[0] if len(listed) == 1 else listed or ""

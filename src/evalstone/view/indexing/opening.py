"""Which kind of index a file is."""

from __future__ import annotations

from pathlib import Path

from evalstone.view.indexing.column_index import ColumnIndex
from evalstone.view.indexing.index import Index, connected
from evalstone.view.indexing.table_index import TableIndex


def open_index(file: Path) -> Index:
    """The index in a file, open for reading.

    Raises:
        OutdatedIndex: It isn't there, is of another version, or is damaged.
    """
    connection, about = connected(file)
    return (ColumnIndex if "columns" in about else TableIndex)(file, connection, about)

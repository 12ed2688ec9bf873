"""How the files that pages read are written: as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
import sqlite3
import zlib
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from evalstone.errors import StorageError
from evalstone.view.indexing.column_store import DamagedColumns


@contextmanager
def written(file: Path, what: str) -> Generator[sqlite3.Connection]:
    """A connection to a new file, in a transaction. The file has another name until it is complete.

    Args:
        file: Where it goes.
        what: What it is, for an error.

    Raises:
        StorageError: The disk is full, or the folder that the folder of the file is in is gone.
    """
    # Another thread, process or machine may write the same file.
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}.draft")
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)  # anybody may delete it, at any time
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA cache_size=-64000")
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        draft.replace(file)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{what} {file} can't be written: {error}") from None
    finally:
        draft.unlink(missing_ok=True)


def refuse_damage(error: BaseException | None, *files: Path) -> None:
    """Delete files in which damage was found, so that they are made again.

    Args:
        error: What went wrong while they were read.
        files: The files.

    Raises:
        StorageError: That is damage.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, zlib.error | DamagedColumns) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        for file in files:
            file.unlink(missing_ok=True)
        raise StorageError("What this page is made from was damaged. Load the page again: it is made anew.") from None

"""Parquet files, read with pyarrow."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from evalstone.datasets.formats import Rows
from evalstone.datasets.wording import escaped
from evalstone.errors import DataError, MissingDependency


def parquet_rows(path: Path) -> Rows:
    """The rows of a Parquet file. Raises MissingDependency without pyarrow, DataError when the file is none."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"not a Parquet file that pyarrow can read ({escaped(error)})") from None

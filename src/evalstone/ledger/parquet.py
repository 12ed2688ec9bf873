"""A ledger's answers, or a run's records, as a Parquet file, written with pyarrow."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalstone.errors import ConfigError, MissingDependency
from evalstone.ledger import tables
from evalstone.ledger.copy import chunks

_ANSWER = {name: tables.answers.c[name].type.python_type for name in tables.columns(tables.answers)}
_RECORD: Mapping[str, type] = {
    "sample": str,
    "scorer": str,
    "outcome": str,
    "value": float,
    "scale": float,
    "reason": str,
    "seconds": float,
    "cost": float,
    "evidence": str,
    "steps": str,
    "error": str,
}
COLUMNS: Mapping[str, Mapping[str, type]] = {"answers": _ANSWER, "records": _RECORD}
_OBJECTS = ("evidence", "steps", "error")


def write_parquet(path: str | Path, what: str, lines: Iterable[Mapping[str, Any]]) -> int:
    """Write lines of answers or of records; how many. What is nested becomes JSON text.

    The file appears whole or not at all. Raises MissingDependency without pyarrow, and ConfigError when the file cannot
    be written.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    columns = COLUMNS[what]
    types: Mapping[type, Any] = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
    target = Path(path)
    beside = target.with_name(f".{target.name}.tmp")
    count = 0
    try:
        with parquet.ParquetWriter(beside, schema, compression="zstd") as writer:
            for chunk in chunks(lines, 5000):
                rows = [{name: _cell(name, line[name]) for name in columns} for line in chunk]
                writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
                count += len(rows)
        beside.replace(target)
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
    return count


def _cell(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _OBJECTS and value is not None else value

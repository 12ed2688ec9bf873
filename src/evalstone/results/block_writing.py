"""The writing of records in blocks: Parquet files of many samples each, which `record_blocks` reads."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

from evalstone._core.storage import Location
from evalstone.errors import MissingDependency
from evalstone.results.record_blocks import BLOCKS, CALLS, MOSTLY_NULL, RecordBlocks, block_name
from evalstone.results.record_tables import Keep, record_tables
from evalstone.results.summary import ScorerInfo
from evalstone.types import Record

ROWS_PER_GROUP = {BLOCKS: 16_384, CALLS: 4096}
_PATTERN = "*-??????.parquet"
ROWS_PER_BLOCK = 65_536


def write_table(table: Any, file: IO[bytes], folder: str = BLOCKS) -> None:
    """Write a table of a block as Parquet, with checksums.

    Args:
        table: A table as `record_tables` returns it.
        file: Where it is written.
        folder: Whether it is one of `BLOCKS` or of `CALLS`.
    """
    _parquet().write_table(
        table,
        file,
        compression="zstd",
        row_group_size=ROWS_PER_GROUP[folder],
        write_page_checksum=True,
        write_statistics=[*MOSTLY_NULL] if folder == BLOCKS else False,
    )


def write_blocks(
    records: Sequence[Record], scorers: Sequence[ScorerInfo], plan: str, folder: Location, keep: Keep
) -> int:
    """Write the records of a run in blocks, and return the number of these. Blocks of another run are removed.

    Args:
        records: The records, in the order of samples and scorers.
        scorers: The scorers of the run.
        plan: The ID of the run.
        folder: The results folder.
        keep: How much is kept of each record.

    Raises:
        ConfigError: The folder can't be written, or the records don't have what is to be kept.
        MissingDependency: pyarrow is not installed.
        WriteError: The disk is full.
    """
    number, written = 0, set[str]()
    for number, (table, calls) in enumerate(_tables(records, scorers, plan, keep), 1):
        name = block_name(plan, number - 1)
        for kind, content in ((BLOCKS, table), (CALLS, calls)):
            if content is not None:
                write = functools.partial(write_table, content, folder=kind)
                (folder / kind / name).write(write)
                written.add(f"{kind}/{name}")
    remove_blocks(folder, written)
    return number


def remove_blocks(folder: Location, besides: Collection[str] = ()) -> None:
    """Remove the blocks in a results folder, besides some."""
    for kind in (BLOCKS, CALLS):
        for file in (folder / kind).files(_PATTERN):
            if f"{kind}/{file.name}" not in besides:
                file.remove()


def _tables(
    records: Sequence[Record], scorers: Sequence[ScorerInfo], plan: str, keep: Keep
) -> Iterator[tuple[Any, Any | None]]:
    if isinstance(records, RecordBlocks):  # by block, as one may be written over itself
        yield from records.tables(plan, keep)
        return
    step = max(1, len(scorers))
    rest = iter(records)
    number = 0
    while some := [*itertools.islice(rest, ROWS_PER_BLOCK // step * step)]:
        yield record_tables(some, scorers, keep, plan=plan, block=number)
        number += 1


def _parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None

"""Records that aren't all in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from evalstone._core.sequences import StoredSequence
from evalstone.results.columns import Columns
from evalstone.results.summary import ScorerInfo
from evalstone.types import Record

Missing: TypeAlias = tuple[str, str, str]


class StoredRecords(StoredSequence[Record]):
    """The records of a run, in their order, read from where they are stored. What means, tests and rankings need of
    them is in `columns`."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The scores of the records."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """The records as lines of `records.jsonl`, without line breaks."""

    @abstractmethod
    def text_at(self, cell: int, /) -> str:
        """The line of one record, by its place among them."""

    def missing(self) -> Iterator[Missing]:
        """Of each record without a score, the scorer's signature, the sample's key, and the reason, in order."""
        return _missing(self.columns, self)


def missing_in(columns: Columns, records: Sequence[Record]) -> Iterator[Missing]:
    """`StoredRecords.missing` of any records. columns: theirs."""
    return records.missing() if isinstance(records, StoredRecords) else _missing(columns, records)


def _missing(columns: Columns, records: Sequence[Record]) -> Iterator[Missing]:
    for entry in columns.entries():
        if entry.value is None:
            yield entry.signature, entry.key, records[entry.place].outcome.reason


def columns_of(scorers: Iterable[ScorerInfo], records: Iterable[Record]) -> Columns:
    """The columns of a run's records."""
    if isinstance(records, StoredRecords):
        return records.columns
    return Columns.of([info.signature for info in scorers], records)

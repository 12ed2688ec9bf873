"""Records that aren't all in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from evalstone.results.columns import Columns
from evalstone.results.summary import ScorerInfo
from evalstone.types import Record


class StoredRecords(Sequence[Record]):
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


def columns_of(scorers: Iterable[ScorerInfo], records: Iterable[Record]) -> Columns:
    """The columns of a run's records."""
    if isinstance(records, StoredRecords):
        return records.columns
    return Columns.of([info.signature for info in scorers], records)

"""Records that aren't all in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from evalstone._core.sequences import StoredSequence
from evalstone.results.columns import Columns
from evalstone.results.summary import ScorerInfo
from evalstone.types import OUTCOME_NAMES, Record, Score

Missing: TypeAlias = tuple[str, str, str]


class Facts(NamedTuple):
    """A record without its evidence and judge calls."""

    sample_id: str
    scorer: str
    outcome: str
    """Its name in files."""
    value: float | None
    scale: float | None
    reason: str
    group: str | None
    seconds: float
    cost: float | None
    signature: str
    weight: float | None
    trial: int | None

    @classmethod
    def of(cls, record: Record) -> Facts:
        """Those of a record."""
        outcome = record.outcome
        return cls(
            record.sample_id,
            record.scorer,
            OUTCOME_NAMES[type(outcome)],
            record.value,
            outcome.scale if isinstance(outcome, Score) else None,
            outcome.reason,
            record.group,
            record.seconds,
            record.cost,
            record.signature,
            record.weight,
            record.trial,
        )


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

    def facts(self, place: int) -> Facts:
        """What one record has besides evidence and judge calls, by its place among them."""
        return Facts.of(self[place])

    def missing(self) -> Iterator[Missing]:
        """Of each record without a score, the scorer's signature, the sample's key, and the reason, in order."""
        return _missing(self.columns, self)


def facts_in(records: Sequence[Record], place: int) -> Facts:
    """`StoredRecords.facts` of any records."""
    return records.facts(place) if isinstance(records, StoredRecords) else Facts.of(records[place])


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

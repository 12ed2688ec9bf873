"""`ScoreBatches`: the function that engines without support of their own, such as Spark and Daft, map over batches."""

from __future__ import annotations

import secrets
import threading
import weakref
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from evalstone._core import sync
from evalstone.datasets import load
from evalstone.datasets.columns import ColumnMapping
from evalstone.results.record_tables import record_tables, with_plain_texts
from evalstone.run.plan import scorer_info
from evalstone.scale.scoring import OpenScoring, Scoring

ArrowTable: TypeAlias = Any
"""A pyarrow Table or RecordBatch."""


@dataclass(frozen=True, kw_only=True)
class ScoreBatches(Scoring):
    """Scores batches of samples: a function from a pyarrow Table of samples to one of records, which can be pickled.

    Each process opens its own connections to judges and ledger at its first batch, and keeps them until it calls
    `close`, leaves the value's `with` block, drops the value, or ends. Columns are read as those of a data file, and
    records have the columns of docs/results.md. Give samples IDs: equal samples without one are only told apart within
    their batch.

        with ScoreBatches(scorers=["exact_match", "rouge_l"]) as score:
            records = score(pyarrow.table({"id": ["q1"], "output": ["Paris"], "reference": ["Paris"]}))

    Raises:
        ConfigError: A setting is invalid; when called, a judge has no key, is gone, or refuses it.
        DataError: When called, a row is invalid.
        MissingDependency: pyarrow isn't installed.
    """

    map: ColumnMapping | None = None
    """Sample field to column name."""
    keep: Literal["evidence", "scores"] = "scores"
    """Whether records have evidence and reasons of scores, too. Judge calls aren't kept."""
    scope: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)
    """What `budget` and a judge's `max_requests` are for, with a ledger on PostgreSQL: together, the processes that
    have a value with the same scope use no more. By default, these are the copies of one value. Name a job here, so
    that what it spent counts when it is run again."""

    def __call__(self, batch: ArrowTable) -> ArrowTable:
        opened = self._opened()
        samples = load(batch, map=self.map).samples if batch.num_rows else ()
        scored = opened.score(tuple(samples))
        infos = [scorer_info(scorer) for scorer in opened.plan.scorers]
        table, _ = record_tables(scored.records, infos, self.keep)
        return with_plain_texts(table)

    @property
    def schema(self) -> Any:
        """The pyarrow schema of the records."""
        table, _ = record_tables((), (), self.keep)
        return with_plain_texts(table).schema

    def _opened(self) -> OpenScoring:
        if (known := self.__dict__.get("_open")) is None:
            known = self.__dict__["_open"] = OpenScoring(replace(self), f"batches {self.scope}")
            # A copy was opened, so this doesn't keep the value alive.
            self.__dict__["_close"] = weakref.finalize(self, _close, known)
        return known

    def close(self) -> None:
        """Close the connections, and give back what isn't used of shared limits and the budget. Another batch opens
        them again."""
        self.__dict__.pop("_open", None)
        self.__dict__.pop("_close", lambda: None)()

    def __enter__(self) -> ScoreBatches:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _close(opened: OpenScoring) -> None:
    """Close what a value had opened that is gone. Garbage may be collected on evalstone's own loop, where waiting would
    never end."""
    if sync.is_own_thread():
        threading.Thread(target=opened.close, name="evalstone-close").start()
    else:
        opened.close()

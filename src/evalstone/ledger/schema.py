# ruff: noqa: S608 - statements are put together from our own names
"""The ledger's tables, and the statements that follow from them.

The tables have one version until the first release. A later version adds the statements that lead to it from the one
before, and runs them when it opens an older ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Any

from evalstone.ledger.base import USAGE_COLUMNS

SCHEMA_VERSION = "5"

ColumnType = type | UnionType
"""What a column has: `str`, `int`, `float`, `bool` or `bytes`; `str | None` and so on if it may be empty."""
_TYPES: Mapping[type, str] = {
    str: "TEXT",
    int: "BIGINT",
    float: "DOUBLE PRECISION",
    bool: "BOOLEAN",
    bytes: "{bytes}",
}


@dataclass(frozen=True, eq=False)
class Table:
    """A table."""

    name: str
    columns: Mapping[str, ColumnType]
    """The columns in order, without `position`."""
    key: tuple[str, ...]
    """The columns that identify a row."""
    positioned: bool = False
    """Whether the rows have a `position`: their number in the order of writing."""
    indexes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further indexes, by name: their columns, with the condition of a partial one."""
    growing: str = ""
    """A column that only grows: an insert replaces a row that has less in it, and no other."""
    changing: bool = False
    """Whether rows come and go all the time, so that a second tree for the key would double the work."""

    @cached_property
    def types(self) -> Mapping[str, tuple[type, bool]]:
        """The type of each column, and whether it may be empty."""
        return {
            name: (next(each for each in kind.__args__ if each is not type(None)), True)
            if isinstance(kind, UnionType)
            else (kind, False)
            for name, kind in self.columns.items()
        }

    @cached_property
    def names(self) -> str:
        """The columns as in a statement."""
        return ", ".join(self.columns)

    @cached_property
    def order(self) -> str:
        """What its rows are ordered by: the order of writing, or the key."""
        return "position" if self.positioned else ", ".join(self.key)

    @cached_property
    def insert(self) -> str:
        """Inserts a row, unless its key is there."""
        if self.growing:
            return f"{self.upsert} WHERE excluded.{self.growing} > {self.name}.{self.growing}"
        return self._insert("DO NOTHING")

    @cached_property
    def upsert(self) -> str:
        """Inserts a row, or replaces the one with its key."""
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.columns if name not in self.key)
        return self._insert(f"({', '.join(self.key)}) DO UPDATE SET {changed}")

    def _insert(self, conflict: str) -> str:
        values = ", ".join(f":{name}" for name in self.columns)
        return f"INSERT INTO {self.name} ({self.names}) VALUES ({values}) ON CONFLICT {conflict}"

    def row(self, values: Iterable[Any]) -> dict[str, Any]:
        """A row as it is selected by `names`."""
        row = dict(zip(self.columns, values, strict=True))
        for name in self._flags:
            row[name] = None if row[name] is None else bool(row[name])  # a number in SQLite
        return row

    @cached_property
    def _flags(self) -> Sequence[str]:
        return [name for name, (kind, _) in self.types.items() if kind is bool]

    def created(self) -> list[str]:
        """The statements that create the table and its indexes, with `{serial}`, `{bytes}` and `{changing}` where
        databases differ."""
        columns = ["position {serial}"] if self.positioned else []
        for name, (kind, nullable) in self.types.items():
            columns.append(f"{name} {_TYPES[kind]}{'' if nullable else ' NOT NULL'}")
        unique = "UNIQUE" if self.positioned else "PRIMARY KEY"
        table = f"CREATE TABLE {self.name} ({', '.join(columns)}, {unique} ({', '.join(self.key)}))"
        return [
            table + ("{changing}" if self.changing else ""),
            *(f"CREATE INDEX {name} ON {self.name} {indexed}" for name, indexed in self.indexes.items()),
        ]


def _columns(kind: ColumnType, *names: str) -> dict[str, ColumnType]:
    return dict.fromkeys(names, kind)


_ANSWER_KEY: Mapping[str, ColumnType] = {"question": str, "judge": str, "repeat_index": int}

ledger_version = Table("ledger_version", {"version_num": str}, key=("version_num",))
datasets = Table(
    "datasets",
    {"version": str, "name": str, "first_seen": str, "samples": int},
    key=("version",),
)
blocks = Table(
    "blocks",
    # `body` has the samples as compressed JSON, `hash` is that of the JSON.
    {"hash": str, "samples": int, "body": bytes},
    key=("hash",),
)
items = Table(
    "items",
    # A dataset's blocks; `place` is that of their first sample.
    {"dataset": str, "place": int, "block": str},
    key=("dataset", "place"),
)
runs = Table(
    "runs",
    {
        **_columns(str, "id", "plan", "started"),
        **_columns(str | None, "finished", "dataset"),
        **_columns(float, "cost", "reserved"),
        "unpriced": int,
        # The last payment added to the cost, so that repeating its transaction adds nothing.
        "payment": str | None,
        "metadata": str,
    },
    key=("id",),
    positioned=True,
    indexes={"runs_plan": "(plan)"},
)
answers = Table(
    "answers",
    {
        **_ANSWER_KEY,
        **_columns(str, "kind", "reply", "refused_settings", "run"),
        **_columns(int, *USAGE_COLUMNS),
        **_columns(float, "seconds", "written"),
        **_columns(float | None, "cost", "probability"),
        "alternatives": str | None,
    },
    key=tuple(_ANSWER_KEY),
)
records = Table(
    "records",
    # `cell` is the number of the sample, trial and scorer in the run. Keys in the order of writing keep a file small
    # and inserts fast: with hashes, an insert takes six times as long. As a table without row IDs, 200,000 records of
    # 1.5 kB take 936 MB instead of 419 and 2.7 times as long, and those of 300 bytes are no smaller: a row of more than
    # a quarter of a page gets pages of its own.
    {"run": str, "cell": int, "signature": str, "body": str},
    key=("run", "cell"),
    positioned=True,
)
leases = Table("leases", {**_ANSWER_KEY, "owner": str, "expires": float}, key=tuple(_ANSWER_KEY), changing=True)
batches = Table(
    "batches",
    {
        **_columns(str, "id", "api", "judge", "run", "metadata", "created"),
        "questions": int,
        "cost": float | None,
        **_columns(str | None, "remote", "collected", "ended"),
    },
    key=("id",),
    indexes={"batches_judge": "(judge)"},
)
batch_questions = Table(
    "batch_questions",
    {
        **_columns(str, "question", "judge", "batch"),
        "waiting": bool,
        **_columns(int, "attempts", *USAGE_COLUMNS),
        "cost": float | None,
        **_columns(str | None, "reply", "error", "body"),
    },
    key=("question", "judge"),
    indexes={"batch_questions_batch": "(batch)"},
)
samples = Table("samples", {"hash": str, "body": str}, key=("hash",))
"""The samples of live scores."""
live_scores = Table(
    "live_scores",
    {
        **_columns(str, "id", "stream", "source", "signature", "owner", "worker", "state"),
        **_columns(str | None, "entity", "trace", "span", "response", "sample"),
        "submitted": float,
        **_columns(int, "hour", "takeovers"),
        **_columns(float | None, "value", "scale", "finished", "cost"),
        "kept_reasoning": bool | None,
        "body": str | None,
    },
    key=("id",),
    positioned=True,
    indexes={
        **{f"live_scores_{name}": f"({name}, submitted)" for name in ("stream", "signature", "entity")},
        # All that counts and means are made from, so that no row has to be read.
        "live_scores_tally": "(stream, signature, hour, state, source, entity, owner, scale, value)",
        "live_scores_submitted": "(submitted)",
        "live_scores_trace": "(trace)",
        "live_scores_pending": "(stream, submitted) WHERE state = 'pending'",
        "live_scores_paid": "(stream, finished) WHERE cost > 0",
    },
)
live_counts = Table(
    "live_counts",
    {
        **_columns(str, "stream", "signature", "owner"),
        **_columns(int, "hour", "seen", "filtered", "eligible", "declined", "dropped", "accepted"),
    },
    key=("stream", "signature", "owner", "hour"),
    growing="seen",
)
labels = Table(
    "labels",
    # What people say of a sample. `id` is a hash of the run, the sample, the scorer and the annotator, because IDs of
    # samples may be longer than an index takes.
    {
        **_columns(str, "id", "run", "sample"),
        "trial": int | None,
        **_columns(str, "signature", "annotator"),
        "value": float | None,
        "note": str,
        "blind": bool,
        "chosen": str,
        "stratum": int | None,
        "probability": float | None,
        "written": float,
    },
    key=("id",),
    indexes={"labels_run": "(run)"},
)
modes = Table("modes", {**_columns(str, "id", "dataset", "name", "definition"), "written": float}, key=("id",))
"""Failure modes."""
mode_labels = Table(
    "mode_labels",
    {
        **_columns(str, "id", "mode", "run", "sample"),
        "trial": int | None,
        "annotator": str,
        "written": float,
    },
    key=("id",),
    indexes={"mode_labels_run": "(run)", "mode_labels_mode": "(mode)"},
)
"""The samples that have a failure mode. `id` is a hash of the mode, the run and the sample."""
pins = Table("pins", {**_columns(str, "dataset", "run"), "written": float}, key=("dataset",))
"""The baseline of each dataset, by its name."""
shared_limits = Table(
    "shared_limits",
    # What processes share of a limit, by a hash of what it is for. `booked` is the end of its schedule so far. Requests
    # may start after `closed_until`. The request sent at `cut_by` has cut the concurrency, at `cut`. `seen` is when one
    # has last used it. All are seconds since 1970.
    {"name": str, **_columns(float, "booked", "closed_until", "cut", "cut_by", "seen")},
    key=("name",),
    changing=True,
)
limit_shares = Table(
    "limit_shares",
    # What a process holds of a limit: slots until it expires; an amount, of which it has used a part, for good.
    {**_columns(str, "name", "member"), "slots": int, "waiting": bool, **_columns(float, "amount", "used", "expires")},
    key=("name", "member"),
    changing=True,
)

TABLES = (
    ledger_version,
    datasets,
    blocks,
    items,
    runs,
    answers,
    records,
    leases,
    batches,
    batch_questions,
    samples,
    live_scores,
    live_counts,
    labels,
    modes,
    mode_labels,
    pins,
    shared_limits,
    limit_shares,
)
ALL_COLUMNS = {
    (table.name, name) for table in TABLES for name in (*(("position",) if table.positioned else ()), *table.columns)
}

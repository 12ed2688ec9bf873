"""What a ledger holds, whether it is sound, and letting go of what is no longer wanted."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone.errors import LedgerError
from evalstone.ledger import tables
from evalstone.ledger.copy import BROKEN, KINDS, checked, chunks, stream
from evalstone.ledger.dialects import dialect_of, outside
from evalstone.ledger.schema import version_of
from evalstone.ledger.store import Ledger
from evalstone.ledger.tables import LAYOUT, answers, leases, records, runs

SHOWN = 20
YOUNG = 3600
"""Seconds for which an answer is never unused: the record that it is for may not be written yet."""

_FINGERPRINT = re.compile(r'"fingerprint":\s*"([0-9a-f]{32})"')


@dataclass(frozen=True)
class JudgeLine:
    """What is kept of one judge. cost: US dollars, of those answers whose price is known."""

    judge: str
    answers: int
    unpriced: int
    tokens: int
    cost: float


@dataclass(frozen=True)
class Info:
    """What a ledger holds. size: bytes. counts: rows by kind."""

    place: str
    layout: str
    size: int
    counts: dict[str, int]
    unfinished: int
    under_way: int
    open_batches: int
    judges: tuple[JudgeLine, ...]


def info(ledger: Ledger) -> Info:
    """Look a ledger over."""
    tokens = sa.func.sum(answers.c.input_tokens + answers.c.output_tokens)
    priced = sa.func.count(answers.c.cost)
    by_judge = sa.select(
        answers.c.judge,
        sa.func.count(),
        sa.func.count() - priced,
        tokens,
        sa.func.coalesce(sa.func.sum(answers.c.cost), 0.0),
    )
    with ledger.transaction() as connection:
        counts = {kind: connection.scalar(sa.select(sa.func.count()).select_from(t)) or 0 for kind, t in KINDS.items()}
        rows = connection.execute(by_judge.group_by(answers.c.judge).order_by(answers.c.judge))
        judges = tuple(JudgeLine(judge, n, u, int(t), float(cost)) for judge, n, u, t, cost in rows)
        unfinished = connection.scalar(sa.select(sa.func.count()).where(runs.c.finished.is_(None))) or 0
        under_way = connection.scalar(sa.select(sa.func.count()).where(leases.c.judge == "")) or 0
        waited_for = sa.select(sa.func.count()).where(tables.batches.c.collected.is_(None))
        open_batches = connection.scalar(waited_for) or 0
        size = ledger.dialect.size(connection)
    return Info(ledger.place, LAYOUT, size, counts, unfinished, under_way, open_batches, judges)


@dataclass(frozen=True)
class Pruning:
    """What is to go. older: runs that were started longer ago. unfinished: runs that have not ended and that nobody
    works on. unused: answers that stand behind no record that stays."""

    older: timedelta | None = None
    unfinished: bool = False
    unused: bool = False


@dataclass(frozen=True)
class Pruned:
    """What goes, or went: how many runs, records and answers; and batches of those runs that were still open, whose
    answers are lost."""

    runs: int
    records: int
    answers: int
    batches: int = 0


def prune(ledger: Ledger, pruning: Pruning, *, delete: bool) -> Pruned:
    """Delete what is named, all or nothing; without `delete` only count it."""
    with ledger.transaction(writing=True) as connection:
        ledger.leases.bury(connection)
        gone = _runs(connection, pruning)
        lost = waiting = 0
        for chunk in chunks(gone, 200):
            chosen = records.c.run.in_(chunk)
            lost += connection.scalar(sa.select(sa.func.count()).where(chosen)) or 0
            connection.execute(sa.delete(records).where(chosen))
            waiting += _let_go(connection, chunk)
            connection.execute(sa.delete(runs).where(runs.c.id.in_(chunk)))
        unused = list(_unused(connection)) if pruning.unused else []
        if unused:
            query = sa.delete(answers).where(tables.all_of(answers, *tables.KEYS[answers]))
            connection.execute(query, unused)
        if not delete:
            connection.rollback()
    return Pruned(len(gone), lost, len(unused), waiting)


def _let_go(connection: sa.Connection, gone: Sequence[str]) -> int:
    """Delete the batches of some runs with their questions; how many were open."""
    of_runs = tables.batches.c.run.in_(gone)
    within = sa.select(tables.batches.c.id).where(of_runs)
    open_ = sa.select(sa.func.count()).where(of_runs, tables.batches.c.collected.is_(None))
    count = connection.scalar(open_) or 0
    connection.execute(sa.delete(tables.batch_questions).where(tables.batch_questions.c.batch.in_(within)))
    connection.execute(sa.delete(tables.batches).where(of_runs))
    return count


def _runs(connection: sa.Connection, pruning: Pruning) -> list[str]:
    named: list[sa.ColumnElement[bool]] = []
    if pruning.older is not None:
        named.append(runs.c.started < (datetime.now(UTC) - pruning.older).isoformat(timespec="seconds"))
    if pruning.unfinished:
        named.append(runs.c.finished.is_(None))
    if not named:
        return []
    under_way = sa.select(leases.c.question).where(leases.c.judge == "")
    query = sa.select(runs.c.id).where(sa.or_(*named), runs.c.id.not_in(under_way))
    return list(connection.scalars(query.order_by(runs.c.position)))


def _unused(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    used: set[str] = set()
    for row in stream(connection, sa.select(records.c.body), records):
        used.update(_FINGERPRINT.findall(row["body"]))
    query = sa.select(answers.c.question, answers.c.judge, answers.c.number)
    for row in stream(connection, query.where(answers.c.written < time.time() - YOUNG), answers):
        if row["question"] not in used:
            yield {f"b_{name}": value for name, value in row.items()}


@dataclass(frozen=True)
class Verdict:
    """Whether a ledger is sound. damage: what the database finds wrong with its file. unreadable: rows that do not
    hold what they should. rows: how many were looked at."""

    layout: str
    damage: tuple[str, ...]
    unreadable: tuple[str, ...]
    rows: int

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not (self.damage or self.unreadable)


def verify(url: str | Path) -> Verdict:
    """Check a ledger without changing it. Raises LedgerError for a database that is no ledger."""
    dialect = dialect_of(url)
    engine = dialect.engine()
    found: list[str] = []
    layout = "unknown"
    try:
        with engine.connect() as connection, outside(connection):
            found = dialect.check(connection)
        with engine.connect() as connection:
            layout = version_of(connection, dialect)
    except sqlalchemy.exc.DBAPIError as error:
        found.append(str(error.orig))
    finally:
        engine.dispose()
    if found or layout != LAYOUT:
        return Verdict(layout, tuple(found), (), 0)
    with Ledger(url) as ledger:
        return _rows_of(ledger)


def _rows_of(ledger: Ledger) -> Verdict:
    count, wrong = 0, list[str]()
    damage: tuple[str, ...] = ()
    try:
        with ledger.transaction() as connection:
            for kind, table in KINDS.items():
                for row in stream(connection, sa.select(table), table):
                    count += 1
                    if (told := _wrong(table, row)) and len(wrong) < SHOWN:
                        wrong.append(f"{kind} {_name(table, row)}: {told}")
    except LedgerError as error:
        damage = (str(error),)
    return Verdict(LAYOUT, damage, tuple(wrong), count)


def _wrong(table: sa.Table, row: dict[str, Any]) -> str:
    """What is wrong with a row; empty when nothing is."""
    try:
        made = checked(table, row)
        json.loads(made.get("alternatives") or "{}")
    except BROKEN as error:
        return f"{type(error).__name__}: {error}"
    return "its key is not that of its sample and scorer" if made.get("cell") != row.get("cell") else ""


def _name(table: sa.Table, row: dict[str, Any]) -> str:
    return " ".join(str(row[name]) for name in tables.KEYS[table])

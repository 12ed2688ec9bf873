"""Ledger maintenance: summarize what a ledger contains, delete old rows, check it for damage."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import sqlalchemy.exc

from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.guards import is_object
from evalstone.ledger.base import HOUR, TARGET, RunRow, chunks, target_of
from evalstone.ledger.copy import INVALID_ROW, KINDS, stream, validated
from evalstone.ledger.schema import (
    KEYS,
    SCHEMA_VERSION,
    answers,
    batch_questions,
    batches,
    datasets,
    items,
    leases,
    live_counts,
    live_scores,
    records,
    runs,
    samples,
)
from evalstone.ledger.store import Ledger
from evalstone.questions.simulated_user import CheckUser, SayNext
from evalstone.report.shown import Shown

if TYPE_CHECKING:
    from evalstone.report.view import View

MAX_REPORTED = 20
LATEST = 10
"""The number of latest runs in a summary."""
MIN_AGE = 3600
"""The age in seconds at which an answer can count as unused; the record of a newer one may not be written yet."""

_FINGERPRINT = re.compile(r'"fingerprint":\s*"([0-9a-f]{32})"')
_IN_PROGRESS = sa.select(leases.c.question).where(leases.c.judge == "")
"""The runs that a process is working on."""


@dataclass(frozen=True)
class Totals:
    """The stored answers of one judge or target. `cost` (US dollars) covers the answers whose price is known."""

    name: str
    is_target: bool
    answers: int
    unpriced: int
    tokens: int
    cost: float


@dataclass(frozen=True)
class LedgerInfo(Shown):
    """What a ledger contains. `size` is in bytes; `counts` are rows by kind."""

    location: str
    schema_version: str
    size: int
    counts: dict[str, int]
    unfinished: int
    in_progress: int
    open_batches: int
    answered_by: tuple[Totals, ...]
    latest: tuple[RunRow, ...]
    """The latest runs, latest first."""

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The tables that `evalstone ledger info` shows."""
        from evalstone.ledger.views import info_view  # noqa: PLC0415 - only showing it needs it

        return info_view(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        data = asdict(replace(self, latest=()))
        times = ({"run": row.id, "started": row.started, "finished": row.finished} for row in self.latest)
        names = ({name: row.metadata.get(name) for name in ("name", "dataset", "judge")} for row in self.latest)
        return {**data, "latest": [time | name for time, name in zip(times, names, strict=True)]}


def info(ledger: Ledger) -> LedgerInfo:
    """Summarize a ledger."""
    latest = tuple(ledger.runs(LATEST))
    count, priced = sa.func.count(), sa.func.count(answers.c.cost)
    tokens = sa.func.sum(answers.c.input_tokens + answers.c.output_tokens)
    cost = sa.func.coalesce(sa.func.sum(answers.c.cost), 0.0)
    totals = sa.select(answers.c.judge, answers.c.kind, count, count - priced, tokens, cost)
    with ledger.transaction() as connection:
        rows = connection.execute(totals.group_by(answers.c.judge, answers.c.kind))
        return LedgerInfo(
            location=ledger.location,
            schema_version=SCHEMA_VERSION,
            answered_by=_totals(rows),
            counts={kind: _count(connection, sa.select(table)) for kind, table in KINDS.items()},
            unfinished=_count(connection, sa.select(runs).where(runs.c.finished.is_(None))),
            in_progress=_count(connection, _IN_PROGRESS),
            open_batches=_count(connection, sa.select(batches).where(batches.c.collected.is_(None))),
            size=ledger.dialect.size(connection),
            latest=latest,
        )


def _totals(rows: Iterable[Any]) -> tuple[Totals, ...]:
    """Totals by judge and target. A target's answers are added up over all its runs."""
    totals: dict[tuple[bool, str], Totals] = {}
    for judge, kind, number, unpriced, tokens, cost in rows:
        key = kind == TARGET, target_of(judge) if kind == TARGET else judge
        so_far = totals.get(key, Totals(key[1], key[0], 0, 0, 0, 0.0))
        totals[key] = replace(
            so_far,
            answers=so_far.answers + number,
            unpriced=so_far.unpriced + unpriced,
            tokens=so_far.tokens + int(tokens),
            cost=so_far.cost + float(cost),
        )
    return tuple(totals[key] for key in sorted(totals))


def _count(connection: sa.Connection, query: sa.Select[Any]) -> int:
    return connection.scalar(query.with_only_columns(sa.func.count(), maintain_column_froms=True)) or 0


@dataclass(frozen=True)
class PruneCounts:
    """The numbers of deleted rows. `batches` are open batches of deleted runs, whose answers are lost. `live_scores`
    are scores of live traffic."""

    runs: int
    records: int
    samples: int
    answers: int
    batches: int = 0
    live_scores: int = 0


def prune(
    ledger: Ledger,
    *,
    older_than: timedelta | None = None,
    unfinished: bool = False,
    unused_answers: bool = False,
    delete: bool,
) -> PruneCounts:
    """Delete runs, live scores and answers, and samples that nothing uses, in one transaction.

    Runs that a process is working on are kept.

    Args:
        ledger: The ledger.
        older_than: Delete runs that were started longer ago, and live scores with their counts, by whole hours.
        unfinished: Delete runs that are not complete.
        unused_answers: Delete answers that no remaining record uses.
        delete: If false, only count the rows.
    """
    criteria: list[sa.ColumnElement[bool]] = [sa.false()]
    if older_than is not None:
        criteria.append(runs.c.started < (datetime.now(UTC) - older_than).isoformat(timespec="seconds"))
    if unfinished:
        criteria.append(runs.c.finished.is_(None))
    matching = sa.select(runs.c.id).where(sa.or_(*criteria), runs.c.id.not_in(_IN_PROGRESS))
    with ledger.transaction(writing=True) as connection:
        if ledger.dialect.lock_runs:
            connection.exec_driver_sql(ledger.dialect.lock_runs)
        ledger.drop_expired(connection)
        ids = connection.scalars(matching).all()
        record_count = open_count = 0
        for chunk in chunks(ids, 200):
            record_count += connection.execute(sa.delete(records).where(records.c.run.in_(chunk))).rowcount
            theirs = batches.c.run.in_(chunk)
            open_count += _count(connection, sa.select(batches).where(theirs, batches.c.collected.is_(None)))
            questions = batch_questions.c.batch.in_(sa.select(batches.c.id).where(theirs))
            connection.execute(sa.delete(batch_questions).where(questions))
            connection.execute(sa.delete(batches).where(theirs))
            connection.execute(sa.delete(runs).where(runs.c.id.in_(chunk)))
        live_count = 0
        if older_than is not None:
            hour = int((time.time() - older_than.total_seconds()) // HOUR)
            connection.execute(sa.delete(live_counts).where(live_counts.c.hour < hour))
            live_count = connection.execute(sa.delete(live_scores).where(live_scores.c.hour < hour)).rowcount
        sample_count = _delete_unused_samples(connection)
        unused = list(_unused_answers(connection)) if unused_answers else []
        if unused:
            connection.exec_driver_sql(ledger.dialect.sql.delete_answer, unused)
        if not delete:
            connection.rollback()
    return PruneCounts(len(ids), record_count, sample_count, len(unused), open_count, live_count)


def _delete_unused_samples(connection: sa.Connection) -> int:
    """Delete datasets without a run, and samples without a dataset or live score. Returns the number of samples."""
    used = sa.select(runs.c.dataset).where(runs.c.dataset.is_not(None))
    connection.execute(sa.delete(datasets).where(datasets.c.version.not_in(used)))
    connection.execute(sa.delete(items).where(items.c.dataset.not_in(used)))
    scored = sa.select(live_scores.c.sample).where(live_scores.c.sample.is_not(None))
    unused = sa.select(samples.c.hash).except_(sa.select(items.c.sample), scored)
    return connection.execute(sa.delete(samples).where(samples.c.hash.in_(unused))).rowcount


def _unused_answers(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    used: set[str] = set()
    for table in (records, live_scores):
        for row in stream(connection, sa.select(table.c.body).where(table.c.body.is_not(None)), table):
            used.update(_FINGERPRINT.findall(row["body"]))
    targets = {_target(metadata).get("scope", "") for metadata in connection.scalars(sa.select(runs.c.metadata))}
    # Messages of a simulated user in an unfinished run are in no record, so without their answers they'd be paid again.
    unfinished = connection.scalars(sa.select(runs.c.metadata).where(runs.c.finished.is_(None)))
    of_users = {SayNext.kind, CheckUser.kind} if any(_target(metadata).get("user") for metadata in unfinished) else ()
    columns = *(answers.c[name] for name in KEYS[answers]), answers.c.kind
    for row in stream(connection, sa.select(*columns).where(answers.c.written < time.time() - MIN_AGE), answers):
        kind = row.pop("kind")
        if kind not in of_users and (row["judge"] not in targets if kind == TARGET else row["question"] not in used):
            yield row


def _target(metadata: str) -> dict[str, Any]:
    """The target in a run's metadata; empty for a run without one."""
    target: object = json.loads(metadata).get("target")
    return target if is_object(target) else {}


@dataclass(frozen=True)
class Verification:
    """The result of a check."""

    schema_version: str
    damage: tuple[str, ...]
    """Damage that the database reports for its file."""
    invalid_rows: tuple[str, ...]
    """The first 20 invalid rows."""
    rows: int
    """The number of rows read."""

    @property
    def sound(self) -> bool:
        """Whether no damage was found."""
        return not (self.damage or self.invalid_rows)


def verify(url: str | Path) -> Verification:
    """Check a ledger without changing it.

    Raises:
        LedgerError: The database isn't a ledger, or can't be read for a reason other than damage.
    """
    damage, invalid, version, count = list[str](), list[str](), "unknown", 0
    with Ledger(url, prepare=False) as ledger:
        try:
            with ledger.connection.begin():
                damage += ledger.dialect.check(ledger.connection)
            with ledger.connection.begin():
                version = ledger.version(ledger.connection, exact=False)
                for kind, table in KINDS.items() if version == SCHEMA_VERSION and not damage else ():
                    for row in stream(ledger.connection, sa.select(table), table):
                        count += 1
                        if (problem := _problem(table, row)) and len(invalid) < MAX_REPORTED:
                            key = " ".join(str(row[name]) for name in KEYS[table])
                            invalid.append(f"{kind} {key}: {problem}")
        except sqlalchemy.exc.DBAPIError as error:
            if not ledger.dialect.is_damage(error):
                raise ledger.dialect.explain(error, written=False) from None
            damage.append(str(error.orig))
    return Verification(version, tuple(damage), tuple(invalid), count)


def _problem(table: sa.Table, row: dict[str, Any]) -> str:
    """What is wrong with a row; "" if it is valid."""
    try:
        values = validated(table, row)
    except INVALID_ROW as error:
        return f"{type(error).__name__}: {error}"
    derived = ("cell", "hash", "hour", "value", "scale")
    return "" if all(values.get(name) == row.get(name) for name in derived) else "its key does not match its content"

# ruff: noqa: S608 - statements are put together from our own names
"""Ledger maintenance: summarize what a ledger contains, delete old rows, check it for damage."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstone._core.file_format import LEDGER_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.guards import is_object
from evalstone.ledger.base import HOUR, TARGET, RunRow, chunks, file_of, made_of, made_of_dataset, target_of
from evalstone.ledger.copy import INVALID_ROW, KINDS, stream, validated
from evalstone.ledger.database import Database
from evalstone.ledger.schema import SCHEMA_VERSION, Table, answers, labels, mode_labels
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
_IN_PROGRESS = "SELECT question FROM leases WHERE judge = ''"
"""The runs that a process is working on."""
_VALUED = "SELECT run FROM labels UNION SELECT run FROM mode_labels UNION SELECT run FROM pins"
"""The runs that people have labeled or pinned."""
_USED = "SELECT dataset FROM runs WHERE dataset IS NOT NULL"
"""The dataset versions that a run has."""
_NO_BLOCK = "hash NOT IN (SELECT block FROM items)"
_NO_SCORE = "hash NOT IN (SELECT sample FROM live_scores WHERE sample IS NOT NULL)"
_UNUSED_BY_AGE = f"SELECT {', '.join(answers.key)}, kind FROM answers WHERE written < :before"
_DELETE_ANSWER = f"DELETE FROM answers WHERE {' AND '.join(f'{name} = :{name}' for name in answers.key)}"


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
    """What a ledger contains. `size` is in bytes."""

    location: str
    schema_version: str
    size: int
    counts: dict[str, int]
    """Rows by kind."""
    samples: int
    """The samples of datasets and of live scores."""
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
        return {
            "format": LEDGER_FORMAT,
            **data,
            "latest": [time | name for time, name in zip(times, names, strict=True)],
        }


def info(ledger: Ledger) -> LedgerInfo:
    """Summarize a ledger."""
    latest = tuple(ledger.runs(LATEST))
    totals = """
        SELECT judge, kind, count(*), count(*) - count(cost), sum(input_tokens + output_tokens),
            coalesce(sum(cost), 0.0)
        FROM answers GROUP BY judge, kind
    """
    with ledger.transaction(snapshot=True) as database, ledger.reading("a number of tokens or samples"):
        return LedgerInfo(
            location=ledger.location,
            schema_version=SCHEMA_VERSION,
            answered_by=_totals(database.execute(totals)),
            counts={kind: _count(database, table.name) for kind, table in KINDS.items()},
            samples=int(database.scalar("SELECT coalesce(sum(samples), 0) FROM blocks")) + _count(database, "samples"),
            unfinished=_count(database, "runs WHERE finished IS NULL"),
            in_progress=_count(database, "leases WHERE judge = ''"),
            open_batches=_count(database, "batches WHERE collected IS NULL"),
            size=ledger.database.size(),
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


def _count(database: Database, of: str, values: Mapping[str, Any] | None = None) -> int:
    return database.scalar(f"SELECT count(*) FROM {of}", values)


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
    labeled: int = 0
    """The runs that were kept because people have labeled or pinned them."""


def prune(
    ledger: Ledger,
    *,
    older_than: timedelta | None = None,
    unfinished: bool = False,
    unused_answers: bool = False,
    labeled: bool = False,
    delete: bool,
) -> PruneCounts:
    """Delete runs, live scores and answers, and samples that nothing uses, in one transaction. The indexes that
    `evalstone view` has made of the runs are deleted too.

    Runs that a process is working on are kept, and so are those that people have labeled or pinned.

    Args:
        ledger: The ledger.
        older_than: Delete runs that were started longer ago, live scores with their counts, by whole hours, and what
            processes shared of limits.
        unfinished: Delete runs that are not complete.
        unused_answers: Delete answers that no remaining record uses.
        labeled: Delete runs that people have labeled or pinned too, with their labels and pins.
        delete: If false, only count the rows.
    """
    criteria: list[str] = []
    if older_than is not None:
        criteria.append("started < :before")
    if unfinished:
        criteria.append("finished IS NULL")
    before = None if older_than is None else (datetime.now(UTC) - older_than).isoformat(timespec="seconds")
    matching = f"SELECT id FROM runs WHERE ({' OR '.join(criteria) or 'false'}) AND id NOT IN ({_IN_PROGRESS})"
    with ledger.transaction(writing=True) as database:
        if database.lock_runs:
            database.execute(database.lock_runs)
        ledger.leases.drop_expired()
        ids, valued = database.scalars(matching, {"before": before}), set(database.scalars(_VALUED))
        kept = 0 if labeled else sum(run in valued for run in ids)
        ids = ids if labeled else [run for run in ids if run not in valued]
        record_count = open_count = 0
        for chunk in chunks(ids, 200):
            runs = {"runs": json.dumps(chunk)}
            record_count += database.execute("DELETE FROM records WHERE run IN texts(:runs)", runs).rowcount
            open_count += _count(database, "batches WHERE run IN texts(:runs) AND collected IS NULL", runs)
            theirs = "SELECT id FROM batches WHERE run IN texts(:runs)"
            database.execute(f"DELETE FROM batch_questions WHERE batch IN ({theirs})", runs)
            database.execute("DELETE FROM batches WHERE run IN texts(:runs)", runs)
            for table in ("labels", "mode_labels", "pins"):
                database.execute(f"DELETE FROM {table} WHERE run IN texts(:runs)", runs)
            database.execute("DELETE FROM runs WHERE id IN texts(:runs)", runs)
        live_count = 0
        if older_than is not None:
            hour = {"hour": int((time.time() - older_than.total_seconds()) // HOUR)}
            database.execute("DELETE FROM live_counts WHERE hour < :hour", hour)
            live_count = database.execute("DELETE FROM live_scores WHERE hour < :hour", hour).rowcount
            age = {"age": older_than.total_seconds()}
            database.execute("DELETE FROM limit_shares WHERE expires < epoch() - :age", age)
            database.execute("DELETE FROM shared_limits WHERE seen < epoch() - :age", age)
        versions = [*database.scalars(f"SELECT version FROM datasets WHERE version NOT IN ({_USED})")]
        sample_count = _delete_unused_samples(database)
        with ledger.reading("a run, record or live score"):
            unused = list(_unused_answers(database)) if unused_answers else []
        if unused:
            database.execute_many(_DELETE_ANSWER, unused)
        if not delete:
            database.rollback()
    if delete and (file := file_of(ledger.location)) is not None:
        made = (made_of(file.parent, run) for run in ids)
        made_of_versions = (made_of_dataset(file.parent, version) for version in versions)
        for each in chain.from_iterable((*made, *made_of_versions)):
            each.unlink(missing_ok=True)
    return PruneCounts(len(ids), record_count, sample_count, len(unused), open_count, live_count, kept)


def _delete_unused_samples(database: Database) -> int:
    """Delete datasets without a run, and samples without a dataset or live score. Returns the number of samples."""
    database.execute(f"DELETE FROM datasets WHERE version NOT IN ({_USED})")
    database.execute(f"DELETE FROM items WHERE dataset NOT IN ({_USED})")
    count = database.scalar(f"SELECT coalesce(sum(samples), 0) FROM blocks WHERE {_NO_BLOCK}")
    database.execute(f"DELETE FROM blocks WHERE {_NO_BLOCK}")
    return int(count) + database.execute(f"DELETE FROM samples WHERE {_NO_SCORE}").rowcount


def _unused_answers(database: Database) -> Iterator[dict[str, Any]]:
    used: set[str] = set()
    for table in ("records", "live_scores"):
        for (body,) in database.stream(f"SELECT body FROM {table} WHERE body IS NOT NULL"):
            used.update(_FINGERPRINT.findall(body))
    targets = {_target(metadata).get("scope", "") for metadata in database.scalars("SELECT metadata FROM runs")}
    # Messages of a simulated user in an unfinished run are in no record, so without their answers they'd be paid again.
    unfinished = database.scalars("SELECT metadata FROM runs WHERE finished IS NULL")
    of_users = {SayNext.kind, CheckUser.kind} if any(_target(metadata).get("user") for metadata in unfinished) else ()
    for *key, kind in database.stream(_UNUSED_BY_AGE, {"before": time.time() - MIN_AGE}):
        row = dict(zip(answers.key, key, strict=True))
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
        database = ledger.database
        try:
            with database.committed():
                damage += database.check()
            with database.committed(snapshot=True):
                version = ledger.version(exact=False)
                for kind, table in KINDS.items() if version == SCHEMA_VERSION and not damage else ():
                    for row in stream(database, table):
                        count += 1
                        if (problem := _problem(table, row)) and len(invalid) < MAX_REPORTED:
                            key = " ".join(str(row[name]) for name in table.key)
                            invalid.append(f"{kind} {key}: {problem}")
        except database.error as error:
            if not database.is_damage(error):
                raise database.explain(error, written=False) from None
            damage.append(str(error))
    return Verification(version, tuple(damage), tuple(invalid), count)


def _problem(table: Table, row: dict[str, Any]) -> str:
    """What is wrong with a row; "" if it is valid."""
    try:
        values = validated(table, row)
    except INVALID_ROW as error:
        return f"{type(error).__name__}: {error}"
    derived = ("hash", "samples", "signature", "hour", "value", "scale")
    derived += ("id",) if table in (labels, mode_labels) else ()
    return "" if all(values.get(name) == row.get(name) for name in derived) else "its key does not match its content"

"""Live scoring in the ledger: accepted samples with their outcomes, and counts of all traffic.

A row of `live_scores` is written before its scorer is called, in the same transaction as the counts. So these sums hold
at any time, even after a crash, for each stream, scorer, owner and hour:

    seen = filtered + eligible,   eligible = declined + dropped + accepted,   accepted = rows of `live_scores`

An owner is an application process with a `Live`; only owners count. A worker scores. If a worker is gone, another
worker of the stream takes over its rows. A worker is alive as long as its lease (`evalstone.ledger.store`).
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import sqlalchemy as sa

from evalstone._core.front_ends import Message
from evalstone._core.redaction import redacted
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.ledger.base import HOUR, sample_hash, storable
from evalstone.ledger.schema import COLUMNS, leases, live_counts, live_scores, samples
from evalstone.ledger.store import Ledger
from evalstone.types import Failed, Outcome, Record, Sample, Score, Skipped

State = Literal["pending", "scored", "skipped", "failed", "dropped"]
STATES: Mapping[type[Outcome], State] = {Score: "scored", Skipped: "skipped", Failed: "failed"}
_LEASE = "live"
"""The judge in the lease of a worker; the question is its owner."""
_TEXTS = ("stream", "scorer", "owner", "entity", "trace", "span", "response")


@dataclass(frozen=True, kw_only=True)
class LiveScore:
    """One scorer on one sample of live traffic: a row of `live_scores`."""

    id: str
    """The id. The owner generates it, so that a row that is sent twice is written once."""
    stream: str
    """The name of the `Live`."""
    source: str
    """"live" or "trace"."""
    scorer: str
    """The scorer's signature."""
    owner: str
    """The process that submitted the sample."""
    submitted: float
    """The time of submission, in seconds since 1970."""
    sample: str | None = None
    """The key of the sample; None if the submission isn't a valid sample."""
    entity: str | None = None
    """The evaluated entity, such as the name of an agent."""
    trace: str | None = None
    span: str | None = None
    response: str | None = None
    worker: str = ""
    """The worker that scores or scored it."""
    takeovers: int = 0
    """How often a worker began to score it after taking it over from one that was gone. Takeovers by workers that then
    ended normally don't count."""
    state: State = "pending"
    """"dropped": accepted, but not scored because the day's budget was spent."""
    value: float | None = None
    scale: float | None = None
    finished: float | None = None
    """The time when it was scored, skipped, failed or dropped, in seconds since 1970."""
    cost: float | None = None
    """US dollars; None if unknown, or before any judge call."""
    kept_reasoning: bool | None = None
    """Whether the reasoning in front of the output was scored; None if there is none, or before it was scored."""
    body: str | None = None
    """The record as JSON; None while it is pending, and if it was dropped."""

    @property
    def record(self) -> Record | None:
        """The record; None while the score is pending, and if it was dropped."""
        return None if self.body is None else Record.from_dict(json.loads(self.body))

    def ended(self, record: Record | None, *, known_cost: bool = True) -> LiveScore:
        """The row with its outcome; None if it was dropped. known_cost: whether the record's cost is the whole cost."""
        now = time.time()
        if record is None:
            return dataclasses.replace(self, state="dropped", finished=now)
        outcome = record.outcome
        score = outcome if isinstance(outcome, Score) else None
        return dataclasses.replace(
            self,
            state=STATES[type(outcome)],
            value=score and score.value,
            scale=score and score.scale,
            finished=now,
            cost=record.cost if known_cost else None,
            body=redacted(json.dumps(record.to_dict())),
        )


@dataclass(frozen=True, kw_only=True)
class LiveCounts:
    """An owner's traffic in an hour, for one scorer: a row of `live_counts`."""

    stream: str
    scorer: str
    owner: str
    hour: int
    """Hours since 1970."""
    seen: int = 0
    filtered: int = 0
    eligible: int = 0
    declined: int = 0
    """Not selected by the sampling rate."""
    dropped: int = 0
    """Selected, but the queue was full."""
    accepted: int = 0


def write_frame(
    ledger: Ledger, counts: Iterable[LiveCounts], rows: Sequence[LiveScore], submitted: Iterable[Sample]
) -> list[LiveScore]:
    """Write counts, rows and their samples in one transaction. Existing rows are kept, and counts only grow.

    Returns:
        The rows that this ledger's owner must score, without those that another worker has from an earlier attempt.
    """
    bodies = {sample_hash(sample): json.dumps(sample_row(sample)) for sample in submitted}
    written = [dataclasses.replace(row, worker=ledger.owner) for row in rows]
    with ledger.transaction(writing=True) as connection:
        _hold(ledger, connection)
        # All processes lock rows in the same order, so there are no deadlocks.
        ledger.insert_missing(connection, samples, [{"hash": key, "body": bodies[key]} for key in sorted(bodies)])
        new = ledger.insert_missing(connection, live_scores, list(map(_to_row, written)))
        ledger.insert_missing(connection, live_counts, sorted(map(_to_row, counts), key=_count_key))
        if new == len(written):
            return written
        ours = sa.select(live_scores.c.id).where(
            live_scores.c.id.in_([row.id for row in rows]),
            live_scores.c.worker == ledger.owner,
            live_scores.c.state == "pending",
        )
        mine = set(connection.scalars(ours))
    return [row for row in written if row.id in mine]


def claim_pending(
    ledger: Ledger, stream: str, limit: int, scorers: Collection[str]
) -> list[tuple[LiveScore, Sample | None]]:
    """Take over pending rows of a stream and of these scorers whose worker is gone, with their samples, oldest first.

    `begin` counts the takeover, because only a row that is being scored can crash a worker.
    """
    table, alive = live_scores.c, sa.select(leases.c.question).where(leases.c.judge == _LEASE)
    waiting = sa.select(table.id).where(table.stream == storable(stream), table.state == "pending")
    waiting = waiting.where(table.scorer.in_(list(map(storable, scorers))))
    with ledger.transaction(writing=True) as connection:
        ledger.drop_expired(connection)
        _hold(ledger, connection)
        free = waiting.where(table.worker.not_in(alive)).order_by(table.submitted).limit(limit)
        # PostgreSQL: skip rows that another worker is taking, instead of waiting for them.
        ids = connection.scalars(free.with_for_update(skip_locked=True)).all()
        if not ids:
            return []
        connection.execute(sa.update(live_scores).where(table.id.in_(ids)).values(worker=ledger.owner))
        joined = live_scores.outerjoin(samples, table.sample == samples.c.hash)
        query = sa.select(live_scores, samples.c.body.label("stored")).select_from(joined)
        rows = connection.execute(query.where(table.id.in_(ids)).order_by(table.submitted)).mappings().all()
    claimed: list[tuple[LiveScore, Sample | None]] = []
    for row in rows:
        with ledger.reading(f"the sample of live score {row['id']}"):
            stored = row["stored"]
            claimed.append((_from_row(row), None if stored is None else sample_of(json.loads(stored))))
    return claimed


def pending_elsewhere(ledger: Ledger, stream: str, owner: str) -> bool:
    """Whether workers other than this ledger's owner have pending rows of an owner."""
    table = live_scores.c
    query = sa.select(table.id).where(table.stream == storable(stream), table.state == "pending")
    query = query.where(table.owner == storable(owner), table.worker != ledger.owner).limit(1)
    with ledger.transaction() as connection:
        return connection.scalar(query) is not None


def begin(ledger: Ledger, row: LiveScore) -> LiveScore:
    """Count the takeover of a row that is about to be scored, and return the updated row."""
    _count_takeovers(ledger, [row.id], 1)
    return dataclasses.replace(row, takeovers=row.takeovers + 1)


def give_back(ledger: Ledger, ids: Collection[str]) -> None:
    """Uncount the last takeover of these rows, because their worker ends normally."""
    _count_takeovers(ledger, ids, -1)


def _count_takeovers(ledger: Ledger, ids: Collection[str], number: int) -> None:
    table = live_scores.c
    ours = (table.id.in_(ids), table.worker == ledger.owner, table.state == "pending")
    with ledger.transaction(writing=True) as connection:
        connection.execute(sa.update(live_scores).where(*ours).values(takeovers=table.takeovers + number))


def finish(ledger: Ledger, rows: Iterable[LiveScore]) -> None:
    """Write outcomes. Rows that another worker has taken over stay as they are."""
    values = [{**_to_row(row), "worker": ledger.owner} for row in sorted(rows, key=lambda row: row.id)]
    if values:
        with ledger.transaction(writing=True) as connection:
            connection.exec_driver_sql(ledger.dialect.sql.finish_score, values)


def samples_of_traces(ledger: Ledger, stream: str, traces: Iterable[str]) -> dict[str, set[str]]:
    """By trace, the hashes of the samples in a stream; only traces with any samples."""
    table = live_scores.c
    query = sa.select(table.trace, table.sample).where(table.trace.in_(list(map(storable, traces))))
    query = query.where(table.stream == storable(stream), table.source == "trace", table.sample.is_not(None)).distinct()
    ids: dict[str, set[str]] = {}
    with ledger.transaction() as connection:
        for trace, sample in connection.execute(query):
            ids.setdefault(trace, set()).add(sample)
    return ids


def spent(ledger: Ledger, stream: str, since: float) -> float:
    """The known cost in US dollars of a stream's outcomes since a time."""
    table = live_scores.c
    query = sa.select(sa.func.coalesce(sa.func.sum(table.cost), 0.0))
    ours = (table.stream == storable(stream), table.finished >= since, table.cost > 0)
    with ledger.transaction() as connection:
        return float(connection.scalar(query.where(*ours)) or 0.0)


def counts(ledger: Ledger, stream: str, since: float | None = None) -> tuple[list[LiveCounts], dict[Any, int]]:
    """The counts of a stream, and its numbers of rows by scorer, owner, hour and state, from one snapshot.

    since: Seconds since 1970, rounded down to the hour.
    """
    hour = 0 if since is None else int(since // HOUR)
    table = live_scores.c
    name = storable(stream)
    counted = sa.select(live_counts).where(live_counts.c.stream == name, live_counts.c.hour >= hour)
    key = table.scorer, table.owner, table.hour, table.state
    states = sa.select(*key, sa.func.count()).where(table.stream == name, table.submitted >= hour * HOUR)
    with ledger.transaction() as connection:
        if not ledger.dialect.single_writer:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        seen = [LiveCounts(**dict(row)) for row in connection.execute(counted).mappings()]
        rows = {tuple(of): int(number) for *of, number in connection.execute(states.group_by(*key))}
    return seen, rows


def kept_reasoning(ledger: Ledger, stream: str, scorer: str, since: float | None = None) -> frozenset[bool]:
    """Whether the scores of a stream by one scorer, from a time on, are of outputs with the reasoning in front of them;
    both if some are and some aren't, and neither if no output begins with reasoning."""
    table = live_scores.c
    query = sa.select(table.kept_reasoning).distinct().where(table.kept_reasoning.is_not(None))
    query = query.where(table.stream == storable(stream), table.scorer == storable(scorer))
    if since is not None:
        query = query.where(table.submitted >= since)
    with ledger.transaction() as connection:
        return frozenset(map(bool, connection.scalars(query)))


def streams(ledger: Ledger) -> list[str]:
    """The names of all streams."""
    with ledger.transaction() as connection:
        return sorted(connection.scalars(sa.select(live_counts.c.stream).distinct()))


def only_stream(ledger: Ledger, hint: Message = "") -> str:
    """The only stream of a ledger. Raises ConfigError if there are none or several; hint: how to name one."""
    match streams(ledger):
        case [stream]:
            return stream
        case []:
            raise ConfigError(f"{ledger.location}: nothing was scored live yet")
        case known:
            raise ConfigError(f"{ledger.location} has {len(known)} streams; name one", hint, f": {', '.join(known)}")


def scores(
    ledger: Ledger,
    *,
    stream: str | None = None,
    scorer: str | None = None,
    source: str | None = None,
    entity: str | None = None,
    since: float | None = None,
    until: float | None = None,
    limit: int | None = None,
    before: tuple[float, str] | None = None,
) -> list[LiveScore]:
    """Rows of live scoring, newest first.

    Args:
        ledger: The ledger.
        stream: Only rows of the `Live` of this name.
        scorer: Only rows of the scorer with this signature.
        source: "live" or "trace".
        entity: Only rows of this entity.
        since: Submitted at this time or later, in seconds since 1970.
        until: Submitted before this time.
        limit: The maximum number of rows.
        before: The `submitted` and `id` of the last row of the previous page.
    """
    table = live_scores.c
    query = sa.select(live_scores).order_by(table.submitted.desc(), table.id.desc()).limit(limit)
    filters = {"stream": stream, "scorer": scorer, "source": source, "entity": entity}
    for name, value in filters.items():
        if value is not None:
            query = query.where(table[name] == storable(value))
    if since is not None:
        query = query.where(table.submitted >= since)
    if until is not None:
        query = query.where(table.submitted < until)
    if before is not None:
        at, id = before
        query = query.where(sa.or_(table.submitted < at, sa.and_(table.submitted == at, table.id < id)))
        query = query.where(table.submitted <= at)  # a condition that an index can use
    with ledger.transaction() as connection:
        return list(map(_from_row, connection.execute(query).mappings()))


def derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row of `live_scores` that follow from its others.

    Raises:
        DataError: Its state is unknown, or not that of its record.
    """
    state, record = values["state"], None
    if state not in get_args(State):
        raise DataError(invalid("state", f"one of {', '.join(get_args(State))}", state))
    row = LiveScore(**{name: values[name] for name in ("id", "stream", "source", "scorer", "owner", "submitted")})
    if values["body"] is not None:
        record = Record.from_dict(json.loads(values["body"]))
    outcome = row.ended(record)
    if state != outcome.state and (record is not None or state != "pending"):
        raise DataError(f"state is {state}, but the record is {outcome.state if record else 'missing'}")
    return {"hour": int(row.submitted // HOUR), "value": outcome.value, "scale": outcome.scale}


def _hold(ledger: Ledger, connection: sa.Connection) -> None:
    """Lease the worker's own name, unless it already has that lease."""
    values = {"keys": json.dumps([[ledger.owner, _LEASE, 0]]), "owner": ledger.owner, "seconds": ledger.lease_seconds}
    connection.exec_driver_sql(ledger.dialect.sql.acquire, values)


def _to_row(row: LiveScore | LiveCounts) -> dict[str, Any]:
    values = dict(vars(row))
    if isinstance(row, LiveScore):
        values["hour"] = int(row.submitted // HOUR)
    for name in _TEXTS:
        if values.get(name) is not None:
            values[name] = storable(values[name])
    return values


def _from_row(row: Mapping[Any, Any]) -> LiveScore:
    return LiveScore(**{name: row[name] for name in COLUMNS[live_scores] if name != "hour"})


def _count_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["stream"], row["scorer"], row["owner"], row["hour"]

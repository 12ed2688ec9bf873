# ruff: noqa: S608 - statements are put together from our own names
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
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

from evalstone._core.display import shortlist
from evalstone._core.front_ends import Wording
from evalstone._core.json import storable, to_jsonable
from evalstone._core.redaction import redacted
from evalstone._core.validation import read_data
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.ledger.base import HOUR, Key, sample_hash
from evalstone.ledger.database import Database
from evalstone.ledger.schema import live_counts, live_scores, samples
from evalstone.ledger.store import Ledger
from evalstone.types import NOTHING_STORED, Asking, Failed, Outcome, Record, Sample, Score, Skipped

State = Literal["pending", "score", "skipped", "failed", "dropped"]
STATES: Mapping[type[Outcome], State] = {Score: "score", Skipped: "skipped", Failed: "failed"}
_LEASE = "live"
"""The judge in the lease of a worker; the question is its owner."""
_ROWS = f"SELECT {live_scores.names} FROM live_scores"
_FINISH = """
    UPDATE live_scores SET state = :state, value = :value, scale = :scale, finished = :finished, cost = :cost,
        kept_reasoning = :kept_reasoning, body = :body
    WHERE id = :id AND worker = :worker AND state = 'pending'
"""
_FREE = f"""
    SELECT id FROM live_scores
    WHERE stream = :stream AND state = 'pending' AND signature IN texts(:signatures)
        AND worker NOT IN (SELECT question FROM leases WHERE judge = '{_LEASE}')
    ORDER BY submitted LIMIT :limit FOR UPDATE SKIP LOCKED
"""
"""Pending rows whose worker is gone, without those that another worker is taking at this moment."""
_TAKEN = f"""
    SELECT {", ".join(f"live_scores.{name}" for name in live_scores.columns)}, samples.body
    FROM live_scores LEFT JOIN samples ON live_scores.sample = samples.hash
    WHERE id IN texts(:ids) ORDER BY submitted
"""
_TEXTS = ("stream", "signature", "owner", "entity", "trace", "span", "response")
_TALLY = "signature, hour, state, source, entity, owner, scale"
MOST_HOURS = 1 << 40
"""More than any time has."""
_LAST_YEAR = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Until then, the end of each period that a page counts by is a date, too."""


@dataclass(frozen=True, kw_only=True)
class LiveScore:
    """One scorer on one sample of live traffic: a row of `live_scores`."""

    id: str
    """The id. The owner generates it, so that a row that is sent twice is written once."""
    stream: str
    """The name of the `Live`."""
    source: str
    """"live" or "trace"."""
    signature: str
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
        """The record; None while the score is pending, and if it was dropped.

        Raises:
            DataError: It is missing.
        """
        if self.body is None:
            if self.state in STATES.values():
                raise DataError("its record is missing")
            return None
        record = Record.from_dict(json.loads(self.body))
        # Only the row has a signature as the ledger can store it.
        return record if record.signature == self.signature else dataclasses.replace(record, signature=self.signature)

    @property
    def asking(self) -> Asking:
        """How the judges of the record were asked.

        Raises:
            DataError: The record has something else in its place.
        """
        stored = None if self.body is None else json.loads(self.body).get("asking")
        return NOTHING_STORED if stored is None else read_data(Asking, stored)

    def ended(self, record: Record | None, *, known_cost: bool = True, asking: Asking = NOTHING_STORED) -> LiveScore:
        """The row with its outcome.

        record: None if it was dropped. known_cost: whether the record's cost is the whole cost. asking: how its judges
        were asked.
        """
        now = time.time()
        if record is None:
            return dataclasses.replace(self, state="dropped", finished=now)
        outcome = record.outcome
        score = outcome if isinstance(outcome, Score) else None
        stored = {} if asking == NOTHING_STORED else {"asking": to_jsonable(asking)}
        return dataclasses.replace(
            self,
            state=STATES[type(outcome)],
            value=None if score is None else score.value,
            scale=None if score is None else score.scale,
            finished=now,
            cost=record.cost if known_cost else None,
            body=redacted(json.dumps(record.to_dict() | stored)),
        )


@dataclass(frozen=True, kw_only=True)
class LiveCounts:
    """An owner's traffic in an hour, for one scorer: a row of `live_counts`."""

    stream: str
    signature: str
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
    written = [dataclasses.replace(row, worker=ledger.leases.owner) for row in rows]
    with ledger.transaction(writing=True) as database:
        ledger.leases.hold(Key(ledger.leases.owner, _LEASE))
        # All processes lock rows in the same order, so there are no deadlocks.
        database.insert_missing(samples, [{"hash": key, "body": bodies[key]} for key in sorted(bodies)])
        new = database.insert_missing(live_scores, list(map(_to_row, written)))
        database.insert_missing(live_counts, sorted(map(_to_row, counts), key=_count_key))
        if new == len(written):
            return written
        ours = "SELECT id FROM live_scores WHERE id IN texts(:ids) AND worker = :worker AND state = 'pending'"
        mine = set(database.scalars(ours, {"ids": _listed(row.id for row in rows), "worker": ledger.leases.owner}))
    return [row for row in written if row.id in mine]


def claim_pending(
    ledger: Ledger, stream: str, limit: int, signatures: Collection[str]
) -> list[tuple[LiveScore, Sample | None]]:
    """Take over pending rows of a stream and of scorers with these signatures whose worker is gone, with their samples,
    oldest first.

    `begin` counts the takeover, because only a row that is being scored can crash a worker.
    """
    of = {"stream": storable(stream), "signatures": _listed(map(storable, signatures)), "limit": limit}
    with ledger.transaction(writing=True) as database:
        ledger.leases.drop_expired()
        ledger.leases.hold(Key(ledger.leases.owner, _LEASE))
        ids = database.scalars(_FREE, of)
        if not ids:
            return []
        taken = {"ids": _listed(ids), "worker": ledger.leases.owner}
        database.execute("UPDATE live_scores SET worker = :worker WHERE id IN texts(:ids)", taken)
        rows = database.execute(_TAKEN, taken).fetchall()
    claimed: list[tuple[LiveScore, Sample | None]] = []
    for *values, stored in rows:
        row = from_row(values)
        with ledger.reading(f"the sample of live score {row.id}"):
            claimed.append((row, None if stored is None else sample_of(json.loads(stored))))
    return claimed


def pending_elsewhere(ledger: Ledger, stream: str, owner: str) -> bool:
    """Whether workers other than this ledger's owner have pending rows of an owner."""
    query = """
        SELECT id FROM live_scores
        WHERE stream = :stream AND state = 'pending' AND owner = :owner AND worker <> :worker LIMIT 1
    """
    of = {"stream": storable(stream), "owner": storable(owner), "worker": ledger.leases.owner}
    with ledger.transaction() as database:
        return database.scalar(query, of) is not None


def begin(ledger: Ledger, row: LiveScore) -> LiveScore:
    """Count the takeover of a row that is about to be scored, and return the updated row."""
    _count_takeovers(ledger, [row.id], 1)
    return dataclasses.replace(row, takeovers=row.takeovers + 1)


def give_back(ledger: Ledger, ids: Collection[str]) -> None:
    """Uncount the last takeover of these rows, because their worker ends normally."""
    _count_takeovers(ledger, ids, -1)


def _count_takeovers(ledger: Ledger, ids: Collection[str], number: int) -> None:
    ours = "id IN texts(:ids) AND worker = :worker AND state = 'pending'"
    with ledger.transaction(writing=True) as database:
        database.execute(
            f"UPDATE live_scores SET takeovers = takeovers + :number WHERE {ours}",
            {"ids": _listed(ids), "worker": ledger.leases.owner, "number": number},
        )


def finish(ledger: Ledger, rows: Iterable[LiveScore]) -> None:
    """Write outcomes. Rows that another worker has taken over stay as they are."""
    values = [{**_to_row(row), "worker": ledger.leases.owner} for row in sorted(rows, key=lambda row: row.id)]
    if values:
        with ledger.transaction(writing=True) as database:
            database.execute_many(_FINISH, values)


def samples_of_traces(ledger: Ledger, stream: str, traces: Iterable[str]) -> dict[str, set[str]]:
    """By trace, the hashes of the samples in a stream; only traces with any samples."""
    query = """
        SELECT DISTINCT trace, sample FROM live_scores
        WHERE trace IN texts(:traces) AND stream = :stream AND source = 'trace' AND sample IS NOT NULL
    """
    ids: dict[str, set[str]] = {}
    with ledger.transaction() as database:
        of = {"traces": _listed(map(storable, traces)), "stream": storable(stream)}
        for trace, sample in database.execute(query, of):
            ids.setdefault(trace, set()).add(sample)
    return ids


def spent(ledger: Ledger, stream: str, since: float) -> float:
    """The known cost in US dollars of a stream's outcomes since a time."""
    query = "SELECT sum(cost) FROM live_scores WHERE stream = :stream AND finished >= :since AND cost > 0"
    with ledger.transaction() as database:
        return float(database.scalar(query, {"stream": storable(stream), "since": since}) or 0.0)


class Tally(NamedTuple):
    """The rows of a stream that are alike, within an hour."""

    signature: str
    hour: int
    """Hours since 1970."""
    state: State
    source: str
    entity: str | None
    owner: str
    scale: float | None
    """None without scores."""
    number: int
    total: float
    """The sum of their scores."""


def counts(
    ledger: Ledger,
    stream: str,
    since: float | None = None,
    until: float | None = None,
    *,
    tallied_since: float | None = None,
) -> tuple[list[LiveCounts], list[Tally]]:
    """The counts of a stream, and tallies of its rows, from one snapshot.

    since, until: Seconds since 1970. Only whole hours are counted: the one of `since`, and all later ones that begin
    before `until`. tallied_since: Leave out the tallies of the hours before this one.
    """
    of = {"stream": storable(stream), **hours(since, until)}
    within = "stream = :stream AND hour >= :first AND hour < :end"
    counted = f"SELECT {live_counts.names} FROM live_counts WHERE {within}"
    with ledger.transaction(snapshot=True) as database:
        seen = [LiveCounts(**live_counts.row(row)) for row in database.execute(counted, of)]
        if tallied_since is not None:
            of["first"] = max(of["first"], hours(tallied_since, None)["first"])
            # The index has the hours behind the signatures.
            within += " AND signature IN texts(:signatures)"
            of["signatures"] = _listed(_signatures(database, of))
        tallied = f"""
            SELECT {_TALLY}, count(*), COALESCE(sum(value), 0.0) FROM live_scores WHERE {within} GROUP BY {_TALLY}
        """
        rows = [Tally._make(row) for row in database.execute(tallied, of)]
    return seen, rows


def _signatures(database: Database, of: Mapping[str, Any]) -> Iterator[str]:
    """The signatures of the scorers of a stream, by skipping through an index instead of reading all rows."""
    last: str | None = ""
    query = "SELECT min(signature) FROM live_scores WHERE stream = :stream AND signature > :last"
    while (last := database.scalar(query, {**of, "last": last})) is not None:
        yield last


def hours(since: float | None, until: float | None) -> dict[str, int]:
    """The first hour of a period, and the one behind its last."""
    end = MOST_HOURS if until is None else math.ceil(until / HOUR)
    return {"first": 0 if since is None else int(since // HOUR), "end": end}


def kept_reasoning(ledger: Ledger, stream: str, signature: str, since: float | None = None) -> frozenset[bool]:
    """Whether the scores of a stream by one scorer, from a time on, are of outputs with the reasoning in front of them;
    both if some are and some aren't, and neither if no output begins with reasoning."""
    query = """
        SELECT DISTINCT kept_reasoning FROM live_scores
        WHERE kept_reasoning IS NOT NULL AND stream = :stream AND signature = :signature AND submitted >= :since
    """
    of = {"stream": storable(stream), "signature": storable(signature), "since": since or 0.0}
    with ledger.transaction() as database:
        return frozenset(map(bool, database.scalars(query, of)))


def streams(ledger: Ledger) -> list[str]:
    """The names of all streams."""
    with ledger.transaction() as database:
        return sorted(database.scalars("SELECT DISTINCT stream FROM live_counts"))


def only_stream(ledger: Ledger, hint: Wording = "") -> str:
    """The only stream of a ledger. Raises ConfigError if there are none or several; hint: how to name one."""
    match streams(ledger):
        case [stream]:
            return stream
        case []:
            raise ConfigError(f"{ledger.location}: nothing was scored live yet")
        case known:
            raise ConfigError(f"{ledger.location} has {len(known)} streams; name one", hint, f": {shortlist(known)}")


def scores(
    ledger: Ledger,
    *,
    stream: str | None = None,
    signature: str | None = None,
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
        signature: Only rows of the scorer with this signature.
        source: "live" or "trace".
        entity: Only rows of this entity.
        since: Submitted at this time or later, in seconds since 1970.
        until: Submitted before this time.
        limit: The maximum number of rows.
        before: The `submitted` and `id` of the last row of the previous page.
    """
    texts = {"stream": stream, "signature": signature, "source": source, "entity": entity}
    of: dict[str, Any] = {name: storable(value) for name, value in texts.items() if value is not None}
    where = [f"{name} = :{name}" for name in of]
    if since is not None:
        where.append("submitted >= :since")
    if until is not None:
        where.append("submitted < :until")
    if before is not None:
        of["at"], of["id"] = before
        where.append("(submitted < :at OR (submitted = :at AND id < :id))")
        where.append("submitted <= :at")  # a condition that an index can use
    of |= {"since": since, "until": until, "limit": limit}
    query = f"{_ROWS}{' WHERE ' if where else ''}{' AND '.join(where)} ORDER BY submitted DESC, id DESC"
    with ledger.transaction() as database:
        rows = database.execute(query if limit is None else f"{query} LIMIT :limit", of)
        return list(map(from_row, rows))


def derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row of `live_scores` that follow from its others.

    Raises:
        DataError: Its state is unknown, or not that of its record.
    """
    state, record = values["state"], None
    if state not in get_args(State):
        raise DataError(invalid("state", f"one of {', '.join(get_args(State))}", state))
    row = LiveScore(**{name: values[name] for name in ("id", "stream", "source", "signature", "owner", "submitted")})
    if not 0 <= row.submitted < _LAST_YEAR:
        raise DataError(invalid("submitted", "a time from 1970 to 9998 in seconds since 1970", row.submitted))
    if values["body"] is not None:
        record = Record.from_dict(json.loads(values["body"]))
    outcome = row.ended(record)
    if state != outcome.state and (record is not None or state != "pending"):
        raise DataError(
            f"state is {state}, but the record {'is missing' if record is None else f'has the outcome {outcome.state}'}"
        )
    return {"hour": int(row.submitted // HOUR), "value": outcome.value, "scale": outcome.scale}


def _listed(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))


def _to_row(row: LiveScore | LiveCounts) -> dict[str, Any]:
    values = dict(vars(row))
    if isinstance(row, LiveScore):
        values["hour"] = int(row.submitted // HOUR)
    for name in _TEXTS:
        if values.get(name) is not None:
            values[name] = storable(values[name])
    return values


def from_row(values: Iterable[Any]) -> LiveScore:
    """A row of `live_scores` as it is selected by its names."""
    row = live_scores.row(values)
    del row["hour"]
    return LiveScore(**row)


def _count_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["stream"], row["signature"], row["owner"], row["hour"]

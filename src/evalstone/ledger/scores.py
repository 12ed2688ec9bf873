"""The scores in a ledger: live and run scores in a single list, and the scores of a stream for drift watching."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from evalstone._core.declarations import Range, check_argument
from evalstone._core.file_format import SCORE_LIST_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import storable, to_jsonable
from evalstone._core.times import utc_time
from evalstone._core.truth import NoTruthValue
from evalstone._core.validation import check_time
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.ledger import live
from evalstone.ledger.base import existing
from evalstone.ledger.store import Ledger
from evalstone.report.shown import Shown
from evalstone.types import Record, Score, scorer_name, without_fingerprints
from evalstone.types.scorer_names import is_named, not_scored

if TYPE_CHECKING:
    from evalstone.report.view import View

Source: TypeAlias = Literal["live", "run", "trace"]
PAGE = 100
"""The number of rows read at a time."""
BUDGET_SPENT = "the daily budget is spent"
"""The reason of dropped rows. Samples dropped by a full queue have no row."""


@dataclass(frozen=True, kw_only=True)
class ListedScore(NoTruthValue):
    """A score in the ledger."""

    _tested_by = ".value, against a threshold"
    time: datetime
    """The time of submission; for a run's scores, the start of the run."""
    source: Source
    stream: str | None
    """The name of the `Live`; None for a run's scores."""
    run: str | None
    """The ID of the run; None for live scores."""
    run_name: str
    """The name of the run; "" for a run without a name, and for live scores."""
    entity: str
    """The evaluated entity: as submitted for live scores, the target for a run; "" if unknown."""
    scorer: str
    """The scorer's name, with its parameters."""
    signature: str
    """The scorer's signature."""
    sample_id: str
    """The sample's ID; "" while it is pending, and if it was dropped."""
    state: live.State
    value: float | None
    scale: float | None
    reason: str
    """The reason, or the error; "" while it is pending."""
    trace: str | None
    """The trace that was scored, if any."""
    cursor: str
    """The start of the next page: pass it as `before` to the next call."""


class ScoreList(list[ListedScore], Shown):
    """A page of the scores in a ledger, newest first.

    Attributes:
        following: The cursor of the next page, if this one is full; otherwise None.
    """

    def __init__(self, scores: Iterable[ListedScore], following: str | None = None) -> None:
        super().__init__(scores)
        self.following = following

    def __bool__(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride] - it is a list
        return len(self) > 0

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that `evalstone ledger scores` shows."""
        from evalstone.ledger.views import scores_view  # noqa: PLC0415 - only showing it needs it

        return scores_view(self, front_end)

    def csv_lines(self) -> Iterable[str]:
        """One row per score."""
        from evalstone.ledger.views import scores_csv  # noqa: PLC0415 - as above

        return scores_csv(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        scores = [{**to_jsonable(one), "time": one.time.isoformat()} for one in self]
        return {"format": SCORE_LIST_FORMAT, "scores": scores, "next": self.following}


def list_scores(
    ledger: str | Path | None = None,
    *,
    scorer: str | None = None,
    source: Source | None = None,
    stream: str | None = None,
    run: str | None = None,
    entity: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = PAGE,
    before: str | None = None,
) -> ScoreList:
    """Scores of live scoring and of evaluations, newest first.

    Args:
        ledger: Path or URL; by default `.evalstone/ledger.db`.
        scorer: Only scores of the scorer with this signature, or of all scorers with this name, or with this name and
            these parameters.
        source: "live" for traffic, "trace" for stored traces, "run" for runs.
        stream: Only live scores of the `Live` of this name.
        run: Only scores of the run with this ID, or of all runs with this name.
        entity: Only scores of this entity.
        since: From this time on.
        until: Before this time.
        limit: The maximum number of scores.
        before: The `cursor` of the last score of the previous page.

    Raises:
        ConfigError: There is no such ledger, the source is unknown, the limit is below 1, a time has no time zone, or
            `before` isn't a cursor.
        LedgerError: The ledger can't be read.
    """
    check_argument("source", source, Source | None)
    check_time("since", since)
    check_time("until", until)
    check_argument("limit", limit, Annotated[int, Range(1)])
    limit = min(limit, sys.maxsize)
    at = _Cursor.read(before)
    with Ledger(existing(ledger), read_only=True) as opened:
        search = _Search(opened, scorer, source, stream, run, entity, since, until, limit, at)
        live_too, runs_too = source != "run" and run is None, source in ("run", None) and stream is None
        parts = [*(search.live() if live_too else ()), *(search.runs() if runs_too else ())]
        # Merge by time, live scores before run scores of the same time. Each part is already in this order.
        merged = heapq.merge(*parts, key=lambda one: one[0])
        found = [score for _, score in itertools.islice(merged, limit)]
    return ScoreList(found, found[-1].cursor if len(found) == limit else None)


def unknown_names(ledger: str | Path | None, *, scorer: str | None = None, stream: str | None = None) -> list[str]:
    """For a scorer and a stream without scores: messages for names that the ledger doesn't have, with those it has.

    Errors as for `list_scores`.
    """
    problems: list[str] = []
    with Ledger(existing(ledger), read_only=True) as opened:
        if scorer is not None:
            signatures = {*_live_signatures(opened), *_signatures_of_runs(opened)}
            if not any(is_named(signature, scorer) for signature in signatures):
                problems.append(str(not_scored(scorer, {scorer_name(signature) for signature in signatures})))
        if stream is not None and stream not in (known := live.streams(opened)):
            problems.append(str(unknown("stream", stream, known)))
    return problems


@dataclass(frozen=True)
class _Cursor:
    """The position of a score in the list: its time in seconds, and its ID, or its run, signature and position."""

    time: float
    place: tuple[Any, ...]

    @classmethod
    def read(cls, text: str | None) -> _Cursor | None:
        if text is None:
            return None
        try:
            time, *place = json.loads(text)
            kinds = (str,) if len(place) == 1 else (str, str, int)
            if len(place) == len(kinds) and all(map(isinstance, place, kinds)) and math.isfinite(time):
                return cls(float(time), tuple(place))
        except (ValueError, TypeError, OverflowError, RecursionError):
            pass
        raise ConfigError(invalid("before", "the cursor of a listed score", text, f"{text!r:.80}"))

    def __str__(self) -> str:
        return json.dumps([self.time, *self.place])


_Part = Iterator[tuple[tuple[Any, ...], ListedScore]]


@dataclass(frozen=True)
class _Search:
    ledger: Ledger
    scorer: str | None
    source: Source | None
    stream: str | None
    run: str | None
    entity: str | None
    since: datetime | None
    until: datetime | None
    limit: int
    before: _Cursor | None

    def live(self) -> list[_Part]:
        """Live scores, one part per signature with the scorer's name."""
        if self.scorer is None:
            return [self._live(None)]
        return [self._live(one) for one in _live_signatures(self.ledger) if is_named(one, self.scorer)]

    def _live(self, signature: str | None) -> _Part:
        at = self.before
        # All live scores with the time of a run's score come before it.
        place = None if at is None else (at.time, at.place[0] if len(at.place) == 1 else "")
        while True:
            rows = live.scores(
                self.ledger,
                signature=signature,
                source=self.source,
                stream=self.stream,
                entity=self.entity,
                since=None if self.since is None else self.since.timestamp(),
                until=None if self.until is None else self.until.timestamp(),
                limit=min(PAGE, self.limit),
                before=place,
            )
            for row in rows:
                yield (-row.submitted, 0, _Backwards(row.id)), listed_live(self.ledger, row)
            if len(rows) < min(PAGE, self.limit):
                return
            place = rows[-1].submitted, rows[-1].id

    def runs(self) -> list[_Part]:
        """The scores of evaluations as one part: the latest run first, by scorer within a run."""
        with self.ledger.transaction() as database:
            rows = database.execute("SELECT id, started, metadata FROM runs").fetchall()
        listing: list[_ListedRun] = []
        for id, start, text in rows:
            with self.ledger.reading(f"run {id}"):
                metadata = cast("Mapping[str, Any]", json.loads(text))
                started = _time(start)
                target = cast("Mapping[str, Any] | None", metadata.get("target"))
                entity, name = str(target["identity"] if target else ""), str(metadata.get("name") or "")
                signatures = _signatures_of(metadata)
            outside = (self.since and started < self.since) or (self.until and started >= self.until)
            if outside or metadata.get("kind", "evaluation") != "evaluation":
                continue
            if self.entity in (None, entity) and self.run in (None, id, name):
                listing.append(_ListedRun(started.timestamp(), id, name, entity, signatures))
        return [self._runs(sorted(listing, key=lambda run: (-run.time, run.id)))]

    def _runs(self, listing: list[_ListedRun]) -> _Part:
        left, at = self.limit, self.before
        query = "SELECT cell, body FROM records WHERE run = :run AND signature = :signature"
        for time, run, name, entity, signatures in listing:
            after = at.place if at is not None and time == at.time and len(at.place) == 3 else ("", "", 0)
            if (at is not None and time > at.time) or run < after[0]:
                continue
            for signature in signatures:
                if (run == after[0] and signature < after[1]) or (
                    self.scorer is not None and not is_named(signature, self.scorer)
                ):
                    continue
                # The records of a run are in this order in an index.
                some = " AND cell < :cell" if (run, signature) == after[:2] else ""
                of = {"run": run, "signature": signature, "cell": after[2], "limit": left}
                with self.ledger.transaction() as database:
                    rows = database.execute(f"{query}{some} ORDER BY cell DESC LIMIT :limit", of).fetchall()
                for cell, body in rows:
                    with self.ledger.reading(f"a record of run {run}"):
                        record = Record.from_dict(json.loads(body))
                    cursor = _Cursor(time, (run, signature, cell))
                    of_run = _Origin(
                        source="run",
                        run=run,
                        run_name=name,
                        entity=entity,
                        scorer=without_fingerprints(signature),
                        signature=signature,
                    )
                    yield (-time, 1, run, signature, -cell), _listed(record, cursor, of_run)
                left -= len(rows)
                if left <= 0:
                    return


class _ListedRun(NamedTuple):
    time: float
    id: str
    name: str
    entity: str
    signatures: list[str]
    """Those of its scorers, in the order of the list."""


class _Backwards(str):
    """Text with reversed sort order."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


@dataclass(frozen=True, kw_only=True)
class _Origin:
    """The origin of a score."""

    source: Source
    stream: str | None = None
    run: str | None = None
    run_name: str = ""
    entity: str
    scorer: str
    signature: str
    trace: str | None = None


def listed_live(ledger: Ledger, row: live.LiveScore) -> ListedScore:
    """A live score as in a list. Raises LedgerError if its record is damaged."""
    with ledger.reading(f"live score {row.id}"):
        record = row.record
    cursor = _Cursor(row.submitted, (row.id,))
    of = _Origin(
        source=cast("Source", row.source),
        stream=row.stream,
        entity=row.entity or "",
        scorer=without_fingerprints(row.signature),
        signature=row.signature,
        trace=row.trace,
    )
    if record is not None:
        return _listed(record, cursor, of)
    return ListedScore(
        time=utc_time(row.submitted),
        **vars(of),
        sample_id="",
        state=row.state,
        value=None,
        scale=None,
        reason=BUDGET_SPENT if row.state == "dropped" else "",
        cursor=str(cursor),
    )


def _listed(record: Record, cursor: _Cursor, of: _Origin) -> ListedScore:
    outcome = record.outcome
    score = outcome if isinstance(outcome, Score) else None
    return ListedScore(
        time=utc_time(cursor.time),
        **vars(of),
        sample_id=record.key,
        state=live.STATES[type(outcome)],
        value=None if score is None else score.value,
        scale=None if score is None else score.scale,
        reason=outcome.reason,
        cursor=str(cursor),
    )


def _time(started: str) -> datetime:
    time = datetime.fromisoformat(started)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _live_signatures(ledger: Ledger) -> Iterator[str]:
    """The signatures of the scorers of live scores, by skipping through an index instead of reading all rows."""
    last = ""
    while True:
        with ledger.transaction() as database:
            found = database.scalar("SELECT min(signature) FROM live_scores WHERE signature > :last", {"last": last})
        if found is None:
            return
        yield (last := str(found))


def _signatures_of_runs(ledger: Ledger) -> Iterator[str]:
    with ledger.transaction() as database:
        rows = database.execute("SELECT id, metadata FROM runs").fetchall()
    for id, metadata in rows:
        with ledger.reading(f"run {id}"):
            yield from _signatures_of(json.loads(metadata))


def _signatures_of(metadata: Mapping[str, Any]) -> list[str]:
    """The signatures of a run's scorers, as its records have them."""
    return sorted(storable(scorer["signature"]) for scorer in metadata["scorers"])


@dataclass(frozen=True)
class WatchedScore:
    """The fields of a live score that a watch needs."""

    id: str
    submitted: float
    finished: float | None
    share: float | None
    """The score as a share of its scale; None without a score."""
    trace: str | None
    group: str | None


def watched_scores(
    ledger: Ledger, stream: str, signature: str, *, since: float | None = None, until: float | None = None
) -> Iterator[WatchedScore]:
    """The scores of a stream by one scorer, in order of submission. since and until: seconds since 1970.

    Exhaust the iterator before any other use of the ledger.
    """
    # Only samples with a group need to be parsed.
    query = """
        SELECT id, submitted, finished, value, scale, trace,
            CASE WHEN samples.body LIKE '%"group": %' THEN samples.body END
        FROM live_scores LEFT JOIN samples ON live_scores.sample = samples.hash
        WHERE stream = :stream AND signature = :signature
    """
    if since is not None:
        query += " AND submitted >= :since"
    if until is not None:
        query += " AND submitted < :until"
    of = {"stream": storable(stream), "signature": signature, "since": since, "until": until}
    with ledger.transaction() as database:
        rows = database.execute(f"{query} ORDER BY submitted, id", of)
        for id, submitted, finished, value, scale, trace, sample in rows:
            group = None
            if sample is not None:
                with ledger.reading(f"the sample of live score {id}"):
                    group = sample_of(json.loads(sample)).cluster
            share = None if value is None else value / scale
            yield WatchedScore(id, submitted, finished, share, trace, group)


def newest_record(ledger: Ledger, stream: str, signature: str) -> Record | None:
    """The record of the latest score of a stream by one scorer; None if there is none."""
    query = """
        SELECT body FROM live_scores WHERE stream = :stream AND signature = :signature AND state = 'score'
        ORDER BY submitted DESC LIMIT 1
    """
    with ledger.transaction() as database:
        body = database.scalar(query, {"stream": storable(stream), "signature": signature})
    if body is None:
        return None
    with ledger.reading(f"a live score of {stream}"):
        return Record.from_dict(json.loads(body))

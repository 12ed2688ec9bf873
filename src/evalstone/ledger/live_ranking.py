# ruff: noqa: S608 - statements are put together from our own names
"""The live scores of a stream by how good they are, and what belongs to one of them."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evalstone._core.json import storable
from evalstone.datasets.stored import sample_of
from evalstone.errors import ConfigError, invalid
from evalstone.ledger.live import LiveScore, State, from_row, hours
from evalstone.ledger.schema import live_scores
from evalstone.ledger.store import Ledger
from evalstone.types import Sample

MOST_READ = 200_000
"""The most characters of a stored sample that is read for a list."""
_ALIASED = ", ".join(f"live_scores.{name}" for name in live_scores.columns)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Which live scores of a stream are listed, and in which order. What they are chosen by is in one index, which is
    read once, whatever is chosen."""

    stream: str
    state: State | None = None
    signatures: Collection[str] | None = None
    """Those of the scorers; None for all."""
    source: str | None = None
    entities: Collection[str] | None = None
    since: float | None = None
    """Seconds since 1970, rounded down to the hour."""
    until: float | None = None
    """Rounded up to the hour."""
    worst_first: bool = False
    """Whether they are ordered by their scores, so that the others are left out; otherwise, the latest are first."""
    lower_is_better: Collection[str] = ()
    """The signatures of scorers whose higher scores are worse."""

    def page(
        self, ledger: Ledger, limit: int, after: str = "", *, backwards: bool = False
    ) -> list[tuple[str, LiveScore]]:
        """At most `limit` scores of the list, each with its place.

        after: the place of the score before the first one. backwards: from there to the beginning of the list.

        Raises:
            ConfigError: `after` isn't such a place.
        """
        where, of = self._where()
        rank = (
            "CASE WHEN signature IN texts(:lower) THEN 1 - value / scale ELSE value / scale END"
            if self.worst_first
            else "-hour"
        )
        following, earlier, orders = ("<", ">", ("DESC", "ASC")) if backwards else (">", "<", ("ASC", "DESC"))
        if after:
            of["rank"], of["position"] = _place(after)
            where.append(f"({rank} {following} :rank OR ({rank} = :rank AND position {earlier} :position))")
        of |= {"lower": _listed(self.lower_is_better), "limit": limit}
        chosen = (
            f"SELECT {rank} AS rank, position FROM live_scores WHERE {' AND '.join(where)} "
            f"ORDER BY rank {orders[0]}, position {orders[1]} LIMIT :limit"
        )
        with ledger.transaction(snapshot=True) as database:
            places = database.execute(chosen, of).fetchall()
            numbers = ", ".join(str(int(position)) for _, position in places) or "-1"
            found = database.execute(
                f"SELECT position, {live_scores.names} FROM live_scores WHERE position IN ({numbers})"
            )
            rows = {position: from_row(values) for position, *values in found}
        return [(json.dumps([*place]), rows[place[1]]) for place in places]

    def _where(self) -> tuple[list[str], dict[str, Any]]:
        where = ["stream = :stream", "hour >= :first", "hour < :end"]
        of: dict[str, Any] = {"stream": storable(self.stream), **hours(self.since, self.until)}
        state = "score" if self.worst_first else self.state
        for name, value in (("state", state), ("source", self.source)):
            if value is not None:
                where.append(f"{name} = :{name}")
                of[name] = value
        for name, values in (("signature", self.signatures), ("entity", self.entities)):
            if values is not None:
                where.append(f"{name} IN texts(:{name})")
                of[name] = _listed(map(storable, values))
        return where, of


def _place(text: str) -> tuple[float, int]:
    try:
        rank, position = json.loads(text)
        if isinstance(position, int) and math.isfinite(rank) and abs(position) < 1 << 62:
            return float(rank), position
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    raise ConfigError(invalid("after", "a place in the list, as a page leads to", text, f"{text!r:.80}"))


def submission(ledger: Ledger, stream: str, id: str) -> tuple[list[LiveScore], Sample | None]:
    """The scores by all scorers of what was submitted together with one of them, and the sample. Nothing for an unknown
    ID, and no sample if it isn't a valid one."""
    one = f"SELECT {live_scores.names} FROM live_scores WHERE id = :id AND stream = :stream"
    those = f"""
        SELECT {_ALIASED}, samples.body FROM live_scores LEFT JOIN samples ON live_scores.sample = samples.hash
        WHERE stream = :stream AND submitted = :submitted ORDER BY id
    """
    of = {"id": storable(id), "stream": storable(stream)}
    with ledger.transaction(snapshot=True) as database:
        found = database.execute(one, of).fetchone()
        if found is None:
            return [], None
        row = from_row(found)
        beside = database.execute(those, {"stream": storable(stream), "submitted": row.submitted}).fetchall()
    body, rows = None, list[LiveScore]()
    for *values, stored in beside:
        each = from_row(values)
        # The last part of an ID is the number of the scorer.
        if each.id.rpartition("/")[0] == row.id.rpartition("/")[0]:
            rows.append(each)
            body = stored if each.id == row.id else body
    with ledger.reading(f"the sample of live score {row.id}"):
        return rows, None if body is None else sample_of(json.loads(body))


def samples_behind(ledger: Ledger, rows: Iterable[LiveScore], most: int | None = None) -> Mapping[str, Sample]:
    """The samples of live scores by their hashes. most: leave out longer ones."""
    hashes = list(dict.fromkeys(row.sample for row in rows if row.sample is not None))
    query = "SELECT hash, body FROM samples WHERE hash IN texts(:hashes)"
    if most is not None:
        query += f" AND length(body) <= {most:d}"
    with ledger.transaction() as database:
        found = dict(cast("Sequence[tuple[str, str]]", database.execute(query, {"hashes": _listed(hashes)}).fetchall()))
    samples: dict[str, Sample] = {}
    for key in hashes:
        if key in found:
            with ledger.reading(f"the live sample {key}"):
                samples[key] = sample_of(json.loads(found[key]))
    return samples


def _listed(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))

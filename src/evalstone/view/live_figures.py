"""The live scores of a stream in numbers: means and counts by scorer, source, entity and time."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

from evalstone.ledger.base import HOUR, hour_start
from evalstone.ledger.live import MOST_HOURS, LiveCounts, Tally, counts
from evalstone.ledger.live_state import LiveState, first_new_hour, follows, live_state
from evalstone.ledger.store import Ledger
from evalstone.live.accounting import Coverage, Rows, covered
from evalstone.results.summary import ScorerInfo
from evalstone.scorers import SCORERS
from evalstone.types import scorer_name
from evalstone.view.shelf import Card

T = TypeVar("T")
STEPS = (1, 3, 6, 12, 24, 168, 672, 2688)
"""Hours that a point in a plot over time may stand for."""
MOST_POINTS = 60
MOST_READ = 8
"""The number of periods of streams whose figures are kept."""
MOST_STREAMS = 100
"""The number of streams whose figures are kept."""


@dataclass
class Reading:
    """The counts and tallies of a stream in the hours of a period, and what follows from them."""

    stream: str
    counted: Sequence[LiveCounts]
    tallies: Sequence[Tally]
    first: int | None = None
    """The first hour since 1970; None for all."""
    end: int | None = None
    """The hour behind the last one."""
    settled: Settled | None = None
    """What is known of the first of the tallies."""

    @cached_property
    def coverage(self) -> Coverage:
        """As `evalstone live coverage` shows it."""
        since, until = (None if hour is None else hour_start(hour) for hour in (self.first, self.end))
        rows = self._settled.rows.with_more(self.tallies[self._settled.number :])
        return covered(self.stream, self.counted, rows, since=since, until=until)

    @cached_property
    def figures(self) -> Figures:
        """The sums of all."""
        return self._settled.figures.with_more(self.tallies[self._settled.number :])

    @cached_property
    def _settled(self) -> Settled:
        step = step_over(self.tallies)
        return self.settled if self.settled is not None and self.settled.figures.step == step else Settled.of((), step)

    @cached_property
    def scales(self) -> Mapping[str, float]:
        """The scales of the scorers by signature."""
        scales = {each.signature: 1.0 for each in self.coverage.scorers}
        return scales | {each.signature: each.scale for each in self.tallies if each.scale is not None}

    @cached_property
    def missing(self) -> int:
        """How many more rows were accepted than there are, of all scorers together."""
        return sum(each.accepted for each in self.counted) - sum(each.number for each in self.tallies)

    def within(self, first: int | None, end: int | None) -> Reading:
        """Some of its hours."""

        def has(each: LiveCounts | Tally) -> bool:
            return (first is None or each.hour >= first) and (end is None or each.hour < end)

        return Reading(self.stream, [*filter(has, self.counted)], [*filter(has, self.tallies)], first, end)


@dataclass(frozen=True)
class Settled:
    """The sums over the first tallies of a stream, which stay the same while later hours change."""

    number: int
    """The number of tallies."""
    figures: Figures
    rows: Rows

    @classmethod
    def of(cls, tallies: Sequence[Tally], step: int) -> Settled:
        """The sums over tallies. step: the hours of a period."""
        return cls(len(tallies), Figures({}, {}, {}, {}, step, None).with_more(tallies), Rows().with_more(tallies))


class Readings:
    """What was read of streams. Hours whose scores haven't changed aren't read again."""

    def __init__(self) -> None:
        self._streams: dict[str, tuple[LiveState, Reading]] = {}
        self._periods: dict[tuple[str, int | None, int | None], tuple[Reading, Reading]] = {}
        """By stream and period: what the period is a part of, and the part."""
        self._lock = threading.Lock()

    def of(self, ledger: Ledger, stream: str, since: float | None = None, until: float | None = None) -> Reading:
        """The hours of a period, rounded as `evalstone.ledger.live.counts` does. since, until: seconds since 1970."""
        with self._lock:
            whole = self._whole(ledger, stream)
            first = None if since is None else int(since // HOUR)
            end = None if until is None else math.ceil(until / HOUR)
            if first is None and end is None:
                return whole
            key = (stream, first, end)
            known = self._periods.pop(key, None)
            part = known[1] if known is not None and known[0] is whole else whole.within(first, end)
            self._periods[key] = whole, part
            while len(self._periods) > MOST_READ:
                del self._periods[next(iter(self._periods))]
            return part

    def _whole(self, ledger: Ledger, stream: str) -> Reading:
        state = live_state(ledger, stream)
        known = self._streams.get(stream)
        if known is not None and known[0] == state:
            return known[1]
        reading = None
        if known is not None and follows(ledger, state, known[0]):
            reading = _updated(ledger, *known)
            # A row may become visible after one that is behind it, if they are written at the same time.
            if reading.missing != known[1].missing:
                reading = None
        if reading is None:
            reading = Reading(stream, *counts(ledger, stream))
        self._streams.pop(stream, None)
        self._streams[stream] = state, reading
        while len(self._streams) > MOST_STREAMS:
            del self._streams[next(iter(self._streams))]
        return reading


def _updated(ledger: Ledger, before: LiveState, known: Reading) -> Reading:
    """A reading with the hours read again in which rows are new or were pending."""
    hours = [each.hour for each in known.tallies if each.state == "pending"]
    if (new := first_new_hour(ledger, known.stream, before.last)) is not None:
        hours.append(new)
    hour = min(hours, default=MOST_HOURS)
    counted, tallies = counts(ledger, known.stream, tallied_since=hour * HOUR)
    earlier = [each for each in known.tallies if each.hour < hour]
    every, settled = [*earlier, *tallies], known.settled
    if settled is None or settled.number != len(earlier):
        settled = Settled.of(earlier, step_over(every))
    return Reading(known.stream, counted, every, settled=settled)


@dataclass
class Sums:
    """What became of samples, and the sum of their scores."""

    states: Counter[str] = field(default_factory=Counter[str])
    total: float = 0.0

    def copy(self) -> Sums:
        """The same sums, to add to."""
        return Sums(self.states.copy(), self.total)

    @property
    def n_score(self) -> int:
        """The number of scores."""
        return self.states["score"]

    @property
    def mean(self) -> float | None:
        """The mean of the scores; None without any."""
        return self.total / self.n_score if self.n_score else None


Grouped: TypeAlias = Mapping[str, Mapping[str, Sums]]
"""By a source, an entity or another name, and then by the signature of the scorer."""


@dataclass(frozen=True)
class Figures:
    """Sums of live scores by what they are of.

    Attributes:
        step: The hours of a period in `times`.
        times: By the first hour of a period, and then by signature.
        hours: The first hour, and the one behind the last; None without scores.
    """

    scorers: Mapping[str, Sums]
    sources: Grouped
    entities: Grouped
    times: Mapping[int, Mapping[str, Sums]]
    step: int
    hours: tuple[int, int] | None

    @classmethod
    def of(
        cls,
        tallies: Sequence[Tally],
        *,
        signatures: Collection[str] | None = None,
        source: str = "",
        entities: Collection[str] | None = None,
    ) -> Figures:
        """The sums of tallies of chosen scorers, of a source, and of chosen entities."""
        every = signatures is None and not source and entities is None
        chosen = tallies if every else [each for each in tallies if _matches(each, signatures, source, entities)]
        return cls({}, {}, {}, {}, step_over(chosen), None).with_more(chosen)

    def with_more(self, tallies: Iterable[Tally]) -> Figures:
        """These sums, and those of further tallies in periods of as many hours."""
        step, by_scorer = self.step, {name: sums.copy() for name, sums in self.scorers.items()}
        by_source, by_entity, by_time = _copied(self.sources), _copied(self.entities), _copied(self.times)
        hours = set[int]() if self.hours is None else {self.hours[0], self.hours[1] - 1}
        for signature, hour, state, of, entity, _, _, number, total in tallies:
            hours.add(hour)
            for group in (by_scorer, by_source[of], by_entity[entity or ""], by_time[hour // step * step]):
                sums = group.get(signature)
                if sums is None:
                    sums = group[signature] = Sums()
                sums.states[state] += number
                if total:
                    sums.total += total
        ends = (min(hours), max(hours) + 1) if hours else None
        return Figures(by_scorer, by_source, by_entity, dict(sorted(by_time.items())), step, ends)

    @property
    def states(self) -> Counter[str]:
        """What became of all samples, counted once for each scorer."""
        return sum((sums.states for sums in self.scorers.values()), Counter[str]())

    def line(self, signature: str, scale: float) -> list[tuple[int, float]]:
        """The means of a scorer by the first hour of each period that has one, as shares of its scale."""
        means = ((hour, group[signature].mean) for hour, group in self.times.items() if signature in group)
        return [(hour, mean / scale) for hour, mean in means if mean is not None]


def _copied(groups: Mapping[T, Mapping[str, Sums]]) -> defaultdict[T, dict[str, Sums]]:
    copied = {key: {name: sums.copy() for name, sums in group.items()} for key, group in groups.items()}
    return defaultdict(dict, copied)


def _matches(tally: Tally, signatures: Collection[str] | None, source: str, entities: Collection[str] | None) -> bool:
    return (
        (signatures is None or tally.signature in signatures)
        and (not source or tally.source == source)
        and (entities is None or (tally.entity or "") in entities)
    )


def step_over(tallies: Sequence[Tally]) -> int:
    """The hours that a point stands for in a plot of tallies."""
    hours = [each.hour for each in tallies] or [0]
    return step_of(min(hours), max(hours))


def step_of(first: int, last: int) -> int:
    """The hours that a point stands for in a plot from one hour to another."""
    return next((step for step in STEPS if last // step - first // step < MOST_POINTS), STEPS[-1])


def scorers_of(scales: Mapping[str, float], cards: Sequence[Card]) -> dict[str, ScorerInfo]:
    """Scorers by signature, as runs or evalstone itself know them. For others, higher counts as better.

    scales: by signature. cards: runs that may have the same scorers.
    """
    known = {
        stored.signature: ScorerInfo.of(stored)
        for card in cards
        if card.metadata is not None
        for stored in card.metadata.scorers
        if stored.signature in scales
    }
    infos: dict[str, ScorerInfo] = {}
    for signature in sorted(scales):
        name = scorer_name(signature)
        kind = SCORERS.get(name)
        infos[signature] = known.get(signature) or ScorerInfo(
            name=name,
            signature=signature,
            scale=scales[signature],
            lower_is_better=kind is not None and kind.lower_is_better,
        )
    return infos

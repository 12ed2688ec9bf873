"""A run by sample: its records, how good they are together, and the sample itself where it is at hand."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo
from evalstone.types import Record, Sample, Score


@dataclass(frozen=True)
class SampleResult:
    """What the scorers made of one sample. sample: None where the texts are not at hand."""

    id: str
    records: tuple[Record, ...]
    sample: Sample | None
    goodness: float | None


def goodness(record: Record, info: ScorerInfo) -> float | None:
    """How good a score is, from 0 to 1 whatever its scale and direction; None for a skip or a failure."""
    if not isinstance(record.outcome, Score):
        return None
    return 1 - record.outcome.fraction if info.lower_is_better else record.outcome.fraction


def mean_goodness(records: Iterable[Record], scorers: Mapping[str, ScorerInfo]) -> float | None:
    """The mean goodness over those records that are scores; None when none is."""
    found = [good for record in records if (good := goodness(record, scorers[record.scorer])) is not None]
    return sum(found) / len(found) if found else None


def results_of(run: Run, *, most: int | None = None) -> Iterator[SampleResult]:
    """The samples of a run with their records, in the order of the data set where it is at hand.

    most: only so many of them, the least good, and those without any score before all others.
    """
    # A run that ended early finds its records by going through all of them.
    records_at = run.records if isinstance(run.records, tuple | list) else tuple(run.records)
    places = _places(records_at)
    scorers = {info.signature: info for info in run.scorers}
    chosen = None if most is None or len(places) <= most else _lowest(records_at, places, scorers, most)
    for name, sample in _named(run.dataset, places):
        if chosen is None or name in chosen:
            records = tuple(records_at[place] for place in places[name])
            yield SampleResult(name, records, sample, mean_goodness(records, scorers))


def _places(records: Sequence[Record]) -> dict[str, array[int]]:
    """Where each sample's records stand; a ledger gives them in the order in which they were made."""
    places: dict[str, array[int]] = {}
    for place, record in enumerate(records):
        places.setdefault(record.sample, array("q")).append(place)
    return places


def _lowest(
    records: Sequence[Record], places: Mapping[str, array[int]], scorers: Mapping[str, ScorerInfo], most: int
) -> set[str]:
    def rank(name: str) -> float:
        found = mean_goodness((records[place] for place in places[name]), scorers)
        return -1.0 if found is None else found

    return set(heapq.nsmallest(most, places, key=rank))


def _named(data: Iterable[Sample] | None, places: Mapping[str, object]) -> Iterator[tuple[str, Sample | None]]:
    """The samples that have records: those that are at hand, then the names of the others."""
    seen: set[str] = set()
    for sample in data or ():
        if sample.id in places:
            seen.add(sample.id)
            yield sample.id, sample
    for name in places:
        if name not in seen:
            yield name, None

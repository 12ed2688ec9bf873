"""The samples of a run from worst to best, from one pass over its columns."""

from __future__ import annotations

import importlib
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone.results.columns import Entry

if TYPE_CHECKING:
    from evalstone.results.run import Run

_AT_ONCE = 65_536


@dataclass(frozen=True)
class Ranking:
    """The samples (and trials) of a run by their mean goodness: from 0 to 1, over all scorers with a score."""

    run: Run
    cases: Sequence[int]
    """The numbers of the samples (and trials) with a record, in the order of their first records."""
    means: array[float]
    """The mean of each of them; NaN without a score."""

    @classmethod
    def of(cls, run: Run) -> Ranking:
        """The ranking of a run."""
        np: Any = importlib.import_module("numpy")
        if (by_scorer := run.columns.by_scorer) is not None:
            return cls(run, range(run.columns.size), _means(run, by_scorer))
        size = run.columns.size
        cases, numbers, values = map(np.asarray, run.columns.cells())
        goodness = np.empty(len(values))
        for number, info in enumerate(run.scorers):
            own = numbers == number
            goodness[own] = info.goodness(values[own])
        known = ~np.isnan(values)
        totals = np.zeros(size)
        np.add.at(totals, cases[known], goodness[known])  # in the order of the records
        scored = np.bincount(cases[known], minlength=size)
        with np.errstate(invalid="ignore"):
            means = np.where(scored > 0, totals / scored, math.nan)
        present = np.bincount(cases, minlength=size) > 0
        return cls(run, np.flatnonzero(present).tolist(), array("d", means[present].tobytes()))

    def worst(self, most: int) -> dict[str, list[int]]:
        """The samples with the lowest means below 1, worst first: their keys, with the places of their records. Of
        several trials of a sample, only the worst is listed, so that one sample doesn't fill the list."""
        from evalstone.stats.smallest import smallest_places  # noqa: PLC0415 - numpy

        np: Any = importlib.import_module("numpy")
        means = np.asarray(self.means)
        places: Any = np.flatnonzero(means < 1)
        if self.run.trials > 1:
            best: dict[str, int] = {}
            for place in places:
                sample = self.run.columns.sample(self.cases[int(place)])
                first = best.setdefault(sample, int(place))
                if self.means[place] < self.means[first]:
                    best[sample] = int(place)
            places = np.array([*best.values()], np.int64)
        return self._records(places[smallest_places(means[places], most)].tolist())

    def listed(self, most: int) -> dict[str, list[int]]:
        """The samples to list, in the order of the records: those without a score, then those with the lowest means.
        Their keys, with the places of their records."""
        from evalstone.stats.smallest import smallest_places  # noqa: PLC0415 - numpy

        np: Any = importlib.import_module("numpy")
        means = np.asarray(self.means)
        return self._records(sorted(smallest_places(np.where(np.isnan(means), -1.0, means), most).tolist()))

    def _records(self, places: Iterable[int]) -> dict[str, list[int]]:
        """The keys of the samples at these places, in their order, with the places of their records."""
        found: dict[int, list[Entry]] = {self.cases[place]: [] for place in places}
        for case, entry in self.run.columns.entries_of(found):
            found[case].append(entry)
        return {entries[0].key: [entry.place for entry in entries] for entries in found.values()}


def _means(run: Run, by_scorer: Sequence[Sequence[float]]) -> array[float]:
    """The mean of each case, from the values of each scorer."""
    np: Any = importlib.import_module("numpy")
    means = array("d", bytes(8 * run.columns.size))
    for start in range(0, len(means), _AT_ONCE):
        totals = np.frombuffer(means)[start : start + _AT_ONCE]
        scored = np.zeros(len(totals), np.int64)
        for info, values in zip(run.scorers, by_scorer, strict=True):  # in the order of the records
            goodness = info.goodness(np.asarray(values[start : start + _AT_ONCE]))
            known = ~np.isnan(goodness)
            np.add(totals, goodness, out=totals, where=known)
            scored += known
        with np.errstate(invalid="ignore"):
            np.divide(totals, scored, out=totals)
    return means

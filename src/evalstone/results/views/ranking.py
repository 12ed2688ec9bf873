"""The samples of a run from worst to best, from one pass over its columns."""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstone.results.columns import Entry

if TYPE_CHECKING:
    from evalstone.results.run import Run


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
        scorers, size = run.scorers, run.columns.size
        totals, scored, records = array("d", [0.0]) * size, array("l", [0]) * size, array("l", [0]) * size
        for case, number, value in run.columns.cells():
            records[case] += 1
            if value == value:  # not NaN
                totals[case] += scorers[number].goodness(value)
                scored[case] += 1
        cases = range(size) if all(records) else [case for case in range(size) if records[case]]
        means = array("d", [totals[case] / scored[case] if scored[case] else math.nan for case in cases])
        return cls(run, cases, means)

    def worst(self, most: int) -> dict[str, list[int]]:
        """The samples with the lowest means below 1, worst first: their keys, with the places of their records. Of
        several trials of a sample, only the worst is listed, so that one sample doesn't fill the list."""
        places = [place for place, mean in enumerate(self.means) if mean < 1]
        if self.run.trials > 1:
            best: dict[str, int] = {}
            for place in places:
                sample = self.run.columns.sample(self.cases[place])
                first = best.setdefault(sample, place)
                if self.means[place] < self.means[first]:
                    best[sample] = place
            places = list(best.values())
        return self._records(heapq.nsmallest(most, places, key=self.means.__getitem__))

    def listed(self, most: int) -> dict[str, list[int]]:
        """The samples to list, in the order of the records: those without a score, then those with the lowest means.
        Their keys, with the places of their records."""
        goodness = [-1.0 if math.isnan(mean) else mean for mean in self.means]
        places = range(len(goodness))
        if len(places) > most:
            places = sorted(heapq.nsmallest(most, places, key=goodness.__getitem__))
        return self._records(places)

    def _records(self, places: Iterable[int]) -> dict[str, list[int]]:
        """The keys of the samples at these places, in their order, with the places of their records."""
        found: dict[int, list[Entry]] = {self.cases[place]: [] for place in places}
        for case, entry in self.run.columns.entries_of(found):
            found[case].append(entry)
        return {entries[0].key: [entry.place for entry in entries] for entries in found.values()}

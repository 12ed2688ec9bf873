"""The samples of a run from worst to best, and how its scores are distributed, from one pass over its columns."""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstone.types import TOLERANCE

if TYPE_CHECKING:
    from evalstone.results.run import Run

BINS = 20


@dataclass(frozen=True)
class Ranking:
    """The samples (and trials) of a run by their mean goodness: from 0 to 1, over all scorers with a score."""

    run: Run
    means: array[float]
    """The mean of each sample and trial, in the order of the records; NaN without a score."""
    bins: Mapping[str, list[int]]
    """By scorer signature, how many scores lie in each of `BINS` equal parts of the scale."""

    @classmethod
    def of(cls, run: Run) -> Ranking:
        """The ranking of a run."""
        scorers = {info.signature: info for info in run.scorers}
        means, bins = array("d"), {signature: [0] * BINS for signature in scorers}
        for entries in run.columns.by_case():
            total, scored = 0.0, 0
            for entry in entries:
                if entry.value is not None:
                    info = scorers[entry.scorer]
                    bins[entry.scorer][min(BINS - 1, int(BINS * (entry.value / info.scale + TOLERANCE)))] += 1
                    total += info.goodness(entry.value)
                    scored += 1
            means.append(total / scored if scored else math.nan)
        return cls(run, means, bins)

    def worst(self, most: int) -> dict[str, list[int]]:
        """The samples with the lowest means below 1, worst first: their keys, with the places of their records. Of
        several trials of a sample, only the worst is listed, so that one sample doesn't fill the list."""
        places = [place for place, mean in enumerate(self.means) if mean < 1]
        if self.run.trials > 1:
            samples = [entries[0].sample for entries in self.run.columns.by_case()]
            best: dict[str, int] = {}
            for place in places:
                first = best.setdefault(samples[place], place)
                if self.means[place] < self.means[first]:
                    best[samples[place]] = place
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

    def _records(self, places: Collection[int]) -> dict[str, list[int]]:
        """The keys of the samples at these places, in their order, with the places of their records."""
        wanted: dict[int, tuple[str, list[int]]] = dict.fromkeys(places, ("", []))
        for place, entries in enumerate(self.run.columns.by_case() if wanted else ()):
            if place in wanted:
                wanted[place] = entries[0].key, [entry.place for entry in entries]
        return dict(wanted.values())

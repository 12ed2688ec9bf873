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
                    fraction = entry.value / info.scale
                    bins[entry.scorer][min(BINS - 1, int(BINS * (fraction + TOLERANCE)))] += 1
                    total += 1 - fraction if info.lower_is_better else fraction
                    scored += 1
            means.append(total / scored if scored else math.nan)
        return cls(run, means, bins)

    def worst(self, most: int) -> list[str]:
        """The keys of the samples with the lowest means below 1, and scores, worst first. Of several trials of a
        sample, only the worst is listed, so that one sample doesn't fill the list."""
        places = [place for place, mean in enumerate(self.means) if mean < 1]
        if self.run.trials > 1:
            samples = [entries[0].sample for entries in self.run.columns.by_case()]
            best: dict[str, int] = {}
            for place in places:
                first = best.setdefault(samples[place], place)
                if self.means[place] < self.means[first]:
                    best[samples[place]] = place
            places = list(best.values())
        return self._keys(heapq.nsmallest(most, places, key=self.means.__getitem__))

    def listed(self, most: int) -> Collection[str]:
        """The keys of the samples to list: those without a score, then those with the lowest means."""
        goodness = [-1.0 if math.isnan(mean) else mean for mean in self.means]
        places = range(len(goodness))
        if len(places) > most:
            places = heapq.nsmallest(most, places, key=goodness.__getitem__)
        return frozenset(self._keys(places))

    def _keys(self, places: Collection[int]) -> list[str]:
        """The keys of the samples at these places, in the order of the places."""
        wanted = dict.fromkeys(places, "")
        for place, entries in enumerate(self.run.columns.by_case()):
            if place in wanted:
                wanted[place] = entries[0].key
        return list(wanted.values())

    def indexes(self, keys: Collection[str]) -> dict[str, list[int]]:
        """The places of the records of samples with these keys."""
        found: dict[str, list[int]] = {}
        for entry in self.run.columns.entries():
            if entry.key in keys:
                found.setdefault(entry.key, []).append(entry.place)
        return found

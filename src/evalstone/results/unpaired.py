"""The scores of runs over different samples, for unpaired comparisons."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone.results.missing_scores import Missing
from evalstone.results.of_scorer import OfScorer
from evalstone.results.scores import Scores, scores_of
from evalstone.results.slices import ABSENT, slice_order
from evalstone.results.summary import ScorerInfo

if TYPE_CHECKING:
    from evalstone.results.run import Run


@dataclass(frozen=True)
class UnpairedScores(OfScorer):
    """One scorer's values in two runs over different samples."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    scores: tuple[Scores, Scores]
    """The values of each run by sample, and the ends of missing ones that count."""

    @property
    def units(self) -> int:
        """The number of independent samples or groups in the run with fewer of them."""
        return min(map(_units, self.scores))

    @property
    def columns(self) -> dict[str, Any]:
        """The arguments of `compare_unpaired`."""
        a, b = self.scores
        return {
            "a": a.values,
            "b": b.values,
            "ends": tuple(of.all_ends for of in self.scores),
            "groups": (a.labels, b.labels),
            "weights": (a.unequal_weights, b.unequal_weights),
        }

    def slices(self, keys_a: Mapping[str, str], keys_b: Mapping[str, str]) -> Iterator[tuple[str, UnpairedScores]]:
        """(key, scores) of each slice that both runs have. keys_a, keys_b: the slice key of each run's samples."""
        a, b = _by_key(self.scores[0], keys_a), _by_key(self.scores[1], keys_b)
        for key in sorted(a.keys() & b.keys(), key=slice_order):
            yield key, replace(self, scores=(a[key], b[key]))


def unpaired_scores(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, missing: Missing) -> UnpairedScores:
    """A scorer's values in two runs. missing: which samples without a score count."""
    scores = scores_of(a, ours.signature, missing), scores_of(b, theirs.signature, missing)
    return UnpairedScores(title=a.titles[ours.signature], info=ours, info_b=theirs, scores=scores)


def _units(scores: Scores) -> int:
    """The number of independent samples or groups with a score."""
    from evalstone.stats._arrays import has_value  # noqa: PLC0415 - numpy

    if (labels := scores.labels) is None:
        return int(has_value(scores.values).sum())
    return len({label for label, value in zip(labels, scores.values, strict=True) if value is not None})


def _by_key(scores: Scores, keys: Mapping[str, str]) -> dict[str, Scores]:
    members: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for row, name in enumerate(scores.names):
        members[keys.get(name, ABSENT)].append(row)
    return {key: scores.at(rows) for key, rows in members.items()}

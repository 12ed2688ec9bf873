"""The scores of runs over different samples, for comparisons that can't be made sample by sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from evalstone.results.run import OfScorer, Run, group_labels, scores_by_sample
from evalstone.results.slices import ABSENT, slice_order
from evalstone.results.summary import ScorerInfo


@dataclass(frozen=True)
class UnpairedScores(OfScorer):
    """One scorer's values in two runs over different samples."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    values: tuple[Mapping[str, float], Mapping[str, float]]
    """The values of each run by sample."""
    group_of: tuple[Mapping[str, str], Mapping[str, str]]
    """The groups of each run's samples, where they have one."""

    @property
    def groups(self) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
        """The groups of each run's values; None where no sample has one."""
        a, b = (group_labels(values, known) for values, known in zip(self.values, self.group_of, strict=True))
        return a, b

    @property
    def units(self) -> int:
        """How many samples, or groups, are independent in the run that has fewer."""
        both = zip(self.values, self.groups, strict=True)
        return min(len(values if groups is None else set(groups)) for values, groups in both)

    def slices(self, keys_a: Mapping[str, str], keys_b: Mapping[str, str]) -> Iterator[tuple[str, UnpairedScores]]:
        """The scores of each slice that both runs have, by key, given the keys of each run's samples."""
        a, b = _by_key(self.values[0], keys_a), _by_key(self.values[1], keys_b)
        for key in sorted(a.keys() & b.keys(), key=slice_order):
            yield key, replace(self, values=(a[key], b[key]), group_of=self._groups_in(a[key], b[key]))

    def _groups_in(self, *parts: Mapping[str, float]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        both = zip(parts, self.group_of, strict=True)
        a, b = ({name: known[name] for name in part if name in known} for part, known in both)
        return a, b


def unpaired_scores(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo) -> UnpairedScores:
    """A scorer's values in two runs."""
    (first, groups), (second, more) = scores_by_sample(a, ours.signature), scores_by_sample(b, theirs.signature)
    return UnpairedScores(a.titles[ours.signature], ours, theirs, (first, second), (groups, more))


def _by_key(values: Mapping[str, float], keys: Mapping[str, str]) -> dict[str, dict[str, float]]:
    members: dict[str, dict[str, float]] = {}
    for sample, value in values.items():
        members.setdefault(keys.get(sample, ABSENT), {})[sample] = value
    return members

"""The scores of one scorer in two runs over the same samples."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalstone.results.drawn import check_one_order, in_order
from evalstone.results.missing_scores import Missing
from evalstone.results.pairing import Pairing
from evalstone.results.run import OfScorer, Run
from evalstone.results.scores import check_same_weights, group_labels, scores_by_sample, weight_column
from evalstone.results.slices import ABSENT, slice_order
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Ends


@dataclass(frozen=True)
class OpenPairs:
    """The samples of two runs whose change is open, because a score is missing: in one run, in both, or in a trial."""

    samples: Sequence[str] = ()
    a: Sequence[float | None] = ()
    """The values in the first run; None without a score in any trial."""
    b: Sequence[float | None] = ()
    ends_a: Sequence[Ends] = ()
    """The lowest and the highest possible values in the first run."""
    ends_b: Sequence[Ends] = ()
    groups: Sequence[str] | None = None
    weights: Sequence[float] | None = None


@dataclass(frozen=True)
class PairedScores(OfScorer):
    """One scorer's values in two runs, sample by sample, in the order of the first run."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    samples: Sequence[str]
    """The ids of the samples with a score in both runs."""
    a: Sequence[float]
    """The values in the first run."""
    b: Sequence[float]
    """The values in the second run."""
    groups: Sequence[str] | None
    """The samples' groups. The first run's if both runs have one; None if neither has any."""
    weights: Sequence[float] | None
    """The samples' weights, which are the same in both runs; None if all are equal."""
    unpaired: int
    """The number of samples with a score in only one of the runs that are left out."""
    pairing: Pairing
    """Which sample of the second run is which sample of the first."""
    open: OpenPairs
    """The samples whose change is open but counts in tests."""
    places: Mapping[str, int] | None = None
    """If a gate stopped one of the runs, the place of each sample in the order in which they were drawn."""

    @property
    def all_samples(self) -> Sequence[str]:
        """The samples with a score in both runs, then those whose change is open."""
        return [*self.samples, *self.open.samples]

    @functools.cached_property
    def known(self) -> Sequence[tuple[str, float, float]]:
        """The samples with a score in both runs and their values; with trials, with one in at least one trial."""
        open_pairs = zip(self.open.samples, self.open.a, self.open.b, strict=True)
        partly = [(name, a, b) for name, a, b in open_pairs if a is not None and b is not None]
        return [*zip(self.samples, self.a, self.b, strict=True), *partly]

    @property
    def known_groups(self) -> Sequence[str] | None:
        """The groups of the samples in `known`; None if no sample has one."""
        if self.groups is None:
            return None
        group_of = dict(zip(self.all_samples, (*self.groups, *(self.open.groups or ())), strict=True))
        return [group_of[name] for name, _, _ in self.known]

    @property
    def units(self) -> int:
        """The number of independent units: samples with a score in both runs, or their groups."""
        groups = self.known_groups
        return len(self.known) if groups is None else len(set(groups))

    def slices(self, keys: Mapping[str, str]) -> Iterator[tuple[str, PairedScores]]:
        """The scores of each slice, by key. keys: that of each sample."""
        both = self, self.open
        members: dict[str, tuple[list[int], list[int]]] = {}
        for part, of in enumerate(both):
            for index, sample in enumerate(of.samples):
                members.setdefault(keys.get(sample, ABSENT), ([], []))[part].append(index)
        for key, indexes in sorted(members.items(), key=lambda item: slice_order(item[0])):
            columns, open_columns = (
                {
                    column: values and [values[index] for index in chosen]
                    for column in ("samples", "a", "b", "ends_a", "ends_b", "groups", "weights")
                    if (values := getattr(of, column, ())) != ()
                }
                for of, chosen in zip(both, indexes, strict=True)
            )
            yield key, replace(self, **columns, open=replace(self.open, **open_columns), unpaired=0)


def paired_scores(
    a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, pairing: Pairing, missing: Missing
) -> PairedScores:
    """A scorer's values in two runs. missing: which samples without a score in one of the runs are kept."""
    first, second = scores_by_sample(a, ours.signature, missing), scores_by_sample(b, theirs.signature, missing)
    if max(a.trials, b.trials) > 1:
        first, second = first.by_sample, second.by_sample
    second = pairing.scores(second)
    in_both = [name for name in first.sample_of if name in second.sample_of]
    if (order := _drawn_order(a, b, ours, theirs, pairing)) is not None:
        in_both = [name for name in in_both if name in order]
    is_open = {name for name in in_both if name in first.ends or name in second.ends}
    samples = tuple(name for name in in_both if name not in is_open)
    counted = tuple(name for name in in_both if name in is_open - (first.undefined & second.undefined))
    check_same_weights((*samples, *counted), first.weight_of, second.weight_of)
    groups = group_labels((*samples, *counted), {**second.group_of, **first.group_of})
    weights = weight_column((*samples, *counted), first.weight_of)
    n = len(samples)

    return PairedScores(
        title=a.titles[ours.signature],
        info=ours,
        info_b=theirs,
        samples=samples,
        a=array("d", (first.values[name] for name in samples)),
        b=array("d", (second.values[name] for name in samples)),
        groups=groups and groups[:n],
        weights=weights and weights[:n],
        unpaired=len(first.values.keys() ^ second.values.keys())
        - sum((name in first.values) != (name in second.values) for name in counted),
        pairing=pairing,
        open=OpenPairs(
            samples=counted,
            a=[first.values.get(name) for name in counted],
            b=[second.values.get(name) for name in counted],
            ends_a=[first.ends_of(name) for name in counted],
            ends_b=[second.ends_of(name) for name in counted],
            groups=groups and groups[n:],
            weights=weights and weights[n:],
        ),
        places=order,
    )


def _drawn_order(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, pairing: Pairing) -> dict[str, int] | None:
    """The places of the samples that count, if a gate stopped one of the runs, in the order in which they were drawn.

    Raises:
        ConfigError: gates stopped both runs, and their orders differ.
    """
    check_one_order(a.drawn, b.drawn)
    orders: list[list[str]] = []
    if a.drawn is not None:
        orders.append([record.key for record in in_order(a.records, a.drawn).get(ours.signature, ())])
    if b.drawn is not None:
        records = in_order(b.records, b.drawn).get(theirs.signature, ())
        orders.append([pairing.in_first(record.key) for record in records])
    if not orders:
        return None
    in_all = set(orders[0]).intersection(*orders[1:])
    return {name: place for place, name in enumerate(orders[0]) if name in in_all}

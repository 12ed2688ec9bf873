"""The scores of one scorer in two runs over the same samples."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from evalstone.results.drawn import check_one_order, in_order
from evalstone.results.missing_scores import Missing
from evalstone.results.of_scorer import OfScorer
from evalstone.results.pairing import Pairing
from evalstone.results.scores import check_same_weights, group_labels, scores_by_sample, weight_column
from evalstone.results.slices import ABSENT, slice_order
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Ends

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.stats.pilot import Pilot


@dataclass(frozen=True)
class KnownPairs:
    """The samples with a score in both runs; with trials, in at least one trial of each run."""

    samples: Sequence[str]
    """Their ids in the first run."""
    a: Sequence[float]
    """The values in the first run."""
    b: Sequence[float]
    """The values in the second run."""
    groups: Sequence[str] | None
    weights: Sequence[float] | None

    @property
    def rows(self) -> Sequence[tuple[str, float, float]]:
        """The id and both values of each sample."""
        return list(zip(self.samples, self.a, self.b, strict=True))


@dataclass(frozen=True)
class PairedScores(OfScorer):
    """One scorer's values in two runs, sample by sample, in the order of the first run."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    samples: Sequence[str]
    """The ids of the samples with a score in both runs, and of those whose missing scores count in tests."""
    a: Sequence[float | None]
    """The values in the first run; None without a score in any trial."""
    b: Sequence[float | None]
    """The values in the second run."""
    ends_a: Mapping[str, Ends]
    """By sample, the lowest and the highest possible value in the first run, if a score is missing, as of a trial."""
    ends_b: Mapping[str, Ends]
    """The same for the second run."""
    groups: Sequence[str] | None
    """The samples' groups. The first run's if both runs have one; None if neither has any."""
    weights: Sequence[float] | None
    """The samples' weights, which are the same in both runs; None if all are equal."""
    unpaired: int
    """The number of samples with a score in only one of the runs that are left out."""
    pairing: Pairing
    """Which sample of the second run is which sample of the first."""
    stopped: bool
    """Whether a gate stopped one of the runs. The samples are then in the order in which they were drawn."""

    @functools.cached_property
    def known(self) -> KnownPairs:
        """The samples with a score in both runs."""
        places = [place for place, pair in enumerate(zip(self.a, self.b, strict=True)) if None not in pair]
        known = self._only(places)
        a, b = (cast("Sequence[float]", values) for values in (known.a, known.b))
        return KnownPairs(known.samples, a, b, known.groups, known.weights)

    @property
    def missing(self) -> int:
        """The number of samples of which a score is missing: in one run, in both, or in a trial."""
        return sum(name in self.ends_a or name in self.ends_b for name in self.samples)

    @property
    def units(self) -> int:
        """The number of independent units: samples with a score in both runs, or their groups."""
        known = self.known
        return len(known.samples if known.groups is None else set(known.groups))

    @property
    def columns(self) -> dict[str, Any]:
        """The arguments of `compare_pairs`."""
        ends = tuple(
            [ends.get(name, (value, value)) for name, value in zip(self.samples, values, strict=True)]
            for ends, values in ((self.ends_a, self.a), (self.ends_b, self.b))
            if self.ends_a or self.ends_b
        )
        return {
            "a": self.a,
            "b": self.b,
            "ends": ends or None,
            "groups": self.groups,
            "weights": self.weights,
            "stopped": self.stopped,
        }

    def pilot(self, reach: float) -> Pilot | None:
        """The differences as a pilot of further comparisons. None for fewer than two samples (groups) with both scores.

        reach: The largest possible difference.
        """
        from evalstone.stats.comparison import possible_differences  # noqa: PLC0415 - numpy
        from evalstone.stats.pilot import Pilot  # noqa: PLC0415

        scale, of_ends = self.info.scale, self.columns["ends"]
        differences, ends = possible_differences(self.a, self.b, of_ends, scale=scale, reach=reach)
        scores = itertools.chain(self.known.a, self.known.b, *itertools.chain(*(of_ends or ())))
        return Pilot.of(
            differences,
            scale=reach,
            pass_fail=reach == scale and set(scores) <= {0.0, scale},
            groups=self.groups,
            ends=ends,
        )

    def slices(self, keys: Mapping[str, str]) -> Iterator[tuple[str, PairedScores]]:
        """The scores of each slice, by key. keys: that of each sample."""
        members: dict[str, list[int]] = {}
        for place, sample in enumerate(self.samples):
            members.setdefault(keys.get(sample, ABSENT), []).append(place)
        for key in sorted(members, key=slice_order):
            yield key, replace(self._only(members[key]), unpaired=0)

    def _only(self, places: Sequence[int]) -> PairedScores:
        """The scores of the samples at these places."""
        columns: dict[str, Any] = {
            name: [values[place] for place in places]
            for name in ("samples", "a", "b", "groups", "weights")
            if (values := getattr(self, name)) is not None
        }
        return replace(self, **columns)


def paired_scores(
    a: Run,
    b: Run,
    ours: ScorerInfo,
    theirs: ScorerInfo,
    pairing: Pairing,
    missing: Missing,
    *,
    by_trial: bool = False,
) -> PairedScores:
    """A scorer's values in two runs.

    missing: which samples without a score in one of the runs are kept. by_trial: whether trials are paired one by one;
    otherwise, a sample has the mean of its trials.
    """
    first, second = scores_by_sample(a, ours.signature, missing), scores_by_sample(b, theirs.signature, missing)
    if max(a.trials, b.trials) > 1 and not by_trial:
        first, second = first.by_sample, second.by_sample
    second = pairing.scores(second)
    in_both = [name for name in first.sample_of if name in second.sample_of]
    if (order := _drawn_order(a, b, ours, theirs, pairing)) is not None:
        in_both = sorted(order.keys() & in_both, key=order.__getitem__)
    undefined = first.undefined & second.undefined
    samples = tuple(name for name in in_both if name not in undefined)
    check_same_weights(samples, first.weight_of, second.weight_of)
    one_score = [name for name in samples if (name in first.values) != (name in second.values)]
    return PairedScores(
        title=a.titles[ours.signature],
        info=ours,
        info_b=theirs,
        samples=samples,
        a=[first.values.get(name) for name in samples],
        b=[second.values.get(name) for name in samples],
        ends_a=first.ends,
        ends_b=second.ends,
        groups=group_labels(samples, {**second.group_of, **first.group_of}),
        weights=weight_column(samples, first.weight_of),
        unpaired=len(first.values.keys() ^ second.values.keys()) - len(one_score),
        pairing=pairing,
        stopped=order is not None,
    )


def _drawn_order(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, pairing: Pairing) -> dict[str, int] | None:
    """The places of the samples that count, if a gate stopped one of the runs, in the order in which they were drawn.

    Raises:
        ConfigError: gates stopped both runs, and their orders differ.
    """
    check_one_order(a.drawn, b.drawn)
    orders: list[list[str]] = []
    if a.drawn is not None:
        first = in_order(a.columns.entries(ours.signature), a.drawn).get(ours.signature, ())
        orders.append([entry.key for entry in first])
    if b.drawn is not None:
        second = in_order(b.columns.entries(theirs.signature), b.drawn).get(theirs.signature, ())
        orders.append([pairing.in_first(entry.key) for entry in second])
    if not orders:
        return None
    in_all = set(orders[0]).intersection(*orders[1:])
    return {name: place for place, name in enumerate(orders[0]) if name in in_all}

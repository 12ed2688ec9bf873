"""The scores of one scorer in two runs over the same samples."""

from __future__ import annotations

import importlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from evalstone.results.drawn import check_one_order, in_order
from evalstone.results.missing_scores import Missing
from evalstone.results.of_scorer import OfScorer
from evalstone.results.pairing import Pairing
from evalstone.results.scores import Scores, at, check_same_weights, group_labels, scores_of
from evalstone.results.slices import ABSENT, slice_order
from evalstone.results.summary import ScorerInfo
from evalstone.stats.packed_scores import ends_only_have, index_of, only_has

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
    def rows(self) -> Iterator[tuple[str, float, float]]:
        """The id and both values of each sample."""
        return zip(self.samples, self.a, self.b, strict=True)


@dataclass(frozen=True)
class PairedScores(OfScorer):
    """One scorer's values in two runs, sample by sample, in the order of the first run."""

    info_b: ScorerInfo
    """The scorer in the second run."""
    first: Scores
    """The first run's scores, of the samples with a score in both runs, and of those whose missing scores count in
    tests."""
    second: Scores
    """The second run's scores of the same samples, in the same order."""
    groups: Sequence[str] | None
    """The samples' groups. The first run's if both runs have one; None if neither has any."""
    weights: Sequence[float] | None
    """The samples' weights, which are the same in both runs; None if all are equal."""
    unpaired: int
    """The number of samples with a score in only one of the runs that are left out."""
    unscored: int
    """The number of samples of both runs without a score in either that are left out."""
    of_both: int
    """The number of samples that both runs have; of a slice, of those that count."""
    pairing: Pairing
    """Which sample of the second run is which sample of the first."""
    stopped: bool
    """Whether a gate stopped one of the runs. The samples are then in the order in which they were drawn."""

    @property
    def samples(self) -> Sequence[str]:
        """The ids of the samples in the first run."""
        return self.first.names

    @property
    def a(self) -> Sequence[float | None]:
        """The values in the first run; None without a score in any trial."""
        return self.first.values

    @property
    def b(self) -> Sequence[float | None]:
        """The values in the second run."""
        return self.second.values

    @property
    def known(self) -> KnownPairs:
        """The samples with a score in both runs."""
        known = self if self._are_known.all() else self._only(_rows(self._are_known.nonzero()[0]))
        a, b = (cast("Sequence[float]", values) for values in (known.a, known.b))
        return KnownPairs(known.samples, a, b, known.groups, known.weights)

    @property
    def missing(self) -> int:
        """The number of samples of which a score is missing: in one run, in both, or in a trial."""
        return len(self.first.ends.keys() | self.second.ends.keys())

    @property
    def units(self) -> int:
        """The number of independent units: samples with a score in both runs, or their groups."""
        known = self._are_known
        if self.groups is None:
            return int(known.sum())
        return len({group for group, is_known in zip(self.groups, known.tolist(), strict=True) if is_known})

    @property
    def _are_known(self) -> Any:
        """Which samples have a score in both runs, as an array of numpy."""
        from evalstone.stats.paired_differences import known_pairs  # noqa: PLC0415 - numpy

        return known_pairs(self.a, self.b)

    @property
    def columns(self) -> dict[str, Any]:
        """The arguments of `compare_pairs`."""
        both, is_open = (self.first, self.second), self.first.ends or self.second.ends
        ends = tuple(of.all_ends for of in both if is_open)
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
        from evalstone.stats.pilot import Pilot  # noqa: PLC0415 - numpy

        return Pilot.of(**self.of_pilot(reach))

    def of_pilot(self, reach: float) -> dict[str, Any]:
        """The arguments of `Pilot.of`."""
        from evalstone.stats.paired_differences import possible_differences  # noqa: PLC0415 - numpy

        scale, of_ends = self.info.scale, self.columns["ends"]
        are_passes = all(only_has(of, (0.0, scale)) for of in (self.a, self.b))
        are_passes = are_passes and all(ends_only_have(of, (0.0, scale)) for of in of_ends or ())
        differences, ends = possible_differences(self.a, self.b, of_ends, scale=scale, reach=reach)
        return {
            "values": differences,
            "scale": reach,
            "pass_fail": reach == scale and are_passes,
            "groups": self.groups,
            "ends": ends,
        }

    def slices(self, keys: Mapping[str, str]) -> Iterator[tuple[str, PairedScores]]:
        """The scores of each slice, by key. keys: that of each sample."""
        members: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        for row, sample in enumerate(self.samples):
            members[keys.get(sample, ABSENT)].append(row)
        for key in sorted(members, key=slice_order):
            yield key, replace(self._only(members[key]), unpaired=0, unscored=0, of_both=len(members[key]))

    def _only(self, rows: Sequence[int]) -> PairedScores:
        """The scores of the samples in these rows."""
        return replace(
            self,
            first=(first := self.first.at(rows)),
            second=self.second.at(rows, first if self.pairing.partners is None else None),
            groups=None if self.groups is None else at(self.groups, rows),
            weights=None if self.weights is None else at(self.weights, rows),
        )


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
    from evalstone.stats._arrays import has_value  # noqa: PLC0415 - numpy

    np: Any = importlib.import_module("numpy")
    first, second = _scores(a, b, ours, theirs, missing, by_trial=by_trial)
    clustered = first.groups is not None or second.groups is not None
    known = [has_value(of.values) for of in (first, second)]
    scored = sum(int(np.count_nonzero(each)) for each in known)
    rows = pairing.match(first.names, second.names)
    whole, matched = (first, second), rows
    if missing != "worst":
        whole = _scores(a, b, ours, theirs, "worst", by_trial=by_trial)
        matched = pairing.match(whole[0].names, whole[1].names)
    has_any = [has_value(of.values)[index_of(own)] for of, own in zip(whole, matched, strict=True)]
    of_both, neither = len(matched[0]), int(np.count_nonzero(~has_any[0] & ~has_any[1]))
    both_scores = int(np.count_nonzero(known[0][index_of(rows[0])] & known[1][index_of(rows[1])]))
    if (order := _drawn_order(a, b, ours, theirs, pairing)) is not None:
        drawn = sorted((order[name], x, y) for x, y in zip(*rows, strict=True) if (name := first.names[x]) in order)
        rows = [x for _, x, _ in drawn], [y for _, _, y in drawn]
    if first.undefined and second.undefined:
        in_both = np.ones(len(rows[0]), np.bool_)
        for of, own in ((first, rows[0]), (second, rows[1])):
            is_undefined = np.zeros(len(of), np.bool_)
            is_undefined[[*of.undefined]] = True
            in_both &= is_undefined[index_of(own)]
        if in_both.any():
            same = rows[0] == rows[1]
            own = _chosen(rows[0], ~in_both)
            rows = own, own if same else _chosen(rows[1], ~in_both)
    first = first.at(rows[0])
    second = second.at(rows[1], first if pairing.partners is None else None)
    check_same_weights(first, second)
    one_score = int(np.count_nonzero(has_value(first.values) != has_value(second.values)))
    return PairedScores(
        title=a.titles[ours.signature],
        info=ours,
        info_b=theirs,
        first=first,
        second=second,
        groups=group_labels(
            first.names,
            (
                x if x is not None else y
                for x, y in zip(*(of.groups or [None] * len(of) for of in (first, second)), strict=True)
            ),
        )
        if clustered
        else None,
        weights=first.unequal_weights,
        unpaired=scored - 2 * both_scores - one_score,
        unscored=neither - int(np.count_nonzero(~has_value(first.values) & ~has_value(second.values))),
        of_both=of_both,
        pairing=pairing,
        stopped=order is not None,
    )


def _scores(
    a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, missing: Missing, *, by_trial: bool
) -> tuple[Scores, Scores]:
    first, second = scores_of(a, ours.signature, missing), scores_of(b, theirs.signature, missing)
    by_sample = max(a.trials, b.trials) > 1 and not by_trial
    return (first.by_sample, second.by_sample) if by_sample else (first, second)


def _chosen(rows: Sequence[int], are_chosen: Any) -> Sequence[int]:
    """The rows for which an array of numpy says so."""
    np: Any = importlib.import_module("numpy")
    if rows == range(len(rows)):
        return _rows(np.flatnonzero(are_chosen))
    if isinstance(rows, range):
        return _rows(rows.start + rows.step * np.flatnonzero(are_chosen))
    return _rows(np.asarray(rows, np.int64)[are_chosen])


def _rows(places: Any) -> Sequence[int]:
    """An array of numpy, of integers, in as much memory."""
    rows = array("q")
    rows.frombytes(places.astype("int64", copy=False).view("u1"))
    return rows


def _drawn_order(a: Run, b: Run, ours: ScorerInfo, theirs: ScorerInfo, pairing: Pairing) -> dict[str, int] | None:
    """The places of the samples that count, if a gate stopped one of the runs, in the order in which they were drawn.

    Raises:
        ConfigError: gates stopped both runs, and their orders differ.
    """
    check_one_order(a.drawn, b.drawn)
    orders: list[Sequence[str]] = []
    if a.drawn is not None:
        orders.append(a.columns.keys(in_order(a.columns, ours.signature, a.drawn)))
    if b.drawn is not None:
        second = b.columns.keys(in_order(b.columns, theirs.signature, b.drawn))
        orders.append([pairing.in_first(key) for key in second])
    if not orders:
        return None
    in_all = set(orders[0]).intersection(*orders[1:])
    return {name: place for place, name in enumerate(orders[0]) if name in in_all}

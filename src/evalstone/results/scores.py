"""A scorer's scores in a run, as columns of equal length. Samples are numbered by rows: two runs are paired by them."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from evalstone._core.packed_texts import PackedTexts
from evalstone.errors import ConfigError
from evalstone.results.drawn import in_order
from evalstone.results.missing_scores import Missing, kinds_that_count
from evalstone.stats.intervals import Ends
from evalstone.stats.packed_scores import LARGE, PackedEnds, PackedScores

if TYPE_CHECKING:
    from evalstone.results.calibration import LabeledScore
    from evalstone.results.run import Run

_T = TypeVar("_T")


@dataclass(frozen=True)
class Scores:
    """A scorer's scores in a run, in rows: one for each sample, or for each trial of a sample."""

    names: Sequence[str]
    """The samples' keys."""
    samples: Sequence[str]
    """The samples' IDs."""
    values: Sequence[float | None]
    """None without a score; with trials, without one in any of them. Such a row counts in a test all the same."""
    groups: Sequence[str | None] | None = None
    """None if no row has a group."""
    weights: Sequence[float] | None = None
    """1 for a row without a weight; None if no row has one."""
    ends: Mapping[int, Ends] = field(default_factory=dict[int, Ends])
    """By row, the lowest and the highest possible score if it is missing; with trials, if that of any trial is."""
    undefined: frozenset[int] = frozenset()
    """The rows in `ends` whose score is undefined; with trials, in every trial."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def known_values(self) -> Sequence[float]:
        """The values that are not missing."""
        if isinstance(self.values, PackedScores):
            return cast("Sequence[float]", self.values.known)
        return [value for value in self.values if value is not None]

    @property
    def labels(self) -> Sequence[str] | None:
        """The group of each row, a unique one if it has none; None if no row has a group."""
        return None if self.groups is None else group_labels(self.names, self.groups)

    @property
    def unequal_weights(self) -> Sequence[float] | None:
        """The weight of each row; None if all are equal."""
        return unequal_weights(self.weights)

    def ends_of(self, row: int) -> Ends:
        """The lowest and the highest possible score of a row."""
        value = self.values[row]
        return self.ends[row] if value is None or row in self.ends else (value, value)

    @property
    def all_ends(self) -> Sequence[Ends]:
        """The lowest and the highest possible score of each row."""
        if not isinstance(self.values, PackedScores):
            return [*map(self.ends_of, range(len(self)))]
        return PackedEnds(self.values.array, [*self.ends], [*self.ends.values()])

    def at(self, rows: Sequence[int], named: Scores | None = None) -> Scores:
        """The scores of some of the rows, in their order. named: Scores with the same names and samples."""
        if rows == range(len(self)):
            return self
        groups = () if self.groups is None else at(self.groups, rows)
        names = at(self.names, rows) if named is None else named.names
        same = self.samples is self.names
        return Scores(
            names=names,
            samples=names if same else at(self.samples, rows) if named is None else named.samples,
            values=at(self.values, rows),
            groups=groups if any(group is not None for group in groups) else None,
            weights=None if self.weights is None else at(self.weights, rows),
            ends={place: self.ends[row] for place, row in _among(rows, self.ends)},
            undefined=frozenset(place for place, _ in _among(rows, self.undefined)),
        )

    @property
    def by_sample(self) -> Scores:
        """The mean over the trials of each sample, by the sample's ID."""
        scored: dict[str, list[int]] = {}
        missing: dict[str, list[int]] = {}
        for row, (sample, value) in enumerate(zip(self.samples, self.values, strict=True)):
            (missing if value is None else scored).setdefault(sample, []).append(row)
        names = [*scored, *(sample for sample in missing if sample not in scored)]
        values: list[float | None] = []
        ends: dict[int, Ends] = {}
        undefined: set[int] = set()
        for place, sample in enumerate(names):
            own = [value for row in scored.get(sample, ()) if (value := self.values[row]) is not None]
            values.append(sum(own) / len(own) if own else None)
            if sample in missing:
                low, high = (sum(self.ends[row][side] for row in missing[sample]) for side in (0, 1))
                number = len(own) + len(missing[sample])
                ends[place] = (sum(own) + low) / number, (sum(own) + high) / number
                if not own and self.undefined.issuperset(missing[sample]):
                    undefined.add(place)
        last = {sample: row for row, sample in enumerate(self.samples)}
        rows = [last[sample] for sample in names]
        # Trials of a sample without a group have the sample as their group. Here a sample is a single row.
        groups = [
            None if group == name else group
            for name, group in zip(names, at(self.groups, rows) if self.groups is not None else (), strict=False)
        ]
        return Scores(
            names=names,
            samples=names,
            values=values,
            groups=groups if any(group is not None for group in groups) else None,
            weights=None if self.weights is None else at(self.weights, rows),
            ends=ends,
            undefined=frozenset(undefined),
        )


def at(values: Sequence[_T], rows: Sequence[int]) -> Sequence[_T]:
    """The values of these rows."""
    if isinstance(values, PackedScores | PackedTexts):
        return cast("Sequence[_T]", values.at(rows))
    return [values[row] for row in rows]


def _among(rows: Sequence[int], those: Collection[int]) -> Iterator[tuple[int, int]]:
    """The place among the rows, and the row, of each that is one of those."""
    if len(rows) < LARGE:
        return ((place, row) for place, row in enumerate(rows) if row in those) if those else iter(())
    np: Any = importlib.import_module("numpy")
    every = np.asarray(rows, np.int64)
    is_one = np.zeros(max(int(every.max()), *those, 0) + 1, np.bool_)
    is_one[[*those]] = True
    places = np.flatnonzero(is_one[every])
    return zip(places.tolist(), every[places].tolist(), strict=True)


def scores_of(run: Run, signature: str, missing: Missing = "ignore", *, drawn: bool = False) -> Scores:
    """A scorer's scores in a run, in its order.

    Args:
        run: The run.
        signature: The scorer's signature.
        missing: Which samples without a score count, with `Scores.ends`.
        drawn: Whether the order is that in which samples were drawn, if a gate stopped the run. Those that don't count
            in a test are then left out.
    """
    columns, counted = run.columns, kinds_that_count(missing)
    rows = columns.rows(signature, counted)
    if drawn and run.drawn is not None:
        rows = [row for row in in_order(columns, signature, run.drawn) if columns.kind(row) in counted]
    values, ends, undefined = columns.values(rows), dict[int, Ends](), set[int]()
    if len(counted) > 1:
        scale = run[signature].info.scale
        every = 0.0, scale
        for kind in counted:
            if kind != "score" and (places := columns.rows_of(rows, kind)):
                ends |= dict.fromkeys(places, every)
                undefined.update(places if kind == "undefined" else ())
        ends = dict(sorted(ends.items()))
    samples = columns.samples(rows)
    return Scores(
        names=columns.keys(rows) if columns.has_trials else samples,
        samples=samples,
        values=values,
        groups=columns.groups(rows),
        weights=columns.weights(rows),
        ends=ends,
        undefined=frozenset(undefined),
    )


def unequal_weights(weights: Sequence[float] | None) -> Sequence[float] | None:
    """The weights; None if all are equal."""
    return weights if weights and min(weights) < max(weights) else None


def check_same_weights(a: Scores, b: Scores) -> None:
    """Raise ConfigError, naming the first one, if a sample has different weights in the two runs.

    a, b: the scores of the same samples in the same order.
    """
    if a.weights is None and b.weights is None:
        return
    ones = [1.0] * len(a)
    for name, one, other in zip(a.names, a.weights or ones, b.weights or ones, strict=True):
        if one != other:
            raise ConfigError(
                f"sample {name!r:.80} has a weight of {one:g} in the first run and of {other:g} in the second; a "
                "comparison needs the same weight in both"
            )


def refuse_weights(
    weights: Iterable[tuple[str, float | None]],
    what: str,
    instead: str = "to count each sample once, leave out `weight`",
) -> None:
    """Raise ConfigError if samples have unequal weights, naming the first one that differs.

    Args:
        weights: Samples with their weights; None is 1.
        what: The method that has no weighted form, for the message.
        instead: What to do about it, for the message.
    """
    first: float | None = None
    for name, own in weights:
        weight = 1.0 if own is None else own
        first = weight if first is None else first
        if weight != first:
            raise ConfigError(
                f"{what} has no weighted form, and the samples are weighted (the first {first:g}, {name!r:.80} "
                f"{weight:g}); {instead}"
            )


def clusters_of(pairs: Sequence[LabeledScore]) -> tuple[str, ...] | None:
    """The cluster of each pair, one of its own if it stands alone; None if no two pairs have one in common."""
    names = group_labels((pair.sample_id for pair in pairs), (pair.cluster or None for pair in pairs))
    return None if len(set(names)) == len(names) else names


def group_labels(names: Iterable[str], groups: Iterable[str | None]) -> tuple[str, ...]:
    """The group of each sample, a unique one if it has none."""
    return tuple(f"\0{name}" if group is None else group for name, group in zip(names, groups, strict=True))

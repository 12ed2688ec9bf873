"""A scorer's values in a run, sample by sample, with the groups and weights of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from evalstone.errors import ConfigError
from evalstone.results.missing_scores import Missing, counts
from evalstone.stats.intervals import Ends

if TYPE_CHECKING:
    from evalstone.results.run import Run

_T = TypeVar("_T")


@dataclass(frozen=True)
class Scores:
    """A scorer's values by the sample's key, in the order of the run."""

    values: Mapping[str, float]
    group_of: Mapping[str, str]
    """The groups of samples with a group."""
    weight_of: Mapping[str, float]
    """The weights of samples with a weight."""
    sample_of: Mapping[str, str]
    """The id of each sample."""
    ends: Mapping[str, Ends] = field(default_factory=dict[str, Ends])
    """The lowest and the highest possible score of what counts in a test although its score is missing; with trials, of
    samples of which a trial's score is missing."""
    undefined: frozenset[str] = frozenset()
    """The keys in `ends` whose score is undefined; with trials, in every trial."""

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The group of each value; None if no sample has a group."""
        return group_labels(self.values, self.group_of)

    @property
    def weights(self) -> Sequence[float] | None:
        """The weight of each value; None if all are equal."""
        return weight_column(self.values, self.weight_of)

    def ends_of(self, key: str) -> Ends:
        """The lowest and the highest possible score."""
        return self.ends[key] if key in self.ends else (self.values[key], self.values[key])

    @property
    def by_sample(self) -> Scores:
        """The mean over the trials of each sample, by the sample's id."""
        trials: dict[str, list[float]] = {}
        for key, value in self.values.items():
            trials.setdefault(self.sample_of[key], []).append(value)
        values = {sample: sum(scores) / len(scores) for sample, scores in trials.items()}
        missing: dict[str, list[str]] = {}
        for key in self.ends:
            missing.setdefault(self.sample_of[key], []).append(key)
        ends: dict[str, Ends] = {}
        for sample, keys in missing.items():
            known, number = sum(trials.get(sample, ())), len(trials.get(sample, ())) + len(keys)
            low, high = (sum(self.ends[key][side] for key in keys) for side in (0, 1))
            ends[sample] = (known + low) / number, (known + high) / number
        undefined = {
            sample for sample, keys in missing.items() if sample not in trials and self.undefined.issuperset(keys)
        }

        def per_sample(of: Mapping[str, _T]) -> dict[str, _T]:
            return {self.sample_of[key]: value for key, value in of.items() if key in self.sample_of}

        groups = {sample: group for sample, group in per_sample(self.group_of).items() if group != sample}
        names = {sample: sample for sample in (*values, *ends)}
        return Scores(values, groups, per_sample(self.weight_of), names, ends, frozenset(undefined))

    def only(self, names: Iterable[str]) -> Scores:
        """The scores of some of the samples, by key."""
        keys = list(names)

        def some(of: Mapping[str, _T]) -> dict[str, _T]:
            return {key: of[key] for key in keys if key in of}

        mine = some(self.values), some(self.group_of), some(self.weight_of), some(self.sample_of), some(self.ends)
        return Scores(*mine, self.undefined.intersection(keys))


def scores_by_sample(run: Run, signature: str, missing: Missing = "ignore") -> Scores:
    """A scorer's values by the sample's key, with the groups and weights of their samples.

    missing: which samples without a score count, with `Scores.ends`.
    """
    values, ends = dict[str, float](), dict[str, Ends]()
    groups, weights, samples = dict[str, str](), dict[str, float](), dict[str, str]()
    undefined, scale = set[str](), run[signature].info.scale
    for entry in run.columns.entries(signature):
        if not counts(entry, missing):
            continue
        samples[key := entry.key] = entry.sample
        if entry.group is not None:
            groups[key] = entry.group
        if entry.weight is not None:
            weights[key] = entry.weight
        if entry.value is not None:
            values[key] = entry.value
        else:
            ends[key] = 0.0, scale
        if entry.undefined:
            undefined.add(key)
    return Scores(values, groups, weights, samples, ends, frozenset(undefined))


def weight_column(samples: Iterable[str], weights: Mapping[str, float]) -> tuple[float, ...] | None:
    """The weight of each sample, 1 if it has none; None if all are equal."""
    column = tuple(weights.get(name, 1.0) for name in samples) if weights else ()
    return column if column and min(column) < max(column) else None


def check_same_weights(samples: Iterable[str], a: Mapping[str, float], b: Mapping[str, float]) -> None:
    """Raise ConfigError, naming the first one, if a sample has different weights in the two runs."""
    if a == b:
        return
    for name in samples:
        one, other = (weights.get(name, 1.0) for weights in (a, b))
        if one != other:
            raise ConfigError(
                f"sample {name!r:.80} has a weight of {one:g} in the first run and of {other:g} in the second; a "
                "comparison needs the same weight in both"
            )


def refuse_weights(
    weights: Iterable[tuple[str, float | None]],
    what: str,
    instead: str = "to count each sample once, leave `weight` out of the metadata",
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


def group_labels(samples: Mapping[str, object] | Sequence[str], groups: Mapping[str, str]) -> tuple[str, ...] | None:
    """The group of each sample, a unique one if it has none; None if no sample has a group."""
    return tuple(groups.get(name, f"\0{name}") for name in samples) if groups else None

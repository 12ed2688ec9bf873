"""A scorer's values in a run, sample by sample, with the groups and weights of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from evalstone.errors import ConfigError
from evalstone.types import Record, Score

if TYPE_CHECKING:
    from evalstone.results.run import Run

_T = TypeVar("_T")


@dataclass(frozen=True)
class Scores:
    """A scorer's values by the sample's key, in the order of the run."""

    values: Mapping[str, float]
    group_of: Mapping[str, str]
    """The groups of the samples that have one."""
    weight_of: Mapping[str, float]
    """The weights of the samples that have one."""
    sample_of: Mapping[str, str]
    """The id of each sample."""

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The group of each value; None where no sample has one."""
        return group_labels(self.values, self.group_of)

    @property
    def weights(self) -> Sequence[float] | None:
        """The weight of each value; None where all are equal."""
        return weight_column(self.values, self.weight_of)

    @property
    def by_sample(self) -> Scores:
        """The mean over the trials of each sample, by the sample's id."""
        trials: dict[str, list[float]] = {}
        for key, value in self.values.items():
            trials.setdefault(self.sample_of[key], []).append(value)
        values = {sample: sum(some) / len(some) for sample, some in trials.items()}

        def once(of: Mapping[str, _T]) -> dict[str, _T]:
            return {self.sample_of[key]: value for key, value in of.items() if key in self.sample_of}

        groups = {sample: group for sample, group in once(self.group_of).items() if group != sample}
        return Scores(values, groups, once(self.weight_of), {sample: sample for sample in values})

    def only(self, names: Iterable[str]) -> Scores:
        """The values of some of the samples."""
        values = {name: self.values[name] for name in names}
        groups = {name: self.group_of[name] for name in values if name in self.group_of}
        weights = {name: self.weight_of[name] for name in values if name in self.weight_of}
        return Scores(values, groups, weights, {name: self.sample_of[name] for name in values})


def scores_by_sample(run: Run, signature: str) -> Scores:
    """A scorer's values by the sample's key, with the groups and weights of their samples."""
    found = [record for record in run.records if record.scorer == signature and isinstance(record.outcome, Score)]
    values = {record.key: record.outcome.value for record in found if isinstance(record.outcome, Score)}
    return Scores(values, group_of(found), weight_of(found), {record.key: record.sample for record in found})


def group_of(records: Iterable[Record]) -> dict[str, str]:
    """The groups of the samples that have one."""
    return {record.key: record.group for record in records if record.group is not None}


def weight_of(records: Iterable[Record]) -> dict[str, float]:
    """The weights of the samples that have one."""
    return {record.key: record.weight for record in records if record.weight is not None}


def weight_column(samples: Iterable[str], weights: Mapping[str, float]) -> tuple[float, ...] | None:
    """The weight of each sample, 1 where it has none; None where all are equal."""
    column = tuple(weights.get(name, 1.0) for name in samples) if weights else ()
    return column if column and min(column) < max(column) else None


def check_same_weights(samples: Iterable[str], a: Mapping[str, float], b: Mapping[str, float]) -> None:
    """Raise ConfigError, with the first sample whose weight is not the same in both runs."""
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
    """Raise ConfigError where the weights of samples differ, with the first that does.

    Args:
        weights: By sample.
        what: What has no weighted form, as the message says it.
        instead: What to do about it.
    """
    first: float | None = None
    for name, given in weights:
        weight = 1.0 if given is None else given
        first = weight if first is None else first
        if weight != first:
            raise ConfigError(
                f"{what} has no weighted form, and the samples are weighted (the first {first:g}, {name!r:.80} "
                f"{weight:g}); {instead}"
            )


def group_labels(samples: Mapping[str, object] | Sequence[str], groups: Mapping[str, str]) -> tuple[str, ...] | None:
    """The group of each sample, a unique one where it has none; None where no sample has one."""
    return tuple(groups.get(name, f"\0{name}") for name in samples) if groups else None

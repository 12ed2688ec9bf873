"""The means of a run's slices, and the slices that are worse than the rest after correction for looking at many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.results.run import Run
from evalstone.results.scores import grouped, scored
from evalstone.results.slicing import ABSENT, By, field_name, in_order, several, slice_keys
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Interval
from evalstone.stats.slices import SliceFinding, slice_by, worst_slices


@dataclass(frozen=True)
class SliceMean:
    """The samples that share a value of a field, and their mean."""

    field: str
    key: str
    interval: Interval


@dataclass(frozen=True)
class ScorerSlices:
    """One scorer's slices. means: every slice, by field and key. findings: those with at least five samples inside and
    outside against all other samples, the most certainly worse first; p-values are adjusted over all of them."""

    title: str
    info: ScorerInfo
    means: tuple[SliceMean, ...]
    findings: tuple[SliceFinding, ...]


def slices(run: Run, by: By | Iterable[By], *, level: float = 0.95) -> tuple[ScorerSlices, ...]:
    """The slices of a run by fields of the metadata, or functions of a sample; one entry a scorer with scores.

    Raises ConfigError for no field at all, a field that no sample has, and when the samples are not at hand.
    """
    ways = several(by)
    if not ways:
        raise ConfigError("slices need a field of the metadata, or a function of a sample")
    keys = {field_name(way): slice_keys(run, way) for way in ways}
    made: list[ScorerSlices] = []
    for info in run.scorers:
        values, named = scored(run, info.signature)
        if not values:
            continue
        found = list(values.values())
        groups = grouped(values, named)
        fields = {field: [by_sample.get(name, ABSENT) for name in values] for field, by_sample in keys.items()}
        means = [
            SliceMean(field, str(part.key), part.interval)
            for field, column in fields.items()
            for part in slice_by(found, column, scale=info.scale, confidence=level, groups=groups)
        ]
        worst = worst_slices(
            found, fields, scale=info.scale, confidence=level, lower_is_better=info.lower_is_better, groups=groups
        )
        ordered = sorted(means, key=lambda part: (part.field, *in_order(part.key)))
        made.append(ScorerSlices(run.titles[info.signature], info, tuple(ordered), worst))
    return tuple(made)

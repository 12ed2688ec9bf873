"""A scorer's values over a run, by sample."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from evalstone.results.run import Run
from evalstone.types import Score


def scored(run: Run, signature: str) -> tuple[Mapping[str, float], Mapping[str, str]]:
    """A scorer's values by sample, and the groups of those samples that name one."""
    values: dict[str, float] = {}
    groups: dict[str, str] = {}
    for record in run.records:
        if record.scorer == signature and isinstance(record.outcome, Score):
            values[record.sample] = record.outcome.value
            if record.group is not None:
                groups[record.sample] = record.group
    return values, groups


def grouped(samples: Mapping[str, object] | Sequence[str], groups: Mapping[str, str]) -> tuple[str, ...] | None:
    """The group of each sample, one of its own where it names none; None where no sample names one."""
    return tuple(groups.get(name, f"\0{name}") for name in samples) if groups else None


def values_of(run: Run, signature: str) -> tuple[Sequence[float], tuple[str, ...] | None]:
    """A scorer's values in the order of the run, and their groups; None where no sample names one."""
    values, groups = scored(run, signature)
    return array("d", values.values()), grouped(values, groups)

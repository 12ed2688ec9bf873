"""Judges compared with each other on the same labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstone.errors import ConfigError
from evalstone.results.scores import clusters_of
from evalstone.stats.intervals import Interval, mean_interval

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration


@dataclass(frozen=True, kw_only=True)
class JudgeOnLabels:
    """A judge on the labels that several judges have in common."""

    calibration: Calibration
    """Its calibration, with these labels alone."""
    accuracy: Interval
    """The share of verdicts at the scorer's default threshold that are those of people."""
    difference: Interval | None
    """Its accuracy minus that of the first judge; None for the first. The intervals of all judges hold together."""


def on_same_labels(calibrations: Sequence[Calibration]) -> tuple[JudgeOnLabels, ...]:
    """Judges on the labels that they have in common: the samples that each of them scored, with the same truth.

    Raises:
        ConfigError: There are none.
    """
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy

    truths = [_truths(each) for each in calibrations]
    common = [name for name, truth in truths[0].items() if all(of.get(name) is truth for of in truths)]
    if not common:
        raise ConfigError("these calibrations have no labeled sample in common, with the same label")
    right: list[list[float]] = []
    judges: list[JudgeOnLabels] = []
    for each in calibrations:
        pairs = {pair.sample_id: pair for pair in each.pairs}
        right.append([float(each.says_yes(pairs[name].value) == truths[0][name]) for name in common])
        groups = clusters_of([pairs[name] for name in common])
        accuracy = mean_interval(right[-1], low=0.0, high=1.0, groups=groups)
        confidence = 1 - 0.05 / max(1, len(calibrations) - 1)
        compared = compare_pairs(right[0], right[-1], confidence=confidence, groups=groups)
        assert accuracy is not None  # noqa: S101 - there is a sample
        judges.append(
            JudgeOnLabels(
                calibration=replace(each, pairs=tuple(pairs[name] for name in common), per_judge=()),
                accuracy=accuracy,
                difference=None if len(right) == 1 or compared is None else compared.difference,
            )
        )
    return tuple(judges)


def _truths(calibration: Calibration) -> Mapping[str, bool]:
    known = ((pair.sample_id, pair.truth(calibration.label_threshold, calibration.scale)) for pair in calibration.pairs)
    return {name: truth for name, truth in known if truth is not None}

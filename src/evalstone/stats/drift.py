"""Drift of a judge: how its scores of the same outputs changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalstone.errors import ConfigError
from evalstone.stats._arrays import column
from evalstone.stats.comparison import Comparison, compare_pairs
from evalstone.stats.intervals import check_number


@dataclass(frozen=True)
class Drift:
    """The same anchors judged before and now."""

    comparison: Comparison
    verdict: Literal["drifted", "stable", "inconclusive"]
    """"drifted" if the test of the mean change rejects at 1 - confidence; otherwise "stable" if the interval of the
    mean change is within ± tolerance; otherwise "inconclusive": too few anchors."""
    tolerance: float
    changed: float
    """The share of anchors whose score changed, in [0, 1]."""
    mean_change: float
    """Mean |now - before|, which shows a judge that changes in both directions."""
    largest_change: float
    """The largest |now - before|."""


def drift(
    before: Sequence[float],
    now: Sequence[float],
    *,
    scale: float = 1.0,
    confidence: float = 0.95,
    tolerance: float | None = None,
) -> Drift | None:
    """Drift of a judge: how its scores of pinned anchors changed. Judge the same outputs again with the same questions.

    Args:
        before: The earlier scores, in [0, scale].
        now: The scores of the same anchors now.
        scale: The upper end of the range.
        confidence: The test rejects "no change" at 1 - confidence.
        tolerance: A mean change within ± tolerance counts as none; None is 0.02 · scale.

    Returns:
        The drift; None for no anchors.

    Raises:
        DataError: As `compare_pairs` does.
        ConfigError: The tolerance is not in (0, scale].
    """
    tolerance = 0.02 * scale if tolerance is None else tolerance
    check_number("tolerance", tolerance)
    if not 0 < tolerance <= scale:
        raise ConfigError(f"tolerance must be above 0 and at most {scale:g}, not {tolerance}")
    comparison = compare_pairs(before, now, scale=scale, confidence=confidence)
    if comparison is None:
        return None
    change = np.abs(column("now", now, 0.0, scale) - column("before", before, 0.0, scale))
    low, high = comparison.difference.low, comparison.difference.high
    verdict: Literal["drifted", "stable", "inconclusive"] = "inconclusive"
    if comparison.p_value <= 1 - confidence:
        verdict = "drifted"
    elif low is not None and high is not None and -tolerance <= low and high <= tolerance:
        verdict = "stable"
    changed = 1 - comparison.ties / comparison.n
    return Drift(comparison, verdict, tolerance, changed, float(change.mean()), float(change.max()))

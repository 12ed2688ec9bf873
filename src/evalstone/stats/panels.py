"""What the votes of a panel are worth: members that err on the same samples add little to each other.

    votes = k / (1 + (k - 1) · ρ) = (mean variance of a member's errors) / (variance of their mean)

ρ is the mean covariance of two members' errors divided by their mean variance. k members whose errors are independent
(ρ = 0) are worth k votes, and members that all err on the same samples (ρ = 1) one vote. ρ needs labels: votes without
labels agree for two reasons, because they are right or because they share an error.

1 / votes is a ratio of two means over samples, to first order: of (mean error - its mean)² and of the members' mean
(error - its mean)². Its limits are those of `ratio_limits`. They assume independent samples or clusters.
Sources: Kish 1965, Survey Sampling (the design effect 1 + (k - 1) · ρ); Fieller 1954 (see `ratios`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats
from evalstone.stats.intervals import Interval, check_confidence
from evalstone.stats.ratios import FIELLER, Parts, of_clusters, ratio_limits


@dataclass(frozen=True, kw_only=True)
class PanelVotes:
    """What the votes of a panel's members are worth."""

    votes: Interval
    """The effective number of votes, in [1, k] for k members."""
    correlation: Interval
    """ρ, the correlation of two members' errors, in [-1 / (k - 1), 1]."""


def effective_votes(
    wrong: Sequence[Sequence[bool]], *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> PanelVotes | None:
    """The effective number of votes of a panel; see the module docstring.

    Args:
        wrong: Per sample, whether each member's verdict is wrong, in the same order.
        groups: One cluster label per sample; samples of one cluster may depend on each other. None: all independent.
        confidence: The confidence level, in (0, 1).

    Returns:
        The number of votes and the correlation. None for fewer than two samples (clusters) or members, or if no member
        errs on some samples but not on others.

    Raises:
        DataError: Samples have different numbers of verdicts.
        ConfigError: confidence is outside (0, 1).
    """
    check_confidence(confidence)
    if len({len(row) for row in wrong}) > 1:
        raise DataError("each sample needs one verdict per member")
    if len(wrong if groups is None else set(groups)) < 2 or len(wrong[0]) < 2:
        return None
    errors: Floats = np.array(wrong, dtype=np.float64)
    n, k = errors.shape
    rates = errors.mean(axis=0)

    def parts(rows: Floats) -> list[Parts]:
        of_mean = (rows.mean(axis=1) - rates.mean()) ** 2
        return list(zip(of_mean.tolist(), ((rows - rates) ** 2).mean(axis=1).tolist(), strict=True))

    units = of_clusters(parts(errors), groups)
    spread = sum(own for _, own in units)
    if spread <= 1e-12 * n:
        return None
    # From no member wrong to all, the one that errs most first; and each member alone.
    nested = np.tri(k + 1, k, -1)[:, np.argsort(np.argsort(-rates))]
    low, high = ratio_limits(
        units, parts(np.concatenate([nested, np.eye(k)])), low=0.0, high=1.0, confidence=confidence
    )
    ratio = min(1.0, sum(of_mean for of_mean, _ in units) / spread)

    def votes(ratio: float) -> float:
        return min(float(k), 1 / max(ratio, 1 / k))

    def correlation(ratio: float) -> float:
        return (k * ratio - 1) / (k - 1)

    return PanelVotes(
        votes=Interval(
            estimate=votes(ratio), low=votes(high), high=votes(low), n=n, confidence=confidence, method=FIELLER
        ),
        correlation=Interval(
            estimate=correlation(ratio),
            low=correlation(low),
            high=correlation(high),
            n=n,
            confidence=confidence,
            method=FIELLER,
        ),
    )

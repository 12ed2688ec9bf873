"""Inference about a mean that missing scores leave known only between two ends.

The mean with missing scores at their lowest and that with them at their highest are two estimates. The true mean is
between what they estimate, and can't be near both ends at once if these are far apart. Limits beyond either end at the
error rate alpha / 2, as if the mean were at both, would then cover it in more than 1 - alpha. With the distance of the
ends in standard errors, d = gap / error, each limit has the error rate

    a, where Φ(-c) = a and a + Φ(-c - d) = alpha

a is alpha / 2 if the ends coincide, and close to alpha if they are two standard errors apart or more. For each place of
the true mean between the ends, both limits together err in at most alpha. The p-value of the side with the one-sided
p-value Φ(-z) is Φ(-z) + Φ(-z - d). It is the alpha at which the limit is reached.

Limits at the error rate alpha / 2 may be those of two-sided intervals (`bounded_mean.SHARE`), because what one limit
errs more than alpha / 2, the other one errs less. At alpha, they must be exact. Between, the share goes with d.

The standard error is the larger distance from an estimate to its outer limit, divided by the normal quantile: for small
and skewed samples, it exceeds that of the sample, so that d is smaller. No d is estimated where nothing is missing, and
few missing scores make its error small, which makes the limits valid for any distance of the ends (Stoye).

Sources: Imbens and Manski 2004, Econometrica 72(6); Stoye 2009, Econometrica 77(4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalstone.stats.bounded_mean import EXACT, NORMAL, SHARE, BoundedMean
from evalstone.stats.special import normal_tail

REFERENCE = 0.025
"""The one-sided error rate of the limits whose distance from the estimate gives the standard error."""
LARGEST = 0.49
"""A limit at a one-sided error rate of 0.5 or more would be on the other side of the estimate."""


@dataclass(frozen=True)
class PartlyKnown:
    """How far the ends of a mean are apart. Build it with `of`."""

    distance: float
    """In standard errors; 0 if nothing is missing."""

    @classmethod
    def of(cls, gap: float, *reaches: float) -> PartlyKnown:
        """Build it from the distance of the two estimates, and that from each to its outer limit at `REFERENCE`."""
        if gap <= 0:
            return cls(0.0)
        error = max(reaches) / -NORMAL.inv_cdf(REFERENCE)
        return cls(gap / error if error > 0 else math.inf)

    @classmethod
    def between(cls, lowest: BoundedMean, highest: BoundedMean) -> PartlyKnown:
        """Build it from the inference about the mean at its lowest and at its highest."""
        below = lowest.mean - lowest.limit(REFERENCE, 1, share=SHARE)
        above = highest.limit(REFERENCE, -1, share=SHARE) - highest.mean
        return cls.of(highest.mean - lowest.mean, below, above)

    @property
    def share(self) -> float:
        """The share s of `bounded_mean` of limits and tests."""
        return SHARE + (EXACT - SHARE) * min(1.0, self.distance)

    def error_rate(self, alpha: float) -> float:
        """The error rate of each limit, in [alpha / 2, alpha] and below 0.5, for a total of alpha in (0, 1)."""
        low, high = alpha / 2, max(alpha / 2, min(alpha, LARGEST))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p_value(2 * middle) <= alpha else (low, middle)
        return low

    def p_value(self, p: float) -> float:
        """The p-value, from the two-sided one of the end that is nearer."""
        one_sided = p / 2
        if one_sided <= 0:
            return 0.0
        return min(1.0, one_sided + normal_tail(self.distance - NORMAL.inv_cdf(one_sided)))

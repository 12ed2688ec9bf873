"""BCa bootstrap intervals, for any statistic, also of clustered samples.

    the quantiles Φ(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled statistics,  z = ± Φ⁻¹((1 + confidence) / 2)

z0 (bias): Φ⁻¹ of the share of resampled statistics below the estimate, ties half. a (acceleration): the skewness of the
jackknife, Σ d³ / (6 (Σ d²)^1.5). Source: Efron 1987, JASA 82.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import Floats, Positions, codes, column, group_sums, same_length
from evalstone.stats.intervals import Interval, check_confidence, single, small

CHUNK = 2_000_000
MIN_RESAMPLES = 100


def bootstrap_interval(
    values: Sequence[float],
    *,
    statistic: Callable[[Sequence[float]], float] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 9999,
    groups: Sequence[Hashable] | None = None,
) -> Interval | None:
    """The bias-corrected and accelerated bootstrap interval of a statistic.

    Args:
        values: Finite numbers, in any unit.
        statistic: A function of the values; None: the mean.
        confidence: The confidence level, in (0, 1).
        seed: The same seed gives the same interval.
        resamples: 100 or more.
        groups: One cluster label per value; whole clusters are resampled.

    Returns:
        The interval, whose `mean` is the statistic; without limits for one value (cluster), and if all resamples give
        the same statistic. None for no values.

    Raises:
        DataError: A value is not a finite number, or the statistic is not for some resample.
        ConfigError: Fewer than 100 resamples, or confidence is outside (0, 1).
    """
    check_confidence(confidence)
    if resamples < MIN_RESAMPLES:
        raise ConfigError(f"resamples must be {MIN_RESAMPLES} or more, not {resamples}")
    n = same_length(values=values, groups=groups)
    if n == 0:
        return None
    x: Floats = column("values", values)
    labels = np.arange(n) if groups is None else codes(groups)
    units = int(labels.max()) + 1
    estimate = float(x.mean()) if statistic is None else float(statistic(x.tolist()))
    count = None if groups is None else units
    if units < 2:
        return Interval(estimate, None, None, n, confidence, count, caution=single(n))
    source = np.random.default_rng(seed)
    if statistic is None:
        drawn, left_out = _means(x, labels, resamples, source)
    else:
        drawn, left_out = _statistics(x, labels, resamples, source, statistic)
    if not (math.isfinite(estimate) and np.isfinite(drawn).all() and np.isfinite(left_out).all()):
        raise DataError(
            "the statistic must be a finite number for all values, every resample and with any one left out"
        )
    if float(drawn.max() - drawn.min()) <= 1e-12 * max(1.0, abs(estimate)):
        return Interval(estimate, None, None, n, confidence, count, caution="all resamples give the same statistic")
    low, high = _bca(estimate, drawn, left_out, confidence)
    return Interval(estimate, low, high, n, confidence, count, "BCa", small(units, groups is not None))


def _bca(estimate: float, drawn: Floats, left_out: Floats, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - 0.1 s of import

    below = (int((drawn < estimate).sum()) + int((drawn == estimate).sum()) / 2) / drawn.size
    bias = float(ndtri(min(max(below, 0.5 / drawn.size), 1 - 0.5 / drawn.size)))
    d = left_out.mean() - left_out
    square = float(np.sum(d**2))
    bend = float(np.sum(d**3)) / (6 * square**1.5) if square > 0 else 0.0
    z = bias + float(ndtri(0.5 + confidence / 2)) * np.array([-1.0, 1.0])
    shares = ndtr(bias + z / (1 - bend * z))
    low, high = np.quantile(drawn, shares)
    return float(low), float(high)


def _means(x: Floats, labels: Positions, resamples: int, source: np.random.Generator) -> tuple[Floats, Floats]:
    """Resampled means, and those with each group left out."""
    sums, sizes = group_sums(x, labels), np.bincount(labels).astype(np.float64)
    units = sums.size
    drawn: list[Floats] = []
    for rows in _rows(resamples, units):
        picks = source.integers(0, units, size=(rows, units))
        drawn.append(sums[picks].sum(axis=1) / sizes[picks].sum(axis=1))
    return np.concatenate(drawn), (x.sum() - sums) / (x.size - sizes)


def _statistics(
    x: Floats,
    labels: Positions,
    resamples: int,
    source: np.random.Generator,
    statistic: Callable[[Sequence[float]], float],
) -> tuple[Floats, Floats]:
    members: list[list[int]] = [np.flatnonzero(labels == unit).tolist() for unit in range(int(labels.max()) + 1)]
    data: list[float] = x.tolist()
    units = len(members)
    drawn = np.empty(resamples)
    for row in range(resamples):
        picks: list[int] = source.integers(0, units, size=units).tolist()
        drawn[row] = statistic([data[place] for pick in picks for place in members[pick]])
    of: list[int] = labels.tolist()
    rests = ([v for v, owner in zip(data, of, strict=True) if owner != unit] for unit in range(units))
    left_out = np.array([statistic(rest) for rest in rests], dtype=np.float64)
    return drawn, left_out


def _rows(resamples: int, units: int) -> list[int]:
    """How many resamples to draw at once, so that memory stays small."""
    most = max(1, math.floor(CHUNK / units))
    return [most] * (resamples // most) + ([resamples % most] if resamples % most else [])

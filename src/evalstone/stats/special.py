"""Special functions in pure Python, because every run needs them, and numpy takes 0.1 s to import."""

from __future__ import annotations

import math
from statistics import NormalDist


def t_quantile(probability: float, freedom: float) -> float:
    """A quantile of Student's t distribution, by Newton's method from the normal quantile.

    The tail is convex to the right of 0 and the normal quantile is below the root, so the iterates increase toward it.
    Relative error below 1e-8 for probabilities below 0.1 and above 0.9.

    Args:
        probability: In (0, 1).
        freedom: The degrees of freedom, 1 or more, not necessarily an integer.

    Raises:
        ValueError: probability is outside (0, 1), or freedom is below 1.
    """
    if not 0 < probability < 1 or freedom < 1:
        raise ValueError(f"probability must be in (0, 1) and freedom at least 1, not {probability} and {freedom}")
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    t, step = NormalDist().inv_cdf(probability), math.inf
    if freedom > 1e6:  # here, the rounding error of lgamma exceeds the next term of this series
        return t + (t**3 + t) / (4 * freedom)
    log_peak = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    while step > 1e-9 * t:
        tail = beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5) / 2
        density = math.exp(log_peak - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (tail - (1 - probability)) / density
        t += step
    return t


def normal_tail(z: float) -> float:
    """P(Z > z) for a standard normal Z, accurate for large z, unlike 1 - Φ(z)."""
    return math.erfc(z / math.sqrt(2)) / 2


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p)."""
    if k < 0 or k >= n:
        return 0.0 if k < 0 else 1.0
    return beta_cdf(1 - p, n - k, k + 1)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22, Lentz's method)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # otherwise the fraction converges slowly
        return 1 - beta_cdf(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * beta_fraction(x, a, b) / a


def beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), which is x^a · (1 - x)^b / (a · B(a, b)) times this."""
    upper, lower = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction, m = lower, 0
    while True:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            lower, upper = 1 / (1 + term * lower), 1 + term / upper
            change *= upper * lower
        fraction *= change
        if abs(change - 1) < 1e-15 or m > 100_000:
            return fraction

"""Binomial, gamma and t probabilities, with small relative errors in the tails too, and for millions of trials.

Densities are by Stirling's formula with its remainder (Loader 2000, Fast and accurate computation of binomial
probabilities), because differences of log gamma lose up to ten digits. Tails are summed where a few hundred terms are
all of them. Otherwise, the density is integrated by Gauss-Legendre quadrature, as far as it matters.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from evalstone.stats._arrays import Floats
from evalstone.stats.special import beta_fraction, normal_tail

FEW = 300
"""Below this, hits are summed, and a gamma distribution has a series."""
REACH = 2 * 55.0
"""Twice the logarithm of how much smaller a normal density is where the quadrature ends."""
NODES = 64
SMALL = 15
"""Up to here, the series of Stirling's formula isn't exact enough."""
STEPS = 32
"""The terms that are added at once: a call of numpy takes as long as a hundred of them."""
SMALLEST = 1e-17
"""The share of a sum below which a term doesn't change it."""


def binomial_chances(k: Floats, n: Floats | float, p: Floats | float) -> Floats:
    """P(X = k) for X ~ Binomial(n, p), by element. k: whole numbers from 0 to n."""
    k, n, p = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float), np.asarray(p, float))
    return _chances(k, n, p, 1 - p)


def binomial_cdfs(k: Floats, n: Floats | float, p: Floats | float) -> Floats:
    """P(X <= k) for X ~ Binomial(n, p), by element. k and n: whole numbers."""
    k, n, p = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float), np.asarray(p, float))
    result = np.where((k < 0) | ((p >= 1) & (k < n)), 0.0, 1.0)
    inside = (k >= 0) & (k < n) & (p > 0) & (p < 1)
    k, n, p = k[inside], n[inside], p[inside]
    upper = k > n * p  # then the tail above is smaller: that of the others, up to n - k - 1
    hits, chance, rest = np.where(upper, n - k - 1, k), np.where(upper, 1 - p, p), np.where(upper, p, 1 - p)
    few = (hits < FEW) | (n - hits < FEW)
    tail = np.empty_like(k)
    for places, part in ((few, _summed), (~few, _integrated)):
        if places.any():
            tail[places] = part(hits[places], n[places], chance[places], rest[places])
    result[inside] = np.where(upper, 1 - tail, tail)
    return result


def _chances(k: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    inside = (k > 0) & (k < n) & (p > 0) & (q > 0)
    hits, trials, misses = np.where(inside, k, 1.0), np.where(inside, n, 2.0), np.where(inside, n - k, 1.0)
    chance, other = np.where(inside, p, 0.5), np.where(inside, q, 0.5)
    log = _remainder(trials) - _remainder(hits) - _remainder(misses)
    log -= _deviance(hits, trials * chance) + _deviance(misses, trials * other)
    density = np.exp(log) * np.sqrt(trials / (2 * math.pi * hits * misses))
    if inside.all():
        return density
    return np.where(inside, density, np.where(k == 0, _power(p, q, n), np.where(k == n, _power(q, p, n), 0.0)))


def _power(p: Floats, q: Floats, n: Floats) -> Floats:
    """q^n, where q = 1 - p."""
    return np.where(p < 0.5, np.exp(n * np.log1p(-np.minimum(p, 0.5))), q**n)


def _summed(k: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    """P(X <= k), for k up to about n·p, from its largest term downward, several terms at a time."""
    last = total = _chances(k, n, p, q)
    j = k[:, None] - np.arange(STEPS)
    while np.any(last > SMALLEST * total):
        below = np.maximum(j, 0.0)
        terms = last[:, None] * np.cumprod(below * q[:, None] / ((n[:, None] - below + 1) * p[:, None]), axis=1)
        last, total = terms[:, -1], total + terms.sum(axis=1)
        j -= STEPS
    return total


def _integrated(k: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    """P(X <= k), for k up to about n·p, as the tail of Beta(n - k, k + 1) below q."""
    a, b = n - k, k + 1
    deviation = np.sqrt(a * b / (n + 2)) / (n + 1)
    z = np.maximum(0.0, (a / (n + 1) - q) / deviation)
    span = np.minimum(q, deviation * (np.sqrt(z * z + REACH) - z))
    nodes, weights = _quadrature()
    t = span[:, None] * nodes
    logs = (a - 1)[:, None] * np.log1p(-t / q[:, None]) + (b - 1)[:, None] * np.log1p(t / p[:, None])
    return _chances(k, n, p, q) * a / q * span * (np.exp(logs) @ weights)


def gamma_tails(shape: float, x: float) -> tuple[float, float]:
    """P(X <= x) and P(X > x) for a gamma distribution with this shape and scale 1."""
    if x <= 0:
        return 0.0, 1.0
    lower = x < shape
    if not lower and x < 1:
        tail = _upper_series(shape, x)
    elif shape < FEW:
        tail = _series(shape, x) if lower else _fraction(shape, x)
        tail *= math.exp(shape * math.log(x) - x - math.lgamma(shape))
    else:
        size = np.array([shape - 1, x])
        log = -float(_remainder(size[:1])[0] + _deviance(size[:1], size[1:])[0])
        density = math.exp(log) / math.sqrt(2 * math.pi * (shape - 1))
        z = abs(x - shape) / math.sqrt(shape)
        span = math.sqrt(shape) * (math.sqrt(z * z + REACH) - z)
        nodes, weights = _quadrature()
        t = -min(x, span) * nodes if lower else span * nodes
        logs = (shape - 1) * np.log1p(t / x) - t
        tail = density * abs(float(t[-1] / nodes[-1])) * float(np.exp(logs) @ weights)
    return (tail, 1 - tail) if lower else (1 - tail, tail)


def _series(shape: float, x: float) -> float:
    """The lower tail divided by x^shape · exp(-x) / Γ(shape): DLMF 8.7.1."""
    term = total = 1 / shape
    n = shape
    while term > SMALLEST * total:
        n += 1
        term *= x / n
        total += term
    return total


def _upper_series(shape: float, x: float) -> float:
    """The upper tail for x below 1, where the fraction may need millions of terms: 1 - the lower one by DLMF 8.7.3."""
    power, total, n = -x, 0.0, 1
    while abs(power) > SMALLEST * abs(total):
        total += power / (shape + n)
        n += 1
        power *= -x / n
    log = shape * math.log(x) - math.lgamma(shape + 1)
    return -math.expm1(log) - math.exp(log) * shape * total


def _fraction(shape: float, x: float) -> float:
    """The upper tail divided by x^shape · exp(-x) / Γ(shape): DLMF 8.9.2, by Lentz's method."""
    odd = x + 1 - shape
    upper, lower = math.inf, 1 / odd
    fraction, change, n = lower, 0.0, 0
    while abs(change - 1) > 1e-15 and n < 100_000:
        n += 1
        odd += 2
        by = n * (shape - n)
        lower, upper = 1 / (odd + by * lower), odd + by / upper
        change = upper * lower
        fraction *= change
    return fraction


def normal_cdf(z: float) -> float:
    """P(Z <= z) for a standard normal Z."""
    return normal_tail(-z)


def t_cdf(t: float, freedom: float) -> float:
    """P(T <= t) for Student's t distribution."""
    if math.isinf(freedom):
        return normal_cdf(t)
    a, x, rest = freedom / 2, freedom / (freedom + t * t), t * t / (freedom + t * t)
    front = math.exp(-a * math.log1p(t * t / freedom)) * math.sqrt(rest / math.pi) * _gamma_ratio(a)
    if x > (a + 1) / (a + 2.5):
        tail = 0.5 - front * beta_fraction(rest, 0.5, a)
    else:
        tail = front * beta_fraction(x, a, 0.5) / freedom
    return tail if t < 0 else 1 - tail


def _gamma_ratio(a: float) -> float:
    """Γ(a + 1/2) / Γ(a)."""
    if a < 50:
        return math.gamma(a + 0.5) / math.gamma(a)
    inverse = 1 / a
    series = 5 / 1024 - inverse * (21 / 32768 + inverse * (399 / 262144 - inverse * 869 / 4194304))
    return math.sqrt(a) * (1 - inverse * (1 / 8 - inverse * (1 / 128 + inverse * series)))


def _remainder(n: Floats) -> Floats:
    """log n! - (n + 1/2) log n + n - log(2π) / 2: what Stirling's formula leaves. n: whole numbers, or above 15."""
    small = n <= SMALL
    large = np.maximum(n, SMALL)
    inverse = 1 / (large * large)
    series = 1 / 1260 - inverse * (1 / 1680 - inverse / 1188)
    result = np.asarray((1 / 12 - inverse * (1 / 360 - inverse * series)) / large)
    result[small] = _small_remainders()[n[small].astype(np.intp)]
    return result


@cache
def _small_remainders() -> Floats:
    """The remainders of 1 to 15; that of 0 isn't needed."""
    half = math.log(2 * math.pi) / 2
    return np.array([0, *(math.lgamma(x + 1) - (x + 0.5) * math.log(x) + x - half for x in range(1, SMALL + 1))])


def _deviance(x: Floats, mean: Floats) -> Floats:
    """x log(x / mean) + mean - x, without the cancellation near the mean."""
    d = (x - mean) / mean
    near = np.abs(d) < 0.01
    e = np.where(near, d, 0.0)
    terms = 1 / 30 - e * (1 / 42 - e * (1 / 56 - e / 72))
    series = e * e * (1 / 2 - e * (1 / 6 - e * (1 / 12 - e * (1 / 20 - e * terms))))
    far = np.where(near, 0.0, d)
    return mean * np.where(near, series, (1 + far) * np.log1p(far) - far)


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """The nodes and weights of Gauss-Legendre quadrature over (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2

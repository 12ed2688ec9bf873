"""The logistic curve of greatest likelihood through scores and targets, by Newton's steps."""

from __future__ import annotations

import numpy as np

from evalstone.stats._arrays import Floats

_STEPS = 100
_SMALLEST_STEP = 1e-10
_NEAR = 1e-12


def logistic_curve(scores: Floats, targets: Floats, intercept: float) -> tuple[float, float]:
    """Slope and intercept that maximise Σ target · log p + (1 - target) · log(1 - p), p = 1 / (1 + exp(-z)) with
    z = slope · score + intercept, starting from slope 0 and the intercept given.

    A step is halved until the likelihood grows; it ends where a step changes nothing. Targets in (0, 1) keep it finite.
    Source: Lin, Lin and Weng 2007.
    """
    slope, loss = 0.0, _loss(scores, targets, 0.0, intercept)
    for _ in range(_STEPS):
        by_slope, by_intercept = _newton(scores, targets, slope, intercept)
        if abs(by_slope) <= _NEAR * (1 + abs(slope)) and abs(by_intercept) <= _NEAR * (1 + abs(intercept)):
            break
        step, after = 1.0, _loss(scores, targets, slope - by_slope, intercept - by_intercept)
        while after >= loss and step > _SMALLEST_STEP:
            step /= 2
            after = _loss(scores, targets, slope - step * by_slope, intercept - step * by_intercept)
        if after >= loss:
            break
        slope, intercept, loss = slope - step * by_slope, intercept - step * by_intercept, after
    return slope, intercept


def _newton(scores: Floats, targets: Floats, slope: float, intercept: float) -> tuple[float, float]:
    """Newton's step at a curve. A little is added to the diagonal, for scores that are all equal."""
    p: Floats = (1 + np.tanh((slope * scores + intercept) / 2)) / 2
    off, weights = p - targets, p * (1 - p)
    g0, g1 = float(off @ scores), float(off.sum())
    h00, h01, h11 = 1e-12 + float(weights @ scores**2), float(weights @ scores), 1e-12 + float(weights.sum())
    determinant = h00 * h11 - h01 * h01
    return (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant


def _loss(scores: Floats, targets: Floats, slope: float, intercept: float) -> float:
    """The negative log-likelihood."""
    z = slope * scores + intercept
    return float(np.sum(np.logaddexp(0.0, z) - targets * z))

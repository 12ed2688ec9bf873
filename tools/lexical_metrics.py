"""What is measured of the lexical judge. `supported` is the label; the positive class of F1 is "not supported"."""

from __future__ import annotations

import numpy as np
from lexical_data import Numbers
from numpy.typing import NDArray

BINS = 10
RESAMPLES = 400

Flags = NDArray[np.bool_]


def auroc(probability: Numbers, supported: Flags) -> float:
    """The chance that a supported row has a higher probability than another, ties counted half."""
    order = np.sort(probability[~supported])
    of = probability[supported]
    below = np.searchsorted(order, of, side="left")
    wins = below + (np.searchsorted(order, of, side="right") - below) / 2
    return float(wins.sum() / (len(of) * len(order)))


def auroc_interval(
    probability: Numbers, supported: Flags, groups: NDArray[np.str_], other: Numbers | None = None
) -> tuple[float, float]:
    """Its 95% interval, or that of its difference from another score's: sources drawn with replacement, seed 0."""
    names, inverse = np.unique(groups, return_inverse=True)
    members: list[NDArray[np.int64]] = [np.nonzero(inverse == number)[0] for number in range(len(names))]
    draw, found = np.random.default_rng(0), list[float]()
    for _ in range(RESAMPLES):
        drawn: list[int] = draw.integers(0, len(names), len(names)).tolist()
        rows: NDArray[np.int64] = np.concatenate([members[number] for number in drawn])
        if 0 < supported[rows].sum() < len(rows):
            found.append(
                auroc(probability[rows], supported[rows])
                - (0 if other is None else auroc(other[rows], supported[rows]))
            )
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def balanced_accuracy(probability: Numbers, supported: Flags) -> float:
    """The mean of the shares of supported and of other rows that a limit of 0.5 puts on the right side."""
    said = probability >= 0.5
    return float((said[supported].mean() + (~said[~supported]).mean()) / 2)


def f1(probability: Numbers, supported: Flags) -> float:
    """F1 of "not supported" at a limit of 0.5."""
    flagged = probability < 0.5
    return float(2 * (flagged & ~supported).sum() / (flagged.sum() + (~supported).sum()))


def calibration_error(probability: Numbers, supported: Flags, weights: Numbers | None = None) -> float:
    """ECE: over ten equal bins, the weighted mean distance of mean probability and share of supported rows."""
    shares = np.ones(len(probability)) if weights is None else weights
    shares = shares / shares.sum()
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    return float(sum(abs((shares * (probability - supported))[bins == number].sum()) for number in range(BINS)))

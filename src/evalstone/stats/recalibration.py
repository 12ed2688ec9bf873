"""From a score to the probability that the truth is yes, learned from labelled cases.

Platt's is a logistic curve of two numbers, right for few cases; isotonic takes any shape that never falls, and wants
some hundreds. Both are plain data and never leave [0, 1].
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, cast

from evalstone.errors import DataError


@dataclass(frozen=True)
class Platt:
    """probability = 1 / (1 + exp(-(slope * score + intercept)))"""

    slope: float
    intercept: float

    def __call__(self, score: float) -> float:
        return _logistic(self.slope * score + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """The mapping as plain data."""
        return {"kind": "platt", "slope": self.slope, "intercept": self.intercept}


@dataclass(frozen=True)
class Isotonic:
    """Straight lines between corners (score, probability) that never fall; level outside of the first and last."""

    corners: tuple[tuple[float, float], ...]

    def __call__(self, score: float) -> float:
        at = bisect_left(self.corners, score, key=lambda corner: corner[0])
        if at == 0 or at == len(self.corners):
            return self.corners[min(at, len(self.corners) - 1)][1]
        (x0, y0), (x1, y1) = self.corners[at - 1], self.corners[at]
        return min(max(y0 + (y1 - y0) * ((score - x0) / (x1 - x0)), y0), y1)

    def to_dict(self) -> dict[str, Any]:
        """The mapping as plain data."""
        return {"kind": "isotonic", "corners": [list(corner) for corner in self.corners]}


Recalibration: TypeAlias = Platt | Isotonic


def recalibration_from(data: Any) -> Recalibration:
    """A mapping from its plain data. Raises DataError for anything else."""
    match data:
        case {"kind": "platt", "slope": float() | int() as slope, "intercept": float() | int() as intercept}:
            if math.isfinite(slope) and math.isfinite(intercept):
                return Platt(float(slope), float(intercept))
        case {"kind": "isotonic", "corners": [_, *_] as corners}:
            pairs = tuple((float(x), float(y)) for x, y in cast("list[tuple[float, float]]", corners))
            if all(math.isfinite(x) and 0 <= y <= 1 for x, y in pairs) and _rising(pairs):
                return Isotonic(pairs)
        case _:
            pass
    raise DataError(f"a mapping is platt with slope and intercept, or isotonic with rising corners, not {data!r}")


def _rising(corners: Sequence[tuple[float, float]]) -> bool:
    return all(x0 < x1 and y0 <= y1 for (x0, y0), (x1, y1) in pairwise(corners))


def platt(scores: Sequence[float], truths: Sequence[bool]) -> Platt:
    """The logistic curve of greatest likelihood, with Platt's targets (m + 1) / (m + 2) and 1 / (k + 2) in the place of
    1 and 0 for m positives and k negatives, so that scores that separate the two leave it finite.

    Raises DataError for no case, and for sequences of different lengths. Sources: Platt 1999; Lin, Lin and Weng 2007.
    """
    _check(scores, truths)
    import numpy as np  # noqa: PLC0415 - import evalstone is to be quick

    from evalstone.stats.logistic import logistic_curve  # noqa: PLC0415 - it takes numpy

    yes = np.asarray(truths, dtype=np.bool_)
    positives, negatives = int(yes.sum()), int((~yes).sum())
    targets = np.where(yes, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    start = math.log((positives + 1) / (negatives + 1))
    return Platt(*logistic_curve(np.asarray(scores, dtype=np.float64), targets, start))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def isotonic(scores: Sequence[float], truths: Sequence[bool]) -> Isotonic:
    """The rising steps of least squared error, by pooling neighbours that fall, joined by straight lines.

    Cases of one score are taken together first. Raises DataError for no case, and for sequences of different lengths.
    Source: Ayer et al. 1955; Zadrozny and Elkan 2002.
    """
    _check(scores, truths)
    held: dict[float, list[bool]] = {}
    for score, truth in zip(scores, truths, strict=True):
        held.setdefault(float(score), []).append(bool(truth))
    blocks: list[tuple[float, float, int, int]] = []  # first and last score, positives, cases
    for score, group in sorted(held.items()):
        blocks.append((score, score, sum(group), len(group)))
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][3] >= blocks[-1][2] * blocks[-2][3]:
            _, last, more, cases = blocks.pop()
            first, _, positives, before = blocks.pop()
            blocks.append((first, last, positives + more, before + cases))
    corners: list[tuple[float, float]] = []
    for first, last, positives, cases in blocks:
        corners += [(score, positives / cases) for score in dict.fromkeys((first, last))]
    return Isotonic(tuple(corners))


def _check(scores: Sequence[float], truths: Sequence[bool]) -> None:
    if len(scores) != len(truths):
        raise DataError(f"there is one truth for each score; there are {len(scores)} scores, {len(truths)} truths")
    if not scores:
        raise DataError("no mapping can be learned from no cases")

"""A pass rate corrected for the judge's error rates: the Rogan-Gladen estimator with the Lang-Reiczigel interval.

    true rate = (judged rate + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]

Sensitivity and specificity must come from separate labeled samples, drawn at random overall, or at random among the
samples that people pass and among those that they fail. If the labels are part of the same run, use `ppi_mean`, which
makes fewer assumptions.
Sources: Rogan and Gladen 1978, American Journal of Epidemiology 107(1); Lang and Reiczigel 2014, Preventive Veterinary
Medicine 113(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evalstone._core.display import count
from evalstone.errors import DataError
from evalstone.stats.classification import Confusion
from evalstone.stats.intervals import Interval, proportion_interval

FEW_LABELS = 20


@dataclass(frozen=True)
class RoganGladenEstimate:
    """A corrected pass rate, and the judge's."""

    rate: Interval | None
    """The corrected rate, in [0, 1]. None if the labels have no passes or no fails; if the judge is no better than
    chance on them; or if it wouldn't be with one more correct and one more wrong verdict in each class."""
    raw: Interval | None
    """The judge's pass rate. Its interval ignores the judge's errors."""
    sensitivity: Interval | None
    """The judge's true positive rate; None without labeled passes."""
    specificity: Interval | None
    """The judge's true negative rate; None without labeled fails."""
    caution: str
    """Why there is no corrected rate, or why to trust it less; or ""."""


def rogan_gladen(passed: int, n: int, labels: Confusion, *, confidence: float = 0.95) -> RoganGladenEstimate | None:
    """The true pass rate, given that the judge passed `passed` of n samples.

    The interval is centered on an estimate with pseudo-counts, so that it covers with small counts too: z²/2 verdicts
    of each kind, and one correct and one wrong label in each class.

    Args:
        passed: The number of samples that the judge passed.
        n: The number of samples judged.
        labels: The confusion counts of the judge's verdicts on the labeled samples; the human label is the truth.
        confidence: The confidence level, in (0, 1).

    Returns:
        The estimate; None if n is 0.

    Raises:
        DataError: `passed` is not in [0, n].
        ConfigError: confidence is outside (0, 1).
    """
    if not 0 <= passed <= n:
        raise DataError(f"passed must be from 0 to n: {passed} of {n}")
    raw = proportion_interval(passed, n, confidence)
    if raw is None:
        return None
    tpr = proportion_interval(labels.tp, labels.positives, confidence)
    tnr = proportion_interval(labels.tn, labels.negatives, confidence)
    if tpr is None or tnr is None:
        caution = "the labels need both passes and fails"
        return RoganGladenEstimate(None, raw, tpr, tnr, caution)
    youden = tpr.mean + tnr.mean - 1
    if _youden(labels, 0) <= 0 or _youden(labels, 1) <= 0:
        problem = "is no better than chance" if _youden(labels, 0) <= 0 else "is barely better than chance"
        return RoganGladenEstimate(None, raw, tpr, tnr, f"the judge {problem} on the labeled samples")
    estimate = min(1.0, max(0.0, (raw.mean - (1 - tnr.mean)) / youden))
    center, half = _lang_reiczigel(passed, n, labels, NormalDist().inv_cdf(0.5 + confidence / 2))
    low, high = max(0.0, min(center - half, estimate)), min(1.0, max(center + half, estimate))
    fewest = min(tpr.n, tnr.n)
    caution = f"only {count(fewest, 'label')} in one class: the interval is approximate" if fewest < FEW_LABELS else ""
    rate = Interval(estimate, low, high, n, confidence, method="Lang-Reiczigel", caution=caution)
    return RoganGladenEstimate(rate, raw, tpr, tnr, caution)


def _youden(labels: Confusion, added: int) -> int:
    """Youden's J · positives · negatives as an exact integer, with `added` more right and wrong labels per class."""
    positives, negatives = labels.positives + 2 * added, labels.negatives + 2 * added
    return (labels.tp + added) * negatives + (labels.tn + added) * positives - positives * negatives


def _lang_reiczigel(passed: int, n: int, labels: Confusion, z: float) -> tuple[float, float]:
    """The center and half-width of the interval, computed step by step as in the paper."""
    size = n + z * z
    judged = (passed + z * z / 2) / size
    tpr_n, tnr_n = labels.positives + 2, labels.negatives + 2
    tpr, tnr = (labels.tp + 1) / tpr_n, (labels.tn + 1) / tnr_n
    youden = tpr + tnr - 1
    rate = (judged + tnr - 1) / youden
    tpr_variance, tnr_variance = tpr * (1 - tpr) / tpr_n, tnr * (1 - tnr) / tnr_n
    shift = 2 * z * z * (rate * tpr_variance - (1 - rate) * tnr_variance)
    variance = (judged * (1 - judged) / size + rate**2 * tpr_variance + (1 - rate) ** 2 * tnr_variance) / youden**2
    return rate + shift, z * math.sqrt(variance)

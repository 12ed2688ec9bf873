"""A pass rate corrected for a judge's known errors: Rogan and Gladen's estimator, Lang and Reiczigel's interval.

    true rate = (judged rate + specificity - 1) / (sensitivity + specificity - 1), cut to [0, 1]

Sensitivity and specificity must come from labeled samples of their own: drawn at random, or from among those that
people pass and those that people fail. Where the labels are part of the same run, `ppi_mean` assumes less.
Sources: Rogan and Gladen 1978, American Journal of Epidemiology 107(1); Lang and Reiczigel 2014, Preventive Veterinary
Medicine 113(1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evalstone.errors import DataError
from evalstone.stats.classification import Confusion
from evalstone.stats.intervals import Interval, proportion_interval

FEW_LABELS = 20


@dataclass(frozen=True)
class RoganGladenEstimate:
    """A corrected pass rate beside the judge's."""

    rate: Interval | None
    """The corrected rate, in [0, 1]; None if the judge is no better than chance on the labels, or would not be with one
    more right and one more wrong verdict on each kind, or if there are no labels of one kind."""
    raw: Interval | None
    """The judge's rate; its interval ignores the judge's errors."""
    sensitivity: Interval | None
    """The judge's true positive rate with its interval; None without labeled passes."""
    specificity: Interval | None
    """The judge's true negative rate with its interval; None without labeled fails."""
    caution: str
    """Why there is no corrected rate, or why to trust it less, or ""."""


def rogan_gladen(passed: int, n: int, labels: Confusion, *, confidence: float = 0.95) -> RoganGladenEstimate | None:
    """The true pass rate behind `passed` of n judged samples.

    The interval is centered on an estimate that is drawn a little toward the middle (z²/2 more of each verdict, and 1
    more correct and 1 more wrong label of each kind), so that it holds for small counts too.

    Args:
        passed: How many samples the judge passed.
        n: How many samples the judge judged.
        labels: The judge's verdicts on the labeled samples by people's.
        confidence: The confidence level, in (0, 1).

    Returns:
        The estimate; None if n is 0.

    Raises:
        DataError: `passed` is not from 0 to n.
        ConfigError: confidence is outside (0, 1).
    """
    if not 0 <= passed <= n:
        raise DataError(f"passed: {passed} of {n} is not a count from 0 to the total")
    raw = proportion_interval(passed, n, confidence)
    if raw is None:
        return None
    tpr = proportion_interval(labels.tp, labels.positives, confidence)
    tnr = proportion_interval(labels.tn, labels.negatives, confidence)
    if tpr is None or tnr is None:
        caution = "labeled samples of both kinds are needed, some that people pass and some that they fail"
        return RoganGladenEstimate(None, raw, tpr, tnr, caution)
    youden = tpr.mean + tnr.mean - 1
    if _youden(labels, 0) <= 0 or _youden(labels, 1) <= 0:
        problem = "is no better than chance" if _youden(labels, 0) <= 0 else "can hardly be told from chance"
        return RoganGladenEstimate(None, raw, tpr, tnr, f"the judge {problem} on the labeled samples")
    estimate = min(1.0, max(0.0, (raw.mean - (1 - tnr.mean)) / youden))
    center, half = _lang_reiczigel(passed, n, labels, NormalDist().inv_cdf(0.5 + confidence / 2))
    low, high = max(0.0, min(center - half, estimate)), min(1.0, max(center + half, estimate))
    fewest = min(tpr.n, tnr.n)
    caution = f"only {fewest} labeled samples of one kind: the interval is approximate" if fewest < FEW_LABELS else ""
    rate = Interval(estimate, low, high, n, confidence, method="Lang-Reiczigel", caution=caution)
    return RoganGladenEstimate(rate, raw, tpr, tnr, caution)


def _youden(labels: Confusion, added: int) -> int:
    """(sensitivity + specificity - 1) · positives · negatives, without rounding, with so many more labels of each."""
    positives, negatives = labels.positives + 2 * added, labels.negatives + 2 * added
    return (labels.tp + added) * negatives + (labels.tn + added) * positives - positives * negatives


def _lang_reiczigel(passed: int, n: int, labels: Confusion, z: float) -> tuple[float, float]:
    """Center and half width of the interval, in the order of the paper."""
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

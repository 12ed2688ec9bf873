"""A pass rate corrected for the judge's error rates: the Rogan-Gladen estimator with an interval by Fieller's method.

    true rate = (judged rate + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]

The denominator is 0 for a judge that is at chance, and the quotient is then arbitrary. The interval has the rates π
that a test of

    judged rate = π · sensitivity + (1 - π) · (1 - specificity)

does not reject. The difference of both sides is linear in the three rates, so its limits are recovered from theirs
(MOVER) without a division. There is no rate unless the judge is significantly better than chance.

Sensitivity and specificity must come from separate labeled samples, drawn at random overall, or at random among the
samples that people pass and among those that they fail. If the labels are part of the same run, use `ppi_mean`, which
makes fewer assumptions.
Sources: Rogan and Gladen 1978, American Journal of Epidemiology 107(1); Fieller 1954, Journal of the Royal Statistical
Society B 16(2); Zou and Donner 2008 (see `intervals.mover`).
"""

from __future__ import annotations

from dataclasses import dataclass

from evalstone.errors import DataError
from evalstone.stats.classification import Confusion
from evalstone.stats.intervals import MOVER, Interval, mover, proportion_interval
from evalstone.stats.roots import root
from evalstone.types import Note, note

FEW_LABELS = 20
CLOSE = 1e-10


@dataclass(frozen=True, kw_only=True)
class RoganGladenEstimate:
    """A corrected pass rate, and the judge's."""

    rate: Interval | None
    """The corrected rate, in [0, 1]. None if the labels have no passes or no fails; if the judge is not significantly
    better than chance on them (the lower limit of sensitivity + specificity is 1 or less); or if no rate agrees with
    the judge's pass rate, so that its error rates must have been different in the run."""
    raw: Interval | None
    """The judge's pass rate. Its interval ignores the judge's errors."""
    sensitivity: Interval | None
    """The judge's true positive rate; None without labeled passes."""
    specificity: Interval | None
    """The judge's true negative rate; None without labeled fails."""
    notes: tuple[Note, ...]
    """Why there is no corrected rate, or why to trust it less."""


def rogan_gladen(passed: int, n: int, labels: Confusion, *, confidence: float = 0.95) -> RoganGladenEstimate | None:
    """The true pass rate, given that the judge passed `passed` of n samples.

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
        return RoganGladenEstimate(
            rate=None, raw=raw, sensitivity=tpr, specificity=tnr, notes=(note("one_sided_labels", "caution"),)
        )
    youden = _youden(tpr, tnr)
    if youden.low is None or youden.low <= 0:
        by_chance = note("judge_by_chance", "caution", sum=_limits_of(youden, 1), confidence=confidence)
        return RoganGladenEstimate(rate=None, raw=raw, sensitivity=tpr, specificity=tnr, notes=(by_chance,))
    estimate = min(1.0, max(0.0, (raw.estimate - (1 - tnr.estimate)) / youden.estimate))
    limits = _limits(raw, tpr, tnr)
    if limits is None:
        unlike = note(
            "unlike_the_labels",
            "caution",
            passed=_limits_of(raw),
            sensitivity=_limits_of(tpr),
            specificity=_limits_of(tnr),
            confidence=confidence,
        )
        return RoganGladenEstimate(rate=None, raw=raw, sensitivity=tpr, specificity=tnr, notes=(unlike,))
    fewest = min(tpr.n, tnr.n)
    notes = (note("few_class_labels", "caution", labels=fewest),) if fewest < FEW_LABELS else ()
    low, high = limits
    rate = Interval(estimate=estimate, low=low, high=high, n=n, confidence=confidence, method=MOVER, notes=notes)
    return RoganGladenEstimate(rate=rate, raw=raw, sensitivity=tpr, specificity=tnr, notes=notes)


def _youden(tpr: Interval, tnr: Interval) -> Interval:
    """Youden's J, sensitivity + specificity - 1, with its interval."""
    mean = tpr.estimate + tnr.estimate - 1
    (tpr_below, tpr_above), (tnr_below, tnr_above) = _reaches(tpr), _reaches(tnr)
    low, high = mean - mover(tpr_below, tnr_below), mean + mover(tpr_above, tnr_above)
    return Interval(estimate=mean, low=low, high=high, n=tpr.n + tnr.n, confidence=tpr.confidence, method=MOVER)


def _reaches(interval: Interval) -> tuple[float, float]:
    """The distances of both limits from the mean."""
    low, high = ((interval.estimate if limit is None else limit) for limit in (interval.low, interval.high))
    return interval.estimate - low, high - interval.estimate


def _limits(raw: Interval, tpr: Interval, tnr: Interval) -> tuple[float, float] | None:
    """The lowest and the highest rate that the test doesn't reject; None if it rejects all."""
    (raw_below, raw_above), (tpr_below, tpr_above), (tnr_below, tnr_above) = map(_reaches, (raw, tpr, tnr))

    def excess(rate: float) -> float:
        return raw.estimate - rate * tpr.estimate - (1 - rate) * (1 - tnr.estimate)

    def too_low(rate: float) -> float:
        """Above 0 if the judged rate is significantly higher than it would be with this rate."""
        return excess(rate) - mover(raw_below, rate * tpr_above, (1 - rate) * tnr_below)

    def too_high(rate: float) -> float:
        return -excess(rate) - mover(raw_above, rate * tpr_below, (1 - rate) * tnr_above)

    # Both are concave, so each has at most one root between an end that it rejects and one that it doesn't.
    at_zero, at_one = too_low(0.0), too_high(1.0)
    if min(at_zero, too_low(1.0)) > 0 or min(at_one, too_high(0.0)) > 0:
        return None
    low = root(too_low, 0.0, 1.0, 0.5, at_start=at_zero, close=CLOSE) if at_zero > 0 else 0.0
    high = root(too_high, 1.0, 0.0, 0.5, at_start=at_one, close=CLOSE) if at_one > 0 else 1.0
    return low, high


def _limits_of(interval: Interval, added: int = 0) -> tuple[float, float, float]:
    """The estimate and its limits, each with this added."""
    return added + interval.estimate, added + (interval.low or 0.0), added + (interval.high or 0.0)

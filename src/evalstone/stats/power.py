"""How many samples show a difference, and what difference a number of samples can show.

    power = P(|T| > t(1 - a/2, n - 1)),  T noncentral Student's t around √(n / design effect) · difference / deviation

For paired runs, `deviation` is the standard deviation of the differences b - a in a pilot run; for one mean, that of
the scores; for rates see `rate_deviation` and `change_deviation`. With a design effect, n / design effect replaces n.
Differences and deviations are in the unit of the scores. Source: Cohen 1988, Statistical Power Analysis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import column
from evalstone.stats.intervals import check_confidence

MAX_SAMPLES = 1_000_000_000
NORMAL_FROM = 10_000
SMALL_PILOT = 20


@dataclass(frozen=True)
class SampleSizePlan:
    """The samples needed to show a difference, from a pilot run of n samples."""

    n: int
    mean: float
    """Of the pilot's differences."""
    deviation: float
    """The standard deviation of the pilot's differences."""
    difference: float
    """The difference to show."""
    needed: int
    """The samples needed."""
    needed_low: int
    """The same for the lower end of the 80% interval (χ²) of the deviation, because a pilot is uncertain."""
    needed_high: int
    """The same for the upper end."""
    detectable: float | None
    """The minimum detectable difference: the smallest one that the pilot itself would have shown with this power; None
    where there is none."""
    power: float
    confidence: float
    caution: str
    """Why to trust the plan less, or ""."""


def power_of(
    n: int, difference: float, deviation: float, *, confidence: float = 0.95, design_effect: float = 1.0, sided: int = 2
) -> float:
    """The chance, in [0, 1], that n samples show a true difference.

    Args:
        n: The number of samples or pairs.
        difference: The true difference.
        deviation: The standard deviation; with 0, every difference is shown.
        confidence: Of the test, in (0, 1).
        design_effect: How many times more samples are needed because they are clustered.
        sided: 2, or 1 for a one-sided test at 1 - confidence.

    Returns:
        The power; 0 below two effective samples.

    Raises:
        ConfigError: A number is not finite, deviation is below 0, design_effect not above 0, confidence outside (0, 1),
            or sided another number.
    """
    _check(deviation, confidence, design_effect, sided)
    if not (math.isfinite(n) and math.isfinite(difference)):
        raise ConfigError(f"n and difference must be finite numbers, not {n} and {difference}")
    size = n / design_effect
    if size < 2 or difference == 0:
        return 0.0 if size < 2 or sided == 1 else 1 - confidence
    return _power(size, abs(difference) / deviation, confidence, sided) if deviation > 0 else 1.0


def samples_needed(
    difference: float,
    *,
    deviation: float,
    power: float = 0.8,
    confidence: float = 0.95,
    design_effect: float = 1.0,
    sided: int = 2,
) -> int:
    """The fewest samples, 2 or more, that show a true difference with at least this power. Arguments: `power_of`.

    Raises:
        ConfigError: The difference is 0, power is outside (1 - confidence, 1), more than 10⁹ samples would be needed,
            or as for `power_of`.
    """
    _check(deviation, confidence, design_effect, sided)
    _check_power(power, confidence)
    if difference == 0 or not math.isfinite(difference):
        raise ConfigError(f"difference must be a finite number other than 0, not {difference}")

    def power_at(n: int) -> float:
        return power_of(n, difference, deviation, confidence=confidence, design_effect=design_effect, sided=sided)

    if power_at(MAX_SAMPLES) < power:
        raise ConfigError(f"a difference of {difference:g} would need more than {MAX_SAMPLES:,} samples")
    high = 2
    while power_at(high) < power:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= power else (middle, high)
    return high


def passes_needed(rate: float, threshold: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The fewest samples on which an exact one-sided test at 1 - confidence separates a true rate from the threshold.

        N = ((z(confidence) √(t (1 - t)) + z(power) √(r (1 - r))) / |r - t|)²
        n = N / 4 · (1 + √(1 + 2 / (N |r - t|)))²

    Source: Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions, 2.5.

    Raises:
        DataError: A rate is outside [0, 1].
        ConfigError: The rate is at the threshold, or power is outside (1 - confidence, 1).
    """
    check_confidence(confidence)
    _check_power(power, confidence)
    gap = abs(rate - threshold)
    if gap == 0:
        raise ConfigError(f"no number of samples separates a pass rate of {rate:g} from a threshold of {rate:g}")
    normal = NormalDist()
    known, true = rate_deviation(threshold), rate_deviation(rate)
    size = ((normal.inv_cdf(confidence) * known + normal.inv_cdf(power) * true) / gap) ** 2
    return max(2, math.ceil(size / 4 * (1 + math.sqrt(1 + 2 / (size * gap))) ** 2)) if size > 0 else 2


def detectable_difference(
    n: int,
    deviation: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    design_effect: float = 1.0,
    sided: int = 2,
) -> float | None:
    """The minimum detectable difference: the smallest true one, above 0, that n samples show with this power.

    Arguments and errors are those of `samples_needed`. None below two effective samples.
    """
    _check(deviation, confidence, design_effect, sided)
    _check_power(power, confidence)
    size = n / design_effect
    if size < 2:
        return None
    low, high = 0.0, 1.0
    while _power(size, high, confidence, sided) < power:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(size, middle, confidence, sided) >= power else (middle, high)
    return high * deviation


def plan_sample_size(
    differences: Sequence[float],
    difference: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    design_effect: float = 1.0,
) -> SampleSizePlan | None:
    """A plan from a pilot run's paired differences (or its scores, for one mean); None below two.

    Raises:
        DataError: A value is not a finite number.
        ConfigError: As `samples_needed` does.
    """
    d = column("differences", differences)
    n = d.size
    if n < 2:
        return None
    from scipy.special import chdtri  # noqa: PLC0415 - 0.15 s of import

    deviation = float(d.std(ddof=1)) if d.max() > d.min() else 0.0  # equal values differ by rounding only
    ends = [deviation * math.sqrt((n - 1) / float(chdtri(n - 1, tail))) for tail in (0.1, 0.9)]
    needed, needed_low, needed_high = (
        samples_needed(difference, deviation=spread, power=power, confidence=confidence, design_effect=design_effect)
        for spread in (deviation, *ends)
    )
    caution = f"small pilot (n = {n}): its standard deviation is uncertain" if n < SMALL_PILOT else ""
    return SampleSizePlan(
        n=n,
        mean=float(d.mean()),
        deviation=deviation,
        difference=difference,
        needed=needed,
        needed_low=needed_low,
        needed_high=needed_high,
        detectable=detectable_difference(n, deviation, power=power, confidence=confidence, design_effect=design_effect),
        power=power,
        confidence=confidence,
        caution=caution if deviation else "the pilot's values don't vary: the samples needed are unknown",
    )


def rate_deviation(rate: float) -> float:
    """The standard deviation of pass/fail values with this pass rate: √(p (1 - p)). Raises DataError outside [0, 1]."""
    if not 0 <= rate <= 1:
        raise DataError(f"a rate must be in [0, 1], not {rate}")
    return math.sqrt(rate * (1 - rate))


def change_deviation(gained: float, lost: float) -> float:
    """The standard deviation of paired pass/fail differences: √(g + l - (g - l)²).

    gained and lost are the shares of samples that change to pass and to fail. Raises DataError for impossible shares.
    """
    if not (gained >= 0 and lost >= 0 and gained + lost <= 1):
        raise DataError(f"shares must be 0 or more and 1 at most together: gained {gained}, lost {lost}")
    return math.sqrt(gained + lost - (gained - lost) ** 2)


def _power(size: float, effect: float, confidence: float, sided: int) -> float:
    from scipy.special import nctdtr, ndtr, ndtri, stdtrit  # noqa: PLC0415 - 0.15 s of import

    center, tail = math.sqrt(size) * effect, (1 - confidence) / sided
    if size > NORMAL_FROM or center > 30:  # where the noncentral t is normal but for 1e-4, or its series fails
        edge = float(ndtri(1 - tail)) if size > NORMAL_FROM else float(stdtrit(size - 1, 1 - tail))
        return float(ndtr(center - edge) + (ndtr(-center - edge) if sided == 2 else 0.0))
    edge = float(stdtrit(size - 1, 1 - tail))
    # Beyond 4 the other tail is below 1e-8, and scipy's series for it fails.
    other_tail = float(nctdtr(size - 1, center, -edge)) if sided == 2 and center < 4 else 0.0
    return 1 - float(nctdtr(size - 1, center, edge)) + other_tail


def _check(deviation: float, confidence: float, design_effect: float, sided: int) -> None:
    check_confidence(confidence)
    if not (math.isfinite(deviation) and deviation >= 0):
        raise ConfigError(f"deviation must be a finite number of 0 or more, not {deviation}")
    if not design_effect > 0:
        raise ConfigError(f"design_effect must be above 0, not {design_effect}")
    if sided not in (1, 2):
        raise ConfigError(f"sided must be 1 or 2, not {sided}")


def _check_power(power: float, confidence: float) -> None:
    if not 1 - confidence < power < 1:
        raise ConfigError(f"power must be above 1 - confidence and below 1, such as 0.8, not {power}")

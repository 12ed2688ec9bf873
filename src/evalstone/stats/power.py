"""How many samples a question needs, and what a number of samples can tell.

    power = P(|T| > t(1 - a/2, n - 1)),  T noncentral Student's t around √(n / design effect) · difference / deviation

For paired runs `deviation` is the standard deviation of the differences b - a in a pilot run; for one mean, that of the
scores; for rates see `rate_deviation` and `change_deviation`. With a design effect, n / design effect takes the place
of n. Differences and deviations are in the unit of the scores. Source: Cohen 1988, Statistical Power Analysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evalstone.errors import ConfigError, DataError
from evalstone.stats._arrays import column
from evalstone.stats.intervals import check_confidence

MOST = 1_000_000_000
NORMAL_FROM = 10_000
SMALL_PILOT = 20


@dataclass(frozen=True)
class SampleSizePlan:
    """What a pilot of n differences says of a run that is to see `difference`.

    mean, deviation: of the pilot. needed: samples; needed_low, needed_high: the same for the ends of the deviation's
    own 80 % interval (χ²), for a pilot is uncertain. detectable: the smallest difference that the pilot itself would
    have seen with this power. caution: why to trust it less, or "".
    """

    n: int
    mean: float
    deviation: float
    difference: float
    needed: int
    needed_low: int
    needed_high: int
    detectable: float | None
    power: float
    confidence: float
    caution: str


def power_of(
    n: int, difference: float, deviation: float, *, confidence: float = 0.95, design_effect: float = 1.0, sided: int = 2
) -> float:
    """The chance, in [0, 1], that n samples show a true difference.

    Below two effective samples nothing can be shown: 0. A deviation of 0 shows every difference: 1.
    Raises ConfigError for a negative deviation, a design effect not above 0, a confidence outside (0, 1), other sides.
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
    """The fewest samples that show a true difference with at least this power; 2 or more.

    Raises ConfigError for a difference of 0, which no number of samples shows, for a power outside (1 - confidence, 1), for
    more than 10⁹ samples, and as power_of does.
    """
    _check(deviation, confidence, design_effect, sided)
    _check_power(power, confidence)
    if difference == 0 or not math.isfinite(difference):
        raise ConfigError(f"difference must be a finite number other than 0, not {difference}")

    def enough(n: int) -> bool:
        return (
            power_of(n, difference, deviation, confidence=confidence, design_effect=design_effect, sided=sided) >= power
        )

    if not enough(MOST):
        raise ConfigError(f"a difference of {difference:g} would need more than {MOST:,} samples")
    return _first(enough)


def passes_needed(rate: float, threshold: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The fewest samples on which an exact one-sided test at 1 - confidence tells a true pass rate from the threshold.

        N = ((z(confidence) √(t (1 - t)) + z(power) √(r (1 - r))) / |r - t|)²,   n = N / 4 · (1 + √(1 + 2 / (N |r - t|)))²

    Source: Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions, 2.5. Raises DataError for a rate
    outside [0, 1], ConfigError for a rate at the threshold and for a power outside (1 - confidence, 1).
    """
    check_confidence(confidence)
    _check_power(power, confidence)
    gap = abs(rate - threshold)
    if gap == 0:
        raise ConfigError(f"a pass rate of {rate:g} at its threshold is told from it by no number of samples")
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
    """The smallest true difference that n samples show with this power, above 0; None below two effective samples."""
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
    """SampleSizePlan from a pilot run's paired differences (or its scores, for one mean); None below two.

    Raises as samples_needed does, and DataError for a value that is not a finite number.
    """
    d = column("differences", differences)
    n = d.size
    if n < 2:
        return None
    from scipy.special import chdtri  # noqa: PLC0415 - 0.1 s of import

    deviation = float(d.std(ddof=1)) if d.max() > d.min() else 0.0  # equal values differ by rounding only
    squares = deviation**2 * (n - 1)
    ends = [math.sqrt(squares / float(chdtri(n - 1, tail))) for tail in (0.1, 0.9)]
    needed, least, most = (
        samples_needed(difference, deviation=spread, power=power, confidence=confidence, design_effect=design_effect)
        for spread in (deviation, *ends)
    )
    return SampleSizePlan(
        n=n,
        mean=float(d.mean()),
        deviation=deviation,
        difference=difference,
        needed=needed,
        needed_low=least,
        needed_high=most,
        detectable=detectable_difference(n, deviation, power=power, confidence=confidence, design_effect=design_effect),
        power=power,
        confidence=confidence,
        caution=_caution(n, deviation),
    )


def _caution(n: int, deviation: float) -> str:
    if deviation == 0:
        return "the pilot's values do not vary: it says nothing of how many are needed"
    return f"a pilot of {n} samples knows its deviation poorly" if n < SMALL_PILOT else ""


def rate_deviation(rate: float) -> float:
    """The standard deviation of pass/fail with this pass rate: √(p (1 - p)). Raises DataError outside [0, 1]."""
    if not 0 <= rate <= 1:
        raise DataError(f"a rate must be in [0, 1], not {rate}")
    return math.sqrt(rate * (1 - rate))


def change_deviation(gained: float, lost: float) -> float:
    """That of paired pass/fail, from the shares of samples that change to pass and to fail: √(g + l - (g - l)²)."""
    if not (gained >= 0 and lost >= 0 and gained + lost <= 1):
        raise DataError(f"shares must be 0 or more and 1 at most together: gained {gained}, lost {lost}")
    return math.sqrt(gained + lost - (gained - lost) ** 2)


def unpaired_deviation(a: float, b: float) -> float:
    """For two runs over different samples, n each, from their deviations: √(a² + b²)."""
    return math.hypot(a, b)


def design_effect(size: float, correlation: float) -> float:
    """How many times more samples are needed in groups of this mean size: 1 + (size - 1) · intraclass correlation."""
    if size < 1 or not -1 <= correlation <= 1:
        raise DataError(f"size must be 1 or more, correlation in [-1, 1]: not {size} and {correlation}")
    return max(0.0, 1 + (size - 1) * correlation)


def _power(size: float, effect: float, confidence: float, sided: int) -> float:
    from scipy.special import nctdtr, ndtr, ndtri, stdtrit  # noqa: PLC0415 - 0.1 s of import

    center, tail = math.sqrt(size) * effect, (1 - confidence) / sided
    if size > NORMAL_FROM or center > 30:  # where the noncentral t is normal but for 1e-4, or its series fails
        edge = float(ndtri(1 - tail)) if size > NORMAL_FROM else float(stdtrit(size - 1, 1 - tail))
        return float(ndtr(center - edge) + (ndtr(-center - edge) if sided == 2 else 0.0))
    edge = float(stdtrit(size - 1, 1 - tail))
    # Beyond 4 the other tail is below 1e-8, and scipy's series for it fails.
    far = float(nctdtr(size - 1, center, -edge)) if sided == 2 and center < 4 else 0.0
    return 1 - float(nctdtr(size - 1, center, edge)) + far


def _first(enough: Callable[[int], bool]) -> int:
    """The smallest n from 2 on for which it is enough, given that it stays so from there on."""
    high = 2
    while not enough(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(deviation: float, confidence: float, design_effect: float, sided: int) -> None:
    check_confidence(confidence)
    if not (np.isfinite(deviation) and deviation >= 0):
        raise ConfigError(f"deviation must be a finite number of 0 or more, not {deviation}")
    if not design_effect > 0:
        raise ConfigError(f"design_effect must be above 0, not {design_effect}")
    if sided not in (1, 2):
        raise ConfigError(f"sided must be 1 or 2, not {sided}")


def _check_power(power: float, confidence: float) -> None:
    if not 1 - confidence < power < 1:
        raise ConfigError(f"power must be above 1 - confidence and below 1, as 0.8 is, not {power}")

"""A pass rate, corrected for a judge that is known to err: Rogan and Gladen's estimator, Lang and Reiczigel's interval.

    true rate = (judged rate + specificity - 1) / (sensitivity + specificity - 1), cut to [0, 1]

Sensitivity and specificity must come from labelled samples of their own: drawn at random, or from among those that
people pass and those that people fail. Where the labels are part of the same run, `ppi_mean` assumes less.
Sources: Rogan and Gladen 1978, American Journal of Epidemiology 107(1); Lang and Reiczigel 2014, Preventive Veterinary
Medicine 113(1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from evalstone.errors import DataError
from evalstone.stats._arrays import same_length
from evalstone.stats.intervals import Interval, check_level
from evalstone.stats.proportions import wilson_interval

NO_BETTER = "the judge is no better than chance on the labelled samples: its verdicts say nothing of the true rate"
FEW_LABELS = 20


@dataclass(frozen=True)
class Hits:
    """How many of how many labelled samples the judge got right: of those that people pass, or of those they fail."""

    right: int
    of: int


@dataclass(frozen=True)
class CorrectedRate:
    """A corrected pass rate beside the raw one, and what is known of the judge.

    rate: None where the judge is no better than chance or nothing is known of it; `caution` says which. sensitivity,
    specificity: over all strata, with Wilson's intervals; None without labelled samples.
    """

    rate: Interval | None
    raw: Interval | None
    sensitivity: Interval | None
    specificity: Interval | None
    caution: str


@dataclass(frozen=True)
class RateStratum:
    """One stratum: how many of its n samples the judge passed, how well it judges there, and its share (None: by n)."""

    passed: int
    n: int
    sensitivity: Hits
    specificity: Hits
    share: float | None = None


def corrected_rate(
    passed: int, n: int, *, sensitivity: Hits, specificity: Hits, level: float = 0.95
) -> CorrectedRate | None:
    """The true pass rate behind `passed` of n judged samples, in [0, 1]; None when n is 0.

    Interval.mean is the estimate; the interval is made around one that is drawn a little towards the middle (counts
    with z²/2 more of each verdict, and 1 more of right and of wrong labels), so that it holds for small counts too.
    Raises DataError for impossible counts.
    """
    return stratified_rate([RateStratum(passed, n, sensitivity, specificity)], level=level)


def stratified_rate(strata: Sequence[RateStratum], *, level: float = 0.95) -> CorrectedRate | None:
    """The true pass rate over strata in which the judge errs differently: Σ share · rate; None when there is no sample.

    Shares are divided by their sum. The interval adds the strata's variances and shifts by their shares.
    Raises DataError for impossible counts, or shares of some strata only.
    """
    check_level(level)
    shares = _shares(strata)
    if not shares:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    n, passed = sum(s.n for s in strata), sum(s.passed for s in strata)
    raw = wilson_interval(passed, n, level)
    known = [_pooled([getattr(s, name) for s in strata], level) for name in ("sensitivity", "specificity")]
    counted = [(w, s) for w, s in zip(shares, strata, strict=True) if w > 0]
    fewest = min((hits.of for _, s in counted for hits in (s.sensitivity, s.specificity)), default=0)
    if not fewest:
        told = "labelled samples of both kinds are wanted, that people pass and that people fail"
        return CorrectedRate(None, raw, known[0], known[1], told)
    if any(_informedness(s) <= 0 for _, s in counted):
        return CorrectedRate(None, raw, known[0], known[1], NO_BETTER)
    estimate = sum(w * _rate(s) for w, s in counted)
    pieces = [(w, *_piece(s, z)) for w, s in counted]
    middle = sum(w * center for w, center, _ in pieces)
    half = z * math.sqrt(sum(w * w * variance for w, _, variance in pieces))
    low, high = max(0.0, min(middle - half, estimate)), min(1.0, max(middle + half, estimate))
    caution = f"only {fewest} labelled samples of one kind: the interval is a guide" if fewest < FEW_LABELS else ""
    rate = Interval(estimate, low, high, n, level, method="Lang-Reiczigel", caution=caution)
    return CorrectedRate(rate, raw, known[0], known[1], caution)


def hits(judged: Sequence[bool], human: Sequence[bool]) -> tuple[Hits, Hits]:
    """Sensitivity and specificity as counts, from samples with both verdicts."""
    same_length(judged=judged, human=human)
    pairs = list(zip(judged, human, strict=True))
    good, bad = [j for j, h in pairs if h], [j for j, h in pairs if not h]
    return Hits(sum(map(bool, good)), len(good)), Hits(sum(not j for j in bad), len(bad))


def _rate(stratum: RateStratum) -> float:
    judged = stratum.passed / stratum.n
    wrong = 1 - stratum.specificity.right / stratum.specificity.of
    return min(1.0, max(0.0, (judged - wrong) / _informedness(stratum)))


def _informedness(stratum: RateStratum) -> float:
    good, bad = stratum.sensitivity, stratum.specificity
    return good.right / good.of + bad.right / bad.of - 1


def _piece(stratum: RateStratum, z: float) -> tuple[float, float]:
    """Middle and variance of Lang and Reiczigel's interval, in the paper's order of steps."""
    n = stratum.n + z * z
    judged = (stratum.passed + z * z / 2) / n
    good_n, bad_n = stratum.sensitivity.of + 2, stratum.specificity.of + 2
    good, bad = (stratum.sensitivity.right + 1) / good_n, (stratum.specificity.right + 1) / bad_n
    informed = good + bad - 1
    rate = (judged + bad - 1) / informed
    good_variance, bad_variance = good * (1 - good) / good_n, bad * (1 - bad) / bad_n
    shift = 2 * z * z * (rate * good_variance - (1 - rate) * bad_variance)
    variance = (judged * (1 - judged) / n + rate**2 * good_variance + (1 - rate) ** 2 * bad_variance) / informed**2
    return rate + shift, variance


def _pooled(counts: Sequence[Hits], level: float) -> Interval | None:
    return wilson_interval(sum(hits.right for hits in counts), sum(hits.of for hits in counts), level)


def _shares(strata: Sequence[RateStratum]) -> list[float]:
    """The strata's shares, which sum to 1; none when there is no sample."""
    for stratum in strata:
        for name, part, whole in (
            ("passed", stratum.passed, stratum.n),
            ("sensitivity", stratum.sensitivity.right, stratum.sensitivity.of),
            ("specificity", stratum.specificity.right, stratum.specificity.of),
        ):
            if not 0 <= part <= whole:
                raise DataError(f"{name}: {part} of {whole} is no count; from 0 to all is wanted")
    given = [stratum.share for stratum in strata if stratum.share is not None]
    if given and len(given) < len(strata):
        raise DataError(f"shares are wanted for all {len(strata)} strata or for none, not for {len(given)}")
    if not all(0 <= share < math.inf for share in given) or (given and sum(given) <= 0):
        raise DataError(f"shares must be 0 or more and finite, and not all 0: {given}")
    sizes = given or [float(stratum.n) for stratum in strata]
    if any(stratum.n == 0 and size > 0 for stratum, size in zip(strata, sizes, strict=True)):
        raise DataError("a stratum with a share has no judged samples")
    return [size / sum(sizes) for size in sizes] if sum(sizes) > 0 else []

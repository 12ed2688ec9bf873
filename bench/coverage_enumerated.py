"""The worst coverage and error rate over all populations of a grid, computed: sections of bench/coverage.py.

Every sample of n values from a population with two or three values has a known
probability, so coverage and error rates are sums. Samples with a probability below NEGLIGIBLE count as errors.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator
from functools import cache

from tables import Table

from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.partly_known import PartlyKnown
from evalstone.stats.unpaired import compare_unpaired

TWO_VALUES = (range(8, 15), range(15, 30), range(30, 61), (100,), (200,), (300,))
"""Sample sizes of pass rates, by row of the table."""
THREE_VALUES = (8, 12, 20, 30)
SUPPORTS = (
    *((0.0, value, 1.0) for value in (0.05, 0.1, 0.25, 0.5, 0.67, 0.75, 0.9)),
    (0.3, 0.6, 1.0),
    (0.5, 0.75, 1.0),
    (0.0, 0.5, 0.75),
)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97)
NEGLIGIBLE = 1e-6


def populations() -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Values and their shares."""
    for support in SUPPORTS:
        for first, second in itertools.product(SHARES, repeat=2):
            if first + second < 0.995:
                yield support, (first, second, 1 - first - second)


@cache
def counts(n: int, values: int) -> tuple[tuple[int, ...], ...]:
    """All ways in which n values can be spread over so many."""
    if values == 1:
        return ((n,),)
    return tuple((own, *rest) for own in range(n + 1) for rest in counts(n - own, values - 1))


def rates(n: int, support: tuple[float, ...], shares: tuple[float, ...]) -> tuple[float, float]:
    """The probability that a 95% interval misses the mean, and that a one-sided test at 5% rejects it wrongly."""
    truth = math.fsum(value * share for value, share in zip(support, shares, strict=True))
    logs = [math.log(share) for share in shares]
    missed = passed = seen = 0.0
    for each in counts(n, len(support)):
        chance = math.exp(
            math.lgamma(n + 1) + sum(c * log - math.lgamma(c + 1) for c, log in zip(each, logs, strict=True))
        )
        if chance < NEGLIGIBLE:
            continue
        seen += chance
        mean = BoundedMean.of([v for v, c in zip(support, each, strict=True) for _ in range(c)], 0.0, 1.0)
        missed += chance * (mean.two_sided_p(truth) < 0.05)
        passed += chance * (mean.p_value(truth, 1) <= 0.05)
    return missed + (1 - seen), passed + (1 - seen)


def worst_of_pass_rates(n: int) -> tuple[float, float]:
    """The lowest coverage over all pass rates, and the rate. It is next to a limit of one of the n + 1 intervals."""
    intervals = [BoundedMean.of([1.0] * c + [0.0] * (n - c), 0.0, 1.0).interval(0.95) for c in range(n + 1)]
    limits = {limit for interval in intervals for limit in interval if 0 < limit < 1}
    found: list[tuple[float, float]] = []
    for rate in (limit + step for limit in limits for step in (-1e-9, 1e-9)):
        chances = (math.comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1))
        covers = (chance for chance, (low, high) in zip(chances, intervals, strict=True) if low <= rate <= high)
        found.append((math.fsum(covers), rate))
    return min(found)


MISSING_SIZES = (8, 11, 15, 21, 33)
DISTANCES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.5)
"""How far the ends of a pass rate with missing scores are apart, in standard errors."""


def passes(n: int, count: int) -> BoundedMean:
    """The evidence of this many passes."""
    return BoundedMean.of([1.0] * count + [0.0] * (n - count), 0.0, 1.0)


def errors_at_the_ends(n: int, rate: float, missing: float) -> tuple[float, float]:
    """The error rates of 95% intervals of a pass rate whose missing scores are all 0, and all 1.

    rate, missing: The shares of passes and of missing scores.
    """
    logs = [math.log(share) for share in (rate, missing, 1 - rate - missing)]
    errors = [0.0, 0.0]
    for each in counts(n, 3):
        chance = math.exp(
            math.lgamma(n + 1) + sum(c * log - math.lgamma(c + 1) for c, log in zip(each, logs, strict=True))
        )
        if chance < NEGLIGIBLE:
            errors = [error + chance for error in errors]
            continue
        lowest, highest = passes(n, each[0]), passes(n, each[0] + each[1])
        partly = PartlyKnown.between(lowest, highest)
        for end, truth in enumerate((rate, rate + missing)):
            above = lowest.p_value(truth, 1, share=partly.share) if lowest.mean > truth else 1.0
            below = highest.p_value(truth, -1, share=partly.share) if highest.mean < truth else 1.0
            errors[end] += chance * (partly.p_value(min(1.0, 2 * min(above, below))) < 0.05)
    return errors[0], errors[1]


def enumerated_missing(_: int) -> Iterator[Table]:
    """The lowest coverage of a pass rate with missing scores, which are all failures or all passes."""
    rows: list[list[str]] = []
    for n in MISSING_SIZES:
        found: list[tuple[float, float, float]] = []
        for rate, distance in itertools.product((place / 40 for place in range(1, 40)), DISTANCES):
            missing = distance * math.sqrt(rate * (1 - rate) / n)
            if rate + missing < 0.997:
                found.append((max(errors_at_the_ends(n, rate, missing)), rate, missing))
        error, rate, missing = max(found)
        rows.append([f"{n}", f"{100 - 100 * error:.1f}", f"{rate:.3f}", f"{missing:.3f}"])
    head = ["n", "lowest coverage", "share of passes", "share of missing scores"]
    yield Table("Worst cases with missing scores", head, rows, None)


def enumerated(_: int) -> Iterator[Table]:
    """The lowest coverage of the default interval, and the highest rate of wrong passes at the threshold."""
    rows: list[list[str]] = []
    for sizes in TWO_VALUES:
        (coverage, rate), n = min((worst_of_pass_rates(n), n) for n in sizes)
        wrong = max(rates(n, (0.0, 1.0), (1 - place / 200, place / 200))[1] for n in sizes for place in range(1, 200))
        span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        rows.append(["pass rates", span, f"{100 * coverage:.1f}", f"{rate:.3f} (n = {n})", f"{100 * wrong:.2f}"])
    for n in THREE_VALUES:
        every = [(*rates(n, *population), population) for population in populations()]
        worst, gate = max(every), max(every, key=lambda one: one[1])
        where = ", ".join(f"{share:.2g} at {value:g}" for value, share in zip(*worst[2], strict=True))
        rows.append(["three values", f"{n}", f"{100 - 100 * worst[0]:.1f}", where, f"{100 * gate[1]:.2f}"])
    head = ["populations", "n", "lowest coverage", "at", "highest rate of wrong passes"]
    yield Table("Worst cases of means", head, rows, None)


UNPAIRED_SIZES = ((8, 8), (30, 30), (100, 50), (300, 300))
RATES = (0.5, 0.8, 0.9, 0.97)


def first_rejected(a: int, n_a: int, n_b: int) -> int:
    """The lowest number of passes of n_b samples that is significantly above a of n_a; n_b + 1 if there is none."""

    def rejected(b: int) -> bool:
        found = compare_unpaired([1.0] * a + [0.0] * (n_a - a), [1.0] * b + [0.0] * (n_b - b))
        return found is not None and found.difference.estimate > 0 and found.p_value <= 0.05

    return bisect.bisect_left(range(n_b + 1), True, key=rejected)


def enumerated_unpaired(_: int) -> Iterator[Table]:
    """The error rate of unpaired comparisons of pass/fail scores with equal rates, and the highest over all rates."""
    rows: list[list[str]] = []
    for n_a, n_b in UNPAIRED_SIZES:
        above = [first_rejected(a, n_a, n_b) for a in range(n_a + 1)]
        # A failure is a pass of the opposite score: b is significantly below a where its failures are above those of a.
        below = [n_b - first_rejected(n_a - a, n_a, n_b) for a in range(n_a + 1)]

        def error(
            rate: float, n_a: int = n_a, n_b: int = n_b, above: list[int] = above, below: list[int] = below
        ) -> float:
            a, b = ([math.comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)] for n in (n_a, n_b))
            tails = (math.fsum(b[up:]) + math.fsum(b[: down + 1]) for up, down in zip(above, below, strict=True))
            return 100 * math.fsum(chance * tail for chance, tail in zip(a, tails, strict=True))

        worst = max(error(place / 200) for place in range(1, 200))
        rows.append([f"{n_a} and {n_b}", *(f"{error(rate):.1f}" for rate in RATES), f"{worst:.1f}"])
    head = ["samples", "rate 0.5", *(f"{rate}" for rate in RATES[1:]), "worst"]
    yield Table("Worst cases of unpaired comparisons", head, rows, None)


SECTIONS = (enumerated, enumerated_missing, enumerated_unpaired)

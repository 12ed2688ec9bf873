"""Whether plans hold, by simulation: sections of bench/coverage.py.

The power at the planned number of samples, how often the range of a pilot holds the number that is truly needed, and
how often a gate decides after as many more samples as it asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from populations import Floats, passes
from tables import Table, percent

from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.gates import AtLeast, decide
from evalstone.stats.paired_tests import mcnemar
from evalstone.stats.pilot import Pilot
from evalstone.stats.power import Changes, more_units, samples_needed

Drawn = Callable[[np.random.Generator, int], Floats]


def changes(gained: float, lost: float) -> Drawn:
    """Differences of pass/fail pairs."""
    return lambda source, n: source.choice([1.0, -1.0, 0.0], p=[gained, lost, 1 - gained - lost], size=n)


def normal(mean: float, deviation: float) -> Drawn:
    """Differences of similarities, to a hundredth."""
    return lambda source, n: np.clip(np.round(source.normal(mean, deviation, n), 2), -1, 1)


def some(source: np.random.Generator, n: int) -> Floats:
    """One in five changes, by about 0.3."""
    return np.where(source.random(n) < 0.2, np.clip(np.round(source.normal(0.05, 0.3, n), 2), -1, 1), 0.0)


def skewed(source: np.random.Generator, n: int) -> Floats:
    """8% get worse, by about 0.5."""
    return np.where(source.random(n) < 0.08, -np.round(source.beta(5, 5, n), 2), 0.0)


def claims(source: np.random.Generator, n: int) -> Floats:
    """The share of 2 to 5 claims that hold, each with 0.9."""
    count = source.integers(2, 6, n)
    return source.binomial(count, 0.9) / count


def claims_changed(source: np.random.Generator, n: int) -> Floats:
    """Shares of 4 claims, of which 2 in 5 answers were changed by an equal system."""
    a, b = source.binomial(4, 0.85, (2, n)) / 4
    return np.where(source.random(n) < 0.4, b - a, 0.0)


def ratings(source: np.random.Generator, n: int) -> Floats:
    """Ratings of 1 to 5, as 0 to 1; mean 0.7875."""
    return source.choice([0, 0.25, 0.5, 0.75, 1], p=[0.05, 0.05, 0.1, 0.3, 0.5], size=n)


def share(hits: int, of: int) -> str:
    """A share in per cent with two standard errors."""
    rate = hits / of
    return f"{100 * rate:.1f} ± {200 * math.sqrt(max(rate * (1 - rate), 1 / of) / of):.1f}"


@cache
def rejects(gained: int, lost: int) -> bool:
    """Whether McNemar's test says that there is a difference."""
    return mcnemar(gained, lost).p_value <= 0.05


def pass_fail_power(draws: int) -> list[list[str]]:
    """Rows of `plan_power` for pass/fail pairs."""
    rows: list[list[str]] = []
    for gained, lost in ((0.08, 0.03), (0.15, 0.05), (0.06, 0.01), (0.3, 0.1), (0.03, 0.01)):
        difference, source = gained - lost, np.random.default_rng(20)
        n = samples_needed(Changes(gained + lost), difference)
        drawn = source.multinomial(n, [gained, lost, 1 - gained - lost], draws)
        found = sum(up > down and rejects(up, down) for up, down, _ in drawn.tolist())
        equal = (gained + lost) / 2
        drawn = source.multinomial(n, [equal, equal, 1 - 2 * equal], draws)
        false = sum(rejects(up, down) for up, down, _ in drawn.tolist())
        name = f"pass/fail, {100 * gained:g}% gained, {100 * lost:g}% lost"
        student = students(gained + lost - difference**2, difference)
        rows.append([name, f"{difference:g}", student, str(n), share(found, draws), share(false, draws)])
    return rows


def plan_power(replications: int) -> Iterator[Table]:
    """Power at the planned number of samples, in the harder direction, and false alarms there; target 80, at most 5."""
    rows = pass_fail_power(20 * replications)
    scores: dict[str, Drawn] = {
        "similarities, deviation 0.05": normal(0, 0.05),
        "similarities, deviation 0.15": normal(0, 0.15),
        "1 in 5 changes by about 0.3": some,
        "8% get worse by about 0.5": skewed,
        "shares of 4 claims, 2 in 5 changed": claims_changed,
    }
    turns = max(1, replications // 4)
    for name, draw in scores.items():
        for difference in (0.03, 0.1):
            source = np.random.default_rng(21)
            values = draw(source, 4000)
            pilot = Pilot.of(values.tolist())
            assert pilot is not None
            n = samples_needed(pilot.population(), difference)
            powers = [shown(source, sign * values, difference, n, turns, (1,)) for sign in (1, -1)]
            false = shown(source, values, 0.0, n, turns, (1, -1))
            student = students(pilot.deviation**2, difference)
            rows.append([name, f"{difference:g}", student, str(n), share(min(powers), turns), share(false, turns)])
    head = ["differences", "difference to show", "Student's plan", "planned", "power", "rejected where nothing differs"]
    counts = {"pass/fail": 20 * replications, "scores": turns}
    yield Table("Power at the planned sample size", head, rows, counts)


def students(variance: float, difference: float) -> str:
    """How many samples the normal test would need, as text."""
    return f"{math.ceil((1.959964 + 0.841621) ** 2 * variance / difference**2)}"


def shown(source: np.random.Generator, values: Floats, mean: float, n: int, turns: int, sides: Sequence[int]) -> int:
    """How often a comparison of n pairs says that the mean is not 0, on one of these sides."""
    moved: Floats = np.clip(np.round(values - float(values.mean()) + mean, 4), -1.0, 1.0)
    found = 0
    for _ in range(turns):
        d = source.choice(moved, n)
        result = compare_pairs(np.maximum(-d, 0).tolist(), np.maximum(d, 0).tolist())
        assert result is not None
        found += result.p_value <= 0.05 and (1 if result.difference.estimate > 0 else -1) in sides
    return found


def plan_range(replications: int) -> Iterator[Table]:
    """How often the range of samples needed, from a pilot, holds the number needed by the truth; at least 80."""
    cases: dict[str, tuple[Drawn, bool, bool, float]] = {
        "pass/fail pairs, 8% gained, 3% lost": (changes(0.08, 0.03), True, True, 0.05),
        "pass/fail pairs, 30% gained, 10% lost": (changes(0.3, 0.1), True, True, 0.1),
        "similarities, deviation 0.2": (normal(0, 0.2), True, False, 0.05),
        "similarities, deviation 0.05": (normal(0, 0.05), True, False, 0.03),
        "1 in 5 changes by about 0.3": (some, True, False, 0.05),
        "8% get worse by about 0.5": (skewed, True, False, 0.05),
        "one run, pass rate 0.93": (passes(0.93), False, True, 0.05),
        "one run, pass rate 0.8": (passes(0.8), False, True, 0.05),
        "one run, shares of claims": (claims, False, False, 0.05),
    }
    turns = max(1, replications // 20)
    rows: list[list[str]] = []
    for name, (draw, paired, pass_fail, difference) in cases.items():
        source = np.random.default_rng(22)
        truth = Pilot.of(draw(source, 200_000).tolist(), paired=paired, pass_fail=pass_fail)
        assert truth is not None
        needed, row = samples_needed(truth.population(), difference), [name, f"{difference:g}"]
        row.append(str(needed))
        for n in (30, 100, 250):
            found: list[tuple[int, int]] = []
            for _ in range(turns):
                pilot = Pilot.of(draw(source, n).tolist(), paired=paired, pass_fail=pass_fail)
                assert pilot is not None
                low, high = (samples_needed(pilot.population(end), difference) for end in pilot.limits())
                found.append((low, high))
            low, high = np.median(np.array(found), axis=0)
            row += [share(sum(low <= needed <= high for low, high in found), turns), f"{low:.0f} to {high:.0f}"]
        rows.append(row)
    head = ["pilot", "difference to show", "truly needed"]
    head += [text for n in (30, 100, 250) for text in (f"pilot of {n}: holds", "median range")]
    yield Table("80% ranges of sample sizes", head, rows, turns)


def plan_more(replications: int) -> Iterator[Table]:
    """Gates that were inconclusive, with as many more samples as they asked for: decided; target 80."""
    cases: dict[str, tuple[Drawn, int, float]] = {
        "pass rate 0.9, threshold 0.85": (passes(0.9), 100, 0.85),
        "shares of claims 0.9, threshold 0.85": (claims, 50, 0.85),
        "ratings 0.79, threshold 0.75": (ratings, 50, 0.75),
    }
    rows: list[list[str]] = []
    for name, (draw, n, threshold) in cases.items():
        source = np.random.default_rng(23)
        asked: list[int] = []
        decided: list[list[bool]] = []
        for _ in range(replications // 2):
            values = draw(source, n)
            evidence = BoundedMean.of(values.tolist(), 0, 1)
            if verdict(values, threshold) != "inconclusive":
                continue
            more = more_units(evidence, threshold, 1 if evidence.mean > threshold else -1, 0.05)
            if more is None or more > 10_000:
                continue
            asked.append(more)
            new = (source.choice(values, more), draw(source, more))
            decided.append([verdict(np.concatenate((values, also)), threshold) != "inconclusive" for also in new])
        columns = [percent([pair[at] for pair in decided]) for at in (0, 1)]
        error = 200 * math.sqrt(0.16 / len(decided))
        rows.append([name, str(n), f"{np.median(asked):.0f}", *(f"{one} ± {error:.1f}" for one in columns)])
    head = ["", "samples", "more, median", "decided, the estimate being true", "decided, as things are"]
    yield Table("Additional samples for an inconclusive gate", head, rows, replications // 2)


def verdict(values: Floats, threshold: float) -> str:
    """The gate's verdict."""
    return decide([AtLeast("a", values.tolist(), threshold)])[0].verdict

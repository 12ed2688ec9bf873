"""Comparisons where assumptions break: missing scores, declared largest changes, equivalence, plans beyond a pilot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import TypeAlias

import numpy as np
from coverage_plan import share
from populations import Floats
from tables import Table, holds, percent, width

from evalstone.results.trials import Counts, bounded_share, pass_all_k
from evalstone.stats.comparison import PairedComparison, compare_pairs
from evalstone.stats.comparison_of_many import compare_many
from evalstone.stats.intervals import Interval
from evalstone.stats.paired_differences import possible_differences
from evalstone.stats.pilot import Pilot, plan_sample_size
from evalstone.stats.power import Changes, mcnemar_power, samples_needed
from evalstone.stats.unpaired import UnpairedComparison, compare_unpaired


def optional(values: Floats, known: np.ndarray) -> list[float | None]:
    """Scores, with None for those that are missing."""
    return [x if is_known else None for x, is_known in zip(values.tolist(), known.tolist(), strict=True)]


Pairs: TypeAlias = tuple[list[float], list[float | None]]
Draw: TypeAlias = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
Compared: TypeAlias = PairedComparison | UnpairedComparison | None
Compare: TypeAlias = Callable[[np.random.Generator, int, float, float], tuple[Compared, Compared]]
"""Two equal systems are compared without their missing scores, and with them. The numbers: of samples, and the shares
of bad and of good answers of the second system that lose their scores."""


def equal_systems(title: str, seed: int, replications: int, compare: Compare) -> Table:
    """How often equal systems are called different if bad answers lose their scores more often."""
    rows: list[list[str]] = []
    for n, bad, good in ((200, 0.3, 0.01), (400, 0.3, 0.01), (400, 0.15, 0.01), (100, 0.05, 0.05)):
        source = np.random.default_rng(seed)
        ignored: list[bool] = []
        rejected: list[bool] = []
        covers: list[bool] = []
        for _ in range(replications):
            without, found = compare(source, n, bad, good)
            ignored.append(without is not None and without.p_value <= 0.05)
            rejected.append(found is not None and found.p_value <= 0.05)
            covers.append(found is not None and holds(found.difference, 0.0))
        rows.append([f"{n}", f"{bad:g}", f"{good:g}", percent(ignored), f"**{percent(rejected)}**", percent(covers)])
    head = ["samples", "bad ones missing", "good ones missing", "ignored: rejects", "default: rejects", "covers"]
    return Table(title, head, rows, replications)


def missing_pairs(replications: int) -> Iterator[Table]:
    """Equal systems, of which the second one's bad answers lose their scores more often."""

    def compare(source: np.random.Generator, n: int, bad: float, good: float) -> tuple[Compared, Compared]:
        a = source.random(n) < 0.85
        b = np.where(source.random(n) < 0.25, source.random(n) < 0.85, a)
        known = (source.random(n) >= 0.01, source.random(n) >= np.where(b, good, bad))
        both = known[0] & known[1]
        x, y = a.astype(np.float64), b.astype(np.float64)
        without = compare_pairs(x[both].tolist(), y[both].tolist())
        return without, compare_pairs(optional(x, known[0]), optional(y, known[1]))

    yield equal_systems("Equal systems with missing scores", 3, replications, compare)


def missing_at_the_ends(replications: int) -> Iterator[Table]:
    """Differences with scores of the second system that are missing at random: the true mean if all are 0, or all 1.

    Limits at half the error rate each would cover either in more than 95%.
    """
    rows: list[list[str]] = []
    draws: dict[str, Callable[[np.random.Generator, int], tuple[Floats, Floats]]] = {
        "pass rates 0.85": lambda source, n: (
            (source.random(n) < 0.85).astype(np.float64),
            (source.random(n) < 0.85).astype(np.float64),
        ),
        "4% lost": lambda source, n: (np.ones(n), (source.random(n) < 0.96).astype(np.float64)),
        "similarities": lambda source, n: (source.beta(5, 2, n), source.beta(6, 2, n)),
    }
    for name, draw in draws.items():
        many = draw(np.random.default_rng(30), 1_000_000)
        mean_a, mean_b = (float(values.mean()) for values in many)
        for n in (20, 60, 200):
            for missing in (0.01, 0.05, 0.2):
                source = np.random.default_rng(31)
                held: tuple[list[bool], list[bool], list[bool]] = ([], [], [])
                narrower: list[float] = []
                for _ in range(replications // 4):
                    a, b = draw(source, n)
                    known = source.random(n) >= missing
                    found = compare_pairs(a.tolist(), optional(b, known))
                    ends = [compare_pairs(a.tolist(), np.where(known, b, end).tolist()) for end in (0.0, 1.0)]
                    assert found is not None
                    limits = [one.difference for one in ends if one is not None]
                    both = (limits[1].high or 0.0) - (limits[0].low or 0.0)
                    narrower.append(((found.difference.high or 0.0) - (found.difference.low or 0.0)) / both)
                    for place, of_place in zip((0.0, 0.5, 1.0), held, strict=True):
                        truth = (1 - missing) * mean_b + missing * place - mean_a
                        of_place.append(holds(found.difference, truth))
                covers = [f"**{percent(of_place)}**" for of_place in held]
                rows.append([name, f"{n}", f"{missing:g}", *covers, f"{fmean(narrower):.2f}"])
    head = ["", "samples", "missing", "all 0: covers", "half 0: covers", "all 1: covers", "width by half the rate each"]
    yield Table("Differences at the ends of what missing scores leave possible", head, rows, replications // 4)


def missing_of_different_samples(replications: int) -> Iterator[Table]:
    """Equal systems over different samples, of which the second one's bad answers lose their scores more often."""

    def compare(source: np.random.Generator, n: int, bad: float, good: float) -> tuple[Compared, Compared]:
        a, b = ((source.random(n) < 0.85).astype(np.float64) for _ in range(2))
        known = (source.random(n) >= 0.01, source.random(n) >= np.where(b > 0, good, bad))
        without = compare_unpaired(a[known[0]].tolist(), b[known[1]].tolist())
        return without, compare_unpaired(optional(a, known[0]), optional(b, known[1]))

    yield equal_systems("Unpaired comparisons with missing scores", 6, replications // 2, compare)


def missing_trials(replications: int) -> Iterator[Table]:
    """pass^k of samples with five trials, of which the failed ones lose their scores more often."""
    rows: list[list[str]] = []
    for bad in (0.0, 0.1, 0.3):
        for k in (1, 4, 5):
            source = np.random.default_rng(4)
            truth = fmean((source.beta(4, 1.5, 400_000) ** k).tolist())
            ignored: list[bool] = []
            found: list[Interval | None] = []
            for _ in range(replications // 2):
                rates = source.beta(4, 1.5, 60)
                passed = source.random((60, 5)) < rates[:, None]
                known = passed | (source.random((60, 5)) >= bad)
                counts = [
                    Counts(int(row.sum()), int((~seen).sum()), 5) for row, seen in zip(passed, known, strict=True)
                ]
                found.append(bounded_share(counts, pass_all_k, k, 0.95, {}))
                left = [Counts(one.passed, 0, 5 - one.missing) for one in counts if 5 - one.missing >= k]
                ignored.append(holds(bounded_share(left, pass_all_k, k, 0.95, {}), truth))
            covers = percent([holds(interval, truth) for interval in found])
            rows.append([f"{bad:g}", f"{k}", f"{truth:.3f}", percent(ignored), f"**{covers}**", width(found)])
    head = ["failures without a score", "k", "pass^k", "ignored: covers", "default: covers", "width"]
    yield Table("pass^k with missing trials", head, rows, replications // 2)


def largest_changes(replications: int) -> Iterator[Table]:
    """Similarities that rise by some amount, with and without a declared largest change."""
    rows: list[list[str]] = []
    for n in (20, 60, 200):
        for rise in (0.0, 0.02, 0.05):
            row = [f"{n}", f"{rise:g}"]
            for most in (None, 0.3, 0.2):
                source = np.random.default_rng(6)
                rejected: list[bool] = []
                for _ in range(replications // 2):
                    a = np.clip(source.beta(20, 5, n) + source.normal(0, 0.03, n), 0, 1)
                    b = np.clip(a + np.clip(rise + source.normal(0, 0.042, n), -0.19, 0.19), 0, 1)
                    found = compare_pairs(a.tolist(), b.tolist(), max_change=most)
                    rejected.append(found is not None and found.p_value <= 0.05)
                row.append(percent(rejected))
            rows.append(row)
    head = ["samples", "rise", "whole scale: rejects", "largest change 0.3", "largest change 0.2"]
    yield Table("Power with a declared largest change", head, rows, replications // 2)


def equivalence(replications: int) -> Iterator[Table]:
    """How often two systems are called equivalent: at the margin (an error), and where they are equal."""
    rows: list[list[str]] = []
    for n, margin in ((100, 0.05), (300, 0.05), (1000, 0.02)):
        row = [f"{n}", f"{margin:g}"]
        for truth in (margin, 0.0):
            source = np.random.default_rng(7)
            called: list[bool] = []
            for _ in range(replications // 2):
                lost = 0.05
                u = source.random(n)
                b = np.where(u < lost, 0.0, 1.0)
                a = np.where(source.random(n) < lost + truth, 0.0, 1.0)
                found = compare_pairs(a.tolist(), b.tolist(), margin=margin)
                p = 1.0 if found is None or found.equivalence is None else found.equivalence.p_value
                called.append(p <= 0.05)
            row.append(percent(called))
        rows.append(row)
    head = ["samples", "margin", "at the margin", "where equal"]
    yield Table("Equivalence of two runs", head, rows, replications // 2)


def possible_ranks(replications: int) -> Iterator[Table]:
    """How often all true ranks are in the possible ones: five systems, all equal, or two better than three."""
    rows: list[list[str]] = []
    for name, rates in {"all equal": (0.8,) * 5, "two better": (0.9, 0.9, 0.8, 0.8, 0.8)}.items():
        for n in (50, 200):
            source = np.random.default_rng(8)
            held: list[bool] = []
            wide: list[float] = []
            for _ in range(replications // 4):
                runs = {f"{i}": (source.random(n) < rate).astype(float).tolist() for i, rate in enumerate(rates)}
                found = compare_many(runs)
                assert found is not None
                best = {f"{i}": 1 + sum(other > rate for other in rates) for i, rate in enumerate(rates)}
                worst = {f"{i}": len(rates) - sum(other < rate for other in rates) for i, rate in enumerate(rates)}
                # Equal systems share their ranks: an assertion is wrong if it orders two systems that are equal.
                held.append(all(low <= best[i] and worst[i] <= high for i, (low, high) in found.ranks.items()))
                wide += [high - low for low, high in found.ranks.values()]
            rows.append([name, f"{n}", f"**{percent(held)}**", f"{fmean(wide):.1f}"])
    head = ["", "samples", "all hold", "ranks left open"]
    yield Table("Possible ranks of five systems", head, rows, replications // 4)


def plans_beyond(replications: int) -> Iterator[Table]:
    """Plans from pilots of 80 in which fewer samples changed than the difference needs: the power they have."""
    rows: list[list[str]] = []
    for gained, lost in ((0.05, 0.0), (0.06, 0.01), (0.07, 0.02)):
        source = np.random.default_rng(9)
        powers: list[float] = []
        optimistic: list[float] = []
        for _ in range(max(20, replications // 40)):
            # The noise of the pilot: both runs are of one system, whose answers change as often as will be lost.
            moved = source.choice([1.0, -1.0, 0.0], p=[lost, lost, 1 - 2 * lost], size=80)
            pilot = Pilot.of(moved.tolist(), pass_fail=True)
            assert pilot is not None
            if pilot.most >= gained - lost:
                continue
            found = plan_sample_size(pilot, gained - lost)
            assert found is not None
            n = found.needed or 0
            before = samples_needed(Changes(pilot.most), gained - lost)
            powers.append(mcnemar_power(n, gained, lost))
            optimistic.append(mcnemar_power(before, gained, lost))
        error = 2 * float(np.std(powers)) / math.sqrt(len(powers))
        rows.append(
            [
                f"{gained:g}",
                f"{lost:g}",
                f"{100 * fmean(optimistic):.0f}",
                f"**{100 * fmean(powers):.0f} ± {100 * error:.0f}**",
                share(sum(power >= 0.8 for power in powers), len(powers)),
            ]
        )
    head = ["gained", "lost", "all changes gains: power", "default: power", "plans with 80% power"]
    yield Table("Plans beyond the changes of the pilot", head, rows, max(20, replications // 40))


def plans_with_missing(replications: int) -> Iterator[Table]:
    """Plans from a pilot of 4,000 whose second run lacks scores at random: their power, and that without these."""
    rows: list[list[str]] = []

    def pass_fail(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        a, u = source.random(n) < 0.7, source.random(n)
        return a.astype(np.float64), np.where(a, u >= 0.05 / 0.7, u < 0.15 / 0.3).astype(np.float64)

    def similarities(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        a = np.round(source.uniform(0.3, 0.7, n), 2)
        return a, np.clip(np.round(a + source.normal(0.08, 0.12, n), 2), 0, 1)

    kinds = {"pass/fail, 15% gained, 5% lost": (pass_fail, 0.1), "similarities that rise by 0.08": (similarities, 0.08)}
    for name, (draw, difference) in kinds.items():
        for missing in (0.01, 0.03, 0.05):
            source = np.random.default_rng(32)

            def runs(
                n: int, draw: Draw = draw, missing: float = missing, source: np.random.Generator = source
            ) -> Pairs:
                a, b = draw(source, n)
                return a.tolist(), optional(b, source.random(n) >= missing)

            values, ends = possible_differences(*runs(4000), scale=1.0, reach=1.0)
            with_missing = Pilot.of(values, ends=ends, pass_fail=draw is pass_fail)
            without = Pilot.of([x for x in values if x is not None], pass_fail=draw is pass_fail)
            plans = [
                None if pilot is None else plan_sample_size(pilot, difference) for pilot in (without, with_missing)
            ]
            row = [name, f"{missing:g}"]
            for plan in plans:
                assert plan is not None
                if plan.needed is None:
                    row += ["no number", ""]
                    continue
                found = [compare_pairs(*runs(plan.needed)) for _ in range(replications // 4)]
                row += [f"{plan.needed:,}", share(sum(c is not None and c.p_value <= 0.05 for c in found), len(found))]
            rows.append(row)
    head = ["", "missing", "without them: planned", "power", "default: planned", "power"]
    yield Table("Plans with missing scores", head, rows, replications // 4)


SECTIONS = (
    missing_pairs,
    missing_at_the_ends,
    missing_of_different_samples,
    missing_trials,
    largest_changes,
    equivalence,
    possible_ranks,
    plans_beyond,
    plans_with_missing,
)

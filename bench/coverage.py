"""What the statistics promise, held against what they do: coverage of intervals, error rates of gates, by simulation.

    python bench/coverage.py [--replications 4000] [--only means,clusters,…] [--save]

Each section draws data of known truth many times over (seeded) and prints Markdown tables: the share of intervals that
hold the truth, in per cent, nominal 95; or the share of wrong decisions, nominal at most 5. `--save` writes them to
docs/evidence/, from which `make docs` makes docs/evidence.md. Simulation error at 4,000 replications: ± 0.7 on a
coverage of 95 (two standard errors).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import coverage_agree
import coverage_align
import coverage_calibrations
import coverage_clusters
import coverage_compare
import coverage_drift
import coverage_enumerated
import coverage_groups
import coverage_labels
import coverage_looks
import coverage_panels
import coverage_plan
import coverage_sequential
import coverage_slices
import coverage_trials
import coverage_verdicts
import coverage_weights
import decisions
import numpy as np
from populations import (
    POPULATIONS,
    Draw,
    Floats,
    grouped_passes,
    judged_again,
    pairs,
    rare_losses,
    skewed_losses,
)
from tables import Table, holds, percent, save, width

from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.comparison import compare_pairs
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.paired_tests import mcnemar
from evalstone.stats.special import binomial_cdf
from evalstone.stats.weighted_mean import WeightedMean

SIZES = (8, 15, 30, 100, 300)
EVIDENCE = Path(__file__).parents[1] / "docs/evidence"


def means(replications: int) -> Iterator[Table]:
    """Independent samples: Student's interval, the default, and how much wider the default is (of 200 samples)."""
    rows: list[list[str]] = []
    for name, (draw, truth) in POPULATIONS.items():
        row = [name]
        for n in SIZES:
            source = np.random.default_rng(1)
            data = [draw(source, n).tolist() for _ in range(replications)]
            student = [holds(mean_interval(x), truth) for x in data]
            held = [BoundedMean.of(x, 0, 1).two_sided_p(truth) >= 0.05 for x in data]
            row += [percent(student), f"**{percent(held)}**", wider(data[:200], 0.0)]
        rows.append(row)
    head = ["", *(text for n in SIZES for text in (f"{n}: Student", "default", "width"))]
    yield Table("Means of independent samples", head, rows, replications)


def wider(data: Sequence[Sequence[float]], low: float) -> str:
    """The mean width of the default interval, as a multiple of Student's."""
    ours = [mean_interval(x, low=low, high=1) for x in data]
    student = [mean_interval(x) for x in data]
    known = [i.high - i.low for i in student if i is not None and i.low is not None and i.high is not None]
    # Student has none where all values are equal: a width of 0.
    return f"{float(width(ours)) / (sum(known) / len(data)):.2f}" if sum(known) else "-"


def clusters(replications: int) -> Iterator[Table]:
    """Samples in groups: as if independent, and by groups; a gate's wrong passes at the true mean."""
    rows: list[list[str]] = []
    layouts = {
        "5 groups of 10": [10] * 5,
        "10 groups of 3": [3] * 10,
        "15 groups of 1 to 4": [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4],
        "30 groups of 10": [10] * 30,
        "25 groups of 1 to 20": [1] * 8 + [2] * 6 + [4] * 6 + [6] * 2 + [8, 16, 20],
        "100 groups of 1 to 55": [1] * 40 + [5] * 30 + [20] * 21 + [40] * 7 + [55, 55],
    }
    for name, sizes in layouts.items():
        for rate, correlation in ((0.85, 0.1), (0.85, 0.5), (0.95, 0.5)):
            source = np.random.default_rng(2)
            plain: list[bool] = []
            robust: list[bool] = []
            passes: list[bool] = []
            wide: list[Interval | None] = []
            for turn in range(replications // 2):
                values, groups = grouped_passes(source, sizes, rate, correlation)
                found = WeightedMean.of_units(values, 0, 1, groups=groups)
                plain.append(BoundedMean.of(values, 0, 1).two_sided_p(rate) >= 0.05)
                robust.append(found.two_sided_p(rate) >= 0.05)
                passes.append(found.p_value(rate, 1) <= 0.05)
                if turn < 100:
                    wide.append(mean_interval(values, low=0, high=1, groups=groups))
            rows.append(
                [
                    name,
                    f"{rate}",
                    f"{correlation}",
                    percent(plain),
                    f"**{percent(robust)}**",
                    width(wide),
                    percent(passes),
                ]
            )
    head = ["", "pass rate", "correlation", "groups ignored", "by groups", "width", "gate: wrong pass"]
    yield Table("Means of samples in groups", head, rows, replications // 2)


def unequal_clusters(replications: int) -> Iterator[Table]:
    """100 groups of lognormal sizes that hang together closely (correlation 0.9)."""
    rows: list[list[str]] = []
    for spread in (0.5, 1.2, 2.0):
        for rate in (0.5, 0.7, 0.85, 0.95):
            source = np.random.default_rng(99)
            held: list[bool] = []
            passes: list[bool] = []
            for _ in range(replications):
                sizes = np.maximum(1, np.rint(source.lognormal(1.5, spread, 100))).astype(int).tolist()
                values, groups = grouped_passes(source, sizes, rate, 0.9)
                found = WeightedMean.of_units(values, 0, 1, groups=groups)
                held.append(found.two_sided_p(rate) >= 0.05)
                passes.append(found.p_value(rate, 1) <= 0.05)
            rows.append([f"{spread:g}", f"{rate:g}", f"**{percent(held)}**", percent(passes)])
    head = ["deviation of the log size", "pass rate", "covers", "gate: wrong pass"]
    yield Table("Groups of very unequal size", head, rows, replications)


def changes(draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]]) -> Draw:
    """The differences of pairs."""
    return lambda source, n: np.subtract(*draw(source, n)[::-1])


DIFFERENCES: dict[str, tuple[Draw, float]] = {
    "pass/fail, 30% gained, 10% lost": (changes(lambda s, n: pairs(s, n, 0.3, 0.1)), 0.2),
    "pass/fail, 10% gained, 5% lost": (changes(lambda s, n: pairs(s, n, 0.1, 0.05)), 0.05),
    "pass/fail, 5% gained, 2% lost": (changes(lambda s, n: pairs(s, n, 0.05, 0.02)), 0.03),
    "pass/fail, 5% gained, 5% lost": (changes(lambda s, n: pairs(s, n, 0.05, 0.05)), 0.0),
    "pass/fail, 5% lost": (changes(lambda s, n: pairs(s, n, 0.0, 0.05)), -0.05),
    "shares of claims, 3 in 10 changed": (changes(judged_again), 0.0),
    "normal, deviation 0.15": (lambda s, n: np.clip(s.normal(0, 0.15, n), -1, 1), 0.0),
    "normal, deviation 0.05": (lambda s, n: np.clip(s.normal(0, 0.05, n), -1, 1), 0.0),
    "gains of 0.09, 5% lose 0.8": (rare_losses, 0.0),
    "skewed losses (exponential)": (skewed_losses, 0.0),
}


def differences(replications: int) -> Iterator[Table]:
    """Paired differences: Student's interval, the default and its width, and how often the test rejects a mean of 0."""
    rows: list[list[str]] = []
    for name, (draw, truth) in DIFFERENCES.items():
        for n in (20, 30, 100, 300):
            source = np.random.default_rng(3)
            data = [draw(source, n) for _ in range(replications // 2)]
            found = [compare_pairs(np.maximum(-d, 0).tolist(), np.maximum(d, 0).tolist()) for d in data]
            made = [c for c in found if c is not None]
            row = [name, str(n), percent([holds(mean_interval(d.tolist()), truth) for d in data])]
            held = percent([holds(c.difference, truth) for c in made])
            row += [f"**{held}**", wider([d.tolist() for d in data[:200]], -1.0)]
            row.append(percent([c.p_value <= 0.05 for c in made]) if truth == 0 else "")
            rows.append(row)
    head = ["", "n", "Student", "default", "width", "mean test rejects"]
    yield Table("Paired differences", head, rows, replications // 2)


def mcnemars(replications: int) -> Iterator[Table]:
    """McNemar's test, exact and mid-p: rejections where nothing differs, and power."""
    rows: list[list[str]] = []
    for gained, lost in ((0.05, 0.05), (0.15, 0.15), (0.08, 0.03), (0.15, 0.05), (0.06, 0.01)):
        for n in (50, 150):
            source = np.random.default_rng(13)
            counts = source.multinomial(n, [gained, lost, 1 - gained - lost], size=replications)
            found = [mcnemar(int(up), int(down)).p_value for up, down, _ in counts]
            exact = [min(1.0, 2 * binomial_cdf(int(min(up, down)), int(up + down), 0.5)) for up, down, _ in counts]
            shares = [percent([p <= 0.05 for p in each]) for each in (exact, found)]
            rows.append([f"{gained:.0%} gained, {lost:.0%} lost", str(n), shares[0], f"**{shares[1]}**"])
    yield Table("McNemar's test", ["", "n", "exact", "mid-p"], rows, replications)


SECTIONS: tuple[Callable[[int], Iterator[Table]], ...] = (
    means,
    clusters,
    unequal_clusters,
    differences,
    mcnemars,
    *coverage_labels.SECTIONS,
    decisions.gates,
    decisions.regressions,
    decisions.equivalences,
    decisions.families,
    decisions.sequential,
    decisions.anytime,
    coverage_slices.slice_reports,
    coverage_slices.clustered_slices,
    coverage_slices.slice_differences,
    coverage_slices.picked_slices,
    coverage_slices.unpaired,
    coverage_slices.drifts,
    coverage_looks.stopped,
    coverage_looks.advice,
    coverage_looks.missing,
    coverage_plan.plan_power,
    coverage_plan.plan_range,
    coverage_plan.plan_more,
    *coverage_enumerated.SECTIONS,
    coverage_agree.kappas,
    coverage_agree.coefficients,
    coverage_agree.measures,
    coverage_agree.areas,
    coverage_agree.calibration_errors,
    coverage_agree.thresholds,
    coverage_agree.components,
    *coverage_panels.SECTIONS,
    *coverage_verdicts.SECTIONS,
    *coverage_align.SECTIONS,
    *coverage_trials.SECTIONS,
    *coverage_weights.SECTIONS,
    *coverage_calibrations.SECTIONS,
    *coverage_clusters.SECTIONS,
    *coverage_groups.SECTIONS,
    *coverage_compare.SECTIONS,
    *coverage_sequential.SECTIONS,
    *coverage_drift.SECTIONS,
)


def main() -> None:
    """Run the sections that were asked for."""
    named = {section.__name__: section for section in SECTIONS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=4000)
    parser.add_argument("--only", default=",".join(named))
    parser.add_argument("--save", nargs="?", type=Path, const=EVIDENCE, metavar="FOLDER")
    options = parser.parse_args()
    replications: int = options.replications
    only: list[str] = options.only.split(",")
    if unknown := sorted(set(only) - set(named)):
        parser.error(f"--only: there is no section {', '.join(unknown)}; there are {', '.join(named)}")
    for name in only:
        started = time.perf_counter()
        tables = list(named[name](replications))
        print(*(f"\n{table.markdown()}" for table in tables), sep="\n")
        print(f"\n({name}: {time.perf_counter() - started:.0f} s)", flush=True)
        if options.save is not None:
            save(tables, options.save, section=name, replications=replications)


if __name__ == "__main__":
    main()

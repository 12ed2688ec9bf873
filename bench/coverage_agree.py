"""Coverage of the intervals of agreement, of measures of verdicts, of learned thresholds and of variance components.

Sections of bench/coverage.py. Two standard errors of a coverage of 95 are 44 / √replications: ± 1.4 at 1,000.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
from tables import Table, holds, percent, width

from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.measures import verdicts_at_fitted
from evalstone.stats.agreement import cohen_kappa, krippendorff_alpha
from evalstone.stats.calibration import expected_calibration_error
from evalstone.stats.classification import Confusion, MeasureName, auroc, measure_intervals
from evalstone.stats.intervals import Interval
from evalstone.stats.variances import variance_components

NORMAL = NormalDist()


def _row(found: Sequence[Interval | None], truth: float) -> list[str]:
    """Coverage where there is an interval, and its width."""
    there = [one for one in found if one is not None and one.low is not None]
    return [f"**{percent([holds(one, truth) for one in there])}**", width(there)]


@functools.cache
def _kappa(cells: tuple[int, ...]) -> Interval | None:
    return cohen_kappa([cell // 2 for cell in cells], [cell % 2 for cell in cells])


def kappas(replications: int) -> Iterator[Table]:
    """Cohen's kappa of two raters with equal margins; undefined where a sample has one category only."""
    rows: list[list[str]] = []
    for share in (0.5, 0.8, 0.95):
        for truth in (0.0, 0.4, 0.8, 0.95):
            apart = (1 - truth) * share * (1 - share)
            row = [f"{share:g}", f"{truth:g}"]
            for n in (30, 100):
                source = np.random.default_rng(11)
                cells = source.choice(4, size=(replications, n), p=[share - apart, apart, apart, 1 - share - apart])
                tables = np.sort(cells, axis=1).tolist()
                row += _row([_kappa(tuple(one)) for one in tables], truth)
            rows.append(row)
    head = ["share of yes", "kappa", "30: coverage", "width", "100: coverage", "width"]
    yield Table("Cohen's kappa", head, rows, replications)


def _rated(source: np.random.Generator, n: int, raters: int, noise: float) -> np.ndarray:
    """Ratings from 1 to 5, mostly high, of raters who each are off by some noise."""
    quality = 5 - 4 * source.beta(1, 3, size=(n, 1))
    return np.clip(np.rint(quality + noise * source.normal(size=(n, raters))), 1, 5)


def coefficients(replications: int) -> Iterator[Table]:
    """Agreement on ratings from 1 to 5 of two raters and of three."""
    weighted: dict[str, tuple[int, Callable[[list[list[float]]], Interval | None]]] = {
        "weighted kappa, linear": (2, lambda r: cohen_kappa(*zip(*r, strict=True), weights="linear")),
        "weighted kappa, quadratic": (2, lambda r: cohen_kappa(*zip(*r, strict=True), weights="quadratic")),
        "Krippendorff's alpha, ordinal": (2, lambda r: krippendorff_alpha(r, level="ordinal")),
        "Krippendorff's alpha, interval": (3, lambda r: krippendorff_alpha(r, level="interval")),
    }
    rows: list[list[str]] = []
    for name, (raters, coefficient) in weighted.items():
        for noise in (0.3, 1.0):
            source = np.random.default_rng(12)
            large = coefficient(_rated(source, 40_000, raters, noise).tolist())
            truth = math.nan if large is None else large.estimate
            row = [name, f"{truth:.2f}"]
            for n in (30, 100):
                data = [_rated(source, n, raters, noise).tolist() for _ in range(replications // 2)]
                row += _row([coefficient(one) for one in data], truth)
            rows.append(row)
    head = ["ratings from 1 to 5", "truth", "30: coverage", "width", "100: coverage", "width"]
    yield Table("Weighted kappa and Krippendorff's alpha", head, rows, replications // 2)


def measures(replications: int) -> Iterator[Table]:
    """Measures of verdicts with a fixed threshold: F1, precision, balanced accuracy."""
    rows: list[list[str]] = []
    for share, sensitivity, specificity in ((0.5, 0.9, 0.8), (0.8, 0.97, 0.9), (0.2, 0.7, 0.95)):
        cells = [
            share * sensitivity,
            (1 - share) * (1 - specificity),
            share * (1 - sensitivity),
            (1 - share) * specificity,
        ]
        truths = {
            "f1": 2 * cells[0] / (2 * cells[0] + cells[1] + cells[2]),
            "precision": cells[0] / (cells[0] + cells[1]),
            "balanced_accuracy": (sensitivity + specificity) / 2,
        }
        found: dict[int, list[dict[str, Interval | None]]] = {}
        for n in (30, 100):
            counts = np.random.default_rng(13).multinomial(n, cells, size=replications).tolist()
            found[n] = [measure_intervals(Confusion(*one)) for one in counts]
        for name, truth in truths.items():
            row = [name.replace("_", " "), f"{share:g}", f"{truth:.2f}"]
            for n in (30, 100):
                row += _row([one[name] for one in found[n]], truth)
            rows.append(row)
    head = ["", "share of yes", "truth", "30: coverage", "width", "100: coverage", "width"]
    yield Table("Accuracy measures of verdicts", head, rows, replications)


def areas(replications: int) -> Iterator[Table]:
    """AUROC of normal scores, and of a judge that misses some of the positives altogether."""
    rows: list[list[str]] = []
    for missed, area in ((0.0, 0.5), (0.0, 0.8), (0.0, 0.95), (0.0, 0.99), (0.15, 0.92), (0.3, 0.99)):
        shift = NORMAL.inv_cdf(area) * math.sqrt(2)
        truth = area * (1 - missed)
        for share in (0.5, 0.2):
            row = [f"{missed:.0%}", f"{truth:.2f}", f"{share:g}"]
            for n in (30, 100):
                source, found = np.random.default_rng(14), list[Interval | None]()
                for _ in range(replications):
                    yes = source.random(n) < share
                    scores = source.normal(size=n) + shift * yes - 20 * (yes & (source.random(n) < missed))
                    found.append(auroc(scores.tolist(), yes.tolist()))
                row += _row(found, truth)
            rows.append(row)
    head = ["positives missed", "truth", "share of yes", "30: coverage", "width", "100: coverage", "width"]
    yield Table("AUROC", head, rows, replications)


def calibration_errors(replications: int) -> Iterator[Table]:
    """Expected calibration error: perfect, overconfident and lenient probabilities."""
    laws: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "perfect": lambda p: p,
        "too sure": lambda p: 0.5 + (p - 0.5) / 2,
        "too lenient": lambda p: p**2,
    }
    rows: list[list[str]] = []
    for name, law in laws.items():
        for shape in (1.0, 5.0):
            source = np.random.default_rng(15)
            many = source.beta(shape, 1, 400_000)
            bins = np.minimum((many * 10).astype(int), 9)
            off = [
                abs(float((many - law(many))[bins == k].mean())) * float((bins == k).mean()) for k in set(bins.tolist())
            ]
            row = [name, "uniform" if shape == 1 else "mostly high", f"{sum(off):.3f}"]
            for n in (30, 100):
                found: list[Interval | None] = []
                for _ in range(replications // 2):
                    p = source.beta(shape, 1, n)
                    found.append(expected_calibration_error(p.tolist(), (source.random(n) < law(p)).tolist()))
                row += _row(found, sum(off))
            rows.append(row)
    head = ["probabilities", "scores", "truth", "30: coverage", "width", "100: coverage", "width"]
    yield Table("Expected calibration error", head, rows, replications // 2)


def thresholds(replications: int) -> Iterator[Table]:
    """The learned threshold's measures on new cases; beside it the intervals of the cases that it was learned on."""
    rows: list[list[str]] = []
    for area in (0.7, 0.95):
        shift = NORMAL.inv_cdf(area) * math.sqrt(2)
        for share in (0.5, 0.8):
            for objective in ("balanced_accuracy", "accuracy"):
                for n in (30, 100, 300):
                    times = replications // (40 if n < 300 else 10)
                    rows.append([f"{area:g}", f"{share:g}", objective.replace("_", " "), str(n)])
                    rows[-1] += _learned(n, share, shift, objective, times)
    head = [
        "AUROC",
        "share of yes",
        "maximizes",
        "n",
        "accuracy, uncorrected",
        "accuracy",
        "sensitivity",
        "specificity",
    ]
    counts = {"n = 30 and 100": replications // 40, "n = 300": replications // 10}
    yield Table("Learned thresholds", [*head, "F1", "kappa", "width of accuracy"], rows, counts)


def _learned(n: int, share: float, shift: float, objective: MeasureName, times: int) -> list[str]:
    source = np.random.default_rng(16)
    names = ("accuracy", "sensitivity", "specificity", "f1", "kappa")
    held: dict[str, list[bool]] = {name: [] for name in ("uncorrected", *names)}
    widths: list[Interval | None] = []
    while len(widths) < times:
        yes = source.random(n) < share
        if min(int(yes.sum()), int((~yes).sum())) < 2:
            continue
        scores = [NORMAL.cdf(z) for z in (source.normal(size=n) + shift * yes).tolist()]
        found = fit(calibration_of(scores, yes.tolist()), objective=objective, calibrator="isotonic")
        learned = found.threshold
        if learned is None:
            continue
        at = NORMAL.inv_cdf(min(max(learned.value, 1e-12), 1 - 1e-12))
        sensitivity, specificity = 1 - NORMAL.cdf(at - shift), NORMAL.cdf(at)
        truth = _truths(share, sensitivity, specificity)
        verdicts = measure_at_fitted(found)
        here = measure_intervals(found.confusion(learned.value))
        held["uncorrected"].append(holds(here["accuracy"], truth["accuracy"]))
        for name in names:
            if (one := verdicts[name]) is not None and one.low is not None:
                held[name].append(holds(one, truth[name]))
        widths.append(verdicts["accuracy"])
    return [percent(held["uncorrected"]), *(f"**{percent(held[name])}**" for name in names), width(widths)]


def measure_at_fitted(calibration: Calibration) -> dict[str, Interval | None]:
    """The measures at the learned threshold."""
    found = verdicts_at_fitted(calibration)
    return {} if found is None else dict(found.measures)


def _truths(share: float, sensitivity: float, specificity: float) -> dict[str, float]:
    tp, fp = share * sensitivity, (1 - share) * (1 - specificity)
    fn, tn = share - tp, 1 - share - fp
    chance = (tp + fp) * share + (fn + tn) * (1 - share)
    return {
        "accuracy": tp + tn,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "f1": 2 * tp / (2 * tp + fp + fn),
        "kappa": (tp + tn - chance) / (1 - chance),
    }


def calibration_of(scores: Sequence[float], truths: Sequence[bool]) -> Calibration:
    """Labels of these answers by one annotator."""
    pairs = tuple(
        LabeledScore(str(place), score, (float(truth),))
        for place, (score, truth) in enumerate(zip(scores, truths, strict=True))
    )
    return Calibration(
        judge="j",
        scorer="s",
        signature="s@1",
        scale=1.0,
        lower_is_better=False,
        default_threshold=0.5,
        label_threshold=0.5,
        dataset_name="d",
        dataset_version="v",
        pairs=pairs,
    )


def components(replications: int) -> Iterator[Table]:
    """Variance components of two or three scores a sample: normal ones, and rare bad samples with rare bad repeats."""

    def normal(source: np.random.Generator, n: int, repeats: int) -> np.ndarray:
        return np.clip(0.6 + 0.12 * source.normal(size=(n, 1)) + 0.08 * source.normal(size=(n, repeats)), 0, 1)

    def rare(source: np.random.Generator, n: int, repeats: int) -> np.ndarray:
        bad = source.random((n, 1)) < 0.05
        return np.where(bad ^ (source.random((n, repeats)) < 0.03), 0.0, 1.0)

    rare_truth = (0.05 * 0.95 * (1 - 2 * 0.03) ** 2, 0.03 * 0.97)
    rows: list[list[str]] = []
    for name, draw, truths in (("normal", normal, (0.12**2, 0.08**2)), ("rare bad ones", rare, rare_truth)):
        for n, repeats in ((30, 2), (30, 3), (100, 2)):
            source = np.random.default_rng(17)
            found = [variance_components(draw(source, n, repeats).tolist()) for _ in range(replications // 4)]
            row = [name, f"{n} x {repeats}"]
            row += _row([one.variances["samples"] for one in found], truths[0])
            row += _row([one.variances["noise"] for one in found], truths[1])
            row += _row([one.shares.get("noise") for one in found], truths[1] / sum(truths))
            error = math.sqrt((truths[0] + truths[1] / repeats) / n)
            row += _row([one.standard_error(n, repeats) for one in found], error)
            rows.append(row)
    head = ["scores", "samples x repeats", "between samples", "width", "noise", "width", "noise's share", "width"]
    yield Table("Variance components", [*head, "standard error of the mean", "width"], rows, replications // 4)

"""Slices, drift and unpaired comparisons by simulation: error rates and coverage, with Monte Carlo error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from populations import POPULATIONS, Floats
from tables import Table, holds, percent, width

from evalstone.stats import holm
from evalstone.stats.drift import Drift, adjust_drifts, drift
from evalstone.stats.intervals import Interval
from evalstone.stats.slices import Slice, SliceFinding, slice_by, worst_slices
from evalstone.stats.unpaired import compare_unpaired

NAMES = ("pass rate 0.5", "pass rate 0.9", "pass rate 0.97", "share of 1 to 5 claims", "5% at 0, rest at 0.95 or 1")


def share(found: Sequence[bool]) -> str:
    """A share in per cent with two standard errors."""
    p = sum(found) / len(found)
    return f"{percent(found)} ± {200 * (p * (1 - p) / len(found)) ** 0.5:.1f}"


def findings(
    values: Floats, keys: Sequence[int], groups: Sequence[int] | None = None, *, limits: bool = False
) -> tuple[SliceFinding, ...]:
    """The slices of one field, p-values uncorrected. limits: whether to compute intervals, which takes longest."""
    x: list[float] = values.tolist()
    if limits:
        slices = slice_by(x, keys, groups=groups)
    else:
        places = {key: tuple(place for place, one in enumerate(keys) if one == key) for key in sorted(set(keys))}
        slices = [
            Slice(key, Interval(estimate=0.0, low=None, high=None, n=len(found)), found)
            for key, found in places.items()
        ]
    return worst_slices(x, {"field": slices}, groups=groups, correction="none")


def slice_reports(replications: int) -> Iterator[Table]:
    """None of many slices is worse: how often a report says that one is, by scorer and over all scorers."""
    rows: list[list[str]] = []
    counts = {scorers: max(20, replications // scorers) for scorers in (1, 8)}
    for scorers, slices, n in ((1, 10, 300), (8, 10, 600), (8, 50, 1000)):
        for name in NAMES[1:]:
            source, draw = np.random.default_rng(21), POPULATIONS[name][0]
            each: list[bool] = []
            every: list[bool] = []
            for _ in range(counts[scorers]):
                keys = source.integers(0, slices, n).tolist()
                p = [[f.p_value for f in findings(draw(source, n), keys)] for _ in range(scorers)]
                each.append(any(min(holm(of_scorer)) <= 0.05 for of_scorer in p))
                every.append(min(holm([one for of_scorer in p for one in of_scorer])) <= 0.05)
            rows.append([f"{scorers} x {slices}", str(n), name, share(each), f"**{share(every)}**"])
    head = ["scorers x slices", "samples", "", "Holm per scorer", "Holm over all"]
    yield Table("Reports on slices that are no worse", head, rows, {"1 scorer": counts[1], "8 scorers": counts[8]})


def clustered_slices(replications: int) -> Iterator[Table]:
    """One slice of pass/fail samples in groups (ICC 1/3, pass rate 0.85), no worse: how often it is called worse."""
    rows: list[list[str]] = []
    for groups, size, part, whole in (
        (10, 10, 0.5, True),
        (20, 10, 0.25, True),
        (20, 10, 0.75, True),
        (60, 5, 0.25, True),
        (8, 10, 0.25, False),
        (8, 10, 0.5, False),
        (20, 10, 0.25, False),
    ):
        for own in (False,) if whole else (False, True):
            source, found = np.random.default_rng(22), list[bool]()
            labels = np.repeat(np.arange(groups), size)
            for _ in range(replications):
                inside = source.random(labels.size) < part
                if whole:
                    inside = np.isin(labels, source.choice(groups, int(part * groups), replace=False))
                rates = source.beta(1.7, 0.3, (2, groups))
                rate = rates[(inside & own).astype(int), labels]
                values = np.less(source.random(labels.size), rate).astype(np.float64)
                every = findings(values, inside.astype(int).tolist(), labels.tolist())
                found.append(any(f.p_value <= 0.05 for f in every if f.key))
            kind = "whole groups" if whole else "a part of each group"
            rows.append([f"{groups} of {size}", f"{kind}, {part:.0%}", "yes" if own else "no", f"**{share(found)}**"])
    head = ["groups", "slice", "separate rate in each group", "p <= 0.05"]
    yield Table("Slices of grouped samples", head, rows, replications)


def slice_differences(replications: int) -> Iterator[Table]:
    """The interval of slice - others, and how often it and the test disagree (p <= 0.025, 0 not above the interval)."""
    rows: list[list[str]] = []
    for name in NAMES:
        draw, row = POPULATIONS[name][0], [name]
        for inside, n in ((10, 300), (50, 100), (30, 300)):
            source = np.random.default_rng(23)
            keys = [int(place < inside) for place in range(n)]
            found = [
                next(f for f in findings(draw(source, n), keys, limits=True) if f.key)
                for _ in range(max(50, replications // 4))
            ]
            disagree = [
                (f.p_value <= 0.025) != (f.difference.high is not None and f.difference.high < 0) for f in found
            ]
            row += [f"**{share([holds(f.difference, 0.0) for f in found])}**", percent(disagree)]
        rows.append(row)
    head = ["", *(text for k in ("10 of 300", "50 of 100", "30 of 300") for text in (f"{k}: covers", "test disagrees"))]
    yield Table("Differences between a slice and the others", head, rows, max(50, replications // 4))


def unpaired(replications: int) -> Iterator[Table]:
    """Two runs over different samples with equal means: coverage, width, and how often the test rejects."""
    rows: list[list[str]] = []
    for name in (*NAMES, "2% at 0, 8% at 0.9, rest at 1"):
        draw, row = POPULATIONS[name][0], [name]
        for a, b in ((30, 30), (100, 50), (300, 300)):
            source = np.random.default_rng(24)
            found = [
                compare_unpaired(draw(source, a).tolist(), draw(source, b).tolist())
                for _ in range(max(50, replications // 4))
            ]
            intervals = [None if one is None else one.difference for one in found]
            row += [f"**{share([holds(i, 0.0) for i in intervals])}**", width(intervals)]
            row.append(percent([one is not None and one.p_value <= 0.05 for one in found]))
        rows.append(row)
    sizes = ("30 and 30", "100 and 50", "300 and 300")
    head = ["", *(text for k in sizes for text in (f"{k}: covers", "width", "p <= 0.05"))]
    yield Table("Unpaired comparisons", head, rows, max(50, replications // 4))
    rows = []
    for groups in (8, 20):
        source, rejected = np.random.default_rng(25), list[bool]()
        labels = np.repeat(np.arange(groups), 5)
        for _ in range(max(50, replications // 4)):
            rates = source.beta(4, 1, (2, groups)) if groups else np.zeros((2, 0))
            a, b = ((source.random(labels.size) < rate[labels]).astype(np.float64).tolist() for rate in rates)
            one = compare_unpaired(a, b, groups=(labels.tolist(), labels.tolist()))
            rejected.append(one is not None and one.p_value <= 0.05)
        rows.append([f"{groups} groups of 5 in each run", f"**{share(rejected)}**"])
    yield Table("Unpaired comparisons of grouped samples", ["", "p <= 0.05"], rows, max(50, replications // 4))


def drifts(replications: int) -> Iterator[Table]:
    """The same judge: how often a report says that one of 8 scorers drifted; and what is found of a true drift."""

    def again(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        a = source.binomial(4, 0.8, n) / 4
        return a, np.where(source.random(n) < 0.4, source.binomial(4, 0.8, n) / 4, a)

    def grouped(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        labels = np.repeat(np.arange(n // 5), 5)
        change = 0.1 * (source.normal(0, 1, n // 5)[labels] + source.normal(0, 1, n))
        return np.full(n, 0.5), np.clip(0.5 + change, 0, 1)

    rows: list[list[str]] = []
    cases: list[tuple[str, Callable[[np.random.Generator, int], tuple[Floats, Floats]], int, bool]] = [
        ("8 scorers, 80 anchors", again, 8, False),
        ("1 scorer, 100 anchors in 20 groups", grouped, 1, True),
        ("8 scorers, 100 anchors in 20 groups", grouped, 8, True),
    ]
    for name, draw, scorers, in_groups in cases:
        source = np.random.default_rng(26)
        plain: list[bool] = []
        adjusted: list[bool] = []
        n = 100 if in_groups else 80
        labels = [place // 5 for place in range(n)] if in_groups else None
        for _ in range(max(50, replications // 8)):
            found: list[Drift] = []
            for _ in range(scorers):
                before, now = draw(source, n)
                one = drift(before.tolist(), now.tolist(), groups=labels)
                found += [] if one is None else [one]
            plain.append(any(one.p_value <= 0.05 for one in found))
            adjusted.append(any(one.verdict == "drifted" for one in adjust_drifts(found)))
        rows.append([name, share(plain), f"**{share(adjusted)}**"])
    head = ["", "some unadjusted p <= 0.05", "some scorer drifted"]
    yield Table("Drift of an unchanged judge", head, rows, max(50, replications // 8))


def picked_slices(replications: int) -> Iterator[Table]:
    """The slice with the lowest mean: whether its interval holds its true mean, alone and together with the others."""
    rows: list[list[str]] = []
    for slices, n in ((5, 30), (20, 20), (50, 20)):
        for name in ("pass rate 0.9", "share of 1 to 5 claims"):
            draw, truth = POPULATIONS[name]
            source = np.random.default_rng(25)
            alone: list[bool] = []
            together: list[bool] = []
            for _ in range(replications // 4):
                values = draw(source, slices * n).tolist()
                keys = [place // n for place in range(slices * n)]
                for held, number in ((alone, 1), (together, slices)):
                    parts = slice_by(values, keys, together=number)
                    held.append(holds(min(parts, key=lambda part: part.interval.estimate).interval, truth))
            rows.append([f"{slices} of {n}", name, percent(alone), f"**{percent(together)}**"])
    head = ["slices", "", "its own interval covers", "default covers"]
    yield Table("The slice with the lowest mean", head, rows, replications // 4)

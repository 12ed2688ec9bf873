"""Means, differences and pass rates corrected with human labels: coverage, width, and error rates of one-sided tests.

`bench/coverage.py` runs these sections. Simulation error in brackets: two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from populations import Floats, clustered, judged_passes, labeled_runs
from tables import Table, holds, width

from evalstone.stats.classification import Confusion
from evalstone.stats.corrected_rate import rogan_gladen
from evalstone.stats.intervals import Interval
from evalstone.stats.labeling import score_strata, select_for_labeling
from evalstone.stats.ppi import CorrectedMean, PPIEstimate, corrected_mean, ppi_difference, ppi_mean

Drawn = tuple[Floats, Floats]
"""Human scores, and a judge's."""


def _judged(rate: float) -> Callable[[np.random.Generator, int], Drawn]:
    def draw(source: np.random.Generator, n: int) -> Drawn:
        good, passed = judged_passes(source, n, rate)
        return good.astype(np.float64), passed.astype(np.float64)

    return draw


def _lenient(source: np.random.Generator, n: int) -> Drawn:
    human, judged, _ = labeled_runs(source, n)
    return human, judged


def _uninformative(source: np.random.Generator, n: int) -> Drawn:
    human, _, judged = labeled_runs(source, n)
    return human, judged


JUDGED: dict[str, tuple[Callable[[np.random.Generator, int], Drawn], float]] = {
    "pass rate 0.5": (_judged(0.5), 0.5),
    "pass rate 0.9": (_judged(0.9), 0.9),
    "pass rate 0.97": (_judged(0.97), 0.97),
    "scores, lenient judge": (_lenient, 0.875),
    "scores, uninformative judge": (_uninformative, 0.875),
}


def _share(found: Sequence[bool]) -> str:
    """A share in per cent with two standard errors."""
    share = sum(found) / len(found)
    return f"{100 * share:.1f} (± {200 * math.sqrt(share * (1 - share) / len(found)):.1f})"


def _marked(source: np.random.Generator, human: Floats, count: int) -> list[float | None]:
    chosen = set(source.choice(human.size, count, replace=False).tolist())
    return [mark if place in chosen else None for place, mark in enumerate(human.tolist())]


def few_labels(replications: int) -> Iterator[Table]:
    """Few labels of 500 samples, chosen at random and by `select_for_labeling`."""
    titles = {"random": "Corrected means, labels at random", "select_for_labeling": "Corrected means, selected labels"}
    for how, title in titles.items():
        rows: list[list[str]] = []
        draws = replications // (4 if how == "random" else 8)
        for count in (10, 20, 30, 100):
            for name, (draw, truth) in JUDGED.items():
                source = np.random.default_rng(5)
                made: list[PPIEstimate] = []
                tests: list[CorrectedMean] = []
                for turn in range(draws):
                    human, judged = draw(source, 500)
                    scores, strata = judged.tolist(), None
                    if how == "random":
                        marks = _marked(source, human, count)
                    else:
                        strata = score_strata(scores)
                        chosen = set(select_for_labeling(scores, n=count, seed=turn))
                        marks = [mark if at in chosen else None for at, mark in enumerate(human.tolist())]
                    found = ppi_mean(scores, marks, strata=strata)
                    test = corrected_mean(scores, marks, strata=strata)
                    if found is not None and test is not None:
                        made.append(found)
                        tests.append(test)
                both = [[found.estimate for found in made], [found.human for found in made]]
                rows.append(
                    [
                        name,
                        str(count),
                        f"**{_share([holds(one, truth) for one in both[0]])}**",
                        _share([holds(one, truth) for one in both[1]]),
                        width(both[0]),
                        width(both[1]),
                        _share([test.limit(0.05, 1) > truth for test in tests]),
                        _share([test.limit(0.05, -1) < truth for test in tests]),
                    ]
                )
        head = ["", "labels", "corrected", "labels alone", "width: corrected", "labels alone"]
        yield Table(title, [*head, "wrong pass", "wrong fail"], rows, draws)


def labels_in_groups(replications: int) -> Iterator[Table]:
    """Samples that hang together: whole groups labeled, and single samples."""
    rows: list[list[str]] = []
    for groups, size, count, whole in ((100, 5, 10, True), (100, 5, 40, True), (250, 2, 60, True), (80, 5, 100, False)):
        source = np.random.default_rng(12)
        made: list[Interval | None] = []
        alone: list[Interval | None] = []
        for _ in range(replications // 8):
            human, names = clustered(source, [size] * groups)
            off = source.normal(0, 0.1, groups)[names]  # the judge errs by group too
            judged = np.clip(0.7 * np.array(human) + 0.3 + off + source.normal(0, 0.06, len(human)), 0, 1).tolist()
            of: Sequence[int] = names if whole else range(len(names))
            chosen = set(source.choice(max(of) + 1, count, replace=False).tolist())
            marks = [mark if label in chosen else None for mark, label in zip(human, of, strict=True)]
            found = ppi_mean(judged, marks, groups=names)
            if found is not None:
                made.append(found.estimate)
                alone.append(found.human)
        shares = [_share([holds(one, 5 / 6) for one in kind]) for kind in (made, alone)]
        what = f"{count} groups" if whole else f"{count} samples"
        rows.append([f"{groups} groups of {size}", what, f"**{shares[0]}**", shares[1], width(made), width(alone)])
    head = ["samples", "labeled", "corrected", "labels alone", "width: corrected", "labels alone"]
    yield Table("Corrected means of samples in groups", head, rows, replications // 8)


def corrected_differences(replications: int) -> Iterator[Table]:
    """Two runs over 400 samples whose outputs differ in all or in 3 of 10; both runs' labels of some of those."""
    rows: list[list[str]] = []
    cases = (
        ("pass rate 0.9", 1.0),
        ("pass rate 0.9", 0.3),
        ("scores, lenient judge", 1.0),
        ("scores, lenient judge", 0.3),
    )
    for name, changed in cases:
        draw = JUDGED[name][0]
        for count in (15, 30, 100):
            source = np.random.default_rng(7)
            made: list[PPIEstimate] = []
            for _ in range(replications // 8):
                human, judged = draw(source, 400)
                other, judged_too = draw(source, 400)
                same = source.random(400) >= changed
                other, judged_too = np.where(same, human, other), np.where(same, judged, judged_too)
                differ = np.flatnonzero(~same)
                chosen = set(source.choice(differ, min(count, differ.size), replace=False).tolist())
                marks = [
                    [mark if at in chosen else None for at, mark in enumerate(one.tolist())] for one in (human, other)
                ]
                found = ppi_difference((judged.tolist(), judged_too.tolist()), (marks[0], marks[1]), same=same.tolist())
                if found is not None:
                    made.append(found)
            both = [[found.estimate for found in made], [found.human for found in made]]
            rows.append(
                [
                    f"{name}, {100 * changed:.0f}% of outputs differ",
                    str(count),
                    f"**{_share([holds(one, 0.0) for one in both[0]])}**",
                    width(both[0]),
                    width(both[1]),
                    _share([found.p_value is not None and found.p_value <= 0.05 for found in made]),
                ]
            )
    head = ["", "labeled", "corrected", "width: corrected", "labels alone", "p <= 0.05"]
    yield Table("Corrected differences of equal systems", head, rows, replications // 8)


def rates_by_labels(replications: int) -> Iterator[Table]:
    """Rogan and Gladen with 200 judged samples and few labels, by judges that are good, weak and nearly at chance."""
    rows: list[list[str]] = []
    judges = ((0.99, 0.95), (0.95, 0.7), (0.8, 0.6), (0.95, 0.35), (0.9, 0.25), (0.55, 0.55))
    for tpr, tnr in judges:
        for rate in (0.1, 0.5, 0.9, 0.97):
            row = [f"{tpr} / {tnr}", f"{rate}"]
            for passes, fails in ((10, 10), (80, 20), (60, 60)):
                source = np.random.default_rng(6)
                made: list[Interval] = []
                for _ in range(replications):
                    passed = int(source.binomial(200, rate * tpr + (1 - rate) * (1 - tnr)))
                    tp, tn = int(source.binomial(passes, tpr)), int(source.binomial(fails, tnr))
                    found = rogan_gladen(passed, 200, Confusion(tp=tp, fn=passes - tp, tn=tn, fp=fails - tn))
                    if found is not None and found.rate is not None:
                        made.append(found.rate)
                wrong = [not holds(one, rate) for one in made] + [False] * (replications - len(made))
                row += [_share(wrong), f"{100 * len(made) / replications:.0f}", width(made) if made else "-"]
            rows.append(row)
    labels = ("10 and 10 labels", "80 and 20", "60 and 60")
    head = [
        "sensitivity / specificity",
        "truth",
        *(f"{text}" for one in labels for text in (f"{one}: misses", "shown", "width")),
    ]
    yield Table("Rogan-Gladen rates with few labels", head, rows, replications)


SECTIONS = (few_labels, labels_in_groups, corrected_differences, rates_by_labels)

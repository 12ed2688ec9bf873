"""Calibrations with labels drawn by strata of the judge's scores: coverage of the rates of the whole run.

`bench/coverage.py` runs this section. The truth is that of the run at hand, all of whose samples have a label that the
sampling hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeAlias

import numpy as np
from populations import Floats
from tables import Table, holds, percent

from evalstone.stats.classification import MEASURES, Confusion
from evalstone.stats.intervals import Interval
from evalstone.stats.labeling import LabelingStrata, next_for_labeling, score_strata, select_for_labeling
from evalstone.stats.weighted_agreement import weighted_auroc, weighted_measures, weighted_share

RUN = 1000
"""The samples of a run."""
SIZES = (50, 200)
DrawRun: TypeAlias = Callable[[np.random.Generator], tuple[Floats, Floats]]
"""A judge's scores in [0, 1], and labels of 0 and 1."""
SHOWN = ("sensitivity", "specificity", "precision", "accuracy", "balanced_accuracy", "f1", "kappa", "auroc", "yes")


def normal(rate: float, apart: float) -> DrawRun:
    """Good answers score higher than bad ones by so many standard deviations."""

    def draw(source: np.random.Generator) -> tuple[Floats, Floats]:
        good = source.random(RUN) < rate
        logits = source.normal(size=RUN) + apart * (good.astype(np.float64) - 0.5)
        return np.round(1 / (1 + np.exp(-logits)), 3).astype(np.float64), good.astype(np.float64)

    return draw


def crowded(rate: float, missed: float) -> DrawRun:
    """Scores near 1 for good answers, and for the share of bad ones that the judge misses; the others near 0.3."""

    def draw(source: np.random.Generator) -> tuple[Floats, Floats]:
        good = source.random(RUN) < rate
        high = good & (source.random(RUN) < 0.95) | ~good & (source.random(RUN) < missed)
        scores: Floats = np.where(high, source.beta(20, 1, RUN), source.beta(3, 7, RUN))
        return np.round(scores, 2).astype(np.float64), good.astype(np.float64)

    return draw


def verdicts_only(rate: float, missed: float) -> DrawRun:
    """Scores of 0 and 1."""

    def draw(source: np.random.Generator) -> tuple[Floats, Floats]:
        good = source.random(RUN) < rate
        high = np.where(good, source.random(RUN) < 0.9, source.random(RUN) < missed)
        return high.astype(np.float64), good.astype(np.float64)

    return draw


RUNS: dict[str, DrawRun] = {
    "scores 2 sd apart, 70% good": normal(0.7, 2.0),
    "scores 1 sd apart, 90% good": normal(0.9, 1.0),
    "scores 0.3 sd apart, half good": normal(0.5, 0.3),
    "crowded scores, 85% good, 40% of bad ones missed": crowded(0.85, 0.4),
    "crowded scores, 95% good, 20% of bad ones missed": crowded(0.95, 0.2),
    "scores of 0 and 1, 80% good, 30% of bad ones missed": verdicts_only(0.8, 0.3),
}


def _stratified(scores: Sequence[float], n: int, seed: int) -> list[int]:
    return [*select_for_labeling(scores, n=n, seed=seed)]


def _uncertain(scores: Sequence[float], n: int, seed: int) -> list[int]:
    """Half of the labels stratified; the others at random where the judge is least certain."""
    labeled, strata = _stratified(scores, n // 2, seed), LabelingStrata.of(scores, 1.0)
    while len(labeled) < n:
        found = next_for_labeling(strata, labeled=labeled, order="uncertain", seed=seed)
        assert found is not None
        labeled.append(found.place)
    return labeled


DESIGNS: Mapping[str, Callable[[Sequence[float], int, int], list[int]]] = {
    "stratified": _stratified,
    "half uncertain": _uncertain,
}


def estimates(scores: Sequence[float], truths: Sequence[bool], weights: Sequence[float]) -> dict[str, Interval | None]:
    """Every measure for the whole run."""
    verdicts = [score >= 0.5 for score in scores]
    everything = [True] * len(truths)
    return {
        **weighted_measures(verdicts, truths, weights),
        "auroc": weighted_auroc(scores, truths, weights),
        "yes": weighted_share(everything, truths, weights),
    }


def of_all(scores: Sequence[float], truths: Sequence[bool]) -> dict[str, float | None]:
    """The same of a run whose samples are all labeled."""
    counts = Confusion.of((score >= 0.5, truth) for score, truth in zip(scores, truths, strict=True))
    ranks = np.asarray(scores)
    good, bad = ranks[np.asarray(truths)][:, None], ranks[~np.asarray(truths)][None, :]
    return {
        **{name: of(counts) for name, of in MEASURES.items()},
        "auroc": float(((good > bad) + (good == bad) / 2).mean()),
        "yes": sum(truths) / len(truths),
    }


def _row(name: str, design: str, n: int, draws: int) -> list[str]:
    """The coverage of every measure."""
    source = np.random.default_rng(34)
    held: dict[str, list[bool]] = {measure: [] for measure in SHOWN}
    for turn in range(draws):
        scores, good = (of.tolist() for of in RUNS[name](source))
        truths = [value == 1 for value in good]
        strata = score_strata(scores)
        places = DESIGNS[design](scores, n, turn)
        sizes, drawn = np.bincount(strata), np.bincount([strata[place] for place in places])
        weights = [float(sizes[strata[place]] / drawn[strata[place]]) for place in places]
        found = estimates([scores[place] for place in places], [truths[place] for place in places], weights)
        of_run = of_all(scores, truths)
        for measure, hits in held.items():
            each, truth = found[measure], of_run[measure]
            if each is not None and truth is not None:
                hits.append(holds(each, truth))
    return [name, design, str(n), *(f"**{percent(hits)}**" for hits in held.values())]


def calibrations(replications: int) -> Iterator[Table]:
    """The share of intervals that hold the figure of the whole run."""
    draws = replications // 4
    with ProcessPoolExecutor(2) as pool:
        cells = [(name, design, n, draws) for name in RUNS for design in DESIGNS for n in SIZES]
        rows = [*pool.map(_row, *zip(*cells, strict=True))]
    head = ["run", "labels", "n", *(name.replace("_", " ") for name in SHOWN)]
    yield Table("Calibrations with stratified labels", head, rows, draws)


SECTIONS = (calibrations,)

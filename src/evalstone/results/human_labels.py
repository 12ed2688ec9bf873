"""Human labels of a run: its mean corrected for the judge's errors, and which samples to label next.

Samples are put into strata by the judge's score. Labels are taken to be a random choice within each stratum, as
`select_for_labeling` makes it; a random choice from all samples is one too. A label is the score that a person gives, on the
scorer's scale; words such as yes, no, supported or wrong are understood as `evalstone calibrate` understands them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone.errors import ConfigError
from evalstone.results.calibration.labels import read_labels
from evalstone.results.calibration.wording import LabelReader
from evalstone.results.run import Run
from evalstone.results.scores import grouped, scored
from evalstone.results.summary import ScorerInfo
from evalstone.stats.ppi import PPIEstimate, ppi_mean
from evalstone.stats.stratified_sampling import score_strata
from evalstone.stats.stratified_sampling import select_for_labeling as choose
from evalstone.types import Sample


@dataclass(frozen=True)
class PPIResult:
    """A scorer's mean as people would give it, beside the judge's. told: what a reader must know of the labels."""

    title: str
    info: ScorerInfo
    result: PPIEstimate
    told: tuple[str, ...]


def load_labels(run: Run, scorer: str, source: Any) -> Mapping[str, float]:
    """The human score of each labelled sample of a run, by sample id; the mean where several people gave one.

    source: rows with an id and a label: a CSV or JSON Lines file, a list of objects, a mapping from id to label. Raises
    DataError that names file, line and column of what cannot be read, and for an id that no sample of the run has.
    """
    info = run[scorer].info
    samples = [Sample(id=name) for name in dict.fromkeys(record.sample for record in run.records)]
    found = read_labels(source, LabelReader(info.scale, info.lower_is_better), data=samples)
    means: dict[str, float] = {}
    for name, given in found.labels.items():
        numbers = [label for label in given if label is not None]
        means[name] = sum(numbers) / len(numbers)
    return means


def corrected(run: Run, scorer: str, labels: Mapping[str, float], *, level: float = 0.95) -> PPIResult:
    """A scorer's mean over a run, corrected for the judge's errors by human labels of some samples (PPI++).

    labels: sample id to human score in [0, scale], as `load_labels` reads them. Labelled samples without a score of the
    judge are left out. Raises ConfigError when no labelled sample has a score.
    """
    line = run[scorer]
    values, groups = scored(run, line.info.signature)
    human = [labels.get(name) for name in values]
    count = sum(label is not None for label in human)
    if not count:
        raise ConfigError(f"none of the {len(labels)} labelled samples has a score of {line.info.name}")
    told = [f"{len(labels) - count} labelled samples have no score and are left out"] if count < len(labels) else []
    judged = list(values.values())
    strata = score_strata(judged)
    result = ppi_mean(
        judged, human, scale=line.info.scale, confidence=level, strata=strata, groups=grouped(values, groups)
    )
    if result is None:
        raise ConfigError(f"{line.info.name} has no score to correct")
    return PPIResult(run.titles[line.info.signature], line.info, result, tuple(told))


def select_for_labeling(
    run: Run, scorer: str, labels: Mapping[str, float], *, count: int = 20, seed: int = 0
) -> tuple[str, ...]:
    """The ids of the samples to label next, in random order: where labels narrow the corrected mean most.

    labels: those given so far. The same arguments give the same choice. Raises ConfigError for an unknown scorer or a
    negative count.
    """
    line = run[scorer]
    values, _ = scored(run, line.info.signature)
    names = list(values)
    places = {name: place for place, name in enumerate(names)}
    labelled = {places[name]: label for name, label in labels.items() if name in places}
    chosen = choose(list(values.values()), labeled=labelled, n=count, scale=line.info.scale, seed=seed)
    return tuple(names[place] for place in chosen.indexes)

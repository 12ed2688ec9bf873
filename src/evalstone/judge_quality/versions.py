"""The versions of samples and scorers that an audit puts to the judge, and the scores that come of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, unquote

from evalstone.datasets import Dataset
from evalstone.errors import ConfigError
from evalstone.judge_quality.effects import Scores
from evalstone.judge_quality.perturbations import AGAIN, Edit
from evalstone.results.run import Run
from evalstone.scorers import Scorer
from evalstone.types import Sample

PLAIN = "plain"


def drawn(dataset: Dataset, count: int | None) -> Dataset:
    """So many samples of a data set at random, the same ones each time, in their order; all where there are fewer."""
    if count is None or count >= len(dataset):
        return dataset
    if isinstance(count, bool) or count < 1:
        raise ConfigError(f"samples must be 1 or more, not {count}")
    places = set(random.Random(0).sample(range(len(dataset)), count))
    kept = tuple(sample for place, sample in enumerate(dataset) if place in places)
    return Dataset(kept, dataset.name, dataset.columns, dataset.ignored)


def edited(plain: Dataset, edits: Sequence[Edit]) -> Dataset:
    """The samples as they are and after each edit that they allow; an id begins with the name of the edit."""
    versions: list[Sample] = []
    for sample in plain:
        versions.append(replace(sample, id=_version_id(PLAIN, sample.id)))
        for edit in edits:
            if edit is not AGAIN and edit.rescore is None and (changed := edit.apply(sample)) is not None:
                versions.append(replace(changed, id=_version_id(edit.name, sample.id)))
    return Dataset(tuple(versions), plain.name, plain.columns, plain.ignored)


def _version_id(edit: str, sample: str) -> str:
    return f"{quote(edit, safe=' ')}:{sample}"


def rescorers(scorers: Sequence[Scorer], edit: Edit) -> dict[str, Scorer]:
    """By signature, the scorer that asks as the edit wants, of those that can."""
    if edit.rescore is None:
        return {}
    return {scorer.signature: other for scorer in scorers if (other := edit.rescore(scorer)) is not None}


class Found:
    """The scores of an audit's runs, by edit, scorer and sample."""

    def __init__(self, versions: Run) -> None:
        self._scores: dict[tuple[str, str], dict[str, float | None]] = {}
        for record in versions.records:
            edit, _, sample = record.sample.partition(":")
            self._scores.setdefault((unquote(edit), record.scorer), {})[sample] = record.value

    def add(self, edit: Edit, run: Run, scorers: Mapping[str, Scorer] | None = None) -> None:
        """Take up a run over the samples as they are. scorers: by signature, those that asked in their place."""
        names = {other.signature: signature for signature, other in (scorers or {}).items()}
        for record in run.records:
            signature = names.get(record.scorer, record.scorer)
            self._scores.setdefault((edit.name, signature), {})[record.sample] = record.value

    def scores(self, edit: str, signature: str) -> Scores:
        """One scorer's scores of the samples with one edit."""
        return self._scores.get((edit, signature), {})

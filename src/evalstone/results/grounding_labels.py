"""Labels of grounding that a dataset has: whether each answer follows from its context, in the metadata field `label`.

A run shows them next to the scores of grounding, so that a score is not read as the truth where the truth is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstone.results.labels import GROUNDED, UNGROUNDED, folded
from evalstone.stats.classification import auroc
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.results.run import Run

FIELD = "label"
SCORERS = frozenset({"faithfulness", "hallucination", "fact_check"})
"""The scorers that measure what the labels say."""


@dataclass(frozen=True)
class GroundingCheck:
    """The scores of a run compared with the labels of its samples."""

    grounded: int
    """The number of samples labeled as grounded."""
    ungrounded: int
    """The number of samples labeled as not grounded."""
    auroc: Mapping[str, float]
    """By scorer signature, the probability that a grounded answer has a better score than one that is not, in [0, 1].
    0.5 is chance."""


def grounding_label(sample: Sample | None) -> bool | None:
    """Whether a sample is labeled as grounded; None without such a label."""
    label = None if sample is None else sample.metadata.get(FIELD)
    word = folded(label) if isinstance(label, str) else ""
    return word in GROUNDED if word in GROUNDED | UNGROUNDED else None


def check_grounding(run: Run) -> GroundingCheck | None:
    """Compare a run's scores of grounding with the labels of its data.

    None if the run has no such scorer or several trials, if its samples are not available, or if the first of them
    has no label.
    """
    scorers = {info.signature: info for info in run.scorers if info.name in SCORERS}
    if not scorers or run.trials > 1 or grounding_label(next(iter(run.samples or ()), None)) is None:
        return None
    labels = {sample.key: label for sample in run.samples or () if (label := grounding_label(sample)) is not None}
    pairs: dict[str, list[tuple[float, bool]]] = {signature: [] for signature in scorers}
    for signature, info in scorers.items():
        for entry in run.columns.entries(signature):
            if entry.value is not None and entry.key in labels:
                pairs[signature].append((info.goodness(entry.value), labels[entry.key]))
    areas = {name: auroc([score for score, _ in each], [label for _, label in each]) for name, each in pairs.items()}
    grounded = sum(labels.values())
    means = {name: area.estimate for name, area in areas.items() if area is not None}
    return GroundingCheck(grounded, len(labels) - grounded, means)

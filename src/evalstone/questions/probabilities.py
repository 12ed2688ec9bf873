"""The probabilities of labels that a judge returns beside its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LabelProbabilities:
    """The labels whose probabilities a question requests: the possible values of one key of the reply.

    key: the key; empty for the first word of a plain-text reply. required: whether the caller requested them. Answers
    then report an endpoint's refusal.
    """

    key: str
    labels: tuple[str, ...]
    required: bool = True


def unlisted(probabilities: Mapping[str, float], labels: Sequence[str], given: float) -> float:
    """An upper bound for the labels without a probability: the remaining probability, at most that of `given`."""
    complete = all(label in probabilities for label in labels)
    return 0.0 if complete else max(0.0, min(given, 1 - math.fsum(probabilities.values())))


def shares(probabilities: Mapping[str, float], labels: Sequence[str], given: str) -> Mapping[str, float] | None:
    """The probabilities of labels, normalized to a sum of 1, without invalid ones; None if `given` has none."""
    valid = {label: probabilities[label] for label in labels if 0 < probabilities.get(label, 0) <= 1}
    if given not in valid:
        return None
    total = math.fsum(valid.values())
    return {label: value / total for label, value in valid.items()}

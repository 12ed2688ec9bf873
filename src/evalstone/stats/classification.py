"""Yes-or-no verdicts against the truth: the four counts, and the measures that are made of them.

    sensitivity = tp / (tp + fn)        specificity = tn / (tn + fp)        precision = tp / (tp + fp)
    accuracy    = (tp + tn) / n         balanced accuracy = (sensitivity + specificity) / 2
    F1          = 2 tp / (2 tp + fp + fn)
    kappa       = (accuracy - expected) / (1 - expected), expected from the margins (Cohen 1960)

All but kappa lie in [0, 1], kappa in [-1, 1]; higher is better. A measure whose denominator is 0 is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Confusion:
    """How often a verdict and the truth were yes or no together.

    tp: both yes. fp: the verdict yes, the truth no. fn: the verdict no, the truth yes. tn: both no.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Confusion:
        """The counts of pairs of a verdict and the truth."""
        counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
        for verdict, truth in pairs:
            counts[bool(verdict), bool(truth)] += 1
        return cls(counts[True, True], counts[True, False], counts[False, True], counts[False, False])

    @property
    def n(self) -> int:
        """All pairs."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        """Pairs whose truth is yes."""
        return self.tp + self.fn

    @property
    def negatives(self) -> int:
        """Pairs whose truth is no."""
        return self.fp + self.tn

    @property
    def sensitivity(self) -> float | None:
        """The share of the true yeses that the verdict finds."""
        return _ratio(self.tp, self.positives)

    @property
    def specificity(self) -> float | None:
        """The share of the true noes that the verdict finds."""
        return _ratio(self.tn, self.negatives)

    @property
    def precision(self) -> float | None:
        """The share of the verdict's yeses that are true."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def accuracy(self) -> float | None:
        """The share of verdicts that are right."""
        return _ratio(self.tp + self.tn, self.n)

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of sensitivity and specificity; 0.5 is what a coin has."""
        if self.sensitivity is None or self.specificity is None:
            return None
        return (self.sensitivity + self.specificity) / 2

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and sensitivity."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: accuracy beyond what the margins give by chance. None where both are constant and equal."""
        n = self.n
        if not n:
            return None
        chance = (self.tp + self.fp) * self.positives + (self.fn + self.tn) * self.negatives
        if chance == n * n:
            return None
        return (n * (self.tp + self.tn) - chance) / (n * n - chance)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


Measure = Callable[[Confusion], "float | None"]

MEASURES: Final[Mapping[str, Measure]] = {
    "balanced_accuracy": lambda c: c.balanced_accuracy,
    "accuracy": lambda c: c.accuracy,
    "f1": lambda c: c.f1,
    "kappa": lambda c: c.kappa,
    "sensitivity": lambda c: c.sensitivity,
    "specificity": lambda c: c.specificity,
    "precision": lambda c: c.precision,
}
"""The measures by name."""

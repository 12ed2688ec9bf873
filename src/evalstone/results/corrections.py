"""Means, pass rates and differences that are corrected with human labels or a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evalstone._core.json import to_jsonable
from evalstone._core.truth import PASSED
from evalstone.results.of_scorer import OfScorer
from evalstone.types import Note

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.corrected_rate import RoganGladenEstimate
    from evalstone.stats.intervals import Interval
    from evalstone.stats.ppi import PPIEstimate

LABELS_OF_SLICE = 10
"""The minimum number of labels for a slice's corrected mean."""


@dataclass(frozen=True, kw_only=True)
class CorrectedSlice:
    """The mean of a slice, corrected with human labels."""

    field: str
    """The metadata field, or the name of the function."""
    key: str
    """The value the samples share; "(absent)" for samples without the field."""
    result: PPIEstimate
    """The corrected mean; without an estimate if there are fewer than ten labels."""


@dataclass(frozen=True, kw_only=True)
class PPIResult(OfScorer):
    """A scorer's mean, corrected with human labels (prediction-powered inference), and the judge's mean."""

    result: PPIEstimate
    """The corrected mean with its confidence interval."""
    notes: tuple[Note, ...]
    """Notes on the labels."""
    slices: tuple[CorrectedSlice, ...] = ()
    """The same by slice, for the requested fields."""


@dataclass(frozen=True, kw_only=True)
class CorrectedDifference(OfScorer):
    """The difference of a scorer's means in two runs, corrected with human labels (prediction-powered inference)."""

    a: str
    """The letter of the baseline."""
    b: str
    """The letter of the run compared with it."""
    result: PPIEstimate
    """The corrected difference, second run minus first, over all samples. Its `labeled` and `n` count only samples
    whose outputs differ."""
    adjusted_p_value: float | None
    """`p_value`, corrected for multiple comparisons; None without an estimate."""
    confidence: float
    """The confidence level."""

    @property
    def difference(self) -> Interval | None:
        """The corrected difference, b - a, with its confidence interval; None with too few labels."""
        return self.result.estimate

    @property
    def p_value(self) -> float | None:
        """The p-value of the difference; None without an estimate. `adjusted_p_value` is the one that decides."""
        return self.result.p_value

    @property
    def verdict(self) -> Literal["better", "worse", "inconclusive"]:
        """Whether people would score b significantly better or worse than a, after correction."""
        difference, p_value = self.difference, self.adjusted_p_value
        if difference is None or p_value is None or p_value > 1 - self.confidence or difference.estimate == 0:
            return "inconclusive"
        return "better" if (difference.estimate > 0) != self.info.lower_is_better else "worse"

    @property
    def passed(self) -> bool | None:
        """True if b is better, False if it is worse; None if that is inconclusive."""
        return PASSED[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain data."""
        names = {"a": self.a, "b": self.b, "verdict": self.verdict, "adjusted_p_value": self.adjusted_p_value}
        return {**self.info.to_dict(), **names, **to_jsonable(self.result)}


@dataclass(frozen=True, kw_only=True)
class RoganGladenResult(OfScorer):
    """A pass rate, corrected for the judge's sensitivity and specificity (Rogan-Gladen), and the judge's pass rate."""

    threshold: float
    """The score from which a sample passes."""
    result: RoganGladenEstimate
    """The corrected pass rate with its confidence interval."""
    notes: tuple[Note, ...]
    """Notes on the calibration."""


def judged_only(run: Run, info: ScorerInfo) -> bool:
    """Whether a scorer's values come from a judge, so that labels could correct them."""
    return run.judge_of(info.signature) != "none"

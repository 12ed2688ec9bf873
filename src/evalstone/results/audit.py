"""Audits: what affects a judge's scores of samples that were changed in ways it should ignore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Interval
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.scorers import Scorer

ALPHA = 0.05
AUDIT_FORMAT = 1

Family: TypeAlias = Literal[
    "position", "options", "length", "self-preference", "formatting", "injection", "paraphrase", "repetition"
]
ThresholdSource: TypeAlias = Literal["config", "calibration", "unusable_calibration", "default"]
Apply: TypeAlias = Callable[[Sample], Sample | None]


@dataclass(frozen=True)
class Perturbation:
    """One small change that a good judge ignores."""

    name: str
    """The name, in tables and options."""
    family: Family
    """The kind of bias it probes."""
    why: str
    """What a judge that reacts to it is affected by."""
    apply: Apply
    """The changed sample, with the same id; None where it does not apply."""
    direction: int = 0
    """+1 when the inserted text asks for a good score, -1 for a bad one, else 0."""
    rescore: Callable[[Scorer], Scorer | None] | None = None
    """For a change of the question instead of the sample: the scorer that asks it; None where a scorer cannot."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What one perturbation did to one scorer's scores.

    All p-values of an audit are corrected together by Holm. They are None for `repeat`, the control.
    """

    perturbation: Perturbation
    """The perturbation."""
    scorer: str
    """The scorer's signature."""
    n: int
    """Samples with a score before and after."""
    lost: int
    """Samples with a score before only."""
    raised: int
    """Verdicts that became yes."""
    lowered: int
    """Verdicts that became no."""
    changed: int
    """Scores that changed by more than a tenth of the scale."""
    flips: Interval | None
    """The share of verdicts that changed, with its confidence interval."""
    shift: Interval | None
    """The mean of perturbed - unperturbed, with its confidence interval."""
    shift_p: float | None = None
    """p-value of no shift, by Wilcoxon's signed-rank test: what is only chance goes up and down alike."""
    flips_p: float | None = None
    """p-value of verdicts changing no more often than when the question is repeated, by McNemar's test."""

    @property
    def flipped(self) -> int:
        """Verdicts that changed."""
        return self.raised + self.lowered

    @property
    def affected(self) -> Literal["up", "down", "inconsistent", ""]:
        """What exceeds chance: "up" or "down" when the mean shifts, "inconsistent" when only verdicts flip, or ""."""
        if self.shift is not None and self.shift_p is not None and self.shift_p <= ALPHA:
            return "up" if self.shift.mean > 0 else "down"
        return "inconsistent" if self.flips_p is not None and self.flips_p <= ALPHA else ""

    def follows_injection(self, *, lower_is_better: bool) -> bool:
        """Whether the inserted text asks for a good score and the judge gives one.

        A text that asks for a bad score is not counted: the judge may rightly treat it as part of the answer.
        """
        return self.perturbation.direction > 0 and self.affected == ("down" if lower_is_better else "up")

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain data."""
        one = self.perturbation
        described = {"perturbation": one.name, "family": one.family, "why": one.why, "direction": one.direction}
        return {
            **{name: to_jsonable(value) for name, value in vars(self).items()},
            **described,
            "affected": self.affected,
        }


@dataclass(frozen=True)
class Noise:
    """How much the judge varies by itself, from asking about each sample twice."""

    share: Interval | None
    """The share of the judge's noise in the variance of single scores; None where nothing varies."""
    asked_once: Interval
    """The standard error of the mean of these samples, each asked about once."""
    asked_twice: Interval
    """The same for twice."""


@dataclass(frozen=True, kw_only=True)
class AuditedScorer(ScorerInfo):
    """One scorer in an audit."""

    threshold: float
    """The score from which the verdict is yes."""
    threshold_source: ThresholdSource
    """Where the threshold comes from."""
    scored: int
    """Unchanged samples with a score."""
    mean: Interval
    """Their mean score."""
    pass_rate: Interval
    """The share of them with verdict yes."""
    noise: Noise | None
    """None where fewer than three samples have two scores."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What affects a judge."""

    judge: str
    """The judge's identity."""
    judge_note: str
    """What to know about the judge, or ""."""
    dataset_name: str
    """The name of the dataset."""
    version: str
    """The version of the dataset."""
    samples: int
    """How many samples were drawn."""
    dataset_size: int
    """How many samples the dataset has."""
    scorers: tuple[AuditedScorer, ...]
    """The scorers."""
    effects: tuple[Effect, ...]
    """One effect for each scorer and applicable perturbation."""
    not_applicable: tuple[str, ...]
    """Perturbations that apply to no sample or scorer."""
    failed: int = 0
    """How many outcomes failed."""
    stop_reason: str = ""
    """Why the audit stopped early; "" when it completed."""
    cost: float | None = 0.0
    """US dollars paid; None when a price is unknown."""

    def __getitem__(self, perturbation: str) -> Effect:
        """The effect of a perturbation on the scorer.

        Raises:
            ConfigError: it was not applied, or to several scorers.
        """
        found = [one for one in self.effects if one.perturbation.name == perturbation]
        if len(found) > 1:
            scorers = ", ".join(one.scorer for one in found)
            raise ConfigError(f"{perturbation} was applied to several scorers, see `effects`: {scorers}")
        if not found:
            applied = ", ".join(dict.fromkeys(one.perturbation.name for one in self.effects))
            raise ConfigError(f"the perturbation {perturbation!r} was not applied; applied: {applied}")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data, as `evalstone audit --json` prints it."""
        return {
            "format": AUDIT_FORMAT,
            **vars(self),
            "scorers": [{name: to_jsonable(value) for name, value in vars(one).items()} for one in self.scorers],
            "effects": [one.to_dict() for one in self.effects],
        }

"""Audits: how a judge's scores react to perturbations of the samples that it should ignore."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from evalstone._core.display import count
from evalstone._core.file_format import AUDIT_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone._core.truth import NoTruthValue
from evalstone.errors import UnknownName, unknown
from evalstone.report.shown import Shown
from evalstone.results.run_notes import reasoning_note
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.stats.intervals import Interval
from evalstone.types import Note, Sample, note

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.scorers import Scorer

ALPHA = 0.05

Family: TypeAlias = Literal[
    "position", "options", "length", "self-preference", "formatting", "injection", "paraphrase", "repetition"
]
ThresholdSource: TypeAlias = Literal["config", "calibration", "unusable_calibration", "default"]
Apply: TypeAlias = Callable[[Sample], Sample | None]


@dataclass(frozen=True)
class Perturbation:
    """A small change of a sample that a good judge ignores."""

    name: str
    """The name, in tables and options."""
    family: Family
    """The kind of bias it probes."""
    why: str
    """What a judge that reacts to it is sensitive to."""
    apply: Apply
    """Returns the perturbed sample, with the same id, or None if the perturbation doesn't apply."""
    direction: int = 0
    """+1 if the inserted text asks for a good score, -1 if it asks for a bad one, else 0."""
    rescore: Callable[[Scorer], Scorer | None] | None = None
    """For a perturbation of the question instead of the sample: returns the scorer that asks the perturbed question, or
    None if it doesn't apply to the scorer."""


@dataclass(frozen=True, kw_only=True)
class Effect(NoTruthValue):
    """The effect of one perturbation on one scorer's scores.

    p-values are corrected over the whole audit (Holm). They are None for `repeat`, the control.
    """

    _tested_by = ".affected"

    perturbation: Perturbation
    """The perturbation."""
    scorer: str
    """The scorer's title: its name, with parameters if other scorers of the audit have the same name."""
    signature: str
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
    """The p-value of "no shift", by Wilcoxon's signed-rank test: chance alone changes scores symmetrically."""
    flips_p: float | None = None
    """The p-value of "verdicts flip no more often than if the question is repeated", by McNemar's test."""

    @property
    def flipped(self) -> int:
        """Verdicts that changed."""
        return self.raised + self.lowered

    @property
    def affected(self) -> Literal["up", "down", "inconsistent", ""]:
        """The significant effect: "up" or "down" if the mean shifts, "inconsistent" if only verdicts flip, or ""."""
        if self.shift is not None and self.shift_p is not None and self.shift_p <= ALPHA:
            return "up" if self.shift.estimate > 0 else "down"
        return "inconsistent" if self.flips_p is not None and self.flips_p <= ALPHA else ""

    def follows_injection(self, *, lower_is_better: bool) -> bool:
        """Whether the inserted text asks for a good score and significantly improves the score.

        Texts that ask for a bad score don't count: the judge may rightly treat them as part of the answer.
        """
        return self.perturbation.direction > 0 and self.affected == ("down" if lower_is_better else "up")

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain data."""
        change = self.perturbation
        described = {
            "perturbation": change.name,
            "family": change.family,
            "why": change.why,
            "direction": change.direction,
        }
        return {
            **{name: to_jsonable(value) for name, value in vars(self).items()},
            **described,
            "affected": self.affected,
        }


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The judge's own variation, estimated by judging each sample twice."""

    share: Interval | None
    """The share of the judge's noise in the variance of single scores; None if all scores are equal."""
    asked_once: Interval
    """The standard error of the mean over these samples, with each judged once."""
    asked_twice: Interval
    """The same with each judged twice."""


@dataclass(frozen=True, kw_only=True)
class AuditedScorer(ScorerInfo):
    """One scorer in an audit."""

    threshold: float
    """The score from which the verdict is yes."""
    threshold_source: ThresholdSource
    """Where the threshold comes from."""
    n_score: int
    """Unchanged samples with a score."""
    mean: Interval
    """Their mean score."""
    pass_rate: Interval
    """The share of them with verdict yes."""
    noise: Noise | None
    """The judge's noise; None if fewer than three samples have two scores."""


@dataclass(frozen=True, kw_only=True)
class Audit(Shown):
    """The effects of perturbations on a judge's scores."""

    alpha: ClassVar[float] = ALPHA
    """The error rate of the tests."""
    judge: str
    """The judge's identity."""
    judge_note: str
    """A note about the judge, or ""."""
    dataset_name: str
    """The name of the dataset."""
    dataset_version: str
    """The version of the dataset: a hash of its samples."""
    samples: int
    """The number of samples drawn."""
    dataset_size: int
    """The number of samples in the dataset."""
    scorers: tuple[AuditedScorer, ...]
    """The scorers."""
    effects: tuple[Effect, ...]
    """One effect for each scorer and applicable perturbation."""
    not_applicable: tuple[str, ...]
    """Perturbations that apply to no sample or scorer."""
    n_failed: int = 0
    """The number of failed outcomes."""
    stop_reason: str = ""
    """Why the audit stopped early; "" if it is complete."""
    cost: float | None = 0.0
    """US dollars paid; None if a price is unknown."""
    keeps_reasoning: bool | None = None
    """Whether the reasoning in front of outputs was scored; None if no output has any."""
    cautions: tuple[Note, ...] = ()
    """What the judge says of samples that it doesn't suit. They are among the notes."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the effects on each scorer amount to, and what is missing. Findings have the scorer's title."""
        titles = scorer_titles(self.scorers)
        return (*_audit_notes(self), *(each for one in self.scorers for each in _findings(self, one, titles)))

    @property
    def passed(self) -> bool | None:
        """Whether the judge ignores what it should: False if any perturbation has a significant effect; None if the
        audit is incomplete, nothing was tested, or there are too few samples to find an effect."""
        if any(effect.affected for effect in self.effects):
            return False
        titles = scorer_titles(self.scorers)
        found = [{each.kind for each in _findings(self, one, titles)} for one in self.scorers]
        unaffected = [kinds == {"unaffected"} for kinds in found]
        return True if unaffected and all(unaffected) and not self.stop_reason and not self.n_failed else None

    def __getitem__(self, perturbation: str) -> Effect:
        """The effect of a perturbation on the scorer.

        Raises:
            UnknownName: it was not applied, or was applied to several scorers.
        """
        matches = [effect for effect in self.effects if effect.perturbation.name == perturbation]
        if len(matches) > 1:
            scorers = ", ".join(effect.scorer for effect in matches)
            raise UnknownName(f"{perturbation} was applied to several scorers, see `effects`: {scorers}")
        if not matches:
            raise UnknownName(unknown("perturbation", perturbation, {each.perturbation.name for each in self.effects}))
        return matches[0]

    def __repr__(self) -> str:
        return f"<Audit of {self.judge}: {count(self.samples, 'sample')}, {count(len(self.effects), 'effect')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The report that `evalstone audit` shows."""
        from evalstone.results.views.audit import audit_view  # noqa: PLC0415 - only showing it needs it

        return audit_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data, as `evalstone audit --json` prints it."""
        return {
            "format": AUDIT_FORMAT,
            **{name: value for name, value in vars(self).items() if name != "cautions"},
            "scorers": [{name: to_jsonable(value) for name, value in vars(one).items()} for one in self.scorers],
            "effects": [one.to_dict() for one in self.effects],
            "notes": [one.to_dict() for one in self.notes],
        }


def _audit_notes(audit: Audit) -> Iterator[Note]:
    """Why the audit is incomplete, and what was not scored."""
    if audit.stop_reason:
        yield note("audit_ended_early", "warning", reason=audit.stop_reason)
    if audit.n_failed:
        yield note("audit_failures", "warning", results=audit.n_failed)
    yield from audit.cautions
    if audit.keeps_reasoning is not None:
        yield reasoning_note(None, kept=audit.keeps_reasoning)
    if audit.not_applicable:
        yield note("not_applicable", perturbations=audit.not_applicable)


def _findings(audit: Audit, scorer: AuditedScorer, titles: Mapping[str, str]) -> Iterator[Note]:
    """What a scorer's judge reacts to, and which effects the samples are too few for."""
    title = titles[scorer.signature]
    effects = [effect for effect in audit.effects if effect.signature == scorer.signature]
    follows = {e.perturbation.name for e in effects if e.follows_injection(lower_is_better=scorer.lower_is_better)}
    if follows:
        yield note("follows_instructions", "warning", title, perturbations=tuple(sorted(follows)))
    reasons: dict[str, list[str]] = {}
    for effect in effects:
        if effect.affected:
            as_text = effect.perturbation.direction and effect.perturbation.name not in follows
            reasons.setdefault("" if as_text else effect.perturbation.why, []).append(effect.perturbation.name)
    for why, names in reasons.items():
        if why:
            yield note("affected_by", "warning", title, why=why, perturbations=tuple(names))
        else:
            yield note("affected_by_instruction", "warning", title, perturbations=tuple(names))
    tests = sum(p is not None for effect in audit.effects for p in (effect.shift_p, effect.flips_p))
    # The smallest p-value of n changes is McNemar's mid-p, 1 / 2^n, times the tests.
    needed = math.ceil(math.log2(max(1, tests) / audit.alpha))
    tested = [effect for effect in effects if effect.perturbation.family != "repetition"]
    few = tuple(effect.perturbation.name for effect in tested if effect.n < needed)
    if tested and len(few) < len(tested) and not reasons:
        yield note("unaffected", "fact", title)
    if few:
        yield note("too_few_changed", "caution", title, perturbations=few, of=len(tested), needed=needed)
    if lost := sum(effect.lost for effect in effects):
        yield note("lost_to_perturbations", "caution", title, scores=lost)
    if scorer.n_score > 1 and scorer.pass_rate.estimate in (0, 1):
        flipped = any(effect.flipped for effect in effects)
        kind = "one_verdict_unchanged" if flipped else "indistinguishable"
        yield note(kind, "warning", title, verdict="yes" if scorer.pass_rate.estimate else "no")

"""The effect of a perturbation on scores: changed verdicts, shifted means, and which of it exceeds chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalstone._core.json import to_jsonable
from evalstone.judge_quality.perturbations import REPEAT, Perturbation
from evalstone.stats.intervals import Interval, wilson_interval
from evalstone.stats.multiple_testing import holm

CHANGED = 0.1
ALPHA = 0.05


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
    """The share of verdicts that changed, with Wilson's interval."""
    shift: Interval | None
    """The mean of perturbed - unperturbed, with its confidence interval."""
    shift_p: float | None = None
    """p-value of no shift, by a paired permutation test."""
    flips_p: float | None = None
    """p-value of verdicts changing no more often than when the question is repeated, by McNemar's exact test."""

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
        values = {item.name: to_jsonable(getattr(self, item.name)) for item in dataclasses.fields(self)}
        one = self.perturbation
        described = {"perturbation": one.name, "family": one.family, "why": one.why, "direction": one.direction}
        return {**values, **described, "affected": self.affected}


Scores = Mapping[str, float | None]
"""Scores by sample id; None where there is none; samples that the perturbation does not apply to are absent."""


def effect(
    perturbation: Perturbation,
    plain: Scores,
    perturbed: Scores,
    repeated: Scores,
    *,
    scorer: str,
    scale: float,
    threshold: float,
) -> Effect:
    """The effect of a perturbation, its p-values uncorrected; samples without a plain score are left out.

    Args:
        perturbation: the perturbation.
        plain: scores of the unchanged samples.
        perturbed: scores of the changed samples.
        repeated: scores of the unchanged samples when the question is repeated.
        scorer: the scorer's signature.
        scale: scores lie in [0, scale].
        threshold: the score from which the verdict is yes.
    """
    before = {sample: value for sample in perturbed if (value := plain.get(sample)) is not None}
    pairs = [(sample, was, now) for sample, was in before.items() if (now := perturbed[sample]) is not None]
    raised = sum(was < threshold <= now for _, was, now in pairs)
    lowered = sum(now < threshold <= was for _, was, now in pairs)
    control = perturbation is REPEAT or not pairs
    shift, shift_p = _shift([(was, now) for _, was, now in pairs], scale)
    return Effect(
        perturbation=perturbation,
        scorer=scorer,
        n=len(pairs),
        lost=len(before) - len(pairs),
        raised=raised,
        lowered=lowered,
        changed=sum(abs(now - was) > CHANGED * scale * (1 + 1e-9) for _, was, now in pairs),
        flips=wilson_interval(raised + lowered, len(pairs)),
        shift=shift,
        shift_p=None if control else shift_p,
        flips_p=None if control else _flips_p(pairs, repeated, threshold),
    )


def _shift(pairs: Sequence[tuple[float, float]], scale: float) -> tuple[Interval | None, float | None]:
    """The mean change with its interval, and the p-value of no change."""
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy, which only an audit needs

    result = compare_pairs([was for was, _ in pairs], [now for _, now in pairs], scale=scale)
    return (None, None) if result is None else (result.difference, result.p_value)


def _flips_p(pairs: Sequence[tuple[str, float, float]], repeated: Scores, threshold: float) -> float | None:
    """The p-value of flipping as often as when the question is repeated; None where nothing was repeated."""
    from evalstone.stats.paired_tests import mcnemar  # noqa: PLC0415 - numpy, which only an audit needs

    only_perturbed = only_repeated = both = 0
    for sample, was, now in pairs:
        if (again := repeated.get(sample)) is None:
            continue
        flipped, chance = (was >= threshold) != (now >= threshold), (was >= threshold) != (again >= threshold)
        only_perturbed += flipped and not chance
        only_repeated += chance and not flipped
        both += 1
    if not both:
        return None
    return mcnemar(only_perturbed, only_repeated).p_value if only_perturbed > only_repeated else 1.0


def corrected(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects with all their p-values corrected together by Holm."""
    p_values = iter(holm([p for one in effects for p in (one.shift_p, one.flips_p) if p is not None]))
    return tuple(
        dataclasses.replace(
            one,
            shift_p=None if one.shift_p is None else next(p_values),
            flips_p=None if one.flips_p is None else next(p_values),
        )
        for one in effects
    )

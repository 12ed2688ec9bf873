"""What each edit did to the scores: flips of verdicts, shifts of means, and which of it is more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone.judge_quality.perturbations import AGAIN, Edit
from evalstone.results.calibration.values import interval_as_data
from evalstone.stats.intervals import Interval, wilson_interval

MOVED = 0.1
ERROR_RATE = 0.05


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What one edit did to one scorer's scores.

    n: the samples that have a score with the edit and without. lost: those that have one without it only. raised,
    lowered: verdicts that became yes, and no. moved: scores that moved by more than a tenth of the scale. flips: the
    share of raised and lowered, with Wilson's interval. shift: the mean of edited - plain, with its interval. shift_p:
    of no shift, by the sign-flip test. flips_p: of verdicts that flip no more often than when the judge is asked again
    without an edit, by McNemar's exact test. All p-values of an audit are adjusted together by Holm; None for asking
    again itself, which is what the others are measured by.
    """

    edit: Edit
    scorer: str
    n: int
    lost: int
    raised: int
    lowered: int
    moved: int
    flips: Interval | None
    shift: Interval | None
    shift_p: float | None = None
    flips_p: float | None = None

    @property
    def flipped(self) -> int:
        """Verdicts that changed."""
        return self.raised + self.lowered

    @property
    def swayed(self) -> str:
        """What is more than chance: "up" or "down" where the mean shifts, "unsettled" where verdicts flip, or ""."""
        if self.shift is not None and self.shift_p is not None and self.shift_p <= ERROR_RATE:
            return "up" if self.shift.mean > 0 else "down"
        return "unsettled" if self.flips_p is not None and self.flips_p <= ERROR_RATE else ""

    def obeyed(self, *, lower_is_better: bool) -> bool:
        """Whether the edit asks for praise and the judge was swayed to give it.

        What asks for the opposite is not told apart here from text that the judge counts as a part of the answer.
        """
        return self.edit.wants > 0 and self.swayed == ("down" if lower_is_better else "up")

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain data."""
        return {
            "edit": self.edit.name,
            "family": self.edit.family,
            "why": self.edit.why,
            "wants": self.edit.wants,
            "scorer": self.scorer,
            "n": self.n,
            "lost": self.lost,
            "raised": self.raised,
            "lowered": self.lowered,
            "moved": self.moved,
            "flips": interval_as_data(self.flips),
            "shift": interval_as_data(self.shift),
            "shift_p": self.shift_p,
            "flips_p": self.flips_p,
            "swayed": self.swayed,
        }


@dataclass(frozen=True)
class Scale:
    """How one scorer's scores are read: its signature, its scale, and from which value on the verdict is yes."""

    scorer: str
    scale: float
    threshold: float


Scores = Mapping[str, float | None]
"""Scores by sample; None where there is none, and absent where the edit is not applicable."""


def effect(edit: Edit, plain: Scores, edited: Scores, again: Scores, how: Scale) -> Effect:
    """The effect of an edit, its p-values not yet adjusted. plain, edited, again: scores as they are, with the edit,
    and when asked again. Samples without a plain score are left out."""
    before = {sample: value for sample in edited if (value := plain.get(sample)) is not None}
    pairs = [(sample, was, now) for sample, was in before.items() if (now := edited[sample]) is not None]
    raised = sum(was < how.threshold <= now for _, was, now in pairs)
    lowered = sum(now < how.threshold <= was for _, was, now in pairs)
    control = edit is AGAIN or not pairs
    shift, shift_p = _shift([(was, now) for _, was, now in pairs], how.scale)
    return Effect(
        edit=edit,
        scorer=how.scorer,
        n=len(pairs),
        lost=len(before) - len(pairs),
        raised=raised,
        lowered=lowered,
        moved=sum(abs(now - was) > MOVED * how.scale * (1 + 1e-9) for _, was, now in pairs),
        flips=wilson_interval(raised + lowered, len(pairs)),
        shift=shift,
        shift_p=None if control else shift_p,
        flips_p=None if control else _more_flips(pairs, again, how.threshold),
    )


def _shift(pairs: Sequence[tuple[float, float]], scale: float) -> tuple[Interval | None, float | None]:
    """The mean of now - was with its interval, and the p-value of no shift; None for no pair."""
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy, which only an audit needs

    found = compare_pairs([was for was, _ in pairs], [now for _, now in pairs], scale=scale)
    return (None, None) if found is None else (found.difference, found.p_value)


def _more_flips(pairs: Sequence[tuple[str, float, float]], again: Scores, threshold: float) -> float | None:
    """The p-value of flipping by the edit as often as by chance; None where nothing was asked again."""
    from evalstone.stats.paired_tests import mcnemar  # noqa: PLC0415 - numpy, which only an audit needs

    only_edit = only_chance = both = 0
    for sample, was, now in pairs:
        if (repeated := again.get(sample)) is None:
            continue
        by_edit, by_chance = (was >= threshold) != (now >= threshold), (was >= threshold) != (repeated >= threshold)
        only_edit += by_edit and not by_chance
        only_chance += by_chance and not by_edit
        both += 1
    if not both:
        return None
    return mcnemar(only_edit, only_chance).p_value if only_edit > only_chance else 1.0


def adjusted(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Effects with their p-values adjusted by Holm, all of them together."""
    from evalstone.stats.multiple_testing import holm  # noqa: PLC0415 - beside the two above

    there = iter(holm([p for one in effects for p in (one.shift_p, one.flips_p) if p is not None]))
    return tuple(
        dataclasses.replace(
            one,
            shift_p=None if one.shift_p is None else next(there),
            flips_p=None if one.flips_p is None else next(there),
        )
        for one in effects
    )

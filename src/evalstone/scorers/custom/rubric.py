"""Rubric: does an answer meet every required criterion of a checklist?

    rubric = 1 if all required criteria are met (all criteria, when none is required), else 0          range [0, scale]

Higher is better. Optional criteria are judged and reported, and do not decide. What is required is the caller's to say,
never the judge's. The criteria are the scorer's, or else `rubric` in the sample's metadata. Undefined for a sample
without a rubric. One judge call. Source: @mastra/evals, which goes by the judge's copy of the required marks, and makes
the full score of an empty rubric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalstone.errors import ConfigError, OutcomeError
from evalstone.questions.alignment import CheckCriteria, CriterionVerdict
from evalstone.questions.base import Ask
from evalstone.scorers.base import Scorer, listed
from evalstone.scorers.custom.checklist import Criterion, criteria_of
from evalstone.types import Score, Skipped


def meets(criteria: Sequence[Criterion], met: Sequence[bool]) -> bool:
    """Whether every required criterion is met; every one when none is required."""
    deciding = [m for criterion, m in zip(criteria, met, strict=True) if criterion.required]
    return all(deciding or met)


@dataclass(frozen=True, kw_only=True)
class Rubric(Scorer):
    """Whether the answer meets every required criterion.

    criteria: a checklist with one criterion a line, or a list of texts, Criterion values and tables.
    """

    name = "rubric"
    asks = (CheckCriteria,)
    bands = ((1.0, "every required criterion is met"), (0.0, "a required criterion is not met"))
    advice = (
        "The reason names what is not met. A criterion that is often in doubt is often two: write one thing a line, so "
        "that a stranger could tell from the answer alone whether it is there."
    )

    criteria: Sequence[Criterion] | Sequence[str] | str = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "criteria", criteria_of(self.criteria))

    async def score(
        self, ask: Ask, *, output: str, input: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Score | Skipped:
        criteria = criteria_of(self.criteria) or self._of_the_sample(metadata or {})
        if not criteria:
            return Skipped(f"{self.name} needs criteria, or a rubric in metadata")
        described = tuple(criterion.description for criterion in criteria)
        verdicts = await ask(CheckCriteria(criteria=described, task=input or "", answer=output))
        value = self.scale if meets(criteria, [v.met for v in verdicts]) else 0.0
        return Score(value, self.scale, _reason(criteria, verdicts), verdicts)

    def _of_the_sample(self, metadata: Mapping[str, Any]) -> tuple[Criterion, ...]:
        try:
            return criteria_of(metadata.get("rubric") or ())
        except ConfigError as error:
            raise OutcomeError(f"{self.name}: the rubric in metadata: {error}") from None


def _reason(criteria: Sequence[Criterion], verdicts: Sequence[CriterionVerdict]) -> str:
    pairs = list(zip(criteria, verdicts, strict=True))
    told = f"{sum(v.met for v in verdicts)} of {len(verdicts)} criteria are met"
    for required in (True, False):
        if unmet := [v.criterion for c, v in pairs if c.required == required and not v.met]:
            told += f"; {'required' if required else 'optional'} and not met: {listed(unmet)}"
    return told + "."

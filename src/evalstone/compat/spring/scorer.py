"""An evaluator as a scorer: the same question, asked through the run, so that nothing is asked twice."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalstone.compat.spring.base import JudgeEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.questions.base import Ask
from evalstone.scorers.base import ContextScorer, Scorer, changed_fields
from evalstone.types import Score, Skipped

# The prompt is in the signature by its fingerprint; a judge and what becomes of its errors are the run's matter.
UNSIGNED = ("evaluator", "judge", "prompt", "on_error")


@dataclass(frozen=True, kw_only=True)
class EvaluatorScorer(Scorer, ABC):
    """Scores a sample by an evaluator's finding; what the evaluator leaves undecided is Skipped, with its reason.

    A subclass names the sample fields that its evaluator needs. The evaluator's judge is not used.
    """

    evaluator: JudgeEvaluator

    def changed(self) -> Iterator[tuple[str, Any]]:
        """Changed parameters of the scorer and of its evaluator.

        A changed threshold is among them, although the score does not hang on it, for it changes what counts as passed.
        """
        yield from changed_fields(self, UNSIGNED)
        yield from changed_fields(self.evaluator, UNSIGNED)

    def _prompts(self) -> list[Any]:
        explaining = super()._prompts()[len(self.asks) :]
        return [*self.evaluator.prompts, *explaining]

    async def found(self, ask: Ask, request: EvaluationRequest) -> Score | Skipped:
        """The score of a request, or why it has none."""
        found = await self.evaluator.finding(ask, request)
        if found.score is None:
            return Skipped(found.reason)
        return Score(found.score * self.scale, self.scale, found.reason, found.evidence)


@dataclass(frozen=True, kw_only=True)
class ContextEvaluatorScorer(EvaluatorScorer, ContextScorer, ABC):
    """One that looks at passages; they are found as every scorer that needs passages finds them."""

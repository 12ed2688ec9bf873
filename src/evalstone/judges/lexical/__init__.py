"""The lexical judge: offline, free and instant. It only compares words and numbers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from evalstone._core.languages import is_foreign
from evalstone.errors import ConfigError
from evalstone.judges.base import Judge
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question, QuestionSpec
from evalstone.types import Note, Sample, note
from evalstone.types.context_limits import UNLIMITED, ContextLimits
from evalstone.types.sample_language import sample_language

A = TypeVar("A")

# No text is too long, and responses are judged as a whole.
_LIMITS = replace(UNLIMITED, whole=True)


class LexicalJudge(Judge):
    """Answers by comparing words and numbers: offline, deterministic, and free.

    It lists claims and verifies them against passages, estimates the probability that passages support a whole
    response, rates passages, and compares statements with questions and answers with references. Every other question
    raises JudgeDeclined.

    The probability of claim verdicts is that the least certain one is right, assuming that half of all
    claims are supported. A yes or no has one, too. Other answers have none. `card` has the
    measured accuracy. docs/lexical-judge.md describes the limitations.
    """

    cacheable = False
    deterministic = True
    note = (
        "the lexical judge compares words and numbers, not meaning: it cannot see swapped relations, paraphrase in "
        "other words, or small edits that keep the words"
    )

    @property
    def identity(self) -> str:
        return "lexical@7"

    @property
    def context_limits(self) -> ContextLimits:
        return _LIMITS

    @property
    def card(self) -> Mapping[str, Any]:
        """The measured accuracy of this judge, by dataset; docs/lexical-judge.md explains the figures."""
        from evalstone.judges.lexical.model import card  # noqa: PLC0415 - loaded on demand

        return card()

    def cautions(self, samples: Iterable[Sample]) -> tuple[Note, ...]:
        total = foreign = 0
        for sample in samples:
            total += 1
            foreign += is_foreign(sample_language(sample))
        return (note("not_in_english", "warning", samples=foreign, of=total),) if foreign else ()

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        from evalstone.questions.criteria import WriteCriteria  # noqa: PLC0415 - most scorers ask something else

        if any(each.kind == WriteCriteria.kind for each in asked):
            raise ConfigError(
                f"{scorer} asks {WriteCriteria.kind}, and {self.identity} writes no text; name a model, such as "
                "openai/gpt-5.1"
            )

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        from evalstone.judges.lexical.answers import answer_to  # noqa: PLC0415 - slow to import, for runs without it

        started = time.perf_counter()
        value, probability, alternatives = answer_to(question)
        return JudgeAnswer(
            value=question.with_probabilities(value, alternatives) if alternatives else value,
            judge=self.identity,
            seconds=time.perf_counter() - started,
            probability=probability,
            alternatives=alternatives,
        )

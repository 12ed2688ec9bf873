"""The judge that asks nobody: it answers by comparing words and numbers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from evalstone.errors import CannotAnswerError
from evalstone.judges.base import Judge
from evalstone.judges.embedded.claims import list_claims
from evalstone.judges.embedded.index import index
from evalstone.judges.embedded.relevance import find_useful, rate
from evalstone.judges.embedded.verdict import verify
from evalstone.question import Answer, Question
from evalstone.questions.claims import ListClaims, VerifyClaims
from evalstone.questions.relevance import FindUsefulPassages, RatePassages

A = TypeVar("A")


@dataclass(frozen=True)
class EmbeddedJudge(Judge):
    """Answers from the texts alone, offline, the same each time: no model, no network, no cost.

    It lists claims, verifies them against passages, and rates passages by shared words; every other question raises
    CannotAnswerError. confidence: for verified claims, the rough probability that the least certain verdict is right;
    None for the others. docs/embedded-judge.md has its measured accuracy and what it cannot see.
    """

    costly = False
    note = (
        "the embedded judge compares words and numbers, not meaning: it cannot see swapped relations, paraphrase in "
        "other words, or small edits that keep the words"
    )

    @property
    def identity(self) -> str:
        return "embedded@1"

    async def answer(self, question: Question[A]) -> Answer[A]:
        started = time.perf_counter()
        value, confidence = _answer(question)
        seconds = time.perf_counter() - started
        return Answer(value=cast(A, value), judge=self.identity, seconds=seconds, confidence=confidence)


def _answer(question: Question[Any]) -> tuple[Any, float | None]:
    match question:
        case ListClaims(text=text):
            return list_claims(text), None
        case VerifyClaims(claims=claims, context=context):
            prepared = index(tuple(context))
            findings = [verify(claim, prepared) for claim in claims]
            return tuple(one.verdict for one in findings), min((one.confidence for one in findings), default=None)
        case RatePassages(question=asked, answer=given, context=context):
            return rate(asked, given, tuple(context)), None
        case FindUsefulPassages(question=asked, answer=given, context=context):
            return find_useful(asked, given, tuple(context)), None
        case _:
            raise CannotAnswerError(
                f"the embedded judge cannot answer {question.kind} questions; "
                "name a model with --judge, such as openai/gpt-5.1"
            )

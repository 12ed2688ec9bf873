"""The answers of several judges, or of one judge asked several times, put to the vote."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from evalstone.judges.providers.forms import settle_form
from evalstone.judges.voting import VerdictVote, Vote, VoteConfig, VoteResult, settle
from evalstone.questions.base import Answer, Question
from evalstone.questions.custom import AnswerAs

A = TypeVar("A")


def settled(question: Question[A], answers: Sequence[Answer[A]], vote: Vote) -> VoteResult[A]:
    """One answer out of one or more. Raises JudgeDeclined as `voting.settle` does."""
    ballot = VoteConfig(vote, tuple(answer.confidence for answer in answers))
    values = [answer.value for answer in answers]
    if isinstance(question, AnswerAs):
        return settle_form(question, values, ballot)
    return settle(values, ballot)


def confidence_of(verdicts: Sequence[VerdictVote]) -> float | None:
    """How sure the least certain verdict is; None where there are numbers only. Not calibrated."""
    return min((vote.sureness for vote in verdicts if vote.sureness is not None), default=None)


def mean_of(verdicts: Sequence[VerdictVote], field: str) -> float | None:
    """The mean of one figure over the verdicts that have it; None where none has."""
    known = [value for vote in verdicts if (value := getattr(vote, field)) is not None]
    return statistics.fmean(known) if known else None


def told(verdicts: Sequence[VerdictVote]) -> Mapping[str, Any]:
    """How the verdicts came about, as data: the means of agreement and entropy, and each verdict's own figures."""
    return {
        "agreement": mean_of(verdicts, "agreement"),
        "entropy": mean_of(verdicts, "entropy"),
        "verdicts": [{k: v for k, v in dataclasses.asdict(vote).items() if v is not None} for vote in verdicts],
    }

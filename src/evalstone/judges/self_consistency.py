"""One judge asked several times: does it stay with its answer?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from evalstone.errors import ConfigError
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite, ask_all, raise_if_down
from evalstone.judges.logging import LoggingJudge
from evalstone.judges.model import ModelJudge
from evalstone.judges.settings import Range, check_settings, require_judge
from evalstone.questions.base import Answer, Question, is_votable

A = TypeVar("A")


@dataclass(frozen=True)
class SelfConsistency(Composite):
    """A judge that is asked each question `n` times and takes the majority (Wang et al. 2023).

    Each repetition is a call of its own to the ledger, numbered from 0; number 0 is the judge's ordinary answer. Use a
    judge that can differ from itself: a temperature above 0, or a `seed`, of which every repetition takes another
    (seed, seed + 1, …). At temperature 0 only the endpoint's nondeterminism shows. More than half of the repetitions
    must be answered. Questions that can't be voted on (lists, texts) are asked once.

    `Answer.detail` has `flip_rate`: the mean over the verdicts of the share of repetitions that differ from the result,
    in [0, 1], lower is better, None if there are only numbers; `samples`, how many were answered; and what `Panel` has.

    Raises ConfigError for `n` outside [2, 1000] and for a judge that repeats its questions already.
    """

    judge: Judge
    n: Annotated[int, Range(2, 1000)] = 5

    def __post_init__(self) -> None:
        require_judge("judge", self.judge)
        check_settings(self)
        if _repeats(self.judge):
            raise ConfigError(f"{self.judge.identity} repeats its questions already; give it a larger n")
        self.derive()

    @property
    def members(self) -> tuple[Judge, ...]:
        return (self.judge,)

    @property
    def identity(self) -> str:
        return f"self_consistency({self.judge.identity}, n={self.n})"

    @property
    def description(self) -> str:
        same = "; its settings give the same answer each time" if _is_deterministic(self.judge) else ""
        return f"one judge asked {self.n} times, by majority{same}"

    async def decide(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        votable = is_votable(question)
        n = self.n if votable else 1
        answers, errors = await ask_all(ask, [(self.judge, repeat) for repeat in range(n)], question)
        if 2 * len(answers) <= n:
            raise_if_down(errors, needed=n // 2 + 1, asked=n)
            reasons = "; ".join(dict.fromkeys(str(error) for error in errors.values()))
            message = f"{len(answers)} of {n} repetitions were answered ({reasons})"
            raise self.failure(ask, message, list(errors.values()))
        detail = {"kind": "self_consistency", "samples": len(answers)}
        if not votable:
            return self.combined(ask, answers[0].value, answers[0].confidence, detail)
        answer = self.voted(question, ask, answers, vote="majority", detail=detail, errors=errors)
        agreement = (answer.detail or {})["agreement"]
        flip_rate = None if agreement is None else 1 - agreement
        return replace(answer, detail={**(answer.detail or {}), "flip_rate": flip_rate})


def _is_deterministic(judge: Judge) -> bool:
    """Whether nothing in its settings lets a judge's answers differ."""
    if isinstance(judge, LoggingJudge):
        return _is_deterministic(judge.judge)
    if isinstance(judge, ModelJudge):
        return judge.temperature == 0 and judge.seed is None
    return all(map(_is_deterministic, judge.members)) if judge.members else not judge.cacheable


def _repeats(judge: Judge) -> bool:
    return isinstance(judge, SelfConsistency) or any(map(_repeats, judge.members))

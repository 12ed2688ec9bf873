"""One judge asked several times: does it stay with its answer?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from evalstone.errors import ConfigError
from evalstone.judges.ballots import confidence_of, settled, told
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite, Hearing
from evalstone.judges.logging import Wrapped
from evalstone.judges.model import ModelJudge
from evalstone.questions.base import Answer, Question, is_votable

A = TypeVar("A")

MOST = 1000


@dataclass(frozen=True)
class SelfConsistency(Composite):
    """A judge that is asked each question `samples` times and outvotes itself by majority (self-consistency).

    Each repetition is a question of its own to the ledger, under a number from 0; number 0 is the judge's ordinary
    answer, and shared with whoever asks it once. It takes a judge that does not repeat itself: a temperature above 0,
    or a `seed`, of which every repetition takes another (seed, seed + 1, …). At temperature 0 only what the endpoint
    leaves to chance can differ, and that is then what is measured. More than half of the repetitions must be answered.
    What cannot be voted on, lists that the judge makes and texts, is asked once.

    `Answer.detail` has `flip_rate`: the mean over the verdicts of the share of repetitions that differ from the one
    that came out, in [0, 1], lower is better, None where there are only numbers; and what `Panel` has. Source: Wang et
    al. 2023 (self-consistency). Raises ConfigError for less than two samples, and for a judge that repeats already.
    """

    judge: Judge
    samples: int = 5

    def __post_init__(self) -> None:
        judge, samples = cast(object, self.judge), cast(object, self.samples)
        if not isinstance(judge, Judge):
            raise ConfigError(f"SelfConsistency needs a Judge, not {type(judge).__name__}")
        if isinstance(samples, bool) or not isinstance(samples, int) or not 2 <= samples <= MOST:
            raise ConfigError(f"samples must be a whole number from 2 to {MOST}, not {samples!r}")
        if _repeats(judge):
            raise ConfigError(f"{judge.identity} repeats its questions already; give it more samples")
        self.settled()

    @property
    def members(self) -> tuple[Judge, ...]:
        return (self.judge,)

    @property
    def identity(self) -> str:
        return f"self_consistency({self.judge.identity}, samples={self.samples})"

    @property
    def manner(self) -> str:
        same = "; it gives the same answer each time, but for chance at its endpoint" if _is_steady(self.judge) else ""
        return f"one judge asked {self.samples} times, by majority{same}"

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        hearing = Hearing(self, ask)
        votable = is_votable(question)
        asked = self.samples if votable else 1
        answers, silent = await hearing.ask_all([(self.judge, number) for number in range(asked)], question)
        if 2 * len(answers) <= asked:
            hearing.end_below(asked // 2 + 1, asked, silent)
            why = "; ".join(dict.fromkeys(str(error) for error in silent.values()))
            raise hearing.failure(f"{len(answers)} of {asked} repetitions were answered ({why})", list(silent.values()))
        if not votable:
            detail = {"kind": "self_consistency", "samples": 1}
            return hearing.answered(answers[0].value, confidence=answers[0].confidence, detail=detail)
        found = settled(question, answers, "majority")
        voted = told(found.verdicts)
        flips = None if voted["agreement"] is None else 1 - voted["agreement"]
        detail = {"kind": "self_consistency", "samples": len(answers), "flip_rate": flips, **voted}
        if silent:
            detail["silent"] = {name: str(error) for name, error in silent.items()}
        return hearing.answered(found.value, confidence=confidence_of(found.verdicts), detail=detail)


def _is_steady(judge: Judge) -> bool:
    """Whether nothing in its settings lets the judge's answers differ."""
    if isinstance(judge, Wrapped):
        return _is_steady(judge.judge)
    if isinstance(judge, ModelJudge):
        return judge.temperature == 0 and judge.seed is None
    return all(map(_is_steady, judge.members)) if judge.members else not judge.cacheable


def _repeats(judge: Judge) -> bool:
    return isinstance(judge, SelfConsistency) or any(map(_repeats, judge.members))

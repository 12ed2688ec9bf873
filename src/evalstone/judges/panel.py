"""A panel: several judges answer the same question, and vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

from evalstone.errors import ConfigError, JudgeError, JudgeUnavailable
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite, ask_all, raise_if_down, silent_detail
from evalstone.judges.providers.limits import NO_LIMITS, Limits
from evalstone.judges.settings import Range, check_settings, require_judge
from evalstone.judges.voting import Vote
from evalstone.questions.base import Answer, Question, is_votable

A = TypeVar("A")

_DESCRIPTIONS = {
    "majority": "by majority; a tie goes to the less favorable verdict",
    "mean": "by mean probability; a tie goes to the less favorable verdict",
    "unanimous": "where one unfavorable verdict is enough",
}


@dataclass(frozen=True, init=False, repr=False)
class Panel(Composite):
    """Several judges that vote: `Panel(ModelJudge("openai/gpt-5.1"), LexicalJudge(), vote="majority")`.

    Questions that can't be voted on (they ask for a list, such as claims, or for text) go to the first member alone,
    and to the next if it gives no answer, so that all later questions are about one list.

    The answer's confidence is the smallest share of members that agree on a verdict (the smallest mean probability if
    the vote is by that), in [0, 1], not calibrated; None if there are only numbers. `Answer.detail` has `vote`,
    `agreement` and `entropy` (means over the verdicts, in [0, 1] and in bits), `verdicts` with the votes for each, and
    `silent`: who gave no answer, and why.

    Raises ConfigError for fewer than two judges, two equal ones, an unknown vote, or a quorum beyond their number.
    """

    judges: tuple[Judge, ...]
    """Two or more, no two the same."""

    vote: Vote
    """"majority", "mean" or "unanimous", verdict by verdict; judges/voting.py defines ties and numbers. "unanimous"
    gives a favorable verdict only if every member that answered gave it."""

    quorum: Annotated[int | None, Range(1)]
    """How many members must answer; None for more than half, and for all if the vote is unanimous. With fewer the
    question fails, or is skipped if all the others declined."""

    def __init__(
        self, *judges: Judge, vote: Vote = "majority", quorum: int | None = None, limits: Limits = NO_LIMITS
    ) -> None:
        for name, value in (("judges", judges), ("vote", vote), ("quorum", quorum), ("limits", limits)):
            object.__setattr__(self, name, value)
        self._check()
        self.derive()

    def _check(self) -> None:
        for number, judge in enumerate(self.judges, start=1):
            require_judge(f"judge {number} of a panel", judge)
        names = [judge.identity for judge in self.judges]
        if len(names) < 2:
            raise ConfigError(f"a panel needs two judges or more, not {len(names)}")
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"{repeated[0]} is twice in the panel; SelfConsistency asks one judge several times")
        check_settings(self)
        if self.quorum is not None and self.quorum > len(names):
            raise ConfigError(f"quorum must be from 1 to {len(names)}, the number of judges, not {self.quorum}")

    def __repr__(self) -> str:
        quorum = "" if self.quorum is None else f", quorum={self.quorum}"
        return f"Panel({', '.join(map(repr, self.judges))}, vote={self.vote!r}{quorum})"

    @property
    def members(self) -> tuple[Judge, ...]:
        return self.judges

    @property
    def identity(self) -> str:
        """The members' identities, the vote, and the quorum if it was set."""
        quorum = "" if self.quorum is None else f", quorum={self.quorum}"
        return f"panel({', '.join(judge.identity for judge in self.judges)}, vote={self.vote}{quorum})"

    @property
    def description(self) -> str:
        return f"a panel of {len(self.judges)} judges, {_DESCRIPTIONS[self.vote]}"

    @property
    def needed(self) -> int:
        """How many members must answer."""
        if self.quorum is not None:
            return self.quorum
        return len(self.judges) if self.vote == "unanimous" else len(self.judges) // 2 + 1

    async def decide(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        if not is_votable(question):
            return await self._first_answer(question, ask)
        answers, errors = await ask_all(ask, [(judge, 0) for judge in self.judges], question)
        if len(answers) < self.needed:
            raise_if_down(errors, needed=self.needed, asked=len(self.judges))
            reasons = "; ".join(f"{name}: {error}" for name, error in errors.items())
            message = f"{len(answers)} of {len(self.judges)} judges answered, {self.needed} are needed ({reasons})"
            raise self.failure(ask, message, list(errors.values()))
        detail = {"kind": "panel", "vote": self.vote, "answered": len(answers)}
        return self.voted(question, ask, answers, vote=self.vote, detail=detail, errors=errors)

    async def _first_answer(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        errors: dict[str, JudgeError | JudgeUnavailable] = {}
        for judge in self.judges:
            answers, error = await ask_all(ask, [(judge, 0)], question)
            if answers:
                detail = {"kind": "panel", "vote": "none", "answered": 1, "spoke": judge.identity}
                first = answers[0]
                return self.combined(ask, first.value, first.confidence, {**detail, **silent_detail(errors)})
            errors.update(error)
        raise_if_down(errors, needed=1, asked=len(self.judges))
        reasons = "; ".join(f"{name}: {error}" for name, error in errors.items())
        message = f"none of {len(self.judges)} judges answered ({reasons})"
        raise self.failure(ask, message, list(errors.values()))

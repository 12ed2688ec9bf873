"""A panel: several judges answer the same question, and vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, JudgeUnavailable
from evalstone.judges.ballots import confidence_of, settled, told
from evalstone.judges.base import AskJudge, Judge
from evalstone.judges.composite import Composite, Hearing
from evalstone.judges.voting import VOTES, Vote
from evalstone.questions.base import Answer, Question, is_votable

A = TypeVar("A")


@dataclass(frozen=True, init=False, repr=False)
class Panel(Composite):
    """Several judges that vote: `Panel(ModelJudge("openai/gpt-5.1"), LexicalJudge(), vote="majority")`.

    judges: two or more, no two the same. vote: "majority", "mean" or "unanimous", verdict by verdict, with ties and
    numbers as judges/voting.py defines them; "unanimous" gives a favourable verdict only when every member that
    answered gave it. quorum: how many members must answer; None for more than half, and for all where the vote is
    unanimous. With fewer the question fails, and is skipped where all the others declined.

    What cannot be voted on (lists that a judge makes, such as claims, and texts) is asked of the first member alone,
    and of the next when it gives no answer, so that all later questions are about one list.

    The answer's confidence is the least share of members that agrees on a verdict (the least mean probability where
    the vote is by that), in [0, 1], not calibrated; None where there are only numbers.

    `Answer.detail` has `vote`, `agreement` and `entropy` (the means over the verdicts, in [0, 1] and in bits),
    `verdicts` with the votes for each, and `silent`: who did not answer, and why. Raises ConfigError for fewer than two
    judges, two equal ones, an unknown vote, or a quorum that no vote can reach.
    """

    judges: tuple[Judge, ...]
    vote: Vote
    quorum: int | None

    def __init__(self, *judges: Judge, vote: Vote = "majority", quorum: int | None = None) -> None:
        _check(judges, vote, quorum)
        object.__setattr__(self, "judges", tuple(judges))
        object.__setattr__(self, "vote", vote)
        object.__setattr__(self, "quorum", quorum)
        self.settled()

    def __repr__(self) -> str:
        quorum = "" if self.quorum is None else f", quorum={self.quorum}"
        return f"Panel({', '.join(map(repr, self.judges))}, vote={self.vote!r}{quorum})"

    @property
    def members(self) -> tuple[Judge, ...]:
        return self.judges

    @property
    def identity(self) -> str:
        """The members' identities, the vote, and the quorum where it is your own."""
        quorum = "" if self.quorum is None else f", quorum={self.quorum}"
        return f"panel({', '.join(judge.identity for judge in self.judges)}, vote={self.vote}{quorum})"

    @property
    def manner(self) -> str:
        return f"a panel of {len(self.judges)} judges, {_MANNERS[self.vote]}"

    @property
    def needed(self) -> int:
        """How many members must answer."""
        if self.quorum is not None:
            return self.quorum
        return len(self.judges) if self.vote == "unanimous" else len(self.judges) // 2 + 1

    async def combine(self, question: Question[A], ask: AskJudge) -> Answer[A]:
        hearing = Hearing(self, ask)
        if not is_votable(question):
            return await _first(hearing, self.judges, question)
        answers, silent = await hearing.ask_all([(judge, 0) for judge in self.judges], question)
        if len(answers) < self.needed:
            hearing.end_below(self.needed, len(self.judges), silent)
            why = "; ".join(f"{name}: {error}" for name, error in silent.items())
            said = f"{len(answers)} of {len(self.judges)} judges answered, {self.needed} are needed ({why})"
            raise hearing.failure(said, list(silent.values()))
        try:
            found = settled(question, answers, self.vote)
        except JudgeDeclined as error:
            raise hearing.failure(str(error), [error]) from None
        detail = {"kind": "panel", "vote": self.vote, "answered": len(answers), **told(found.verdicts)}
        if silent:
            detail["silent"] = {name: str(error) for name, error in silent.items()}
        return hearing.answered(found.value, confidence=confidence_of(found.verdicts), detail=detail)


_MANNERS = {
    "majority": "by majority; a tie goes to the less favourable verdict",
    "mean": "by mean probability; a tie goes to the less favourable verdict",
    "unanimous": "where one unfavourable verdict is enough",
}


async def _first(hearing: Hearing, judges: Sequence[Judge], question: Question[A]) -> Answer[A]:
    """The answer of the first judge that gives one."""
    silent: dict[str, JudgeError | JudgeUnavailable] = {}
    for judge in judges:
        answers, mute = await hearing.ask_all([(judge, 0)], question)
        if answers:
            detail: dict[str, Any] = {"kind": "panel", "vote": "none", "answered": 1, "spoke": judge.identity}
            if silent:
                detail["silent"] = {name: str(error) for name, error in silent.items()}
            return hearing.answered(answers[0].value, confidence=answers[0].confidence, detail=detail)
        silent.update(mute)
    hearing.end_below(1, len(judges), silent)
    why = "; ".join(f"{name}: {error}" for name, error in silent.items())
    raise hearing.failure(f"none of {len(judges)} judges answered ({why})", list(silent.values()))


def _check(judges: Sequence[object], vote: object, quorum: object) -> None:
    for place, judge in enumerate(judges, start=1):
        if not isinstance(judge, Judge):
            told = "parse_judge reads names and tables" if isinstance(judge, str) else f"not {type(judge).__name__}"
            raise ConfigError(f"judge {place} of a panel must be a Judge: {told}")
    names = [judge.identity for judge in cast("Sequence[Judge]", judges)]
    if len(names) < 2:
        raise ConfigError(f"a panel needs two judges or more, not {len(names)}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{twice[0]} is twice in the panel; to ask one judge several times, take SelfConsistency")
    if vote not in VOTES:
        raise ConfigError(f"vote must be {', '.join(VOTES)}, not {vote!r}")
    if quorum is not None and (isinstance(quorum, bool) or not isinstance(quorum, int)):
        raise ConfigError(f"quorum must be a whole number or None, not {quorum!r}")
    if quorum is not None and not 1 <= quorum <= len(names):
        raise ConfigError(f"quorum must be from 1 to {len(names)}, the number of judges, not {quorum}")

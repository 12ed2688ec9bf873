"""Composite judges: their shared base class, panels, and self-consistency.

A composite judge needs what its members need, such as API keys. Its answers contain every member call.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from typing import Annotated, Any, TypeVar

from evalstone._core.declarations import Range, check_settings
from evalstone.errors import (
    ConfigError,
    JudgeDeclined,
    JudgeError,
    JudgeUnavailable,
    ProviderError,
    ReplyError,
    RunAborted,
    invalid,
)
from evalstone.judges.base import Judge, JudgeSpec, MemberCalls, leaves
from evalstone.judges.logging import LoggingJudge
from evalstone.judges.model import ModelJudge
from evalstone.judges.parse import parse_member
from evalstone.judges.voting import Vote, answer_probability, elect, vote_detail
from evalstone.models.limits import NO_LIMITS, Limits, shared_limiter
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question, QuestionSpec, is_votable
from evalstone.types import CallSource, JudgeCall, Usage, total_cost
from evalstone.types.context_limits import ContextLimits, narrowest

A = TypeVar("A")
Errors = Mapping[str, JudgeError | JudgeUnavailable]
"""The errors of the members that gave no answer, by name."""


class Composite(Judge):
    """A judge that calls other judges and combines their answers. It is a frozen value, like its members.

    Usage, cost and calls of an answer are the sum over the members. In a run, each member's answers are cached
    separately, so changing the vote or the threshold needs no new calls.
    """

    limits: Limits = field(default=NO_LIMITS, kw_only=True, compare=False, repr=False)
    """Limits on the composite judge as a whole. Token limits belong to its members."""

    @property
    @abstractmethod
    def description(self) -> str:
        """One phrase for reports: how the members' answers are combined."""

    @abstractmethod
    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        """Combine the members' answers. Called within the limits."""

    def derive(self, *members: Judge) -> None:
        """Set the members and the attributes derived from them. Call it last in `__post_init__`."""
        object.__setattr__(self, "members", members)
        notes = dict.fromkeys(leaf.note for leaf in leaves(self) if leaf.note)
        object.__setattr__(self, "cacheable", any(leaf.cacheable for leaf in leaves(self)))
        object.__setattr__(self, "deterministic", all(leaf.deterministic for leaf in leaves(self)))
        object.__setattr__(self, "note", "; ".join([self.description, *notes]))

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        async with self.opened():
            return await self.combine(question, MemberCalls(repeat=repeat))

    async def combine(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        if self.limits == NO_LIMITS:
            return await self.decide(question, ask)
        async with self.limits.admitted(self.identity):
            return await self.decide(question, ask)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(shared_limiter(self.identity, self.limits))
            for member in self.members:
                await stack.enter_async_context(member.opened())
            yield

    @property
    def context_limits(self) -> ContextLimits:
        """The limits that every member accepts."""
        return narrowest(*(member.context_limits for member in self.members))

    def check(self) -> None:
        for member in self.members:
            member.check()

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        refused: list[ConfigError] = []
        for member in self.members:
            try:
                member.check_questions(scorer, asked)
            except ConfigError as error:
                refused.append(error)
        if refused and len(refused) == len(self.members):
            raise refused[0]

    def price(self, usage: Usage) -> float | None:
        """The sum of the members' prices."""
        return total_cost(member.price(usage) for member in self.members)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(secret for member in self.members for secret in member.secrets))

    def combined(
        self,
        ask: MemberCalls,
        value: A,
        probability: float | None,
        detail: Mapping[str, Any],
        used: Sequence[JudgeAnswer[A]] = (),
    ) -> JudgeAnswer[A]:
        """An answer with the usage, cost and calls recorded so far.

        used: the members' answers that the value comes from. It lacks the items that were dropped from them.
        """
        dropped = [item for answer in used for item in (answer.detail or {}).get("dropped", ())]
        return JudgeAnswer(
            value=value,
            judge=self.identity,
            probability=probability,
            source=_source(ask.calls),
            detail={**detail, "dropped": dropped} if dropped else detail,
            **ask.totals(),
        )

    def voted(
        self,
        question: Question[A],
        ask: MemberCalls,
        answers: Sequence[JudgeAnswer[A]],
        *,
        vote: Vote,
        detail: Mapping[str, Any],
        errors: Errors,
    ) -> JudgeAnswer[A]:
        """The result of a vote on several answers. Raises JudgeDeclined if the vote has no result."""
        try:
            result = elect(question, answers, vote)
        except JudgeDeclined as error:
            raise self.failure(ask, str(error), [error]) from None
        detail = {**detail, **vote_detail(result.verdicts), **_no_answer(errors)}
        closest = answers[result.agreeing.index(max(result.agreeing))]
        return self.combined(ask, result.value, answer_probability(result.verdicts), detail, [closest])

    def failure(self, ask: MemberCalls, message: str, errors: Sequence[Exception]) -> JudgeError:
        """The members' errors as one: of their common type, such as JudgeDeclined, or else JudgeError."""
        kinds = (JudgeDeclined, ProviderError, ReplyError)
        kind = next((kind for kind in kinds if all(isinstance(error, kind) for error in errors)), JudgeError)
        replies = [error.reply for error in errors if isinstance(error, JudgeError) and error.reply is not None]
        return kind(message, reply=replies[-1] if replies else None, **ask.totals())

    def too_few(
        self, ask: MemberCalls, message: str, errors: Errors, *, needed: int, asked: int
    ) -> JudgeError | JudgeUnavailable:
        """The error for too few answers: JudgeUnavailable if too few members are still up, else all errors as one."""
        down = [error for error in errors.values() if isinstance(error, JudgeUnavailable)]
        return down[0] if asked - len(down) < needed else self.failure(ask, message, list(errors.values()))


async def ask_all(
    ask: MemberCalls, calls: Sequence[tuple[Judge, int]], question: Question[A]
) -> tuple[list[JudgeAnswer[A]], Errors]:
    """Call several members, or one member several times, concurrently. Returns the answers in order, and the errors.

    A member that is down counts as an error. Any other error that ends a run is raised after all calls have ended;
    ConfigError is raised immediately.
    """
    tasks = [asyncio.ensure_future(_answer_or_error(ask, judge, question, repeat)) for judge, repeat in calls]
    try:
        results = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    order = {(judge.identity, ask.repeat + repeat): index for index, (judge, repeat) in enumerate(calls)}
    ask.calls.sort(key=lambda call: order.get((call.judge, call.repeat_index), -1))
    answers = [result for result in results if isinstance(result, JudgeAnswer)]
    errors: dict[str, JudgeError | JudgeUnavailable] = {}
    for (judge, repeat), result in zip(calls, results, strict=True):
        if isinstance(result, JudgeError | JudgeUnavailable):
            errors[f"{judge.identity} #{repeat}" if repeat else judge.identity] = result
        elif isinstance(result, Exception):
            raise result
    return answers, errors


async def _answer_or_error(
    ask: MemberCalls, judge: Judge, question: Question[A], repeat: int
) -> JudgeAnswer[A] | Exception:
    try:
        return await ask(judge, question, repeat)
    except (JudgeError, RunAborted) as error:
        return error


def _source(calls: Sequence[JudgeCall]) -> CallSource:
    """The source of a combined answer: asked if a member was asked, and cached if the answers of all members were."""
    sources = {call.source for call in calls}
    return "asked" if "asked" in sources or not sources else "shared" if "shared" in sources else "cached"


def _no_answer(errors: Errors) -> dict[str, Any]:
    """The members that gave no answer, and why, for an answer's detail."""
    return {"no_answer": {name: str(error) for name, error in errors.items()}} if errors else {}


def _reasons(errors: Errors) -> str:
    return "; ".join(f"{name}: {error}" for name, error in errors.items())


_DESCRIPTIONS = {
    "majority": "by majority; a tie goes to the less favorable verdict",
    "mean": "by mean probability; a tie goes to the less favorable verdict",
    "unanimous": "where one unfavorable verdict is enough",
}


class Panel(Composite, init=False):
    """Several judges that vote: `Panel(ModelJudge("openai/gpt-5.1"), LexicalJudge(), vote="majority")`.

    Questions that ask for a list (such as claims) or for text can't be voted on. Only the first member answers them, or
    the next one if it fails, so all members judge the same list.

    The answer's probability is the lowest agreement over its verdicts, or the lowest mean probability with vote="mean".
    It is in [0, 1] and not calibrated; None if the answer contains only numbers.

    `JudgeAnswer.detail` contains:

    - `vote`: the voting rule
    - `agreement`: the mean agreement over the verdicts, in [0, 1], higher is better
    - `entropy`: the mean entropy over the verdicts, in bits, lower is better
    - `verdicts`: the votes for each verdict
    - `no_answer`: the members that gave no answer, and why

    Raises ConfigError for fewer than two judges, two equal judges, an unknown vote, or a quorum larger than the panel.
    """

    asks_at_once = True

    judges: tuple[Judge, ...]
    """At least two judges, all different."""

    vote: Vote
    """"majority", "mean" or "unanimous". Each verdict is voted on separately; judges/voting.py defines how ties and
    numbers are handled. "unanimous" is favorable only if every member that answered agrees."""

    quorum: Annotated[int | None, Range(1)]
    """How many members must answer. None requires more than half, or all if the vote is unanimous. If fewer answer, the
    question fails, or is skipped if all other members declined."""

    def __init__(
        self, *judges: JudgeSpec, vote: Vote = "majority", quorum: int | None = None, limits: Limits = NO_LIMITS
    ) -> None:
        vars(self).update(judges=judges, vote=vote, quorum=quorum, limits=limits)
        members = tuple(
            parse_member(f"judge {number} of a panel", judge) for number, judge in enumerate(judges, start=1)
        )
        object.__setattr__(self, "judges", members)
        names = [judge.identity for judge in self.judges]
        if len(names) < 2:
            raise ConfigError(f"a panel needs at least two judges, not {len(names)}")
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ConfigError(
                f"{repeated[0]} appears twice in the panel; use SelfConsistency to ask one judge several times"
            )
        check_settings(self)
        if self.quorum is not None and self.quorum > len(names):
            raise ConfigError(invalid("quorum", f"from 1 to {len(names)}, the number of judges", self.quorum))
        self.derive(*self.judges)

    def __repr__(self) -> str:
        quorum = "" if self.quorum is None else f", quorum={self.quorum}"
        return f"Panel({', '.join(map(repr, self.judges))}, vote={self.vote!r}{quorum})"

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

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        by_vote: dict[bool, list[QuestionSpec]] = {True: [], False: []}
        for each in asked:
            by_vote[is_votable(each)].append(each)
        for judge in self.judges:
            judge.check_questions(scorer, by_vote[True])
        for each in by_vote[False]:
            super().check_questions(scorer, [each])

    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        if not is_votable(question):
            return await self._first_answer(question, ask)
        answers, errors = await ask_all(ask, [(judge, 0) for judge in self.judges], question)
        if len(answers) < self.needed:
            counts = f"{len(answers)} of {len(self.judges)} judges answered, {self.needed} are required"
            message = f"{counts} ({_reasons(errors)})"
            raise self.too_few(ask, message, errors, needed=self.needed, asked=len(self.judges))
        detail = {"kind": "panel", "vote": self.vote, "answered": len(answers)}
        return self.voted(question, ask, answers, vote=self.vote, detail=detail, errors=errors)

    async def _first_answer(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        errors: dict[str, JudgeError | JudgeUnavailable] = {}
        for judge in self.judges:
            answers, error = await ask_all(ask, [(judge, 0)], question)
            if answers:
                detail = {"kind": "panel", "vote": "none", "answered": 1, "answered_by": judge.identity}
                detail |= _no_answer(errors)
                return self.combined(ask, answers[0].value, answers[0].probability, detail, answers)
            errors.update(error)
        message = f"none of {len(self.judges)} judges answered ({_reasons(errors)})"
        raise self.too_few(ask, message, errors, needed=1, asked=len(self.judges))


class SelfConsistency(Composite, init=False):
    """Asks a judge each question `repeats` times and takes the majority (Wang et al. 2023).

    Use a judge whose answers can vary: set a temperature above 0, or a `seed`. Each repetition then uses its own seed
    (seed, seed + 1, …). At temperature 0, only the nondeterminism of the endpoint is measured.

    Each repetition is cached separately, numbered from 0. Number 0 is the judge's ordinary answer. More than half of
    the repetitions must be answered. Questions that can't be voted on (lists, texts) are asked once.

    `JudgeAnswer.detail` contains the entries of `Panel`, and:

    - `flip_rate`: the share of repetitions that differ from the result, as a mean over the verdicts. In [0, 1], lower
      is better; None if the answer contains only numbers.
    - `samples`: the number of repetitions that were answered

    Raises ConfigError for `repeats` outside [2, 1000] and for a judge that already repeats its questions.
    """

    asks_at_once = True

    judge: Judge
    repeats: Annotated[int, Range(2, 1000)] = 5

    def __init__(self, judge: JudgeSpec, repeats: int = 5, *, limits: Limits = NO_LIMITS) -> None:
        vars(self).update(judge=judge, repeats=repeats, limits=limits)
        object.__setattr__(self, "judge", parse_member("judge", judge))
        check_settings(self)
        if _repeats(self.judge):
            raise ConfigError(f"{self.judge.identity} already repeats its questions; raise its repeats instead")
        self.derive(self.judge)

    @property
    def identity(self) -> str:
        return f"self_consistency({self.judge.identity}, repeats={self.repeats})"

    @property
    def description(self) -> str:
        same = "; its settings make it give the same answer each time" if _is_deterministic(self.judge) else ""
        return f"one judge asked {self.repeats} times, by majority{same}"

    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        votable = is_votable(question)
        n = self.repeats if votable else 1
        first = ask.repeat * (n - 1)  # `ask` adds ask.repeat, so repetition 1 of this judge starts at n
        answers, errors = await ask_all(ask, [(self.judge, first + repeat) for repeat in range(n)], question)
        if 2 * len(answers) <= n:
            reasons = "; ".join(dict.fromkeys(map(str, errors.values())))
            message = f"{len(answers)} of {n} repetitions were answered ({reasons})"
            raise self.too_few(ask, message, errors, needed=n // 2 + 1, asked=n)
        detail = {"kind": "self_consistency", "samples": len(answers)}
        if not votable:
            return self.combined(ask, answers[0].value, answers[0].probability, detail, answers)
        answer = self.voted(question, ask, answers, vote="majority", detail=detail, errors=errors)
        votes = answer.detail or {}
        flip_rate = None if votes["agreement"] is None else 1 - votes["agreement"]
        return replace(answer, detail={**votes, "flip_rate": flip_rate})


def _is_deterministic(judge: Judge) -> bool:
    """Whether a judge's settings leave no room for different answers."""
    if isinstance(judge, LoggingJudge):
        return _is_deterministic(judge.judge)
    if isinstance(judge, ModelJudge):
        return judge.temperature == 0 and judge.seed is None
    return all(map(_is_deterministic, judge.members)) if judge.members else judge.deterministic


def _repeats(judge: Judge) -> bool:
    return isinstance(judge, SelfConsistency) or any(map(_repeats, judge.members))

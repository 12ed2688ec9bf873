"""Dry run: what a run would ask and cost, worked out without asking.

The scorers run for real, with stand-in answers: the lexical judge's where it can answer a question, otherwise an
example of usual length. Tokens are estimated at four bytes each.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone.errors import JudgeDeclined, JudgeError
from evalstone.judges.base import Judge
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.ledger.base import Key, chunks, is_there, target_scope
from evalstone.questions.base import JudgeAnswer, Question
from evalstone.results.summary import scorer_titles
from evalstone.run.answers import answer_key
from evalstone.run.budget import estimated_usage
from evalstone.run.conversations import is_conversation, unanswerable
from evalstone.run.plan import FILLED, Plan, scorer_info
from evalstone.run.runner import score_sample
from evalstone.run.session import InflightCall, Session, read_stored
from evalstone.scorers import Scorer
from evalstone.targets.base import conversation
from evalstone.types import Failed, Message, Sample, Skipped, Usage, total_cost

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

A = TypeVar("A")

SECONDS_PER_CALL = 2.0
KEYS_PER_READ = 1000
_CALL = {"seconds": 0.0, "cost": 0.0, "usage": {"input": 0, "output": 0}}
"""What stands in for what a target's call takes."""


def _repeated(usage: Usage, times: int) -> Usage:
    return Usage(usage.input * times, usage.output * times, usage.cached * times, usage.requests * times)


@dataclass
class ScorerEstimate:
    """What one scorer would ask."""

    name: str
    calls: int = 0
    """Judge calls that would be made."""
    answered: int = 0
    """Questions that the ledger answers."""
    shared: int = 0
    """Questions that another scorer or sample asks as well."""
    skipped: int = 0
    """Samples that it would skip; if a target answers, those that lack what no answer holds."""
    open: int = 0
    """Samples whose calls depend on what the target's answer holds, so that they are not estimated; not multiplied by
    the trials."""
    open_reason: str = ""
    """Of the first of them, such as the field that is absent so far."""
    failed: int = 0
    error: str = ""
    """Of the first that failed, such as a question that is too long for the judge."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of the calls."""
    kinds: set[str] = field(default_factory=set[str])
    """The kinds of question of the calls."""

    def repeat(self, times: int) -> None:
        """Count everything so many times."""
        for name in ("calls", "answered", "shared", "skipped", "failed"):
            setattr(self, name, getattr(self, name) * times)
        self.usage = _repeated(self.usage, times)


@dataclass
class JudgeEstimate:
    """What one judge would be asked: a model, the lexical judge, or a member of a composite judge."""

    judge: str
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    """US dollars; None when the price is unknown."""

    def repeat(self, times: int) -> None:
        """Count everything so many times."""
        self.calls *= times
        self.usage = _repeated(self.usage, times)
        self.cost = None if self.cost is None else self.cost * times


@dataclass(frozen=True)
class Estimate:
    """What a run would ask and cost."""

    judge: str
    """The judges that the scorers ask, comma-separated; "none" if they ask none."""
    samples: int
    scorers: tuple[ScorerEstimate, ...]
    judges: tuple[JudgeEstimate, ...]
    """Every judge that would be called, members of composite judges by themselves, in the order of the first call."""
    kinds: Mapping[str, int]
    """Calls by kind of question."""
    target_calls: int = 0
    """How often the target would be called."""
    target_answers: int = 0
    """How many of its answers are in the ledger."""
    without_stand_in: int = 0
    """How many samples have neither an output nor a reference to stand in for the target's answer. Their judge calls
    are not counted."""

    def seconds(self, concurrency: int) -> float:
        """How long the calls would take, at SECONDS_PER_CALL each; a scorer's kinds of question follow each other."""
        rounds = max((len(scorer.kinds) for scorer in self.scorers), default=0)
        return SECONDS_PER_CALL * max(self.calls / concurrency, rounds)

    @property
    def cost(self) -> float | None:
        """US dollars; None when a price is unknown, 0 when the judges are free."""
        return total_cost(judge.cost for judge in self.judges)

    @property
    def calls(self) -> int:
        """Judge calls that would be made; those of free judges only count where no other judge could be asked."""
        return sum(scorer.calls for scorer in self.scorers)

    @property
    def usage(self) -> Usage:
        """Tokens of the calls."""
        return sum((scorer.usage for scorer in self.scorers), Usage())


async def estimate(plan: Plan, *, ledger: str | Path | None = None) -> Estimate:
    """Estimate a plan. The ledger is only read, and only when it exists.

    What a target would answer is not known: the output that a sample has, or else its reference, stands in for it, in
    each trial. Stored answers of judges then count for nothing, for they are about other texts.

    Raises:
        ConfigError: For a plan that cannot run.
    """
    plan.check(asking=False)
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

    store = Ledger(ledger) if ledger is not None and is_there(ledger) else None
    try:
        session = _DryRunSession(plan, store if plan.target is None else None)
        titles = scorer_titles([scorer_info(scorer) for scorer in plan.scorers])
        lines = tuple(ScorerEstimate(titles[scorer.signature]) for scorer in plan.scorers)
        unknown = 0
        for sample in plan.dataset:
            work = list(zip(plan.scorers, lines, strict=True))
            if plan.target is not None:
                work = [(scorer, line) for scorer, line in work if not _skips(scorer, sample, line) and scorer.may_ask]
                sample = _answered(sample)
                if sample.output is None and all(turn.output is None for turn in sample.turns):
                    unknown += 1
                    continue
            for scorer, line in work:
                await session.score(scorer, sample, line)
            await asyncio.sleep(0)
        calls, answers = _target_calls(plan, store)
    finally:
        if store is not None:
            store.close()
    for each in (*lines, *session.judges.values()):
        each.repeat(plan.trials)
    kinds = {kind: number * plan.trials for kind, number in session.kinds.items()}
    judges = tuple(session.judges.values())
    named = [judge.identity for judge in plan.asked_judges] or [judge.judge for judge in judges] or ["none"]
    return Estimate(", ".join(named), len(plan.dataset), lines, judges, kinds, calls, answers, unknown)


def _turns(plan: Plan, sample: Sample) -> int:
    """How often a trial of a sample would call the target, at most."""
    if plan.target is None or unanswerable(plan.target, plan.user, sample):
        return 0
    if plan.target.holds_conversations or not is_conversation(sample, plan.user):
        return 1
    return len(sample.turns) or (1 if plan.user is None else plan.user.max_turns)


def _skips(scorer: Scorer, sample: Sample, line: ScorerEstimate) -> bool:
    """Whether a scorer skips a sample whatever the target answers; counts it."""
    skips = not scorer.extracts and any(name not in FILLED for name in scorer.absent(scorer.values(sample)))
    line.skipped += skips
    return skips


def _target_calls(plan: Plan, store: Ledger | None) -> tuple[int, int]:
    """How often a run would call the target, at most, and how many answers the ledger has in place of calls."""
    target = plan.target
    if target is None:
        return 0, 0
    run = "" if target.version or store is None else store.unfinished(plan.fingerprint)
    scope, user = target_scope(target.identity, run or ""), "" if plan.user is None else plan.user.identity
    calls = answers = 0
    for some in chunks(plan.cases(), KEYS_PER_READ):
        keys = [answer_key(sample, target.inputs, scope, user) for sample in some]
        found = store.answers_to(keys) if store is not None and run is not None else {}
        answers += len(found)
        calls += sum(_turns(plan, sample) for sample, key in zip(some, keys, strict=True) if key not in found)
    return calls, answers


def _answered(sample: Sample) -> Sample:
    """A sample as if its target had answered: with its own output, else its reference, else that of the last turn, and
    the conversation that ends with it."""
    turns = tuple(map(_answered, sample.turns))
    texts = (sample.output, sample.reference, *(turn.output for turn in turns[-1:]))
    output = next((text for text in texts if text is not None), None)
    messages = tuple(message for turn in turns for message in turn.messages)
    if not messages and output is not None:
        messages = (*conversation(sample), Message(role="assistant", content=output))
    call = {**sample.metadata, "target": _CALL}
    return replace(sample, output=output, messages=messages or sample.messages, turns=turns, metadata=call)


def by_judge(estimates: Iterable[Estimate]) -> list[JudgeEstimate]:
    """What each judge would be asked in all of several runs."""
    found: dict[str, JudgeEstimate] = {}
    for one in (judge for estimate in estimates for judge in estimate.judges):
        so_far = found.get(one.judge, JudgeEstimate(one.judge))
        cost = total_cost((so_far.cost, one.cost))
        found[one.judge] = JudgeEstimate(one.judge, so_far.calls + one.calls, so_far.usage + one.usage, cost)
    return list(found.values())


class _DryRunSession(Session):
    """A session whose calls are counted and answered by a stand-in.

    A panel asks each of its members, and a cascade asks its fallback wherever the confidence of the primary is not
    known beforehand, so that its figure is an upper bound.
    """

    remembered = math.inf

    def __init__(self, plan: Plan, store: Ledger | None) -> None:
        super().__init__(plan.judge)
        self.kinds: Counter[str] = Counter()
        self.judges: dict[str, JudgeEstimate] = {}
        self._store = store
        self._line, self._has_target = ScorerEstimate(""), plan.target is not None
        self._all_free = not any(judge.cacheable for judge in plan.judges)
        self._of_scorers = {judge.identity for judge in plan.judges}

    async def score(self, scorer: Scorer, sample: Sample, line: ScorerEstimate) -> None:
        """Run one scorer on one sample, counting its calls on a line."""
        self._line, calls = line, line.calls
        outcome = (await score_sample(scorer, sample, self)).outcome
        if isinstance(outcome, Skipped) and not self._has_target:
            line.skipped += 1
        elif isinstance(outcome, Skipped) and line.calls == calls:
            line.open += 1
            line.open_reason = line.open_reason or outcome.reason
        # What the user's own code raises for a stand-in says nothing about answers.
        if isinstance(outcome, Failed) and not (self._has_target and outcome.exception):
            line.failed += 1
            line.error = line.error or outcome.error

    def known(self, key: Key) -> JudgeAnswer[Any] | JudgeError | None:
        found = super().known(key)
        self._line.shared += found is not None and key.judge in self._of_scorers
        return found

    def inflight(self, key: Key, judge: Judge, question: Question[Any]) -> tuple[InflightCall, bool]:
        call, own = super().inflight(key, judge, question)
        self._line.shared += not own and key.judge in self._of_scorers
        return call, own

    async def _combine(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        answer = await super()._combine(call, _unwrapped(judge))
        # Stand-ins always agree, which says nothing about the confidence of their judges.
        return replace(answer, confidence=None, detail=None) if judge.cacheable else answer

    async def _obtain(self, call: InflightCall, judge: Judge) -> JudgeAnswer[Any]:
        question, line, judge = call.question, self._line, _unwrapped(judge)
        if judge.cacheable and (stored := self._stored(call)) is not None:
            line.answered += 1
            return stored
        asked = self.judges.setdefault(call.key.judge, JudgeEstimate(call.key.judge))
        asked.calls += 1
        if judge.cacheable or self._all_free:
            line.calls += 1
            self.kinds[question.kind] += 1
            line.kinds.add(question.kind)
        if not judge.cacheable:
            return await judge.answer(question)
        usage = estimated_usage(question)
        line.usage += usage
        asked.usage += usage
        # Each call by itself: some prices rise with the length of a call.
        asked.cost = total_cost((asked.cost, judge.price(usage)))
        return JudgeAnswer(value=await stand_in(question), judge=call.key.judge)

    def _stored(self, call: InflightCall) -> JudgeAnswer[Any] | None:
        if self._store is None:
            return None
        question, judge, repeat = call.key
        found = self._store.answers(judge, [question], repeat_index=repeat).get(question)
        return None if found is None else read_stored(call.question, found)


def _unwrapped(judge: Judge) -> Judge:
    """The judge without its log: stand-in answers are not logged."""
    while isinstance(judge, LoggingJudge):
        judge = judge.judge
    return judge


async def stand_in(question: Question[A]) -> A:
    """An answer for a question that is not asked: the lexical judge's, or an example."""
    try:
        return (await LexicalJudge().answer(question)).value
    except JudgeDeclined:
        return question.parse(json.dumps(question.example()))

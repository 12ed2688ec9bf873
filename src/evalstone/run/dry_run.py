"""Dry runs estimate the calls and the cost of a run without making any call.

The scorers run with stand-in answers: those of the lexical judge if it can answer the question, otherwise examples of
usual length. Tokens are estimated at four bytes each.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone.errors import JudgeDeclined
from evalstone.judges.base import Judge
from evalstone.judges.decision import DecisionOrText
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.logging import LoggingJudge
from evalstone.ledger.base import Key, chunks, is_there, target_scope
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.results.estimate import Estimate, JudgeEstimate, ScorerEstimate
from evalstone.run.answer_rows import answer_key
from evalstone.run.conversations import is_conversation, unanswerable
from evalstone.run.plan import FILLED, Plan
from evalstone.run.scoring import score_sample
from evalstone.run.session import QuestionCall, Session, read_stored
from evalstone.scorers import Scorer
from evalstone.targets.base import conversation
from evalstone.types import Failed, Message, Sample, Skipped, total_cost

if TYPE_CHECKING:
    from evalstone.ledger.store import Ledger

A = TypeVar("A")

KEYS_PER_READ = 1000
_CALL = {"seconds": 0.0, "cost": 0.0, "usage": {"input": 0, "output": 0}}
"""A stand-in for the `target` metadata of an answer."""


async def estimate(plan: Plan, *, ledger: str | Path | None = None, known: set[Key] | None = None) -> Estimate:
    """Estimate a plan. The ledger is only read, and only if it exists.

    known: The calls of runs before this one, whose answers will be in the ledger. Those of this plan are added.

    With a target, a sample's output, or else its reference, stands in for the unknown answer, in each trial. The
    ledger's answers of judges don't count then, because they are about other texts.

    Raises:
        ConfigError: The plan can't run.
    """
    plan.check(asking=False, answering=False)
    from evalstone.ledger.store import Ledger  # noqa: PLC0415 - only a run with a ledger needs it

    store = Ledger(ledger) if ledger is not None and is_there(ledger) else None
    try:
        session = _DryRunSession(plan, store if plan.target is None else None, known)
        lines = tuple(ScorerEstimate(name=plan.titles[scorer.signature]) for scorer in plan.scorers)
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
        calls, answers = await _target_calls(plan, store)
    finally:
        if store is not None:
            store.close()
    for estimate in (*lines, *session.judges.values()):
        estimate.repeat(plan.trials)
    kinds = {kind: number * plan.trials for kind, number in session.kinds.items()}
    judges = tuple(session.judges.values())
    named = [judge.identity for judge in plan.asked_judges] or [judge.judge for judge in judges] or ["none"]
    return Estimate(
        dataset_name=plan.dataset.name,
        trials=plan.trials,
        target=None if plan.target is None else plan.target.identity,
        judge=", ".join(named),
        samples=len(plan.dataset),
        scorers=lines,
        judges=judges,
        kinds=kinds,
        target_calls=calls,
        open_ended=plan.user is not None or any(len(sample.turns) > 1 for sample in plan.dataset),
        user_judge=None if plan.user is None or not plan.user.judges else plan.user.judges[0].identity,
        target_answers=answers,
        without_stand_in=unknown,
    )


def _turns(plan: Plan, sample: Sample) -> int:
    """The maximum number of target calls per trial of a sample."""
    if plan.target is None or unanswerable(plan.target, plan.user, sample):
        return 0
    if plan.target.holds_conversations or not is_conversation(sample, plan.user):
        return 1
    return len(sample.turns) or (1 if plan.user is None else plan.user.max_turns)


def _skips(scorer: Scorer, sample: Sample, line: ScorerEstimate) -> bool:
    """Whether a scorer skips a sample regardless of the target's answer. Counts the sample if so."""
    skips = bool(scorer.lacks(sample, FILLED))
    line.n_skipped += skips
    return skips


async def _target_calls(plan: Plan, store: Ledger | None) -> tuple[int, int]:
    """The maximum number of target calls, and the number of answers in the ledger."""
    target = plan.target
    if target is None:
        return 0, 0
    run = "" if target.version or store is None else store.unfinished(plan.fingerprint)
    scope, user = target_scope(target.identity, run or ""), "" if plan.user is None else plan.user.identity
    calls = answers = 0
    for part in chunks(plan.cases(), KEYS_PER_READ):
        keys = [answer_key(sample, target.inputs, scope, user) for sample in part]
        stored = store.answers_to(keys) if store is not None and run is not None else {}
        answers += len(stored)
        calls += sum(_turns(plan, sample) for sample, key in zip(part, keys, strict=True) if key not in stored)
        await asyncio.sleep(0)  # a canceled dry run ends here
    return calls, answers


def _answered(sample: Sample) -> Sample:
    """The sample with a stand-in for the target's answer: its output, its reference, or the output of its last turn."""
    turns = tuple(map(_answered, sample.turns))
    texts = (sample.output, sample.reference, *(turn.output for turn in turns[-1:]))
    output = next((text for text in texts if text is not None), None)
    messages = tuple(message for turn in turns for message in turn.messages)
    if not messages and output is not None:
        messages = (*conversation(sample), Message(role="assistant", content=output))
    call = {**sample.metadata, "target": _CALL}
    return replace(sample, output=output, messages=messages or sample.messages, turns=turns, metadata=call)


class _DryRunSession(Session):
    """A session that counts calls and answers them with stand-ins.

    A panel asks each of its members. A cascade asks its fallback unless the probability of the primary is known in
    advance, so its estimate is an upper bound.
    """

    remembered = math.inf

    def __init__(self, plan: Plan, store: Ledger | None, known: set[Key] | None) -> None:
        super().__init__(plan.judge)
        self.keep_reasoning = plan.keep_reasoning
        self.kinds: Counter[str] = Counter()
        self.judges: dict[str, JudgeEstimate] = {}
        self._store, self._before = store, known
        self._line, self._has_target = ScorerEstimate(name=""), plan.target is not None
        self._all_free = not any(judge.cacheable for judge in plan.judges)

    async def score(self, scorer: Scorer, sample: Sample, line: ScorerEstimate) -> None:
        """Run a scorer on a sample and count its calls in a line."""
        self._line = line
        record = await score_sample(scorer, sample, self)
        outcome, calls = record.outcome, Counter(source for call in record.calls for source in call.sources())
        line.asked += calls["asked"]
        line.shared += calls["shared"]
        line.cached += calls["cached"]
        if isinstance(outcome, Skipped) and not self._has_target:
            line.n_skipped += 1
        elif isinstance(outcome, Skipped) and not calls["asked"]:
            line.open += 1
            line.open_reason = line.open_reason or outcome.reason
        # An error of user code about a stand-in says nothing about real answers.
        if isinstance(outcome, Failed) and not (self._has_target and outcome.exception):
            line.n_failed += 1
            line.error = line.error or outcome.error

    async def _combine(self, call: QuestionCall, judge: Judge) -> JudgeAnswer[Any]:
        composite = _unwrapped(judge)
        answer = await super()._combine(call, composite)
        if not judge.cacheable or isinstance(composite, DecisionOrText):  # the latter passes one answer on as it is
            return answer
        # Stand-ins always agree, so their probability says nothing.
        return replace(answer, probability=None, detail=None)

    async def _obtain(self, call: QuestionCall) -> JudgeAnswer[Any]:
        question, line, judge = call.question, self._line, _unwrapped(call.judge)
        if judge.cacheable and (stored := self._stored(call)) is not None:
            return stored
        if judge.cacheable and self._before is not None:
            if call.key in self._before:
                return JudgeAnswer(value=await stand_in(question), judge=call.key.judge, source="cached")
            self._before.add(call.key)
        asked = self.judges.setdefault(call.key.judge, JudgeEstimate(judge=call.key.judge))
        asked.calls += 1
        if judge.cacheable or self._all_free:
            self.kinds[question.kind] += 1
            line.kinds.add(question.kind)
        if not judge.cacheable:
            return await judge.answer(question)
        usage = judge.estimated_usage(question)
        line.usage += usage
        asked.usage += usage
        # Per call, because some prices depend on the length of the prompt.
        asked.cost = total_cost((asked.cost, judge.price(usage)))
        return JudgeAnswer(value=await stand_in(question), judge=call.key.judge)

    def _stored(self, call: QuestionCall) -> JudgeAnswer[Any] | None:
        if self._store is None:
            return None
        question, judge, repeat = call.key
        stored = self._store.answers(judge, [question], repeat_index=repeat).get(question)
        return None if stored is None else read_stored(call.question, stored, call.judge)


def _unwrapped(judge: Judge) -> Judge:
    """The judge without its log. Stand-ins are not logged."""
    while isinstance(judge, LoggingJudge):
        judge = judge.judge
    return judge


async def stand_in(question: Question[A]) -> A:
    """A stand-in for an answer: the lexical judge's, or an example."""
    try:
        return (await LexicalJudge().answer(question)).value
    except JudgeDeclined:
        return question.parse(json.dumps(question.example()))

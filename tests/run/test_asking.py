"""What the engine promises of a run's questions: once each, bounded, durable before they count."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstone.errors import JudgeError
from evalstone.judges import ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger
from evalstone.ledger.store import Ledger
from evalstone.questions import ListClaims
from evalstone.questions.base import Answer, Question
from evalstone.run.session import Asker, Transcript

A = TypeVar("A")

REPLY = '{"claims": ["a"]}'


class SlowJudge(Judge):
    """Answers every question with one claim after a while, and counts."""

    def __init__(self, *, broken: bool = False) -> None:
        self.asked: list[str] = []
        self.now = 0
        self.most = 0
        self.broken = broken

    @property
    def identity(self) -> str:
        return "slow"

    async def answer(self, question: Question[A]) -> Answer[A]:
        self.asked.append(question.fingerprint)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        if self.broken:
            raise JudgeError("broken", reply="raw")
        return Answer(value=question.parse(REPLY), judge=self.identity, reply=REPLY, cost=0.5)


def test_equal_questions_at_the_same_time_are_one_call() -> None:
    judge = SlowJudge()

    async def ask() -> list[tuple[Answer[Any], bool]]:
        asker = Asker(judge)
        return await asyncio.gather(*(asker.put(ListClaims(text="x")) for _ in range(5)))

    answers = asyncio.run(ask())
    assert len(judge.asked) == 1
    assert [cached for _, cached in answers] == [False, True, True, True, True]


def test_a_question_asked_again_later_is_answered_from_memory() -> None:
    judge = SlowJudge()

    async def ask() -> bool:
        asker = Asker(judge)
        await asker.put(ListClaims(text="x"))
        return (await asker.put(ListClaims(text="x")))[1]

    assert asyncio.run(ask())
    assert len(judge.asked) == 1


def test_no_more_calls_are_under_way_than_allowed() -> None:
    judge = SlowJudge()

    async def ask() -> None:
        asker = Asker(judge, concurrency=3)
        await asyncio.gather(*(asker.put(ListClaims(text=str(n))) for n in range(12)))

    asyncio.run(ask())
    assert judge.most == 3


def test_those_who_wait_for_a_failing_question_all_fail_and_it_can_be_asked_again() -> None:
    judge = SlowJudge(broken=True)

    async def ask() -> list[Any]:
        asker = Asker(judge)
        first = await asyncio.gather(*(asker.put(ListClaims(text="x")) for _ in range(3)), return_exceptions=True)
        judge.broken = False
        return [*first, (await asker.put(ListClaims(text="x")))[0].value]

    *failed, value = asyncio.run(ask())
    assert all(isinstance(error, JudgeError) for error in failed)
    assert value == ("a",)
    assert len(judge.asked) == 2


def test_only_the_one_who_asked_pays_for_a_question_that_fails() -> None:
    class Dear(SlowJudge):
        async def answer(self, question: Question[A]) -> Answer[A]:
            await asyncio.sleep(0.01)
            raise JudgeError("broken", reply="raw", cost=0.5)

    async def ask() -> list[float | None]:
        asker = Asker(Dear())
        errors = await asyncio.gather(*(asker.put(ListClaims(text="x")) for _ in range(3)), return_exceptions=True)
        return [error.cost for error in errors if isinstance(error, JudgeError)]

    assert asyncio.run(ask()) == [0.5, 0.0, 0.0]


def test_an_answer_in_the_ledger_is_not_asked_for_again_and_costs_nothing(tmp_path: Path) -> None:
    judge = SlowJudge()

    async def ask(*, fresh: bool = False) -> tuple[Answer[Any], bool]:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            return await Asker(judge, ledger=ledger, fresh=fresh).put(ListClaims(text="x"))

    asyncio.run(ask())
    answer, cached = asyncio.run(ask())
    assert cached
    assert answer.value == ("a",)
    assert len(judge.asked) == 1
    assert not asyncio.run(ask(fresh=True))[1]
    assert len(judge.asked) == 2


def test_an_answer_is_durable_before_it_is_given(tmp_path: Path) -> None:
    async def ask() -> int:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            await Asker(SlowJudge(), ledger=ledger).put(ListClaims(text="x"))
            with Ledger(tmp_path / "l.db") as second:
                return len(second.answers("slow", [ListClaims(text="x").fingerprint]))

    assert asyncio.run(ask()) == 1


def test_a_stored_reply_that_no_longer_reads_is_asked_for_again(tmp_path: Path) -> None:
    judge = SlowJudge()
    question = ListClaims(text="x")

    async def ask() -> bool:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            return (await Asker(judge, ledger=ledger).put(question))[1]

    asyncio.run(ask())
    with Ledger(tmp_path / "l.db") as ledger:
        stored = ledger.answers("slow", [question.fingerprint])[question.fingerprint]
        ledger.write([dataclasses.replace(stored, reply="spoilt")])
    assert not asyncio.run(ask())


def test_free_answers_are_not_kept(tmp_path: Path) -> None:
    async def ask() -> None:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            await Asker(ScriptedJudge([REPLY]), ledger=ledger).put(ListClaims(text="x"))

    asyncio.run(ask())
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.answers("scripted", [ListClaims(text="x").fingerprint]) == {}


def test_steps_tell_what_was_asked_answered_and_paid() -> None:
    async def ask() -> Transcript:
        asker = Asker(SlowJudge())
        transcript = Transcript(asker)
        await transcript(ListClaims(text="x"))
        await transcript(ListClaims(text="x"))
        return transcript

    first, second = asyncio.run(ask()).steps
    assert (first.question, first.judge, first.answer, first.cost, first.cached) == (
        "list_claims",
        "slow",
        ["a"],
        0.5,
        False,
    )
    assert (second.cost, second.cached) == (0.0, True)


def test_a_failed_question_is_a_step_too_with_the_raw_reply() -> None:
    async def ask() -> Transcript:
        transcript = Transcript(Asker(SlowJudge(broken=True)))
        with pytest.raises(JudgeError):
            await transcript(ListClaims(text="x"))
        return transcript

    (step,) = asyncio.run(ask()).steps
    assert (step.answer, step.reply) == (None, "raw")

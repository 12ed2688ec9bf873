"""A session asks each question once, within limits, and its answers are durable before they count."""

from __future__ import annotations

import asyncio
import dataclasses
import traceback
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstone import evaluate
from evalstone.errors import (
    BudgetExceeded,
    ConfigError,
    JudgeDeclined,
    JudgeError,
    JudgeUnavailable,
    LedgerError,
    OutcomeError,
    ProviderError,
    ProviderTimeout,
    ReplyError,
    RunStopped,
)
from evalstone.judges import ModelJudge, ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger, Key
from evalstone.ledger.store import Ledger
from evalstone.models.endpoint import RequestRefused
from evalstone.questions import ListClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Ask, Question
from evalstone.run import session
from evalstone.run.budget import Budget, StopSignal, call_price
from evalstone.run.circuit_breaker import FAILURE_LIMIT, CircuitBreaker
from evalstone.run.session import AskScope, Session
from evalstone.scorers import Scorer
from evalstone.types import Failed, Record, Score
from tests.fakes import Load
from tests.judge_names import bare
from tests.runs import Given, samples_of

A = TypeVar("A")

REPLY = '{"claims": ["a"]}'


class SlowJudge(Judge, eq=False):
    """Answers every question with one claim after a while, and counts."""

    broken: bool = False
    mended: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list[str])
    load: Load = field(default_factory=Load)

    @property
    def identity(self) -> str:
        return "slow"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        self.asked.append(question.fingerprint)
        with self.load:
            await asyncio.sleep(0.01)
        if self.broken and not self.mended.is_set():
            raise JudgeError("broken", reply="raw")
        return JudgeAnswer(value=question.parse(REPLY), judge=self.identity, reply=REPLY, cost=0.5)


def test_equal_questions_at_the_same_time_are_one_call() -> None:
    judge = SlowJudge()

    async def ask() -> list[JudgeAnswer[Any]]:
        session = Session(judge)
        return await asyncio.gather(*(session.ask(ListClaims(text="x")) for _ in range(5)))

    answers = asyncio.run(ask())
    assert len(judge.asked) == 1
    assert [answer.source for answer in answers] == ["asked", *["shared"] * 4]


def test_a_question_asked_again_later_is_answered_from_memory() -> None:
    judge = SlowJudge()

    async def ask() -> str:
        session = Session(judge)
        await session.ask(ListClaims(text="x"))
        return (await session.ask(ListClaims(text="x"))).source

    assert asyncio.run(ask()) == "shared"
    assert len(judge.asked) == 1


def test_no_more_calls_are_under_way_than_allowed() -> None:
    judge = SlowJudge()

    async def ask() -> None:
        session = Session(judge, concurrency=3)
        await asyncio.gather(*(session.ask(ListClaims(text=str(n))) for n in range(12)))

    asyncio.run(ask())
    assert judge.load.most == 3


def test_a_failure_is_shared_within_a_session_and_asked_again_in_the_next() -> None:
    judge = SlowJudge(broken=True)

    async def ask() -> list[Any]:
        session = Session(judge)
        first = await asyncio.gather(*(session.ask(ListClaims(text="x")) for _ in range(3)), return_exceptions=True)
        judge.mended.set()
        (later,) = await asyncio.gather(session.ask(ListClaims(text="x")), return_exceptions=True)
        return [*first, later, (await Session(judge).ask(ListClaims(text="x"))).value]

    *failed, value = asyncio.run(ask())
    assert [str(error) for error in failed] == ["broken"] * 4
    assert value == ("a",)
    assert len(judge.asked) == 2


def test_only_the_one_who_asked_pays_for_a_question_that_fails() -> None:
    class Dear(SlowJudge):
        async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
            await asyncio.sleep(0.01)
            raise JudgeError("broken", reply="raw", cost=0.5)

    async def ask() -> list[float | None]:
        session = Session(Dear())
        errors = await asyncio.gather(*(session.ask(ListClaims(text="x")) for _ in range(3)), return_exceptions=True)
        return [error.cost for error in errors if isinstance(error, JudgeError)]

    assert asyncio.run(ask()) == [0.5, 0.0, 0.0]


def test_an_answer_in_the_ledger_is_not_asked_for_again_and_costs_nothing(tmp_path: Path) -> None:
    judge = SlowJudge()

    async def ask(*, cache: bool = True) -> JudgeAnswer[Any]:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            return await Session(judge, ledger=ledger, cache=cache).ask(ListClaims(text="x"))

    asyncio.run(ask())
    answer = asyncio.run(ask())
    assert answer.source == "cached"
    assert answer.value == ("a",)
    assert len(judge.asked) == 1
    assert asyncio.run(ask(cache=False)).source == "asked"
    assert len(judge.asked) == 2


def test_an_answer_is_durable_before_it_is_given(tmp_path: Path) -> None:
    async def ask() -> int:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            await Session(SlowJudge(), ledger=ledger).ask(ListClaims(text="x"))
            with Ledger(tmp_path / "l.db") as second:
                return len(second.answers(SlowJudge().identity, [ListClaims(text="x").fingerprint]))

    assert asyncio.run(ask()) == 1


def test_a_stored_reply_that_no_longer_reads_is_asked_for_again(tmp_path: Path) -> None:
    judge = SlowJudge()
    question = ListClaims(text="x")

    async def ask() -> str:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            return (await Session(judge, ledger=ledger).ask(question)).source

    asyncio.run(ask())
    with Ledger(tmp_path / "l.db") as ledger:
        stored = ledger.answers(judge.identity, [question.fingerprint])[question.fingerprint]
        ledger.write([dataclasses.replace(stored, reply="spoilt")])
    assert asyncio.run(ask()) == "asked"


def test_free_answers_are_not_kept(tmp_path: Path) -> None:
    async def ask() -> None:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            await Session(ScriptedJudge([REPLY]), ledger=ledger).ask(ListClaims(text="x"))

    asyncio.run(ask())
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.answers("scripted", [ListClaims(text="x").fingerprint]) == {}


def test_steps_tell_what_was_asked_answered_and_paid() -> None:
    async def ask() -> AskScope:
        session = Session(SlowJudge())
        scope = AskScope(session)
        await scope(ListClaims(text="x"))
        await scope(ListClaims(text="x"))
        return scope

    first, second = asyncio.run(ask()).calls
    assert (first.question, bare(first.judge), first.answer, first.cost, first.source) == (
        "list_claims",
        "slow",
        ["a"],
        0.5,
        "asked",
    )
    assert (second.cost, second.source) == (0.0, "shared")


def test_a_failed_question_is_a_step_too_with_the_raw_reply() -> None:
    async def ask() -> AskScope:
        scope = AskScope(Session(SlowJudge(broken=True)))
        with pytest.raises(JudgeError):
            await scope(ListClaims(text="x"))
        return scope

    (step,) = asyncio.run(ask()).calls
    assert (step.answer, step.reply) == (None, "raw")


class Gathering(Scorer):
    """Asks several questions at once; the first one fails."""

    name = "gathering"
    questions = (ListClaims,)
    asks = (ListClaims,)
    grouped: bool = False

    async def score(self, ask: Ask, *, output: str) -> Score:
        questions = [ListClaims(text=f"{output} {number}") for number in range(4)]
        if self.grouped:
            async with asyncio.TaskGroup() as group:
                for question in questions:
                    group.create_task(self._ask(ask, question))
        else:
            await asyncio.gather(*(ask(question) for question in questions))
        return Score(1.0)

    async def _ask(self, ask: Ask, question: ListClaims) -> None:
        await ask(question)


class OneFails(Scorer):
    """Asks one question, which fails."""

    name = "one_fails"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        await ask(ListClaims(text=f"{output} 0"))
        return Score(1.0)


class FirstFails(Judge, eq=False, kw_only=False):
    """Takes a dollar for every question, and fails the first one of each sample."""

    error: type[Exception] = JudgeError
    charges: list[float] = field(default_factory=list[float])

    @property
    def paid(self) -> float:
        return sum(self.charges)

    @property
    def identity(self) -> str:
        return "first fails"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        self.charges.append(1.0)
        if str(question.inputs()["text"]).endswith(" 0"):
            raise self.error("broken", cost=1.0) if issubclass(self.error, JudgeError) else self.error("broken")
        await asyncio.sleep(0.05)
        return JudgeAnswer(value=question.parse(REPLY), judge=self.identity, reply=REPLY, cost=1.0)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("concurrency", [1, 32])
def test_what_was_paid_beside_a_failed_call_stands_in_its_record(grouped: bool, concurrency: int) -> None:
    judge = FirstFails()
    samples = [{"id": "a", "output": "one"}, {"id": "b", "output": "two"}]
    run = evaluate(samples, Gathering(grouped=grouped), judge=judge, ledger=None, concurrency=concurrency)
    assert run["gathering"].n_failed == 2
    assert run.cost == judge.paid
    assert judge.paid <= (8 if concurrency > 1 else 4)


@pytest.mark.parametrize("count", [10, 30])
def test_the_call_that_shows_a_judge_to_be_of_no_use_stands_in_its_record(tmp_path: Path, count: int) -> None:
    judge = FirstFails()
    records: list[Record] = []
    samples = [{"id": str(number), "output": str(number)} for number in range(count)]
    with pytest.raises(JudgeUnavailable, match=r"first 10 questions; .*: broken"):
        evaluate(samples, OneFails(), judge=judge, ledger=tmp_path / "l.db", concurrency=1, on_record=records.append)
    assert len(records) == judge.paid == 10
    assert [[call.cost for call in record.calls] for record in records] == [[1.0]] * 10
    assert all(isinstance(record.outcome, Failed) for record in records)
    with Ledger(str(tmp_path / "l.db")) as ledger:
        (row,) = ledger.runs()
        assert sum(record.cost or 0.0 for record in ledger.records(row.id)) == judge.paid


def test_a_decline_inside_a_group_of_tasks_is_a_skip_and_a_refused_key_ends_the_run() -> None:
    run = evaluate([{"output": "x"}], Gathering(grouped=True), judge=FirstFails(JudgeDeclined), ledger=None)
    assert run["gathering"].n_skipped == 1
    with pytest.raises(ConfigError, match="broken"):
        evaluate([{"output": "x"}], Gathering(grouped=True), judge=FirstFails(ConfigError), ledger=None)


@pytest.mark.parametrize("answered", [False, True], ids=["under way", "answered at that moment"])
def test_calls_that_a_scorer_leaves_behind_are_ended_and_counted(answered: bool) -> None:
    sent, released = asyncio.Event(), asyncio.Event()

    class Waiting(FirstFails):
        async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
            self.charges.append(1.0)
            sent.set()
            await released.wait()
            if not answered:
                await asyncio.sleep(0.05)
            return JudgeAnswer(value=question.parse(REPLY), judge=self.identity, reply=REPLY, cost=1.0)

    class Careless(Scorer):
        name = "careless"
        questions = (ListClaims,)

        async def score(self, ask: Ask, *, output: str) -> Score:
            left = asyncio.ensure_future(ask(ListClaims(text=output)))
            await sent.wait()  # a call that is not yet sent would be canceled, at no cost
            released.set()
            return Score(float(not left.done()))

    judge = Waiting()
    (record,) = evaluate([{"output": "x"}], Careless(), judge=judge, ledger=None)
    assert (record.value, record.cost, judge.paid, len(record.calls)) == (1.0, 1.0, 1.0, 1)


def test_a_call_that_one_scorer_leaves_unsent_is_asked_for_another_that_asks_at_that_moment() -> None:
    async def ask() -> JudgeAnswer[Any]:
        session = Session(SlowJudge(), concurrency=1)
        busy = asyncio.ensure_future(session.ask(ListClaims(text="busy")))
        leaving = AskScope(session)
        left = asyncio.ensure_future(leaving(ListClaims(text="x")))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        _, answer, _ = await asyncio.gather(leaving.close(), session.ask(ListClaims(text="x")), busy)
        return answer

    assert asyncio.run(ask()).reply == REPLY


def test_a_judge_of_your_own_that_gives_no_answer_is_refused() -> None:
    class Own(Judge):
        @property
        def identity(self) -> str:
            return "own"

        async def answer(self, question: Question[Any], repeat: int = 0) -> Any:
            return "yes"

    class Plain(Own):
        def answer(self, question: Question[Any], repeat: int = 0) -> Any:
            return JudgeAnswer(value=(), judge="own")

    for judge, kind in ((Own(), "str"), (Plain(), "JudgeAnswer")):
        told = f"{type(judge).__name__}.answer must be an async def that returns a JudgeAnswer; it gave a value of type"
        with pytest.raises(ConfigError, match=f"{told} {kind}"):
            evaluate([{"output": "x", "context": ["x"]}], "faithfulness", judge=judge, ledger=None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_score_of_a_question_that_was_not_awaited_is_an_error(is_async: bool) -> None:
    class Forgetful(Scorer):
        name = "forgetful"
        questions = (ListClaims,)

        def score(self, ask: Ask, *, output: str) -> Any:
            async def later() -> Score:
                return Score(float(bool(ask(ListClaims(text=output)))))

            return later() if is_async else Score(float(bool(ask(ListClaims(text=output)))))

    (record,) = evaluate([{"output": "x"}], Forgetful(), judge=ScriptedJudge([]), ledger=None)
    told = "forgetful called ask without await (list_claims); write await ask(…) in an async def score"
    assert record.outcome == Failed(told)


@pytest.mark.filterwarnings("error")
def test_an_attribute_of_a_question_that_was_not_awaited_is_the_same_error() -> None:
    class Forgetful(Scorer):
        name = "forgetful"
        questions = (ListClaims,)

        async def score(self, ask: Ask, *, output: str) -> Score:
            claims: Any = ask(ListClaims(text=output))
            return Score(1.0 if claims[0] else 0.0)

    (record,) = evaluate([{"output": "x"}], Forgetful(), judge=ScriptedJudge([]), ledger=None)
    told = "forgetful called ask without await (list_claims); write await ask(…) in an async def score"
    assert record.outcome == Failed(told)


def test_a_task_that_has_not_begun_is_awaited_by_the_loop() -> None:
    class Hasty(Scorer):
        name = "hasty"
        questions = (ListClaims,)

        async def score(self, ask: Ask, *, output: str) -> Score:
            left.append(asyncio.ensure_future(ask(ListClaims(text=output))))
            return Score(1.0)

    left: list[asyncio.Future[Any]] = []
    (record,) = evaluate([{"output": "x"}], Hasty(), judge=ScriptedJudge([{"claims": []}]), ledger=None)
    assert record.value == 1.0


def test_a_budget_counts_what_is_reserved_by_calls_in_flight() -> None:
    judge = ModelJudge("vllm/x", prices=(1e6, 0.0))
    question = ListClaims(text="x")
    price = call_price(question, judge)
    assert price is not None
    budget = Budget(1.5 * price, judge)
    assert budget.reserve(budget.estimate(question, judge)) == price
    with pytest.raises(BudgetExceeded, match="does not fit"):
        budget.reserve(budget.estimate(question, judge))
    budget.settle(price, 0.4 * price)
    assert budget.reserve(budget.estimate(question, judge)) == price


def test_a_budget_pays_for_the_call_that_just_fits() -> None:
    judge = ModelJudge("vllm/x", prices=(1e6, 0.0))
    question = ListClaims(text="x")
    price = call_price(question, judge)
    assert price is not None
    budget = Budget(2 * price, judge)
    assert [budget.reserve(budget.estimate(question, judge)) for _ in range(2)] == [price, price]
    with pytest.raises(BudgetExceeded, match="does not fit"):
        budget.reserve(budget.estimate(question, judge))


def test_a_shared_failure_keeps_its_type_and_its_words_whatever_its_class_takes() -> None:
    class Refusing(FirstFails):
        async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
            raise RequestRefused("refused (HTTP 400: no)", 400)

    async def ask() -> list[Any]:
        session = Session(Refusing())
        return await asyncio.gather(*(session.ask(ListClaims(text="x")) for _ in range(3)), return_exceptions=True)

    errors = asyncio.run(ask())
    assert [(type(error), str(error), error.status) for error in errors] == [
        (RequestRefused, "refused (HTTP 400: no)", 400)
    ] * 3


class Broken(Judge):
    """A judge whose every answer is an exception of Python's."""

    identity = "broken"  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    error: Exception

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ValueError("odd"), KeyError("id"), RecursionError(), OutcomeError("nan"), ProviderError("x"), ReplyError("x")],
)
def test_a_judge_that_fails_on_every_question_ends_the_run_whatever_it_raises(error: Exception) -> None:
    rows = [{"output": f"Ada was born in {n}."} for n in range(50)]
    with pytest.raises(JudgeUnavailable, match=r"broken\S* failed .* 10 questions"):
        evaluate(rows, "bias", judge=Broken(error=error), concurrency=1, ledger=None)


def test_few_replies_are_remembered_when_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "HELD_CHARACTERS", 2 * len(REPLY))

    async def work() -> list[bool]:
        judge = ScriptedJudge([REPLY] * 5)
        asking = Session(judge)
        questions = [ListClaims(text=str(n)) for n in range(5)]
        for question in questions:
            await asking.ask(question)
        return [asking.known(Key(question.fingerprint, judge.identity)) is not None for question in questions]

    assert asyncio.run(work()) == [False, False, False, True, True]


def test_a_failure_that_is_remembered_holds_no_frames_of_the_judge() -> None:
    async def work() -> list[str]:
        judge, question = Broken(error=ProviderError("x")), ListClaims(text="a")
        asking = Session(judge)
        with pytest.raises(ProviderError):
            await asking.ask(question)
        error: Any = asking.known(Key(question.fingerprint, judge.identity))
        assert error.__context__ is None
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]

    assert "answer" not in asyncio.run(work())


# What ends a run


@pytest.mark.parametrize("cache", [True, False])
def test_a_stop_ends_the_calls_where_the_next_run_has_those_until_then(tmp_path: Path, *, cache: bool) -> None:
    judge, stop = SlowJudge(), StopSignal()
    stop.request("enough")

    async def ask() -> JudgeAnswer[Any]:
        async with AsyncLedger(tmp_path / "l.db") as ledger:
            return await Session(judge, ledger=ledger, cache=cache, stop=stop).ask(ListClaims(text="x"))

    if cache:
        with pytest.raises(RunStopped, match="enough"):
            asyncio.run(ask())
    else:
        assert asyncio.run(ask()).value == ("a",)
    assert len(judge.asked) == (not cache)


def test_a_sample_whose_next_question_a_stop_keeps_back_is_open_and_not_failed(tmp_path: Path) -> None:
    stop = StopSignal()

    class Stopping(SlowJudge):
        """Asks the run to stop while it answers."""

        async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
            stop.request("enough")
            return await super().answer(question, repeat)

    judge = Stopping()
    rows = [{"id": "1", "output": "Ada lived.", "context": ["Ada lived."]}]
    run = evaluate(rows, "faithfulness", judge=judge, ledger=tmp_path / "l.db", stop=stop)
    assert (len(run), run.stop_reason, len(judge.asked)) == (0, "enough", 1)


def test_the_record_that_a_ledger_did_not_take_is_among_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def keep_records(*_: object) -> None:
        raise LedgerError("gone")

    monkeypatch.setattr(AsyncLedger, "keep_records", keep_records)
    with pytest.raises(LedgerError, match="gone") as error:
        evaluate(samples_of(["0.5"]), Given(), ledger=tmp_path / "l.db")
    assert error.value.run["given"].mean == 0.5


def failing(times: int, *, known: bool = False, answered_after: int | None = None, error: JudgeError) -> bool:
    """Whether a breaker is open after so many failures."""
    breaker = CircuitBreaker("judge", {"judge"} if known else set[str]())
    for number in range(times):
        if number == answered_after:
            breaker.answered()
        breaker.failed(error)
    return breaker.is_open


def test_a_judge_is_given_up_after_failures_from_the_start_or_timeouts_in_a_row() -> None:
    broken, timeout, declined = JudgeError("broken"), ProviderTimeout("slow"), JudgeDeclined("no")
    assert failing(FAILURE_LIMIT, error=broken)
    assert not failing(FAILURE_LIMIT - 1, error=broken)
    assert not failing(3 * FAILURE_LIMIT, error=broken, answered_after=1)
    assert not failing(3 * FAILURE_LIMIT, error=broken, known=True)
    assert not failing(3 * FAILURE_LIMIT, error=declined)
    assert failing(FAILURE_LIMIT, error=timeout, known=True)
    assert not failing(FAILURE_LIMIT + 1, error=timeout, answered_after=2)

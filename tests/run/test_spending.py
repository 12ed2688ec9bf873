"""What a run says it has paid is what it paid: however often it is called, whatever stops it, and whether or not a
sample has a record in the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstone import Message, Run, Score, Scorer, StopSignal, aevaluate, evaluate, read_run, write_run
from evalstone._core.display import money
from evalstone.errors import ConfigError, JudgeUnavailable, ReplyError
from evalstone.judges import Judge, ScriptedJudge
from evalstone.judges.model import ModelJudge
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.ledger.store import Ledger
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Ask, Question
from evalstone.questions.claims import ListClaims
from evalstone.results.views.run import run_view
from evalstone.results.views.spending import cost_text
from evalstone.run import workers
from evalstone.run.answer_rows import TargetOutcome
from evalstone.run.conversations import Conversation
from evalstone.run.session import Session
from evalstone.run.spending import Spending
from evalstone.targets import Answer, FunctionTarget
from evalstone.types import JudgeCall, Record, Sample, Usage
from tests.batch_serving import BatchServer
from tests.run.batch_runs import A_QUESTION, Call

pytestmark = pytest.mark.slow

PRICE, COST = 0.01, 0.25
SAMPLES = [{"id": f"q{n}", "output": f"answer {n}"} for n in range(6)]
CASES = [{"id": f"q{n}", "input": f"question {n}"} for n in range(6)]


def agent(*, input: str) -> Answer:
    return Answer(output=f"answer to {input}", cost=COST)


class Priced(Judge, eq=False):
    """Takes a cent for every question, and fails those about a bad text after it was paid."""

    before: Callable[[int], None] = lambda number: None
    calls: list[str] = field(default_factory=list[str])

    @property
    def identity(self) -> str:
        return "priced"

    def price(self, usage: object) -> float | None:
        return PRICE

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        text = str(question.inputs()["text"])
        self.before(len(self.calls) + 1)
        self.calls.append(text)
        if "bad" in text:
            raise ReplyError("no claims", reply="{", cost=PRICE)
        reply = json.dumps({"claims": []})
        return JudgeAnswer(value=question.parse(reply), judge="priced", reply=reply, cost=PRICE)

    @property
    def paid(self) -> float:
        return len(self.calls) * PRICE


class Thrice(Scorer):
    """Asks three questions, one after the other, and goes on where one fails."""

    name = "thrice"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        for number in range(3):
            with contextlib.suppress(ReplyError):
                await ask(ListClaims(text=f"{output} {number}"))
        return Score(1.0)


def scored(judge: Priced, ledger: Path | None, samples: Any = SAMPLES, **options: Any) -> Run:
    return evaluate(samples, Thrice(), judge=judge, ledger=ledger, concurrency=1, **options)


def killed_before_call(number: int, ledger: Path, *, answering: bool = False) -> None:
    """Run in a process that is killed when it is about to make its judge call of this number."""
    options = "samples=CASES, target=FunctionTarget(function=agent, label='agent')" if answering else "budget=1.0"
    code = f"""
import os, signal
from pathlib import Path
from tests.run.test_spending import CASES, FunctionTarget, Priced, agent, scored

judge = Priced(before=lambda number: os.kill(os.getpid(), signal.SIGKILL) if number == {number} else None)
scored(judge, Path({str(ledger)!r}), {options})
"""
    in_killed_process(code)


def in_killed_process(code: str) -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def talked(
    ledger: Path,
    version: str,
    *,
    stop: StopSignal | None = None,
    before: Callable[[int], None] = lambda number: None,
    judge: Callable[[int], None] = lambda number: None,
) -> Run:
    """Run a conversation of three turns."""
    asked = list[str]()

    def answer(*, messages: list[Message]) -> Answer:
        asked.append(messages[-1].content)
        before(len(asked))
        return Answer(output=f"answer to {messages[-1].content}", cost=COST)

    target = FunctionTarget(function=answer, label="agent", version=version)
    cases = [{"id": "c", "turns": [{"input": f"question {n}"} for n in range(3)]}]
    return scored(Priced(before=judge), ledger, cases, target=target, stop=stop)


def told(run: Run) -> tuple[float, float, float]:
    """What was paid in all, in this call, and for samples that were interrupted, as summary.json has it."""
    paid = run.to_dict()["paid"]
    assert paid["total"] == run.cost
    assert paid["interrupted"] == run.interrupted_cost
    return paid["total"], paid["this_call"], paid["interrupted"]


def about(*values: float) -> Any:
    return pytest.approx(values, abs=1e-9)


def test_a_run_that_its_budget_stops_says_what_was_paid_for_the_sample_that_has_no_record(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    run = scored(judge, ledger, budget=8.5 * PRICE)
    assert (len(run), len(judge.calls)) == (2, 8)
    assert told(run) == about(8 * PRICE, 8 * PRICE, 2 * PRICE)
    assert "($0.0800 spent)" in run.stop_reason
    line = "cost $0.0800 (results $0.0600, interrupted samples $0.0200)"
    stored, folder = read_run(run.id, ledger=ledger), read_run(write_run(run, tmp_path / "out"))
    for one in (run, stored, folder):
        assert line in str(one)
        assert line in [fact.line for fact in run_view(one).facts]
        assert told(one) == told(run)
        assert one.to_dict()["cost"] == one.recorded_cost == pytest.approx(6 * PRICE)


def test_a_run_that_goes_on_says_what_it_paid_in_all_and_in_this_call(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    first = scored(judge, ledger, budget=8.5 * PRICE)
    second = scored(judge, ledger, budget=13.5 * PRICE)
    assert (second.id, second.complete, len(judge.calls)) == (first.id, False, 13)
    assert told(second) == about(13 * PRICE, 5 * PRICE, 3 * PRICE)
    done = scored(judge, ledger)
    assert (done.id, done.complete, len(judge.calls)) == (first.id, True, 18)
    assert told(done) == about(judge.paid, 5 * PRICE, 3 * PRICE)
    expected = "cost $0.1800 (results $0.1500, interrupted samples $0.0300), $0.0500 of it in this call"
    assert expected in str(done)
    again = scored(judge, ledger)
    assert (again.cost, cost_text(again), len(judge.calls)) == (0.0, "cost $0.00", 18)


def test_a_run_that_is_told_to_stop_says_what_it_paid(tmp_path: Path) -> None:
    ledger, stop = tmp_path / "l.db", StopSignal()
    judge = Priced(before=lambda number: stop.request("Ctrl-C") if number == 5 else None)
    run = scored(judge, ledger, stop=stop)
    assert (run.stop_reason, len(run), len(judge.calls)) == ("Ctrl-C", 1, 5)
    assert told(run) == about(5 * PRICE, 5 * PRICE, 2 * PRICE)
    done = scored(judge, ledger)
    assert (done.complete, len(judge.calls)) == (True, 18)
    assert told(done) == about(judge.paid, 13 * PRICE, 2 * PRICE)


@pytest.mark.parametrize("error", [ConfigError("the key is refused"), JudgeUnavailable("nobody answers")])
def test_a_run_that_an_error_ends_keeps_what_it_paid_for_a_sample_without_a_record(
    tmp_path: Path, error: Exception
) -> None:
    def before(number: int) -> None:
        if number == 3:
            raise error

    ledger, samples = tmp_path / "l.db", [{"id": "q0", "output": "bad"}]
    first, last = Priced(before=before), Priced()
    with pytest.raises(type(error), match=str(error)):
        scored(first, ledger, samples)
    with Ledger(ledger) as store:
        (row,) = store.runs()
    assert read_run(row.id, ledger=ledger).cost == pytest.approx(first.paid)
    done = scored(last, ledger, samples)
    assert (done.id, done.complete, len(first.calls), len(last.calls)) == (row.id, True, 2, 3)
    assert told(done) == about(5 * PRICE, 3 * PRICE, 2 * PRICE)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError(), "KeyError: "),
        (Unreadable(), "Unreadable: its text can't be read"),
        (ConfigError("the key is refused"), "the key is refused"),
    ],
)
def test_an_error_of_a_callback_is_raised_and_is_why_the_run_ended(
    tmp_path: Path, error: Exception, reason: str
) -> None:
    def on_record(record: Record) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        scored(Priced(), tmp_path / "l.db", on_record=on_record)
    with Ledger(tmp_path / "l.db") as store:
        (row,) = store.runs()
    assert raised.value is error
    assert read_run(row.id, ledger=tmp_path / "l.db").stop_reason.startswith(reason)


class Once(Scorer):
    """Asks one question, and fails if it fails."""

    name = "once"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        await ask(ListClaims(text=output))
        return Score(1.0)


def test_a_failure_that_was_not_retried_before_an_error_ended_the_run_counts_once(tmp_path: Path) -> None:
    def refused(number: int) -> None:
        if number > last:
            raise ConfigError("the key is refused")

    ledger, samples, judges = tmp_path / "l.db", [{"output": "bad"}, {"output": "good"}], list[Priced]()
    for last in (1, 0, 9):
        judges.append(Priced(before=refused))
        with contextlib.nullcontext() if last == 9 else pytest.raises(ConfigError):
            run = evaluate(samples, Once(), judge=judges[-1], ledger=ledger, concurrency=1)
            assert told(run) == about(3 * PRICE, 2 * PRICE, 0.0)
        with Ledger(ledger) as store:
            (row,) = store.runs()
        assert read_run(row.id, ledger=ledger).cost == pytest.approx(sum(judge.paid for judge in judges))


def test_a_record_that_is_stored_while_its_run_is_canceled_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def canceled() -> Run:
        async def keep_records(ledger: AsyncLedger, run: str, records: list[tuple[int, Record, str]]) -> None:
            await kept(ledger, run, records)
            running.cancel()
            await asyncio.sleep(60)

        kept = AsyncLedger.keep_records
        with monkeypatch.context() as patch:
            patch.setattr(AsyncLedger, "keep_records", keep_records)
            running = asyncio.ensure_future(aevaluate(samples, Once(), judge=judge, ledger=ledger, concurrency=1))
            return await running

    ledger, samples, judge = tmp_path / "l.db", [{"output": "one"}, {"output": "two"}], Priced()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(canceled())
    run = evaluate(samples, Once(), judge=judge, ledger=ledger, concurrency=1)
    assert (run.complete, run.cost) == (True, pytest.approx(judge.paid))


def test_a_call_that_fails_after_its_run_has_ended_by_an_error_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LAST_CALLS", 0.5)

    class Late(Priced, eq=False):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            if "bad" not in str(question.inputs()["text"]):
                await asyncio.sleep(0)
                raise ConfigError("the key is refused")
            try:
                await asyncio.sleep(60)
            finally:
                return await super().answer(question, repeat)  # noqa: B012 - it is answered although it is canceled

    ledger, judge = tmp_path / "l.db", Late()
    with pytest.raises(ConfigError):
        evaluate([{"output": "bad"}, {"output": "good"}], Once(), judge=judge, ledger=ledger, concurrency=2)
    with Ledger(ledger) as store:
        (row,) = store.runs()
    assert read_run(row.id, ledger=ledger).cost == pytest.approx(judge.paid) == PRICE


@pytest.mark.parametrize("stopped_before", [False, True])
def test_a_run_that_was_killed_counts_what_it_had_paid_when_it_goes_on(tmp_path: Path, stopped_before: bool) -> None:
    ledger, first, last = tmp_path / "l.db", Priced(), Priced()
    if stopped_before:
        scored(first, ledger, budget=8.5 * PRICE)
    killed_before_call(6, ledger)
    done = scored(last, ledger, budget=1.0)
    assert (done.complete, len(first.calls) + 5 + len(last.calls)) == (True, 18)
    assert told(done)[:2] == about(18 * PRICE, last.paid)


class Other(Thrice):
    """Asks the same questions in another run."""

    name = "other"


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_calls_of_another_run_that_a_resumed_run_reads_are_not_in_its_cost(tmp_path: Path, how: str) -> None:
    ledger, first, other, last = tmp_path / "l.db", Priced(), Priced(), Priced()
    if how == "stopped":
        scored(first, ledger, budget=5.5 * PRICE)
    else:
        killed_before_call(6, ledger)
    evaluate(SAMPLES[:4], Other(), judge=other, ledger=ledger, concurrency=1)
    done = scored(last, ledger)
    assert (done.complete, bool(done.resumed_at), len(last.calls) < 13) == (True, True, True)
    assert (len(other.calls) > 0, 5 + len(other.calls) + len(last.calls)) == (True, 18)
    assert told(done)[:2] == about((5 + len(last.calls)) * PRICE, last.paid)
    assert read_run(done.id, ledger=ledger).cost == pytest.approx(done.cost)


def test_answers_of_a_target_that_another_run_paid_for_are_in_no_part_of_a_resumed_runs_cost(tmp_path: Path) -> None:
    ledger, stop = tmp_path / "l.db", StopSignal()
    target = FunctionTarget(function=agent, label="agent", version="1")
    stopped = scored(Priced(before=lambda number: stop.request("Ctrl-C")), ledger, CASES, target=target, stop=stop)
    assert stopped.cost == pytest.approx(2 * COST + PRICE)
    evaluate(CASES, Other(), judge=Priced(), target=target, ledger=ledger, concurrency=1)
    done = scored(Priced(), ledger, CASES, target=target)
    assert done.target is not None
    assert (done.complete, done.target.cost, done.target.cached) == (True, 2 * COST, 4)
    assert told(done) == about(2 * COST + PRICE, 0.0, PRICE)


@dataclass
class Killed:
    """What a ledger has when its process is killed, while the process goes on."""

    ledger: Path
    copy: Path

    def __call__(self) -> None:
        with closing(sqlite3.connect(self.ledger)) as source, closing(sqlite3.connect(self.copy)) as copy:
            source.backup(copy)
            copy.execute("DELETE FROM leases")  # as of a dead process
            copy.commit()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.tuples(st.sampled_from(["kill", "stop", "refuse", "cancel", "other"]), st.integers(1, 20)), max_size=5
    ),
    concurrency=st.sampled_from([1, 1, 4]),
    bad=st.booleans(),
    budget=st.booleans(),
    cache=st.booleans(),
)
def test_the_cost_is_what_was_billed_for_the_run_whatever_interrupts_it_and_what_others_pay(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[str, int]],
    concurrency: int,
    bad: bool,
    budget: bool,
    cache: bool,
) -> None:
    folder = tmp_path_factory.mktemp("ledgers")
    ledger, billed, lost = folder / "l.db", 0.0, 0
    samples = [{"id": f"q{n}", "output": f"{'bad ' if bad and n % 2 else ''}answer {n}"} for n in range(6)]
    options: dict[str, Any] = {"concurrency": concurrency, "budget": 1.0 if budget else None}
    done: Run | None = None
    for number, (event, at) in enumerate([*events, ("none", 0)]):
        if event == "other":
            scorer, some = (Other(), samples) if cache else (Thrice(), samples[:5])
            evaluate(some, scorer, judge=Priced(), ledger=ledger, cache=cache)
            continue
        stop, copy = StopSignal(), folder / f"{number}.db"

        def before(call: int, event: str = event, at: int = at, stop: StopSignal = stop, copy: Path = copy) -> None:
            if call != at:
                return
            if event == "kill":
                Killed(ledger, copy)()  # noqa: B023 - it runs in this iteration
            elif event == "stop":
                stop.request("Ctrl-C")
            elif event == "refuse":
                raise ConfigError("the key is refused")
            elif event == "cancel":
                raise KeyboardInterrupt

        judge = Priced(before=before)
        try:
            with contextlib.suppress(ConfigError, KeyboardInterrupt):
                done = evaluate(samples, Thrice(), judge=judge, ledger=ledger, stop=stop, **options)
        finally:
            paid = len(judge.calls)
        if event == "kill" and copy.exists():
            ledger, paid, done = copy, at - 1, None
            lost += concurrency - 1
        billed += paid * PRICE
        if done is not None and done.complete:
            break
    assert done is not None
    assert done.complete
    assert billed - lost * PRICE - 1e-9 <= (done.cost or 0.0) <= billed + 1e-9
    assert read_run(done.id, ledger=ledger).cost == pytest.approx(done.cost)


def test_a_sum_is_unknown_where_the_cost_of_a_record_is() -> None:
    spending = Spending()
    spending.pay(PRICE)
    assert (spending.paid(PRICE).total, spending.paid(PRICE).this_call) == (PRICE, PRICE)
    paid = spending.paid(None)
    assert (paid.total, paid.this_call, paid.records) == (None, None, None)


def test_a_run_that_was_stopped_and_then_killed_shows_all_that_it_paid(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    run = scored(Priced(), ledger, budget=8.5 * PRICE)
    killed_before_call(6, ledger)
    found = read_run(run.id, ledger=ledger)
    # Of the five calls since, four are for the last one or two samples with records. All calls are committed, but the
    # record of a sample whose calls are committed may not be, if another sample's call came first.
    interrupted = {3: 6 * PRICE, 4: 3 * PRICE}[len(found)]
    assert (found.cost, found.interrupted_cost) == about(13 * PRICE, interrupted)
    assert ", $0.0500 of it " in cost_text(found)


def test_a_run_that_was_killed_shows_what_it_paid_before_it_is_resumed(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    killed_before_call(6, ledger)
    found = read_run("last", ledger=ledger)
    assert told(found) == about(5 * PRICE, 5 * PRICE, 2 * PRICE)
    assert cost_text(found).endswith("$0.0500 (results $0.0300, interrupted samples $0.0200)")


def test_a_run_with_a_target_that_was_killed_shows_its_whole_cost_without_parts(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    killed_before_call(8, ledger, answering=True)
    found = read_run("last", ledger=ledger)
    # Of two samples in progress at once, either may make the seven calls, so the second may have no record yet.
    assert len(found) in (1, 2)
    assert (found.interrupted_cost, found.recorded_cost) == (None, None)
    assert found.cost is not None
    # The target was called for at most two samples with records, and for those in progress.
    assert found.cost - 7 * PRICE in (pytest.approx(3 * COST), pytest.approx(4 * COST))
    assert cost_text(found) == f"cost {money(found.cost)}"


def test_a_call_that_failed_is_in_the_cost_of_a_run_that_was_killed_before_its_record(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    in_killed_process(f"""
import os, signal
from pathlib import Path
from tests.run.test_spending import Priced, scored

judge = Priced(before=lambda number: os.kill(os.getpid(), signal.SIGKILL) if number == 3 else None)
scored(judge, Path({str(ledger)!r}), [{{"id": "q0", "output": "bad"}}])
""")
    assert read_run("last", ledger=ledger).cost == pytest.approx(2 * PRICE)
    done = scored(Priced(), ledger, [{"id": "q0", "output": "bad"}])
    assert told(done) == about(5 * PRICE, 3 * PRICE, 2 * PRICE)


def test_calls_that_fail_after_they_were_paid_count_without_a_record(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    samples = [{"id": f"bad {n}", "output": f"bad {n}"} for n in range(2)]
    run = scored(judge, ledger, samples, budget=4.5 * PRICE)
    assert (len(run), len(judge.calls)) == (1, 4)
    assert told(run) == about(4 * PRICE, 4 * PRICE, PRICE)
    done = scored(judge, ledger, samples, budget=1.0)
    assert done.complete
    # The ledger has no answer to the fourth call, so that it was made again.
    assert len(judge.calls) == 7
    assert told(done) == about(7 * PRICE, 3 * PRICE, PRICE)


def test_what_failed_without_a_record_stays_in_the_budget_of_a_run_that_goes_on(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    samples = [{"id": f"bad {n}", "output": f"bad {n}"} for n in range(4)]
    for _ in range(3):
        scored(judge, ledger, samples, budget=4.5 * PRICE)
    assert judge.paid <= 4.5 * PRICE


def test_cached_answers_cost_nothing(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    scored(judge, ledger, SAMPLES[:3])
    run = scored(judge, ledger, SAMPLES[:4])
    assert len(judge.calls) == 12
    assert told(run) == about(3 * PRICE, 3 * PRICE, 0.0)
    assert cost_text(run) == "cost $0.0300"


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("version", ["", "1"])
def test_costs_of_a_target_and_of_its_trials_are_in_the_sum_and_told_apart(
    tmp_path: Path, trials: int, version: str
) -> None:
    ledger, judge, answers = tmp_path / "l.db", Priced(), list[str]()

    def answer(*, input: str) -> Answer:
        answers.append(input)
        return agent(input=f"{input} {len(answers)}")

    target = FunctionTarget(function=answer, label="agent", version=version)
    options: dict[str, Any] = {"target": target, "trials": trials}
    budget = 2 * (COST + 3 * PRICE) + COST + 2.5 * PRICE
    stopped = scored(judge, ledger, CASES, budget=budget, **options)
    assert not stopped.complete
    paid = len(answers) * COST + judge.paid
    assert (stopped.cost, stopped.interrupted_cost) == about(paid, 2 * PRICE)
    before = paid
    done = scored(judge, ledger, CASES, **options)
    assert done.complete
    paid = len(answers) * COST + judge.paid
    assert paid == pytest.approx(6 * trials * (COST + 3 * PRICE))
    assert told(done) == about(paid, paid - before, 2 * PRICE)
    target_cost, judge_cost = f"${len(answers) * COST:.2f}", f"${judge.paid - 2 * PRICE:.4f}"
    assert f"(target {target_cost}, judge {judge_cost}, interrupted samples $0.0200), $" in cost_text(done)


@pytest.mark.parametrize("version", ["", "1"])
def test_turns_that_a_stopped_run_has_paid_count_once_in_a_conversation_that_ends_before_a_kill(
    tmp_path: Path, version: str
) -> None:
    ledger, stop = tmp_path / "l.db", StopSignal()
    stopped = talked(ledger, version, stop=stop, before=lambda number: stop.request("Ctrl-C") if number == 2 else None)
    assert stopped.cost == pytest.approx(2 * COST)
    in_killed_process(f"""
import os, signal
from pathlib import Path
from tests.run.test_spending import talked

def kill(number):
    os.kill(os.getpid(), signal.SIGKILL)

talked(Path({str(ledger)!r}), {version!r}, judge=kill)
""")
    done = talked(ledger, version)
    assert done.complete
    # The turn that came after the stop, and one question to the judge that was asked after the kill.
    assert told(done) == about(3 * COST + 3 * PRICE, 3 * PRICE, 0.0)


def test_answers_of_a_target_whose_run_was_killed_count_once(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", Priced()
    killed_before_call(8, ledger, answering=True)
    done = scored(judge, ledger, CASES, target=FunctionTarget(function=agent, label="agent"))
    assert (done.complete, len(judge.calls)) == (True, 11)
    assert done.cost == pytest.approx(6 * COST + 18 * PRICE)


def test_a_run_through_batches_says_what_its_batches_cost(server: BatchServer, run: Call, tmp_path: Path) -> None:
    submitted = run("faithfulness")
    assert told(submitted) == (0.0, 0.0, 0.0)
    half = run("faithfulness")
    assert len(half) == 0
    assert told(half) == about(4 * A_QUESTION, 4 * A_QUESTION, 4 * A_QUESTION)
    done = run("faithfulness")
    assert done.complete
    assert told(done) == about(8 * A_QUESTION, 4 * A_QUESTION, 0.0)
    assert told(read_run(done.id, ledger=tmp_path / "l.db")) == told(done)
    assert told(run("faithfulness")) == (0.0, 0.0, 0.0)


def test_a_run_that_goes_on_through_batches_keeps_what_it_had_paid(
    server: BatchServer, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(self: ModelJudge, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        reply = json.dumps(question.example())
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply, cost=PRICE)

    stop = StopSignal()

    def stop_it(record: Record) -> None:
        stop.request("Ctrl-C")

    with monkeypatch.context() as patched:
        patched.setattr(ModelJudge, "answer", answer)
        options: dict[str, Any] = {"batch": False, "concurrency": 1, "stop": stop}
        stopped = run("faithfulness", **options, on_record=stop_it)
    assert stopped.cost == pytest.approx(4 * PRICE)
    over = run("faithfulness", budget=4 * PRICE)
    assert (len(over), server.batches) == (2, [])
    for collected in (0, 2, 4):
        done = run("faithfulness")
        assert done.id == stopped.id
        assert told(done)[:2] == about(4 * PRICE + collected * A_QUESTION, min(collected, 2) * A_QUESTION)
    assert done.complete


def test_a_price_that_is_unknown_makes_the_sum_unknown() -> None:
    class Unknown(Priced):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            answer = await super().answer(question, repeat)
            return JudgeAnswer(value=answer.value, judge=answer.judge, reply=answer.reply, cost=None)

    run = scored(Unknown(), None)
    assert (run.cost, run.interrupted_cost, cost_text(run)) == (None, None, "cost unknown")
    assert run.to_dict()["paid"]["total"] is None


def test_a_conversation_counts_what_its_run_paid_for(tmp_path: Path) -> None:
    session = Session(ScriptedJudge([]))
    session.calls.spending.run = "r1"
    conversation = Conversation(Sample(id="c", turns=(Sample(id="1", input="a"),)), None, session)
    key = Key("f1", "priced", 0)
    turn = TargetOutcome(conversation.sample, cost=2.0, usage=Usage(input=1), seconds=0.5)
    conversation.count(turn)
    conversation.count(turn._replace(paid=False))
    assert (conversation.paid, conversation.usage, conversation.seconds) == (2.0, Usage(input=1), 1.0)
    again = conversation.restarted()
    assert (again.paid, again.seconds, again.usage) == (2.0, 0.0, Usage(input=1))
    again._scope.calls.extend([call("f1", cost=0.0)] * 2)  # pyright: ignore[reportPrivateUsage]
    session.paid_before[key] = StoredAnswer.of(key, "q", call("f1", cost=0.25), "r1")
    assert again.count_user() == 0.25
    assert again.count_user() == 0.0


@pytest.mark.parametrize(("run", "payer", "paid"), [("r1", "r1", True), ("r1", "r2", False), ("", "", False)])
def test_a_run_has_paid_for_the_answers_that_name_it(run: str, payer: str, paid: bool) -> None:
    spending = Spending()
    spending.run = run
    answer = StoredAnswer.of(Key("f1", "priced", 0), "list_claims", call("f1"), payer)
    assert spending.has_paid_for(answer) is paid


def call(fingerprint: str, **values: Any) -> JudgeCall:
    made = JudgeCall(question="list_claims", fingerprint=fingerprint, judge="priced", answer={}, cost=PRICE)
    return replace(made, **values)

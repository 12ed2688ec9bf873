"""What a run calls with its samples: once, when all of their records are stored, one at a time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, Failed, Record, SampleResult, Skipped, StopSignal, aevaluate, evaluate, read_run
from evalstone.run.notifier import MOST_WAITING, Notifier
from evalstone.targets import FunctionTarget
from tests.fakes import longest_wait
from tests.run.batch_runs import Call
from tests.runs import Given, Harm, samples_of

SCORERS = [Given(), Harm(), Given(scale=10)]
TITLES = ["given", "harm", "given(scale=10)"]
CASES = [{"id": f"q{n}", "input": str(n)} for n in range(6)]


def either(function: Callable[[Any], None], *, is_async: bool) -> Callable[[Any], Any]:
    async def later(value: Any) -> None:
        await asyncio.sleep(0)
        function(value)

    return later if is_async else function


def on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def half(*, input: str) -> str:
    return "0.5"


def fraction(*, input: str) -> str:
    return f"0.{input}"


def failing(*, input: str) -> str:
    return "fail" if input == "1" else "0.5"


@pytest.mark.parametrize("of_records", [False, True], ids=["plain records", "async records"])
@pytest.mark.parametrize("of_samples", [False, True], ids=["plain samples", "async samples"])
def test_a_sample_comes_once_after_its_records_and_one_at_a_time(
    tmp_path: Path, of_records: bool, of_samples: bool
) -> None:
    ledger, calls, at_once = tmp_path / "l.db", list[tuple[str, str]](), [0]

    def one(value: Record | SampleResult) -> None:
        at_once[0] += 1
        assert at_once == [1]
        time.sleep(0.001)
        name = value.sample_id if isinstance(value, Record) else value.sample.id
        if isinstance(value, SampleResult) and name == "s1":
            # Stored: another process would see them.
            assert len([record for record in read_run("last", ledger=ledger) if record.sample_id == "s1"]) == 3
        calls.append((type(value).__name__, name))
        assert on_loop() == (of_records if isinstance(value, Record) else of_samples)
        at_once[0] -= 1

    run = evaluate(
        samples_of(["0.5"] * 20),
        SCORERS,
        ledger=ledger,
        on_record=either(one, is_async=of_records),
        on_sample=either(one, is_async=of_samples),
    )
    names = [sample.id for sample in run.samples or ()]
    assert sorted(name for kind, name in calls if kind == "SampleResult") == sorted(names)
    for name in names:
        assert [kind for kind, of in calls if of == name] == ["Record"] * 3 + ["SampleResult"]


def test_a_sample_comes_with_its_answer_and_its_records_by_title() -> None:
    results = list[SampleResult]()

    def agent(*, input: str, trial: int) -> str:
        if input == "2":
            raise ValueError("no answer")
        return f"0.{input}{trial}"

    evaluate(CASES, SCORERS, target=agent, trials=2, ledger=None, on_sample=results.append)
    by_case = {(one.sample.id, one.sample.trial): one for one in results}
    assert len(results) == len(by_case) == 12
    one = by_case["q1", 2]
    assert one.sample.output == "0.12"
    assert list(one.records) == TITLES
    assert [record.value for record in one.records.values()] == [0.12, 0.12, pytest.approx(1.2)]
    assert {(record.sample_id, record.trial) for record in one.records.values()} == {("q1", 2)}
    lost = by_case["q2", 1]
    assert lost.sample.output is None
    assert all(isinstance(record.outcome, Failed) for record in lost.records.values())


@pytest.mark.parametrize("name", ["on_record", "on_sample"])
def test_what_can_not_be_called_with_one_value_is_refused_before_anything_is_asked(name: str) -> None:
    asked = list[str]()

    def agent(*, input: str) -> str:
        asked.append(input)
        return input

    def two(sample: object, records: object) -> None: ...

    wrong: list[tuple[Any, str]] = [(3, "not 3"), (two, "missing a required argument: 'records'")]
    for function, problem in wrong:
        with pytest.raises(ConfigError, match=f"{name} must be a function .*{problem}"):
            evaluate(CASES, SCORERS, target=agent, ledger=None, **{name: function})
    assert asked == []
    fine: dict[str, Any] = {name: list[Any]().append}
    evaluate(CASES, SCORERS, target=agent, ledger=None, **fine)


def test_without_a_target_the_sample_is_the_one_in_the_dataset() -> None:
    samples, results = samples_of(["1", "skip", "fail"]), list[SampleResult]()
    evaluate(samples, SCORERS, ledger=None, on_sample=results.append)
    assert sorted(results, key=lambda one: one.sample.id)[0].sample is samples[0]
    outcomes = {one.sample.id: type(one.records["given"].outcome).__name__ for one in results}
    assert outcomes == {"s1": "Score", "s2": "Skipped", "s3": "Failed"}


@pytest.mark.parametrize("target", [None, FunctionTarget(function=half, label="agent")])
def test_a_resumed_run_calls_with_every_sample_and_an_interrupted_one_with_whole_ones(
    tmp_path: Path, target: FunctionTarget | None
) -> None:
    samples: Any = [{"id": f"s{n}", "input": str(n), "output": "0.5"} for n in range(30)]
    settings: dict[str, Any] = {"target": target, "ledger": tmp_path / "l.db", "concurrency": 1}
    stop, seen, again = StopSignal(), list[str](), list[SampleResult]()

    def on_record(record: Record) -> None:
        if record.sample_id == "s4":
            stop.request("enough")

    first = evaluate(
        samples, SCORERS, stop=stop, on_record=on_record, on_sample=lambda one: seen.append(one.sample.id), **settings
    )
    records: Mapping[str, int] = {
        name: sum(r.sample_id == name for r in first) for name in {r.sample_id for r in first}
    }
    assert min(records.values()) < 3  # a sample that was begun and isn't whole
    assert sorted(seen) == sorted(name for name, number in records.items() if number == 3)
    run = evaluate(samples, SCORERS, on_sample=again.append, **settings)
    assert run.resumed == len(first)
    assert sorted(one.sample.id for one in again) == sorted(one["id"] for one in samples)
    assert {one.sample.output for one in again} == {"0.5"}


def test_after_a_kill_each_sample_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"target": FunctionTarget(function=fraction, label="agent")}
    settings |= {"ledger": "l.db", "trials": 2}
    calls = list[int]()

    def die(_: SampleResult) -> None:
        calls.append(1)
        if len(calls) == 4:
            os._exit(9)

    if (pid := os.fork()) == 0:
        evaluate(CASES, SCORERS, concurrency=1, on_sample=die, **settings)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    results = list[SampleResult]()
    run = evaluate(CASES, SCORERS, on_sample=results.append, **settings)
    assert run.resumed >= 12
    assert len({(one.sample.id, one.sample.trial) for one in results}) == len(results) == 12
    assert all(one.sample.output == f"0.{one.sample.input}" for one in results)
    # What was stored comes first. While `die` ran in its thread, more may have been stored.
    stored = results[: run.resumed // len(SCORERS)]
    assert {(one.sample.id, one.sample.trial) for one in stored} >= {("q0", 1), ("q0", 2), ("q1", 1), ("q1", 2)}


@pytest.mark.parametrize("is_async", [False, True])
def test_what_on_sample_raises_ends_the_run_and_the_records_so_far_stay(tmp_path: Path, is_async: bool) -> None:
    def on_sample(result: SampleResult) -> None:
        if result.sample.id == "s3":
            raise ZeroDivisionError("no luck")

    settings: dict[str, Any] = {"ledger": tmp_path / "l.db", "concurrency": 1}
    samples = samples_of(["0.5"] * 200)
    with pytest.raises(ZeroDivisionError, match="no luck"):
        evaluate(samples, SCORERS, on_sample=either(on_sample, is_async=is_async), **settings)
    # All records of s1 to s3, except one that the other of the two workers may still be computing.
    assert 8 <= evaluate(samples, SCORERS, **settings).resumed < 600


def test_failures_of_an_interrupted_run_that_were_not_tried_again_complete_their_samples(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "target": FunctionTarget(function=failing, label="agent"),
        "ledger": tmp_path / "l.db",
        "concurrency": 1,
    }
    stop, seen = StopSignal(), list[SampleResult]()

    def on_record(record: Record) -> None:
        if record.sample_id == "q3":
            stop.request("enough")

    evaluate(CASES, SCORERS, stop=stop, on_record=on_record, **settings)
    stop = StopSignal()
    stop.request("at once")
    run = evaluate(CASES, SCORERS, stop=stop, on_sample=seen.append, **settings)
    whole = [name for name in ("q0", "q1", "q2", "q3", "q4") if sum(r.sample_id == name for r in run) == 3]
    assert "q1" in whole
    assert sorted(one.sample.id for one in seen) == whole
    failed = next(one for one in seen if one.sample.id == "q1")
    assert failed.sample.output == "fail"
    assert {one.id: one.output for one in run.samples or ()}["q1"] == "fail"


def test_a_batch_calls_with_each_sample_when_its_answers_are_there(server: object, run: Call) -> None:
    results = list[SampleResult]()
    one = run("faithfulness", "toxicity", on_sample=results.append, batch=True)
    while not one.complete:
        results.clear()
        one = run("faithfulness", "toxicity", on_sample=results.append, batch=True)
    assert sorted(r.sample.id for r in results) == sorted({record.sample_id for record in one})
    assert all(len(r.records) == 2 for r in results)


def test_a_slow_plain_function_does_not_block_the_event_loop() -> None:
    work = aevaluate(samples_of(["1"]), SCORERS, ledger=None, on_sample=lambda _: time.sleep(1))
    assert asyncio.run(longest_wait(work)) < 0.8


def test_calls_that_are_added_during_one_are_awaited_too() -> None:
    calls = list[str]()

    async def slow(record: Record) -> None:
        await asyncio.sleep(0.01)
        calls.append(record.sample_id)

    async def add_during_a_call() -> None:
        notifier = Notifier(on_record=slow)
        notifier.add_record(Record(sample_id="a", scorer="given", signature="given@1", outcome=Skipped("x")))
        first = asyncio.ensure_future(notifier.done())
        await asyncio.sleep(0.005)
        notifier.add_record(Record(sample_id="b", scorer="given", signature="given@1", outcome=Skipped("x")))
        await notifier.done()
        assert calls == ["a", "b"]
        await first

    asyncio.run(add_during_a_call())


def test_a_thousand_calls_that_wait_are_enough() -> None:
    def nothing(record: Record) -> None: ...

    notifier = Notifier(on_record=nothing)
    for number in range(MOST_WAITING):
        assert not notifier.full
        notifier.add_record(Record(sample_id=str(number), scorer="given", signature="given@1", outcome=Skipped("x")))
    assert notifier.full
    asyncio.run(notifier.done())
    assert not notifier.full

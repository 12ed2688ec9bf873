"""Conversations: turns of a sample or of a user, held by a target, kept turn by turn, scored as one answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    Failed,
    Run,
    Sample,
    ScriptedJudge,
    Skipped,
    StopSignal,
    aevaluate,
    evaluate,
    read_run,
    scorer,
)
from evalstone.judges.base import Judge
from evalstone.ledger.maintenance import prune
from evalstone.ledger.store import Ledger
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.results.files import write_run
from evalstone.results.views.spending import cost_text
from evalstone.run.conversations import _repeated  # pyright: ignore[reportPrivateUsage]
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.targets import Answer, FunctionTarget, SimulatedUser, User
from evalstone.types import Message, Record, Usage

PROJECT = Path(__file__).parents[2]


@scorer
def said(*, messages: Sequence[Message]) -> bool:
    """1 for any conversation that was held."""
    return bool(messages)


@scorer
def counted(*, turns: Sequence[Sample]) -> float:
    return len(turns) / 10


def cases(number: int = 1, turns: int = 3) -> list[dict[str, Any]]:
    return [{"id": f"c{n}", "turns": [f"{n}.{turn}" for turn in range(1, turns + 1)]} for n in range(number)]


def echo(*, input: str, messages: Sequence[Message]) -> Answer:
    return Answer(output=f"{len(messages)}: {input}", cost=0.5, usage=Usage(input=1), context=[f"on {input}"])


def failure(run: Run) -> str:
    """The error of the one record."""
    (record,) = run
    assert isinstance(record.outcome, Failed)
    return record.outcome.error


def reason(record: Record) -> str:
    """Why a sample was skipped."""
    assert isinstance(record.outcome, Skipped)
    return record.outcome.reason


def spoken(sample: Sample) -> list[str]:
    return [f"{message.role[0]} {message.content}" for message in sample.messages]


def of(run: Run) -> list[Sample]:
    assert run.samples is not None
    return list(run.samples)


def test_the_turns_of_a_sample_share_a_thread_and_their_answers_are_one():
    threads: list[str] = []

    def agent(*, input: str, messages: Sequence[Message], thread: str) -> Answer:
        threads.append(thread)
        return echo(input=input, messages=messages)

    data = [
        {"id": "c", "turns": ["Hi", {"input": "Bye", "reference": "3: Bye"}], "reference": "3: Bye"},
        {"input": "x"},
    ]
    run = evaluate(data, ["exact_match", counted], target=agent, trials=2, ledger=None)
    first, second, alone, _ = of(run)
    assert (first.trial, second.trial) == (1, 2)
    assert spoken(first) == ["u Hi", "a 1: Hi", "u Bye", "a 3: Bye"]
    assert (first.input, first.output, first.context) == ("Hi", "3: Bye", ("on Hi", "on Bye"))
    call = first.metadata["target"]
    assert (call["cost"], call["usage"]["input"], call["trace"]) == (1.0, 2, {"ended": "script"})
    assert [(turn.id, turn.output, turn.reference, turn.context) for turn in first.turns] == [
        ("1", "1: Hi", None, ("on Hi",)),
        ("2", "3: Bye", "3: Bye", ("on Bye",)),
    ]
    assert spoken(first.turns[1]) == ["u Bye", "a 3: Bye"]
    assert first.turns[1].metadata["target"]["cost"] == 0.5
    assert (alone.turns, alone.output) == ((), "1: x")
    assert sorted(Counter(threads).values()) == [1, 1, 2, 2]
    assert run["exact_match"].mean == 1
    assert [record.value for record in run if record.signature.startswith("counted")] == [0.2, 0.2, None, None]
    assert run.target is not None
    assert (run.target.answers, run.target.cost, run.target.usage.input) == (4, 3.0, 6)


def test_a_turn_has_its_own_context_instructions_and_metadata():
    seen: list[Any] = []

    def agent(*, messages: Any, context: Any = None, instructions: Any = None, metadata: Any = None) -> str:
        seen.append((context, instructions, metadata))
        return "ok"

    turns = ["Hi", {"input": "Bye", "context": ["own"], "instructions": "Shout.", "metadata": {"lang": "en"}}]
    evaluate(
        [{"turns": turns, "context": ["all"], "metadata": {"lang": "de", "a": 1}}], said, target=agent, ledger=None
    )
    assert seen == [(("all",), None, {"lang": "de", "a": 1}), (("own",), "Shout.", {"lang": "en", "a": 1})]


def text(input: str, messages: Sequence[Message]) -> Any:
    return f"{input}!"


def reply_alone(input: str, messages: Sequence[Message]) -> Any:
    return {"messages": [{"role": "assistant", "content": f"{input}!"}]}


def everything(input: str, messages: Sequence[Message]) -> Any:
    before = [{"role": message.role, "content": message.content} for message in messages]
    return {"messages": [*before, {"role": "assistant", "content": f"{input}!"}]}


def last_exchange(input: str, messages: Sequence[Message]) -> Any:
    return {"messages": [{"role": "user", "content": input}, {"role": "assistant", "content": f"{input}!"}]}


@pytest.mark.parametrize("reply", [text, reply_alone, everything, last_exchange])
def test_whatever_part_of_the_conversation_a_target_returns_each_message_is_there_once(reply: Callable[..., Any]):
    def agent(*, input: str, messages: Sequence[Message]) -> Any:
        return reply(input, messages)

    (sample,) = of(evaluate([{"turns": ["a", "a", "b"]}], said, target=agent, ledger=None))
    assert spoken(sample) == ["u a", "a a!", "u a", "a a!", "u b", "a b!"]
    assert [spoken(turn) for turn in sample.turns] == [["u a", "a a!"], ["u a", "a a!"], ["u b", "a b!"]]


CALL = {"id": "1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
CALLED = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
]


def tool_and_output(input: str, messages: Sequence[Message]) -> Any:
    return Answer(output=f"{input}!", messages=CALLED)


def tool_and_message_of_its_own(input: str, messages: Sequence[Message]) -> Any:
    return {"messages": [*CALLED, {"role": "user", "content": "result"}, {"role": "assistant", "content": f"{input}!"}]}


def everything_and_the_question_again(input: str, messages: Sequence[Message]) -> Any:
    before = [{"role": message.role, "content": message.content} for message in messages]
    return {"messages": [*before, *CALLED, before[-1], {"role": "assistant", "content": f"{input}!"}]}


def other_words(input: str, messages: Sequence[Message]) -> Any:
    return {
        "messages": [{"role": "user", "content": f"Q: {input}"}, *CALLED, {"role": "assistant", "content": f"{input}!"}]
    }


@pytest.mark.parametrize(
    "reply", [tool_and_output, tool_and_message_of_its_own, everything_and_the_question_again, other_words]
)
def test_nothing_of_an_answer_is_lost(reply: Callable[..., Any]):
    def agent(*, input: str, messages: Sequence[Message]) -> Any:
        return reply(input, messages)

    run = evaluate([{"turns": ["a", "b"]}], "tool_not_called(tool=book)", target=agent, ledger=None)
    (sample,) = of(run)
    assert run["tool_not_called"].mean == 0
    for turn in sample.turns:
        assert [call.name for message in turn.messages for call in message.tool_calls] == ["book"]
        assert turn.messages[-1] == Message(role="assistant", content=f"{turn.input}!")


@pytest.mark.parametrize(
    ("answer", "own"),
    [
        ("uyes ano uyes adone", ["done"]),
        ("shello uyes ano uyes adone", ["done"]),
        ("shello uyes ano uyes acall uyes adone", ["call", "yes", "done"]),
        ("shello uyes adone", ["done"]),
        ("shello uOK ano uso acall uresult adone", ["call", "result", "done"]),
        ("shello uOK adone", ["done"]),
        ("acall uresult adone", ["call", "result", "done"]),
        ("adone", ["done"]),
    ],
)
def test_an_answer_may_begin_with_the_request_in_part_or_in_other_words(answer: str, own: list[str]) -> None:
    roles: dict[str, Any] = {"u": "user", "a": "assistant", "s": "system"}

    def messages(text: str) -> list[Message]:
        return [Message(role=roles[word[0]], content=word[1:]) for word in text.split()]

    reply = messages(answer)
    assert [one.content for one in reply[_repeated(reply, messages("uyes ano uyes")) :]] == own


def test_a_turn_whose_answer_repeats_what_was_said_has_no_answer():
    def agent(*, messages: Sequence[Message]) -> Any:
        said = [{"role": message.role, "content": message.content} for message in messages]
        return "fine" if len(messages) == 1 else {"messages": said}

    run = evaluate([{"turns": ["a", "b"]}], said, target=agent, ledger=None)
    assert re.search("turn 2: .* new message", failure(run))


def test_a_turn_that_fails_fails_the_conversation_and_names_itself():
    asked: list[str] = []

    def agent(*, input: str, messages: Any) -> Any:
        asked.append(input)
        return {"cost": 0.0} if input == "b" else "ok"

    run = evaluate([{"turns": ["a", "b", "c"]}, {"turns": ["a"]}], said, target=agent, ledger=None)
    failed, fine = (record.outcome for record in run)
    assert isinstance(failed, Failed)
    assert re.search("turn 2: .* no answer", failed.error)
    assert not isinstance(fine, Failed)
    assert sorted(asked) == ["a", "a", "b"]
    assert run.target is not None
    assert (run.target.answers, run.target.failed) == (1, 1)


def test_prepare_and_finish_stand_around_the_whole_conversation():
    log: list[str] = []

    def prepare(sample: Sample) -> None:
        log.append("prepare")
        sample.metadata["basket"].append("empty")  # pyright: ignore[reportIndexIssue]

    def agent(*, input: str, messages: Any, metadata: Any) -> str:
        log.append(f"{input} {metadata['basket']}")
        metadata["basket"].append(input)
        return "ok"

    def finish(sample: Sample) -> Any:
        log.append("finish")
        return sample.metadata["basket"]

    target = FunctionTarget(function=agent, prepare=prepare, finish=finish)
    run = evaluate([{"turns": ["a", "b"], "metadata": {"basket": []}}], said, target=target, trials=2, ledger=None)
    for sample in of(run):
        assert sample.state == ["empty", "a", "b"]
        assert sample.metadata["basket"] == []
    assert Counter(log) == {"prepare": 2, "finish": 2, "a ['empty']": 2, "b ['empty', 'a']": 2}


def test_what_a_target_writes_into_the_metadata_is_there_in_the_next_turn_and_at_the_end():
    def agent(*, messages: Any, metadata: Any) -> str:
        metadata["asked"] = metadata.get("asked", 0) + 1
        return "ok"

    target = FunctionTarget(function=agent, finish=lambda sample: sample.metadata["asked"])
    run = evaluate([{"turns": ["a", "b"]}, {"input": "a"}], said, target=target, ledger=None)
    assert [sample.state for sample in of(run)] == [2, 1]


def test_cleaning_up_after_a_turn_that_failed_is_timed_too():
    async def agent(*, messages: Any) -> str:
        raise ValueError("no")

    async def finish(sample: Sample) -> None:
        await asyncio.sleep(30)

    run = evaluate(cases(), said, target=FunctionTarget(function=agent, finish=finish, timeout=0.5), ledger=None)
    assert "not ready within 0.5 s" in failure(run)


def finish_badly(sample: Sample) -> None:
    raise ValueError("nothing to clean up")


def test_cleaning_up_what_was_broken_off_does_not_make_it_a_failure_of_the_target(tmp_path: Path):
    url, stop = f"sqlite:///{tmp_path}/l.db", StopSignal()

    def agent(*, input: str, messages: Any) -> str:
        stop.request("enough")
        return "ok"

    def user(turn: int) -> str:
        raise KeyError("line")

    target = FunctionTarget(function=agent, finish=finish_badly, label="agent")
    run = evaluate(cases(), said, target=target, ledger=url, stop=stop)
    assert (list(run), run.stop_reason) == ([], "enough")
    error = failure(evaluate([{"input": "a"}], said, target=target, user=user, ledger=None))
    assert error.startswith("the user failed: ")
    assert "KeyError: 'line'" in error


@pytest.mark.parametrize("data", [{"input": "a"}, {"turns": ["a", "b"]}])
def test_a_cancelled_call_is_not_kept_as_one_that_failed_to_clean_up(data: dict[str, Any], tmp_path: Path):
    url, asked, started = f"sqlite:///{tmp_path}/l.db", list[str](), asyncio.Event()

    async def agent(*, input: str, messages: Any) -> str:
        asked.append(input)
        if len(asked) == 1:
            started.set()
            await asyncio.sleep(30)
        return "ok"

    def finish(sample: Sample) -> None:
        if len(asked) == 1:
            raise ValueError("nothing to clean up")

    target = FunctionTarget(function=agent, finish=finish, label="agent")

    async def cancelled() -> None:
        task = asyncio.create_task(aevaluate([data], said, target=target, ledger=url))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (record,) = evaluate([data], said, target=target, ledger=url)
    assert not isinstance(record.outcome, Failed)
    assert len(asked) > 1


def test_the_state_of_turns_that_are_in_the_ledger_is_not_that_of_a_new_set_up(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/l.db"

    def agent(*, input: str, messages: Any, metadata: Any) -> str:
        if input == "broken":
            raise ValueError("no")
        metadata["basket"].append(input)
        return "ok"

    def finish(sample: Sample) -> Any:
        return [sample.metadata["basket"][0], len(sample.metadata["basket"])]  # there is none in a new one

    def run(*turns: Any) -> Sample:
        data: list[Any] = [{"id": "c", "turns": turns, "metadata": {"basket": []}}]
        target = FunctionTarget(function=agent, finish=finish, label="agent", version="1")
        return of(evaluate(data, said, target=target, ledger=url))[0]

    assert run("a", "b").state == ["a", 2]
    assert run("a", {"input": "b", "reference": "ok"}).state == ["a", 2]
    assert run("a").state == ["a", 1]
    assert run("broken", "b").state is None
    assert run("broken").state is None


@pytest.mark.parametrize("where", ["prepare", "finish"])
def test_what_fails_around_a_conversation_fails_it(where: str):
    def broken(sample: Sample) -> None:
        raise ValueError("no table")

    target = replace(FunctionTarget(function=echo), **{where: broken})
    run = evaluate(cases(), said, target=target, ledger=None)
    assert f"ValueError: no table ({Path(__file__).name}, line " in failure(run)


def test_a_target_that_cannot_follow_a_conversation_is_refused():
    def agent(*, input: str) -> str:
        return input

    with pytest.raises(ConfigError, match="neither messages nor"):
        evaluate(cases(), said, target=agent, ledger=None)
    with pytest.raises(ConfigError, match="follow a conversation"):
        evaluate([{"input": "a"}], said, target=agent, user=["b"], ledger=None)
    assert evaluate(cases(turns=1), said, target=agent, ledger=None)["said"].mean == 1


def test_an_input_that_nobody_says_is_refused():
    expected = "its input must be what the user says first, 'a', or left out, not 'x'"
    with pytest.raises(ConfigError, match=expected):
        evaluate([{"input": "x", "turns": ["a", "b"]}], said, target=echo, ledger=None)
    asked = Sample(id="s", input="x", messages=[Message(role="user", content="a")])
    with pytest.raises(ConfigError, match=expected):
        evaluate([asked], said, target=echo, user=["b"], ledger=None)
    assert not isinstance(next(iter(evaluate([asked], said, target=echo, ledger=None))).outcome, Failed)


def test_a_dry_run_counts_the_turns_that_are_not_in_the_ledger(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/l.db"
    target = FunctionTarget(function=echo, label="echo", version="1")
    evaluate(cases(1), said, target=target, ledger=url)
    work = asyncio.run(estimate(plan_for(cases(3), said, target=target, trials=2), ledger=url))
    assert (work.target_calls, work.target_answers) == (15, 1)


def stopping(agent: Callable[..., Any], at: str, stop: StopSignal, asked: list[tuple[str, str]]) -> Callable[..., Any]:
    def stops(*, input: str, messages: Sequence[Message], thread: str = "") -> Any:
        asked.append((input, thread))
        if input == at:
            stop.request("enough")
        return agent(input=input, messages=messages)

    return stops


def test_an_interrupted_conversation_goes_on_at_the_turn_where_it_was(tmp_path: Path):
    url, asked = f"sqlite:///{tmp_path}/l.db", list[str]()
    stop = StopSignal()

    def agent(*, input: str, messages: Sequence[Message]) -> Answer:
        asked.append(input)
        if input == "0.2":
            stop.request("enough")
        return echo(input=input, messages=messages)

    target = FunctionTarget(function=agent, label="agent")
    evaluate(cases(), said, target=target, ledger=url, stop=stop, budget=10)
    assert asked == ["0.1", "0.2"]
    run = evaluate(cases(), said, target=target, ledger=url, budget=10)
    assert asked == ["0.1", "0.2", "0.3"]
    assert spoken(of(run)[0]) == ["u 0.1", "a 1: 0.1", "u 0.2", "a 3: 0.2", "u 0.3", "a 5: 0.3"]
    assert run.target is not None
    assert (run.target.cost, run.target.cached) == (1.5, 0)
    evaluate(cases(), said, target=target, ledger=url)
    assert len(asked) == 6


def test_an_interrupted_conversation_with_a_target_that_keeps_threads_begins_again(tmp_path: Path):
    url, asked = f"sqlite:///{tmp_path}/l.db", list[tuple[str, str]]()
    stop = StopSignal()

    def agent(*, input: str, thread: str) -> str:
        asked.append((input, thread))
        if input == "0.2":
            stop.request("enough")
        return "ok"

    target = FunctionTarget(function=agent, label="agent")
    evaluate(cases(), said, target=target, ledger=url, stop=stop)
    first = {thread for _, thread in asked}
    asked.clear()
    run = evaluate(cases(), said, target=target, ledger=url)
    assert [input for input, _ in asked] == ["0.1", "0.2", "0.3"]
    assert len({thread for _, thread in asked}) == 1
    assert first.isdisjoint(thread for _, thread in asked)
    assert run["said"].mean == 1


@pytest.mark.parametrize("interrupted", [1, 3])
def test_what_a_conversation_that_begins_again_had_cost_is_counted(interrupted: int, tmp_path: Path):
    url, asked = f"sqlite:///{tmp_path}/l.db", list[str]()
    stops = [StopSignal() for _ in range(interrupted)]

    def agent(*, input: str, thread: str) -> Answer:
        asked.append(input)
        if input == "0.2":
            stops[min(asked.count("0.2"), interrupted) - 1].request("enough")
        # Another answer each time, so that the answers to later turns are kept elsewhere.
        return Answer(output=f"ok {len(asked)}", cost=0.5, usage=Usage(input=1))

    target = FunctionTarget(function=agent, label="agent")
    for stop in stops:
        evaluate(cases(), said, target=target, ledger=url, stop=stop)
    run = evaluate(cases(), said, target=target, ledger=url)
    assert run.target is not None
    assert len(asked) == 2 * interrupted + 3
    assert (run.target.cost, run.target.usage.input) == (0.5 * len(asked), len(asked))
    assert of(run)[0].metadata["target"]["cost"] == 1.5


def test_a_stored_conversation_does_not_pass_for_a_free_call(tmp_path: Path):
    url, asked = f"sqlite:///{tmp_path}/l.db", list[str]()

    async def agent(*, input: str, messages: Any) -> Answer:
        asked.append(input)
        await asyncio.sleep(0.01)
        return Answer(output="ok", cost=0.5)

    target = FunctionTarget(function=agent, label="agent", version="1")
    evaluate(cases(1), said, target=target, ledger=url)
    asked.clear()
    run = evaluate(cases(9), said, target=target, ledger=url, budget=1)
    assert len(asked) == 2
    assert "not fit into" in run.stop_reason


def test_other_messages_before_the_turns_are_another_conversation(tmp_path: Path):
    def agent(*, input: str, thread: str) -> str:
        return "ok"

    target = FunctionTarget(function=agent, label="agent", version="1")
    for content in ("Be kind.", "Be brief."):
        data = [{"id": "c", "turns": ["a"], "messages": [{"role": "system", "content": content}]}]
        run = evaluate(data, said, target=target, ledger=f"sqlite:///{tmp_path}/l.db")
        assert spoken(of(run)[0]) == [f"s {content}", "u a", "a ok"]


def test_a_turn_that_lacks_what_the_target_needs_is_skipped_before_anything_is_asked():
    asked: list[str] = []

    def agent(*, input: str, messages: Any, context: Any) -> str:
        asked.append(input)
        return "ok"

    data = [{"turns": [{"input": "a", "context": ["x"]}, "b"]}, {"turns": ["c", "d"], "context": ["x"]}]
    run = evaluate(data, said, target=agent, ledger=None)
    assert "needs context," in reason(run[0])
    assert asked == ["c", "d"]


def test_a_version_lets_later_runs_use_the_conversations(tmp_path: Path):
    url, asked = f"sqlite:///{tmp_path}/l.db", list[str]()

    def agent(*, input: str, messages: Sequence[Message]) -> Answer:
        asked.append(input)
        return echo(input=input, messages=messages)

    target = FunctionTarget(function=agent, label="agent", version="1")
    first = evaluate(cases(), said, target=target, ledger=url)
    second = evaluate(cases(), [said, counted], target=target, ledger=url)
    assert asked == ["0.1", "0.2", "0.3"]
    assert [spoken(sample) for sample in of(first)] == [spoken(sample) for sample in of(second)]
    assert second.target is not None
    assert (second.target.cost, second.target.cached) == (0, 1)
    changed = [{"id": "c0", "turns": ["0.1", "0.2", "new"]}]
    evaluate(changed, said, target=target, ledger=url)
    assert asked[3:] == ["new"]


def test_a_recorded_conversation_is_held_anew():
    history = [{"role": "system", "content": "Be kind."}]
    run = evaluate([{"turns": ["a", "b"], "messages": history}], said, target=echo, ledger=None)
    again = evaluate(of(run), said, target=echo, ledger=None)
    assert spoken(of(run)[0]) == ["s Be kind.", "u a", "a 2: a", "u b", "a 4: b"]
    assert [spoken(sample) for sample in of(again)] == [spoken(sample) for sample in of(run)]


def run_it(url: str) -> Run:
    def agent(*, input: str, messages: Sequence[Message], trial: int) -> Answer:
        with Path("calls").open("ab", buffering=0) as file:
            file.write(f"{input}|{trial}\n".encode())
        time.sleep(0.002)
        if input.endswith("7.2"):
            raise ValueError("no")
        return Answer(output=f"{len(messages)}: {input}", cost=0.5)

    target = FunctionTarget(function=agent, label="agent")
    return evaluate(cases(30), [said, counted], target=target, trials=2, ledger=url, progress=False)


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.slow
def test_killed_in_the_middle_it_ends_as_if_it_had_not_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    whole = run_it(f"sqlite:///{tmp_path}/whole.db")
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/killed.db"
    code = f"from tests.run.test_conversations import run_it; run_it({url!r})"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(PROJECT)})
    try:
        deadline = time.monotonic() + 60
        while not Path("calls").exists() or len(Path("calls").read_text().splitlines()) < 80:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    run = run_it(url)

    def table(run: Run) -> list[Any]:
        return [(r.sample_id, r.trial, r.signature, r.value, getattr(r.outcome, "error", "")) for r in run]

    assert table(run) == table(whole)
    assert [spoken(sample) for sample in of(run)] == [spoken(sample) for sample in of(whole)]
    assert [spoken(sample) for sample in of(read_run("last", ledger=url))] == [spoken(sample) for sample in of(whole)]
    assert run.target is not None
    assert whole.target is not None
    assert run.target.cost == whole.target.cost
    calls = Counter(Path("calls").read_text().splitlines())
    repeated = {call: count - 1 for call, count in calls.items() if count > 1}
    failed = {call for call in calls if call.partition("|")[0].endswith("7.2")}
    assert sum(count for call, count in repeated.items() if call not in failed) <= 8  # calls in flight
    assert all(repeated.get(call, 0) <= 1 for call in failed)  # a call without an answer is made again


def test_recorded_conversations_are_replayed_with_their_turns(tmp_path: Path):
    run = evaluate(cases(2), said, target=echo, trials=2, ledger=None)
    write_run(run, tmp_path / "out")
    again = evaluate(cases(2), [said, counted], target=f"replay:{tmp_path / 'out'}", trials=2, ledger=None)
    assert [spoken(sample) for sample in of(again)] == [spoken(sample) for sample in of(run)]
    assert again["counted"].mean == pytest.approx(0.3)
    with pytest.raises(ConfigError, match="the user out"):
        evaluate(cases(2), said, target=f"replay:{tmp_path / 'out'}", user=["a"], ledger=None)


# Users


def test_a_list_of_messages_is_said_after_what_the_sample_begins_with():
    run = evaluate([{"input": "a"}, {"turns": ["own"]}], said, target=echo, user=["b", "c"], ledger=None)
    first, second = of(run)
    assert spoken(first) == ["u a", "a 1: a", "u b", "a 3: b", "u c", "a 5: c"]
    assert spoken(second) == ["u own", "a 1: own"]


def test_a_function_plays_the_user_until_it_returns_none():
    seen: list[Any] = []

    def user(*, messages: Sequence[Message], turn: int, trial: int, metadata: Any) -> str | None:
        seen.append((turn, trial, len(messages), metadata["x"]))
        return f"turn {turn}" if turn < 3 else None

    history = [{"role": "assistant", "content": "Welcome!"}]
    run = evaluate([{"messages": history, "metadata": {"x": 1}}], said, target=echo, user=user, ledger=None)
    (sample,) = of(run)
    assert spoken(sample) == ["a Welcome!", "u turn 1", "a 2: turn 1", "u turn 2", "a 4: turn 2"]
    assert seen == [(1, 1, 1, 1), (2, 1, 3, 1), (3, 1, 5, 1)]
    assert sample.metadata["target"]["trace"] == {"ended": "user"}
    assert run.target is not None
    assert f":{user.__qualname__} (max_turns=10; " in run.target.user


def test_a_message_with_which_a_sample_begins_keeps_its_attachments_and_must_have_text():
    got: list[Message] = []

    def agent(*, messages: Sequence[Message]) -> str:
        got.append(messages[0])
        return "ok"

    picture = Message(role="user", content="Look!", attachments=("image",))
    data = [Sample(id="a", messages=[picture]), {"id": "b", "input": " "}]
    run = evaluate(data, said, target=agent, user=["And?"], ledger=None)
    assert got == [picture, picture]
    assert of(run)[0].messages[0] == of(run)[0].turns[0].messages[0] == picture
    assert "has no text" in reason(run[1])


def test_what_a_user_does_to_the_metadata_stays_in_its_conversation():
    def user(metadata: Any) -> str | None:
        return metadata["lines"].pop(0) if metadata["lines"] else None

    data = [Sample(id="c", metadata={"lines": ["a", "b"]})]
    run = evaluate(data, said, target=echo, trials=2, user=user, ledger=None)
    for sample in of(run):
        assert [turn.input for turn in sample.turns] == ["a", "b"]
        assert sample.metadata["lines"] == ["a", "b"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (lambda: 1 / 0, "the user failed: ZeroDivisionError: division by zero"),
        (lambda: " ", "must return text, or None at the end, not ' '"),
        (lambda: 7, "must return text, or None at the end, not 7"),
        (lambda: None, "the user failed: it returned no first message"),
    ],
)
def test_a_user_that_fails_is_not_the_target_failing(reply: Callable[[], Any], error: str, tmp_path: Path):
    def user(turn: int) -> Any:
        return reply()

    url = f"sqlite:///{tmp_path}/l.db"
    run = evaluate([{"messages": [{"role": "assistant", "content": "Hi"}]}], said, target=echo, user=user, ledger=url)
    (outcome,) = (record.outcome for record in run)
    assert isinstance(outcome, Failed)
    assert error in outcome.error
    assert outcome.error.startswith("the user failed: ")


async def slow(turn: int) -> str:
    await asyncio.sleep(30)
    return "late"


async def cancelled(turn: int) -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("user", "error"), [(slow, "the user failed: no message within 0.05 s"), (cancelled, "the user failed: Cancelled")]
)
def test_a_user_that_hangs_or_is_cancelled_fails_by_itself(user: Any, error: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/l.db"
    user = {"function": user, "timeout": 0.05}
    run = evaluate([{"input": "Hi"}], said, target=echo, user=user, ledger=url)
    (outcome,) = (record.outcome for record in run)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(error)


def ask(turn: int, what: str = "more") -> str | None:
    return what if turn == 2 else None


def test_conversations_with_another_user_are_not_taken_for_those_with_this_one(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/l.db"
    target = FunctionTarget(function=echo, label="echo", version="1")

    def saying(what: str) -> Callable[..., Any]:
        def user(turn: int) -> str | None:
            return ask(turn, what)

        return user

    def endless(turn: int) -> str:
        return f"{turn}"

    users: list[tuple[Any, list[str]]] = [
        (saying("a"), ["a"]),
        (saying("b"), ["b"]),
        (partial(ask, what="c"), ["c"]),
        (partial(ask, what="d"), ["d"]),
        ({"function": endless, "max_turns": 2}, ["2"]),
        ({"function": endless, "max_turns": 3}, ["2", "3"]),
        (saying("a"), ["a"]),
    ]
    cached: list[int] = []
    for user, expected in users:
        run = evaluate([{"input": "Hi"}], said, target=target, user=user, ledger=url)
        assert [turn.input for turn in of(run)[0].turns] == ["Hi", *expected]
        assert run.target is not None
        cached.append(run.target.cached)
    assert cached == [0] * 6 + [1]


def test_a_conversation_ends_after_the_most_turns():
    def user(turn: int) -> str:
        return f"turn {turn}"

    run = evaluate([{"input": "a"}], said, target=echo, user={"function": user, "max_turns": 3}, ledger=None)
    (sample,) = of(run)
    assert [turn.input for turn in sample.turns] == ["a", "turn 2", "turn 3"]
    assert sample.metadata["target"]["trace"] == {"ended": "max_turns"}


PART = {"goal": "Cancel order 12.", "persona": "Curt.", "facts": {"order": 12}}


def person(left: bool = False) -> ScriptedJudge:
    def reply(question: Question[Any]) -> Any:
        if question.kind == "say_next":
            said = len([line for line in question.inputs()["conversation"] if line.startswith("Person")])
            return {"finished": said == 2, "message": "" if said == 2 else f"say {said}"}
        messages = question.inputs()["messages"]
        verdicts = {str(n): {"reason": "It says so.", "in_character": not left} for n in range(1, len(messages) + 1)}
        return {"verdicts": verdicts}

    return ScriptedJudge(reply)


def test_a_judge_plays_a_person_who_knows_only_their_part():
    judge = person()
    run = evaluate([PART], said, target=echo, user=SimulatedUser(judge=judge), ledger=None)
    (sample,) = of(run)
    assert spoken(sample) == ["u say 0", "a 1: say 0", "u say 1", "a 3: say 1"]
    *_, last, check = judge.asked
    assert [question.kind for question in judge.asked] == ["say_next"] * 3 + ["check_user"]
    assert last.inputs() == {
        "goal": "Cancel order 12.",
        "persona": "Curt.",
        "facts": ("order: 12",),
        "conversation": ("Person: say 0", "Assistant: 1: say 0", "Person: say 1", "Assistant: 3: say 1"),
    }
    assert check.inputs()["messages"] == ("say 0", "say 1")
    assert run["said"].mean == 1


def test_the_criteria_of_a_goal_are_what_the_person_pursues():
    judge = person()
    case = {"goal": ["A table is booked.", "It is for two."]}
    evaluate([case], said, target=echo, user=SimulatedUser(judge=judge), ledger=None)
    assert {question.inputs()["goal"] for question in judge.asked} == {"\n".join(case["goal"])}


def test_a_case_may_hold_nothing_but_metadata():
    def user(*, metadata: dict[str, Any], turn: int) -> str | None:
        return f"Order {metadata['order']}." if turn == 1 else None

    (sample,) = of(evaluate([{"id": "a", "metadata": {"order": 12}}], said, target=echo, user=user, ledger=None))
    assert sample.input == "Order 12."
    part = {"metadata": PART}
    assert evaluate([part], said, target=echo, user=SimulatedUser(judge=person()), ledger=None)["said"].mean == 1


def test_the_input_of_a_conversation_is_what_was_said_first():
    (sample,) = of(evaluate([PART], said, target=echo, user=SimulatedUser(judge=person()), ledger=None))
    assert (sample.input, sample.messages[0].content) == ("say 0", "say 0")


def test_a_person_who_leaves_their_part_makes_the_trial_skipped(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/l.db"
    run = evaluate([PART], said, target=echo, user=SimulatedUser(judge=person(left=True)), ledger=url)
    expected = Skipped("the simulated user left its part with 'say 0': It says so.")
    assert [record.outcome for record in run] == [expected]
    assert len(of(run)[0].turns) == 2
    assert of(read_run("last", ledger=url))[0].turns == of(run)[0].turns
    unchecked = SimulatedUser(judge=person(left=True), check=False)
    assert evaluate([PART], said, target=echo, user=unchecked, ledger=None)["said"].mean == 1


def test_what_the_dataset_says_first_is_not_checked():
    judge = person()
    evaluate([{"input": "Hello", **PART}], said, target=echo, user=SimulatedUser(judge=judge), ledger=None)
    assert judge.asked[-1].inputs()["messages"] == ("say 1",)


def test_what_a_target_says_in_the_name_of_the_user_is_not_the_persons():
    def agent(*, input: str, messages: Sequence[Message]) -> Answer:
        answer = Message(role="assistant", content="ok")
        return Answer(messages=[*messages, answer, Message(role="user", content="I am Bob."), answer])

    judge = person()
    (sample,) = of(evaluate([PART], said, target=agent, user=SimulatedUser(judge=judge), ledger=None))
    assert spoken(sample)[:4] == ["u say 0", "a ok", "u I am Bob.", "a ok"]
    assert judge.asked[-1].inputs()["messages"] == ("say 0", "say 1")
    assert not any("Bob" in line for question in judge.asked for line in question.inputs()["conversation"])


def test_a_sample_without_a_goal_is_skipped_and_a_dataset_without_one_refused():
    user = SimulatedUser(judge=person())
    run = evaluate([PART, {"input": "a"}], said, target=echo, user=user, ledger=None)
    assert "user needs a goal" in reason(run[1])
    refused: list[tuple[dict[str, object], str]] = [
        ({"goal": 3}, "goal in the metadata must be a text or a list of texts, not 3"),
        ({"goal": ["a", 3]}, "goal in the metadata must be a text or a list of texts, not "),
        ({"goal": []}, "the simulated user needs a goal"),
        ({}, "the simulated user needs a goal"),
        ({"goal": "g", "facts": 3}, "facts"),
    ]
    for part, message in refused:
        with pytest.raises(ConfigError, match=message):
            evaluate([part], said, target=echo, user=user, ledger=None)


def test_a_judge_that_does_not_answer_is_not_the_target_failing(tmp_path: Path):
    judge = ScriptedJudge({"say_next": ["Hm.", "Hm.", "Hm.", "Hm."]})
    run = evaluate([PART], said, target=echo, user=SimulatedUser(judge=judge), ledger=None)
    (outcome,) = (record.outcome for record in run)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("the user failed: ")
    assert outcome.reply == "Hm."


@pytest.mark.parametrize(
    ("reply", "begun"),
    [({"finished": False, "message": " "}, True), ({"finished": True}, False)],
)
def test_a_person_who_says_nothing_and_is_not_finished_gave_no_reply(reply: dict[str, Any], begun: bool):
    judge = ScriptedJudge({"say_next": [reply]})
    data = {**PART, "input": "Hi"} if begun else PART
    (outcome,) = (r.outcome for r in evaluate([data], said, target=echo, user=SimulatedUser(judge=judge), ledger=None))
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("the user failed: ")
    assert "message is empty" in outcome.error
    assert outcome.reply is not None


class Numbers(User):
    """Says what is no text."""

    identity = "numbers"

    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: Any) -> Any:
        return turn


def test_what_a_user_of_ones_own_says_is_checked():
    run = evaluate([{"input": "a"}], said, target=echo, user=Numbers(), ledger=None)
    assert re.search("user numbers .* not 2$", failure(run))


class Priced(Judge, eq=False):
    """Plays a person at a price."""

    played: ScriptedJudge = field(default_factory=lambda: person())
    repeats: list[int] = field(default_factory=list[int])

    @property
    def identity(self) -> str:
        return "priced"

    def price(self, usage: Usage) -> float | None:
        return 0.25

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        self.repeats.append(repeat)
        await asyncio.sleep(0)
        return replace(await self.played.answer(question), judge="priced", cost=0.25, reply=None)


def test_trials_are_played_anew_and_the_budget_covers_target_user_and_judges():
    judge = Priced()
    user = SimulatedUser(judge=judge)
    run = evaluate([PART], said, target=echo, trials=2, user=user, ledger=None, budget=100)
    assert Counter(judge.repeats) == {0: 4, 1: 4}
    assert run.target is not None
    assert (run.target.cost, run.target.user_cost) == (2.0, 2.0)
    assert run.cost == 4.0
    assert " · user priced#" in str(run)
    assert cost_text(run).endswith("$4.00 (target $2.00, user $2.00, judge $0.00)")
    short = evaluate([PART], said, target=echo, trials=2, user=user, ledger=None, budget=1.5)
    assert "not fit into" in short.stop_reason
    assert not list(short)


def yielding(messages: Any) -> Any:
    yield "a"


@pytest.mark.parametrize("trials", [1, 2])
def test_what_a_simulated_user_cost_before_an_interruption_is_counted_once(trials: int, tmp_path: Path):
    url, stop, judge = f"sqlite:///{tmp_path}/l.db", StopSignal(), person()

    class Kept(Priced):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            return replace(await judge.answer(question), judge="priced", cost=0.25)

    def agent(*, input: str, messages: Any) -> Answer:
        if input == "say 1":
            stop.request("enough")
        return Answer(output="ok", cost=0.5)

    def run(**options: Any) -> Run:
        target, user = FunctionTarget(function=agent, label="agent"), SimulatedUser(judge=Kept())
        return evaluate([PART], said, target=target, user=user, trials=trials, ledger=url, budget=100, **options)

    run(stop=stop)
    asked = len(judge.asked)
    again = run()
    assert 0 < asked < len(judge.asked) == 4 * trials
    assert again.target is not None
    assert (again.target.cost, again.target.user_cost) == (trials, trials)


REFUSED: list[tuple[Any, str]] = [
    ("lexical", "the lexical judge can't play a user"),
    ("panel(openai/gpt-5.1, lexical)", "the lexical judge can't play a user"),
    ({"judge": "openai/gpt-5.1", "max_turns": 0}, "max_turns"),
    ({"judge": "openai/gpt-5.1", "turns": 3}, "the user has an unknown setting 'turns'"),
    ({"max_turns": 3}, "a user's table needs one of judge, function and script"),
    ({"script": ["a"], "max_turns": 3}, "a script has as many turns as messages"),
    ({"script": ["a"], "timeout": 3}, "timeout is a setting of a user that is a function"),
    ({"script": ["a"], "check": True}, "check is a setting of a user that a judge plays"),
    ([], "the user's script is empty"),
    (["a", " "], "message 2 of the user's script must be text"),
    (eval("lambda msgs: 1"), "unknown parameter 'msgs'; known: input, messages,"),
    (eval("lambda messages, /: 1"), "unknown parameter 'messages'"),
    (yielding, "yields; return one message instead"),
    (max, "the parameters of <built-in function max> can't be read"),
    ("no_such_module:user", "there is no module no_such_module, which the user no_such_module:user names"),
    (7, "a user is a list of messages, a function (my_app:user), a model (openai/gpt-5.1), a judge or a table, not 7"),
    ("my_app", "a judge or a table, not 'my_app'"),
    ({"judge": "ollama/x", "base_url": "u"}, "settings of the judge go into a table [user.judge]"),
]


@pytest.mark.parametrize(("user", "message"), REFUSED)
def test_users_that_cannot_be_are_refused_before_anything_is_asked(user: Any, message: str):
    with pytest.raises(ConfigError) as caught:
        evaluate([{"input": "a", **PART}], said, target=echo, user=user, ledger=None)
    assert message in str(caught.value)
    with pytest.raises(ConfigError, match="talks to a target"):
        evaluate([{"output": "a"}], said, user=["b"], ledger=None)


def test_the_messages_of_a_long_conversation_are_checked_in_parts():
    def user_judge(question: Question[Any]) -> Any:
        if question.kind == "say_next":
            return {"finished": False, "message": "more"}
        count = len(question.inputs()["messages"])
        return {"verdicts": {str(n): {"reason": "r", "in_character": True} for n in range(1, count + 1)}}

    judge = ScriptedJudge(user_judge)
    user = SimulatedUser(judge=judge, max_turns=30)
    run = evaluate([PART], said, target=echo, user=user, ledger=None)
    assert run["said"].mean == 1
    checked = [len(question.inputs()["messages"]) for question in judge.asked if question.kind == "check_user"]
    assert len(checked) > 1
    assert sum(checked) == 30


def test_what_a_user_said_in_an_unfinished_run_is_not_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evalstone.ledger.maintenance.MIN_AGE", -60)
    url, stop = f"sqlite:///{tmp_path}/l.db", StopSignal()

    class Kept(Priced):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            reply = json.dumps({"finished": False, "message": "more"})
            return replace(await super().answer(question, repeat), value=question.parse(reply), reply=reply)

    def agent(*, messages: Sequence[Message]) -> str:
        if len(messages) == 3:
            stop.request("enough")
        return "ok"

    judge = Kept()
    user = SimulatedUser(judge=judge, max_turns=3, check=False)
    target = FunctionTarget(function=agent, label="agent")
    evaluate([PART], said, target=target, user=user, ledger=url, stop=stop)
    with Ledger(url) as ledger:
        assert prune(ledger, unused_answers=True, delete=True).answers == 0
    asked = len(judge.repeats)
    evaluate([PART], said, target=target, user=user, ledger=url)
    assert (asked, len(judge.repeats)) == (2, 3)
    with Ledger(url) as ledger:
        assert prune(ledger, unused_answers=True, delete=True).answers == 3

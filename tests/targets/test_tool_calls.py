"""Which answer the call of a tool belongs to: nested calls, threads, turns, set-up, and tools of the target itself."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import contextvars
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import LexicalJudge, Sample
from evalstone.datasets import load
from evalstone.errors import TargetError
from evalstone.run.plan import Plan
from evalstone.scorers import parse_scorers
from evalstone.targets import Answer, FunctionTarget, Tools
from evalstone.types import Message
from tests.targets.tool_shop import ANSWERED, CASES, Shop, errors, one, outputs, recorded, run_it


def test_the_tools_of_the_target_take_the_place_of_those_of_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    shop = Shop(Tools.mock({"search": 1}))
    tools = f"record:{path}"
    first = run_it({"function": shop.agent, "tools": tools})
    live = len(shop.calls)
    again = run_it({"function": shop.agent, "tools": f"replay:{path}"})
    assert outputs(first) == outputs(again)
    assert errors(again) == []
    assert live == len(shop.calls) == 6
    assert first.target is not None
    assert first.target.identity.endswith(f".agent with tools {tools}")


def test_a_target_that_calls_nothing_is_recorded_too_if_the_tools_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    shop = Shop(Tools())
    one(FunctionTarget(function=_answer, tools=Tools.record(path)))
    assert json.loads(path.read_text())["calls"] == []
    assert errors(one(FunctionTarget(function=_answer, tools=Tools.replay(path, strict=True)))) == []
    run_it({"function": shop.agent, "tools": Tools.record(path)}, cases=CASES[:1])
    (error,) = errors(one(FunctionTarget(function=_answer, tools=Tools.replay(path, strict=True))))
    assert error.startswith("2 recorded")
    assert f"search(query={CASES[0]['input']!r}, limit=1), price(item=" in error
    assert errors(one(FunctionTarget(function=_answer, tools=Tools.replay(path)))) == []


def _answer(*, input: str) -> str:
    return "1"


def test_what_a_tool_calls_itself_is_a_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    live = list[str]()

    def agent(tools: Tools) -> Callable[..., str]:
        @tools
        def inner(text: str) -> str:
            live.append(text)
            return text * 2

        @tools
        def outer(text: str) -> str:
            return inner(text) + inner("b")

        return lambda *, input: outer("a") + inner("c")

    first, again = recorded(path, agent, cases=CASES[:1]), one(agent(Tools.replay(path, strict=True)))
    assert [call["tool"] for call in json.loads(path.read_text())["calls"]] == ["outer", "inner"]
    assert outputs(first) == outputs(again) == ["aabbcc"]
    assert live == ["a", "b", "c"]


def test_what_a_mock_calls_is_mocked_and_what_is_called_after_a_failed_call_is_not_called(tmp_path: Path) -> None:
    shop, again = Shop(Tools()), list[bool]()

    async def agent(*, input: str) -> str:
        try:
            found: Any = await shop.price(item=input)
            return str(found + shop.search("more"))
        except TargetError as error:
            try:
                shop.search("more")
            except TargetError as other:
                again.append(str(other) == str(error))
            raise RuntimeError("I can't go on") from error

    mocks = {"price": lambda item: shop.search(item), "search": lambda query: [query]}
    run = one({"function": agent, "tools": Tools.mock(mocks)})
    assert outputs(run) == ["['question 0', 'more']"]
    calls = next(iter(run.samples or ())).messages[1].tool_calls
    assert [call.name for call in calls] == ["price", "search", "search"]
    (error,) = errors(one({"function": agent, "tools": Tools.mock({"search": 1})}))
    assert re.search("price .*; mocks: search$", error)
    run_it(Shop(Tools.record(tmp_path / "calls.jsonl")).agent)
    (error,) = errors(one({"function": agent, "tools": Tools.replay(tmp_path / "calls.jsonl")}))
    asked = CASES[0]["input"]
    assert "price" in error
    assert error.endswith(f': item was "{asked} 0", now "{asked}"')
    assert (shop.calls, again) == ([], [True, True])


def test_a_call_whose_arguments_can_t_be_recorded_is_the_last_that_is_made(tmp_path: Path) -> None:
    shop, problems = Shop(Tools.record(tmp_path / "calls.jsonl")), list[str]()

    def agent(*, input: str) -> str:
        for query in (object(), "next"):
            try:
                shop.search(query)  # type: ignore[arg-type]
            except TargetError as error:
                problems.append(str(error))
        return "1"

    (error,) = errors(one(agent))
    assert re.search("query .* search .*: object", error)
    assert (shop.calls, problems) == ([], [error, error])


def test_each_recording_has_the_calls_of_its_own_tools(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    shops = [Shop(Tools.record(file)) for file in files]

    def agent(*, input: str) -> str:
        return str([shop.search(f"in {place}") for place, shop in enumerate(shops)])

    assert errors(one(agent)) == []
    rows = [json.loads(file.read_text())["calls"] for file in files]
    assert [[call["arguments"]["query"] for call in calls] for calls in rows] == [["in 0"], ["in 1"]]


def test_a_target_may_change_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Shop(Tools.record("calls.jsonl"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    run_it(shop.agent)
    assert not (tmp_path / "elsewhere" / "calls.jsonl").exists()
    replaying = Shop(Tools.replay("../calls.jsonl"))
    monkeypatch.chdir("..")
    assert errors(run_it(replaying.agent)) == []


def test_outside_of_a_run_functions_are_called_plainly_and_replays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    run_it(Shop(Tools.record(path)).agent)
    size = path.stat().st_size
    assert Shop(Tools.record(path)).search("a", 1) == Shop(Tools()).search("a", 1) == ["a 0"]
    assert asyncio.run(Shop(Tools.record(path)).price(item="a")) == {"item": "a", "euros": 1}
    assert path.stat().st_size == size
    with pytest.raises(TargetError, match="search is replayed"):
        Shop(Tools.replay(path)).search("a", 1)
    assert Shop(Tools.mock({"search": [1]})).search("a") == [1]
    with pytest.raises(TargetError, match="mocks by sample"):
        Shop(Tools.mock(lambda sample: {})).search("a")


@pytest.mark.parametrize("kind", ["live", "record", "replay", "mock", "target's"])
def test_threads_know_the_sample_if_the_context_is_passed_on_and_fail_it_if_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "calls.jsonl"
    run_it(Shop(Tools.record(path)).agent)
    tools = {
        "record": lambda: Tools.record(tmp_path / "new.jsonl"),
        "replay": lambda: Tools.replay(path),
        "mock": lambda: Tools.mock({"search": ["question 0 0"], "price": 1}),
    }.get(kind, Tools)()
    shop = Shop(tools)

    def agent(passed: bool) -> Callable[..., Any]:
        def answer(*, input: str) -> str:
            found = list[Any]()

            def look() -> None:
                try:
                    found.append(shop.search(input, 1))
                except TargetError as error:
                    found.append(str(error))

            thread = threading.Thread(target=contextvars.copy_context().run if passed else look, args=[look] * passed)
            thread.start()
            thread.join()
            return str(found)

        return {"function": answer, "tools": f"replay:{path}"} if kind == "target's" else answer  # pyright: ignore

    async def in_tasks(*, input: str) -> str:
        found = await asyncio.create_task(asyncio.to_thread(shop.search, input, 1))
        return str([found])

    assert outputs(one(agent(passed=True))) == ["[['question 0 0']]"]
    if kind != "target's":
        assert outputs(one(in_tasks)) == ["[['question 0 0']]"]
    before = len(shop.calls)
    (error,) = errors(one(agent(passed=False)))
    assert re.search("tool search .* thread", error)
    assert len(shop.calls) - before == (kind == "live")


@pytest.mark.parametrize("recording", [True, False])
def test_a_call_after_the_answer_is_refused_unless_the_tools_are_plain(tmp_path: Path, recording: bool) -> None:
    shop = Shop(Tools.record(tmp_path / "calls.jsonl") if recording else Tools())
    answered, done = threading.Event(), threading.Event()
    caught = list[str]()

    def agent(*, input: str) -> str:
        def later() -> None:
            answered.wait(5)
            try:
                shop.search("late")
            except TargetError as error:
                caught.append(str(error))
            done.set()

        threading.Thread(target=contextvars.copy_context().run, args=[later]).start()
        return "1"

    assert errors(one(agent)) == []
    answered.set()
    assert done.wait(5)
    assert ["was called after" in problem for problem in caught] == [True] * recording
    assert shop.calls == ([] if recording else ["late"])


def test_a_tool_that_the_target_gave_up_is_given_up_again(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def agent(tools: Tools) -> Callable[..., Any]:
        @tools
        async def slow(seconds: float) -> str:
            await asyncio.sleep(seconds)
            return "slow"

        async def answer(*, input: str) -> str:
            try:
                async with asyncio.timeout(0.05):
                    return await slow(60)
            except TimeoutError:
                return "too slow"

        return answer

    first, again = recorded(path, agent, cases=CASES[:1]), one(agent(Tools.replay(path)))
    assert outputs(first) == outputs(again) == ["too slow"]
    assert next(iter(again.samples or ())).messages[1].tool_calls[0].state == "call"


def test_a_call_that_had_not_returned_is_an_error_for_a_function_that_can_t_wait(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    call = {"tool": "search", "arguments": {"query": "question 0"}, "seconds": 1, "finished": False}
    line = {
        "format": "tool_calls/1",
        "sample_id": "q0",
        "trial": 1,
        "thread": "t",
        "turn": 1,
        "began": 1,
        "calls": [call],
    }
    path.write_text(json.dumps(line) + "\n")
    shop = Shop(Tools.replay(path))
    (error,) = errors(one(lambda *, input: str(shop.search(input))))
    assert re.search("tool search .* returned", error)


def test_what_prepare_and_finish_call_is_no_part_of_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def target(wrapped: Tools, **more: Any) -> FunctionTarget:
        shop = Shop(wrapped)
        return FunctionTarget(
            function=lambda *, input: str(shop.search(input, 1)),
            prepare=lambda sample: shop.search("before", 1),
            finish=lambda sample: {"after": shop.search("after", 1)},
            **more,
        )

    for tools in (target(Tools.record(path)), target(Tools(), tools=Tools.mock({"search": ["after 0"]}))):
        run = run_it(tools)
        sample = next(iter(run.samples or ()))
        assert sample.state == {"after": ["after 0"]}
        assert [call.arguments["query"] for message in sample.messages for call in message.tool_calls] == ["question 0"]
    calls = [call["arguments"]["query"] for line in path.read_text().splitlines() for call in json.loads(line)["calls"]]
    assert sorted(calls) == ["question 0", "question 1", "question 2"]
    for refused in (target(Tools.replay(path)), target(Tools(), tools=f"replay:{path}")):
        assert "search is replayed" in errors(one(refused))[0]


@pytest.mark.parametrize("strict", [False, True])
def test_the_turns_of_a_conversation_continue_the_same_recording(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "calls.jsonl"
    sample = Sample(id="talk", input="?")

    async def talk(tools: Tools, turns: list[str], trial: int, thread: str) -> list[str]:
        @tools
        def look(what: str) -> str:
            return f"{what}:{thread}"

        def agent(*, input: str) -> str:
            return ", ".join(map(look, input))

        target = FunctionTarget(function=agent)
        return [
            Answer.of(await target.call(Sample(id=sample.id, input=turn), trial=trial, thread=thread)).output or ""
            for turn in turns
        ]

    def play(tools: Tools, turns: list[str], trial: int = 1, thread: str = "new") -> list[str]:
        return asyncio.run(talk(tools, turns, trial, thread))

    recording = Tools.record(path)
    play(recording, ["x"], thread="an attempt that was cut short")
    first = play(recording, ["ab", ".", "ca"], thread="first")
    second = play(recording, ["a"], trial=2, thread="second")
    rows = [row for line in path.read_text().splitlines() if (row := json.loads(line))["thread"] == "first"]
    assert [(row["turn"], row["began"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    tools = Tools.replay(path, strict=strict)
    assert play(tools, ["ab", ".", "ca"]) == first == ["a:first, b:first", ".:first", "c:first, a:first"]
    assert play(tools, ["a"], trial=2) == second == ["a:second"]
    if strict:
        with pytest.raises(TargetError, match=r"^1 recorded .*: look\(what='b'\)"):
            play(tools, ["a", "b"])
    else:
        assert play(tools, ["a", "bc"]) == ["a:first", "b:first, c:first"]
        with pytest.raises(TargetError, match="with other arguments"):
            play(tools, ["ab", "ac", "ac"])


def test_a_conversation_that_goes_on_after_a_crash_replays_its_later_turns(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    numbers = iter(range(100))

    async def talk(tools: Tools, thread: str, first: int, last: int) -> list[str]:
        @tools
        def draw(of: str) -> int:
            return next(numbers)

        target = FunctionTarget(function=lambda *, input: f"{draw('all')} {draw(input)}")
        found = list[str]()
        for turn in range(first, last + 1):
            said = tuple(Message(role="user", content=f"turn {n}") for n in range(1, turn + 1))
            sample = Sample(id="talk", input=f"turn {turn}", messages=said)
            found.append(Answer.of(await target.call(sample, trial=1, thread=thread)).output or "")
        return found

    before = asyncio.run(talk(Tools.record(path), "killed", 1, 2))
    after = asyncio.run(talk(Tools.record(path), "resumed", 2, 3))
    assert (before, after) == (["0 1", "2 3"], ["4 5", "6 7"])
    for strict in (False, True):
        tools = Tools.replay(path, strict=strict)
        assert asyncio.run(talk(tools, "a", 1, 3)) == ["0 1", "4 5", "6 7"]
        assert asyncio.run(talk(tools, "b", 1, 1)) == ["0 1"]
        assert asyncio.run(talk(tools, "c", 3, 3)) == ["6 7"]


def test_a_call_that_fails_in_one_turn_fails_the_next_ones_too(tmp_path: Path) -> None:
    shop = Shop(Tools.mock({}))
    target = FunctionTarget(function=lambda *, input: str(shop.search(input)))

    async def talk() -> list[str]:
        found = list[str]()
        for _ in range(2):
            with pytest.raises(TargetError) as caught:
                await target.call(Sample(id="a", input="?"), trial=1, thread="t")
            found.append(str(caught.value))
        return found

    first, second = asyncio.run(talk())
    assert first == second
    assert re.search("search .*; mocks: none$", first)


def test_the_code_of_a_wrapped_function_is_part_of_the_plan() -> None:
    def plan(body: str, tools: Tools | None = None, kind: str = "def") -> str:
        space: dict[str, Any] = {"tools": tools or Tools(), "__name__": "app"}
        exec(f"@tools\n{kind} look():\n    return {body}\n\ndef agent(*, input):\n    return look()\n", space)
        target = FunctionTarget(function=space["agent"], label="agent")
        return Plan(load(CASES), parse_scorers(ANSWERED), LexicalJudge(), target=target).fingerprint

    assert plan("'a'") == plan("'a'") != plan("'b'")
    for kind in ("def", "async def"):
        mocks = [Tools.mock({"look": value}) for value in "aab"]
        live, first, same, other = (plan("'a'", tools, kind) for tools in (None, *mocks))
        assert first == same
        assert len({live, first, other}) == 3

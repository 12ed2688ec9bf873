"""Which stored answers a conversation takes over, and which it asks for again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalstone import Limits, Sample, StopSignal, evaluate, scorer
from evalstone.errors import TargetUnreachable
from evalstone.targets import Answer, FunctionTarget, ReplayTarget
from evalstone.types import Message, Usage


@scorer
def said(*, messages: Sequence[Message]) -> bool:
    """1 for any conversation that was held."""
    return bool(messages)


def test_a_conversation_is_another_one_where_the_user_reads_other_metadata(tmp_path: Path) -> None:
    def user(*, metadata: Mapping[str, Any], turn: int) -> str | None:
        return metadata["wish"] if turn == 2 else None

    def agent(*, input: str, messages: Sequence[Message]) -> str:
        return f"no {input}"

    def answer(wish: str) -> str | None:
        case = Sample(id="c", input="Hi", metadata={"wish": wish})
        target = FunctionTarget(function=agent, label="agent", version="1")
        run = evaluate([case], said, target=target, user=user, ledger=tmp_path / "l.db")
        return next(iter(run.samples or ())).output

    assert (answer("tea"), answer("milk"), answer("tea")) == ("no tea", "no milk", "no tea")


def test_a_turn_that_reached_nobody_is_asked_again_and_those_before_it_are_not(tmp_path: Path) -> None:
    asked, down = list[str](), ["b"]

    def agent(*, input: str, messages: Sequence[Message]) -> str:
        asked.append(input)
        if input in down:
            raise TargetUnreachable("connection refused")
        return "ok"

    target = FunctionTarget(function=agent, label="agent", version="1")
    for expected in (["a", "b"], ["a", "b", "b", "c"]):
        run = evaluate([{"id": "t", "turns": ["a", "b", "c"]}], said, target=target, ledger=tmp_path / "l.db")
        assert asked == expected
        assert run["said"].n_failed == len(down)
        down.clear()


def test_a_conversation_may_take_longer_than_a_turn(tmp_path: Path) -> None:
    async def agent(*, input: str, messages: Sequence[Message]) -> str:
        await asyncio.sleep(0.2)
        return "ok"

    target = FunctionTarget(function=agent, timeout=0.5)
    run = evaluate([{"id": "t", "turns": ["a", "b", "c", "d"]}], said, target=target, ledger=None)
    assert run["said"].mean == 1


def test_answers_of_another_thread_are_not_mixed_with_those_of_this_one(tmp_path: Path) -> None:
    asked = list[str]()

    def agent(*, input: str, context: Sequence[str], thread: str) -> str:
        asked.append(input)
        return "ok"

    target = FunctionTarget(function=agent, label="agent", version="1")
    for passage in ("x", "y"):
        turns = [{"input": "a", "context": [passage]}, {"input": "b", "context": ["z"]}]
        evaluate([{"id": "t", "turns": turns}], said, target=target, ledger=tmp_path / "l.db")
    assert asked == ["a", "b", "a", "b"]


def priced(*, input: str, messages: Sequence[Message]) -> Answer:
    return Answer(output=f"{len(messages)}: {input}", cost=0.5, usage=Usage(input=1), context=["the same"])


def stopping(stop: StopSignal, at: str) -> Callable[..., Answer]:
    def agent(*, input: str, messages: Sequence[Message]) -> Answer:
        if input == at:
            stop.request("enough")
        return priced(input=input, messages=messages)

    return agent


def test_a_later_run_has_not_paid_for_the_turns_that_it_finds(tmp_path: Path) -> None:
    case, stop = {"id": "t", "turns": ["a", "b", "c"]}, StopSignal()
    first = FunctionTarget(function=stopping(stop, "b"), label="agent", version="1")
    evaluate([case], said, target=first, ledger=tmp_path / "l.db", stop=stop)
    later = FunctionTarget(function=priced, label="agent", version="1")
    run = evaluate([case], "contains(expected=c)", target=later, ledger=tmp_path / "l.db")
    assert run["contains"].mean == 1
    assert run.target is not None
    assert (run.target.cost, run.target.usage.input) == (0.5, 1)
    sample = next(iter(run.samples or ()))
    assert sample.metadata["target"]["cost"] == 1.5  # what the conversation cost, whoever paid for it


def test_a_run_that_goes_on_has_paid_for_the_conversations_that_it_had_finished(tmp_path: Path) -> None:
    data: list[Any] = [{"id": name, "turns": [f"{name}1", f"{name}2"]} for name in "ab"]
    asked, stop = list[str](), StopSignal()

    def agent(*, input: str, messages: Sequence[Message]) -> Answer:
        asked.append(input)
        if len(asked) == 3:
            stop.request("enough")
        return priced(input=input, messages=messages)

    target = FunctionTarget(function=agent, label="agent", version="1", limits=Limits(max_concurrency=1))
    evaluate(data, said, target=target, ledger=tmp_path / "l.db", stop=stop, concurrency=1)
    assert len(asked) == 3  # one conversation is whole
    run = evaluate(data, said, target=target, ledger=tmp_path / "l.db", concurrency=1)
    assert len(asked) == 4
    assert run.target is not None
    assert (run.target.answers, run.target.cached, run.target.cost, run.target.usage.input) == (2, 0, 2.0, 4)


def test_the_context_of_a_conversation_has_each_passage_once() -> None:
    run = evaluate([{"id": "t", "turns": ["a", "b"]}], said, target=priced, ledger=None)
    sample = next(iter(run.samples or ()))
    assert sample.context == ("the same",)


def test_a_replayed_conversation_has_the_answers_of_its_turns() -> None:
    case = {"id": "t", "input": "a"}
    first = evaluate([case], said, target=priced, user=["b"], ledger=None)
    again = evaluate([case], said, target=ReplayTarget(run=first), ledger=None)
    sample = next(iter(again.samples or ()))
    assert [(turn.input, turn.output) for turn in sample.turns] == [("a", "1: a"), ("b", "3: b")]

"""What a target returns is converted in a thread if that takes long, and its cost counts even if it is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate
from evalstone.ledger.store import Ledger
from evalstone.run.target_session import MANY_MESSAGES
from evalstone.targets import Answer, FunctionTarget
from evalstone.types import Failed

CASE = {"id": "q1", "input": "Hi", "metadata": {"plan": "free"}}


class Turn:
    """A message of a framework, which notes in which thread it is read."""

    def __init__(self, threads: set[str]) -> None:
        self._threads = threads

    def model_dump(self, **_: Any) -> dict[str, Any]:
        self._threads.add(threading.current_thread().name)
        return {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize("number", [3, MANY_MESSAGES + 1])
def test_many_messages_are_read_beside_the_event_loop_and_few_on_it(number: int) -> None:
    read, loop = set[str](), set[str]()

    async def agent(*, input: str) -> dict[str, Any]:
        loop.add(threading.current_thread().name)
        return {"output": "Hello", "messages": [Turn(read) for _ in range(number)]}

    target = FunctionTarget(function=agent, label="agent")
    run = evaluate([CASE], "contains(expected=Hello)", target=target, ledger=None)
    assert run["contains"].mean == 1.0
    assert len(read) == 1
    assert (read == loop) == (number <= MANY_MESSAGES)


def test_an_answer_that_contradicts_its_sample_is_refused_and_its_cost_counts(tmp_path: Path) -> None:
    def agent(*, input: str) -> Answer:
        return Answer(output="Hello", metadata={"plan": "paid"}, cost=0.25)

    target = FunctionTarget(function=agent, label="agent")
    run = evaluate([CASE], "contains(expected=Hello)", target=target, ledger=tmp_path / "l.db")
    assert isinstance(run[0].outcome, Failed)
    assert run.cost == 0.25
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.runs()[0].cost == 0.25

"""Functions that are watched: they do what they did, and what they return is scored."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
import re
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

import pytest

from evalstone import Live, Sample
from evalstone.datasets.stored import sample_of
from evalstone.ledger.store import Ledger
from evalstone.live import Submission
from evalstone.live.scoring import INVALID
from evalstone.targets import Answer
from evalstone.types import Failed
from tests.live.conftest import Start
from tests.live.test_live import found, numbers


def samples(live: Live) -> list[Sample]:
    """What was scored, in the order of the output."""
    assert live.flush(20)
    with Ledger(live.ledger) as ledger, ledger.transaction() as connection:
        bodies = connection.scalars("SELECT body FROM samples")
    return sorted((sample_of(json.loads(body)) for body in bodies), key=lambda sample: str(sample.output))


def test_what_a_function_was_given_and_returned_is_a_sample(start: Start) -> None:
    live = start()

    @live.watch
    def answer(input: str, context: Sequence[str] = ("Rome is old.",), *, strict: bool = False) -> str:
        """Answers."""
        return f"It is {input}."

    began = time.perf_counter()
    assert answer("plain", strict=True) == "It is plain."
    most = time.perf_counter() - began
    assert (answer.__name__, answer.__doc__) == ("answer", "Answers.")
    (sample,) = samples(live)
    assert (sample.input, sample.output, sample.context) == ("plain", "It is plain.", ("Rome is old.",))
    assert 0 <= sample.metadata["target"]["seconds"] <= most
    assert [row.entity for row in found(live)] == ["answer"]


def test_an_async_method_with_parameters_of_its_own_names(start: Start) -> None:
    live = start()

    class Agent:
        @live.watch(entity="agent", input="question", context="passages")
        async def answer(self, question: str, passages: list[str]) -> Answer:
            passages.append("found later")
            await asyncio.sleep(0)
            return Answer(output="Rome", context=["found"], cost=0.5)

    assert inspect.iscoroutinefunction(Agent.answer)
    asyncio.run(Agent().answer("Where?", ["given"]))
    (sample,) = samples(live)
    assert (sample.input, sample.output, sample.context) == ("Where?", "Rome", ("found",))
    assert sample.metadata["target"]["cost"] == 0.5
    assert [row.entity for row in found(live)] == ["agent"]


class Says:
    """An object that is called like an async function."""

    async def __call__(self, input: str) -> str:
        return f"It is {input}."


class Streams:
    """An object that is called like a generator function."""

    def __call__(self, input: str) -> Generator[str]:
        yield from ("It ", "streams.")


def told(input: str, end: str) -> str:
    """Says so."""
    return f"It is {input}{end}"


def test_partial_functions_and_callable_objects_are_watched_and_named(start: Start) -> None:
    live = start()
    assert live.watch(functools.partial(told, end="!"))(input="partial") == "It is partial!"
    assert asyncio.run(live.watch(Says())("async")) == "It is async."
    assert "".join(live.watch(Streams())("?")) == "It streams."
    assert [sample.output for sample in samples(live)] == ["It is async.", "It is partial!", "It streams."]
    assert {row.entity for row in found(live)} == {"told", "Says", "Streams"}


def test_lists_are_taken_as_they_were_when_the_function_was_called(start: Start) -> None:
    live = start()

    @live.watch
    def answer(messages: list[dict[str, str]]) -> dict[str, str]:
        messages.append({"role": "assistant", "content": "appended"})
        return {"output": "Rome"}

    answer([{"role": "user", "content": "Where?"}])
    (sample,) = samples(live)
    assert [message.content for message in sample.messages] == ["Where?"]


def test_streams_are_scored_once_they_are_exhausted(start: Start) -> None:
    live, ended = start(), list[str]()

    @live.watch
    def told(input: str) -> Generator[str, str | None, int]:
        got = yield "It "
        try:
            yield f"is {got} "
        except KeyError:
            yield "so"
        return 7

    @live.watch
    async def atold(input: str) -> AsyncGenerator[str, str | None]:
        got = yield "In "
        try:
            yield f"{got} "
        except KeyError:
            yield "parts"
        finally:
            ended.append(input)

    stream = told("q")
    assert (next(stream), stream.send("old"), stream.throw(KeyError("x"))) == ("It ", "is old ", "so")
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert end.value.value == 7
    abandoned = told("q")
    next(abandoned)
    abandoned.close()

    async def read() -> list[str]:
        stream, left = atold("q"), atold("left")
        for _ in range(2):
            await anext(left)
        await left.aclose()
        assert ended == ["left"]
        parts = [await anext(stream), await stream.asend("two"), await stream.athrow(KeyError("x"))]
        return parts + [part async for part in stream]

    assert (parts := asyncio.run(read())) == ["In ", "two ", "parts"]
    assert [sample.output for sample in samples(live)] == ["".join(parts), "".join(("It ", "is old ", "so"))]
    assert numbers(live).seen == 2


def test_a_call_that_raises_is_not_submitted_and_what_is_no_answer_is_a_failed_score(start: Start) -> None:
    live = start()

    @live.watch
    def answer(input: str) -> Any:
        if input == "raise":
            raise KeyError("the application's own")
        return {"blank": "", "none": None, "odd": object()}[input]

    with pytest.raises(KeyError, match="own"):
        answer("raise")
    for input in ("none", "odd", "blank"):
        answer(input)
    one = numbers(live)
    assert (one.seen, one.n_failed, one.n_skipped) == (3, 2, 1)  # a blank answer is for the scorers to judge
    errors = [
        row.record.outcome.error
        for row in found(live)
        if row.record is not None and isinstance(row.record.outcome, Failed)
    ]
    assert len(errors) == 2
    assert all(error.startswith(f"{INVALID}the function returned") for error in errors)


def test_a_list_of_objects_of_a_library_is_read_as_a_target_that_returns_it(start: Start) -> None:
    @dataclasses.dataclass
    class TextBlock:
        text: str

    @dataclasses.dataclass
    class AssistantMessage:
        content: list[TextBlock]
        error: str | None = None

    for each in (TextBlock, AssistantMessage):
        each.__module__ = "claude_agent_sdk.types"
    live = start()

    @live.watch
    def answer(input: str) -> Any:
        return [AssistantMessage([TextBlock("In Bern.")])] if input == "objects" else []

    answer("objects")
    (sample,) = samples(live)
    assert (sample.input, sample.output) == ("objects", "In Bern.")
    assert [message.content for message in sample.messages] == ["objects", "In Bern."]
    answer("nothing")
    assert live.flush(20)


def test_what_is_not_drawn_is_counted_and_not_looked_at(start: Start) -> None:
    live = start(sampling=0.0)

    @live.watch
    def answer(input: str) -> object:
        return object()

    @live.watch
    def parts(input: str) -> Generator[str]:
        yield "a"

    for _ in range(3):
        answer("x")
        assert list(parts("x")) == ["a"]
    assert (numbers(live).declined, numbers(live).eligible) == (6, 6)


def test_a_filter_sees_what_a_function_was_given(start: Start) -> None:
    def wanted(submission: Submission) -> bool:
        return submission.sample["input"] == "wanted" and submission.entity == "answer"

    live = start(filter=wanted)

    @live.watch
    def answer(input: str) -> str:
        return "Rome"

    answer("wanted")
    answer("other")
    assert (numbers(live).filtered, numbers(live).eligible) == (1, 1)


def test_a_filter_sees_what_is_not_drawn_too(start: Start) -> None:
    def wanted(submission: Submission) -> bool:
        return "wanted" in submission.sample["input"]

    live = start(filter=wanted, sampling=0.0)

    @live.watch
    def answer(input: str) -> str:
        return "Rome"

    @live.watch
    def parts(input: str) -> Generator[str]:
        yield from ("Ro", "me")

    for input in ("wanted", "other"):
        assert (answer(input), "".join(parts(input))) == ("Rome", "Rome")
    assert (numbers(live).filtered, numbers(live).declined) == (2, 2)


def test_a_stream_of_what_is_no_text_says_so(start: Start) -> None:
    live = start()

    @live.watch
    def parts(input: str) -> Generator[int]:
        yield 3

    assert list(parts("x")) == [3]
    (row,) = found(live)
    assert row.record is not None
    assert isinstance(row.record.outcome, Failed)
    assert re.search("yield .*, not int", row.record.outcome.error)


def test_what_a_function_changes_inside_its_arguments_is_not_what_it_was_given(start: Start) -> None:
    live = start()
    messages: list[Any] = [{"role": "user", "content": "first"}]
    rows: list[list[int]] = [[1]]
    same: list[bool] = []

    @live.watch
    def reply(input: str, table: Any, /, messages: Any, *, metadata: Any) -> str:
        same.append(table is rows)
        messages[0]["content"] = "changed"
        metadata["a"]["b"].append("changed")
        metadata["a"]["c"] = "changed"
        return "In Rome."

    metadata: dict[str, Any] = {"a": {"b": ["first"]}}
    metadata["a"]["again"] = metadata["a"]["b"]
    reply("Where?", rows, messages, metadata=metadata)
    (sample,) = samples(live)
    assert [message.content for message in sample.messages or ()] == ["first"]
    assert sample.metadata["a"] == {"b": ["first"], "again": ["first"]}
    assert same == [True]


def test_what_a_function_changes_in_all_its_further_arguments_is_not_what_it_was_given(start: Start) -> None:
    live = start()

    @live.watch(metadata="more")
    def named(input: str, **more: Any) -> str:
        more["a"].append("changed")
        return "named"

    @live.watch(messages="turns")
    def placed(*turns: dict[str, str]) -> str:
        turns[1]["content"] = "changed"
        return "placed"

    named("x", a=["first"])
    placed({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"})
    of_named, of_placed = samples(live)
    assert of_named.metadata["a"] == ["first"]
    assert [message.content for message in of_placed.messages or ()] == ["Be brief.", "Where?"]


def test_lists_that_hold_each_other_are_copied_once(start: Start) -> None:
    live, given = start(), list[int]()
    loop: list[Any] = ["first"]
    loop.append(loop)
    wide: list[Any] = []
    for _ in range(40):
        wide = [wide, wide]

    @live.watch
    def answer(input: Any, metadata: Any) -> str:
        given.append(len(metadata))
        return "Rome"

    answer(loop, {"wide": wide})
    assert given == [1]


def test_a_key_that_cannot_be_hashed_again_is_no_error_of_the_application(start: Start) -> None:
    live, armed = start(), list[bool]()

    class Fickle(str):
        __slots__ = ()

        def __hash__(self) -> int:
            if armed:
                raise KeyError("the key's own")
            return super().__hash__()

    metadata = {Fickle("a"): ["first"]}
    armed.append(True)

    @live.watch
    def answer(input: str, metadata: Any) -> str:
        return "Rome"

    assert answer("Where?", metadata) == "Rome"

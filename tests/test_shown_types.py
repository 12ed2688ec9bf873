"""The types of public functions, as an editor shows them: pyright checks this file, and an unused `ignore` fails."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, assert_type

import polars

import evalstone
from evalstone import Dataset, Judge, JudgeAnswer, Message, Prompt, Question, Record, Run, Sample, Scorer
from evalstone.scorers import FunctionScorer, PerTurn
from evalstone.targets import Answer, AskUser, Target, Tools, User
from evalstone.targets.base import INPUTS
from evalstone.types import Trajectory
from evalstone.types.samples import SAMPLE_FIELDS, SampleFields

if TYPE_CHECKING:
    A = TypeVar("A")
    live = evalstone.Live("faithfulness")
    check = evalstone.guard(min={"faithfulness": 0.5})
    tools = Tools()

    # ---- Decorators keep the type ----

    @live.watch
    def respond(input: str, *, style: str = "short") -> str:
        return input + style

    @live.watch(input="question", entity="bot")
    async def arespond(question: str) -> Answer:
        return Answer(output=question)

    @live.watch
    def stream(input: str) -> Iterator[str]:
        yield input

    @live.watch
    async def astream(input: str) -> AsyncIterator[str]:
        yield input

    class Bot:
        @live.watch
        def respond(self, input: str) -> str:
            return input

        @check.protect("Sorry.")
        async def answer(self, input: str) -> str:
            return input

        @tools(name="search")
        def search(self, query: str) -> list[str]:
            return [query]

    @evalstone.scorer
    def brevity(*, output: str) -> float:
        return 1 / len(output)

    @evalstone.scorer(scale=10, judge="lexical")
    async def friendly(output: str) -> bool:
        return "please" in output

    @evalstone.scorer  # pyright: ignore[reportArgumentType]
    def wordy(output: str) -> str:
        return output

    assert_type(respond("a", style="b"), str)
    respond(42)  # pyright: ignore[reportArgumentType]
    live.watch(inputs="question")  # pyright: ignore[reportCallIssue]
    assert_type(stream("a"), Iterator[str])
    assert_type(astream("a"), AsyncIterator[str])
    assert_type(Bot().respond("a"), str)
    Bot().respond(3)  # pyright: ignore[reportArgumentType]
    assert_type(Bot().search("a"), list[str])
    assert_type(brevity(output="a"), float)

    async def awaited() -> None:
        assert_type(await arespond("a"), Answer)
        assert_type(await Bot().answer("a"), str)
        assert_type(await friendly("a"), bool)

    # ---- Judges and scorers ----

    evalstone.checks.contains("x", judge=42)  # pyright: ignore[reportArgumentType]
    evalstone.calibrate("labels.jsonl", judge=object())  # pyright: ignore[reportArgumentType]
    evalstone.audit("data.jsonl", 3.0)  # pyright: ignore[reportArgumentType]
    evalstone.Panel("lexical", 3)  # pyright: ignore[reportArgumentType]
    PerTurn(42)  # pyright: ignore[reportArgumentType]
    assert_type(PerTurn("contains", turn=1).scorer, Scorer)
    assert_type(PerTurn("contains").judge, Judge | None)
    evalstone.evaluate("x.jsonl", [brevity, "faithfulness", {"name": "bleu"}, evalstone.checks.exact_match])

    # ---- Samples ----

    evalstone.evaluate(42, "faithfulness")  # pyright: ignore[reportArgumentType]
    evalstone.evaluate([1, 2], "faithfulness")  # pyright: ignore[reportArgumentType]
    evalstone.evaluate(None, "faithfulness")  # pyright: ignore[reportArgumentType]
    rows: list[dict[str, str]] = []
    sample = Sample(output="a")
    dataset = evalstone.load(Path("x.jsonl"))
    assert_type(dataset, Dataset)
    evalstone.load("x.jsonl")
    evalstone.load(rows)
    evalstone.load(row for row in rows)
    evalstone.load((sample, {"output": "b", "context": ["c"]}))
    evalstone.load({"output": ["a", "b"]})
    evalstone.load(dataset)
    evalstone.load(polars.DataFrame(rows))

    class Frame:
        columns = ("output",)

        def to_dict(self, orient: str = "dict", *, index: bool = True) -> list[dict[str, str]] | dict[str, Any]:
            return [{orient: str(index)}]

    class Table:
        def to_pylist(self, *, maps_as_pydicts: str | None = None) -> list[dict[str, Any]]:
            return [{"output": maps_as_pydicts}]

    evalstone.load(Frame())
    evalstone.load(Table())

    # ---- Fields of samples ----

    assert_type(evalstone.score("bleu", output="a", reference="b"), Record)
    evalstone.score("bleu", outputs="a")  # pyright: ignore[reportCallIssue]
    evalstone.score("bleu", output=1)  # pyright: ignore[reportArgumentType]
    evalstone.score("per_turn", turns=["Hi", {"input": "b"}, sample], messages=[{"role": "user", "content": "a"}])
    live.submit(output="a", entity="bot")
    live.submit(answer="a")  # pyright: ignore[reportCallIssue]
    check(output="a", contexts=["b"])  # pyright: ignore[reportCallIssue]
    talk = Sample(turns=["Hi"], context="One passage.", trajectory=[{"name": "search", "step_type": "tool_call"}])
    assert_type(talk.turns[0], Sample)
    assert_type(talk.trajectory, Trajectory | None)
    Sample(turns=[3])  # pyright: ignore[reportArgumentType]
    assert_type(Answer(messages=[{"role": "user", "content": "a"}]).messages[0], Message)

    # ---- Classes of one's own, with plain class attributes ----

    class App(Target):
        name = "app"
        inputs = ("input",)
        required = ("input",)
        follows_conversations = keeps_threads = holds_conversations = False
        key: str

        async def call(self, sample: Sample, *, trial: int, thread: str) -> str:
            return f"{sample.input} {trial}"

    class Caller(User):
        identity = "caller"

        async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
            return sample.input if turn == 1 else None

    class Short(Scorer):
        name = "short"
        required_fields = ("output",)
        lower_is_better = True
        limit: int = 10

        def score(self, *, output: str) -> bool:
            return len(output) > self.limit

    class Tone(Question[Literal["kind", "rude"]]):
        kind = "tone"
        output: str
        prompt: Prompt = Prompt(instructions="What is its tone?", template="{{output}}")

    class Coin(Judge):
        cacheable = False
        note = "It answers at random."

        async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
            return JudgeAnswer(value=question.parse("kind"), judge=self.identity)

    # ---- Names and identities: a class attribute, a field, or a property ----

    class Keyed(Target):
        key: str

        async def call(self, sample: Sample, *, trial: int, thread: str) -> str:
            return self.key

    class Talking(User):
        async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
            return sample.input

    class Attribute(Keyed):
        name = "attribute"

    class Named(Keyed):
        name: str

    class Default(Keyed):
        name: str = "default"

    class Computed(Keyed):
        @property
        def name(self) -> str:
            return self.key

    class Cached(Keyed):
        @cached_property
        def name(self) -> str:
            return self.key

    class Numbered(Keyed):
        name = 5  # pyright: ignore[reportAssignmentType]

    class Counted(Keyed):
        @property
        def name(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
            return 5

    class Someone(Talking):
        identity: str

    class Known(Talking):
        @property
        def identity(self) -> str:
            return "known"

    class Fixed(Coin):
        identity = "mine"

    class Labeled(Coin):
        identity: str

    class Derived(Coin):
        @property
        def identity(self) -> str:
            return f"{super().identity}!"

    def read(target: Target, user: User, judge: Judge) -> None:
        assert_type(target.name, str)
        assert_type(user.identity, str)
        assert_type(judge.identity, str)

    for target in (Attribute(key="k"), Named(key="k", name="n"), Default(key="k"), Computed(key="k"), Cached(key="k")):
        assert_type(target.name, str)
    for user in (Caller(), Someone(identity="i"), Known()):
        assert_type(user.identity, str)
    for judge in (Coin(), Fixed(), Labeled(identity="i"), Derived()):
        assert_type(judge.identity, str)
    Named(key="k")  # pyright: ignore[reportCallIssue]
    Attribute(key="k", name="n")  # pyright: ignore[reportCallIssue]
    App()  # pyright: ignore[reportCallIssue]
    evalstone.evaluate(rows, Short(limit=3), judge=Coin(), target=App(key="k"), user=Caller())

    # ---- Results ----

    run = evalstone.evaluate(rows, "faithfulness")
    assert_type(run, Run)
    assert_type(run.records[0], Record)
    assert_type(run.records[0].outcome.reason, str)


def accepted(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def test_the_fields_of_a_sample_are_declared_alike() -> None:
    """In SampleFields for calls, and in Sample. A trial is not scored alone."""
    fields = [field.name for field in dataclasses.fields(Sample) if field.name != "trial"]
    assert sorted(SampleFields.__annotations__) == sorted(fields)
    assert set(fields) == {"id", *SAMPLE_FIELDS}


def test_the_fields_of_a_watched_function_are_the_inputs_of_a_target() -> None:
    from evalstone.live.watching import WatchedFields  # noqa: PLC0415 - live scoring is slow to import

    assert tuple(WatchedFields.__annotations__) == INPUTS


def test_a_function_made_a_scorer_shows_its_parameters() -> None:
    parameters = [each for each in accepted(evalstone.scorer) if each != "function"]
    fields = {field.name for field in dataclasses.fields(FunctionScorer)} - {"function"}
    assert set(parameters) == fields

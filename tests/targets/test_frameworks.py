"""Graphs, chains and agents as targets, as they are. The stand-ins have the methods and shapes of the libraries."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from evalstone import Failed, evaluate
from evalstone.errors import ConfigError
from evalstone.targets import ScriptedUser, parse_target
from evalstone.types import Usage

CASE = {"id": "q1", "input": "When was Ada born?", "reference": "1815", "context": ["Her diary"]}
DIALOG: list[Any] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "name": "greet", "arguments": {}, "result": "ok"}],
    },
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "When was Ada born?"},
]


class Messages(TypedDict):
    messages: list[Any]
    steps: int


class Question(TypedDict):
    question: str
    context: list[Any]
    answer: str


class Declared(BaseModel):
    input: str
    context: list[str] = []


@dataclass
class Point:
    query: str
    verdict: str = ""


class Document:
    """A document of LangChain."""

    def __init__(self, page_content: str) -> None:
        self.page_content = page_content


class Said:
    """A message of LangChain."""

    content = "In 1815."

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return {"type": "ai", "content": self.content}


class Graph:
    """A compiled graph of LangGraph. Its JSON schema can't be had for a TypedDict before Python 3.12."""

    checkpointer: object = None

    def __init__(self, state: type, work: Callable[[Any], Any], input: type | None = None) -> None:
        self.builder = SimpleNamespace(state_schema=state)
        self.InputType = input or state
        self.work, self.seen = work, list[Any]()

    def get_input_jsonschema(self) -> dict[str, Any]:
        raise TypeError("use typing_extensions.TypedDict")

    def invoke(self, state: Any) -> Any:
        raise NotImplementedError

    async def ainvoke(self, state: Any) -> Any:
        self.seen.append(state)
        return self.work(state)


class Remembering(Graph):
    """A graph with a checkpointer: it appends to the state that it stored under a thread."""

    checkpointer = object()

    def __init__(self) -> None:
        super().__init__(Messages, lambda state: {"type": "ai", "content": "In 1815."})
        self.stored: dict[str, list[Any]] = {}

    async def aget_state(self, config: Mapping[str, Any]) -> Any:
        return SimpleNamespace(values=self.stored.get(config["configurable"]["thread_id"]))

    async def ainvoke(self, state: Any, config: Any = None) -> Any:
        messages = self.stored.setdefault(config["configurable"]["thread_id"], [])
        messages += [*state["messages"], await super().ainvoke(state)]
        return {"messages": [*messages]}


class Waiting(Remembering):
    """A graph whose checkpointer only works in a thread, as SqliteSaver does."""

    async def aget_state(self, config: Mapping[str, Any]) -> Any:
        raise NotImplementedError("The SqliteSaver does not support async methods.")

    def get_state(self, config: Mapping[str, Any]) -> Any:
        return SimpleNamespace(values=self.stored.get(config["configurable"]["thread_id"]))

    def invoke(self, state: Any, config: Any = None) -> Any:
        return asyncio.run(super().ainvoke(state, config))

    async def ainvoke(self, state: Any, config: Any = None) -> Any:
        raise NotImplementedError("The SqliteSaver does not support async methods.")


@dataclass
class Person:
    name: str


@dataclass
class Settings:
    style: str = "brief"


class Words(TypedDict):
    style: str


class InContext(Graph):
    """A graph whose runs have a context."""

    def __init__(self, kind: type | None) -> None:
        super().__init__(Messages, said)
        self.context_schema = kind

    async def ainvoke(self, state: Any, *, context: Any = None) -> Any:
        self.seen.append((state, context))
        return self.work(state)


class Chain:
    """A runnable of LangChain: its schema is JSON schema."""

    def __init__(self, answer: Any, **schema: Any) -> None:
        self.answer, self.schema, self.seen = answer, schema, list[Any]()
        self.InputType = dict[str, Any]

    def get_input_jsonschema(self) -> dict[str, Any]:
        return self.schema

    def invoke(self, value: Any) -> Any:
        self.seen.append(value)
        return self.answer


def said(state: Any) -> Any:
    return {**state, "messages": [*state["messages"], {"type": "ai", "content": "In 1815."}]}


def found(state: Any) -> Any:
    return {**state, "context": [Document("Ada: 1815")], "answer": "In 1815."}


ASKED = {"role": "user", "content": CASE["input"]}
TEXT, LIST = {"type": "string"}, {"type": "array"}


def properties(*names: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": [*required]}


@pytest.mark.parametrize(
    ("value", "given", "context"),
    [
        (Graph(Messages, said), {"messages": [ASKED]}, ("Her diary",)),
        (Graph(Question, found), {"question": CASE["input"]}, ("Ada: 1815",)),
        (Graph(Point, lambda s: {**s, "verdict": "In 1815."}), {"query": CASE["input"]}, ("Her diary",)),
        (Graph(Question, found, Declared), {"input": CASE["input"], "context": CASE["context"]}, ("Ada: 1815",)),
        (Graph(Question, lambda s: {"answer": {"year": 1815}}), {"question": CASE["input"]}, ("Her diary",)),
        (Chain("In 1815.", **properties("input", required=("input",))), {"input": CASE["input"]}, ("Her diary",)),
        (
            Chain("In 1815.", **properties("query", "documents", "language", required=("query", "documents"))),
            {"query": CASE["input"], "documents": CASE["context"]},
            ("Her diary",),
        ),
        (
            Chain("In 1815.", **{"$ref": "#/$defs/P", "$defs": {"P": properties("messages")}}),
            {"messages": [ASKED]},
            None,
        ),
        (Chain(Said(), anyOf=[TEXT, {"$ref": "#/$defs/P"}, LIST]), [ASKED], None),
        (Chain("In 1815.", **TEXT), CASE["input"], None),
        (Chain("In 1815.", title="anything_input"), CASE["input"], None),
        (Chain("In 1815.", properties={"root": {"title": "Root"}}, required=["root"]), CASE["input"], None),
        (
            Chain("In 1815.", **properties("question", "chat_history", required=("question", "chat_history"))),
            {"question": CASE["input"], "chat_history": []},
            None,
        ),
        (InContext(Settings), ({"messages": [ASKED]}, Settings("brief")), None),
        (InContext(Words), ({"messages": [ASKED]}, None), None),
        (InContext(None), ({"messages": [ASKED]}, None), None),
    ],
)
def test_an_object_gets_what_its_schema_names_and_its_answer_is_read(value: Any, given: Any, context: Any) -> None:
    run = evaluate([CASE], "contains", target=value, ledger=None)
    assert [record.value for record in run] == [1]
    assert value.seen == [given]
    assert next(iter(run.samples or ())).context == (context or ("Her diary",))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            Chain("", type="object", additionalProperties=True),
            r"has no schema that says what it takes: wrap it .*def agent\(\*, input\): return",
        ),
        (Chain("", properties={"root": {"type": "object"}}), r"has no schema that says what it takes"),
        (InContext(Person), r"needs a context of its own: wrap it .*graph.invoke\(…, context=Person\(…\)\)"),
        (
            Chain("", **properties("question", "language", required=("question", "language"))),
            r"takes question and lang",
        ),
        (Chain("", **properties("query", "question")), r'graph.invoke\(\{"query": input, "question": input\}\)'),
        (Chain("", **properties("topic")), r'takes topic, of which a sample lacks some: .*\{"topic": …\}'),
        (Graph(int, said), r"the input schema of tests.*Graph can't be read: TypeError: use typing_extensions"),
        (
            SimpleNamespace(compile=int, add_node=int, add_edge=int),
            r"is not compiled: name what its compile\(\) returns",
        ),
        (SimpleNamespace(kickoff=int), r"can't be called: wrap it in a function"),
    ],
)
def test_an_object_that_does_not_say_what_it_takes_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_target(value)


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"question": "When?", "steps": 2}, "returned question and steps, and it is unknown what the answer is"),
        ({"answer": "1815", "response": "1816"}, "returned answer and response, and it is unknown"),
        ({"answer": "1815", "context": ["a"], "documents": ["b"]}, "returned context and documents, and it is unknown"),
        ({"messages": [], "__interrupt__": ("sure?",)}, "was interrupted: it waits for a person"),
    ],
)
def test_a_state_without_an_answer_fails_the_sample(state: Any, problem: str) -> None:
    run = evaluate([CASE], "contains", target=Graph(Question, lambda _: state), ledger=None)
    outcome = run[0].outcome
    assert isinstance(outcome, Failed)
    assert problem in outcome.error


def test_a_chain_gets_the_messages_before_the_question_as_its_history() -> None:
    chain = Chain("In 1815.", **properties("input", "history", required=("input",)))
    evaluate([{"id": "a", "messages": DIALOG, "reference": "1815"}], "contains", target=chain, ledger=None)
    (given,) = chain.seen
    assert given["input"] == "When was Ada born?"
    assert [message["role"] for message in given["history"]] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("kind", [Remembering, Waiting])
def test_a_graph_that_stores_conversations_gets_each_message_once(kind: type[Remembering]) -> None:
    graph = kind()
    case: dict[str, Any] = {"id": "a", "messages": DIALOG, "reference": "1815"}
    run = evaluate([case], "contains", target=graph, user=ScriptedUser(script=["And Alan?"]), trials=2, ledger=None)
    assert [record.value for record in run] == [1, 1]
    assert sorted(len(state["messages"]) for state in graph.seen) == [1, 1, 6, 6]
    assert [len(messages) for messages in graph.stored.values()] == [9, 9]


def test_an_agent_of_pydantic_ai_keeps_its_instructions_with_a_history() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models, parts = pytest.importorskip("pydantic_ai.models.function"), sys.modules["pydantic_ai.messages"]
    seen = list[Any]()

    def answer(messages: Any, info: Any) -> Any:
        seen.append([(part.part_kind, getattr(part, "content", "")) for each in messages for part in each.parts])
        return parts.ModelResponse(parts=[parts.TextPart("In 1815.")])

    bot = pydantic_ai.Agent(models.FunctionModel(answer), system_prompt="Be brief.")
    cases: list[Any] = [{**CASE, "id": "a"}, {"id": "b", "messages": DIALOG, "reference": "1815"}]
    run = evaluate(cases, "contains", target=bot, ledger=None, concurrency=1)
    assert [record.value for record in run] == [1, 1]
    assert run.target is not None
    assert run.target.identity == "pydantic_ai.agent:Agent"
    assert run.target.usage.requests == 2
    asked = ("user-prompt", "When was Ada born?")
    history = [("user-prompt", "Hi"), ("tool-call", ""), ("tool-return", "ok"), ("text", "Hello")]
    assert sorted(seen, key=len) == [
        [("system-prompt", "Be brief."), asked],
        [("system-prompt", "Be brief."), *history, asked],
    ]


def test_an_agent_of_pydantic_ai_with_deps_is_refused() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    with pytest.raises(ConfigError, match=r"needs deps of its own: wrap it .*await bot.run\(input, deps=…\)"):
        parse_target(pydantic_ai.Agent("test", deps_type=str))


def test_an_agent_of_openai_is_run_with_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[Any]()

    class Result:
        context_wrapper = SimpleNamespace(usage=SimpleNamespace(input_tokens=5, output_tokens=2, requests=1))
        final_output = "In 1815."

        def to_input_list(self) -> list[Any]:
            call = {"type": "function_call", "call_id": "c2", "name": "look_up", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": "c2", "output": "1815"}
            return [*seen[-1], call, result, {"role": "assistant", "content": "In 1815."}]

    Result.__module__ = "agents.result"

    class Runner:
        @classmethod
        async def run(cls, agent: object, items: Any) -> Result:
            assert agent is bot
            seen.append(items)
            return Result()

    monkeypatch.setitem(sys.modules, "agents", SimpleNamespace(Runner=Runner))  # pyright: ignore[reportArgumentType]
    bot: Any = SimpleNamespace(get_system_prompt=int, get_all_tools=int)
    case: dict[str, Any] = {"id": "b", "messages": DIALOG, "reference": "1815"}
    run = evaluate([case], ["contains", "tool_called(tool='look_up')"], target=bot, ledger=None)
    assert [record.value for record in run] == [1, 1]
    assert [item.get("role") or item["type"] for item in seen[0]] == [
        *("user", "function_call", "function_call_output", "assistant", "user")
    ]
    assert run.target is not None
    assert run.target.usage == Usage(input=5, output=2, requests=1)

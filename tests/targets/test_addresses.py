"""Addresses of functions, what counts as a function, and what an address is not."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import Limits, Sample, evaluate
from evalstone.errors import ConfigError
from evalstone.targets import CommandTarget, FunctionTarget, HTTPTarget, ModelTarget, Target, parse_target
from evalstone.types import Message

BORN = "contains(expected='1815')"
CASES = [{"id": f"q{n}", "input": f"When was Ada born? ({n})"} for n in range(3)]


class Agent:
    """Called like a function, and has methods."""

    def __init__(self, answer: str = "1815") -> None:
        self.answer = answer

    def __call__(self, *, input: str) -> str:
        return self.answer

    async def ask(self, *, input: str, polite: bool = False) -> str:
        return self.answer + "!" * polite


class AsyncAgent:
    """Called like an async function."""

    async def __call__(self, *, input: str) -> str:
        return "1815"


class NeedsArguments:
    """Can't be made without arguments."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, *, input: str) -> str:
        return "1815"


class Graph:
    """Has a method to call, as agents of frameworks do, and can't be called itself."""

    def invoke(self, state: object) -> object:
        return state


class Own(Target):
    """A target of the user's own."""

    name = "own"

    async def call(self, sample: Sample, *, trial: int, thread: str) -> object:
        return "1815"


async def spoken(*, input: str, answer: str) -> str:
    return answer


def plain(*, input: str) -> str:
    return "1815"


SHORT = eval("lambda input: '1815'")


def words(*, input: str) -> Iterator[str]:
    yield "1815"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (plain, "plain"),
        (Agent(), "Agent"),
        (Agent, "Agent"),
        (AsyncAgent(), "AsyncAgent"),
        (Agent().ask, "Agent.ask"),
        (functools.partial(Agent().ask, polite=True), "Agent.ask"),
        (functools.partial(spoken, answer="1815"), "spoken"),
        (functools.partial(functools.partial(spoken, answer="x"), answer="1815"), "spoken"),
        (SHORT, "<lambda>"),
        (Own, "own"),
        (Own(version="2"), "own@2"),
    ],
)
def test_whatever_can_be_called_with_a_sample_s_fields_is_a_target(value: Any, name: str) -> None:
    run = evaluate(CASES, BORN, target=value, ledger=None)
    assert run["contains"].mean == 1
    assert run.target is not None
    assert run.target.identity.rpartition(":")[2] == name


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (NeedsArguments, r"NeedsArguments is a class that needs arguments .*; give an instance"),
        (Graph(), r"Graph has no schema that says what it takes: wrap it in a function, such as def agent"),
        (Graph, r"has an unknown parameter|is a class"),
        (words, r"words yields; return one answer instead"),
        (dict, r"can't be read|is a class"),
        (None, r"a target is a function or an address .*, not None"),
        (["my_app:agent"], r"a target is a function or an address"),
        ({"model": "openai/gpt-5.1"}, r"needs either an address or a function; it has model"),
        ({}, r"needs either an address or a function; it has nothing"),
        ({"address": "cmd:echo", "function": plain}, r"needs either an address or a function; it has both"),
        ({"function": plain, "timeout": 0}, r"timeout must be a number above 0, not 0"),
        ({"function": plain, "time_out": 1}, r"unknown setting 'time_out'; did you mean timeout"),
        ({"function": plain, "tokens_per_minute": 1}, r"unknown setting 'tokens_per_minute'"),
        ({"function": plain, "max_requests": 1, "limits": Limits()}, r"give the limits of the target once"),
        ({"function": plain, "max_concurrency": 0}, r"max_concurrency must be a whole number of 1 or more"),
        ("ftp://host/agent", r"a target is a function or an address"),
        ("some/agent.py", r"name the function of the file: some/agent.py:NAME"),
        ("agent", r"a target is a function or an address"),
        ("sh agent.py", r"'sh agent.py' looks like a command; a command is written cmd:sh agent.py"),
        ("In 1815.", r"a target is a function or an address .*, not 'In 1815.'"),
        ("./agent.sh", r"'./agent.sh' looks like a command; a command is written cmd:./agent.sh"),
        ("./agent.py", r"name the function of the file: ./agent.py:NAME"),
        ("127.0.0.1:8765/ask", r"the URL 127.0.0.1:8765/ask needs its scheme: http://127.0.0.1:8765/ask"),
        ("localhost:8765", r"the URL localhost:8765 needs its scheme: http://localhost:8765"),
        ("", r"a target is a function or an address"),
        ("my_app:", r"a target is a function or an address"),
        (":agent", r"a target is a function or an address"),
    ],
)
def test_what_is_no_target_is_refused_with_what_is_one(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_target(value)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("cmd:python agent.py --base https://x/y:z", CommandTarget),
        ("HTTPS://host.example/v1/responses", HTTPTarget),
        ("ollama/llama3:8b", ModelTarget),
        ("openrouter/meta-llama/llama-3:free", ModelTarget),
        (f"{__name__}:plain" if __name__ in sys.modules else "json:dumps.__class__", FunctionTarget),
    ],
)
def test_each_form_of_address_is_its_kind_of_target(address: str, kind: type) -> None:
    assert isinstance(parse_target(address), kind)


def test_settings_beside_a_target_are_set_on_a_copy_of_it() -> None:
    own = Own()
    changed = parse_target({"function": own, "timeout": 5, "max_concurrency": 2})
    assert isinstance(changed, Own)
    assert (changed.timeout, changed.limits.max_concurrency, own.timeout) == (5, 2, 120)


def test_limits_may_stand_in_the_table() -> None:
    limits = parse_target({"function": plain, "requests_per_minute": 60}).limits
    assert limits == Limits(max_concurrency=8, requests_per_minute=60)
    assert parse_target({"function": plain, "max_concurrency": 2, "max_requests": 5}).limits.max_requests == 5


def test_a_function_of_a_file_with_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = "some/where/my-agent.py"
    folder = (tmp_path / file).parent
    folder.mkdir(parents=True)
    (folder / "beside_of_test.py").write_text("YEAR = 1815\n")
    (folder / "my-agent.py").write_text(
        "from dataclasses import dataclass\nimport beside_of_test\n\n"
        "@dataclass\nclass Agent:\n    year: int = beside_of_test.YEAR\n"
        "    def __call__(self, input):\n        return str(self.year)\n\n"
        "class Inner:\n    agent = Agent()\n"
    )
    for name in ("Agent", "Inner.agent"):
        run = evaluate(CASES, BORN, target=f"{file}:{name}", ledger=None)
        assert run["contains"].mean == 1
        assert run.target is not None
        assert run.target.identity == f"{file}:{name}"
    assert parse_target(f"{file}:Inner.agent") == parse_target(f"{file}:Inner.agent")


def test_files_of_one_name_are_modules_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "json.py").write_text(f"def agent(input):\n    return {name!r}\n")
    runs = [evaluate(CASES[:1], BORN, target=f"{tmp_path / n / 'json.py'}:agent", ledger=None) for n in ("one", "two")]
    assert [sample.output for run in runs for sample in run.samples or ()] == ["one", "two"]


@pytest.mark.parametrize(
    ("code", "address", "problem"),
    [
        (None, "gone.py:agent", r"there is no file gone.py, which the target gone.py:agent names"),
        ("x = 1", "there.py:agent", r"the module there.* has no agent, which the target"),
        ("1 / 0", "there.py:agent", r"can't be imported: ZeroDivisionError: division by zero \(there.py, line 1\)"),
        ("import no_such_module_x", "there.py:agent", r"can't be imported: ModuleNotFoundError: No module named"),
        ("def agent(", "there.py:agent", r"can't be imported: SyntaxError"),
        *[
            (
                "from evalstone.targets import Target\nclass Own(Target):\n  timeout = 5",
                path,
                r"can't be imported: ConfigError: .*timeout.* \(there\w*.py, line 2\)",
            )
            for path in ("there.py:agent", "there_of_test:agent")
        ],
        ("raise KeyError('x')", "there_of_test:agent", r"there_of_test:agent can't be imported: KeyError: 'x'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    code: str | None, address: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    if code is not None:
        Path(address.partition(":")[0].removesuffix(".py") + ".py").write_text(code)
    with pytest.raises(ConfigError, match=problem):
        parse_target(address)


def test_messages_end_with_the_user_and_a_recorded_answer_stays_out() -> None:
    seen = list[Any]()

    def agent(*, messages: Any) -> Any:
        seen.append([message.content for message in messages])
        return {"messages": [{"role": "assistant", "content": "1815"}]}

    texts = [("user", "Hi"), ("assistant", "Hello."), ("user", "When?"), ("assistant", "In 1816.")]
    sample = Sample(messages=[Message(role=role, content=text) for role, text in texts])  # pyright: ignore[reportArgumentType]
    run = evaluate([sample], BORN, target=agent, ledger=None)
    assert seen == [["Hi", "Hello.", "When?"]]
    assert [m.content for m in next(iter(run.samples or ())).messages] == ["Hi", "Hello.", "When?", "1815"]


def test_what_a_framework_returns_is_read_with_its_messages_and_tokens() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.test")
    bot = pydantic_ai.Agent(models.TestModel(custom_output_text="In 1815."), instructions="Be brief.")

    @bot.tool_plain
    def look_up(name: str) -> str:
        return "1815"

    assert look_up

    async def agent(*, input: str) -> object:
        return await bot.run(input)

    run = evaluate(CASES[:1], [BORN, "tool_called(tool='look_up')"], target=agent, ledger=None)
    assert [record.value for record in run] == [1, 1]
    assert run.target is not None
    assert run.target.usage.input > 0
    answered = next(iter(run.samples or ()))
    assert [call.result for message in answered.messages for call in message.tool_calls] == ["1815"]


def test_a_state_of_a_graph_is_read_with_more_in_it_than_messages() -> None:
    def agent(*, input: str) -> object:
        return {"messages": [{"type": "human", "content": input}, {"type": "ai", "content": "In 1815."}], "steps": 3}

    run = evaluate(CASES[:1], BORN, target=agent, ledger=None)
    assert [record.value for record in run] == [1]

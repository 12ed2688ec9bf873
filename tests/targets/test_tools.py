"""Tools of a target: recorded, replayed and mocked."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from evalstone import Failed, LexicalJudge, Run, Sample, evaluate
from evalstone.datasets import load
from evalstone.errors import ConfigError, TargetError
from evalstone.run.plan import Plan
from evalstone.scorers import parse_scorers
from evalstone.targets import Answer, FunctionTarget, Tools, parse_target
from evalstone.types import Message

ANSWERED = "regex(pattern='.')"
CASES = [{"id": f"q{n}", "input": f"question {n}"} for n in range(3)]


class Shop:
    """What an agent works on: counts how often its functions are really called."""

    def __init__(self, tools: Tools) -> None:
        self.calls: list[str] = []

        @tools
        def search(query: str, limit: int = 3) -> list[str]:
            self.calls.append(query)
            if "2" in query:
                raise KeyError("no such thing")
            return [f"{query} {n}" for n in range(limit)]

        @tools
        async def price(*, item: str) -> dict[str, Any]:
            self.calls.append(item)
            await asyncio.sleep(0)
            return {"item": item, "euros": len(item)}

        self.search, self.price = search, price

    async def agent(self, *, input: str, trial: int) -> str:
        try:
            found = self.search(input, limit=trial)
        except KeyError as error:
            found = [str(error)]
        prices = await asyncio.gather(*(self.price(item=item) for item in found))
        return f"{found} {prices}"


def outputs(run: Run) -> list[Any]:
    return [sample.output for sample in run.dataset or ()]


def errors(run: Run) -> list[str]:
    return [
        outcome.error.removeprefix("the target failed: ")
        for record in run
        if isinstance(outcome := record.outcome, Failed)
    ]


def run_it(target: Any, trials: int = 1, cases: Any = CASES, **options: Any) -> Run:
    return evaluate(cases, ANSWERED, target=target, trials=trials, ledger=None, **options)


def one(target: Any, **options: Any) -> Run:
    return run_it(target, cases=CASES[:1], **options)


def recorded(path: Path, shop: Callable[[Tools], Callable[..., Any]], **options: Any) -> Run:
    return run_it(shop(Tools.record(path)), **options)


@pytest.mark.parametrize("strict", [False, True])
def test_a_replay_gives_the_same_answers_and_calls_nothing(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "calls.jsonl"
    live, recording = Shop(Tools()), Shop(Tools.record(path))
    plain, first = run_it(live.agent, 2), run_it(recording.agent, 2)
    assert errors(first) == []
    assert sorted(recording.calls) == sorted(live.calls)
    replaying = Shop(Tools.replay(path, strict=strict))
    again = run_it(replaying.agent, 2)
    assert outputs(plain) == outputs(first) == outputs(again)
    assert replaying.calls == []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((row["sample"], row["trial"]) for row in rows) == [(f"q{n}", t) for n in range(3) for t in (1, 2)]
    call = next(row for row in rows if row["sample"] == "q0" and row["trial"] == 2)["calls"][0]
    assert call.pop("seconds") >= 0
    assert call == {
        "tool": "search",
        "arguments": {"query": "question 0", "limit": 2},
        "finished": True,
        "result": ["question 0 0", "question 0 1"],
    }


@pytest.mark.parametrize("kind", ["live", "record", "replay", "mock"])
def test_the_calls_of_a_function_without_messages_are_those_of_its_answer(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "calls.jsonl"
    if kind == "replay":
        run_it(Shop(Tools.record(path)).agent)
    mocks = {"search": lambda query, limit: ["a"] if "2" not in query else _raise(KeyError("x")), "price": {"euros": 1}}
    tools = {
        "live": Tools,
        "record": lambda: Tools.record(path),
        "replay": lambda: Tools.replay(path),
        "mock": lambda: Tools.mock(mocks),
    }[kind]()
    expected = [{"name": "search", "step_type": "tool_call"}, {"name": "price", "step_type": "tool_call"}]
    scorers = ["tool_called(tool='search')", "tool_order(tools=['search', 'price'])", "trajectory_accuracy"]
    cases = [{**case, "expected_trajectory": expected} for case in CASES]
    run = evaluate(cases, scorers, target=Shop(tools).agent, ledger=None)
    assert errors(run) == []
    assert [line.mean for line in run.summary] == [1, 1, 1]
    first, *_, last = (message for sample in run.dataset or () for message in sample.messages)
    assert (first.role, first.content) == ("user", "question 0")
    assert last.content == list(run.dataset or ())[-1].output
    failing = list(run.dataset or ())[2].messages[1].tool_calls[0]
    assert (failing.state, failing.arguments["query"]) == ("error", "question 2")
    assert (failing.error or "").startswith("KeyError: ")


def _raise(error: Exception) -> Any:
    raise error


def test_an_answer_with_messages_keeps_them_and_a_blank_one_with_calls_is_an_answer() -> None:
    @Tools()
    def look(place: str) -> str:
        return place

    def own(*, input: str) -> Answer:
        look(input)
        return Answer(messages=[{"role": "assistant", "content": "mine"}])

    def silent(*, input: str) -> str:
        look(input)
        return ""

    messages = [next(iter(one(function).dataset or ())).messages for function in (own, silent)]
    assert [[len(message.tool_calls) for message in each] for each in messages] == [[0, 0], [0, 1]]


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize(
    ("change", "strict", "problem"),
    [
        (
            lambda look: look("b", place="here"),
            False,
            'the tool look was called with other arguments than recorded: what was "a", now "b"; '
            'place was absent, now "here"',
        ),
        (lambda look: [look("a"), look("a")], False, 'what was "c", now "a"; number was 2, now absent'),
        (
            lambda look: [look("a"), look("c", 2), look("c", 2)],
            False,
            "the tool look was called more often than recorded (2 times)",
        ),
        (lambda look: look.other(), False, "a call of the tool other is not recorded; recorded tools: look"),
        (lambda look: [look("c", 2), look("a")], True, 'what was "a", now "c"; number was absent, now 2'),
        (lambda look: look.other(), True, "the tool other was called where look(what='a') is recorded"),
        (lambda look: look("a"), True, "1 recorded tool call was not made: look(what='c', number=2)"),
        (
            lambda look: look("a" * 100 + "b" * 200, number=1.0),
            False,
            f'what was "a", now "{"a" * 78}…; number was absent, now 1.0',
        ),
    ],
)
def test_a_divergence_fails_the_trial_with_the_difference_and_calls_nothing(
    tmp_path: Path, change: Callable[[Any], Any], strict: bool, problem: str, swallow: bool
) -> None:
    live = list[str]()

    def shop(tools: Tools, use: Callable[[Any], Any]) -> Callable[..., str]:
        @tools
        def look(what: str, number: int = 1, **more: str) -> int:
            live.append(what)
            return number

        @tools
        def other() -> int:
            live.append("other")
            return 1

        look.other = other  # pyright: ignore[reportFunctionMemberAccess]

        def agent(*, input: str) -> str:
            try:
                use(look)
            except Exception:
                if not swallow:
                    raise
            return "fine"

        return agent

    path = tmp_path / "calls.jsonl"
    assert errors(one(shop(Tools.record(path), lambda look: [look("a"), look("c", 2)]))) == []
    del live[:]
    run = one(shop(Tools.replay(path, strict=strict), change))
    (error,) = errors(run)
    assert problem in error
    assert live == []


def test_a_difference_deep_in_a_long_argument_is_shown_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    texts = iter(["x" * 5000 + "old" + "y" * 5000, "x" * 5000 + "new" + "y" * 5000])

    def agent(tools: Tools) -> Callable[..., str]:
        return lambda *, input: tools(_echo)(next(texts))

    recorded(path, agent, cases=CASES[:1])
    (error,) = errors(one(agent(Tools.replay(path))))
    assert f"text was …{'x' * 20}old" in error
    assert f"now …{'x' * 20}new" in error
    assert len(error) < 300


def _echo(text: Any) -> Any:
    return text


def test_a_sample_or_trial_that_is_not_recorded_fails(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    run_it(Shop(Tools.record(path)).agent, cases=CASES[:2])
    run = run_it(Shop(Tools.replay(path)).agent, 2, cases=CASES[1:])
    assert errors(run) == [
        f"the tool calls of sample {sample!r}, trial {trial}, are not recorded in {path}"
        for sample, trial in (("q1", 2), ("q2", 1), ("q2", 2))
    ]


def test_calls_in_another_order_are_matched_each_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    numbers = iter(range(100))

    def agent(tools: Tools, order: str) -> Callable[..., str]:
        @tools
        def draw(name: str) -> int:
            return next(numbers)

        return lambda *, input: " ".join(sorted(f"{name}{draw(name)}" for name in order))

    first = one(agent(Tools.record(path), "abba"))
    again = one(agent(Tools.replay(path), "baba"))
    assert outputs(first) == outputs(again) == ["a0 a3 b1 b2"]
    (error,) = errors(one(agent(Tools.replay(path, strict=True), "baba")))
    assert 'name was "a", now "b"' in error


class Odd(ValueError):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (KeyError("id"), KeyError, "'id'"),
        (FileNotFoundError(2, "No such file", "x.txt"), FileNotFoundError, "[Errno 2] No such file: 'x.txt'"),
        (TimeoutError(), TimeoutError, ""),
        (ValueError("a", 1), ValueError, "('a', 1)"),
        (Odd("seven"), ValueError, "tests.targets.test_tools.Odd: seven"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeError, "UnicodeDecodeError: 'utf-8' codec"),
        (json.JSONDecodeError("bad", "{", 0), ValueError, "json.decoder.JSONDecodeError: bad: line 1"),
    ],
)
def test_a_recorded_exception_is_raised_again(tmp_path: Path, error: Exception, kind: type, text: str) -> None:
    path = tmp_path / "calls.jsonl"
    seen = list[Exception]()

    def agent(tools: Tools) -> Callable[..., str]:
        @tools
        def fail() -> None:
            raise error

        def answer(*, input: str) -> str:
            try:
                fail()
            except Exception as raised:  # noqa: BLE001 - whatever it is
                seen.append(raised)
            return "1"

        return answer

    assert errors(recorded(path, agent, cases=CASES[:1])) == []
    assert errors(one(agent(Tools.replay(path)))) == []
    assert seen[0] is error
    assert type(seen[1]) is kind
    assert str(seen[1]).startswith(text)


@dataclass
class Page:
    title: str


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (Page("a"), "result is of type Page"),
        ([{"pages": (1, Page("a"))}], "result[0]['pages'][1] is of type Page"),
        ({1: "a"}, "result has the key 1, which is no text"),
        (float("nan"), "result is nan"),
        ({"a"}, "result is of type set"),
        (b"a", "result is of type bytes"),
    ],
)
def test_a_result_that_would_come_back_as_something_else_is_refused(tmp_path: Path, result: Any, problem: str) -> None:
    path = tmp_path / "calls.jsonl"

    def agent(tools: Tools) -> Callable[..., str]:
        return lambda *, input: str(tools(_echo, name="fetch", ignore=["text"])(result))

    (error,) = errors(one(agent(Tools.record(path))))
    assert error.startswith(f"what the tool fetch returned can't be recorded: {problem}; a tool must return JSON data")
    assert errors(one(agent(Tools()))) == []


def test_tuples_come_back_as_lists(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    agent = lambda tools: lambda *, input: str(tools(_echo)(((1, 2.0), None, "\ud800")))  # noqa: E731
    first, again = recorded(path, agent, cases=CASES[:1]), one(agent(Tools.replay(path)))
    assert outputs(first) == ["((1, 2.0), None, '\\ud800')"]
    assert outputs(again) == ["[[1, 2.0], None, '\\ud800']"]


def test_arguments_are_compared_as_data_and_one_without_a_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def agent(tools: Tools, *values: Any, **options: Any) -> Callable[..., str]:
        @tools(**options)
        def take(first: Any, *rest: Any, client: Any = None, **more: Any) -> str:
            return "taken"

        return lambda *, input: take(*values, client=None if not options else object(), extra={"b": 1, "a": 2})

    one(agent(Tools.record(path), 1, Path("x"), Page("a"), {3, 2}, (1, 2)))
    (call,) = json.loads(path.read_text())["calls"]
    rest = ["x", {"title": "a"}, [2, 3], [1, 2]]
    assert call["arguments"] == {"first": 1, "rest": rest, "client": None, "extra": {"b": 1, "a": 2}}
    assert errors(one(agent(Tools.replay(path), 1.0, "x", {"title": "a"}, [2, 3], [1, 2]))) == []

    ignored = tmp_path / "ignored.jsonl"
    one(agent(Tools.record(ignored), 1, ignore=["client"]))
    assert "client" not in ignored.read_text()
    assert errors(one(agent(Tools.replay(ignored), 1, ignore=["client"]))) == []
    problem = (
        "the argument first of the tool take can't be recorded: object has no JSON form; "
        'leave it out with @tools(ignore=["first"])'
    )
    for tools in (Tools.record(path), Tools.replay(path)):
        assert errors(one(agent(tools, object()))) == [problem]
    assert errors(one(agent(Tools(), object()))) == []


def test_methods_and_bound_methods_are_recorded_without_their_object(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def agent(tools: Tools) -> Callable[..., Any]:
        class Base:
            @tools
            def look(self, what: str) -> str:
                return what

            @tools
            async def wait(self, what: str) -> str:
                return what

            @staticmethod
            @tools
            def still(what: str) -> str:
                return what

            @classmethod
            @tools
            def kind(cls, what: str) -> str:
                return cls.__name__ + what

            def plain(self, what: str) -> str:
                return what

        base = Base()
        bound = tools(base.plain)

        async def answer(*, input: str) -> str:
            return " ".join(
                [base.look("a"), await base.wait("b"), base.still("c"), Base.kind("d"), bound("e"), base.kind("f")]
            )

        return answer

    first, again = recorded(path, agent, cases=CASES[:1]), one(agent(Tools.replay(path)))
    assert outputs(first) == outputs(again) == ["a b c Based e Basef"]
    calls = json.loads(path.read_text())["calls"]
    assert [(call["tool"], call["arguments"]) for call in calls] == [
        (name, {"what": what})
        for name, what in zip(["look", "wait", "still", "kind", "plain", "kind"], "abcdef", strict=True)
    ]
    mocks: dict[str, Any] = dict.fromkeys(("look", "wait", "still", "kind", "plain"), lambda what: f"({what})")
    assert outputs(one(agent(Tools.mock(mocks)))) == ["(a) (b) (c) (d) (e) (f)"]


def test_a_wrapped_function_keeps_its_signature_and_kind() -> None:
    async def price(item: str, *, currency: str = "EUR") -> float:
        """What it costs."""
        return 1.0

    wrapped = Tools()(price)
    assert inspect.signature(wrapped) == inspect.signature(price)
    assert inspect.iscoroutinefunction(wrapped)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__annotations__) == (
        "price",
        "What it costs.",
        price.__annotations__,
    )
    with pytest.raises(TypeError, match="missing a required argument: 'item'"):
        asyncio.run(wrapped())  # pyright: ignore[reportCallIssue]


class Sold:
    def search(self) -> None: ...


class Lost:
    def search(self) -> None: ...


def _numbers() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("wrap", "problem"),
    [
        (lambda tools: tools(3), "a tool is a function, not 3"),
        (lambda tools: tools(Shop), "a tool is a function, not <class"),
        (lambda tools: tools(staticmethod(_echo)), "write @tools below @staticmethod"),
        (lambda tools: tools(lambda: 1), r"needs a name: tools\(…, name=…\)"),
        (lambda tools: tools(partial(_echo, 1)), r"needs a name: tools\(…, name=…\)"),
        (lambda tools: tools(_numbers), "the tool _numbers yields, which can't be recorded"),
        (lambda tools: tools(_echo, ignore="text"), r'ignore must be a list of parameters: ignore=\["text"\]'),
        (lambda tools: tools(_echo, ignore=["tex"]), "ignore of the tool _echo: unknown parameter 'tex'; did you mean"),
        (lambda tools: [tools(Sold.search), tools(Lost.search)], "Sold.search and .*Lost.search are both called sea"),
        (lambda tools: Tools.mock(cast(Any, 3)), "mocks are a mapping of tools, or a function of a sample, not 3"),
        (lambda tools: Tools.record(""), "a recording of tool calls is a file, not ''"),
        (lambda tools: Tools.replay("nowhere.jsonl"), "the recording .*nowhere.jsonl can't be read: No such file"),
        (lambda tools: Tools.record("nowhere/x.jsonl"), "cannot write .*nowhere/x.jsonl.*: No such file or directory"),
        (lambda tools: FunctionTarget(function=_echo, tools="rec:x"), "tools must be Tools, or record:FILE or replay"),
        (lambda tools: FunctionTarget(function=_echo, tools=cast(Any, 7)), "tools must be .*, not 7"),
        (lambda tools: parse_target({"address": "cmd:x", "tools": "record:x"}), "unknown setting 'tools'"),
    ],
)
def test_what_can_t_be_wrapped_or_used_is_refused(wrap: Callable[[Tools], Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        wrap(Tools())


def test_mocks_answer_and_a_tool_without_one_fails_even_if_the_error_is_swallowed() -> None:
    fixed = {"found": ["a"]}
    changed = list[Any]()

    def agent(tools: Tools) -> Callable[..., Any]:
        shop = Shop(tools)

        async def answer(*, input: str) -> str:
            found: Any = shop.search(input)
            found["found"].append("b")
            changed.append(found)
            try:
                price = await shop.price(item="a")
            except Exception as error:  # noqa: BLE001 - as agents do
                price = repr(error)
            assert shop.calls == []
            return str(price)

        return answer

    run = run_it(agent(Tools.mock({"search": fixed, "price": ConnectionError("down")})))
    assert outputs(run) == ["ConnectionError('down')"] * 3
    assert changed == [{"found": ["a", "b"]}] * 3
    assert fixed == {"found": ["a"]}

    async def priced(item: str) -> str:
        return item * 2

    assert outputs(one(agent(Tools.mock({"search": fixed, "price": priced})))) == ["aa"]
    assert errors(one(agent(Tools.mock({"search": fixed})))) == ["the tool price has no mock; mocks: search"]
    (error,) = errors(one(agent(Tools.mock({"search": priced, "price": 1}))))
    assert "the tool search is not an async function, but what answers it is" in error


def test_mocks_may_be_of_the_sample() -> None:
    cases: list[Any] = [{"id": name, "input": "?", "metadata": {"search": [name]}} for name in "ab"]
    cases += [{"id": "c", "input": "?"}, {"id": "d", "input": "?", "metadata": {"search": 3}}]

    def mocks(sample: Sample) -> Any:
        return {"search": sample.metadata["search"]} if sample.id != "d" else 3

    shop = Shop(Tools.mock(mocks))
    run = run_it(lambda *, input: str(shop.search(input)), cases=cases)
    assert outputs(run)[:2] == ["['a']", "['b']"]
    assert errors(run)[0].startswith("the mocks of sample 'c' can't be read: KeyError: 'search' (test_tools.py")
    assert errors(run)[1] == "the mocks of sample 'd' must be a mapping, not 3"


def test_the_tools_of_the_target_take_the_place_of_those_of_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    shop = Shop(Tools.mock({"search": 1}))
    first = run_it({"function": shop.agent, "tools": f"record:{path}"})
    live = len(shop.calls)
    again = run_it({"function": shop.agent, "tools": f"replay:{path}"})
    assert outputs(first) == outputs(again)
    assert errors(again) == []
    assert live == len(shop.calls) == 6
    assert first.target is not None
    assert first.target.identity.endswith(f"Shop.agent with tools record:{path}")


def test_a_target_that_calls_nothing_is_recorded_too_if_the_tools_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    shop = Shop(Tools())
    one(FunctionTarget(function=_answer, tools=Tools.record(path)))
    assert json.loads(path.read_text())["calls"] == []
    assert errors(one(FunctionTarget(function=_answer, tools=Tools.replay(path, strict=True)))) == []
    run_it({"function": shop.agent, "tools": Tools.record(path)}, cases=CASES[:1])
    (error,) = errors(one(FunctionTarget(function=_answer, tools=Tools.replay(path, strict=True))))
    assert error.startswith("2 recorded tool calls were not made: search(query='question 0', limit=1), price(item=")
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
    shop = Shop(Tools())

    async def agent(*, input: str) -> str:
        try:
            found: Any = await shop.price(item=input)
            return str(found + shop.search("more"))
        except TargetError as error:
            with pytest.raises(TargetError, match=re.escape(str(error))):
                shop.search("more")
            raise RuntimeError("I can't go on") from error

    mocks = {"price": lambda item: shop.search(item), "search": lambda query: [query]}
    run = one({"function": agent, "tools": Tools.mock(mocks)})
    assert outputs(run) == ["['question 0', 'more']"]
    calls = next(iter(run.dataset or ())).messages[1].tool_calls
    assert [call.name for call in calls] == ["price", "search", "search"]
    assert errors(one({"function": agent, "tools": Tools.mock({"search": 1})})) == [
        "the tool price has no mock; mocks: search"
    ]
    run_it(Shop(Tools.record(tmp_path / "calls.jsonl")).agent)
    (error,) = errors(one({"function": agent, "tools": Tools.replay(tmp_path / "calls.jsonl")}))
    assert (
        error
        == 'the tool price was called with other arguments than recorded: item was "question 0 0", now "question 0"'
    )
    assert shop.calls == []


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
    with pytest.raises(TargetError, match="the tool search is replayed, and was called outside of an answer"):
        Shop(Tools.replay(path)).search("a", 1)
    assert Shop(Tools.mock({"search": [1]})).search("a") == [1]
    with pytest.raises(TargetError, match="the tool search has mocks by sample, and was called outside of an answer"):
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
    assert error.startswith("the tool search was called in a thread that doesn't know the sample; start it with a copy")
    assert len(shop.calls) - before == (kind == "live")


def test_a_call_after_the_answer_is_refused(tmp_path: Path) -> None:
    shop = Shop(Tools.record(tmp_path / "calls.jsonl"))
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
    assert caught == ["the tool search was called after the target had answered"]
    assert shop.calls == []


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
    assert next(iter(again.dataset or ())).messages[1].tool_calls[0].state == "call"


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
        sample = next(iter(run.dataset or ()))
        assert sample.state == {"after": ["after 0"]}
        assert [call.arguments["query"] for message in sample.messages for call in message.tool_calls] == ["question 0"]
    calls = [call["arguments"]["query"] for line in path.read_text().splitlines() for call in json.loads(line)["calls"]]
    assert sorted(calls) == ["question 0", "question 1", "question 2"]
    for refused in (target(Tools.replay(path)), target(Tools(), tools=f"replay:{path}")):
        assert "the tool search is replayed, and was called outside of an answer" in errors(one(refused))[0]


@pytest.mark.parametrize("strict", [False, True])
def test_the_turns_of_a_conversation_continue_the_same_recording(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "calls.jsonl"
    sample = Sample(id="talk", input="?")

    async def talk(tools: Tools, turns: list[str], trial: int, thread: str) -> list[str]:
        @tools
        def look(what: str) -> str:
            return f"{what} in {thread}"

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
    tools = Tools.replay(path, strict=strict)
    assert play(tools, ["ab", ".", "ca"]) == first == ["a in first, b in first", ". in first", "c in first, a in first"]
    assert play(tools, ["a"], trial=2) == second == ["a in second"]
    if strict:
        with pytest.raises(TargetError, match=r"1 recorded tool call was not made: look\(what='b'\)"):
            play(tools, ["a", "b"])
    else:
        assert play(tools, ["a", "bc"]) == ["a in first", "b in first, c in first"]
        with pytest.raises(TargetError, match="called with other arguments than recorded"):
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

    assert asyncio.run(talk()) == ["the tool search has no mock; mocks: none"] * 2


def test_the_code_of_a_wrapped_function_is_part_of_the_plan() -> None:
    def plan(body: str) -> str:
        space: dict[str, Any] = {"tools": Tools(), "__name__": "app"}
        exec(f"@tools\ndef look():\n    return {body}\n\ndef agent(*, input):\n    return look()\n", space)
        target = FunctionTarget(function=space["agent"], label="agent")
        return Plan(load(CASES), parse_scorers(ANSWERED), LexicalJudge(), target=target).fingerprint

    assert plan("'a'") == plan("'a'") != plan("'b'")

"""Tools of a target: recorded, replayed and mocked."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from evalstone import Sample, Skipped, evaluate
from evalstone.errors import ConfigError
from evalstone.targets import Answer, FunctionTarget, Tools, parse_target
from tests.targets.tool_shop import CASES, Shop, errors, one, outputs, recorded, run_it


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
    assert sorted((row["sample_id"], row["trial"]) for row in rows) == [(f"q{n}", t) for n in range(3) for t in (1, 2)]
    call = next(row for row in rows if row["sample_id"] == "q0" and row["trial"] == 2)["calls"][0]
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
    first, *_, last = (message for sample in run.samples or () for message in sample.messages)
    assert (first.role, first.content) == ("user", "question 0")
    assert last.content == list(run.samples or ())[-1].output
    failing = list(run.samples or ())[2].messages[1].tool_calls[0]
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

    messages = [next(iter(one(function).samples or ())).messages for function in (own, silent)]
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
        (
            lambda look: look.other(),
            False,
            "a call of the tool other is not recorded for this sample and trial; recorded tools: look",
        ),
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
    missing = [("q1", 2), ("q2", 1), ("q2", 2)]
    for error, (sample, trial) in zip(errors(run), missing, strict=True):
        assert re.search(f"{sample!r}, trial {trial}, .* recorded in {path}$", error)


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


class Place(NamedTuple):
    name: str


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (Page("a"), "result is of type Page"),
        (Place("a"), "result is of type Place"),
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
    assert "tool fetch returned" in error
    assert f": {problem}; " in error
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


def test_a_local_function_has_no_object_whatever_its_first_parameter_is_called(tmp_path: Path) -> None:
    tools = Tools.record(tmp_path / "calls.jsonl")

    @tools
    def pick(cls: str) -> str:
        return cls

    assert outputs(one(lambda *, input: pick(input))) == ["question 0"]
    (call,) = json.loads((tmp_path / "calls.jsonl").read_text())["calls"]
    assert call["arguments"] == {"cls": "question 0"}


def test_arguments_that_are_called_like_a_parameter_given_by_place_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"

    def agent(tools: Tools, *args: Any, **options: Any) -> Callable[..., Any]:
        @tools
        def find(what: str, /, *more: str, **others: Any) -> str:
            return f"{what} {more} {others}"

        return lambda *, input: find(*args, **options)

    recorded(path, lambda tools: agent(tools, "a", "b", what="c"), cases=CASES[:1])
    assert json.loads(path.read_text())["calls"][0]["arguments"] == {"what": "a", "more": ["b"], "**what": "c"}
    assert errors(one(agent(Tools.replay(path), "a", "b", what="c"))) == []
    for args, options in ((("z", "b"), {"what": "c"}), (("a",), {"what": "c", "more": ["b"]})):
        assert len(errors(one(agent(Tools.replay(path), *args, **options)))) == 1


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
    with pytest.raises(TypeError, match="'item'"):
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
        (lambda tools: FunctionTarget(function=_echo, tools=cast(Any, {"look": 7})), r"tools must be .*; Tools\.mock"),
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

    down = ConnectionError("down")
    run = run_it(agent(Tools.mock({"search": fixed, "price": down})))
    assert down.__traceback__ is None  # each call raises its own
    assert outputs(run) == ["ConnectionError('down')"] * 3
    assert changed == [{"found": ["a", "b"]}] * 3
    assert fixed == {"found": ["a"]}

    async def priced(item: str) -> str:
        return item * 2

    assert outputs(one(agent(Tools.mock({"search": fixed, "price": priced})))) == ["aa"]
    (error,) = errors(one(agent(Tools.mock({"search": fixed}))))
    assert re.search("price .*; mocks: search$", error)


def test_the_type_of_an_exception_as_a_mock_is_raised() -> None:
    shop = Shop(Tools.mock({"search": TimeoutError}))

    def agent(*, input: str) -> str:
        try:
            return str(shop.search(input))
        except TimeoutError:
            return "timed out"

    assert outputs(one(agent)) == ["timed out"]


@pytest.mark.parametrize(
    ("mock", "problem"),
    [
        (lambda *, other: [], "the mock of the tool search doesn't take its arguments: too many positional arguments"),
        (
            lambda text, number: [],
            "the mock of the tool search doesn't take its arguments: missing a required argument",
        ),
        (asyncio.sleep, "the tool search is not an async function, but what answers it is"),
    ],
)
def test_a_mock_that_can_t_stand_for_its_tool_fails_even_if_the_error_is_swallowed(mock: Any, problem: str) -> None:
    shop = Shop(Tools.mock({"search": mock}))

    def agent(*, input: str) -> str:
        try:
            return str(shop.search("0"))
        except Exception as error:  # noqa: BLE001 - as agents do
            return repr(error)

    (error,) = errors(one(agent))
    assert error.startswith(problem)


def test_mocks_may_be_of_the_sample() -> None:
    cases: list[Any] = [{"id": name, "input": "?", "metadata": {"search": [name]}} for name in "ab"]
    cases += [{"id": "c", "input": "?"}, {"id": "d", "input": "?", "metadata": {"search": 3}}]

    def mocks(sample: Sample) -> Any:
        return {"search": sample.metadata["search"]} if sample.id != "d" else 3

    shop = Shop(Tools.mock(mocks))
    run = run_it(lambda *, input: str(shop.search(input)), cases=cases)
    assert outputs(run)[:2] == ["['a']", "['b']"]
    assert re.search("mocks .*'c' .*: KeyError: 'search' ", errors(run)[0])
    assert f" ({Path(__file__).name}" in errors(run)[0]
    assert re.search("mocks .*'d' .*mapping, not 3$", errors(run)[1])


def test_an_answer_without_a_call_says_that_no_tool_was_called() -> None:
    tools = Tools()

    @tools
    def look(query: str) -> str:
        return query

    class Agent:
        def __call__(self, *, input: str) -> str:
            return look(input) if input == "a" else "no need"

    def plain(*, input: str) -> str:
        return "no need"

    cases = [{"input": name, "expected_trajectory": ["look"]} for name in "abcd"]
    scorers = ["tool_called(tool=look)", "tool_call_f1", "no_tool_calls"]
    expected = [0.25, 0.25, 0.75]
    for target in (Agent(), partial(Agent()), Agent().__call__):
        run = evaluate(cases, scorers, target=target, ledger=None)
        assert [line.mean for line in run.summary] == expected
    mocked = evaluate(cases, scorers, target={"function": plain, "tools": Tools.mock({"look": "x"})}, ledger=None)
    assert [line.mean for line in mocked.summary] == [0, 0, 1]
    assert next(iter(mocked.samples or ())).messages[-1].content == "no need"


def test_without_wrapped_tools_nothing_is_said_of_calls() -> None:
    code: dict[str, Any] = {}
    exec("def plain(*, input): return 'no need'", code)
    run = evaluate([{"input": "a"}, {"input": "b"}], "tool_called(tool=look)", target=code["plain"], ledger=None)
    assert [type(record.outcome) for record in run] == [Skipped, Skipped]

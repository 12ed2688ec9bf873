"""Functions as targets: what they get, what they return, and what becomes of their failures."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, Limits, Run, Sample, Score, Scorer, Skipped, evaluate
from evalstone.datasets import Dataset
from evalstone.errors import ConfigError, TargetUnavailable
from evalstone.run.planning import plan_for
from evalstone.targets import Answer, FunctionTarget, parse_target
from evalstone.types import Message, Record, Usage, note

BORN = "contains(expected='1815')"
CASES = [{"id": f"q{n}", "input": f"When was Ada born? ({n})", "context": ["Ada was born in 1815."]} for n in range(6)]

HERE = f"({Path(__file__).name}, line "


class Seen(Scorer):
    """Remembers the samples that it gets."""

    name = "seen"
    excluded_from_signature = ("name", "version", "judge")

    def score(self, *, output: str, metadata: dict[str, Any]) -> Score:
        return Score(float("1815" in output), reason=str(sorted(metadata["target"])))


def test_scorers_see_the_answer_and_share_one_call() -> None:
    calls = list[str]()

    def agent(*, input: str) -> str:
        calls.append(input)
        return f"Ada was born in {1912 if '(3)' in input else 1815}."

    run = evaluate(CASES, [Seen(), "faithfulness", BORN], target=agent, ledger=None)
    assert sorted(calls) == sorted(str(case["input"]) for case in CASES)
    assert [record.value for record in run if record.signature.startswith("seen")] == [1, 1, 1, 0, 1, 1]
    assert run["contains"].mean == run["faithfulness"].mean == pytest.approx(5 / 6)
    assert run.target is not None
    assert (run.target.answers, run.target.failed, run.target.cost) == (6, 0, None)
    assert ["1912" in (sample.output or "") for sample in run.samples or ()] == [n == 3 for n in range(6)]


class Counted(Dataset):
    """Counts how often all of its samples were read."""

    def __iter__(self) -> Iterator[Sample]:
        yield from super().__iter__()
        READ.append(self.name)


READ: list[str] = []


def test_a_dataset_is_read_once_to_check_it_for_a_target() -> None:
    samples = [Sample(id="a", input="q", output="old"), Sample(id="b", input="r")]

    def agent(*, input: str) -> str:
        return "1815"

    plan = plan_for(Counted(samples, "counted"), BORN, target=agent)
    plan.check()
    assert (plan.cases_for_target.replaced, READ) == (1, ["counted"])


def test_a_run_says_how_many_outputs_of_the_data_the_answers_replace() -> None:
    outputs = ("Born in 1912.", " ", None, "Born in 1913.")
    cases = [{**case, "output": output} for case, output in zip(CASES, outputs, strict=False)]

    def agent(*, input: str) -> str:
        return "Born in 1815."

    run = evaluate(cases, BORN, target=agent, trials=2, ledger=None)
    assert run["contains"].mean == 1
    for one in (run, Run.from_dict(run.to_dict(), run.records)):
        assert [each for each in one.notes if each.kind == "outputs_replaced"] == [note("outputs_replaced", samples=2)]
    for other in (evaluate(CASES, BORN, target=agent, ledger=None), evaluate(cases[:1], BORN, ledger=None)):
        assert not any(each.kind == "outputs_replaced" for each in other.notes)


def test_an_async_function_and_one_that_returns_an_answer() -> None:
    async def agent(*, input: str, thread: str, trial: int) -> Answer:
        await asyncio.sleep(0)
        return Answer(
            messages=[{"role": "assistant", "content": f"Born in 1815, {trial}."}],
            context=["Ada was born in 1815."],
            state={"rows": [1]},
            cost=0.01,
            usage={"input": 3, "output": 2},  # pyright: ignore[reportArgumentType]
            trace={"id": thread},
        )

    run = evaluate(CASES[:2], "faithfulness", target=agent, ledger=None)
    first = next(iter(run.samples or ()))
    assert first.output == "Born in 1815, 1."
    assert [message.role for message in first.messages] == ["user", "assistant"]
    assert first.state == {"rows": [1]}
    assert set(first.metadata["target"]) == {"seconds", "usage", "cost", "trace"}
    assert run.cost == pytest.approx(0.02)
    assert run.target is not None
    assert (run.target.usage.input, run.target.usage.output) == (6, 4)


def test_messages_without_the_user_s_are_the_reply_and_others_the_whole_conversation() -> None:
    sample = Sample(input="When?")
    document = {"lc": 1, "type": "constructor", "kwargs": {"type": "Document", "page_content": "Born in 1815."}}
    reply: Any = {"type": "ai", "content": "1815"}
    whole: Any = {"messages": [{"type": "human", "content": "When, please?"}, reply], "documents": [document]}
    filled = [Answer.of(value).fill(sample, seconds=1.0) for value in ({"messages": [reply]}, whole, "1815")]
    assert [[m.content for m in each.messages] for each in filled] == [["When?", "1815"], ["When, please?", "1815"], []]
    assert [each.context for each in filled] == [None, ("Born in 1815.",), None]


def test_what_was_said_before_the_last_question_is_no_answer_to_it() -> None:
    turns = [("user", "Where?"), ("assistant", "In Rome. It contains 1815."), ("user", "When?")]
    asked: list[Any] = [{"role": role, "content": text} for role, text in turns]

    def agent(*, messages: Any) -> Any:
        return list(messages)

    assert Answer(messages=asked).output is Answer.of({"messages": asked}).output is Answer.of(asked).output is None
    run = evaluate([{"id": "a", "messages": asked}], BORN, target=agent, ledger=None)
    assert isinstance(run.records[0].outcome, Skipped)
    call: dict[str, Any] = {"name": "look", "arguments": {}}
    said = [*asked, {"role": "assistant", "content": "Let me look."}, {"role": "assistant", "tool_calls": [call]}]
    assert Answer(messages=said).output == Answer.of(said).output == "Let me look."


def test_an_exception_and_no_answer_fail_their_sample_alone() -> None:
    def agent(*, input: str) -> str | None:
        if "(1)" in input:
            raise KeyError("seven")
        return {"(2)": " ", "(4)": None}.get(input[-3:], "Ada was born in 1815.")

    run = evaluate(CASES, BORN, target=agent, ledger=None)
    outcomes = [record.outcome for record in run]
    failed = {n: outcome for n, outcome in enumerate(outcomes) if isinstance(outcome, Failed)}
    assert sorted(failed) == [1, 4]
    assert f": KeyError: 'seven' {HERE}" in failed[1].error
    assert failed[1].exception == "KeyError"
    assert isinstance(outcomes[2], Score)  # a blank answer
    assert "returned None" in failed[4].error
    assert run.target is not None
    assert (run.target.answers, run.target.failed) == (4, 2)


def test_a_function_that_never_returns_times_out() -> None:
    async def agent(*, input: str) -> str:
        await asyncio.sleep(60 if "(1)" in input else 0)
        return "1815"

    run = evaluate(CASES[:3], BORN, target={"function": agent, "timeout": 0.05}, ledger=None)
    failures = [record.outcome.error for record in run if isinstance(record.outcome, Failed)]
    assert ["no answer within 0.05 s" in failure for failure in failures] == [True]


def test_a_target_s_own_timeout_is_its_own_error() -> None:
    def agent(*, input: str) -> str:
        raise TimeoutError("slow database")

    outcome = evaluate(CASES[:1], BORN, target=agent, ledger=None).records[0].outcome
    assert isinstance(outcome, Failed)
    assert f": TimeoutError: slow database {HERE}" in outcome.error
    assert "in agent" in (outcome.traceback or "")


def test_a_target_that_always_fails_ends_the_run() -> None:
    def agent(*, input: str) -> str:
        raise OSError("down")

    cases = [{"id": str(n), "input": "x"} for n in range(200)]
    with pytest.raises(TargetUnavailable, match=r"first 10 .*: OSError: down"):
        evaluate(cases, BORN, target=agent, ledger=None)


def test_a_target_whose_answers_an_earlier_run_kept_works(tmp_path: Path) -> None:
    def agent(*, input: str) -> str:
        if input != "0":
            raise OSError("not that one")
        return "1815"

    target = FunctionTarget(function=agent, version="1")
    cases = [{"id": str(n), "input": str(n)} for n in range(13)]
    options: dict[str, Any] = {"target": target, "concurrency": 1, "ledger": tmp_path / "l.db"}
    evaluate(cases[:1], BORN, **options)
    run = evaluate(cases, BORN, **options)
    assert (run["contains"].n_score, run["contains"].n_failed) == (1, 12)


def test_no_more_calls_at_a_time_than_its_limits_say() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def agent(*, input: str) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1
        return "1815"

    target = FunctionTarget(function=agent, limits=Limits(max_concurrency=2))
    evaluate(CASES, BORN, target=target, ledger=None)
    assert most == 2


def of_a_question(question: str) -> str:
    return question


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (of_a_question, "the target .* has an unknown parameter 'question'; known: context, input"),
        (3, "a target is a function or an address .*, not 3"),
        ("nothing:here", "there is no module nothing, which the target nothing:here names"),
        ("json:here", "the module json has no here"),
        ("agent", "a target is a function or an address"),
    ],
)
def test_what_is_no_target_is_refused(function: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_target(function)


def test_a_sample_that_lacks_what_the_target_needs_is_skipped() -> None:
    def agent(*, input: str) -> str:
        return "1815"

    run = evaluate([CASES[0], {"id": "x", "reference": "y"}], BORN, target=agent, ledger=None)
    assert [type(record.outcome) for record in run] == [Score, Skipped]


def test_what_is_set_up_is_taken_down_also_after_a_failure() -> None:
    events = list[str]()

    def agent(*, input: str) -> str:
        events.append("call")
        if "(1)" in input:
            raise ValueError
        return "1815"

    def finish(sample: Sample) -> dict[str, str]:
        events.append(f"finish {sample.id}")
        return {"of": sample.id}

    target = FunctionTarget(
        function=agent,
        prepare=lambda sample: events.append(f"prepare {sample.id}"),
        finish=finish,
        limits=Limits(max_concurrency=1),
    )
    run = evaluate(CASES[:2], BORN, target=target, ledger=None)
    assert events == ["prepare q0", "call", "finish q0", "prepare q1", "call", "finish q1"]
    assert [sample.state for sample in run.samples or ()] == [{"of": "q0"}, None]


def test_an_answer_reads_back_as_what_it_was() -> None:
    answer = Answer(
        output="x", messages=[Message(role="user", content="y")], context=["z"], state=[1], cost=0.5, trace={"a": 1}
    )
    assert Answer.from_dict(answer.to_dict()) == answer
    assert Answer(output="x").to_dict() == {"output": "x"}


def test_trials_repeat_the_target_and_keep_the_sample_s_id() -> None:
    def agent(*, input: str, trial: int) -> str:
        return "1815" if trial % 2 else "1912"

    run = evaluate(CASES[:3], BORN, target=agent, trials=4, ledger=None)
    assert [(record.sample_id, record.trial) for record in run] == [
        (f"q{n}", t) for n in range(3) for t in (1, 2, 3, 4)
    ]
    assert [record.value for record in run][:4] == [1, 0, 1, 0]
    assert run[1].to_dict()["trial"] == 2


def test_trials_need_a_target() -> None:
    with pytest.raises(ConfigError, match="trials needs a target"):
        evaluate(CASES, BORN, trials=2, ledger=None)


def test_a_resumed_run_calls_again_only_what_gave_no_answer(tmp_path: Path) -> None:
    calls = list[str]()

    def agent(*, input: str) -> str:
        calls.append(input)
        if "(2)" in input:
            raise ValueError("no")
        return "1815"

    stopped = list[int]()

    def stop(_: Any) -> None:
        stopped.append(1)
        if len(stopped) == 3:
            raise RuntimeError("enough")

    ledger = tmp_path / "l.db"
    target = FunctionTarget(function=agent, label="agent")
    with pytest.raises(RuntimeError, match="enough"):
        evaluate(CASES, BORN, target=target, ledger=ledger, concurrency=1, on_record=stop)
    run = evaluate(CASES, BORN, target=target, ledger=ledger)
    assert run.resumed >= 2
    assert sorted(calls) == sorted([*(str(case["input"]) for case in CASES), str(CASES[2]["input"])])
    assert [record.value for record in run] == [1, 1, None, 1, 1, 1]
    assert run.target is not None
    assert (run.target.answers, run.target.failed) == (5, 1)
    assert [sample.output for sample in run.samples or ()] == ["1815", "1815", None, "1815", "1815", "1815"]
    again = evaluate(CASES, BORN, target=target, ledger=ledger)
    assert again.resumed == 0
    assert len(calls) == 2 * len(CASES) + 1


def test_a_version_lets_later_runs_use_the_answers(tmp_path: Path) -> None:
    calls = list[str]()

    def agent(*, input: str) -> str:
        calls.append(input)
        return "1815"

    for version, expected in (("1", 6), ("1", 6), ("2", 12)):
        target = FunctionTarget(function=agent, version=version)
        evaluate(CASES, BORN, target=target, ledger=tmp_path / "l.db")
        assert len(calls) == expected


class Odd(BaseException):
    """No Exception."""


class Mute(Exception):
    """Its text can't be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [SystemExit(0), Odd("odd"), BaseExceptionGroup("several", [SystemExit(0)]), Mute()])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_error_of_a_function_ends_more_than_its_trial(error: BaseException, asynchronous: bool) -> None:
    def agent(*, input: str) -> str:
        if "(3)" in input:
            raise error
        return "1815"

    async def async_agent(*, input: str) -> str:
        return agent(input=input)

    run = evaluate(CASES, BORN, target=async_agent if asynchronous else agent, ledger=None)
    assert [record.value for record in run] == [1, 1, 1, None, 1, 1]
    outcome = run.records[3].outcome
    assert isinstance(outcome, Failed)
    assert type(error).__name__ in outcome.error
    assert HERE in outcome.error


@pytest.mark.slow
def test_functions_that_never_return_keep_no_other_from_starting() -> None:
    cases = [{"id": f"q{n}", "input": str(n)} for n in range(60)]
    never, started = threading.Event(), set[str]()

    def agent(*, input: str) -> str:
        started.add(input)
        if int(input) % 3:
            never.wait(60)
        return "1815"

    try:
        run = evaluate(cases, BORN, target=FunctionTarget(function=agent, timeout=0.5), ledger=None)
    finally:
        never.set()
    assert len(started) == 60
    assert [record.value for record in run] == [None if n % 3 else 1 for n in range(60)]


def test_what_a_function_does_to_its_arguments_stays_in_its_trial() -> None:
    seen = list[Any]()

    def agent(*, metadata: dict[str, Any]) -> str:
        seen.append(metadata.pop("rows").pop())
        metadata["new"] = 1
        return "1815"

    case: dict[str, Any] = {"id": "q", "input": "?", "metadata": {"rows": [1, 2]}}
    run = evaluate([case], BORN, target=agent, trials=3, ledger=None)
    assert seen == [2, 2, 2]
    assert [sample.metadata.keys() for sample in run.samples or ()] == [{"rows", "target"}] * 3
    assert case["metadata"] == {"rows": [1, 2]}


def test_what_a_scorer_does_to_the_state_is_not_seen_by_others() -> None:
    def empties(*, state: dict[str, Any], metadata: dict[str, Any]) -> float:
        metadata.clear()
        return float(len([state["rows"].pop() for _ in tuple(state["rows"])]))

    def counts(*, state: dict[str, Any], metadata: dict[str, Any]) -> float:
        return float(len(state["rows"]) == 1 and "target" in metadata)

    def agent() -> Answer:
        return Answer(state={"rows": [1]})

    run = evaluate(CASES, [empties, counts], target=agent, ledger=None)
    assert (run["empties"].mean, run["counts"].mean) == (1, 1)
    assert [sample.state for sample in run.samples or ()] == [{"rows": [1]}] * 6


@pytest.mark.parametrize("tokens", [-5, 1.5, True, None])
def test_tokens_are_whole_numbers(tokens: Any) -> None:
    with pytest.raises(ConfigError, match="input"):
        Answer(output="1815", usage=Usage(input=tokens))
    with pytest.raises(ConfigError, match="input"):
        Answer(output="1815", usage={"input": tokens})  # pyright: ignore[reportArgumentType]


CHANGING = """
WORD = "{word}"
stop, calls = {{"after": {after}}}, []

def logged(function):
    def call(*, input):
        calls.append(input)
        return function(input)
    return call

def written(input, mark="{mark}"):
    return f"1815 {{WORD}} {{mark}}"

@logged
def agent(input):
    return written(input) + "{own}"

def stops(record):
    if len(calls) >= stop["after"]:
        raise RuntimeError("enough")
"""


@pytest.mark.parametrize(
    ("changed", "resumed"),
    [({"after": 99}, True), ({"word": "b"}, False), ({"mark": "b"}, False), ({"own": "b"}, False)],
)
def test_an_interrupted_run_is_not_resumed_by_a_function_that_was_changed(
    tmp_path: Path, changed: dict[str, Any], resumed: bool
) -> None:
    def code(**values: Any) -> dict[str, Any]:
        module: dict[str, Any] = {"__name__": "changing"}
        exec(CHANGING.format(**{"word": "a", "mark": "a", "own": "a", "after": 2, **values}), module)
        return module

    first, second = code(), code(**{"after": 99, **changed})
    plan: Any = {"ledger": tmp_path / "l.db", "concurrency": 1}
    with pytest.raises(RuntimeError, match="enough"):
        evaluate(CASES, BORN, target=first["agent"], on_record=first["stops"], **plan)
    run = evaluate(CASES, BORN, target=second["agent"], on_record=second["stops"], **plan)
    assert bool(run.resumed) is resumed
    assert len(second["calls"]) == 6 - (len(first["calls"]) if resumed else 0)
    assert len({sample.output for sample in run.samples or ()}) == 1


@pytest.mark.parametrize(("changed", "resumed"), [("pass", True), ("pass  # a comment", True), ("return 'two'", False)])
def test_an_interrupted_run_is_not_resumed_after_a_change_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, resumed: bool
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(folder: Path, line: str, most: int) -> Any:
        for name in ("changing", "helping"):
            sys.modules.pop(name, None)
        folder.mkdir()
        (folder / "changing.py").write_text("from helping import say\ndef agent(input): return say()\n")
        (folder / "helping.py").write_text(f"def say():\n    {line}\n    return 'one'\n")
        records = list[Record]()

        def stops(record: Record) -> None:
            records.append(record)
            if len(records) == most:
                raise RuntimeError("enough")

        with monkeypatch.context() as patch:
            patch.setattr(sys, "path", [str(folder), *sys.path])
            target = importlib.import_module("changing").agent
            return evaluate(CASES, BORN, target=target, ledger=tmp_path / "l.db", concurrency=1, on_record=stops)

    with pytest.raises(RuntimeError, match="enough"):
        run(tmp_path / "before", "pass", 2)
    after = run(tmp_path / "after", changed, 99)
    assert bool(after.resumed) is resumed
    assert after.code == (("after/changing.py", "after/helping.py") if resumed else ())
    assert bool(after.resumed_at) is resumed
    assert Run.from_dict(after.to_dict(), after.records).code == after.code

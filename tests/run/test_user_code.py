"""The functions and values that users give: `def` or `async def`, slow, raising, or with results of no use."""

from __future__ import annotations

import asyncio
import enum
import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    Failed,
    Message,
    Run,
    Sample,
    Score,
    Scorer,
    ScriptedJudge,
    Skipped,
    StopSignal,
    aevaluate,
    evaluate,
    read_run,
    write_run,
)
from evalstone.errors import AnswerPending, BudgetExceeded, DataError, JudgeUnavailable, LedgerError
from evalstone.judges import Judge
from evalstone.ledger.base import Applied, Operations
from evalstone.ledger.store import Ledger
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.results.spilling import SpillingRecords
from evalstone.scorers import Completeness, Faithfulness, Pipeline, Summarization
from evalstone.types import Record, Usage
from tests.fakes import longest_wait
from tests.runs import Claimed, Given, samples_of

PARIS = "Paris is in France."
SAMPLES = [Sample(id=str(n), input="Where?", output=PARIS, context=[PARIS]) for n in range(6)]


def either(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """The function, or one that is `async def` and does the same."""

    async def later(*arguments: Any) -> Any:
        await asyncio.sleep(0)
        return function(*arguments)

    return later if is_async else function


def failing(sample: Sample) -> Any:
    if sample.id == "3":
        raise KeyError("document")
    return sample.context


def refusing(sample: Sample) -> Any:
    return [Message(role="nobody").content] if sample.id == "3" else sample.context  # type: ignore[arg-type]


def untyped(sample: Sample) -> Any:
    return 7 if sample.id == "3" else sample.context


def source_of(function: Callable[[Sample], Any]) -> Callable[[Sample], Any]:
    def source(sample: Sample) -> Any:
        return PARIS if function(sample) == (PARIS,) else 7

    return source


# ---- Functions of a sample ----


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("function", [failing, refusing, untyped])
@pytest.mark.parametrize("ledger", [False, True])
def test_a_function_of_a_sample_that_fails_concerns_that_sample_alone(
    tmp_path: Path, function: Callable[[Sample], Any], is_async: bool, ledger: bool
) -> None:
    scorers = [
        Faithfulness(context_from=either(function, is_async=is_async)),
        Summarization(source_from=either(source_of(function), is_async=is_async)),
    ]
    run = evaluate(SAMPLES, scorers, ledger=tmp_path / "l.db" if ledger else None)
    assert run.complete
    assert {record.sample_id for record in run if isinstance(record.outcome, Failed)} == {"3"}
    assert run["faithfulness"].n_score == 5


@pytest.mark.parametrize("is_async", [False, True])
def test_a_step_of_a_pipeline_is_def_or_async_def_and_fails_alone(is_async: bool) -> None:
    def step(so_far: Any) -> float:
        return 1.0 / (3 - int(so_far.sample.id)) if so_far.sample.id == "3" else 0.5

    run = evaluate(SAMPLES, Pipeline(score=either(step, is_async=is_async), name="own"), ledger=None)
    assert [record.value for record in run] == [0.5, 0.5, 0.5, None, 0.5, 0.5]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no such table"),
        LedgerError("locked"),
        JudgeUnavailable("down"),
        BudgetExceeded("spent"),
        AnswerPending("later"),
        asyncio.CancelledError("elsewhere"),
        ExceptionGroup("several", [ConfigError("no such table")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_users_own_code_concerns_its_sample_whatever_its_class(
    error: BaseException, is_async: bool
) -> None:
    def step(so_far: Any) -> float:
        if so_far.sample.id == "3":
            raise error
        return 0.5

    class Own(Scorer):
        """Raises for one sample."""

        name = "own"

        async def score(self, *, output: str, input: str) -> Score:
            if input == "3":
                raise error
            return Score(1.0)

    samples = [Sample(id=str(n), input=str(n), output=PARIS) for n in range(6)]
    run = evaluate(samples, [Pipeline(score=either(step, is_async=is_async), name="steps"), Own()], ledger=None)
    assert (len(run), run.complete) == (12, True)
    assert [(record.sample_id, type(record.outcome)) for record in run if record.value is None] == [("3", Failed)] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_script_is_a_function_of_the_question(is_async: bool) -> None:
    def script(question: Any) -> Any:
        if question.kind == "list_claims":
            return {"claims": [PARIS]}
        raise ZeroDivisionError("no luck")

    judge = ScriptedJudge(either(script, is_async=is_async))
    run = evaluate(SAMPLES[:1], "faithfulness", judge=judge, ledger=None)
    line = script.__code__.co_firstlineno + 3
    assert run[0].outcome == Failed(f"ZeroDivisionError: no luck ({Path(__file__).name}, line {line})")
    assert [call.question for call in run[0].calls] == ["list_claims"]


def test_a_function_that_can_only_be_plain_is_refused_when_it_is_async() -> None:
    async def words(text: str) -> Sequence[str]:
        return text.split()

    async def kind(sample: Sample) -> str:
        return sample.id

    with pytest.raises(ConfigError, match=r"elements .* plain function"):
        Completeness(elements=words)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"slices .* plain .* kind"):
        evaluate(samples_of(["0.5"] * 6), Given(), ledger=None).slices(kind)


# ---- on_record ----


@pytest.mark.parametrize("is_async", [False, True])
def test_records_are_passed_on_one_at_a_time_once_they_are_stored(tmp_path: Path, is_async: bool) -> None:
    told: list[str] = []
    at_once: list[int] = [0]

    def on_record(record: Record) -> None:
        at_once[0] += 1
        assert at_once == [1]
        time.sleep(0.005)
        told.append(record.sample_id)
        at_once[0] -= 1

    run = evaluate(
        SAMPLES, "faithfulness", ledger=tmp_path / "l.db", on_record=either(on_record, is_async=is_async), progress=True
    )
    assert sorted(told) == [record.sample_id for record in run]


@pytest.mark.parametrize("is_async", [False, True])
def test_what_on_record_raises_ends_the_run_and_the_records_so_far_stay(tmp_path: Path, is_async: bool) -> None:
    def on_record(record: Record) -> None:
        if record.sample_id == "2":
            raise ZeroDivisionError("no luck")

    given: dict[str, Any] = {"ledger": tmp_path / "l.db", "concurrency": 1}
    with pytest.raises(ZeroDivisionError, match="no luck"):
        evaluate(SAMPLES, "faithfulness", on_record=either(on_record, is_async=is_async), **given)
    assert evaluate(SAMPLES, "faithfulness", **given).resumed >= 3


def test_a_slow_plain_on_record_does_not_block_the_event_loop() -> None:
    work = aevaluate(SAMPLES[:2], "faithfulness", ledger=None, on_record=lambda _: time.sleep(0.4))
    assert asyncio.run(longest_wait(work)) < 0.35


def test_on_record_leaves_many_records_to_a_transaction_and_is_called_with_resumed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    apply = Ledger.apply

    def counted(ledger: Ledger, operations: Operations) -> Applied:
        written.append(len(operations.records))
        return apply(ledger, operations)

    monkeypatch.setattr(Ledger, "apply", counted)
    told: list[str] = []
    stop = StopSignal()

    def on_record(record: Record) -> None:
        told.append(record.sample_id)
        if len(told) == 200:
            stop.request("enough")

    samples = samples_of(["0.5"] * 400)
    first = evaluate(samples, Given(), ledger=tmp_path / "l.db", stop=stop, on_record=on_record)
    assert 200 <= len(told) == len(first) == sum(written) < 400
    assert len(written) < len(told) / 4
    again: list[str] = []
    run = evaluate(samples, Given(), ledger=tmp_path / "l.db", on_record=lambda record: again.append(record.sample_id))
    assert run.resumed == len(first)
    assert sorted(again) == sorted(record.sample_id for record in run)


def test_on_record_may_score_something_itself() -> None:
    found: list[Run] = []
    evaluate(
        SAMPLES[:1],
        "faithfulness",
        ledger=None,
        on_record=lambda _: found.append(evaluate(SAMPLES[1:2], "faithfulness", ledger=None)),
    )
    assert found[0].complete


# ---- Plain `def score` ----


def test_two_runs_of_plain_scorers_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2, timeout=20)

    class Meeting(Scorer):
        """Returns once another run has come here too."""

        name = "meeting"

        def score(self, *, output: str) -> Score:
            both.wait()
            return Score(1.0)

    async def work() -> list[Run]:
        stop = StopSignal()
        return await asyncio.gather(*(aevaluate(SAMPLES[:1], Meeting(), ledger=None, stop=stop) for _ in range(2)))

    assert [run["meeting"].mean for run in asyncio.run(work())] == [1.0, 1.0]
    threads = [threading.Thread(target=evaluate, args=(SAMPLES[:1], Meeting()), kwargs={"ledger": None}) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not both.broken


# ---- Evidence ----


class Color(enum.Enum):
    RED = "red"


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def cyclic() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


MAKERS: dict[str, Callable[[], Any]] = {
    "none": lambda: (),
    "nan": lambda: math.nan,
    "infinite": lambda: {"a": [math.inf]},
    "cyclic": cyclic,
    "silent": Silent,
    "set": lambda: {"b", "a"},
    "tuple": lambda: (1, (2, None)),
    "keys": lambda: {1: Color.RED},
    "bytes": lambda: b"ab",
    "dataclass": lambda: Usage(1, 2),
    "surrogate": lambda: ["\ud83d"],
}


class Evidence(Scorer):
    """Gives the evidence that the output names."""

    name = "evidence"

    def score(self, *, output: str) -> Score | Skipped:
        return Score(1.0, evidence=MAKERS[output]())


def with_evidence(name: str, **more: Any) -> Run:
    return evaluate([{"output": output} for output in ("none", name, "none")], Evidence(), **more)


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nan", "the evidence cannot be written as JSON: "),
        ("infinite", "the evidence cannot be written as JSON: "),
        ("cyclic", "the evidence cannot be written as JSON: "),
        ("silent", "RuntimeError: no text"),
    ],
)
def test_evidence_without_a_form_as_json_fails_its_sample_with_and_without_a_ledger(
    tmp_path: Path, ledger: bool, name: str, error: str
) -> None:
    run = with_evidence(name, ledger=tmp_path / "l.db" if ledger else None)
    outcomes = [record.outcome for record in run]
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].error.startswith(error)
    assert [type(outcome) for outcome in outcomes] == [Score, Failed, Score]
    assert read_run(write_run(run, tmp_path / "out"))["evidence"].n_failed == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("set", ["a", "b"]),
        ("tuple", [1, [2, None]]),
        ("keys", {"1": "Color.RED"}),
        ("bytes", "b'ab'"),
        ("dataclass", {"input": 1, "output": 2, "cached": 0, "requests": 0}),
        ("surrogate", ["\ud83d"]),
    ],
)
def test_evidence_is_kept_as_the_json_data_that_is_written(tmp_path: Path, name: str, kept: Any) -> None:
    run = with_evidence(name, ledger=tmp_path / "l.db")
    for each in (run, read_run("last", ledger=tmp_path / "l.db"), read_run(write_run(run, tmp_path / "out"))):
        assert each[1].outcome == Score(1.0, scale=1.0, evidence=kept)


class Unsure(Judge):
    """A judge of the user's own, with a number in its answers that is none."""

    given: Mapping[str, Any]
    cacheable = False

    @property
    def identity(self) -> str:
        return "unsure"

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        given = {"value": question.parse(json.dumps(question.example())), **self.given}
        return JudgeAnswer(judge="unsure", **given)


@pytest.mark.parametrize(
    "given",
    [
        {"probability": math.nan},
        {"cost": math.nan},
        {"cost": math.inf},
        {"alternatives": {"a": math.nan}},
        {"usage": Usage(input=math.nan)},  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("ledger", [False, True])
def test_an_answer_with_a_number_that_is_none_fails_its_samples(
    tmp_path: Path, given: Mapping[str, Any], ledger: bool
) -> None:
    run = evaluate(SAMPLES[:2], "faithfulness", judge=Unsure(given=given), ledger=tmp_path / "l.db" if ledger else None)
    assert run["faithfulness"].n_failed == 2
    outcome = run[0].outcome
    assert isinstance(outcome, Failed)
    assert re.match(
        r"the answer of unsure: ([a-z]+ must be a finite number|a count or a probability is nan)", outcome.error
    )
    assert run.cost == 0.0
    assert read_run(write_run(run, tmp_path / "out")).n_failed == 2


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"detail": {"sure": math.nan}}, "the answer of unsure cannot be written as JSON: "),
        ({"detail": {"sure": CYCLE}}, "the answer of unsure cannot be written as JSON: it is nested too deeply"),
        ({"value": (math.inf,)}, "the answer of unsure cannot be written as JSON: "),
        ({"cost": -1.0}, "the answer of unsure: the cost is -1.0, below 0"),
        ({"usage": None}, "the answer of unsure: usage must be a Usage, not None (NoneType)"),
        ({"reply": 5}, "the answer of unsure: reply must be text, not 5 (int)"),
        ({"alternatives": [1]}, "the answer of unsure: alternatives must be a mapping, not [1] (list)"),
        ({"alternatives": {"a": "x"}}, "the answer of unsure: a count or a probability is x"),
        ({"detail": "sure"}, "the answer of unsure: detail must be a mapping, not 'sure' (str)"),
        ({"members": 5}, "the answer of unsure: members must be a list of items, not 5 (int)"),
        ({"cost": True}, "the answer of unsure: cost must be a finite number, not True (bool)"),
        ({"seconds": None}, "the answer of unsure: seconds must be a finite number, not None (NoneType)"),
        ({"source": "own"}, "the answer of unsure: source must be 'asked', 'shared' or 'cached', not 'own' (str)"),
    ],
)
@pytest.mark.parametrize("ledger", [False, True])
def test_an_answer_that_can_not_be_stored_fails_its_samples(
    tmp_path: Path, given: Mapping[str, Any], error: str, ledger: bool
) -> None:
    run = evaluate(SAMPLES[:2], "faithfulness", judge=Unsure(given=given), ledger=tmp_path / "l.db" if ledger else None)
    assert run["faithfulness"].n_failed == 2
    assert str(getattr(run[0].outcome, "error", "")).startswith(error)
    assert read_run(write_run(run, tmp_path / "out")).n_failed == 2


@pytest.mark.parametrize("value", [math.nan, [math.inf], CYCLE, 10**5000], ids=["nan", "infinite", "cycle", "huge"])
@pytest.mark.parametrize("name", ["", "a"])
def test_a_sample_without_a_form_as_json_is_refused_before_anything_is_asked(value: Any, name: str) -> None:
    judge = ScriptedJudge([])
    with pytest.raises(DataError, match=r"sample.*: metadata .* JSON: "):
        evaluate([Sample(id=name, output="x", metadata={"n": value})], "faithfulness", judge=judge, ledger=None)


@pytest.mark.parametrize("made", [Score, Skipped])
def test_a_reason_that_is_no_text_fails_its_sample(made: Any) -> None:
    class Odd(Scorer):
        """Gives a number as its reason."""

        name = "odd"

        def score(self, *, output: str) -> Score | Skipped:
            return Score(1.0, reason=5) if made is Score else Skipped(5)  # type: ignore[arg-type]

    outcome = evaluate(SAMPLES[:1], Odd(), ledger=None)[0].outcome
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("a reason ")
    assert outcome.error.endswith("not int: 5")


def test_an_outcome_of_a_class_of_ones_own_is_an_outcome(tmp_path: Path) -> None:
    class OwnScore(Score):
        pass

    class OwnSkip(Skipped):
        pass

    class Own(Scorer):
        """Scores the first sample only."""

        name = "own"

        def score(self, *, metadata: Any = None, output: str) -> Score | Skipped:
            return OwnScore(0.5) if output == "yes" else OwnSkip("no")

    run = evaluate([{"output": "yes"}, {"output": "no"}], Own(), ledger=tmp_path / "l.db")
    assert [record.outcome for record in run] == [Score(0.5, scale=1.0, evidence=[]), Skipped("no")]


def contents(record: Record) -> Any:
    """What two runs of the same plan have in common."""
    return record.sample_id, record.signature, record.outcome, [(call.question, call.answer) for call in record.calls]


def test_a_record_is_the_same_fresh_resumed_spilled_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = StopSignal()
    given: dict[str, Any] = {"ledger": tmp_path / "l.db", "concurrency": 1}
    scorers = ["faithfulness", "context_relevance", Claimed()]
    first = evaluate(SAMPLES, scorers, stop=stop, on_record=lambda _: stop.request("enough"), **given)
    assert not first.complete
    resumed = evaluate(SAMPLES, scorers, **given)
    assert resumed.resumed == len(first) > 0
    fresh = evaluate(SAMPLES, scorers, ledger=None)
    monkeypatch.setattr("evalstone.run.collected.SpillingRecords", partial(SpillingRecords, in_memory=2))
    spilled = evaluate(SAMPLES, scorers, ledger=None)
    read = (read_run(write_run(fresh, tmp_path / "out")), read_run("last", ledger=tmp_path / "l.db"))
    for run in (resumed, spilled, *read):
        assert [contents(record) for record in run] == [contents(record) for record in fresh]

"""Plain functions as scorers."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalstone import Pipeline, Scorer, evaluate, score, scorer
from evalstone.errors import ConfigError, OutcomeError
from evalstone.judges import ModelJudge, ScriptedJudge
from evalstone.questions import ListStatements
from evalstone.scorers import FunctionScorer, parse_scorer
from evalstone.types import SAMPLE_FIELDS, Failed, Message, Record, Score, Skipped
from tests.refusals import refused
from tests.serving import serving

SAMPLES = [{"output": "one two", "reference": "one two"}, {"output": "three", "reference": "four"}]


def brevity(*, output: str) -> float:
    """How short the answer is."""
    return 1 / len(output.split())


@scorer
def same(output: str, reference: str = "nothing") -> bool:
    return output == reference


@scorer(name="halves", scale=10, lower_is_better=True, version=3)
async def tens(*, output: str) -> Score | Skipped:
    await asyncio.sleep(0)
    return Skipped("it is three") if output == "three" else Score(5, "half", scale=10, evidence={"words": 2})


def test_functions_are_scorers_plain_decorated_and_async():
    run = evaluate(SAMPLES, [brevity, same, tens], ledger=None)
    assert [record.value for record in run if record.signature.startswith("brevity")] == [0.5, 1]
    assert (run["same"].mean, run["halves"].mean, run["halves"].n_skipped) == (0.5, 5, 1)
    assert run["halves"].info.lower_is_better
    assert evaluate(SAMPLES, brevity, ledger=None)["brevity"].mean == 0.75


def test_a_decorated_function_can_still_be_called():
    assert same("a", reference="a") is True
    call = tens(output="x")
    assert inspect.iscoroutine(call)
    call.close()


def test_a_default_makes_a_field_optional_and_a_blank_one_is_absent():
    assert isinstance(same, FunctionScorer)
    assert same.required_fields == ("output",)
    assert score(same, output="nothing").outcome == Score(1, "True", scale=1, evidence=[])
    assert score(same, output="nothing", reference=" ").value == 1
    assert isinstance(score(same, output=" ").outcome, Skipped)
    assert score(same, reference="x").outcome == Skipped("same needs output")


def test_a_blank_field_may_be_scored_as_it_is():
    @scorer(reads_blank=("output",))
    def silent(*, output: str) -> bool:
        return not output.strip()

    assert score(silent, output=" ").value == 1


def test_every_sample_field_can_be_a_parameter():
    for field in SAMPLE_FIELDS:
        made = scorer(name=f"of_{field}")(eval(f"lambda {field}: 1"))
        assert made.required_fields == (field,)


def test_messages_and_passages_arrive_as_in_a_class():
    seen: list[Any] = []

    @scorer
    def looks(*, messages: Sequence[Message], context: Sequence[str]) -> float:
        seen.extend([messages[0].content, context])
        return 0.25

    assert score(looks, messages=[Message(role="user", content="Hi")], context=["p"]).value == 0.25
    assert seen == ["Hi", ("p",)]


def returning(result: Any, **parameters: Any) -> FunctionScorer[[str], Any]:
    def given(output: str) -> Any:
        return result

    return scorer(**parameters)(given)


class Given(Scorer):
    """What its result says."""

    name = "given"

    result: Any

    def score(self, *, output: str) -> Any:
        return self.result


DOORS: dict[str, Callable[[Any], Scorer]] = {
    "function": lambda result: returning(result, scale=4),
    "function with a Score": lambda result: returning(Score(result), scale=4),
    "class": lambda result: Given(result=result, scale=4),
    "class with a Score": lambda result: Given(result=Score(result), scale=4),
    "class with a Score on the scale": lambda result: Given(result=Score(result, scale=4), scale=4),
    "pipeline": lambda result: Pipeline(name="given", scale=4, score=lambda _: result),
    "pipeline with a Score": lambda result: Pipeline(name="given", scale=4, score=lambda _: Score(result)),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(
    ("result", "expected"),
    [(True, 4), (False, 0), (3, 3), (0.5, 0.5), (np.float32(0.5), 0.5), (np.bool_(True), 4), (np.int64(2), 2)],
)
def test_a_number_is_the_score_and_a_truth_value_all_or_nothing(
    door: Callable[[Any], Scorer], result: Any, expected: float
):
    outcome = score(door(result), output="x").outcome
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.scale) == (expected, 4)
    assert type(outcome.value) is float


def test_a_truth_value_outside_a_scorer_is_on_a_scale_of_one():
    record = Record(sample_id="a", scorer="given", signature="given@1", outcome=Score(True))
    assert (Score(True).fraction, record.value, type(record.value)) == (1, 1, float)
    with pytest.raises(OutcomeError, match="a score's scale must be a positive number"):
        Score(True, scale=-1)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (None, "given must return a number, True or False, a Score or Skipped, not NoneType"),
        (None, "return Skipped(reason): from evalstone import Skipped"),
        ("0.5", "given must return a number, True or False, a Score or Skipped, not str"),
        ([1], "given must return a number, True or False, a Score or Skipped, not list"),
        (np.array([1.0, 2.0]), "given must return a number, True or False, a Score or Skipped, not ndarray"),
        (1.5, "1.5"),
        (-1, "-1"),
        (float("nan"), "nan"),
        (Score(1, scale=10), "given: the scale of the score is 10, the scorer's 1"),
    ],
)
def test_any_other_result_fails_the_sample(result: Any, told: str):
    outcome = score(returning(result), output="x").outcome
    assert isinstance(outcome, Failed)
    assert told in outcome.error


@pytest.mark.parametrize("scale", [1, 10])
def test_a_score_on_a_smaller_or_a_larger_scale_than_the_scorer_s_fails_the_sample(scale: int):
    assert isinstance(score(returning(Score(1, scale=scale), scale=4), output="x").outcome, Failed)


def test_an_exception_fails_the_sample_with_its_line():
    @scorer
    def broken(*, output: str) -> float:
        return 1 / (len(output) - 1)

    run = evaluate([{"output": "a"}, {"output": "abc"}], broken, ledger=None)
    failed = next(record.outcome for record in run if record.value is None)
    assert isinstance(failed, Failed)
    assert "ZeroDivisionError" in failed.error
    assert f"{Path(__file__).name}, line" in failed.error
    assert run["broken"].mean == 0.5


def test_plain_functions_run_in_threads():
    threads: list[str] = []

    def where(*, output: str) -> float:
        threads.append(threading.current_thread().name)
        return 1

    evaluate(SAMPLES, where, ledger=None)
    assert threads
    assert threading.main_thread().name not in threads


def test_a_function_may_ask_a_judge():
    @scorer(questions=(ListStatements,))
    async def talkative(ask: Any, *, output: str) -> float:
        statements = await ask(ListStatements(answer=output))
        return 1 / (1 + len(statements))

    assert talkative.questions == (ListStatements,)
    assert talkative.asks_shared_judge
    judge = ScriptedJudge([{"statements": ["It is late"]}])
    record = score(talkative, output="It is late.", judge=judge)
    assert (record.value, len(record.calls)) == (0.5, 1)


FIELDS = r"the parameters of a scorer's function are sample fields \(input, output, context, reference, .*\); "


def test_what_a_function_asks_is_stored_wherever_it_asks_it(tmp_path: Path):
    async def elsewhere(ask: Any, text: str) -> int:
        return len(await ask(ListStatements(answer=text)))

    helpers = [elsewhere]

    @scorer(questions=[ListStatements])
    async def indirect(ask: Any, *, output: str) -> float:
        return 1 / (1 + await helpers[0](ask, output))

    assert indirect.may_ask
    assert not parse_scorer(brevity).may_ask
    with serving() as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        for _ in range(2):
            record = score(indirect, output="It is late and dark.", judge=judge, ledger=tmp_path / "ledger.db")
            assert record.value is not None
        assert len(server.requests) == 1


def typo(outptu: str) -> int:
    return 1


def whole(sample: Any) -> int:
    return 1


def several(*fields: Any) -> int:
    return 1


def named(**fields: Any) -> int:
    return 1


def by_place(output: str, /) -> int:
    return 1


def blind() -> int:
    return 1


def asking(ask: Any) -> int:
    return 1


WRONG: list[tuple[Any, str]] = [
    (typo, FIELDS + "unknown sample field 'outptu'; did you mean output"),
    (whole, FIELDS + "unknown sample field 'sample'"),
    (several, FIELDS + r"\*fields can't be passed by name"),
    (named, FIELDS + r"\*\*fields can't be passed by name"),
    (by_place, FIELDS + "output can't be passed by name"),
    (blind, FIELDS + "it has none"),
    (asking, FIELDS + "it has none"),
]


@pytest.mark.parametrize(("function", "told"), WRONG)
def test_a_parameter_that_is_no_field_is_refused_at_decoration(function: Any, told: str):
    with pytest.raises(ConfigError, match=f"given: {told}"):
        scorer(name="given")(function)


def test_questions_that_are_no_kinds_of_question_are_refused_at_decoration():
    for wrong in (ListStatements, "ListStatements", (int,), (ListStatements(answer="x"),)):
        with refused("questions"):
            scorer(name="given", questions=wrong)(brevity)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: evaluate(SAMPLES, eval("lambda output: 1"), ledger=None),
            "a lambda has no name to score under; give it one: scorer",
        ),
        (lambda: scorer(functools.partial(brevity)), "partial has no name to score under"),
        (lambda: scorer(3), "function must be a function, not 3"),  # type: ignore[arg-type]
        (lambda: scorer(name="my scorer")(brevity), "name must be letters, digits and underscores, not 'my scorer'"),
        (
            lambda: scorer(reads_blank=("input",))(brevity),
            "reads_blank has 'input', which is not a parameter of the function",
        ),
    ],
)
def test_what_has_no_name_or_is_no_function_is_refused(make: Callable[[], object], told: str):
    with pytest.raises(ConfigError, match=told):
        make()


def test_partials_and_callable_objects_can_be_named():
    def close(*, output: str, reference: str, metadata: Any = None) -> bool:
        return output == reference

    class Longer:
        def __call__(self, *, output: str) -> bool:
            return len(output) > 5

    partial = scorer(name="part")(functools.partial(close, metadata={}))
    run = evaluate(SAMPLES, [partial, scorer(name="longer")(Longer())], ledger=None)
    assert (run["part"].mean, run["longer"].mean) == (0.5, 0.5)


def signature(code: str) -> str:
    scope: dict[str, Any] = {"__name__": "somewhere"}
    exec(code, scope)
    return parse_scorer(scope["f"]).signature


@pytest.mark.parametrize(
    ("code", "other", "same"),
    [
        ("def f(*, output): return 0.5", "def f(*, output):\n    '''Half.'''\n    return 0.5", True),
        ("def f(*, output): return 0.5", "def f(*, output): return 0.25", False),
        ("half = 0.5\ndef f(*, output): return half", "half = 0.25\ndef f(*, output): return half", False),
    ],
)
def test_the_signature_changes_with_the_code_and_with_nothing_else(code: str, other: str, same: bool):
    assert signature(code).startswith("f(function=somewhere.f#")
    assert (signature(code) == signature(other)) is same
    assert tens.signature.endswith("@3")


def test_scorers_of_functions_can_be_pickled():
    assert pickle.loads(pickle.dumps(same)) is same
    plain = parse_scorer(brevity)
    assert pickle.loads(pickle.dumps(plain)) == plain == parse_scorer(brevity)
    assert hash(plain) == hash(parse_scorer(brevity))
    partial = scorer(name="part")(functools.partial(brevity))
    assert pickle.loads(pickle.dumps(partial)).name == "part"


def test_a_function_is_named_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_functions.py").write_text(
        "from evalstone import scorer\n"
        "def plain(*, output):\n    return 1.0\n"
        "@scorer(scale=2)\ndef decorated(*, output):\n    return True\n"
        "def odd(*, outptu):\n    return 1.0\n"
        "number = 3\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    run = evaluate(SAMPLES, ["my_functions:plain", "my_functions:decorated"], ledger=None)
    assert (run["plain"].mean, run["decorated"].mean) == (1, 2)
    with pytest.raises(ConfigError, match=r":odd .* 'outptu'; .* output"):
        parse_scorer("my_functions:odd")
    with pytest.raises(ConfigError, match=r":number .* but int: 3;"):
        parse_scorer("my_functions:number")

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from typing import Any, TypeVar

import pytest

from evalstone.compat.spring import (
    AnswerCorrectnessEvaluator,
    AnswerFaithfulnessEvaluator,
    AnswerRelevancyEvaluator,
    EvaluationRequest,
    Evaluator,
    FactCheckingEvaluator,
    JudgeEvaluator,
    RelevancyEvaluator,
    UndecidedError,
)
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, ReplyError
from evalstone.judges import Judge, LexicalJudge, ModelJudge, ScriptedJudge
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.scorers import SCORERS
from evalstone.types import Usage
from tests.fakes import Load

A = TypeVar("A")

REQUEST = EvaluationRequest("When was Ada born?", ["Ada Lovelace was born in 1815."], "In 1815.", "1815")
YES = {"reason": "It says 1815.", "verdict": "yes"}
NO = {"reason": "It says 1816.", "verdict": "no"}
GRADERS = (AnswerFaithfulnessEvaluator, AnswerRelevancyEvaluator)
every = pytest.mark.parametrize("kind", JudgeEvaluator.__subclasses__(), ids=lambda kind: kind.name)
verdicts = pytest.mark.parametrize("kind", [kind for kind in JudgeEvaluator.__subclasses__() if kind not in GRADERS])
grades = pytest.mark.parametrize("kind", GRADERS)


def good(kind: type[JudgeEvaluator]) -> Any:
    return {"reason": "so", "score": 1} if kind in GRADERS else {"reason": "so", "verdict": "yes"}


@every
def test_an_evaluator_has_the_name_of_its_scorer(kind: type[JudgeEvaluator]) -> None:
    assert SCORERS[kind.name] is kind.scorer
    assert isinstance(kind(), Evaluator)
    assert kind() == kind()
    assert hash(kind()) == hash(kind())


@every
def test_a_good_reply_passes_with_a_score_of_1_and_the_judges_reason(kind: type[JudgeEvaluator]) -> None:
    response = kind(ScriptedJudge([good(kind)])).evaluate(REQUEST)
    assert (response.passed, response.score, response.feedback, response.status) == (True, 1.0, "so", "passed")


@grades
def test_a_score_that_misses_the_threshold_by_rounding_passes_as_everywhere(kind: type[JudgeEvaluator]) -> None:
    reply = {"reason": "so", "score": sum([0.1] * 8)}
    assert kind(ScriptedJudge([reply]), threshold=0.8).evaluate(REQUEST).passed is True


@every
def test_the_metadata_says_how_it_came_about(kind: type[JudgeEvaluator]) -> None:
    judge = ScriptedJudge([good(kind)])
    told = kind(judge).evaluate(REQUEST).metadata
    assert told["evaluator"] == kind.name
    assert told["threshold"] == kind().threshold
    assert told["status"] == "passed"
    assert told["decided"] is True
    assert told["judge"] == "scripted"
    assert told["prompt"] == judge.asked[0].prompt.fingerprint
    assert told["questions"] == (judge.asked[0].fingerprint,)
    assert told["replies"][0].startswith("{")
    assert told["usage"] == Usage(requests=1)
    assert told["cost"] == 0
    assert told["seconds"] >= 0
    assert "error" not in told


@every
def test_without_a_judge_an_evaluator_says_how_to_pass_one(kind: type[JudgeEvaluator]) -> None:
    with pytest.raises(ConfigError, match="pass one"):
        kind().evaluate(REQUEST)


@every
def test_a_judge_may_be_given_by_name(kind: type[JudgeEvaluator]) -> None:
    assert kind("openai/gpt-5.1") == kind(ModelJudge("openai/gpt-5.1"))
    table = {"model": "openai/gpt-5.1", "temperature": 0.5}
    assert kind(table) == kind(ModelJudge("openai/gpt-5.1", temperature=0.5))
    assert isinstance(kind("lexical").judge, LexicalJudge)


def test_minicheck_takes_its_judge_by_name() -> None:
    evaluator = FactCheckingEvaluator.for_bespoke_minicheck("openai/minicheck")
    assert evaluator.judge == ModelJudge("openai/minicheck")


@every
@pytest.mark.parametrize(
    ("judge", "told"),
    [
        (5, "judge must be a Judge or its name, not 5"),
        ("lexcal", "unknown judge 'lexcal'; did you mean lexical\\? Language models are named"),
        ({"model": "openai/gpt-5.1", "temprature": 0}, "did you mean temperature"),
    ],
)
def test_what_names_no_judge_is_refused(kind: type[JudgeEvaluator], judge: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        kind(judge)


@every
@pytest.mark.parametrize("request_", [None, "text", {"user_text": "q"}])
def test_a_request_is_a_request(kind: type[JudgeEvaluator], request_: Any) -> None:
    with pytest.raises(ConfigError, match="request must"):
        kind(ScriptedJudge([])).evaluate(request_)


@every
@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0},
        {"threshold": 1.01},
        {"threshold": float("nan")},
        {"threshold": "x"},
        {"threshold": True},
        {"threshold": None},
        {"on_undecided": "skip"},
        {"when_empty": "ask"},
        {"on_error": "ignore"},
    ],
)
def test_an_option_out_of_range_is_refused_when_built(kind: type[JudgeEvaluator], options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        kind(**options)


@verdicts
@pytest.mark.parametrize("reply", ["yes", " YES\n", "\tYes\t", "yes.", "**YES**", '"YES"', "Yes, because it does."])
def test_a_bare_yes_passes(kind: type[JudgeEvaluator], reply: str) -> None:
    response = kind(ScriptedJudge([reply])).evaluate(REQUEST)
    assert (response.passed, response.score) == (True, 1.0)
    assert response.feedback


@verdicts
@pytest.mark.parametrize("reply", ["no", " no ", "No.", "NO, not YES", NO])
def test_a_no_fails_with_a_score_of_0(kind: type[JudgeEvaluator], reply: Any) -> None:
    response = kind(ScriptedJudge([reply])).evaluate(REQUEST)
    assert (response.passed, response.score, response.status) == (False, 0.0, "failed")
    assert response.feedback


UNCLEAR = [
    "maybe",
    "no and yes",
    "I cannot say YES",
    "YESTERDAY was wrong",
    "eyes",
    {"reason": "", "verdict": "undecided"},
]


@verdicts
@pytest.mark.parametrize("reply", UNCLEAR)
def test_a_reply_that_is_neither_is_undecided_and_has_no_score(kind: type[JudgeEvaluator], reply: Any) -> None:
    response = kind(ScriptedJudge([reply])).evaluate(REQUEST)
    assert (response.passed, response.score, response.status) == (None, None, "undecided")
    assert response.metadata["decided"] is False
    assert response.feedback


@verdicts
def test_undecided_can_be_raised_even_where_errors_are_kept(kind: type[JudgeEvaluator]) -> None:
    with pytest.raises(UndecidedError, match=f"{kind.name} is undecided"):
        kind(ScriptedJudge(["maybe"]), on_undecided="raise", on_error="keep").evaluate(REQUEST)


@verdicts
def test_undecided_can_count_as_failed_and_says_so(kind: type[JudgeEvaluator]) -> None:
    response = kind(ScriptedJudge(["maybe"]), on_undecided="fail").evaluate(REQUEST)
    assert (response.passed, response.score) == (False, 0.0)
    assert response.feedback.startswith("undecided, counted")
    assert response.metadata["decided"] is False


@grades
@pytest.mark.parametrize(
    ("score", "passed"),
    [(1, True), ("0.75", True), (0.75, True), (0.7499999999999999, True), (0.74, False), (0, False)],
)
def test_a_grade_passes_from_its_threshold_on(kind: type[JudgeEvaluator], score: Any, passed: bool) -> None:
    response = kind(ScriptedJudge([{"reason": "so", "score": score}])).evaluate(REQUEST)
    assert (response.passed, response.score) == (passed, float(score))


@grades
def test_the_threshold_can_be_changed(kind: type[JudgeEvaluator]) -> None:
    response = kind(ScriptedJudge([{"reason": "so", "score": 0.5}]), threshold=0.5).evaluate(REQUEST)
    assert response.passed is True
    assert response.metadata["threshold"] == 0.5


@grades
@pytest.mark.parametrize("score", [True, None, "high", 5, -1])
def test_a_grade_that_is_none_is_asked_for_again(kind: type[JudgeEvaluator], score: Any) -> None:
    judge = ScriptedJudge([{"reason": "so", "score": score}, {"reason": "so", "score": 0.5}])
    response = kind(judge).evaluate(REQUEST)
    assert response.score == 0.5
    assert response.metadata["usage"] == Usage(requests=2)


@grades
def test_without_a_usable_grade_the_error_is_raised(kind: type[JudgeEvaluator]) -> None:
    with pytest.raises(ReplyError, match="score"):
        kind(ScriptedJudge([{"reason": "so", "score": "high"}] * 4)).evaluate(REQUEST)


@every
def test_an_error_can_be_kept_with_the_reply_and_what_it_took(kind: type[JudgeEvaluator]) -> None:
    response = kind(ScriptedJudge(['{"broken'] * 4), on_error="keep").evaluate(REQUEST)
    assert (response.passed, response.score, response.status) == (None, None, "error")
    assert "cut off" in response.feedback
    assert response.metadata["error"] == response.feedback
    assert response.metadata["status"] == "error"
    assert response.metadata["replies"] == ('{"broken',)
    assert response.metadata["usage"] == Usage(requests=4)


@every
def test_a_reply_without_reason_still_has_feedback(kind: type[JudgeEvaluator]) -> None:
    reply = {key: value for key, value in good(kind).items() if key != "reason"}
    assert kind(ScriptedJudge([reply])).evaluate(REQUEST).feedback


class Declining(Judge):
    @property
    def identity(self) -> str:
        return "declining"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        raise JudgeDeclined("not my language", reply="pardon")


@every
def test_a_judge_that_declines_leaves_it_undecided(kind: type[JudgeEvaluator]) -> None:
    response = kind(Declining()).evaluate(REQUEST)
    assert (response.status, response.feedback) == ("undecided", "not my language")
    with pytest.raises(UndecidedError, match="not my language") as error:
        kind(Declining(), on_undecided="raise").evaluate(REQUEST)
    assert error.value.reply == "pardon"


LACKING = [
    (RelevancyEvaluator, {"data_list": ()}, "there are no passages"),
    (RelevancyEvaluator, {"data_list": [" "], "user_text": " "}, "the input is blank"),
    (RelevancyEvaluator, {"response_content": "\u200b"}, "the output is blank"),
    (FactCheckingEvaluator, {"data_list": ["\n"]}, "there are no passages"),
    (FactCheckingEvaluator, {"response_content": ""}, "the output is blank"),
    (AnswerCorrectnessEvaluator, {"reference": None, "data_list": ()}, "the reference is blank"),
    (AnswerCorrectnessEvaluator, {"user_text": "", "response_content": " "}, "the input and output are blank"),
    (AnswerFaithfulnessEvaluator, {"data_list": ()}, "there are no passages"),
    (AnswerRelevancyEvaluator, {"user_text": ""}, "the input is blank"),
]


@pytest.mark.parametrize(("kind", "changes", "told"), LACKING)
def test_without_what_it_needs_an_evaluator_asks_nothing(
    kind: type[JudgeEvaluator], changes: dict[str, Any], told: str
) -> None:
    request = replace(REQUEST, **changes)
    judge = ScriptedJudge([good(kind)])
    undecided = kind(judge).evaluate(request)
    assert (undecided.passed, undecided.score) == (None, None)
    assert undecided.feedback == told
    assert kind(judge, on_undecided="raise").evaluate(request).passed is None
    failed = kind(judge, when_empty="fail").evaluate(request)
    assert (failed.passed, failed.score, failed.feedback) == (False, 0.0, undecided.feedback)
    assert failed.metadata["prompt"] is None
    assert judge.asked == []


@pytest.mark.parametrize("kind", [AnswerCorrectnessEvaluator, AnswerRelevancyEvaluator])
def test_the_documents_are_the_ground_truth_where_there_is_no_reference(kind: type[JudgeEvaluator]) -> None:
    judge = ScriptedJudge([good(kind)] * 3)
    evaluator = kind(judge)
    for request in (REQUEST, EvaluationRequest("q", ["one", "two"], "a"), replace(REQUEST, reference=" \u200b")):
        assert evaluator.evaluate(request).passed is True
    documents = "\n\n".join(REQUEST.documents)
    assert [question.inputs()["reference"] for question in judge.asked] == ["1815", "one\n\ntwo", documents]


def test_relevancy_is_graded_against_the_ground_truth_when_there_is_one() -> None:
    judge = ScriptedJudge({"grade_relevance": {"score": 0.25}, "grade_against_reference": {"score": 1}})
    evaluator = AnswerRelevancyEvaluator(judge)
    assert evaluator.evaluate(REQUEST).score == 1
    assert evaluator.evaluate(replace(REQUEST, reference=None, data_list=())).score == 0.25
    assert evaluator.evaluate(replace(REQUEST, reference=" ", data_list=[" "])).score == 0.25


class Slow(Judge, eq=False):
    """Answers yes after a moment, and counts how many questions wait for it."""

    failing: str = ""
    load: Load = field(default_factory=Load)
    contexts: Load = field(default_factory=Load)
    finished: list[str] = field(default_factory=list[str])

    @property
    def identity(self) -> str:
        return "slow"

    def opened(self) -> AbstractAsyncContextManager[object]:
        @contextlib.asynccontextmanager
        async def entered() -> AsyncGenerator[None]:
            with self.contexts:
                yield

        return entered()

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        text = str(question.inputs()["answer"])
        with self.load:
            await asyncio.sleep(0 if text == self.failing else 0.02 / (1 + len(text)))
        if text == self.failing:
            raise JudgeError("out of reach")
        self.finished.append(text)
        reply = f'{{"reason": "{text}", "verdict": "yes"}}'
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply)


MANY = [replace(REQUEST, response_content="x" * number) for number in range(1, 21)]


def test_many_requests_are_judged_at_once_and_come_back_in_order() -> None:
    judge = Slow()
    responses = RelevancyEvaluator(judge).evaluate_all(MANY, concurrency=3)
    assert [len(response.feedback) for response in responses] == list(range(1, 21))
    assert judge.load.most == 3
    assert judge.contexts.count == 1


def test_an_error_in_one_of_many_ends_the_others() -> None:
    judge = Slow(failing="x")
    with pytest.raises(JudgeError, match="out of reach"):
        RelevancyEvaluator(judge).evaluate_all(MANY, concurrency=2)
    assert len(judge.finished) < len(MANY) - 1


def test_a_kept_error_in_one_of_many_leaves_the_others() -> None:
    responses = RelevancyEvaluator(Slow(failing="x"), on_error="keep").evaluate_all(MANY)
    assert [response.status for response in responses] == ["error"] + ["passed"] * 19


def test_no_requests_give_no_responses() -> None:
    assert RelevancyEvaluator(Slow()).evaluate_all([]) == []


def test_a_concurrency_of_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="concurrency"):
        RelevancyEvaluator(Slow()).evaluate_all(MANY, concurrency=0)


def test_the_asynchronous_form_is_awaited_and_the_other_works_inside_a_running_loop() -> None:
    evaluator = RelevancyEvaluator(ScriptedJudge([YES, YES, YES]))

    async def main() -> list[bool | None]:
        waited = await evaluator.aevaluate(REQUEST)
        many = await evaluator.aevaluate_all([REQUEST])
        return [waited.passed, many[0].passed, evaluator.evaluate(REQUEST).passed]

    assert asyncio.run(main()) == [True, True, True]

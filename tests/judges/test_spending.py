"""What an unanswered question took is on its error, in the run's steps and in its budget."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from evalstone.errors import JudgeDeclined, JudgeError, ProviderError, ReplyError
from evalstone.judges import ModelJudge
from evalstone.judges.model import converse
from evalstone.models.provider import Completion
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.run.budget import Budget
from evalstone.run.session import AskScope, Session
from evalstone.types import NO_USAGE, JudgeCall, Usage
from tests.serving import Behaviour, Response, Server, completion, serving

QUESTION = ListClaims(text="Ada was born in 1815.")
VERIFY = VerifyClaims(claims=("a",), context=("p",))
TOOK = Usage(10, 2, 0, 1)
PRICE = (1.0, 10.0)
ONE = (100 + 200) / 1e6
CUT = completion('{"claims": [', finish="length")


def refusing(refusal: Any, content: Any = None, finish: str = "stop") -> dict[str, Any]:
    reply = completion("", finish=finish)
    reply["choices"][0]["message"] = {"role": "assistant", "content": content, "refusal": refusal}
    return reply


def ended(*said: Completion | JudgeError | None, question: Any = QUESTION, retries: int = 3) -> JudgeError:
    """The error that ends a conversation in which these are said."""
    left = iter(said)

    async def complete(*_: object) -> Completion | None:
        reply = next(left)
        if isinstance(reply, JudgeError):
            raise reply
        return reply

    with pytest.raises(JudgeError) as raised:
        asyncio.run(converse(question, complete, judge="fake", retries=retries))
    return raised.value


def judge_at(server: Server, *, retries: int = 1) -> ModelJudge:
    return ModelJudge("vllm/x", base_url=server.url, total_timeout=5.0, prices=PRICE, retries=retries)


def saying(*answers: Any) -> Behaviour:
    return lambda _, number: answers[min(number, len(answers)) - 1]


def test_an_error_has_taken_nothing_unless_it_says_so_and_keeps_what_it_says_when_pickled():
    plain = JudgeError("no")
    assert (plain.reply, plain.usage, plain.cost, plain.seconds) == (None, None, 0.0, 0.0)
    told = JudgeDeclined("no", reply="raw", usage=TOOK, cost=None, seconds=2.0)
    copy = pickle.loads(pickle.dumps(told))
    assert (str(copy), copy.reply, copy.usage, copy.cost, copy.seconds) == ("no", "raw", TOOK, None, 2.0)


def test_a_judge_that_gives_no_verdict_to_the_end_is_paid_for_every_attempt():
    empty = Completion('{"verdicts": {}}', TOOK, 0.5)
    error = ended(empty, empty, empty, question=VERIFY, retries=2)
    assert isinstance(error, ReplyError)
    assert (error.usage, error.cost, error.reply) == (TOOK + TOOK + TOOK, 1.5, empty.text)
    assert error.seconds > 0


def test_a_conversation_that_breaks_off_has_cost_what_was_said_by_then():
    error = ended(Completion("one", TOOK, 0.5), Completion("two", TOOK, 0.25), ProviderError("gone"))
    assert isinstance(error, ProviderError)
    assert (str(error), error.usage, error.cost, error.reply) == ("gone", TOOK + TOOK, 0.75, "two")
    assert error.seconds > 0


def test_what_the_last_attempt_took_and_said_is_added():
    error = ended(Completion("one", TOOK, 0.5), JudgeDeclined("I won't", reply="no", usage=TOOK, cost=0.25))
    assert (error.usage, error.cost, error.reply) == (TOOK + TOOK, 0.75, "no")


def test_a_conversation_that_never_began_cost_nothing():
    for error in (ended(ProviderError("gone")), ended(None)):
        assert (error.usage, error.cost, error.reply) == (NO_USAGE, 0.0, None)


def test_one_unknown_price_makes_the_whole_unknown():
    assert ended(Completion("one", TOOK, None), ProviderError("gone")).cost is None
    assert ended(Completion("one", TOOK, 0.5), Completion("two", TOOK, None), retries=1).cost is None


def test_a_judge_with_nothing_more_to_say_has_the_error_and_the_cost_of_what_it_said():
    error = ended(Completion("one", TOOK, 0.5), None)
    assert isinstance(error, ReplyError)
    assert (error.usage, error.cost, error.reply) == (TOOK, 0.5, "one")


@pytest.mark.parametrize(
    ("reply", "told", "raw"),
    [
        (refusing("I can't\nhelp."), "the model declined: I can't help.", "I can't\nhelp."),
        (refusing("no", content=""), "the model declined: no", "no"),
        (refusing(None, '{"claims": []', "content_filter"), "a content filter stopped the reply", '{"claims": []'),
        (refusing(None, None, "content_filter"), "a content filter stopped the reply", ""),
        (
            {"choices": [{"finish_reason": "content_filter"}], "usage": CUT["usage"]},
            "a content filter stopped the reply",
            "",
        ),
    ],
)
def test_a_model_that_declines_is_asked_once_and_paid(reply: Any, told: str, raw: str):
    with serving(saying(reply)) as server, pytest.raises(JudgeDeclined, match=told) as raised:
        asyncio.run(judge_at(server, retries=3).answer(QUESTION))
    assert len(server.requests) == 1
    assert raised.value.usage == Usage(100, 20, 40, 1)
    assert raised.value.cost == pytest.approx(ONE)
    assert raised.value.reply == raw
    assert raised.value.seconds > 0


def test_a_long_refusal_is_shortened_in_the_reason_and_whole_in_the_reply():
    with serving(saying(refusing("no " * 1000))) as server, pytest.raises(JudgeDeclined) as raised:
        asyncio.run(judge_at(server).answer(QUESTION))
    assert len(str(raised.value)) < 350
    assert raised.value.reply == "no " * 1000


@pytest.mark.parametrize("reply", [refusing(None), refusing("", content=""), refusing(None, "")])
def test_an_empty_reply_is_no_refusal_and_is_asked_again(reply: Any):
    with serving(saying(reply, completion('{"claims": ["a"]}'))) as server:
        assert asyncio.run(judge_at(server).answer(QUESTION)).value == ("a",)


def test_an_answer_beside_an_empty_refusal_is_an_answer():
    with serving(saying(refusing("", '{"claims": ["a"]}'))) as server:
        assert asyncio.run(judge_at(server).answer(QUESTION)).value == ("a",)


def test_a_response_without_choices_is_paid_for_too():
    with serving(saying({"choices": [], "usage": CUT["usage"]})) as server, pytest.raises(ProviderError) as raised:
        asyncio.run(judge_at(server).answer(QUESTION))
    assert raised.value.cost == pytest.approx(ONE)


@pytest.mark.parametrize("body", ["[]", "3", "null", '"a text"'])
def test_a_response_that_is_no_object_has_an_unknown_price(body: str):
    with serving(saying(Response(body=body))) as server, pytest.raises(ProviderError, match="no JSON object") as raised:
        asyncio.run(judge_at(server).answer(QUESTION))
    assert raised.value.cost is None


@pytest.mark.parametrize(
    ("answers", "question", "calls", "raw"),
    [
        ((CUT,), QUESTION, 2, '{"claims": ['),
        ((CUT, Response(400, {"error": {"message": "too long"}})), QUESTION, 1, '{"claims": ['),
        ((CUT, refusing("no")), QUESTION, 2, "no"),
        ((completion('{"verdicts": {}}'),), VERIFY, 2, '{"verdicts": {}}'),
    ],
    ids=["cut off", "broken off", "refused", "declined"],
)
def test_the_step_and_the_budget_have_what_was_really_paid(answers: Any, question: Any, calls: int, raw: str):
    async def ask(server: Server) -> tuple[JudgeCall, Budget]:
        judge = judge_at(server)
        budget = Budget(1.0, judge)
        scope = AskScope(Session(judge, budget=budget))
        with pytest.raises(JudgeError):
            await scope(question)
        return scope.calls[0], budget

    with serving(saying(*answers)) as server:
        step, budget = asyncio.run(ask(server))
    assert (step.answer, step.reply, step.usage.requests) == (None, raw, calls)
    assert step.cost == pytest.approx(calls * ONE)
    assert step.seconds > 0
    assert budget.spent == pytest.approx(calls * ONE)
    assert budget.reserved == 0


def test_a_failure_of_unknown_price_leaves_the_reservation_standing():
    reply = refusing("no")
    del reply["usage"]

    async def ask(server: Server) -> tuple[Budget, float]:
        judge = judge_at(server)
        budget = Budget(1.0, judge)
        expected = Budget(1.0, judge).estimate(QUESTION, judge)
        assert expected is not None
        with pytest.raises(JudgeDeclined):
            await Session(judge, budget=budget).ask(QUESTION)
        return budget, expected

    with serving(saying(reply)) as server:
        budget, expected = asyncio.run(ask(server))
    assert budget.spent == pytest.approx(expected)

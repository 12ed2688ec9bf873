"""The two protocols of decision models: requests and responses byte for byte, and what is wrong with responses."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter

from evalstone.errors import JudgeDeclined, JudgeError, JudgeRefused, PromptTooLong, ReplyError
from evalstone.judges import DecisionJudge
from evalstone.models.decisions import Decided
from evalstone.models.prices import cache_write_price
from evalstone.models.typed_questions import TypedQuestion, distribution
from evalstone.questions import ClaimSupported
from evalstone.types import Usage
from tests.hostile_serving import Reply, http, serving_hostile
from tests.serving import Behaviour, Response, Server, serving

PREDICATE = TypedQuestion("verdict", "predicate", "Is it so?", {"yes": "it is", "no": "it is not"})
BARE = TypedQuestion("answered_1", "predicate", "Was request 1 answered?", {"yes": "", "no": ""})
CHOICE = TypedQuestion(
    "verdict_2", "choice", "Which?", {"supported": "said", "contradicted": "", "not_mentioned": "neither"}
)
SCORE = TypedQuestion("score", "score", "How good?", {"0": "bad", "0.5": "", "1": "good"})
ASKED = (PREDICATE, BARE, CHOICE, SCORE)
STATE = {"claim": "ü", "passages": {"1": "a", "2": "b"}}

SYSTEM_ONE_QUESTIONS = {
    "verdict": {
        "type": "noul",
        "instructions": "Is it so?",
        "criteria": {"true": "it is", "false": "it is not"},
    },
    "answered_1": {"type": "noul", "instructions": "Was request 1 answered?"},
    "verdict_2": {
        "type": "choice",
        "instructions": "Which?",
        "criteria": {"supported": "said", "contradicted": None, "not_mentioned": "neither"},
    },
    "score": {"type": "score", "instructions": "How good?", "criteria": ["0: bad", "0.5", "1: good"]},
}
SYSTEM_ONE_ANSWERS: dict[str, Any] = {
    "verdict": {"type": "noul", "noul": 0.75},
    "answered_1": {"type": "noul", "noul": 0},
    "verdict_2": {
        "type": "choice",
        "choice": "supported",
        "confidence": 0.4,
        "probabilities": {"supported": 0.5, "contradicted": 0.25, "not_mentioned": 0.25},
    },
    "score": {
        "type": "score",
        "score": 1.25,
        "confidence": 0.2,
        "probabilities": {"0": 0.25, "1": 0.25, "2": 0.5},
        "legend": {"0": "0: bad", "1": "0.5", "2": "1: good"},
    },
}
OPENAI_QUESTIONS = [
    {"type": "predicate", "name": "verdict", "instructions": "Is it so?\nyes: it is\nno: it is not"},
    {"type": "predicate", "name": "answered_1", "instructions": "Was request 1 answered?"},
    {
        "type": "choice",
        "name": "verdict_2",
        "instructions": "Which?",
        "choices": [
            {"value": "supported", "description": "said"},
            {"value": "contradicted"},
            {"value": "not_mentioned", "description": "neither"},
        ],
    },
    {
        "type": "score",
        "name": "score",
        "instructions": "How good?",
        "levels": [{"label": "0", "description": "bad"}, {"label": "0.5"}, {"label": "1", "description": "good"}],
    },
]
OPENAI_ANSWERS: list[dict[str, Any]] = [
    {"type": "predicate", "name": "verdict", "probability": 0.75},
    {"type": "predicate", "name": None, "probability": 0.0},
    {
        "type": "choice",
        "name": "verdict_2",
        "choice": "supported",
        "confidence": 0.4,
        "probabilities": [
            {"value": "not_mentioned", "probability": 0.25},
            {"value": "supported", "probability": 0.5},
            {"value": "contradicted", "probability": 0.25},
        ],
    },
    {
        "type": "score",
        "name": "score",
        "score": 1.25,
        "confidence": 0.2,
        "probabilities": [
            {"label": "0", "value": 0, "probability": 0.25},
            {"label": "0.5", "value": 1, "probability": 0.25},
            {"label": "1", "value": 2, "probability": 0.5},
        ],
    },
]
OPENAI_USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100},
    "output_tokens": 8,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1008,
}
PROBABILITIES = (
    {"yes": 0.75, "no": 0.25},
    {"yes": 0.0, "no": 1.0},
    {"supported": 0.5, "contradicted": 0.25, "not_mentioned": 0.25},
    {"0": 0.25, "0.5": 0.25, "1": 0.5},
)


def system_one(answers: Mapping[str, Any], usage: Any = None) -> dict[str, Any]:
    usage = {"input_tokens": 120, "output_tokens": 4} if usage is None else usage
    return {"model": "jev-1.14.0", "answers": answers, "usage": usage}


def openai(answers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "gpt-6-luna-2026-10-06", "answers": answers, "usage": OPENAI_USAGE}


def decided(behaviour: Behaviour, model: str = "systemone/jev", suffix: str = "") -> tuple[Decided, Server]:
    with serving(behaviour) as server:
        base = server.url.removesuffix("/v1")
        judge = DecisionJudge(model=model, base_url=base + suffix, api_key="sk-1", prices=(0.1, 7.0))

        async def ask() -> Decided:
            async with judge.opened() as opened:
                return await opened.provider.decide(STATE, ASKED)

        return asyncio.run(ask()), server


class Dear(DecisionJudge):
    """A model whose price for tokens that are written to its prompt cache is known."""

    def price(self, usage: Usage, written: int = 0) -> float | None:
        return usage.input * 1e-6 + written * 1e-3


@pytest.mark.parametrize(("written", "paid"), [(100, 0.101), (0, 0.001), (5000, 1.001)])
def test_tokens_that_are_written_to_the_cache_are_paid(written: int, paid: float) -> None:
    """At most those that were read."""
    details = {"cached_tokens": 400, "cache_write_tokens": written}
    usage = OPENAI_USAGE | {"input_tokens_details": details}
    with serving(lambda request, number: openai(OPENAI_ANSWERS) | {"usage": usage}) as server:
        judge = Dear(model="openai-decisions/gpt-6-luna", base_url=server.url.removesuffix("/v1"), api_key="k")

        async def ask() -> Decided:
            async with judge.opened() as opened:
                return await opened.provider.decide(STATE, ASKED)

        assert asyncio.run(ask()).cost == pytest.approx(paid)


def test_a_listed_model_without_a_price_for_its_cache_takes_none() -> None:
    assert cache_write_price("openai-decisions", "gpt-6-luna") == 0


@pytest.mark.parametrize("suffix", ["", "/v1", "/"])
def test_systemone(suffix: str) -> None:
    found, server = decided(lambda request, number: system_one(SYSTEM_ONE_ANSWERS), suffix=suffix)
    assert server.requests == [{"model": "jev", "state": STATE, "questions": SYSTEM_ONE_QUESTIONS}]
    assert list(server.requests[0]["questions"]) == [decision.name for decision in ASKED]
    assert server.headers[0]["Authorization"] == "Bearer sk-1"
    assert found.probabilities == PROBABILITIES
    assert (found.usage.input, found.usage.output, found.usage.requests, found.model) == (120, 4, 1, "jev-1.14.0")
    assert found.cost == pytest.approx(120 * 0.1e-6 + 4 * 7e-6)


def test_openai() -> None:
    found, server = decided(lambda request, number: openai(OPENAI_ANSWERS), "openai-decisions/gpt-6-luna")
    (request,) = server.requests
    assert json.loads(request.pop("input")) == STATE
    assert request == {"model": "gpt-6-luna", "questions": OPENAI_QUESTIONS}
    assert found.probabilities == PROBABILITIES
    assert (found.usage.input, found.usage.output, found.usage.cached) == (1000, 8, 400)
    assert found.model == "gpt-6-luna-2026-10-06"


def test_openai_as_its_own_library_types_it() -> None:
    types: Any = pytest.importorskip("openai.types", reason="the openai package is not installed")
    params: Any = importlib.import_module("openai.types.decision_create_params")
    request = {"model": "gpt-6-luna", "input": json.dumps(STATE), "questions": OPENAI_QUESTIONS}
    TypeAdapter[Any](params.DecisionCreateParams).validate_python(request, extra="forbid")
    answered = types.Decision.model_validate(openai(OPENAI_ANSWERS), strict=True)
    assert [answer.type for answer in answered.answers] == ["predicate", "predicate", "choice", "score"]


def test_a_response_without_usage_has_no_known_cost() -> None:
    found, _ = decided(lambda request, number: system_one(SYSTEM_ONE_ANSWERS, usage={}))
    assert (found.usage.input, found.cost) == (0, None)


def without(answers: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {key: value for key, value in answers.items() if key != name}


def changed(name: str, **fields: Any) -> dict[str, Any]:
    return {**SYSTEM_ONE_ANSWERS, name: {**SYSTEM_ONE_ANSWERS[name], **fields}}


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (without(SYSTEM_ONE_ANSWERS, "verdict_2"), "there is no answer to verdict_2"),
        ({}, "there is no answer to verdict"),
        ("text", "there is no answer to verdict"),
        ({**SYSTEM_ONE_ANSWERS, "other": {}}, "there is an answer to 'other', which was not asked"),
        (changed("verdict", type="choice"), "the answer to verdict is a choice; expected a noul"),
        (changed("verdict", noul=None), "verdict has the probability None of 'yes'; expected a number from 0 to 1"),
        (changed("verdict", noul=1.2), "verdict has the probability 1.2 of 'yes'"),
        (changed("verdict", noul="0.5"), "verdict has the probability '0.5' of 'yes'; expected a number from 0 to 1"),
        (changed("verdict", noul=float("nan")), "verdict has the probability nan of 'yes'"),
        (changed("verdict", noul=True), "verdict has the probability True of 'yes'"),
        (changed("verdict_2", probabilities={"supported": 1}), "verdict_2 has no probability of 'contradicted'"),
        (changed("verdict_2", probabilities=None), "verdict_2 has no probability of 'supported'"),
        (
            changed("verdict_2", probabilities={"supported": 1, "contradicted": 0, "not_mentioned": 0, "x": 0}),
            "verdict_2 has a probability of 'x', which is not one of its options",
        ),
        (
            changed("verdict_2", probabilities={"supported": 0.9, "contradicted": 0.05, "not_mentioned": 0.06}),
            "verdict_2 has probabilities whose sum is 1.01, not 1",
        ),
        (
            changed("verdict_2", probabilities={"Supported": 1, "contradicted": 0, "not_mentioned": 0}),
            "verdict_2 has no probability of 'supported'",
        ),
        (
            changed("verdict_2", probabilities={"supported": "1", "contradicted": 0, "not_mentioned": 0}),
            "verdict_2 has the probability '1' of 'supported'; expected a number from 0 to 1",
        ),
        (
            changed("verdict_2", probabilities={"supported": 0, "contradicted": 0, "not_mentioned": 0}),
            "verdict_2 has probabilities whose sum is 0, not 1",
        ),
        (changed("score", probabilities=[0.5, 0.25, 0.25]), "score has the levels []; expected 0 to 2"),
        (
            {"Verdict" if name == "verdict" else name: each for name, each in SYSTEM_ONE_ANSWERS.items()},
            "there is an answer to 'Verdict', which was not asked",
        ),
        (changed("score", probabilities={"0": 0.5, "1": 0.5}), "score has the levels ['0', '1']; expected 0 to 2"),
        (
            changed("score", legend={"0": "1: good", "1": "0.5", "2": "0: bad"}),
            "the answer to score has the level '1: good' at 0; expected '0: bad'",
        ),
    ],
)
def test_a_wrong_response_of_systemone_fails_with_its_cost(answers: Any, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        decided(lambda request, number: system_one(answers))
    assert problem in str(caught.value)
    assert (caught.value.usage and caught.value.usage.input, caught.value.cost) == (120, pytest.approx(4e-5))
    assert caught.value.reply == json.dumps(answers, ensure_ascii=False)


def openai_choice(**probabilities: Any) -> dict[str, Any]:
    listed = [{"value": name, "probability": value} for name, value in probabilities.items()]
    return {**OPENAI_ANSWERS[2], "probabilities": listed}


@pytest.mark.parametrize(
    ("place", "answer", "problem"),
    [
        (0, {"type": "choice"}, "the answer to verdict is a choice; expected a predicate"),
        (0, {"type": "predicate", "name": "other", "probability": 1}, "the answer to verdict is named other"),
        (2, {**OPENAI_ANSWERS[2], "name": "verdict_3"}, "the answer to verdict_2 is named verdict_3"),
        (0, {"type": "predicate", "name": "verdict"}, "verdict has the probability None of 'yes'"),
        (
            2,
            {**OPENAI_ANSWERS[2], "probabilities": [{"value": "supported", "probability": 0.5}] * 2},
            "the answer to verdict_2 names an option twice",
        ),
        (
            2,
            {**OPENAI_ANSWERS[2], "probabilities": [{"value": True, "probability": 1}]},
            "no probability of 'supported'",
        ),
        (2, openai_choice(SUPPORTED=1, contradicted=0, not_mentioned=0), "verdict_2 has no probability of 'supported'"),
        (2, openai_choice(supported="1", contradicted=0, not_mentioned=0), "the probability '1' of 'supported'"),
        (
            2,
            openai_choice(supported=0.9, contradicted=0, not_mentioned=0),
            "verdict_2 has probabilities whose sum is 0.9",
        ),
        (
            2,
            openai_choice(supported=0, contradicted=0, not_mentioned=0),
            "verdict_2 has probabilities whose sum is 0, ",
        ),
        (2, openai_choice(supported=True, contradicted=0, not_mentioned=0), "the probability True of 'supported'"),
        (2, openai_choice(supported=1 << 2000, contradicted=0, not_mentioned=0), "of 'supported'; expected a number"),
        (0, {**OPENAI_ANSWERS[0], "name": "Verdict"}, "the answer to verdict is named Verdict"),
        (3, None, "4 decisions and 3 answers; expected one for each, in their order"),
        (5, None, "4 decisions and 5 answers; expected one for each, in their order"),
    ],
)
def test_a_wrong_response_of_openai_fails(place: int, answer: Any, problem: str) -> None:
    answers = [*OPENAI_ANSWERS, *OPENAI_ANSWERS][:place]
    if answer is not None:
        answers = [*OPENAI_ANSWERS[:place], answer, *OPENAI_ANSWERS[place + 1 :]]
    with pytest.raises(ReplyError) as caught:
        decided(lambda request, number: openai(answers), "openai-decisions/gpt-6-luna")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            "systemone/jev",
            '"answers": {"verdict": {"type": "noul", "noul": 0.1}, "verdict": {"type": "noul", "noul": 0.9}}',
        ),
        ("systemone/jev", '"answers": {"verdict": {"type": "noul", "noul": 0.1, "noul": 0.9}}'),
        ("systemone/jev", '"answers": {}, "answers": {"verdict": {"type": "noul", "noul": 0.9}}'),
        ("openai-decisions/gpt-6-luna", '"answers": [{"type": "predicate", "probability": 0, "probability": 1}]'),
    ],
)
def test_a_name_that_stands_twice_in_a_response_fails_it_with_its_cost(model: str, text: str) -> None:
    reply = http(f'{{{text}, "usage": {{"input_tokens": 120}}}}'.encode())
    with serving_hostile(lambda _: reply) as server:
        judge = DecisionJudge(model=model, base_url=server.url, api_key="sk-1", prices=(0.1, 7.0))
        with pytest.raises(ReplyError, match=r"the response names '[a-z]+' twice in one object") as caught:
            asyncio.run(judge.answer(ClaimSupported(claim="a", context=("a",))))
    assert (caught.value.usage and caught.value.usage.input, caught.value.cost) == (120, pytest.approx(12e-6))
    assert text in (caught.value.reply or "")


ECHOED = "sk-proj-aB3/x9Qw77-kLm"


@pytest.mark.parametrize("escaped", [ECHOED, "-/"], ids=["all", "punctuation"])
def test_a_key_is_not_stored_however_the_json_of_a_malformed_response_escapes_it(escaped: str) -> None:
    text = "".join(f"\\u{ord(each):04X}" if each in escaped else each for each in ECHOED)
    body = f'{{"answers": {{"a": "{text}", "a": "\\\\u0073"}}}}'
    with serving_hostile(lambda _: http(body.encode())) as server:
        judge = DecisionJudge("systemone/jev", base_url=server.url, api_key=ECHOED, prices=(0.1, 7.0))
        with pytest.raises(ReplyError, match="twice in one object") as caught:
            asyncio.run(judge.answer(ClaimSupported(claim="a", context=("a",))))
    assert caught.value.reply == '{"answers": {"a": "***", "a": "\\\\u0073"}}'


def test_a_refused_decision_declines_the_question() -> None:
    answers = [OPENAI_ANSWERS[0], {"type": "refusal", "name": "answered_1"}, *OPENAI_ANSWERS[2:]]
    with pytest.raises(JudgeDeclined, match="the model refused to decide answered_1") as caught:
        decided(lambda request, number: openai(answers), "openai-decisions/gpt-6-luna")
    assert caught.value.usage is not None
    assert caught.value.usage.input == 1000


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        ("systemone/jev", {"verdict": {"type": "noul", "noul": 0.9}}),
        ("openai-decisions/gpt-6-luna", [{"type": "predicate", "name": "verdict", "probability": 0.9}]),
    ],
)
def test_an_answer_about_a_part_of_the_state_is_none(model: str, answers: Any) -> None:
    def ask(cached: int) -> Any:
        usage = {"input_tokens": 2100, "input_tokens_details": {"cached_tokens": cached}}
        with serving(lambda request, number: {"answers": answers, "usage": usage}) as server:
            judge = DecisionJudge(model=model, base_url=server.url, api_key="sk-1", prices=(1, 1))
            return asyncio.run(judge.answer(ClaimSupported(claim="a", context=("It is open. " * 1500,))))

    with pytest.raises(PromptTooLong, match=r"cut the prompt: the model read 2,100 tokens of 4,\d+ or more") as caught:
        ask(0)
    assert (caught.value.window, caught.value.cost) == (2100, pytest.approx(0.0021))
    assert ask(2000).value.verdict == "yes"  # a server may count the cached tokens apart


def test_a_negative_zero_is_zero() -> None:
    assert str([*distribution(PREDICATE, {"yes": -0.0, "no": 1.0}).values()]) == "[0.0, 1.0]"


def test_rounded_probabilities_are_scaled_to_a_sum_of_one() -> None:
    rounded = {"supported": 0.3334, "contradicted": 0.3334, "not_mentioned": 0.3334}
    assert distribution(CHOICE, rounded) == pytest.approx(dict.fromkeys(CHOICE.options, 1 / 3))
    for off in (0.9985, 1.0015):
        with pytest.raises(ReplyError, match=f"sum is {off}, not 1"):
            distribution(CHOICE, {"supported": off - 0.5, "contradicted": 0.25, "not_mentioned": 0.25})


HOSTILE: list[tuple[Reply, str]] = [
    (http(b'{"answers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "sent no JSON object"),
    (http(b""), "sent an empty reply"),
    (http(b"\xff{}"), "sent no JSON object"),
    (http(b"[]"), "sent no JSON object: '[]'"),
    (http(gzip.compress(b" " * 50_000_000 + b"{}"), "Content-Encoding: gzip"), "more than 8,000,000 bytes"),
    (http(b"", "Location: http://example.com/", status=302), "redirects are not followed"),
    (http(b"{}", "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT", status=429), "in 1 attempt; the last: HTTP 429"),
    (http(b"x", status=501), "refused the request (HTTP 501: x)"),
    (http(b"pay", status=402), "(HTTP 402: pay); add credit to the account or raise its limit"),
    (b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n ", "gave no answer within 0.3 s: raise timeout (now 0.3 s)"),
]


@pytest.mark.parametrize(("reply", "problem"), HOSTILE, ids=[problem for _, problem in HOSTILE])
def test_a_hostile_server_gives_an_error_and_no_answer(reply: Reply, problem: str) -> None:
    with serving_hostile(lambda _: reply) as server:
        judge = DecisionJudge(model="systemone/jev", base_url=server.url, timeout=0.3, total_timeout=1)
        with pytest.raises((JudgeError, JudgeRefused)) as caught:
            asyncio.run(judge.answer(ClaimSupported(claim="a", context=("a",))))
    assert problem in str(caught.value)
    assert "max_tokens" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_request_is_sent_again_after_429() -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return Response(429, {"error": "slow down"}, {"Retry-After": "0"}) if number == 1 else answered(request)

    def answered(request: dict[str, Any]) -> Any:
        return system_one({name: {"type": "noul", "noul": 0.9} for name in request["questions"]})

    with serving(behaviour) as server:
        judge = DecisionJudge(model="systemone/jev", base_url=server.url)
        answer = asyncio.run(judge.answer(ClaimSupported(claim="a", context=("a",))))
    assert len(server.requests) == 2
    assert (answer.value.verdict, answer.probability) == ("yes", 0.9)
    assert answer.alternatives == pytest.approx({"yes": 0.9, "no": 0.1})

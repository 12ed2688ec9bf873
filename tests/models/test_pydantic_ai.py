"""The way through pydantic-ai, with that library's own function model in the place of a provider."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any, cast

import pytest

pytest.importorskip("pydantic_ai", reason="the extra `providers` is not installed")

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAuthenticationError,
    ModelHTTPError,
    ModelNotFoundError,
    UserError,
)
from pydantic_ai.messages import CachePoint, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from evalstone._core.prompts import Prompt
from evalstone.errors import (
    ConfigError,
    JudgeDeclined,
    JudgeError,
    JudgeRefused,
    PromptTooLong,
    ProviderError,
    ProviderTimeout,
    RequestLimitReached,
)
from evalstone.judges import ModelJudge
from evalstone.judges.model import converse
from evalstone.models.limits import Limits, TransientError, counting_warnings
from evalstone.models.provider import PROBE, ChatMessage, Completion, RequestSettings, caching
from evalstone.models.pydantic_ai import PydanticAI
from evalstone.models.replies import ReplyTooLarge
from evalstone.questions import ClaimSupported, ListClaims
from evalstone.questions.rating import RateByCriterion
from tests.hostile_serving import Reply, chunked, http, serving_hostile

QUESTION = ListClaims(text="Ada was born in 1815.")
WEIGHED = RateByCriterion(
    values=(("output", "x"),), prompt=Prompt("Rating it.", "{{output}}"), levels=5, by_probability=True
)
MESSAGES = [
    ChatMessage("system", "rules"),
    ChatMessage("user", "ask"),
    ChatMessage("assistant", "wrong"),
    ChatMessage("user", "again"),
]
SETTINGS = RequestSettings(temperature=0.0, seed=7, reasoning_effort="low")
PLAIN = RequestSettings(temperature=0.0)


def provider(
    *answers: Any, seen: list[Any] | None = None, thinks: bool = True, profile: Any = (), **more: Any
) -> PydanticAI:
    """A provider whose model gives these answers in turn, the last one again and again."""
    left = list(answers)

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if seen is not None:
            seen.append((messages, info))
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    settings: dict[str, Any] = {"timeout": 9.0, "total_timeout": 5.0, "prices": (1.0, 1.0), **more}
    judge = ModelJudge("google/gemini-2.5-pro", headers={"X-Team": "a"}, **settings)
    return PydanticAI(
        judge,
        FunctionModel(
            respond,
            profile=cast(Any, {"supports_thinking": thinks, "supports_json_schema_output": True, **dict(profile)}),
        ),
    )


def sent(answer: Any) -> tuple[Any, list[ModelMessage], AgentInfo]:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    async def asked() -> Any:
        return await provider(answer, seen=seen).complete(MESSAGES, QUESTION.reply_form, SETTINGS)

    return asyncio.run(asked()), *seen[0]


def test_what_a_model_says_of_its_key_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-other-key1")
    keys = "AIza-inline-key0 and AIza-other-key1"

    async def asked(answer: Any) -> str:
        model = provider(answer, api_key="AIza-inline-key0")
        return (await model.complete(MESSAGES, QUESTION.reply_form, SETTINGS)).text

    with counting_warnings() as counted:
        assert asyncio.run(asked(ModelResponse(parts=[TextPart(keys)]))) == "*** and ***"
    assert dict(counted) == {"redacted secrets": 1}
    with pytest.raises(JudgeRefused, match=r"\*\*\* and \*\*\*"):
        asyncio.run(asked(UserError(keys)))


def test_messages_settings_and_schema_reach_the_model_and_the_reply_comes_back() -> None:
    usage = RequestUsage(input_tokens=100, output_tokens=10, cache_read_tokens=40)
    response = ModelResponse(parts=[TextPart('{"claims": []}')], usage=usage, finish_reason="stop")
    reply, messages, info = sent(response)
    assert (reply.text, reply.complete) == ('{"claims": []}', True)
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == (100, 10, 40)
    assert reply.cost == pytest.approx(110 / 1e6)
    assert [part.part_kind for message in messages for part in message.parts] == [
        "system-prompt", "user-prompt", "text", "user-prompt",
    ]  # fmt: skip
    assert info.model_settings is not None
    assert info.model_settings.get("temperature") == 0.0
    assert info.model_settings.get("seed") == 7
    assert info.model_request_parameters.thinking == "low"
    assert info.model_settings.get("extra_headers") == {"X-Team": "a"}
    assert (info.model_settings.get("timeout"), info.model_settings.get("max_retries")) == (9.0, 0)
    wanted = info.model_request_parameters.output_object
    assert wanted is not None
    assert wanted.json_schema == QUESTION.json_schema


def test_a_reply_that_was_cut_off_is_marked_as_such() -> None:
    reply, _, _ = sent(ModelResponse(parts=[TextPart("{")], finish_reason="length"))
    assert not reply.complete


def test_a_reply_that_ended_in_an_error_is_not_whole() -> None:
    reply, _, _ = sent(ModelResponse(parts=[TextPart("Yes")], finish_reason="error"))
    assert not reply.complete


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"finish_reason": "SAFETY"}, "the provider blocked the text: a content filter stopped the reply (SAFETY)"),
        (
            {"finish_reason": "RECITATION"},
            "the provider blocked the text: a content filter stopped the reply (RECITATION)",
        ),
        (
            {"block_reason": "BLOCKLIST"},
            "the provider blocked the text: a content filter stopped the reply (BLOCKLIST)",
        ),
        (
            {"finish_reason": "guardrail_intervened"},
            "the provider blocked the text: a content filter stopped the reply",
        ),
        (None, "the provider blocked the text: a content filter stopped the reply (content_filter)"),
        ({"finish_reason": "refusal"}, "the model declined to reply"),
    ],
)
def test_a_reply_that_a_filter_stopped_is_told_from_one_that_the_model_refused(details: Any, told: str) -> None:
    parts = [TextPart("Sorry, no.")]
    with pytest.raises(JudgeDeclined) as error:
        sent(ModelResponse(parts=parts, finish_reason="content_filter", provider_details=details))
    assert str(error.value).startswith(told)
    assert error.value.reply == "Sorry, no."


@pytest.mark.parametrize(
    "error",
    [
        ModelHTTPError(400, "claude", {"error": {"message": "Output blocked by content filtering policy"}}),
        ModelHTTPError(400, "gpt", {"message": "filtered", "code": "content_filter"}),
        ModelHTTPError(400, "nova", {"Error": {"Message": "The text was flagged", "Code": "ValidationException"}}),
        ModelHTTPError(400, "gemini", '{"error": {"message": "Input data may contain inappropriate content."}}'),
        ModelHTTPError.for_category(
            ModelAuthenticationError,
            status_code=403,
            model_name="x",
            body={"error": {"message": "Your input was flagged"}},
        ),
        ContentFilterError("Content filter 'SAFETY' triggered"),
    ],
)
def test_a_text_that_the_provider_blocks_is_declined_after_one_call(error: Exception) -> None:
    seen: list[Any] = []

    async def work() -> None:
        await converse(QUESTION, provider(error, seen=seen).complete, judge="g")

    with pytest.raises(JudgeDeclined, match="blocked the text: "):
        asyncio.run(work())
    assert len(seen) == 1


@pytest.mark.parametrize("question", [QUESTION, ClaimSupported(claim="x", context=("x",))])
def test_a_model_without_a_system_role_gets_its_instructions_in_the_first_message(question: Any) -> None:
    told = "Developer instruction is not enabled for models/gemma-3-27b-it"
    refused = ModelHTTPError(400, "gemma", {"error": {"message": told}})
    reply = '{"claims": ["Ada was born."], "reason": "It says so.", "verdict": "yes"}'
    seen: list[Any] = []

    async def work() -> Any:
        model = provider(refused, ModelResponse(parts=[TextPart(reply)], finish_reason="stop"), seen=seen)
        await converse(ListClaims(text="Ada was born."), model.complete, judge="g")
        return await converse(question, model.complete, judge="g")

    asyncio.run(work())
    kinds = [[part.part_kind for message in messages for part in message.parts] for messages, _ in seen]
    assert kinds == [["system-prompt", "user-prompt"], ["user-prompt"], ["user-prompt"]]
    assert seen[1][0][0].parts[0].content.startswith(seen[0][0][0].parts[0].content)


def test_errors_of_the_provider_are_final_or_tried_again() -> None:
    with pytest.raises(TransientError, match="529"):
        sent(ModelHTTPError(529, "gemini", {"error": "overloaded"}))
    with pytest.raises(ProviderError, match="400") as final:
        sent(ModelHTTPError(400, "gemini", {"error": "too long"}))
    assert not isinstance(final.value, TransientError)


@pytest.mark.parametrize(
    ("body", "window"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("Input is too long for requested model.", None),
    ],
)
def test_a_prompt_beyond_the_window_is_told_with_the_setting(body: str, window: int | None) -> None:
    told = f"set context_window={window} for this model" if window else "set context_window for this model"
    with pytest.raises(PromptTooLong, match=f"{told}$") as error:
        sent(ModelHTTPError(400, "gemini", {"error": {"message": body}}))
    assert error.value.window == window


def test_a_schema_that_the_provider_refuses_is_left_out_from_then_on() -> None:
    seen: list[Any] = []
    refused = ModelHTTPError(400, "gemini", {"error": {"message": "the response schema is not supported"}})
    question = RateByCriterion(values=(("output", "x"),), prompt=Prompt("Rating it.", "{{output}}"), levels=5)

    async def work() -> Any:
        rating = ModelResponse(parts=[TextPart('{"reason": "r", "score": 4}')], finish_reason="stop")
        model = provider(refused, refused, rating, seen=seen)
        return [await converse(question, model.complete, judge="g"), await converse(WEIGHED, model.complete, judge="g")]

    assert [answer.value.score for answer in asyncio.run(work())] == [4, 4]
    sent_objects = [info.model_request_parameters.output_object for _, info in seen]
    schemas = [each and each.json_schema["properties"]["score"] for each in sent_objects]
    assert schemas == [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "integer"}, None, None]


def test_a_temperature_that_the_model_refuses_is_left_out_from_then_on() -> None:
    seen: list[Any] = []
    refused = ModelHTTPError(400, "claude", {"error": {"message": "`temperature` is deprecated for this model."}})

    async def work() -> list[Any]:
        model = provider(refused, ModelResponse(parts=[TextPart('{"claims": ["a"]}')]), seen=seen)
        return [
            await converse(question, model.complete, judge="g", settings=SETTINGS)
            for question in (QUESTION, ListClaims(text="Ada wrote."))
        ]

    answers = asyncio.run(work())
    assert ["temperature" in info.model_settings for _, info in seen] == [True, False, False]
    assert [answer.refused_settings for answer in answers] == [("temperature",)] * 2
    assert all(info.model_settings["seed"] == 7 for _, info in seen)


def refusal(category: Any, status: int) -> ModelHTTPError:
    return ModelHTTPError.for_category(category, status_code=status, model_name="gemini", body={"error": "blocked"})


@pytest.mark.parametrize(("category", "status"), [(ModelAuthenticationError, 403), (ModelNotFoundError, 404)])
def test_a_refusal_of_one_text_is_told_from_a_wrong_key(category: Any, status: int) -> None:
    with pytest.raises(JudgeRefused, match=f"{status}"):
        sent(refusal(category, status))
    good = ModelResponse(parts=[TextPart('{"claims": ["a"]}')], finish_reason="stop")

    async def work() -> Any:
        # A refusal before any answer is followed by a probe, one after an answer is not.
        model = provider(refusal(category, status), good, good, refusal(category, status))
        errors: list[Any] = []
        for _ in range(3):
            errors += await asyncio.gather(
                model.complete(MESSAGES, QUESTION.reply_form, SETTINGS), return_exceptions=True
            )
        return errors

    first, answer, last = asyncio.run(work())
    assert isinstance(first, ProviderError)
    assert "may be blocked" in str(last)
    assert answer.text == '{"claims": ["a"]}'
    assert (first.usage.requests, last.usage.requests) == (1, 0)
    with pytest.raises(JudgeRefused):
        sent(refusal(ModelAuthenticationError, 401))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (402, {"type": "error", "error": {"type": "billing_error", "message": "Your payment method has failed."}}),
        (
            400,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low."}},
        ),
        (
            429,
            {
                "error": {
                    "code": 429,
                    "message": "Your prepayment credits are depleted.",
                    "status": "RESOURCE_EXHAUSTED",
                }
            },
        ),
        (429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}),
    ],
)
def test_an_account_without_credit_is_not_asked_again(status: int, body: Any) -> None:
    seen: list[Any] = []

    async def work() -> Any:
        refused = provider(ModelHTTPError(status, "gemini", body), seen=seen)
        return await converse(QUESTION, refused.complete, judge="g", total_timeout=1.0)

    with pytest.raises(JudgeRefused, match=f"{status}.*; add credit"):
        asyncio.run(work())
    assert len(seen) == 1


@pytest.mark.parametrize("status", [500, 507, 529])
def test_a_failure_of_the_server_may_pass_and_what_it_never_does_may_not(status: int) -> None:
    with pytest.raises(TransientError, match=str(status)):
        sent(ModelHTTPError(status, "gemini", {"error": "no"}))
    with pytest.raises(ProviderError, match="501") as final:
        sent(ModelHTTPError(501, "gemini", {"error": "no"}))
    assert not isinstance(final.value, TransientError)


def test_a_judged_text_that_an_error_repeats_blocks_nothing() -> None:
    question = ListClaims(text="The flagged account has insufficient funds.")
    body = {"error": {"message": f"Can't read: {question.text}"}}

    async def work() -> Any:
        return await converse(question, provider(ModelHTTPError(400, "gemini", body)).complete, judge="g")

    with pytest.raises(ProviderError, match="Can't read"):
        asyncio.run(work())


def test_the_conversation_retries_a_transient_error_and_counts_it() -> None:
    busy = ModelHTTPError(503, "gemini", {"error": "busy"})

    async def work() -> tuple[Any, Any]:
        model = provider(busy, busy, ModelResponse(parts=[TextPart('{"claims": ["a"]}')], finish_reason="stop"))
        with counting_warnings() as warnings:
            answer = await converse(QUESTION, model.complete, judge="g", total_timeout=5.0)
        return answer.value, dict(warnings)

    assert asyncio.run(work()) == (("a",), {"HTTP 503": 2})


def test_a_provider_that_stays_busy_is_given_up_after_the_total_timeout() -> None:
    async def work() -> Any:
        model = provider(ModelHTTPError(503, "gemini", {"error": "busy"}))
        return await converse(QUESTION, model.complete, judge="g", total_timeout=0.5)

    with pytest.raises(ProviderError, match=r"\d+ attempts; .* HTTP 503"):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("model", "settings", "name"),
    [
        ("anthropic/claude-sonnet-4-5", {"seed": 7}, "seed"),
        ("anthropic/claude-sonnet-4-5", {"logprobs": True}, "logprobs"),
        ("google/gemini-2.5-pro", {"logprobs": True}, "logprobs"),
        ("cohere/command-r", {"headers": {"X": "1"}}, "headers"),
        ("google/gemini-2.0-flash", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("cohere/command-r", {"reasoning_effort": "low"}, "reasoning_effort"),
    ],
)
def test_a_setting_that_a_provider_cannot_take_is_refused_before_the_run(
    model: str, settings: dict[str, Any], name: str
) -> None:
    with pytest.raises(ConfigError, match=f"doesn't support {name}"):
        ModelJudge(model, api_key="k", **settings).check()


def test_a_reasoning_effort_is_not_dropped_for_a_model_that_does_not_reason() -> None:
    async def work() -> Any:
        reply = ModelResponse(parts=[TextPart("{}")])
        return await provider(reply, thinks=False, reasoning_effort="low").complete(
            MESSAGES, QUESTION.reply_form, SETTINGS
        )

    with pytest.raises(ConfigError, match="support reasoning_effort"):
        asyncio.run(work())


@pytest.mark.slow
def test_settings_that_a_provider_takes_pass_the_check() -> None:
    for model in ("anthropic/claude-sonnet-4-5", "google/gemini-2.5-pro"):
        ModelJudge(model, api_key="k", reasoning_effort="low", headers={"X": "1"}, max_tokens=9).check()
    # An OpenAI-compatible server takes what the provider itself would not.
    ModelJudge("anthropic/claude-sonnet-4-5", base_url="http://127.0.0.1:1/v1", seed=7, logprobs=True).check()


def test_a_missing_key_is_the_callers_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        asyncio.run(ModelJudge("anthropic/claude-sonnet-4-5").answer(QUESTION))


def test_a_reasoning_effort_that_does_not_exist_is_refused_before_the_run() -> None:
    with pytest.raises(ConfigError, match=r"effort .*minimal .*'much'"):
        ModelJudge("google/gemini-2.5-pro", api_key="k", reasoning_effort="much").check()
    ModelJudge("google/gemini-2.5-pro", api_key="k", reasoning_effort="high").check()


GOOD = ModelResponse(parts=[TextPart('{"claims": ["a"]}')], finish_reason="stop")


def test_a_temperature_that_the_library_drops_is_named_by_the_answer() -> None:
    async def work(**profile: bool) -> Any:
        seen: list[Any] = []
        model = provider(GOOD, seen=seen, profile=profile)
        answer = await converse(QUESTION, model.complete, judge="g", settings=RequestSettings(temperature=0.0))
        return answer.refused_settings, "temperature" in (seen[0][1].model_settings or {})

    assert asyncio.run(work()) == ((), True)
    assert asyncio.run(work(anthropic_disallows_sampling_settings=True)) == (("temperature",), False)


def test_probabilities_that_a_question_wants_and_the_library_cannot_give_are_named() -> None:
    async def work() -> Completion:
        settings = RequestSettings(logprobs=True, top_logprobs=20)
        return await provider(GOOD).complete(MESSAGES, WEIGHED.reply_form, settings)

    completion = asyncio.run(work())
    assert completion.refused_settings == ("logprobs",)
    judge, others = ModelJudge("google/gemini-2.5-pro"), ClaimSupported(claim="c", context=("p",))
    assert judge.reported(WEIGHED, completion.refused_settings) == ("logprobs",)
    assert judge.reported(others, completion.refused_settings) == ()


def test_a_request_ends_at_its_timeout_whatever_the_library_does_with_it() -> None:
    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(30)
        return GOOD

    async def work() -> Any:
        judge = ModelJudge("google/gemini-2.5-pro", timeout=0.05, total_timeout=5.0)
        told = r"no answer within 0.05 s: raise timeout \(now 0.05 s\) or set max_tokens"
        with counting_warnings() as warnings, pytest.raises(ProviderTimeout, match=told):
            await PydanticAI(judge, FunctionModel(slow)).complete(MESSAGES, QUESTION.reply_form, RequestSettings())
        return dict(warnings)

    assert asyncio.run(work()) == {"timeouts": 1}


def test_a_probe_ends_at_the_timeout_too_and_counts_as_a_request() -> None:
    async def refused_then_slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if PROBE not in str(messages):
            raise refusal(ModelAuthenticationError, 403)
        await asyncio.sleep(30)
        return GOOD

    async def work(**settings: Any) -> None:
        judge = ModelJudge("google/gemini-2.5-pro", timeout=0.05, **settings)
        await PydanticAI(judge, FunctionModel(refused_then_slow)).complete(MESSAGES, QUESTION.reply_form, PLAIN)

    with pytest.raises(ProviderTimeout, match="raise timeout"):
        asyncio.run(work())
    with pytest.raises(RequestLimitReached):
        asyncio.run(work(limits=Limits(max_requests=1)))


def test_the_limits_of_a_judge_hold_through_the_library() -> None:
    running = most = 0

    async def counted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return GOOD

    async def work() -> None:
        judge = ModelJudge("google/gemini-2.5-pro", limits=Limits(max_concurrency=2))
        model = PydanticAI(judge, FunctionModel(counted))
        await asyncio.gather(*(model.complete(MESSAGES, QUESTION.reply_form, RequestSettings()) for _ in range(6)))

    asyncio.run(work())
    assert most == 2


LIBRARIES = [
    ("anthropic/claude-opus-4-8", "ANTHROPIC_BASE_URL"),
    ("google/gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL"),
]


@pytest.mark.parametrize(("model", "variable"), LIBRARIES)
def test_the_libraries_clients_follow_no_redirect_and_read_a_limited_reply(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(reply: Reply) -> int:
        with serving_hostile(lambda _: reply) as server:
            monkeypatch.setenv(variable, server.url.removesuffix("/v1"))
            judge = ModelJudge(model, api_key="k", total_timeout=1.0, max_reply_bytes=100_000)
            try:
                asyncio.run(judge.answer(QUESTION))
            finally:
                requests.append(len(server.requests))
        return len(server.requests)

    requests: list[int] = []
    with serving_hostile(lambda _: http(b"{}")) as other:
        with pytest.raises(JudgeRefused, match=r"http://127\.0\.0\.1:\d+ \(HTTP 307\)"):
            ask(http(b"", f"Location: {other.url}/x?key=1", status=307))
        assert other.requests == []
    with pytest.raises(ReplyTooLarge, match="100,000 bytes; max_reply"):
        ask(chunked(itertools.repeat(b"x" * 10_000)))
    with pytest.raises(ProviderError, match="encoding 'gzip'"):
        ask(http(b"", "Content-Encoding: gzip"))
    for odd in (b"[" * 100_000, b"null", b'{"content": 5}', b'{"candidates": [1], "usage": {"input_tokens": "x"}}'):
        with pytest.raises(JudgeError):
            ask(http(odd, "Content-Type: application/json"))
    assert requests[:3] == [1, 1, 1]
    assert max(requests) <= 5


def test_counts_of_the_library_that_are_none_lose_no_answer() -> None:
    usage = RequestUsage(input_tokens=10**30, output_tokens=-5)
    reply, _, _ = sent(ModelResponse(parts=[TextPart('{"claims": []}')], usage=usage, finish_reason="stop"))
    assert (reply.text, reply.usage.input, reply.usage.output, reply.cost) == ('{"claims": []}', 0, 0, None)


def test_the_common_beginning_of_several_prompts_is_marked_for_the_cache() -> None:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    async def asked(beginning: str) -> None:
        model = provider(ModelResponse(parts=[TextPart('{"claims": []}')]), seen=seen)
        with caching(beginning):
            await model.complete(MESSAGES, QUESTION.reply_form, SETTINGS)

    def users() -> list[Any]:
        return [part.content for message in seen[-1][0] for part in message.parts if part.part_kind == "user-prompt"]

    for beginning, first in [
        ("a", ["a", CachePoint(), "sk"]),
        ("ask", ["ask", CachePoint()]),
        ("", "ask"),
        ("no", "ask"),
    ]:
        asyncio.run(asked(beginning))
        assert users() == [first, "again" if beginning != "a" else ["a", CachePoint(), "gain"]]


def test_writing_to_the_cache_costs_more_than_reading_the_prompt() -> None:
    def cost(written: int = 0, read: int = 0) -> float:
        usage = RequestUsage(input_tokens=1000, cache_write_tokens=written, cache_read_tokens=read)

        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(parts=[TextPart("ok")], usage=usage)

        async def asked() -> Completion:
            judge = ModelJudge("anthropic/claude-sonnet-4-5")
            return await PydanticAI(judge, FunctionModel(respond)).complete(MESSAGES, QUESTION.reply_form, PLAIN)

        reply = asyncio.run(asked())
        assert reply.cost is not None
        return reply.cost

    assert cost(written=1000) == pytest.approx(1.25 * cost())
    assert cost(read=1000) == pytest.approx(0.1 * cost())


@pytest.mark.parametrize(("model", "variable"), LIBRARIES)
@pytest.mark.parametrize(
    ("header", "delay", "wait"),
    [("Retry-After: 7", "3s", 7), ("retry-after-ms: 1500", "3s", 1.5), ("X: 1", "3s", 3), ("X: 1", "soon", 0)],
)
def test_the_wait_that_a_provider_asks_for_holds_back_every_request(
    header: str, delay: str, wait: float, model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    body = json.dumps({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}})
    limited = http(body.encode(), "Content-Type: application/json", header, status=429)

    async def asked() -> None:
        judge = ModelJudge(model, api_key="k", total_timeout=1.0)
        with pytest.raises(TransientError) as error:
            await judge.provider().complete(MESSAGES, QUESTION.reply_form, PLAIN)
        assert error.value.retry_after == pytest.approx(wait, abs=0.01)
        with pytest.raises(ProviderTimeout, match="asked to wait") if wait else pytest.raises(TransientError):
            await judge.provider().complete(MESSAGES, QUESTION.reply_form, PLAIN)

    with serving_hostile(lambda _: limited) as server:
        monkeypatch.setenv(variable, server.url.removesuffix("/v1"))
        asyncio.run(asked())
        assert len(server.requests) == (1 if wait else 2)


@pytest.mark.parametrize(("model", "variable"), LIBRARIES)
def test_the_mark_reaches_the_providers_that_know_it(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_hostile(lambda _: http(b"{}", "Content-Type: application/json", status=400)) as server:
        monkeypatch.setenv(variable, server.url.removesuffix("/v1"))
        with pytest.raises(JudgeError), caching("<<text>>\n"):
            asyncio.run(ModelJudge(model, api_key="k", total_timeout=1.0).answer(QUESTION))
        request = server.requests[0].decode()
    assert request.count('"cache_control"') == ("anthropic" in model)
    assert QUESTION.text in request

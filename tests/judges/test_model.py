"""ModelJudge against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import pickle
import re
import time
import traceback
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from evalstone.errors import ConfigError, JudgeError, JudgeRefused, ProviderError, ProviderTimeout, ReplyError
from evalstone.judges import ModelJudge, parse_judge
from evalstone.models.proxies import proxy_for
from evalstone.questions import ListClaims, VerifyClaims
from tests.serving import Behaviour, Response, Server, completion, serving

QUESTION = ListClaims(text="Ada was born in 1815.")
GOOD = completion(json.dumps({"claims": [QUESTION.text]}))


def asked(server: Server, question: Any = QUESTION, **settings: Any) -> Any:
    settings = {"base_url": server.url, "api_key": "secret-key", "total_timeout": 5.0, **settings}
    return asyncio.run(ModelJudge("openai/gpt-4o-mini", **settings).answer(question))


def one_after_another(*answers: Any) -> Behaviour:
    return lambda _, number: answers[min(number, len(answers)) - 1]


def test_an_answer_comes_with_value_usage_cost_and_the_judges_name() -> None:
    with serving(one_after_another(GOOD)) as server:
        answer = asked(server)
    assert answer.value == (QUESTION.text,)
    assert (answer.usage.input, answer.usage.output, answer.usage.cached, answer.usage.requests) == (100, 20, 40, 1)
    assert answer.cost == pytest.approx((60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6)
    assert answer.judge == f"openai/gpt-4o-mini({server.url})"
    assert answer.seconds > 0


@pytest.mark.parametrize("usage", [{"prompt_tokens": "many", "completion_tokens": None}, [1], "none", {}, None])
def test_a_good_reply_counts_though_its_tokens_are_counted_badly(usage: Any) -> None:
    with serving(one_after_another({**GOOD, "usage": usage})) as server:
        answer = asked(server)
    assert answer.value == (QUESTION.text,)
    assert (answer.usage.input, answer.cost) == (0, None)


def test_a_reply_in_parts_is_read_without_what_the_model_thought() -> None:
    parts = [
        {"type": "thinking", "text": "{"},
        {"type": "text", "text": '{"claims":'},
        {"type": "text", "text": " []}"},
    ]
    reply = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    with serving(one_after_another(reply)) as server:
        answer = asked(server)
    assert (answer.value, answer.reply, answer.usage.requests) == ((), '{"claims": []}', 1)


@pytest.mark.parametrize(
    ("prompt", "cached", "total", "counted"),
    [
        (2100, 2000, 2120, 2100),
        (100, 2000, None, 2100),  # more than the prompt: counted beside it
        (2100, 2000, 4120, 4100),  # the total has them beside the prompt
        (2100, 0, 2120, 2100),
    ],
)
def test_cached_tokens_are_paid_for_whether_they_are_counted_in_the_prompt_or_beside_it(
    prompt: int, cached: int, total: int | None, counted: int
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": cached}}
    with serving(one_after_another({**GOOD, "usage": {**usage, "total_tokens": total}})) as server:
        answer = asked(server)
    assert (answer.usage.input, answer.usage.output, answer.usage.cached) == (counted, 20, cached)
    assert answer.cost == pytest.approx(((counted - cached) * 0.15 + cached * 0.075 + 20 * 0.6) / 1e6)


def test_the_request_has_instructions_the_fenced_text_and_a_strict_schema() -> None:
    with serving(one_after_another(GOOD)) as server:
        asked(server)
    sent = server.requests[0]
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert "Ada was born" in sent["messages"][1]["content"]
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert sent["temperature"] == 0
    assert server.headers[0]["Authorization"] == "Bearer secret-key"


@pytest.mark.parametrize(
    "wrapped",
    ['```json\n{"claims": ["a"]}\n```', 'Here it is: {"claims": ["a"]} Done.', '\ufeff{"claims": ["a"]}'],
)
def test_a_wrapped_object_is_read(wrapped: str) -> None:
    with serving(one_after_another(completion(wrapped))) as server:
        assert asked(server).value == ("a",)


def test_an_unusable_reply_is_shown_to_the_model_with_its_error() -> None:
    with serving(one_after_another(completion('{"claims": 3}'), GOOD)) as server:
        answer = asked(server)
    assert answer.value == (QUESTION.text,)
    assert answer.usage.requests == 2
    messages = server.requests[1]["messages"]
    assert messages[-2] == {"role": "assistant", "content": '{"claims": 3}'}
    assert "claims: Input should" in messages[-1]["content"]


def test_after_the_last_retry_the_error_carries_the_raw_reply_and_what_was_spent() -> None:
    with serving(one_after_another(completion("no idea"))) as server, pytest.raises(ReplyError) as raised:
        asked(server, retries=2)
    assert raised.value.reply == "no idea"
    assert raised.value.usage.requests == 3
    assert len(server.requests) == 3


def test_a_reply_that_was_cut_off_is_never_read_even_if_it_could_be() -> None:
    whole_but_cut = completion('{"claims": ["a"]}', finish="length")
    with serving(one_after_another(whole_but_cut)) as server, pytest.raises(ReplyError, match="cut off"):
        asked(server, retries=1)


def test_a_miscounted_reply_is_refused_with_both_counts() -> None:
    question = VerifyClaims(claims=("a", "b", "c"), context=("p",))
    verdict = {"reason": "r", "passages": [1], "verdict": "supported"}
    short = completion(json.dumps({"verdicts": {"1": verdict, "2": verdict}}))
    with serving(one_after_another(short)) as server, pytest.raises(ReplyError, match="3 claims, 2 verdicts"):
        asked(server, question, retries=0)


def test_no_verdict_at_all_to_the_end_is_an_error_of_the_reply() -> None:
    question = VerifyClaims(claims=("a",), context=("p",))
    with (
        serving(one_after_another(completion('{"verdicts": {}}'))) as server,
        pytest.raises(ReplyError, match="1 claim, 0 verdicts"),
    ):
        asked(server, question, retries=1)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    trouble = Response(status, {"error": {"message": "busy"}}, {"Retry-After": "0.01"})
    with serving(one_after_another(trouble, trouble, GOOD)) as server:
        assert asked(server).value
    assert len(server.requests) == 3


@pytest.mark.parametrize("headers", [{"retry-after-ms": "10"}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}])
def test_every_form_of_retry_after_is_understood(headers: dict[str, str]) -> None:
    with serving(one_after_another(Response(429, "{}", headers), GOOD)) as server:
        assert asked(server).value


def test_a_final_refusal_is_not_tried_again() -> None:
    refusal = Response(400, {"error": {"message": "the prompt is too long", "code": "context_length_exceeded"}})
    with serving(one_after_another(refusal)) as server, pytest.raises(ProviderError, match="too long"):
        asked(server)
    assert len(server.requests) == 1


def test_a_spent_quota_is_not_tried_again_although_it_is_a_429() -> None:
    spent = Response(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    with serving(one_after_another(spent)) as server, pytest.raises(JudgeRefused, match="insufficient_quota"):
        asked(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_is_the_callers_to_mend(status: int) -> None:
    refusal = Response(status, {"error": {"message": "no"}})
    with serving(one_after_another(refusal)) as server, pytest.raises(JudgeRefused, match=f"HTTP {status}"):
        asked(server)
    assert len(server.requests) == (1 if status == 401 else 2)  # a short one tells whether only the text is refused


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({}, "no key was sent: set api_key"),
        ({"api_key": "sk-of-this-test-7Qz41kX"}, "check the key"),
        ({"headers": {"X-Api-Key": "of-this-test-9Wm27hR"}}, "check the key"),
    ],
)
def test_a_key_that_was_not_sent_is_not_one_to_check(
    settings: dict[str, Any], hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    refusal = Response(401, {"error": {"message": "no"}})
    with serving(one_after_another(refusal)) as server, pytest.raises(JudgeRefused) as caught:
        asyncio.run(ModelJudge("openai/x", base_url=server.url, **settings).answer(QUESTION))
    assert str(caught.value).endswith(f" (HTTP 401: no); {hint}")


def test_a_wait_beyond_the_deadline_that_one_was_asked_for_is_waited_for_by_nobody() -> None:
    day = Response(429, {"error": {"message": "requests per day"}}, {"Retry-After": "86400"})
    with serving(lambda _request, _number: day) as server:
        judge = ModelJudge("openai/x", base_url=server.url, total_timeout=5.0)

        async def ask() -> list[Any]:
            async with judge.opened(), asyncio.timeout(4):
                questions = [ListClaims(text=str(number)) for number in range(3)]
                return [(await asyncio.gather(judge.answer(q), return_exceptions=True))[0] for q in questions]

        first, *later = asyncio.run(ask())
        assert len(server.requests) == 1
    assert "requests per day" in str(first)
    (said,) = {str(error) for error in later}
    assert said.startswith(f"{server.url.split('/')[2]} asked")
    assert "total_timeout=5 s" in said
    assert "HTTP 429: requests per" in said


def test_a_deadline_ends_the_attempts_and_names_the_last_trouble() -> None:
    trouble = Response(503, {"error": {"message": "overloaded"}})
    with serving(one_after_another(trouble)) as server, pytest.raises(ProviderError, match="overloaded"):
        asked(server, total_timeout=0.5)


def test_an_endpoint_that_is_not_there_is_an_error_of_the_endpoint() -> None:
    judge = ModelJudge("openai/x", base_url="http://127.0.0.1:9/v1", total_timeout=0.3)
    told = r"gave no answer in .*could not connect to http://127\.0\.0\.1:9/v1; is the server running\?$"
    with pytest.raises(ProviderError, match=told):
        asyncio.run(judge.answer(QUESTION))


@pytest.mark.parametrize(
    ("more", "advice"), [({}, "set max_tokens"), ({"max_tokens": 9}, r"lower max_tokens \(now 9\)")]
)
def test_a_slow_answer_is_given_up_and_never_asked_again(more: dict[str, Any], advice: str) -> None:
    told = rf"gave no answer within 0.5 s: raise timeout \(now 0.5 s\) or {advice}$"
    with serving(one_after_another(Response(body=GOOD, delay=2.0), GOOD)) as server:
        with pytest.raises(ProviderTimeout, match=told) as error:
            asked(server, timeout=0.5, prices=(1.0, 1.0), **more)
        assert len(server.requests) == 1
    assert error.value.cost is None  # it may have been carried out


@pytest.mark.parametrize("count", [1, 2])
def test_of_several_slow_answers_each_names_the_concurrency(count: int) -> None:
    async def together(judge: ModelJudge) -> list[Any]:
        async with judge.opened():
            return await asyncio.gather(*(judge.answer(QUESTION) for _ in range(count)), return_exceptions=True)

    with serving(lambda _, __: Response(body=GOOD, delay=1.0)) as server:
        errors = asyncio.run(together(ModelJudge("vllm/x", base_url=server.url, timeout=0.3)))
    assert ["lower concurrency" in str(error) for error in errors] == [count > 1] * count


def test_a_correction_that_takes_too_long_costs_what_was_paid_before() -> None:
    slow = Response(body=GOOD, delay=1.0)
    with serving(one_after_another(completion("no json"), slow)) as server:
        with pytest.raises(ProviderTimeout) as error:
            asked(server, timeout=0.2)
        assert len(server.requests) == 2
    assert (error.value.usage.requests, error.value.reply) == (1, "no json")


def test_what_is_no_json_or_has_no_choices_is_an_error_of_the_endpoint() -> None:
    bodies: list[Any] = ["<html>", {"object": "error"}, {"choices": []}]
    for body in bodies:
        with serving(one_after_another(Response(body=body))) as server, pytest.raises(ProviderError):
            asked(server)


@pytest.mark.parametrize(
    ("setting", "told"),
    [("temperature", "Unsupported value: 'temperature'"), ("seed", "unknown field seed")],
)
def test_a_setting_that_the_endpoint_refuses_is_left_out_from_then_on(setting: str, told: str) -> None:
    def picky(request: dict[str, Any], _: int) -> Any:
        return Response(400, {"error": {"message": told}}) if setting in request else GOOD

    with serving(picky) as server:
        judge = ModelJudge("openai/x", base_url=server.url, seed=7)

        async def twice() -> None:
            await judge.answer(QUESTION)
            await judge.answer(QUESTION)

        asyncio.run(twice())
    assert [setting in request for request in server.requests] == [True, False, False]


def test_a_probability_is_the_geometric_mean_of_token_probabilities() -> None:
    tokens = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -0.3}]
    reply = completion('{"claims": []}', logprobs={"content": tokens})
    with serving(one_after_another(reply)) as server:
        answer = asked(server, logprobs=True)
    assert answer.probability == pytest.approx(0.8187, abs=1e-4)
    assert server.requests[0]["logprobs"] is True


@pytest.mark.parametrize(
    "logprobs",
    [
        "none",
        ["x"],
        {"content": "x"},
        {"content": ["x"]},
        {"content": [{"token": "a", "logprob": -0.1}, {"token": "b"}]},
        {"content": [{"token": "a", "logprob": math.nan}]},
        {"content": [{"token": "a", "logprob": 1.5}]},
        {"content": [{"token": "a", "logprob": "-0.1"}]},
        {"content": [{"token": "a", "logprob": -(10**400)}]},
        {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": "x"}]},
        {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "a", "logprob": None}]}]},
    ],
)
def test_a_good_reply_counts_though_its_probabilities_cannot_be_read(logprobs: Any) -> None:
    with serving(one_after_another(completion('{"claims": []}', logprobs=logprobs))) as server:
        answer = asked(server, logprobs=True)
    assert (answer.value, answer.probability) == ((), None)


@pytest.mark.parametrize("given", [7, "ab", [300], [-1], ["a"]])
def test_bytes_of_a_token_that_are_none_are_not_read(given: Any) -> None:
    tokens = [{"token": "a", "logprob": -0.1, "bytes": given}]
    with serving(one_after_another(completion('{"claims": []}', logprobs={"content": tokens}))) as server:
        answer = asked(server, logprobs=True)
    assert answer.probability == pytest.approx(math.exp(-0.1))


def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    with serving(one_after_another(GOOD)) as server:
        judge = ModelJudge("vllm/my-own-model", base_url=server.url)
        assert asyncio.run(judge.answer(QUESTION)).cost is None
        priced = ModelJudge("vllm/my-own-model", base_url=server.url, prices=(1.0, 10.0))
        assert asyncio.run(priced.answer(QUESTION)).cost == pytest.approx((100 + 200) / 1e6)


def test_a_missing_key_is_said_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        ModelJudge("openai/gpt-5.1").check()
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        ModelJudge("anthropic/claude-sonnet-4-5").check()
    ModelJudge("ollama/llama3").check()


def test_a_base_url_from_the_environment_is_taken_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    judge = ModelJudge("openai/gpt-5.1")
    judge.check()
    assert judge.identity == "openai/gpt-5.1(http://127.0.0.1:1/v1)"


def test_identity_names_what_changes_answers_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    model = "openai/gpt-5.1"
    judge = ModelJudge(model, api_key="secret", temperature=0.5, seed=1, headers={"X-Api-Key": "hidden"})
    assert judge.identity == f"{model}(temperature=0.5, seed=1)"
    assert "secret" not in repr(judge)
    assert "hidden" not in repr(judge)
    assert pickle.loads(pickle.dumps(judge)) == judge


@pytest.mark.parametrize(
    ("judge", "near"),
    [
        ("opneai/gpt-5.1", "did you mean openai"),
        ("gpt-5.1", "provider/model"),
        ("gpt-4o", "did you mean openai/gpt-4o"),
        ("claude-sonnet-4-5(temperature=1)", "did you mean anthropic/claude-sonnet-4-5"),
        ("lexcal", "did you mean lexical"),
        ({"model": "openai/gpt-5.1", "temprature": 1}, "did you mean temperature"),
    ],
)
def test_unknown_names_get_the_nearest(judge: Any, near: str) -> None:
    with pytest.raises(ConfigError, match=near):
        parse_judge(judge)


def test_one_retry_after_holds_back_all_callers() -> None:
    def busy_once(_: dict[str, Any], number: int) -> Any:
        return Response(429, "{}", {"Retry-After": "0.3"}) if number == 1 else GOOD

    with serving(busy_once) as server:
        judge = ModelJudge("openai/x", base_url=server.url)

        async def two() -> float:
            loop = asyncio.get_running_loop()
            async with judge.opened():
                first = asyncio.create_task(judge.answer(QUESTION))
                await asyncio.sleep(0.1)
                began = loop.time()
                await judge.answer(QUESTION)
                waited = loop.time() - began
                await first
                return waited

        assert asyncio.run(two()) > 0.15


def test_at_most_five_frames_lie_between_a_question_and_the_http_client(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[str] = []
    connect = aiohttp.ClientSession._request  # pyright: ignore[reportPrivateUsage]

    async def noted(self: aiohttp.ClientSession, *args: Any, **named: Any) -> Any:
        # From a frame that is named: without one, how many frames are skipped differs between versions of Python.
        stack = [frame.f_code for frame, _ in traceback.walk_stack(inspect.currentframe())]
        frames.extend(
            code.co_qualname for code in reversed(stack) if re.search("/evalstone/(judges|models)/", code.co_filename)
        )
        return await connect(self, *args, **named)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", noted)
    with serving(one_after_another(GOOD)) as server:
        asked(server)
    assert frames[0] == "ModelJudge.answer"
    assert frames[-1] == "Endpoint.request"
    assert len(frames) <= 5, frames


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://models.example/v1", None),
        ({"NO_PROXY": "localhost"}, "http://models.example/v1", None),
        ({"HTTP_PROXY": "http://user:pass@proxy:3128"}, "http://models.example/v1", "http://user:pass@proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://models.example/v1", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "https://models.example:8443/v1", "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "example"}, "http://user@models.example/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "models.example:1"}, "http://models.example:1/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "a.b, 10.0.0.0/8"}, "http://10.1.2.3:80/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3/v1", "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "fd00::/8"}, "http://[fd00::1]:80/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "[fd00::/8]"}, "http://[fd00::1]:80/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "10.1.2.3/33,10.0.0.0/8"}, "http://10.1.2.3/v1", None),
        ({"HTTP_PROXY": "http://proxy:3128"}, "http://10.1.2.3/v1", "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, "http://h.example", "http://proxy:3128"),
    ],
)
def test_the_proxy_of_the_environment_is_found_once_for_an_endpoint(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str | None
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name.lower(), value)
    assert proxy_for(url) == proxy


def test_requests_go_through_the_proxy_that_is_set_and_never_look_for_a_netrc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine models.example login ada password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    def read(path: str) -> None:
        pytest.fail(f"read {path}")

    monkeypatch.setattr("netrc.netrc", read)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(one_after_another(GOOD)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        answer = asyncio.run(
            ModelJudge("vllm/x", base_url="http://models.example/v1", total_timeout=5.0).answer(QUESTION)
        )
    assert answer.value == (QUESTION.text,)
    assert proxy.headers[0]["Host"] == "models.example"


@pytest.mark.parametrize("settings", [{"api_key": "mine"}, {"headers": {"Authorization": "Bearer mine"}}])
def test_judges_with_other_keys_or_headers_share_no_connection(settings: dict[str, Any]) -> None:
    with serving(one_after_another(GOOD)) as server:

        async def both() -> None:
            first = ModelJudge("vllm/x", base_url=server.url, api_key="theirs")
            second = ModelJudge("vllm/x", base_url=server.url, **settings)
            async with first.opened(), second.opened():
                for judge in (first, second, first):
                    await judge.answer(QUESTION)

        asyncio.run(both())
    assert [sent["Authorization"] for sent in server.headers] == ["Bearer theirs", "Bearer mine", "Bearer theirs"]


def test_a_judge_reads_the_environment_when_it_is_opened_and_not_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(one_after_another(GOOD)) as server:
        judge = ModelJudge("openai/gpt-4o-mini", base_url=server.url)

        async def twice(first: str, second: str) -> None:
            monkeypatch.setenv("OPENAI_API_KEY", first)
            async with judge.opened():
                await judge.answer(QUESTION)
                monkeypatch.setenv("OPENAI_API_KEY", second)
                await judge.answer(QUESTION)

        async def both() -> None:
            await twice("first-0c1d2e3f", "second-0c1d2e3f")
            await twice("third-0c1d2e3f", "fourth-0c1d2e3f")

        asyncio.run(both())
    keys = [sent["Authorization"].removeprefix("Bearer ").partition("-")[0] for sent in server.headers]
    assert keys == ["first", "first", "third", "third"]


def test_whoever_uses_a_judge_meanwhile_shares_its_provider_on_their_loop() -> None:
    judge = ModelJudge("vllm/x", base_url="http://127.0.0.1:9/v1")

    async def providers() -> list[object]:
        async with judge.opened() as first, judge.opened() as second:
            pass
        async with judge.opened() as third:
            return [first.provider, second.provider, third.provider]

    for first, second, third in (asyncio.run(providers()), asyncio.run(providers())):
        assert first is second
        assert first is not third


def test_a_key_that_the_environment_has_since_the_judge_was_made_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "late-0c1d2e3f4a5b6c7d"
    monkeypatch.setenv("OPENAI_API_KEY", "early-0c1d2e3f4a5b6c7d")
    with serving(lambda _, number: Response(400, {"error": {"message": f"what is {key}?"}})) as server:
        judge = ModelJudge("openai/gpt-4o-mini", base_url=server.url)
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ProviderError, match=r"what is .*\?") as raised:
            asyncio.run(judge.answer(QUESTION))
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert key not in str(raised.value)


def test_an_answer_without_a_count_of_its_own_tokens_costs_what_its_question_does() -> None:
    with serving(one_after_another({**GOOD, "usage": {"prompt_tokens": 100}})) as server:
        answer = asked(server)
    assert (answer.usage.input, answer.usage.output) == (100, 0)
    assert answer.cost == pytest.approx(100 * 0.15 / 1e6)


def test_an_endpoint_that_has_answered_once_is_waited_for_longer_than_one_that_never_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evalstone.models.limits.UNREACHED", 0.0)
    with serving(one_after_another(Response(503, "{}"), GOOD)) as server:
        assert asked(server).value
    with pytest.raises(ProviderTimeout, match="in 1 attempt;"):
        asyncio.run(ModelJudge("openai/x", base_url="http://127.0.0.1:9/v1", api_key="k").answer(QUESTION))


def test_a_retry_after_only_lengthens_a_wait() -> None:
    at_once = Response(503, "{}", {"Retry-After": "0"})
    with serving(one_after_another(at_once, at_once, GOOD)) as server:
        began = time.monotonic()
        asked(server)
        assert time.monotonic() - began >= 0.25 / 2 + 0.5 / 2


def test_the_total_timeout_is_over_all_attempts_of_a_question() -> None:
    # A malformed reply gives the next attempt no new time.
    answers = [Response(body=completion("no"), delay=0.3), Response(503, "{}")]
    with serving(lambda _, number: answers[number % 2 == 0]) as server, pytest.raises(JudgeError) as raised:
        asked(server, total_timeout=1.0, retries=100)
    assert 0.3 < raised.value.seconds < 2.0
    assert raised.value.reply == "no"


def test_errors_of_a_judge_are_one_family() -> None:
    assert issubclass(ProviderError, JudgeError)
    assert issubclass(ReplyError, JudgeError)

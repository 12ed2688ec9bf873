"""Marks for the provider's prompt cache, and what is read from and written to it, at OpenAI-compatible endpoints."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalstone import ModelJudge
from evalstone.judges.model import opening_messages
from evalstone.models.chat_completions import chat_usage
from evalstone.models.provider import caching
from evalstone.questions import ListClaims
from tests.serving import Response, completion, serving

QUESTION = ListClaims(text="Ada was born in 1815.")
CLAUDE = "openrouter/anthropic/claude-haiku-4.5"


def asked(model: str, beginning: str, *, refuses: str = "") -> list[Any]:
    """The requests for a question at a loopback endpoint. refuses: a word of the error for the first one."""

    def behave(request: dict[str, Any], number: int) -> Any:
        if refuses and number == 1:
            return Response(400, {"error": {"message": f"{refuses} is not supported"}})
        return completion('{"claims": ["Ada was born in 1815."]}')

    with serving(behave) as server, caching(beginning):
        asyncio.run(ModelJudge(model, base_url=server.url, api_key="k").answer(QUESTION))
        return server.requests


@pytest.mark.parametrize("model", [CLAUDE, "openrouter/~anthropic/claude-haiku-latest"])
def test_claude_behind_openrouter_gets_a_mark_after_the_common_beginning(model: str) -> None:
    system, user = opening_messages(QUESTION)
    beginning, rest = user.content[:9], user.content[9:]
    mark = {"type": "text", "text": beginning, "cache_control": {"type": "ephemeral"}}
    (request,) = asked(model, beginning)
    assert request["messages"][0]["content"] == system.content
    assert request["messages"][1]["content"] == [mark, {"type": "text", "text": rest}]
    (request,) = asked(model, user.content)
    assert request["messages"][1]["content"] == [{**mark, "text": user.content}]


@pytest.mark.parametrize("model", [CLAUDE, "openrouter/openai/gpt-5.1", "vllm/anthropic/claude-haiku-4.5"])
@pytest.mark.parametrize("beginning", ["", "another beginning", "<<text>>"])
def test_other_requests_get_no_mark(model: str, beginning: str) -> None:
    (request,) = asked(model, "" if beginning == "<<text>>" and model == CLAUDE else beginning)
    assert request["messages"][1]["content"] == opening_messages(QUESTION)[1].content


def test_settings_are_learned_from_a_request_with_a_mark() -> None:
    requests = asked(CLAUDE, opening_messages(QUESTION)[1].content[:9], refuses="temperature")
    assert ["temperature" in request for request in requests] == [True, False]
    assert all(isinstance(request["messages"][1]["content"], list) for request in requests)


@pytest.mark.parametrize("model", [CLAUDE, "openai/gpt-5.6-luna"])
def test_tokens_written_to_the_cache_cost_more(model: str) -> None:
    judge = ModelJudge(model, api_key="k")
    if judge.price(judge_usage := chat_usage({"usage": {"prompt_tokens": 1000}}, judge.price)[0]) is None:
        pytest.skip("this list of prices doesn't have the model")

    def cost(**details: Any) -> float:
        usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": details}
        _, cost = chat_usage({"usage": usage}, judge.price)
        assert cost is not None
        return cost

    plain = judge.price(judge_usage)
    assert cost() == cost(cache_write_tokens=0) == cost(cache_write_tokens="many") == plain
    assert cost(cache_write_tokens=1000) == pytest.approx(1.25 * cost())
    assert cost(cache_write_tokens=10**7) == pytest.approx(1.25 * cost())
    assert cost(cached_tokens=1000) == pytest.approx(0.1 * cost())


def test_own_prices_are_for_all_input_tokens() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cache_write_tokens": 1000}}
    assert chat_usage({"usage": usage}, ModelJudge(CLAUDE, prices=(1, 1)).price)[1] == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("counts", "prompt", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 30}}, 32, 30),
        ({"prompt_cache_hit_tokens": 30, "prompt_cache_miss_tokens": 2}, 32, 30),
        ({"cached_tokens": 30}, 32, 30),
        ({"cached_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20}}, 32, 20),
        ({"prompt_tokens_details": None, "cached_tokens": None}, 32, 0),
        ({"cached_tokens": 300}, 32, 32),
        ({"prompt_tokens_details": {"cached_tokens": 300}}, 332, 300),
    ],
)
def test_cached_tokens_have_several_names(counts: dict[str, Any], prompt: int, cached: int) -> None:
    usage, _ = chat_usage(
        {"usage": {"prompt_tokens": 32, "completion_tokens": 5, **counts}}, lambda usage, written: 0.0
    )
    assert (usage.input, usage.cached, usage.output) == (prompt, cached, 5)

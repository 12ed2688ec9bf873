"""The way through pydantic-ai, with that library's own function model in the place of a provider."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra `providers` is not installed")

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from evalstone.errors import ConfigError, JudgeDeclined, ProviderError
from evalstone.judges import ModelJudge
from evalstone.judges.base import Turn
from evalstone.judges.providers.pydantic_ai import send
from evalstone.questions import ListClaims

QUESTION = ListClaims(text="Ada was born in 1815.")
TURNS = [Turn("system", "rules"), Turn("user", "ask"), Turn("assistant", "wrong"), Turn("user", "again")]


def sent(answer: Any, *, model: str = "anthropic/claude-sonnet-4-5") -> tuple[Any, list[ModelMessage], AgentInfo]:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        if isinstance(answer, Exception):
            raise answer
        return answer

    reply = asyncio.run(send(ModelJudge(model, seed=7), QUESTION, TURNS, model=FunctionModel(respond)))
    return reply, *seen[0]


def test_turns_settings_and_schema_reach_the_model_and_the_reply_comes_back() -> None:
    usage = RequestUsage(input_tokens=100, output_tokens=10, cache_read_tokens=40)
    response = ModelResponse(parts=[TextPart('{"claims": []}')], usage=usage, finish_reason="stop")
    reply, messages, info = sent(response)
    assert (reply.text, reply.complete) == ('{"claims": []}', True)
    assert (reply.usage.input, reply.usage.output, reply.usage.cached) == (100, 10, 40)
    assert reply.cost == pytest.approx((60 * 3 + 40 * 0.3 + 10 * 15) / 1e6)
    assert [part.part_kind for message in messages for part in message.parts] == [
        "system-prompt", "user-prompt", "text", "user-prompt",
    ]  # fmt: skip
    assert info.model_settings is not None
    assert info.model_settings.get("temperature") == 0.0
    assert info.model_settings.get("seed") == 7
    wanted = info.model_request_parameters.output_object
    assert wanted is not None
    assert wanted.json_schema == QUESTION.json_schema


def test_a_reply_that_was_cut_off_is_marked_as_such() -> None:
    reply, _, _ = sent(ModelResponse(parts=[TextPart("{")], finish_reason="length"))
    assert not reply.complete


def test_a_filtered_reply_is_a_decline() -> None:
    with pytest.raises(JudgeDeclined, match="declined"):
        sent(ModelResponse(parts=[TextPart("")], finish_reason="content_filter"))


def test_an_error_of_the_provider_is_an_error_of_the_endpoint() -> None:
    with pytest.raises(ProviderError, match="529"):
        sent(ModelHTTPError(529, "claude", {"error": "overloaded"}))


def test_a_missing_key_is_the_callers_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        asyncio.run(ModelJudge("anthropic/claude-sonnet-4-5").answer(QUESTION))

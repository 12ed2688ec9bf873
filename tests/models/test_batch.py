"""The batch APIs of the providers: what is sent, and how what comes back is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from evalstone.errors import ConfigError, DeliveryUnknown, JudgeDeclined, ProviderError, ProviderTimeout
from evalstone.judges import LexicalJudge, ModelJudge
from evalstone.judges.model import opening_messages
from evalstone.models.batch import batch_api
from evalstone.models.batch.base import BatchApi, BatchState, Finding, objects, segment
from evalstone.models.batch.openai import OpenAIBatches
from evalstone.models.chat_completions import chat_payload
from evalstone.models.forms import ModelCapabilities
from evalstone.questions import ListClaims
from evalstone.questions.base import Question
from evalstone.run.batch.runner import batch_judge
from evalstone.types import Usage
from tests.batch_serving import Made, serving_batches
from tests.fakes import QUESTION_KINDS, question_of

T = TypeVar("T")

QUESTION = ListClaims(text="Ada was born in 1815.")
FORM, MESSAGES = QUESTION.reply_form, opening_messages(QUESTION)
OPENAI = ModelJudge("openai/gpt-4o", api_key="k", seed=7)
ANTHROPIC = ModelJudge("anthropic/claude-sonnet-4-5", api_key="k")
SETTINGS = ANTHROPIC.settings_for(QUESTION)


def asked(judge: ModelJudge, work: Callable[[BatchApi], Awaitable[T]]) -> T:
    async def run() -> T:
        api = batch_api(judge)
        async with api.opened():
            return await work(api)

    return asyncio.run(run())


def test_a_request_to_openai_is_what_is_sent_directly_with_an_id_around_it() -> None:
    api, messages = batch_api(OPENAI), opening_messages(QUESTION, OPENAI.instructions)
    sent = json.loads(api.request("b-1", FORM, messages, OPENAI.settings_for(QUESTION)))
    payload = chat_payload("gpt-4o", messages, FORM, OPENAI.settings_for(QUESTION), ModelCapabilities())
    assert sent == {
        "custom_id": "b-1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": json.loads(json.dumps(payload)),
    }
    assert sent["body"]["seed"] == 7


def test_a_request_to_anthropic_has_the_system_text_apart() -> None:
    api, messages = batch_api(ANTHROPIC), opening_messages(QUESTION, ANTHROPIC.instructions)
    params = json.loads(api.request("b-1", FORM, messages, ANTHROPIC.settings_for(QUESTION)))["params"]
    assert params["model"] == "claude-sonnet-4-5"
    assert params["max_tokens"] == 16_384
    assert params["temperature"] == 0.0
    assert params["system"] == messages[0].content
    assert [turn["role"] for turn in params["messages"]] == ["user"]
    assert params["output_config"]["format"]["type"] == "json_schema"
    schema: Any = QUESTION.json_schema  # without bounds, which are refused there
    claims = {**schema["properties"]["claims"], "items": {"type": "string"}}
    del claims["maxItems"]
    assert params["output_config"]["format"]["schema"] == {**schema, "properties": {"claims": claims}}


@pytest.mark.parametrize("kind", QUESTION_KINDS, ids=lambda kind: kind.__name__)
def test_no_schema_that_anthropic_is_sent_has_bounds_which_it_refuses(kind: type[Question[Any]]) -> None:
    question = question_of(kind, "text")
    settings = ANTHROPIC.settings_for(question)
    sent = batch_api(ANTHROPIC).payload(question.reply_form, opening_messages(question), settings, ModelCapabilities())
    schema = json.dumps(sent.get("output_config", {}))
    assert not any(
        f'"{bound}": {value}' in schema for bound in ("minimum", "maximum", "maxItems") for value in (0, 1, 5)
    )


def test_a_request_is_one_line_for_every_reader_of_lines_whatever_is_judged() -> None:
    question = ListClaims(text='one\ntwo\u2028three\u2029four\x85five"}\nsix \ud83d \x00')
    line = batch_api(OPENAI).request(
        "b-1", question.reply_form, opening_messages(question), OPENAI.settings_for(question)
    )
    assert len(line.decode().splitlines()) == 1
    sent = json.loads(line)
    assert sent.keys() == {"custom_id", "method", "url", "body"}
    assert sent["body"]["messages"][-1]["content"] == opening_messages(question)[-1].content


MESSAGE = {
    "content": [
        {"type": "thinking", "thinking": "…"},
        {"type": "text", "text": '{"claims":'},
        {"type": "text", "text": " []}"},
    ],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 50,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 40,
        "output_tokens": 20,
    },
}


def test_a_message_is_read_with_all_its_tokens_at_half_the_price() -> None:
    reply = batch_api(ANTHROPIC).reply(MESSAGES, {"status": 200, "body": MESSAGE})
    assert reply.text == '{"claims": []}'
    assert reply.usage == Usage(100, 20, 40, 1)
    assert reply.cost == pytest.approx(0.5 * (50 * 3 + 10 * 3.75 + 40 * 0.3 + 20 * 15) / 1e6)
    assert reply.complete


def test_a_message_that_was_cut_off_declined_or_is_none_is_told_apart() -> None:
    api = batch_api(ANTHROPIC)
    assert not api.reply(MESSAGES, {"status": 200, "body": {**MESSAGE, "stop_reason": "max_tokens"}}).complete
    with pytest.raises(JudgeDeclined, match="declined") as declined:
        api.reply(MESSAGES, {"status": 200, "body": {**MESSAGE, "stop_reason": "refusal"}})
    assert declined.value.cost == pytest.approx(0.5 * (50 * 3 + 10 * 3.75 + 40 * 0.3 + 20 * 15) / 1e6)
    with pytest.raises(ProviderError, match="sent no message"):
        api.reply(MESSAGES, {"status": 200, "body": {"content": None}})
    with pytest.raises(ProviderError, match="answer: expired"):
        api.reply(MESSAGES, {"status": 0, "error": "expired"})


@pytest.mark.parametrize("judge", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("body", [{}, {"usage": 3}, {"usage": {"prompt_tokens": "many", "input_tokens": []}}])
def test_what_a_reply_cost_is_unknown_where_it_does_not_say_and_nothing_breaks(judge: ModelJudge, body: Any) -> None:
    paid = batch_api(judge).paid({"status": 200, "body": body})
    assert paid is None or paid == 0.0


def test_a_schema_or_a_length_that_anthropic_refuses_is_left_out_from_then_on() -> None:
    api, messages = batch_api(ANTHROPIC), opening_messages(QUESTION)
    for said in ("output_config.format: not supported", "max_tokens: 16384 > 4096", "temperature is deprecated"):
        sent = api.payload(FORM, messages, SETTINGS, api.capabilities)
        assert api.learn(FORM, sent, {"status": 400, "error": said})
    left = api.payload(FORM, messages, SETTINGS, api.capabilities)
    assert left.keys() == {"model", "max_tokens", "messages", "system"}
    assert left["max_tokens"] == 4_096
    assert not api.learn(FORM, left, {"status": 400, "error": "max_tokens: 4096 > 100"})
    assert not api.learn(FORM, left, {"status": 400, "error": "prompt too long"})
    assert not api.learn(FORM, left, {"status": 529, "error": "temperature"})


@pytest.mark.parametrize("judge", [OPENAI, ANTHROPIC])
def test_what_was_refused_can_be_taken_up_by_another_process(judge: ModelJudge) -> None:
    first, second, messages = batch_api(judge), batch_api(judge), opening_messages(QUESTION)
    assert first.learn(
        FORM,
        first.payload(FORM, messages, SETTINGS, first.capabilities),
        {"status": 400, "error": "temperature"},
    )
    second.capabilities.update(json.loads(json.dumps(first.capabilities.to_dict())))
    sent = second.payload(FORM, messages, SETTINGS, second.capabilities)
    assert "temperature" not in sent
    assert sent == first.payload(FORM, messages, SETTINGS, first.capabilities)


def test_a_batch_is_found_by_its_mark_on_a_later_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving_batches() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        server.batches = [Made(f"b{n}", {}, {"evalstone_batch": f"ours-{n}"}) for n in range(230)]
        now = datetime.now(UTC)

        async def find(api: BatchApi, name: str, since: datetime) -> Finding:
            return await api.find(name, since=since, requests=0, known=())

        assert asked(OPENAI, lambda api: find(api, "ours-3", now)) == Finding("b3")
        assert asked(OPENAI, lambda api: find(api, "ours-300", now)) == Finding()
        assert len(server.calls) == 6
        assert asked(OPENAI, lambda api: find(api, "ours-3", now + timedelta(hours=2))) == Finding()
        assert len(server.calls) == 7


def test_a_result_that_was_answered_counts_though_it_stands_among_the_errors_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving_batches() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        server.batches = [Made("one", {"a": {}, "b": {}}, status="completed", results={"a": "{}"})]
        state = BatchState("one", "completed", 2, 2, files=("err-one", "out-one"))
        found = asked(OPENAI, lambda api: api.results(state))
        assert {result.custom_id: result.body["status"] for result in found} == {"a": 200, "b": 0}


def test_an_answer_without_an_id_leaves_it_unclear_whether_there_is_a_batch() -> None:
    async def made(content: bytes) -> str:
        return OpenAIBatches(OPENAI).created_id(content)

    for content in (b"{}", b"<html>", b'{"id": 3}'):
        with pytest.raises(DeliveryUnknown):
            asyncio.run(made(content))


def test_a_batch_that_no_server_took_a_connection_for_was_not_delivered_and_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    judge = ModelJudge("anthropic/claude-sonnet-4-5", api_key="k", total_timeout=1.0)
    with pytest.raises(ProviderTimeout, match=r"in [2-9] attempts"):
        asked(judge, lambda api: api.submit("b", [b"{}"]))


def test_what_a_provider_calls_a_batch_leads_to_no_other_path() -> None:
    assert segment("../../files?x=1#y") == "..%2F..%2Ffiles%3Fx%3D1%23y"


@pytest.mark.parametrize("judge", [LexicalJudge(), ModelJudge("groq/x"), ModelJudge("google/x")])
def test_a_judge_without_a_batch_api_is_refused_with_those_that_have_one(judge: Any) -> None:
    with pytest.raises(ConfigError, match="openai/… or anthropic/…"):
        batch_api(batch_judge(judge))


def test_a_line_with_more_lists_than_a_reply_may_have_is_skipped_as_one_that_is_broken() -> None:
    lines = [
        b'{"custom_id": "a"}',
        b'{"custom_id": "b", "x": [' + b"[],[]," * 40_000 + b"0]}",
        b"{",
        b'{"custom_id": "c"}',
    ]
    assert [line["custom_id"] for line in objects(lines, 1_000)] == ["a", "c"]
    assert [line["custom_id"] for line in objects(lines, 80_000_000)] == ["a", "b", "c"]


@pytest.mark.parametrize(("status", "passes"), [(0, True), (200, True), (400, False), (402, True), (501, False)])
def test_a_request_that_may_have_another_result_goes_into_the_next_batch(status: int, passes: bool) -> None:
    assert batch_api(OPENAI).may_pass({"status": status, "error": "no"}) is passes

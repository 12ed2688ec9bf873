"""What endpoints refuse, block or fail to do, in the forms in which they say so."""

import contextlib
import itertools
import json
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from evalstone import Failed, ModelJudge, Skipped, evaluate
from evalstone._core.prompts import Prompt
from evalstone.errors import JudgeRefused, RunAborted
from evalstone.models.forms import (
    JSON_MODE,
    PROMPT,
    SCHEMA,
    WITHOUT_BOUNDS,
    ModelCapabilities,
    has_bounds,
)
from evalstone.models.refusals import error_inside, refusal_in
from evalstone.models.replies import retry_delay
from evalstone.questions import GradeGrounding, MiniCheck
from evalstone.questions.base import Question
from evalstone.questions.custom import AnswerAs, AnswerForm
from evalstone.types import Record
from tests.serving import Response, completion, serving

YES = '{"reason": "The passage says that Paris is the capital.", "verdict": "yes"}'
SAMPLE = {"input": "What is the capital?", "output": "Paris is the capital.", "context": ["Paris is the capital."]}


Reply: TypeAlias = Callable[[Any, int], Any]


_NUMBERS = itertools.count()


def refusal(status: int, message: str, **more: Any) -> Response:
    return Response(status, {"error": {"message": message, **more}})


def scored(behaviour: Reply, **settings: Any) -> tuple[Record, list[Any]]:
    """The record of a sample at an endpoint, and the requests."""
    requests: list[Any] = []

    def answer(request: dict[str, Any], number: int) -> Any:
        requests.append(request)
        return behaviour(request, len(requests))

    with serving(answer) as server:
        options: dict[str, Any] = {"prices": (1, 10), "retries": 2, "total_timeout": 20} | settings
        options["headers"] = {"X-Test": str(next(_NUMBERS))}  # a port may be used again, and what it refused is known
        judge = ModelJudge("vllm/m", base_url=server.url, **options)
        return evaluate([SAMPLE], "relevancy_check", judge=judge, ledger=None).records[0], requests


@pytest.mark.parametrize("status", [400, 403, 404, 405])
def test_a_setting_that_is_refused_is_not_sent_again_whatever_the_status(status: int) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        refused = refusal(status, "You are not allowed to request logprobs from this model")
        return refused if "logprobs" in request else completion(YES)

    record, requests = scored(behaviour)
    assert record.value == 1
    assert ["logprobs" in request for request in requests] == [True, False]


def said(message: str, **more: Any) -> Any:
    return {"error": {"message": message, **more}}


def routed(upstream: Any) -> Any:
    return said("Provider returned error", code=400, metadata={"raw": upstream, "provider_name": "X"})


TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."


@pytest.mark.parametrize(
    "body",
    [
        said(TEMPERATURE),
        said("Unsupported value", param="temperature", code="unsupported_value"),
        [said(TEMPERATURE, code=400, status="INVALID_ARGUMENT")],
        {"code": "Client specified an invalid argument", "error": TEMPERATURE},
        {"object": "error", "message": TEMPERATURE, "type": "BadRequestError", "param": None, "code": 400},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated."}},
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "No extra", "input": 0}]},
        {"object": "error", "message": {"detail": [{"loc": ["body", "temperature"], "msg": "No extra", "input": 0}]}},
        {"errors": [{"message": TEMPERATURE, "code": 5006}], "success": False, "result": {}},
        routed(json.dumps(said(TEMPERATURE))),
        routed(said(TEMPERATURE)),
        routed(TEMPERATURE),
        routed(json.dumps(routed(json.dumps(said(TEMPERATURE))))),
        said(f"litellm.BadRequestError: {'Received Model Group=gpt. ' * 20}{TEMPERATURE}"),
        TEMPERATURE,
    ],
    ids=range(15),
)
@pytest.mark.parametrize("status", [400, 500])
def test_a_refused_setting_is_learned_from_each_shape_of_an_error(status: int, body: Any) -> None:
    record, requests = scored(
        lambda request, _: Response(status, body) if "temperature" in request else completion(YES)
    )
    assert record.value == 1
    assert record.calls[0].refused_settings == ("temperature",)
    assert ["temperature" in request for request in requests] == [True, False]


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("name", ["reasoning_effort", "reasoningEffort", "reasoning effort", "reasoning.effort"])
def test_a_setting_may_be_named_in_another_style(name: str, status: int) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        body = {"code": "invalid-argument", "error": f"Model m does not support parameter {name}."}
        return Response(status, body) if "reasoning_effort" in request else completion(YES)

    record, requests = scored(behaviour, reasoning_effort="low")
    assert record.calls[0].refused_settings == ("reasoning_effort",)
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("body", "message", "codes", "status"),
    [
        (said("No.", code="c", type="t"), "No. (c)", {"c", "t"}, None),
        (said("No.", code=None, type="T"), "No.", {"t"}, None),
        (said("No.", code=429), "No. (429)", set[str](), 429),
        (said("No.", code="502", innererror={"code": "Inner"}), "No. (502)", {"502", "inner"}, 502),
        ([said("No.", code=400, status="INVALID_ARGUMENT")], "No. (400)", {"invalid_argument"}, 400),
        ({"code": "denied", "error": "No."}, "No. (denied)", {"denied"}, None),
        ({"object": "error", "message": "No.", "type": "Bad", "code": 400}, "No. (400)", {"bad"}, 400),
        ({"message": "No.", "status": 403}, "No.", set[str](), 403),
        ({"detail": "No."}, "No.", set[str](), None),
        ({"detail": [{"loc": ["body", "seed"], "msg": "No."}]}, "body.seed: No.", set[str](), None),
        ({"message": {"detail": [{"loc": ["a", 0], "msg": "No."}]}}, "a.0: No.", set[str](), None),
        ({"message": {"message": "No."}}, "No.", set[str](), None),
        ({"errors": [{"message": "No.", "code": 5006}]}, "No. (5006)", set[str](), None),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "No."}}, "No.", {"overloaded_error"}, None),
        (said("Routed", metadata={"raw": json.dumps(said("No.", code=404))}), "Routed: No. (404)", set[str](), 404),
        (said("Routed", metadata={"raw": "No."}), "Routed: No.", set[str](), None),
        (said("Outer", error={"message": "No."}), "Outer: No.", set[str](), None),
    ],
)
def test_an_error_of_each_shape_has_a_message_codes_and_a_status(
    body: Any, message: str, codes: set[str], status: int | None
) -> None:
    refusal = refusal_in(json.dumps(body).encode())
    assert (refusal.message, refusal.codes, refusal.status) == (message, codes, status)


@pytest.mark.parametrize("reply", ["<p>Bad  gateway</p>", '{"ok": false}', '{"error": {"code": "c"}}'])
def test_a_response_without_an_error_is_its_own_message(reply: str) -> None:
    assert refusal_in(reply.encode()).message == reply.replace("  ", " ")


@pytest.mark.parametrize("status", [400, 500])
def test_a_limit_on_the_reply_is_sent_under_its_new_name(status: int) -> None:
    told = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    record, requests = scored(
        lambda request, _: refusal(status, told) if "max_tokens" in request else completion(YES), max_tokens=77
    )
    assert record.value == 1
    assert record.calls[0].refused_settings == ()
    assert [(each.get("max_tokens"), each.get("max_completion_tokens")) for each in requests] == [
        (77, None),
        (None, 77),
    ]
    _, requests = scored(lambda request, number: completion(YES))
    assert not {"max_tokens", "max_completion_tokens"} & requests[0].keys()


def test_a_refusal_of_a_schema_that_was_not_sent_is_final() -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return refusal(400, "The JSON schema is not supported: response_format")

    record, requests = scored(behaviour)
    assert isinstance(record.outcome, Failed)
    formats = [each.get("response_format", {}).get("type") for each in requests]
    assert formats == ["json_schema", "json_schema", "json_object", "json_object", None]


@pytest.mark.parametrize(
    "message",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "This response format is unavailable now",
        "JSON mode is not enabled for models/gemma-3-27b-it",
        "Structured outputs are not supported by this model",
        "structured_outputs is not enabled for this deployment",
        "Guided decoding is not supported",
        "guided_json needs another backend",
        "output_format: Extra inputs are not permitted",
        "The server can't do constrained decoding",
        "responseFormat is not supported",
    ],
)
@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_refused_format_is_replaced_by_words_in_the_prompt(message: str, status: int) -> None:
    record, requests = scored(
        lambda request, _: refusal(status, message) if "response_format" in request else completion(YES)
    )
    assert record.value == 1
    assert ["response_format" in request for request in requests] == [True] * 4 + [False]


def test_a_question_without_a_schema_asks_for_no_format_and_its_answer_proves_none() -> None:
    with_bounds, capabilities = GradeGrounding(answer="a", context=("b",)), ModelCapabilities()
    assert has_bounds(with_bounds.json_schema)
    plain = MiniCheck(document="a", claim="b")
    assert plain.json_schema is None
    assert capabilities.response_format(plain.reply_form) is None
    capabilities.accept(plain.reply_form, SCHEMA)
    assert capabilities.to_dict()["accepted"] == PROMPT
    capabilities.accept(with_bounds.reply_form, JSON_MODE)
    assert capabilities.to_dict()["accepted"] == JSON_MODE
    capabilities.accept(with_bounds.reply_form, SCHEMA)
    assert capabilities.to_dict()["accepted"] == SCHEMA


def test_an_answer_without_bounds_does_not_prove_that_they_are_accepted() -> None:
    question: Question[Any] = AnswerAs(
        values=(("text", "a"),), prompt=Prompt("", "{{text}}"), answer=AnswerForm(list[bool])
    )
    capabilities = ModelCapabilities()
    assert not has_bounds(question.json_schema)
    capabilities.accept(question.reply_form, SCHEMA)
    assert capabilities.to_dict()["accepted"] == WITHOUT_BOUNDS


def test_a_word_that_has_the_name_of_a_setting_in_it_refuses_none() -> None:
    refused = refusal(400, "The model Doubao-Seedream is not one for chats")
    record, requests = scored(lambda request, number: refused, seed=1)
    assert isinstance(record.outcome, Failed)
    assert len(requests) == 1


@pytest.mark.parametrize("status", [401, 402, 409, 413, 429])
def test_a_refusal_of_another_kind_teaches_nothing(status: int) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return refusal(status, "insufficient_quota: temperature, logprobs") if number == 1 else completion(YES)

    with contextlib.suppress(RunAborted):
        _, requests = scored(behaviour, total_timeout=1)
        assert all("temperature" in request and "logprobs" in request for request in requests)


def test_a_judged_text_that_a_refusal_repeats_changes_no_later_request() -> None:
    told = "Keep the temperature below 5, the schema of logprobs is too complex, and the system role is not supported."
    rows = [{**SAMPLE, "output": told}, *({**SAMPLE, "output": f"Paris {n}."} for n in range(3))]

    def behaviour(request: dict[str, Any], number: int) -> Any:
        asked = request["messages"][-1]["content"]
        return refusal(400, f"Can't read {asked}") if told in asked else completion(YES)

    with serving(behaviour) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, prices=(1, 10))
        run = evaluate(rows, "relevancy_check", judge=judge, ledger=None, concurrency=1)
    assert [isinstance(record.outcome, Failed) for record in run] == [True, False, False, False]
    assert len(server.requests) == 4
    assert all(request["temperature"] == 0 and request["logprobs"] for request in server.requests)


@pytest.mark.parametrize("text", ["", "Not JSON", '{"verdict": "y'])
def test_a_reply_that_the_endpoint_refuses_to_send_is_corrected_and_costs_something(text: str) -> None:
    message = "Generated JSON does not match the expected schema. See 'failed_generation' for more details."
    refused = refusal(400, message, code="json_validate_failed", failed_generation=text)
    record, requests = scored(lambda request, number: refused if number == 1 else completion(YES))
    assert record.value == 1
    assert record.cost is None
    assert [request["response_format"]["type"] for request in requests] == ["json_schema"] * 2
    assert "cannot be used" in requests[1]["messages"][-1]["content"]


def test_a_usable_reply_that_the_endpoint_refuses_to_send_is_read() -> None:
    refused = refusal(400, "It doesn't match the schema.", code="json_validate_failed", failed_generation=YES)
    record, requests = scored(lambda request, number: refused)
    assert (record.value, record.cost, len(requests)) == (1, None, 1)


def test_a_rate_limit_that_mentions_billing_is_waited_for() -> None:
    text = "You exceeded your current quota, please check your plan and billing details. Please retry in 0.3s."
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]
    limited = Response(429, [said(text, code=429, status="RESOURCE_EXHAUSTED", details=details)])
    started = time.monotonic()
    record, requests = scored(lambda request, number: limited if number == 1 else completion(YES))
    assert (record.value, len(requests)) == (1, 2)
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize(
    ("body", "delay"),
    [
        (b'{"retryDelay": "34.074824224s"}', 34.074824224),
        (b'{"retryDelay":"7s"}', 7.0),
        (b'{"retryDelay": "99999s"}', 3600.0),
        (b'{"retryDelay": "soon"}', None),
        (b"", None),
    ],
)
def test_the_wait_that_google_asks_for_stands_in_the_body(body: bytes, delay: float | None) -> None:
    assert retry_delay(body) == delay


@pytest.mark.parametrize(("logprobs", "sent"), [(None, True), (True, True), (False, False)])
def test_token_probabilities_are_requested_unless_they_are_switched_off(logprobs: bool | None, sent: bool) -> None:
    record, requests = scored(lambda request, number: completion(YES), logprobs=logprobs)
    assert record.value == 1
    assert ["logprobs" in request or "top_logprobs" in request for request in requests] == [sent]
    assert record.calls[0].refused_settings == ()


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "Only user, assistant and tool roles are supported, got system",
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_instructions_go_into_the_first_user_message_without_a_system_role(message: str, status: int) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        has_system = request["messages"][0]["role"] == "system"
        return refusal(status, message) if has_system else completion("no JSON" if number == 2 else YES)

    record, requests = scored(behaviour)
    assert record.value == 1
    (system, user), *others = ([message["content"] for message in each["messages"]] for each in requests)
    assert [each[0] for each in others] == [f"{system}\n\n{user}"] * 2


@pytest.mark.parametrize(
    "error",
    [
        {"choices": None, "error": {"message": "Provider returned error", "code": 429}},
        {"error": {"message": "Upstream error", "code": 502}},
        {"error": {"message": "Overloaded", "type": "overloaded_error"}},
        {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
        {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": None},
        {"errors": [{"message": "Out of capacity", "code": 503}], "success": False},
        {"statusCode": 503, "message": "Service unavailable"},
        {"error": {"message": "The provider sent an invalid reply", "code": 502}},
        {"object": "error", "message": "Overloaded", "code": 503},
        {"choices": [{"error": {"code": 502, "message": "lost"}, "message": {"content": YES[:20]}}]},
        completion(YES[:20], finish="error"),
        completion(YES[:20], finish="insufficient_system_resource"),
        {"error": {"message": "KeyError: 'choices'"}},
        {"error": {"message": "Failed to generate a reply", "code": None}},
        {"error": {"message": "slow down", "code": "429"}},
        {"error": "the model is loading"},
        {"object": "error", "message": "internal", "type": "InternalServerError", "code": 500},
    ],
)
def test_an_error_inside_http_200_is_retried_if_its_code_may_pass(error: Any) -> None:
    record, requests = scored(lambda request, number: error if number < 3 else completion(YES))
    assert record.value == 1
    assert len(requests) == 3


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"message": "No such model", "code": 400}, "HTTP 400: No such model"),
        ({"message": "Invalid prompt", "code": "invalid_request"}, "Invalid prompt"),
        ({"message": "It is no good", "code": "400"}, "HTTP 400: It is no good"),
        ("Model m does not support chats", "HTTP 400: Model m"),
    ],
)
def test_an_error_inside_http_200_is_final_if_its_code_is(error: Any, told: str) -> None:
    record, requests = scored(lambda request, number: {"error": error})
    assert isinstance(record.outcome, Failed)
    assert told in record.outcome.error
    assert len(requests) == 1


def test_an_invalid_key_inside_http_200_ends_the_run() -> None:
    with pytest.raises(JudgeRefused, match="HTTP 401: Invalid API"):
        scored(lambda request, number: said("Invalid API key provided"))


@pytest.mark.parametrize("error", [None, {}, "", {"code": 0, "message": ""}, {"code": None, "message": None}, []])
def test_an_error_that_says_nothing_beside_an_answer_is_none(error: Any) -> None:
    record, requests = scored(lambda request, number: completion(YES) | {"error": error})
    assert (record.value, len(requests)) == (1, 1)


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource"])
def test_interrupted_replies_are_paid_for(finish: str) -> None:
    record, requests = scored(lambda request, number: completion(YES[:9], finish=finish if number < 3 else "length"))
    one = (100 + 10 * 20) / 1e6
    assert isinstance(record.outcome, Failed)
    assert record.cost == pytest.approx(len(requests) * one)
    assert record.calls[0].usage.requests == len(requests) == 5


def test_interrupted_replies_stay_within_the_budget() -> None:
    requests: list[Any] = []

    def behaviour(request: dict[str, Any], _: int) -> Any:
        requests.append(request)
        return completion(YES[:9], finish="error")

    with serving(behaviour) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, prices=(1, 10), total_timeout=20)
        run = evaluate([SAMPLE], "relevancy_check", judge=judge, ledger=None, budget=0.0018)
    assert run.stop_reason
    assert 1 < len(requests) <= 6


def test_the_cost_of_an_interrupted_reply_is_unknown_if_its_usage_is() -> None:
    broken = completion(YES[:9], finish="error") | {"usage": {"completion_tokens": 9}}
    record, _ = scored(lambda request, number: broken if number == 1 else completion(YES))
    assert (record.value, record.cost) == (1, None)


@pytest.mark.parametrize(
    "body",
    [
        {"detail": "Internal error"},
        {"message": {"role": "assistant", "content": "The API key is invalid."}, "done": True},
        {"object": "response", "status": "completed", "output": []},
        {"success": False, "errors": [{"code": 5000, "message": "x"}]},
    ],
)
def test_a_reply_of_something_else_than_a_model_is_no_error_to_wait_for(body: dict[str, Any]) -> None:
    record, requests = scored(lambda request, number: body)
    assert isinstance(record.outcome, Failed)
    assert record.outcome.error.startswith("m sent no choices")
    assert len(requests) == 1


def test_words_beside_a_reply_or_vectors_are_no_error() -> None:
    said = {"message": "The rate limit is 5 requests", "status": "ok"}
    assert error_inside(said) is not None
    assert error_inside({**said, **completion(YES)}) is None
    assert error_inside({**said, "data": [{"embedding": [1.0]}]}) is None


def test_a_wrong_address_that_is_answered_with_http_200_ends_the_run() -> None:
    with pytest.raises(JudgeRefused, match="HTTP 404: 404 NOT_FOUND"):
        scored(lambda request, number: {"code": 500, "msg": "404 NOT_FOUND", "success": False})


@pytest.mark.parametrize("finish", ["length", "model_length", "MAX_TOKENS", "model_context_window_exceeded"])
def test_a_reply_that_reached_a_limit_is_asked_for_shorter(finish: str) -> None:
    record, requests = scored(lambda request, number: completion(YES, finish="stop" if number > 1 else finish))
    assert (record.value, len(requests)) == (1, 2)
    assert "cut off" in requests[1]["messages"][-1]["content"]


FILTERED = "The response was filtered due to the prompt triggering the content management policy."


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400, FILTERED, code="content_filter"),
        refusal(400, "Input data may contain inappropriate content.", code="data_inspection_failed"),
        refusal(403, "Your input was flagged", code=403),
        refusal(400, "bad", innererror={"code": "ResponsibleAIPolicyViolation"}),
        {"error": {"message": FILTERED, "code": "content_filter"}},
        completion("", finish="content_filter"),
        completion("", finish="content_filter: RECITATION"),
        completion("", finish="SAFETY"),
        completion("", finish="PROHIBITED_CONTENT"),
        completion("", finish="content-filter"),
        completion("", finish="sensitive"),
        completion("", finish="BLOCKLIST"),
        completion("", finish="SPII"),
        refusal(422, FILTERED),
        refusal(451, FILTERED),
        completion("Sorry, I can't.", finish="guardrail_intervened"),
        Response(400, routed(said("Output blocked by content filtering policy"))),
        Response(403, {"code": "denied", "error": "Content violates usage guidelines. Failed check: BIO"}),
        refusal(400, "Content Exists Risk", code="invalid_request_error"),
        refusal(400, "The input or output may contain unsafe or sensitive content.", code="1301"),
        Response(400, {"detail": "Content Exists Risk"}),
        refusal(400, "系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"),
        refusal(400, "The input text may be refused.", code="SensitiveContentDetected"),
        refusal(400, "This prompt contains sensitive words that violate Google's Responsible AI practices."),
        refusal(400, "Violated guardrail policy"),
        refusal(403, "Input blocked by guardrail", code=403),
        refusal(446, "The guardrail checks defined in the config failed.", type="hooks_failed"),
        refusal(424, "Prompt blocked due to security configurations", code=2016),
        refusal(400, "Content blocked: keyword 'x' detected"),
        refusal(400, "litellm.ContentPolicyViolationError: AzureException - The response was filtered"),
        refusal(403, "This request was blocked by the safety policy"),
        refusal(400, "We've limited access to this content for safety reasons.", code="invalid_prompt"),
        refusal(400, "Input may contain NSFW content"),
        {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}, "choices": None},
    ],
)
def test_a_text_that_the_provider_blocks_is_skipped_after_one_call(reply: Any) -> None:
    record, requests = scored(lambda request, number: reply)
    assert isinstance(record.outcome, Skipped)
    assert "blocked the text" in record.outcome.reason
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, 103),  # reasoning beside the completion
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 103}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 0}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 9}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 41}, 103),
    ],
)
def test_output_tokens_are_those_of_the_total(usage: dict[str, int], output: int) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 94}}
    record, _ = scored(lambda request, number: completion(YES) | {"usage": usage | details})
    assert record.cost == pytest.approx((32 + 10 * output) / 1e6)

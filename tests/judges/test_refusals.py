"""What endpoints refuse, block or fail to do, in the forms in which they say so."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from evalstone import Failed, ModelJudge, Skipped, evaluate
from evalstone.types import Record
from tests.serving import Response, completion, serving

YES = '{"reason": "The passage says that Paris is the capital.", "verdict": "yes"}'
SAMPLE = {"input": "What is the capital?", "output": "Paris is the capital.", "context": ["Paris is the capital."]}


Reply: TypeAlias = Callable[[Any, int], Any]


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


@pytest.mark.parametrize(("logprobs", "sent"), [(None, True), (True, True), (False, False)])
def test_token_probabilities_are_requested_unless_they_are_switched_off(logprobs: bool | None, sent: bool) -> None:
    record, requests = scored(lambda request, number: completion(YES), logprobs=logprobs)
    assert record.value == 1
    assert ["logprobs" in request or "top_logprobs" in request for request in requests] == [sent]
    assert record.steps[0].refused_settings == ()


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ],
)
def test_instructions_go_into_the_first_user_message_without_a_system_role(message: str) -> None:
    def behaviour(request: dict[str, Any], number: int) -> Any:
        has_system = request["messages"][0]["role"] == "system"
        return refusal(400, message) if has_system else completion("no JSON" if number == 2 else YES)

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
        {"choices": [{"error": {"code": 502, "message": "lost"}, "message": {"content": YES[:20]}}]},
        completion(YES[:20], finish="error"),
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
    ],
)
def test_an_error_inside_http_200_is_final_if_its_code_is(error: Any, told: str) -> None:
    record, requests = scored(lambda request, number: {"error": error})
    assert isinstance(record.outcome, Failed)
    assert told in record.outcome.error
    assert len(requests) == 1


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
    ],
)
def test_a_text_that_the_provider_blocks_is_skipped_after_one_call(reply: Any) -> None:
    record, requests = scored(lambda request, number: reply)
    assert isinstance(record.outcome, Skipped)
    assert record.outcome.reason.startswith("the provider blocked the text")
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, 103),  # reasoning beside the completion
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 135}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 103}, 103),
        ({"prompt_tokens": 32, "completion_tokens": 103, "total_tokens": 0}, 103),
    ],
)
def test_output_tokens_are_those_of_the_total(usage: dict[str, int], output: int) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 94}}
    record, _ = scored(lambda request, number: completion(YES) | {"usage": usage | details})
    assert record.cost == pytest.approx((32 + 10 * output) / 1e6)

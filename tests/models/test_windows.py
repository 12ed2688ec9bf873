"""Refusals that name the context window, as servers word them."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import pytest

from evalstone import Failed, ModelJudge, evaluate
from evalstone.errors import JudgeUnavailable, PromptTooLong, ProviderError
from evalstone.judges.model import opening_messages
from evalstone.models.batch import batch_api
from evalstone.models.refusals import cut_error, window_error
from evalstone.questions import GradeGrounding, ListClaims
from tests.serving import Response, asked_in, completion, obliging, serving

QUESTION = ListClaims(text="Ada was born in 1815.")

REFUSALS: list[tuple[str, int | None]] = [
    ("This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages, "
     "1000 in the completion). Please reduce the length of the messages or completion.", 8192),
    ("This model's maximum context length is 128,000 tokens. However, your messages had 200,000 tokens.", 128_000),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.", 272_000),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
    ("request (1234 tokens) exceeds the available context size (512 tokens), try increasing it", 512),
    ("the request exceeds the available context size. try increasing the context size or enable context shift", None),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length", 200_000),
    ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072),
    ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192),
    ("The prompt is too long: 9000, model maximum context length: 8192", 8192),
    ("total number of tokens in the prompt cannot exceed 4081 - received 4292", 4081),
    ("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
     "length of only 4096 tokens, which is not enough", 4096),
    ("prompt too long; exceeded max context length by 17 tokens", None),
    ("prompt is too long: 90000 tokens > 12 maximum", None),
    (f"prompt is too long: 90000 tokens > {'9' * 5000} maximum", None),
    ("Please reduce the length of the messages or completion. (context_length_exceeded)", None),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 5000 `inputs` tokens and 100 "
     "`max_new_tokens`", 2048),
    ("Input validation error: `inputs` must have less than 512 tokens. Given: 900", 512),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", 98_304),
    ("Invalid request: Your request exceeded model token limit: 8192", 8192),
    ("model max length exceeded, max length:8192", 8192),
    ("Prompt exceeds max length", None),
    ("Invalid 'input[0]': maximum input length is 8192 tokens.", 8192),
    ("Request body too large for gpt-4.1 model. Max size: 8000 tokens.", 8000),
    ("Request too large for gpt-4o in organization org-a on tokens per min (TPM): Limit 30000, Requested 31538. The "
     "input or output tokens must be reduced in order to run successfully.", 30_000),
]  # fmt: skip

OTHERS = [
    "maximum allowed value of seed is 5",
    "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "Invalid schema for response_format: 'maximum' is not permitted",
    "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000",
]


def refused(message: str, status: int = 400, **more: Any) -> ProviderError:
    body = {"error": {"message": message, **more}}
    with serving(lambda _, __: Response(status, body)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=2.0)
        with pytest.raises(ProviderError) as error:
            asyncio.run(judge.answer(QUESTION))
    assert len(server.requests) == 1
    return error.value


@pytest.mark.parametrize(("message", "window"), REFUSALS, ids=range(len(REFUSALS)))
@pytest.mark.parametrize("status", [400, 500])
def test_a_prompt_beyond_the_window_is_final_and_names_the_setting(
    message: str, window: int | None, status: int
) -> None:
    error = refused(message, status)
    assert isinstance(error, PromptTooLong)
    assert error.window == window
    setting = "context_window" if window is None else f"context_window={window}"
    assert str(error).endswith(f"; set {setting} for this model")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.window) == (str(error), window)


@pytest.mark.parametrize(("message", "window"), [REFUSALS[-1], REFUSALS[0]])
def test_a_request_that_exceeds_the_tokens_per_minute_is_not_sent_again(message: str, window: int) -> None:
    error = refused(message, 429, type="tokens", code="rate_limit_exceeded")
    assert isinstance(error, PromptTooLong)
    assert error.window == window


def test_a_body_that_is_too_large_for_a_proxy_is_too_long() -> None:
    error = refused("413 Request Entity Too Large", 413)
    assert isinstance(error, PromptTooLong)
    assert error.window is None


@pytest.mark.parametrize(
    ("message", "code"), [("Prompt exceeds max length", "1261"), ("It exceeds the maximum prompt length.", 400)]
)
def test_the_window_is_no_code_of_the_error(message: str, code: object) -> None:
    assert getattr(refused(message, code=code), "window", 0) is None


def test_a_router_passes_on_the_window() -> None:
    raw = json.dumps({"error": {"message": REFUSALS[0][0], "code": 400}})
    error = refused("Provider returned error", code=400, metadata={"raw": raw, "provider_name": "N"})
    assert isinstance(error, PromptTooLong)
    assert error.window == 8192
    assert "error: This model's" in str(error)


def test_the_window_of_llama_cpp_stands_beside_its_message() -> None:
    told = "the request exceeds the available context size. try increasing the context size or enable context shift"
    error = refused(told, type="exceed_context_size_error", n_prompt_tokens=9001, n_ctx=2048)
    assert isinstance(error, PromptTooLong)
    assert error.window == 2048


@pytest.mark.parametrize("message", OTHERS, ids=range(len(OTHERS)))
def test_another_refusal_is_none_of_the_window(message: str) -> None:
    refusal = f"host refused the request (HTTP 400: {message})"
    assert window_error(refusal) is None


TOLD = [
    "The paper says that the context window is 512 tokens.",
    "maximum context length is 5000 tokens",
    "Notes:\n- The context length is 4096.\n- It has two docks.",
]


@pytest.mark.parametrize("text", TOLD)
@pytest.mark.parametrize("prefix", ["", "Extra inputs are not permitted: "])
def test_a_judged_text_that_a_refusal_repeats_teaches_no_window(text: str, prefix: str) -> None:
    question = ListClaims(text=text)
    for echo in (prefix + question.render()[1], prefix + json.dumps(question.render()[1]), repr(question.render()[1])):
        with serving(lambda _, __, said=echo: Response(422, {"detail": [{"input": said}]})) as server:
            judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=2.0)
            with pytest.raises(ProviderError) as error:
                asyncio.run(judge.answer(question))
        assert not isinstance(error.value, PromptTooLong)
    told = "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens"
    error = window_error(f"{told}. Your input: {text}", request="\n".join(question.render()))
    assert error is not None
    assert error.window == 8192


def test_a_refusal_in_a_batch_names_the_setting_too() -> None:
    for name in ("openai/gpt-4o", "anthropic/claude-sonnet-4-5"):
        api = batch_api(ModelJudge(name, api_key="k"))
        with pytest.raises(PromptTooLong, match="context_window=200000 for") as error:
            api.reply(
                opening_messages(QUESTION),
                {"status": 400, "error": "prompt is too long: 210000 tokens > 200000 maximum"},
            )
        assert error.value.window == 200_000


def test_questions_that_are_too_long_do_not_end_a_run() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        if "ZZZ" in request["messages"][-1]["content"]:
            return Response(400, {"error": {"message": "prompt is too long: 90000 tokens > 32768 maximum"}})
        return completion('{"reason": "It greets.", "verdict": "yes"}')

    rows = [
        {"id": str(n), "input": "q", "output": "ZZZ " * 900 if n < 15 else "brief", "context": ["p"]} for n in range(16)
    ]
    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0)
        run = evaluate(rows, "relevancy_check", judge=judge, concurrency=1, ledger=None)
    assert [isinstance(record.outcome, Failed) for record in run] == [True] * 15 + [False]


def test_refusals_of_another_kind_do() -> None:
    rows = [{"id": str(n), "input": "q", "output": str(n), "context": ["p"]} for n in range(16)]
    with serving(lambda _, __: Response(400, {"error": {"message": "no"}})) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0)
        with pytest.raises(JudgeUnavailable):
            evaluate(rows, "relevancy_check", judge=judge, concurrency=1, ledger=None)


# ---- Servers that cut prompts ----

FACTS = [f"House {number} of the long street was built by the family of the old mayor." for number in range(900)]


def cutting(window: int) -> Any:
    """A server that drops what exceeds the window, and then answers as if it had read everything."""

    def behave(request: dict[str, Any], number: int) -> Any:
        read = round(1.3 * sum(len(message["content"].split()) for message in request["messages"]))
        usage = {"prompt_tokens": min(window, read), "completion_tokens": 20}
        return obliging(request, number) | {"usage": usage}

    return behave


def test_a_prompt_that_the_server_cuts_is_read_in_parts() -> None:
    claim = "The family of the old mayor built house 7."
    sample = {"output": claim, "context": FACTS}
    with serving(cutting(4096)) as server:
        judge = ModelJudge("ollama/m", base_url=server.url, prices=(1, 10))
        run = evaluate([sample], "hallucination", judge=judge, ledger=None)
    assert run.records[0].value is not None
    cut = [call for call in run.records[0].calls if call.detail and "cut the prompt" in call.detail.get("error", "")]
    assert len(cut) == 1
    assert cut[0].detail is not None
    assert "read 4,096 tokens of" in cut[0].detail["error"]
    assert "context_window=4096" in cut[0].detail["error"]
    assert cut[0].cost == pytest.approx((4096 + 200) / 1e6)
    assert run.cost == pytest.approx(sum(call.cost or 0 for call in run.records[0].calls))
    whole, *parts = [len(asked_in(request).split()) for request in server.requests if "House 1 " in asked_in(request)]
    assert parts
    assert 1.3 * max(parts) < 4096 < whole


def test_a_cut_prompt_that_has_no_parts_fails_and_names_the_setting() -> None:
    sample = {"input": "Who built it?", "output": " ".join(FACTS), "context": ["The family of the old mayor."]}
    with serving(cutting(4096)) as server:
        outcome = (
            evaluate([sample], "relevancy_check", judge=ModelJudge("ollama/m", base_url=server.url), ledger=None)
            .records[0]
            .outcome
        )
    assert isinstance(outcome, Failed)
    assert "read 4,096 tokens of" in outcome.error
    assert "context_window=4096" in outcome.error


PROSE = " ".join(FACTS)
TABLE = "| | | |\n" * 3000
CODE = "for (i = 0; i < n; i++) { a[i] = b[i]; }\n" * 700
CHINESE = "这座桥建于一八九四年，由市长的家族出资修建，全长二百四十四米。" * 400


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        # The fewest tokens of any of six tokenizers of real models.
        (PROSE, {"prompt_tokens": 14_800}),
        (TABLE, {"prompt_tokens": 12_000}),
        (CODE, {"prompt_tokens": 14_800}),
        (CHINESE, {"prompt_tokens": 8_000}),
        # Only what was not cached is counted.
        (PROSE, {"prompt_tokens": 30}),
        (PROSE, {"prompt_tokens": 0}),
        (PROSE, {"prompt_tokens": 2000, "prompt_tokens_details": {"cached_tokens": 12_400}}),
        (PROSE, {"prompt_tokens": 2000, "cache_read_input_tokens": 12_400}),
        (PROSE, {"prompt_tokens": "2000"}),
        (PROSE, {}),
    ],
)
def test_a_whole_prompt_is_not_taken_for_a_cut_one(text: str, usage: dict[str, Any]) -> None:
    with serving(lambda request, number: obliging(request, number) | {"usage": usage}) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        asyncio.run(judge.answer(GradeGrounding(answer="Nobody.", context=(text,))))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("read", "is_cut"),
    [(8192, True), (8194, True), (8193, False), (8195, False), (16_384, False), (16_386, False), (4096, True)],
)
def test_a_prompt_of_which_the_server_leaves_its_window_is_cut_though_most_of_it_was_read(
    read: int, is_cut: bool
) -> None:
    """10,000 words: 0.75 tokens for each of them may be all."""
    prompt = ["word " * 10_000]
    assert (cut_error("m", prompt, read) is not None) == is_cut
    error = cut_error("m", prompt, 8194)
    assert error is not None
    assert (error.window, "8,194 tokens of 10,000 " in str(error)) == (8194, True)

"""Refused keys, models and texts: what ends a run, and what fails one sample."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from evalstone.api import evaluate
from evalstone.errors import ConfigError, JudgeDeclined, JudgeRefused, ProviderError, ProviderTimeout
from evalstone.judges import ModelJudge
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.models.families import other_kind
from evalstone.questions import ListClaims
from evalstone.targets.model import ModelTarget
from evalstone.types import Failed, Record
from tests.refusals import refused
from tests.serving import Behaviour, Response, completion, obliging, serving


def blocking(status: int) -> Behaviour:
    """A server behind a gateway that blocks a text."""
    blocked = Response(status, {"error": {"message": "blocked by rule 942100"}})
    return lambda request, number: blocked if "DROP TABLE" in json.dumps(request) else obliging(request, number)


POISON = "Robert'); DROP TABLE students;--"


def serving_probes(behaviour: Behaviour, probes: list[Any]) -> Behaviour:
    """The same, which answers probes as well, and remembers them."""

    def behave(request: dict[str, Any], number: int) -> Any:
        if "response_format" in request:
            return behaviour(request, number)
        probes.append(request)
        return completion("ok")

    return behave


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("place", [0, 3])
def test_a_text_that_a_gateway_blocks_fails_its_sample_alone(tmp_path: Path, status: int, place: int) -> None:
    samples = [{"id": f"s{number}", "output": f"fine text number {number}"} for number in range(6)]
    samples[place]["output"] = POISON
    probes: list[Any] = []
    with serving(serving_probes(blocking(status), probes)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, prices=(1.0, 1.0))
        run = evaluate(samples, ["toxicity"], judge=judge, ledger=tmp_path / "l.db", concurrency=1)
    assert (run["toxicity"].n_score, run["toxicity"].n_failed) == (5, 1)
    outcome = run.records[place].outcome
    assert isinstance(outcome, Failed)
    assert f"HTTP {status}: blocked by rule 942100" in outcome.error
    assert "may be blocked" in outcome.error
    # Before the first answer a probe tells, and it is paid for; after one nothing has to be asked.
    assert len(probes) == (1 if place == 0 else 0)
    assert (run.records[place].cost == 0) == (place != 0)
    assert all(probe["max_tokens"] == 1 for probe in probes)


def test_many_refusals_in_a_row_are_looked_into_again_and_end_the_run_when_the_key_is_refused() -> None:
    samples = [{"id": f"s{number}", "output": f"text {number}"} for number in range(40)]
    revoked = Response(403, {"error": {"message": "this key was revoked"}})

    def behave(request: dict[str, Any], number: int) -> Any:
        return obliging(request, number) if number <= 5 else revoked

    records: list[Record] = []
    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        with pytest.raises(JudgeRefused, match="revoked"):
            evaluate(samples, ["toxicity"], judge=judge, ledger=None, concurrency=1, on_record=records.append)
    assert len(records) == 5 + 10


def test_a_probe_that_times_out_is_sent_once() -> None:
    def behave(request: dict[str, Any], number: int) -> Any:
        return blocking(403)(request, number) if "response_format" in request else Response(delay=1.0)

    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, timeout=0.2)
        with pytest.raises(ProviderTimeout, match="raise timeout") as raised:
            asyncio.run(judge.answer(ListClaims(text=POISON)))
    assert len(server.requests) == 2
    assert raised.value.cost is None


def test_a_model_that_declines_has_accepted_the_key() -> None:
    replies = [completion("", finish="content_filter"), Response(403, {"error": {"message": "blocked by rule 7"}})]

    async def ask(judge: ModelJudge) -> None:
        async with judge.opened():
            with pytest.raises(JudgeDeclined):
                await judge.answer(ListClaims(text="one"))
            with pytest.raises(ProviderError, match="may be blocked"):
                await judge.answer(ListClaims(text="two"))

    with serving(lambda _, number: replies[number - 1]) as server:
        asyncio.run(ask(ModelJudge("vllm/m", base_url=server.url)))
    assert len(server.requests) == 2


@pytest.mark.parametrize("key", ["sk-abc\n", " sk-abc", "sk abc", "sk-abc\r", "sk-\u2026abc", "sk-\x00abc", "sk-\x7f"])
@pytest.mark.parametrize("from_environment", [False, True])
def test_a_key_that_cannot_be_sent_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, key: str, from_environment: bool
) -> None:
    judge = ModelJudge("groq/m", api_key=None if from_environment else key)
    if from_environment:
        if "\x00" in key:
            return  # no environment can hold it
        monkeypatch.setenv("GROQ_API_KEY", key)
    records: list[Record] = []
    setting = "GROQ_API_KEY" if from_environment else "api_key"
    with pytest.raises(ConfigError, match=f"groq/m in {setting} contains ") as raised:
        evaluate([{"output": "x"}], ["toxicity"], judge=judge, ledger=None, on_record=records.append)
    assert "abc" not in str(raised.value)
    assert records == []


@pytest.mark.parametrize("headers", [{"x-route": "a\nb"}, {"x-route": "a\x00"}, {"x route": "a"}, {"": "a"}, {"x": 1}])
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with refused("headers"):
        ModelJudge("vllm/m", headers=headers)


@pytest.mark.parametrize("url", ["http://h/v1?version=2", "http://h/v1#x", "http://h/v1?key=secret"])
def test_a_base_url_with_a_query_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="query or a fragment") as raised:
        ModelJudge("vllm/m", base_url=url).check()
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("user", ["secret", "me:secret", ":secret"])
def test_a_base_url_with_a_user_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    url = f"http://{user}@127.0.0.1:1/v1"
    with pytest.raises(ConfigError, match=r"password; .* api_key") as raised:
        ModelJudge("vllm/m", base_url=url)
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("VLLM_BASE_URL", url)
    with pytest.raises(ConfigError, match="user name or") as raised:
        ModelJudge("vllm/m").check()
    assert "secret" not in str(raised.value)


def test_a_url_that_cannot_be_parsed_is_refused_without_showing_it() -> None:
    for url in ("http://[me:secret@h/v1", "http://[secret.h/v1", "http://h:secret/v1"):
        with pytest.raises(ConfigError, match="the base_url") as raised:
            ModelJudge("vllm/m", base_url=url)
        assert "me:secret" not in str(raised.value)


@pytest.mark.parametrize(
    "model",
    [
        "openrouter/typesafe/jev-1.14",  # a decision model
        "together/together/Tev1-4B-experimental",
        "openai/text-embedding-3-small",
        "openai/whisper-1",
        "openai/tts-1",
        "openai/gpt-4o-mini-tts",  # these have a price for output
        "openai/gpt-4o-transcribe",
        "openai/gpt-realtime",
        "openai/gpt-image-1",
        "openai/jev-latest",
        "openrouter/typesafe/jev-latest",
        "openai/omni-moderation-latest",
        "openrouter/cohere/rerank-v3.5",
        "together/black-forest-labs/FLUX.1-schnell",
        "ollama/nomic-embed-text",
        "ollama/bge-m3:latest",
    ],
)
def test_a_model_that_does_not_chat_is_no_judge(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tuple(map(int, version("genai-prices").split(".")[:2]))
    if model in ("openrouter/typesafe/jev-1.14", "openai/tts-1") and listed < (0, 2):
        pytest.skip("this list of prices doesn't have the model")
    for key in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "TOGETHER_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    told = f"^{re.escape(model)} doesn't chat: .*; choose a model that chats, or set prices if this one does$"
    with pytest.raises(ConfigError, match=told):
        ModelJudge(model).check()
    with pytest.raises(ConfigError, match=told):
        ModelTarget(model=model).check()
    with pytest.raises(ConfigError, match="doesn't chat"):
        evaluate([{"output": "x"}], "toxicity", judge=model, ledger=None)


@pytest.mark.parametrize(
    "judge",
    [
        ModelJudge("openai/gpt-5.1", api_key="k"),
        ModelJudge("openrouter/qwen/qwen3-coder:free", api_key="k"),
        ModelJudge("openai/model-of-tomorrow", api_key="k"),
        ModelJudge("openrouter/typesafe/jev-1.14", api_key="k", prices=(0.04, 0)),
        ModelJudge("openai/whisper-1", base_url="http://127.0.0.1:1/v1"),
        EmbeddingModel("openai/text-embedding-3-small", api_key="k"),
    ],
    ids=lambda judge: judge.identity,
)
def test_a_model_that_may_write_text_is_ready(judge: ModelJudge) -> None:
    judge.check()


@pytest.mark.parametrize(
    "model",
    [
        "openrouter/google/gemini-2.5-flash-image",
        "openrouter/openai/gpt-5-image",
        "openai/gpt-4o-audio-preview",
        "openai/gpt-oss-safeguard-20b",
        "groq/meta-llama/llama-guard-4-12b",
        "mistral/voxtral-small-24b-2507",
        "openai/gpt-5.1",
        "ollama/olive:7b",
        "vllm/my-live-model",
        "vllm/imaginary",
    ],
)
def test_a_name_that_may_be_of_a_model_that_chats_refuses_none(model: str) -> None:
    assert other_kind(model) == ""


def test_a_model_of_ones_own_may_have_any_name() -> None:
    ModelJudge("vllm/reranker", base_url="http://127.0.0.1:1/v1").check()
    ModelJudge("ollama/whisper", prices=(0, 0)).check()

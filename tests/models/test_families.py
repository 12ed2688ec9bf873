"""The temperature at which a model judges: 0, unless its vendor recommends another one."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from evalstone import ModelJudge, parse_judge
from evalstone.models.families import FAMILIES, family_of, lineage_of
from evalstone.models.model import LanguageModel
from evalstone.questions import ListClaims
from evalstone.targets.model import ModelTarget
from tests.serving import obliging, serving

GEMINI = ("google/gemini-3-pro-preview", "openrouter/google/gemini-3.1-flash-lite", "google/gemini-4-argon")
QWEN = (
    "ollama/qwen3:8b",
    "vllm/Qwen/Qwen3-235B-A22B-Thinking-2507",
    "cerebras/qwen-3-32b",
    "groq/qwen/qwen3-32b",
    "vllm/Qwen/QwQ-32B",
    "vllm/ggml_qwen3-4b",
)
LATER_QWEN = ("vllm/Qwen/Qwen3.5-35B-A3B", "openrouter/qwen/qwen3.6-plus")
R1 = (
    "together/deepseek-ai/DeepSeek-R1",
    "ollama/deepseek-r1:14b",
    "vllm/deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "openrouter/deepseek/deepseek-r1-0528-qwen3-8b",
)
DEEPSEEK = ("deepseek/deepseek-reasoner", "deepseek/deepseek-v4-pro", "openrouter/deepseek/deepseek-v4-flash")
OTHERS = (
    "openai/gpt-5.1",
    "openai/o3",
    "anthropic/claude-sonnet-4-5",
    "google/gemini-2.5-pro",
    "deepseek/deepseek-chat",
    "together/deepseek-ai/DeepSeek-V3.1",
    "vllm/deepseek-ai/DeepSeek-Prover-V2",
    "vllm/Qwen/Qwen2.5-7B-Instruct",
    "vllm/Qwen/Qwen3-30B-A3B-Instruct-2507",
    "ollama/qwen3-coder:30b",
    "vllm/mine",
)


@pytest.mark.parametrize(
    ("model", "temperature"),
    [
        *((model, None) for model in (*GEMINI, *DEEPSEEK)),
        *((model, 0.6) for model in (*QWEN, *R1)),
        *((model, 1.0) for model in LATER_QWEN),
        *((model, 0.0) for model in OTHERS),
    ],
)
def test_a_model_judges_at_the_temperature_that_its_vendor_recommends(model: str, temperature: float | None) -> None:
    judge = ModelJudge(model)
    assert judge.temperature == temperature
    assert judge.settings_for(ListClaims(text="x")).temperature == temperature
    assert (family_of(model) is None) == (temperature == 0)
    assert ModelJudge(model, temperature=0.3).temperature == 0.3


def test_the_temperature_of_a_family_is_in_the_identity_and_0_too() -> None:
    assert ModelJudge(GEMINI[0]).identity == f"{GEMINI[0]}(temperature=None)"
    assert ModelJudge(QWEN[0]).identity == f"{QWEN[0]}(temperature=0.6)"
    assert ModelJudge(QWEN[0], temperature=0).identity == f"{QWEN[0]}(temperature=0)"
    assert ModelJudge("vllm/mine", temperature=0).identity == ModelJudge("vllm/mine").identity == "vllm/mine"
    for judge in (ModelJudge(GEMINI[0]), ModelJudge(GEMINI[0], temperature=0), ModelJudge(R1[0])):
        assert parse_judge(judge.identity) == judge
        assert dataclasses.replace(judge, seed=1).temperature == judge.temperature
    assert ModelJudge(GEMINI[0], temperature=None) == ModelJudge(GEMINI[0]) == parse_judge(GEMINI[0])


def test_a_model_whose_thinking_is_off_judges_at_0() -> None:
    assert ModelJudge(QWEN[0], reasoning_effort="none").temperature == 0
    assert ModelJudge(LATER_QWEN[0], reasoning_effort="low").temperature == 1
    assert ModelJudge(R1[0], reasoning_effort="none").temperature == 0.6
    assert ModelJudge(GEMINI[0], reasoning_effort="none").temperature is None


def test_the_server_gets_the_recommended_temperature_or_none() -> None:
    sent: list[object] = []
    for model in ("vllm/qwen3-8b", "vllm/deepseek-reasoner", "vllm/mine"):
        with serving(obliging) as server:
            asyncio.run(ModelJudge(model, base_url=server.url).answer(ListClaims(text="Ada was born in 1815.")))
            sent.append(server.requests[0].get("temperature", "absent"))
    assert sent == [0.6, "absent", 0]


def test_targets_are_called_at_the_default_of_their_provider() -> None:
    assert LanguageModel("ollama/qwen3:8b").temperature is None
    assert ModelTarget(model="ollama/qwen3:8b").name == "ollama/qwen3:8b"


def test_the_page_has_every_recommendation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judges.md").read_text("utf-8")
    for family in FAMILIES:
        sent = "not sent" if family.temperature is None else f"{family.temperature:g}"
        assert f"| {family.name} | {sent} | [{family.why}]({family.source}) |" in page


@pytest.mark.parametrize(
    ("family", "models"),
    [
        ("GPT", ("openai/gpt-5.1", "gpt-4o-mini", "chatgpt-4o-latest", "openrouter/openai/gpt-oss-120b", "openai/o3",
                 "o4-mini", "openai-decisions/gpt-6-luna")),
        ("Claude", ("anthropic/claude-sonnet-4-5", "bedrock/eu.anthropic.claude-3-haiku-20240307-v1:0", "Claude Opus")),
        ("Gemini", (*GEMINI, "gemma-3-27b-it")),
        ("Llama", ("groq/llama-3.3-70b", "meta-llama/Llama-3.1-8B-Instruct", "ollama/codellama:7b")),
        ("Qwen", (*QWEN, *LATER_QWEN)),
        ("DeepSeek", (*R1, *DEEPSEEK)),
        ("Mistral", ("mistral/mistral-large-latest", "mistralai/Mixtral-8x7B", "mistral/codestral-2508")),
        ("Phi", ("ollama/phi4", "microsoft/Phi-3.5-mini-instruct")),
        ("Jev", ("typesafe/jev-latest",)),
        ("", ("ollama/x", "mistral/own-model", "systemone/sparrow", "marco-o1", "EleutherAI/gpt-neox-20b", "yolo3",
              "", "dolphin")),
    ],
)  # fmt: skip
def test_the_family_of_a_model_follows_from_its_name(family: str, models: tuple[str, ...]) -> None:
    assert {model: lineage_of(model) for model in models} == dict.fromkeys(models, family)

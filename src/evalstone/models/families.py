"""What a model's name says: its family, the temperature that its vendor recommends, and whether it chats at all.

A temperature of "auto", the default of judges, is 0. Some reasoning models degrade or loop there, and their vendors say
so.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from evalstone.models.catalog import PROVIDERS, split_model


@dataclass(frozen=True)
class Family:
    """Models that share a recommendation."""

    name: str
    models: re.Pattern[str]
    """Matches the models' names, in lower case."""
    temperature: float | None
    """The recommended temperature; None is the provider's default."""
    why: str
    source: str
    optional: bool = True
    """Whether the models think only if they are asked to, so that a reasoning_effort of "none" leaves them at 0."""


FAMILIES = (
    Family(
        "Gemini 3 and later",
        re.compile(r"(?<![a-z])gemini-[3-9](?!.*embed)"),
        None,
        "Google recommends the default: a lower one may cause loops and degrade answers",
        "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/start/gemini-3-prompting-guide",
        optional=False,
    ),
    Family(
        "DeepSeek-R1",
        re.compile(r"(?<![a-z])deepseek-?r1"),
        0.6,
        "DeepSeek recommends 0.6: a lower one repeats endlessly",
        "https://github.com/deepseek-ai/DeepSeek-R1#usage-recommendations",
        optional=False,
    ),
    Family(
        "Qwen3.5 and later",
        re.compile(r"(?<![a-z])qwen-?(?:3\.[5-9]|[4-9])(?!.*(?:instruct|coder|embed|rerank))"),
        1.0,
        "Qwen recommends 1 for thinking",
        "https://huggingface.co/Qwen/Qwen3.5-35B-A3B#best-practices",
    ),
    Family(
        "Qwen3 and QwQ",
        re.compile(r"(?<![a-z])(?:qwq|qwen-?3(?!.*(?:instruct|coder|embed|rerank|guard|max)))"),
        0.6,
        "Qwen recommends 0.6 for thinking: greedy decoding degrades answers and repeats endlessly",
        "https://huggingface.co/Qwen/Qwen3-8B#best-practices",
    ),
    Family(
        "DeepSeek's thinking models",
        re.compile(r"(?<![a-z])deepseek-(?:reasoner|v[4-9]|flash|pro\b)"),
        None,
        "DeepSeek's API ignores the temperature of a model that thinks",
        "https://api-docs.deepseek.com/guides/thinking_mode",
    ),
)
"""The first match counts."""


@functools.lru_cache(maxsize=256)
def family_of(model: str) -> Family | None:
    """The family of a model, named provider/model; None if no recommendation is known."""
    name = split_model(model)[1].lower()
    return next((family for family in FAMILIES if family.models.search(name)), None)


def usual_temperature(model: str, reasoning_effort: str | None) -> float | None:
    """The temperature that "auto" stands for: 0, or what the model's vendor recommends."""
    family = family_of(model)
    if family is None or (family.optional and reasoning_effort == "none"):
        return 0.0
    return family.temperature


_NOT_FOR_CHATS = tuple(
    (kind, re.compile(rf"(?<![a-z])(?:{names})(?![a-z])"))
    for kind, names in {
        "an embedding model": r"embed(?:ding|der|dings)?|bge-(?:m3|small|base|large)",
        "a decision model": r"jev-(?:latest|[0-9])|sparrow-decider",
        "a reranker": r"re-?rank(?:er)?",
        "a transcription model": r"whisper|transcribe",
        "a speech model": r"tts|nova-sonic|native-audio|gemini-(?:[a-z0-9.-]*-)?live",
        "a realtime model": r"realtime",
        "a moderation model": r"moderation|prompt-guard",
        "an image model": r"(?:chat)?gpt-image|dall-?e|imagen|stable-diffusion|sdxl|nova-canvas"
        r"|flux-?[.0-9]*-(?:pro|dev|schnell|kontext)",
        "a video model": r"sora-[0-9]|veo-[0-9]|nova-reel",
    }.items()
)
"""Parts of the names of models that take no chat completions. Some image and audio models do, and aren't here."""


@functools.lru_cache(maxsize=256)
def other_kind(model: str) -> str:
    """What a model is, named provider/model, if its name says that it doesn't chat; else ""."""
    name = split_model(model)[1].lower()
    return next((kind for kind, names in _NOT_FOR_CHATS if names.search(name)), "")


_LINEAGES = tuple(
    (name, re.compile(rf"(?<![a-z])(?:{models})"))
    for name, models in {
        "DeepSeek": r"deepseek",
        "Qwen": r"qwen|qwq",
        "Llama": r"(?:code|tiny|meta-?)?llama",
        "GPT": r"(?:chat)?gpt-?(?:[3-9]|oss|image|audio|realtime)|chatgpt|(?<![^/])o[1-9](?![a-z0-9.])",
        "Claude": r"claude",
        "Gemini": r"gemini|gemma",
        "Mistral": r"mistral|mixtral|ministral|codestral|magistral|devstral|pixtral|voxtral",
        "Grok": r"grok",
        "Command": r"command-?[ar]|c4ai|aya",
        "Phi": r"phi-?[1-9]",
        "Nova": r"nova-(?:micro|lite|pro|premier|[2-9])",
        "GLM": r"(?:chat)?glm-?[1-9]",
        "Kimi": r"kimi|moonshot",
        "MiniMax": r"minimax",
        "Granite": r"granite",
        "Nemotron": r"nemotron",
        "Jamba": r"jamba",
        "ERNIE": r"ernie",
        "Hunyuan": r"hunyuan",
        "OLMo": r"olmo",
        "SmolLM": r"smollm",
        "Jev": r"jev-",
    }.items()
)
"""Families of models, by the beginnings of their names. The first match counts: distilled models have two names."""


@functools.lru_cache(maxsize=1024)
def lineage_of(model: str) -> str:
    """The family of models that a model belongs to by its name, such as GPT for `openai/gpt-5.1` and `gpt-4o-mini`; ""
    if it isn't known. Judges may favor answers of their own family."""
    first, slash, rest = model.lower().partition("/")
    name = rest if slash and first in PROVIDERS else model.lower()  # no family of `ollama/NAME` for its provider
    return next((family for family, names in _LINEAGES if names.search(name)), "")

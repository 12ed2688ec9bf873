"""Where the models of each provider are reached, and which environment variable holds the key."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from evalstone.errors import ConfigError, unknown


@dataclass(frozen=True)
class Provider:
    """A provider of models.

    base_url: of its OpenAI-compatible endpoint; empty when it has none and is reached through pydantic-ai.
    key: the environment variable with the key; empty when none is needed.
    base_url_from: environment variables that, when set, replace base_url.
    """

    base_url: str = ""
    key: str = ""
    base_url_from: tuple[str, ...] = ()


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(key="ANTHROPIC_API_KEY"),
    "bedrock": Provider(),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": Provider(key="CO_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": Provider(key="GOOGLE_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": Provider("http://127.0.0.1:11434/v1", base_url_from=("OLLAMA_BASE_URL",)),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": Provider("http://127.0.0.1:8000/v1", base_url_from=("VLLM_BASE_URL",)),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
}


@functools.lru_cache(maxsize=256)
def split_model(name: str) -> tuple[str, str]:
    """`openai/gpt-5.1` as provider and model. Raises ConfigError for an unknown provider or a name without a slash."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise ConfigError(f"a model is named provider/model, such as openai/gpt-5.1, not {name!r}")
    if provider not in PROVIDERS:
        told = unknown("provider", provider, PROVIDERS)
        raise ConfigError(f"{told} (for any OpenAI-compatible server: vllm/{model} with a base_url)")
    return provider, model

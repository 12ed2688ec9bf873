"""What a provider of models is: one way to get a completion, and a table of those that are known."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from evalstone.errors import ConfigError, unknown
from evalstone.types import NO_USAGE, Usage

SETTINGS = ("temperature", "seed", "max_tokens", "reasoning_effort", "logprobs", "headers")
"""The settings that not every provider takes."""


@dataclass(frozen=True)
class ProviderInfo:
    """Where the models of a provider are reached.

    base_url: its OpenAI-compatible endpoint; empty if it is reached through pydantic-ai. key: the environment variable
    that holds the key; empty if none is needed. base_url_from: environment variables that replace `base_url`.
    unsupported: settings that it can't take.
    """

    base_url: str = ""
    key: str = ""
    base_url_from: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


PROVIDERS: Mapping[str, ProviderInfo] = {
    "anthropic": ProviderInfo(key="ANTHROPIC_API_KEY", unsupported=("seed", "logprobs")),
    "bedrock": ProviderInfo(unsupported=("seed", "logprobs")),
    "cerebras": ProviderInfo("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": ProviderInfo(key="CO_API_KEY", unsupported=("reasoning_effort", "logprobs", "headers")),
    "deepseek": ProviderInfo("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ProviderInfo("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": ProviderInfo(key="GOOGLE_API_KEY", unsupported=("logprobs",)),
    "groq": ProviderInfo("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llamacpp": ProviderInfo("http://127.0.0.1:8080/v1"),
    "lmstudio": ProviderInfo("http://127.0.0.1:1234/v1"),
    "mistral": ProviderInfo("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": ProviderInfo("http://127.0.0.1:11434/v1", base_url_from=("OLLAMA_BASE_URL",)),
    "openai": ProviderInfo("https://api.openai.com/v1", "OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "openrouter": ProviderInfo("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": ProviderInfo("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": ProviderInfo("http://127.0.0.1:8000/v1", base_url_from=("VLLM_BASE_URL",)),
    "xai": ProviderInfo("https://api.x.ai/v1", "XAI_API_KEY"),
}


@functools.lru_cache(maxsize=256)
def split_model(name: str) -> tuple[str, str]:
    """`openai/gpt-5.1` as provider and model. Raises ConfigError for an unknown provider or a name without a slash."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise ConfigError(f"a model is named provider/model, such as openai/gpt-5.1, not {name!r}")
    if provider not in PROVIDERS:
        message = unknown("provider", provider, PROVIDERS)
        raise ConfigError(f"{message} (for any OpenAI-compatible server: vllm/{model} with a base_url)")
    return provider, model


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ReplySchema:
    """The JSON schema that a reply must have. name: of the kind of question."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ModelSettings:
    """The settings of one request; None leaves a setting to the provider.

    logprobs: return the probabilities of the reply's tokens. top_logprobs: and of this many alternatives to each.
    """

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    top_logprobs: int | None = None


@dataclass(frozen=True)
class Completion:
    """A model's raw reply.

    complete: False if the model was stopped before its end. tokens: the reply's tokens with their probabilities, where
    the provider returns them; confidence and alternatives are read from them, unless they are given.
    """

    text: str
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    confidence: float | None = None
    complete: bool = True
    alternatives: Mapping[str, float] | None = None
    tokens: Sequence[Mapping[str, Any]] = ()


class Provider(ABC):
    """One model at one provider.

    What it can't take of the settings is in its `ProviderInfo`, and is refused before a run.
    """

    @abstractmethod
    async def complete(
        self, messages: Sequence[ChatMessage], json_schema: ReplySchema | None, settings: ModelSettings
    ) -> Completion:
        """Send one request.

        Raises:
            TransientError: another attempt may succeed.
            JudgeDeclined: the model declined to reply.
            ProviderError: the provider refused the request for good, or sent no completion.
            ConfigError: the key or the model's name is wrong.
        """

    @property
    def connection(self) -> object | None:
        """What it shares with other models on the running loop, so that warnings are counted once."""
        return None

    def warnings(self) -> Mapping[str, int]:
        """Counts of the errors that were retried on the running loop so far."""
        return {}

    def opened(self) -> AbstractAsyncContextManager[object]:
        """A context that holds its connections open."""
        return nullcontext()


FORM_WORDS = ("response_format", "json_schema")
_OF_FORM = (*FORM_WORDS, "schema", "grammar")


class ModelCapabilities:
    """What an endpoint turned out to refuse in requests to one model, and is not sent again.

    Endpoints differ in how they can be made to answer in JSON. The forms are tried from the strictest on: a JSON
    schema, JSON mode with the schema beside it (llama.cpp, Together, Fireworks), JSON mode, and the prompt alone, which
    asks for the object in words in any case.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()
        # By kind of question: a schema that is too much for an endpoint must not take the schema from the others.
        self._forms: Counter[str] = Counter()

    def response_format(self, wanted: ReplySchema | None) -> Mapping[str, Any] | None:
        """The strictest form that is left to ask for JSON; None for the prompt alone."""
        if wanted is None:
            return None
        match self._forms[wanted.name]:
            case 0:
                schema = {"name": wanted.name, "strict": True, "schema": wanted.schema}
                return {"type": "json_schema", "json_schema": schema}
            case 1:
                return {"type": "json_object", "schema": wanted.schema}
            case 2:
                return {"type": "json_object"}
            case _:
                return None

    def learn(self, kind: str, payload: Mapping[str, Any], status: int, message: str) -> bool:
        """Leave out what a refusal of this payload names. Returns whether asking again makes sense."""
        if status not in (400, 422) and status < 500:
            return False
        form = payload.get("response_format")
        if form is not None and any(word in message for word in _OF_FORM):
            # Of many requests in flight, the late ones are refused for what was given up already.
            place = 0 if form["type"] == "json_schema" else 1 if "schema" in form else 2
            self._forms[kind] = max(self._forms[kind], place + 1)
            return True
        for name in SETTINGS:
            if name in payload and name in message:
                self.refused |= {name, "top_logprobs"} if name == "logprobs" else {name}
                return True
        return False

    def to_dict(self) -> dict[str, Any]:
        """All of it as data, for another process."""
        return {"settings": sorted(self.refused), "forms": dict(self._forms)}

    def update(self, data: Mapping[str, Any]) -> None:
        """Add what another process learned."""
        self.refused |= set(data.get("settings", ()))
        for kind, form in data.get("forms", {}).items():
            self._forms[kind] = max(self._forms[kind], form)

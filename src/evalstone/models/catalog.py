"""The known providers of models, and how their models are reached."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from evalstone._core.addresses import of_kind
from evalstone._core.display import is_line
from evalstone._core.plugins import JUDGES, Plugin, Plugins
from evalstone._core.plugins import PROVIDERS as GROUP
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, invalid, unknown

CHAT = "evalstone.models.chat_completions:ChatCompletions"
"""The protocol of OpenAI-compatible endpoints: chat completions, and embeddings."""
LIBRARY = "evalstone.models.pydantic_ai:PydanticAI"
"""The protocols that pydantic-ai speaks (the extra `providers`)."""
SYSTEM_ONE = "evalstone.models.systemone:SystemOne"
"""TypeSafe's protocol of decision models."""
SETTINGS = ("temperature", "seed", "max_tokens", "reasoning_effort", "logprobs")
"""Settings that some endpoints refuse."""


@dataclass(frozen=True)
class ProviderInfo(metaclass=NamesArguments):
    """How to reach the models of a provider.

    Raises ConfigError for an unknown name in `unsupported`.
    """

    base_url: str = ""
    """The endpoint; empty if a library knows it."""
    key: str = ""
    """The environment variable with the API key; empty if no key is needed."""
    base_url_from: tuple[str, ...] = ()
    """Environment variables that override `base_url`."""
    protocol: str = CHAT
    """The `ChatProvider` or `DecisionProvider` that sends requests, as `module:class`. It is imported when a model is
    first used."""
    decides: bool = False
    """Whether the models decide: their protocol is a `DecisionProvider`, and they write no text."""
    unsupported: tuple[str, ...] = ()
    """Settings that the protocol doesn't support: of `SETTINGS`, and `headers`."""
    library_url_from: tuple[str, ...] = ()
    """Environment variables from which the provider's library reads its endpoint."""
    library_keys: tuple[str, ...] = ()
    """Environment variables from which the provider's library reads other keys."""

    def __post_init__(self) -> None:
        known = (*SETTINGS, "headers")
        for name in self.unsupported:
            if name not in known:
                raise ConfigError(unknown("setting in unsupported", name, known))


PROVIDERS: Mapping[str, ProviderInfo] = {
    "anthropic": ProviderInfo(
        key="ANTHROPIC_API_KEY",
        protocol=LIBRARY,
        unsupported=("seed", "logprobs"),
        library_url_from=("ANTHROPIC_BASE_URL",),
        library_keys=("ANTHROPIC_AUTH_TOKEN",),
    ),
    "bedrock": ProviderInfo(
        protocol=LIBRARY,
        unsupported=("seed", "logprobs"),
        library_url_from=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
        library_keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
    ),
    "cerebras": ProviderInfo("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": ProviderInfo(
        key="CO_API_KEY",
        protocol=LIBRARY,
        unsupported=("reasoning_effort", "logprobs", "headers"),
        library_url_from=("CO_BASE_URL",),
    ),
    "deepseek": ProviderInfo("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ProviderInfo("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": ProviderInfo(
        key="GOOGLE_API_KEY",
        protocol=LIBRARY,
        unsupported=("logprobs",),
        library_url_from=("GOOGLE_GEMINI_BASE_URL",),
        library_keys=("GEMINI_API_KEY",),
    ),
    "groq": ProviderInfo("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llamacpp": ProviderInfo("http://127.0.0.1:8080/v1"),
    "lmstudio": ProviderInfo("http://127.0.0.1:1234/v1"),
    "mistral": ProviderInfo("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": ProviderInfo("http://127.0.0.1:11434/v1", base_url_from=("OLLAMA_BASE_URL",)),
    "openai": ProviderInfo("https://api.openai.com/v1", "OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "openai-decisions": ProviderInfo(
        "https://api.openai.com",
        "OPENAI_API_KEY",
        protocol="evalstone.models.openai_decisions:OpenAIDecisions",
        decides=True,
    ),
    "openrouter": ProviderInfo("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "systemone": ProviderInfo("http://127.0.0.1:8080", protocol=SYSTEM_ONE, decides=True),
    "together": ProviderInfo("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "typesafe": ProviderInfo("https://api.typesafe.ai", "TYPESAFE_API_KEY", protocol=SYSTEM_ONE, decides=True),
    "vllm": ProviderInfo("http://127.0.0.1:8000/v1", base_url_from=("VLLM_BASE_URL",)),
    "xai": ProviderInfo("https://api.x.ai/v1", "XAI_API_KEY"),
}

PLUGINS = Plugins(GROUP, PROVIDERS, beside=JUDGES)
"""The providers of installed packages. Each is a `ProviderInfo`."""


@functools.lru_cache(maxsize=256)
def split_model(name: str) -> tuple[str, str]:
    """Split `openai/gpt-5.1` into provider and model. Raises ConfigError for an unknown provider, a missing slash, or a
    name that isn't one line of visible text: answers are stored with it."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise ConfigError(f"a model is named provider/model, such as openai/gpt-5.1, not {name!r}")
    if not is_provider(provider):
        raise unknown_provider(name)
    if not is_line(model):
        raise ConfigError(invalid("the name of a model", "one line of visible text", model))
    return provider, model


def is_provider(name: str) -> bool:
    """Whether there is a provider of this name. Raises ConfigError if several plug-ins add it."""
    return name in PROVIDERS or PLUGINS.get(name) is not None


def unknown_provider(name: str, others: Iterable[str] = ()) -> ConfigError:
    """The error for a model of an unknown provider. others: what else the provider may be."""
    provider, _, model = name.partition("/")
    message = unknown("provider", provider, [*PROVIDERS, *PLUGINS.names(), *others])
    return ConfigError(message, f" (for any OpenAI-compatible server: vllm/{model} with a base_url)")


def provider_info(model: str) -> ProviderInfo:
    """How to reach a model, named provider/model. Raises ConfigError as `split_model` and `info_of` do."""
    return info_of(split_model(model)[0])


@functools.cache
def info_of(provider: str) -> ProviderInfo:
    """How to reach the models of a provider.

    Raises ConfigError for an unknown provider, for one that several plug-ins add, and for one whose plug-in can't be
    imported, or is no `ProviderInfo`.
    """
    if (known := PROVIDERS.get(provider)) is not None:
        return known
    plugin = PLUGINS.get(provider)
    if plugin is None:
        raise ConfigError(unknown("provider", provider, [*PROVIDERS, *PLUGINS.names()]))
    return added(plugin)


def added(plugin: Plugin) -> ProviderInfo:
    """What a plug-in adds. Raises ConfigError if its name is taken, or it can't be imported or is no `ProviderInfo`."""
    PLUGINS.check(plugin)
    info = plugin.load()
    if not isinstance(info, ProviderInfo):
        raise ConfigError(of_kind(str(plugin), "a ProviderInfo", "models.ProviderInfo", info))
    return info


def url_parts(url: str) -> SplitResult:
    """The parts of a URL. Raises ValueError if its host or port is invalid."""
    parts = urlsplit(url)
    (parts.hostname or "").encode("idna")
    if parts.port == 0 or any(map(str.isspace, url)):
        raise ValueError("white space, or port 0")
    return parts

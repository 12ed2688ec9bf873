"""What a provider of models is: one way to get a completion, and a table of those that are known.

What an answer costs and how much a model takes in is as the genai-prices package has it; nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from evalstone.errors import ConfigError, ProviderError, ProviderTimeout, unknown
from evalstone.questions.base import Question
from evalstone.types import NO_USAGE, Usage

SMALLEST_TIER = 16_000
REFUSALS = 10
PROBE = "Reply with the word ok."
BATCH_PRICE = 0.5
"""What a batch costs, as a share of the price of the same requests sent one by one; OpenAI and Anthropic say so."""


@dataclass(frozen=True)
class ProviderInfo:
    """Where the models of a provider are reached.

    base_url: its OpenAI-compatible endpoint; empty if it is reached through pydantic-ai. key: the environment variable
    that holds the key; empty if none is needed. base_url_from: environment variables that replace `base_url`.
    unsupported: settings that it can't take. library_url_from: environment variables that send the provider's library
    to another endpoint. library_keys: those that it takes further keys from.
    """

    base_url: str = ""
    key: str = ""
    base_url_from: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    library_url_from: tuple[str, ...] = ()
    library_keys: tuple[str, ...] = ()


PROVIDERS: Mapping[str, ProviderInfo] = {
    "anthropic": ProviderInfo(
        key="ANTHROPIC_API_KEY",
        unsupported=("seed", "logprobs"),
        library_url_from=("ANTHROPIC_BASE_URL",),
        library_keys=("ANTHROPIC_AUTH_TOKEN",),
    ),
    "bedrock": ProviderInfo(
        unsupported=("seed", "logprobs"),
        library_url_from=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
        library_keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
    ),
    "cerebras": ProviderInfo("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": ProviderInfo(
        key="CO_API_KEY", unsupported=("reasoning_effort", "logprobs", "headers"), library_url_from=("CO_BASE_URL",)
    ),
    "deepseek": ProviderInfo("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ProviderInfo("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "google": ProviderInfo(
        key="GOOGLE_API_KEY",
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


def url_parts(url: str) -> SplitResult:
    """The parts of a URL. Raises ValueError where its host or port can't be read."""
    parts = urlsplit(url)
    (parts.hostname or "").encode("idna")
    if parts.port == 0 or any(map(str.isspace, url)):
        raise ValueError("it has a blank, or the port 0")
    return parts


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


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
    the provider returns them; confidence and alternatives are read from them, unless they are given. refused_settings:
    those that were to be sent and were not. model: the one that replied, as the provider names it.
    """

    text: str
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    confidence: float | None = None
    complete: bool = True
    alternatives: Mapping[str, float] | None = None
    tokens: Sequence[Mapping[str, Any]] = ()
    refused_settings: tuple[str, ...] = ()
    model: str = ""


class AccessRefused(ConfigError):
    """HTTP 403 or 404: the key, the model's name or the base URL is wrong, or this one request is not let through."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}; check the key, the model's name and the base URL")
        self.message = message

    def __reduce__(self) -> tuple[type[AccessRefused], tuple[str]]:
        return type(self), (self.message,)


def request_timeout(host: str, timeout: float, max_tokens: int | None, *, busy: bool = False) -> ProviderTimeout:
    """The error of a request that had no answer in time. The same request would take as long, and be paid twice.

    busy: other requests were in flight.
    """
    shorter = "set max_tokens" if max_tokens is None else f"lower max_tokens (now {max_tokens})"
    message = f"{host} gave no answer within {timeout:g} s: raise timeout (now {timeout:g} s) or {shorter}"
    if busy:
        message += "; it had other requests at the same time, so a lower concurrency may help"
    return ProviderTimeout(message, cost=None)


class Connection:
    """What the models behind one endpoint share on one event loop. Enter it for as long as it is used."""

    def __init__(self) -> None:
        self._trust: Counter[str] = Counter()
        self._checks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def accepted(self, model: str) -> None:
        """Record that the endpoint answered, so that it takes the key and the model."""
        self._trust[model] = REFUSALS

    async def refused(
        self, model: str, error: AccessRefused, probe: Callable[[], Awaitable[tuple[Usage, float | None]]]
    ) -> ProviderError:
        """The error of a question that an endpoint refuses though it takes the key and the model.

        Gateways refuse single texts so, such as an example of SQL. If the endpoint has not answered yet, or not since
        ten refusals, a short probe tells; its ConfigError says that the key or the model is wrong.
        """
        usage, cost = NO_USAGE, 0.0
        async with self._checks[model]:
            if not self._trust[model]:
                usage, cost = await probe()
                self.accepted(model)
            self._trust[model] -= 1
        message = f"{error.message}; other questions with this key and model are answered, so the text may be blocked"
        return ProviderError(message, usage=usage, cost=cost)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close what nobody uses any more."""


class Provider(ABC):
    """One model at one provider.

    What it can't take of the settings is in its `ProviderInfo`, and is refused before a run.
    """

    connection: Connection

    @abstractmethod
    async def complete(
        self, messages: Sequence[ChatMessage], question: Question[Any], settings: ModelSettings
    ) -> Completion:
        """Send one request, which asks for a reply in the form that the question says.

        Raises:
            TransientError: another attempt may succeed.
            JudgeDeclined: the model declined to reply.
            ProviderError: the provider refused the request for good, or sent no completion.
            ConfigError: the key or the model's name is wrong; not where only this question is refused.
        """


_UNLISTED = frozenset(name for name, info in PROVIDERS.items() if info.base_url and not info.key)
"""Servers of one's own: no list has them, and to look takes a third of a second."""


def cost_of(usage: Usage, provider: str, model: str) -> float | None:
    """US dollars for one reply; None when the price of the model is not known."""
    if provider in _UNLISTED:
        return None
    if usage.input < SMALLEST_TIER:
        rates = _rates(provider, model)
        if rates is None:
            return None
        fresh, cached, output = rates
        return (usage.input - usage.cached) * fresh + usage.cached * cached + usage.output * output
    return _listed(provider, model)(usage)


@functools.cache
def context_window(provider: str, model: str) -> int | None:
    """How many tokens a model takes in, question and reply together; None when it is not known."""
    if provider in _UNLISTED:
        return None
    from genai_prices import data_snapshot  # noqa: PLC0415 - a third of a second, and only paid judges need it

    try:
        return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        return None


def at_batch_price(cost: float | None) -> float | None:
    """What requests of this price cost as a batch."""
    return None if cost is None else cost * BATCH_PRICE


@functools.cache
def _rates(provider: str, model: str) -> tuple[float, float, float] | None:
    """Dollars a token for fresh input, cached input and output, below the smallest tier that prices change at."""
    priced = _listed(provider, model)
    costs = [priced(Usage(1000, 0)), priced(Usage(1000, 0, 1000)), priced(Usage(0, 1000))]
    fresh, cached, output = (None if cost is None else cost / 1000 for cost in costs)
    if fresh is None or cached is None or output is None:
        return None
    return fresh, cached, output


@functools.cache
def _listed(provider: str, model: str) -> Callable[[Usage], float | None]:
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid judges need it

    def priced(usage: Usage) -> float | None:
        tokens = genai_prices.Usage(
            input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached
        )
        try:
            return float(genai_prices.calc_price(tokens, model_ref=model, provider_id=provider).total_price)
        except LookupError:
            return None

    return priced

"""The base class of providers, and the table of known ones.

Prices and context windows come from the genai-prices package. Nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, urlsplit

from evalstone.errors import ConfigError, JudgeRefused, ProviderError, ProviderTimeout, unknown
from evalstone.questions.base import Question
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

SMALLEST_TIER = 16_000
"""Input tokens below which prices per token are constant."""
REFUSALS = 10
"""Refused requests in a row after which the key and the model are checked again."""
PROBE = "Reply with the word ok."
BATCH_PRICE = 0.5
"""The price of a batch, as a share of the regular price, at OpenAI and Anthropic."""


@dataclass(frozen=True)
class ProviderInfo:
    """How to reach the models of a provider."""

    base_url: str = ""
    """The OpenAI-compatible endpoint; empty if the provider is called through pydantic-ai."""
    key: str = ""
    """The environment variable with the API key; empty if no key is needed."""
    base_url_from: tuple[str, ...] = ()
    """Environment variables that override `base_url`."""
    unsupported: tuple[str, ...] = ()
    """Settings that the provider doesn't support."""
    library_url_from: tuple[str, ...] = ()
    """Environment variables from which the provider's library reads its endpoint."""
    library_keys: tuple[str, ...] = ()
    """Environment variables from which the provider's library reads other keys."""


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
    """Split `openai/gpt-5.1` into provider and model. Raises ConfigError for an unknown provider or a missing slash."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise ConfigError(f"a model is named provider/model, such as openai/gpt-5.1, not {name!r}")
    if provider not in PROVIDERS:
        message = unknown("provider", provider, PROVIDERS)
        raise ConfigError(f"{message} (for any OpenAI-compatible server: vllm/{model} with a base_url)")
    return provider, model


def url_parts(url: str) -> SplitResult:
    """The parts of a URL. Raises ValueError if its host or port is invalid."""
    parts = urlsplit(url)
    (parts.hostname or "").encode("idna")
    if parts.port == 0 or any(map(str.isspace, url)):
        raise ValueError("white space, or port 0")
    return parts


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class ModelSettings:
    """The settings of one request. None uses the provider's default.

    logprobs: request token probabilities. top_logprobs: the number of alternatives requested for each token.
    """

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    top_logprobs: int | None = None


@dataclass(frozen=True)
class Completion:
    """A model's raw reply."""

    text: str
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; None if unknown."""
    confidence: float | None = None
    """The model's confidence, in [0, 1]. If there are `tokens`, it is computed from them."""
    complete: bool = True
    """False if the reply was truncated."""
    alternatives: Mapping[str, float] | None = None
    """The probabilities of the question's labels. If there are `tokens`, they are computed from them."""
    tokens: Sequence[Mapping[str, Any]] = ()
    """The tokens of the reply with their probabilities, if the provider returns them."""
    refused_settings: tuple[str, ...] = ()
    """Settings that the endpoint refuses, so they were not sent."""
    model: str = ""
    """The model that replied, as named by the provider."""
    read_tokens: int = 0
    """The tokens of the prompt that the model read, as the provider counts them, cached ones included; 0 if unknown."""


NO_KEY = "no key was sent: set api_key of the judge"
"""What to do about HTTP 401 for a request without a key."""
NO_CREDIT = "add credit to the account or raise its limit; if it reserves whole replies, set max_tokens"
"""What to do if the account or the key has no credit left. Routers refuse what the longest reply might cost."""


class CreditRefused(JudgeRefused):
    """The endpoint wants to be paid first."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}; {NO_CREDIT}")
        self.message = message

    def __reduce__(self) -> tuple[type[CreditRefused], tuple[str]]:
        return type(self), (self.message,)


class AccessRefused(JudgeRefused):
    """HTTP 403 or 404: the key, model or base URL is wrong, or this one request was blocked."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(f"{message}; check the key, the model's name and the base URL")
        self.message, self.status = message, status

    def __reduce__(self) -> tuple[type[AccessRefused], tuple[str, int]]:
        return type(self), (self.message, self.status)


def request_timeout(host: str, timeout: float, max_tokens: int | None, *, busy: bool = False) -> ProviderTimeout:
    """The error of a request that timed out. It isn't retried: it would time out again, and might be charged twice.

    busy: whether other requests were in flight.
    """
    shorter = "set max_tokens" if max_tokens is None else f"lower max_tokens (now {max_tokens})"
    message = f"{host} gave no answer within {timeout:g} s: raise timeout (now {timeout:g} s) or {shorter}"
    if busy:
        message += "; other requests were in flight, so a lower concurrency may help"
    return ProviderTimeout(message, cost=None)


class Connection:
    """State shared by all models behind an endpoint, on one event loop. Enter it while it is in use."""

    def __init__(self) -> None:
        self._refusals_left: Counter[str] = Counter()
        self._checks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def accepted(self, model: str) -> None:
        """Record that the endpoint answered, so its key and model are right."""
        self._refusals_left[model] = REFUSALS

    async def refused(
        self, model: str, error: AccessRefused, probe: Callable[[], Awaitable[tuple[Usage, float | None]]]
    ) -> ProviderError:
        """The error of a single question that an endpoint blocks, although the key and the model are right.

        Gateways block some texts, such as SQL. If the endpoint hasn't answered any request yet, or none since ten
        refusals, a short probe checks the key and the model. Raises the probe's JudgeRefused if one of them is wrong.
        """
        usage, cost = NO_USAGE, 0.0
        async with self._checks[model]:
            if not self._refusals_left[model]:
                usage, cost = await probe()
                self.accepted(model)
            self._refusals_left[model] -= 1
        message = f"{error.message}; other questions with this key and model are answered, so the text may be blocked"
        return ProviderError(message, usage=usage, cost=cost)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection once nobody uses it."""


_cached_beginning: ContextVar[str] = ContextVar("cached_beginning", default="")


@contextmanager
def caching(beginning: str) -> Generator[None]:
    """Inside this context, requests whose user message has this beginning ask the provider to cache it, where that has
    to be asked for."""
    token = _cached_beginning.set(beginning)
    try:
        yield
    finally:
        _cached_beginning.reset(token)


def cached_beginning() -> str:
    """The beginning of the user message that the provider should cache; empty if there is none."""
    return _cached_beginning.get()


class Provider(ABC):
    """One model of one provider. Settings that it doesn't support are in its `ProviderInfo`."""

    connection: Connection

    @abstractmethod
    async def complete(
        self, messages: Sequence[ChatMessage], question: Question[Any], settings: ModelSettings
    ) -> Completion:
        """Send one request. It asks for a reply in the question's format.

        Raises:
            TransientError: Another attempt may succeed.
            JudgeDeclined: The model declined to reply.
            ProviderError: The provider refused the request permanently, or sent no completion.
            JudgeRefused: The key or the model is wrong. A request that is blocked by itself is a ProviderError.
        """


_UNLISTED = frozenset(name for name, info in PROVIDERS.items() if info.base_url and not info.key)
"""Self-hosted servers: genai-prices doesn't list them, and importing it takes a third of a second."""


def cost_of(usage: Usage, provider: str, model: str) -> float | None:
    """The cost of one reply in US dollars; None if the model's price is unknown."""
    if provider in _UNLISTED:
        return None
    if usage.input < SMALLEST_TIER:
        rates = _rates(provider, model)
        if rates is None:
            return None
        uncached, cached, output = rates
        return (usage.input - usage.cached) * uncached + usage.cached * cached + usage.output * output
    return _listed(provider, model)(usage)


@functools.cache
def cache_write_price(provider: str, model: str) -> float:
    """US dollars that a token costs more if the provider writes it to its prompt cache; 0 if unknown."""
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid judges need it

    plain, written = (
        genai_prices.Usage(input_tokens=1000),
        genai_prices.Usage(input_tokens=1000, cache_write_tokens=1000),
    )
    try:
        costs = [
            genai_prices.calc_price(it, model_ref=model, provider_id=provider).total_price for it in (plain, written)
        ]
    except LookupError:
        return 0.0
    return max(0.0, float(costs[1] - costs[0]) / 1000)  # some list only what is added


@functools.cache
def context_window(provider: str, model: str) -> int | None:
    """The context window of a model in tokens, including the reply; None if unknown."""
    info = _listed_model(provider, model)
    return None if info is None else info.context_window


@functools.cache
def writes_no_text(provider: str, model: str) -> bool:
    """Whether genai-prices lists a price for what a model reads, but none for what it writes.

    These are embedding models, decision models, transcription and speech. Models without any price may be free.
    """
    info = _listed_model(provider, model)
    prices = {} if info is None else vars(info.get_prices(datetime.now(UTC)))
    listed = [name for name, price in prices.items() if price is not None and not name.startswith("_")]
    return bool(listed) and not any(name.startswith(("output", "requests")) for name in listed)


def _listed_model(provider: str, model: str) -> ModelInfo | None:
    """What genai-prices lists of a model."""
    if provider in _UNLISTED:
        return None
    from genai_prices import data_snapshot  # noqa: PLC0415 - a third of a second, and only paid judges need it

    try:
        return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1]
    except LookupError:
        return None


def at_batch_price(cost: float | None) -> float | None:
    """The cost of a request as a part of a batch."""
    return None if cost is None else cost * BATCH_PRICE


@functools.cache
def _rates(provider: str, model: str) -> tuple[float, float, float] | None:
    """US dollars per uncached input, cached input and output token, for requests below the smallest price tier."""
    price = _listed(provider, model)
    costs = [price(Usage(1000, 0)), price(Usage(1000, 0, 1000)), price(Usage(0, 1000))]
    uncached, cached, output = (None if cost is None else cost / 1000 for cost in costs)
    if uncached is None or cached is None or output is None:
        return None
    return uncached, cached, output


@functools.cache
def _listed(provider: str, model: str) -> Callable[[Usage], float | None]:
    """The price function of a model: from usage to US dollars, or to None if genai-prices doesn't list the model."""
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid judges need it

    def price(usage: Usage) -> float | None:
        tokens = genai_prices.Usage(
            input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached
        )
        try:
            return float(genai_prices.calc_price(tokens, model_ref=model, provider_id=provider).total_price)
        except LookupError:
            return None

    return price

"""Models: their settings, identity, price and secrets.

A `Model` is a value, not a connection. Judges, targets and embedders use it to reach one model of one provider.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast
from urllib.parse import urlsplit

from evalstone._core.declarations import Range, Rule, check_settings
from evalstone._core.environment import expanded, expanded_url
from evalstone._core.guards import is_list, is_mapping, is_number
from evalstone._core.json import content_hash
from evalstone._core.redaction import header_secrets, is_credential, register
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.models.catalog import CHAT, LIBRARY, provider_info, split_model, url_parts
from evalstone.models.families import other_kind, usual_temperature
from evalstone.models.limits import NO_LIMITS, Limiter, Limits, shared_limiter
from evalstone.models.prices import cache_write_price, cost_at, cost_of, writes_no_text
from evalstone.models.provider import ChatProvider, Provider, RequestSettings
from evalstone.types import Usage

P = TypeVar("P", bound=Provider)


def _are_prices(value: Any) -> bool:
    return is_list(value) and len(value) == 2 and all(is_number(price) and price >= 0 for price in value)


def _are_headers(value: Any) -> bool:
    return is_mapping(value) and all(
        isinstance(name, str) and isinstance(text, str) and _HEADER_NAME.fullmatch(name) and not _CONTROL.search(text)
        for name, text in value.items()
    )


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
_KEY = re.compile("[!-~]*")


PRICES = Rule("two numbers of 0 or more, dollars per million input and output tokens", _are_prices, tuple)
HEADERS = Rule("a mapping of names to text without line breaks or other control characters", _are_headers)


@dataclass(frozen=True)
class Model(ABC, Generic[P]):
    """A model of a provider, named `provider/model`, and how it is reached.

    Raises ConfigError for an unknown provider, and for a setting of the wrong type or out of range. `check` raises it
    for a setting that the provider doesn't support.
    """

    model: str

    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, without user name, password or query. None uses the provider's own. In
    this setting, `api_key` and `headers`, `$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign."""

    api_key: str | None = field(default=None, repr=False, compare=False)
    """The API key. None reads it from the provider's environment variable."""

    timeout: Annotated[float, Range(0, exclusive=True)] = field(default=120.0, compare=False)
    """Timeout of one request, in seconds."""

    total_timeout: Annotated[float, Range(0, exclusive=True)] = field(default=600.0, compare=False)
    """Timeout of one call, in seconds, including waits between attempts. No attempt starts after it."""

    max_reply_bytes: Annotated[int, Range(1)] = field(default=8_000_000, compare=False)
    """The maximum size of an HTTP response in bytes, compressed and decompressed. If a response is larger, the call
    fails."""

    limits: Limits = field(default=NO_LIMITS, compare=False)
    """Concurrency and rate limits. Without them, evalstone adapts to the endpoint's HTTP 429 responses."""

    prices: Annotated[tuple[float, float] | None, PRICES] = field(default=None, compare=False)
    """US dollars per million input and output tokens. None uses the prices that genai-prices lists."""

    headers: Annotated[Mapping[str, str], HEADERS] = field(default_factory=dict[str, str], repr=False, compare=False)
    """HTTP headers added to every request."""

    routing: str = field(init=False, repr=False, default="")
    """A hash of the headers that may affect routing: all except those with credentials."""

    identity_settings: ClassVar[tuple[str, ...]] = ()
    """The settings that may change what the model returns, in the order of the identity."""

    def __post_init__(self) -> None:
        check_settings(self)
        split_model(self.model)
        self.register_secrets()
        if self.base_url:
            self.check_url(expanded_url(self.base_url, self._named("base_url")))
        routes = sorted((name.lower(), text) for name, text in self.sent_headers.items() if not is_credential(name))
        if routes:
            object.__setattr__(self, "routing", content_hash(routes))

    def register_secrets(self) -> None:
        """Register the secrets, so that they are never printed or stored. The environment may have changed."""
        register(*self.secrets)

    @property
    def identity(self) -> str:
        """The model's name, and every setting that may change its answers; headers as a 128-bit hash."""
        info = provider_info(self.model)
        others = (os.environ.get(variable) for variable in info.library_url_from)
        settings = self._settings
        if (url := self.url or next(filter(None, others), "")) != info.base_url:
            parts = urlsplit(url)
            settings = (f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", *settings)
        return f"{self.model}({', '.join(settings)})" if settings else self.model

    @functools.cached_property
    def _settings(self) -> tuple[str, ...]:
        """The settings in the identity, without the URL. Cached, because every answer needs them."""
        settings: list[str] = []
        for name in self.identity_settings:
            value = getattr(self, name)
            if not self.is_usual(name, value):
                whole = isinstance(value, float) and value.is_integer()  # 1.0 and 1 are one setting
                settings.append(f"{name}={int(value) if whole else value}")
        if self.routing:
            settings.append(f"headers={self.routing}")
        return tuple(settings)

    def is_usual(self, name: str, value: Any) -> bool:
        """Whether the identity needn't name a setting, because it has its default value."""
        return value == _defaults(type(self))[name]

    @property
    def protocol(self) -> str:
        """The protocol, as `module:class`. A `base_url` replaces a library by chat completions."""
        protocol = provider_info(self.model).protocol
        return CHAT if protocol == LIBRARY and self.url else protocol

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The settings that the protocol doesn't support."""
        info = provider_info(self.model)
        return info.unsupported if self.protocol == info.protocol else ()

    @property
    def url(self) -> str:
        """The base URL of the endpoint; empty if a library knows it. Raises ConfigError for an invalid URL."""
        info = provider_info(self.model)
        url = expanded_url(self.base_url, self._named("base_url")) if self.base_url else None
        for variable in info.base_url_from:
            url = url or os.environ.get(variable)
        return _readable(url.rstrip("/")) if url else info.base_url

    @property
    def key(self) -> str:
        """The API key; empty if there is none."""
        variable = provider_info(self.model).key
        return self.own_key or (os.environ.get(variable, "") if variable else "")

    @property
    def own_key(self) -> str | None:
        """The API key in `api_key`, with its environment variables expanded; None if the setting is missing."""
        return expanded(self.api_key, self._named("api_key")) if self.api_key else self.api_key

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers, with their environment variables expanded."""
        return {name: expanded(text, self._named(f"the header {name}")) for name, text in self.headers.items()}

    def _named(self, setting: str) -> str:
        return f"{setting} of {self.model}"

    def check(self) -> None:
        """Raise ConfigError for problems that can be detected before the first request, such as a missing API key."""
        self.check_usable()
        self.check_key()

    def check_usable(self) -> None:
        """Raise ConfigError for such problems that have nothing to do with the key."""
        if self.url:
            self.check_url(self.url)
        self.check_kind()
        self.check_supported()

    def check_supported(self) -> None:
        """Raise ConfigError for a setting that the protocol doesn't support."""
        for name in self.unsupported:
            value = getattr(self, name, None)
            if value is not None and value is not False and value != {}:
                provider = split_model(self.model)[0]
                raise ConfigError(f"{provider} doesn't support {name}: remove it from the settings of {self.model}")

    def check_url(self, url: str) -> None:
        """Raise ConfigError for an unusable base URL. The error doesn't show the URL if it may contain a key."""
        if "?" in url or "#" in url:
            raise ConfigError(f"the base_url of {self.model} has a query or a fragment; use only the part up to /v1")
        if "@" in url:
            hint = "pass the key as api_key or in headers"
            raise ConfigError(f"the base_url of {self.model} has a user name or password; {hint}")
        parts = urlsplit(_readable(url))
        if parts.scheme not in ("http", "https"):
            raise ConfigError(f"base_url must start with http:// or https://, not {url!r}")
        if not parts.hostname:
            raise ConfigError(f"base_url must have a host, as in http://host:8000/v1, not {url!r}")

    def check_key(self) -> None:
        """Raise ConfigError for a missing key, or one that can't be sent. The error doesn't show its characters."""
        info = provider_info(self.model)
        if info.key and self.url in ("", info.base_url) and not self.key:
            raise ConfigError(f"{self.model} needs a key: set the environment variable {info.key}")
        if not _KEY.fullmatch(key := self.key):
            source = "api_key" if self.api_key else provider_info(self.model).key
            position = next(number for number, char in enumerate(key, start=1) if not _KEY.fullmatch(char))
            kind = "white space" if key[position - 1].isspace() else "an invalid character"
            raise ConfigError(
                f"the key of {self.model} in {source} contains {kind} at position {position} of {len(key)}"
            )

    def check_kind(self) -> None:
        """Raise ConfigError if the model is known to be of another kind."""

    def price(self, usage: Usage, written: int = 0) -> float | None:
        """The cost of these tokens in US dollars; None if the price is unknown.

        written: The input tokens that the provider wrote to its prompt cache, which may cost more.
        """
        if self.prices is not None:
            return cost_at(self.prices, usage)
        model = split_model(self.model)
        cost = cost_of(usage, *model)
        return cost if cost is None or not written else cost + written * cache_write_price(*model)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The API key, keys that the provider's library reads from the environment, and headers with credentials."""
        variables = provider_info(self.model).library_keys
        return tuple(filter(None, (self.key, *map(os.environ.get, variables), *header_secrets(self.sent_headers))))

    def opened(self) -> OpenModel[P]:
        """The model in use on the running loop: a context that holds its connections open."""
        key = (asyncio.get_running_loop(), id(self))
        return _in_use.get(key) or OpenModel(self, key)

    async def count_request(self) -> None:
        """Count an HTTP request that is sent now. Raises RequestLimitReached if `max_requests` is reached."""
        if self.limits.max_requests is not None:
            await self.limiter().count(self.identity)

    def limiter(self) -> Limiter:
        """The limiter that counts a run's requests for `max_requests`. Models of one endpoint share the others."""
        return shared_limiter(self.identity, Limits(max_requests=self.limits.max_requests))

    @property
    def request_limits(self) -> Limits:
        """The limits that models of the same endpoint share."""
        return self.limits if self.limits.max_requests is None else replace(self.limits, max_requests=None)

    @abstractmethod
    def provider(self) -> P:
        """The model's provider on the running loop."""


class OpenModel(Generic[P]):
    """A model in use on one event loop. Enter it while it is in use.

    Whoever uses the model meanwhile shares its provider and its identity. They depend on the environment, which is read
    when the first user opens the model.
    """

    def __init__(self, model: Model[P], key: tuple[asyncio.AbstractEventLoop, int]) -> None:
        self._model, self._key = model, key  # while the model is in use, no other object has its id
        self._users = 0
        self.provider, self.identity = model.provider(), model.identity
        self._limiter = None if model.limits.max_requests is None else model.limiter()

    async def __aenter__(self) -> OpenModel[P]:
        await self.provider.connection.__aenter__()
        if self._limiter is not None:
            await self._limiter.__aenter__()
        self._users += 1
        _in_use.setdefault(self._key, self)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._users -= 1
        if not self._users and _in_use.get(self._key) is self:
            del _in_use[self._key]
        if self._limiter is not None:
            await self._limiter.__aexit__(*error)
        await self.provider.connection.__aexit__(*error)

    def check_requests(self) -> None:
        """Raise RequestLimitReached if `max_requests` is reached."""
        if self._limiter is not None:
            self._limiter.check(self.identity)


_in_use: dict[tuple[asyncio.AbstractEventLoop, int], OpenModel[Any]] = {}


@dataclass(frozen=True)
class LanguageModel(Model[ChatProvider]):
    """A language model, named `provider/model`: `LanguageModel("openai/gpt-5.1", temperature=0.7)`.

    If an endpoint refuses a setting or a reply format, later requests omit it.

    Raises ConfigError as `Model` does.
    """

    temperature: Annotated[float | Literal["auto"] | None, Range(0, 2)] = None
    """"auto" is 0, or what the vendor of a reasoning model recommends (`FAMILIES`). The attribute has the result."""
    seed: int | None = None
    max_tokens: Annotated[int | None, Range(1)] = None
    reasoning_effort: str | None = None
    """How long a reasoning model thinks, as the provider names it. Like the three settings above, it is passed to the
    provider unchanged; None uses the provider's default."""

    identity_settings: ClassVar[tuple[str, ...]] = ("temperature", "seed", "max_tokens", "reasoning_effort")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature == "auto":
            taken = "temperature" not in self.unsupported
            usual = usual_temperature(self.model, self.reasoning_effort) if taken else None
            object.__setattr__(self, "temperature", usual)

    def request_settings(self, repeat: int = 0, **probabilities: Any) -> RequestSettings:
        """The settings of a request.

        Args:
            repeat: Which of several replies to the same messages, from 0; it is added to the seed.
            probabilities: The settings of token probabilities.
        """
        return RequestSettings(
            temperature=cast("float | None", self.temperature),
            seed=None if self.seed is None else self.seed + repeat,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            **probabilities,
        )

    def check(self) -> None:
        super().check()
        if (protocol := self.protocol) != CHAT:
            protocol_class(protocol, ChatProvider).check(self)

    def check_kind(self) -> None:
        """Raise ConfigError for a model that doesn't chat, by its name or its listed prices. A model with its own
        `prices` or `base_url` may be any."""
        provider, name = split_model(self.model)
        if provider_info(self.model).decides:
            raise ConfigError(f"{self.model} doesn't chat: it is a decision model; use it as a judge (DecisionJudge)")
        if self.prices is not None or self.url not in ("", provider_info(self.model).base_url):
            return
        hint = "choose a model that chats, or set prices if this one does"
        if kind := other_kind(self.model):
            raise ConfigError(f"{self.model} doesn't chat: by its name, it is {kind}; {hint}")
        if writes_no_text(provider, name):
            kinds = "embedding, decision, transcription and speech models"
            prices = f"it has a listed price for its input, but none for output, like {kinds}"
            raise ConfigError(f"{self.model} doesn't chat: {prices}; {hint}")

    def provider(self) -> ChatProvider:
        return protocol_class(self.protocol, ChatProvider)(self)


@functools.cache
def protocol_class(protocol: str, kind: type[P]) -> type[P]:
    """The class of a protocol, `module:class`. Raises ConfigError if there is none, or if it is not of this kind."""
    module, _, name = protocol.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except EvalstoneError:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the protocol {protocol!r} can't be loaded (module:class): ", error) from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ConfigError(f"the protocol {protocol!r} must be a subclass of {kind.__name__}")
    return found


@functools.cache
def _defaults(kind: type[Model[Any]]) -> Mapping[str, Any]:
    return {setting.name: setting.default for setting in fields(kind)}


@functools.lru_cache(maxsize=256)
def _readable(url: str) -> str:
    """The URL. Raises ConfigError if its host or port can't be parsed."""
    try:
        url_parts(url)
    except ValueError as error:
        without_user = re.sub("//[^/]*@", "//", url)
        raise ConfigError(f"the base_url {without_user!r} is invalid: ", error) from None
    return url

"""OpenAI-compatible endpoints: one pooled aiohttp session an event loop, and chat completions over it.

Retryable are HTTP 408, 409, 425, 429 and 5xx, timeouts and broken connections. A Retry-After holds back all callers of
the endpoint, not only the one that received it. Everything else is final, and so is a 5xx that names the form of reply:
some servers answer a refusal with HTTP 500.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from evalstone.errors import ConfigError, DeliveryUnknown, JudgeDeclined, ProviderError, ProviderTimeout
from evalstone.judges.providers.base import (
    FORM_WORDS,
    ChatMessage,
    Completion,
    ModelCapabilities,
    ModelSettings,
    Provider,
    ReplySchema,
)
from evalstone.judges.providers.limits import Backoff, Limiter, Limits, TransientError
from evalstone.judges.settings import is_number
from evalstone.types import Usage

BYTES_PER_TOKEN = 4
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_FINAL = ("insufficient_quota", "billing", "credit balance", *FORM_WORDS)


class RequestRefused(ProviderError):
    """The endpoint refused a request for good."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status), self.__dict__


class Call(NamedTuple):
    """One HTTP request.

    headers: in addition to the endpoint's. timeout: seconds; None for the endpoint's. idempotent: may be sent again
    although it may have been carried out.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    timeout: float | None = None
    idempotent: bool = True


class Endpoint:
    """One base URL with its headers, as seen from one event loop. Enter it while it is used; it counts its users."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, timeout: float, total_timeout: float, limiter: Limiter
    ) -> None:
        self.url = base_url.rstrip("/")
        self.host = urlsplit(base_url).netloc.rpartition("@")[2]
        self.headers = dict(headers)
        self.total_timeout = total_timeout
        self.warnings: Counter[str] = Counter()
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None
        self._users = 0
        self._reached = False
        self._last_refusal = ""
        self._limiter = limiter
        self.capabilities: defaultdict[str, ModelCapabilities] = defaultdict(ModelCapabilities)
        """By model, what the endpoint has refused so far."""

    async def __aenter__(self) -> Endpoint:
        self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if self._users == 0 and self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def _connect(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
            timeout=self._timeout,
            headers={"Content-Type": "application/json", **self.headers},
            cookie_jar=aiohttp.DummyCookieJar(),  # looking for cookies that no endpoint sets takes time
            # Not trust_env: with it aiohttp reads .netrc and the environment in a thread at every request.
            proxy=proxy_for(self.url),
        )

    async def request(self, call: Call, tokens: int = 0) -> bytes:
        """One attempt at a request that counts as this many tokens; the content of the answer.

        Raises:
            TransientError: another attempt may succeed.
            RequestRefused: no other attempt will.
            ProviderTimeout: the provider asked everyone to wait for longer than `total_timeout`.
            ConfigError: the key or the model's name is wrong.
        """
        limit = self._timeout if call.timeout is None else aiohttp.ClientTimeout(total=call.timeout)
        try:
            sent_at = await self._limiter.admit(tokens, until=time.monotonic() + self.total_timeout)
        except TimeoutError:
            message = f"{self.host} asks everyone to wait for longer than total_timeout={self.total_timeout:g} s"
            raise ProviderTimeout(f"{message} ({self._last_refusal})") from None
        try:
            if self._session is None:
                self._session = self._connect()
            async with self._session.request(
                call.method, self.url + call.path, data=call.body, headers=call.headers, timeout=limit
            ) as response:
                content = await response.read()
            self._reached = True
            if response.status != 200:
                self._refused(response.status, content, response.headers, sent_at)
            self._limiter.answered()
            return content
        except TimeoutError:
            self.warnings["timeouts"] += 1
            raise self._transient(f"no answer within {limit.total:g} s") from None
        except aiohttp.ClientError as error:
            self.warnings["broken connections"] += 1
            not_sent = isinstance(error, aiohttp.ClientConnectorError)
            raise self._transient(f"{type(error).__name__}: {error}", rejected=not_sent) from None
        finally:
            self._limiter.release()

    async def request_with_retries(self, call: Call) -> bytes:
        """The content of the answer to a request, sent again after transient errors.

        Raises what `request` raises, and DeliveryUnknown if a request that isn't idempotent may have been carried out.
        """
        backoff = Backoff(self.total_timeout)
        while True:
            try:
                return await self.request(call)
            except TransientError as error:
                if not call.idempotent and not error.rejected:
                    raise DeliveryUnknown(f"{self.host} gave no answer ({error})") from None
                await backoff.wait(error)

    def _transient(self, message: str, *, retry_after: float | None = None, rejected: bool = False) -> TransientError:
        return TransientError(
            message, host=self.host, retry_after=retry_after, reached=self._reached, rejected=rejected
        )

    def _refused(self, status: int, content: bytes, headers: Mapping[str, str], sent_at: float) -> NoReturn:
        message = f"HTTP {status}: {_message(content)}"
        if status in (401, 403, 404):
            raise ConfigError(f"{self.host} refused the request ({message}); check the key and the model's name")
        if status not in RETRYABLE or any(word in message.lower() for word in _FINAL):
            raise RequestRefused(f"{self.host} refused the request ({message})", status)
        self.warnings[f"HTTP {status}"] += 1
        retry_after = _retry_after(headers)
        if status == 429:
            self._last_refusal = message
            self._limiter.refused(sent_at, retry_after)
        raise self._transient(message, retry_after=retry_after, rejected=status == 429)

    def parsed(self, content: bytes) -> dict[str, Any]:
        """The JSON object in an answer. Raises ProviderError if there is none."""
        try:
            data: object = json.loads(content)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise ProviderError(f"{self.host} sent no JSON object: {content[:200]!r}", cost=None)
        return cast("dict[str, Any]", data)


class ChatCompletions(Provider):
    """A model behind an OpenAI-compatible endpoint.

    price: US dollars for a number of tokens; None when it is unknown.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        headers: Mapping[str, str],
        *,
        timeout: float,
        total_timeout: float,
        limits: Limits,
        price: Callable[[Usage], float | None],
    ) -> None:
        self.model = model
        self.price = price
        self.endpoint = shared_endpoint(base_url, headers, timeout=timeout, total_timeout=total_timeout, limits=limits)

    @property
    def connection(self) -> object:
        return self.endpoint

    def warnings(self) -> Mapping[str, int]:
        return dict(self.endpoint.warnings)

    def opened(self) -> Endpoint:
        return self.endpoint

    async def complete(
        self, messages: Sequence[ChatMessage], json_schema: ReplySchema | None, settings: ModelSettings
    ) -> Completion:
        capabilities = self.endpoint.capabilities[self.model]
        payload = chat_payload(self.model, messages, json_schema, settings, capabilities)
        body = _JSON.encode(payload).encode()
        try:
            content = await self.endpoint.request(
                Call("POST", "/chat/completions", body), tokens=len(body) // BYTES_PER_TOKEN
            )
        except RequestRefused as error:
            if capabilities.learn(json_schema.name if json_schema else "", payload, error.status, str(error)):
                raise TransientError(str(error), adapted=True) from None
            raise
        return chat_completion(self.model, self.endpoint.parsed(content), self.price)


def chat_payload(
    model: str,
    messages: Sequence[ChatMessage],
    json_schema: ReplySchema | None,
    settings: ModelSettings,
    capabilities: ModelCapabilities,
) -> dict[str, Any]:
    """The body of a chat completion request, without what the endpoint has refused."""
    payload: dict[str, Any] = {
        "model": model,
        "messages": list(map(vars, messages)),
    }
    values = {
        "temperature": settings.temperature,
        "seed": settings.seed,
        "max_tokens": settings.max_tokens,
        "reasoning_effort": settings.reasoning_effort,
        "logprobs": settings.logprobs or None,
        "top_logprobs": settings.top_logprobs,
    }
    for name, value in values.items():
        if value is not None and name not in capabilities.refused:
            payload[name] = value
    if "max_tokens" in capabilities.refused and settings.max_tokens is not None:
        payload["max_completion_tokens"] = settings.max_tokens
    if (form := capabilities.response_format(json_schema)) is not None:
        payload["response_format"] = form
    return payload


def chat_completion(model: str, data: Mapping[str, Any], price: Callable[[Usage], float | None]) -> Completion:
    """The completion in a response. Raises JudgeDeclined for a decline, ProviderError for no completion."""
    usage, cost = chat_usage(data, price)
    try:
        choice: Any = data["choices"][0]
        finish = choice.get("finish_reason")
        # What a filter stopped may have no message at all.
        message: Any = (choice.get("message") or {}) if finish == "content_filter" else choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        error = f"{model} sent no choices: {str(data)[:200]}"
        raise ProviderError(error, usage=usage, cost=cost) from None
    if finish == "content_filter" or (refusal and not content):
        reason = _one_line(str(refusal)) if refusal else "a content filter stopped the reply"
        reply = str(content or refusal or "")
        raise JudgeDeclined(f"the model declined: {reason}", reply=reply, usage=usage, cost=cost)
    logprobs: Mapping[str, Any] = choice.get("logprobs") or {}
    return Completion(
        text=str(content or ""),
        usage=usage,
        cost=cost,
        complete=finish != "length",
        tokens=logprobs.get("content") or (),
    )


def chat_usage(data: Mapping[str, Any], price: Callable[[Usage], float | None]) -> tuple[Usage, float | None]:
    """The tokens that a response reports and their cost, which is unknown if it reports none."""
    reported = as_object(data.get("usage"))
    usage = Usage(
        input=as_count(reported.get("prompt_tokens")),
        output=as_count(reported.get("completion_tokens")),
        cached=as_count(as_object(reported.get("prompt_tokens_details")).get("cached_tokens")),
        requests=1,
    )
    return usage, price(usage) if is_number(reported.get("prompt_tokens")) else None


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL; None where it names none or NO_PROXY exempts the host."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc.rpartition("@")[2]) else proxy


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait; None if it says nothing readable."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        if (after := headers.get("Retry-After")) is None:
            return None
        try:
            return max(0.0, float(after))
        except ValueError:
            return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return None


def _message(content: bytes) -> str:
    """The message of an error response, on one line."""
    text = content.decode("utf-8", "replace")
    try:
        error: Any = json.loads(text)["error"]
        text = f"{error['message']} ({error['code']})" if error.get("code") else str(error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return _one_line(text)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


def as_object(value: Any) -> dict[str, Any]:
    """A JSON value as an object; empty when it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_count(value: Any) -> int:
    """A JSON value as a count; 0 when it is none. A reply may be good though its usage is not."""
    return int(value) if is_number(value) and value > 0 else 0


_endpoints: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Endpoint]] = weakref.WeakKeyDictionary()


def shared_endpoint(
    base_url: str, headers: Mapping[str, str], *, timeout: float, total_timeout: float, limits: Limits
) -> Endpoint:
    """The endpoint of this URL and these settings on the running loop, the same for every caller there."""
    key = (base_url, tuple(sorted(headers.items())), timeout, total_timeout, limits)
    endpoints = _endpoints.setdefault(asyncio.get_running_loop(), {})
    if (endpoint := endpoints.get(key)) is None:
        endpoint = endpoints[key] = Endpoint(
            base_url, headers, timeout=timeout, total_timeout=total_timeout, limiter=Limiter(limits)
        )
    return endpoint

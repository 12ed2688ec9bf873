"""OpenAI-compatible endpoints: one pooled aiohttp session an event loop, and chat completions over it.

Retryable are HTTP 408, 409, 425, 429 and 5xx, timeouts and broken connections. A Retry-After holds back all callers of
the endpoint, not only the one that received it. Everything else is final, and so is a 5xx that names the form of reply:
some servers answer a refusal with HTTP 500. No redirect is followed: neither a key nor a prompt goes to another host.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from pydantic_core import to_json

from evalstone._core.parsing import MAX_REPLY
from evalstone._core.redaction import register, register_url
from evalstone.errors import ConfigError, DeliveryUnknown, JudgeDeclined, ProviderError, ProviderTimeout
from evalstone.judges.providers.base import (
    PROBE,
    AccessRefused,
    ChatMessage,
    Completion,
    Connection,
    ModelSettings,
    Provider,
    request_timeout,
    split_model,
)
from evalstone.judges.providers.forms import ModelCapabilities, with_form
from evalstone.judges.providers.limits import (
    UNREACHED,
    Backoff,
    Limiter,
    Limits,
    TransientError,
    count_warning,
    received,
    shared,
)
from evalstone.judges.providers.logprobs import readable_tokens
from evalstone.judges.providers.replies import (
    ENCODING,
    as_count,
    as_list,
    as_object,
    as_text,
    error_message,
    is_count,
    one_line,
    parsed_json,
    read_content,
    read_error,
    redirect_error,
    retry_after,
    shown,
    window_error,
)
from evalstone.questions.base import BYTES_PER_TOKEN, Question
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.judges.model import ModelJudge

OVERLONG = frozenset({400, 413, 422})
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_FINAL = ("insufficient_quota", "billing", "credit balance", "response_format", "schema", "grammar")


class RequestTimeout(TransientError):
    """A request had no answer in time. It may have been carried out, and paid. busy: other requests were in flight."""

    busy = False


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
    although it may have been carried out. feature: what an endpoint lacks that does not know the path. most_bytes: of
    the answer; None for the endpoint's.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    timeout: float | None = None
    idempotent: bool = True
    feature: str = ""
    most_bytes: int | None = None


class Endpoint(Connection):
    """One base URL with its headers, as seen from one event loop. It counts its users, and is connected for them."""

    _session: aiohttp.ClientSession

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        timeout: float,
        total_timeout: float,
        max_reply_bytes: int,
        limits: Limits,
    ) -> None:
        super().__init__()
        self.url = base_url.rstrip("/")
        parts = urlsplit(self.url)
        self.host = parts.netloc.rpartition("@")[2]
        self.shown = parts._replace(netloc=self.host, query="").geturl()
        self.headers = dict(headers)
        self.total_timeout, self.max_reply_bytes = total_timeout, max_reply_bytes
        self._large_reply = asyncio.Lock()
        self._timeout = _client_timeout(timeout)
        self._users = 0
        self._reached = False
        self._last_refusal = ""
        self._limiter = Limiter(limits)
        self.capabilities: defaultdict[str, ModelCapabilities] = defaultdict(ModelCapabilities)
        """By model, what the endpoint has refused so far."""

    async def __aenter__(self) -> Endpoint:
        if not self._users:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                timeout=self._timeout,
                headers={"Content-Type": "application/json", "Accept-Encoding": ENCODING, **self.headers},
                auto_decompress=False,  # aiohttp knows no limit
                cookie_jar=aiohttp.DummyCookieJar(),  # looking for cookies that no endpoint sets takes time
                # Not trust_env: with it aiohttp reads .netrc and the environment in a thread at every request.
                proxy=proxy_for(self.url),
            )
        self._users += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        self._users -= 1
        if not self._users:
            await self._session.close()

    async def request(self, call: Call, tokens: int = 0) -> bytes:
        """One attempt at a request that counts as this many tokens; the content of the answer.

        Raises:
            TransientError: another attempt may succeed; RequestTimeout where it had no answer in time.
            RequestRefused: no other attempt will.
            PromptTooLong: the endpoint names the context window.
            ReplyTooLarge: the answer has more bytes than are read.
            ProviderTimeout: the provider asked everyone to wait for longer than `total_timeout`.
            ConfigError: the key or the model's name is wrong, or the endpoint redirects.
        """
        limit = self._timeout if call.timeout is None else _client_timeout(call.timeout)
        try:
            sent_at = await self._limiter.admit(tokens, until=time.monotonic() + self.total_timeout)
        except TimeoutError:
            message = f"{self.host} asks everyone to wait for longer than total_timeout={self.total_timeout:g} s"
            raise ProviderTimeout(f"{message} ({self._last_refusal})") from None
        inflight = self._limiter.inflight
        try:
            async with self._session.request(
                call.method,
                self.url + call.path,
                data=call.body,
                headers=call.headers,
                timeout=limit,
                allow_redirects=False,
            ) as response:
                self._reached = True
                if response.status != 200:
                    content = received(await read_error(response, self.host))
                    self._refused(call, response.status, content, response.headers, sent_at)
                most_bytes = call.most_bytes or self.max_reply_bytes
                content = received(await read_content(response, most_bytes, self.host, self._large_reply))
            self._limiter.answered()
            return content
        except aiohttp.ConnectionTimeoutError:  # the request was not sent
            count_warning("broken connections")
            message = f"could not connect to {self.shown} within {limit.sock_connect:g} s; is the server running?"
            raise self._transient(message, rejected=True) from None
        except TimeoutError:
            count_warning("timeouts")
            wait = self._limiter.retry_wait()
            message = f"no answer within {limit.total:g} s"
            timeout = RequestTimeout(message, host=self.host, retry_after=wait, reached=self._reached)
            timeout.busy = max(inflight, self._limiter.inflight) > 1
            raise timeout from None
        except aiohttp.InvalidURL:
            raise ConfigError(f"the base_url {self.shown} is not one that can be asked") from None
        except (aiohttp.ClientError, OSError) as error:
            count_warning("broken connections")
            not_sent = isinstance(error, aiohttp.ClientConnectorError)
            if isinstance(getattr(error, "os_error", None), ConnectionRefusedError):
                message = f"could not connect to {self.shown}; is the server running?"
            else:
                message = (
                    f"could not connect to {self.shown} ({error})" if not_sent else f"{type(error).__name__}: {error}"
                )
            raise self._transient(one_line(message), rejected=not_sent) from None
        except ValueError as error:  # such as a user name in the URL beside a key, where nothing was checked
            raise ProviderError(one_line(f"{self.host} can't be asked: {error}")) from None
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

    def _transient(self, message: str, *, wait: float | None = None, rejected: bool = False) -> TransientError:
        wait = max(wait or 0.0, self._limiter.retry_wait())
        return TransientError(message, host=self.host, retry_after=wait, reached=self._reached, rejected=rejected)

    def _refused(self, call: Call, status: int, content: bytes, headers: Mapping[str, str], sent_at: float) -> NoReturn:
        if 300 <= status < 400:
            raise redirect_error(self.host, status, self.url, headers.get("Location", ""))
        message = f"HTTP {status}: {error_message(content)}"
        refusal = f"{self.host} refused the request ({message})"
        if status in OVERLONG or status >= 500:
            asked = (call.body or b"").decode(errors="replace")
            too_long = window_error(refusal, content.decode(errors="replace"), asked)
            if too_long is not None:
                raise too_long
        if call.feature and status in (404, 405, 501):
            raise ConfigError(f"{self.host} has no {call.feature} ({message})")
        if status == 401:
            raise ConfigError(f"{self.host} refused the request ({message}); check the key")
        if status in (403, 404):
            raise AccessRefused(refusal)
        if status not in RETRYABLE or any(word in message.lower() for word in _FINAL):
            raise RequestRefused(refusal, status)
        count_warning(f"HTTP {status}")
        wait = retry_after(headers)
        if status == 429:
            self._last_refusal = message
            self._limiter.refused(sent_at, wait)
        raise self._transient(message, wait=wait, rejected=status == 429)

    def parsed(self, content: bytes) -> dict[str, Any]:
        """The JSON object in an answer. Raises ProviderError if there is none."""
        try:
            data = parsed_json(content)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            start = content[:200].decode(errors="replace").strip()
            sent = f"no JSON object: {start!r}" if start else "an empty reply"
            raise ProviderError(f"{self.host} sent {sent}", cost=None)
        return cast("dict[str, Any]", data)


def _client_timeout(seconds: float) -> aiohttp.ClientTimeout:
    # A server that can't be reached is told from one that doesn't answer.
    return aiohttp.ClientTimeout(total=seconds, sock_connect=min(0.9 * seconds, UNREACHED))


class ChatCompletions(Provider):
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, judge: ModelJudge, url: str) -> None:
        self.judge, self.model = judge, split_model(judge.model)[1]
        authorization: dict[str, str] = {}
        if key := judge.key:
            register(key)  # the environment may have changed
            authorization["Authorization"] = f"Bearer {key}"
        self.connection = self.endpoint = shared_endpoint(judge, url, {**authorization, **judge.headers})

    async def complete(
        self, messages: Sequence[ChatMessage], question: Question[Any], settings: ModelSettings
    ) -> Completion:
        capabilities = self.endpoint.capabilities[self.model]
        form = capabilities.form(question.kind)
        payload = chat_payload(self.model, messages, question, settings, capabilities)
        refused = capabilities.refused_of(self.judge, question) if capabilities.refused else ()
        try:
            content = await self.endpoint.request(*_chat_call(payload))
        except RequestTimeout as error:
            raise request_timeout(error.host, self.judge.timeout, settings.max_tokens, busy=error.busy) from None
        except AccessRefused as error:
            raise await self.endpoint.refused(self.model, error, self._probe) from None
        except RequestRefused as error:
            if capabilities.learn(question.kind, payload, error.status, str(error)):
                raise TransientError(str(error), adapted=True) from None
            raise
        self.endpoint.accepted(self.model)
        capabilities.accept(question, form)
        completion = chat_completion(self.model, self.endpoint.parsed(content), self.judge.price)
        return replace(completion, refused_settings=refused) if refused else completion

    async def _probe(self) -> tuple[Usage, float | None]:
        """Ask for a word; what that took. Raises ConfigError if the key or the model is refused."""
        payload = {"model": self.model, "messages": [{"role": "user", "content": PROBE}], "max_tokens": 1}
        try:
            content = await self.endpoint.request(*_chat_call(payload))
        except RequestRefused:  # such as HTTP 400 for max_tokens: it came as far as the model
            return NO_USAGE, 0.0
        return chat_usage(self.endpoint.parsed(content), self.judge.price)


def _chat_call(payload: Mapping[str, Any]) -> tuple[Call, int]:
    """A chat completion request, and how many tokens it counts as."""
    body = to_json(payload)
    return Call("POST", "/chat/completions", body), len(body) // BYTES_PER_TOKEN


def chat_payload(
    model: str,
    messages: Sequence[ChatMessage],
    question: Question[Any],
    settings: ModelSettings,
    capabilities: ModelCapabilities,
) -> dict[str, Any]:
    """The body of a chat completion request, without what the endpoint has refused."""
    messages = with_form(messages, question, capabilities.form(question.kind))
    payload: dict[str, Any] = {"model": model, "messages": list(map(vars, messages))}
    for name, value in vars(settings).items():
        if value is not None and value is not False and name not in capabilities.refused:
            payload[name] = value
    if "max_tokens" in capabilities.refused and settings.max_tokens is not None:
        payload["max_completion_tokens"] = settings.max_tokens
    if (form := capabilities.response_format(question)) is not None:
        payload["response_format"] = form
    return payload


def chat_completion(model: str, data: Mapping[str, Any], price: Callable[[Usage], float | None]) -> Completion:
    """The completion in a response. Raises JudgeDeclined for a decline, ProviderError for no completion."""
    usage, cost = chat_usage(data, price)
    choice = as_object(next(iter(as_list(data.get("choices"))), None))
    finish = choice.get("finish_reason")
    message = as_object(choice.get("message"))
    content, refusal = _text(message.get("content")), message.get("refusal")
    if finish == "content_filter" or (refusal and not content):
        reason = shown(refusal) if refusal else "a content filter stopped the reply"
        reply = content or as_text(refusal) or (shown(refusal) if refusal else "")
        raise JudgeDeclined(f"the model declined: {reason}", reply=reply[:MAX_REPLY], usage=usage, cost=cost)
    if not message:
        raise ProviderError(f"{model} sent no choices: {shown(data)}", usage=usage, cost=cost)
    return Completion(
        text=content,
        usage=usage,
        cost=cost,
        complete=finish != "length",
        tokens=readable_tokens(as_object(choice.get("logprobs")).get("content")),
        model=as_text(data.get("model")),
    )


def _text(content: Any) -> str:
    """The text of a message: some servers send it in parts, beside what the model thought."""
    parts = map(as_object, as_list(content))
    texts = [as_text(part.get("text")) for part in parts if part.get("type") in ("text", "output_text")]
    return as_text(content) or "".join(texts)


def chat_usage(data: Mapping[str, Any], price: Callable[[Usage], float | None]) -> tuple[Usage, float | None]:
    """The tokens that a response reports and their cost, which is unknown if it reports none."""
    reported = as_object(data.get("usage"))
    prompt = as_count(reported.get("prompt_tokens"))
    usage = Usage(
        input=prompt,
        output=as_count(reported.get("completion_tokens")),
        # More than there were would make the cost too low, or negative.
        cached=min(prompt, as_count(as_object(reported.get("prompt_tokens_details")).get("cached_tokens"))),
        requests=1,
    )
    known = is_count(reported.get("prompt_tokens")) and is_count(reported.get("completion_tokens", 0))
    return usage, price(usage) if known else None


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL; None where it names none or NO_PROXY exempts the host."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    register_url(proxy)
    return proxy


def shared_endpoint(judge: ModelJudge, base_url: str, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint of this URL and a judge's settings on the running loop, the same for every caller there."""
    settings = (judge.timeout, judge.total_timeout, judge.max_reply_bytes, judge.request_limits)
    key = (Endpoint, base_url, tuple(sorted(headers.items())), *settings)
    return shared(key, partial(Endpoint, base_url, headers, *settings))

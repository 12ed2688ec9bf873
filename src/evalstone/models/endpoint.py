"""Chat completions at OpenAI-compatible endpoints, with one pooled aiohttp session per event loop.

HTTP 408, 409, 425, 429 and 5xx, timeouts and broken connections are retried. A Retry-After applies to all callers of
the endpoint, not only to the one that received it. All other errors are final, and so are a 5xx about the reply format,
because some servers refuse formats with HTTP 500, and errors about credit. Redirects are not followed, so that no key
and no prompt goes to another host.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, cast
from urllib.parse import urlsplit

import aiohttp
from pydantic_core import to_json

from evalstone._core.parsing import MAX_REPLY
from evalstone._core.redaction import header_secrets, register
from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.errors import (
    ConfigError,
    DeliveryUnknown,
    JudgeDeclined,
    JudgeError,
    JudgeRefused,
    PromptTooLong,
    ProviderError,
    ProviderTimeout,
)
from evalstone.models.catalog import PROVIDERS, split_model
from evalstone.models.forms import OF_FORM, SYSTEM, ModelCapabilities, with_form, without_system
from evalstone.models.limits import (
    UNREACHED,
    Backoff,
    Limiter,
    Limits,
    TransientError,
    count_warning,
    received,
    shared,
)
from evalstone.models.provider import (
    NO_KEY,
    PROBE,
    AccessRefused,
    ChatMessage,
    ChatProvider,
    Completion,
    Connection,
    CreditRefused,
    ReplyForm,
    RequestSettings,
    RequestTimeout,
    cached_beginning,
)
from evalstone.models.proxies import proxy_for, proxy_hint, proxy_refusal, tls_error
from evalstone.models.refusals import (
    BLOCKED,
    MAY_BLOCK,
    Refusal,
    blocked_reason,
    blocked_reply,
    error_inside,
    is_blocked,
    is_cut_off,
    is_unpaid,
    may_pass,
    refusal_in,
    says_itself,
    window_error,
)
from evalstone.models.replies import (
    ENCODING,
    as_count,
    as_list,
    as_object,
    as_text,
    is_count,
    one_line,
    parsed_json,
    read_aside,
    read_content,
    read_error,
    redirect_error,
    retry_after,
    retry_delay,
    shown,
    too_many_values,
)
from evalstone.models.tokens import readable_tokens
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.models.model import LanguageModel, Model

TOO_LONG = frozenset({400, 413, 422, 429})
"""Statuses with which endpoints may refuse a prompt that exceeds the context window, besides 5xx."""


class RequestRefused(ProviderError):
    """The endpoint refused a request permanently."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.status), self.__dict__


class GenerationRefused(ProviderError):
    """The endpoint refused to send the model's reply, because it doesn't match the format. Its cost is unknown."""

    def __init__(self, message: str, generation: str) -> None:
        super().__init__(message, reply=generation, cost=None)


Learn: TypeAlias = Callable[[int, str], bool]
"""Learns from the status and the words of a refusal. Returns whether the adapted request is worth sending."""


class Call(NamedTuple):
    """One HTTP request."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    """Headers in addition to the endpoint's."""
    timeout: float | None = None
    """Seconds; None uses the endpoint's timeout."""
    idempotent: bool = True
    """Whether it may be sent again if it may have been processed."""
    feature: str = ""
    """The feature that an endpoint without this path lacks, for errors."""
    most_bytes: int | None = None
    """The maximum size of the response; None uses the endpoint's limit."""


class Endpoint(Connection):
    """One base URL with its headers, on one event loop. The session is open while anyone uses it."""

    _session: aiohttp.ClientSession
    _proxy: str | None = None

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
        """What the endpoint supports, by model."""

    async def __aenter__(self) -> Endpoint:
        if not self._users:
            self._proxy = proxy_for(self.url)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                timeout=self._timeout,
                headers={"Content-Type": "application/json", "Accept-Encoding": ENCODING, **self.headers},
                auto_decompress=False,  # aiohttp has no size limit
                cookie_jar=aiohttp.DummyCookieJar(),  # endpoints set no cookies, and looking them up takes time
                # With trust_env, aiohttp would read .netrc and the environment in a thread for every request.
                proxy=self._proxy,
            )
        self._users += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        self._users -= 1
        if not self._users:
            await self._session.close()

    async def request(
        self, call: Call, tokens: int = 0, count: Callable[[], None] | None = None, learn: Learn | None = None
    ) -> bytes:
        """Make one attempt at a request that counts as this many tokens, and return the content of the response.

        count: called when the request is sent, after all waiting. It may raise an error instead. learn: called for a
        refusal, before it is classified: endpoints refuse settings with any status.

        Raises:
            TransientError: Another attempt may succeed. RequestTimeout if the request timed out.
            RequestRefused: The endpoint refused the request permanently.
            GenerationRefused: The endpoint refused the model's reply.
            PromptTooLong: The prompt exceeds the context window.
            ReplyTooLarge: The response is larger than the limit.
            ProviderTimeout: The provider asked to wait for longer than `total_timeout`.
            JudgeRefused: The key or the model is wrong, or the endpoint redirects.
        """
        timeout = self._timeout if call.timeout is None else _client_timeout(call.timeout)
        try:
            sent_at = await self._limiter.admit(tokens, until=time.monotonic() + self.total_timeout)
        except TimeoutError:
            message = f"{self.host} asked to wait for longer than total_timeout={self.total_timeout:g} s"
            raise ProviderTimeout(f"{message} ({self._last_refusal})") from None
        inflight = self._limiter.inflight
        try:
            if count is not None:
                count()
            async with self._session.request(
                call.method,
                self.url + call.path,
                data=call.body,
                headers=call.headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                self._reached = True
                if not 200 <= response.status < 300:  # some frameworks answer every POST with 201
                    content = received(await read_error(response, self.host))
                    said = refusal_in(content)
                    self._refused(call, response.status, said, learn, content, response.headers, sent_at)
                most_bytes = call.most_bytes or self.max_reply_bytes
                content = received(await read_content(response, most_bytes, self.host, self._large_reply))
            self._limiter.answered()
            return content
        except aiohttp.ConnectionTimeoutError:  # the request was not sent
            count_warning("broken connections")
            message = f"could not connect to {self.shown} within {timeout.sock_connect:g} s; {self._check}"
            raise self._transient(message, rejected=True) from None
        except TimeoutError:
            count_warning("timeouts")
            wait = self._limiter.retry_wait()
            message = f"no answer within {timeout.total:g} s"
            error = RequestTimeout(message, host=self.host, retry_after=wait, reached=self._reached)
            error.busy = max(inflight, self._limiter.inflight) > 1
            raise error from None
        except aiohttp.InvalidURL:
            raise ConfigError(f"the base_url {self.shown} is invalid") from None
        except aiohttp.ClientHttpProxyError as error:
            if error.status < 500:
                raise proxy_refusal(self.url, self._proxy or "", error.status) from None
            count_warning("broken connections")
            message = f"could not connect to {self.shown} (HTTP {error.status}); {self._check}"
            raise self._transient(message, rejected=True) from None
        except (aiohttp.ClientError, OSError) as error:
            if (refused := tls_error(error, self.host)) is not None:
                raise refused from None
            count_warning("broken connections")
            not_sent = isinstance(error, aiohttp.ClientConnectorError)
            if isinstance(getattr(error, "os_error", None), ConnectionRefusedError):
                message = f"could not connect to {self.shown}; {self._check}"
            else:
                message = (
                    f"could not connect to {self.shown} ({error})" if not_sent else f"{type(error).__name__}: {error}"
                )
                message += f"; {self._check}" if self._proxy else ""
            failed = self._transient(one_line(message), rejected=not_sent)
            failed.cost = None if isinstance(error, aiohttp.ClientPayloadError) else 0.0  # the reply was on its way
            raise failed from None
        except ValueError as error:  # such as a URL with a user name and a key, if the URL was not checked
            raise ProviderError(one_line(f"can't send a request to {self.host}: {error}")) from None
        finally:
            self._limiter.release()

    @property
    def _check(self) -> str:
        """What to check if there is no connection."""
        return proxy_hint(self.url, self._proxy) if self._proxy else "is the server running?"

    async def request_with_retries(self, call: Call) -> bytes:
        """Send a request, retry it after transient errors, and return the content of the response.

        Raises what `request` raises, and DeliveryUnknown if a request that isn't idempotent may have been processed.
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

    def _refused(
        self,
        call: Call,
        status: int,
        said: Refusal,
        learn: Learn | None,
        content: bytes = b"",
        headers: Mapping[str, str] = MappingProxyType({}),
        sent_at: float | None = None,
    ) -> NoReturn:
        if 300 <= status < 400:
            raise redirect_error(self.host, status, self.url, headers.get("Location", ""))
        if status == 407 and self._proxy:
            raise proxy_refusal(self.url, self._proxy, status)
        message = f"HTTP {status}: {said.message}"
        if self._proxy and (status == 403 or may_pass(status)) and self.url.startswith("http:"):
            message += f"; {self._check}"  # the proxy may be who answered
        refusal = f"{self.host} refused the request ({message})"
        request = (call.body or b"").decode(errors="replace")
        if status in TOO_LONG or status >= 500:
            error = window_error(refusal, said.words, content.decode(errors="replace"), request)
            if error is not None:
                raise error
            if status == 413:
                raise PromptTooLong(refusal).advised("set context_window for this model")
        if status in MAY_BLOCK and (reason := blocked_reason(said, request)):
            raise JudgeDeclined(f"{BLOCKED}: {reason}")
        if said.generation is not None:
            raise GenerationRefused(refusal, said.generation)
        wait = retry_after(headers)
        later = status == 402 and wait is not None  # such as a charge that is still being settled
        if is_unpaid(status, said, request) and not later:
            raise CreditRefused(refusal)
        if learn is not None and learn(status, said.words):
            raise TransientError(refusal, adapted=True)
        if call.feature and status in (404, 405, 501):
            raise ConfigError(f"{self.host} has no {call.feature} ({message})")
        if status == 401:
            sent = any(header_secrets({**self.headers, **(call.headers or {})}))
            raise JudgeRefused(refusal).advised("check the key" if sent else NO_KEY)
        if status in (403, 404):
            raise AccessRefused(refusal, status)
        of_form = status >= 500 and says_itself(OF_FORM, said.words, request)
        if of_form or not (later or may_pass(status)):
            raise RequestRefused(refusal, status)
        count_warning(f"HTTP {status}")
        wait = retry_delay(content) if wait is None else wait
        if status == 429:
            self._last_refusal = message
            self._limiter.refused(time.monotonic() if sent_at is None else sent_at, wait)
        raise self._transient(message, wait=wait, rejected=status == 429)

    def check_error(
        self,
        call: Call,
        data: Mapping[str, Any],
        spent: Callable[[], tuple[Usage, float | None]],
        learn: Learn | None = None,
    ) -> None:
        """Raise what an error inside a response with HTTP 200 means, as for a response with its status.

        spent: the usage and the cost of the response, which the error gets if the response has a usage.
        """
        if (inside := error_inside(data)) is None:
            return
        try:
            self._refused(call, *inside, learn)
        except JudgeError as error:
            if as_object(data.get("usage")):
                error.usage, error.cost = spent()
            raise

    def parsed(self, content: bytes) -> dict[str, Any]:
        """The JSON object in a response. Raises ProviderError if there is none, or it has too many values."""
        if (most := too_many_values(content, self.max_reply_bytes)) is not None:
            problem = f"a reply of more than {most:,} lists and objects; max_reply_bytes allows more"
            raise ProviderError(f"{self.host} sent {problem}", cost=None)
        try:
            data = parsed_json(content)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            start = content[:200].decode(errors="replace").strip()
            problem = f"no JSON object: {start!r}" if start else "an empty reply"
            raise ProviderError(f"{self.host} sent {problem}", cost=None)
        return cast("dict[str, Any]", data)


def _client_timeout(seconds: float) -> aiohttp.ClientTimeout:
    # The connection times out first, so that an unreachable server is reported as such.
    return aiohttp.ClientTimeout(total=seconds, sock_connect=min(0.9 * seconds, UNREACHED))


class ChatCompletions(ChatProvider):
    """A model behind an OpenAI-compatible endpoint."""

    def connect(self, model: LanguageModel) -> Endpoint:
        self.endpoint = endpoint_of(model)
        provider, name = split_model(model.model)
        at_openrouter = provider == "openrouter" or self.endpoint.url == PROVIDERS["openrouter"].base_url
        self._marks_cache = at_openrouter and name.lstrip("~").startswith("anthropic/")
        return self.endpoint

    async def _complete(
        self, messages: Sequence[ChatMessage], form: ReplyForm | None, settings: RequestSettings
    ) -> Completion:
        endpoint, price = self.endpoint, self.model.price
        capabilities = endpoint.capabilities[self.name]
        level = capabilities.level(form)
        payload = chat_payload(self.name, messages, form, settings, capabilities)
        refused = capabilities.refused_of(settings) if capabilities.refused else ()
        call, tokens = _chat_call(self._marked(payload))
        learn = partial(capabilities.learn, form.name if form else "", payload)
        try:
            content = await endpoint.request(call, tokens, self.model.count_request, learn)
            data = await read_aside(len(content), endpoint.parsed, content)
            endpoint.check_error(call, data, partial(chat_usage, data, price), learn)
        except GenerationRefused as error:
            return Completion(error.reply or "", replace(NO_USAGE, requests=1), error.cost, refused_settings=refused)
        capabilities.accept(form, level)
        completion = chat_completion(self.name, data, price)
        return replace(completion, refused_settings=refused) if refused else completion

    def _marked(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The request with a mark after the beginning that the provider should cache. OpenRouter needs one for Claude,
        as Anthropic does; other models are cached without."""
        beginning = cached_beginning()
        if not beginning or not self._marks_cache:
            return payload
        return {**payload, "messages": [_with_mark(message, beginning) for message in payload["messages"]]}

    async def probe(self) -> tuple[Usage, float | None]:
        payload = {"model": self.name, "messages": [{"role": "user", "content": PROBE}], "max_tokens": 1}
        try:
            call, tokens = _chat_call(payload)
            data = self.endpoint.parsed(await self.endpoint.request(call, tokens, self.model.count_request))
            spent = partial(chat_usage, data, self.model.price)
            self.endpoint.check_error(call, data, spent)
        except RequestRefused:  # such as HTTP 400 for max_tokens: key and model were accepted
            return NO_USAGE, 0.0
        return spent()


def _with_mark(message: Mapping[str, Any], beginning: str) -> Mapping[str, Any]:
    content: str = message["content"]
    if message["role"] != "user" or not content.startswith(beginning):
        return message
    rest = content[len(beginning) :]
    marked = {"type": "text", "text": beginning, "cache_control": {"type": "ephemeral"}}
    return {**message, "content": [marked, *[{"type": "text", "text": rest}] * bool(rest)]}


def _chat_call(payload: Mapping[str, Any]) -> tuple[Call, int]:
    """A chat completion request, and its estimated number of tokens."""
    body = to_json(payload)
    return Call("POST", "/chat/completions", body), len(body) // BYTES_PER_TOKEN


def chat_payload(
    model: str,
    messages: Sequence[ChatMessage],
    form: ReplyForm | None,
    settings: RequestSettings,
    capabilities: ModelCapabilities,
) -> dict[str, Any]:
    """The body of a chat completion request, without settings that the endpoint refuses."""
    messages = with_form(messages, form, capabilities.level(form))
    messages = without_system(messages) if SYSTEM in capabilities.refused else messages
    payload: dict[str, Any] = {"model": model, "messages": list(map(vars, messages))}
    for name, value in vars(settings).items():
        if value is not None and value is not False and name not in capabilities.refused:
            payload[name] = value
    if "max_tokens" in capabilities.refused and settings.max_tokens is not None:
        payload["max_completion_tokens"] = settings.max_tokens
    if (response_format := capabilities.response_format(form)) is not None:
        payload["response_format"] = response_format
    return payload


Price: TypeAlias = Callable[[Usage, int], float | None]
"""The cost of a usage, of which so many input tokens were written to a cache."""


def chat_completion(model: str, data: Mapping[str, Any], price: Price) -> Completion:
    """The completion in a response. Raises JudgeDeclined if the model declined, ProviderError if there is none."""
    usage, cost = chat_usage(data, price)
    choice = as_object(next(iter(as_list(data.get("choices"))), None))
    finish = choice.get("finish_reason")
    message = as_object(choice.get("message"))
    content, refusal = _text(message.get("content")), message.get("refusal")
    blocked = is_blocked(finish)
    if blocked or finish == "refusal" or (refusal and not content):
        what = blocked_reply(finish) if blocked else "the model declined"
        told = f"{what}: {shown(refusal)}" if refusal else what
        reply = content or as_text(refusal) or (shown(refusal) if refusal else "")
        raise JudgeDeclined(told, reply=reply[:MAX_REPLY], usage=usage, cost=cost)
    if not message:
        raise ProviderError(f"{model} sent no choices: {shown(data)}", usage=usage, cost=cost)
    return Completion(
        text=content,
        usage=usage,
        cost=cost,
        complete=not is_cut_off(finish),
        tokens=readable_tokens(as_object(choice.get("logprobs")).get("content")),
        model=as_text(data.get("model")),
        read_tokens=_read_tokens(as_object(data.get("usage"))),
    )


def _read_tokens(usage: Mapping[str, Any]) -> int:
    """The tokens of a prompt, at most: all counts are added, as some servers leave cached ones out of prompt_tokens."""
    details = as_object(usage.get("prompt_tokens_details"))
    counts = (usage.get("prompt_tokens"), details.get("cached_tokens"), *map(usage.get, _CACHED))
    return sum(map(as_count, counts))


_CACHED = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Other names of the cached tokens, of DeepSeek and of gateways to Anthropic."""
_CACHED_IN_PROMPT = ("prompt_cache_hit_tokens", "cached_tokens")
"""Other names of cached tokens that are a part of prompt_tokens, of DeepSeek, Together and Moonshot."""


def _text(content: Any) -> str:
    """The text of a message. Some servers send it in parts, next to parts with reasoning."""
    parts = map(as_object, as_list(content))
    texts = [as_text(part.get("text")) for part in parts if part.get("type", "text") in ("text", "output_text")]
    return as_text(content) or "".join(texts)


def chat_usage(data: Mapping[str, Any], price: Price) -> tuple[Usage, float | None]:
    """The usage in a response, and its cost; None if the response has no usage."""
    reported = as_object(data.get("usage"))
    prompt, output, total = map(as_count, map(reported.get, ("prompt_tokens", "completion_tokens", "total_tokens")))
    details = as_object(reported.get("prompt_tokens_details"))
    written, *others = map(as_count, (details.get("cache_write_tokens"), *map(reported.get, _CACHED_IN_PROMPT)))
    cached = as_count(details.get("cached_tokens")) or min(prompt, max(others))
    reasoning = as_count(as_object(reported.get("completion_tokens_details")).get("reasoning_tokens"))
    beside = total - prompt - output
    if cached > prompt or (0 < cached == beside != reasoning):
        prompt += cached  # some gateways count cached tokens beside prompt_tokens
    # Some providers count the tokens of reasoning beside completion_tokens, but all of them in the total.
    output = max(output, total - prompt, output + reasoning if reasoning > output else 0)
    usage = Usage(prompt, output, cached, 1)
    known = is_count(reported.get("prompt_tokens")) and is_count(reported.get("completion_tokens", 0))
    return usage, price(usage, min(written, prompt)) if known else None


def endpoint_of(model: Model[Any]) -> Endpoint:
    """The endpoint of a model, shared by all callers with its URL, headers and settings on the running loop."""
    authorization: dict[str, str] = {}
    if key := model.key:
        register(key)  # the environment may have changed
        authorization["Authorization"] = f"Bearer {key}"
    return shared_endpoint(model, model.url, {**authorization, **model.sent_headers})


def shared_endpoint(model: Model[Any], base_url: str, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint for a URL, headers and a model's settings, shared by all callers on the running loop."""
    settings = (model.timeout, model.total_timeout, model.max_reply_bytes, model.request_limits)
    key = (Endpoint, base_url, tuple(sorted(headers.items())), *settings)
    return shared(key, partial(Endpoint, base_url, headers, *settings))

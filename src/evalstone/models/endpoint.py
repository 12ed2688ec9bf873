"""HTTP endpoints of models, with one pooled aiohttp session per event loop.

HTTP 408, 409, 425, 429 and 5xx, timeouts and broken connections are retried. A Retry-After applies to all callers of
the endpoint, not only to the one that received it. All other errors are final, and so are a 5xx about the reply format,
because some servers refuse formats with HTTP 500, and errors about credit. Redirects are not followed, so that no key
and no prompt goes to another host.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias
from urllib.parse import urlsplit

import aiohttp
from pydantic_core import PydanticSerializationError, to_json

from evalstone._core.guards import is_object
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
from evalstone.models.forms import OF_FORM, ModelCapabilities
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
    AccessRefused,
    Connection,
    CreditRefused,
    RequestTimeout,
)
from evalstone.models.proxies import proxy_for, proxy_hint, proxy_refusal, tls_error
from evalstone.models.refusals import (
    BLOCKED,
    MAY_BLOCK,
    Refusal,
    blocked_reason,
    error_inside,
    is_unpaid,
    may_pass,
    refusal_in,
    says_itself,
    window_error,
)
from evalstone.models.replies import (
    ENCODING,
    one_line,
    parsed_json,
    read_aside,
    read_content,
    read_error,
    redirect_error,
    retry_after,
    retry_delay,
    too_many_values,
)
from evalstone.types import Usage

if TYPE_CHECKING:
    from evalstone.models.model import Model

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
Spent: TypeAlias = Callable[[Mapping[str, Any]], tuple[Usage, float | None] | None]
"""Reads the usage in a response, and its cost in US dollars, None if that is unknown; None if there is no usage."""


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
    tokens: int = 0
    """The tokens that it counts as in `tokens_per_minute`."""
    too_long: str = ""
    """The code of a prompt that exceeds the context window, if endpoints with this path say no more than that."""


def json_call(path: str, payload: Mapping[str, Any]) -> Call:
    """A POST request with a JSON object for a model to read."""
    try:
        body = to_json(payload)
    except PydanticSerializationError:  # half a character, which only an escape can send
        body = json.dumps(payload).encode()
    return Call("POST", path, body, tokens=len(body) // BYTES_PER_TOKEN)


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
        self._limiter = Limiter(limits, (self.url, tuple(sorted(self.headers.items()))))
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
        self, call: Call, count: Callable[[], Awaitable[None]] | None = None, learn: Learn | None = None
    ) -> bytes:
        """Make one attempt at a request, and return the content of the response.

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
            sent_at = await self._limiter.admit(call.tokens, until=time.monotonic() + self.total_timeout)
        except TimeoutError:
            message = f"{self.host} asked to wait for longer than total_timeout={self.total_timeout:g} s"
            refusal = self._last_refusal or "as another process was told"
            raise ProviderTimeout(f"{message} ({refusal})") from None
        inflight = self._limiter.inflight
        try:
            if count is not None:
                await count()
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
        except ConfigError:
            raise
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
            if status == 413 or (call.too_long and call.too_long in (said.message.lower(), *said.codes)):
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

    async def read(self, call: Call, content: bytes, spent: Spent, learn: Learn | None = None) -> dict[str, Any]:
        """The JSON object in a response.

        Raises what `parsed` raises, and for an error inside a response with HTTP 200, what one with its status means.
        The error gets what was `spent`.
        """
        data = await read_aside(len(content), self.parsed, content)
        if (inside := error_inside(data)) is None:
            return data
        try:
            self._refused(call, *inside, learn)
        except JudgeError as error:
            if (found := spent(data)) is not None:
                error.usage, error.cost = found
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
        if not is_object(data):
            start = content[:200].decode(errors="replace").strip()
            problem = f"no JSON object: {start!r}" if start else "an empty reply"
            raise ProviderError(f"{self.host} sent {problem}", cost=None)
        return data


def _client_timeout(seconds: float) -> aiohttp.ClientTimeout:
    # The connection times out first, so that an unreachable server is reported as such.
    return aiohttp.ClientTimeout(total=seconds, sock_connect=min(0.9 * seconds, UNREACHED))


def endpoint_of(
    model: Model[Any],
    *,
    url: str | None = None,
    key_header: str = "Authorization",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Endpoint:
    """The endpoint of a model, shared by all callers with its URL, headers and settings on the running loop.

    Args:
        model: The model.
        url: The base URL; None uses the model's.
        key_header: The header with the API key. In `Authorization`, the key is a bearer token.
        headers: Other headers that the protocol needs. The model's `headers` may replace them.
    """
    sent = dict(headers)
    if key := model.key:
        register(key)  # the environment may have changed
        sent[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
    sent |= model.sent_headers
    base_url = model.url if url is None else url
    settings = (model.timeout, model.total_timeout, model.max_reply_bytes, model.request_limits)
    key = (Endpoint, base_url, tuple(sorted(sent.items())), *settings)
    return shared(key, partial(Endpoint, base_url, sent, *settings))

"""The thin way to an OpenAI-compatible endpoint: one pooled aiohttp session an event loop, and retries that know why.

Retried with growing, jittered waits until a deadline: HTTP 408, 409, 429 and 5xx, timeouts, broken connections. A
Retry-After is honoured by all callers of the endpoint, not only by the one that was told (limiter.py). Everything else
is final, and so is a 5xx that names the form of reply asked for: some servers answer a refusal with HTTP 500.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import time
import weakref
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import getproxies

import aiohttp

from evalstone.errors import ConfigError, DeliveryUnknown, ProviderError, ProviderTimeout
from evalstone.judges.providers.capabilities import FORM_WORDS, ModelCapabilities
from evalstone.judges.providers.limits import Limiter, Place

FIRST_WAIT = 0.25
LONGEST_WAIT = 20.0
UNREACHED = 15.0
BYTES_A_TOKEN = 4
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_FINAL = ("insufficient_quota", "billing", "credit balance", *FORM_WORDS)
_UNDONE = ("HTTP 429", "ClientConnector")
"""How trouble starts that leaves no doubt that a request was not carried out."""


class Call(NamedTuple):
    """One request. headers: beside the endpoint's own. timeout: seconds; None for the endpoint's own. once: not sent
    again when it may have been carried out."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    timeout: float | None = None
    once: bool = False


class Endpoint:
    """One base URL with its headers, as seen from one event loop. Enter it while it is used; it counts its users."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], *, timeout: float, deadline: float, limiter: Limiter
    ) -> None:
        self.url = base_url.rstrip("/")
        self.host = urlsplit(base_url).netloc.rpartition("@")[2]
        self.headers = dict(headers)
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self.deadline = deadline
        self._session: aiohttp.ClientSession | None = None
        self._users = 0
        self._reached = False
        self._last_refusal = ""
        self.met: Counter[str] = Counter()
        self._limiter = limiter
        self._refusals: dict[str, ModelCapabilities] = {}

    def refusals(self, model: str) -> ModelCapabilities:
        """What was refused so far of the requests to a model."""
        return self._refusals.setdefault(model, ModelCapabilities())

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

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                timeout=self._timeout,
                headers={"Content-Type": "application/json", **self.headers},
                cookie_jar=aiohttp.DummyCookieJar(),  # to look for cookies that no endpoint sets takes time
                # Reading it means looking for a .netrc file at every request: only where a proxy is asked for.
                trust_env=bool(getproxies()),
            )
        return self._session

    async def post(self, path: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The parsed answer to a request. Raises ProviderTimeout after the deadline, ProviderError for a final refusal, and
        ConfigError when the key or the model's name is wrong."""
        body = _JSON.encode(payload).encode()
        return self.parsed(await self.exchange(Call("POST", path, body), tokens=len(body) // BYTES_A_TOKEN))

    async def exchange(self, call: Call, *, tokens: int = 0) -> bytes:
        """The content of the answer to a request that counts as so many tokens. Raises as `post` does, and DeliveryUnknown
        when a request that must not be sent twice has no answer."""
        started = time.monotonic()
        attempt = 0
        while True:
            with await self._admitted(tokens, started + self.deadline) as place:
                told, asked_wait = await self._try(call, place)
            if not isinstance(told, str):
                return told
            if call.once and not told.startswith(_UNDONE):
                raise DeliveryUnknown(f"{self.host} gave no answer ({told})")
            wait = _jittered(FIRST_WAIT * 2**attempt) if asked_wait is None else asked_wait * random.uniform(1, 1.1)
            attempt += 1
            # A server that never spoke is more likely not there than busy: the first to ask need not wait for long.
            deadline = self.deadline if self._reached else min(self.deadline, UNREACHED)
            if time.monotonic() + wait > started + deadline:
                raise ProviderTimeout(f"{self.host} gave no answer in {attempt} attempts; the last: {told}")
            await asyncio.sleep(wait)

    async def _admitted(self, tokens: int, until: float) -> Place:
        try:
            return await self._limiter.admit(tokens, until=until)
        except TimeoutError:
            told = f"{self.host} asks everyone to wait for longer than the deadline of {self.deadline:g} s"
            raise ProviderTimeout(f"{told} ({self._last_refusal})") from None

    async def _try(self, call: Call, place: Place) -> tuple[bytes | str, float | None]:
        """One attempt: the answer's content, or what went wrong and the wait that was asked for."""
        limit = self._timeout if call.timeout is None else aiohttp.ClientTimeout(total=call.timeout)
        try:
            async with self._connected().request(
                call.method, self.url + call.path, data=call.body, headers=call.headers, timeout=limit
            ) as response:
                content = await response.read()
                self._reached = True
                if response.status == 200:
                    self._limiter.answered()
                    return content, None
                return self._refused(response.status, content, response.headers, place)
        except TimeoutError:
            self.met["timeouts"] += 1
            return f"no answer within {limit.total:g} s", None
        except aiohttp.ClientError as error:
            self.met["broken connections"] += 1
            return f"{type(error).__name__}: {error}", None

    def _refused(
        self, status: int, content: bytes, headers: Mapping[str, str], place: Place
    ) -> tuple[str, float | None]:
        """What a refusal says and the wait that it asks for, if it may pass; else it is raised."""
        told = f"HTTP {status}: {_message(content)}"
        if status in (401, 403, 404):
            raise ConfigError(f"{self.host} refused the request ({told}); check the key and the model's name")
        if status not in _RETRIED or any(word in told.lower() for word in _FINAL):
            raise ProviderError(f"{self.host} refused the request ({told})")
        self.met[f"HTTP {status}"] += 1
        wait = _retry_after(headers)
        if status == 429:
            self._last_refusal = told
            self._limiter.refused(place.sent_at, wait)
        return told, wait

    def parsed(self, content: bytes) -> dict[str, Any]:
        """The JSON object that an answer is. Raises ProviderError when it is none."""
        try:
            data: object = json.loads(content)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise ProviderError(f"{self.host} sent no JSON object: {content[:200]!r}", cost=None)
        return cast("dict[str, Any]", data)


def _jittered(wait: float) -> float:
    return min(wait, LONGEST_WAIT) * random.uniform(0.5, 1.0)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait; None when it asks for nothing that can be read."""
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
    """What an error response says, on one line."""
    text = content.decode("utf-8", "replace")
    try:
        data: Any = json.loads(text)
        error = data["error"]
        text = f"{error['message']} ({error['code']})" if error.get("code") else str(error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


_endpoints: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Endpoint]] = weakref.WeakKeyDictionary()


def endpoint(
    base_url: str,
    headers: Mapping[str, str],
    *,
    timeout: float,
    deadline: float,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> Endpoint:
    """The endpoint of this URL and these settings on the running loop; the same one for every caller there."""
    key = (base_url, tuple(sorted(headers.items())), timeout, deadline, requests_per_minute, tokens_per_minute)
    here = _endpoints.setdefault(asyncio.get_running_loop(), {})
    if key not in here:
        limiter = Limiter(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
        here[key] = Endpoint(base_url, headers, timeout=timeout, deadline=deadline, limiter=limiter)
    return here[key]

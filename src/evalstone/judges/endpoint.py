"""The thin way to an OpenAI-compatible endpoint: one pooled aiohttp session an event loop, and retries that know why.

Retried with growing, jittered waits until a deadline: HTTP 408, 409, 429 and 5xx, timeouts, broken connections. A
Retry-After is honoured by all callers of the endpoint, not only by the one that was told. Everything else is final.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import time
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import aiohttp

from evalstone.errors import EndpointError, UsageError

FIRST_WAIT = 0.25
LONGEST_WAIT = 20.0
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_SPENT = ("insufficient_quota", "billing", "credit balance")


class Endpoint:
    """One base URL with its headers, as seen from one event loop. Enter it while it is used; it counts its users."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, timeout: float, deadline: float) -> None:
        self.url = base_url.rstrip("/")
        self.host = urlsplit(base_url).netloc.rpartition("@")[2]
        self.headers = dict(headers)
        self.timeout = timeout
        self.deadline = deadline
        self._session: aiohttp.ClientSession | None = None
        self._users = 0
        self._open_at = 0.0

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
                timeout=aiohttp.ClientTimeout(total=self.timeout),
                headers={"Content-Type": "application/json", **self.headers},
                # Reading it means looking for a .netrc file at every request: only where a proxy is asked for.
                trust_env=bool(getproxies()),
            )
        return self._session

    async def post(self, path: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The parsed answer to a request. Raises EndpointError after the deadline or for a final refusal, and
        UsageError when the key or the model's name is wrong."""
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        end = time.monotonic() + self.deadline
        attempt = 0
        while True:
            await self._wait_until(self._open_at)
            told, asked_wait = await self._try(path, body)
            if not isinstance(told, str):
                return told
            wait = _jittered(FIRST_WAIT * 2**attempt) if asked_wait is None else asked_wait
            attempt += 1
            if time.monotonic() + wait > end:
                raise EndpointError(f"{self.host} gave no answer in {attempt} attempts; the last: {told}")
            if asked_wait is not None:
                self._open_at = max(self._open_at, time.monotonic() + asked_wait)
            await self._wait_until(time.monotonic() + wait)

    async def _wait_until(self, moment: float) -> None:
        if (wait := moment - time.monotonic()) > 0:
            await asyncio.sleep(wait * random.uniform(1, 1.1))

    async def _try(self, path: str, body: bytes) -> tuple[dict[str, Any] | str, float | None]:
        """One attempt: the parsed answer, or what went wrong and the wait that was asked for."""
        try:
            async with self._connected().post(self.url + path, data=body) as response:
                content = await response.read()
                if response.status == 200:
                    return self._parsed(content), None
                told = f"HTTP {response.status}: {_message(content)}"
                if response.status in (401, 403, 404):
                    raise UsageError(f"{self.host} refused the request ({told}); check the key and the model's name")
                if response.status not in _RETRIED or any(word in told.lower() for word in _SPENT):
                    raise EndpointError(f"{self.host} refused the request ({told})")
                return told, _retry_after(response.headers)
        except TimeoutError:
            return f"no answer within {self.timeout:g} s", None
        except aiohttp.ClientError as error:
            return f"{type(error).__name__}: {error}", None

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            return json.loads(content)
        except ValueError:
            raise EndpointError(f"{self.host} sent no JSON: {content[:200]!r}") from None


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


def endpoint(base_url: str, headers: Mapping[str, str], *, timeout: float, deadline: float) -> Endpoint:
    """The endpoint of this URL and these settings on the running loop; the same one for every caller there."""
    key = (base_url, tuple(sorted(headers.items())), timeout, deadline)
    here = _endpoints.setdefault(asyncio.get_running_loop(), {})
    if key not in here:
        here[key] = Endpoint(base_url, headers, timeout=timeout, deadline=deadline)
    return here[key]

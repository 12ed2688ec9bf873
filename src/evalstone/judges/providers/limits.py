"""How many requests an endpoint takes: learned from its refusals, and held to what you set.

Additive increase, multiplicative decrease: each answer lets a little more through at once; when more than a fifth of
the last requests were refused as too many, the number is cut, once for all requests that were under way then. A
refusal now and then costs one more try and is cheaper than going slow. Nothing is held back before the first cut.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from types import TracebackType

DECREASE = 0.7
TOLERATED = 0.2
MEMORY = 0.95
MINUTE = 60.0


class Limiter:
    """The limiter of one endpoint on one event loop; shared by all who ask there.

    requests_per_minute, tokens_per_minute: your own limits; None for none. `admit` waits for a place.
    """

    def __init__(self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        self.at_once = math.inf
        self.under_way = 0
        self.refusals = 0
        self._share = 0.0
        self._open_at = 0.0
        self._cut_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._requests = TokenBucket(requests_per_minute)
        self._tokens = TokenBucket(tokens_per_minute)

    async def admit(self, tokens: int, *, until: float = math.inf) -> Place:
        """Wait until a request of about so many tokens may go out. Enter the place for as long as it is under way.

        Raises TimeoutError where everyone was asked to wait for longer than `until`, a time of the monotonic clock.
        """
        while self.under_way >= self.at_once:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                self._wake()
                raise
        self.under_way += 1
        try:
            while (wait := self._wait(tokens)) > 0:
                if self._open_at > until:
                    raise TimeoutError
                await asyncio.sleep(wait)
            self._requests.take(1)
            self._tokens.take(tokens)
        except BaseException:
            self.leave()
            raise
        return Place(self)

    def _wait(self, tokens: int) -> float:
        return max(self._open_at - time.monotonic(), self._requests.wait(1), self._tokens.wait(tokens))

    def leave(self) -> None:
        """Give a place back and let the next in."""
        self.under_way -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.under_way < self.at_once:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def answered(self) -> None:
        """A request was answered: a little more may go out at once."""
        self._share *= MEMORY
        if self.at_once < math.inf:
            self.at_once += 1 / self.at_once
            self._wake()

    def refused(self, sent_at: float, wait: float | None) -> None:
        """A request that went out at `sent_at` was refused as one too many; nobody sends for `wait` seconds."""
        self.refusals += 1
        now = time.monotonic()
        if wait is not None:
            self._open_at = max(self._open_at, now + wait)
        self._share = self._share * MEMORY + 1 - MEMORY
        if self._share > TOLERATED and sent_at >= self._cut_at:
            self._cut_at = now
            self.at_once = max(1.0, min(self.at_once, self.under_way) * DECREASE)


class Place:
    """A request's place under a limiter."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.sent_at = time.monotonic()

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.leave()


class TokenBucket:
    """So many a minute, saved up for at most a second; an amount above that goes out when the bucket is full."""

    def __init__(self, a_minute: int | None) -> None:
        self.rate = math.inf if a_minute is None else a_minute / MINUTE
        self.most = max(self.rate, 1.0)
        self.level = self.most
        self._at = time.monotonic()

    def wait(self, amount: float) -> float:
        """Seconds until this amount may be taken."""
        if self.rate == math.inf:
            return 0.0
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self._at) * self.rate)
        self._at = now
        return max(0.0, (min(amount, self.most) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        """Take an amount; a larger one than was saved leaves a debt."""
        if self.rate < math.inf:
            self.level -= amount

"""Rate limits, adaptive concurrency, and backoff between retries.

Concurrency follows additive increase, multiplicative decrease. It is unlimited until more than a fifth of the recent
requests get HTTP 429; then it is cut, once for all requests in flight at that time. Each answer raises it slightly. An
occasional 429 costs one retry, which is cheaper than a lower concurrency.

Retries are limited per endpoint, to ten per second plus one for every two answers. An endpoint that is down therefore
gets few requests, whatever the concurrency.

Inside `sharing`, several processes share the limits (`SharedLimits`), except for the retries.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
import weakref
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Hashable
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, AnyStr, Protocol, TypeAlias, TypeVar

from evalstone._core.declarations import Range, check_settings
from evalstone._core.display import count
from evalstone._core.redaction import REPEATED_SECRETS, redacted
from evalstone._core.values import NamesArguments
from evalstone.errors import ProviderError, ProviderTimeout, RequestLimitReached, RunStopped

T = TypeVar("T")

DECREASE = 0.7
"""The factor of a cut."""
TOLERATED = 0.2
"""The share of refused requests that causes a cut."""
MEMORY = 0.95
"""The decay of that share per request."""
MINUTE = 60.0
FIRST_WAIT = 0.25
LONGEST_WAIT = 20.0
UNREACHED = 15.0
"""Seconds after which to give up on an endpoint that has never answered: it is probably not running."""
MOST_ATTEMPTS = 100
"""The maximum number of failed attempts for one call, whatever its `total_timeout`."""
RETRIES_PER_SECOND, RETRIES_PER_ANSWER, RETRIES_SAVED = 10, 0.5, 50
"""The retry budget of an endpoint, and the number of retries that can be saved up."""
WATCH = 0.1
"""Seconds between checks for a stop request."""


@dataclass(frozen=True)
class Limits(metaclass=NamesArguments):
    """Limits for calls to a judge, a model or a target. None means no limit.

    All equal ones on one event loop share a limit. Raises ConfigError for a value out of range.
    """

    max_concurrency: Annotated[int | None, Range(1)] = None
    """Concurrent calls."""

    requests_per_minute: Annotated[int | None, Range(1)] = None
    """Calls started per minute. For a model, HTTP requests, including retries."""

    tokens_per_minute: Annotated[int | None, Range(1)] = None
    """Input tokens sent per minute, estimated at four bytes each. For models only."""

    max_requests: Annotated[int | None, Range(0)] = None
    """Calls per run. For a model, HTTP requests, including retries and corrections. The next one raises
    RequestLimitReached, which ends the run; results so far are kept."""

    def __post_init__(self) -> None:
        check_settings(self)

    @asynccontextmanager
    async def admitted(self, name: str) -> AsyncGenerator[None]:
        """Wait until the limits admit a call to the judge or the target of this name, and hold a slot during the call.

        Raises:
            RequestLimitReached: `max_requests` is reached.
        """
        async with shared_limiter(name, self) as limiter:
            limiter.check(name)
            await limiter.admit()
            try:
                await limiter.count(name)
                yield
            finally:
                limiter.release()


NO_LIMITS = Limits()


class TransientError(ProviderError):
    """An attempt failed, but another one may succeed. Only raised to the retry loop.

    host: the host that failed. retry_after: the seconds to wait, if the provider says so. reached: whether the provider
    has ever answered. rejected: whether the request was certainly not processed. adapted: the provider refused a part
    of the request that the next attempt omits, so there is no need to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        host: str = "",
        retry_after: float | None = None,
        reached: bool = True,
        rejected: bool = False,
        adapted: bool = False,
    ) -> None:
        super().__init__(message)
        self.host = host
        self.retry_after = retry_after
        self.reached = reached
        self.rejected = rejected
        self.adapted = adapted


_stop_requested: ContextVar[Callable[[], bool] | None] = ContextVar("stop_requested", default=None)


@contextmanager
def stopping(requested: Callable[[], bool]) -> Generator[None]:
    """Inside this context, waits end with RunStopped once `requested` returns True."""
    token = _stop_requested.set(requested)
    try:
        yield
    finally:
        _stop_requested.reset(token)


async def pause(seconds: float, cause: str = "") -> None:
    """Wait before a request. Raises RunStopped once a stop is requested. cause: the reason for the wait."""
    if (requested := _stop_requested.get()) is None:
        if seconds > 0:
            await asyncio.sleep(seconds)
        return
    until = time.monotonic() + seconds
    while not requested():
        if (left := until - time.monotonic()) <= 0:
            return
        await asyncio.sleep(min(left, WATCH))
    raise RunStopped("the run was stopped before the next request" + (f"; {cause}" if cause else ""))


def waited(seconds: float) -> str:
    """The cause of a wait that limits make necessary."""
    return f"a request had to wait for {seconds:.0f} s"


NextAttempt: TypeAlias = Callable[[float | None, int], Awaitable[None]]
"""Called before a correction, with the cost of the attempt before it (None if unknown) and the number of bytes of the
correction's messages. Raises BudgetExceeded if the correction must not be sent."""
_next_attempt: ContextVar[NextAttempt | None] = ContextVar("next_attempt", default=None)


@contextmanager
def paying(for_attempt: NextAttempt) -> Generator[None]:
    """Inside this context, call this function before each correction of a malformed reply."""
    token = _next_attempt.set(for_attempt)
    try:
        yield
    finally:
        _next_attempt.reset(token)


async def pay_for_attempt(cost: float | None, size: int) -> None:
    """Announce a correction. The arguments and errors are those of `NextAttempt`."""
    if (next_attempt := _next_attempt.get()) is not None:
        await next_attempt(cost, size)


class SharedLimit(Protocol):
    """What several processes share of the limits that one limiter applies."""

    def check(self) -> None:
        """Raise the error that has ended the sharing."""

    def wait_for_slot(self) -> None:
        """Ask for slots of the other processes. They come by `Limiter.hold`."""

    async def turn(self, tokens: int) -> None:
        """Wait until a call with this many tokens may start by `requests_per_minute` and `tokens_per_minute`."""

    async def count(self) -> bool:
        """Count a call that starts now. Returns False, and counts nothing, if `max_requests` is reached."""
        ...

    @property
    def counts(self) -> bool:
        """Whether `max_requests` is for all processes together."""
        ...

    @property
    def spent(self) -> bool:
        """Whether `max_requests` is known to be reached."""
        ...

    def refused(self, sent_at: float, retry_after: float | None, *, cut: bool) -> None:
        """Tell the others of an HTTP 429 for a request sent at `sent_at`. cut: whether it cut the concurrency here."""


class SharedLimits(Protocol):
    """Limits that several processes share."""

    def of(self, limiter: Limiter) -> SharedLimit:
        """What they share of a limiter's limits."""
        ...


_sharing: ContextVar[SharedLimits | None] = ContextVar("sharing", default=None)


@contextmanager
def sharing(limits: SharedLimits) -> Generator[None]:
    """Inside this context, limits are those that several processes share."""
    token = _sharing.set(limits)
    try:
        yield
    finally:
        _sharing.reset(token)


_warnings: ContextVar[Counter[str] | None] = ContextVar("warnings", default=None)


@contextmanager
def counting_warnings() -> Generator[Counter[str]]:
    """Count the warnings inside this context and the tasks started in it, but of no other task on the loop."""
    counter: Counter[str] = Counter()
    token = _warnings.set(counter)
    try:
        yield counter
    finally:
        _warnings.reset(token)


def count_warning(name: str) -> None:
    """Count an error that is retried, such as "HTTP 429", for the current run."""
    if (counter := _warnings.get()) is not None:
        counter[name] += 1


def received(content: AnyStr) -> AnyStr:
    """An endpoint's response without secrets. If it contained one, that is counted as a warning."""
    clean = redacted(content)
    if clean != content:
        count_warning(REPEATED_SECRETS)
    return clean


@dataclass
class Backoff:
    """Exponential backoff with jitter. It waits at least as long as the provider asks for.

    attempts: the failures since the last answer. failures: all failures.
    """

    total_timeout: float = math.inf
    attempts: int = 0
    failures: int = 0
    started: float = field(default_factory=time.monotonic)

    async def wait(self, error: TransientError) -> None:
        """Wait before the next attempt.

        Raises:
            ProviderTimeout: The next attempt would start after `total_timeout`, or there were `MOST_ATTEMPTS`.
            RunStopped: A stop was requested.
        """
        self.failures += 1
        seconds = 0.0
        if not error.adapted:
            seconds = min(FIRST_WAIT * 2 ** min(self.attempts, 10), LONGEST_WAIT) * random.uniform(0.5, 1.0)
            self.attempts += 1
        if error.retry_after is not None:
            seconds = max(seconds, error.retry_after * random.uniform(1.0, 1.1))
        timeout = self.total_timeout if error.reached else min(self.total_timeout, UNREACHED)
        late = not error.adapted and time.monotonic() + seconds > self.started + timeout
        message = f"{error.host} gave no answer in {count(self.failures, 'attempt')}; the last: {error}"
        if late or self.failures >= MOST_ATTEMPTS:
            no_time = late and error.reached
            hint = f"; total_timeout={self.total_timeout:g} s leaves no time for another" if no_time else ""
            raise ProviderTimeout(message + hint)
        await pause(seconds, message)

    @property
    def expired(self) -> bool:
        """Whether `total_timeout` is over."""
        return time.monotonic() > self.started + self.total_timeout


class Limiter:
    """Applies the limits of one endpoint, judge or target on one event loop. Enter it while a run uses it.

    key: what it is for. Limiters of other processes with the same key and limits share them.
    """

    def __init__(self, limits: Limits | None = None, key: Hashable = "") -> None:
        self.limits, self.key = limits or Limits(), key
        self.ceiling = math.inf if self.limits.max_concurrency is None else self.limits.max_concurrency
        self.concurrency: float = self.ceiling
        self.inflight = 0
        self._slots: float = math.inf
        """The slots of `max_concurrency` that this process holds."""
        self._holders: dict[Hashable, int] = {}
        self._refused_share = 0.0
        self._open_at = 0.0
        self._cut_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        requests, tokens = self.limits.requests_per_minute, self.limits.tokens_per_minute
        self._requests = None if requests is None else TokenBucket(requests)
        self._tokens = None if tokens is None else TokenBucket(tokens)
        self._retries = TokenBucket(RETRIES_PER_SECOND * MINUTE, saved=RETRIES_SAVED)
        self._users = 0
        self._count = 0

    async def __aenter__(self) -> Limiter:
        self._users += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        self._users -= 1
        if not self._users:
            self._count = 0

    def check(self, name: str) -> None:
        """Raise RequestLimitReached if `max_requests` is reached."""
        if self.limits.max_requests is None:
            return
        shared = self._shared
        counted = shared is not None and shared.counts
        if shared.spent if shared is not None and counted else self._count >= self.limits.max_requests:
            raise self._reached(name)

    async def count(self, name: str) -> None:
        """Count a call that starts now: one that waits may never start. Raises RequestLimitReached like `check`."""
        if self.limits.max_requests is None:
            return
        shared = self._shared
        if shared is not None and shared.counts:
            if not await shared.count():
                raise self._reached(name)
            return
        self.check(name)
        self._count += 1

    def _reached(self, name: str) -> RequestLimitReached:
        return RequestLimitReached(f"max_requests={self.limits.max_requests} of {name} is reached")

    @property
    def _shared(self) -> SharedLimit | None:
        return None if (limits := _sharing.get()) is None else limits.of(self)

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a slot."""
        return sum(not turn.done() for turn in self._waiting)

    async def admit(self, tokens: int = 0, *, until: float = math.inf) -> float:
        """Wait until a call with this many tokens may start. Returns its start time. Call `release` when it ends.

        Raises:
            TimeoutError: The provider's Retry-After is later than `until`, on the monotonic clock.
            RunStopped: A stop was requested.
        """
        shared = self._shared
        while self.inflight >= self.concurrency or self.inflight >= self._slots:
            if shared is not None and self.inflight >= self._slots:
                shared.check()
                shared.wait_for_slot()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                while shared is not None and not turn.done():  # other processes don't know that a stop was requested
                    await asyncio.wait((turn,), timeout=WATCH)
                    await pause(0)
                await turn
                await pause(0)
            except BaseException:
                turn.cancel()
                self._wake()
                raise
        self.inflight += 1
        try:
            if shared is not None:
                await self._turn(shared, tokens, until)
            else:
                await self._own_turn(tokens, until)
        except BaseException:
            self.release()
            raise
        return time.monotonic()

    async def _turn(self, shared: SharedLimit, tokens: int, until: float) -> None:
        while True:
            shared.check()
            await self._reopened(until)
            await shared.turn(tokens)
            if self._open_at <= time.monotonic():
                return

    async def _reopened(self, until: float) -> None:
        """Wait as long as the provider asked for."""
        while (wait := self._open_at - time.monotonic()) > 0:
            if self._open_at > until:
                raise TimeoutError
            await pause(wait, waited(wait))

    async def _own_turn(self, tokens: int, until: float) -> None:
        while True:
            wait = self._open_at - time.monotonic()
            if self._requests is not None:
                wait = max(wait, self._requests.wait(1))
            if self._tokens is not None:
                wait = max(wait, self._tokens.wait(tokens))
            if wait <= 0:
                break
            if self._open_at > until:
                raise TimeoutError
            await pause(wait, waited(wait))
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def release(self) -> None:
        """End an admitted call, and admit the next one."""
        self.inflight -= 1
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting and self.inflight < self.concurrency and self.inflight < self._slots:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def answered(self) -> None:
        """Record an answer. It raises the concurrency and the retry budget."""
        self._refused_share *= MEMORY
        self._retries.add(RETRIES_PER_ANSWER)
        if self.concurrency < self.ceiling:
            self.concurrency = min(self.ceiling, self.concurrency + 1 / self.concurrency)
            self._wake()

    def retry_wait(self) -> float:
        """Take one retry from the budget, and return the seconds to wait for it."""
        wait = self._retries.wait(1)
        self._retries.take(1)
        return wait

    def refused(self, sent_at: float, retry_after: float | None) -> None:
        """Record an HTTP 429 for a request sent at `sent_at`. No request starts for `retry_after` seconds."""
        now = time.monotonic()
        if retry_after is not None:
            self._open_at = max(self._open_at, now + retry_after)
        self._refused_share = self._refused_share * MEMORY + 1 - MEMORY
        cut = self._refused_share > TOLERATED and self.cut(sent_at)
        if (retry_after is not None or cut) and (shared := self._shared) is not None:
            shared.refused(sent_at, retry_after, cut=cut)

    def cut(self, sent_at: float) -> bool:
        """Cut the concurrency because of a request sent at `sent_at`, unless it was cut since. Returns whether it was
        cut."""
        if sent_at < self._cut_at:
            return False
        self._cut_at = time.monotonic()
        if self.inflight:
            self.concurrency = max(1.0, min(self.concurrency, self.inflight) * DECREASE)
        return True

    def close_until(self, at: float) -> None:
        """Start no request before this time."""
        self._open_at = max(self._open_at, at)

    def hold(self, holder: Hashable, slots: int | None) -> None:
        """Set how many slots of `max_concurrency` this process holds; None if they are no longer shared.

        holder: one that shares the limits. The slots of all of them count.
        """
        if slots is None:
            self._holders.pop(holder, None)
        else:
            self._holders[holder] = slots
        self._slots = sum(self._holders.values()) if self._holders else math.inf
        for _ in range(len(self._waiting)):
            self._wake()


class TokenBucket:
    """A token bucket with a rate per minute. It holds one second's worth, or `saved` if that is more.

    An amount larger than the bucket may be taken once the bucket is full.
    """

    def __init__(self, per_minute: float, *, saved: float = 0.0) -> None:
        self.rate = per_minute / MINUTE
        self.capacity = max(self.rate, 1.0, saved)
        self.level = self.capacity
        self._at = time.monotonic()

    def wait(self, amount: float) -> float:
        """Seconds until this amount may be taken."""
        now = time.monotonic()
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now
        return max(0.0, (min(amount, self.capacity) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        """Take an amount. The level may become negative."""
        self.level -= amount

    def add(self, amount: float) -> None:
        """Add an amount, up to the capacity."""
        self.level = min(self.capacity, self.level + amount)


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Any]] = weakref.WeakKeyDictionary()


def shared(key: Hashable, factory: Callable[[], T]) -> T:
    """The value for a key on the running loop, shared by all callers. Created on first use."""
    values = _shared.setdefault(asyncio.get_running_loop(), {})
    if key not in values:
        values[key] = factory()
    return values[key]


def shared_limiter(key: Hashable, limits: Limits) -> Limiter:
    """The limiter for a key and limits, shared by all callers on the running loop."""
    return shared((Limiter, key, limits), partial(Limiter, limits, key))

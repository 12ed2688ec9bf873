"""Limits that several processes share, by a row for each in a store that all of them reach.

- `requests_per_minute` and `tokens_per_minute`: the row is a schedule. A call takes as many seconds of it as a minute
  and `SLACK` have for each call, or for each token of it. A process takes a slice of the schedule, starts its calls in
  it without asking again, and gives back the end of it if nobody has taken what follows. A call that hasn't started
  within `LATE` of its time takes a later one, so calls never bunch: no minute has more of them than the limit.
- `max_concurrency`: each process holds a number of slots, which together are never more than the limit. What it
  doesn't need it gives back within a second; if others wait, all that is above its part, once its calls end.
- A wait that a provider asks for, and a cut of the concurrency, are passed on to the others within a second.
- `max_requests` and budgets: each process holds an `Allowance`, of which it gives back what it doesn't use.

What a process holds that is gone is free again after `SHARE_SECONDS`. Its allowances count as used, because nobody
knows how much of them was.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evalstone._core.json import content_hash
from evalstone._core.sync import cancel_all
from evalstone.errors import StorageError
from evalstone.models.limits import MINUTE, Limiter, Limits, pause, waited

LATE = 0.4
"""Seconds after its time until which a call may start."""
SLACK = 1.0
"""Seconds by which requests may be late where they arrive without there being too many in a minute: `LATE`, and what
the way there takes more for one than for another."""
SLICE_SECONDS, SLICE_CALLS = 1.0, 100
"""The most of a schedule that a process takes at a time. It is less where calls are few."""
LEAD = 0.05
"""Seconds before the end of a slice at which the next one is taken."""
INTERVAL, POLL = 1.0, 0.2
"""Seconds between exchanges with the store, also while this process waits for others."""
SHARE_SECONDS = 10.0
"""Seconds after which what a process holds is free again, if it hasn't been heard of."""
_EPSILON = 1e-6


def seconds_of(limits: Limits, tokens: int) -> float:
    """The seconds of the schedule that a call with this many tokens takes; 0 without a limit on the rate."""
    minute, requests, of_tokens = MINUTE + SLACK, limits.requests_per_minute, limits.tokens_per_minute
    return max(
        0.0 if requests is None else minute / requests, 0.0 if of_tokens is None else minute * tokens / of_tokens
    )


@dataclass
class Slice:
    """A part of a schedule, which its owner uses from the front. Times are on the owner's monotonic clock."""

    at: float = -math.inf
    """The time of the next call."""
    end: float = -math.inf
    late: float = LATE
    """The seconds after its time until which a call may start."""
    mark: float = 0.0
    """The end by the clock of the store."""
    ahead: float = 0.0
    """By how many seconds it was in the future when it was taken."""
    calls: int = 0
    """The number of calls that were started in it."""

    def take(self, seconds: float, now: float) -> float | None:
        """The time of a call that takes so many seconds; None if there is no room for it. The part that is over is
        lost."""
        at = max(self.at, now - self.late)
        if at + seconds > self.end + _EPSILON:
            return None
        self.at = at + seconds
        self.calls += 1
        return at

    @property
    def rest(self) -> float:
        """The seconds that aren't used."""
        return max(0.0, self.end - self.at) if math.isfinite(self.end) else 0.0


def slots_for(ceiling: int, held: int, before: int, wanted: int, others: Others) -> int:
    """How many slots a process may use; at most the rest that others leave.

    Args:
        ceiling: The slots of all processes together.
        held: The slots that the process has not given back.
        before: Those that it had not given back the last time. If there are fewer slots than processes that wait, one
            that has had some gives them up, and asks again later.
        wanted: The slots that it could use.
        others: What the others hold.
    """
    slots = min(wanted, max(0, ceiling - others.slots))
    if not others.waiting:
        return slots
    members = 1 + others.active
    fair, rest = divmod(ceiling, members)
    if fair:
        return min(slots, fair + (others.before < rest))
    return min(slots, 0 if held or before else 1)


@dataclass(frozen=True)
class Others:
    """What the other processes hold of a limit."""

    slots: int = 0
    waiting: bool = False
    """Whether one of them waits for slots."""
    active: int = 0
    """The number of those that hold slots or wait for some."""
    before: int = 0
    """How many of these come before this process in the order of their names."""


@dataclass(frozen=True)
class Report:
    """What a process tells the store of a limit, and asks it for. Times are on its monotonic clock."""

    name: str
    member: str
    ceiling: int | None = None
    """`max_concurrency`; None if there is none."""
    held: int = 0
    """The slots that it holds at least until it reports again."""
    before: int = 0
    """Those that it reported last."""
    wanted: int = 0
    """The slots that it could use."""
    closed_until: float = 0.0
    """The time before which no request may start."""
    cut_by: float | None = None
    """The time of the request that cut the concurrency."""


@dataclass(frozen=True)
class State:
    """What the store knows of a limit. Times are on the process's monotonic clock."""

    slots: int = 0
    """The slots that the process may use from now on. It holds those of its calls until they end."""
    closed_until: float = 0.0
    cut: float = 0.0
    """Identifies the last cut."""
    cut_by: float = 0.0


@dataclass(frozen=True)
class Grant:
    """What a process may use of an amount."""

    amount: float
    total: float
    """What all processes hold or have used."""
    hopeless: bool
    """Whether what it needs is more than is left, even if the others give back all that they haven't used."""
    lost: float = 0.0
    """What processes that are gone held without having told that they used it. It counts as used."""


class Store(Protocol):
    """Where the rows are. All raise StorageError."""

    async def book(self, name: str, seconds: float, rest: float, mark: float) -> Slice:
        """The next slice of a schedule. rest, mark: the unused seconds of the last slice, and its end."""
        ...

    async def exchange(self, reports: Sequence[Report]) -> Sequence[State]:
        """Report, and learn what others reported."""
        ...

    async def grant(
        self, name: str, member: str, *, cap: float, used: float, held: float, needed: float, more: float
    ) -> Grant:
        """Set what a process holds of an amount.

        Args:
            name: The name of the amount.
            member: The process.
            cap: What all processes may use.
            used: What this one has used.
            held: What it keeps if it doesn't get what it needs.
            needed: What it needs.
            more: What it would take besides, if that leaves enough for others.
        """
        ...

    async def give_back(self, name: str, rest: float, mark: float) -> None:
        """Give back the end of a slice. The arguments are those of `book`."""
        ...

    async def leave(self, members: Sequence[str]) -> None:
        """Give back slots. Allowances stay as they are."""
        ...


@dataclass(eq=False)
class Allowance:
    """What this process may use of an amount that several processes share: US dollars, or requests."""

    name: str
    cap: float
    """What all processes may use together."""
    member: str
    store: Store
    used: Callable[[], float]
    """What this process has used."""
    reserved: Callable[[], float] = field(default=lambda: 0.0)
    """What it will use besides."""
    granted: float = 0.0
    total: float = 0.0
    """What all processes held or had used when this one last asked."""
    lost: float = 0.0
    """As in the last `Grant`."""
    _last: float = 0.0
    _asked: float = 0.0
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def _needed(self) -> float:
        return self.used() + self.reserved()

    def fits(self, amount: float) -> bool:
        """Whether an amount may be used now."""
        return self._needed + amount <= self.granted + _EPSILON

    async def provide(self, amount: float, ended: Callable[[], bool] = lambda: False) -> bool:
        """Wait until an amount may be used. Returns False if it is more than is left, or the work has ended."""
        while not self.fits(amount):
            async with self._asking:
                if self.fits(amount):
                    break
                grant = await self._ask(amount, amount * (SLICE_CALLS - 1))
                if self.fits(amount):
                    break
            if grant.hopeless or ended():
                return False
            await pause(POLL * random.uniform(0.5, 1.5), "what is left is reserved for calls of other processes")
        return True

    async def give_back(self) -> None:
        """Once an interval: give back what wasn't used in it, and tell what was used."""
        now = time.monotonic()
        if not self.granted or now < self._asked + INTERVAL:
            return
        async with self._asking:
            lately, self._last = self.used() - self._last, self.used()
            spare = max(0.0, self.granted - self._needed)
            if lately or spare or now > self._asked + SHARE_SECONDS / 3:
                await self._ask(min(lately, spare), 0.0)
                self._asked = now

    async def close(self) -> None:
        """Give back what isn't used."""
        async with self._asking:
            if self.granted:
                await self._ask(0.0, 0.0)

    async def _ask(self, amount: float, more: float) -> Grant:
        held = self._needed
        grant = await self.store.grant(
            self.name, self.member, cap=self.cap, used=self.used(), held=held, needed=held + amount, more=more
        )
        self.granted, self.total, self.lost = grant.amount, grant.total, grant.lost
        return grant


class _Shared:
    """What several processes share of one limiter's limits."""

    def __init__(self, name: str, member: str, limiter: Limiter, store: Store, wake: Callable[[], None]) -> None:
        self.name, self.member, self.limiter, self._store, self._wake = name, member, limiter, store, wake
        self.error: Exception | None = None
        self._slice, self._booking, self._calls = Slice(), asyncio.Lock(), 1
        self._callers = 0
        self._closed_until = 0.0
        self._cut_by: float | None = None
        self._cut: float | None = None
        self._wanted = self._held = self._allowed = 0
        self.hungry = False
        """Whether calls wait for slots that others hold."""
        self.is_leaving = False
        """Whether it is to give slots back once calls end."""
        self.requests: Allowance | None = None
        self._counted = 0
        if limiter.limits.max_concurrency is not None:
            limiter.hold(self, 0)

    def share_requests(self, name: str, cap: int) -> None:
        """Share `max_requests`."""
        self.requests = Allowance(name, cap, self.member, self._store, lambda: self._counted)

    def check(self) -> None:
        """As `SharedLimit.check`."""
        if self.error is not None:
            raise self.error

    def wait_for_slot(self) -> None:
        """As `SharedLimit.wait_for_slot`."""
        if not self.hungry:
            self.hungry = True
            self._wake()

    async def turn(self, tokens: int) -> None:
        """As `SharedLimit.turn`."""
        if not (seconds := seconds_of(self.limiter.limits, tokens)):
            return
        self._callers += 1
        try:
            while True:
                if (at := self._slice.take(seconds, time.monotonic())) is None:
                    async with self._booking:
                        if (at := self._slice.take(seconds, time.monotonic())) is None:
                            await self._book(seconds)
                            continue
                while (wait := at - time.monotonic()) > 0:
                    await pause(wait, waited(wait))
                if time.monotonic() <= at + self._slice.late:
                    return
        finally:
            self._callers -= 1

    async def _book(self, seconds: float) -> None:
        last = self._slice
        while (wait := last.end - LEAD - time.monotonic()) > 0:
            await pause(wait, waited(wait))
        # For all calls that wait, if the schedule makes them. Otherwise more come meanwhile: as many as last time, or
        # twice as many if it was too few.
        self._calls = max(1, min(SLICE_CALLS, 2 * self._calls if last.rest < seconds else last.calls))
        calls = self._callers if last.ahead > LEAD else max(self._calls, self._callers)
        calls = min(calls, SLICE_CALLS, max(1, int(SLICE_SECONDS / seconds)))
        self._slice = await self._store.book(self.name, calls * seconds, last.rest, last.mark)

    @property
    def counts(self) -> bool:
        """As `SharedLimit.counts`."""
        return self.requests is not None

    @property
    def spent(self) -> bool:
        """As `SharedLimit.spent`."""
        return self.requests is not None and not self.requests.fits(1) and self.requests.total >= self.requests.cap

    async def count(self) -> bool:
        """As `SharedLimit.count`."""
        self.check()
        if self.requests is None or not await self.requests.provide(1):
            return False
        self._counted += 1
        return True

    def refused(self, sent_at: float, retry_after: float | None, *, cut: bool) -> None:
        """As `SharedLimit.refused`."""
        if retry_after is not None:
            self._closed_until = max(self._closed_until, time.monotonic() + retry_after)
        if cut:
            self._cut_by = sent_at
        self._wake()

    def report(self) -> Report:
        """What to tell the others."""
        limiter = self.limiter
        # What it doesn't need it gives back little by little.
        self._wanted = max(limiter.inflight + limiter.waiting, int(0.7 * self._wanted))
        before, self._held = self._held, max(limiter.inflight, min(self._allowed, self._wanted))
        if limiter.limits.max_concurrency is not None:
            limiter.hold(self, self._held)
        closed_until, self._closed_until = self._closed_until, 0.0
        cut_by, self._cut_by = self._cut_by, None
        return Report(
            self.name,
            self.member,
            limiter.limits.max_concurrency,
            held=self._held,
            before=before,
            wanted=self._wanted,
            closed_until=closed_until,
            cut_by=cut_by,
        )

    def learn(self, state: State) -> None:
        """Apply what others have told."""
        limiter = self.limiter
        limiter.close_until(state.closed_until)
        if self._cut is not None and state.cut != self._cut:
            limiter.cut(state.cut_by)
        self._cut = state.cut
        if limiter.limits.max_concurrency is not None:
            self._allowed = state.slots
            limiter.hold(self, state.slots)
            self.hungry = limiter.waiting > 0 and limiter.inflight >= state.slots < limiter.limits.max_concurrency
            self.is_leaving = state.slots < self._held

    async def leave(self) -> None:
        """Give back what isn't used of the schedule."""
        if self._slice.rest:
            await self._store.give_back(self.name, self._slice.rest, self._slice.mark)


class LimitSharing:
    """Limits that this process shares with all that use the same store, while it is entered.

    Args:
        store: Where the rows are.
        owner: The name of this process, which no other has.
        scope: What `max_requests` and the budget are for, if several processes work on it; "" for one of its own.
    """

    def __init__(self, store: Store, owner: str, scope: str = "") -> None:
        self._store, self._owner, self.scope = store, owner, scope
        self._limits: dict[Limiter, _Shared] = {}
        self._allowances: list[Allowance] = []
        self._woken = asyncio.Event()
        self._error: Exception | None = None
        self._task: asyncio.Task[None]

    async def __aenter__(self) -> LimitSharing:
        self._task = asyncio.create_task(self._keep_up())
        return self

    async def __aexit__(self, *raised: object) -> None:
        await cancel_all([self._task])
        limits, self._limits = list(self._limits.values()), {}
        for shared in limits:
            shared.limiter.hold(shared, None)
        # What can't be given back now is free later.
        with contextlib.suppress(StorageError):
            for shared in limits:
                await shared.leave()
            for allowance in self._allowances:
                await allowance.close()
            await self._store.leave([shared.member for shared in limits])

    def of(self, limiter: Limiter) -> _Shared:
        """As `SharedLimits.of`."""
        shared = self._limits.get(limiter)
        if shared is None:
            limits = limiter.limits
            name = content_hash([limiter.key, vars(limits)])
            member = f"{self._owner} {len(self._limits)}"
            shared = self._limits[limiter] = _Shared(name, member, limiter, self._store, self._woken.set)
            shared.error = self._error
            if self.scope and limits.max_requests is not None:
                shared.share_requests(f"{self.scope} {content_hash([limiter.key, 'requests'])}", limits.max_requests)
                assert shared.requests is not None  # noqa: S101 - it was set just now
                self._allowances.append(shared.requests)
        return shared

    def budget(self, cap: float, used: Callable[[], float], reserved: Callable[[], float]) -> Allowance:
        """The part of this process in the budget of the scope. cap: US dollars."""
        allowance = Allowance(f"{self.scope} budget", cap, self._owner, self._store, used, reserved)
        self._allowances.append(allowance)
        return allowance

    async def _keep_up(self) -> None:
        """Exchange with the store, at once if something is to be told or asked."""
        try:
            while True:
                hungry = any(shared.hungry or shared.is_leaving for shared in self._limits.values())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout((POLL if hungry else INTERVAL) * random.uniform(0.8, 1.2)):
                        await self._woken.wait()
                await asyncio.sleep(LEAD)  # others may have something to tell, too
                self._woken.clear()
                limits = list(self._limits.values())
                if limits:
                    states = await self._store.exchange([shared.report() for shared in limits])
                    for shared, state in zip(limits, states, strict=True):
                        shared.learn(state)
                for allowance in self._allowances:
                    await allowance.give_back()
        except Exception as error:  # noqa: BLE001 - raised where a call waits
            self._error = error
            for shared in self._limits.values():
                shared.error = error
                shared.limiter.hold(shared, None)  # who waits is woken, and raises the error

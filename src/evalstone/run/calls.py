"""The calls of a run, to judges and to its target: each is made once, counted, and stored before its answer counts.

A call passes, in this order: calls in flight, the ledger, the first call of its price, the concurrency limit, the
budget, the stop signal, the circuit breaker, the judge or target, and the ledger again. What differs between a judge
and a target is in `Call`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from evalstone._core import sync
from evalstone.errors import RunStopped
from evalstone.ledger import AsyncLedger, Key, StoredAnswer
from evalstone.models.limits import sharing
from evalstone.models.shared_limits import LimitSharing
from evalstone.run.budget import Budget, PriceKey, Reservation, StopSignal
from evalstone.run.circuit_breaker import CircuitBreaker
from evalstone.run.spending import Spending

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound="Shared[Any]")

ROOM_INTERVAL = 0.005
"""Seconds between checks whether the budget has room for a call."""


class Shared(Generic[T]):
    """Work in flight. Whoever asks for it meanwhile shares its answer, or its failure."""

    __slots__ = ("_waiting", "task")
    task: asyncio.Task[T]

    def start(self, work: Coroutine[Any, Any, T]) -> None:
        """Start the work."""
        self._waiting: list[asyncio.Future[T]] = []
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._end)

    def outcome(self) -> asyncio.Future[T]:
        """The outcome for one asker, who may be canceled without canceling the work. Cheaper than `asyncio.shield`."""
        if self.task.done():
            return self.task
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _end(self, task: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()  # retrieves it, even if all askers were canceled
        for waiter in self._waiting:
            if waiter.done():
                continue
            if task.cancelled():
                waiter.cancel()
            elif error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(task.result())


class Inflight(Generic[K, S]):
    """Work in flight, by key."""

    def __init__(self) -> None:
        self._shared: dict[K, S] = {}

    def get(self, key: K) -> S | None:
        """The work in flight for a key."""
        return self._shared.get(key)

    def start(self, key: K, shared: S, work: Coroutine[Any, Any, Any]) -> S:
        """Start work. It is kept until `forget`."""
        self._shared[key] = shared  # before the task, which begins at once if it is eager
        shared.start(work)
        return shared

    def forget(self, key: K, shared: S) -> None:
        """Forget work, so that the next who asks starts it anew."""
        if self._shared.get(key) is shared:
            del self._shared[key]

    async def close(self) -> None:
        """Cancel what is in flight, and wait for it to end."""
        await sync.cancel_all([shared.task for shared in self._shared.values()])


class Call(ABC, Generic[T]):
    """One call: what differs between judges and targets.

    key: the key of its answer. ledger: where its answer is stored; None if nowhere. breaker: that of the judge or
    target. price_key: what calls have in common that cost about as much. ending_the_run: the errors that end the run,
    not only the sample.
    """

    __slots__ = ()
    key: Key
    ledger: AsyncLedger | None
    breaker: CircuitBreaker
    price_key: PriceKey
    ending_the_run: tuple[type[Exception], ...]

    @property
    @abstractmethod
    def stop(self) -> StopSignal | None:
        """Once requested, the call isn't made."""

    @abstractmethod
    def estimate(self, budget: Budget, size: int | None = None) -> float:
        """What the call may cost, in US dollars. size: the number of bytes of its messages, for a correction."""

    @abstractmethod
    def is_priced(self, budget: Budget) -> bool:
        """Whether a call of this price has been made, or costs nothing."""

    @abstractmethod
    def admitted(self) -> AbstractAsyncContextManager[Any]:
        """The slot of the call. Entering waits for it."""

    def check(self) -> None:
        """Raise an error if the judge or target is known not to work."""

    @abstractmethod
    async def send(self, reservation: Reservation) -> T:
        """Call the judge or target, and settle the reservation. One that isn't settled counts as spent."""

    @abstractmethod
    def failed(self, error: Exception | asyncio.CancelledError) -> T:
        """The outcome of a call that raised an error; or raises it."""

    @abstractmethod
    def row(self, outcome: T) -> StoredAnswer | None:
        """The row of the answer; None if it isn't stored."""


class Calls:
    """The calls of a run.

    Args:
        ledger: Where answers are stored and looked up.
        cache: Whether to use answers in the ledger.
        budget: The budget of the run.
        limits: The limits that several processes share; None if each has its own.
    """

    def __init__(
        self,
        *,
        ledger: AsyncLedger | None,
        cache: bool,
        budget: Budget | None,
        limits: LimitSharing | None = None,
    ) -> None:
        self.ledger, self.budget, self.limits = ledger, budget, limits
        self.spending = Spending(budget, ledger)
        self.ended = ""
        """Why no more calls are made."""
        self._cache = cache
        self._first: defaultdict[PriceKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reserving = 0
        """The calls in flight with a reservation in the budget."""

    async def obtain(
        self, key: Key, read: Callable[[StoredAnswer], Awaitable[T | None]], make: Callable[[], Awaitable[T]]
    ) -> T:
        """The outcome in the ledger, or a new one.

        Args:
            key: The key of the answer.
            read: Reads an outcome from its row. Returns None for one that can't be used.
            make: Makes a new one, while no other process makes the same.
        """
        ledger = self.ledger
        if ledger is None or not self._cache:
            return await make()
        stored = await ledger.answer_or_claim(*key)
        try:
            if isinstance(stored, StoredAnswer) and (outcome := await read(stored)) is not None:
                return outcome
            return await make()
        finally:
            ledger.release(*key)

    def make(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        """Make a call. Under a budget, the first of each price runs alone: what a target costs isn't known before, nor
        how many tokens a judge reasons with, and later calls reserve what the first has cost."""
        making = self._made(call) if self.budget is None else self._made_within(self.budget, call)
        return making if self.limits is None else _sharing(self.limits, making)

    async def _made_within(self, budget: Budget, call: Call[T]) -> T:
        if not call.is_priced(budget):
            async with self._first[call.price_key]:
                if not call.is_priced(budget):
                    return await self._made(call)
        return await self._made(call)

    async def _made(self, call: Call[T]) -> T:
        # Hold the slot until the answer is committed, so that a crash loses at most the calls in flight.
        async with call.admitted():
            ledger = call.ledger
            if self.budget is not None:
                await self._wait_for(self.budget, call)
            if self.ended:
                raise RunStopped(self.ended)
            if ledger is not None:
                ledger.check()
            if (stop := call.stop) is not None and stop.requested:
                raise RunStopped(stop.reason)
            call.breaker.check()
            call.check()
            reservation = Reservation(self.budget, self.spending.pay, call.price_key, call.estimate)
            self._reserving += 1
            try:
                try:
                    outcome = await call.send(reservation)
                finally:
                    self._reserving -= 1
                    reservation.give_up()
            except call.ending_the_run:
                raise
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, Exception):
                    call.breaker.failed(error)
                elif sync.is_being_cancelled():
                    raise
                if ledger is not None:
                    await ledger.keep_payments()
                return call.failed(error)
            call.breaker.answered()
            if ledger is not None and (row := call.row(outcome)) is not None:
                await ledger.keep_answer(row)
        return outcome

    async def _wait_for(self, budget: Budget, call: Call[Any]) -> None:
        """Wait while a call would fit into the budget if the calls in flight cost less than is reserved for them, as
        most do. Returns early if the run ends."""
        amount, stop = call.estimate(budget), call.stop

        def ended() -> bool:
            return bool(self.ended) or (stop is not None and stop.requested)

        while self._reserving and budget.waits(amount):
            if ended():
                return
            await asyncio.sleep(ROOM_INTERVAL)
        await budget.provide(amount, ended)


async def _sharing(limits: LimitSharing, making: Coroutine[Any, Any, T]) -> T:
    with sharing(limits):
        return await making

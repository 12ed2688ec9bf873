"""Calls `on_record` and `on_sample` with stored results, one call at a time."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from evalstone._core import sync
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ConfigError, invalid
from evalstone.types import Record, Sample

MOST_WAITING = 1000
"""The maximum number of pending calls while the records of an interrupted run are read."""


@dataclass(frozen=True, kw_only=True)
class SampleResult(NoTruthValue):
    """A sample with the records of all scorers."""

    _tested_by = ".records[scorer].value, against a threshold"

    sample: Sample
    """The sample, with the target's answer and the number of the trial, if any."""
    records: Mapping[str, Record]
    """Scorer title (as in `run.titles`) to record, in the order of the scorers."""


OnRecord: TypeAlias = Callable[[Record], Awaitable[None] | None]
OnSample: TypeAlias = Callable[[SampleResult], Awaitable[None] | None]
_Call: TypeAlias = tuple[bool, Callable[[Any], Awaitable[None] | None], Any]


class Notifier:
    """Calls one function with each record and another with each sample: `async def` on the event loop, `def` in a
    thread. `done` raises their exceptions.

    Raises:
        ConfigError: An argument isn't a function of one argument.
    """

    def __init__(self, on_record: OnRecord | None = None, on_sample: OnSample | None = None) -> None:
        _check("on_record", on_record, "a Record")
        _check("on_sample", on_sample, "a SampleResult")
        self.on_record, self.on_sample = on_record, on_sample
        self._on_loop = sync.is_async(on_record), sync.is_async(on_sample)
        self._waiting = list[_Call]()
        self._calling: asyncio.Future[None] | None = None
        self._failed = False

    def add_record(self, record: Record) -> None:
        """Schedule a call of `on_record`."""
        if self.on_record is not None:
            self._waiting.append((self._on_loop[0], self.on_record, record))

    def add_sample(self, result: SampleResult) -> None:
        """Schedule a call of `on_sample`."""
        if self.on_sample is not None:
            self._waiting.append((self._on_loop[1], self.on_sample, result))

    @property
    def is_used(self) -> bool:
        """Whether a function is called with each record or sample."""
        return self.on_record is not None or self.on_sample is not None

    @property
    def full(self) -> bool:
        """Whether pending calls should be awaited before more are added."""
        return len(self._waiting) >= MOST_WAITING

    async def done(self) -> None:
        """Wait for all calls so far. After an exception, nothing is called anymore, and it is raised again."""
        if self._waiting and not self._failed and (self._calling is None or self._calling.done()):
            self._calling = asyncio.ensure_future(self._call())
        if self._calling is not None:
            await self._calling

    async def _call(self) -> None:
        """Make the pending calls in order. Consecutive calls of plain functions share one switch to a thread."""
        await asyncio.sleep(0)  # so that records of the same transaction are batched
        self._failed = True
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for on_loop, calls in itertools.groupby(waiting, key=itemgetter(0)):
                results: Iterable[Awaitable[None] | None] = _each(calls)
                if not on_loop:
                    results = await sync.call(_all, results)
                for result in results:
                    if result is not None:
                        await result
        self._failed = False


def _check(name: str, function: object, value: str) -> None:
    if function is None:
        return
    if not callable(function):
        raise ConfigError(invalid(name, f"a function that takes {value}", function))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise ConfigError(f"{name} must be a function that takes {value}: ", error) from None


def _all(results: Iterable[Awaitable[None] | None]) -> list[Awaitable[None] | None]:
    return list(results)


def _each(calls: Iterable[_Call]) -> Iterable[Awaitable[None] | None]:
    return (function(value) for _, function, value in calls)

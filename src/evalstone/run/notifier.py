"""Calls the user's functions with what a run has stored, one call at a time."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from evalstone._core import sync
from evalstone._core.display import excerpt
from evalstone.errors import ConfigError
from evalstone.types import Record, Sample

MOST_WAITING = 1000
"""How many records of an interrupted run are read before the user's functions are called with them."""


@dataclass(frozen=True)
class SampleResult:
    """A sample with the records of all scorers."""

    sample: Sample
    """The sample. With a target, it has the target's answer, and of several trials the number of its own."""
    records: Mapping[str, Record]
    """Its records by the scorers' titles, as in `run.titles`, in the order of the scorers."""


OnRecord: TypeAlias = Callable[[Record], Awaitable[None] | None]
OnSample: TypeAlias = Callable[[SampleResult], Awaitable[None] | None]
_Call: TypeAlias = tuple[bool, Callable[[Any], Awaitable[None] | None], Any]


class Notifier:
    """Calls a function with each record and another with each sample: `async def` on the event loop, `def` in a
    thread. What either raises is raised where the calls are awaited.

    Raises:
        ConfigError: One is no function, or none of one value.
    """

    def __init__(self, on_record: OnRecord | None = None, on_sample: OnSample | None = None) -> None:
        _check("on_record", on_record, "a Record")
        _check("on_sample", on_sample, "a SampleResult")
        self.on_record, self.on_sample = on_record, on_sample
        self._on_loop = sync.is_async(on_record), sync.is_async(on_sample)
        self._waiting = list[_Call]()
        self._calling: asyncio.Future[None] | None = None

    def add_record(self, record: Record) -> None:
        """Call the function of records, if there is one, with this one."""
        if self.on_record is not None:
            self._waiting.append((self._on_loop[0], self.on_record, record))

    def add_sample(self, result: SampleResult) -> None:
        """Call the function of samples, if there is one, with this one."""
        if self.on_sample is not None:
            self._waiting.append((self._on_loop[1], self.on_sample, result))

    @property
    def full(self) -> bool:
        """Whether so many calls wait that they should be awaited before more are added."""
        return len(self._waiting) >= MOST_WAITING

    async def done(self) -> None:
        """Return once all calls so far have ended."""
        if self._waiting and (self._calling is None or self._calling.done()):
            self._calling = asyncio.ensure_future(self._call())
        if self._calling is not None:
            await self._calling

    async def _call(self) -> None:
        """Make the calls that wait, in order. Those of plain functions in a row share a change of threads."""
        await asyncio.sleep(0)  # let records of the same transaction join
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for on_loop, calls in itertools.groupby(waiting, key=itemgetter(0)):
                results: Iterable[Awaitable[None] | None] = _each(calls)
                if not on_loop:
                    results = await sync.call(_all, results)
                for result in results:
                    if result is not None:
                        await result


def _check(name: str, function: object, value: str) -> None:
    if function is None:
        return
    if not callable(function):
        raise ConfigError(f"{name} must be a function that takes {value}, not {excerpt(function)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of the interpreter have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise ConfigError(f"{name} must be a function that takes {value}: {error}") from None


def _all(results: Iterable[Awaitable[None] | None]) -> list[Awaitable[None] | None]:
    return list(results)


def _each(calls: Iterable[_Call]) -> Iterable[Awaitable[None] | None]:
    return (function(value) for _, function, value in calls)

"""From the spool to scoring: the samples of complete traces, one by one, as fast as they are taken.

The spool is the queue. While samples are not taken, nothing more is read from it, so what is in memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from evalstone._core import sync
from evalstone._core.display import safe
from evalstone._core.redaction import masked
from evalstone.agents.formats.records import records_in
from evalstone.agents.notes import Notes
from evalstone.agents.traces import samples_of
from evalstone.collect.spool import MOST_OF_TRACE, Complete, Spool, log
from evalstone.errors import LedgerError, described
from evalstone.ledger import AsyncLedger
from evalstone.ledger.base import chunks, sample_hash
from evalstone.live.tracing import Trace
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.live import Live

SCORE = "gen_ai.evaluation.result"
"""The log record of a score, by the semantic conventions."""
AT_ONCE = 100
"""Log records without a trace ID for which is asked at once whether they were scored."""
PAUSE = 5.0
"""Seconds until a ledger that can't be read is asked again."""


async def nothing(traces: Collection[str]) -> Mapping[str, Collection[str]]:
    """That no trace was scored before."""
    return {}


async def at_once() -> None:
    """That samples are safe as soon as they were passed on."""


def always(trace: str) -> bool:
    """That all traces are scored."""
    return True


class TraceScoring:
    """Passes on the samples of traces that are complete, and of those to which spans come late, if they change them.

    Samples of log records without a trace ID have a key in its place, which is the hash of all that they say: the same
    sample with the same time and response ID is the same.

    Args:
        spool: Has the traces.
        submit: Called with each sample and its trace ID or key; the next one comes when it returns.
        quiet: After how many seconds without more a trace whose root has ended is complete.
        scored: Gives the hashes of the samples of some traces that were scored before: only others are passed on.
        stored: Returns once a crash loses none of the samples that were passed on.
        drawn: Whether a trace is scored. What comes late for one that isn't is not submitted.
    """

    def __init__(
        self,
        spool: Spool,
        submit: Callable[[Sample, str], Awaitable[object]],
        *,
        quiet: float = 5.0,
        scored: Callable[[Collection[str]], Awaitable[Mapping[str, Collection[str]]]] = nothing,
        stored: Callable[[], Awaitable[object]] = at_once,
        drawn: Callable[[str], bool] = always,
    ) -> None:
        self.spool = spool
        self._submit, self._scored, self._stored, self._drawn = submit, scored, stored, drawn
        self._quiet = quiet
        self.notes = Notes()
        self.passed = 0
        """How many samples were passed on."""
        self._unknown = 0
        """How many spans and log records came for a trace that was scored, but is not in the spool any more."""
        self._warned = False

    @property
    def late(self) -> int:
        """How many spans and log records came after their trace was scored."""
        return self.spool.late + self._unknown

    async def run(self, stopping: asyncio.Event) -> None:
        """Pass on what is complete until that is set, and then all that is left."""
        while True:
            last = stopping.is_set()
            try:
                while await self._pass_on(all=last):
                    pass
            except OSError as error:  # such as a full disk; the next look may find some room
                self._warn(f"scoring waits for the spool: {error}")
            if last:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), min(1.0, self._quiet / 4))

    async def _pass_on(self, *, all: bool) -> bool:
        """Pass on the next traces, and return whether there were any."""
        traces = await sync.call(self.spool.complete, self._quiet, all=all)
        scored = await self._known([each.trace for each in traces if each.trace])
        for each in traces:
            if not each.trace:
                await self._pass_alone(await sync.call(self._read, each))
            elif self._drawn(each.trace) or not each.again:
                new = [
                    sample
                    for sample in await sync.call(self._read, each)
                    if sample_hash(sample) not in scored.get(each.trace, ())
                ]
                if each.trace in scored and not each.again:
                    self._unknown += each.waiting if new else 0
                    continue
                await self._pass_each((sample, each.trace) for sample in new)
        if traces:
            await self._stored()
            await sync.call(self.spool.done, traces)
        return bool(traces)

    async def _pass_alone(self, samples: Iterable[Sample]) -> None:
        """Pass on samples of log records without a trace ID, each once, however often an exporter sends it."""
        for some in chunks(samples, AT_ONCE):
            keys = {f"log-{sample_hash(sample)}": sample for sample in some}
            scored = await self._known(keys)
            await self._pass_each((sample, key) for key, sample in keys.items() if key not in scored)

    async def _pass_each(self, samples: Iterable[tuple[Sample, str]]) -> None:
        for sample, trace in samples:
            self.passed += 1
            await self._submit(sample, trace)

    async def _known(self, traces: Collection[str]) -> Mapping[str, Collection[str]]:
        while True:
            try:
                return await self._scored(traces) if traces else {}
            except LedgerError as error:
                self._warn(f"scoring waits for the ledger: {error}")
            await asyncio.sleep(PAUSE)

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("%s", safe(masked(message), 500))

    def _read(self, complete: Complete) -> list[Sample]:
        parts = self.spool.parts(complete)
        if sum(map(len, parts)) > MOST_OF_TRACE:
            problem = f"only what came first is read, {MOST_OF_TRACE / 1e6:,.0f} MB"
            self.notes.add("a trace that is too long", complete.trace, problem)
        try:
            return samples_of([record for part in parts for record in records_in(json.loads(part))], self.notes)
        except Exception as error:  # noqa: BLE001 - anyone can write to the port, and the next traces are scored
            self.notes.add("a trace that cannot be read", complete.trace, described(error))
            return []


@contextlib.asynccontextmanager
async def scoring_into(live: Live, spool: Spool, quiet: float) -> AsyncGenerator[TraceScoring]:
    """Traces that are scored live, each sample once: those that the stream has in its ledger are not scored again."""
    from evalstone.ledger.live import samples_of_traces  # noqa: PLC0415 - only traces need it

    async def submit(sample: Sample, trace: str) -> None:
        await live.asubmit(sample, source="trace", trace_id=trace)

    async def scored(traces: Collection[str]) -> Mapping[str, Collection[str]]:
        return await ledger.work(samples_of_traces, ledger.store, live.name, traces)

    def drawn(trace: str) -> bool:
        return live.draw(Trace(trace)) > 0

    async with AsyncLedger(live.ledger) as ledger:
        yield TraceScoring(spool, submit, quiet=quiet, scored=scored, stored=live.astored, drawn=drawn)

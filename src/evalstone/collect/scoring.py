"""From the spool to scoring: the samples of complete traces, one by one, as fast as they are accepted.

The spool is the queue. It is read only as fast as samples are accepted, so memory is bounded.
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
"""The event name of a score in the semantic conventions."""
LOOK_UP_SIZE = 100
"""The number of log records without a trace ID that are looked up together among the scored ones."""
PAUSE = 5.0
"""Seconds before an unreadable ledger is tried again."""


async def none_scored(traces: Collection[str]) -> Mapping[str, Collection[str]]:
    """No trace was scored before."""
    return {}


async def stored_at_once() -> None:
    """Samples are stored as soon as they are submitted."""


def every_trace(trace: str) -> bool:
    """Every trace is scored."""
    return True


class TraceScoring:
    """Submits the samples of complete traces, and again those that late spans changed.

    Samples of log records without a trace ID have a key instead: the hash of their content, with time and response ID.

    Args:
        spool: The spool with the traces.
        submit: Called with each sample and its trace ID or key, one at a time.
        quiet: Seconds without a new part after which a trace with an ended root span is complete.
        scored: Returns the hashes of scored samples by trace. Those samples aren't submitted again.
        stored: Returns once a crash can't lose submitted samples.
        drawn: Whether a trace is scored. Late spans of other traces are ignored.
    """

    def __init__(
        self,
        spool: Spool,
        submit: Callable[[Sample, str], Awaitable[object]],
        *,
        quiet: float = 5.0,
        scored: Callable[[Collection[str]], Awaitable[Mapping[str, Collection[str]]]] = none_scored,
        stored: Callable[[], Awaitable[object]] = stored_at_once,
        drawn: Callable[[str], bool] = every_trace,
    ) -> None:
        self.spool = spool
        self._submit, self._scored, self._stored, self._drawn = submit, scored, stored, drawn
        self._quiet = quiet
        self.notes = Notes()
        self.passed = 0
        """The number of submitted samples."""
        self._unknown = 0
        """The number of spans and log records for scored traces that are no longer in the spool."""
        self._warned = False

    @property
    def late(self) -> int:
        """The number of spans and log records that came after their trace was scored."""
        return self.spool.late + self._unknown

    async def run(self, stopping: asyncio.Event) -> None:
        """Submit complete traces until the event is set, and then all that are left."""
        while True:
            last = stopping.is_set()
            try:
                while await self._pass_on(all=last):
                    pass
            except OSError as error:  # such as a full disk; it may have space again at the next try
                self._warn(f"scoring waits for the spool: {error}")
            if last:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), min(1.0, self._quiet / 4))

    async def _pass_on(self, *, all: bool) -> bool:
        """Submit the samples of the next traces. Returns whether there were any."""
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
        """Submit samples of log records without a trace ID, each once, even if an exporter sends it again."""
        for some in chunks(samples, LOOK_UP_SIZE):
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
    """Score traces live. Samples that are in the stream's ledger are not scored again."""
    from evalstone.ledger.live import samples_of_traces  # noqa: PLC0415 - only traces need it

    async def submit(sample: Sample, trace: str) -> None:
        await live.asubmit(sample, source="trace", trace_id=trace)

    async def scored(traces: Collection[str]) -> Mapping[str, Collection[str]]:
        return await ledger.work(samples_of_traces, ledger.store, live.stream, traces)

    def drawn(trace: str) -> bool:
        return live.draw(Trace(trace)) > 0

    async with AsyncLedger(live.ledger) as ledger:
        yield TraceScoring(spool, submit, quiet=quiet, scored=scored, stored=live.astored, drawn=drawn)

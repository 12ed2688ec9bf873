"""From the file to scoring: the samples of complete traces, one by one, as fast as they are taken.

The file is the queue. While samples are not taken, nothing more is read from it, so what is in memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import TYPE_CHECKING

from evalstone._core import sync
from evalstone._core.display import safe
from evalstone._core.redaction import masked
from evalstone.agents.formats.records import Record
from evalstone.agents.notes import Notes
from evalstone.agents.traces import samples_of
from evalstone.collect.completion import OpenTraces, Recent
from evalstone.collect.reading import TraceIndex, Written
from evalstone.errors import LedgerError, described
from evalstone.ledger import AsyncLedger
from evalstone.ledger.base import chunks, sample_hash
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.live import Live

AT_ONCE = 100
"""Complete traces for which is asked at once whether they were scored."""
PAUSE = 5.0
"""Seconds until a ledger that can't be read is asked again."""
log = logging.getLogger("evalstone.collect")


async def nothing(traces: Collection[str]) -> Mapping[str, Collection[str]]:
    """That no trace was scored before."""
    return {}


class TraceScoring:
    """Reads what was written to a file, and passes on the samples of complete traces.

    Samples of log records without a trace ID have a key in its place, which is the hash of all that they say: the same
    sample with the same time and response ID is the same.

    Args:
        submit: Called with each sample and its trace ID or key; the next one comes when it returns.
        quiet: After how many seconds without more a trace whose root has ended is complete.
        scored: Gives the hashes of the samples of some traces that were scored before, as after a restart: what is in
            the file of these traces is read again, and only samples that have changed are passed on.
    """

    def __init__(
        self,
        submit: Callable[[Sample, str], Awaitable[object]],
        *,
        quiet: float = 5.0,
        scored: Callable[[Collection[str]], Awaitable[Mapping[str, Collection[str]]]] = nothing,
    ) -> None:
        self._submit, self._scored = submit, scored
        self._interval = min(1.0, quiet / 4)
        self.written = Written(self._interval)
        """What is to be read, for the `TraceFile`."""
        self.traces = OpenTraces(quiet)
        self.notes = Notes()
        self._recent = Recent()
        self._passed = 0
        self._waits_for_ledger = False

    @property
    def taken(self) -> int:
        """The spans and log records of traces that were passed on, or came after these."""
        return self._passed + self.traces.late + self.traces.scores

    async def run(self, path: Path, stopping: asyncio.Event) -> None:
        """Pass on what is complete until that is set, and then all that is left.

        path: The file, for the traces that were scored before or had begun before.
        """
        index = TraceIndex(path)
        with self._noted():
            await sync.call(index.look_back)
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._interval)
            await self._follow(index)
        await self._follow(index)  # what was written before the stop and after the last look
        await self._pass_on(index, self.traces.complete(time.monotonic(), all=True))

    async def _follow(self, index: TraceIndex) -> None:
        """Read what was written, and pass on what is complete: at the time of what was read, which may be long ago."""
        while True:
            now = time.monotonic()
            piece = await sync.call(self.written.read)
            if piece is None:
                break
            if piece.unreadable:
                self.notes.add("lines that cannot be read back from the file", "", piece.unreadable)
            for line in piece.lines:
                self.traces.add(line.records, piece.until, line.size)
                index.add(piece.file, line.place, {record.trace for record in line.records})
            await self._pass_on(index, self.traces.complete(piece.at))
        await self._pass_on(index, self.traces.complete(now))

    async def _pass_on(self, index: TraceIndex, complete: Iterator[list[Record]]) -> None:
        for traces in chunks(complete, AT_ONCE):
            ids = {records[0].trace for records in traces} - {""}
            scored = await self._known(ids)
            whole = await sync.call(self._whole, index, ids, scored.keys())
            for records in traces:
                counted = sum(record.kind != "event" for record in records)
                trace = records[0].trace
                if not trace:
                    await self._pass_alone(await self._samples(records))
                elif new := await self._new(records, whole.get(trace, ()), scored.get(trace, ())):
                    if trace in scored and len(whole.get(trace, ())) <= len(records):  # the rest of it is not known
                        self.traces.add_late(records)
                        continue
                    for sample in new:
                        await self._submit(sample, trace)
                self._passed += counted

    async def _new(self, records: Sequence[Record], whole: Sequence[Record], scored: Collection[str]) -> list[Sample]:
        return [sample for sample in await self._samples([*records, *whole]) if sample_hash(sample) not in scored]

    async def _pass_alone(self, samples: Iterable[Sample]) -> None:
        """Pass on samples of log records without a trace ID, each once, however often an exporter sends it."""
        for some in chunks(samples, AT_ONCE):
            keys = {f"log-{sample_hash(sample)}": sample for sample in some}
            scored = await self._known(keys)
            for key, sample in keys.items():
                if key not in self._recent and key not in scored:
                    self._recent.add(key)
                    await self._submit(sample, key)

    def _whole(self, index: TraceIndex, traces: Collection[str], scored: Collection[str]) -> dict[str, list[Record]]:
        """What is in the file of those of these traces that began before a restart or were scored."""
        with self._noted():
            return index.records_of(traces, scored)
        return {}

    @contextlib.contextmanager
    def _noted(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            self.notes.add("a file that cannot be read back", "", error.strerror or str(error))

    async def _known(self, traces: Collection[str]) -> Mapping[str, Collection[str]]:
        while True:
            try:
                return await self._scored(traces) if traces else {}
            except LedgerError as error:
                if not self._waits_for_ledger:
                    self._waits_for_ledger = True
                    log.warning("%s", safe(masked(f"scoring waits for the ledger: {error}"), 500))
            await asyncio.sleep(PAUSE)

    async def _samples(self, records: list[Record]) -> list[Sample]:
        try:
            return await sync.call(samples_of, records, self.notes)
        except Exception as error:  # noqa: BLE001 - anyone can write to the port, and the next traces are scored
            self.notes.add("a trace that cannot be read", records[0].trace, described(error))
            return []


@contextlib.asynccontextmanager
async def scoring_into(live: Live, quiet: float) -> AsyncGenerator[TraceScoring]:
    """Traces that are scored live, each sample once: those that the stream has in its ledger are not scored again."""
    from evalstone.ledger.live import samples_of_traces  # noqa: PLC0415 - SQLAlchemy

    async def submit(sample: Sample, trace: str) -> None:
        await live.asubmit(sample, source="trace", trace_id=trace)

    async def scored(traces: Collection[str]) -> Mapping[str, Collection[str]]:
        return await ledger.work(samples_of_traces, ledger.store, live.name, traces)

    async with AsyncLedger(live.ledger) as ledger:
        yield TraceScoring(submit, quiet=quiet, scored=scored)

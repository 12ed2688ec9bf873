"""The rounds of a run through batches: submit what was collected, read what is done, and have the scorers ask again.

A scorer whose second question depends on the answer to its first takes two rounds.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from evalstone._core import sync
from evalstone.errors import BatchError, ConfigError, DeliveryUnknown, ProviderError, RunStopped
from evalstone.judges.base import Judge
from evalstone.judges.providers.batch import BatchApi, BatchState, Finding, batch_api
from evalstone.ledger import AsyncLedger, batches
from evalstone.ledger.base import BatchRow
from evalstone.run.batch.session import BatchSession, Collected, EstimateSession
from evalstone.run.budget import StopSignal
from evalstone.run.plan import WAITING, BatchOptions
from evalstone.scorers import Scorer
from evalstone.types import Record, Sample, total_cost

Cell = tuple[int, Sample, Scorer]

FIRST_POLL, LONGEST_POLL = 0.5, 60.0
"""Seconds between two looks at batches that are waited for; the waits grow from the one to the other."""

SETTLING = timedelta(minutes=1)
"""How long a provider may take to list a batch that it was given."""

_WATCH = 0.1


class BatchRunner:
    """The batches of one run, and those of other runs that its judge is to answer.

    Every method raises BatchError when the provider cannot be asked, and ConfigError when it refuses the key.

    Args:
        judge: The judge of the run.
        options: How batches are used.
        budget: US dollars for all batches of the run.

    Raises:
        ConfigError: For a judge without a batch API or without a key.
    """

    session: BatchSession

    def __init__(self, judge: Judge, options: BatchOptions, budget: float | None) -> None:
        self.api: BatchApi = batch_api(judge)
        self.api.check()
        self.options, self.budget = options, budget
        self._run = ""
        self._states: dict[str, BatchState] = {}
        self._open: list[BatchRow] = []
        self._pending: set[str] = set()
        self._shown = ""
        self._ceiling: int | None = None

    async def open(self, stack: AsyncExitStack, ledger: AsyncLedger) -> None:
        """Open the provider's API for as long as the stack."""
        await stack.enter_async_context(self.api.opened())
        self.ledger = ledger
        self.session = BatchSession(self.api, ledger, budget=self.budget)

    async def begin(self, run: str, records: Iterable[Record]) -> None:
        """Look for batches of which it is not known whether they were submitted, and read those that are done.
        records: those of the run that stand."""
        self._run = run
        self.session.count(records)
        rows = await self.ledger.work(batches.batches_of, self.ledger.store, self.session.identity)
        for row in rows:
            self.api.capabilities.update(row.metadata)
        self.session.begin(rows, run)
        with suppress(RunStopped):
            await self._look()
        await self._know()

    async def affordable(self, cells: Iterator[Cell]) -> Iterator[Cell]:
        """Of the open cells, which come sample by sample, those that the budget can pay for to the end."""
        if self.budget is None:
            return cells
        estimate = EstimateSession(self.session)
        found: list[Cell] = []
        for sample, group in itertools.groupby(cells, key=lambda cell: cell[1]):
            some = list(group)
            if not await estimate.affords([scorer for _, _, scorer in some], sample):
                self.session.spend()
                break
            found += some
        return iter(found)

    async def proceed(self, stop: StopSignal) -> bool:
        """After the scorers have asked: submit what was collected and, where that is wanted, wait until something is
        done. Whether the scorers are to ask again."""
        if stop.requested:
            return False
        with suppress(RunStopped):
            await self._submit()
            self._open = await self._open_batches()
            while self.options.wait and (self._open or self._pending) and not stop.requested:
                if not self._pending <= {row.id for row in self._open} or await self._wait(stop):
                    await self._know()
                    return True
        self._open = await self._open_batches()
        return False

    async def end(self, stop: StopSignal, *, complete: bool) -> None:
        """Let go of what the questions of a complete run came back with, or say what an incomplete one waits for."""
        if complete:
            await self.ledger.work(batches.forget, self.ledger.store, self._run)
        else:
            stop.request(self.waiting)

    @property
    def open_names(self) -> tuple[str, ...]:
        """The batches that the run waits for, by the provider's name where it is known."""
        return tuple(row.name for row in self._open)

    @property
    def waiting(self) -> str:
        """What the run waits for, in words."""
        told = [self._state_of(row) for row in self._open]
        count = "batch" if len(told) == 1 else f"{len(told)} batches:"
        waits = f"{WAITING}{count} {', '.join(told)}" if told else ""
        return "; ".join(filter(None, (self.session.short, waits))) or "answers came in the meantime"

    def _state_of(self, row: BatchRow) -> str:
        state = self._states.get(row.id)
        if row.remote is None:
            return f"{row.id} (not known yet whether it was submitted)"
        if state is None:
            return f"{row.name} ({row.questions} submitted just now)"
        return f"{row.name} ({state.done} of {state.total or row.questions} done)"

    async def _open_batches(self) -> list[BatchRow]:
        return await self.ledger.work(batches.batches_of, self.ledger.store, self.session.identity, only_open=True)

    async def _know(self) -> None:
        """Give the session the state of the batches in the ledger."""
        identity = self.session.identity
        rows = await self.ledger.work(batches.batches_of, self.ledger.store, identity)
        refused = [row.questions for row in rows if row.run == self._run and row.too_large]
        self._ceiling = min(refused) // 2 if refused else None
        places = await self.ledger.work(batches.question_batches, self.ledger.store, identity)
        self._pending = {batch for batch, waiting in places.values() if waiting}
        self.session.update(places, rows, self._run)

    async def _look(self) -> bool:
        """Ask the provider what has become of the open batches, and read those that are done; whether any was."""
        before = {row.id for row in self._open}
        self._open = await self._open_batches()
        before.update(row.id for row in self._open)
        done = False
        for row in self._open:
            if row.remote is None and not await self._searched(row):
                done = True
        self._open = await self._open_batches()
        for row in self._open:
            if row.remote is None:
                continue
            with _asked(row):
                state = self._states[row.id] = await self.api.state(row.remote)
                done = await self._read(row, state) if state.ended else done
        self._open = await self._open_batches()
        return done or not before <= {row.id for row in self._open}

    async def _searched(self, row: BatchRow) -> bool:
        """Find out whether the provider has a batch whose submission was cut short. False when it has not: the batch is
        then open no more."""
        if await self.ledger.work(batches.is_worked_on, self.ledger.store, row.run):
            return True
        with _asked(row):
            found = await self._found(row)
        if (remote := found.remote) is not None:
            await self.ledger.work(batches.submitted, self.ledger.store, row.id, remote)
        elif not found.possible and datetime.now(UTC) - datetime.fromisoformat(row.created) > SETTLING:
            await self.ledger.work(batches.withdraw, self.ledger.store, row.id)
            return False
        return True

    async def _read(self, row: BatchRow, state: BatchState) -> bool:
        """Read the results of a batch that ended. Raises BatchError for one that was not worked on at all."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if state.refused:
            closed = replace(row, collected=now, ended=f"{state.ended}: {state.refused}", cost=0.0)
            await self.ledger.work(batches.collect, self.ledger.store, closed, {}, missing=None)
            if closed.too_large and row.questions > 1:
                return True
            raise BatchError(f"batch {row.name} was not worked on: {state.refused}")
        results = await self.api.results(state)
        mark = f"{row.id}-"
        told = {each.custom_id.removeprefix(mark): each.body for each in results if each.custom_id.startswith(mark)}
        paid = total_cost(self.api.paid(body) for body in told.values())
        # Where it is not said what was paid, a budget goes on with what was estimated.
        closed = replace(row, collected=now, ended=state.ended, cost=row.cost if paid is None else paid)
        bodies = {question: _dumped(body) for question, body in told.items()}
        missing = json.dumps({"status": 0, "error": state.ended})
        return await self.ledger.work(batches.collect, self.ledger.store, closed, bodies, missing=missing)

    async def _submit(self) -> None:
        collected, self.session.collected = list(self.session.collected.values()), {}
        if self._ceiling is not None:
            # The provider takes so much at a time: what is left is collected again when that is done.
            collected = [] if await self._open_batches() else collected[: self._ceiling]
        for batch, chunk, lines in self._chunks(collected):
            await self._submit_one(batch, chunk, lines)

    def _chunks(self, collected: Iterable[Collected]) -> Iterator[tuple[str, list[Collected], list[bytes]]]:
        """What was collected, as batches that the provider takes, each with an id and a line for each question."""
        batch, chunk, lines, size = secrets.token_hex(8), list[Collected](), list[bytes](), 0
        for each in collected:
            name = f"{batch}-{each.question.fingerprint}"
            line = self.api.request(name, each.question, *self.session.request_of(each.question, each.known))
            if chunk and (len(chunk) >= self.api.most_requests or size + len(line) + 1 > self.api.most_bytes - 1000):
                yield batch, chunk, lines
                old, batch = batch, secrets.token_hex(8)
                line = line.replace(old.encode(), batch.encode(), 1)
                chunk, lines, size = [], [], 0
            chunk.append(each)
            lines.append(line)
            size += len(line) + 1
        if chunk:
            yield batch, chunk, lines

    async def _submit_one(self, batch: str, chunk: list[Collected], lines: list[bytes]) -> None:
        row = BatchRow(
            id=batch,
            judge=self.session.identity,
            run=self._run,
            questions=len(chunk),
            metadata=self.api.capabilities.to_dict(),
            cost=total_cost(each.amount for each in chunk),
            created=datetime.now(UTC).isoformat(),
        )
        got = await self.ledger.work(batches.enter, self.ledger.store, row, [each.known for each in chunk])
        mine = [line for each, line in zip(chunk, lines, strict=True) if each.question.fingerprint in got]
        if not mine:
            self._pending.add(batch)  # others have all of it in theirs, which may be read before they are seen here
            return
        try:
            with _asked(row):
                remote = await self._given(replace(row, questions=len(mine)), mine)
        except (BatchError, ConfigError, RunStopped) as error:
            if not isinstance(error.__cause__, DeliveryUnknown):
                await self.ledger.work(batches.withdraw, self.ledger.store, row.id)
            raise
        await self.ledger.work(batches.submitted, self.ledger.store, row.id, remote)

    async def _given(self, row: BatchRow, lines: list[bytes]) -> str:
        """Submit a batch; the provider's id. When the provider does not answer it is asked once whether it has it."""
        try:
            return await self.api.submit(row.id, lines)
        except DeliveryUnknown as unclear:
            try:
                found = await self._found(row)
            except (ProviderError, ConfigError, RunStopped) as error:
                raise DeliveryUnknown(f"{unclear}; {error}") from None
            if found.remote is None:
                raise
            return found.remote

    async def _found(self, row: BatchRow) -> Finding:
        known = await self.ledger.work(batches.known_remotes, self.ledger.store)
        made = datetime.fromisoformat(row.created)
        return await self.api.find(row.id, since=made, requests=row.questions, known=known)

    async def _wait(self, stop: StopSignal) -> bool:
        """Wait until some batch is done, or the end is asked for; whether one was."""
        pause = FIRST_POLL
        while not stop.requested:
            if self.options.on_state is not None and self.waiting != self._shown:
                self._shown = self.waiting
                await sync.call(self.options.on_state, self._shown)
            waited = 0.0
            while waited < pause and not stop.requested:
                await asyncio.sleep(_WATCH)
                waited += _WATCH
            if not stop.requested and await self._look():
                return True
            pause = min(1.5 * pause, LONGEST_POLL)
        return False


def _dumped(body: Mapping[str, Any]) -> str:
    try:
        return json.dumps(body)
    except RecursionError:
        return json.dumps({"status": 0, "error": "the result is nested too deeply"})


@contextmanager
def _asked(row: BatchRow) -> Generator[None]:
    """What goes wrong while a provider is asked about a batch, as what it means for the run."""
    try:
        yield
    except DeliveryUnknown as error:
        told = "The same command finds out whether it was submitted, and goes on"
        raise BatchError(f"batch {row.name}: {error}. {told}") from error
    except ProviderError as error:
        raise BatchError(f"batch {row.name}: {error}") from error
    except ConfigError as error:
        if row.remote is None:
            raise
        told = (
            "It can be read only with the key it was submitted with; without --batch the questions are asked directly. "
            "One that is gone for good is let go with its run: `evalstone ledger prune --unfinished`"
        )
        raise ConfigError(f"batch {row.name}: {error}. {told}") from error

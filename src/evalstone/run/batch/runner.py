"""Runs through a batch API in rounds: submit the collected questions, read finished batches, and run the scorers again.

A scorer whose second question depends on the answer to its first needs two rounds.
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
from evalstone._core.front_ends import Setting
from evalstone.errors import (
    BatchError,
    ConfigError,
    DeliveryUnknown,
    JudgeRefused,
    ProviderError,
    RunStopped,
    WriteError,
)
from evalstone.judges.base import Judge
from evalstone.judges.model import ModelJudge
from evalstone.ledger import AsyncLedger, batches
from evalstone.ledger.base import BatchRow, RunRow
from evalstone.models.batch import batch_api
from evalstone.models.batch.base import SUPPORTED, BatchApi, BatchState, Finding, ProviderBatches
from evalstone.results.endings import BATCH, BUDGET
from evalstone.run.batch.session import BatchSession, Collected, EstimateSession
from evalstone.run.budget import StopSignal
from evalstone.run.plan import WAITING, BatchOptions
from evalstone.scorers import Scorer
from evalstone.types import Record, Sample, total_cost

Cell = tuple[int, Sample, Scorer]

FIRST_POLL, LONGEST_POLL = 0.5, 60.0
"""The shortest and the longest interval between polls, in seconds. Intervals grow from one to the other."""

SETTLING = timedelta(minutes=1)
"""How long a provider may take to list a new batch."""

_WATCH = 0.1


def batch_judge(judge: Judge) -> ModelJudge:
    """The judge of batches. Raises ConfigError for a judge that is no language model."""
    if not isinstance(judge, ModelJudge):
        raise ConfigError(f"the judge {judge.identity} can't be asked in batches; use {SUPPORTED}")
    return judge


class BatchRunner:
    """The batches of one run, and batches of other runs with the same judge.

    Every method raises BatchError if the provider can't be reached, and JudgeRefused if it refuses the key.

    Args:
        judge: The judge of the run.
        options: The batch options.
        budget: US dollars for all batches of the run.

    Raises:
        ConfigError: The judge has no batch API or no key, or takes no files.
    """

    session: BatchSession

    def __init__(self, judge: Judge, options: BatchOptions, budget: float | None) -> None:
        self.judge = batch_judge(judge)
        self.api: BatchApi = batch_api(self.judge, options.files)
        self.api.check()
        self.options, self.budget = options, budget
        self._run = ""
        self._states: dict[str, BatchState] = {}
        self._open: list[BatchRow] = []
        self._pending: set[str] = set()
        self._shown = ""
        self._ceiling: int | None = None

    async def open(self, stack: AsyncExitStack, ledger: AsyncLedger) -> None:
        """Open the provider's API until the stack is closed."""
        await stack.enter_async_context(self.api.opened())
        self.ledger = ledger
        self.session = BatchSession(self.judge, self.api, ledger, budget=self.budget)

    async def begin(self, run: str, records: Iterable[Record]) -> None:
        """Find batches whose submission was interrupted, and read finished ones. records: those of a resumed run."""
        self._run = run
        self.session.count(records)
        rows = await self.ledger.work(batches.batches_of, self.ledger.store, self.session.identity)
        for row in rows:
            self.api.capabilities.update(row.metadata)
        self.session.begin(rows, await self._run_row())
        with suppress(RunStopped):
            await self._poll()
        await self._update_session()

    async def affordable(self, cells: Iterator[Cell]) -> Iterator[Cell]:
        """The open cells of samples that the budget can pay for completely. cells: grouped by sample."""
        if self.budget is None:
            return cells
        estimate = EstimateSession(self.session)
        affordable: list[Cell] = []
        for sample, group in itertools.groupby(cells, key=lambda cell: cell[1]):
            cells_of_sample = list(group)
            if not await estimate.affords([scorer for _, _, scorer in cells_of_sample], sample):
                self.session.spend()
                break
            affordable += cells_of_sample
        return iter(affordable)

    async def proceed(self, stop: StopSignal) -> bool:
        """End a round: submit the collected questions and, with `wait`, wait until a batch is done. Returns whether the
        scorers should run again."""
        if stop.requested:
            return False
        with suppress(RunStopped):
            await self._submit()
            self._open = await self._open_batches()
            while self.options.wait and (self._open or self._pending) and not stop.requested:
                if not self._pending <= {row.id for row in self._open} or await self._wait(stop):
                    await self._update_session()
                    return True
        self._open = await self._open_batches()
        return False

    async def end(self, stop: StopSignal, *, complete: bool) -> None:
        """Delete the raw results of a complete run, or set the stop reason of an incomplete one."""
        if complete:
            await self.ledger.work(batches.forget, self.ledger.store, self._run)
        else:
            stop.request(self.waiting, BATCH if self._open or not self.session.short else BUDGET)

    @property
    def open_names(self) -> tuple[str, ...]:
        """The names of the batches that the run waits for: the provider's, if known, or paths of files of requests."""
        return tuple(self._name(row) for row in self._open)

    @property
    def waiting(self) -> str:
        """What the run waits for, as text."""
        states = [self._state_of(row) for row in self._open]
        count = "batch" if len(states) == 1 else f"{len(states)} batches:"
        waits = f"{WAITING}{count} {', '.join(states)}" if states else ""
        return "; ".join(filter(None, (self.session.short, waits))) or "answers came in the meantime"

    def _name(self, row: BatchRow) -> str:
        return row.name if row.remote is None or row.api != self.api.kind else self.api.shown(row.remote)

    def _state_of(self, row: BatchRow) -> str:
        state, name = self._states.get(row.id), self._name(row)
        if row.api != self.api.kind:
            return f"{name} (a batch of {row.api}, which is not collected here)"
        if row.remote is None:
            return f"{name} (not known yet whether it was {self.api.submits})"
        if state is None:
            return f"{name} ({row.questions} {self.api.submits} just now)"
        done = f"{state.done} of {state.total or row.questions} done"
        return f"{name} ({'; '.join(filter(None, (done, state.note)))})"

    async def _open_batches(self) -> list[BatchRow]:
        return await self.ledger.work(batches.batches_of, self.ledger.store, self.session.identity, only_open=True)

    async def _update_session(self) -> None:
        """Update the session with the batches in the ledger."""
        identity = self.session.identity
        rows = await self.ledger.work(batches.batches_of, self.ledger.store, identity)
        refused = [row.questions for row in rows if row.run == self._run and row.too_large]
        self._ceiling = min(refused) // 2 if refused else None
        places = await self.ledger.work(batches.question_batches, self.ledger.store, identity)
        self._pending = {batch for batch, waiting in places.values() if waiting}
        self.session.update(places, rows, await self._run_row())

    async def _run_row(self) -> RunRow:
        row = await self.ledger.work(self.ledger.store.run, self._run)
        assert row is not None  # noqa: S101 - it is leased, and a leased run isn't pruned
        return row

    async def _poll(self) -> bool:
        """Poll the open batches and read those that are done. Returns whether any was."""
        before = {row.id for row in self._open}
        self._open = await self._open_batches()
        before.update(row.id for row in self._open)
        done = False
        for row in self._open:
            if row.api == self.api.kind and row.remote is None and not await self._is_submitted(row):
                done = True
        self._open = await self._open_batches()
        for row in self._open:
            if row.api != self.api.kind or row.remote is None:
                continue
            with self._explained(row):
                state = self._states[row.id] = await self.api.state(row.remote, row.questions)
                done = await self._read(row, state) if state.ended else done
        self._open = await self._open_batches()
        return done or not before <= {row.id for row in self._open}

    async def _is_submitted(self, row: BatchRow) -> bool:
        """Whether the provider has a batch whose submission was interrupted. If it doesn't, the batch is withdrawn."""
        if await self.ledger.work(batches.is_worked_on, self.ledger.store, row.run):
            return True
        with self._explained(row):
            batch = await self._find(row)
        age = datetime.now(UTC) - datetime.fromisoformat(row.created)
        if (remote := batch.remote) is not None:
            await self.ledger.work(batches.submitted, self.ledger.store, row.id, remote)
        elif not batch.possible and (self.api.lists_at_once or age > SETTLING):
            await self.ledger.work(batches.withdraw, self.ledger.store, row.id)
            return False
        return True

    async def _read(self, row: BatchRow, state: BatchState) -> bool:
        """Read the results of a batch that ended. Raises BatchError if the provider did not process it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if state.refused:
            closed = replace(row, collected=now, ended=f"{state.ended}: {state.refused}", cost=0.0)
            await self.ledger.work(batches.collect, self.ledger.store, closed, {}, missing=None)
            if closed.too_large and row.questions > 1:
                return True
            raise BatchError(f"batch {row.name} was not worked on: {state.refused}")
        results = await self.api.results(state)
        mark = f"{row.id}-"
        own = {line.custom_id.removeprefix(mark): line.body for line in results if line.custom_id.startswith(mark)}
        paid = total_cost(self.api.paid(body) for body in own.values())
        # If the cost is unknown, the budget keeps the estimate.
        closed = replace(row, collected=now, ended=state.ended, cost=row.cost if paid is None else paid)
        bodies = {question: _dumped(body) for question, body in own.items()}
        missing = json.dumps({"status": 0, "error": state.ended})
        return await self.ledger.work(batches.collect, self.ledger.store, closed, bodies, missing=missing)

    async def _submit(self) -> None:
        collected, self.session.collected = list(self.session.collected.values()), {}
        if self._ceiling is not None:
            # The provider has a size limit. The remaining questions are collected again in the next round.
            collected = [] if await self._open_batches() else collected[: self._ceiling]
        for batch, chunk, lines in self._chunks(collected):
            await self._submit_one(batch, chunk, lines)

    def _chunks(self, collected: Iterable[Collected]) -> Iterator[tuple[str, list[Collected], list[bytes]]]:
        """The collected questions as batches within the provider's limits: ID, questions and request lines of each."""
        batch, chunk, lines, size = secrets.token_hex(8), list[Collected](), list[bytes](), 0
        for each in collected:
            name = f"{batch}-{each.question.fingerprint}"
            line = self.api.request(name, each.question.reply_form, *self.session.request_of(each.question, each.known))
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
            api=self.api.kind,
            judge=self.session.identity,
            run=self._run,
            questions=len(chunk),
            metadata=self.api.capabilities.to_dict(),
            cost=total_cost(each.amount for each in chunk),
            created=datetime.now(UTC).isoformat(),
        )
        questions, unreadable = (
            [each.known for each in chunk],
            {each.known.question for each in chunk if each.unreadable},
        )
        entered = await self.ledger.work(batches.enter, self.ledger.store, row, questions, unreadable=unreadable)
        mine = [line for each, line in zip(chunk, lines, strict=True) if each.question.fingerprint in entered]
        if not mine:
            self._pending.add(batch)  # other processes have submitted all of its questions, or got their answers
            return
        try:
            with self._explained(row):
                remote = await self._submitted(replace(row, questions=len(mine)), mine)
        except (BatchError, ConfigError, JudgeRefused, RunStopped, WriteError) as error:
            if not isinstance(error.__cause__, DeliveryUnknown):
                await self.ledger.work(batches.withdraw, self.ledger.store, row.id)
            raise
        await self.ledger.work(batches.submitted, self.ledger.store, row.id, remote)

    async def _submitted(self, row: BatchRow, lines: list[bytes]) -> str:
        """Submit a batch and return the provider's ID. Without a response, ask once whether the provider has it."""
        try:
            return await self.api.submit(row.id, lines)
        except DeliveryUnknown as unclear:
            try:
                batch = await self._find(row)
            except (ProviderError, ConfigError, JudgeRefused, RunStopped) as error:
                raise DeliveryUnknown(f"{unclear}; {error}") from None
            if batch.remote is None:
                raise
            return batch.remote

    async def _find(self, row: BatchRow) -> Finding:
        known = await self.ledger.work(batches.known_remotes, self.ledger.store)
        created = datetime.fromisoformat(row.created)
        return await self.api.find(row.id, since=created, requests=row.questions, known=known)

    async def _wait(self, stop: StopSignal) -> bool:
        """Wait until a batch is done or the run is stopped. Returns whether a batch is done."""
        pause = FIRST_POLL
        while not stop.requested:
            if self.options.on_state is not None and self.waiting != self._shown:
                self._shown = self.waiting
                await sync.call(self.options.on_state, self._shown)
            waited = 0.0
            while waited < pause and not stop.requested:
                await asyncio.sleep(_WATCH)
                waited += _WATCH
            if not stop.requested and await self._poll():
                return True
            pause = min(1.5 * pause, LONGEST_POLL)
        return False

    @contextmanager
    def _explained(self, row: BatchRow) -> Generator[None]:
        """Turn errors of the provider into errors that name the batch and what to do."""
        name = self._name(row)
        try:
            yield
        except DeliveryUnknown as error:
            advice = "Rerun the same command: it checks whether the batch was submitted, and resumes"
            raise BatchError(f"batch {name}: {error}. {advice}") from error
        except ProviderError as error:
            raise BatchError(f"batch {name}: {error}") from error
        except (ConfigError, JudgeRefused) as error:
            if row.remote is None or not isinstance(self.api, ProviderBatches):
                raise
            kind = JudgeRefused if isinstance(error, JudgeRefused) else ConfigError
            raise kind(
                f"batch {name}: {error}. A batch can be read only with the key that submitted it. Without ",
                Setting("batch"),
                ", questions are asked directly. To discard a lost batch, delete its run: "
                "`evalstone ledger prune --unfinished`",
            ) from error


def _dumped(body: Mapping[str, Any]) -> str:
    try:
        return json.dumps(body)
    except RecursionError:
        return json.dumps({"status": 0, "error": "the result is nested too deeply"})

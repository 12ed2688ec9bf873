"""Sessions that are opened by themselves, outside of a run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger
from evalstone.run.budget import Budget
from evalstone.run.session import Session


@asynccontextmanager
async def open_session(
    judge: Judge,
    *others: Judge,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    budget: float | Budget | None = None,
    cache: bool = True,
    keep_reasoning: bool = False,
) -> AsyncGenerator[Session]:
    """A session with a judge and a ledger, which is closed at the end. others: more judges to keep connected. The other
    arguments are those of `Session`."""
    limit = Budget.of(budget, judge, *others)
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        for each in (judge, *others):
            await stack.enter_async_context(each.opened())
        session = Session(judge, ledger=store, concurrency=concurrency, cache=cache, budget=limit)
        session.keep_reasoning = keep_reasoning
        stack.push_async_callback(session.close)
        yield session

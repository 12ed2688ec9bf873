"""Sessions that are opened by themselves, outside of a run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger
from evalstone.run.budget import Budget, SharedBudget, StopSignal
from evalstone.run.session import Session
from evalstone.run.sharing import shared_limits


@asynccontextmanager
async def open_session(
    judge: Judge,
    *others: Judge,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    budget: float | Budget | None = None,
    cache: bool = True,
    keep_reasoning: bool = False,
    scope: str = "",
    stop: StopSignal | None = None,
) -> AsyncGenerator[Session]:
    """A session with a judge and a ledger, which is closed at the end.

    others: more judges to keep connected. scope: what the budget and `max_requests` are for, if several processes work
    on it with a ledger on a server; "" for this session alone. The others are those of `Session`.
    """
    limit = Budget.of(budget, judge, *others)
    async with contextlib.AsyncExitStack() as stack:
        store = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        limits = await stack.enter_async_context(shared_limits(store, scope))
        if limits is not None and scope and limit is not None:
            limit = SharedBudget(limit.limit, limits=limits)
        for each in (judge, *others):
            await stack.enter_async_context(each.opened())
        session = Session(
            judge, ledger=store, concurrency=concurrency, cache=cache, budget=limit, stop=stop, limits=limits
        )
        session.keep_reasoning = keep_reasoning
        stack.push_async_callback(session.close)
        yield session

"""A run from its plan: what it needs is opened, and closed at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evalstone._core.declarations import NAME, check_argument
from evalstone._core.files import spare_files
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import rare_collections
from evalstone._core.sizes import Concurrency
from evalstone.errors import ConfigError
from evalstone.ledger import AsyncLedger
from evalstone.models.limits import counting_warnings, shared_limiter, stopping
from evalstone.results.run import Run
from evalstone.run.admission import Admission
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.notifier import Notifier, OnRecord, OnSample
from evalstone.run.plan import BatchOptions, Plan
from evalstone.run.runner import Runner
from evalstone.run.session import Session
from evalstone.run.sharing import shared_limits
from evalstone.types import Record

if TYPE_CHECKING:
    from evalstone.run.batch.runner import BatchRunner

HOLD = 0.05
"""The seconds for which a record that cost nothing waits for others to be stored with."""


async def execute(
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    concurrency: int = 32,
    cache: bool = True,
    resume: bool = True,
    budget: float | Budget | None = None,
    batch: bool | BatchOptions = False,
    stop: StopSignal | None = None,
    on_record: OnRecord | None = None,
    on_sample: OnSample | None = None,
    progress: Callable[[Record], None] | None = None,
    name: str = "",
    tags: tuple[str, ...] = (),
) -> Run:
    """Run a plan and return its results. Arguments and errors are those of `evalstone.aevaluate`.

    The process's limit on open files lowers the concurrency, because each call has a connection.
    An interrupted run of the same plan is resumed: scores and skips are kept, failures are retried, and its cost counts
    against the budget. With `resume=False`, a new run starts and its target answers again. Under a budget, samples are
    processed in random order, so the scored subset is representative. A `Budget` may be shared with other runs.
    `progress` is called with each record on the event loop.
    """
    _check(concurrency, ledger, batch)
    check_names(name, tags)
    concurrency = slots(plan, concurrency)
    if plan.target is not None and batch:
        raise ConfigError(
            Setting("batch"), " can't be used with a target; write its run to a folder, then score its samples.jsonl"
        )
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(rare_collections(min(concurrency, plan.size)))
        batches = _batches(plan, ledger=ledger, cache=cache, budget=budget, batch=batch) if batch else None
        plan.check(asking=batches is None)
        stop = stop or StopSignal()
        stack.enter_context(stopping(lambda: stop.requested))
        store = await stack.enter_async_context(AsyncLedger(ledger)) if ledger is not None else None
        limits = await stack.enter_async_context(shared_limits(store))
        for judge in (*plan.judges, *(() if plan.user is None else plan.user.judges)):
            await stack.enter_async_context(judge.opened())
        limit = Budget.of(budget, *plan.priced_judges)
        if batches is not None and store is not None:
            await batches.open(stack, store)
            session: Session = batches.session
        else:
            options: dict[str, Any] = {"concurrency": concurrency, "cache": cache, "budget": limit}
            session = Session(plan.judge, ledger=store, stop=stop, limits=limits, **options)
        session.keep_reasoning = plan.keep_reasoning
        stack.push_async_callback(session.close)
        runner = Runner(plan, session, store, stop, cache=cache)
        runner.notifier, runner.progress = Notifier(on_record, on_sample), progress
        runner.batches, runner.budget = batches, limit
        if limit is not None and batches is None:
            runner.admission = Admission(limit, runner.ends, runner.answer_cost)
        runner.name, runner.tags = name, tags
        if plan.target is not None:
            await stack.enter_async_context(shared_limiter(plan.target.identity, plan.target.limits))
            await stack.enter_async_context(plan.target.opened())
            stack.push_async_callback(runner.close_answers)
        shuffled = budget is not None or stop.shuffled
        immediate = plan.target is None and all(scorer.is_immediate for scorer in plan.scorers)
        if immediate and not (shuffled or runner.notifier.is_used):
            runner.hold = HOLD
        runner.warnings = stack.enter_context(counting_warnings())
        return await runner.run(workers=2 * concurrency, resume=cache and resume, shuffled=shuffled)


def slots(plan: Plan, concurrency: int) -> int:
    """The concurrency that the process's limit on open files allows. A target gets half of the files."""
    return spare_files(concurrency, 1 if plan.target is None else 2)


def check_names(name: object, tags: Iterable[object]) -> None:
    """Raise ConfigError for a name or a tag that is no line of visible text. An empty name is none."""
    for setting, texts in (("name", () if name == "" else (name,)), ("tags", tags)):
        for text in texts:
            check_argument(setting, text, Annotated[str, NAME])


def _check(concurrency: object, ledger: object, batch: object) -> None:
    """Raise ConfigError for an argument of the wrong type or out of range."""
    check_argument("concurrency", concurrency, Concurrency)
    if ledger is not None and not isinstance(ledger, str | Path):
        raise ConfigError(f"a ledger is a path, a URL or None, not {type(ledger).__name__}: {ledger!r}")
    if not isinstance(batch, bool | BatchOptions):
        raise ConfigError(f"batch is true, false or BatchOptions, not {type(batch).__name__}: {batch!r}")


def _batches(
    plan: Plan, *, ledger: str | Path | None, cache: bool, budget: float | Budget | None, batch: bool | BatchOptions
) -> BatchRunner:
    from evalstone.run.batch.runner import BatchRunner  # noqa: PLC0415 - aiohttp, for batches alone

    if isinstance(budget, Budget):
        raise ConfigError("a batch can't share its budget with other runs; give it as a number")
    if ledger is None:
        raise ConfigError("batch needs a ledger: it is where a batch is remembered until its answers come")
    if not cache:
        raise ConfigError(
            "batch reads its answers from the ledger; it cannot be combined with ", Setting("cache", False)
        )
    if own := next((scorer for scorer in plan.scorers if scorer.judges), None):
        raise ConfigError(f"batch asks the run's judge; {own.name} has a judge of its own")
    if again := next((scorer for scorer in plan.scorers if scorer.asks_again), None):
        raise ConfigError(f"batch asks each question once; {again.name} asks it several times, so run it without batch")
    return BatchRunner(plan.judge, batch if isinstance(batch, BatchOptions) else BatchOptions(), budget)

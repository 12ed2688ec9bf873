"""The output of `--dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import evalstone
from evalstone._core.display import count, money, safe
from evalstone.cli.output import console, table

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.run.dry_run import Estimate, JudgeEstimate
    from evalstone.run.plan import Plan


def expense(calls: int, usage: evalstone.Usage, price: float | None, note: str = "") -> str:
    """The estimated tokens and cost of judge calls, on one line."""
    cost = "cost unknown" if price is None else f"about {money(price)}{note}"
    tokens = f"about {usage.input:,} input and {usage.output:,} output tokens"
    return f"{count(calls, 'call')}, {tokens}, {cost}; retries and reasoning tokens not included"


def show_judges(judges: Sequence[JudgeEstimate]) -> None:
    """Print the estimated calls and cost of each judge, if there are several."""
    if len(judges) < 2:
        return
    names = ("calls", "input tokens", "output tokens", "cost")
    rows = table("judge", *names, numbers=names)
    for judge in judges:
        cost = "unknown" if judge.cost is None else money(judge.cost)
        counts = (f"{number:,}" for number in (judge.calls, judge.usage.input, judge.usage.output))
        rows.add_row(safe(judge.judge, 200), *counts, cost)
    console().print(rows)


def _estimated(work: Estimate, plan: Plan) -> bool:
    """Print the number of target calls, and what judge calls are estimated from; returns False if they can't be."""
    stored = f" ({work.target_answers:,} answers are in the ledger)" if work.target_answers else ""
    screen = console()
    turns = plan.user is not None or any(len(sample.turns) > 1 for sample in plan.dataset)
    at_most = "at most " if turns else ""
    screen.print(f"Target calls: {at_most}{work.target_calls:,}{stored}; their cost is unknown")
    if plan.user is not None and plan.user.judges:
        calls = f"{plan.user.judges[0].identity}, which plays the user, is called before each and once at the end"
        screen.print(safe(f"{calls}; these calls are not counted below", 2000))
    if not plan.asked_judges:
        return True
    known = work.samples - work.without_stand_in
    if not known:
        screen.print(
            "Judge calls can't be estimated: no sample has an output or a reference to stand in for an answer."
        )
        return False
    coverage = (
        f" of {known:,} of the {work.samples:,} samples; the others have neither" if work.without_stand_in else ""
    )
    screen.print(f"Judge calls are estimated from the outputs, or else the references{coverage}:")
    return True


def show_estimate(plan: Plan, config: RunConfig) -> None:
    """Print the estimated calls and cost of a run."""
    from evalstone._core import sync
    from evalstone.models.prices import at_batch_price
    from evalstone.run.dry_run import SECONDS_PER_CALL, estimate

    work = sync.run(estimate(plan, ledger=None if config.no_cache else config.ledger))
    screen = console()
    target = f" · target {plan.target.identity}" if plan.target is not None else ""
    samples = count(work.samples, "sample") + (f" × {plan.trials:,} trials" if plan.trials > 1 else "")
    screen.print(safe(f"{plan.dataset.name}: {samples}{target} · judge {work.judge} · dry run", 2000))
    if plan.target is not None and not _estimated(work, plan):
        return
    names = ("asked", "shared", "cached", "input tokens", "output tokens", "skipped")
    rows = table("scorer", *names, numbers=names)
    for line in work.scorers:
        counts = (line.asked, line.shared, line.cached, line.usage.input, line.usage.output, line.skipped)
        rows.add_row(line.name, *(f"{number:,}" for number in counts))
    screen.print(rows)
    for line in work.scorers:
        if line.open:
            samples = count(line.open, "sample")
            text = f"{line.name}: the calls for {samples} depend on the answer: {line.open_reason}"
            screen.print(safe(text, 2000))
        if line.failed:
            failed = f"{line.name}: {count(line.failed, 'sample')} would fail: {line.error}"
            screen.print(safe(failed, 2000), style="yellow")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in work.kinds.items()) or "none"
    screen.print(f"Judge calls: {kinds}")
    show_judges(work.judges)
    price = at_batch_price(work.cost) if config.batch else work.cost
    least = "At least " if any(line.open for line in work.scorers) else ""
    screen.print(least + expense(work.calls, work.usage, price, " at the batch price" if config.batch else ""))
    if config.budget is not None and price is not None and price > config.budget:
        screen.print(f"This is above the budget of ${config.budget:g}: the run would stop early.", style="yellow")
    if config.batch:
        screen.print("Batches finish within a day. Calls that depend on earlier answers go into later batches.")
    elif work.cost != 0 and plan.target is None:
        seconds = work.seconds(config.concurrency)
        screen.print(
            f"About {seconds:.0f} s at {SECONDS_PER_CALL:g} s per call and a concurrency of {config.concurrency}."
        )

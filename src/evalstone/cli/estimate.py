"""What `evalstone run --dry-run` prints."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from evalstone._core import sync
from evalstone.cli.config_file import RunConfig
from evalstone.cli.planning import planned
from evalstone.cli.screen import console
from evalstone.judges.providers.pricing import at_batch_price
from evalstone.report.text import money, safe
from evalstone.run.dry_run import SECONDS_PER_CALL, estimate


def dry_run(config: RunConfig) -> None:
    """Print what a run would ask and cost."""
    plan = planned(config, asking=False)
    found = sync.run(estimate(plan, ledger=None if config.fresh else config.ledger))
    screen = console()
    screen.print(
        Text(f"{safe(plan.dataset.name)}: {found.samples} samples, judged by {found.judge}. Nothing was asked.")
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("scorer")
    for name in ("calls", "shared", "in the ledger", "input tokens", "output tokens", "skipped"):
        table.add_column(name, justify="right")
    for line in found.scorers:
        counts = (line.calls, line.shared, line.answered, line.usage.input, line.usage.output, line.skipped)
        table.add_row(line.name, *(f"{count:,}" for count in counts))
    screen.print(table)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items()) or "no question"
    screen.print(Text(f"Would ask: {kinds}."))
    usage = found.usage
    price = at_batch_price(found.cost) if config.batch else found.cost
    cost = "cost unknown" if price is None else f"about {money(price)}{' at the batch price' if config.batch else ''}"
    tokens = f"about {usage.input:,} input and {usage.output:,} output tokens"
    told = f"{found.calls:,} calls, {tokens}, {cost}; estimated, retries and reasoning tokens come on top."
    screen.print(Text(told))
    if config.budget is not None and price is not None and price > config.budget:
        told = f"That is above the budget of {money(config.budget)}: the run would end early."
        screen.print(Text(told, style="yellow"))
    if config.batch:
        screen.print(Text("A batch is done within a day; questions that follow from the answers go into a later one."))
    elif found.cost != 0:
        seconds = found.seconds(config.concurrency)
        screen.print(Text(f"About {seconds:.0f} s, at {SECONDS_PER_CALL:g} s a call and {config.concurrency} at once."))

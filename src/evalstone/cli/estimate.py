"""What `evalstone run --dry-run` prints."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from evalstone import bridge
from evalstone.api import plan_for
from evalstone.cli.screen import console
from evalstone.config import RunConfig
from evalstone.engine import estimate
from evalstone.engine.estimate import SECONDS_A_CALL
from evalstone.report.terminal import money, safe


def dry_run(config: RunConfig) -> None:
    """Print what a run would ask and cost."""
    plan = plan_for(config.data, config.scorers, judge=config.judge, mapping=config.map)
    found = bridge.run(estimate(plan, ledger=config.ledger))
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
    screen.print(
        Text(
            f"{found.calls:,} calls, about {usage.input:,} input and {usage.output:,} output tokens, "
            f"about {money(found.cost)}; estimated, retries and reasoning tokens come on top."
        )
    )
    if found.cost != 0:
        seconds = found.seconds(config.concurrency)
        screen.print(Text(f"About {seconds:.0f} s, at {SECONDS_A_CALL:g} s a call and {config.concurrency} at once."))

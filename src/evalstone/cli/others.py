"""The names of other systems, beside ours."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.compat.names import SYSTEMS
from evalstone.errors import ConfigError, unknown


def show_names(system: str, screen: Console) -> None:
    """Print what a system's names are here, and how they differ. Raises ConfigError for an unknown system."""
    if system.lower() not in SYSTEMS:
        raise ConfigError(unknown("system", system, SYSTEMS))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(system.lower(), no_wrap=True)
    table.add_column("evalstone", no_wrap=True)
    table.add_column("difference in meaning", overflow="fold")
    for row in SYSTEMS[system.lower()]:
        table.add_row(Text(row.theirs), Text(row.ours or "-", style="bold"), Text(row.difference, style="dim"))
    screen.print(table)
    screen.print(Text("\nevalstone scorers NAME explains one of ours.", style="dim"))


def show_definitions(definitions: Mapping[str, object], screen: Console) -> None:
    """Print the formulas that a scorer can take, one a line."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, formula in definitions.items():
        table.add_row(Text(f"  {name}"), Text(str(formula)))
    screen.print(Text("\nDefinitions, from the same answers: definition=…", style="bold"))
    screen.print(table)

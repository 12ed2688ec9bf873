"""What `evalstone scorers` prints: all scorers, one explained, or another system's names."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

from rich.table import Table
from rich.text import Text

from evalstone.cli.others import show_definitions, show_names
from evalstone.cli.screen import console
from evalstone.errors import ConfigError, unknown
from evalstone.run.plan import ALL_SCORERS
from evalstone.scorers.base import Scorer, summary
from evalstone.scorers.checks import Check


def scorers(name: str | None, system: str | None = None) -> None:
    """List all scorers, explain one, or show what another system's names are here."""
    if system is not None:
        show_names(system, console())
        return
    if name is None:
        _list_scorers()
        return
    key = name.replace("-", "_")
    if key not in ALL_SCORERS:
        raise ConfigError(unknown("scorer", name, ALL_SCORERS))
    _explain(ALL_SCORERS[key])


def _list_scorers() -> None:
    screen = console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("scorer", "needs", "range", "better", "judge calls", "what it measures"):
        table.add_column(column)
    for name, kind in ALL_SCORERS.items():
        better = "lower" if kind.lower_is_better else "higher"
        calls = str(len(kind.asks))
        table.add_row(name, ", ".join(kind.required()), "0 to scale", better, calls, summary(kind))
    screen.print(table)
    screen.print(Text("\nevalstone scorers NAME explains one.", style="dim"))


def _explain(kind: type[Scorer]) -> None:
    screen = console()
    shared = issubclass(kind, Check)
    module = inspect.getmodule(kind)
    screen.print(Text((inspect.getdoc(kind if shared else module) or summary(kind)).strip()))
    screen.print(Text(f"\nneeds       {', '.join(kind.required())}"))
    screen.print(Text(f"range       0 to scale (default 1), {'lower' if kind.lower_is_better else 'higher'} is better"))
    screen.print(Text(f"asks        {', '.join(asked.kind for asked in kind.asks) or 'no judge'}"))
    given = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    form = f"{kind.name}({', '.join(f'{name}=…' for name in given)})@{kind.version}" if given else kind().signature
    screen.print(Text(f"signature   {form}"))
    if kind.definitions:
        show_definitions(kind.definitions, screen)
    if kind.bands:
        screen.print(Text("\nHow to read it (scale 1)", style="bold"))
        for floor, meaning in kind.bands:
            screen.print(Text(f"  from {floor:g}: {meaning}"))
    if kind.advice:
        screen.print(Text(f"\nAbout a {'high' if kind.lower_is_better else 'low'} one", style="bold"))
        screen.print(Text(f"  {kind.advice}"))

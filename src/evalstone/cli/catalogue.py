"""What `evalstone scorers` prints: all scorers, one explained, or another system's names."""

from __future__ import annotations

from dataclasses import MISSING, fields

from rich.table import Table
from rich.text import Text

from evalstone.cli.others import show_definitions, show_names
from evalstone.cli.screen import console
from evalstone.errors import ConfigError, unknown
from evalstone.scorers import SCORERS
from evalstone.scorers.base import Scorer, documentation, summary


def scorers(name: str | None, system: str | None = None) -> None:
    """List all scorers, explain one, or show what another system's names are here."""
    if system is not None:
        show_names(system, console())
        return
    if name is None:
        _list_scorers()
        return
    key = name.replace("-", "_")
    if key not in SCORERS:
        raise ConfigError(unknown("scorer", name, SCORERS))
    _explain(SCORERS[key])


def _list_scorers() -> None:
    screen = console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("scorer", "needs", "range", "better", "judge calls", "what it measures"):
        table.add_column(column)
    for name, kind in SCORERS.items():
        better = "lower" if kind.lower_is_better else "higher"
        calls = str(len(kind.questions))
        table.add_row(name, ", ".join(kind.required_fields), "0 to scale", better, calls, summary(kind))
    screen.print(table)
    screen.print(Text("\nevalstone scorers NAME explains one.", style="dim"))


def _explain(kind: type[Scorer]) -> None:
    screen = console()
    screen.print(Text(documentation(kind)))
    screen.print(Text(f"\nneeds       {', '.join(kind.required_fields)}"))
    screen.print(Text(f"range       0 to scale (default 1), {'lower' if kind.lower_is_better else 'higher'} is better"))
    screen.print(Text(f"asks        {', '.join(asked.kind for asked in kind.questions) or 'no judge'}"))
    given = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    form = f"{kind.name}({', '.join(f'{name}=…' for name in given)})@{kind.version}" if given else kind().signature
    screen.print(Text(f"signature   {form}"))
    if kind.definitions:
        show_definitions(kind.definitions, screen)
    if kind.interpretation:
        screen.print(Text("\nHow to read it (scale 1)", style="bold"))
        for floor, meaning in kind.interpretation:
            screen.print(Text(f"  from {floor:g}: {meaning}"))
    if kind.advice:
        screen.print(Text(f"\nAbout a {'high' if kind.lower_is_better else 'low'} one", style="bold"))
        screen.print(Text(f"  {kind.advice}"))

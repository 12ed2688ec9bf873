"""`evalstone scorers`: all scorers, one described, or other tools' names for them."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from evalstone.cli.options import ExitCode
from evalstone.cli.output import console, table
from evalstone.errors import ConfigError, unknown

if TYPE_CHECKING:
    from evalstone.scorers import Scorer


def scorers(
    name: Annotated[
        str | None, typer.Argument(metavar="SCORER", help="A scorer to describe. Default: list all.")
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TOOL", help="Show another tool's names for scorers: mastra, spring, ragas or deepeval."
        ),
    ] = None,
) -> int:
    """List the scorers, or describe one.

    Describes a scorer's formula, required fields, parameters and interpretation.
    """
    from evalstone.scorers import SCORERS, parse_scorers

    if system is not None:
        _list_names(system)
    elif name is None:
        _list_scorers(SCORERS)
    elif (key := name.replace("-", "_")) in SCORERS:
        _describe(SCORERS[key])
    elif ":" in name or "(" in name:
        _describe(type(parse_scorers([name])[0]))
    else:
        raise ConfigError(unknown("scorer", name, SCORERS))
    return ExitCode.OK


def _list_scorers(known: Mapping[str, type[Scorer]]) -> None:
    from evalstone.scorers.base import summary

    rows = table("scorer", "required fields", "direction", "judge calls", "what it measures", numbers=["judge calls"])
    for name, kind in known.items():
        direction = "↓ lower is better" if kind.lower_is_better else "↑ higher is better"
        rows.add_row(name, ", ".join(kind.required_fields), direction, str(len(kind.questions)), summary(kind))
    screen = console()
    screen.print(rows)
    screen.print("\nScores range from 0 to the scorer's scale (1 by default).", style="dim")
    screen.print("evalstone scorers NAME describes one.", style="dim")


def _describe(kind: type[Scorer]) -> None:
    from dataclasses import MISSING, fields

    from rich.text import Text

    from evalstone.scorers.base import described_parameters, documentation

    screen = console()
    screen.print(Text(documentation(kind)))
    direction = "lower" if kind.lower_is_better else "higher"
    screen.print(Text(f"\nRequired fields  {', '.join(kind.required_fields)}"))
    screen.print(Text(f"Range            0 to scale (default 1), {direction} is better"))
    screen.print(Text(f"Judge calls      {', '.join(question.kind for question in kind.questions) or 'none'}"))
    parameters = [field for field in fields(kind) if field.init]
    required = [f.name for f in parameters if f.default is MISSING and f.default_factory is MISSING]
    form = (
        f"{kind.name}({', '.join(f'{name}=…' for name in required)})@{kind.version}" if required else kind().signature
    )
    screen.print(Text(f"Signature        {form}"))
    if parameters:
        screen.print(Text("\nParameters", style="bold"))
        rows = table("", "", fold=True)
        rows.show_header = False
        for field in parameters:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            shown = "required" if default is MISSING else f"default {default!r}"
            described = described_parameters(kind).get(field.name, "")
            rows.add_row(f"  {field.name}", Text.assemble(described, " " * bool(described), (f"({shown})", "dim")))
        screen.print(rows)
    if kind.definitions:
        screen.print(Text("\nDefinitions, all from the same judge calls: definition=NAME", style="bold"))
        rows = table("", "", fold=True)
        rows.show_header = False
        for name, definition in kind.definitions.items():
            rows.add_row(Text(f"  {name}", style="bold"), Text(definition.formula))
        screen.print(rows)
    if kind.interpretation:
        screen.print(Text("\nInterpretation (scale 1)", style="bold"))
        for floor, meaning in kind.interpretation:
            screen.print(Text(f"  from {floor:g}: {meaning}"))
    if kind.advice:
        screen.print(Text(f"\nIf the score is {'high' if kind.lower_is_better else 'low'}", style="bold"))
        screen.print(Text(f"  {kind.advice}"))


def _list_names(tool: str) -> None:
    """Print a tool's scorer names, ours, and how they differ. Raises ConfigError for an unknown tool."""
    from rich.text import Text

    from evalstone.compat.names import SYSTEMS

    name = tool.lower()
    if name not in SYSTEMS:
        raise ConfigError(unknown("tool", tool, SYSTEMS))
    rows = table(name, "evalstone", "difference in meaning", fold=True)
    for row in SYSTEMS[name]:
        rows.add_row(Text(row.theirs), Text(row.ours or "-", style="bold"), Text(row.difference, style="dim"))
    screen = console()
    screen.print(rows)
    screen.print("\nevalstone scorers NAME describes one of ours.", style="dim")

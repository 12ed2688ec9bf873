"""`evalstone judges`: its options. What it does lies in judge_list.py."""

from __future__ import annotations

from typing import Annotated

import typer


def judges(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A judge to explain, as --judge takes it: 'cascade(lexical, openai/gpt-5.1, threshold=0.9)'."
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option("--ledger", help="Whose calibrations are shown; the usual ledger without it.")
    ] = None,
) -> None:
    """List the judges, with the key that each needs and what is known of its accuracy, or explain one.

    Nothing is asked.
    """
    from evalstone.cli import judge_list  # noqa: PLC0415

    judge_list.judges(name, ledger)

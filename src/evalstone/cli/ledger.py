"""`evalstone ledger …`: the commands and their options. What they do lies in ledger_commands.py."""

from __future__ import annotations

from typing import Annotated

import typer

ledger_app = typer.Typer(
    name="ledger",
    help="Look after the ledger: what it holds, moving it, checking it, making it smaller.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LedgerOption = Annotated[
    str | None, typer.Option("--ledger", help="A path, sqlite:///path, or postgresql://user@host/database.")
]


@ledger_app.command()
def info(ledger: LedgerOption = None) -> None:
    """Say what the ledger holds: size, version, rows, judges and what their answers cost, the last runs."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    ledger_commands.show_info(ledger)


@ledger_app.command()
def export(
    to: Annotated[str, typer.Argument(help="A .jsonl or .parquet file.")],
    ledger: LedgerOption = None,
    what: Annotated[
        str, typer.Option(help="answers; records (of one run, as in records.jsonl); or all (.jsonl only).")
    ] = "all",
    run: Annotated[str, typer.Option(help="Whose records: the id of a run, or last.")] = "last",
) -> None:
    """Write rows into a file, to keep or to bring into another ledger."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    ledger_commands.export_rows(ledger, to, what, run)


@ledger_app.command("import")
def import_(
    files: Annotated[
        list[str], typer.Argument(help="Exported .jsonl files; of a records.jsonl the answers are taken.")
    ],
    ledger: LedgerOption = None,
) -> None:
    """Bring exported rows into a ledger. Rows that it has stay as they are."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    ledger_commands.import_files(ledger, files)


@ledger_app.command()
def prune(
    ledger: LedgerOption = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", help="Runs started more than so many DAYS ago.", min=0)
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Runs that have not ended and that nobody works on.")
    ] = False,
    unused_answers: Annotated[
        bool, typer.Option("--unused-answers", help="Answers that stand behind no record that stays.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without, it is only said what would go.")] = False,
) -> None:
    """Delete runs with their records and batches, or answers: what you name, and nothing else."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    ledger_commands.prune_rows(ledger, older_than, unfinished, unused_answers, yes)


@ledger_app.command()
def verify(ledger: LedgerOption = None) -> None:
    """Check that the ledger is sound. Exit code 1 when it is not."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    raise typer.Exit(ledger_commands.show_verdict(ledger))


@ledger_app.command()
def recover(
    bad: Annotated[str, typer.Argument(help="The damaged file. It is not touched.")],
    into: Annotated[str, typer.Option("--into", help="A new ledger, or one to add to.")],
) -> None:
    """Copy what can be read of a damaged ledger into a good one."""
    from evalstone.cli import ledger_commands  # noqa: PLC0415

    ledger_commands.recover_rows(bad, into)

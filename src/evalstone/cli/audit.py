"""`evalstone audit`: its options. What it does lies in audit_commands.py."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstone.cli.calibrate import (
    BaseUrlOption,
    BudgetOption,
    ConcurrencyOption,
    FreshOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    MapOption,
    QuietOption,
)


def audit(
    data: Annotated[
        str | None, typer.Argument(help="Samples (JSON, JSONL, CSV, Parquet); without, the bundled answers.")
    ] = None,
    judge: JudgeOption = "lexical",
    scorer: Annotated[
        list[str] | None, typer.Option("--scorer", "-s", help="Repeatable; without it, faithfulness.")
    ] = None,
    edit: Annotated[
        list[str] | None, typer.Option("--edit", help="An edit or a family of them; all without it. Repeatable.")
    ] = None,
    paraphrase: Annotated[
        list[str] | None, typer.Option("--paraphrase", help="A column with paraphrases of the output. Repeatable.")
    ] = None,
    samples: Annotated[int, typer.Option(help="How many samples to draw, at most.", min=1)] = 100,
    threshold: Annotated[
        float | None, typer.Option(help="From which score on the verdict is yes; that of a calibration, else half.")
    ] = None,
    edits: Annotated[bool, typer.Option("--edits", help="List the edits, and ask nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked and cost; ask nothing.")] = False,
    base_url: BaseUrlOption = None,
    ledger: LedgerOption = None,
    map: MapOption = None,
    concurrency: ConcurrencyOption = 32,
    budget: BudgetOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure what a judge is swayed by: small edits of your own samples that it should not mind.

    Exit codes: 0 all is well; 2 the call was wrong; 3 some outcomes failed, or the audit ended before its end; 130
    interrupted.
    """
    from evalstone.cli import audit_commands as commands  # noqa: PLC0415
    from evalstone.cli.calibration_commands import asking, judge_spec  # noqa: PLC0415

    if edits:
        commands.list_edits()
        return
    how = commands.auditing(edit or [], paraphrase or [], samples, threshold)
    subject = commands.Subject(data, scorer or ["faithfulness"], judge_spec(judge, base_url), ledger)
    with asking(map or [], concurrency=concurrency, fresh=fresh, budget=budget, quiet=quiet) as ask:
        if dry_run:
            commands.dry_run(subject, how, ask)
            return
        raise typer.Exit(commands.audit(subject, how, ask, as_json=as_json))

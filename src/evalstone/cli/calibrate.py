"""`evalstone calibrate`: its options. What it does lies in calibration_commands.py."""

from __future__ import annotations

from typing import Annotated

import typer

JudgeOption = Annotated[
    str, typer.Option("--judge", "-j", help="lexical (no key, no network), or a model such as openai/gpt-5.1.")
]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", help="Of any OpenAI-compatible server, for the judge's model.")
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", help="Where answers and records are kept: a path, sqlite:///path, or postgresql://…"),
]
MapOption = Annotated[list[str] | None, typer.Option("--map", help="FIELD=COLUMN, such as output=answer. Repeatable.")]
ConcurrencyOption = Annotated[int, typer.Option(help="Judge calls under way at once, at most.", min=1)]
BudgetOption = Annotated[float | None, typer.Option(help="US dollars that it may pay at most.", min=0)]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Ask again what the ledger has.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def calibrate(
    labels: Annotated[
        str, typer.Option("--labels", help="Samples with columns of labels; with --data, their ids and labels.")
    ],
    data: Annotated[str | None, typer.Option("--data", help="The samples, where the labels are a file beside.")] = None,
    judge: JudgeOption = "lexical",
    scorer: Annotated[str, typer.Option("--scorer", "-s", help="The scorer whose score is compared.")] = "faithfulness",
    label: Annotated[
        list[str] | None, typer.Option("--label", help="A column of labels. Repeatable, one an annotator.")
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option("--positive", help="A word that means yes; all others then mean no. Repeatable.")
    ] = None,
    label_range: Annotated[
        str | None, typer.Option("--label-range", help="LOW:HIGH, such as 1:5, of labels that are numbers.")
    ] = None,
    cut: Annotated[
        float | None, typer.Option(help="From which label on the truth is yes, on the scorer's scale; half of it.")
    ] = None,
    maximise: Annotated[
        str, typer.Option(help="What the threshold maximises: balanced_accuracy, accuracy, f1, kappa, …")
    ] = "balanced_accuracy",
    fit: Annotated[str, typer.Option(help="From score to probability: platt, isotonic, or auto.")] = "auto",
    base_url: BaseUrlOption = None,
    ledger: LedgerOption = None,
    map: MapOption = None,
    concurrency: ConcurrencyOption = 32,
    budget: BudgetOption = None,
    fresh: FreshOption = False,
    out: Annotated[str | None, typer.Option("--out", "-o", help="A file for a copy of the calibration (JSON).")] = None,
    svg: Annotated[str | None, typer.Option("--svg", help="A file for the reliability diagram.")] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Each of the judges that this one is made of as well, by itself.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare a judge with human labels: how far to trust it, and from which score on.

    What is learned is kept beside the ledger. Exit codes: 0 all is well; 2 the call was wrong; 3 some outcomes failed,
    or the run ended before its end; 130 interrupted.
    """
    from evalstone.cli import calibration_commands as commands  # noqa: PLC0415

    labelling = commands.labelling(label or [], positive or [], label_range, cut, maximise, fit)
    files = commands.Files(out=out, svg=svg, as_json=as_json)
    spec = commands.judge_spec(judge, base_url)
    with commands.asking(map or [], concurrency=concurrency, fresh=fresh, budget=budget, quiet=quiet) as how:
        raise typer.Exit(
            commands.calibrate(commands.Subject(labels, data, scorer, spec, ledger, alone), labelling, how, files)
        )

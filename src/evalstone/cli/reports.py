"""The options of the commands that look at runs: report, compare, gate, plan, label. What they do lies beside."""

from __future__ import annotations

from typing import Annotated

import typer

RunArgument = Annotated[str, typer.Argument(help="A results folder, the id of a run in the ledger, or last.")]
LedgerOption = Annotated[str | None, typer.Option("--ledger", help="Where runs are looked up by their id.")]
HtmlOption = Annotated[str | None, typer.Option("--html", help="FILE for one page that opens offline; - is stdout.")]
MarkdownOption = Annotated[str | None, typer.Option("--markdown", help="FILE, for a pull request; - is stdout.")]
CsvOption = Annotated[str | None, typer.Option("--csv", help="FILE that no spreadsheet executes; - is stdout.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
JunitOption = Annotated[str | None, typer.Option("--junit", help="FILE in JUnit XML; - is stdout.")]
DataOption = Annotated[
    str | None, typer.Option("--data", help="The samples of the run, where its results folder does not hold them.")
]
ByOption = Annotated[
    list[str] | None, typer.Option("--by", help="A field of the metadata: its slices are looked at too. Repeatable.")
]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Compare runs whose judges, scorers or cases differ; it is said in the result.")
]


def report(
    run: RunArgument = "last",
    ledger: LedgerOption = None,
    worst: Annotated[int, typer.Option(help="How many of the worst samples to show.", min=0)] = 3,
    data: DataOption = None,
    by: ByOption = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", help="SCORER=FILE with human labels, to correct its mean. Repeatable."),
    ] = None,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Correct shares of yes by the judge's calibrations beside the ledger.")
    ] = False,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
    junit: JunitOption = None,
) -> None:
    """Show a run again, or write it as HTML, Markdown, CSV, JSON or JUnit XML."""
    from evalstone.cli import reporting  # noqa: PLC0415
    from evalstone.cli.outputs import Outputs  # noqa: PLC0415

    outputs = Outputs(html, markdown, csv, as_json, junit)
    place = (ledger or reporting.DEFAULT_LEDGER) if calibrated else None
    view = reporting.View(worst=worst, by=tuple(by or ()), labels=tuple(labels or ()), calibrations=place)
    raise typer.Exit(reporting.report(reporting.found_run(run, ledger, data), view, outputs))


def compare(
    runs: Annotated[list[str], typer.Argument(help="Two or more runs; the first is the baseline.", show_default=False)],
    ledger: LedgerOption = None,
    by: ByOption = None,
    anyway: AnywayOption = False,
    adjust: Annotated[str, typer.Option("--adjust", help="For looking at many: holm, fdr_bh or none.")] = "holm",
    most: Annotated[int, typer.Option(help="How many of the most changed samples to show.", min=0)] = 3,
    anchor: Annotated[
        bool, typer.Option("--anchor", help="The same outputs judged then and now: has the judge drifted?")
    ] = False,
    html: HtmlOption = None,
    markdown: MarkdownOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare runs over the same samples: paired differences with intervals, tests, and what changed most."""
    from evalstone.cli import comparing  # noqa: PLC0415
    from evalstone.cli.outputs import Outputs  # noqa: PLC0415

    outputs = Outputs(html, markdown, csv, as_json)
    way = comparing.Way(by=tuple(by or ()), anyway=anyway, adjustment=adjust, most=most)
    if anchor:
        raise typer.Exit(comparing.drift(runs, ledger, outputs, way))
    raise typer.Exit(comparing.compare(runs, ledger, outputs, way))


def gate(
    run: RunArgument = "last",
    baseline: Annotated[str | None, typer.Option("--baseline", help="The run that --no-worse is against.")] = None,
    minimum: Annotated[
        list[str] | None, typer.Option("--min", help="SCORER=MEAN, at least; where higher is better. Repeatable.")
    ] = None,
    maximum: Annotated[
        list[str] | None, typer.Option("--max", help="SCORER=MEAN, at most; where lower is better. Repeatable.")
    ] = None,
    no_worse: Annotated[
        list[str] | None, typer.Option("--no-worse", help="SCORER=MARGIN against the baseline. Repeatable.")
    ] = None,
    pass_rate: Annotated[
        list[str] | None,
        typer.Option("--pass-rate", help="SCORER@SCORE=SHARE: at least this share reaches this score. Repeatable."),
    ] = None,
    error: Annotated[float, typer.Option(help="The chance of a wrong pass, and of a wrong fail, over all.")] = 0.05,
    inconclusive: Annotated[str, typer.Option(help="own (exit code 4), pass (0) or fail (1).")] = "own",
    anyway: AnywayOption = False,
    ledger: LedgerOption = None,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
    junit: JunitOption = None,
) -> None:
    """Hold a run against criteria: each passes, fails or is inconclusive, and then how many more samples decide it.

    Exit codes: 0 all pass; 1 one fails; 2 the call was wrong; 3 all pass, but outcomes of the run failed or are missing
    because it ended early; 4 inconclusive.
    """
    from evalstone.cli import gating  # noqa: PLC0415
    from evalstone.cli.outputs import Outputs  # noqa: PLC0415

    criteria = gating.criteria_from(minimum or [], maximum or [], no_worse or [], pass_rate or [])
    held = gating.held(run, baseline, criteria, ledger=ledger, error=error, anyway=anyway)
    raise typer.Exit(gating.gate(held, Outputs(markdown=markdown, json=as_json, junit=junit), inconclusive))


def plan(
    run: RunArgument = "last",
    difference: Annotated[
        float, typer.Option("--difference", "-d", help="The difference of means that is to be seen.", min=0)
    ] = 0.03,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="A second pilot run over the same samples: much better guesses.")
    ] = None,
    power: Annotated[float, typer.Option(help="The chance to see it, if it is there.", min=0, max=1)] = 0.8,
    level: Annotated[float, typer.Option(help="Of confidence.", min=0, max=1)] = 0.95,
    anyway: AnywayOption = False,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how many samples show a difference, from a pilot run, and what that run itself can and cannot tell."""
    from evalstone.cli import sample_size  # noqa: PLC0415
    from evalstone.cli.outputs import Outputs  # noqa: PLC0415

    wanted = sample_size.Wanted(difference, power, level)
    raise typer.Exit(sample_size.plan(run, baseline, wanted, Outputs(json=as_json), ledger=ledger, anyway=anyway))


def label(
    to: Annotated[str, typer.Option("--to", help="The .csv or .jsonl file of labels; it is added to.")],
    run: RunArgument = "last",
    scorer: Annotated[
        str | None, typer.Option("--scorer", "-s", help="Whose score a person gives instead; the run's first.")
    ] = None,
    count: Annotated[int, typer.Option("--next", help="How many samples to label.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Of the random choice within strata.", min=0)] = 0,
    data: DataOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Label samples on the terminal: those whose labels say most about the judge's errors. Goes on where it stopped."""
    from evalstone.cli import labelling  # noqa: PLC0415

    raise typer.Exit(labelling.label(labelling.task(run, scorer, to, ledger=ledger, data=data), count=count, seed=seed))


COMMANDS = (report, compare, gate, plan, label)

"""The commands and their options. What they do lies in commands.py, which is imported only when one is called."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from evalstone.cli import reports
from evalstone.cli.audit import audit
from evalstone.cli.calibrate import calibrate
from evalstone.cli.judges import judges
from evalstone.cli.ledger import ledger_app
from evalstone.errors import EvalstoneError, RunAborted

USAGE, ENDED = 2, 3

app = typer.Typer(
    name="evalstone",
    help="Evaluate what language models, RAG pipelines and agents produce.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(ledger_app)

ScorerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer",
        "-s",
        help="A scorer's name, or with parameters: 'context_relevance(scale=10)'. Repeatable; without it, faithfulness "
        "and context_relevance.",
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        "-j",
        help="lexical (no key, no network), a model such as openai/gpt-5.1, or judges made of judges: "
        "'cascade(lexical, openai/gpt-5.1, threshold=0.9)'. See evalstone judges.",
    ),
]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", help="Of any OpenAI-compatible server, for the judge's model.")
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", help="Where answers and records are kept: a path, sqlite:///path, or postgresql://…"),
]


@app.command()
def run(
    data: Annotated[str, typer.Argument(help="Samples (JSON, JSONL, CSV, Parquet), or a TOML file that names them.")],
    scorer: ScorerOption = None,
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for records.jsonl and summary.json.")] = None,
    ledger: LedgerOption = None,
    concurrency: Annotated[int | None, typer.Option(help="Judge calls under way at once, at most.", min=1)] = None,
    map: Annotated[
        list[str] | None, typer.Option("--map", help="FIELD=COLUMN, such as output=answer. Repeatable.")
    ] = None,
    minimum: Annotated[
        list[str] | None, typer.Option("--min", help="SCORER=MEAN; a lower mean ends with exit code 1. Repeatable.")
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Decide each --min with error under control; stop as soon as it is clear.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked and cost; ask nothing.")] = False,
    budget: Annotated[float | None, typer.Option(help="US dollars that the run may pay at most.", min=0)] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask again what the ledger has.")] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask through the provider's batch API: half the price, within a day.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="With --batch: stay until the answers are there.")] = False,
    worst: Annotated[int | None, typer.Option(help="How many of the worst samples to show; 3.", min=0)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Evaluate samples, show the result, and write it.

    Exit codes: 0 all is well; 1 a minimum was not met; 2 the call was wrong; 3 some outcomes failed, or the run ended
    before its end or waits for a batch; 4 with --gate, nothing failed but something is undecided; 130 interrupted.
    """
    from evalstone.cli import commands, planning  # noqa: PLC0415

    config = planning.configured(
        data,
        judge=judge,
        base_url=base_url,
        mapping=map or [],
        minimum=minimum or [],
        scorers=tuple(scorer or ()),
        out=out,
        ledger=ledger,
        concurrency=concurrency,
        budget=budget,
        fresh=fresh or None,
        gate=gate or None,
        batch=batch or None,
        wait=wait or None,
        worst=worst,
    )
    if dry_run:
        from evalstone.cli import estimate  # noqa: PLC0415

        estimate.dry_run(config)
        return
    raise typer.Exit(commands.run(config, quiet=quiet))


@app.command()
def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for the results.")] = "results/demo",
    ledger: LedgerOption = None,
) -> None:
    """Judge the bundled real RAG answers with the lexical judge: no key, no network."""
    from evalstone.cli import commands  # noqa: PLC0415

    raise typer.Exit(commands.demo(out, ledger))


@app.command()
def score(
    scorer: Annotated[str, typer.Option("--scorer", "-s", help="The scorer's name, with parameters if you like.")],
    output: Annotated[str | None, typer.Option(help="The answer that is judged.")] = None,
    input: Annotated[str | None, typer.Option(help="The question.")] = None,
    context: Annotated[list[str] | None, typer.Option(help="A passage. Repeatable.")] = None,
    reference: Annotated[str | None, typer.Option(help="The known good answer.")] = None,
    instructions: Annotated[str | None, typer.Option(help="The system prompt.")] = None,
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    ledger: LedgerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as one line of JSON.")] = False,
) -> None:
    """Score one sample."""
    from evalstone.cli import commands, planning  # noqa: PLC0415

    fields = {
        "input": input,
        "output": output,
        "context": context,
        "reference": reference,
        "instructions": instructions,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    raise typer.Exit(
        commands.score(
            scorer, given, planning.judge_spec("lexical" if judge is None else judge, base_url), ledger, as_json
        )
    )


@app.command()
def scorers(
    name: Annotated[str | None, typer.Argument(help="A scorer to explain; without, all are listed.")] = None,
    system: Annotated[
        str | None, typer.Option("--from", help="Show another system's names: mastra, spring, ragas, deepeval.")
    ] = None,
) -> None:
    """List the scorers, or explain one: formula, needs, range, how to read it, what to do about a low one."""
    from evalstone.cli import catalogue  # noqa: PLC0415

    catalogue.scorers(name, system)


for _command in reports.COMMANDS:
    app.command()(_command)


app.command()(calibrate)
app.command()(audit)
app.command()(judges)


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Evaluate what language models, RAG pipelines and agents produce."""
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415

        typer.echo(installed("evalstone"))
        raise typer.Exit


def main() -> None:
    """The entry point: errors of evalstone are one line on standard error, and exit code 2."""
    sys.path.append(str(Path.cwd()))  # where a scorer named module:scorer lies; last, so that it hides no other module
    try:
        app()
    except RunAborted as error:
        typer.echo(
            f"evalstone: {error}\nWhat was judged is in the ledger: the same command goes on from there.", err=True
        )
        sys.exit(ENDED)
    except EvalstoneError as error:
        typer.echo(f"evalstone: {error}", err=True)
        sys.exit(USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)

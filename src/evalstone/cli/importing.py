"""`evalstone import`: the results of other tools as runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from evalstone._core.display import safe
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.cli import completion, options
from evalstone.cli.completion import FILE
from evalstone.cli.options import Outputs, Value, Values, argument, option
from evalstone.cli.output import console, formats, present
from evalstone.cli.values import ledger_option, scorer_numbers
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from evalstone.compat.imports.importing import ImportedRuns


def import_(
    path: Annotated[str, argument("FILE", "The results of another tool, or a folder of them.", complete=FILE)],
    tool: Annotated[
        Value,
        option(
            "--from TOOL",
            "Data",
            "The tool that wrote them.",
            default="recognized by the content",
            complete=completion.result_tools,
        ),
    ] = None,
    scales: Annotated[
        dict[str, float] | None,
        option(
            "--scale METRIC=X",
            "Data",
            "The highest possible score of a metric whose tool doesn't say it.",
            default="1, or a power of ten",
            parse=scorer_numbers,
        ),
    ] = None,
    name: Annotated[Value, option("--name NAME", "Options", "Name of the runs.")] = None,
    tags: Annotated[Values, option("--tag TAG", "Options", "Tag of the runs.")] = None,
    out: options.Out = None,
    ledger: options.Ledger = None,
    *,
    outputs: Outputs,
) -> int:
    """Import the results of another tool, with its scores.

    Makes a run of each system in the file. Nothing is judged again, and no key is needed: report, compare, gate, power,
    annotate and view work on the tool's own scores.
    """
    from evalstone.compat.imports.importing import import_results
    from evalstone.ledger.base import DEFAULT_LEDGER

    location = DEFAULT_LEDGER if ledger is None else ledger
    runs = import_results(
        path, tool=tool, out=out, ledger=location, scales=scales, name=name or "", tags=tuple(tags or ())
    )
    view = runs.view(COMMAND_LINE)
    if present(view, formats(view, outputs, runs.to_dict())):
        _say_next(runs, ledger)
    return ExitCode.OK


def _say_next(runs: ImportedRuns, ledger: str | None) -> None:
    from evalstone.ledger.base import DEFAULT_LEDGER, shown

    screen, at, location = console(), ledger_option(ledger), DEFAULT_LEDGER if ledger is None else ledger
    places = dict(zip((run.id for run in runs), runs.folders, strict=False))
    names = [shlex.quote(places[run.id]) if run.id in places else f"{run.id}" for run in runs]
    end = "" if places else at
    screen.print(
        safe(
            f"\nLedger: {shown(location)}, {'run' if len(runs) == 1 else 'runs'} {', '.join(run.id for run in runs)}",
            2000,
        ),
        soft_wrap=True,
    )
    if runs.known:
        screen.print(safe(f"Known:  {', '.join(runs.known)}, imported before", 2000), soft_wrap=True)
    screen.print("\nNext:", style="bold")
    best = max(runs[0].summary, key=lambda line: (bool(line.judges), line.n_score))
    title = runs[0].titles[best.info.signature]
    commands = {f"evalstone report {names[0]}{end}": "the samples that scored worst, and why"}
    if len(runs) > 1:
        commands[f"evalstone compare {names[0]} {names[1]}{end}"] = "which is better, with tests"
    at_least = f"{title}={0.9 * best.info.scale:g}"
    bound = "max" if best.info.lower_is_better else "min"
    commands[f"evalstone gate {names[0]} --{bound} {shlex.quote(at_least)}{end}"] = "a check for CI"
    if best.judges:
        commands[f"evalstone annotate {runs[0].id} --scorer {shlex.quote(title)}{at}"] = (
            "label samples, to correct the mean"
        )
    commands[f"evalstone view {runs[0].id}{at}"] = "all samples, in a browser"
    for command, purpose in commands.items():
        screen.print(safe(f"{command}  # {purpose}", 2000), soft_wrap=True)

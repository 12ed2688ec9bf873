"""`evalstone import`: the results of other tools as runs, and their configurations as projects."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evalstone._core.display import count
from evalstone._core.files import home_expanded
from evalstone._core.project_files import CONFIG, check_free, write_new
from evalstone.cli import completion, options
from evalstone.cli.completion import FILE
from evalstone.cli.options import Outputs, Value, Values, argument, front_end, option
from evalstone.cli.output import console, formats, present, say, say_next
from evalstone.cli.values import ledger_option, scorer_numbers, view_command
from evalstone.errors import ConfigError
from evalstone.results.endings import ExitCode

if TYPE_CHECKING:
    from evalstone.compat.configs.project import Project
    from evalstone.compat.imports.importing import ImportedRuns
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo

SHOWN_GAPS = 12
"""The most gaps of a configuration that are printed."""


def import_(
    path: Annotated[
        str,
        argument("FILE", "The results of another tool, a folder of them, or promptfooconfig.yaml.", complete=FILE),
    ],
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
    encoding: options.Encoding = None,
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

    A configuration of promptfoo becomes a project in the folder --out: evalstone.toml and a dataset.
    """
    from evalstone.compat.configs.recognition import config_at

    if (config := config_at(path)) is not None:
        given = {"--scale": scales, "--encoding": encoding, "--name": name, "--tag": tags, "--ledger": ledger}
        given |= _requested(outputs)
        return _import_config(config, tool, out, [option for option, value in given.items() if value])
    from evalstone.compat.imports.importing import import_results
    from evalstone.ledger.base import DEFAULT_LEDGER

    location = DEFAULT_LEDGER if ledger is None else ledger
    runs = import_results(
        path,
        tool=tool,
        out=out,
        ledger=location,
        scales=scales,
        encoding=encoding,
        name=name or "",
        tags=tuple(tags or ()),
    )
    view = runs.view(front_end(import_))
    if present(view, formats(view, outputs, runs.to_dict())):
        _say_runs(runs, location)
    return ExitCode.OK


def _requested(outputs: Outputs) -> dict[str, object]:
    """The formats that are requested, by their options."""
    formats = {"--json": outputs.as_json, "--html": outputs.html, "--markdown": outputs.markdown, "--csv": outputs.csv}
    return {option: value for option, value in formats.items() if value is not None}


def _import_config(path: Path, tool: str | None, out: str | None, refused: list[str]) -> int:
    """Write the project of a configuration."""
    from evalstone.compat.configs.project import project_of

    if tool not in (None, "promptfoo"):
        raise ConfigError(f"{path} is a configuration; only those of promptfoo are read")
    if refused:
        raise ConfigError(f"{refused[0]} is for results; {path} is a configuration, which has none")
    if out is None:
        raise ConfigError(f"{path} is a configuration, which becomes a project: name its folder, --out FOLDER")
    folder = home_expanded(out)
    project = project_of(path)
    check_free(folder, project.files)
    written = write_new(folder, project.files)
    _say_project(folder, project, written)
    return ExitCode.OK


def _say_project(folder: Path, project: Project, written: list[str]) -> None:
    """Print what a configuration became, what has no counterpart, and the command to run."""
    from evalstone.compat.configs.project import GAPS

    names = [each if isinstance(each, str) else written_scorer(each) for each in project.scorers]
    system = "answers in the file" if project.has_answers else count(project.targets, "target")
    say(f"Written to {folder}: {', '.join(written)}")
    say(f"{count(project.samples, 'sample')} · {system} · {', '.join(names) or 'no scorer'}")
    if project.gaps:
        console().print("\nWithout counterpart:", style="bold")
        for line in project.gaps[:SHOWN_GAPS]:
            say(line)
        if len(project.gaps) > SHOWN_GAPS:
            say(f"and {len(project.gaps) - SHOWN_GAPS:,} more")
        say(f"All of them, with their places: {folder / GAPS}")
    command = f"evalstone run {shlex.quote(str(folder / CONFIG))}"
    command += " --target my_app:answer" if not project.has_answers and not project.targets else ""
    command += "" if project.scorers else " --scorer SCORER"
    say_next({command: f"a judge is asked: see judge in {CONFIG}" if project.judged else "no judge is asked"})


def written_scorer(table: Mapping[str, Any]) -> str:
    """A scorer's table as it is written on the command line."""
    parameters = ", ".join(f"{name}={value!r}" for name, value in table.items() if name != "name")
    return f"{table['name']}({parameters})"


def _say_runs(runs: ImportedRuns, ledger: str) -> None:
    """Print where the runs are, and what may come next."""
    from evalstone.ledger.base import shown

    say("")
    if runs.folders:
        say(f"Saved:  {', '.join(runs.folders)}")
    ids = ", ".join(run.id for run in runs)
    say(f"Ledger: {shown(ledger)}, {'run' if len(runs) == 1 else 'runs'} {ids}")
    if runs.known:
        say(f"Known:  {', '.join(runs.known)}, imported before, with the name and tags of that time")
    say_next(_next_commands(runs, ledger))


def _comparable(runs: ImportedRuns) -> tuple[int, int] | None:
    """The places of the first two runs of the same samples; None if there are none."""
    first: dict[tuple[str, str], int] = {}
    for place, run in enumerate(runs):
        before = first.setdefault((run.dataset_name, run.dataset_version), place)
        if before != place:
            return before, place
    return None


def _highest(run: Run, info: ScorerInfo) -> float:
    """The highest score of a metric that the tool gave, if the scale is a guess; else the scale."""
    guesses = (each for each in run.cautions if each.kind == "scale_assumed" and each.scorer == info.name)
    return next((guess["highest"] for guess in guesses), info.scale)


def _next_commands(runs: ImportedRuns, ledger: str) -> dict[str, str]:
    """Commands for the runs, each with its purpose. A folder is read without the ledger."""
    first, at = runs[0], ledger_option(ledger)
    names, of = ([*map(shlex.quote, runs.folders)], "") if runs.folders else ([run.id for run in runs], at)
    best = max(first.summary, key=lambda line: (bool(line.judges), line.n_score))
    title = first.titles[best.info.signature]
    bound, share = ("max", 0.1) if best.info.lower_is_better else ("min", 0.9)
    limit = shlex.quote(f"{title}={share * _highest(first, best.info):.3g}")
    commands = {f"evalstone report {names[0]}{of}": "the samples that scored worst, and why"}
    if pair := _comparable(runs):
        one, other = (names[place] for place in pair)
        commands[f"evalstone compare {one} {other}{of}"] = "which is better, with tests"
    commands[f"evalstone gate {names[0]} --{bound} {limit}{of}"] = "a check for CI"
    if best.judges:
        label = f"evalstone annotate {first.id} --scorer {shlex.quote(title)}{at}"
        commands[label] = "label samples, to correct the mean"
    if runs.folders:
        commands[f"evalstone run {names[0]}/samples.jsonl --scorer SCORER"] = "score the same answers without the tool"
    return commands | dict([view_command(first.id, ledger)])

"""An experiment: one run for each combination of targets, their parameters and datasets, one after another.

scorers = ["faithfulness"]
trials = 4
out = "results"                                  # results/CELL for each

[experiment]
data = ["easy.jsonl", "hard.jsonl"]              # instead of data
targets = ["my_app:agent", { name = "next", address = "my_app:agent_2", version = "2" }]

[experiment.parameters]                          # keyword parameters of functions, settings of other targets
temperature = [0.0, 0.7]
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import evalstone
from evalstone._core.addresses import beside
from evalstone._core.json import content_hash
from evalstone.cli.config_file import RunConfig
from evalstone.cli.execution import (
    checked_plan,
    evaluated,
    interruptible,
    resume_text,
    save,
    say_broken_off,
    without_empty_folders,
)
from evalstone.cli.options import front_end
from evalstone.cli.output import formats, present, prints_to_stderr, say_next, to_stderr
from evalstone.cli.values import ledger_option, say_code, target_spec
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.results.endings import ExitCode, exit_code, first_code
from evalstone.results.gate_criteria import CRITERIA
from evalstone.results.several_runs import Experiment
from evalstone.run.experiment_cells import in_experiment
from evalstone.run.saved import recorded_run
from evalstone.targets import FunctionTarget, Target, parse_target
from evalstone.targets.base import PARAMETERS
from evalstone.types import StoredCell

if TYPE_CHECKING:
    from evalstone.run.plan import Plan
    from evalstone.view.experiment_files import ExperimentFile

MOST_CELLS = 10_000
_LONGEST_NAME = 120
"""The most bytes of a cell's name; file systems allow 255."""
_NOUNS: Mapping[type, str] = {str: "texts", dict: "tables", object: "values"}
REFUSED = (*CRITERIA, "sequential", "baseline", "batch", "batch_files")


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    name: str
    config: RunConfig
    plan: Plan
    factors: Mapping[str, Any]
    """What varies between the cells, with the values of this one."""


def run_cells(config: RunConfig, folder: str | Path) -> int:
    """Run the cells of an experiment, and show a table of them; returns the exit code.

    folder: where to look for modules of targets. Every cell is checked before the first one runs. An interrupted
    experiment resumes with the first cell that it has not completed.

    Raises ConfigError for a wrong table, and for settings that a cell can't be run with.
    """
    _check_settings(config)
    with config.naming_file("experiment"):
        configs = list(_configs(config, folder))
    with without_empty_folders(*(one.out for _, one, _ in configs)):
        return _run_cells(config, configs)


def _run_cells(config: RunConfig, configs: Sequence[tuple[str, RunConfig, Mapping[str, Any]]]) -> int:
    cells = [Cell(name, one, checked_plan(one, calls=not config.dry_run)[0], factors) for name, one, factors in configs]
    with config.naming_file("experiment"):
        _check_distinct(cells)
    say_code(*(owner for cell in cells for owner in (cell.plan.target, cell.plan.user)))
    if config.dry_run:
        from evalstone.cli.dry_run import show_estimates

        show_estimates({cell.name: (cell.plan, cell.config) for cell in cells}, config)
        return ExitCode.OK
    done = _completed(cells, config.ledger) if config.cache else {}
    from evalstone.results.files import remove_results

    for cell in cells:
        if cell.name not in done and cell.config.out is not None:
            remove_results(cell.config.out)
    results: dict[str, evalstone.Run] = {}
    for number, cell in enumerate(cells, start=1):
        stop = evalstone.StopSignal()
        if cell.name in done:
            results[cell.name] = evalstone.read_run(done[cell.name], ledger=config.ledger)
        else:
            stored = StoredCell(experiment=_name(config), name=cell.name, factors=cell.factors)
            with interruptible(resume=resume_text(config)) as stop, in_experiment(stored):
                result = evaluated(cell.plan, cell.config, stop, progress=not config.quiet)
            results[cell.name] = result
        saved = save(results[cell.name], cell.config, stop)
        if results[cell.name].ending.broken_off:
            say_broken_off(results[cell.name], config, cell.plan.size, saved)
            return exit_code(results[cell.name], saved=False)
        if stop.requested and number < len(cells):  # too late for this cell, whose calls were all in flight
            complete = f"{number:,} of {len(cells):,} cells {'is' if number == 1 else 'are'} complete"
            to_stderr(f"Interrupted: {complete}; {resume_text(config)}.")
            return ExitCode.INTERRUPTED
    result = Experiment(runs=results)
    view = result.view(front_end(RunConfig))
    if present(view, formats(view, config, result.to_dict(), csv=result.csv_lines)):
        _show_next(cells, results, config)
    return first_code(exit_code(result) for result in results.values())


def experiment_in(file: Path) -> ExperimentFile | None:
    """What the file of an experiment says, without running any code that it names; None for a file without an
    experiment.

    Raises ConfigError if it can't be read, or describes no experiment that can be run.
    """
    from evalstone.view.experiment_files import ExperimentFile, PlannedCell

    config = RunConfig.load(str(file))
    if config.experiment is None:
        return None
    _check_settings(config)
    with config.naming_file("experiment"):
        cells = [PlannedCell(cell.name, cell.factors, Path(cell.data).name) for cell in _named_cells(config)]
        targets = [_label_and_settings(spec)[1]["address"] for spec in _targets(config) if spec is not None]
    return ExperimentFile(
        _name(config),
        tuple(cells),
        {
            "data": tuple(dict.fromkeys(map(str, _data(config)))),
            "target": tuple(dict.fromkeys(map(str, targets))),
            "scorers": tuple(_text(one) for one in config.scorers),
            "judge": (_text(config.judge),),
            "trials": (str(config.trials),) if config.trials > 1 else (),
            "budget": (f"${config.budget:,.2f} for each cell",) if config.budget is not None else (),
            "results folders": (config.out,) if config.out is not None else (),
        },
        config.ledger if "ledger" in config.in_file else None,
    )


def _name(config: RunConfig) -> str:
    return config.name or Path(config.file).stem


def _check_settings(config: RunConfig) -> None:
    for name in REFUSED:
        if getattr(config, name):
            raise ConfigError(
                f"{config.named(name)} can't be used with an experiment; use evalstone gate or report on its cells"
            )


@dataclass(frozen=True)
class _NamedCell:
    """A cell before its target is looked up."""

    name: str
    """What varies between the cells, with the values of this one."""
    factors: Mapping[str, Any]
    data: str
    target: Any
    """As the file has it."""
    parameters: Mapping[str, Any]


def _data(config: RunConfig) -> list[Any]:
    return _listed(cast("dict[str, Any]", config.experiment).get("data", config.data), "data", str)


def _targets(config: RunConfig) -> list[Any]:
    """The targets as the file has them; None for a run without a target."""
    specs = cast("dict[str, Any]", config.experiment).get("targets")
    if specs is not None and config.target is not None:
        raise ConfigError("the file has a target and [experiment] targets; keep one of them")
    return [config.target] if specs is None else _listed(specs, "targets", str, dict)


def _named_cells(config: RunConfig) -> list[_NamedCell]:
    settings = cast("dict[str, Any]", config.experiment)
    data, targets = _data(config), _targets(config)
    parameters: Any = settings.get("parameters", {})
    if not isinstance(parameters, dict):
        raise ConfigError(invalid("[experiment] parameters", "a table of lists", parameters))
    lists = cast("dict[str, Any]", parameters)
    choices = [_listed(values, f"parameters.{name}", object) for name, values in lists.items()]
    number = math.prod(map(len, (data, targets, *choices)))
    if number > MOST_CELLS:
        raise ConfigError(f"the experiment has {number:,} cells; {MOST_CELLS:,} are the most")
    cells: dict[str, _NamedCell] = {}
    for file, target, values in itertools.product(data, targets, itertools.product(*choices)):
        chosen: dict[str, Any] = dict(zip(lists, values, strict=True))
        if target is None and chosen:
            raise ConfigError("[experiment] parameters require a target; add target or targets")
        label = "" if target is None else _label_and_settings(target)[0]
        factors = ({"target": label} if len(targets) > 1 else {}) | chosen
        factors |= {"data": Path(file).stem} if len(data) > 1 else {}
        varied = [label] * (len(targets) > 1) + [f"{key}={_text(value)}" for key, value in chosen.items()]
        varied += [Path(file).stem] * (len(data) > 1)
        name = _folder_name(",".join(varied or [label or Path(file).stem]))
        if name in cells:
            raise ConfigError(f'two cells of the experiment are called {name}; name its targets: {{ name = "…", … }}')
        cells[name] = _NamedCell(name, factors, file, target, chosen)
    return [*cells.values()]


def _label_and_settings(spec: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a target is called in an experiment, and its settings."""
    table: dict[str, Any] = {"address": spec} if isinstance(spec, str) else dict(spec)
    label = str(table.pop("name", ""))
    settings: dict[str, Any] = target_spec(table)
    return label or str(settings["address"]).rpartition(":")[2], settings


def _configs(config: RunConfig, folder: str | Path) -> Iterator[tuple[str, RunConfig, Mapping[str, Any]]]:
    """The name of each cell, which is made of what varies between cells, its settings, and what varies."""
    in_file = config.in_file | {"target"} if "targets" in cast("dict[str, Any]", config.experiment) else config.in_file
    for cell in _named_cells(config):
        with beside(folder):
            target: Any = None if cell.target is None else _target(cell.target, cell.parameters, config.ledger)
        out = None if config.out is None else str(Path(config.out) / cell.name)
        name = f"{config.name} {cell.name}".strip()
        one = replace(config, data=cell.data, target=target, out=out, name=name, in_file=in_file)
        yield cell.name, one, cell.factors


def _folder_name(text: str) -> str:
    """A text as the name of a visible folder. A long one is cut, with a hash of the whole text."""
    name = re.sub(r"[^\w.=+,-]+", "-", text).lstrip(".-") or "target"
    if len(name.encode()) > _LONGEST_NAME:
        name = f"{name.encode()[:_LONGEST_NAME].decode(errors='ignore')}-{content_hash(text)[:8]}"
    return name


def _listed(value: Any, key: str, *kinds: type) -> list[Any]:
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not values or not all(isinstance(item, kinds) for item in values):
        nouns = " or ".join(_NOUNS[kind] for kind in kinds)
        raise ConfigError(invalid(f"[experiment] {key}", f"a list of one or more {nouns}", cast(object, value)))
    return values


def _text(value: object) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigError(invalid("[experiment] a parameter", "JSON data", value)) from None


@prints_to_stderr()
def _target(spec: Any, parameters: Mapping[str, Any], ledger: str) -> Target | None:
    """A target of the experiment with these parameters."""
    label, settings = _label_and_settings(spec)
    parse = functools.partial(parse_target, find_run=functools.partial(recorded_run, ledger=ledger))
    try:
        target = parse(settings)
    except ConfigError as error:
        if error.kind == "unknown" and error.field == "parameter" and error.value in parameters:
            raise ConfigError(error, "; a parameter of an experiment needs a default") from None
        if not parameters:
            raise
        return parse({**settings, **parameters})
    if not parameters:
        return target
    if isinstance(target, FunctionTarget):
        return with_parameters(target, parameters)
    try:
        return parse({**settings, **parameters})
    except ConfigError as error:
        raise ConfigError(f"[experiment] {label}: ", error) from None


def with_parameters(target: FunctionTarget, parameters: Mapping[str, Any]) -> FunctionTarget:
    """A function target with some of its keyword parameters set, which are part of its identity.

    Raises ConfigError for a parameter that the function doesn't have, or that evalstone sets.
    """
    for name in parameters:
        if name in PARAMETERS:
            raise ConfigError(f"[experiment] the parameter {name} is set by evalstone, so it can't be varied")
    try:
        function = functools.partial(target.function, **parameters)
        bound = FunctionTarget(function=function)
    except (ConfigError, TypeError):
        known = [name for name in inspect.signature(target.function).parameters if name not in PARAMETERS]
        wrong = next((name for name in parameters if name not in known), next(iter(parameters)))
        raise ConfigError(f"[experiment] {target.name}: ", unknown("parameter", wrong, known)) from None
    shown = ", ".join(f"{name}={_text(value)}" for name, value in parameters.items())
    return dataclasses.replace(target, function=bound.function, label=f"{target.name}({shown})")


def _check_distinct(cells: Sequence[Cell]) -> None:
    """Raise ConfigError for cells with the same plan: the second would resume the first, or replace it."""
    names: dict[str, str] = {}
    for cell in cells:
        if (first := names.setdefault(cell.plan.fingerprint, cell.name)) != cell.name:
            raise ConfigError(
                f"[experiment] the cells {first} and {cell.name} are the same run: they differ only in settings that "
                "aren't part of the target's identity; give each its own version, or keep one of them"
            )


def _completed(cells: Sequence[Cell], ledger: str) -> dict[str, str]:
    """The runs of the cells that an interrupted experiment has completed, by the cells' names.

    These are the first cells whose latest runs are complete, each started after the previous one. If all cells are, the
    experiment was completed, and starts over.
    """
    from evalstone.ledger.base import is_there

    if not is_there(ledger):
        return {}
    from evalstone.ledger.store import Ledger

    with Ledger(ledger) as opened:
        rows = opened.runs()
    latest = {row.plan: (index, row) for index, row in reversed(list(enumerate(rows)))}
    done: dict[str, str] = {}
    previous = len(rows)
    for cell in cells:
        index, row = latest.get(cell.plan.fingerprint, (previous, None))
        if row is None or row.finished is None or index >= previous:
            return done
        done[cell.name], previous = row.id, index
    return {}


def _show_next(cells: Sequence[Cell], results: Mapping[str, evalstone.Run], config: RunConfig) -> None:
    by_data: dict[str, list[str]] = {}
    for cell in cells:
        by_data.setdefault(cell.config.data, []).append(cell.config.out or results[cell.name].id)
    ledger = "" if config.out else ledger_option(config.ledger)
    groups = [("compare" if len(names) > 1 else "report", names) for names in by_data.values()]
    say_next({f"evalstone {command} {shlex.join(names)}{ledger}": "" for command, names in groups})

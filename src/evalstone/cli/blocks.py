"""`evalstone run --engine`, `run --shard` and `evalstone merge`."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import evalstone
from evalstone._core.display import count, ended, safe
from evalstone._core.front_ends import COMMAND_LINE, FrontEnd, Setting
from evalstone._core.phases import phase
from evalstone.cli import options
from evalstone.cli.completion import FOLDER
from evalstone.cli.execution import check_required, check_run_names, checked_criteria, interruptible, resume_text
from evalstone.cli.options import Outputs, Value, Values, argument, option
from evalstone.cli.output import calibrations_of, check_outputs, formats, present, say, to_stderr
from evalstone.cli.thresholds import Thresholds, counted, tested
from evalstone.errors import BudgetExceeded, ConfigError, EvalstoneError, StorageError, invalid
from evalstone.results.endings import BUDGET, STORAGE, ExitCode, exit_code

if TYPE_CHECKING:
    from evalstone._core.storage import Location
    from evalstone.cli.config_file import RunConfig
    from evalstone.datasets.reading import Reading
    from evalstone.results.block_plan import BlockPlan
    from evalstone.results.gate_criteria import GateCriteria
    from evalstone.results.record_tables import Keep
    from evalstone.scale.scoring import Scoring

_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")


def run_in_blocks(config: RunConfig) -> int:
    """Run on an engine, or score one shard. config: settings whose own code is imported."""
    from evalstone._core.storage import Location
    from evalstone.cli.config_file import RunConfig
    from evalstone.scale.engines import parse_engine
    from evalstone.scale.runs import run_on
    from evalstone.scale.scoring import Scoring, check_in_blocks
    from evalstone.scorers import parse_scorers

    setting = "engine" if config.shard is None else "shard"
    if config.shard is not None and config.engine is not None:
        raise ConfigError(Setting("engine"), " runs all blocks, and ", Setting("shard"), " some; keep one of them")
    default = RunConfig(data=config.data)
    names = (each.name for each in fields(RunConfig) if each.name not in ("file", "in_file"))
    for name in names:
        if getattr(config, name) != getattr(default, name):
            with config.naming_file(name):
                check_in_blocks([name], setting)
    if config.out is None:
        raise ConfigError(Setting(setting), " needs a results folder: ", Setting("out", ...))
    if config.data == "-":
        raise ConfigError(Setting(setting), " needs files, which can be read in parts, not standard input")
    with config.naming_file("scorers"):
        scorers = parse_scorers(config.scorers)
    with config.naming_file("judge"):
        judge = evalstone.parse_judge(config.judge)
    scoring = Scoring(
        scorers=scorers,
        judge=judge,
        ledger=config.ledger,
        concurrency=config.concurrency,
        keep_reasoning=config.keep_reasoning,
        cache=config.cache,
        budget=config.budget,
    )
    with config.naming_file("map", "split", "encoding", "sheet"):
        reading = config.reading
        reading.files(config.data)
    if loss := scoring.at_risk():
        to_stderr(loss)
    folder, keep = Location.of(config.out), config.keep or "all"
    kept = f"Finished blocks are in {folder}" + (", and finished calls in the ledger" if scoring.ledger else "")
    with interruptible(kept=kept, waits=config.engine is None) as stop:
        try:
            if config.engine is None:
                return _shard(config, scoring, folder, reading, keep, stop)
            check_run_names(config)
            check_required(config)
            criteria = checked_criteria(config, scoring.plan)
            check_outputs(config.files, (config.data, config.file, config.baseline, config.ledger, config.judge))
            baseline = None if config.baseline is None else evalstone.read_run(config.baseline, ledger=config.ledger)
            engine, tags = parse_engine(config.engine), tuple(config.tags)
            run = run_on(
                engine,
                config.data,
                scoring,
                folder,
                reading=reading,
                keep=keep,
                name=config.name,
                tags=tags,
                on_plan=_say_notes,
            )
        except (BudgetExceeded, StorageError) as error:
            resume = resume_text(config, BUDGET if isinstance(error, BudgetExceeded) else STORAGE)
            to_stderr(f"evalstone: {ended(error.text(COMMAND_LINE))} {kept}; {resume}.")
            return ExitCode.INCOMPLETE
    return _shown(
        run,
        config,
        config,
        criteria,
        baseline,
        look=config.look,
        out=config.out,
        top=config.top,
        ledger=config.ledger,
        front_end=options.front_end(RunConfig),
    )


def _shard(
    config: RunConfig, scoring: Scoring, folder: Location, reading: Reading, keep: Keep, stop: evalstone.StopSignal
) -> int:
    from evalstone.scale.runs import run_shard

    number, shards = _shard_of(str(config.shard))
    on_plan = _say_notes if number == 1 else None
    scored, blocks = run_shard(
        config.data, scoring, folder, number, shards, reading=reading, keep=keep, stop=stop, on_plan=on_plan
    )
    before = "" if scored == blocks else f", {blocks - scored:,} of them before"
    merge = f"evalstone merge {shlex.quote(str(config.out))}"
    say(f"Shard {number} of {shards} is scored: {count(blocks, 'block')}{before}. After the last: {merge}")
    return ExitCode.OK


def _say_notes(plan: BlockPlan) -> None:
    """Print caveats about the data."""
    for note in plan.notes:
        to_stderr(safe(f"{plan.dataset_name}: {note}", 2000))


def _shard_of(text: str) -> tuple[int, int]:
    """The number of a shard, from 1, and of all shards."""
    match = _SHARD.fullmatch(text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(invalid(Setting("shard"), "I/N, with I from 1 to N, such as 3/16", text))
    return int(match[1]), int(match[2])


def merge(
    folder: Annotated[
        str, argument("FOLDER", "The results folder that all parts were written to.", complete=FOLDER, is_path=True)
    ],
    name: Annotated[Value, option("--name NAME", "Options", "Name of the run.")] = None,
    tags: Annotated[Values, option("--tag TAG", "Options", "A tag of the run.")] = None,
    ledger: options.Ledger = None,
    *,
    thresholds: Thresholds,
    outputs: Outputs,
    top: options.Top = 3,
) -> int:
    """Merge the parts of a run that was scored with --shard.

    The folder then has the summary of the run, which all commands read. Merging again changes nothing.
    """
    from evalstone._core.storage import Location
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.run.execute import check_names
    from evalstone.scale.runs import merged

    check_names(name or "", tags or ())
    ledger = DEFAULT_LEDGER if ledger is None else ledger
    baseline = None if thresholds.baseline is None else evalstone.read_run(thresholds.baseline, ledger=ledger)
    thresholds.check_baseline()
    with phase("merging"):
        run = merged(Location.of(folder), name=name or "", tags=tuple(tags or ()))
    criteria = thresholds.criteria(run.scorers)
    return _shown(
        run,
        outputs,
        thresholds,
        criteria,
        baseline,
        look=None,
        out=folder,
        top=top,
        ledger=ledger,
        front_end=options.front_end(merge),
    )


def _shown(
    run: evalstone.Run,
    outputs: Outputs,
    thresholds: Thresholds,
    criteria: GateCriteria,
    baseline: evalstone.Run | None,
    *,
    look: int | None,
    out: str,
    top: int,
    ledger: str,
    front_end: FrontEnd,
) -> int:
    """Check a merged run, and show it; returns the exit code."""
    from evalstone.results.views.gate import with_checks
    from evalstone.results.views.run import run_view

    verdict, checks, failure = "pass", None, None
    try:
        if criteria.scorers:
            gate, checks = tested(
                run, criteria, thresholds, baseline, look=look, out=out, absent=None, front_end=front_end
            )
            verdict = gate.verdict
    except EvalstoneError as error:  # the run is shown nevertheless
        failure = error
    with phase("making the report"):
        view = run_view(run, front_end, worst=top, calibrations=calibrations_of(run, ledger))
    whole = view if checks is None else with_checks(view, checks)
    present(whole, formats(whole, outputs, run.to_dict(), csv=run.csv_lines))
    if failure is not None:  # no wrong setting: the run has ended, and is saved
        to_stderr(f"evalstone: {ended(failure.text(COMMAND_LINE))}")
        return ExitCode.INCOMPLETE
    return exit_code(run, counted(verdict, thresholds.inconclusive), saved=True)

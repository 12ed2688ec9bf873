"""`evalstone run`, `score` and `demo`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import evalstone
from evalstone._core.display import count, ended, sentence
from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.phases import phase
from evalstone.cli import completion, options, thresholds, values, watched_gate
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
from evalstone.cli.options import Outputs, Value, Values, front_end, option
from evalstone.cli.output import (
    calibrations_of,
    console,
    deliver,
    formats,
    present,
    say,
    say_next,
    to_stderr,
    written,
)
from evalstone.results.endings import ExitCode, exit_code

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.gate_criteria import GateCriteria
    from evalstone.run.plan import Plan
    from evalstone.run.sequential import RunGate
    from evalstone.stats.gates import GateVerdict

DEMO_SCORERS = ["faithfulness", "hallucination", "context_relevance", "context_precision", "context_position"]


def run(config: RunConfig) -> int:
    """Score a dataset.

    Judge calls are cached in the ledger and shared between scorers. An interrupted run resumes where it stopped when
    you run the same command again.
    """

    config = with_own_code(config)
    if config.shard is not None or config.engine is not None:
        from evalstone.cli.blocks import run_in_blocks

        return run_in_blocks(config)
    if config.experiment is not None:
        from evalstone.cli.experiment import run_cells

        with values.exporting(config.otel and not config.dry_run):
            return run_cells(config, Path(config.file).parent)
    if config.dry_run:
        from evalstone.cli.dry_run import show_estimate

        with without_empty_folders(config.out):
            plan, _ = checked_plan(config, calls=False)
            values.say_code(plan.target, plan.user)
            show_estimate(plan, config)
        return ExitCode.OK
    with values.exporting(config.otel):
        return _run(config)


def with_own_code(config: RunConfig) -> RunConfig:
    """The settings of a run with the code of the user's that they name, imported."""
    with config.naming_file("scorers"):
        scorers = values.scorer_specs(config.scorers, config.folder("scorers"))
    with config.naming_file("target"):
        target = (
            values.own_target(config.target, config.folder("target")) if config.experiment is None else config.target
        )
    with config.naming_file("user"):
        user = values.own_user(config.user, config.folder("user"))
    with config.naming_file("judge"):
        judge = values.judge_spec(config.judge, config.base_url, config.folder("judge"))
    return replace(config, scorers=scorers, target=target, user=user, judge=judge)


def demo(out: options.Out = "results/demo", ledger: options.Ledger = None, *, outputs: Outputs) -> int:
    """Score 60 bundled RAG answers with the lexical judge.

    Needs no API key and no network.
    """
    from evalstone.datasets.demo import DEMO_DATA

    config = RunConfig.load(str(DEMO_DATA), scorers=DEMO_SCORERS, out=out, ledger=ledger, **vars(outputs))
    commands = {
        "evalstone run YOUR.jsonl --scorer faithfulness": "your own data (JSON, JSONL, CSV, Excel, Parquet)",
        "evalstone run YOUR.jsonl --scorer faithfulness --judge openai/gpt-5.1 --dry-run": "what it would cost",
        f"evalstone report {shlex.quote(out or 'results/demo')} --html report.html": "this run as an HTML page",
    }
    return _run(config, next_commands=commands)


def score(
    scorers: Annotated[
        list[str], option("--scorer -s SCORER", "Options", options.A_SCORER, complete=completion.scorers)
    ],
    output: Annotated[Value, option("--output TEXT", "Data", "The answer to score.")] = None,
    input: Annotated[Value, option("--input TEXT", "Data", "The question.")] = None,
    context: Annotated[Values, option("--context TEXT", "Data", "A retrieved passage.")] = None,
    reference: Annotated[Value, option("--reference TEXT", "Data", "The reference answer.")] = None,
    instructions: Annotated[Value, option("--instructions TEXT", "Data", "The system prompt.")] = None,
    keep_reasoning: options.KeepReasoning = False,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    ledger: options.Ledger = None,
    *,
    outputs: Outputs,
    otel: options.Otel = False,
) -> int:
    """Score one sample."""
    from evalstone._core import sync
    from evalstone._core.reasoning import begins_with_reasoning
    from evalstone.api import ascore_each, plan_for_one
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.results.run_notes import reasoning_note
    from evalstone.results.views.record import records_view

    specs = values.scorer_specs(scorers)
    sample = {
        "input": input,
        "output": output,
        "context": context,
        "reference": reference,
        "instructions": instructions,
    }
    with values.exporting(otel), interruptible():
        plan = plan_for_one(
            {name: value for name, value in sample.items() if value is not None},
            {},
            specs,
            judge=values.judge_spec("lexical" if judge is None else judge, base_url),
            keep_reasoning=keep_reasoning,
        )
        records = sync.run(ascore_each(plan, ledger=DEFAULT_LEDGER if ledger is None else ledger))
    begins = output is not None and begins_with_reasoning(output)
    view = records_view(records, front_end(score), [reasoning_note(1, kept=keep_reasoning)] if begins else ())

    def csv() -> Iterable[str]:
        from evalstone.results.views.sample_rows import record_rows

        return record_rows(records).csv_lines()

    present(view, formats(view, outputs, *(record.to_dict() for record in records), csv=csv))
    failed = any(isinstance(record.outcome, evalstone.Failed) for record in records)
    return ExitCode.INCOMPLETE if failed else ExitCode.OK


def _run(
    config: RunConfig,
    next_commands: Mapping[str, str] | None = None,
) -> int:
    """Run, save and show the result; returns the exit code."""
    with without_empty_folders(config.out):
        return _saved_and_shown(config, next_commands)


def _saved_and_shown(config: RunConfig, next_commands: Mapping[str, str] | None) -> int:
    from evalstone.report.terminal import show
    from evalstone.results.views.gate import with_checks
    from evalstone.results.views.run import run_view

    plan, criteria = checked_plan(config)
    values.say_code(plan.target, plan.user)
    say_slots(plan, config)
    baseline = thresholds.baseline_of(config, plan, criteria)
    with interruptible(shuffled=config.sequential, resume=resume_text(config)) as stop:
        gate = watched_gate.watching(plan, criteria, stop, config, baseline) if config.sequential else None

        def on_record(record: evalstone.Record) -> None:
            if gate is not None:
                gate.add(record)
            if config.verbose:
                _print_record(record)

        watched = on_record if gate is not None or config.verbose else None
        result = evaluated(plan, config, stop, progress=not config.quiet and not config.verbose, on_record=watched)
    saved = save(result, config)
    if result.ending.broken_off:  # first, because what ended it may prevent the output, too
        say_broken_off(result, config, plan.size, saved)
        if not config.files:
            return exit_code(result, saved=False)  # a report of many results takes seconds, and nobody would see it
    verdict, checks, failure = _checked(result, criteria, config, baseline, gate)
    with phase("making the report"):
        calibrations = calibrations_of(result, config.ledger)
        view = run_view(result, front_end(RunConfig), worst=config.top, calibrations=calibrations)
    outputs = formats(
        view if checks is None else with_checks(view, checks), config, result.to_dict(), csv=result.csv_lines
    )
    shown = not deliver(outputs)
    if result.ending.broken_off:
        return exit_code(result, saved=False)
    if shown:
        _show_run(view, result, config, [*saved, *filter(None, [written(outputs)])])
    if checks is not None:
        screen = console(stderr=not shown)
        screen.print()
        show(checks, screen)
    if failure is not None:  # no wrong setting: the run has begun
        to_stderr(f"evalstone: {ended(failure.text(COMMAND_LINE))}")
        return ExitCode.INCOMPLETE
    if shown:
        known = (each for of_scorer in calibrations.values() for each in of_scorer)
        _say_next(result, config, next_commands, corrects=any(each.unusable is None for each in known))
    return said_ending(result, verdict, config)


def said_ending(result: evalstone.Run, verdict: GateVerdict, config: RunConfig) -> int:
    """Print what a run that has ended lacks; returns the exit code."""
    verdict = thresholds.counted(verdict, config.inconclusive)
    if verdict != "fail":
        _say_unscored(result)
    _say_incomplete(result, config)
    return exit_code(result, verdict, saved=False)


def _checked(
    result: evalstone.Run,
    criteria: GateCriteria,
    config: RunConfig,
    baseline: evalstone.Run | None,
    gate: RunGate | None,
) -> tuple[GateVerdict, View | None, evalstone.EvalstoneError | None]:
    """The verdict on a run that wasn't broken off, its checks, and why it can't be checked: then it is still shown."""
    try:
        if result.ending.broken_off or (gate is None and not criteria.scorers):
            return "pass", None, None
        if gate is not None:
            return *watched_gate.decided(gate, result, criteria, config), None
        tested, checks = thresholds.tested(
            result,
            criteria,
            config,
            baseline,
            look=config.look,
            out=config.out,
            absent=None,
            front_end=front_end(RunConfig),
        )
        return tested.verdict, checks, None
    except evalstone.EvalstoneError as error:
        return "fail", None, error


def say_slots(plan: Plan, config: RunConfig) -> None:
    """Print if the concurrency is lowered."""
    from evalstone.run.execute import slots

    if (allowed := slots(plan, config.concurrency)) < config.concurrency:
        lowered = f"{config.named('concurrency')} {config.concurrency:,} is lowered to {allowed:,}"
        to_stderr(f"{lowered}, because of the limit on open files; raise it with ulimit -n")


def _say_incomplete(result: evalstone.Run, config: RunConfig) -> None:
    """Print why a run ended early, if it did, and how to resume it."""
    if result.ending.code:
        to_stderr(f"The run is incomplete: {ended(result.stop_reason)} {sentence(resume_text(config, result.ending))}")


def _print_record(record: evalstone.Record) -> None:
    match record.outcome:
        case evalstone.Score(value):
            text = f"{value:.4g}"
        case evalstone.Skipped(reason):
            text = f"skipped: {reason}"
        case failed:
            text = f"failed: {failed.error}"
    trial = "" if record.trial is None else f", trial {record.trial}"
    to_stderr(f"{record.sample_id}{trial}: {record.scorer} {text} ({record.seconds:.2f} s)")


def _show_run(view: View, result: evalstone.Run, config: RunConfig, saved: Sequence[str]) -> None:
    from evalstone.ledger.base import shown
    from evalstone.report.terminal import show

    show(view, console())
    say("")
    if saved:
        say(f"Saved:  {', '.join(saved)}")
    say(f"Ledger: {shown(config.ledger)}, run {result.id}")


def _say_next(
    result: evalstone.Run, config: RunConfig, next_commands: Mapping[str, str] | None, *, corrects: bool
) -> None:
    """Print what may come next. corrects: whether a calibration corrects the pass rate of a scorer."""
    from evalstone.scorers import SCORERS

    # A results folder can be shown without the ledger.
    of = shlex.quote(config.out) if config.out else f"{result.id}{values.ledger_option(config.ledger)}"
    commands = dict(next_commands or {f"evalstone report {of} --html report.html": "an HTML page"})
    if corrects:
        commands[f"evalstone report {of} --calibrated"] = "pass rates, corrected for the judge's errors"
    commands.update([values.view_command(result.id, config.ledger)])
    if (first := result.scorers[0].name) in SCORERS:
        commands[f"evalstone scorers {first}"] = f"how {first} is computed, and how to read it"
    say_next(commands)


def _say_unscored(result: evalstone.Run) -> None:
    """Print which scorers have no scores because the judge gave no answers, or why no sample of a complete run has a
    score."""
    from evalstone.report.notes import clause_of

    silent = [(line, line.doubt) for line in result.summary if line.no_answer and line.doubt is not None]
    for line, doubt in silent:
        to_stderr(
            f"{result.titles[line.info.signature]}: {clause_of(doubt, front_end(RunConfig))} ({line.reasons[0][0]})"
        )
    if silent or any(line.n_score for line in result.summary) or not result.complete:
        return
    if result.n_failed:
        reasons = (f" ({line.reasons[0][0]})" for line in result.summary if line.n_failed and not line.n_skipped)
        to_stderr(
            f"no sample has a score: {count(result.n_failed, 'score')} failed, so the exit code is "
            f"{ExitCode.INCOMPLETE:d}{next(reasons, '')}; run the same command again to retry"
        )
    else:
        to_stderr(f"no sample was scored: {result.summary[0].reasons[0][0]}")

"""`evalstone run`, `score` and `demo`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import evalstone
from evalstone._core.display import ended, money, safe, sentence
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.cli import options, thresholds, watched_gate
from evalstone.cli.execution import checked_plan, evaluated, interruptible, resume_text, save, say_broken_off
from evalstone.cli.options import Flag, Value, Values, option
from evalstone.cli.output import (
    calibrations_of,
    console,
    deliver,
    documents,
    json_lines,
    to_stderr,
    written,
)
from evalstone.results.endings import ExitCode, exit_code

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.report.view import View

DEMO_SCORERS = ["faithfulness", "hallucination", "context_relevance", "context_precision", "context_position"]

SCORER = "A scorer, with parameters if needed: 'context_relevance(scale=10)'."


def run(
    data: Annotated[
        str, options.argument("DATA", "Samples (JSON, JSONL, CSV, Parquet), or a TOML file that describes the run.")
    ],
    scorer: Annotated[
        Values, option("--scorer -s SCORER", f"{SCORER} Repeatable. Default: faithfulness and context_relevance.")
    ] = None,
    target: options.Target = None,
    trials: options.Trials = None,
    user: options.User = None,
    target_version: options.TargetVersion = None,
    target_timeout: options.TargetTimeout = None,
    target_concurrency: options.TargetConcurrency = None,
    target_tools: options.TargetTools = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    budget: options.Budget = None,
    no_cache: options.NoCache = None,
    map: options.Map = None,
    keep_reasoning: options.KeepReasoning = None,
    limit: Annotated[int | None, option("--limit N", "Score only the first N samples.", min=1)] = None,
    name: Annotated[Value, option("--name NAME", "Name the run, to find it again.")] = None,
    tag: Annotated[Values, option("--tag TAG", "Tag the run. Repeatable.")] = None,
    ledger: options.Ledger = None,
    concurrency: options.Concurrency = None,
    batch: Annotated[
        Flag, option("--batch/--no-batch", "Use the provider's batch API: half price, results within a day.")
    ] = None,
    wait: Annotated[Flag, option("--wait/--no-wait", "With --batch, wait until the batches are done.")] = None,
    dry_run: options.DryRun = False,
    fail_under: Annotated[
        Values, option("--fail-under SCORER=X", "Exit with code 1 if the mean is below X. Repeatable.")
    ] = None,
    fail_over: Annotated[
        Values,
        option(
            "--fail-over SCORER=X",
            "Exit with code 1 if the mean is above X, for scorers where lower is better. Repeatable.",
        ),
    ] = None,
    require: Annotated[
        Values, option("--require SCORER", "Exit with code 1 unless every sample has the best score. Repeatable.")
    ] = None,
    gate: Annotated[
        Flag,
        option("--gate/--no-gate", "Test the thresholds statistically during the run, and stop once they are decided."),
    ] = None,
    baseline: Annotated[
        Value, option("--baseline RUN", "With --gate, a saved run over the same samples: a folder, ID or name.")
    ] = None,
    max_regression: options.MaxRegression = None,
    max_change: options.MaxChange = None,
    allow_mismatch: Annotated[
        Flag,
        option(
            "--allow-mismatch/--refuse-mismatch",
            "Compare with a baseline whose judge, scorers or samples differ; differences are noted.",
        ),
    ] = None,
    missing: options.Missing = None,
    out: options.Out = None,
    html: options.Html = None,
    markdown: options.Markdown = None,
    as_json: options.Json = False,
    top: options.Top = None,
    quiet: options.Quiet = False,
    verbose: Annotated[bool, option("--verbose -v", "Print each score to stderr as it arrives.")] = False,
    otel: options.Otel = False,
) -> int:
    """Score a dataset.

    Judge calls are cached in the ledger and shared between scorers. An interrupted run resumes where it stopped when
    you run the same command again.
    """
    from evalstone.cli.config_file import load_config

    config = load_config(
        data,
        scorers=scorer,
        target=options.target_settings(target, target_version, target_timeout, target_concurrency, target_tools),
        trials=trials,
        user=user,
        judge=judge,
        budget=budget,
        no_cache=no_cache,
        map=options.field_columns(map or []),
        keep_reasoning=keep_reasoning,
        limit=limit,
        name=name,
        tags=tag,
        ledger=ledger,
        concurrency=concurrency,
        batch=batch,
        wait=wait,
        fail_under=options.scorer_numbers(fail_under or [], "--fail-under"),
        fail_over=options.scorer_numbers(fail_over or [], "--fail-over"),
        require=require,
        gate=gate,
        baseline=baseline,
        max_regression=options.scorer_numbers(max_regression or [], "--max-regression"),
        max_change=options.numbers_or_one(max_change or [], "--max-change"),
        allow_mismatch=allow_mismatch,
        missing=missing,
        out=out,
        html=html,
        markdown=markdown,
        top=top,
    )
    beside = Path(data).parent if data.endswith(".toml") else "."
    with config.naming_file("scorers"):
        scorers = options.scorer_specs(config.scorers, "." if scorer else beside)
    with config.naming_file("target"):
        target_spec = options.target_spec(config.target, "." if target else beside)
    with config.naming_file("user"):
        user_spec = options.user_spec(config.user, "." if user else beside)
    judge_spec = options.judge_spec(config.judge, base_url)
    config = replace(config, scorers=scorers, target=target_spec, user=user_spec, judge=judge_spec)
    if config.experiment is not None:
        from evalstone.cli.experiment import run_cells

        with options.exporting(otel and not dry_run):
            return run_cells(config, beside, dry_run=dry_run, quiet=quiet, as_json=as_json)
    if dry_run:
        from evalstone.cli.dry_run import show_estimate

        plan, _ = checked_plan(config, calls_judge=False)
        options.say_code(plan.target, plan.user)
        show_estimate(plan, config)
        return ExitCode.OK
    with options.exporting(otel):
        return _run(config, quiet=quiet, verbose=verbose, as_json=as_json)


def demo(out: options.Out = "results/demo", ledger: options.Ledger = None) -> int:
    """Score 60 bundled RAG answers with the lexical judge.

    Needs no API key and no network.
    """
    from evalstone.cli.config_file import load_config
    from evalstone.datasets.demo import DEMO_DATA

    config = load_config(str(DEMO_DATA), scorers=DEMO_SCORERS, out=out, ledger=ledger)
    commands = {
        "evalstone run YOUR.jsonl --scorer faithfulness": "your own data (JSON, JSONL, CSV)",
        "evalstone run YOUR.jsonl --scorer faithfulness --judge openai/gpt-5.1 --dry-run": "what it would cost",
        f"evalstone report {shlex.quote(out or 'results/demo')} --html report.html": "this run as an HTML page",
    }
    return _run(config, next_commands=commands)


def score(
    scorer: Annotated[str, option("--scorer -s SCORER", SCORER)],
    output: Annotated[Value, option("--output TEXT", "The answer to score.")] = None,
    input: Annotated[Value, option("--input TEXT", "The question.")] = None,
    context: Annotated[Values, option("--context TEXT", "A retrieved passage. Repeatable.")] = None,
    reference: Annotated[Value, option("--reference TEXT", "The reference answer.")] = None,
    instructions: Annotated[Value, option("--instructions TEXT", "The system prompt.")] = None,
    keep_reasoning: options.KeepReasoning = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    ledger: options.Ledger = None,
    as_json: options.Json = False,
    otel: options.Otel = False,
) -> int:
    """Score one sample."""
    from evalstone._core.reasoning import begins_with_reasoning
    from evalstone.ledger.base import DEFAULT_LEDGER
    from evalstone.report.notes import sentence_of
    from evalstone.results.run_notes import reasoning_note

    (spec,) = options.scorer_specs([scorer])
    sample = {
        "input": input,
        "output": output,
        "context": context,
        "reference": reference,
        "instructions": instructions,
    }
    with options.exporting(otel), interruptible():
        record = evalstone.score(
            spec,
            {name: value for name, value in sample.items() if value is not None},
            judge=options.judge_spec("lexical" if judge is None else judge, base_url),
            ledger=DEFAULT_LEDGER if ledger is None else ledger,
            keep_reasoning=bool(keep_reasoning),
        )
    if not deliver(json_lines(as_json, record.to_dict())):
        _show_record(record)
        if output is not None and begins_with_reasoning(output):
            typer.echo(sentence_of(reasoning_note(1, kept=bool(keep_reasoning)), COMMAND_LINE))
    return ExitCode.FAILURES if isinstance(record.outcome, evalstone.Failed) else ExitCode.OK


def _show_record(record: evalstone.Record) -> None:
    from evalstone.types import without_fingerprints

    match record.outcome:
        case evalstone.Score(value, scale, reason):
            name = safe(without_fingerprints(record.scorer))
            typer.echo(f"{name} {typer.style(f'{value:.4g}', bold=True)} of {scale:g}")
            typer.echo(safe(reason, 2000))
        case evalstone.Skipped(reason):
            typer.echo(f"{typer.style('skipped', fg='yellow')}: {safe(reason, 2000)}")
        case failed:
            typer.echo(f"{typer.style('failed', fg='red')}: {safe(failed.error, 2000)}")
    for call in record.steps:
        for depth, one in _nested(call):
            answered = "not answered" if one.answer is None else "answered"
            text = safe(f"{one.question}, {answered} by {one.judge}, {one.seconds:.2f} s, {money(one.cost)}", 500)
            typer.secho(f"{'  ' * depth}{text}", dim=True)


def _nested(call: evalstone.JudgeCall, depth: int = 1) -> Iterator[tuple[int, evalstone.JudgeCall]]:
    """A judge call and the calls of a composite judge's members, each with its depth."""
    yield depth, call
    for member in call.members:
        yield from _nested(member, depth + 1)


def _run(
    config: RunConfig,
    *,
    quiet: bool = False,
    verbose: bool = False,
    as_json: bool = False,
    next_commands: Mapping[str, str] | None = None,
) -> int:
    """Run, save and show the result; returns the exit code."""
    from evalstone.results.summary import scorer_titles
    from evalstone.results.views.run import run_view
    from evalstone.run.plan import scorer_info
    from evalstone.run.runner import slots

    plan, criteria = checked_plan(config, as_json=as_json)
    options.say_code(plan.target, plan.user)
    if (allowed := slots(plan, config.concurrency)) < config.concurrency:
        lowered = f"{config.named('concurrency')} {config.concurrency:,} is lowered to {allowed:,}"
        to_stderr(f"{lowered}, because of the limit on open files; raise it with ulimit -n")
    titles = scorer_titles([scorer_info(one) for one in plan.scorers])
    with interruptible(shuffled=config.gate, resume=resume_text(config)) as stop:
        gate = watched_gate.watching(plan, criteria, stop, config) if config.gate else None

        def on_record(record: evalstone.Record) -> None:
            if gate is not None:
                gate.add(record)
            if verbose:
                _print_record(record, titles[record.scorer])

        watched = on_record if gate is not None or verbose else None
        result = evaluated(plan, config, stop, progress=not quiet and not verbose, on_record=watched)
    saved = save(result, config)
    if result.ending.broken_off:  # first, because what ended it may prevent the output, too
        say_broken_off(result, config, plan.size, saved)
        if config.html is None and config.markdown is None and not as_json:
            return exit_code(result, saved=False)  # a report of many results takes seconds, and nobody would see it
    view = run_view(result, COMMAND_LINE, worst=config.top, calibrations=calibrations_of(result, config.ledger))
    outputs = documents(view, config.html, config.markdown) | json_lines(as_json, result.to_dict())
    shown = not deliver(outputs)
    if result.ending.broken_off:
        return exit_code(result, saved=False)
    if shown:
        _show_run(view, result, config, [*saved, *filter(None, [written(outputs)])], next_commands)
    if gate is not None:
        if config.out is not None:
            watched_gate.remember_first_look(gate, result, criteria, config.out)
        verdict = watched_gate.verdict(gate, to_stdout=shown)
        criteria = replace(criteria, minimum={}, maximum={}, max_regression={})
    else:
        verdict = "pass"
    if thresholds.verdict(result, criteria, config) == "fail":
        verdict = "fail"
    if verdict == "pass":
        _say_unscored(result)
    if result.ending.code:
        to_stderr(f"The run is incomplete: {ended(result.stop_reason)} {sentence(resume_text(config, result.ending))}")
    return exit_code(result, verdict, saved=False)


def _print_record(record: evalstone.Record, title: str) -> None:
    match record.outcome:
        case evalstone.Score(value):
            text = f"{value:.4g}"
        case evalstone.Skipped(reason):
            text = f"skipped: {reason}"
        case failed:
            text = f"failed: {failed.error}"
    trial = "" if record.trial is None else f", trial {record.trial}"
    to_stderr(f"{record.sample}{trial}: {title} {text} ({record.seconds:.2f} s)")


def _show_run(
    view: View, result: evalstone.Run, config: RunConfig, saved: Sequence[str], next_commands: Mapping[str, str] | None
) -> None:
    from evalstone.ledger.base import shown
    from evalstone.report.terminal import show
    from evalstone.scorers import SCORERS

    screen = console()
    show(view, screen)
    screen.print()
    if saved:
        screen.print(safe(f"Saved:  {', '.join(saved)}", 2000), soft_wrap=True)
    screen.print(safe(f"Ledger: {shown(config.ledger)}, run {result.id}", 2000), soft_wrap=True)
    screen.print("\nNext:", style="bold")
    # A results folder can be shown without the ledger.
    of = shlex.quote(config.out) if config.out else f"{result.id}{options.ledger_option(config.ledger)}"
    commands = dict(next_commands or {f"evalstone report {of} --html report.html": "an HTML page"})
    if (first := result.scorers[0].name) in SCORERS:
        commands[f"evalstone scorers {first}"] = f"how {first} is computed, and how to read it"
    for command, purpose in commands.items():
        screen.print(safe(f"{command}  # {purpose}", 2000), soft_wrap=True)


def _say_unscored(result: evalstone.Run) -> None:
    """Print which scorers have no scores because the judge gave no answers, or why no sample was scored."""
    silent = [line for line in result.summary if line.no_answer]
    for line in silent:
        to_stderr(f"{result.titles[line.info.signature]}: {line.doubt} ({line.reasons[0][0]})")
    if not silent and not any(line.scored for line in result.summary) and not result.failed and result.complete:
        to_stderr(f"no sample was scored: {result.summary[0].reasons[0][0]}")

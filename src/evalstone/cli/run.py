"""`evalstone run`, `score` and `demo`."""

# ruff: noqa: PLC0415 - commands import what they run when they run, so that the command line starts fast

from __future__ import annotations

import functools
import shlex
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalstone.cli.options import (
    BaseUrlOption,
    BudgetOption,
    ConcurrencyOption,
    DryRunOption,
    ExitCode,
    HtmlOption,
    JsonOption,
    JudgeOption,
    LedgerOption,
    MapOption,
    NoCacheOption,
    OutOption,
    QuietOption,
    ScorersOption,
    TopOption,
    VerboseOption,
    field_columns,
    judge_spec,
    scorer_named,
    scorer_numbers,
)
from evalstone.cli.output import PAGE_TOP, as_stdout, console, deliver, html_page, json_parts, table, to_stderr
from evalstone.errors import ConfigError

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.run.budget import StopSignal
    from evalstone.run.plan import Plan
    from evalstone.run.sequential import RunGate
    from evalstone.types import JudgeCall, Record

INTERRUPTION = "interrupted"
RESUME = "rerun the same command to resume"
PROGRESS_SECONDS = 10.0
DEMO_SCORERS = ["faithfulness", "hallucination", "context_relevance", "context_precision", "context_position"]

Threshold = tuple["ScorerInfo", float]
OnRecord = Callable[["Record"], None]


def run(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Samples (JSON, JSONL, CSV, Parquet), or a TOML file that describes the run."
        ),
    ],
    scorer: ScorersOption = None,
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    budget: BudgetOption = None,
    no_cache: NoCacheOption = None,
    map: MapOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="Score only the first N samples.", min=1)
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name the run, to find it again.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Tag the run. Repeatable.")] = None,
    ledger: LedgerOption = None,
    concurrency: ConcurrencyOption = None,
    batch: Annotated[
        bool | None,
        typer.Option("--batch/--no-batch", help="Use the provider's batch API: half price, results within a day."),
    ] = None,
    wait: Annotated[
        bool | None,
        typer.Option("--wait/--no-wait", help="With --batch, wait until the batches are done."),
    ] = None,
    dry_run: DryRunOption = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option("--fail-under", metavar="SCORER=X", help="Exit with code 1 if the mean is below X. Repeatable."),
    ] = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-over",
            metavar="SCORER=X",
            help="Exit with code 1 if the mean is above X, for scorers where lower is better. Repeatable.",
        ),
    ] = None,
    gate: Annotated[
        bool | None,
        typer.Option(
            "--gate/--no-gate", help="Test the thresholds statistically during the run, and stop once they are decided."
        ),
    ] = None,
    out: OutOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
    top: TopOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Score a dataset.

    Judge calls are cached in the ledger and shared between scorers. An interrupted run resumes where it stopped when
    you run the same command again.
    """
    from evalstone.cli.config_file import load_config

    config = load_config(
        data,
        scorers=scorer,
        judge=judge,
        budget=budget,
        no_cache=no_cache,
        map=field_columns(map or []),
        limit=limit,
        name=name,
        tags=tag,
        ledger=ledger,
        concurrency=concurrency,
        batch=batch,
        wait=wait,
        fail_under=scorer_numbers(fail_under or [], "--fail-under"),
        fail_over=scorer_numbers(fail_over or [], "--fail-over"),
        gate=gate,
        out=out,
        html=html,
        top=top,
    )
    config = config.model_copy(update={"judge": judge_spec(config.judge, base_url)})
    if dry_run:
        return _dry_run(config)
    return _run(config, quiet=quiet, verbose=verbose, as_json=as_json)


def demo(
    out: OutOption = "results/demo",
    ledger: LedgerOption = None,
) -> int:
    """Score 60 bundled RAG answers with the lexical judge. Needs no API key and no network."""
    from evalstone.cli.config_file import load_config
    from evalstone.datasets.demo import DEMO_DATA

    config = load_config(str(DEMO_DATA), scorers=DEMO_SCORERS, out=out, ledger=ledger)
    commands = {
        "evalstone run YOUR.jsonl --scorer faithfulness": "your own data (JSON, JSONL, CSV)",
        "evalstone run YOUR.jsonl --scorer faithfulness --judge openai/gpt-5.1 --dry-run": "what it would cost",
        f"evalstone report {out} --html report.html": "this run as an HTML page",
    }
    return _run(config, next_commands=commands)


def score(
    scorer: Annotated[
        str,
        typer.Option(
            "--scorer",
            "-s",
            metavar="SCORER",
            help="A scorer, with parameters if needed: 'context_relevance(scale=10)'.",
        ),
    ],
    output: Annotated[str | None, typer.Option(metavar="TEXT", help="The answer to score.")] = None,
    input: Annotated[str | None, typer.Option(metavar="TEXT", help="The question.")] = None,
    context: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A retrieved passage. Repeatable.")] = None,
    reference: Annotated[str | None, typer.Option(metavar="TEXT", help="The reference answer.")] = None,
    instructions: Annotated[str | None, typer.Option(metavar="TEXT", help="The system prompt.")] = None,
    judge: JudgeOption = None,
    base_url: BaseUrlOption = None,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Score one sample."""
    from evalstone.api import score as score_sample
    from evalstone.types import Failed

    fields = {
        "input": input,
        "output": output,
        "context": context,
        "reference": reference,
        "instructions": instructions,
    }
    record = score_sample(
        scorer,
        {name: value for name, value in fields.items() if value is not None},
        judge=judge_spec("lexical" if judge is None else judge, base_url),
        ledger=ledger,
    )
    if not deliver({"json": (as_stdout(as_json), json_parts(record.to_dict()))}):
        _show_record(record)
    return ExitCode.FAILURES if isinstance(record.outcome, Failed) else ExitCode.OK


def _show_record(record: Record) -> None:
    from evalstone.report.text import money, safe
    from evalstone.types import Score, Skipped

    match record.outcome:
        case Score(value, scale, reason):
            name = record.scorer.partition("(")[0].partition("@")[0]
            typer.echo(f"{name} {typer.style(f'{value:.4g}', bold=True)} of {scale:g}")
            typer.echo(safe(reason, 2000))
        case Skipped(reason):
            typer.echo(f"{typer.style('skipped', fg='yellow')}: {safe(reason, 2000)}")
        case failed:
            typer.echo(f"{typer.style('failed', fg='red')}: {safe(failed.error, 2000)}")
    for call in record.steps:
        for depth, one in _nested(call):
            answered = "not answered" if one.answer is None else "answered"
            text = safe(f"{one.question}, {answered} by {one.judge}, {one.seconds:.2f} s, {money(one.cost)}", 500)
            typer.secho(f"{'  ' * depth}{text}", dim=True)


def _nested(call: JudgeCall, depth: int = 1) -> Iterator[tuple[int, JudgeCall]]:
    """A judge call and those of a composite judge's members, each with its depth."""
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
    """Run, save, show; the exit code."""
    from evalstone.api import evaluate
    from evalstone.report.run_view import run_view
    from evalstone.results.files import write_run
    from evalstone.run.batch.options import BatchOptions

    plan, thresholds = _plan(config)
    with interruptible(shuffled=config.gate) as stop:
        gate = _gate(plan, thresholds, stop) if config.gate else None
        bar = not quiet and not verbose and sys.stderr.isatty()
        listeners = [] if gate is None else [gate.add]
        if verbose:
            listeners.append(functools.partial(_print_record, {one.signature: one.name for one in plan.scorers}))
        elif not (quiet or bar):
            listeners.append(ProgressLines(plan.size).add)

        def on_record(record: Record) -> None:
            for listener in listeners:
                listener(record)

        result = evaluate(
            plan.dataset,
            plan.scorers,
            judge=plan.judge,
            concurrency=config.concurrency,
            ledger=config.ledger,
            progress=bar,
            use_cache=not config.no_cache,
            budget=config.budget,
            batch=BatchOptions(wait=config.wait, on_state=to_stderr) if config.batch else False,
            stop=stop,
            on_record=on_record,
            name=config.name,
            tags=config.tags,
        )
    if stopped := _stopped(result, config, plan.size):
        return stopped
    saved = [] if config.out is None else [write_run(result, config.out)]
    outputs = {
        "html": (config.html, lambda: html_page(run_view(result, worst=max(config.top, PAGE_TOP)))),
        "json": (as_stdout(as_json), json_parts(result.to_dict())),
    }
    deliver(outputs, announce=False)
    if not as_json and config.html != "-":
        _show_run(result, config, plan, [*map(str, saved), *([config.html] if config.html else [])], next_commands)
    if gate is not None:
        return _gate_exit_code(gate, result, to_stdout=not as_json)
    return _exit_code(result, thresholds, config)


def _plan(config: RunConfig, *, calls_judge: bool = True) -> tuple[Plan, list[Threshold]]:
    """The checked plan of a run and its thresholds. calls_judge: whether the judge needs its API key."""
    from evalstone.api import plan_for
    from evalstone.datasets import load
    from evalstone.results.files import prepare
    from evalstone.run.plan import scorer_info

    dataset = load(config.data, mapping=config.map)
    if config.limit is not None and config.limit < len(dataset):
        dataset = type(dataset)(dataset.samples[: config.limit], dataset.name, dataset.columns, dataset.ignored)
    plan = plan_for(dataset, config.scorers, judge=config.judge)
    if config.wait and not config.batch:
        raise ConfigError("--wait requires --batch")
    if config.batch and config.no_cache:
        raise ConfigError("--batch and --no-cache exclude each other: batch answers are read from the ledger")
    if config.gate and (config.batch or not (config.fail_under or config.fail_over)):
        raise ConfigError("--gate requires --fail-under or --fail-over, and can't be used with --batch")
    if config.batch:
        from evalstone.judges.providers.batch import batch_api

        batch_api(plan.judge)
    plan.check(asking=calls_judge and not config.batch)
    thresholds = _thresholds(config, [scorer_info(one) for one in plan.scorers])
    if config.out is not None:
        prepare(config.out)
    return plan, thresholds


def _thresholds(config: RunConfig, scorers: Sequence[ScorerInfo]) -> list[Threshold]:
    """Each scorer that has a threshold. Raises ConfigError for one that can't be met, or is in the wrong direction."""
    thresholds: list[Threshold] = []
    for option, other, lower_is_better, bounds in (
        ("--fail-under", "--fail-over", False, config.fail_under),
        ("--fail-over", "--fail-under", True, config.fail_over),
    ):
        for name, bound in bounds.items():
            info = scorer_named(name, scorers, option)
            if info.lower_is_better is not lower_is_better:
                better = "lower" if info.lower_is_better else "higher"
                raise ConfigError(f"{option}: {better} is better for {info.name}; use {other} {name}={bound:g}")
            if not 0 <= bound <= info.scale:
                raise ConfigError(f"{option}: {name} must be in [0, {info.scale:g}], not {bound:g}")
            thresholds.append((info, bound))
    return thresholds


def _gate(plan: Plan, thresholds: Sequence[Threshold], stop: StopSignal) -> RunGate:
    from evalstone.run.sequential import RunGate

    for info, _ in thresholds:
        if sum(one.name == info.name for one in plan.scorers) > 1:
            raise ConfigError(f"--gate can't tell the scorers named {info.name} apart; run them separately")
    return RunGate(plan, {info.name: bound for info, bound in thresholds}, stop)


@contextmanager
def interruptible(*, shuffled: bool = False) -> Generator[StopSignal]:
    """Within the block, the first Ctrl-C asks the run to stop after the calls in flight; the second forces it."""
    from evalstone.run.budget import StopSignal

    stop = StopSignal(shuffled=shuffled)
    before = signal.getsignal(signal.SIGINT)

    def on_first(_number: int, _frame: object) -> None:
        stop.request(INTERRUPTION)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write("\nStopping; waiting for calls in flight. Ctrl-C again to force.\n")

    signal.signal(signal.SIGINT, on_first)
    try:
        yield stop
    except KeyboardInterrupt:
        sys.stderr.write(f"Stopped. Finished calls are in the ledger; {RESUME}.\n")
        raise SystemExit(ExitCode.INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)


class ProgressLines:
    """Progress for logs: a line on standard error every ten seconds."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = self._failed = 0
        self._started = self._printed = time.monotonic()

    def add(self, record: Record) -> None:
        """Count a record; print a line if one is due."""
        from evalstone.types import Failed

        self._done += 1
        self._failed += isinstance(record.outcome, Failed)
        now = time.monotonic()
        if now - self._printed >= PROGRESS_SECONDS:
            self._printed = now
            failed = f", {self._failed:,} failed" if self._failed else ""
            percent = 100 * self._done // self._total
            to_stderr(f"{self._done:,} of {self._total:,} scores ({percent} %){failed}, {now - self._started:.0f} s")


def _print_record(names: Mapping[str, str], record: Record) -> None:
    from evalstone.types import Failed, Score

    outcome = record.outcome
    if isinstance(outcome, Score):
        text = f"{outcome.value:.4g}"
    else:
        text = f"failed: {outcome.error}" if isinstance(outcome, Failed) else f"skipped: {outcome.reason}"
    to_stderr(f"{record.sample}: {names[record.scorer]} {text} ({record.seconds:.2f} s)")


def _stopped(result: Run, config: RunConfig, size: int) -> int:
    """Say how to continue a run that was interrupted or waits for a batch; the exit code, 0 for neither."""
    from evalstone.ledger.base import shown
    from evalstone.run.batch.options import WAITING

    interrupted = result.stop_reason == INTERRUPTION
    waiting = bool(result.batches) and (interrupted or WAITING in result.stop_reason)
    saved = f"{len(result):,} of {size:,} results are saved in {shown(config.ledger)}"
    if waiting:
        to_stderr(f"{WAITING}{', '.join(result.batches)}" if interrupted else result.stop_reason)
        to_stderr(f"{saved}, run {result.id}. To collect the answers later, run:\n")
        to_stderr(f"evalstone {shlex.join(sys.argv[1:])}")
        return ExitCode.INTERRUPTED if interrupted else ExitCode.FAILURES
    if interrupted:
        to_stderr(f"{saved}; {RESUME}.")
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _plain(text: str) -> Any:
    """Text for the console, with control characters made visible."""
    from rich.text import Text

    from evalstone.report.text import safe

    return Text(safe(text, 2000))


def _show_run(
    result: Run, config: RunConfig, plan: Plan, saved: Sequence[str], next_commands: Mapping[str, str] | None
) -> None:
    from rich.text import Text

    from evalstone.ledger.base import shown
    from evalstone.report.run_view import run_view
    from evalstone.report.terminal import show
    from evalstone.scorers import SCORERS

    screen = console()
    show(run_view(result, dataset=plan.dataset, worst=config.top), screen)
    screen.print()
    if saved:
        screen.print(_plain(f"Saved:  {', '.join(saved)}"))
    screen.print(_plain(f"Ledger: {shown(config.ledger)}, run {result.id}"))
    screen.print(Text("\nNext:", style="bold"))
    commands = dict(next_commands or {f"evalstone report {config.out or result.id} --html FILE": "an HTML page"})
    if (first := result.scorers[0].name) in SCORERS:
        commands[f"evalstone scorers {first}"] = f"how {first} is computed and read"
    for command, purpose in commands.items():
        screen.print(_plain(f"{command}  # {purpose}"), soft_wrap=True)


def _exit_code(result: Run, thresholds: Sequence[Threshold], config: RunConfig) -> int:
    """Say which thresholds were missed and why a run is incomplete; the exit code."""
    missed = False
    for info, bound in thresholds:
        mean = result[info.signature].mean
        option, word = ("--fail-over", "above") if info.lower_is_better else ("--fail-under", "below")
        if mean is None:
            to_stderr(f"{info.parameters}: no score, {option} {bound:g} is not met")
        elif mean > bound if info.lower_is_better else mean < bound:
            to_stderr(f"{info.parameters}: mean {mean:.3f} is {word} {option} {bound:g}")
        else:
            continue
        missed = True
    if missed:
        return ExitCode.FAILED_THRESHOLD
    if not result.complete:
        higher = "" if config.budget is None else " with a higher --budget"
        to_stderr(f"The run is incomplete: {result.stop_reason}. Rerun the same command{higher} to resume.")
    return ExitCode.FAILURES if result.failed or not result.complete else ExitCode.OK


def _gate_exit_code(gate: RunGate, result: Run, *, to_stdout: bool) -> int:
    """Show the decisions of a gate that watched a run; the exit code."""
    from evalstone.report.comparison_view import decisions_view
    from evalstone.report.terminal import show
    from evalstone.run.sequential import DECIDED

    screen = console(stderr=not to_stdout)
    screen.print()
    show(decisions_view(gate.decisions()), screen)
    screen.print(
        "Tested after every sample: the chance of a wrong pass, and of a wrong fail, is at most 5% in total.",
        style="dim",
    )
    if gate.verdict == "inconclusive":
        return ExitCode.INCONCLUSIVE
    if gate.verdict == "fail":
        return ExitCode.FAILED_THRESHOLD
    ended = result.complete or result.stop_reason == DECIDED
    return ExitCode.OK if ended and not result.failed else ExitCode.FAILURES


def _dry_run(config: RunConfig) -> int:
    """Print what a run would ask and cost."""
    from evalstone._core import sync
    from evalstone.judges.providers.base import at_batch_price
    from evalstone.report.text import count, money
    from evalstone.run.dry_run import SECONDS_PER_CALL, estimate

    plan, _ = _plan(config, calls_judge=False)
    work = sync.run(estimate(plan, ledger=None if config.no_cache else config.ledger))
    screen = console()
    screen.print(_plain(f"{plan.dataset.name}: {count(work.samples, 'sample')} · judge {work.judge} · dry run"))
    names = ("calls", "shared", "cached", "input tokens", "output tokens", "skipped")
    rows = table("scorer", *names, numbers=names)
    for line in work.scorers:
        counts = (line.calls, line.shared, line.answered, line.usage.input, line.usage.output, line.skipped)
        rows.add_row(line.name, *(f"{number:,}" for number in counts))
    screen.print(rows)
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in work.kinds.items()) or "none"
    screen.print(_plain(f"Judge calls: {kinds}"))
    price = at_batch_price(work.cost) if config.batch else work.cost
    cost = "cost unknown" if price is None else f"about {money(price)}{' at the batch price' if config.batch else ''}"
    tokens = f"about {work.usage.input:,} input and {work.usage.output:,} output tokens"
    screen.print(_plain(f"{count(work.calls, 'call')}, {tokens}, {cost}; retries and reasoning tokens not included"))
    if config.budget is not None and price is not None and price > config.budget:
        screen.print(f"This is above the budget of {money(config.budget)}: the run would stop early.", style="yellow")
    if config.batch:
        screen.print("Batches finish within a day. Calls that depend on earlier answers go into a later batch.")
    elif work.cost != 0:
        seconds = work.seconds(config.concurrency)
        screen.print(
            f"About {seconds:.0f} s at {SECONDS_PER_CALL:g} s per call and a concurrency of {config.concurrency}."
        )
    return ExitCode.OK

"""What the commands do."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from evalstone.api import DEFAULT_LEDGER, evaluate
from evalstone.api import score as score_one
from evalstone.cli.config_file import RunConfig
from evalstone.cli.planning import planned
from evalstone.cli.run_gate import gate_code, run_gate
from evalstone.cli.screen import console
from evalstone.datasets.demo import DEMO_DATA
from evalstone.datasets.writing import json_line
from evalstone.ledger.location import shown
from evalstone.report.files import write_run
from evalstone.report.terminal import money, safe, show_run
from evalstone.results.run import Run
from evalstone.run.batch.options import WAITING, Batch
from evalstone.run.budget import Stop
from evalstone.scorers import SCORERS
from evalstone.types import Failed, JudgeCall, Score, Skipped

OK, BELOW, FAILED, INTERRUPTED = 0, 1, 3, 130
INTERRUPTION = "interrupted"
GO_ON = "the same command goes on from there"
DEMO_SCORERS = ("faithfulness", "hallucination", "context_relevance", "context_precision", "context_position")


def run(config: RunConfig, *, quiet: bool, hint: str = "") -> int:
    """Evaluate, show, write; the exit code."""
    plan = planned(config)
    with interruptible(shuffled=config.gate) as stop:
        watch = run_gate(plan, config.minimum, stop) if config.gate else None
        result = evaluate(
            plan.dataset,
            plan.scorers,
            judge=plan.judge,
            concurrency=config.concurrency,
            ledger=config.ledger,
            progress=not quiet and sys.stderr.isatty(),
            fresh=config.fresh,
            budget=config.budget,
            batch=Batch(wait=config.wait, on_state=_say) if config.batch else False,
            stop=stop,
            on_record=watch.add if watch else None,
        )
    if result.batches and (result.stop_reason == INTERRUPTION or WAITING in result.stop_reason):
        return _waits(result, config, plan.size)
    if result.stop_reason == INTERRUPTION:
        sys.stderr.write(f"{len(result)} of {plan.size} outcomes are in {shown(config.ledger)}: {GO_ON}\n")
        return INTERRUPTED
    screen = console()
    show_run(result, screen, dataset=plan.dataset, worst=config.worst)
    _where(result, config, screen, hint)
    return _exit_code(result, config, screen) if watch is None else gate_code(watch, result, screen)


def _say(told: str) -> None:
    sys.stderr.write(f"{safe(told, 1000)}\n")


def _waits(result: Run, config: RunConfig, size: int) -> int:
    """Say what a run waits for, which a run through batches does until they are done; the exit code."""
    waits = result.stop_reason if result.stop_reason != INTERRUPTION else f"{WAITING}{', '.join(result.batches)}"
    screen = console()
    screen.print(Text(f"{safe(result.dataset_name)}: {safe(waits, 1000)}"))
    screen.print(Text(f"{len(result)} of {size} outcomes are in {shown(config.ledger)}, run {result.id}."))
    screen.print(Text("The same command reads the answers when they are there, and goes on:"))
    _show_command(screen)
    return INTERRUPTED if result.stop_reason == INTERRUPTION else FAILED


def _show_command(screen: Console) -> None:
    screen.print(Text(f"  evalstone {safe(shlex.join(sys.argv[1:]), 2000)}"), soft_wrap=True)


@contextmanager
def interruptible(*, shuffled: bool = False) -> Generator[Stop]:
    """Within the block, the first Ctrl-C asks a run to end what is under way, and the second ends it at once."""
    stop = Stop(shuffled=shuffled)
    before = signal.getsignal(signal.SIGINT)

    def first(_number: int, _frame: object) -> None:
        stop.request(INTERRUPTION)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write("\nEnding what is under way. Ctrl-C again stops at once.\n")

    signal.signal(signal.SIGINT, first)
    try:
        yield stop
    except KeyboardInterrupt:
        sys.stderr.write(f"Stopped. What was judged is in the ledger: {GO_ON}\n")
        raise SystemExit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)


def _where(result: Run, config: RunConfig, screen: Console, hint: str) -> None:
    screen.print()
    if config.out is not None:
        folder = write_run(result, config.out)
        screen.print(Text(f"Results: {folder / 'records.jsonl'} and {folder / 'summary.json'}"))
    screen.print(Text(f"Ledger:  {shown(config.ledger)}, run {result.id}"))
    name = result.scorers[0].name
    screen.print(Text("\nNext:", style="bold"))
    again = f"  evalstone report {config.out or result.id}     show this again; with --html FILE as a page"
    screen.print(Text(hint or again))
    if name in SCORERS:
        screen.print(Text(f"  evalstone scorers {name}     how {name} is computed and read"))


def _exit_code(result: Run, config: RunConfig, screen: Console) -> int:
    below = False
    for name, floor in config.minimum.items():
        line = result[name]
        met = line.mean is not None and (line.mean <= floor if line.info.lower_is_better else line.mean >= floor)
        if not met:
            told = "has no score" if line.mean is None else f"has a mean of {line.mean:.3f}"
            bound = "at most" if line.info.lower_is_better else "at least"
            screen.print(Text(f"{name} {told}; {bound} {floor:g} was asked for", style="red"))
            below = True
    if below:
        return BELOW
    if not result.complete:
        higher = "" if config.budget is None else ", with a higher --budget"
        told = f"The run ended before its end: {result.stop_reason}. {GO_ON.capitalize()}{higher}:"
        screen.print(Text(told, style="yellow"))
        _show_command(screen)
    return FAILED if result.failed or not result.complete else OK


def demo(out: str, ledger: str | None) -> int:
    """Judge the bundled data with the lexical judge."""
    config = RunConfig(data=str(DEMO_DATA), scorers=DEMO_SCORERS, out=out, ledger=ledger or DEFAULT_LEDGER)
    hint = (
        f"  evalstone run YOUR.jsonl --scorer faithfulness     your own data (JSON, JSONL, CSV)\n"
        f"  evalstone run YOUR.jsonl --scorer faithfulness --judge openai/gpt-5.1 --dry-run  its cost\n"
        f"  evalstone report {out} --html report.html     all of it as a page"
    )
    return run(config, quiet=False, hint=hint)


def score(scorer: str, fields: Mapping[str, Any], judge: Any, ledger: str | None, as_json: bool) -> int:
    """Score one sample and print the outcome; the exit code."""
    record = score_one(scorer, fields, judge=judge, ledger=ledger)
    if as_json:
        sys.stdout.write(json_line(record.to_dict()) + "\n")
        return FAILED if isinstance(record.outcome, Failed) else OK
    screen = console()
    match record.outcome:
        case Score(value, scale, reason):
            screen.print(
                Text.assemble((f"{record.scorer.partition('(')[0]} ", ""), (f"{value:.4g}", "bold"), f" of {scale:g}")
            )
            screen.print(Text(safe(reason, 2000)))
        case Skipped(reason):
            screen.print(Text.assemble(("skipped ", "yellow"), safe(reason, 2000)))
        case Failed(error):
            screen.print(Text.assemble(("failed ", "red"), safe(error, 2000)))
    for step in record.steps:
        for depth, one in _nested(step):
            took = f"{one.judge}, {one.seconds:.2f} s, {money(one.cost)}"
            screen.print(Text(f"{'  ' * depth}{_told(one)} {safe(took, 300)}", style="dim"))
    return FAILED if isinstance(record.outcome, Failed) else OK


def _nested(step: JudgeCall, depth: int = 1) -> Iterator[tuple[int, JudgeCall]]:
    """A step and those of its members, each with its depth."""
    yield depth, step
    for member in step.members:
        yield from _nested(member, depth + 1)


def _told(step: JudgeCall) -> str:
    return f"{step.question}, {'not answered' if step.answer is None else 'answered'} by"

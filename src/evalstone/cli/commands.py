"""What the commands do."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from evalstone.api import DEFAULT_LEDGER, evaluate
from evalstone.api import score as score_one
from evalstone.cli.planning import planned
from evalstone.cli.screen import console
from evalstone.config import RunConfig
from evalstone.dataset.writing import json_line
from evalstone.demo import DEMO_DATA
from evalstone.engine import ALL_SCORERS, Run
from evalstone.engine.limits import Stop
from evalstone.ledger.location import shown
from evalstone.report.files import read_run, write_run
from evalstone.report.terminal import money, safe, show_run
from evalstone.types import Failed, Score, Skipped, Step

OK, BELOW, FAILED, INTERRUPTED = 0, 1, 3, 130
INTERRUPTION = "interrupted"
GO_ON = "the same command goes on from there"
DEMO_SCORERS = ("faithfulness", "hallucination", "context_relevance", "context_precision", "context_position")


def run(config: RunConfig, *, quiet: bool, hint: str = "") -> int:
    """Evaluate, show, write; the exit code."""
    plan = planned(config)
    with interruptible() as stop:
        result = evaluate(
            plan.dataset,
            plan.scorers,
            judge=plan.judge,
            concurrency=config.concurrency,
            ledger=config.ledger,
            progress=not quiet and sys.stderr.isatty(),
            fresh=config.fresh,
            budget=config.budget,
            stop=stop,
        )
    if result.ended == INTERRUPTION:
        sys.stderr.write(f"{len(result)} of {plan.size} outcomes are in {shown(config.ledger)}: {GO_ON}\n")
        return INTERRUPTED
    screen = console()
    show_run(result, screen, dataset=plan.dataset, worst=config.worst)
    _where(result, config, screen, hint)
    return _exit_code(result, config, screen)


@contextmanager
def interruptible() -> Generator[Stop]:
    """Within the block, the first Ctrl-C asks a run to end what is under way, and the second ends it at once."""
    stop = Stop()
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
    name = result.cards[0].name
    screen.print(Text("\nNext:", style="bold"))
    screen.print(Text(hint or f"  evalstone report {config.out or result.id}     show this again"))
    if name in ALL_SCORERS:
        screen.print(Text(f"  evalstone scorers {name}     how {name} is computed and read"))


def _exit_code(result: Run, config: RunConfig, screen: Console) -> int:
    below = False
    for name, floor in config.minimum.items():
        line = result[name]
        met = line.mean is not None and (line.mean <= floor if line.card.lower_is_better else line.mean >= floor)
        if not met:
            told = "has no score" if line.mean is None else f"has a mean of {line.mean:.3f}"
            bound = "at most" if line.card.lower_is_better else "at least"
            screen.print(Text(f"{name} {told}; {bound} {floor:g} was asked for", style="red"))
            below = True
    if below:
        return BELOW
    if not result.complete:
        told = f"The run ended before its end: {result.ended}. {GO_ON.capitalize()}, with a higher --budget."
        screen.print(Text(told, style="yellow"))
    return FAILED if result.failed or not result.complete else OK


def demo(out: str, ledger: str | None) -> int:
    """Judge the bundled data with the embedded judge."""
    config = RunConfig(data=str(DEMO_DATA), scorers=DEMO_SCORERS, out=out, ledger=ledger or DEFAULT_LEDGER)
    hint = (
        f"  evalstone run YOUR.jsonl --scorer faithfulness     your own data (JSON, JSONL, CSV)\n"
        f"  evalstone run YOUR.jsonl --scorer faithfulness --judge openai/gpt-5.1 --dry-run  its cost\n"
        f"  evalstone report {out}     show this again"
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
        screen.print(Text(f"  {_told(step)} {step.judge}, {step.seconds:.2f} s, {money(step.cost)}", style="dim"))
    return FAILED if isinstance(record.outcome, Failed) else OK


def _told(step: Step) -> str:
    return f"{step.question}, {'not answered' if step.answer is None else 'answered'} by"


def report(name: str, ledger: str | None, worst: int) -> int:
    """Show a run again; the exit code says whether outcomes failed."""
    found = read_run(name, ledger=ledger or DEFAULT_LEDGER)
    show_run(found, console(), worst=worst)
    return FAILED if found.failed or not found.complete else OK

"""What the commands do."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from evalstone.api import DEFAULT_LEDGER, evaluate, plan_for
from evalstone.api import score as score_one
from evalstone.cli.screen import console
from evalstone.config import DEFAULT_SCORERS, RunConfig, numbers, overridden, pairs, read_config
from evalstone.dataset.writing import json_line
from evalstone.demo import DEMO_DATA
from evalstone.engine import ALL_SCORERS, Run
from evalstone.engine.limits import Stop
from evalstone.errors import UsageError, unknown
from evalstone.ledger.location import shown
from evalstone.report.files import prepare, read_run, write_run
from evalstone.report.terminal import money, safe, show_run
from evalstone.types import Failed, Score, Skipped

OK, BELOW, FAILED, INTERRUPTED = 0, 1, 3, 130
INTERRUPTION = "interrupted"
GO_ON = "the same command goes on from there"
DEMO_SCORERS = ("faithfulness", "hallucination", "context_relevance", "context_precision", "context_position")


def judge_spec(judge: str | None, base_url: str | None) -> Any:
    """The judge as named on the command line."""
    name = judge or "embedded"
    if base_url is None:
        return name
    if "/" not in name:
        raise UsageError("--base-url goes with a model as --judge, such as vllm/my-model")
    return {"model": name, "base_url": base_url}


def configured(
    data: str,
    *,
    scorers: list[str] | None,
    judge: str | None,
    base_url: str | None,
    out: str | None,
    ledger: str | None,
    concurrency: int | None,
    mapping: list[str] | None,
    minimum: list[str] | None,
) -> RunConfig:
    """The run that a command line asks for. Raises UsageError for an option that cannot be read."""
    config = read_config(data) if data.endswith(".toml") else RunConfig(data=data)
    spec = judge_spec(judge, base_url) if judge or base_url else None
    floors = {name: _number(value, name) for name, value in pairs(minimum or [], "--min", "SCORER=MEAN").items()}
    config = overridden(
        config,
        scorers=tuple(scorers or ()),
        judge=spec,
        out=out,
        ledger=ledger,
        concurrency=concurrency,
        map={**config.map, **pairs(mapping or [], "--map", "FIELD=COLUMN")},
        minimum={**config.minimum, **numbers(floors, "--min")},
    )
    return config if config.scorers else overridden(config, scorers=DEFAULT_SCORERS)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--min {name} takes a number, not {text!r}") from None


def run(config: RunConfig, *, fresh: bool, worst: int, quiet: bool, budget: float | None = None, hint: str = "") -> int:
    """Evaluate, show, write; the exit code."""
    plan = plan_for(config.data, config.scorers, judge=config.judge, mapping=config.map)
    plan.check()
    names = [scorer.name for scorer in plan.scorers]
    for name in config.minimum:
        if name not in names:
            raise UsageError(f"--min: {unknown('scorer', name, names)}")
    if config.out is not None:
        prepare(config.out)
    with interruptible() as stop:
        result = evaluate(
            plan.dataset,
            plan.scorers,
            judge=plan.judge,
            concurrency=config.concurrency,
            ledger=config.ledger,
            progress=not quiet and sys.stderr.isatty(),
            fresh=fresh,
            budget=budget,
            stop=stop,
        )
    if result.ended == INTERRUPTION:
        sys.stderr.write(f"{len(result)} of {plan.size} outcomes are in {_place(config.ledger)}: {GO_ON}\n")
        return INTERRUPTED
    screen = console()
    show_run(result, screen, dataset=plan.dataset, worst=worst)
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


def _place(ledger: str) -> str:
    """The ledger's file, or its URL without a password."""
    return shown(ledger)


def _where(result: Run, config: RunConfig, screen: Console, hint: str) -> None:
    screen.print()
    if config.out is not None:
        folder = write_run(result, config.out)
        screen.print(Text(f"Results: {folder / 'records.jsonl'} and {folder / 'summary.json'}"))
    screen.print(Text(f"Ledger:  {_place(config.ledger)}, run {result.id}"))
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
    return run(config, fresh=False, worst=3, quiet=False, hint=hint)


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
        screen.print(
            Text(f"  {step.question}, answered by {step.judge}, {step.seconds:.2f} s, {money(step.cost)}", style="dim")
        )
    return FAILED if isinstance(record.outcome, Failed) else OK


def report(name: str, ledger: str | None, worst: int) -> int:
    """Show a run again; the exit code says whether outcomes failed."""
    found = read_run(name, ledger=ledger or DEFAULT_LEDGER)
    show_run(found, console(), worst=worst)
    return FAILED if found.failed else OK

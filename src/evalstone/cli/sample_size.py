"""What `evalstone plan` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from evalstone.cli.outputs import Outputs, deliver, lines
from evalstone.cli.reporting import found_run
from evalstone.cli.screen import console
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError
from evalstone.results.power_analysis import ScorerPower
from evalstone.results.power_analysis import sample_size as planned
from evalstone.stats.power import Plan

OK = 0


@dataclass(frozen=True)
class Wanted:
    """The difference that is to be seen, with which chance, at which level of confidence."""

    difference: float
    power: float
    level: float


def plan(name: str, baseline: str | None, wanted: Wanted, outputs: Outputs, *, ledger: str | None, anyway: bool) -> int:
    """Say how many samples are needed; the exit code."""
    run = found_run(name, ledger)
    before = None if baseline is None else found_run(baseline, ledger)
    plans = planned(
        run, wanted.difference, baseline=before, power=wanted.power, confidence=wanted.level, allow_mismatch=anyway
    )
    if not plans.scorers:
        raise ConfigError(f"run {run.id} has no scorer with two scores or more to plan from")
    deliver(outputs, {"json": lambda: lines([json_line(plans.to_dict())])})
    if not outputs.wanted:
        _show(plans.scorers, wanted, paired=before is not None)
    return OK


def _show(plans: Sequence[ScorerPower], wanted: Wanted, *, paired: bool) -> None:
    screen = console()
    told = f"A true difference of {wanted.difference:g} between two runs, seen with a chance of {wanted.power:.0%}:"
    screen.print(Text(told))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("scorer")
    for title in ("samples needed", "80 % range", "this pilot", "spread", "it can see"):
        table.add_column(title, justify="right")
    for one in plans:
        plan = one.plan
        table.add_row(
            Text(one.title),
            *_needed(plan),
            f"{plan.n:,}",
            f"{plan.deviation:.3f}",
            "-" if not plan.detectable else f"{plan.detectable:.3f}",
        )
    screen.print(table)
    for told in _notes(plans, paired=paired):
        screen.print(Text(told, style="dim"))


def _needed(plan: Plan) -> tuple[Text, str]:
    """How many samples and between which; a pilot that does not vary cannot say."""
    if not plan.deviation:
        return Text("-"), "-"
    return Text(f"{plan.needed:,}", style="bold"), f"{plan.needed_low:,} to {plan.needed_high:,}"


def _notes(plans: Sequence[ScorerPower], *, paired: bool) -> list[str]:
    if paired:
        told = ["Both runs over the same samples; spread is that of the differences between the two pilot runs."]
    else:
        told = [
            "Both runs over the same samples, taking their scores to have nothing to do with each other: mostly far "
            "too many. With --baseline, a second pilot run over the same samples, their spread is known."
        ]
    told += [
        f"{one.title}: samples hang together in groups, which takes {one.design_effect:.1f} times as many."
        for one in plans
        if one.design_effect > 1
    ]
    return told + [f"{one.title}: {one.plan.caution}." for one in plans if one.plan.caution]

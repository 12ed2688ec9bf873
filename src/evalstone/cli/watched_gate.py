"""`evalstone run --gate`: a gate that watches a run, its record for later gates, and its decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import evalstone
from evalstone._core.display import count, safe
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.cli import values
from evalstone.cli.output import console, to_stderr
from evalstone.errors import ConfigError

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.run.plan import Plan
    from evalstone.run.sequential import RunGate
    from evalstone.stats.gates import Decision, GateVerdict

ALPHA = 0.05
"""The error rate of a gate that watches a run, including all later gates on the run."""


def watching(plan: Plan, criteria: evalstone.GateCriteria, stop: evalstone.StopSignal, config: RunConfig) -> RunGate:
    """A gate that watches a run, and stops it once its criteria are decided."""
    from evalstone.report.notes import clause_of
    from evalstone.run.sequential import RunGate  # imports numpy

    with config.naming_file("baseline", "max_regression", "max_change", "allow_mismatch"):
        gate = RunGate(
            plan,
            {**criteria.minimum, **criteria.maximum},
            stop,
            baseline=None if config.baseline is None else evalstone.read_run(config.baseline, ledger=config.ledger),
            max_regression=criteria.max_regression,
            max_change=_largest_changes(plan, criteria, config),
            alpha=ALPHA,
            missing=config.missing or "worst",
            allow_mismatch=config.allow_mismatch,
        )
    for note in () if gate.baseline is None else gate.baseline.notes:
        to_stderr(f"Baseline: {clause_of(note, COMMAND_LINE)}.")
    return gate


def _largest_changes(plan: Plan, criteria: evalstone.GateCriteria, config: RunConfig) -> dict[str, float]:
    """The largest change of a sample by the signatures of the scorers that are compared with the baseline."""
    from evalstone.run.plan import scorer_info

    if not isinstance(config.max_change, dict):
        return {} if config.max_change is None else dict.fromkeys(criteria.max_regression, config.max_change)
    named = config.named("max_change")
    changes = values.scorers_named(config.max_change, [scorer_info(one) for one in plan.scorers], named)
    for info in changes:
        if info.signature not in criteria.max_regression:
            raise ConfigError(f"{named} {info.parameters} requires {config.named('max_regression')} {info.parameters}")
    return {info.signature: change for info, change in changes.items()}


def remember_first_look(gate: RunGate, result: evalstone.Run, criteria: evalstone.GateCriteria, folder: str) -> None:
    """Record the gate as the first look at the run, so that later gates on the folder take it into account."""
    from evalstone.results.looks import remember

    warning = remember(folder, result, criteria, gate.verdict, look=1, alpha=ALPHA, missing=gate.missing, watched=True)
    if warning:
        to_stderr(f"Warning: {COMMAND_LINE.written(warning)}")


def verdict(gate: RunGate, *, to_stdout: bool) -> GateVerdict:
    """Show the decisions of a gate that watched a run; returns its verdict."""
    from evalstone.report.terminal import show
    from evalstone.results.views.gate import decisions_view, rate

    screen = console(stderr=not to_stdout)
    screen.print()
    show(decisions_view(gate.decisions(), COMMAND_LINE), screen)
    if gate.waiting:
        screen.print(
            f"Not tested: {count(gate.waiting, 'score')} in the table above. The run ended before an earlier sample in "
            "the random order was scored.",
            style="dim",
        )
    if gate.baseline is not None and gate.baseline.unpaired:
        without = f"{count(gate.baseline.unpaired, 'score')} of samples that the baseline has not scored"
        screen.print(f"Left out of the comparison: {without}.", style="dim")
    if missing := ", ".join(f"{_counted(one)} {one.missing:,}" for one in gate.decisions() if one.missing):
        counted = "count as the worst in tests for a pass and as the best in tests for a fail"
        leaving = "--missing ignore leaves them out"
        screen.print(safe(f"Samples without a score ({missing}) {counted}; {leaving}.", 2000), style="dim")
    screen.print(
        "Tested after every sample (confidence sequences, wider than intervals for a fixed number of samples): the "
        f"chance of a wrong pass, and of a wrong fail, is at most {rate(gate.alpha)} in total, and {rate(ALPHA)} with "
        "all later gates on the run.",
        style="dim",
    )
    return gate.verdict


def _counted(decision: Decision) -> str:
    return f"difference of {decision.name}" if decision.kind == "max_regression" else decision.name

"""`evalstone run --sequential`: a gate that watches a run, its record for later gates, and its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import evalstone
from evalstone._core.display import count
from evalstone.cli.config_file import RunConfig
from evalstone.cli.options import front_end
from evalstone.cli.output import to_stderr
from evalstone.cli.thresholds import say_unwritten
from evalstone.results.gate_criteria import GateCriteria

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.run.plan import Plan
    from evalstone.run.sequential import RunGate
    from evalstone.stats.gates import Decision, GateVerdict
    from evalstone.types import Note


def watching(
    plan: Plan,
    criteria: GateCriteria,
    stop: evalstone.StopSignal,
    config: RunConfig,
    baseline: evalstone.Run | None,
) -> RunGate:
    """A gate that watches a run, and stops it once its criteria are decided."""
    from evalstone.run.plan import scorer_info
    from evalstone.run.sequential import RunGate  # imports numpy

    assert config.rate is not None  # noqa: S101 - refused with what else can't be used together
    with config.naming_file("baseline", "max_regression", "max_change", "allow_mismatch"):
        gate = RunGate(
            plan,
            {**criteria.min, **criteria.max},
            stop,
            baseline=baseline,
            max_regression=criteria.max_regression,
            max_change=config.largest_changes([scorer_info(one) for one in plan.scorers], criteria),
            alpha=config.rate,
            missing=config.missing or "worst",
            allow_mismatch=config.allow_mismatch,
        )
    _say_allowed(() if gate.baseline is None else gate.baseline.notes)
    return gate


def _say_allowed(notes: Iterable[Note]) -> None:
    from evalstone.report.notes import clause_of

    for note in notes:
        to_stderr(f"Baseline: {clause_of(note, front_end(RunConfig))}.")


def decided(
    gate: RunGate, result: evalstone.Run, criteria: GateCriteria, config: RunConfig
) -> tuple[GateVerdict, View]:
    """The verdict of a gate that watched a run, and its decisions, with what the run must meet without a test.

    The gate is recorded as the first look at the run, so that later gates on its folder take it into account.

    Raises ConfigError if a judge wrote something else to hold answers against than for the baseline.
    """
    from evalstone.results.gate import gate_on
    from evalstone.results.looks import remember
    from evalstone.results.views.gate import decided_view
    from evalstone.stats.gates import overall

    if gate.baseline is not None:
        _say_allowed(gate.baseline.check_written(result))
    if config.out is not None:
        say_unwritten(
            remember(
                config.out,
                result,
                criteria,
                gate.verdict,
                look=1,
                alpha=gate.alpha,
                missing=gate.missing,
                watched=True,
            )
        )
    required = gate_on(result, GateCriteria(require=criteria.require)).decisions if criteria.require else ()
    decisions = (*gate.decisions(), *required)
    return overall(decisions), decided_view(decisions, _notes(gate), front_end(RunConfig), config.inconclusive)


def _notes(gate: RunGate) -> Iterator[str]:
    """What was tested, and what is left out."""
    from evalstone.results.views.gate import rate

    if gate.waiting:
        yield (
            f"Not tested: {count(gate.waiting, 'score')} in the table above. The run ended before an earlier sample in "
            "the random order was scored."
        )
    if gate.baseline is not None and gate.baseline.unpaired:
        without = f"{count(gate.baseline.unpaired, 'score')} of samples that the baseline has not scored"
        yield f"Left out of the comparison: {without}."
    if missing := ", ".join(f"{_counted(one)} {one.missing:,}" for one in gate.decisions() if one.missing):
        counted = "count as the worst in tests for a pass and as the best in tests for a fail"
        leaving = f"{front_end(RunConfig).term('missing', 'ignore')} leaves them out"
        yield f"Samples without a score ({missing}) {counted}; {leaving}."
    yield (
        "Tested after every sample (confidence sequences, wider than intervals for a fixed number of samples): the "
        f"chance of a wrong pass, and of a wrong fail, is at most {rate(gate.look_alpha)} in total, and "
        f"{rate(gate.alpha)} with all later gates on the run."
    )


def _counted(decision: Decision) -> str:
    return f"difference of {decision.name}" if decision.kind == "max_regression" else decision.name

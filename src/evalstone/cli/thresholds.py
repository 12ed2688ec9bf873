"""Thresholds of `evalstone run` and `gate`: their options, and whether a run meets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import evalstone
from evalstone._core.front_ends import COMMAND_LINE, FrontEnd, WordingPart
from evalstone._core.phases import phase
from evalstone.cli import completion, options
from evalstone.cli.options import option
from evalstone.cli.output import to_stderr
from evalstone.cli.values import error_rate, pass_rates, scorer_numbers
from evalstone.results.gate_criteria import CRITERIA, GateCriteria, Inconclusive

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.report.view import View
    from evalstone.results.gate import Gate
    from evalstone.results.summary import ScorerInfo
    from evalstone.run.plan import Plan
    from evalstone.stats.gates import GateVerdict

ALPHA = 0.05
_COUNTED: Mapping[Inconclusive, GateVerdict] = {"report": "inconclusive", "pass": "pass", "fail": "fail"}
"""What an inconclusive verdict counts as."""
ON_INCONCLUSIVE = "How an inconclusive result counts: as such, with exit code 4 (report), as a pass or as a fail."
"""What `--inconclusive` means."""
_PARSED: Mapping[str, Mapping[str, Any]] = {
    "SCORER=X": {"parse": scorer_numbers, "complete": completion.bounded_scorers},
    "SCORER@SCORE=SHARE": {"parse": pass_rates},
    "SCORER": {"complete": completion.scorers},
}
"""How the command line reads and completes what a criterion takes."""


def criterion(name: str) -> Any:
    """The option of a criterion of a gate."""
    form = CRITERIA[name]
    usage = f"--{name.replace('_', '-')} {form.usage}"
    return option(usage, "Thresholds", form.meaning, **_PARSED[form.usage])


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a run must meet, and how that is decided."""

    min: Annotated[dict[str, float], criterion("min")] = field(default_factory=dict[str, float])
    max: Annotated[dict[str, float], criterion("max")] = field(default_factory=dict[str, float])
    pass_rate: Annotated[dict[str, tuple[float, float] | list[float]], criterion("pass_rate")] = field(
        default_factory=dict[str, "tuple[float, float] | list[float]"]
    )
    max_regression: Annotated[dict[str, float], criterion("max_regression")] = field(default_factory=dict[str, float])
    max_difference: Annotated[dict[str, float], criterion("max_difference")] = field(default_factory=dict[str, float])
    require: Annotated[list[str], criterion("require")] = field(default_factory=list[str])
    baseline: Annotated[
        str | None,
        option(
            "--baseline RUN",
            "Thresholds",
            "The run to compare with, over the same samples: a folder, ID or name.",
            complete=completion.runs,
        ),
    ] = None
    allow_mismatch: Annotated[
        bool,
        option(
            "--allow-mismatch/--refuse-mismatch",
            "Thresholds",
            "Compare with a baseline whose judge, scorers or samples differ; differences are noted.",
        ),
    ] = False
    inconclusive: Annotated[
        Inconclusive,
        option("--inconclusive", "Thresholds", ON_INCONCLUSIVE),
    ] = "report"
    alpha: Annotated[
        float | Literal["none"] | None,
        option(
            "--alpha RATE",
            "Statistics",
            "Error rate: the chance of a wrong pass, and of a wrong fail, over all checks and looks; none compares the "
            "estimates with the thresholds, without a test.",
            default="0.05",
            parse=error_rate,
        ),
    ] = None
    missing: Annotated[options.Missing | None, options.MISSING] = None
    max_change: options.MaxChange = None

    @property
    def rate(self) -> float | None:
        """The error rate; None without a test."""
        return ALPHA if self.alpha is None else None if self.alpha == "none" else self.alpha

    @property
    def _given(self) -> GateCriteria:
        return GateCriteria.of(**{name: getattr(self, name) for name in CRITERIA})

    def check_baseline(self) -> None:
        """Raise ConfigError for a criterion about the difference from a baseline, unless one is set."""
        self._given.check_baseline(is_set=self.baseline is not None)

    def criteria(self, scorers: Sequence[ScorerInfo]) -> GateCriteria:
        """The criteria by the scorers' titles. Raises ConfigError for an unknown scorer, or a threshold that doesn't
        fit its scorer."""
        from evalstone.results.summary import scorer_titles
        from evalstone.run.plan import named_scorer

        return self._given.titled(lambda name: named_scorer(name, scorers), scorer_titles(scorers))

    def largest_changes(self, scorers: Sequence[ScorerInfo], criteria: GateCriteria) -> dict[str, float]:
        """The largest changes by the scorers' titles. Raises ConfigError for one that doesn't fit its scorer, or of a
        scorer without a difference to check."""
        from evalstone.results.summary import scorer_titles
        from evalstone.run.plan import named_scorer

        return criteria.largest_changes(
            self.max_change, lambda name: named_scorer(name, scorers), scorer_titles(scorers)
        )


def counted(verdict: GateVerdict, inconclusive: Inconclusive) -> GateVerdict:
    """The verdict that decides the exit code."""
    return _COUNTED[inconclusive] if verdict == "inconclusive" else verdict


def baseline_of(config: RunConfig, plan: Plan, criteria: GateCriteria) -> evalstone.Run | None:
    """The run to compare with, checked as far as possible before the new one begins."""
    from evalstone.run.baseline import check_comparable

    if config.baseline is None:
        return None
    with config.naming_file("baseline", "allow_mismatch"):
        baseline = evalstone.read_run(config.baseline, ledger=config.ledger)
        if not config.sequential:  # whose gate checks more
            check_comparable(baseline, plan, criteria.of_baseline, allow_mismatch=config.allow_mismatch)
    return baseline


def tested(
    result: evalstone.Run,
    criteria: GateCriteria,
    thresholds: Thresholds,
    baseline: evalstone.Run | None,
    *,
    look: int | None,
    out: str | None,
    absent: str | None,
    front_end: FrontEnd,
) -> tuple[Gate, View]:
    """Check a run that has ended, as `evalstone gate` does: the gate, and its checks.

    look: the number of this look at growing data; None for the first. out: its results folder, where the look is
    recorded. absent: the name of a baseline that isn't there. front_end: how users of the command write settings.
    """
    from evalstone.results.gate import gate_on
    from evalstone.results.views.gate import checks_view

    with phase("checking the thresholds"):
        gate = gate_on(
            result,
            criteria,
            baseline=baseline,
            alpha=thresholds.rate,
            look=look or 1,
            missing=thresholds.missing or "worst",
            largest_changes=thresholds.largest_changes(result.scorers, criteria),
            allow_mismatch=thresholds.allow_mismatch,
            absent=absent,
        )
    if out is not None:
        remember_look(out, gate)
    return gate, checks_view(gate, front_end, thresholds.inconclusive)


def remember_look(folder: str | Path, gate: Gate, *labels: Any) -> None:
    """Record a gate on a results folder, so that later gates on it take it into account. Without a test, it is no
    look. A folder at an address records none."""
    from evalstone._core.storage import is_address
    from evalstone.results.looks import remember

    if gate.alpha is None or is_address(folder):
        return
    settings: dict[str, Any] = {"look": gate.look, "alpha": gate.alpha, "missing": gate.missing}
    say_unwritten(remember(folder, gate.run, gate.criteria, gate.verdict, *labels, **settings))


def say_unwritten(warning: Sequence[WordingPart]) -> None:
    """Print the warning that a look couldn't be recorded, if there is one."""
    if warning:
        to_stderr(f"Warning: {COMMAND_LINE.written(warning)}")

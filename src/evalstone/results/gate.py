"""Gates: does a run meet its criteria? Each check passes, fails, or is inconclusive.

The probability that any unmet criterion passes, and that any met criterion fails, is at most `alpha` each, over all
criteria together. Skipped and failed samples are in no mean; what they could change is in the notes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.display import count
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.results.compare import pair_runs
from evalstone.results.run import Run, scores_in_order
from evalstone.results.summary import values_by_scorer
from evalstone.stats.intervals import check_number
from evalstone.types import reaches

if TYPE_CHECKING:
    from evalstone.stats.gates import Criterion, Decision, Verdict

GATE_FORMAT = 1
CHECKS = ("minimum", "maximum", "max_regression", "pass_rate")


@dataclass(frozen=True, kw_only=True)
class GateCriteria:
    """What a run must meet, by scorer.

    Raises:
        ConfigError: a criterion is not a number, or for a pass rate, not two.
    """

    minimum: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to lowest acceptable mean; for scorers where higher is better."""
    maximum: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to highest acceptable mean; for scorers where lower is better."""
    max_regression: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to how much worse than the baseline's the mean may be, over the same samples (non-inferiority)."""
    pass_rate: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    """Scorer to (score, share): at least this share of the samples must reach the score (for scorers where lower is
    better: must not exceed it)."""

    def __post_init__(self) -> None:
        for check in CHECKS:
            table: object = getattr(self, check)
            if not isinstance(table, Mapping):
                raise ConfigError(f"{check} must be a table from scorer to threshold, not {table!r}")
            for name, value in cast("Mapping[str, object]", table).items():
                if check != "pass_rate":
                    check_number(f"{check} of {name}", value)
                    continue
                pair = cast("Sequence[object]", value if isinstance(value, list | tuple) else ())
                if len(pair) != 2:
                    raise ConfigError(f"pass_rate of {name} must be a score and a share: (0.8, 0.9), not {value!r}")
                for number in pair:
                    check_number(f"pass_rate of {name}", number)

    @property
    def scorers(self) -> tuple[str, ...]:
        """The scorers with a criterion."""
        return tuple(dict.fromkeys((*self.minimum, *self.maximum, *self.max_regression, *self.pass_rate)))


@dataclass(frozen=True)
class Gate:
    """A run checked against criteria."""

    run: Run
    """The run."""
    baseline: Run | None
    """The run that regressions are measured against."""
    decisions: tuple[Decision, ...]
    """One decision per criterion."""
    alpha: float
    """The probability of a wrong pass, and of a wrong fail, over all criteria together."""
    notes: tuple[str, ...]
    """What to know besides: samples without a score, differences from the baseline."""

    @property
    def verdict(self) -> Verdict:
        """ "fail" if any criterion fails, else "inconclusive" if any is, else "pass"."""
        from evalstone.stats.gates import overall  # noqa: PLC0415 - numpy

        return overall(self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The gate as plain data, as `evalstone gate --json` prints it."""
        return {
            "format": GATE_FORMAT,
            "verdict": self.verdict,
            "alpha": self.alpha,
            "run": self.run.id,
            "baseline": None if self.baseline is None else self.baseline.id,
            "notes": list(self.notes),
            "criteria": [to_jsonable(decision) for decision in self.decisions],
        }


def gate(
    run: Run, criteria: GateCriteria, *, baseline: Run | None = None, alpha: float = 0.05, allow_mismatch: bool = False
) -> Gate:
    """Check a run against criteria.

    Args:
        run: the run.
        criteria: at least one criterion.
        baseline: the run that `max_regression` is measured against.
        alpha: the probability of a wrong pass, and of a wrong fail, over all criteria together.
        allow_mismatch: compare with a baseline whose judge, scorers or cases differ.

    Raises:
        ConfigError: there is no criterion, a scorer is unknown or has two thresholds for one check, or a threshold
            does not fit its scorer.
    """
    from evalstone.stats.gates import decide  # noqa: PLC0415 - numpy

    for one in filter(None, (run, baseline)):
        if one.kind != "evaluation":
            raise ConfigError(f"run {one.id} is part of a judge's {one.kind}; a gate takes evaluations of outputs")
    if not isinstance(cast(object, criteria), GateCriteria):
        raise ConfigError(
            'the criteria must be GateCriteria, such as GateCriteria(minimum={"faithfulness": 0.8}), '
            f"not {type(criteria).__name__}"
        )
    if not criteria.scorers:
        raise ConfigError(
            "a gate needs a check: a minimum, a maximum, a largest regression or a pass rate (--min, --max, "
            "--max-regression, --pass-rate)"
        )
    for check in CHECKS:
        values_by_scorer(getattr(criteria, check), lambda name: run[name].info, check)
    notes = dict.fromkeys(_missing_scores(run, criteria))
    checks = [*_mean_checks(run, criteria), *_pass_rate_checks(run, criteria)]
    if criteria.max_regression:
        if baseline is None:
            raise ConfigError("a largest regression needs the run it is measured against: set a baseline (--baseline)")
        checks += _regression_checks(run, baseline, criteria, allow_mismatch, notes)
    elif baseline is not None:
        notes["the baseline is not used: no largest regression (--max-regression) was set"] = None
    return Gate(run, baseline, decide(checks, alpha=alpha), alpha, tuple(notes))


def _mean_checks(run: Run, criteria: GateCriteria) -> Iterator[Criterion]:
    from evalstone.stats.gates import AtLeast, AtMost  # noqa: PLC0415 - numpy

    for lower, thresholds, kind in ((False, criteria.minimum, AtLeast), (True, criteria.maximum, AtMost)):
        for name, threshold in thresholds.items():
            info = run[name].info
            if info.lower_is_better != lower:
                better, wrong, right = ("higher", "maximum", "min") if lower else ("lower", "minimum", "max")
                raise ConfigError(
                    f"{wrong} of {name}: {better} is better for {info.name}; set a {right}imum of {threshold:g} "
                    f"(--{right} {name}={threshold:g})"
                )
            values, groups = scores_in_order(run, info.signature)
            yield kind(name, values, threshold, info.scale, groups)


def _pass_rate_checks(run: Run, criteria: GateCriteria) -> Iterator[Criterion]:
    from evalstone.stats.gates import PassRate  # noqa: PLC0415 - numpy

    for name, (threshold, share) in criteria.pass_rate.items():
        info = run[name].info
        if not (math.isfinite(threshold) and 0 <= threshold <= info.scale):
            raise ConfigError(f"pass rate of {name}: the score must lie in [0, {info.scale:g}], not {threshold:g}")
        values, groups = scores_in_order(run, info.signature)
        lower = info.lower_is_better
        passed = [float(reaches(value, threshold, info.scale, lower_is_better=lower)) for value in values]
        yield PassRate(f"{name} {'<=' if lower else '>='} {threshold:g}", passed, share, groups=groups)


def _regression_checks(
    run: Run, baseline: Run, criteria: GateCriteria, allow_mismatch: bool, notes: dict[str, None]
) -> Iterator[Criterion]:
    from evalstone.stats.gates import MaxRegression  # noqa: PLC0415 - numpy

    pairs, differences = pair_runs(baseline, run, allow_mismatch=allow_mismatch)
    notes.update(dict.fromkeys(f"baseline and run: {text}" for text in differences))
    by_scorer = {pair.info_b: pair for pair in pairs}
    for name, margin in criteria.max_regression.items():
        info = run[name].info
        pair = by_scorer.get(info)
        if pair is None:
            raise ConfigError(f"largest regression of {name}: no sample has a score in both runs")
        if pair.unpaired:
            left_out = count(pair.unpaired, "sample")
            notes[f"{name}: the regression leaves out {left_out} with a score in only one run"] = None
        yield MaxRegression(name, pair.b, pair.a, margin, info.scale, info.lower_is_better, pair.groups)


def _missing_scores(run: Run, criteria: GateCriteria) -> Iterator[str]:
    """Notes on outcomes that are in no mean."""
    if run.stop_reason:
        yield f"the run stopped early ({run.stop_reason})"
    for name in criteria.scorers:
        line = run[name]
        if line.bounds is not None:
            low, high = line.bounds
            total = line.skipped + line.failed
            missing, them = count(total, "sample"), "it" if total == 1 else "them"
            yield f"{name}: {missing} without a score; with {them} the mean would be in [{low:.3f}, {high:.3f}]"

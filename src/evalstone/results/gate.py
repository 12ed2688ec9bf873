"""Gates: does a run meet its criteria? Each ends "pass", "fail" or "inconclusive", with errors under control.

The chance that any criterion that is not met passes, and the chance that any that is met fails, are each at most
`error` over all criteria together. Skips and failures are in no mean; what they could change is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.results.pairing import paired
from evalstone.results.run import Run
from evalstone.results.scores import values_of
from evalstone.results.summary import ScorerSummary
from evalstone.stats.gates import (
    AtLeast,
    AtMost,
    Criterion,
    Decision,
    MaxRegression,
    PassRate,
    Verdict,
    decide,
    overall,
)

GATE_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class GateCriteria:
    """What a run must meet, by the scorers' names.

    minimum: the mean is at least so much; for scorers where higher is better. maximum: at most so much; where lower is
    better. no_worse: the mean is worse than the baseline's by at most so much, over the same samples. pass_rate: a
    score and a share: at least this share of the samples reaches this score (at most it, where lower is better).
    """

    minimum: Mapping[str, float] = field(default_factory=dict[str, float])
    maximum: Mapping[str, float] = field(default_factory=dict[str, float])
    no_worse: Mapping[str, float] = field(default_factory=dict[str, float])
    pass_rate: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])

    def __bool__(self) -> bool:
        return bool(self.minimum or self.maximum or self.no_worse or self.pass_rate)


@dataclass(frozen=True)
class Gate:
    """A run held against criteria. decisions: one a criterion. told: what a reader must know besides."""

    run: Run
    baseline: Run | None
    decisions: tuple[Decision, ...]
    error: float
    told: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """ "fail" if any criterion fails, else "inconclusive" if any is, else "pass"."""
        return overall(self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The gate as plain data, as `evalstone gate --json` writes it."""
        return {
            "format": GATE_FORMAT,
            "verdict": self.verdict,
            "error": self.error,
            "run": self.run.id,
            "baseline": None if self.baseline is None else self.baseline.id,
            "told": list(self.told),
            "criteria": [to_jsonable(decision) for decision in self.decisions],
        }


def gate(
    run: Run,
    criteria: GateCriteria,
    *,
    baseline: Run | None = None,
    error: float = 0.05,
    anyway: bool = False,
) -> Gate:
    """Hold a run against criteria.

    baseline: the run that `no_worse` is measured against. error: the chance of a wrong pass, and of a wrong fail, over
    all criteria together. anyway: compare with a baseline whose judge, scorers or cases differ. Raises ConfigError for
    no criterion, an unknown scorer, a threshold outside its range, a minimum where lower is better, a maximum where
    higher is, and the like.
    """
    if not criteria:
        raise ConfigError("a gate needs a criterion: --min, --max, --no-worse or --pass-rate")
    if criteria.no_worse and baseline is None:
        raise ConfigError("--no-worse needs a --baseline to be measured against")
    told: dict[str, None] = dict.fromkeys(_missing(run, criteria))
    if baseline is not None and not criteria.no_worse:
        told["nothing is held against the baseline: that takes --no-worse"] = None
    listed = [*_bars(run, criteria), *_rates(run, criteria)]
    if baseline is not None and criteria.no_worse:
        pairing = paired(baseline, run, anyway=anyway)
        told.update(dict.fromkeys(f"baseline and run: {text}" for text in pairing.told))
        by_signature = {one.info.signature: one for one in pairing.scorers}
        for name, margin in criteria.no_worse.items():
            info = baseline[name].info
            one = by_signature.get(info.signature)
            if one is None:
                raise ConfigError(f"--no-worse {name}: no sample was scored by it in both runs")
            if one.one_sided:
                told[f"{name}: {one.one_sided} with a score in one run only are left out of --no-worse"] = None
            listed.append(MaxRegression(name, one.b, one.a, margin, info.scale, info.lower_is_better, one.groups))
    return Gate(run, baseline, decide(listed, alpha=error), error, tuple(told))


def _bars(run: Run, criteria: GateCriteria) -> Iterator[Criterion]:
    for name, least in criteria.minimum.items():
        line = run[name]
        if line.info.lower_is_better:
            raise ConfigError(f"--min {name}: a lower {line.info.name} is better; ask for --max {name}={least:g}")
        values, groups = values_of(run, line.info.signature)
        yield AtLeast(name, values, least, line.info.scale, groups)
    for name, most in criteria.maximum.items():
        line = run[name]
        if not line.info.lower_is_better:
            raise ConfigError(f"--max {name}: a higher {line.info.name} is better; ask for --min {name}={most:g}")
        values, groups = values_of(run, line.info.signature)
        yield AtMost(name, values, most, line.info.scale, groups)


def _rates(run: Run, criteria: GateCriteria) -> Iterator[Criterion]:
    for name, (bar, share) in criteria.pass_rate.items():
        info = run[name].info
        if not (math.isfinite(bar) and 0 <= bar <= info.scale):
            raise ConfigError(f"--pass-rate {name}: the score must lie in [0, {info.scale:g}], not {bar:g}")
        values, groups = values_of(run, info.signature)
        if groups is not None:
            raise ConfigError(f"--pass-rate {name}: not for samples in groups, whose passes are not independent")
        passed = sum(value <= bar if info.lower_is_better else value >= bar for value in values)
        yield PassRate(f"{name} {'<=' if info.lower_is_better else '>='} {bar:g}", passed, len(values), share)


def _missing(run: Run, criteria: GateCriteria) -> Iterator[str]:
    """What a reader must know of outcomes that are in no mean."""
    if run.stop_reason:
        yield f"the run ended before its end ({run.stop_reason})"
    named = (*criteria.minimum, *criteria.maximum, *criteria.no_worse, *criteria.pass_rate)
    for name in dict.fromkeys(named):
        line: ScorerSummary = run[name]
        if line.bounds is not None:
            low, high = line.bounds
            missing = line.skipped + line.failed
            yield f"{name}: {missing} without a score are left out; with them the mean lies in [{low:.3f}, {high:.3f}]"

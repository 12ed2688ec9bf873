"""How many samples show a difference, from a pilot run; and what that run itself can and cannot tell.

From two pilot runs over the same samples the spread of the differences is known. From one it is not: it is then taken
to be that of two runs whose scores have nothing to do with each other, √2 times the spread of the scores, which is too
much wherever good and bad samples stay good and bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalstone.errors import ConfigError
from evalstone.results.pairing import paired
from evalstone.results.run import Run
from evalstone.results.scores import values_of
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import cluster_spread, mean_of, plain_spread
from evalstone.stats.power import SampleSizePlan, detectable_difference, plan_sample_size


@dataclass(frozen=True)
class ScorerPlan:
    """How many samples show a difference in one scorer's mean. paired: from two pilot runs, else from one.

    design_effect: how many times more samples are needed because samples hang together in groups; 1 without groups.
    """

    title: str
    info: ScorerInfo
    plan: SampleSizePlan
    paired: bool
    design_effect: float


def sample_size(
    run: Run,
    difference: float = 0.03,
    *,
    baseline: Run | None = None,
    power: float = 0.8,
    level: float = 0.95,
    anyway: bool = False,
) -> tuple[ScorerPlan, ...]:
    """For each scorer, how many samples show a true difference of means between two runs with a chance of `power`.

    difference: in the unit of the scores. baseline: a second pilot run over the same samples. Scorers with fewer than
    two scores are left out. Raises ConfigError for a difference of 0 or less, a power or level outside (0, 1), and for
    runs that cannot be compared.
    """
    if not (math.isfinite(difference) and difference > 0):
        raise ConfigError(f"the difference must be above 0, not {difference:g}")
    if not 0 < power < 1:
        raise ConfigError(f"the power must lie between 0 and 1, not {power:g}")
    pilots = _of_one(run) if baseline is None else _of_two(baseline, run, anyway)
    made: list[ScorerPlan] = []
    for pilot in pilots:
        effect = _design_effect(pilot.values, pilot.groups)
        plan = plan_sample_size(pilot.values, difference, power=power, confidence=level, design_effect=effect)
        if plan is not None:
            made.append(ScorerPlan(pilot.title, pilot.info, plan, baseline is not None, effect))
    return tuple(made)


@dataclass(frozen=True)
class _Pilot:
    title: str
    info: ScorerInfo
    values: Sequence[float]
    groups: Sequence[str] | None


def _of_one(run: Run) -> Iterator[_Pilot]:
    for info in run.scorers:
        values, groups = values_of(run, info.signature)
        yield _Pilot(run.titles[info.signature], info, [math.sqrt(2) * value for value in values], groups)


def _of_two(a: Run, b: Run, anyway: bool) -> Iterator[_Pilot]:
    for one in paired(a, b, anyway=anyway).scorers:
        differences = [after - before for before, after in zip(one.a, one.b, strict=True)]
        yield _Pilot(one.title, one.info, differences, one.groups)


def _design_effect(values: Sequence[float], groups: Sequence[str] | None) -> float:
    if groups is None or len(set(groups)) < 2:
        return 1.0
    mean = mean_of(values)
    alone = plain_spread(values, mean).variance
    return max(1.0, cluster_spread(values, mean, groups).variance / alone) if alone else 1.0


def reach_told(run: Run) -> str:
    """One sentence on what a run of this size can tell; empty where it has too few scores."""
    told: list[str] = []
    for pilot in _of_one(run):
        values = pilot.values
        if len(values) >= 2:
            deviation = math.sqrt(plain_spread(values, mean_of(values)).variance * len(values))
            effect = _design_effect(values, pilot.groups)
            found = detectable_difference(len(values), deviation, design_effect=effect) if deviation else None
            if found is not None:
                told.append(f"{found:.2g} in {pilot.title}")
    if not told:
        return ""
    return (
        "What this run can tell: a second run over the same samples would show, four times in five, a true difference "
        f"of {', '.join(told)}; less than that where the two runs' scores go together, as they mostly do. What it "
        "cannot: anything much smaller."
    )

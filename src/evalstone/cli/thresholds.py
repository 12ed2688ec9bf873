"""`evalstone run --fail-under, --fail-over, --max-regression, --require`: the criteria of a run, and whether it meets
the thresholds and requirements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import evalstone
from evalstone._core.display import count, safe
from evalstone.cli import values
from evalstone.cli.output import to_stderr
from evalstone.errors import ConfigError, invalid

if TYPE_CHECKING:
    from evalstone.cli.config_file import RunConfig
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.gates import GateVerdict


def criteria_of(config: RunConfig, scorers: Sequence[ScorerInfo]) -> evalstone.GateCriteria:
    """The criteria of the run, by the scorers' signatures. Raises ConfigError for a threshold outside the scale, or
    in the wrong direction."""
    bounds_of: dict[bool, dict[str, float]] = {False: {}, True: {}}
    for setting, opposite, lower_is_better, bounds in (
        ("fail_under", "fail_over", False, config.fail_under),
        ("fail_over", "fail_under", True, config.fail_over),
    ):
        named, other = config.named(setting), config.named(opposite, setting)
        for info, bound in values.scorers_named(bounds, scorers, named).items():
            if info.lower_is_better is not lower_is_better:
                better = "lower" if info.lower_is_better else "higher"
                raise ConfigError(
                    f"{named}: {better} is better for {info.name}; use {other} {info.parameters}={bound:g}"
                )
            if not 0 <= bound <= info.scale:
                raise ConfigError(
                    f"{named}: ", invalid(info.parameters, f"in [0, {info.scale:g}]", bound, f"{bound:g}")
                )
            bounds_of[lower_is_better][info.signature] = bound
    required = values.scorers_named(dict.fromkeys(config.require, True), scorers, config.named("require"))
    require = tuple(info.signature for info in required)
    margins = values.scorers_named(config.max_regression, scorers, config.named("max_regression"))
    return evalstone.GateCriteria(
        minimum=bounds_of[False],
        maximum=bounds_of[True],
        max_regression={info.signature: margin for info, margin in margins.items()},
        require=require,
    )


def verdict(result: evalstone.Run, criteria: evalstone.GateCriteria, config: RunConfig) -> GateVerdict:
    """ "fail" if the run misses a threshold or a requirement, and prints which ones; else "pass"."""
    from evalstone.types import reaches

    missed = False
    for name, bound in (*criteria.minimum.items(), *criteria.maximum.items()):
        info, mean = result[name].info, result[name].mean
        lower = info.lower_is_better
        option, word = (config.named("fail_over"), "above") if lower else (config.named("fail_under"), "below")
        if mean is None:
            to_stderr(f"{info.parameters}: no score, {option} {bound:g} is not met")
        elif not reaches(mean, bound, info.scale, lower_is_better=lower):
            to_stderr(f"{info.parameters}: mean {mean:.3f} is {word} {option} {bound:g}")
        else:
            continue
        missed = True
    if criteria.require:
        missed |= _lacks_best_scores(result, criteria.require, config.named("require"))
    return "fail" if missed else "pass"


def _lacks_best_scores(result: evalstone.Run, required: Sequence[str], option: str) -> bool:
    """Whether samples lack the best score of scorers that require it. Prints which ones."""
    from evalstone.results.views.gate import miss_cells

    gate = evalstone.gate(result, evalstone.GateCriteria(require=required))
    noun = "trial" if result.trials > 1 else "sample"
    for decision in gate.decisions:
        name = result[decision.name].info.parameters
        if decision.estimate is None:
            to_stderr(f"{name}: no score, {option} is not met")
        elif decision.verdict == "fail":
            lacking = round(decision.n * (1 - decision.estimate))
            to_stderr(f"{name}: {lacking:,} of {count(decision.n, noun)} without the best score, {option} is not met")
            for sample, score, reason in map(miss_cells, decision.misses):
                to_stderr(f"  {safe(sample)}: {score} ({reason})")
    return gate.verdict != "pass"

"""Scorers with a bound for the score of each sample: `min` and `max` of guards and of `assert_scores`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone._core.front_ends import Setting
from evalstone._core.guards import is_mapping
from evalstone.errors import ConfigError, invalid, repeated
from evalstone.results.gate_criteria import DIRECTIONS, check_bound
from evalstone.run.plan import scorer_info
from evalstone.scorers import Scorer, parse_scorer


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A scorer, and what its score must reach."""

    name: str
    """The scorer as it was named; its own name if it was not named by text."""
    scorer: Scorer
    threshold: float
    """The lowest acceptable score, or the highest where lower is better."""


def bounds_of(min: Mapping[Any, float] | None, max: Mapping[Any, float] | None) -> tuple[Bound, ...]:
    """The bounds of scorers (names, Scorer values or functions).

    Raises:
        ConfigError: a scorer is unknown or has two bounds, or a bound doesn't fit its scorer.
    """
    bounds: dict[str, Bound] = {}
    for which, table in zip(DIRECTIONS, (min, max), strict=True):
        if table is not None and not is_mapping(table):
            raise ConfigError(invalid(Setting(which), "a table from scorer to threshold", table))
        for spec, threshold in (table or {}).items():
            scorer = parse_scorer(spec)
            name = spec if isinstance(spec, str) else scorer.name
            check_bound(which, name, scorer_info(scorer), threshold)
            if scorer.signature in bounds:
                raise ConfigError(repeated(which, name, Setting(which), f": {name} has two thresholds"))
            bounds[scorer.signature] = Bound(name=name, scorer=scorer, threshold=threshold)
    return tuple(bounds.values())

"""The criteria of a gate. They are in a separate module, because importing the gate imports the comparison of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.stats.intervals import check_number

OF_BASELINE = ("max_regression", "max_difference")
"""The checks of the difference from a baseline."""
CHECKS = ("minimum", "maximum", "max_regression", "max_difference", "pass_rate")


@dataclass(frozen=True, kw_only=True)
class GateCriteria:
    """The criteria that a run must meet, by scorer.

    Raises:
        ConfigError: a criterion is not a number, or a pass rate is not a pair of numbers.
    """

    minimum: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to lowest acceptable mean, for scorers where higher is better."""
    maximum: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to highest acceptable mean, for scorers where lower is better."""
    max_regression: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to the largest acceptable regression: how much worse than the baseline the mean may be, over the same
    samples (non-inferiority)."""
    max_difference: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to the largest acceptable difference from the baseline's mean in either direction, over the same samples
    (equivalence)."""
    pass_rate: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    """Scorer to (score, share): at least this share of the samples must reach the score. If lower is better, they must
    not exceed it."""
    require: Sequence[str] = ()
    """Scorers for which every sample must have the best score: `scale`, or 0 if lower is better. This is not a
    statistical test: it describes these samples. A failed score, or one without an answer from the judge, doesn't pass.
    Samples with an undefined score are left out."""

    def __post_init__(self) -> None:
        required: object = self.require
        names = (required,) if isinstance(required, str) else required
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
            raise ConfigError(invalid(Setting("require"), 'a list of scorers, such as ["contains"]', required))
        object.__setattr__(self, "require", tuple(cast("list[str]", names)))
        for check in CHECKS:
            table: object = getattr(self, check)
            if not isinstance(table, Mapping):
                raise ConfigError(invalid(Setting(check), "a table from scorer to threshold", table))
            for name, value in cast("Mapping[object, object]", table).items():
                if not isinstance(name, str):
                    raise ConfigError(Setting(check), f': scorers are named by text, such as "contains", not {name!r}')
                of_scorer = Setting(check), f" of {name}"
                if check != "pass_rate":
                    check_number(of_scorer, value)
                    continue
                pair = cast("Sequence[object]", value if isinstance(value, list | tuple) else ())
                if len(pair) != 2:
                    raise ConfigError((*of_scorer, f" must be a score and a share: (0.8, 0.9), not {value!r}"))
                for number in pair:
                    check_number(of_scorer, number)

    @property
    def tested(self) -> tuple[str, ...]:
        """The scorers with a statistical test: those with any criterion other than `require`."""
        return tuple(dict.fromkeys((*self.minimum, *self.maximum, *self.of_baseline, *self.pass_rate)))

    @property
    def of_baseline(self) -> tuple[str, ...]:
        """The scorers that are compared with a baseline."""
        return tuple(dict.fromkeys((*self.max_regression, *self.max_difference)))

    @property
    def scorers(self) -> tuple[str, ...]:
        """All scorers with a criterion."""
        return tuple(dict.fromkeys((*self.tested, *self.require)))

"""The criteria of a gate: one table, from which Python, the command line, configuration files and pytest marks take
them. They are in a separate module, because importing the gate imports the comparison of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.results.largest_change import LARGEST_CHANGE, BySetting, reaches_by_scorer
from evalstone.results.summary import ScorerInfo, values_by_scorer
from evalstone.stats.intervals import check_number

Inconclusive: TypeAlias = Literal["report", "pass", "fail"]
"""How an inconclusive gate counts: as such (exit code 4; a skipped test), as a pass, or as a fail."""


@dataclass(frozen=True, kw_only=True)
class CriterionForm:
    """A kind of criterion, as people set it."""

    usage: str
    """What it takes on the command line."""
    meaning: str
    """What it requires of a run."""
    of_baseline: bool = False
    """Whether it is about the difference from a baseline."""


CRITERIA: Mapping[str, CriterionForm] = {
    "min": CriterionForm(usage="SCORER=X", meaning="The mean is at least X, for scorers where higher is better."),
    "max": CriterionForm(usage="SCORER=X", meaning="The mean is at most X, for scorers where lower is better."),
    "pass_rate": CriterionForm(
        usage="SCORER@SCORE=SHARE",
        meaning="At least this share of samples reaches this score: faithfulness@0.8=0.9 for 90% at 0.8 or better.",
    ),
    "max_regression": CriterionForm(
        usage="SCORER=X",
        meaning="The mean is worse than the baseline's by at most X (non-inferiority).",
        of_baseline=True,
    ),
    "max_difference": CriterionForm(
        usage="SCORER=X",
        meaning="The mean differs from the baseline's by at most X, in either direction (equivalence).",
        of_baseline=True,
    ),
    "require": CriterionForm(usage="SCORER", meaning="Every sample has the scorer's best score."),
}
"""The criteria by name. Every door takes all of them under these names."""
OF_BASELINE = tuple(name for name, form in CRITERIA.items() if form.of_baseline)
"""The criteria about the difference from a baseline."""
BY_SCORER = tuple(name for name in CRITERIA if name != "require")
"""The criteria that are tables from scorer to threshold."""
DIRECTIONS = {"min": False, "max": True}
"""The bounds of a score or mean, and whether they are for scorers where lower is better."""
_OPPOSITE = {"min": "max", "max": "min"}
_OF_DIFFERENCE = (
    " is for the difference from a baseline: set ",
    Setting("max_regression"),
    " or ",
    Setting("max_difference"),
)


@dataclass(frozen=True, kw_only=True)
class GateCriteria:
    """The criteria that a run must meet, by scorer.

    Raises:
        ConfigError: a criterion is not a number, or a pass rate is not a pair of numbers.
    """

    min: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to lowest acceptable mean, for scorers where higher is better."""
    max: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to highest acceptable mean, for scorers where lower is better."""
    pass_rate: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    """Scorer to (score, share): at least this share of the samples must reach the score. If lower is better, they must
    not exceed it."""
    max_regression: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to the largest acceptable regression: how much worse than the baseline the mean may be, over the same
    samples (non-inferiority)."""
    max_difference: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scorer to the largest acceptable difference from the baseline's mean in either direction, over the same samples
    (equivalence)."""
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
        for criterion in BY_SCORER:
            table: object = getattr(self, criterion)
            if not isinstance(table, Mapping):
                raise ConfigError(invalid(Setting(criterion), "a table from scorer to threshold", table))
            for name, value in cast("Mapping[object, object]", table).items():
                if not isinstance(name, str):
                    raise ConfigError(
                        Setting(criterion), f': scorers are named by text, such as "contains", not {name!r}'
                    )
                of_scorer = Setting(criterion), f" of {name}"
                if criterion != "pass_rate":
                    check_number(of_scorer, value)
                    continue
                pair = cast("Sequence[object]", value if isinstance(value, list | tuple) else ())
                if len(pair) != 2:
                    raise ConfigError((*of_scorer, f" must be a score and a share, such as 0.8 and 0.9, not {value!r}"))
                for number in pair:
                    check_number(of_scorer, number)

    @classmethod
    def of(cls, **given: Any) -> GateCriteria:
        """The criteria that are given; None is none."""
        return cls(**{name: value for name, value in given.items() if value is not None})

    def titled(self, find: Callable[[str], ScorerInfo], titles: Mapping[str, str]) -> GateCriteria:
        """The same criteria by the titles of their scorers.

        Args:
            find: the scorer that a name refers to.
            titles: the scorers' titles by signature.

        Raises:
            ConfigError: a scorer is unknown or has two thresholds for one criterion, or a threshold doesn't fit it.
        """
        tables: dict[str, Any] = {}
        for criterion in BY_SCORER:
            table: Mapping[str, Any] = getattr(self, criterion)
            by_scorer = values_by_scorer(table, find, Setting(criterion))
            for name, (info, value) in zip(table, by_scorer.items(), strict=True):
                _check_threshold(criterion, name, info, value)
            tables[criterion] = {titles[info.signature]: value for info, value in by_scorer.items()}
        required = values_by_scorer(dict.fromkeys(self.require), find, Setting("require"))
        return GateCriteria(**tables, require=[titles[info.signature] for info in required])

    def largest_changes(
        self,
        max_change: BySetting,
        find: Callable[[str], ScorerInfo],
        titles: Mapping[str, str],
    ) -> dict[str, float]:
        """The largest possible changes of a sample's score from the baseline, by the titles of their scorers.

        Args:
            max_change: one for all scorers that are compared with the baseline, or by scorer; None for none.
            find: as for `titled`, which made these criteria.
            titles: the same.

        Raises:
            ConfigError: a scorer is unknown or isn't compared with a baseline, or a change is outside its scale.
        """
        if max_change is not None and not isinstance(max_change, Mapping) and not self.of_baseline:
            raise ConfigError(Setting(LARGEST_CHANGE), *_OF_DIFFERENCE)
        compared = map(find, self.of_baseline)
        reaches = reaches_by_scorer(LARGEST_CHANGE, max_change, compared, find, titles)
        for info in reaches:
            if (title := titles[info.signature]) not in self.of_baseline:
                raise ConfigError(Setting(LARGEST_CHANGE), f" of {title}", *_OF_DIFFERENCE)
        return {titles[info.signature]: change for info, change in reaches.items()}

    def check_baseline(self, *, is_set: bool) -> None:
        """Raise ConfigError for a criterion about the difference from a baseline, unless one is set."""
        for criterion in () if is_set else OF_BASELINE:
            if getattr(self, criterion):
                raise ConfigError(Setting(criterion), " requires ", Setting("baseline", ...))

    @property
    def of_scores(self) -> tuple[str, ...]:
        """The scorers whose scores are tested by themselves, without a baseline."""
        return tuple(dict.fromkeys((*self.min, *self.max, *self.pass_rate)))

    @property
    def of_baseline(self) -> tuple[str, ...]:
        """The scorers that are compared with a baseline."""
        return tuple(dict.fromkeys((*self.max_regression, *self.max_difference)))

    @property
    def tested(self) -> tuple[str, ...]:
        """The scorers with a statistical test: those with any criterion other than `require`."""
        return tuple(dict.fromkeys((*self.of_scores, *self.of_baseline)))

    @property
    def scorers(self) -> tuple[str, ...]:
        """All scorers with a criterion."""
        return tuple(dict.fromkeys((*self.tested, *self.require)))


def check_bound(bound: str, name: str, info: ScorerInfo, threshold: object) -> None:
    """Check the `min` or `max` of a scorer. name: the scorer as it was named.

    Raises:
        ConfigError: it is no number, outside the scorer's scale, or for scorers of the other direction; the message
            then shows the right bound.
    """
    check_number((Setting(bound), f" of {name}"), threshold)
    _check_threshold(bound, name, info, threshold)


def _check_threshold(criterion: str, name: str, info: ScorerInfo, value: Any) -> None:
    of_scorer, scale = (Setting(criterion), f" of {name}"), info.scale
    if DIRECTIONS.get(criterion, info.lower_is_better) is not info.lower_is_better:
        better = "lower" if info.lower_is_better else "higher"
        right = Setting(_OPPOSITE[criterion], {name: value})
        raise ConfigError(*of_scorer, f": {better} is better for {info.name}; use ", right)
    threshold, share = value if criterion == "pass_rate" else (value, 0)
    if not 0 <= threshold <= scale:
        what = (*of_scorer, ": the score") if criterion == "pass_rate" else of_scorer
        raise ConfigError(invalid(what, f"in [0, {scale:g}]", threshold, f"{threshold:g}"))
    if not 0 <= share <= 1:
        raise ConfigError(invalid((*of_scorer, ": the share"), "in [0, 1]", share, f"{share:g}"))
